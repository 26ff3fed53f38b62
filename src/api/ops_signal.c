/* ops_signal.c - signals, and the operations of the test clock. */
#include "api/ops_int.h"
#include "api/shards.h"
#include "base/limits.h"
#include "base/node.h"
#include "base/time.h"

/* Those that took it; and those that keep it, have no room to, or that it does not fit, if there
 * are any. */
static void print_signalled(const struct broadcast *reached, struct buf *out)
{
    json_put_u64(out, "delivered", reached->delivered);
    json_opt_u64(out, "kept", reached->kept);
    json_opt_u64(out, "full", reached->full);
    json_opt_u64(out, "refused", reached->refused);
}

pawl_status op_signal_send(struct op_call *call, struct buf *out)
{
    bool is_kept;

    TRY(engine_signal(op_engine(call), call->scope, op_text(call, "instance_id"),
                      op_text(call, "name"), op_json(call, "payload"), op_ref(call, "actor_ref"),
                      op_ref_defect(call, "actor_ref"), call->key, &is_kept));
    print_signalled(&(struct broadcast){ .delivered = !is_kept, .kept = is_kept }, out);
    return PAWL_OK;
}

static pawl_status start_args(const struct op_call *call, struct create_args *out)
{
    static const char *const refs[] = { "actor_ref", "subject_ref", "correlation_id" };

    for (size_t i = 0; i < sizeof refs / sizeof *refs; i++)
        TRY(defect_status(call->scope, op_ref_defect(call, refs[i])));
    TRY(check_labels(call->scope, node_find(call->input, "labels")));
    *out = (struct create_args){ .definition = op_text(call, "definition"),
                                 .subject = op_ref(call, "subject_ref"),
                                 .input = op_json(call, "input"),
                                 .labels = op_json(call, "labels"),
                                 .correlation = op_ref(call, "correlation_id"),
                                 .actor = op_ref(call, "actor_ref"),
                                 .is_singleton = true };
    if (!out->subject.data)
        return scope_fail(call->scope, PAWL_INVALID_REQUEST,
                          "subject_ref: expected the business object, found nothing");
    return op_rights(call, false, &out->rights);
}

#define STARTS_MAX 3 /* the instance may end before the signal comes: then there is another one */

pawl_status op_signal_start(struct op_call *call, struct buf *out)
{
    struct create_args args;
    struct created created = { 0 };
    bool is_kept = false;
    pawl_status status = PAWL_TERMINAL;

    TRY(start_args(call, &args));
    for (int tries = 0; status == PAWL_TERMINAL && tries < STARTS_MAX; tries++) {
        created = (struct created){ 0 };
        TRY(engine_create(op_engine(call), call->scope, &args, &created));
        status = engine_signal(op_engine(call), call->scope, str_of(created.id),
                               op_text(call, "name"), op_json(call, "payload"),
                               op_ref(call, "actor_ref"), NULL, NULL, &is_kept);
    }
    TRY(status);
    json_put_text(out, "instance_id", created.id);
    json_put_bool(out, "existing", created.is_existing);
    print_signalled(&(struct broadcast){ .delivered = !is_kept, .kept = is_kept }, out);
    return PAWL_OK;
}

/* Without white space. */
static pawl_status filter_of(const struct op_call *call, str *out)
{
    str given = op_json(call, "filter");
    struct node *node = NULL;
    struct buf buf;

    *out = STR_NONE;
    if (!given.data || str_is(given, "null")) /* E15: any */
        return PAWL_OK;
    TRY(node_read_json(call->scope, given, &node));
    buf_init(&buf, call->scope->arena.heap, LIMIT_TEXT);
    node_print(node, &buf);
    *out = buf_take(&buf, &call->scope->arena);
    return out->data ? PAWL_OK : scope_no_memory(call->scope);
}

pawl_status op_signal_broadcast(struct op_call *call, struct buf *out)
{
    const char *defect = op_ref_defect(call, "actor_ref");
    struct broadcast reached = { 0 }, one;
    str filter;

    TRY(defect ? defect_status(call->scope, defect) : filter_of(call, &filter));
    for (uint32_t i = 0; i < shards_count(call->p); i++) {
        if (!op_has_shard(call, i))
            continue;
        TRY(engine_broadcast(shard_at(call->p, i)->engine, call->scope, op_text(call, "name"),
                             filter, op_json(call, "payload"), op_ref(call, "actor_ref"), call->key,
                             &one));
        reached.delivered += one.delivered;
        reached.kept += one.kept;
        reached.full += one.full;
        reached.refused += one.refused;
    }
    print_signalled(&reached, out);
    return PAWL_OK;
}

/* Only what was made for tests is played with. */
pawl_status op_test_signal(struct op_call *call, struct buf *out)
{
    struct instance_view view;
    str id = op_text(call, "instance_id");

    TRY(engine_get(op_engine(call), call->scope, id, &view));
    if (view.test || engine_has_test_clock(op_engine(call)))
        return op_signal_send(call, out);
    return scope_fail(call->scope, PAWL_NOT_AWAITING,
                      "%.*s was not created with 'test': true, so it waits for nothing here",
                      STR_ARG(id));
}

pawl_status op_test_fire_timer(struct op_call *call, struct buf *out)
{
    TRY(engine_fire_timer(op_engine(call), call->scope, op_text(call, "instance_id"),
                          op_text(call, "name"), call->key));
    json_put_u64(out, "fired", 1);
    return PAWL_OK;
}

pawl_status op_test_advance(struct op_call *call, struct buf *out)
{
    str by = op_text(call, "by");
    int64_t by_ms;

    if (!engine_has_test_clock(op_engine(call)))
        return scope_fail(call->scope, PAWL_NOT_KNOWN,
                          "this store runs by the real clock; there is a test clock with --test");
    if (!duration_parse(by, &by_ms))
        return scope_fail(call->scope, PAWL_INVALID_REQUEST,
                          "'by': expected a duration like 500ms, 30s, 5m, 72h or 7d, found "
                          "'%.*s'",
                          STR_ARG(by));
    TRY(shards_advance(call->p, call->scope, by_ms));
    json_put_time(out, "now", engine_now_ms(op_engine(call)));
    return PAWL_OK;
}
