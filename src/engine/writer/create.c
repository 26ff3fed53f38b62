/* create.c - the life of a creation: what it fixes, and the first decision with it.
 *
 * A flow's or code's `start` is decided before the drain (it needs nothing but the input), so
 * that a handler never holds up the store; its entries are in create's own commit. */
#include "base/time.h"
#include "engine/parts.h"
#include "model/input_schema.h"
#include "model/rights.h"

#define CREATE_AT_ONCE 65536u /* bytes of input: more are worth a thread of their own */

static pawl_status drain_create(struct engine *engine, struct request *request, int64_t at_ms)
{
    struct create_request *create = request->create;
    struct record record;
    bool is_there;
    enum key_use use;

    ASSERT_DRAINING(engine);
    TRY(keys_look(engine, request->scope, create->args->key, at_ms, &use, &record));
    request->is_again = use == KEY_PENDING;
    create->is_repeat = use == KEY_REPEAT;
    if (create->is_repeat)
        return keys_created(engine, request->scope, &record, create->out);
    if (request->is_again)
        return PAWL_OK;
    if (create->args->is_singleton) {
        pawl_status status = singleton_find(engine, request, at_ms, &is_there);

        if (status || is_there)
            return status;
    }
    TRY(redrive_check(engine, request->scope, create->args));
    TRY(family_check(engine, request->scope, create->child_plans));
    TRY(create_record(engine, request->scope, create, at_ms));
    TRY(family_record(engine, request->scope, create->child_plans, at_ms));
    if (create->decision)
        TRY(family_part(engine, request->scope, create->number, create->definition,
                        create->decision, at_ms));
    request->accepted = true;
    return PAWL_OK;
}

/* ---- before the drain ---- */

pawl_status definition_find_registered(struct engine *engine, struct scope *scope, str text,
                                       struct definition_row *row)
{
    uint32_t version;
    str name;
    pawl_status status;

    if (!reference_split(text, &name, &version))
        return scope_fail(scope, PAWL_INVALID_REQUEST,
                          "definition: expected name or name@version, found '%.*s'", STR_ARG(text));
    if (!definition_name_is_valid(name))
        return scope_fail(scope, PAWL_NOT_KNOWN, "no definition '%.*s'", STR_ARG(text));
    if (engine->options.home)
        status = definition_copy(engine, scope, name, version, row);
    else
        status = store_find_definition(engine->store, scope, name, version, NULL, row);
    if (status == PAWL_NOT_KNOWN)
        return scope_fail(scope, PAWL_NOT_KNOWN, "no definition '%.*s'; define it first",
                          STR_ARG(text));
    return status;
}

static pawl_status check_values(struct engine *engine, struct scope *scope,
                                const struct create_args *args)
{
    char text[TIME_TEXT_SIZE];

    if (args->late_status)
        return scope_fail(scope, args->late_status, "%s", args->late_words);
    TRY(ref_check(scope, "actor_ref", args->actor));
    TRY(ref_check(scope, "subject_ref", args->subject));
    TRY(ref_check(scope, "correlation_id", args->correlation));
    if (!args->has_instantiated_at || args->instantiated_at_ms <= engine_wall_ms(engine))
        return PAWL_OK;
    time_print(args->instantiated_at_ms, text);
    return scope_fail(scope, PAWL_INVALID_REQUEST, "instantiated_at: %s lies in the future", text);
}

/* What its children will inherit, and its tools be told. */
static bool keep_kin(struct actor *actor, const struct create_args *args, str trace)
{
    actor->creator = arena_str(&actor->arena, args->actor);
    actor->correlation = arena_str(&actor->arena, args->correlation);
    actor->trace = arena_str(&actor->arena, trace);
    return !actor->arena.failed;
}

/* Decide `start` with an actor that has no number yet. */
pawl_status create_decide(struct engine *engine, struct scope *scope,
                          const struct create_args *args, struct actor *actor,
                          int64_t decided_at_ms, str failure, struct decision *decision,
                          struct job **jobs)
{
    const struct behavior *behavior = behavior_of(actor->definition->kind);
    struct event event = { .kind = EVENT_START,
                           .at_ms = decided_at_ms,
                           .payload = args->input.data ? args->input : STR("{}"),
                           .given = args->given,
                           .may_have_event = args->may_have_event || args->given.data,
                           .actor = args->actor,
                           .failure = failure };
    pawl_status status;

    deaths_end(engine, &actor->death); /* it is decided once more */
    actor->input = arena_str(&actor->arena, event.payload);
    actor->memory = behavior->memory_new(actor->definition, actor->input, &actor->arena);
    TRY_MEMORY(scope, actor->memory && actor->input.data && keep_kin(actor, args, scope->trace));
    payloads_attach(engine, actor);
    actor->state = actor->definition->initial;
    actor->is_loaded = true;
    actor->generation = engine->actors.generation;
    actor->is_test = args->test;
    status = deaths_begin(engine, actor, &event, scope, &actor->death);
    if (!status)
        status = actor_decide(engine, actor, &event, scope, decision, jobs);
    if (status || !reduces_any(decision))
        deaths_end(engine, &actor->death);
    /* There is nothing to hold yet: what cannot begin is not created. */
    return status == PAWL_PAUSED ? scope_fail(scope, PAWL_INVALID_REQUEST,
                                              "it cannot begin: %.400s", scope->error.message)
                                 : status;
}

/* Code that is replayed knows its id from its second turn on, whether it was restored or not. */
static void tell_id(const struct create_request *create, struct actor *actor)
{
    struct identity identity = { .id = str_of(create->out->id) };

    (void)code_behavior.introduce(actor->memory, &identity, &actor->arena);
}

/* After its commit, or its refusal. */
void create_over(struct engine *engine, const struct create_request *create, struct actor *actor,
                 struct job *jobs, bool is_refused)
{
    ASSERT_LOCKED(engine);
    deaths_end(engine, &actor->death);
    actor->instance = create->number;
    if (actor->definition->kind == KIND_FLOW && flow_asks_instance(actor->definition))
        actor->is_loaded = false; /* it was made before it had a name */
    if (actor->definition->kind == KIND_CODE)
        tell_id(create, actor);
    if (is_refused) {
        steps_drop(engine, jobs);
    } else {
        actor_restamp(actor, create->decision);
        steps_note_ready(engine, actor, create->decision);
        pause_told(engine, create->decision);
        steps_act(engine, create->number, jobs);
    }
    if (is_refused || map_get(&engine->actors.map, actor->instance) != MAP_NONE ||
        actor_adopt(engine, actor)) {
        /* Refused; or it was sent an event already, which restored it. */
        actor_free(engine, actor);
    }
}

/* A creation under way: alone, one of many that are created together, or without a waiting caller.
 * One of many has a scope of its own, and so its own error. */
struct creating {
    struct scope *scope;
    struct definition_row row;
    struct create_request create;
    struct request request;
    struct actor *actor; /* NULL: a machine, or it is rejected */
    struct decision decision;
    struct job *jobs;
    str state;     /* of an inline machine, whose definition goes with the scope */
    bool is_alone; /* it has reduces: those are alone in their commits */
};

/* Decided or rejected, committed or not: what its actor and its children become. */
static void creating_over(struct engine *engine, struct creating *one, bool is_refused)
{
    if (!one->actor)
        return;
    guard_lock(&engine->lock);
    create_over(engine, &one->create, one->actor, one->jobs, is_refused);
    family_over(engine, one->create.child_plans, is_refused);
    guard_unlock(&engine->lock);
    one->actor = NULL;
}

/* Decide: what the drain records then. */
static pawl_status decide_start(struct engine *engine, struct creating *one, str failure)
{
    struct create_request *create = &one->create;
    str rights;

    one->actor->definition = create->definition;
    create->decided_at_ms = engine_now_ms(engine);
    create->decision = &one->decision;
    TRY(create_decide(engine, one->scope, create->args, one->actor, create->decided_at_ms, failure,
                      &one->decision, &one->jobs));
    TRY(rights_of_creation(engine, one->scope, create->args->rights, create->row, &rights));
    TRY(family_plan(engine, one->scope, one->actor, &rights, create->decided_at_ms, &one->decision,
                    &create->child_plans));
    return reduces_of(engine, one->scope, &one->decision, create->child_plans, &one->request);
}

static pawl_status create_actor(struct engine *engine, struct creating *one)
{
    pawl_status status = decide_start(engine, one, STR_NONE);

    if (!status)
        status = shell_submit(engine, &one->request);
    if (status && reduces_failed(&one->request)) { /* it is created, and fails with the words */
        str failure = error_as_json(one->scope);

        guard_lock(&engine->lock);
        steps_drop(engine, one->jobs);
        family_over(engine, one->create.child_plans, true);
        guard_unlock(&engine->lock);
        one->create.child_plans = NULL;
        one->jobs = NULL;
        one->decision = (struct decision){ 0 };
        one->request.reduce_count = 0;
        one->actor->seq = 0;
        status = failure.data ? decide_start(engine, one, failure) : scope_no_memory(one->scope);
        if (!status)
            status = shell_submit(engine, &one->request);
    }
    creating_over(engine, one, status || one->create.is_repeat);
    return status;
}

pawl_status create_resolve(struct engine *engine, struct scope *scope,
                           const struct create_args *args, struct definition_row *row,
                           struct definition **definition)
{
    struct definition_slot *slot;
    str name;

    if (args->declaration.data) {
        TRY(definition_compile(scope, args->declaration, true, NULL, definition, &name));
        return definition_row_make(engine, scope, args->declaration, *definition, row);
    }
    TRY(code_put_when_used(engine, scope, args->definition));
    TRY(definitions_resolve(engine, scope, args->definition, row, &slot));
    *definition = slot->definition;
    return input_schema_accept(scope, slot->definition->input_schema, args->input);
}

/* What is to be created, and whether it can be. */
static pawl_status creating_check(struct engine *engine, struct creating *one, struct scope *scope,
                                  const struct create_args *args, struct created *out)
{
    *one = (struct creating){ .scope = scope,
                              .create = { .args = args, .row = &one->row, .out = out },
                              .request = { .drain = drain_create, .scope = scope } };
    one->request.create = &one->create;
    out->is_existing = false;
    if (!args->definition.data == !args->declaration.data)
        return scope_fail(scope, PAWL_INVALID_REQUEST,
                          "expected exactly one of definition and declaration, found %s",
                          args->definition.data ? "both" : "neither");
    TRY(create_resolve(engine, scope, args, &one->row, &one->create.definition));
    TRY(check_values(engine, scope, args));
    out->definition = args->declaration.data ? NULL : one->create.definition;
    return PAWL_OK;
}

static pawl_status create_new(struct engine *engine, struct scope *scope,
                              const struct create_args *args, struct created *out)
{
    struct creating one;

    TRY(creating_check(engine, &one, scope, args, out));
    if (one.create.definition->kind == KIND_MACHINE)
        return shell_submit(engine, &one.request);
    one.actor = actor_new(engine);
    return one.actor ? create_actor(engine, &one) : scope_no_memory(scope);
}

pawl_status engine_create(struct engine *engine, struct scope *scope,
                          const struct create_args *args, struct created *out)
{
    struct record record;
    pawl_status status = create_new(engine, scope, args, out);

    if (keys_explain(engine, scope, args->key, &status, &record))
        status = keys_created(engine, scope, &record, out);
    return status;
}

/* ---- many ---- */

/* Checked and decided. If it or a child has a reduce, it is decided again, alone. */
static pawl_status creating_begin(struct engine *engine, struct creating *one, struct scope *scope,
                                  const struct create_args *args, struct created *out)
{
    pawl_status status;

    TRY(creating_check(engine, one, scope, args, out));
    if (one->create.definition->kind == KIND_MACHINE)
        return PAWL_OK;
    one->actor = actor_new(engine);
    TRY_MEMORY(scope, one->actor);
    status = decide_start(engine, one, STR_NONE);
    one->is_alone = !status && one->request.reduce_count > 0;
    if (one->is_alone)
        creating_over(engine, one, true);
    return status;
}

/* What the answer needs is had before the commit: after it nothing can fail any more. */
static pawl_status keep_answer(struct scope *scope, struct creating *one)
{
    const struct definition *definition = one->create.definition;

    if (!one->create.args->declaration.data)
        return PAWL_OK;
    one->state = arena_str(&scope->arena, definition->states[definition->initial].name);
    return one->state.data ? PAWL_OK : scope_no_memory(one->scope);
}

static void creating_end(struct engine *engine, struct scope *scope, struct creating *one,
                         struct batch_create *of)
{
    struct record record;

    if (one->is_alone && !of->status)
        of->status = engine_create(engine, one->scope, &of->args, &of->created);
    else if (keys_explain(engine, one->scope, of->args.key, &of->status, &record))
        of->status = keys_created(engine, one->scope, &record, &of->created);
    if (of->status)
        of->words = arena_text(&scope->arena, str_of(one->scope->error.message));
    if (of->status && !of->words)
        of->words = "no memory for the words of this rejection";
    if (one->state.data)
        of->created.state = one->state;
    scope_fini(one->scope);
}

pawl_status engine_create_batch(struct engine *engine, struct scope *scope,
                                struct batch_create *creates, size_t count)
{
    struct creating *all = ARENA_ARRAY(&scope->arena, struct creating, count + 1);
    struct request **requests = ARENA_ARRAY(&scope->arena, struct request *, count + 1);
    struct scope *scopes = ARENA_ARRAY(&scope->arena, struct scope, count + 1);
    size_t submitted = 0;

    TRY_MEMORY(scope, all && requests && scopes);
    for (size_t i = 0; i < count; i++) {
        scope_init(&scopes[i], engine->heap, LIMIT_SCOPE);
        scopes[i].trace = scope->trace;
        creates[i].status =
            creating_begin(engine, &all[i], &scopes[i], &creates[i].args, &creates[i].created);
        if (!creates[i].status)
            creates[i].status = keep_answer(scope, &all[i]);
        if (!creates[i].status && !all[i].is_alone)
            requests[submitted++] = &all[i].request;
    }
    shell_submit_all(engine, requests, submitted);
    for (size_t i = 0; i < count; i++) {
        if (!creates[i].status && !all[i].is_alone)
            creates[i].status = all[i].request.status;
        creating_over(engine, &all[i], creates[i].status || all[i].create.is_repeat);
    }
    for (size_t i = 0; i < count; i++)
        creating_end(engine, scope, &all[i], &creates[i]);
    return PAWL_OK;
}

/* ---- without a waiting caller ---- */

static void creation_is_done(struct engine *engine, struct request *request)
{
    struct create_call *call = request->context;
    struct creating *one = call->creating;

    call->status = request->status;
    call->needs_thread = request->is_again;
    creating_over(engine, one, request->status || request->is_again || one->create.is_repeat);
    call->done(call);
}

/* What may take long, or has to wait for another commit first, is not begun here. */
static bool may_take_long(struct engine *engine, const struct create_args *args)
{
    return args->declaration.data || args->input.size > CREATE_AT_ONCE ||
           (args->definition.data && (code_is_elsewhere(engine, args->definition) ||
                                      code_is_put_when_used(engine, args->definition) ||
                                      definitions_are_far(engine, args->definition)));
}

/* Once its request is posted the call may be gone. */
pawl_status engine_create_start(struct engine *engine, struct create_call *call, bool *needs_thread)
{
    struct creating *one = ARENA_NEW(&call->scope->arena, struct creating);
    pawl_status status;

    TRY_MEMORY(call->scope, one);
    call->creating = one;
    call->needs_thread = *needs_thread = may_take_long(engine, &call->args);
    if (*needs_thread)
        return PAWL_OK;
    status = creating_begin(engine, one, call->scope, &call->args, &call->created);
    if (status)
        creating_over(engine, one, true);
    call->needs_thread = *needs_thread = !status && one->is_alone;
    if (status || *needs_thread)
        return status;
    one->request.after = creation_is_done;
    one->request.context = call;
    shell_lead_begin(engine);
    engine_submit(engine, &one->request);
    shell_lead_end(engine);
    return PAWL_OK;
}

pawl_status engine_create_end(struct engine *engine, struct create_call *call)
{
    struct record record;

    if (call->needs_thread)
        return engine_create(engine, call->scope, &call->args, &call->created);
    if (keys_explain(engine, call->scope, call->args.key, &call->status, &record))
        call->status = keys_created(engine, call->scope, &record, &call->created);
    return call->status;
}

/* ---- recording ---- */

/* The id of an inline declaration's row: known, new in this batch, or put into it now. */
static pawl_status inline_id(struct engine *engine, struct scope *scope,
                             const struct definition_row *row, int64_t at_ms, uint32_t *id)
{
    struct batch *batch = &engine->writer.batch;
    struct definition_row known;
    pawl_status status;

    ASSERT_DRAINING(engine);
    for (uint32_t i = 0; i < batch->definition_count; i++)
        if (!batch->definitions[i].name.data &&
            memcmp(batch->definitions[i].source_sha, row->source_sha, SHA_SIZE) == 0) {
            *id = batch->definitions[i].id;
            return PAWL_OK;
        }
    status = store_find_definition(engine->store, scope, STR_NONE, 0, row->source_sha, &known);
    if (status != PAWL_NOT_KNOWN) {
        *id = status ? 0 : known.id;
        return status;
    }
    *id = engine->writer.tip.last_definition + batch->definition_count + 1;
    batch->definitions[batch->definition_count] = *row;
    batch->definitions[batch->definition_count].id = *id;
    batch->definitions[batch->definition_count++].created_at_ms = at_ms;
    return PAWL_OK;
}

/* Commitments; NULL: no value. */
struct creation_values {
    uint8_t creator[SHA_SIZE]; /* a copy: the table of texts moves when it grows */
    const uint8_t *subject, *input, *metadata;
};

static pawl_status creation_values(struct engine *engine, struct scope *scope,
                                   const struct create_args *args, struct instance_row *row,
                                   struct creation_values *out)
{
    const uint8_t *creator;

    ASSERT_DRAINING(engine);
    *out = (struct creation_values){ 0 };
    TRY(intern(engine, scope, args->actor, &row->creator, &creator));
    if (row->creator)
        memcpy(out->creator, creator, SHA_SIZE);
    TRY(intern(engine, scope, args->subject, &row->subject, &out->subject));
    if (args->input.data)
        row->input = batch_new_value(engine, args->input, false, &out->input);
    if (args->metadata.data)
        row->metadata = batch_new_value(engine, args->metadata, false, &out->metadata);
    return PAWL_OK;
}

static pawl_status creation_record(struct engine *engine, struct scope *scope, struct head *head,
                                   const struct create_request *create, struct instance_row *row,
                                   const struct creation_values *values, int64_t at_ms)
{
    const struct definition_row *definition = create->row;
    struct creation_facts facts = {
        .source_sha = definition->source_sha,
        .compiled_sha = definition->compiled_sha,
        .name = definition->name,
        .version = definition->version,
        .subject = values->subject,
        .input = values->input,
        .metadata = values->metadata,
        .correlation = row->correlation,
        .labels = row->labels,
        .parent_id = str_of(create->parent_id),
        .test = row->test,
    };
    struct commitments commitments = { .actor = row->creator ? values->creator : NULL };
    struct record *record;
    struct buf body;

    ASSERT_DRAINING(engine);
    buf_init(&body, engine->heap, LIMIT_SCOPE);
    creation_body(&facts, &body);
    if (body.failed) {
        buf_fini(&body);
        return scope_no_memory(scope);
    }
    record = batch_record(engine, CONTROL_CREATE, head, at_ms, STR_NONE, create->args->key);
    record->fired_at_ms = row->instantiated_at_ms;
    record->actor = row->creator;
    row->created_pos = record->pos;
    batch_seal(engine, head, record, buf_view(&body), &commitments);
    buf_fini(&body);
    return PAWL_OK;
}

static struct head *creation_head(struct engine *engine, const struct create_request *create,
                                  const struct instance_row *row)
{
    struct head head = { .instance = row->number,
                         .definition = row->definition,
                         .flags = (uint8_t)(HEAD_NOW | (row->test ? HEAD_TEST : 0u) |
                                            (row->parent ? HEAD_CHILD : 0u) |
                                            (create->args->on_end.data ? HEAD_TOLD : 0u)),
                         .state = (uint16_t)create->definition->initial };

    ASSERT_DRAINING(engine);
    memcpy(head.random, row->random, ID_RANDOM_SIZE);
    return batch_put(&engine->writer.batch, &head);
}

/* With the next number. Its id, values and position are not known yet. */
static struct instance_row creation_row(const struct writer *writer,
                                        const struct create_request *create)
{
    const struct create_args *args = create->args;

    return (struct instance_row){ .number =
                                      tip_new_instance(&writer->tip, writer->batch.instance_count),
                                  .definition = create->row->id,
                                  .correlation = args->correlation,
                                  .labels = args->labels,
                                  .parent = create->parent,
                                  .instantiated_at_ms = args->has_instantiated_at
                                                            ? args->instantiated_at_ms
                                                            : writer->now.wall_ms,
                                  .test = args->test };
}

/* What its first turn orders. */
static pawl_status send_all(struct engine *engine, struct scope *scope,
                            const struct create_request *create, int64_t at_ms)
{
    struct sender_of sender = { .id = create->out->id, .is_test = create->args->test };
    str rights = STR_NONE;
    pawl_status status =
        rights_of_creation(engine, scope, create->args->rights, create->row, &rights);

    return status ? batch_spoil(engine, scope, status)
                  : sends_record(engine, scope, &sender, create->decision, rights, at_ms);
}

pawl_status create_record(struct engine *engine, struct scope *scope, struct create_request *create,
                          int64_t at_ms)
{
    const struct create_args *args = create->args;
    const struct decision none = { 0 }, *decision = create->decision ? create->decision : &none;
    struct instance_row row = creation_row(&engine->writer, create);
    struct creation_values values;
    struct head *head;
    pawl_status status;

    ASSERT_DRAINING(engine);
    TRY(batch_reserve(engine, scope, decision->count + 3,
                      live_room(decision) + create->definition->deadline_count));
    if (args->declaration.data)
        TRY(inline_id(engine, scope, create->row, at_ms, &row.definition));
    TRY(creation_values(engine, scope, args, &row, &values));
    ASSERT(!create->parent || create->number == row.number);
    if (create->parent) /* its parent's entry tells its id already */
        memcpy(row.random, create->random, ID_RANDOM_SIZE);
    else
        engine->env->random(engine->env, row.random, ID_RANDOM_SIZE);
    id_print(row.number, row.random, create->out->id);
    head = creation_head(engine, create, &row);
    status = creation_record(engine, scope, head, create, &row, &values, at_ms);
    if (!status)
        status = starter_record(engine, scope, head,
                                &(struct starter){ args->rights, args->on_end }, at_ms);
    if (status)
        return batch_spoil(engine, scope, status);
    engine->writer.batch.instances[engine->writer.batch.instance_count++] = row;
    create->number = row.number;
    deadlines_arm(engine, head, create->definition, at_ms);
    if (!create->parent)
        family_number(engine, create->child_plans, row.number, row.random);
    status = decision_record(engine, scope, head, create->definition, decision,
                             create->decided_at_ms, at_ms, engine->writer.now.wall_ms, NULL);
    create->out->state = create->definition->states[head->state].name;
    return !status && sends_any(decision) ? send_all(engine, scope, create, at_ms) : status;
}
