/* quota.c - how many instances of a flow, or calls of a step, may work at once or begin in a time,
 * and which of those that wait is first.
 *
 * In a plan they are members of a step, or of the plan:
 *
 *   "concurrency":[5,"{{input.customer}}"],"rate":[10,60000],"priority":"{{input.urgency}}"
 *
 * the most; of a rate the span in milliseconds; and a template, those with the same value of which
 * are counted together. All of it follows from the plan and the input. So the engine can ask at any
 * time what an attempt was counted for, after a restart too, and nothing of it is recorded. */
#include "base/node.h"
#include "flow/flow_int.h"

/* ---- Text ---------------------------------------------------------------------------- */

static void print_quota(const char *word, const struct plan_quota *quota, struct buf *out)
{
    if (quota->max == 0)
        return;
    json_put_open(out, word, '[');
    json_u64(out, quota->max);
    if (quota->per_ms > 0)
        json_i64(out, quota->per_ms);
    if (quota->key)
        json_str(out, quota->key->text);
    json_close(out, ']');
}

void quotas_print(const struct plan_quotas *quotas, struct buf *out)
{
    print_quota("concurrency", &quotas->at_once, out);
    print_quota("rate", &quotas->rate, out);
    if (quotas->priority) {
        json_key(out, "priority");
        node_print(quotas->priority, out);
    }
}

static bool read_quota(const struct node *list, bool is_rate, struct plan_quota *out)
{
    const struct node *item = list ? list->first : NULL;

    if (!list)
        return true;
    if (list->kind != NODE_ARRAY || !item || !node_to_u32(item, UINT32_MAX, &out->max) || out->max == 0)
        return false;
    item = item->next;
    if (is_rate) {
        if (!item || !node_to_i64(item, &out->per_ms) || out->per_ms <= 0)
            return false;
        item = item->next;
    }
    out->key = item;
    return !item || (item->kind == NODE_STRING && !item->next);
}

bool quotas_read(const struct node *node, struct plan_quotas *quotas)
{
    *quotas = (struct plan_quotas){ .priority = node_find(node, "priority") };
    return read_quota(node_find(node, "concurrency"), false, &quotas->at_once) &&
           read_quota(node_find(node, "rate"), true, &quotas->rate);
}

bool quotas_any(const struct plan_quotas *quotas)
{
    return quotas->at_once.max || quotas->rate.max || quotas->priority;
}

/* ---- What an attempt is counted for ----------------------------------------------------- */

static pawl_status add_quota(const struct template_source *source, const struct plan_quota *quota,
                             const struct plan_step *step, struct scope *scope,
                             struct flow_quotas *out)
{
    struct flow_quota *one = &out->items[out->count];

    if (quota->max == 0)
        return PAWL_OK;
    *one = (struct flow_quota){ .max = quota->max,
                                .per_ms = quota->per_ms,
                                .is_of_flow = !step,
                                .step = step ? arena_str(&scope->arena, step->name) : STR_NONE };
    if (quota->key)
        TRY(template_expand_node(source, quota->key, scope, &one->key));
    out->count++;
    return scope->arena.failed ? scope_no_memory(scope) : PAWL_OK;
}

/* A template may bring anything; what is no number in its bounds says nothing. */
static pawl_status find_priority(const struct template_source *source, const struct node *priority,
                                 struct scope *scope, int32_t *out)
{
    struct node *value;
    int64_t number;
    str text;

    if (!priority)
        return PAWL_OK;
    TRY(template_expand_node(source, priority, scope, &text));
    TRY(node_read_json(scope, text, &value));
    if (value->kind == NODE_NUMBER && node_to_i64(value, &number))
        *out = number < -LIMIT_PRIORITY ? -LIMIT_PRIORITY
               : number > LIMIT_PRIORITY ? LIMIT_PRIORITY
                                       : (int32_t)number;
    return PAWL_OK;
}

static pawl_status find_quotas(const struct plan *plan, uint32_t index, str input,
                               struct scope *scope, struct flow_quotas *out)
{
    const struct flow_memory memory = { .plan = plan, .input = input };
    const struct template_source source = { .plan = plan, .memory = &memory };
    const struct plan_step *step = &plan->steps[index];

    *out = (struct flow_quotas){ 0 };
    TRY(add_quota(&source, &plan->quotas.at_once, NULL, scope, out));
    TRY(add_quota(&source, &step->quotas.at_once, step, scope, out));
    TRY(add_quota(&source, &plan->quotas.rate, NULL, scope, out));
    TRY(add_quota(&source, &step->quotas.rate, step, scope, out));
    return find_priority(&source, step->quotas.priority ? step->quotas.priority : plan->quotas.priority,
                         scope, &out->priority);
}

bool flow_has_quotas(const struct definition *definition, const void *memory)
{
    return definition->kind == KIND_FLOW && memory &&
           ((const struct flow_memory *)memory)->plan->has_quotas;
}

bool flow_definition_has_quotas(const struct definition *definition)
{
    return definition->kind == KIND_FLOW && plan_of(definition)->has_quotas;
}

bool flow_counts_instances(const struct definition *definition)
{
    return definition->kind == KIND_FLOW && plan_of(definition)->quotas.at_once.max > 0;
}

int64_t flow_rate_span_ms(const struct definition *definition)
{
    const struct plan *plan = definition->kind == KIND_FLOW ? plan_of(definition) : NULL;
    int64_t span_ms = plan ? plan->quotas.rate.per_ms : 0;

    for (uint32_t i = 0; plan && i < plan->count; i++)
        if (plan->steps[i].quotas.rate.per_ms > span_ms)
            span_ms = plan->steps[i].quotas.rate.per_ms;
    return span_ms;
}

pawl_status flow_quotas(const void *state, uint32_t ordinal, struct scope *scope,
                        struct flow_quotas *out)
{
    const struct flow_memory *memory = state;
    const struct attempt *attempt = memory_find(memory, ordinal);

    *out = (struct flow_quotas){ 0 };
    return attempt && memory->plan->has_quotas
               ? find_quotas(memory->plan, attempt->plan, memory->input, scope, out)
               : PAWL_OK;
}

pawl_status flow_quotas_of(const struct definition *definition, uint32_t plan_index, str input,
                           struct scope *scope, struct flow_quotas *out)
{
    const struct plan *plan = definition->kind == KIND_FLOW ? plan_of(definition) : NULL;

    *out = (struct flow_quotas){ 0 };
    return plan && plan->has_quotas && plan_index < plan->count
               ? find_quotas(plan, plan_index, input, scope, out)
               : PAWL_OK;
}
