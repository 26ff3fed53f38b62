/* ops_tool.c - tool.list: what steps can call. */
#include "api/ops_int.h"
#include "engine/workers.h"
#include "tool/tool.h"

static void print_workers(const struct workers_view *workers, struct buf *out)
{
    for (uint32_t i = 0; i < workers->count; i++)
        for (uint32_t n = 0; n < workers->items[i].tool_count; n++) {
            bool is_first = true;

            for (uint32_t k = 0; k < i; k++) /* a tool of several workers is one */
                for (uint32_t m = 0; m < workers->items[k].tool_count; m++)
                    is_first = is_first && !str_eq(workers->items[k].tools[m].name,
                                                   workers->items[i].tools[n].name);
            if (is_first)
                toolbox_print_tool(workers->items[i].tools[n].name, "worker", true, out);
        }
}

pawl_status op_tool_list(struct op_call *call, struct buf *out)
{
    struct toolbox *toolbox = engine_toolbox(op_engine(call));
    struct workers_view workers;

    TRY(engine_workers(op_engine(call), call->scope, &workers));
    json_put_open(out, "tools", '[');
    toolbox_print_tools(toolbox, out);
    print_workers(&workers, out);
    json_close(out, ']');
    json_key(out, "servers");
    toolbox_print_servers(toolbox, call->scope, out);
    return out->failed ? scope_no_memory(call->scope) : PAWL_OK;
}
