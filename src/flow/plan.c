/* plan.c - the compiled plan, printed in one canonical form. plan_load.c reads it. */
#include "flow/plan.h"

void plan_print_texts(const str *texts, uint32_t count, struct buf *out)
{
    json_open(out, '[');
    for (uint32_t i = 0; i < count; i++)
        json_str(out, texts[i]);
    json_close(out, ']');
}

/* "next":1 "join":1 "parallel":[1,2] "arms":[1,2]
 * "branch":[["result == true",1],["result == \"yes\"",2,true],...]; true: V is quoted */
static void print_way(const struct plan_step *step, struct buf *out)
{
    if (step->way == WAY_DONE || step->way == WAY_TREE)
        return;
    json_key(out, way_kind_name(step->way));
    if (step->way == WAY_NEXT || step->way == WAY_JOIN) {
        json_u64(out, step->targets[0].step);
        return;
    }
    json_open(out, '[');
    for (uint32_t i = 0; i < step->target_count; i++) {
        if (step->way != WAY_BRANCH) {
            json_u64(out, step->targets[i].step);
            continue;
        }
        json_open(out, '[');
        json_str(out, step->targets[i].condition);
        json_u64(out, step->targets[i].step);
        if (step->targets[i].is_quoted)
            json_bool(out, true);
        json_close(out, ']');
    }
    json_close(out, ']');
}

static void print_retry(const struct plan_step *step, struct buf *out)
{
    json_put_u64(out, "max", step->attempt_count_max);
    json_put_open(out, "backoff", '[');
    for (uint32_t i = 0; i < step->backoff_count; i++)
        json_i64(out, step->backoff_ms[i]);
    json_close(out, ']');
    if (step->jitter_permille > 0)
        json_put_u64(out, "jitter", step->jitter_permille);
    if (step->timeout_ms > 0)
        json_put_i64(out, "timeout", step->timeout_ms);
    json_put_bool(out, "idempotent", step->is_idempotent);
    if (step->is_once)
        json_put_bool(out, "once", true);
}

static void print_augments(const struct plan_step *step, struct buf *out)
{
    json_put_open(out, "augment", '[');
    for (uint32_t i = 0; i < step->augment_count; i++) {
        json_open(out, '[');
        json_str(out, step->augments[i].dest);
        json_str(out, step->augments[i].source);
        json_close(out, ']');
    }
    json_close(out, ']');
}

static void print_step(const struct plan_step *step, struct buf *out)
{
    json_open(out, '{');
    json_put_str(out, "name", step->name);
    if (!step->kind->is_tool)
        json_put_text(out, "kind", step->kind->word);
    if (step->tool.data)
        json_put_str(out, "tool", step->tool);
    json_put_raw(out, "args", step->args);
    print_way(step, out);
    print_retry(step, out);
    if (step->augment_count > 0)
        print_augments(step, out);
    if (step->approver_count > 0) {
        json_key(out, "by");
        plan_print_texts(step->approvers, step->approver_count, out);
    }
    if (step->approval_count > 1)
        json_put_u64(out, "count", step->approval_count);
    json_close(out, '}');
}

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

void plan_print(const struct plan *plan, struct buf *out)
{
    json_open(out, '{');
    json_put_text(out, "notation", plan->is_tree ? "tree" : "graph");
    json_put_u64(out, "first", plan->first);
    json_put_open(out, "steps", '[');
    for (uint32_t i = 0; i < plan->count; i++)
        print_step(&plan->steps[i], out);
    json_close(out, ']');
    if (plan->tree.data)
        json_put_raw(out, "tree", plan->tree);
    if (plan->output.data)
        json_put_raw(out, "output", plan->output);
    if (plan->buffered_count > 0) {
        json_key(out, "buffered");
        plan_print_texts(plan->buffered, plan->buffered_count, out);
    }
    print_cancel(plan, out);
    json_close(out, '}');
}
