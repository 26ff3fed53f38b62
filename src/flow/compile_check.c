/* compile_check.c - what can be said only when all steps are known: names, then what each kind of
 * step checks. */
#include "flow/compile.h"

static bool collect_names(struct compilation *compiler)
{
    struct arena *arena = &compiler->scope->arena;
    struct plan_name *names = ARENA_ARRAY(arena, struct plan_name, compiler->count + 1);

    compiler->keys = ARENA_ARRAY(arena, struct plan_name, compiler->count + 1);
    if (!compiler->keys || !names)
        return false;
    for (uint32_t i = 0; i < compiler->count; i++) {
        compiler->keys[i] = (struct plan_name){ compiler->steps[i].key, i };
        names[i] = (struct plan_name){ compiler->steps[i].plan.name, i };
    }
    plan_sort_names(compiler->keys, compiler->count);
    plan_sort_names(names, compiler->count);
    compiler->named = (struct plan){ .count = compiler->count, .names = names };
    for (uint32_t i = 1; i < compiler->count; i++)
        if (str_eq(names[i - 1].text, names[i].text))
            step_error(&compiler->steps[names[i].step], NULL, "another step has this name");
    return true;
}

/* The templates of limits: of the input alone, which may have a schema. */
static void check_quotas(const struct source_step *step, const struct plan_quotas *quotas)
{
    const struct node *const nodes[] = { quotas->at_once.key, quotas->rate.key, quotas->priority };

    for (size_t i = 0; i < sizeof nodes / sizeof nodes[0]; i++)
        if (nodes[i])
            compile_check_templates(step, nodes[i]);
}

void compile_check(struct compilation *compiler)
{
    const struct source_step output = {
        .compiler = compiler,
        .plan = { .name = STR("output"), .of = STEP_NONE, .undoes = STEP_NONE }
    };
    const struct source_step flow = { .compiler = compiler, .plan.name = STR("flow") };

    if (!collect_names(compiler))
        return;
    compile_link(compiler);
    compile_cancel(compiler);
    for (uint32_t i = 0; i < compiler->count; i++) {
        const struct source_step *step = &compiler->steps[i];

        if (step->plan.args_node)
            compile_check_templates(step, step->plan.args_node);
        check_quotas(step, &step->plan.quotas);
        if (step->plan.kind->check)
            step->plan.kind->check(step);
    }
    check_quotas(&flow, &compiler->quotas);
    if (compiler->output)
        compile_check_templates(&output, compiler->output);
    if (compiler->queries)
        compile_queries(compiler);
    if (compiler->notify)
        compile_notify(compiler);
    if (compiler->report.error_count == 0 && !compiler->is_tree && !compiler->scope->arena.failed)
        compile_check_ways(compiler);
}
