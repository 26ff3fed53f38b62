/* ops_info.c - store.info: the facts and the condition of a store, for its operator. */
#include "api/ops_int.h"
#include "api/shards.h"
#include "base/limits.h"

/* Timers that are overdue by one of the two clocks. */
struct overdue {
    uint32_t count;
    int64_t oldest_ms; /* when the first was due, by the wall clock; 0: none is */
};

static pawl_status find_overdue(struct engine *engine, struct scope *scope, bool wall,
                                int64_t now_ms, int64_t offset_ms, struct overdue *out)
{
    struct live_timer *timers;
    uint32_t count = 0;
    pawl_status status =
        store_due(engine_store(engine), scope, wall, now_ms, LIMIT_LIST, &timers, &count);

    if (status != PAWL_OK || count == 0)
        return status;
    if (out->count == 0 || timers[0].due_at_ms - offset_ms < out->oldest_ms)
        out->oldest_ms = timers[0].due_at_ms - offset_ms;
    out->count = out->count + count < LIMIT_LIST ? out->count + count : LIMIT_LIST;
    return PAWL_OK;
}

struct objects_seen {
    struct buf fault; /* the first that differs from the expected schema */
    uint32_t foreign;
};

static pawl_status take_fault(void *context, enum object_verdict verdict, str type, str name,
                              str table)
{
    struct objects_seen *seen = context;

    (void)table;
    seen->foreign += verdict == OBJECT_FOREIGN;
    if (verdict != OBJECT_FOREIGN && seen->fault.size == 0)
        buf_fmt(&seen->fault, "%.*s %.*s %s", STR_ARG(type), STR_ARG(name),
                verdict == OBJECT_MISSING   ? "is missing"
                : verdict == OBJECT_TRIGGER ? "is on a table or view of pawl's"
                                            : "is not the one that the migrations make");
    return PAWL_OK;
}

static pawl_status print_schema_fault(const struct op_call *call, struct buf *out)
{
    struct objects_seen seen = { .foreign = 0 };
    pawl_status status;

    buf_init(&seen.fault, call->scope->arena.heap, LIMIT_TEXT);
    status = store_objects(engine_store(op_engine(call)), call->scope, take_fault, &seen);
    json_put_str(out, "schema_fault", seen.fault.size > 0 ? buf_view(&seen.fault) : STR_NONE);
    json_put_u64(out, "host_objects", seen.foreign);
    buf_fini(&seen.fault);
    return status;
}

static pawl_status shard_instances(struct engine *engine, struct scope *scope, uint64_t *out)
{
    struct counts counts;

    TRY(engine_counts(engine, scope, STR_NONE, 0, &counts));
    *out = counts.total;
    return PAWL_OK;
}

/* All shards together. */
struct store_sums {
    struct store_tip home;
    uint64_t records, behind, instances, wal_bytes;
    int64_t last_ms;
    struct shard_tip *tips;
    struct overdue overdue;
};

static pawl_status add_shard(struct engine *engine, struct scope *scope, struct store_sums *sums,
                             uint32_t shard)
{
    int64_t offset_ms = engine_clock_offset_ms(engine);
    struct store_tip tip = { 0 };
    uint64_t count;

    TRY(store_tip(engine_store(engine), scope, &tip));
    TRY(find_overdue(engine, scope, false, engine_now_ms(engine), offset_ms, &sums->overdue));
    TRY(find_overdue(engine, scope, true, engine_wall_ms(engine), 0, &sums->overdue));
    count = tip.last_instance;
    if (tip.stride > 1) /* numbers are raised to those of the other shards */
        TRY(shard_instances(engine, scope, &count));
    sums->records += tip.pos;
    sums->behind += tip.pos > tip.flushed ? tip.pos - tip.flushed : 0;
    sums->instances += count;
    sums->wal_bytes += engine_store(engine)->wal_bytes;
    sums->last_ms = tip.pos > 0 && tip.at_ms > sums->last_ms ? tip.at_ms : sums->last_ms;
    sums->tips[shard].pos = tip.pos;
    memcpy(sums->tips[shard].root, tip.root, SHA_SIZE);
    if (shard == SHARD_HOME)
        sums->home = tip;
    return PAWL_OK;
}

static pawl_status sum_shards(struct op_call *call, struct store_sums *out)
{
    *out = (struct store_sums){ .tips = ARENA_ARRAY(&call->scope->arena, struct shard_tip,
                                                    shards_count(call->p)) };
    TRY_MEMORY(call->scope, out->tips);
    for (uint32_t i = 0; i < shards_count(call->p); i++)
        TRY(add_shard(shard_at(call->p, i)->engine, call->scope, out, i));
    return PAWL_OK;
}

/* Of a store that is alone, its log's. */
static pawl_status print_root(struct op_call *call, const struct store_sums *sums, struct buf *out)
{
    uint8_t root[SHA_SIZE];
    struct sha *sha;

    if (sums->home.stride == 1) {
        json_put_hex(out, "root", sums->home.root, SHA_SIZE);
        return PAWL_OK;
    }
    sha = sha_new(call->scope->arena.heap);
    TRY_MEMORY(call->scope, sha);
    shards_root(sha, sums->home.whole_id, sums->tips, sums->home.stride, root);
    sha_free(sha);
    json_put_hex(out, "root", root, SHA_SIZE);
    json_put_u64(out, "shards", sums->home.stride);
    return PAWL_OK;
}

pawl_status op_store_info(struct op_call *call, struct buf *out)
{
    struct engine *engine = op_engine(call);
    struct store_facts facts;
    struct store_sums sums;

    TRY(sum_shards(call, &sums));
    if (store_facts(engine_store(engine), call->scope, &facts) != PAWL_OK)
        facts = (struct store_facts){ 0 }; /* null: the rest is worth telling */
    json_put_text(out, "version", PAWL_VERSION);
    json_put_str(out, "sqlite", facts.sqlite);
    json_put_str(out, "format", facts.format);
    json_put_str(out, "migrations", facts.migrations);
    json_put_hex(out, "store_id", sums.home.whole_id, STORE_ID_SIZE);
    json_put_u64(out, "records", sums.records);
    TRY(print_root(call, &sums, out));
    json_put_u64(out, "rows_behind", sums.behind);
    json_put_u64(out, "instances", sums.instances);
    json_put_u64(out, "definitions", sums.home.last_definition);
    json_put_u64(out, "wal_bytes", sums.wal_bytes);
    json_put_time(out, "now", engine_wall_ms(engine));
    json_put_time_or_null(out, "last_record_at", sums.last_ms);
    json_put_i64(out, "clock_ahead_ms", engine_clock_offset_ms(engine));
    json_put_bool(out, "test_clock", engine_has_test_clock(engine));
    json_put_u64(out, "timers_overdue", sums.overdue.count);
    json_put_time_or_null(out, "oldest_overdue", sums.overdue.oldest_ms);
    TRY(print_schema_fault(call, out));
    return api_modules_print(call->p, call->scope, out);
}
