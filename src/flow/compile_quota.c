/* compile_quota.c - `concurrency`, `rate` and `priority`: of a step, and of the flow. */
#include "flow/compile.h"

/* A key or a priority that could change would be counted as one thing and given back as another. */
static bool check_template(const struct source_step *step, const struct node *node, const char *what)
{
    bool is_fixed = template_is_of_input(node);

    if (!is_fixed)
        step_error(step, node, "%s may name nothing but {{input...}}, which never changes", what);
    return is_fixed;
}

static void read_max(const struct source_step *step, const struct node *quota, const char *what,
                     uint32_t most, struct plan_quota *out)
{
    const struct node *max = node_find(quota, "max");

    if (!max)
        step_error(step, quota, "%s needs 'max'", what);
    else if (!node_to_u32(max, most, &out->max) || out->max == 0)
        step_error(step, max, "%s.max must be 1..%u", what, most);
}

static void read_key(const struct source_step *step, const struct node *quota, const char *what,
                     struct plan_quota *out)
{
    const struct node *key = node_find(quota, "key");

    if (!key)
        return;
    if (key->kind != NODE_STRING || !template_has(key->text))
        step_error(step, key,
                   "%s.key must be a text with a template of the input, like "
                   "\"{{input.customer}}\"; without a key all are counted together",
                   what);
    else if (check_template(step, key, "a key"))
        out->key = key;
}

static void read_concurrency(const struct source_step *step, const struct node *quota,
                             struct plan_quota *out)
{
    if (!quota || !step_expect(step, quota, NODE_OBJECT, "{max, key}"))
        return;
    compile_keys(step->compiler, step, quota, concurrency_keys, "concurrency.");
    read_max(step, quota, "concurrency", LIMIT_AT_ONCE, out);
    read_key(step, quota, "concurrency", out);
}

static void read_rate(const struct source_step *step, const struct node *quota,
                      struct plan_quota *out)
{
    const struct node *per = node_find(quota, "per");

    if (!quota || !step_expect(step, quota, NODE_OBJECT, "{max, per, key}"))
        return;
    compile_keys(step->compiler, step, quota, rate_keys, "rate.");
    read_max(step, quota, "rate", LIMIT_RATE, out);
    read_key(step, quota, "rate", out);
    if (!per)
        step_error(step, quota, "rate needs 'per', a duration like 1m");
    else if (compile_duration(step, per, "rate.per", &out->per_ms) &&
             (out->per_ms < 1 || out->per_ms > LIMIT_RATE_MS))
        step_error(step, per, "rate.per must be more than 0 and at most a day");
}

static void read_priority(const struct source_step *step, const struct node *priority,
                          const struct node **out)
{
    int64_t number;
    bool is_number = priority && priority->kind == NODE_NUMBER && node_to_i64(priority, &number) &&
                     number >= -LIMIT_PRIORITY && number <= LIMIT_PRIORITY;
    bool is_template =
        priority && priority->kind == NODE_STRING && template_has(priority->text);

    if (!priority)
        return;
    if (!is_number && !is_template)
        step_error(step, priority,
                   "'priority' must be a number of %d..%d, or a template of the input",
                   -LIMIT_PRIORITY, LIMIT_PRIORITY);
    else if (check_template(step, priority, "a priority"))
        *out = priority;
}

static void read_all(const struct source_step *step, const struct node *node,
                     struct plan_quotas *out)
{
    read_concurrency(step, node_find(node, "concurrency"), &out->at_once);
    read_rate(step, node_find(node, "rate"), &out->rate);
    read_priority(step, node_find(node, "priority"), &out->priority);
}

void compile_quotas(struct source_step *step)
{
    if (step->node == step->compiler->leaf) /* they are the flow's */
        return;
    read_all(step, step->node, &step->plan.quotas);
    if (quotas_any(&step->plan.quotas) && !step->plan.kind->is_taken)
        step_error(step, NULL,
                   "'concurrency', 'rate' and 'priority' are for calls of a tool; a %s calls none",
                   step->plan.kind->word);
}

void compile_quotas_of_flow(struct compilation *compiler, const struct node *document)
{
    const struct source_step flow = { .compiler = compiler,
                                      .node = document,
                                      .plan.name = STR("flow") };

    read_all(&flow, document, &compiler->quotas);
}
