/* decisions.c - a decision in the drain: is it still true, and what it records.
 *
 * Deciding happened before (mailbox.c, create.c); here the seq it was made against is compared,
 * and its entries, what they cause and the children they want go into the batch together. */
#include "code/code.h"
#include "engine/parts.h"

/* A timer runs from the time its entry is stamped with, not from when it was decided a moment
 * earlier: the history must never show one that was early. */
static void count_from(const struct draft *draft, int64_t decided_at_ms, int64_t at_ms)
{
    for (uint32_t i = 0; i < draft->effects.count && at_ms > decided_at_ms; i++)
        if (draft->effects.items[i].kind == EFFECT_ARM && !draft->effects.items[i].wall)
            draft->effects.items[i].due_at_ms += at_ms - decided_at_ms;
}

/* Does it lead to the end of its instance? Nothing follows that. */
static bool ends(const struct definition *definition, const struct decision *decision)
{
    const struct draft *last = decision->count ? &decision->drafts[decision->count - 1] : NULL;

    return last && !last->keep.data &&
           definition->states[definition->transitions[last->transition].to].terminal !=
               TERMINAL_NOT;
}

/* Does the instance go on by another plan? Code may also be amended without. */
static bool is_amend(const struct definition *definition, const struct draft *draft)
{
    return draft->transition == LIFE_T_AMEND &&
           (definition->kind == KIND_FLOW ||
            (definition->kind == KIND_CODE && code_has_plan(&draft->effects)));
}

/* Entries of a decision and what they cause; a key rides in the last. A failure in the middle
 * fails the whole batch. */
pawl_status decision_record(struct engine *engine, struct scope *scope, struct head *head,
                            const struct definition *definition, const struct decision *decision,
                            int64_t decided_at_ms, int64_t at_ms, int64_t fired_at_ms,
                            const uint8_t *key)
{
    pawl_status status;

    ASSERT_DRAINING(engine);
    for (uint32_t i = 0; i < decision->count; i++) {
        const struct draft *draft = &decision->drafts[i];
        const uint8_t *its_key = i + 1 == decision->count ? key : NULL;

        count_from(draft, decided_at_ms, at_ms);
        status = draft->keep.data ? batch_keep_signal(engine, scope, head, draft, at_ms, its_key)
                                  : batch_entry(engine, scope, head, definition, draft, at_ms,
                                                fired_at_ms, its_key);
        if (!status && !draft->keep.data && is_amend(definition, draft))
            status = amend_note(engine, scope, head);
        if (!status && !draft->keep.data && definition->kind != KIND_MACHINE &&
            draft->transition == LIFE_T_START)
            status = redrive_note(engine, scope, head, draft);
        if (status)
            return batch_spoil(engine, scope, status);
        if (!draft->keep.data)
            live_from_draft(engine, head, definition, draft, at_ms, ends(definition, decision));
    }
    if (!decision->hold.data)
        return PAWL_OK;
    status = pause_with_entry(engine, scope, head, decision, at_ms);
    return status ? batch_spoil(engine, scope, status) : PAWL_OK;
}

/* Is its key new? If not it is answered, or decided again when the commit is over. */
static pawl_status decision_key(struct engine *engine, struct request *request, int64_t at_ms)
{
    struct decision_request *decide = request->decide;
    struct fired unused;
    struct record record;
    enum key_use use;

    TRY(keys_look(engine, request->scope, decide->key, at_ms, &use, &record));
    decide->is_repeat = use == KEY_REPEAT;
    decide->was_kept = decide->is_repeat && record.what == CONTROL_KEEP_SIGNAL;
    request->is_stale = use == KEY_PENDING;
    if (request->is_stale)
        return scope_fail(request->scope, PAWL_CONFLICT, "another call has this key just now");
    return decide->is_repeat
               ? keys_fired(engine, request->scope, &record, decide->out ? decide->out : &unused)
               : PAWL_OK;
}

/* Was it decided by what is there now? If not it is decided again. */
static pawl_status decision_fresh(struct engine *engine, struct request *request,
                                  const struct head *head)
{
    const struct decision_request *decide = request->decide;
    pawl_status status;

    request->is_stale = true;
    if (head->seq != decide->expected_seq && !PLANTED(STALE_DECISION))
        return scope_fail(request->scope, PAWL_CONFLICT, "decided against entry %u, now at %u",
                          decide->expected_seq, head->seq);
    /* A signal may have been kept meanwhile. */
    if (decide->expected_pos && head->pos != decide->expected_pos && !PLANTED(STALE_DECISION))
        return scope_fail(request->scope, PAWL_CONFLICT, "decided against an older record");
    if ((head->flags & HEAD_PAUSED) && !decide->knew_pause)
        return pause_refusal(request->scope);
    status = family_check(engine, request->scope, decide->child_plans);
    request->is_stale = status == PAWL_CONFLICT;
    return status;
}

/* The entries are there: what fails now fails the batch. */
static pawl_status send_all(struct engine *engine, struct request *request, const struct head *head,
                            int64_t at_ms)
{
    char id[ID_SIZE + 1];
    struct sender_of sender = { .id = id, .is_test = head->flags & HEAD_TEST };
    str rights = STR_NONE, trace = request->scope->trace;
    pawl_status status =
        rights_of_instance(engine, request->scope, request->decide->instance, &rights);

    id_print(head->instance, head->random, id);
    if (status)
        return batch_spoil(engine, request->scope, status);
    if (!trace.data)
        request->scope->trace = request->decide->trace;
    status =
        sends_record(engine, request->scope, &sender, request->decide->decision, rights, at_ms);
    request->scope->trace = trace;
    return status;
}

static pawl_status decision_one(struct engine *engine, struct request *request, int64_t at_ms)
{
    struct decision_request *decide = request->decide;
    int64_t fired_at_ms = decide->fired_at_ms;
    struct head *head;
    pawl_status status;

    TRY(batch_reserve(engine, request->scope, decide->decision->count + 1,
                      live_room(decide->decision)));
    TRY(batch_head(engine, request->scope, decide->instance, &head));
    if (!fired_at_ms)
        TRY(clock_fired_at(engine, request->scope, decide->instance, &fired_at_ms));
    TRY(decision_fresh(engine, request, head));
    head->flags |= HEAD_NOW;
    family_number(engine, decide->child_plans, head->instance, head->random);
    TRY(decision_record(engine, request->scope, head, decide->definition, decide->decision,
                        decide->decided_at_ms, at_ms, fired_at_ms, decide->key));
    if (decide->snapshot.data)
        engine->writer.batch.snapshots[engine->writer.batch.snapshot_count++] =
            (struct snapshot_row){ .instance = head->instance,
                                   .seq = head->seq + PLANTED(SNAPSHOT_LATE),
                                   .text = decide->snapshot };
    if (decide->out)
        fired_tell(head, decide->definition, decide->out);
    TRY(family_record(engine, request->scope, decide->child_plans, at_ms));
    TRY(family_part(engine, request->scope, decide->instance, decide->definition, decide->decision,
                    at_ms));
    if (!sends_any(decide->decision))
        return PAWL_OK;
    status = batch_head(engine, request->scope, decide->instance, &head); /* children moved it */
    return status ? batch_spoil(engine, request->scope, status)
                  : send_all(engine, request, head, at_ms);
}

pawl_status drain_decision(struct engine *engine, struct request *request, int64_t at_ms)
{
    ASSERT_DRAINING(engine);
    TRY(decision_key(engine, request, at_ms));
    if (request->decide->is_repeat)
        return PAWL_OK;
    TRY(decision_one(engine, request, at_ms));
    request->accepted = true;
    return PAWL_OK;
}
