/* compile_saga.c - `compensate` of a step, and what `saga: true` demands of all of them. */
#include "flow/compile.h"

/* The tools of pawl itself that change nothing outside of the flow. */
static bool is_harmless(const struct plan_step *step)
{
    static const char *const tools[] = { "log", "set", "fail", "sleep", NULL };

    return step->tool.data && str_is_one_of(step->tool, tools);
}

static bool has_effect(const struct plan_step *step)
{
    return (step->kind->is_taken && !is_harmless(step)) || step->kind->is_external ||
           step->kind->may_spawn;
}

void compile_compensate(struct source_step *step)
{
    const struct node *compensate = node_find(step->node, "compensate");

    if (!compensate)
        return;
    if (step->plan.undoes != STEP_NONE)
        step_error(step, compensate, "a compensation has no compensation of its own");
    else if (compensate->kind == NODE_STRING && str_is(compensate->text, "pivot"))
        step->plan.is_pivot = true;
    else if (compensate->kind != NODE_OBJECT &&
             (compensate->kind != NODE_STRING || !str_is(compensate->text, "read-only")))
        step_error(step, compensate,
                   "'compensate' must be a step like {tool, args}, or read-only, or pivot, found %s",
                   node_kind_name(compensate->kind));
    else if (!has_effect(&step->plan))
        step_error(step, compensate, "a %s does nothing that could be undone",
                   is_harmless(&step->plan) ? "built-in tool" : step->plan.kind->word);
}

/* The compensation of the step `index`: a step of its own. It is repeated with the same key, so it
 * may be tried again also where the steps of its flow are not. */
void compile_undo(struct compilation *compiler, uint32_t index)
{
    const struct source_step *step = &compiler->steps[index];
    const struct node *compensate = node_find(step->node, "compensate");
    uint32_t of = compiler->of;
    struct buf name;

    if (!compensate || compensate->kind != NODE_OBJECT || step->plan.undoes != STEP_NONE)
        return;
    buf_init(&name, compiler->scope->arena.heap, 0);
    buf_fmt(&name, "%.*s.compensate", STR_ARG(step->plan.name));
    compiler->undoes = index;
    compiler->of = STEP_NONE;
    compile_step(compiler, compensate, STR_NONE, compile_take(compiler, &name));
    compiler->undoes = STEP_NONE;
    compiler->of = of;
}

void compile_check_undo(const struct source_step *step)
{
    if (!step->plan.kind->is_taken)
        step_error(step, NULL, "a compensation calls a tool; a %s is not possible",
                   step->plan.kind->word);
    if (step->plan.augment_count > 0)
        step_error(step, node_find(step->node, "augment"),
                   "a compensation puts nothing into the context");
}

void compile_saga(struct compilation *compiler, const struct node *document)
{
    const struct node *saga = node_find(document, "saga");

    if (!saga)
        return;
    if (saga->kind != NODE_BOOL)
        compile_error(compiler, saga, "'saga' must be true or false, found %s",
                      node_kind_name(saga->kind));
    for (uint32_t i = 0; i < compiler->count && saga->truth; i++) {
        const struct source_step *step = &compiler->steps[i];

        if (step->plan.undoes == STEP_NONE && has_effect(&step->plan) &&
            !node_find(step->node, "compensate"))
            step_error(step, NULL,
                       "a saga needs 'compensate' here: a step that undoes it, or read-only, or "
                       "pivot");
    }
}
