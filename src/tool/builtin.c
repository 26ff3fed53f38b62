/* builtin.c - the tools that every toolbox has. */
#include "base/limits.h"
#include "tool/remote/mcp_servers.h"
#include "tool/tool_int.h"

/* Arguments: log. */
static const struct known_key log_arguments[] = {
    { "message", "ANYTHING", "what is logged", NULL, "required" },
    { 0 },
};

/* Arguments: fail. */
static const struct known_key fail_arguments[] = {
    { "error", "ANYTHING", "the error of the step", NULL, "\"failed\"" },
    { 0 },
};

/* Logs the message, and returns it. */
static void run_log(struct call *call)
{
    const struct toolbox_options *options = &call->toolbox->options;
    const struct node *message = node_find(call->args, log_arguments->word);
    struct arena *arena = &call->scope->arena;
    str json = message ? node_keep(message, arena) : STR_NONE;
    const char *text =
        json.data ? arena_text(arena, message->kind == NODE_STRING ? message->text : json) : NULL;

    if (!message)
        (void)call_refuse(call, "log: no 'message' in its args"); /* another try has none, either */
    else if (!text)
        call_no_memory(call);
    else
        call_result(call, json);
    if (text && options->log)
        options->log(options->log_context, PAWL_LOG_INFO, "tool.log", text);
}

/* Returns its args. */
static void run_set(struct call *call)
{
    call_result(call, str_of(call->given->args));
}

static void run_fail(struct call *call)
{
    const struct node *error = node_find(call->args, fail_arguments->word);

    if (!error) {
        call_fail(call, "failed");
        return;
    }
    call->result.json = node_keep(error, &call->scope->arena);
    call->result.failed = true;
    if (!call->result.json.data)
        call_no_memory(call);
}

static const struct builtin builtins[] = {
    { .name = "exec", .run = exec_run },
    { .name = "fail", .run = run_fail },
    { .name = "http", .run = http_run },
    { .name = "log", .run = run_log },
    { .name = "mcp.answer", .run = remote_answer_run, .is_inner = true },
    { .name = "mcp.call", .run = remote_call_run, .is_inner = true },
    { .name = "mcp.cancel", .run = remote_cancel_run, .is_inner = true },
    { .name = "mcp.keep", .run = remote_keep_run, .is_inner = true },
    { .name = "mcp.look", .run = remote_look_run, .is_inner = true },
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
