/* reduce_end.c - a step is over: what follows it, or the end of the flow.
 *
 * In a graph the step itself knows its way on (B12-B17); in a tree the nodes above it do
 * (tree.c). A graph step that fails for good fails the flow at once; a tree first lets what was
 * dispatched end (C12, C14, C18, C19). */
#include "base/node.h"
#include "base/planted.h"
#include "flow/group.h"
#include "flow/map_items.h"
#include "flow/stop.h"
#include "flow/undo.h"

#define ERROR_NO_BRANCH STR("\"no-branch-matched\"")

static const struct plan_step *step_of(const struct turn *turn, const struct attempt *attempt)
{
    return &turn->plan->steps[attempt->plan];
}

/* ---- The end of the flow ----------------------------------------------------------------- */

static void finish(struct turn *turn, str result)
{
    struct template_source source = turn_source(turn);
    pawl_status status = PAWL_OK;

    turn->is_finished = true;
    if (turn->status == PAWL_OK && turn->plan->output.data)
        status = template_expand_output(&source, turn->scope, &result);
    if (status == PAWL_OK)
        turn_draft(turn, LIFE_T_FINISH, NULL, result);
    else if (status_is_trouble(status))
        turn->status = status;
    else
        undo_or_fail(turn, turn_take_error(turn));
}

/* ---- A graph goes on ------------------------------------------------------------------------ */

/* It leads on: it is neither the step of a map's item nor the time of all. */
static bool counts(const struct plan *plan, uint32_t step)
{
    return plan->steps[step].of == STEP_NONE && step + 1 != plan->whole;
}

/* By its ordinal: a map's attempt is a copy of the memory's. */
static bool is_over(const struct turn *turn, uint32_t ordinal)
{
    for (uint32_t i = turn->over_count; i-- > 0;)
        if (turn->over[i] == ordinal)
            return true;
    return false;
}

static bool is_live(const struct turn *turn, uint32_t join)
{
    for (uint32_t i = 0; i < turn->memory->live_count; i++) {
        const struct attempt *live = &turn->memory->live[i];

        if (counts(turn->plan, live->plan) && !is_over(turn, live->ordinal) &&
            (join == STEP_NONE || plan_can_reach(turn->plan, join, live->plan)))
            return true;
    }
    for (uint32_t i = 0; i < turn->begun_count; i++)
        if (!turn->begun[i].is_over && counts(turn->plan, turn->begun[i].attempt.plan) &&
            (join == STEP_NONE || plan_can_reach(turn->plan, join, turn->begun[i].attempt.plan)))
            return true;
    return false;
}

/* Does another join that waits lead here? Of two that lead to each other neither is waited for. */
static bool is_led_to(const struct turn *turn, uint32_t join)
{
    for (uint32_t other = 0; other < turn->plan->count; other++)
        if (other != join && turn->joins[other] && plan_can_reach(turn->plan, join, other) &&
            !plan_can_reach(turn->plan, other, join))
            return true;
    return false;
}

/* A join that waits is complete when neither a live step nor a branch at another join can still
 * reach it, whichever branch arrived last, and also if the last one went another way (B15). One
 * pass is enough: a join that another leads to is also reached by what this pass begins. */
static void complete_joins(struct turn *turn)
{
    for (uint32_t join = 0; turn->joins && join < turn->plan->count; join++)
        if (turn->joins[join] &&
            ((!is_live(turn, join) && !is_led_to(turn, join)) || PLANTED(JOIN_EARLY))) {
            turn->joins[join] = false;
            begin_step(turn, join);
        }
}

/* The steps that the way of a step leads to; `chosen`: of its branches or arms. */
static void take_way(struct turn *turn, const struct plan_step *step, str result, uint32_t chosen)
{
    if (step->way == WAY_DONE)
        finish(turn, result);
    for (uint32_t i = 0; i < step->target_count; i++)
        if (way_begins(step, i, chosen))
            begin_step(turn, step->targets[i].step);
}

/* The decision's own copy of who waits at which join. */
static bool open_joins(struct turn *turn)
{
    if (!turn->joins)
        turn->joins =
            arena_copy(&turn->scope->arena, turn->memory->joins, turn->plan->count * sizeof(bool));
    if (!turn->joins)
        turn->status = scope_no_memory(turn->scope);
    return turn->joins != NULL;
}

static void graph_goes_on(struct turn *turn, const struct plan_step *step, str result, uint32_t arm)
{
    if ((turn->memory->join_count > 0 || step->way == WAY_JOIN) && open_joins(turn) &&
        step->way == WAY_JOIN)
        turn->joins[step->targets[0].step] = true;
    if (turn->status != PAWL_OK)
        return;
    take_way(turn, step, result, step->way == WAY_ARMS ? arm : turn->branch);
    if (turn->is_finished)
        return;
    complete_joins(turn);
    if (turn->status == PAWL_OK && !is_live(turn, STEP_NONE)) /* B13 */
        undo_or_fail(turn, ERROR_NO_BRANCH);
}

/* What went wrong, where steps find it (C27). */
void turn_note_error(struct turn *turn, str error)
{
    struct arena *arena = &turn->scope->arena;

    if (turn->status == PAWL_OK && !turn->context)
        turn->context = context_over(turn->memory->context, arena);
    if (turn->status == PAWL_OK)
        turn->status = turn->context ? context_note_error(turn->scope, turn->context, error, arena)
                                     : scope_no_memory(turn->scope);
}

/* A step that fails for good leads to where its `on_error` says; where none of that holds, or
 * cannot be told, the flow fails. */
static void graph_takes_error(struct turn *turn, const struct plan_step *step, str error)
{
    struct template_source source;
    uint32_t chosen = STEP_NONE;
    pawl_status status = PAWL_OK;

    if (step->error_count > 0)
        turn_note_error(turn, error);
    source = turn_source(turn);
    if (turn->status == PAWL_OK)
        status = condition_choose_error(turn->scope, &source, step, error, &chosen);
    if (status_is_trouble(status))
        turn->status = status;
    if (turn->status != PAWL_OK)
        return;
    if (chosen == STEP_NONE || PLANTED(ERROR_UNROUTED)) {
        undo_or_fail(turn, status == PAWL_OK ? error : turn_take_error(turn));
        return;
    }
    if ((turn->memory->join_count > 0 || turn->joins) && !open_joins(turn))
        return;
    begin_step(turn, step->errors[chosen].step);
    complete_joins(turn);
}

/* ---- A tree goes on ----------------------------------------------------------------------------
 */

static void begin_leaf(void *context, uint32_t step)
{
    begin_step(context, step);
}

/* The walk changes the states of nodes: it gets a copy, the memory changes by entries alone. */
static bool copy_nodes(struct turn *turn)
{
    if (turn->nodes.pages)
        return true;
    if (!node_pages_init(&turn->nodes, turn->plan, turn->memory->nodes, &turn->scope->arena) ||
        !tree_errors_copy(&turn->memory->errors, &turn->scope->arena, &turn->errors))
        turn->status = scope_no_memory(turn->scope);
    return turn->status == PAWL_OK;
}

void turn_settled(struct turn *turn, enum settled settled)
{
    str context = STR_NONE;

    if (turn->scope->arena.failed && turn->status == PAWL_OK)
        turn->status = scope_no_memory(turn->scope);
    if (turn->is_cancelling && settled != TREE_GOES_ON) {
        stop_end(turn);
        return;
    }
    if (settled == TREE_FAILED)
        undo_or_fail(turn, turn->error.data ? turn->error : kept_view(&turn->memory->last_error));
    if (settled != TREE_SUCCEEDED)
        return;
    if (turn->status == PAWL_OK && !turn->plan->output.data)
        turn->status = context_text(turn->context ? turn->context : turn->memory->context,
                                    turn->scope, &context);
    finish(turn, context);
}

bool turn_walk(struct turn *turn, struct tree_walk *walk)
{
    *walk = (struct tree_walk){ .plan = turn->plan,
                                .begin = begin_leaf,
                                .context = turn,
                                .copy = &turn->nodes,
                                .over = group_over,
                                .over_context = turn,
                                .errors = tree_errors_of(turn->compiler, &turn->errors),
                                .arena = &turn->scope->arena,
                                .error = &turn->error };
    return turn->status == PAWL_OK && copy_nodes(turn);
}

void turn_walk_on(struct turn *turn, struct tree_walk *walk, uint32_t node, bool is_success)
{
    struct kept_text ended = { 0 };
    enum settled settled;

    walk->ended = &ended;
    settled = tree_settle(walk, node, is_success);
    if (turn->status == PAWL_OK && !turn->scope->arena.failed && kept_is_there(&ended))
        turn->status = memory_text(turn->memory, &ended, turn->scope, &turn->error);
    turn_settled(turn, settled);
}

static void tree_goes_on(struct turn *turn, const struct plan_step *step, bool is_success,
                         uint32_t arm)
{
    struct kept_text ended = { 0 };
    struct tree_walk walk;
    enum settled settled;

    if (!turn_walk(turn, &walk))
        return;
    if (!is_success || !step->kind->leads_by_arm) {
        turn_walk_on(turn, &walk, step->node, is_success);
        return;
    }
    walk.ended = &ended;
    settled = tree_take_arm(&walk, step->node, arm);
    if (turn->status == PAWL_OK && !turn->scope->arena.failed && kept_is_there(&ended))
        turn->status = memory_text(turn->memory, &ended, turn->scope, &turn->error);
    turn_settled(turn, settled);
}

/* ---- Begin, succeed, fail
 * ------------------------------------------------------------------------ */

void flow_begin_whole(struct turn *turn)
{
    if (turn->plan->whole > 0)
        begin_step(turn, turn->plan->whole - 1);
}

void flow_begin(struct turn *turn, const struct tree_redo *redo)
{
    struct tree_walk walk = {
        .plan = turn->plan, .begin = begin_leaf, .context = turn, .redo = redo
    };

    if (!turn->plan->is_tree) {
        flow_begin_whole(turn);
        begin_step(turn, turn->plan->first);
        return;
    }
    if (!copy_nodes(turn))
        return;
    walk.copy = &turn->nodes;
    turn_settled(turn, tree_begin(&walk, 0));
}

/* What the step brings, and where it leads: found before anything is drafted, since a condition
 * that cannot be told is the step's failure. */
static pawl_status choose_way(struct turn *turn, const struct plan_step *step, str result)
{
    struct template_source source;

    struct fresh *older = ARENA_NEW(&turn->scope->arena, struct fresh);

    TRY_MEMORY(turn->scope, older);
    if (turn->fresh_slot != STEP_NONE) {
        *older = (struct fresh){ turn->fresh_slot, turn->fresh, turn->older };
        turn->older = older;
    }
    turn->fresh_slot = step->result_slot;
    turn->fresh = result;
    source = turn_source(turn);
    return condition_choose(turn->scope, &source, step, result, &turn->branch);
}

static pawl_status take_result(struct turn *turn, const struct plan_step *step, str result)
{
    struct arena *arena = &turn->scope->arena;

    if (step->augment_count > 0) {
        turn->context = context_over(turn->context ? turn->context : turn->memory->context, arena);
        TRY_MEMORY(turn->scope, turn->context);
        TRY(context_augment(turn->scope, step, turn->context, result, arena));
    }
    return choose_way(turn, step, result);
}

void flow_go_on(struct turn *turn, uint32_t index, str result)
{
    const struct plan_step *step = &turn->plan->steps[index];

    turn->status = choose_way(turn, step, result);
    if (turn->status == PAWL_OK)
        take_way(turn, step, result, turn->branch);
}

void step_spoil(struct turn *turn, const struct attempt *attempt, pawl_status status)
{
    if (status_is_trouble(status)) {
        turn->status = status;
        return;
    }
    turn->undo_noted = STEP_NONE;
    turn->is_pivoted = false;
    turn->context = NULL;
    turn->fresh = STR_NONE;
    turn->fresh_slot = STEP_NONE;
    turn->is_hopeless = true;
    step_fail(turn, LIFE_T_STEP_FAIL, attempt, RETRY_FAILED, turn_take_error(turn));
}

void step_succeed(struct turn *turn, enum lifecycle_transition transition,
                  const struct attempt *attempt, str result, uint32_t arm)
{
    const struct plan_step *step = step_of(turn, attempt);
    pawl_status status;

    if (turn->memory->undoing != UNDO_NOT) {
        undo_step_over(turn, transition, attempt, true, RETRY_FAILED, result);
        return;
    }
    turn->is_pivoted = turn->is_pivoted || step->is_pivot;
    status = step->of == STEP_NONE ? take_result(turn, step, result) : PAWL_OK;
    if (status == PAWL_OK)
        status = undo_note(turn, attempt, result);
    if (status == PAWL_OK && step->of != STEP_NONE) {
        map_item_over(turn, transition, attempt, true, result);
        return;
    }
    if (status != PAWL_OK) {
        step_spoil(turn, attempt, status);
        return;
    }
    turn_draft(turn, transition, attempt, result);
    turn_end(turn, attempt);
    if (turn->plan->is_tree)
        tree_goes_on(turn, step, true, arm);
    else
        graph_goes_on(turn, step, result, arm);
}

void step_take_arm(struct turn *turn, const struct attempt *attempt, str result, uint32_t arm)
{
    turn_draft(turn, LIFE_T_STEP_COMPLETE, attempt, result);
    turn_end(turn, attempt);
    tree_goes_on(turn, step_of(turn, attempt), true, arm);
}

void step_try_again(struct turn *turn, const struct attempt *failed, enum retry_cause cause)
{
    struct attempt next;
    uint64_t seed = (uint64_t)turn->event->at_ms + failed->ordinal;

    turn->item_map = failed->map;
    turn->item.index = failed->item;

    if (cause == RETRY_LOST) { /* nothing was wrong with the step: it need not wait */
        turn_create(turn, failed->plan, failed->attempt + 1, STEP_READY);
        return;
    }
    next = turn_create(turn, failed->plan, failed->attempt + 1, STEP_PENDING);
    turn_arm(turn, next.ordinal, TIMER_RETRY,
             turn->event->at_ms + retry_delay_ms(step_of(turn, failed), failed->attempt, seed));
}

void step_fail(struct turn *turn, enum lifecycle_transition transition,
               const struct attempt *attempt, enum retry_cause cause, str error)
{
    const struct plan_step *step = step_of(turn, attempt);

    if (turn->memory->undoing != UNDO_NOT) {
        undo_step_over(turn, transition, attempt, false, cause, error);
        return;
    }
    turn_draft(turn, transition, attempt, error);
    turn_end(turn, attempt);
    if (step->kind->body)
        map_end_items(turn, attempt);
    if (!turn->event->no_retry && !turn->is_hopeless && transition != LIFE_T_GATE_REJECT &&
        retry_is_due(step, attempt->attempt, cause) &&
        retry_takes(step, error, &turn->scope->arena) && !stop_holds(turn, step)) {
        step_try_again(turn, attempt, cause);
    } else if (step->of != STEP_NONE) {
        map_item_over(turn, LIFE_T_COUNT, attempt, false, error);
    } else if (turn->plan->is_tree) {
        turn->error = error; /* rescue and finally see it */
        turn_note_error(turn, error);
        tree_goes_on(turn, step, false, 0);
    } else {
        graph_takes_error(turn, step, error);
    }
}

/* A tool, or another program, may have done it all the same: what must not be done twice fails for
 * good. */
void step_time_out(struct turn *turn, const struct attempt *attempt)
{
    const struct plan_step *step = step_of(turn, attempt);
    bool is_unknown = step->is_once && (step->kind->is_taken || step->kind->is_external) &&
                      retry_is_due(step, attempt->attempt, RETRY_TIMEOUT);

    turn->is_hopeless = turn->is_hopeless || is_unknown;
    step_fail(turn, LIFE_T_STEP_TIMEOUT, attempt, RETRY_TIMEOUT,
              is_unknown ? ERROR_UNKNOWN : ERROR_TIMEOUT);
}
