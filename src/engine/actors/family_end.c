/* family_end.c - parents and children: told of each other's end.
 *
 * A child's end is noted in its own last commit (pawl_child.ended) and told to its parent as an
 * event, until that has been recorded: a death in between loses nothing. The end of a parent, or of
 * the step that waits, cancels it in that very commit, unless it was to be abandoned; cancelling
 * needs no reducer, so the drain can do it. */
#include "engine/parts.h"
#include "model/fire.h"
#include "model/words.h"

#define LOOK_AT_ONCE 1000u

/* ---- recording: children that are left behind ---- */

/* Whose children are to be cancelled: of one step, or of an instance that has ended (0). */
struct parting {
    struct parting *next;
    uint64_t parent;
    uint32_t ordinal;
};

static pawl_status add_parting(struct scope *scope, struct parting **list, uint64_t parent,
                               uint32_t ordinal)
{
    struct parting *parting = ARENA_NEW(&scope->arena, struct parting);

    TRY_MEMORY(scope, parting);
    *parting = (struct parting){ .next = *list, .parent = parent, .ordinal = ordinal };
    *list = parting;
    return PAWL_OK;
}

/* Whether a child can be cancelled follows from its table of transitions and, for a flow, from its
 * definition's `cancel`. Not: `out` stays without drafts. */
static pawl_status decide_parting(struct engine *engine, struct scope *scope,
                                  const struct head *head, const struct definition *definition,
                                  const struct event *event, struct decision *out)
{
    struct standing standing = { .state = head->state, .seq = head->seq };
    struct decision decision = { 0 };
    bool is_barred = false;
    pawl_status status = fire_decide_cancel(definition, &standing, event, scope, &decision);

    if (status)
        return status_is_ours(status) ? status : PAWL_OK;
    TRY(bars_look(engine, scope, head, definition, &is_barred));
    if (!is_barred)
        *out = decision;
    return PAWL_OK;
}

/* A flow that undoes what it did cannot be cancelled without its reducer: it is cancelled by an
 * alarm that is due at once, in this very commit. False: it is not one, or it is as new as this
 * commit, and has done nothing yet. */
static pawl_status cancel_later(struct engine *engine, struct scope *scope, uint64_t child,
                                const struct definition *definition, const struct event *event,
                                bool *out)
{
    char id[ID_SIZE + 1];
    struct instance_row row;
    struct buf text;
    pawl_status status;
    str operation;

    *out = false;
    if (definition->kind != KIND_FLOW || !flow_undoes(definition))
        return PAWL_OK;
    status = store_instance(engine->store, scope, child, &row);
    if (status == PAWL_NOT_KNOWN)
        return PAWL_OK;
    TRY(status);
    id_print(row.number, row.random, id);
    buf_init(&text, engine->heap, 0);
    json_open(&text, '{');
    json_opt_str(&text, "operation", STR("instance.cancel"));
    json_put_open(&text, "input", '{');
    json_opt_str(&text, "instance_id", str_of(id));
    json_opt_str(&text, "reason", event->reason);
    json_close(&text, '}');
    json_opt_str(&text, "actor", event->actor);
    json_put_bool(&text, "machine", true);
    json_close(&text, '}');
    operation = buf_take(&text, &scope->arena);
    TRY_MEMORY(scope, operation.data);
    TRY(standing_room(engine, scope));
    *out = true;
    return alarm_record_start(engine, scope, operation, event->at_ms);
}

/* A child that cannot be cancelled keeps running. */
static pawl_status cancel_child(struct engine *engine, struct scope *scope, uint64_t child,
                                int64_t at_ms, struct parting **more)
{
    struct event event = { .kind = EVENT_CANCEL,
                           .at_ms = at_ms,
                           .actor = STR("pawl/parent"),
                           .reason = STR("What had started it came to its end") };
    const struct transition *transition;
    struct decision decision = { 0 };
    struct definition_slot *slot;
    struct head *head;
    int64_t fired_at_ms;
    str operation = STR_NONE;
    bool is_later = false;
    pawl_status status;

    ASSERT_DRAINING(engine);
    TRY(batch_reserve(engine, scope, 1, 2));
    TRY(batch_head(engine, scope, child, &head));
    TRY(clock_fired_at(engine, scope, child, &fired_at_ms));
    TRY(definitions_of(engine, scope, head, &slot));
    TRY(decide_parting(engine, scope, head, slot->definition, &event, &decision));
    if (decision.count > 0)
        TRY(cancel_later(engine, scope, child, slot->definition, &event, &is_later));
    if (decision.count == 0 || is_later)
        return PAWL_OK;
    transition = &slot->definition->transitions[decision.drafts[0].transition];
    if (transition->starts.data)
        TRY(start_prepare(engine, scope, head, slot->definition, transition, &event, &operation));
    head = batch_find(&engine->writer.batch, child);
    head->flags |= HEAD_NOW;
    status = decision_record(engine, scope, head, slot->definition, &decision, at_ms, at_ms,
                             fired_at_ms, NULL);
    if (!status && operation.data)
        status = alarm_record_start(engine, scope, operation, at_ms);
    if (status)
        return batch_spoil(engine, scope, status);
    return family_is_possible(engine, slot->definition) ? add_parting(scope, more, child, 0)
                                                        : PAWL_OK;
}

static bool is_left(const struct parting *parting, uint64_t parent, uint32_t ordinal, bool abandon)
{
    return parent == parting->parent && !abandon &&
           (parting->ordinal == 0 || parting->ordinal == ordinal);
}

/* Those of this very batch, which the store does not know yet. */
static pawl_status part_new(struct engine *engine, struct scope *scope,
                            const struct parting *parting, int64_t at_ms, struct parting **more)
{
    ASSERT_DRAINING(engine);
    for (uint32_t i = 0; i < engine->writer.batch.live_count; i++) {
        const struct live_change *change = &engine->writer.batch.live[i];

        if (change->kind == LIVE_CHILD_PUT &&
            is_left(parting, change->instance, change->ordinal, change->child.is_abandoned))
            TRY(cancel_child(engine, scope, change->child.number, at_ms, more));
    }
    return PAWL_OK;
}

static pawl_status part_old(struct engine *engine, struct scope *scope,
                            const struct parting *parting, int64_t at_ms, struct parting **more)
{
    struct child_query query = { .parent = parting->parent,
                                 .ordinal = parting->ordinal,
                                 .limit = LOOK_AT_ONCE };
    struct live_child *rows;
    uint32_t count;
    pawl_status status;

    ASSERT_DRAINING(engine);
    do {
        status = store_children(engine->store, scope, &query, &rows, &count);
        for (uint32_t i = 0; !status && i < count; i++) {
            query.after = rows[i].child;
            if (is_left(parting, rows[i].parent, rows[i].ordinal, rows[i].abandon))
                status = cancel_child(engine, scope, rows[i].child, at_ms, more);
        }
    } while (!status && count == LOOK_AT_ONCE);
    return status;
}

/* Steps that this decision has ended, or the instance itself. */
static pawl_status find_partings(struct scope *scope, uint64_t parent,
                                 const struct definition *definition,
                                 const struct decision *decision, struct parting **out)
{
    for (uint32_t d = 0; d < decision->count; d++) {
        const struct draft *draft = &decision->drafts[d];

        if (!draft->keep.data &&
            definition->states[definition->transitions[draft->transition].to].terminal !=
                TERMINAL_NOT)
            return add_parting(scope, out, parent, 0);
        for (uint32_t e = 0; e < draft->effects.count; e++)
            if (draft->effects.items[e].kind == EFFECT_END && !draft->effects.items[e].is_bare)
                TRY(add_parting(scope, out, parent, draft->effects.items[e].ordinal));
    }
    return PAWL_OK;
}

pawl_status family_part(struct engine *engine, struct scope *scope, uint64_t parent,
                        const struct definition *definition, const struct decision *decision,
                        int64_t at_ms)
{
    struct parting *list = NULL;
    pawl_status status = PAWL_OK;

    ASSERT_DRAINING(engine);
    if (!family_is_possible(engine, definition))
        return PAWL_OK;
    status = find_partings(scope, parent, definition, decision, &list);
    while (list && !status) {
        const struct parting *parting = list;

        list = list->next;
        status = part_old(engine, scope, parting, at_ms, &list);
        if (!status)
            status = part_new(engine, scope, parting, at_ms, &list);
    }
    return status ? batch_spoil(engine, scope, status) : PAWL_OK;
}

/* ---- after the commit ---- */

static void add_ended(struct engine *engine, uint64_t child)
{
    if (HEAP_GROW(engine->heap, engine->actors.ended, engine->actors.ended_capacity,
                  engine->actors.ended_count + 1))
        engine->actors.ended[engine->actors.ended_count++] = child;
    else
        engine->actors.ended_lost = true;
}

void family_note(struct engine *engine, const struct batch *batch)
{
    uint32_t before = engine->actors.ended_count;

    for (uint32_t i = 0; i < batch->live_count; i++)
        if (batch->live[i].kind == LIVE_CHILD_ENDED)
            add_ended(engine, batch->live[i].instance);
    if (engine->actors.ended_count > before)
        shell_changed(engine);
}

pawl_status family_look(struct engine *engine, struct scope *scope, uint64_t parent)
{
    struct child_query query = { .parent = parent, .ended = true, .limit = LOOK_AT_ONCE };
    struct live_child *rows;
    uint32_t count;
    pawl_status status;

    do {
        status = store_children(engine->store, scope, &query, &rows, &count);
        guard_lock(&engine->lock);
        for (uint32_t i = 0; !status && i < count; i++)
            add_ended(engine, query.after = rows[i].child);
        guard_unlock(&engine->lock);
    } while (!status && count == LOOK_AT_ONCE);
    return status;
}

#define REASON_COPIED 1024u /* bytes; of a longer reason the beginning */

static bool is_entry(void *context, const struct record *record)
{
    struct record *last = context;

    if (record->what >= 0)
        *last = *record;
    return record->what >= 0;
}

/* A child that leaves no error (a machine, or what was cancelled) has said by its last entry how it
 * ended: that is the reason of its parent's entry. */
static pawl_status explain_end(struct engine *engine, struct scope *scope, uint64_t child,
                               const struct definition *definition, str *out)
{
    const struct transition *transition;
    const struct state *state;
    struct record last = { .what = -1 };
    struct head_row head;
    struct buf text;
    str reason;

    TRY(head_row_now(engine, scope, child, &head));
    TRY(records_look_back(engine, scope, head.pos, is_entry, &last));
    TRY(value_text(engine, scope, last.reason, &reason));
    if (last.what < 0 || (uint32_t)last.what >= definition->transition_count)
        return PAWL_OK;
    transition = &definition->transitions[last.what];
    state = &definition->states[transition->to];
    reason = reason.size > REASON_COPIED ? words_shown(reason) : reason;
    buf_init(&text, scope->arena.heap, LIMIT_TEXT);
    buf_fmt(&text, "the child ended in '%.*s' (%s) by '%.*s'%s%.*s", STR_ARG(state->name),
            terminal_kind_name(state->terminal), STR_ARG(transition->action),
            reason.size > 0 ? ": " : "", STR_ARG(reason));
    *out = buf_take(&text, &scope->arena);
    return out->data ? PAWL_OK : scope_no_memory(scope);
}

/* How it ended, as the step that waits for it gets it. */
static pawl_status read_outcome(struct engine *engine, struct scope *scope, uint64_t child,
                                struct event *event)
{
    struct instance_view view;
    char id[ID_SIZE + 1];

    TRY(engine_id_of(engine, scope, child, id));
    TRY(engine_get(engine, scope, str_of(id), &view));
    event->name = arena_str(&scope->arena, str_of(id));
    TRY_MEMORY(scope, event->name.data);
    event->outcome = view.status == STATUS_FAILED      ? TERMINAL_FAILURE
                     : view.status == STATUS_CANCELLED ? TERMINAL_CANCEL
                                                       : TERMINAL_SUCCESS;
    event->payload = view.status == STATUS_FAILED ? view.error : view.result;
    if (event->outcome == TERMINAL_SUCCESS || event->payload.data)
        return PAWL_OK;
    return explain_end(engine, scope, child, view.definition, &event->reason);
}

/* NOT_KNOWN: no step waits for it any more. */
static pawl_status make_news(struct engine *engine, struct mail *mail, uint64_t child)
{
    struct child_query query = { .child = child, .ended = true, .limit = 1 };
    struct live_child *row;
    uint32_t count;

    TRY(store_children(engine->store, &mail->own, &query, &row, &count));
    if (count == 0)
        return PAWL_NOT_KNOWN;
    mail->event = (struct event){ .kind = EVENT_CHILD, .ordinal = row->ordinal };
    mail->instance = row->parent;
    return read_outcome(engine, &mail->own, child, &mail->event);
}

static void look_for_lost(struct engine *engine)
{
    struct scope scope;
    pawl_status status;

    engine->actors.ended_lost = false;
    guard_unlock(&engine->lock);
    scope_init(&scope, engine->heap, LIMIT_SCOPE);
    status = family_look(engine, &scope, 0);
    if (status)
        engine_log(engine, PAWL_LOG_WARN, "child.untold", scope.error.message);
    scope_fini(&scope);
    guard_lock(&engine->lock);
    engine->actors.ended_lost = engine->actors.ended_lost || status;
}

void family_look_again(struct engine *engine)
{
    guard_lock(&engine->lock);
    if (engine->actors.ended_refused) {
        engine->actors.ended_refused = false;
        engine->actors.ended_lost = true;
        shell_changed(engine);
        engine_set_wakeup(engine);
    }
    guard_unlock(&engine->lock);
}

/* In the order in which they ended. */
static uint64_t next_ended(struct engine *engine)
{
    uint64_t child = engine->actors.ended[engine->actors.ended_told++];

    if (engine->actors.ended_told == engine->actors.ended_count)
        engine->actors.ended_told = engine->actors.ended_count = 0;
    return child;
}

void family_fini(struct engine *engine)
{
    heap_free(engine->heap, engine->actors.ended, sizeof *engine->actors.ended * engine->actors.ended_capacity);
}

/* If the store fails, nothing more is reported now: the next call looks again. */
bool family_tell(struct engine *engine)
{
    struct mail *mail;
    uint64_t child;
    pawl_status status;

    if (engine->stopping)
        return false;
    if (engine->actors.ended_lost && !engine->actors.ended_count)
        look_for_lost(engine);
    if (!engine->actors.ended_count)
        return false;
    mail = mail_new(engine);
    if (!mail)
        return false;
    child = next_ended(engine);
    engine->actors.mail_under_way++; /* until it is delivered: the test clock waits for it */
    guard_unlock(&engine->lock);
    status = make_news(engine, mail, child);
    guard_lock(&engine->lock);
    engine->actors.mail_under_way--;
    if (status)
        mail_free(engine, mail);
    else if (!mail_send(engine, mail))
        status = PAWL_NO_MEMORY;
    if (status && status != PAWL_NOT_KNOWN)
        engine->actors.ended_lost = true; /* it is in the store, to be found again */
    return !status || status == PAWL_NOT_KNOWN;
}
