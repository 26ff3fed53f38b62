/* condition_expr.c - conditions beyond the six: Lua expressions (src/expr). */
#include "base/json_scan.h"
#include "base/planted.h"
#include "flow/expr_view.h"
#include "model/words.h"

static pawl_status holds(struct view *view, const struct plan_target *target, bool *out)
{
    struct expr_world world = view_world(view);
    struct node result;

    if (!condition_is_pattern(target->condition))
        return expr_holds(view->scope, target->condition, &world, out);
    json_peek(&view->values->arena, view->text, &result);
    TRY_MEMORY(view->scope, !view->values->arena.failed);
    *out = condition_matches(target, &result);
    return PAWL_OK;
}

/* Which condition of which step cannot be told: "step 'check': condition 2, 'result > 3':
 * attempt to ...". Older versions record the words alone (compiler 3). */
static pawl_status name_condition(struct scope *scope, const struct plan_step *step,
                                  const struct plan_target *targets, uint32_t index,
                                  pawl_status status)
{
    static const char line[] = "condition:1: ", plain[] = "condition: ";
    char words[sizeof scope->error.message];
    const char *shown = words;

    memcpy(words, scope->error.message, sizeof words);
    if (strncmp(words, line, sizeof line - 1) == 0)
        shown += sizeof line - 1;
    else if (strncmp(words, plain, sizeof plain - 1) == 0)
        shown += sizeof plain - 1;
    return scope_fail(scope, status, "step '%.*s': condition %u, '%.*s': %s",
                      STR_ARG(words_shown(step->name)), index + 1,
                      STR_ARG(words_shown(targets[index].condition)), shown);
}

static pawl_status choose(struct view *view, const struct plan_step *step,
                          const struct plan_target *targets, uint32_t count, uint32_t *out)
{
    pawl_status status = PAWL_OK;
    bool does = false;

    for (uint32_t i = 0; i < count && status == PAWL_OK && (!does || PLANTED(BRANCH_LAST)); i++) {
        does = !targets[i].condition.data;
        if (!does)
            status = holds(view, &targets[i], &does);
        if (status == PAWL_OK && does)
            *out = i;
        if (status != PAWL_OK && !status_is_trouble(status) && view->source->names_conditions)
            status = name_condition(view->scope, step, targets, i, status);
    }
    return status;
}

pawl_status condition_choose(struct scope *scope, const struct template_source *source,
                             const struct plan_step *step, str result, uint32_t *out)
{
    struct scope values;
    struct view view = { .scope = scope,
                         .values = &values,
                         .source = source,
                         .text = result,
                         .open = { .kind = NODE_OBJECT } };
    pawl_status status;

    *out = STEP_NONE;
    if (step->way != WAY_BRANCH)
        return PAWL_OK;
    scope_init(&values, scope->arena.heap, LIMIT_SCOPE);
    status = choose(&view, step, step->targets, step->target_count, out);
    scope_fini(&values);
    return status;
}

pawl_status condition_first(struct scope *scope, const struct template_source *source,
                            const struct plan_step *step, const struct plan_target *targets,
                            uint32_t count, str error, uint32_t *out)
{
    struct scope values;
    struct view view = { .scope = scope,
                         .values = &values,
                         .source = source,
                         .error = error,
                         .open = { .kind = NODE_OBJECT } };
    pawl_status status;

    *out = STEP_NONE;
    scope_init(&values, scope->arena.heap, LIMIT_SCOPE);
    status = choose(&view, step, targets, count, out);
    scope_fini(&values);
    return status;
}

pawl_status condition_choose_error(struct scope *scope, const struct template_source *source,
                                   const struct plan_step *step, str error, uint32_t *out)
{
    return condition_first(scope, source, step, step->errors, step->error_count, error, out);
}
