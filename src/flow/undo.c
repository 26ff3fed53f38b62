/* undo.c - sagas: what was done is undone, in reverse order, after a failure or a cancel (CW1-CW5).
 *
 * A step's compensation is a step of the plan of its own (`undoes`). When the step is done, the
 * arguments of its compensation are worked out and remembered. An entry `compensate` begins to
 * undo: what is live ends with it, except what is running and has a compensation, since that may
 * have been done. Then the compensations run, the last that was noted first, one at a time. One
 * that fails pauses the instance, and is tried again when it is resumed. The last entry is `fail`
 * or `cancel`. */
#include "base/grow.h"
#include "base/json_scan.h"
#include "base/planted.h"
#include "flow/map_items.h"
#include "flow/undo.h"

#define HOLD_ACTOR  STR("pawl/saga")
#define HOLD_REASON STR("compensation-failed")

/* ---- What is noted --------------------------------------------------------------------------- */

static pawl_status expand_args(const struct template_source *source, const struct plan *plan,
                               uint32_t undo, struct scope *scope, str *out)
{
    return template_expand(source, &plan->steps[undo], scope, out);
}

static struct template_item item_of(const struct flow_memory *memory, const struct attempt *attempt)
{
    return map_item_of(memory->plan, memory_find_map(memory, attempt->map), attempt->plan,
                       attempt->item);
}

pawl_status undo_note(struct turn *turn, const struct attempt *attempt, str result)
{
    const struct plan_step *step = &turn->plan->steps[attempt->plan];
    struct template_source source = turn_source(turn);
    str args;

    if (step->undo == STEP_NONE)
        return PAWL_OK;
    source.item = item_of(turn->memory, attempt);
    source.fresh_slot = step->result_slot;
    source.fresh = result;
    TRY(expand_args(&source, turn->plan, step->undo, turn->scope, &args));
    turn->undo_noted = step->undo;
    return PAWL_OK;
}

static pawl_status add_undo(struct flow_memory *memory, uint32_t plan, str args,
                            struct scope *scope, struct arena *arena)
{
    TRY_MEMORY(scope, GROW(arena, memory->undos, memory->undo_count, memory->undo_capacity));
    memory->undos[memory->undo_count++] = (struct undo){ plan, arena_str(arena, args) };
    TRY_MEMORY(scope, !arena->failed);
    return PAWL_OK;
}

pawl_status memory_note_undo(struct flow_memory *memory, const struct attempt *attempt, str result,
                             struct scope *scope, struct arena *arena)
{
    const struct plan_step *step = &memory->plan->steps[attempt->plan];
    struct template_source source = { .plan = memory->plan,
                                      .memory = memory,
                                      .fresh_slot = step->result_slot,
                                      .fresh = result,
                                      .item = item_of(memory, attempt) };
    pawl_status status;
    str args = STR("{}");

    if (step->is_pivot)
        memory->undo_count = 0;
    if (step->undo == STEP_NONE)
        return PAWL_OK;
    status = expand_args(&source, memory->plan, step->undo, scope, &args);
    if (status_is_trouble(status))
        return status;
    if (status != PAWL_OK) /* it was decided that it can be */
        scope->error = (pawl_error){ .status = PAWL_OK };
    return add_undo(memory, step->undo, args, scope, arena);
}

str memory_undo_args(const struct flow_memory *memory, uint32_t plan)
{
    if (memory->plan->steps[plan].undoes == STEP_NONE || memory->undo_count == 0)
        return STR_NONE;
    return memory->undos[PLANTED(UNDO_FORWARD) ? 0 : memory->undo_count - 1].args;
}

/* ---- Deciding -------------------------------------------------------------------------------- */

static bool is_over(const struct turn *turn, uint32_t ordinal)
{
    for (uint32_t i = 0; i < turn->over_count; i++)
        if (turn->over[i] == ordinal)
            return true;
    return false;
}

/* Running, and what it does can be undone: its end is awaited. */
static bool is_awaited(const struct turn *turn, const struct attempt *live)
{
    const struct plan_step *step = &turn->plan->steps[live->plan];

    return live->status == STEP_RUNNING && step->undo != STEP_NONE && !is_over(turn, live->ordinal);
}

static bool awaits(const struct turn *turn)
{
    for (uint32_t i = 0; i < turn->memory->live_count; i++)
        if (is_awaited(turn, &turn->memory->live[i]))
            return true;
    return false;
}

/* How many are to be undone, and the last one, with what this decision has noted or undone. */
static uint32_t undo_count(const struct turn *turn)
{
    uint32_t count = turn->is_pivoted ? 0 : turn->memory->undo_count;

    return count + (turn->undo_noted != STEP_NONE) - (turn->is_undone ? 1 : 0);
}

static uint32_t undo_next(const struct turn *turn)
{
    const struct flow_memory *memory = turn->memory;
    uint32_t count = memory->undo_count - (turn->is_undone ? 1 : 0);

    if (turn->undo_noted != STEP_NONE && !PLANTED(UNDO_FORWARD))
        return turn->undo_noted;
    return memory->undos[PLANTED(UNDO_FORWARD) ? memory->undo_count - count : count - 1].plan;
}

static void end_live(struct turn *turn)
{
    for (uint32_t i = 0; i < turn->memory->live_count; i++) {
        const struct attempt *live = &turn->memory->live[i];

        if (!is_over(turn, live->ordinal) && !is_awaited(turn, live))
            turn_cause(turn, (struct effect){ .kind = EFFECT_END, .ordinal = live->ordinal });
    }
    for (uint32_t i = 0; i < turn->begun_count; i++)
        if (!turn->begun[i].is_over) {
            turn->begun[i].is_over = true;
            turn_cause(turn, (struct effect){ .kind = EFFECT_END,
                                              .ordinal = turn->begun[i].attempt.ordinal });
        }
    turn->begun_seen = turn->begun_count;
}

static void end_flow(struct turn *turn)
{
    const struct flow_memory *memory = turn->memory;
    struct draft *last;
    str error = STR_NONE;

    if (memory->undoing == UNDO_FAILING && turn->status == PAWL_OK)
        turn->status = memory_text(memory, &memory->undo_error, turn->scope, &error);
    turn->is_finished = true;
    turn_draft(turn, memory->undoing == UNDO_FAILING ? LIFE_T_FAIL : LIFE_T_CANCEL, NULL, error);
    if (turn->status != PAWL_OK || memory->undoing == UNDO_FAILING)
        return;
    last = &turn->decision.drafts[turn->decision.count - 1];
    last->actor = memory->cancel_actor;
    last->reason = memory->cancel_reason;
}

static void go_on(struct turn *turn)
{
    if (turn->status != PAWL_OK || awaits(turn))
        return;
    if (undo_count(turn) > 0)
        begin_step(turn, undo_next(turn));
    else
        end_flow(turn);
}

static str print_cause(struct turn *turn, str error)
{
    struct buf buf;

    buf_init(&buf, turn->scope->arena.heap, 2 * (size_t)LIMIT_TEXT);
    json_open(&buf, '{');
    json_put_text(&buf, "because", error.data ? "failed" : "cancelled");
    json_opt_raw(&buf, "error", error);
    json_close(&buf, '}');
    return turn_take(turn, &buf);
}

static void begin_undo(struct turn *turn, str error)
{
    turn->is_finished = true; /* nothing forward follows */
    turn_draft(turn, LIFE_T_COMPENSATE, NULL, print_cause(turn, error));
    end_live(turn);
    if (!awaits(turn))
        begin_step(turn, undo_next(turn));
}

void undo_or_fail(struct turn *turn, str error)
{
    if (turn->status == PAWL_OK && turn->plan->has_undo &&
        (undo_count(turn) > 0 || awaits(turn))) {
        begin_undo(turn, error);
        return;
    }
    turn->is_finished = true;
    turn_draft(turn, LIFE_T_FAIL, NULL, error);
}

bool undo_after_cancel(struct turn *turn)
{
    bool undoes =
        turn->status == PAWL_OK && turn->plan->has_undo && (undo_count(turn) > 0 || awaits(turn));

    if (undoes)
        begin_undo(turn, STR_NONE);
    return undoes;
}

bool undo_or_cancel(const struct flow_memory *memory)
{
    struct turn turn = { .plan = memory->plan, .memory = memory, .undo_noted = STEP_NONE };

    return memory->plan->has_undo && (memory->undo_count > 0 || awaits(&turn));
}

void decide_undo_cancel(struct turn *turn)
{
    begin_undo(turn, STR_NONE);
}

/* It is never skipped: the instance is paused, and a resume tries it again, with the same key. What
 * failed it is the error of its last attempt. */
static void hold(struct turn *turn, const struct attempt *attempt)
{
    turn_create(turn, attempt->plan, attempt->attempt + 1, STEP_READY);
    turn->decision.hold = HOLD_REASON;
    turn->decision.hold_by = HOLD_ACTOR;
}

static void compensation_failed(struct turn *turn, const struct attempt *attempt,
                                enum retry_cause cause, str error)
{
    const struct plan_step *step = &turn->plan->steps[attempt->plan];

    if (!turn->event->no_retry && retry_is_due(step, attempt->attempt, cause) &&
        retry_takes(step, error, &turn->scope->arena))
        step_try_again(turn, attempt, cause);
    else
        hold(turn, attempt);
}

void undo_step_over(struct turn *turn, enum lifecycle_transition transition,
                    const struct attempt *attempt, bool is_success, enum retry_cause cause,
                    str payload)
{
    bool is_undo = turn->plan->steps[attempt->plan].undoes != STEP_NONE;

    if (is_success && !is_undo) {
        pawl_status status = undo_note(turn, attempt, payload);

        if (status_is_trouble(status))
            turn->status = status;
    }
    turn_draft(turn, transition, attempt, payload);
    turn_end(turn, attempt);
    turn->is_undone = is_undo && is_success;
    if (is_undo && !is_success)
        compensation_failed(turn, attempt, cause, payload);
    else
        go_on(turn);
}

/* ---- Folding --------------------------------------------------------------------------------- */

pawl_status memory_begin_undo(struct flow_memory *memory, const struct entry_view *entry,
                              struct scope *scope, struct arena *arena)
{
    str error;
    bool is_failure = json_member(&scope->arena, entry->payload, STR("error"), &error);

    memory->undoing = is_failure ? UNDO_FAILING : UNDO_CANCELLING;
    TRY_MEMORY(scope, !is_failure || memory_keep(&memory->undo_error, error, arena));
    if (!memory->is_cancelling) {
        memory->cancel_actor = arena_str(arena, entry->actor);
        memory->cancel_reason = arena_str(arena, entry->reason);
    }
    TRY_MEMORY(scope, !arena->failed);
    return PAWL_OK;
}

pawl_status memory_undone(struct flow_memory *memory, const struct attempt *attempt, str result,
                          struct scope *scope, struct arena *arena)
{
    if (memory->plan->steps[attempt->plan].undoes == STEP_NONE)
        return memory_note_undo(memory, attempt, result, scope, arena);
    if (memory->undo_count > 0)
        memory->undo_count--;
    return PAWL_OK;
}

/* ---- In a snapshot ---- */

void undo_print(const struct flow_memory *memory, uint32_t i, struct buf *out)
{
    json_u64(out, memory->undos[i].plan);
    json_raw(out, memory->undos[i].args);
}

bool undo_load(struct flow_memory *memory, const struct node *row, struct arena *arena)
{
    struct undo undo;

    if (row->count != 2 || memory->plan->count == 0 ||
        !node_to_u32(row->first, memory->plan->count - 1, &undo.plan) ||
        !GROW(arena, memory->undos, memory->undo_count, memory->undo_capacity))
        return false;
    undo.args = arena_str(arena, row->first->next->raw);
    memory->undos[memory->undo_count++] = undo;
    return !arena->failed;
}

/* [IS_FAILING,ERROR,ACTOR,REASON] */
void undoing_print(const struct flow_memory *memory, struct buf *out)
{
    str error = kept_view(&memory->undo_error);

    json_open(out, '[');
    json_bool(out, memory->undoing == UNDO_FAILING);
    json_raw(out, error.data ? error : RESULT_NULL);
    if (memory->cancel_actor.data)
        json_str(out, memory->cancel_actor);
    else
        json_null(out);
    if (memory->cancel_reason.data)
        json_str(out, memory->cancel_reason);
    else
        json_null(out);
    json_close(out, ']');
}

bool undoing_load(struct flow_memory *memory, const struct node *row, struct arena *arena)
{
    if (row->kind != NODE_ARRAY || row->count != 4)
        return false;
    memory->undoing = node_at(row, 0)->truth ? UNDO_FAILING : UNDO_CANCELLING;
    if (node_at(row, 2)->kind == NODE_STRING)
        memory->cancel_actor = arena_str(arena, node_at(row, 2)->text);
    if (node_at(row, 3)->kind == NODE_STRING)
        memory->cancel_reason = arena_str(arena, node_at(row, 3)->text);
    return !arena->failed &&
           (memory->undoing != UNDO_FAILING ||
            memory_keep(&memory->undo_error, node_at(row, 1)->raw, arena));
}
