/* station.h - this process as one of several nodes that serve a store together. It beats, claims
 * the shards that fall to it, hands them over, and knows where the others are.
 * docs/internals/cluster.md has the rules by number; what to do about a shard is decided in
 * model/membership.h.
 *
 * Two threads: one beats and does nothing else, so that no lease runs out because of work; one
 * declares, claims and hands over. */
#ifndef PAWL_API_STATION_H
#define PAWL_API_STATION_H

#include "api/api.h"
#include "api/ops.h"
#include "base/sha.h"
#include "store/cluster.h"

#define NODE_NAME_MAX    80
#define NODE_ADDRESS_MAX 256
#define FORWARD_WAIT_MS  10000

struct station;

/* Join, and claim what has no owner. Every shard is open, as a member. When this returns OK,
 * each has a live owner or will soon have one. */
pawl_status station_start(pawl *home, const struct cluster_me *me, struct scope *scope);
/* Hand over all, so that no call is lost, and leave. Calls go on, and are forwarded. */
void station_retire(pawl *home);
void station_stop(pawl *home); /* also without station_retire() */

struct station *station_of(pawl *p); /* NULL: the store is this process's alone */

/* ---- A call that needs the owner of its shard ---- */

/* This node is, and stays it until station_exit(). `all`: the call is about every shard. */
bool station_enter(pawl *shard, bool all);
void station_exit(pawl *shard, bool all);
/* The same of some of them, by number: all or none; and of those that this node owns, whose
 * count is returned. */
bool station_enter_these(pawl *p, const bool *these);
uint32_t station_enter_own(pawl *p, bool *out);
void station_exit_these(pawl *p, const bool *these);

enum station_place { STATION_HERE, STATION_THERE, STATION_NOWHERE };
struct station_where {
    char node[NODE_NAME_MAX], address[NODE_ADDRESS_MAX]; /* THERE */
    uint64_t change;                                     /* of what is known */
};
enum station_place station_find(pawl *shard, bool all, struct station_where *out);
/* Until something has changed since `change`, and no longer than until_ms by the tick. */
void station_await(pawl *shard, uint64_t change, int64_t until_ms);
/* Nothing listens at that node's address: it is looked at now. */
void station_suspect(pawl *shard);
/* Is that node up? Else an answer that is waited for may never come. */
bool station_is_up(pawl *p, const char *node);
/* May this node's memory of the shard be trusted now? (rule 2) If not, it beats first. */
bool station_may_read(pawl *shard);

/* Another node has news: beat now. */
void station_look_now(pawl *p);
/* Streams that are open here: one more, or one less. Others say at once what they commit. */
void station_count_streams(pawl *p, int by);

/* ---- Signed requests: signed.c ---- */

#define STATION_STAMP_MS 30000 /* a request that is older is refused */
struct station_signing {
    str method, target, key, trace, part;
    uint8_t body[SHA_SIZE];
    struct op_principal who;
};
#define SIGNED_HEADER OP_SIGNED_HEADER
#define AS_HEADER     OP_SIGNED_AS
#define SIGNED_SIZE   (NODE_NAME_MAX + 2 * (2 * SHA_SIZE) + 64)
/* The values of the two headers; `to` is the name of the node that it is for. NO_MEMORY. */
pawl_status station_sign(pawl *p, struct scope *scope, const struct station_signing *what,
                         const char *to, char out[SIGNED_SIZE], str *as);
/* UNAUTHENTICATED: it was not signed by a node of this store for this one, or is not new. Fills in
 * `who` and the body's hash, which the caller compares. */
pawl_status station_accept(pawl *p, struct scope *scope, str header, str as,
                           struct station_signing *what);
void station_body_hash(pawl *p, str body, uint8_t out[SHA_SIZE]);

/* ---- For people ---- */

/* Members of an answer: nodes, shards. */
void station_print(pawl *p, struct buf *out);
void station_print_figures(pawl *p, struct buf *out);

/* forward.c: run the call where its shard is owned, here or at another node. */
pawl_status station_run(struct op_call *call, struct buf *out, struct op_answer *answer,
                        bool *waits);
/* It came out as IN_USE or unknown: once more, if that is safe. */
bool station_may_run_again(const struct op_call *call, pawl_status status);
pawl_status station_run_again(struct op_call *call, pawl_status status, struct buf *out,
                              struct op_answer *answer);
void station_leave(struct op_call *call);              /* it has ended */
/* Forwarded for one shard: to that one, whatever its input says. */
void station_place(struct op_call *call);
bool station_call_is_away(const struct op_call *call); /* running it may block the thread */
enum op_reach station_reach(const struct op_call *call);
bool station_may_be_away(pawl *p, const struct op *op); /* of one that only reads */

#endif
