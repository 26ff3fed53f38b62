/* builtin.c - the tools that every toolbox has. */
#include "base/limits.h"
#include "tool/tool_int.h"

static str print_node(struct call *call, const struct node *node)
{
    struct buf buf;
    str text;

    buf_init(&buf, call->scope->arena.heap, 0);
    node_print(node, &buf);
    text = buf_take(&buf, &call->scope->arena);
    if (!text.data)
        call->status = scope_no_memory(call->scope);
    return text;
}

/* log {message}: tells the host, and returns the message. */
static void run_log(struct call *call)
{
    const struct toolbox_options *options = &call->toolbox->options;
    const struct node *message = node_find(call->args, "message");
    str json = message ? print_node(call, message) : STR_NONE;
    const char *text;

    if (!message) {
        call_fail(call, "log: no 'message' in its args");
        return;
    }
    if (!json.data)
        return;
    text = arena_text(&call->scope->arena, message->kind == NODE_STRING ? message->text : json);
    if (!text) {
        call->status = scope_no_memory(call->scope);
        return;
    }
    if (options->log)
        options->log(options->log_context, PAWL_LOG_INFO, "tool.log", text);
    call_result(call, json);
}

/* set {...}: returns its args. */
static void run_set(struct call *call)
{
    call_result(call, str_of(call->given->args));
}

/* fail {error}: fails with it. */
static void run_fail(struct call *call)
{
    const struct node *error = node_find(call->args, "error");

    if (!error) {
        call_fail(call, "failed");
        return;
    }
    call->result.json = print_node(call, error);
    call->result.failed = true;
}

static const struct builtin builtins[] = {
    { .name = "exec", .run = exec_run },
    { .name = "fail", .run = run_fail },
    { .name = "http", .run = http_run },
    { .name = "log", .run = run_log },
    { .name = "set", .run = run_set, .takes_any = true },
};

#define BUILTIN_COUNT (sizeof builtins / sizeof builtins[0])

const struct builtin *builtin_at(size_t index)
{
    return index < BUILTIN_COUNT ? &builtins[index] : NULL;
}

const struct builtin *builtin_find(str name)
{
    for (size_t i = 0; i < BUILTIN_COUNT; i++)
        if (str_is(name, builtins[i].name))
            return &builtins[i];
    return NULL;
}
