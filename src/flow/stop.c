/* stop.c - a flow is cancelled where something is to be cleaned up first: an entry `clean-up`.
 *
 * What is live ends with that entry, except what is running and has a compensation, since that may
 * have been done, and what a `finally` does already. Then each open `finally` runs, the innermost
 * first (tree_stop.c), then the compensations (undo.c). The last entry is `cancel`, in the name of
 * the caller that cancelled. */
#include "flow/stop.h"
#include "base/grow.h"
#include "base/planted.h"
#include "flow/map_items.h"
#include "flow/undo.h"

#define ERROR_CANCELLED STR("\"cancelled\"")

bool stop_cleans(const struct flow_memory *memory)
{
    const struct plan *plan = memory->plan;

    for (uint32_t i = 0;
         plan->is_tree && plan->cleans && !PLANTED(FINALLY_SKIPPED) && i < plan->node_count; i++)
        if (memory->nodes[i].is_open && plan->nodes[i].kind == PLAN_TRY &&
            !plan->nodes[plan->nodes[i].children[TRY_FINALLY]].is_empty)
            return true;
    return false;
}

/* ---- Deciding -------------------------------------------------------------------------------- */

/* Which live attempts end, by their steps: of a map its items go with it. */
struct stopping {
    struct turn *turn;
    bool *is_live;    /* by step of the plan */
    bool *is_awaited; /* likewise: running, and it has a compensation; or a map of such an item */
};

static bool end_step(void *context, uint32_t step)
{
    struct stopping *stopping = context;
    struct turn *turn = stopping->turn;

    if (!stopping->is_live[step] || stopping->is_awaited[step])
        return stopping->is_awaited[step];
    for (uint32_t i = 0; i < turn->memory->live_count; i++) {
        const struct attempt *live = &turn->memory->live[i];

        if (live->plan != step && turn->plan->steps[live->plan].of != step)
            continue;
        turn_note_over(turn, live->ordinal);
        turn_cause(turn, (struct effect){ .kind = EFFECT_END, .ordinal = live->ordinal });
    }
    return false;
}

static void look_at_live(struct stopping *stopping, bool awaits)
{
    const struct turn *turn = stopping->turn;

    for (uint32_t i = 0; i < turn->memory->live_count; i++) {
        const struct attempt *live = &turn->memory->live[i];
        const struct plan_step *step = &turn->plan->steps[live->plan];
        uint32_t whole = step->of == STEP_NONE ? live->plan : step->of;

        stopping->is_live[whole] = true;
        if (awaits && live->status == STEP_RUNNING && step->undo != STEP_NONE)
            stopping->is_awaited[whole] = true;
    }
}

enum settled turn_stop(struct turn *turn, struct tree_walk *walk, uint32_t node, bool awaits)
{
    struct arena *arena = &turn->scope->arena;
    struct stopping stopping = { .turn = turn,
                                 .is_live = ARENA_ARRAY(arena, bool, turn->plan->count + 1),
                                 .is_awaited = ARENA_ARRAY(arena, bool, turn->plan->count + 1) };

    if (arena->failed) {
        turn->status = scope_no_memory(turn->scope);
        return TREE_GOES_ON;
    }
    look_at_live(&stopping, awaits);
    walk->stays = end_step;
    walk->stops = &stopping;
    return tree_stop(walk, node);
}

void decide_clean_up(struct turn *turn)
{
    struct tree_walk walk;

    turn_draft(turn, LIFE_T_CLEAN_UP, NULL, STR_NONE);
    turn->is_cancelling = true;
    turn->error = ERROR_CANCELLED;
    turn_note_error(turn, ERROR_CANCELLED);
    if (turn_walk(turn, &walk))
        turn_settled(turn, turn_stop(turn, &walk, 0, true));
}

void stop_end(struct turn *turn)
{
    const struct flow_memory *memory = turn->memory;
    struct draft *last;

    if (undo_after_cancel(turn))
        return;
    turn->is_finished = true;
    turn_draft(turn, LIFE_T_CANCEL, NULL, STR_NONE);
    if (turn->status != PAWL_OK)
        return;
    last = &turn->decision.drafts[turn->decision.count - 1];
    last->actor = memory->is_cancelling ? memory->cancel_actor : turn->event->actor;
    last->reason = memory->is_cancelling ? memory->cancel_reason : turn->event->reason;
}

/* Is this step outside of all that still runs as ever? */
bool stop_holds(struct turn *turn, const struct plan_step *step)
{
    const struct plan *plan = turn->plan;
    uint32_t node = step->of == STEP_NONE ? step->node : plan->steps[step->of].node;
    struct tree_walk walk = { .plan = plan, .copy = &turn->nodes };

    if (!plan->is_tree || node == NODE_NONE || plan->nodes[node].parent == NODE_NONE)
        return false;
    walk.states = turn->nodes.pages ? NULL : turn->memory->nodes;
    return tree_state_of(&walk, plan->nodes[node].parent)->is_stopping;
}

/* ---- Folding --------------------------------------------------------------------------------- */

static bool is_live(void *context, uint32_t step)
{
    return ((const bool *)context)[step];
}

/* Its effects are folded already: what is live now stays, or was begun by it. */
pawl_status memory_clean_up(struct flow_memory *memory, const struct entry_view *entry,
                            uint32_t compiler, struct scope *scope, struct arena *arena)
{
    bool *live = ARENA_ARRAY(&scope->arena, bool, memory->plan->count + 1);
    str error = ERROR_CANCELLED;
    struct tree_walk walk = { .plan = memory->plan,
                              .states = memory->nodes,
                              .stays = is_live,
                              .stops = live,
                              .errors = tree_errors_of(compiler, &memory->errors),
                              .arena = arena,
                              .error = &error };

    TRY_MEMORY(scope, live);
    flow_mark_live(memory, live);
    memory->is_cancelling = true;
    memory->cancel_actor = arena_str(arena, entry->actor);
    memory->cancel_reason = arena_str(arena, entry->reason);
    TRY_MEMORY(scope, memory_keep(&memory->last_error, error, arena));
    TRY(context_note_error(scope, memory->context, error, arena));
    (void)tree_stop(&walk, 0);
    TRY_MEMORY(scope, !arena->failed);
    return PAWL_OK;
}
