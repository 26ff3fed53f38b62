/* augment.c - what steps put into the context of a flow for those that follow (C24-C27). */
#include "base/planted.h"
#include "flow/flow_int.h"

/* A failure is always recorded: its entry has the error even if the context has no room for it. */
pawl_status context_note_error(struct scope *scope, struct flow_context *context, str error,
                               struct arena *arena)
{
    context->is_there = true;
    if (PLANTED(ERROR_FORGOTTEN) ||
        context_size_with(context, CONTEXT_LAST_ERROR, error, arena) > LIMIT_TEXT)
        return PAWL_OK;
    return context_put(context, CONTEXT_LAST_ERROR, error, arena) ? PAWL_OK
                                                                  : scope_no_memory(scope);
}

/* A source that the result does not have puts null: the key is there, and says so. */
pawl_status context_augment(struct scope *scope, const struct plan_step *step,
                            struct flow_context *context, str result, struct arena *arena)
{
    for (uint32_t i = 0; i < step->augment_count; i++) {
        const struct plan_augment *augment = &step->augments[i];
        str value = str_is(augment->source, "identity")
                        ? result
                        : template_walk(&scope->arena, result, augment->source);

        TRY_MEMORY(scope,
                   !scope->arena.failed && context_put(context, augment->dest,
                                                       value.data ? value : RESULT_NULL, arena));
        if (context_size(context) > LIMIT_TEXT)
            return scope_fail(scope, PAWL_TOO_LARGE, "the context is over %u bytes with '%.*s'",
                              LIMIT_TEXT, STR_ARG(augment->dest));
    }
    return PAWL_OK;
}
