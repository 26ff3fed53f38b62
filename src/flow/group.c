/* group.c - a group of a tree with a limit in time or attempts of its own.
 *
 * Such a group has a step of the plan, whose row lives as long as what is in it: so its timers are
 * those of any step. It begins with the group and ends in the entry that settles it. When its time
 * is over what is open in it is stopped (tree_stop.c), and it fails with "timeout"; when it fails
 * and may be tried again, its next attempt begins everything in it once more. A graph may have one
 * such step for all of it: when its time is over, the flow fails. */
#include "flow/group.h"
#include "flow/stop.h"
#include "flow/undo.h"

bool step_is_group(const struct plan *plan, const struct plan_step *step)
{
    if (plan->whole > 0)
        return step == &plan->steps[plan->whole - 1];
    return plan->is_tree && step->node != NODE_NONE && plan->nodes[step->node].kind == PLAN_GROUP;
}

bool group_is_stopping(const struct flow_memory *memory, const struct plan_step *step)
{
    return memory->plan->is_tree && step_is_group(memory->plan, step) &&
           memory->nodes[memory->plan->nodes[step->node].children[0]].is_stopping;
}

/* ---- Deciding -------------------------------------------------------------------------------- */

static const struct attempt *find_live(const struct turn *turn, uint32_t step)
{
    for (uint32_t i = 0; i < turn->begun_count; i++)
        if (turn->begun[i].attempt.plan == step && !turn->begun[i].is_over)
            return &turn->begun[i].attempt;
    for (uint32_t i = 0; i < turn->memory->live_count; i++) {
        const struct attempt *live = &turn->memory->live[i];
        uint32_t over = 0;

        while (over < turn->over_count && turn->over[over] != live->ordinal)
            over++;
        if (live->plan == step && over == turn->over_count)
            return live;
    }
    return NULL;
}

static bool is_tried_again(struct turn *turn, const struct attempt *attempt,
                           const struct kept_text *held)
{
    const struct plan_step *step = &turn->plan->steps[attempt->plan];
    str error = turn->error;

    if (held && turn->status == PAWL_OK)
        turn->status = memory_text(turn->memory, held, turn->scope, &error);
    return turn->status == PAWL_OK && !stop_holds(turn, step) &&
           retry_is_due(step, attempt->attempt, RETRY_FAILED) &&
           retry_takes(step, error.data ? error : RESULT_NULL, &turn->scope->arena);
}

bool group_over(void *context, uint32_t step, bool is_success, const struct kept_text *held)
{
    struct turn *turn = context;
    const struct attempt *live = find_live(turn, step);
    struct attempt attempt;

    if (!live || turn->status != PAWL_OK)
        return false;
    attempt = *live;
    for (uint32_t i = 0; i < turn->begun_count; i++)
        if (turn->begun[i].attempt.ordinal == attempt.ordinal)
            turn->begun[i].is_over = true;
    turn_note_over(turn, attempt.ordinal);
    turn_cause(turn, (struct effect){ .kind = EFFECT_END, .ordinal = attempt.ordinal });
    if (is_success || !is_tried_again(turn, &attempt, held))
        return false;
    step_try_again(turn, &attempt, RETRY_FAILED);
    return true;
}

void group_time_out(struct turn *turn, const struct attempt *attempt)
{
    uint32_t node = turn->plan->steps[attempt->plan].node, child, holder = 0;
    struct tree_walk walk;

    turn_draft(turn, LIFE_T_STEP_TIMEOUT, attempt, ERROR_TIMEOUT);
    turn_cause(turn, (struct effect){ .kind = EFFECT_DISARM,
                                      .ordinal = attempt->ordinal,
                                      .name = TIMER_TIMEOUT });
    if (!turn->plan->is_tree) {
        undo_or_fail(turn, ERROR_TIMEOUT);
        return;
    }
    turn->error = ERROR_TIMEOUT;
    turn_note_error(turn, ERROR_TIMEOUT);
    if (!turn_walk(turn, &walk))
        return;
    child = turn->plan->nodes[node].children[0];
    tree_error_keep(&walk, node, &holder);
    if (turn_stop(turn, &walk, child, false) == TREE_FAILED)
        turn_walk_on(turn, &walk, child, false);
}

void group_begin_again(struct turn *turn, const struct attempt *attempt)
{
    uint32_t node = turn->plan->steps[attempt->plan].node;
    struct tree_walk walk;

    if (turn_walk(turn, &walk))
        (void)tree_begin(&walk, turn->plan->nodes[node].children[0]);
}

/* ---- Folding --------------------------------------------------------------------------------- */

/* Another attempt of the group's step begins with the entry that ends the last one. */
bool group_folded(void *context, uint32_t step, bool is_success, const struct kept_text *held)
{
    const struct entry_view *entry = context;
    bool is_again = false;

    (void)is_success;
    (void)held;
    for (uint32_t i = 0; entry->effects && i < entry->effects->count; i++)
        is_again = is_again ||
                   (entry->effects->items[i].kind == EFFECT_STEP &&
                    entry->effects->items[i].plan == step && entry->effects->items[i].attempt > 1);
    return is_again;
}

static bool ends(void *context, uint32_t step)
{
    (void)context;
    (void)step;
    return false;
}

pawl_status memory_group(struct flow_memory *memory, const struct entry_view *entry, uint32_t node,
                         struct tree_walk *walk, struct scope *scope)
{
    uint32_t child = memory->plan->nodes[node].children[0], holder = 0;
    str error = ERROR_TIMEOUT;

    if (entry->transition == LIFE_T_STEP_RETRY)
        (void)tree_begin(walk, child);
    if (entry->transition != LIFE_T_STEP_TIMEOUT)
        return PAWL_OK;
    TRY_MEMORY(scope, memory_keep(&memory->last_error, error, walk->arena));
    TRY(context_note_error(scope, memory->context, error, walk->arena));
    walk->error = &error;
    walk->error_seq = 0;
    walk->stays = ends;
    tree_error_keep(walk, node, &holder);
    if (tree_stop(walk, child) == TREE_FAILED)
        (void)tree_settle(walk, child, false);
    return walk->arena->failed ? scope_no_memory(scope) : PAWL_OK;
}
