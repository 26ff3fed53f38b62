/* ops_alarm.c - any writing operation, later, once (B40). */
#include "api/ops_int.h"
#include "api/shards.h"
#include "base/limits.h"
#include "base/time.h"
#include "model/rights.h"

/* A time is by the wall clock; a duration runs by the store's clock. */
static pawl_status read_due(const struct op_call *call, struct keep_args *out)
{
    str at = op_told(call, "at"), after = op_told(call, "after");
    int64_t after_ms;

    if (!at.data == !after.data)
        return scope_fail(
            call->scope, PAWL_INVALID_REQUEST,
            "expected exactly one of 'at' (a time) and 'after' (a duration), found %s",
            at.data ? "both" : "neither");
    out->wall = at.data != NULL;
    if (at.data && !time_parse(at, &out->due_at_ms))
        return scope_fail(call->scope, PAWL_INVALID_REQUEST,
                          "'at': expected a time like 2026-05-01T00:00:00Z, found '%.*s'",
                          STR_ARG(at));
    if (at.data)
        return PAWL_OK;
    if (!duration_parse(after, &after_ms))
        return scope_fail(call->scope, PAWL_INVALID_REQUEST,
                          "'after': expected a duration like 30s, 5m or 7d, found '%.*s'",
                          STR_ARG(after));
    out->due_at_ms = engine_now_ms(op_engine(call)) + after_ms;
    return PAWL_OK;
}

/* At any depth: an alarm may set another. Only alarms of before those names were reserved have
 * them, and are carried out as they were set. */
static pawl_status check_actors(const struct op_call *call)
{
    const struct node *set = call->input, *input = node_find(set, "input");

    while (input && input->kind == NODE_OBJECT) {
        if (actor_is_reserved(node_text(input, "actor_ref")))
            return scope_fail(call->scope, PAWL_INVALID_REQUEST, "'input': its actor %s",
                              ACTOR_RESERVED_WORDS);
        if (!str_is(node_text(set, "operation"), "alarm.set"))
            break;
        set = input;
        input = node_find(set, "input");
    }
    return PAWL_OK;
}

/* An instance that is not known now is not known later either: ids are given out, never chosen. */
static pawl_status check_instance(const struct op_call *call)
{
    const struct node *input = node_find(call->input, "input");
    str id = node_text(input, "instance_id"), step = node_text(input, "step_id"), state;
    uint64_t ordinal;

    if (step.data && !id_split(step, '.', &id, &ordinal))
        id = step;
    return id.data ? engine_current(op_engine(call), call->scope, id, &state) : PAWL_OK;
}

/* Operations with a key in their record, and those that act on many instances. Not a claim, whose
 * answer is for its caller, and not test.*, which would wait for itself. */
static pawl_status check_operation(const struct op_call *call)
{
    str name = op_text(call, "operation");
    const struct op *op = op_find(name);

    if (!op || !(op->flags & OP_WRITES) || str_starts(name, STR("test.")) ||
        (!(op->flags & OP_KEY_IN_RECORD) && strcmp(op->scope, "write") != 0))
        return scope_fail(call->scope, PAWL_INVALID_REQUEST,
                          "'operation': expected one that changes something, found '%.*s'",
                          STR_ARG(name));
    TRY(op_check(call->scope, op, op_json(call, "input")));
    TRY(check_instance(call));
    return call->scope->is_alarms ? PAWL_OK : check_actors(call);
}

/* The alarm will run with the present rights, and in the name, of the token that set it. */
pawl_status op_alarm_set(struct op_call *call, struct buf *out)
{
    struct keep_args args = { .what = CONTROL_ALARM, .key = call->key };
    char id[STANDING_ID_SIZE + 1];
    struct buf payload;
    pawl_status status;

    TRY(read_due(call, &args));
    TRY(check_operation(call));
    buf_init(&payload, call->scope->arena.heap, LIMIT_SCOPE);
    json_open(&payload, '{');
    json_put_str(&payload, "operation", op_text(call, "operation"));
    json_put_raw(&payload, "input", op_json(call, "input"));
    if (str_has(call->who.scopes, ':'))
        json_put_str(&payload, "scopes", call->who.scopes);
    json_opt_str(&payload, "actor", call->who.actor);
    json_close(&payload, '}');
    args.payload = buf_view(&payload);
    status = payload.failed ? scope_no_memory(call->scope)
                            : engine_keep(op_engine(call), call->scope, &args, id);
    buf_fini(&payload);
    if (status != PAWL_OK)
        return status;
    json_put_text(out, "alarm_id", id);
    return PAWL_OK;
}

pawl_status op_alarm_cancel(struct op_call *call, struct buf *out)
{
    struct keep_args args = { .what = CONTROL_ALARM,
                              .id = op_text(call, "alarm_id"),
                              .over = STR("cancelled"),
                              .unless_firing = true,
                              .key = call->key };
    pawl_status status = engine_keep(op_engine(call), call->scope, &args, NULL);

    if (status == PAWL_NOT_KNOWN)
        return scope_fail(call->scope, status, "no alarm '%.*s': it has fired, or never was",
                          STR_ARG(args.id));
    json_put_bool(out, "cancelled", true);
    return status;
}

static pawl_status print_alarm(const struct op_call *call, struct engine *engine,
                               const struct standing_fact *alarm, struct buf *out)
{
    struct node *payload = NULL;

    if (alarm->payload.data)
        TRY(node_read_json(call->scope, alarm->payload, &payload));
    json_open(out, '{');
    json_put_str(out, "alarm_id", alarm->id);
    json_put_time(out, "at",
                  alarm->wall ? alarm->due_at_ms
                              : alarm->due_at_ms - engine_clock_offset_ms(engine));
    json_put_str(out, "operation", node_text(payload, "operation"));
    json_put_raw(out, "input", node_raw(payload, "input"));
    if (alarm->is_firing)
        json_put_bool(out, "firing", true);
    json_close(out, '}');
    return PAWL_OK;
}

/* Those of one shard, in order of due time. */
struct alarms_of {
    struct engine *engine;
    struct standing_fact *alarms;
    uint32_t count, next;
};

static struct alarms_of *first_alarm(const pawl *p, struct alarms_of *shards)
{
    struct alarms_of *first = NULL;

    for (uint32_t i = 0; i < shards_count(p); i++)
        if (shards[i].next < shards[i].count &&
            (!first ||
             shards[i].alarms[shards[i].next].due_at_ms < first->alarms[first->next].due_at_ms))
            first = &shards[i];
    return first;
}

pawl_status op_alarm_list(struct op_call *call, struct buf *out)
{
    struct alarms_of *shards =
        ARENA_ARRAY(&call->scope->arena, struct alarms_of, shards_count(call->p));
    struct alarms_of *first;

    TRY_MEMORY(call->scope, shards);
    for (uint32_t i = 0; i < shards_count(call->p); i++) {
        shards[i] = (struct alarms_of){ .engine = shard_at(call->p, i)->engine };
        TRY(engine_standing_list(shards[i].engine, call->scope, CONTROL_ALARM, LIMIT_LIST,
                                 &shards[i].alarms, &shards[i].count));
    }
    json_put_open(out, "alarms", '[');
    for (uint32_t i = 0; i < LIMIT_LIST && (first = first_alarm(call->p, shards)) != NULL; i++)
        TRY(print_alarm(call, first->engine, &first->alarms[first->next++], out));
    json_close(out, ']');
    return PAWL_OK;
}

/* ---- when it falls due ---- */

/* An operation of one decision has its key in the decision's record; any other begins by recording
 * that the alarm is firing. */
static pawl_status begin(struct engine *engine, struct scope *scope, struct standing_fact *alarm,
                         const struct node *payload, const struct op *op)
{
    const struct node *machine = node_find(payload, "machine");

    scope->is_alarms = true;
    scope->is_machines = machine && machine->truth;
    scope->on_end = scope->is_machines ? node_raw(payload, "on_end") : STR_NONE;
    scope->trace = node_text(payload, "traceparent"); /* of who ordered it */
    if (!(op->flags & OP_KEY_IN_RECORD))
        return engine_alarm_begin(engine, scope, alarm);
    scope->alarm = alarm->id;
    return PAWL_OK;
}

pawl_status alarm_fire(void *context, struct engine *engine, struct scope *scope,
                       struct standing_fact *alarm)
{
    const pawl *opened = context;
    pawl here = { .heap = opened->heap,
                  .panic = opened->panic,
                  .engine = engine }; /* it may be opening still */
    struct shards *shards = opened->shards;
    struct node *payload = NULL, *input;
    struct op_principal who = { .name = STR("alarm") };
    const struct op *op;
    struct buf answer;
    pawl_status status;

    if (!alarm->payload.data)
        return scope_fail(scope, PAWL_NOT_KNOWN, "what this alarm was for has been erased");
    TRY(node_read_json(scope, alarm->payload, &payload));
    input = node_find(payload, "input");
    op = op_find(node_text(payload, "operation"));
    if (!op || !input)
        return scope_fail(scope, PAWL_INVALID_REQUEST, "this alarm names no operation");
    if (op->where == AT_ALL) /* any other lies in the shard where it runs */
        here.shards = shards;
    if (op->where == AT_ALL && engine_shards(engine) > 1 && (!shards || !shards->is_open))
        return scope_fail(scope, PAWL_OVERLOADED, "the other shards are being opened");
    TRY(begin(engine, scope, alarm, payload, op));
    buf_init(&answer, &here.heap, LIMIT_SCOPE);
    who.scopes = node_text(payload, "scopes");
    who.actor = node_text(payload, "actor");
    status = op_call_keyed(&here, op, input->raw, &who, alarm->id, scope, &answer);
    buf_fini(&answer);
    return status;
}
