/* prompts.c - three prompts, and the completion of names and ids. */
#include "surface/mcp/fixtures.h"
#include "surface/mcp/mcp_int.h"

static const struct prompt {
    const char *name, *title, *description;
    const char *argument, *about; /* NULL: it takes none */
} prompts[] = {
    { "start_process", "Start a process", "Start a process of a definition, asking for its input",
      "definition", "the definition" },
    { "review_approvals", "Review what waits for me",
      "Go through the approvals that wait, and decide each", NULL, NULL },
    { "explain_process", "Explain a process",
      "Explain how a process came to where it is, and what to do about it", "process_id",
      "the id of the process" },
    { 0 },
};

pawl_status method_prompts_list(struct rpc_exchange *exchange, struct buf *result)
{
    if (node_find(exchange->params, "cursor"))
        return cursor_refuse(exchange);
    json_put_open(result, "prompts", '[');
    for (const struct prompt *prompt = prompts; prompt->name; prompt++) {
        json_open(result, '{');
        json_put_text(result, "name", prompt->name);
        json_put_text(result, "title", prompt->title);
        json_put_text(result, "description", prompt->description);
        json_put_open(result, "arguments", '[');
        if (prompt->argument) {
            json_open(result, '{');
            json_put_text(result, "name", prompt->argument);
            json_put_text(result, "description", prompt->about);
            json_put_bool(result, "required", true);
            json_close(result, '}');
        }
        json_close(result, ']');
        json_close(result, '}');
    }
    fixtures_put_prompts(exchange, result);
    json_close(result, ']');
    cache_put(exchange, result);
    return PAWL_OK;
}

/* ---- prompts/get ---- */

static void put_said(struct buf *result, str text)
{
    json_put_open(result, "messages", '[');
    json_open(result, '{');
    json_put_text(result, "role", "user");
    json_put_open(result, "content", '{');
    json_put_text(result, "type", "text");
    json_put_str(result, "text", text);
    json_close(result, '}');
    json_close(result, '}');
    json_close(result, ']');
}

static pawl_status say_start(struct rpc_exchange *exchange, str name, struct buf *words)
{
    struct definition_tool tool;

    TRY(definition_tool_read(exchange, name, &tool));
    buf_fmt(words,
            "Start a process of the definition '%.*s' with process_start. %.*s\n"
            "Its input has this schema: %.*s\n"
            "Ask me for what you do not know, start it, and then tell me its id and where it "
            "stands (process_get).",
            STR_ARG(name), STR_ARG(tool.description), STR_ARG(tool.schema));
    return PAWL_OK;
}

static pawl_status say_review(struct rpc_exchange *exchange, struct buf *words)
{
    struct node *gates;

    TRY(op_ask_node(exchange, "gate.list", MEMBERS({ "limit", STR("50") }), &gates));
    buf_fmt(words,
            "These approvals wait:\n%.*s\n"
            "Go through them one by one. For each, look at its process (process_get, "
            "process_history), tell me what it is about, and ask me whether to approve or reject "
            "it and why. Then decide it with approval_decide. Decide nothing without my answer.",
            STR_ARG(node_raw(gates, "gates")));
    return PAWL_OK;
}

static pawl_status say_explain(struct rpc_exchange *exchange, str id, struct buf *words)
{
    struct node *instance, *why, *history;

    TRY(op_ask_node(exchange, "instance.get", MEMBERS({ "instance_id", id }), &instance));
    TRY(op_ask_node(exchange, "instance.why", MEMBERS({ "instance_id", id }), &why));
    TRY(op_ask_node(exchange, "instance.history",
                    MEMBERS({ "instance_id", id }, { "limit", STR("200") }), &history));
    buf_fmt(words,
            "Explain to me, in plain words, how this process came to where it is, why it failed "
            "if it has, and what can be done now.\nThe process: %.*s\nWhat it waits for: %.*s\n"
            "Its history: %.*s",
            STR_ARG(instance->raw), STR_ARG(why->raw), STR_ARG(node_raw(history, "entries")));
    return PAWL_OK;
}

static pawl_status say(struct rpc_exchange *exchange, const struct prompt *prompt,
                       struct buf *words)
{
    str argument = STR_NONE;

    if (prompt->argument) {
        argument = node_text(node_find(exchange->params, "arguments"), prompt->argument);
        if (!argument.data)
            return rpc_fail(exchange, RPC_PARAMS, "params.arguments.%s: expected a string",
                            prompt->argument);
    }
    if (prompt == &prompts[0])
        return say_start(exchange, argument, words);
    return prompt == &prompts[1] ? say_review(exchange, words)
                                 : say_explain(exchange, argument, words);
}

pawl_status method_prompts_get(struct rpc_exchange *exchange, struct buf *result)
{
    str name = node_text(exchange->params, "name");
    const struct prompt *prompt = prompts;
    struct buf words;
    pawl_status status;
    bool is_there = false;

    TRY(fixture_prompt_get(exchange, name, result, &is_there));
    if (is_there)
        return PAWL_OK;
    while (prompt->name && !str_is(name, prompt->name))
        prompt++;
    if (!prompt->name)
        return rpc_fail(exchange, RPC_PARAMS, "Unknown prompt");
    buf_init(&words, &heap_libc, LIMIT_SCOPE);
    status = say(exchange, prompt, &words);
    if (status == PAWL_OK) {
        json_put_text(result, "description", prompt->description);
        put_said(result, buf_view(&words));
    }
    buf_fini(&words);
    return status;
}

/* ---- completion/complete ---- */

#define VALUES_MAX 100u
#define IDS_LOOKS  10u /* pages of LIMIT_LIST ids that are looked through */

struct completion {
    str begun;
    uint32_t count;
    bool has_more;
};

static void add_value(struct completion *completion, str value, struct buf *out)
{
    if (!str_starts(value, completion->begun))
        return;
    completion->has_more = completion->count == VALUES_MAX;
    if (completion->has_more)
        return;
    json_str(out, value);
    completion->count++;
}

static pawl_status complete_names(struct rpc_exchange *exchange, struct completion *completion,
                                  struct buf *out)
{
    str names[LIMIT_LIST + 1];
    uint32_t count = 0;

    TRY(definitions_list(exchange, LIMIT_LIST, names, &count));
    for (uint32_t i = 0; i < count && i < LIMIT_LIST && !completion->has_more; i++)
        add_value(completion, names[i], out);
    return PAWL_OK;
}

static pawl_status complete_ids(struct rpc_exchange *exchange, struct completion *completion,
                                struct buf *out)
{
    str after = STR_NONE;
    uint32_t looks = 0;

    do {
        struct node *page;
        pawl_status status =
            op_ask_node(exchange, "instance.list",
                        MEMBERS({ "limit", STR("1000") }, { "after", after }), &page);

        if (status == PAWL_FORBIDDEN)
            return PAWL_OK;
        TRY(status);
        for (const struct node *one = node_first(page, "instances"); one; one = one->next)
            add_value(completion, node_text(one, "instance_id"), out);
        after = node_text(page, "next");
    } while (after.data && !completion->has_more && ++looks < IDS_LOOKS);
    return PAWL_OK;
}

static bool is_known(const struct rpc_exchange *exchange, const struct node *reference)
{
    str type = node_text(reference, "type"), name = node_text(reference, "name");

    if (!str_is(type, "ref/prompt"))
        return str_is(type, "ref/resource");
    for (const struct prompt *prompt = prompts; prompt->name; prompt++)
        if (str_is(name, prompt->name))
            return true;
    return exchange->server->options.has_fixtures;
}

pawl_status method_complete(struct rpc_exchange *exchange, struct buf *result)
{
    const struct node *argument = node_find(exchange->params, "argument"),
                      *reference = node_find(exchange->params, "ref");
    str name = node_text(argument, "name");
    struct completion completion = { .begun = node_text(argument, "value") };

    if (!node_text(reference, "type").data || !name.data || !completion.begun.data)
        return rpc_fail(exchange, RPC_PARAMS, "expected params.ref.type, argument.name and .value");
    if (!is_known(exchange, reference))
        return rpc_fail(exchange, RPC_PARAMS, "params.ref: expected a prompt or a resource");
    json_put_open(result, "completion", '{');
    json_put_open(result, "values", '[');
    if (str_is(name, "definition") || str_is(name, "name"))
        TRY(complete_names(exchange, &completion, result));
    else if (str_is(name, "process_id") || str_is(name, "id"))
        TRY(complete_ids(exchange, &completion, result));
    json_close(result, ']');
    json_put_bool(result, "hasMore", completion.has_more);
    json_close(result, '}');
    return PAWL_OK;
}
