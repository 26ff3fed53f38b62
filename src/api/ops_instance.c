/* ops_instance.c - what changes an instance: create, fire, cancel.
 *
 * The order of the checks is part of the contract (DESIGN.md, section 5): types and unknown
 * fields first (ops_run.c), then what the store knows, and the values of actor_ref, reason
 * and the times last. */
#include "api/ops_int.h"
#include "api/shards.h"
#include "flow/flow.h"
#include "machine/machine.h"
#include "model/words.h"
#include <stdio.h>

/* ---- create ---- */

/* Exactly one of `definition` and `declaration`, and labels that are strings. */
static pawl_status check_create(const struct op_call *call)
{
    const struct node *declaration = node_find(call->input, "declaration");
    str definition = op_text(call, "definition");

    if ((declaration != NULL) == (definition.data != NULL))
        return scope_fail(call->scope, PAWL_INVALID_REQUEST,
                          "give either 'definition' (the name of one that was put) or "
                          "'declaration' (an inline machine); found %s",
                          declaration ? "both" : "neither");
    if (definition.data && str_is_blank(definition))
        return scope_fail(call->scope, PAWL_INVALID_REQUEST, "'definition' is blank");
    if (op_is_true(call, "singleton") && (declaration || !op_ref(call, "subject_ref").data))
        return scope_fail(call->scope, PAWL_INVALID_REQUEST, SINGLETON_WORDS);
    TRY(check_labels(call->scope, node_find(call->input, "labels")));
    if (declaration && declaration->kind != NODE_OBJECT)
        return scope_fail(call->scope, PAWL_INVALID_DECLARATION,
                          "'declaration': expected an object, found %s",
                          node_kind_name(declaration->kind));
    return PAWL_OK;
}

static const char *create_defect(const struct op_call *call, struct create_args *args)
{
    static const char *const refs[] = { "actor_ref", "subject_ref", "correlation_id" };
    const char *defect = NULL;

    for (size_t i = 0; i < sizeof refs / sizeof *refs && !defect; i++)
        defect = op_ref_defect(call, refs[i]);
    if (!defect)
        defect = metadata_defect(node_find(call->input, "instance_metadata"));
    return defect ? defect
                  : time_defect(call->scope, "instantiated_at", op_ref(call, "instantiated_at"),
                                &args->has_instantiated_at, &args->instantiated_at_ms);
}

/* A value is bad; but an invalid declaration or an unknown definition is reported first. */
static pawl_status refuse_create(const struct op_call *call, const struct create_args *args,
                                 const char *defect)
{
    struct definition *compiled;
    struct definition_row row;

    if (args->declaration.data)
        TRY(machine_compile(call->scope, node_find(call->input, "declaration"), true, NULL,
                            &compiled));
    else
        TRY(definition_resolve(call, args->definition, &row));
    return defect_status(call->scope, defect);
}

void print_created(const struct created *created, struct buf *out)
{
    json_put_text(out, "instance_id", created->id);
    json_put_str(out, "current_state", created->state);
    if (created->is_existing)
        json_put_bool(out, "existing", true);
}

#define GAP_COUNT_MAX 20

static void put_gaps(const struct input_gap *gaps, uint32_t count, struct buf *out)
{
    char message[512];

    if (count == 0)
        return;
    json_put_open(out, "warnings", '[');
    for (uint32_t i = 0; i < count; i++) {
        (void)snprintf(message, sizeof message,
                       "the input has no '%.*s', which {{input.%.*s}} of '%.*s' reads: it is "
                       "replaced by an empty text",
                       STR_ARG(words_shown(gaps[i].path)), STR_ARG(words_shown(gaps[i].path)),
                       STR_ARG(words_shown(gaps[i].step)));
        json_open(out, '{');
        json_put_text(out, "message", message);
        json_put_u64(out, "line", 0); /* a path has no place of its own */
        json_put_u64(out, "column", 0);
        json_close(out, '}');
    }
    json_close(out, ']');
}

/* Without a schema an input may lack what templates read; it is hardly ever meant to. */
void print_created_warned(struct scope *scope, const struct created *created, str input,
                          struct buf *out)
{
    const struct definition *definition = created->definition;
    struct input_gap gaps[GAP_COUNT_MAX];

    print_created(created, out);
    if (definition && definition->kind == KIND_FLOW && !definition->input_schema)
        put_gaps(
            gaps,
            flow_input_gaps(scope, definition, input.data ? input : STR("{}"), gaps, GAP_COUNT_MAX),
            out);
}

pawl_status create_read(const struct op_call *call, struct create_args *out)
{
    const char *defect;

    TRY(check_create(call));
    *out = (struct create_args){
        .definition = op_text(call, "definition"),
        .declaration = op_json(call, "declaration"),
        .input = op_json(call, "input"),
        .metadata = op_json(call, "instance_metadata"),
        .labels = op_json(call, "labels"),
        .actor = op_ref(call, "actor_ref"),
        .subject = op_ref(call, "subject_ref"),
        .correlation = op_ref(call, "correlation_id"),
        .test = op_is_true(call, "test"),
        .is_singleton = op_is_true(call, "singleton"),
        .may_have_event = call->scope->is_machines,
        .on_end = call->scope->on_end,
        .key = call->key,
    };
    defect = create_defect(call, out);
    if (defect)
        return refuse_create(call, out, defect);
    return op_rights(call, false, &out->rights);
}

/* A creation that holds no thread. */
struct create_wait {
    struct op_wait wait;
    struct op_call *call;
    struct create_call create;
};

/* By the drain. */
static void create_is_done(struct create_call *create)
{
    struct create_wait *waiting =
        (struct create_wait *)((char *)create - offsetof(struct create_wait, create));
    const struct waiter *waiter = waiting->call->waiter;

    waiting->wait.is_slow = create->needs_thread;
    waiter->wake(waiter->context);
}

static pawl_status create_go_on(struct op_call *call, bool is_stopping, struct buf *out)
{
    struct create_call *create = &((struct create_wait *)call->wait)->create;

    (void)is_stopping;
    TRY(engine_create_end(op_engine(call), create));
    call->http_status = create->created.is_existing ? 200 : call->http_status;
    print_created_warned(call->scope, &create->created, create->args.input, out);
    return PAWL_OK;
}

/* Once it is started the call may be another thread's. */
static pawl_status create_start(struct op_call *call, const struct create_args *args)
{
    struct create_wait *waiting = ARENA_NEW(&call->scope->arena, struct create_wait);
    bool *waits = call->waits, needs_thread = false;
    pawl_status status;

    TRY_MEMORY(call->scope, waiting);
    *waiting = (struct create_wait){
        .wait = { .go_on = create_go_on },
        .call = call,
        .create = { .scope = call->scope, .args = *args, .done = create_is_done }
    };
    op_waits(call, &waiting->wait);
    status = engine_create_start(op_engine(call), &waiting->create, &needs_thread);
    if (status)
        *waits = false;
    if (needs_thread)
        create_is_done(&waiting->create);
    return status;
}

pawl_status op_instance_create(struct op_call *call, struct buf *out)
{
    struct create_args args;
    struct created created = { 0 };

    TRY(create_read(call, &args));
    if (call->waiter)
        return create_start(call, &args);
    TRY(engine_create(op_engine(call), call->scope, &args, &created));
    call->http_status = created.is_existing ? 200 : call->http_status;
    print_created_warned(call->scope, &created, args.input, out);
    return PAWL_OK;
}

/* ---- fire ---- */

void print_fired(const struct fired *fired, struct buf *out)
{
    json_put_str(out, "new_state", fired->new_state);
    json_put_u64(out, "sequence_number", fired->seq);
    json_put_text(out, "transition_id", fired->transition_id);
}

void fire_read(const struct op_call *call, struct fire_args *out)
{
    const struct node *expected = node_find(call->input, "expected_sequence");
    struct fire_args args = {
        .id = op_text(call, "instance_id"),
        .action = op_text(call, "action"),
        .actor = op_ref(call, "actor_ref"),
        .reason = op_told(call, "reason"), /* a blank one that is required is missing */
        .payload = op_json(call, "payload"),
        .guard_satisfied = op_is_true(call, "guard_satisfied"),
        .by_engine = call->scope->is_machines,
        .late_words = op_ref_defect(call, "actor_ref"),
        .key = call->key,
    };

    args.has_expected = expected && node_to_i64(expected, &args.expected_sequence);
    if (!args.late_words)
        args.late_words = time_defect(call->scope, "fired_at", op_ref(call, "fired_at"),
                                      &args.has_fired_at, &args.fired_at_ms);
    args.late_status = args.late_words ? PAWL_INVALID_REQUEST : PAWL_OK;
    *out = args;
}

/* A fire that holds no thread. */
struct fire_wait {
    struct op_wait wait;
    struct op_call *call;
    struct fire_call fire;
};

/* By the drain. A flow or code has a mailbox, and a thread has to wait for its turn; or for the
 * answer that another call with the same key got. */
static void fire_is_done(struct fire_call *fire)
{
    struct fire_wait *waiting =
        (struct fire_wait *)((char *)fire - offsetof(struct fire_wait, fire));
    const struct waiter *waiter = waiting->call->waiter;

    waiting->wait.is_slow = fire->fire.is_elsewhere || fire->fire.is_again;
    waiter->wake(waiter->context);
}

static pawl_status fire_go_on(struct op_call *call, bool is_stopping, struct buf *out)
{
    struct batch_fire *fire = &((struct fire_wait *)call->wait)->fire.fire;

    (void)is_stopping;
    if (call->wait->is_slow && fire->status == PAWL_OK)
        fire->status = engine_fire(op_engine(call), call->scope, &fire->args, &fire->fired);
    if (fire->status == PAWL_OK)
        print_fired(&fire->fired, out);
    return fire->status;
}

static pawl_status fire_start(struct op_call *call)
{
    struct fire_wait *waiting = ARENA_NEW(&call->scope->arena, struct fire_wait);
    bool *waits = call->waits; /* once it is started, the call is the drain's */
    pawl_status status;

    TRY_MEMORY(call->scope, waiting);
    *waiting = (struct fire_wait){ .wait = { .go_on = fire_go_on },
                                   .call = call,
                                   .fire = { .scope = call->scope, .done = fire_is_done } };
    fire_read(call, &waiting->fire.fire.args);
    op_waits(call, &waiting->wait);
    status = engine_fire_start(op_engine(call), &waiting->fire);
    if (status != PAWL_OK)
        *waits = false;
    return status;
}

pawl_status op_instance_fire(struct op_call *call, struct buf *out)
{
    struct fire_args args;
    struct fired fired;

    if (call->waiter)
        return fire_start(call);
    fire_read(call, &args);
    TRY(engine_fire(op_engine(call), call->scope, &args, &fired));
    print_fired(&fired, out);
    return PAWL_OK;
}

/* ---- cancel ---- */

pawl_status op_instance_cancel_many(struct op_call *call, struct buf *out)
{
    const char *defect = op_ref_defect(call, "correlation_id");
    struct cancel_args args = { .correlation = op_ref(call, "correlation_id"),
                                .actor = op_ref(call, "actor_ref"),
                                .reason = op_told(call, "reason") };
    struct cancelled done = { 0 }, one;

    if (!defect && !args.correlation.data)
        defect = "correlation_id: expected the id of what belongs together, found nothing";
    if (!defect)
        defect = op_ref_defect(call, "actor_ref");
    TRY(defect_status(call->scope, defect));
    for (uint32_t i = 0; i < shards_count(call->p); i++) {
        if (!op_has_shard(call, i))
            continue;
        TRY(engine_cancel_many(shard_at(call->p, i)->engine, call->scope, &args, &one));
        done.cancelled += one.cancelled;
        done.refused += one.refused;
    }
    json_put_u64(out, "cancelled", done.cancelled);
    json_put_u64(out, "refused", done.refused);
    return PAWL_OK;
}

/* It was cancelled before, and still cleans up: another cancel changes nothing, and is told what
 * the first one was told. */
static bool is_being_cancelled(struct op_call *call, pawl_status status)
{
    struct waiting *waiting = NULL;
    struct instance_end ending = { 0 };
    uint32_t count = 0;
    struct scope scope;
    bool is_so;

    if (status != PAWL_CONFLICT && status != PAWL_NO_CANCEL_TRANSITION)
        return false;
    scope_init(&scope, call->scope->arena.heap, LIMIT_SCOPE);
    is_so = engine_why(op_engine(call), &scope, op_text(call, "instance_id"), &waiting, &count,
                       &ending) == PAWL_OK &&
            ending.winding_up.at_ms != 0 && ending.is_cancelling;
    scope_fini(&scope);
    return is_so;
}

/* Its parameters are some of fire's. */
pawl_status op_instance_cancel(struct op_call *call, struct buf *out)
{
    struct fire_args args;
    struct fired fired;
    pawl_status status;

    fire_read(call, &args);
    args.is_cancel = true;
    status = engine_fire(op_engine(call), call->scope, &args, &fired);
    if (is_being_cancelled(call, status)) {
        call->scope->error = (pawl_error){ .status = PAWL_OK };
        fired = (struct fired){ .new_state = STR("running"), .terminal = TERMINAL_NOT };
        status = PAWL_OK;
    }
    TRY(status);
    json_put_str(out, "new_state", fired.new_state);
    json_put_text(out, "terminal_kind", terminal_kind_name(fired.terminal));
    return PAWL_OK;
}
