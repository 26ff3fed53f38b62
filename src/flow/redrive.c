/* redrive.c - an instance that failed is run again from where it failed, as a new one (X7, C38).
 *
 * What the new one is given stands in the payload of its `start`, so that its history says all:
 *   {"retry_of":ID,"begin":[STEP],"joins":[STEP],"done":[STEP],"failed":[STEP],"arms":{STEP:N},
 *    "results":{STEP:JSON},"context":{...}}
 * A graph begins at the steps that failed or were cancelled; a tree is walked as if what succeeded
 * were not there. Failures that were rescued count as what their try came to. */
#include "base/node.h"
#include "flow/flow_int.h"
#include <stdio.h>

#define CONTEXT_RETRIES STR("exec/retries")

/* ---- What the new one is given ----------------------------------------------------------------
 */

struct outcome {
    enum step_status status; /* of the step's last attempt; PENDING: there was none */
    uint32_t arm;            /* of a select that is done */
};

struct gathering {
    struct scope *scope;
    const struct plan *plan;
    const struct flow_memory *memory;
    const struct flow_attempts *attempts;
    const struct node *before; /* what it was given itself; NULL: nothing */
    struct outcome *outcomes;  /* by step */
    uint32_t begun;
    struct buf out;
};

static uint32_t arm_in(struct scope *scope, str result)
{
    struct node *document = NULL;
    int64_t arm = 0;

    if (node_read_own(scope, result, &document) != PAWL_OK ||
        !node_to_i64(node_find(document, "arm"), &arm) || arm < 0 || arm > UINT32_MAX)
        return 0;
    return (uint32_t)arm;
}

/* How steps ended in the instances before this one. */
static void take_before(struct gathering *gathering, const char *key, enum step_status status)
{
    const struct node *names = node_find(gathering->before, key);
    const struct node *arms = node_find(gathering->before, "arms");
    int64_t arm = 0;

    for (const struct node *item = names ? names->first : NULL; item; item = item->next) {
        uint32_t step = plan_find(gathering->plan, item->text);

        if (step == STEP_NONE)
            continue;
        gathering->outcomes[step].status = status;
        if (arms && node_to_i64(node_find_str(arms, item->text), &arm))
            gathering->outcomes[step].arm = (uint32_t)arm;
    }
}

static void take_attempts(struct gathering *gathering)
{
    for (uint32_t i = 0; i < gathering->attempts->count; i++) {
        const struct flow_attempt *attempt = &gathering->attempts->items[i];
        struct outcome *outcome = &gathering->outcomes[attempt->plan];

        outcome->status = attempt->status;
        if (attempt->status == STEP_DONE &&
            gathering->plan->steps[attempt->plan].kind == STEP_KIND_SELECT)
            outcome->arm = arm_in(gathering->scope, attempt->result);
    }
}

static void print_names(struct gathering *gathering, const char *key, enum step_status status)
{
    json_key(&gathering->out, key);
    json_open(&gathering->out, '[');
    for (uint32_t i = 0; i < gathering->plan->count; i++)
        if (gathering->outcomes[i].status == status)
            json_str(&gathering->out, gathering->plan->steps[i].name);
    json_close(&gathering->out, ']');
}

static void print_arms(struct gathering *gathering)
{
    json_key(&gathering->out, "arms");
    json_open(&gathering->out, '{');
    for (uint32_t i = 0; i < gathering->plan->count; i++)
        if (gathering->plan->steps[i].kind == STEP_KIND_SELECT &&
            gathering->outcomes[i].status == STEP_DONE) {
            json_key_str(&gathering->out, gathering->plan->steps[i].name);
            json_u64(&gathering->out, gathering->outcomes[i].arm);
        }
    json_close(&gathering->out, '}');
}

/* Did another attempt of the same step come after this one? */
static bool is_retried(const struct flow_attempts *attempts, uint32_t index)
{
    const struct flow_attempt *failed = &attempts->items[index];

    for (uint32_t i = index + 1; i < attempts->count; i++)
        if (attempts->items[i].plan == failed->plan &&
            attempts->items[i].attempt == failed->attempt + 1)
            return true;
    return false;
}

/* A graph: where it stood when it ended. */
static void print_begin(struct gathering *gathering)
{
    const struct flow_attempts *attempts = gathering->attempts;

    json_key(&gathering->out, "begin");
    json_open(&gathering->out, '[');
    for (uint32_t i = 0; i < attempts->count; i++) {
        enum step_status status = attempts->items[i].status;

        if (status == STEP_CANCELLED || (status == STEP_FAILED && !is_retried(attempts, i))) {
            json_str(&gathering->out, gathering->plan->steps[attempts->items[i].plan].name);
            gathering->begun++;
        }
    }
    json_close(&gathering->out, ']');
    json_key(&gathering->out, "joins");
    json_open(&gathering->out, '[');
    for (uint32_t i = 0; i < gathering->plan->count; i++)
        if (gathering->memory->joins[i])
            json_str(&gathering->out, gathering->plan->steps[i].name);
    json_close(&gathering->out, ']');
}

static void print_results(struct gathering *gathering)
{
    json_key(&gathering->out, "results");
    json_open(&gathering->out, '{');
    for (uint32_t i = 0; i < gathering->plan->count; i++) {
        uint32_t slot = gathering->plan->steps[i].result_slot;

        if (slot == STEP_NONE || !gathering->memory->results[slot].data)
            continue;
        json_key_str(&gathering->out, gathering->plan->steps[i].name);
        json_raw(&gathering->out, kept_view(&gathering->memory->results[slot]));
    }
    json_close(&gathering->out, '}');
}

/* The context goes on, and counts (C38). */
static pawl_status print_context(struct gathering *gathering)
{
    str context = memory_context(gathering->memory);
    struct node *object = NULL;
    char count[24];
    int64_t retries = 0;
    pawl_status status = node_read_own(gathering->scope, context, &object);

    if (status == PAWL_OK)
        (void)node_to_i64(node_find_str(object, CONTEXT_RETRIES), &retries);
    (void)snprintf(count, sizeof count, "%lld", (long long)retries + 1);
    if (status == PAWL_OK)
        status = context_put(gathering->scope, context, CONTEXT_RETRIES, str_of(count), &context);
    json_key(&gathering->out, "context");
    json_raw(&gathering->out, context);
    return status;
}

static pawl_status print_given(struct gathering *gathering, str retry_of)
{
    pawl_status status;

    json_open(&gathering->out, '{');
    json_key(&gathering->out, "retry_of");
    json_str(&gathering->out, retry_of);
    if (gathering->plan->is_tree) {
        print_names(gathering, "done", STEP_DONE);
        print_names(gathering, "failed", STEP_FAILED);
        print_arms(gathering);
    } else {
        print_begin(gathering);
    }
    print_results(gathering);
    status = print_context(gathering);
    json_close(&gathering->out, '}');
    return status;
}

static pawl_status fail_nothing(struct scope *scope)
{
    return scope_fail(scope, PAWL_CONFLICT,
                      "no step failed or was cancelled: there is nothing to run again");
}

/* Is something left to do? Told by the walk that the new one will take. */
static pawl_status check_given(struct gathering *gathering, str given)
{
    struct node *document = NULL;
    struct tree_redo *redo = NULL;
    pawl_status status;

    if (!gathering->plan->is_tree)
        return gathering->begun > 0 ? PAWL_OK : fail_nothing(gathering->scope);
    status = node_read_own(gathering->scope, given, &document);
    if (status == PAWL_OK)
        status = redo_read(gathering->scope, gathering->plan, document, &redo);
    if (status == PAWL_OK && redo->outcomes[0] == REDO_DONE)
        return fail_nothing(gathering->scope);
    return status;
}

pawl_status flow_redrive(struct scope *scope, const void *state,
                         const struct flow_attempts *attempts, str retry_of, str before, str *out)
{
    const struct flow_memory *memory = state;
    struct gathering gathering = {
        .scope = scope, .plan = memory->plan, .memory = memory, .attempts = attempts
    };
    struct node *document = NULL;
    pawl_status status = PAWL_OK;
    str given;

    if (before.data)
        status = node_read_own(scope, before, &document);
    gathering.before = document;
    gathering.outcomes = ARENA_ARRAY(&scope->arena, struct outcome, memory->plan->count + 1);
    if (!gathering.outcomes || status != PAWL_OK)
        return status == PAWL_OK ? scope_no_memory(scope) : status;
    take_before(&gathering, "done", STEP_DONE);
    take_before(&gathering, "failed", STEP_FAILED);
    take_attempts(&gathering);
    buf_init(&gathering.out, scope->arena.heap, LIMIT_TEXT);
    status = print_given(&gathering, retry_of);
    if (status == PAWL_OK && gathering.out.failed)
        status = scope_fail(scope, PAWL_TOO_LARGE, "its results and its context are over %u bytes",
                            LIMIT_TEXT);
    given = status == PAWL_OK ? buf_keep(&gathering.out, &scope->arena) : STR_NONE;
    buf_fini(&gathering.out);
    if (status == PAWL_OK)
        status = given.data ? check_given(&gathering, given) : scope_no_memory(scope);
    if (status == PAWL_OK)
        *out = given;
    return status;
}

/* ---- Where it begins
 * ----------------------------------------------------------------------------- */

static enum redo_outcome of_body(const struct plan *plan, const struct plan_node *node,
                                 const uint8_t *outcomes)
{
    enum redo_outcome forms = outcomes[node->children[TRY_FORMS]];
    uint32_t rescue = node->children[TRY_RESCUE];

    return forms == REDO_FAILED && !plan->nodes[rescue].is_empty ? outcomes[rescue] : forms;
}

static enum redo_outcome of_try(const struct plan *plan, const struct plan_node *node,
                                const uint8_t *outcomes)
{
    enum redo_outcome body = of_body(plan, node, outcomes);
    enum redo_outcome finally = outcomes[node->children[TRY_FINALLY]];

    if (body == REDO_DONE)
        return finally;
    return finally == REDO_FAILED ? REDO_FAILED : body;
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
        uint32_t step = item->kind == NODE_STRING ? plan_find(plan, item->text) : STEP_NONE;

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

    if (!redo)
        return scope_no_memory(scope);
    redo->outcomes = ARENA_ARRAY(&scope->arena, uint8_t, plan->node_count + 1);
    redo->arms = ARENA_ARRAY(&scope->arena, uint32_t, plan->node_count + 1);
    if (!redo->outcomes || !redo->arms)
        return scope_no_memory(scope);
    for (uint32_t i = 0; i < plan->node_count; i++)
        redo->arms[i] = NODE_NONE;
    mark(plan, node_find(given, "done"), REDO_DONE, redo);
    mark(plan, node_find(given, "failed"), REDO_FAILED, redo);
    mark_arms(plan, node_find(given, "arms"), redo);
    find_outcomes(plan, redo);
    *out = redo;
    return PAWL_OK;
}

pawl_status memory_begin(struct flow_memory *memory, const struct node *given, struct scope *scope,
                         struct arena *arena)
{
    const struct node *context = node_find(given, "context"), *joins = node_find(given, "joins");

    if (context && !memory_keep(&memory->context, context->raw, arena))
        return scope_no_memory(scope);
    for (const struct node *item = joins ? joins->first : NULL; item; item = item->next) {
        uint32_t step = item->kind == NODE_STRING ? plan_find(memory->plan, item->text) : STEP_NONE;

        if (step == STEP_NONE || memory->plan->is_tree || memory->joins[step])
            continue;
        memory->joins[step] = true;
        memory->join_count++;
    }
    return memory_take_results(memory, node_find(given, "results"), scope, arena);
}

/* ---- Deciding
 * ------------------------------------------------------------------------------------ */

static void begin_graph(struct turn *turn, const struct node *given)
{
    const struct node *begin = node_find(given, "begin");

    for (const struct node *item = begin ? begin->first : NULL; item; item = item->next) {
        uint32_t step = item->kind == NODE_STRING ? plan_find(turn->plan, item->text) : STEP_NONE;

        if (step != STEP_NONE)
            begin_step(turn, step);
    }
}

/* The memory has nothing yet: what was given is put into one of this decision's own, for the
 * templates of steps that begin at once. */
void decide_restart(struct turn *turn)
{
    struct arena *arena = &turn->scope->arena;
    struct flow_memory *begun = memory_of_plan(turn->plan, turn->memory->input, arena);
    struct tree_redo *redo = NULL;
    struct node *given = NULL;

    turn->status = begun ? node_read_own(turn->scope, turn->event->given, &given)
                         : scope_no_memory(turn->scope);
    if (turn->status == PAWL_OK)
        turn->status = memory_begin(begun, given, turn->scope, arena);
    if (turn->status == PAWL_OK && turn->plan->is_tree)
        turn->status = redo_read(turn->scope, turn->plan, given, &redo);
    if (turn->status != PAWL_OK)
        return;
    turn->memory = begun;
    turn_draft(turn, LIFE_T_START, NULL, turn->event->given);
    if (redo)
        flow_begin(turn, redo);
    else
        begin_graph(turn, given);
    if (turn->status == PAWL_OK && turn->begun_count == 0 && !turn->is_finished)
        turn->status = fail_nothing(turn->scope);
}
