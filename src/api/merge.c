/* merge.c - lists over shards. Each shard gives its instances in order of number, which is that of
 * their creation; a cursor says of each shard how far it was read. So every instance comes once,
 * whatever is created meanwhile. */
#include "api/merge.h"
#include "api/events.h"
#include "api/ops_int.h"
#include "api/shards.h"

static pawl_status read_cursor(const struct op_call *call, uint32_t shards,
                               struct shard_vector *out)
{
    str cursor = op_text(call, "after");

    out->count = shards;
    if (cursor.data && !event_cursor_parse(cursor, shards, out))
        return query_refuse(call, "after", "a cursor that `next` gave");
    return PAWL_OK;
}

/* When the next instance of a shard was recorded. A store that is alone has nothing to compare. */
static pawl_status look(const struct list_merge *merge, struct merge_shard *shard)
{
    struct instance_row row;
    struct record record;

    if (merge->at.count == 1 || shard->next == shard->count)
        return PAWL_OK;
    TRY(store_instance(engine_store(shard->engine), merge->call->scope, shard->numbers[shard->next],
                       &row));
    TRY(store_record(engine_store(shard->engine), merge->call->scope, row.created_pos, &record));
    shard->created_ms = record.at_ms;
    return PAWL_OK;
}

static pawl_status read_shard(const struct list_merge *merge, struct list_query query, uint32_t i)
{
    struct merge_shard *shard = &merge->shards[i];
    struct scope *scope = merge->call->scope;

    query.after = merge->at.at[i];
    TRY(engine_list(shard->engine, scope, &query, &shard->numbers, &shard->count));
    TRY(store_expect(engine_store(shard->engine), scope,
                     &(struct expectation){ .instances = shard->numbers,
                                            .instance_count = shard->count,
                                            .rows = EXPECT_HEADS | EXPECT_ROWS | EXPECT_RECORDS |
                                                    EXPECT_LIVE }));
    return look(merge, shard);
}

pawl_status merge_begin(struct op_call *call, const struct list_query *query,
                        struct list_merge *out)
{
    uint32_t count = shards_count(call->p);

    out->call = call;
    out->oldest_first = query->oldest_first;
    out->shards = ARENA_ARRAY(&call->scope->arena, struct merge_shard, count);
    TRY_MEMORY(call->scope, out->shards);
    TRY(read_cursor(call, count, &out->at));
    for (uint32_t i = 0; i < count; i++) {
        out->shards[i] = (struct merge_shard){ .engine = shard_at(call->p, i)->engine };
        TRY(read_shard(out, *query, i));
    }
    return PAWL_OK;
}

static bool comes_before(const struct list_merge *merge, const struct merge_shard *a,
                         const struct merge_shard *b)
{
    if (a->created_ms != b->created_ms)
        return (a->created_ms < b->created_ms) == merge->oldest_first;
    return (a->numbers[a->next] < b->numbers[b->next]) == merge->oldest_first;
}

pawl_status merge_next(struct list_merge *merge, struct merge_row *out, bool *is_there)
{
    struct merge_shard *first = NULL;

    for (uint32_t i = 0; i < merge->at.count; i++) {
        struct merge_shard *shard = &merge->shards[i];

        if (shard->next < shard->count && (!first || comes_before(merge, shard, first)))
            first = shard;
    }
    *is_there = first != NULL;
    if (!first)
        return PAWL_OK;
    *out = (struct merge_row){ first->engine, first->numbers[first->next++] };
    merge->at.at[first - merge->shards] = out->number;
    return look(merge, first);
}

bool merge_has_more(const struct list_merge *merge)
{
    for (uint32_t i = 0; i < merge->at.count; i++)
        if (merge->shards[i].next < merge->shards[i].count)
            return true;
    return false;
}

/* ---- Instances with live steps ---- */

pawl_status busy_begin(struct op_call *call, struct merge_busy *merge)
{
    merge->call = call;
    merge->shards = ARENA_ARRAY(&call->scope->arena, struct busy_shard, merge->at.count);
    TRY_MEMORY(call->scope, merge->shards);
    for (uint32_t i = 0; i < merge->at.count; i++)
        merge->shards[i] = (struct busy_shard){ .engine = shard_at(call->p, i)->engine };
    return PAWL_OK;
}

/* The next rows of a shard, if those before have been given. */
static pawl_status busy_fill(const struct merge_busy *merge, uint32_t i)
{
    struct busy_shard *shard = &merge->shards[i];

    if (shard->next < shard->count || shard->is_last)
        return PAWL_OK;
    shard->next = 0;
    TRY(store_busy(engine_store(shard->engine), merge->call->scope, merge->at.at[i], true,
                   merge->at_once, &shard->rows, &shard->count));
    shard->is_last = shard->count < merge->at_once;
    return PAWL_OK;
}

static pawl_status busy_first(struct merge_busy *merge, struct busy_shard **out)
{
    *out = NULL;
    for (uint32_t i = 0; i < merge->at.count; i++) {
        struct busy_shard *shard = &merge->shards[i];

        TRY(busy_fill(merge, i));
        if (shard->next < shard->count &&
            (!*out || shard->rows[shard->next].instance < (*out)->rows[(*out)->next].instance))
            *out = shard;
    }
    return PAWL_OK;
}

pawl_status busy_next(struct merge_busy *merge, struct merge_row *at, const struct busy_row **out)
{
    struct busy_shard *first;

    *out = NULL;
    TRY(busy_first(merge, &first));
    if (!first)
        return PAWL_OK;
    *out = &first->rows[first->next++];
    *at = (struct merge_row){ first->engine, (*out)->instance };
    merge->at.at[first - merge->shards] = (*out)->instance;
    return PAWL_OK;
}

pawl_status busy_peek(struct merge_busy *merge, bool *is_last)
{
    struct busy_shard *first;

    TRY(busy_first(merge, &first));
    *is_last = first == NULL;
    return PAWL_OK;
}
