/* merge.h - instances of all shards in one order: by the time of their creation, then by id. */
#ifndef PAWL_API_MERGE_H
#define PAWL_API_MERGE_H

#include "api/api.h"
#include "api/ops.h"
#include "model/shard.h"
#include "store/store.h"

struct merge_row {
    struct engine *engine; /* of its shard */
    uint64_t number;
};

/* What a query gives of one shard. */
struct merge_shard {
    struct engine *engine;
    uint64_t *numbers;
    uint32_t count, next;
    int64_t created_ms; /* of the next one */
};

struct list_merge {
    const struct op_call *call;
    struct merge_shard *shards;
    uint32_t limit;
    bool oldest_first;
    struct shard_vector at; /* the last number that was given, of each shard */
};

/* `query` is of each shard; where it goes on is the parameter `after`. INVALID_QUERY. */
pawl_status merge_begin(struct op_call *call, const struct list_query *query,
                        struct list_merge *out);
pawl_status merge_next(struct list_merge *merge, struct merge_row *out, bool *is_there);
bool merge_has_more(const struct list_merge *merge);

/* ---- Instances with live steps, in order of number ---- */

struct busy_shard {
    struct engine *engine;
    struct busy_row *rows;
    uint32_t count, next;
    bool is_last; /* there are no rows behind these */
};

struct merge_busy {
    const struct op_call *call;
    struct busy_shard *shards;
    uint32_t at_once;       /* rows of a shard; set by the caller, as is the next */
    struct shard_vector at; /* the last number that was given, of each shard */
};

pawl_status busy_begin(struct op_call *call, struct merge_busy *merge);
/* *out NULL: there are no more. It lives until busy_next() is called the next time. */
pawl_status busy_next(struct merge_busy *merge, struct merge_row *at, const struct busy_row **out);
pawl_status busy_peek(struct merge_busy *merge, bool *is_last); /* has it come to the end? */

#endif
