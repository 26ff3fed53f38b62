/* plan_text.c - the plan as text, in one canonical form. Each part is printed and read side by
 * side.
 *
 * JSON without white space, members in this order; those that say nothing are left out, and new
 * ones go to the end:
 *
 *   {"notation":"graph","first":0,"steps":[{"name":"search","kind":"wait","tool":"log",
 *    "args":{...},"next":1,"max":3,"backoff":[30000,120000,300000],"jitter":100,"timeout":120000,
 *    "idempotent":true,"once":true,"augment":[["dest","source"]],"by":["ann"],"count":2,
 *    "on_error":[["error == \"timeout\"",2],3],"on":["timeout"],"never":["declined"],
 *    "of":4,"undoes":2,"pivot":true,"concurrency":[5,"{{input.to}}"],"rate":[10,1000],"priority":3,
 *    "worker":60000,"then":5}],
 *    "tree":["do",0,["dopar",1,2]],"output":{...},"buffered":[NAME],"cancel":false,
 *    "concurrency":[1,"{{input.to}}"],"rate":[10,1000],"priority":"{{input.priority}}",
 *    "calculates":true,"queries":{NAME:EXPRESSION},
 *    "notify":{"definition":NAME,"on":[WORD],"input":{...}},"cleans":true,"whole":7}
 *
 * `kind` is the word of a row of kinds.h; tool is left out. The way on is one of `next`, `join` (an
 * index), `parallel`, `arms` (indices) and `branch` (pairs of condition and index, with `true`
 * where the condition compares with the text between its quotes: compiler 3); without one the step
 * is the last, or its tree knows. `on_error` lists where a step leads that fails for good: pairs of
 * condition and index, or an index alone, which is taken always. `args` has everything that a step
 * needs when it begins: a wait's are {"arms":[{"timer":"30s"},{"signal":"paid"}]}. `buffered` lists
 * the signals that are kept until a step awaits them. `cancel` is false, or the indices of the
 * steps during which the flow cannot be cancelled. `calculates`: {{= ... }} in its templates is an
 * expression. The members of limits are described in quota.c. `cleans`: its `finally` also runs
 * when it is cancelled. `whole`: the step whose row has the time of a whole graph; the `then` of a
 * step of a map is the one that follows it for the same item.
 *
 * Defaults (X8): a graph's steps have max 3, 30 s / 120 s / 300 s and are idempotent; a tree's
 * leaves have max 1 and are not. A step that waits is not tried again unless its `retry` says
 * so. */
#include "base/node.h"
#include "flow/flow_int.h"

/* ---- Values -------------------------------------------------------------------------- */

static bool read_text(const struct node *node, str *out)
{
    if (!node || node->kind != NODE_STRING)
        return false;
    *out = node->text;
    return true;
}

void plan_print_texts(const str *texts, uint32_t count, struct buf *out)
{
    json_open(out, '[');
    for (uint32_t i = 0; i < count; i++)
        json_str(out, texts[i]);
    json_close(out, ']');
}

static bool read_texts(struct scope *scope, const struct node *list, str **out, uint32_t *count)
{
    if (!list)
        return true;
    *out = ARENA_ARRAY(&scope->arena, str, list->count + 1);
    for (const struct node *item = list->first; item && *out; item = item->next)
        if (!read_text(item, &(*out)[(*count)++]))
            return false;
    return *out != NULL;
}

/* ---- Lists of a step ------------------------------------------------------------------- */

static void print_backoff(const struct plan_step *step, struct buf *out)
{
    json_put_open(out, "backoff", '[');
    for (uint32_t i = 0; i < step->backoff_count; i++)
        json_i64(out, step->backoff_ms[i]);
    json_close(out, ']');
}

static bool read_backoff(struct scope *scope, const struct node *list, struct plan_step *step)
{
    if (!list || list->kind != NODE_ARRAY)
        return false;
    step->backoff_ms = ARENA_ARRAY(&scope->arena, int64_t, list->count + 1);
    for (const struct node *item = list->first; item && step->backoff_ms; item = item->next)
        if (!node_to_i64(item, &step->backoff_ms[step->backoff_count++]))
            return false;
    return step->backoff_ms != NULL;
}

static void print_augments(const struct plan_step *step, struct buf *out)
{
    if (step->augment_count == 0)
        return;
    json_put_open(out, "augment", '[');
    for (uint32_t i = 0; i < step->augment_count; i++) {
        const str pair[] = { step->augments[i].dest, step->augments[i].source };

        plan_print_texts(pair, 2, out);
    }
    json_close(out, ']');
}

static bool read_augments(struct scope *scope, const struct node *list, struct plan_step *step)
{
    if (!list)
        return true;
    step->augments = ARENA_ARRAY(&scope->arena, struct plan_augment, list->count + 1);
    for (const struct node *pair = list->first; pair && step->augments; pair = pair->next) {
        struct plan_augment *augment = &step->augments[step->augment_count++];

        if (pair->count != 2 || !read_text(pair->first, &augment->dest) ||
            !read_text(pair->first->next, &augment->source))
            return false;
    }
    return step->augments != NULL;
}

/* ---- The way on ------------------------------------------------------------------------- */

static void print_target(enum way_kind way, const struct plan_target *target, struct buf *out)
{
    if (way != WAY_BRANCH) {
        json_u64(out, target->step);
        return;
    }
    json_open(out, '[');
    json_str(out, target->condition);
    json_u64(out, target->step);
    if (target->is_quoted)
        json_bool(out, true);
    json_close(out, ']');
}

static bool has_one_target(enum way_kind way)
{
    return way == WAY_NEXT || way == WAY_JOIN;
}

/* "next":1 "join":1 "parallel":[1,2] "arms":[1,2]
 * "branch":[["result == true",1],["result == \"yes\"",2,true],...]; true: V is quoted */
static void print_way(const struct plan_step *step, struct buf *out)
{
    if (step->way == WAY_DONE || step->way == WAY_TREE)
        return;
    json_key(out, way_kind_name(step->way));
    if (!has_one_target(step->way))
        json_open(out, '[');
    for (uint32_t i = 0; i < step->target_count; i++)
        print_target(step->way, &step->targets[i], out);
    if (!has_one_target(step->way))
        json_close(out, ']');
}

static bool read_target(const struct plan *plan, enum way_kind way, const struct node *node,
                        struct plan_target *out)
{
    if (way == WAY_BRANCH) {
        if (node->kind != NODE_ARRAY || node->count < 2 || node->count > 3 ||
            !read_text(node->first, &out->condition))
            return false;
        out->is_quoted = node->count == 3;
        if (out->is_quoted && !condition_is_quoted(out->condition))
            return false;
        node = node->first->next;
    }
    return node_to_u32(node, plan->count - 1, &out->step);
}

static bool read_way(struct scope *scope, const struct plan *plan, const struct node *node,
                     struct plan_step *step)
{
    const struct node *way = NULL;

    step->way = plan->is_tree ? WAY_TREE : WAY_DONE;
    for (enum way_kind kind = WAY_NEXT; kind < WAY_TREE && !way; kind++) {
        way = node_find(node, way_kind_name(kind));
        if (way)
            step->way = kind;
    }
    if (!way)
        return true;
    step->targets = ARENA_ARRAY(&scope->arena, struct plan_target, way->count + 1);
    if (!step->targets)
        return false;
    if (has_one_target(step->way))
        return read_target(plan, step->way, way, &step->targets[step->target_count++]);
    for (const struct node *item = way->first; item; item = item->next)
        if (!read_target(plan, step->way, item, &step->targets[step->target_count++]))
            return false;
    return way->kind == NODE_ARRAY;
}

/* ---- Where an error leads ----------------------------------------------------------------- */

static void print_errors(const struct plan_step *step, struct buf *out)
{
    if (step->error_count == 0)
        return;
    json_put_open(out, "on_error", '[');
    for (uint32_t i = 0; i < step->error_count; i++)
        print_target(step->errors[i].condition.data ? WAY_BRANCH : WAY_NEXT, &step->errors[i], out);
    json_close(out, ']');
}

static bool read_errors(struct scope *scope, const struct plan *plan, const struct node *list,
                        struct plan_step *step)
{
    if (!list)
        return true;
    step->errors = ARENA_ARRAY(&scope->arena, struct plan_target, list->count + 1);
    for (const struct node *item = list->first; item && step->errors; item = item->next)
        if (!read_target(plan, item->kind == NODE_ARRAY ? WAY_BRANCH : WAY_NEXT, item,
                         &step->errors[step->error_count++]))
            return false;
    return step->errors && list->kind == NODE_ARRAY && !plan->is_tree;
}

/* ---- Steps --------------------------------------------------------------------------------- */

/* Of errors that are tried again, or are not. */
static void print_kinds(const str *kinds, uint32_t count, const char *key, struct buf *out)
{
    if (count == 0)
        return;
    json_key(out, key);
    plan_print_texts(kinds, count, out);
}

static void print_step(const struct plan_step *step, struct buf *out)
{
    json_open(out, '{');
    json_put_str(out, "name", step->name);
    if (!step->kind->is_tool)
        json_put_text(out, "kind", step->kind->word);
    json_opt_str(out, "tool", step->tool);
    json_put_raw(out, "args", step->args);
    print_way(step, out);
    json_put_u64(out, "max", step->attempt_count_max);
    print_backoff(step, out);
    json_opt_u64(out, "jitter", step->jitter_permille);
    if (step->timeout_ms > 0)
        json_put_i64(out, "timeout", step->timeout_ms);
    json_put_bool(out, "idempotent", step->is_idempotent);
    if (step->is_once)
        json_put_bool(out, "once", true);
    print_augments(step, out);
    if (step->approver_count > 0) {
        json_key(out, "by");
        plan_print_texts(step->approvers, step->approver_count, out);
    }
    if (step->approval_count > 1)
        json_put_u64(out, "count", step->approval_count);
    print_errors(step, out);
    print_kinds(step->retry_on, step->retry_on_count, "on", out);
    print_kinds(step->retry_never, step->retry_never_count, "never", out);
    if (step->of != STEP_NONE)
        json_put_u64(out, "of", step->of);
    if (step->undoes != STEP_NONE)
        json_put_u64(out, "undoes", step->undoes);
    if (step->is_pivot)
        json_put_bool(out, "pivot", true);
    quotas_print(&step->quotas, out);
    if (step->worker_ms > 0)
        json_put_i64(out, "worker", step->worker_ms);
    if (step->after != STEP_NONE)
        json_put_u64(out, "then", step->after);
    json_close(out, '}');
}

static bool read_optional(const struct node *node, struct plan_step *step)
{
    const struct node *worker = node_find(node, "worker");
    const struct node *timeout = node_find(node, "timeout"), *jitter = node_find(node, "jitter");
    const struct node *tool = node_find(node, "tool"), *count = node_find(node, "count");
    const struct node *of = node_find(node, "of"), *undoes = node_find(node, "undoes");
    const struct node *pivot = node_find(node, "pivot"), *after = node_find(node, "then");

    step->is_pivot = pivot && pivot->truth;
    return quotas_read(node, &step->quotas) &&
           (!undoes || node_to_u32(undoes, LIMIT_STEPS, &step->undoes)) &&
           (!of || node_to_u32(of, LIMIT_STEPS, &step->of)) &&
           (!after || node_to_u32(after, LIMIT_STEPS, &step->after)) &&
           (!timeout || node_to_i64(timeout, &step->timeout_ms)) &&
           (!worker || node_to_i64(worker, &step->worker_ms)) &&
           (!jitter || node_to_u32(jitter, 1000, &step->jitter_permille)) &&
           (!tool || read_text(tool, &step->tool)) &&
           (!count || node_to_u32(count, LIMIT_STEPS, &step->approval_count));
}

static bool read_step(struct scope *scope, const struct plan *plan, const struct node *node,
                      struct plan_step *step)
{
    const struct node *idempotent = node_find(node, "idempotent");
    const struct node *once = node_find(node, "once"), *kind = node_find(node, "kind");

    *step = (struct plan_step){ .result_slot = STEP_NONE,
                                .node = NODE_NONE,
                                .of = STEP_NONE,
                                .after = STEP_NONE,
                                .undo = STEP_NONE,
                                .undoes = STEP_NONE,
                                .body = STEP_NONE,
                                .approval_count = 1 };
    step->args_node = node_find(node, "args");
    if (!step->args_node || !read_optional(node, step))
        return false;
    step->kind = step_kind_find(kind ? kind->text : STR("tool"), step->tool);
    if (!step->kind || (step->args_node->kind != NODE_OBJECT && step->kind->has_own_args))
        return false;
    step->args = step->args_node->raw;
    step->is_idempotent = idempotent && idempotent->truth;
    step->is_once = once && once->truth;
    return read_text(node_find(node, "name"), &step->name) && read_way(scope, plan, node, step) &&
           node_to_u32(node_find(node, "max"), LIMIT_ATTEMPTS, &step->attempt_count_max) &&
           read_backoff(scope, node_find(node, "backoff"), step) &&
           read_augments(scope, node_find(node, "augment"), step) &&
           read_errors(scope, plan, node_find(node, "on_error"), step) &&
           read_texts(scope, node_find(node, "on"), &step->retry_on, &step->retry_on_count) &&
           read_texts(scope, node_find(node, "never"), &step->retry_never,
                      &step->retry_never_count) &&
           read_texts(scope, node_find(node, "by"), &step->approvers, &step->approver_count);
}

/* Compensations, and the steps that they undo. */
static bool find_undos(struct plan *plan)
{
    for (uint32_t i = 0; i < plan->count; i++) {
        uint32_t undoes = plan->steps[i].undoes;

        if (undoes == STEP_NONE)
            continue;
        if (undoes >= plan->count || undoes == i)
            return false;
        plan->steps[undoes].undo = i;
        plan->has_undo = true;
    }
    return true;
}

/* Which steps are done after another one for the same item. False: it is not a plan. */
static bool find_after(const struct plan *plan, bool *is_after)
{
    for (uint32_t i = 0; i < plan->count; i++) {
        uint32_t after = plan->steps[i].after, of = plan->steps[i].of;

        if (after == STEP_NONE)
            continue;
        if (of == STEP_NONE || after >= plan->count || plan->steps[after].of != of ||
            is_after[after])
            return false;
        is_after[after] = true;
    }
    return true;
}

/* Each map has a first step for its items, from which one comes to all others of it. */
static bool find_bodies(struct scope *scope, struct plan *plan)
{
    bool *is_after = ARENA_ARRAY(&scope->arena, bool, plan->count + 1);
    uint32_t left = 0;

    if (!is_after || !find_after(plan, is_after))
        return false;
    for (uint32_t i = 0; i < plan->count; i++) {
        uint32_t of = plan->steps[i].of;

        if (of == STEP_NONE || plan->steps[i].kind->is_gone)
            continue;
        if (of >= plan->count || of == i || (!is_after[i] && plan->steps[of].body != STEP_NONE))
            return false;
        left++;
        if (!is_after[i])
            plan->steps[of].body = i;
    }
    for (uint32_t i = 0; i < plan->count; i++) {
        if (plan->steps[i].kind->body && plan->steps[i].body == STEP_NONE)
            return false;
        for (uint32_t at = plan->steps[i].body; at != STEP_NONE; at = plan->steps[at].after)
            left--;
    }
    return left == 0;
}

static bool read_steps(struct scope *scope, const struct node *list, struct plan *plan)
{
    uint32_t index = 0;

    if (!list || list->kind != NODE_ARRAY || (list->count == 0 && !plan->is_tree))
        return false;
    plan->count = list->count;
    plan->steps = ARENA_ARRAY(&scope->arena, struct plan_step, plan->count + 1);
    for (const struct node *item = list->first; item && plan->steps; item = item->next)
        if (!read_step(scope, plan, item, &plan->steps[index++]))
            return false;
    return plan->steps && find_bodies(scope, plan) && find_undos(plan);
}

/* ---- The plan ------------------------------------------------------------------------------- */

/* "cancel":false "cancel":[1,2] */
static void print_cancel(const struct plan *plan, struct buf *out)
{
    if (plan->cancel == CANCEL_ALWAYS)
        return;
    json_key(out, "cancel");
    if (plan->cancel == CANCEL_NEVER) {
        json_bool(out, false);
        return;
    }
    json_open(out, '[');
    for (uint32_t i = 0; i < plan->count; i++)
        if (plan->steps[i].bars_cancel)
            json_u64(out, i);
    json_close(out, ']');
}

/* `cancel` is absent, false, or the list of steps that bar it. */
static bool read_cancel(const struct node *rule, struct plan *plan)
{
    uint32_t step;

    if (!rule)
        return true;
    if (rule->kind == NODE_BOOL) {
        plan->cancel = CANCEL_NEVER;
        return !rule->truth;
    }
    plan->cancel = CANCEL_NOT_FROM;
    for (const struct node *item = rule->first; item; item = item->next) {
        if (plan->count == 0 || !node_to_u32(item, plan->count - 1, &step))
            return false;
        plan->steps[step].bars_cancel = true;
    }
    return rule->kind == NODE_ARRAY;
}

void plan_print(const struct plan *plan, struct buf *out)
{
    json_open(out, '{');
    json_put_text(out, "notation", plan->is_tree ? "tree" : "graph");
    json_put_u64(out, "first", plan->first);
    json_put_open(out, "steps", '[');
    for (uint32_t i = 0; i < plan->count; i++)
        print_step(&plan->steps[i], out);
    json_close(out, ']');
    json_opt_raw(out, "tree", plan->tree);
    json_opt_raw(out, "output", plan->output);
    if (plan->buffered_count > 0) {
        json_key(out, "buffered");
        plan_print_texts(plan->buffered, plan->buffered_count, out);
    }
    print_cancel(plan, out);
    if (plan->calculates)
        json_put_bool(out, "calculates", true);
    if (plan->queries) {
        json_key(out, "queries");
        node_print(plan->queries, out);
    }
    if (plan->notify) {
        json_key(out, "notify");
        node_print(plan->notify, out);
    }
    quotas_print(&plan->quotas, out);
    if (plan->cleans)
        json_put_bool(out, "cleans", true);
    if (plan->whole > 0)
        json_put_u64(out, "whole", plan->whole - 1);
    json_close(out, '}');
}

static bool read_whole(const struct node *whole, struct plan *plan)
{
    if (whole && (plan->count == 0 || !node_to_u32(whole, plan->count - 1, &plan->whole)))
        return false;
    plan->whole += whole != NULL;
    return !whole || !plan->is_tree;
}

bool plan_read(struct scope *scope, const struct node *document, struct plan *plan)
{
    const struct node *tree = node_find(document, "tree");
    const struct node *calculates = node_find(document, "calculates");
    const struct node *cleans = node_find(document, "cleans");
    const struct node *whole = node_find(document, "whole");
    str notation;

    if (!read_text(node_find(document, "notation"), &notation))
        return false;
    plan->is_tree = str_is(notation, "tree");
    plan->calculates = calculates && calculates->truth;
    plan->queries = node_find(document, "queries");
    plan->notify = node_find(document, "notify");
    plan->cleans = cleans && cleans->truth;
    plan->output_node = node_find(document, "output");
    plan->output = plan->output_node ? plan->output_node->raw : STR_NONE;
    plan->tree = tree ? tree->raw : STR_NONE;
    return read_texts(scope, node_find(document, "buffered"), &plan->buffered,
                      &plan->buffered_count) &&
           read_steps(scope, node_find(document, "steps"), plan) &&
           read_cancel(node_find(document, "cancel"), plan) &&
           quotas_read(document, &plan->quotas) && read_whole(whole, plan) &&
           (plan->is_tree
                ? plan_load_tree(scope, tree, plan)
                : node_to_u32(node_find(document, "first"), plan->count - 1, &plan->first));
}
