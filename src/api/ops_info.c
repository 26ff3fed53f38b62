/* ops_info.c - store.info: the facts and the condition of a store, for its operator. */
#include "api/ops_int.h"
#include "base/limits.h"

/* Timers that are overdue by one of the two clocks. */
struct overdue {
    uint32_t count;
    int64_t oldest_ms; /* when the first was due, by the wall clock; 0: none is */
};

static pawl_status find_overdue(const struct op_call *call, bool wall, int64_t now_ms,
                                int64_t offset_ms, struct overdue *out)
{
    struct live_timer *timers;
    uint32_t count = 0;
    pawl_status status = store_due(engine_store(op_engine(call)), call->scope, wall, now_ms,
                                   LIMIT_LIST, &timers, &count);

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

pawl_status op_store_info(struct op_call *call, struct buf *out)
{
    struct engine *engine = op_engine(call);
    struct store_tip tip = { 0 };
    struct store_facts facts;
    struct overdue overdue = { 0 };
    int64_t wall_ms = engine_wall_ms(engine), offset_ms = engine_clock_offset_ms(engine);

    TRY(store_tip(engine_store(engine), call->scope, &tip));
    TRY(find_overdue(call, false, engine_now_ms(engine), offset_ms, &overdue));
    TRY(find_overdue(call, true, wall_ms, 0, &overdue));
    if (store_facts(engine_store(engine), call->scope, &facts) != PAWL_OK)
        facts = (struct store_facts){ 0 }; /* null: the rest is worth telling */
    json_put_text(out, "version", PAWL_VERSION);
    json_put_str(out, "sqlite", facts.sqlite);
    json_put_str(out, "format", facts.format);
    json_put_str(out, "migrations", facts.migrations);
    json_put_hex(out, "store_id", tip.store_id, STORE_ID_SIZE);
    json_put_u64(out, "records", tip.pos);
    json_put_hex(out, "root", tip.root, SHA_SIZE);
    json_put_u64(out, "rows_behind", tip.pos > tip.flushed ? tip.pos - tip.flushed : 0);
    json_put_u64(out, "instances", tip.last_instance);
    json_put_u64(out, "definitions", tip.last_definition);
    json_put_u64(out, "wal_bytes", engine_store(engine)->wal_bytes);
    json_put_time(out, "now", wall_ms);
    json_put_time_or_null(out, "last_record_at", tip.pos > 0 ? tip.at_ms : 0);
    json_put_i64(out, "clock_ahead_ms", offset_ms);
    json_put_bool(out, "test_clock", engine_has_test_clock(engine));
    json_put_u64(out, "timers_overdue", overdue.count);
    json_put_time_or_null(out, "oldest_overdue", overdue.oldest_ms);
    TRY(print_schema_fault(call, out));
    return api_modules_print(call->p, call->scope, out);
}
