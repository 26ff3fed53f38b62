/* redrive.c - where an instance begins that runs another one again (X7, C38).
 *
 * What it is given stands in the payload of its `start` (given.c), so that its history says all. A
 * graph begins at the steps that failed or were cancelled; a tree is walked as if what succeeded
 * were not there. Failures that were rescued count as what their try came to. */
#include "base/node.h"
#include "flow/flow_int.h"

/* ---- Its form ------------------------------------------------------------------------------- */

static bool is_name(const struct node *item)
{
    return item->kind == NODE_STRING;
}

/* [STEP,RESULT] */
static bool is_result(const struct node *item)
{
    return item->kind == NODE_ARRAY && item->count == 2 && item->first->kind == NODE_STRING;
}

/* [STEP,KEY] */
static bool is_key(const struct node *item)
{
    return is_result(item) && item->first->next->kind == NODE_STRING;
}

/* [STEP,[[INDEX,RESULT],...]] */
static bool is_map(const struct node *item)
{
    return is_result(item) && item->first->next->kind == NODE_ARRAY;
}

static const struct given_member {
    const char *name;
    enum node_kind kind;
    bool (*is_item)(const struct node *item); /* NULL: any */
} given_members[] = {
    { "begin", NODE_ARRAY, is_name },  { "after", NODE_ARRAY, is_result },
    { "joins", NODE_ARRAY, is_name },  { "done", NODE_ARRAY, is_name },
    { "failed", NODE_ARRAY, is_name }, { "arms", NODE_OBJECT, NULL },
    { "keys", NODE_ARRAY, is_key },    { "results", NODE_OBJECT, NULL },
    { "context", NODE_OBJECT, NULL },  { "maps", NODE_ARRAY, is_map },
};

static bool has_form(const struct node *found, const struct given_member *member)
{
    bool is_right = !found || found->kind == member->kind;

    for (const struct node *item = found && member->is_item && is_right ? found->first : NULL;
         item && is_right; item = item->next)
        is_right = member->is_item(item);
    return is_right;
}

pawl_status given_read(struct scope *scope, str text, struct node **out)
{
    TRY(node_read_own(scope, text, out));
    for (size_t i = 0; i < sizeof given_members / sizeof *given_members; i++)
        if (!has_form(node_find(*out, given_members[i].name), &given_members[i]))
            return scope_fail(scope, PAWL_STORAGE_FAILURE,
                              "the payload of a `start` that runs another instance again cannot be "
                              "read (`%s` has another form); verify the store",
                              given_members[i].name);
    return PAWL_OK;
}

/* ---- Where it begins ------------------------------------------------------------------------ */

static enum redo_outcome of_try(const struct plan *plan, const struct plan_node *node,
                                const uint8_t *outcomes)
{
    uint32_t rescue = node->children[TRY_RESCUE];
    enum redo_outcome body = outcomes[node->children[TRY_FORMS]];
    enum redo_outcome finally = outcomes[node->children[TRY_FINALLY]];

    if (body == REDO_FAILED && !plan->nodes[rescue].is_empty)
        body = outcomes[rescue];
    return body == REDO_DONE || finally == REDO_FAILED ? finally : body;
}

static enum redo_outcome of_children(const struct plan_node *node, const uint8_t *outcomes)
{
    enum redo_outcome all = REDO_DONE;

    for (uint32_t i = 0; i < node->child_count; i++) {
        enum redo_outcome child = outcomes[node->children[i]];

        if (child == REDO_FAILED)
            return REDO_FAILED;
        all = child == REDO_OPEN ? REDO_OPEN : all;
    }
    return all;
}

/* Children come after their parents: from the last node to the first. */
static void find_outcomes(const struct plan *plan, struct tree_redo *redo)
{
    for (uint32_t i = plan->node_count; i-- > 0;) {
        const struct plan_node *node = &plan->nodes[i];

        if (node->is_empty)
            redo->outcomes[i] = REDO_DONE;
        else if (node->kind == PLAN_GROUP)
            redo->outcomes[i] = redo->outcomes[node->children[0]];
        else if (node->kind == PLAN_TRY)
            redo->outcomes[i] = (uint8_t)of_try(plan, node, redo->outcomes);
        else if (node->kind == PLAN_ARMS && redo->arms[i] < node->child_count)
            redo->outcomes[i] = redo->outcomes[node->children[redo->arms[i]]];
        else if (node->kind == PLAN_DO || node->kind == PLAN_DOPAR)
            redo->outcomes[i] = (uint8_t)of_children(node, redo->outcomes);
    }
}

static void mark(const struct plan *plan, const struct node *names, enum redo_outcome outcome,
                 struct tree_redo *redo)
{
    for (const struct node *item = names ? names->first : NULL; item; item = item->next) {
        uint32_t step = plan_find(plan, item->text);

        if (step != STEP_NONE && plan->steps[step].node != NODE_NONE)
            redo->outcomes[plan->steps[step].node] = (uint8_t)outcome;
    }
}

static void mark_arms(const struct plan *plan, const struct node *arms, struct tree_redo *redo)
{
    for (const struct node *item = arms ? arms->first : NULL; item; item = item->next) {
        uint32_t step = plan_find(plan, item->key);
        int64_t arm;

        if (step != STEP_NONE && plan->steps[step].node != NODE_NONE && node_to_i64(item, &arm) &&
            arm >= 0 && arm < plan->nodes[plan->steps[step].node].child_count)
            redo->arms[plan->steps[step].node] = (uint32_t)arm;
    }
}

pawl_status redo_read(struct scope *scope, const struct plan *plan, const struct node *given,
                      struct tree_redo **out)
{
    struct tree_redo *redo = ARENA_NEW(&scope->arena, struct tree_redo);

    TRY_MEMORY(scope, redo);
    redo->outcomes = ARENA_ARRAY(&scope->arena, uint8_t, plan->node_count + 1);
    redo->arms = ARENA_ARRAY(&scope->arena, uint32_t, plan->node_count + 1);
    TRY_MEMORY(scope, redo->outcomes && redo->arms);
    for (uint32_t i = 0; i < plan->node_count; i++)
        redo->arms[i] = NODE_NONE;
    mark(plan, node_find(given, "done"), REDO_DONE, redo);
    mark(plan, node_find(given, "failed"), REDO_FAILED, redo);
    mark_arms(plan, node_find(given, "arms"), redo);
    find_outcomes(plan, redo);
    *out = redo;
    return PAWL_OK;
}

pawl_status redo_fail_nothing(struct scope *scope)
{
    return scope_fail(scope, PAWL_CONFLICT,
                      "no step failed or was cancelled: there is nothing to run again");
}

pawl_status memory_begin(struct flow_memory *memory, const struct node *given, struct scope *scope,
                         struct arena *arena)
{
    const struct node *context = node_find(given, "context"), *joins = node_find(given, "joins");

    TRY_MEMORY(scope, !context || context_load(memory->context, context->raw, arena));
    for (const struct node *item = joins ? joins->first : NULL; item; item = item->next) {
        uint32_t step = plan_find(memory->plan, item->text);

        if (!plan_is_joined(memory->plan, step) || memory->joins[step])
            continue;
        memory->joins[step] = true;
        memory->join_count++;
    }
    for (const struct node *item = node_first(given, "keys"); item; item = item->next) {
        struct given_key key = { plan_find(memory->plan, item->first->text),
                                 item->first->next->text };

        TRY_MEMORY(scope, key.plan == STEP_NONE || memory_add_key(memory, &key, arena));
    }
    for (const struct node *item = node_first(given, "maps"); item; item = item->next) {
        struct given_map map = { plan_find(memory->plan, item->first->text),
                                 item->first->next->raw };

        TRY_MEMORY(scope, map.plan == STEP_NONE || memory_add_given_map(memory, &map, arena));
    }
    return memory_take_results(memory, node_find(given, "results"), scope, arena);
}

/* ---- Deciding
 * ------------------------------------------------------------------------------------ */

static void begin_graph(struct turn *turn, const struct node *given)
{
    for (const struct node *item = node_first(given, "begin"); item; item = item->next) {
        uint32_t step = plan_find(turn->plan, item->text);

        if (step != STEP_NONE)
            begin_step(turn, step);
    }
}

/* Steps that are done, whose results choose again where to go on. */
static void go_on_after(struct turn *turn, const struct node *given)
{
    const struct node *after = node_find(given, "after");

    for (const struct node *item = after ? after->first : NULL; item; item = item->next) {
        uint32_t step = plan_find(turn->plan, item->first->text);

        if (step != STEP_NONE && turn->status == PAWL_OK && !turn->is_finished)
            flow_go_on(turn, step, item->first->next->raw);
    }
    if (after && after->first && turn->begun_count == 0 && !turn->is_finished &&
        turn->status == PAWL_OK)
        turn_fail(turn, PAWL_CONFLICT,
                  "the result of step '%.*s' leads nowhere by this definition either; name "
                  "the step to begin at (from)",
                  STR_ARG(after->first->first->text));
}

/* The instance that is run again, where readers find it. Starts that tell no keys are older. */
static void note_redriven(struct turn *turn, const struct node *given)
{
    const struct node *id = node_find(given, "retry_of");

    if (node_find(given, "keys") && id && id->kind == NODE_STRING)
        turn_cause(turn, (struct effect){ .kind = EFFECT_REDRIVE, .name = id->text });
}

/* The memory has nothing yet: what was given is put into one of this decision's own, for the
 * templates of steps that begin at once. */
void decide_restart(struct turn *turn)
{
    struct arena *arena = &turn->scope->arena;
    struct flow_memory *begun = memory_of_plan(turn->plan, turn->memory->input, arena);
    struct tree_redo *redo = NULL;
    struct node *given = NULL;

    turn->status = begun ? given_read(turn->scope, turn->event->given, &given)
                         : scope_no_memory(turn->scope);
    if (turn->status == PAWL_OK)
        turn->status = memory_begin(begun, given, turn->scope, arena);
    if (turn->status == PAWL_OK && turn->plan->is_tree)
        turn->status = redo_read(turn->scope, turn->plan, given, &redo);
    if (turn->status != PAWL_OK)
        return;
    turn->memory = begun;
    turn_draft(turn, LIFE_T_START, NULL, turn->event->given);
    turn_keep_signals(turn, NULL, turn->plan);
    note_redriven(turn, given);
    if (redo)
        flow_begin(turn, redo);
    else
        begin_graph(turn, given);
    go_on_after(turn, given);
    if (turn->begun_count > 0 && !turn->is_finished)
        flow_begin_whole(turn);
    if (turn->status == PAWL_OK && turn->begun_count == 0 && !turn->is_finished)
        turn->status = redo_fail_nothing(turn->scope);
}
