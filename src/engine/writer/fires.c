/* fires.c - the life of a fire: checked in the order of the contract, decided in place.
 *
 * Priority: malformed id or action, not-known, terminal, invalid-transition, reason-required,
 * guard-not-satisfied, paused, conflict, then attribution and time, then storage (D18). */
#include "engine/parts.h"
#include <stdio.h>

pawl_status id_check(struct scope *scope, str id, uint64_t *number, uint8_t random[ID_RANDOM_SIZE])
{
    if (!id.data || str_is_blank(id))
        return scope_fail(scope, PAWL_INVALID_REQUEST,
                          "instance_id: expected the id of an instance, found %s",
                          id.data && id.size ? "only white space" : "nothing");
    if (!id_parse(id, number, random) || *number == 0)
        return scope_fail(scope, PAWL_NOT_KNOWN, "no instance '%.*s'", STR_ARG(id));
    return PAWL_OK;
}

static pawl_status check_action(struct scope *scope, const struct fire_args *args)
{
    if (args->id.data && !str_is_blank(args->id) && !args->is_cancel &&
        (!args->action.data || str_is_blank(args->action)))
        return scope_fail(scope, PAWL_INVALID_REQUEST,
                          "action: expected the name of an action, found %s",
                          args->action.size ? "only white space" : "nothing");
    return PAWL_OK;
}

pawl_status ref_check(struct scope *scope, const char *what, str ref)
{
    if (ref.size <= LIMIT_ACTION)
        return PAWL_OK;
    return scope_fail(scope, PAWL_INVALID_REQUEST, "%s: expected at most %u bytes, found %zu", what,
                      (unsigned)LIMIT_ACTION, ref.size);
}

/* The values of attribution and time come last. */
pawl_status fire_check_late(struct engine *engine, struct scope *scope,
                            const struct fire_args *args, uint64_t instance, uint32_t seq,
                            struct moment now)
{
    if (args->has_expected && args->expected_sequence != (int64_t)seq + 1 &&
        !PLANTED(EXPECTED_IGNORED))
        return scope_fail(scope, PAWL_CONFLICT,
                          "expected_sequence is %lld, but the next entry is number %u; read again",
                          (long long)args->expected_sequence, seq + 1);
    if (args->late_status)
        return scope_fail(scope, args->late_status, "%s", args->late_words);
    TRY(ref_check(scope, "actor_ref", args->actor));
    return clock_check_fired(engine, scope, args, instance, now);
}

void fired_tell(const struct head *head, const struct definition *definition, struct fired *out)
{
    char digits[10], *id = out->transition_id;
    size_t count = 0;

    out->new_state = definition->states[head->state].name;
    out->terminal = definition->states[head->state].terminal;
    out->seq = head->seq;
    /* "ID-SEQ", without the cost of snprintf(): every fire tells it. */
    id_print(head->instance, head->random, id);
    id[ID_SIZE] = '-';
    for (uint32_t n = head->seq; n > 0 || count == 0; n /= 10)
        digits[count++] = (char)('0' + n % 10);
    for (size_t i = 0; i < count; i++)
        id[ID_SIZE + 1 + i] = digits[count - 1 - i];
    id[ID_SIZE + 1 + count] = '\0';
}

static struct event event_of(const struct fire_args *args, int64_t at_ms)
{
    return (struct event){
        .kind = args->is_cancel  ? EVENT_CANCEL
                : args->is_timer ? EVENT_TIMER
                                 : EVENT_FIRE,
        .by_engine = args->by_engine,
        .is_forced = args->is_forced,
        .at_ms = at_ms,
        .due_at_ms = args->due_at_ms,
        .name = args->action,
        .payload = args->payload,
        .actor = args->actor,
        .reason = args->reason,
        .guard_satisfied = args->guard_satisfied,
    };
}

/* The entry, and what it does to the timers of a machine that has deadlines, and to the pause of
 * one that was cancelled: what has ended is not held. *head is found again: making room may have
 * put it elsewhere. */
static pawl_status enter(struct engine *engine, struct scope *scope, struct head **head,
                         const struct definition *definition, const struct decision *decision,
                         const struct event *event, const struct fire_args *args)
{
    bool has_rows = definition->deadline_count > 0 || ((*head)->flags & HEAD_PAUSED);
    uint64_t number = (*head)->instance;
    int64_t fired_at_ms = args->fired_at_ms;

    if (!args->has_fired_at)
        TRY(clock_fired_at(engine, scope, number, &fired_at_ms));
    if (has_rows) {
        TRY(batch_reserve(engine, scope, 1, live_room(decision)));
        *head = batch_find(&engine->writer.batch, number);
    }
    TRY(batch_entry(engine, scope, *head, definition, &decision->drafts[0], event->at_ms,
                    fired_at_ms, args->key));
    if (has_rows)
        live_from_draft(engine, *head, definition, &decision->drafts[0], event->at_ms, false);
    return PAWL_OK;
}

/* The entry, and beside it what its transition starts. */
static pawl_status enter_and_start(struct engine *engine, struct scope *scope, struct head **head,
                                   const struct definition *definition,
                                   const struct decision *decision, const struct event *event,
                                   const struct fire_args *args)
{
    const struct transition *transition = &definition->transitions[decision->drafts[0].transition];
    uint64_t number = (*head)->instance;
    str operation;
    pawl_status status;

    if (!transition->starts.data)
        return enter(engine, scope, head, definition, decision, event, args);
    TRY(start_prepare(engine, scope, *head, definition, transition, event, &operation));
    *head = batch_find(&engine->writer.batch, number);
    TRY(enter(engine, scope, head, definition, decision, event, args));
    status = alarm_record_start(engine, scope, operation, event->at_ms);
    *head = batch_find(&engine->writer.batch, number);
    return status ? batch_spoil(engine, scope, status) : PAWL_OK;
}

static pawl_status decide_fire(struct engine *engine, struct scope *scope, struct head *head,
                               const struct definition *definition, const struct event *event,
                               struct decision *out)
{
    struct standing standing = { .state = head->state, .seq = head->seq };

    if (event->kind == EVENT_TIMER)
        TRY(batch_entered_at(engine, scope, head, &standing.entered_at_ms));
    TRY(machine_behavior.decide(definition, &standing, event, scope, out));
    if (event->kind == EVENT_CANCEL)
        return PAWL_OK;
    if (head->flags & HEAD_PAUSED)
        return pause_refusal(scope);
    return bounds_standing(engine, scope, head->seq, 0)
               ? pause_at_bound(engine, scope, head, event->at_ms)
               : PAWL_OK;
}

/* One fire whose key is new. */
static pawl_status fire_new(struct engine *engine, struct request *request, struct batch_fire *fire,
                            int64_t at_ms)
{
    struct scope *scope = request->scope;
    struct definition_slot *slot;
    struct decision decision = { 0 };
    struct event event = event_of(&fire->args, at_ms);
    struct head *head;
    pawl_status status;

    TRY(check_action(scope, &fire->args));
    TRY(batch_locate(engine, scope, fire->args.id, 1, &head, &slot));
    if (slot->definition->kind != KIND_MACHINE) {
        fire->is_elsewhere = true;
        return PAWL_OK;
    }
    status = decide_fire(engine, scope, head, slot->definition, &event, &decision);
    if (!status)
        status = fire_check_late(engine, scope, &fire->args, head->instance, head->seq, engine->writer.now);
    if (!status)
        status = enter_and_start(engine, scope, &head, slot->definition, &decision, &event,
                                 &fire->args);
    if (status && PLANTED(REFUSED_COUNTS))
        head->seq++;
    if (status)
        return status;
    request->accepted = true;
    fired_tell(head, slot->definition, &fire->fired);
    return PAWL_OK;
}

static pawl_status fire_one(struct engine *engine, struct request *request, struct batch_fire *fire,
                            int64_t at_ms)
{
    struct record record;
    enum key_use use;

    TRY(keys_look(engine, request->scope, fire->args.key, at_ms, &use, &record));
    if (use == KEY_REPEAT)
        return keys_fired(engine, request->scope, &record, &fire->fired);
    fire->is_again = use == KEY_PENDING;
    return fire->is_again ? PAWL_OK : fire_new(engine, request, fire, at_ms);
}

/* Have the heads of the next fires ready. */
static void expect_heads(struct engine *engine, const struct request *request, size_t first)
{
    uint64_t numbers[HEADS_EXPECTED];
    uint32_t count = 0;

    for (size_t i = first; i < request->fire_count && i < first + HEADS_EXPECTED; i++)
        count += id_parse(request->fires[i].args.id, &numbers[count], NULL);
    guard_lock(&engine->lock);
    heads_expect(&engine->writer.heads, numbers, count);
    guard_unlock(&engine->lock);
}

/* The store failed under one fire: the fires after it were meant to follow it, so the call fails as
 * a whole. What of it is in the batch already goes with the batch. */
static pawl_status fail_whole(struct engine *engine, struct request *request, pawl_status status)
{
    for (size_t i = 0; i < request->fire_count; i++)
        request->fires[i].status = status;
    return request->accepted ? batch_spoil(engine, request->scope, status) : status;
}

/* Of many rejections the scope holds but the last; short of memory, that one is reported. */
static void keep_words(struct scope *scope, struct batch_fire *fire)
{
    fire->words = arena_text(&scope->arena, str_of(scope->error.message));
}

static pawl_status drain_fires(struct engine *engine, struct request *request, int64_t at_ms)
{
    ASSERT_DRAINING(engine);
    for (size_t i = 0; i < request->fire_count; i++) {
        struct batch_fire *fire = &request->fires[i];

        if (i % HEADS_EXPECTED == 0 && request->fire_count > 1)
            expect_heads(engine, request, i);
        fire->status = fire_one(engine, request, fire, at_ms);
        if (fire->status == PAWL_STORAGE_FAILURE || fire->status == PAWL_NO_MEMORY)
            return fail_whole(engine, request, fire->status);
        if (fire->status)
            keep_words(request->scope, fire);
    }
    return PAWL_OK;
}

static void fire_elsewhere(struct engine *engine, struct scope *scope, struct batch_fire *fire)
{
    struct event event = event_of(&fire->args, 0);
    uint8_t random[ID_RANDOM_SIZE];
    struct record record;
    uint64_t number;

    fire->is_elsewhere = false;
    fire->status = id_check(scope, fire->args.id, &number, random);
    if (!fire->status)
        fire->status =
            engine_send(engine, scope, number, &event, &fire->args, fire->args.key, &fire->fired);
    if (keys_explain(engine, scope, fire->args.key, &fire->status, &record))
        fire->status = keys_fired(engine, scope, &record, &fire->fired);
    if (fire->status)
        keep_words(scope, fire);
}

pawl_status engine_fire_batch(struct engine *engine, struct scope *scope, struct batch_fire *fires,
                              size_t count)
{
    struct request request = {
        .drain = drain_fires, .scope = scope, .fires = fires, .fire_count = count
    };

    if (count > LIMIT_BATCH)
        return scope_fail(scope, PAWL_TOO_LARGE, "expected at most %u fires in a batch, found %zu",
                          (unsigned)LIMIT_BATCH, count);
    TRY(shell_submit(engine, &request));
    for (size_t i = 0; i < count; i++) {
        while (fires[i].is_again) { /* by now it is known how the call with the same key ended */
            fires[i].is_again = false;
            request = (struct request){
                .drain = drain_fires, .scope = scope, .fires = &fires[i], .fire_count = 1
            };
            TRY(shell_submit(engine, &request));
        }
        if (fires[i].is_elsewhere)
            fire_elsewhere(engine, scope, &fires[i]);
    }
    return PAWL_OK;
}

static void fire_is_done(struct engine *engine, struct request *request)
{
    struct fire_call *call = request->context;

    (void)engine;
    if (request->status && !call->fire.status)
        call->fire.status = request->status;
    call->done(call);
}

pawl_status engine_fire_start(struct engine *engine, struct fire_call *call)
{
    struct request *request = ARENA_NEW(&call->scope->arena, struct request);

    TRY_MEMORY(call->scope, request);
    *request = (struct request){ .drain = drain_fires,
                                 .scope = call->scope,
                                 .after = fire_is_done,
                                 .context = call,
                                 .fires = &call->fire,
                                 .fire_count = 1 };
    shell_lead_begin(engine);
    engine_submit(engine, request);
    shell_lead_end(engine);
    return PAWL_OK;
}

pawl_status engine_fire(struct engine *engine, struct scope *scope, const struct fire_args *args,
                        struct fired *out)
{
    struct batch_fire fire = { .args = *args };
    pawl_status status = engine_fire_batch(engine, scope, &fire, 1);
    uint8_t random[ID_RANDOM_SIZE];
    uint64_t number;

    if (status) { /* the store failed at once; but a malformed request is reported first */
        pawl_error kept = scope->error;

        if (check_action(scope, args) ||
            id_check(scope, args->id, &number, random) == PAWL_INVALID_REQUEST)
            return PAWL_INVALID_REQUEST;
        scope->error = kept;
        return status;
    }
    if (!fire.status)
        *out = fire.fired;
    return fire.status;
}
