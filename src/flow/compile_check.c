/* compile_check.c - what can be said only when all steps are known: names, then what each kind of
 * step checks. */
#include "flow/compile.h"

struct name_check {
    struct compilation *compiler;
    struct plan_name *keys, *names; /* sorted; a graph's steps have both */
    struct plan plan;               /* as much of it as template_step() looks at */
};

static bool collect_names(struct name_check *check)
{
    struct compilation *compiler = check->compiler;
    struct arena *arena = &compiler->scope->arena;

    check->keys = ARENA_ARRAY(arena, struct plan_name, compiler->count + 1);
    check->names = ARENA_ARRAY(arena, struct plan_name, compiler->count + 1);
    if (!check->keys || !check->names)
        return false;
    for (uint32_t i = 0; i < compiler->count; i++) {
        check->keys[i] = (struct plan_name){ compiler->steps[i].key, i };
        check->names[i] = (struct plan_name){ compiler->steps[i].plan.name, i };
    }
    plan_sort_names(check->keys, compiler->count);
    plan_sort_names(check->names, compiler->count);
    check->plan = (struct plan){ .count = compiler->count, .names = check->names };
    for (uint32_t i = 1; i < compiler->count; i++)
        if (str_eq(check->names[i - 1].text, check->names[i].text))
            step_error(compiler, &compiler->steps[check->names[i].step], NULL,
                       "another step has this name");
    return true;
}

void compile_check(struct compilation *compiler)
{
    static const struct source_step output = { .plan.name = STR_INIT("output") };
    struct name_check check = { .compiler = compiler };

    if (!collect_names(&check))
        return;
    compile_link(compiler, check.keys, check.names);
    compile_cancel(compiler, check.keys, check.names);
    for (uint32_t i = 0; i < compiler->count; i++) {
        const struct source_step *step = &compiler->steps[i];

        if (step->plan.args_node)
            compile_check_templates(compiler, &check.plan, step, step->plan.args_node);
        if (step->plan.kind->check)
            step->plan.kind->check(compiler, step);
    }
    if (compiler->output)
        compile_check_templates(compiler, &check.plan, &output, compiler->output);
    if (compiler->report.error_count == 0 && !compiler->is_tree && !compiler->scope->arena.failed)
        compile_check_ways(compiler);
}
