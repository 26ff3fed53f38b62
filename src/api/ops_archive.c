/* ops_archive.c - instance.archive and store.archive: instances that have ended move into the
 * archive file. */
#include "api/archiving.h"
#include "api/ops_int.h"
#include "api/shards.h"
#include "base/limits.h"
#include "store/store.h"

static void print_moved(const struct archive_sum *sum, struct buf *out)
{
    json_put_u64(out, "archived", sum->instances);
    json_put_u64(out, "records", sum->records);
    json_put_u64(out, "left", sum->left);
}

pawl_status op_instance_archive(struct op_call *call, struct buf *out)
{
    struct archive_sum sum;
    str id = op_text(call, "instance_id");

    TRY(defect_status(call->scope, op_ref_defect(call, "actor_ref")));
    TRY(archive_move(op_engine(call), call->scope, &id, 1, op_ref(call, "actor_ref"),
                     op_told(call, "reason"), true, &sum));
    print_moved(&sum, out);
    return PAWL_OK;
}

/* ---- many ---- */

#define PAGE     64u   /* instances that are looked at before some of them move */
#define MOVE_MAX 1000u /* instances that one call moves, about */

struct archive_asked {
    struct op_call *call;
    struct engine *engine;
    struct list_query query;
    struct archive_sum sum;
    bool has_more;
};

static pawl_status read_asked(struct op_call *call, struct archive_asked *asked)
{
    str before = op_text(call, "ended_before");

    *asked = (struct archive_asked){ .call = call,
                                     .query = { .has_ended = true, .oldest_first = true } };
    TRY(query_definition(call, &asked->query.definition, &asked->query.version));
    asked->query.limit = PAGE;
    asked->query.ended.has_before = before.data != NULL;
    if (before.data && !query_time_of(before, &asked->query.ended.before_ms))
        return scope_fail(call->scope, PAWL_INVALID_REQUEST,
                          "ended_before: expected a time like 2026-05-01T00:00:00Z");
    return PAWL_OK;
}

/* Children leave with those that began them. */
static pawl_status move_page(struct archive_asked *asked, struct scope *page, uint32_t *found)
{
    struct op_call *call = asked->call;
    struct store *store = engine_store(asked->engine);
    char texts[PAGE][ID_SIZE + 1];
    struct archive_sum sum;
    uint64_t *numbers;
    uint32_t count = 0;
    str ids[PAGE];

    TRY(store_list(store, page, &asked->query, &numbers, found));
    for (uint32_t i = 0; i < *found; i++) {
        struct instance_row row;

        TRY(store_instance(store, page, numbers[i], &row));
        asked->query.after = numbers[i];
        if (row.parent)
            continue;
        id_print(numbers[i], row.random, texts[count]);
        ids[count] = str_of(texts[count]);
        count++;
    }
    TRY(archive_move(asked->engine, page, ids, count, op_ref(call, "actor_ref"),
                     op_told(call, "reason"), false, &sum));
    asked->sum.instances += sum.instances;
    asked->sum.records += sum.records;
    asked->sum.left += sum.left;
    return PAWL_OK;
}

static pawl_status move_shard(struct archive_asked *asked)
{
    uint32_t found = PAGE;
    struct scope page;
    pawl_status status = PAWL_OK;

    scope_init(&page, engine_heap(asked->engine), LIMIT_SCOPE);
    asked->query.after = 0;
    while (!status && found == PAGE && asked->sum.instances < MOVE_MAX) {
        scope_clear(&page);
        status = move_page(asked, &page, &found);
    }
    asked->has_more = asked->has_more || (!status && found == PAGE);
    return scope_leave(&page, asked->call->scope, status);
}

pawl_status op_store_archive(struct op_call *call, struct buf *out)
{
    struct archive_asked asked;

    TRY(defect_status(call->scope, op_ref_defect(call, "actor_ref")));
    TRY(read_asked(call, &asked));
    for (uint32_t i = 0; i < shards_count(call->p); i++) {
        if (!op_has_shard(call, i))
            continue;
        asked.engine = shard_at(call->p, i)->engine;
        TRY(move_shard(&asked));
    }
    print_moved(&asked.sum, out);
    json_put_bool(out, "more", asked.has_more);
    return PAWL_OK;
}
