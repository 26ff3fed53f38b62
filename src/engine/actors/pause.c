/* pause.c - an instance that is held: no state and no entry, but a control record that says who
 * held it, when and why, and a row that follows from it.
 *
 * While it is held it takes no fire and no timer, no signal but one that its definition keeps, and
 * none of its steps is started; what runs may end, and cancel works. Deciding looks first
 * (mailbox.c), and the drain looks again: a decision that was made before the pause is made once
 * more. */
#include "base/node.h"
#include "engine/parts.h"
#include "model/fire.h"
#include <stdio.h>

#define LIMIT_ACTOR STR("pawl/limit") /* pauses an instance that is at a bound */

pawl_status pause_refusal(struct scope *scope)
{
    return scope_fail(scope, PAWL_PAUSED, PAUSED_WORDS);
}

bool pause_bars(enum event_kind kind)
{
    /* A signal is decided: what the definition keeps is kept, anything else is refused. */
    return kind == EVENT_TIMER || kind == EVENT_STEP_START ||
           kind == EVENT_APPROVE || kind == EVENT_REJECT || kind == EVENT_CHILD;
}

pawl_status pause_look(struct engine *engine, struct scope *scope, uint64_t instance, bool *out)
{
    struct head head;
    bool trust_rows;

    if (!head_is_cached(engine, instance, &head, &trust_rows) || (head.flags & HEAD_RAW))
        return pause_by_row(engine, scope, instance, out);
    *out = (head.flags & HEAD_PAUSED) != 0;
    return PAWL_OK;
}

/* ---- recording ---- */

struct pause_request {
    const struct pause_args *args;
    enum instance_status status; /* out */
    uint64_t instance;           /* out */
};

static str print_status(struct scope *scope, enum instance_status status)
{
    return json_object_of(&scope->arena, "status", str_of(instance_status_name(status)));
}

static pawl_status read_status(struct scope *scope, const struct record *record,
                               enum instance_status *out)
{
    struct node *body, *member;

    if (node_read_json(scope, record->body, &body) == PAWL_OK) {
        member = node_find(body, "status");
        if (member && instance_status_read(member->text, out))
            return PAWL_OK;
    }
    return scope_fail(scope, PAWL_STORAGE_FAILURE,
                      "the record at position %llu does not say its status: run pawl verify",
                      (unsigned long long)record->pos);
}

/* Returns PAUSED, with the reason, if the instance is to be resumed but stands at a bound. */
static pawl_status status_after(struct engine *engine, struct scope *scope, const struct head *head,
                                bool paused, enum instance_status *out)
{
    struct live live;
    pawl_status status;

    *out = paused ? STATUS_PAUSED : STATUS_SUSPENDED;
    if (paused)
        return PAWL_OK;
    status = store_live(engine->store, scope, head->instance, &live);
    for (uint32_t i = 0; !status && i < live.step_count; i++)
        if (live.steps[i].status != STEP_PENDING)
            *out = STATUS_RUNNING;
    if (!status)
        status = bounds_standing(engine, scope, head->seq, live.step_count);
    *out = status == PAWL_PAUSED ? STATUS_PAUSED : *out;
    return status;
}

static pawl_status add_record(struct engine *engine, struct scope *scope, struct head *head,
                              const struct pause_args *args, int64_t at_ms, str body)
{
    int32_t what = args->resume ? CONTROL_RESUME : CONTROL_PAUSE;
    struct commitments commitments = { 0 };
    struct record *record;
    uint64_t actor;

    TRY(intern(engine, scope, args->actor, &actor, &commitments.actor));
    record = batch_record(engine, what, head, at_ms, body, args->key);
    record->actor = actor;
    if (args->reason.data)
        record->reason = batch_new_value(engine, args->reason, false, &commitments.reason);
    batch_seal(engine, head, record, body, &commitments);
    head->flags |= HEAD_NOW;
    head->flags ^= HEAD_PAUSED;
    engine->writer.batch.live[engine->writer.batch.live_count++] =
        (struct live_change){ .kind = args->resume ? LIVE_PAUSE_DELETE : LIVE_PAUSE_PUT,
                              .instance = head->instance,
                              .pause = { record->pos, args->ends_runs } };
    return PAWL_OK;
}

static pawl_status add_own(struct engine *engine, struct scope *scope, struct head *head, str actor,
                           str reason, int64_t at_ms)
{
    struct pause_args args = { .actor = actor, .reason = reason };
    str body = print_status(scope, STATUS_PAUSED);

    ASSERT_DRAINING(engine);
    TRY_MEMORY(scope, reason.data && body.data);
    return add_record(engine, scope, head, &args, at_ms, body);
}

pawl_status pause_with_entry(struct engine *engine, struct scope *scope, struct head *head,
                             const struct decision *decision, int64_t at_ms)
{
    ASSERT_DRAINING(engine);
    return add_own(engine, scope, head,
                   decision->hold_by.data ? decision->hold_by : str_of(POISON_ACTOR),
                   decision->hold, at_ms);
}

void pause_told(struct engine *engine, const struct decision *decision)
{
    char words[512];

    if (!decision->hold.data)
        return;
    (void)snprintf(words, sizeof words, "%.*s", STR_ARG(decision->hold));
    engine_log(engine, PAWL_LOG_ERROR,
               decision->hold_by.data ? "instance.held" : "instance.poisoned", words);
}

/* Copies the scope's error: later calls overwrite it, and the record borrows its reason until the
 * commit. */
static str keep_reason(struct scope *scope)
{
    return arena_str(&scope->arena, str_of(scope->error.message));
}

pawl_status pause_at_bound(struct engine *engine, struct scope *scope, struct head *head,
                           int64_t at_ms)
{
    str reason = keep_reason(scope);

    ASSERT_DRAINING(engine);
    TRY(add_own(engine, scope, head, LIMIT_ACTOR, reason, at_ms));
    return scope_fail(scope, PAWL_PAUSED, "%.*s", STR_ARG(reason));
}

/* Pauses the instance right behind its resume record, in the same commit, so that nothing runs in
 * between. The head is looked up again because a record of the store's chain may have moved it. */
static pawl_status hold_again(struct engine *engine, struct scope *scope, uint64_t instance,
                              str reason, int64_t at_ms)
{
    struct head *head = batch_find(&engine->writer.batch, instance);
    pawl_status status = add_own(engine, scope, head, LIMIT_ACTOR, reason, at_ms);

    ASSERT_DRAINING(engine);
    return status ? batch_spoil(engine, scope, status) : PAWL_OK;
}

/* To pause what is paused is no mistake, and leaves nothing behind but its key, if it has one. */
static pawl_status pause_new(struct engine *engine, struct request *request, int64_t at_ms)
{
    struct pause_request *pause = request->context;
    const struct pause_args *args = pause->args;
    struct scope *scope = request->scope;
    struct definition_slot *slot;
    bool is_paused, is_at_bound;
    struct head *head;
    str body, reason;
    pawl_status status;

    ASSERT_DRAINING(engine);
    /* Room to resume it and, at a bound, to pause it again. */
    TRY(batch_locate(engine, scope, args->id, 2, &head, &slot));
    TRY(fire_check_open(slot->definition, &(struct standing){ .state = head->state }, scope));
    if (args->late)
        return scope_fail(scope, PAWL_INVALID_REQUEST, "%s", args->late);
    status = status_after(engine, scope, head, !args->resume, &pause->status);
    is_at_bound = status == PAWL_PAUSED;
    if (status && !is_at_bound)
        return status;
    pause->instance = head->instance;
    reason = is_at_bound ? keep_reason(scope) : STR_NONE;
    is_paused = (head->flags & HEAD_PAUSED) != 0;
    body = print_status(scope, pause->status);
    TRY_MEMORY(scope, body.data);
    status = PAWL_OK;
    if (is_paused == args->resume)
        status = add_record(engine, scope, head, args, at_ms, body);
    else if (args->key)
        status = batch_store_record(engine, scope, CONTROL_KEYED, at_ms, body, STR_NONE, args->key);
    if (!status && is_at_bound)
        status = hold_again(engine, scope, pause->instance, reason, at_ms);
    request->accepted = !status && (is_paused == args->resume || args->key || is_at_bound);
    return status;
}

static pawl_status drain_pause(struct engine *engine, struct request *request, int64_t at_ms)
{
    struct pause_request *pause = request->context;
    struct record record;
    enum key_use use;

    ASSERT_DRAINING(engine);
    TRY(keys_look(engine, request->scope, pause->args->key, at_ms, &use, &record));
    request->is_again = use == KEY_PENDING;
    if (use == KEY_REPEAT)
        return read_status(request->scope, &record, &pause->status);
    return request->is_again ? PAWL_OK : pause_new(engine, request, at_ms);
}

/* ---- */

/* What it could not hear while it was held, before what has fallen due: children that ended, and
 * signals that were kept for a wait that began meanwhile. */
static void resume_news(struct engine *engine, struct scope *scope, uint64_t instance)
{
    bool looked = family_look(engine, scope, instance) == PAWL_OK;

    guard_lock(&engine->lock);
    engine->actors.ended_lost = engine->actors.ended_lost || !looked;
    while (engine->actors.ended_count && family_tell(engine))
        continue;
    mail_wake(engine, instance);
    while (engine_work(engine, NULL, WORK_LED))
        continue;
    guard_unlock(&engine->lock);
}

pawl_status engine_pause(struct engine *engine, struct scope *scope, const struct pause_args *args,
                         enum instance_status *out)
{
    struct pause_request pause = { .args = args };
    struct request request = { .drain = drain_pause, .scope = scope, .context = &pause };
    struct definition_slot *slot;
    struct head head;

    TRY(ref_check(scope, "actor_ref", args->actor));
    TRY(shell_submit(engine, &request));
    *out = pause.status;
    if (args->resume && pause.instance && pause.status != STATUS_PAUSED) {
        deaths_forgive(engine);
        if (engine->options.own && recover_instance(engine, scope, pause.instance))
            engine->work.ready_lost = true; /* found again by the next look */
        if (!head_fixed(engine, scope, pause.instance, &head) &&
            !definitions_get(engine, scope, head.definition, &slot) &&
            slot->definition->kind != KIND_MACHINE)
            resume_news(engine, scope, pause.instance);
        timers_look_again(engine);
    }
    return PAWL_OK;
}

pawl_status pause_poisoned(struct engine *engine, struct scope *scope, const struct actor *actor)
{
    char id[ID_SIZE + 1];
    struct scope own;
    enum instance_status ignored;
    struct pause_args args = { .actor = actor->is_at_bound ? LIMIT_ACTOR
                                                           : str_of(POISON_ACTOR) };
    pawl_status status;

    scope_init(&own, engine->heap, LIMIT_SCOPE);
    args.reason = str_of(scope->error.message);
    args.id = (str){ id, ID_SIZE };
    status = engine_id_of(engine, &own, actor->instance, id);
    if (!status)
        status = engine_pause(engine, &own, &args, &ignored);
    engine_log(engine, actor->is_at_bound && !status ? PAWL_LOG_WARN : PAWL_LOG_ERROR,
               actor->is_at_bound ? "instance.limit" : "instance.poisoned",
               status ? own.error.message : scope->error.message);
    return scope_leave(&own, scope, status);
}
