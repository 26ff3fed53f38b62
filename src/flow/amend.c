/* amend.c - a flow under way goes on by another plan (B42, X2).
 *
 * Both plans become one: every step of the old keeps its index, so that whatever was recorded
 * still means what it meant; steps that the new one has besides come behind them, and those it no
 * longer has are `gone`. What is live must be in the new plan, and in a tree under the same groups.
 */
#include "base/json_scan.h"
#include "base/node.h"
#include "flow/map_items.h"
#include "model/words.h"

/* ---- Two plans become one ------------------------------------------------------------------- */

struct plan_merge {
    struct scope *scope;
    const struct plan *old, *new;
    uint32_t *places; /* of each new step in the merged plan */
    struct plan merged;
    struct buf tree;
};

static void find_places(struct plan_merge *merge)
{
    merge->merged.count = merge->old->count;
    for (uint32_t i = 0; i < merge->new->count; i++) {
        uint32_t place = plan_find(merge->old, merge->new->steps[i].name);

        merge->places[i] = place != STEP_NONE ? place : merge->merged.count++;
    }
}

/* The targets with the merged indices; NULL: no memory. */
static struct plan_target *place_targets(struct plan_merge *merge,
                                         const struct plan_target *targets, uint32_t count)
{
    struct plan_target *placed = ARENA_ARRAY(&merge->scope->arena, struct plan_target, count + 1);

    for (uint32_t i = 0; placed && i < count; i++) {
        placed[i] = targets[i];
        placed[i].step = merge->places[targets[i].step];
    }
    return placed;
}

static bool place_step(struct plan_merge *merge, uint32_t index)
{
    const struct plan_step *step = &merge->new->steps[index];
    struct plan_step *placed = &merge->merged.steps[merge->places[index]];

    *placed = *step;
    placed->targets = place_targets(merge, step->targets, step->target_count);
    placed->errors = place_targets(merge, step->errors, step->error_count);
    placed->undoes = step->undoes == STEP_NONE ? STEP_NONE : merge->places[step->undoes];
    placed->of = step->of == STEP_NONE ? STEP_NONE : merge->places[step->of];
    placed->after = step->after == STEP_NONE ? STEP_NONE : merge->places[step->after];
    return placed->targets && placed->errors;
}

/* The tree as plan_tree.c reads it, with the merged indices. */
static void print_node(struct plan_merge *merge, uint32_t index)
{
    const struct plan_node *node = &merge->new->nodes[index];

    if (node->kind == PLAN_LEAF) {
        json_u64(&merge->tree, merge->places[node->step]);
        return;
    }
    json_open(&merge->tree, '[');
    json_text(&merge->tree, plan_node_kind_name(node->kind));
    if (node->kind == PLAN_ARMS || node->kind == PLAN_GROUP)
        json_u64(&merge->tree, merge->places[node->step]);
    for (uint32_t i = 0; i < node->child_count; i++)
        print_node(merge, node->children[i]);
    json_close(&merge->tree, ']');
}

static bool place_all(struct plan_merge *merge)
{
    struct arena *arena = &merge->scope->arena;
    struct plan *merged = &merge->merged;

    find_places(merge);
    merged->steps = ARENA_ARRAY(arena, struct plan_step, merged->count + 1);
    if (!merged->steps)
        return false;
    for (uint32_t i = 0; i < merge->old->count; i++) {
        merged->steps[i] = merge->old->steps[i];
        merged->steps[i].kind = step_kind_find(STR("gone"), STR_NONE);
        merged->steps[i].way = merge->new->is_tree ? WAY_TREE : WAY_DONE;
        merged->steps[i].target_count = merged->steps[i].error_count = 0;
        merged->steps[i].bars_cancel = false;
        merged->steps[i].after = STEP_NONE;
    }
    for (uint32_t i = 0; i < merge->new->count; i++)
        if (!place_step(merge, i))
            return false;
    merged->is_tree = merge->new->is_tree;
    merged->first = merged->is_tree ? 0 : merge->places[merge->new->first];
    merged->output = merge->new->output;
    merged->cleans = merge->old->cleans || merge->new->cleans;
    merged->calculates = merge->old->calculates || merge->new->calculates;
    merged->queries = merge->new->queries;
    merged->notify = merge->new->notify;
    merged->whole = merge->new->whole > 0 ? merge->places[merge->new->whole - 1] + 1 : 0;
    merged->quotas = merge->new->quotas;
    merged->cancel = merge->new->cancel;
    merged->buffered = merge->new->buffered;
    merged->buffered_count = merge->new->buffered_count;
    if (merged->is_tree)
        print_node(merge, 0);
    merged->tree = merged->is_tree ? buf_keep(&merge->tree, arena) : STR_NONE;
    return !merged->is_tree || merged->tree.data;
}

/* The text of both together. */
static pawl_status merge_plans(struct scope *scope, const struct plan *old, const struct plan *new,
                               str *out)
{
    struct plan_merge merge = { .scope = scope, .old = old, .new = new };
    struct buf text;
    bool is_placed;

    buf_init(&merge.tree, scope->arena.heap, LIMIT_SCOPE);
    buf_init(&text, scope->arena.heap, LIMIT_SCOPE);
    merge.places = ARENA_ARRAY(&scope->arena, uint32_t, new->count + 1);
    is_placed = merge.places && place_all(&merge);
    if (is_placed)
        plan_print(&merge.merged, &text);
    *out = is_placed ? buf_keep(&text, &scope->arena) : STR_NONE;
    buf_fini(&text);
    buf_fini(&merge.tree);
    return out->data ? PAWL_OK : scope_no_memory(scope);
}

/* Load a plan into the arena of a memory, which outlives the scope. */
pawl_status plan_load_into(struct arena *arena, str text, struct scope *scope, struct plan **out)
{
    struct scope lasting = { .arena = *arena };
    str kept = arena_str(&lasting.arena, text);
    pawl_status status = kept.data ? plan_load(&lasting, kept, out) : PAWL_NO_MEMORY;

    *arena = lasting.arena;
    if (status != PAWL_OK)
        scope->error = lasting.error;
    return status == PAWL_NO_MEMORY ? scope_no_memory(scope) : status;
}

struct amended_step {
    struct plan *new, *merged;
    str text; /* of the merged one */
};

/* The plan that an amend brings, and what it and the old one make together. `lasting`: the arena
 * for that; NULL: the scope's. CONFLICT: the one is a tree, the other a graph. */
static pawl_status amend_load(struct scope *scope, const struct plan *old, str text,
                              struct arena *lasting, struct amended_step *out)
{
    TRY(plan_load(scope, text, &out->new));
    if (out->new->is_tree != old->is_tree)
        TRY(scope_fail(scope, PAWL_CONFLICT, "a %s cannot be moved to a %s",
                       old->is_tree ? "tree" : "graph", out->new->is_tree ? "tree" : "graph"));
    TRY(merge_plans(scope, old, out->new, &out->text));
    return lasting ? plan_load_into(lasting, out->text, scope, &out->merged)
                   : plan_load(scope, out->text, &out->merged);
}

/* ---- Where a tree stands, in the other one --------------------------------------------------- */

struct move_over {
    const struct plan *from, *to;
    const struct node_state *states; /* by node of `from` */
    struct node_state *moved;        /* by node of `to` */
    uint32_t *origin;                /* by node of `to`: + 1; 0: not open yet */
};

/* `child` is open below `to`: what `to` knows of it. False: it cannot be. */
static bool note_child(struct move_over *over, uint32_t to, uint32_t from_place, uint32_t place,
                       bool is_new)
{
    struct node_state *state = &over->moved[to];

    switch (over->to->nodes[to].kind) {
    case PLAN_DOPAR:
        state->at += is_new;
        return true;
    case PLAN_DO:
        if (state->at != UINT32_MAX && state->at != place)
            return false;
        state->at = place;
        return true;
    case PLAN_TRY:
    case PLAN_ARMS:
    case PLAN_GROUP:
        state->at = place;
        return from_place == place;
    case PLAN_LEAF:
        break;
    }
    return false;
}

static bool open_over(struct move_over *over, uint32_t from, uint32_t to)
{
    if (over->origin[to] != 0)
        return over->origin[to] == from + 1;
    over->origin[to] = from + 1;
    over->moved[to] = over->states[from];
    if (over->to->nodes[to].kind == PLAN_DOPAR)
        over->moved[to].at = 0; /* counted again */
    if (over->to->nodes[to].kind == PLAN_DO)
        over->moved[to].at = UINT32_MAX;
    return over->from->nodes[from].kind == over->to->nodes[to].kind;
}

/* From a live step up to the root: the same groups, the same part of each try. */
static bool move_step(struct move_over *over, uint32_t step)
{
    uint32_t from = over->from->steps[step].node, to = over->to->steps[step].node;
    bool is_new = over->origin[to] == 0;

    if (!open_over(over, from, to))
        return false;
    for (;;) {
        const struct plan_node *a = &over->from->nodes[from], *b = &over->to->nodes[to];
        bool is_parent_new;

        if (a->parent == NODE_NONE || b->parent == NODE_NONE)
            return a->parent == b->parent;
        is_parent_new = over->origin[b->parent] == 0;
        if (!open_over(over, a->parent, b->parent) ||
            !note_child(over, b->parent, a->place, b->place, is_new))
            return false;
        from = a->parent;
        to = b->parent;
        is_new = is_parent_new;
    }
}

/* The states of `to` where the memory stands in its own plan. STEP_NONE, or the step that has no
 * such place. *out NULL: no memory. */
static uint32_t move_states(const struct flow_memory *memory, const struct plan *to,
                            struct arena *arena, struct node_state **out)
{
    struct move_over over = { memory->plan, to, memory->nodes, NULL, NULL };

    over.moved = ARENA_ARRAY(arena, struct node_state, to->node_count + 1);
    over.origin = ARENA_ARRAY(arena, uint32_t, to->node_count + 1);
    *out = over.origin ? over.moved : NULL;
    for (uint32_t i = 0; *out && i < memory->live_count; i++)
        if (!move_step(&over, memory->live[i].plan))
            return memory->live[i].plan;
    return STEP_NONE;
}

/* ---- Deciding -------------------------------------------------------------------------------- */

static void refuse(struct turn *turn, uint32_t step, const char *why)
{
    turn_fail(turn, PAWL_CONFLICT, "the live step '%.*s' %s",
              STR_ARG(words_shown(turn->plan->steps[step].name)), why);
}

static void check_live(struct turn *turn, const struct plan *new)
{
    const struct flow_memory *memory = turn->memory;

    for (uint32_t i = 0; turn->status == PAWL_OK && i < memory->live_count; i++) {
        const struct plan_step *step = &turn->plan->steps[memory->live[i].plan];
        uint32_t found = plan_find(new, step->name);

        if (found == STEP_NONE)
            refuse(turn, memory->live[i].plan, "does not exist in the other definition");
        else if (new->steps[found].kind != step->kind)
            refuse(turn, memory->live[i].plan, "is of another kind in the other definition");
    }
    for (uint32_t i = 0; turn->status == PAWL_OK && !turn->plan->is_tree && i < turn->plan->count;
         i++)
        if (memory->joins[i] && plan_find(new, turn->plan->steps[i].name) == STEP_NONE)
            refuse(turn, i, "is being joined at and does not exist in the other definition");
}

static void check_groups(struct turn *turn, const struct plan *merged)
{
    struct node_state *states;
    uint32_t step;

    if (turn->status != PAWL_OK || !merged->is_tree)
        return;
    step = move_states(turn->memory, merged, &turn->scope->arena, &states);
    if (!states)
        turn->status = scope_no_memory(turn->scope);
    else if (step != STEP_NONE)
        refuse(turn, step, "is in other groups in the other definition");
}

/* The payload, and in it where the arms are that have moved. That of a recorded event has them
 * already, or was written by an older program, which took every arm by its place. */
static str payload_with_arms(struct turn *turn, const struct plan *merged)
{
    str payload = turn->event->payload, told = STR_NONE, moved;
    struct buf buf;

    if (turn->event->is_recorded &&
        (!payload.data || !json_member(&turn->scope->arena, payload, STR("arms"), &told)))
        return payload;
    moved = arms_move(turn, merged);
    if (turn->status == PAWL_OK && turn->event->is_recorded && !str_eq(moved, told))
        turn_fail(turn, PAWL_CONFLICT, "the arms of a live step have moved in this definition");
    if (turn->status != PAWL_OK || turn->event->is_recorded || str_eq(moved, STR("[]")))
        return payload;
    buf_init(&buf, turn->scope->arena.heap, 2 * (size_t)LIMIT_TEXT);
    buf_str(&buf, (str){ payload.data, payload.size - 1 });
    json_put_raw(&buf, "arms", moved);
    json_close(&buf, '}');
    return turn_take(turn, &buf);
}

/* Its payload says which definition, its effect which plan: a history that is read years later
 * needs nothing else. */
void decide_amend(struct turn *turn)
{
    struct amended_step amended = { 0 };
    str payload = STR_NONE;

    if (turn->memory->undoing != UNDO_NOT || turn->memory->is_cancelling) {
        turn_fail(turn, PAWL_CONFLICT,
                  "it is being cancelled or undone: nothing forward begins any more");
        return;
    }
    turn->status = amend_load(turn->scope, turn->plan, turn->event->given, NULL, &amended);
    check_live(turn, amended.new);
    check_groups(turn, amended.merged);
    if (turn->status == PAWL_OK)
        payload = payload_with_arms(turn, amended.merged);
    turn_draft(turn, LIFE_T_AMEND, NULL, payload);
    turn_cause(turn, (struct effect){ .kind = EFFECT_PLAN, .state = turn->event->given });
    if (turn->status == PAWL_OK)
        turn_keep_signals(turn, turn->plan, amended.merged);
}

/* ---- Folding --------------------------------------------------------------------------------- */

str amend_plan_text(const struct effect_list *effects)
{
    const struct effect *plan = effects_first(effects, EFFECT_PLAN);

    return plan ? plan->state : STR_NONE;
}

/* Results by the slots of the other plan. */
static bool move_results(struct flow_memory *memory, const struct plan *merged, struct arena *arena)
{
    struct kept_text *results = ARENA_ARRAY(arena, struct kept_text, merged->slot_count + 1);

    for (uint32_t i = 0; results && i < memory->plan->count; i++) {
        uint32_t from = memory->plan->steps[i].result_slot, to = merged->steps[i].result_slot;

        if (from != STEP_NONE && to != STEP_NONE)
            results[to] = memory->results[from];
    }
    memory->results = results;
    return results != NULL;
}

/* Where no step joins any more, no branch waits. */
static bool move_joins(struct flow_memory *memory, const struct plan *merged, struct arena *arena)
{
    bool *joins = ARENA_ARRAY(arena, bool, merged->is_tree ? 1 : merged->count);

    memory->join_count = 0;
    for (uint32_t i = 0; joins && !merged->is_tree && i < memory->plan->count; i++) {
        joins[i] = memory->joins[i] && plan_is_joined(merged, i);
        memory->join_count += joins[i];
    }
    memory->joins = joins;
    return joins != NULL;
}

static bool move_memory(struct flow_memory *memory, const struct plan *merged, struct arena *arena)
{
    struct node_state *states = memory->nodes;
    uint32_t *done = ARENA_ARRAY(arena, uint32_t, merged->count + 1);

    if (merged->is_tree)
        (void)move_states(memory, merged, arena, &states);
    memory->nodes = states;
    if (!done || !states || !move_results(memory, merged, arena) ||
        !move_joins(memory, merged, arena))
        return false;
    if (memory->done)
        memory->done = memcpy(done, memory->done, memory->plan->count * sizeof *done);
    memory->plan = merged;
    memory->is_amended = true;
    return item_ways_amend(memory, arena);
}

/* Where a result belongs that its step's name gives; NULL: nothing needs it, or it is there. */
static struct kept_text *missing_result(const struct flow_memory *memory, str name)
{
    uint32_t step = plan_find(memory->plan, name);
    uint32_t slot = step == STEP_NONE ? STEP_NONE : memory->plan->steps[step].result_slot;

    return slot != STEP_NONE && !kept_is_there(&memory->results[slot]) ? &memory->results[slot]
                                                                       : NULL;
}

pawl_status memory_take_results(struct flow_memory *memory, const struct node *results,
                                struct scope *scope, struct arena *arena)
{
    for (const struct node *item = results ? results->first : NULL; item; item = item->next) {
        struct kept_text *kept = missing_result(memory, item->key);

        if (kept && !memory_keep_payload(memory, kept, item->raw, 0, arena))
            return scope_no_memory(scope);
    }
    return PAWL_OK;
}

/* What the new plan asks for and the old one had forgotten: the entry says which earlier ones have
 * it. Older amends bring the results themselves. */
static pawl_status take_entries(const struct flow_memory *memory, const struct node *entries,
                                uint32_t amend_seq, struct scope *scope)
{
    for (const struct node *item = entries ? entries->first : NULL; item; item = item->next) {
        struct kept_text *kept = missing_result(memory, item->key);
        int64_t seq;

        if (!node_to_i64(item, &seq) || seq < 1 || seq >= (int64_t)amend_seq)
            return scope_fail(
                scope, PAWL_STORAGE_FAILURE,
                "an amend takes the result of '%.*s' from an entry that is not before "
                "it; verify the store",
                STR_ARG(item->key));
        if (kept)
            kept->seq = (uint32_t)seq;
    }
    return PAWL_OK;
}

pawl_status memory_amend(struct flow_memory *memory, const struct entry_view *entry,
                         struct scope *scope, struct arena *arena)
{
    str text = amend_plan_text(entry->effects);
    struct amended_step amended = { 0 };
    struct node *payload = NULL;
    pawl_status status =
        text.data ? amend_load(scope, memory->plan, text, arena, &amended) : PAWL_STORAGE_FAILURE;

    if (status == PAWL_OK && !move_memory(memory, amended.merged, arena))
        status = scope_no_memory(scope);
    if (status == PAWL_OK && entry->payload.data)
        status = node_read_own(scope, entry->payload, &payload);
    if (status != PAWL_OK)
        return status == PAWL_NO_MEMORY
                   ? status
                   : scope_fail(scope, PAWL_STORAGE_FAILURE,
                                "the plan of an amend cannot be read; verify the store");
    if (!arms_take(memory, node_find(payload, "arms")))
        return scope_fail(scope, PAWL_STORAGE_FAILURE,
                          "the arms of an amend cannot be read; verify the store");
    status = take_entries(memory, node_find(payload, "entries"), entry->seq, scope);
    return status == PAWL_OK
               ? memory_take_results(memory, node_find(payload, "results"), scope, arena)
               : status;
}

/* ---- For readers ------------------------------------------------------------------------------
 */

pawl_status flow_amended(struct scope *scope, const struct definition *definition,
                         const struct effect_list *effects, struct definition **out)
{
    struct definition *definition_now = ARENA_NEW(&scope->arena, struct definition);
    struct amended_step amended = { 0 };

    TRY(definition_now
            ? amend_load(scope, plan_of(definition), amend_plan_text(effects), NULL, &amended)
            : scope_no_memory(scope));
    *definition_now = *definition;
    definition_now->plan_text = amended.text;
    definition_now->plan = amended.merged;
    *out = definition_now;
    return PAWL_OK;
}

bool flow_wants_result(const struct definition *definition, str name)
{
    uint32_t step = plan_find(plan_of(definition), name);

    return step != STEP_NONE && plan_of(definition)->steps[step].result_slot != STEP_NONE;
}
