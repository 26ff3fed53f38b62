/* work_calls.c - what a runner and a reader ask of a step, be it a flow's or the call of a code
 * instance. */
#include "code/code.h"
#include "engine/parts.h"
#include <stdio.h>

#define CALL_WATCHDOG_MS 120000 /* of a call of code, which says nothing itself */

static pawl_status call_of_code(const struct definition *definition, const void *memory,
                                uint32_t ordinal, struct scope *scope, struct flow_call *out)
{
    struct code_call call;

    TRY(code_call(definition, memory, ordinal, scope, &call));
    *out = (struct flow_call){ .step = call.name,
                               .tool = call.tool,
                               .args = call.args,
                               .attempt = call.attempt,
                               .first_ordinal = call.first_ordinal,
                               .own_key = call.key,
                               .type = code_type_name(definition),
                               .number = call.number,
                               .mark = call.mark,
                               .is_idempotent = true, /* a call that was lost is always repeated */
                               .timeout_ms = CALL_WATCHDOG_MS };
    return PAWL_OK;
}

void work_key(const struct flow_call *call, const char *id, char out[WORK_KEY_SIZE])
{
    if (call->key.data)
        (void)snprintf(out, WORK_KEY_SIZE, "%.*s", STR_ARG(call->key));
    else if (call->own_key.data)
        (void)snprintf(out, WORK_KEY_SIZE, "%s:%.*s", id, STR_ARG(call->own_key));
    else
        (void)snprintf(out, WORK_KEY_SIZE, "%s.%u", id, call->first_ordinal);
}

pawl_status work_call(const struct definition *definition, const void *memory, uint32_t ordinal,
                      struct scope *scope, struct flow_call *out)
{
    return definition->kind == KIND_CODE ? call_of_code(definition, memory, ordinal, scope, out)
                                         : flow_call(definition, memory, ordinal, scope, out);
}

str work_tool_of(const struct definition *definition, const void *memory, uint32_t ordinal)
{
    return definition->kind == KIND_CODE ? code_tool_of(definition, memory, ordinal)
                                         : flow_tool_of(definition, memory, ordinal);
}

str work_step_name(const struct definition *definition, uint32_t plan_index)
{
    return definition->kind == KIND_CODE ? code_step_name(definition, plan_index)
                                         : flow_step_name(definition, plan_index);
}

str work_step_name_now(const struct definition *definition, const void *memory, uint32_t plan_index)
{
    return definition->kind == KIND_CODE ? code_step_name_now(definition, memory, plan_index)
                                         : flow_step_name_now(memory, plan_index);
}

uint32_t work_step_count(const struct definition *definition)
{
    return definition->kind == KIND_CODE ? code_step_count(definition)
                                         : flow_step_count(definition);
}

str work_step_tool(const struct definition *definition, uint32_t plan_index)
{
    return definition->kind == KIND_CODE ? code_step_name(definition, plan_index)
                                         : flow_step_tool(definition, plan_index);
}

str work_unnamed_tool(const struct definition *definition, uint32_t plan_index)
{
    return definition->kind == KIND_FLOW ? flow_unnamed_tool(definition, plan_index) : STR_NONE;
}

const char *work_why(const struct definition *definition, uint32_t plan_index)
{
    return definition->kind == KIND_CODE ? code_step_why(definition, plan_index)
                                         : flow_step_why(definition, plan_index);
}
