/* shards.h - a store of several shards in this process: one pawl for each, and which of them a call
 * concerns. docs/internals/cluster.md is the design.
 *
 * The handle that a program has is the home shard's pawl. A store that is alone has no list: all
 * that is asked here is answered with the pawl that was given. */
#ifndef PAWL_API_SHARDS_H
#define PAWL_API_SHARDS_H

#include "api/api.h"
#include "api/ops.h"
#include "model/shard.h"

struct shards {
    uint32_t count;
    _Atomic bool is_open;    /* all of them are */
    _Atomic uint32_t turn;   /* where the next creation without a key goes */
    pthread_mutex_t advance; /* held while the test clock moves */
    int fd;                  /* readable while any of them has something to do; -1: not asked for */
    pawl *of[];              /* the home shard first */
};

/* Open the shards behind the first, which is open; CONFLICT-free, for api_open(). `from` is what
 * the first was opened with. */
pawl_status shards_open(pawl *p, const char *url, const pawl_options *options,
                        const struct engine_options *from, struct scope *scope);
void shards_close(pawl *p); /* all but the first, whose threads have ended then */

uint32_t shards_count(const pawl *p);
pawl *shard_at(pawl *p, uint32_t shard);
pawl *shard_home(pawl *p);
pawl *shard_of_id(pawl *p,
                  str id); /* or of what begins with an id; what has none: the home shard */
pawl *shard_of_instance(pawl *p, uint64_t number);
/* The next in turn, or that of the key. */
pawl *shard_for_new(pawl *p, const uint8_t *key);
pawl *shard_for_create(pawl *p, const struct create_args *args);
/* Where a call with this input goes. */
pawl *shard_route(pawl *p, const struct op *op, const struct node *input, const uint8_t *key);

/* The test clock of all of them, from one thing that is due to the next. */
pawl_status shards_advance(pawl *p, struct scope *scope, int64_t by_ms);
/* As engine_advance_turns(), in the instance's shard; the others follow. */
pawl_status shards_advance_turns(pawl *p, struct scope *scope, str id, uint32_t turns,
                                 int64_t most_ms, int64_t *out_moved_ms);
int64_t shards_next_due_ms(pawl *p); /* as engine_next_due_ms() */
int shards_fd(pawl *p);              /* as engine_wakeup_fd() */

bool shards_are_at_rest(pawl *p, int64_t *due_in_ms); /* as engine_is_at_rest() */
void shards_end_claims(pawl *p);                      /* as engine_claims_end() */

/* As engine_counts(), summed. */
pawl_status shards_counts(pawl *p, struct scope *scope, str definition, uint32_t version,
                          struct counts *out);

/* As the engine's functions; each shard has a commit of its own. A failure of a shard's store is
 * that of its items. */
pawl_status shards_fire(pawl *p, struct scope *scope, struct batch_fire *fires, size_t count);
/* Those without a key are all in one shard, so that they share a commit. */
pawl_status shards_create(pawl *p, struct scope *scope, struct batch_create *creates, size_t count);

#endif
