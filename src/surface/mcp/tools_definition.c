/* tools_definition.c - each published definition is a tool: calling it starts an instance. */
#include "base/sha.h"
#include "base/time.h"
#include "surface/mcp/mcp_int.h"

/* ---- Names ---- */

/* `team/order` is `team.order`. A name that is too long, or that a tool of ours has, ends in a part
 * of its hash. */
void tool_name_of(str definition, char out[TOOL_NAME_MAX + 1])
{
    bool is_cut = definition.size > TOOL_NAME_MAX || manage_find(definition);
    size_t size =
        is_cut && definition.size > TOOL_NAME_MAX - 9 ? TOOL_NAME_MAX - 9 : definition.size;

    for (size_t i = 0; i < size; i++)
        out[i] = definition.data[i] == '/' ? '.' : definition.data[i];
    out[size] = 0;
    if (is_cut) {
        uint64_t hash = str_hash(definition);

        out[size] = '-';
        sha_hex((const uint8_t *)&hash, 4, out + size + 1);
    }
}

/* ---- Reading ---- */

static pawl_status keep(struct rpc_exchange *exchange, str *text)
{
    if (text->data)
        *text = arena_str(&exchange->arena, *text);
    return PAWL_OK;
}

/* The schema of the arguments is that of the input, which is an object. An input of another type is
 * an argument of its own. */
static pawl_status print_schema(struct rpc_exchange *exchange, struct definition_tool *tool)
{
    const struct node *type = node_find(tool->input, "type");
    struct buf out;

    tool->is_wrapped = type && !str_is(type->text, "object");
    buf_init(&out, &heap_libc, LIMIT_SCOPE);
    buf_str(&out, STR("{\"type\":\"object\""));
    if (tool->is_wrapped) {
        json_put_open(&out, "properties", '{');
        json_key(&out, "input");
        node_print(tool->input, &out);
        json_close(&out, '}');
        buf_str(&out, STR(",\"required\":[\"input\"]"));
    } else {
        for (const struct node *one = tool->input ? tool->input->first : NULL; one; one = one->next)
            if (!str_is(one->key, "type")) {
                json_key_str(&out, one->key);
                node_print(one, &out);
            }
    }
    buf_byte(&out, '}');
    tool->schema = buf_take(&out, &exchange->arena);
    TRY_MEMORY(&exchange->turn->work, tool->schema.data);
    return PAWL_OK;
}

static void read_mode(const struct node *mcp, struct definition_tool *tool)
{
    str task = node_text(mcp, "task"), wait = node_text(mcp, "sync_wait");

    tool->task = tool->is_machine ? TASK_NEVER : TASK_AUTO;
    if (str_is(task, "required"))
        tool->task = TASK_REQUIRED;
    else if (str_is(task, "never"))
        tool->task = TASK_NEVER;
    else if (str_is(task, "auto"))
        tool->task = TASK_AUTO;
    tool->sync_wait_ms = SYNC_WAIT_MS;
    if (wait.data)
        duration_parse(wait, &tool->sync_wait_ms);
}

static pawl_status describe(struct rpc_exchange *exchange, const struct node *text,
                            struct definition_tool *tool)
{
    const struct node *mcp = node_find(text, "mcp");
    struct buf words;

    tool->description = node_text(mcp, "description");
    if (!tool->description.data)
        tool->description = node_text(text, "description");
    if (tool->description.data)
        return keep(exchange, &tool->description);
    buf_init(&words, &heap_libc, LIMIT_TEXT);
    buf_fmt(&words, "Start the %s %.*s.", tool->is_machine ? "machine" : "flow",
            STR_ARG(tool->definition));
    tool->description = buf_take(&words, &exchange->arena);
    TRY_MEMORY(&exchange->turn->work, tool->description.data);
    return PAWL_OK;
}

/* What the author wrote is read here; what it means is compiled elsewhere. */
pawl_status definition_tool_at(struct rpc_exchange *exchange, str definition, str version,
                               struct definition_tool *out)
{
    struct node *answer, *text = NULL;
    str kind, source;

    *out = (struct definition_tool){ .definition = arena_str(&exchange->arena, definition) };
    TRY_MEMORY(&exchange->turn->work, out->definition.data);
    TRY(op_ask_node(exchange, "definition.get",
                    MEMBERS({ "name", definition }, { "version", version }), &answer));
    kind = node_text(answer, "kind");
    out->is_machine = str_is(kind, "machine");
    if (!str_is(kind, "code")) { /* its text is that of its registration */
        source = arena_str(&exchange->arena, node_text(answer, "text"));
        TRY_MEMORY(&exchange->turn->work, source.data);
        TRY(exchange_read(exchange, node_read, source, &text));
        out->input = node_find(text, "input");
    }
    out->mcp = node_find(text, "mcp");
    out->kept_ms = -1;
    if (node_find(node_find(text, "retention"), "after_end"))
        duration_parse(node_text(node_find(text, "retention"), "after_end"), &out->kept_ms);
    out->reaches_out = str_is(kind, "code") || steps_reach_out(node_find(text, "steps")) ||
                       steps_reach_out(node_find(text, "do")) ||
                       steps_reach_out(node_find(text, "transitions"));
    read_mode(out->mcp, out);
    TRY(describe(exchange, text, out));
    return print_schema(exchange, out);
}

pawl_status definition_tool_read(struct rpc_exchange *exchange, str definition,
                                 struct definition_tool *out)
{
    return definition_tool_at(exchange, definition, STR_NONE, out);
}

/* ---- Finding ---- */

/* Of a token for some definitions only, those that it names. */
static pawl_status list_named(struct rpc_exchange *exchange, uint32_t most, str *names,
                              uint32_t *count)
{
    str list = exchange->who.scopes, one;

    while (str_take(&list, ',', &one) && *count <= most) {
        str name = str_after(one, ':');
        bool is_new = name.size > 0;

        for (uint32_t i = 0; i < *count; i++)
            is_new &= !str_eq(names[i], name);
        if (is_new && str_is(str_before(one, ':'), "read"))
            names[(*count)++] = name;
    }
    return PAWL_OK;
}

pawl_status definitions_list(struct rpc_exchange *exchange, uint32_t most, str *names,
                             uint32_t *count)
{
    struct node *page;
    str after = STR_NONE;

    *count = 0;
    do {
        pawl_status status =
            op_ask_node(exchange, "definition.list",
                        MEMBERS({ "limit", STR("1000") }, { "after", after }), &page);

        if (status == PAWL_FORBIDDEN)
            return list_named(exchange, most, names, count);
        TRY(status);
        for (const struct node *one = node_first(page, "definitions"); one && *count <= most;
             one = one->next)
            if (!str_is(node_text(one, "name"), "pawl.validation")) /* validation_start starts it */
                names[(*count)++] = node_text(one, "name");
        after = node_text(page, "next");
    } while (after.data && *count <= most);
    return PAWL_OK;
}

/* By the tool's name, where that is not the definition's. */
static pawl_status find_by_tool(struct rpc_exchange *exchange, str tool_name, str *out)
{
    str names[LIMIT_LIST + 1];
    uint32_t count = 0;

    *out = STR_NONE;
    TRY(definitions_list(exchange, LIMIT_LIST, names, &count));
    for (uint32_t i = 0; i < count && i < LIMIT_LIST && !out->data; i++) {
        char name[TOOL_NAME_MAX + 1];

        tool_name_of(names[i], name);
        if (str_is(tool_name, name))
            *out = names[i];
    }
    return PAWL_OK;
}

static bool is_absent(pawl_status status)
{
    return status == PAWL_NOT_KNOWN || status == PAWL_FORBIDDEN || status == PAWL_INVALID_REQUEST ||
           status == PAWL_INVALID_QUERY;
}

pawl_status definition_tool_find(struct rpc_exchange *exchange, str tool_name,
                                 const struct definition_tool **out)
{
    struct definition_tool *tool = ARENA_NEW(&exchange->arena, struct definition_tool);
    pawl_status status;
    str name;

    TRY_MEMORY(&exchange->turn->work, tool);
    *out = NULL;
    if (!tool_is_selected(exchange->server, "definitions", tool_name))
        return PAWL_OK;
    status = definition_tool_read(exchange, tool_name, tool);
    if (is_absent(status)) {
        TRY(find_by_tool(exchange, tool_name, &name));
        if (!name.data)
            return PAWL_OK;
        status = definition_tool_read(exchange, name, tool);
    }
    if (is_absent(status))
        return PAWL_OK;
    TRY(status);
    *out = tool;
    return PAWL_OK;
}

/* ---- What is missing is asked for ---- */

static bool is_simple(const struct node *schema)
{
    static const char *const types[] = { "string", "number", "integer", "boolean", NULL };

    return str_is_one_of(node_text(schema, "type"), types);
}

/* Members that the schema requires and the arguments lack; false: none, or not all of them can be
 * asked for in a form. */
static bool print_missing(const struct definition_tool *tool, const struct node *arguments,
                          struct buf *properties, struct buf *required)
{
    const struct node *known = node_find(tool->input, "properties");

    for (const struct node *one = node_first(tool->input, "required"); one; one = one->next) {
        const struct node *schema = node_find_str(known, one->text);

        if (node_find_str(arguments, one->text))
            continue;
        if (!is_simple(schema))
            return false;
        json_key_str(properties, one->text);
        node_print(schema, properties);
        json_str(required, one->text);
    }
    return properties->size > 1;
}

static void print_question(const struct definition_tool *tool, const struct buf *properties,
                           const struct buf *required, struct buf *result)
{
    struct buf words;

    buf_init(&words, &heap_libc, LIMIT_TEXT);
    buf_fmt(&words, "What %.*s needs to start", STR_ARG(tool->definition));
    buf_str(result, STR("\"inputRequests\":{\"input\":{\"method\":\"elicitation/create\","
                        "\"params\":{\"mode\":\"form\",\"message\":"));
    json_str(result, buf_view(&words));
    buf_str(result, STR(",\"requestedSchema\":{\"type\":\"object\",\"properties\":"));
    buf_str(result, buf_view(properties));
    buf_str(result, STR("},\"required\":"));
    buf_str(result, buf_view(required));
    buf_str(result, STR("}}}}"));
    buf_fini(&words);
}

/* True: the answer is a question. */
static bool asks_for_missing(struct rpc_exchange *exchange, const struct definition_tool *tool,
                             const struct node *arguments, struct buf *result)
{
    struct buf properties, required;
    bool asks;

    if (!is_modern(exchange->version) || !exchange->caps.form || !tool->input || tool->is_wrapped)
        return false;
    buf_init(&properties, &heap_libc, LIMIT_TEXT);
    buf_init(&required, &heap_libc, LIMIT_TEXT);
    json_open(&properties, '{');
    json_open(&required, '[');
    asks = print_missing(tool, arguments, &properties, &required);
    json_close(&required, ']');
    if (asks) {
        exchange->result_type = "input_required";
        print_question(tool, &properties, &required, result);
    }
    buf_fini(&properties);
    buf_fini(&required);
    return asks;
}

/* The arguments, with what the client has answered. */
static pawl_status read_arguments(struct rpc_exchange *exchange, struct node **out)
{
    const struct node *given = node_find(exchange->params, "arguments");
    const struct node *answer = node_find(node_find(exchange->params, "inputResponses"), "input");
    struct node **link, *more;

    TRY(node_read_json(&exchange->turn->work, given ? given->raw : STR("{}"), out));
    if (!str_is(node_text(answer, "action"), "accept") || !node_raw(answer, "content").data)
        return PAWL_OK;
    TRY(node_read_json(&exchange->turn->work, node_raw(answer, "content"), &more));
    (*out)->raw = STR_NONE; /* it is printed from its members */
    for (link = &(*out)->first; *link; link = &(*link)->next)
        ;
    for (struct node *one = more->first, *next; one; one = next) {
        next = one->next;
        one->next = NULL;
        if (node_find_str(*out, one->key))
            continue;
        *link = one;
        link = &one->next;
        (*out)->count++;
    }
    return PAWL_OK;
}

/* ---- Calling ---- */

static bool wants_task(const struct rpc_exchange *exchange, const struct definition_tool *tool)
{
    if (is_modern(exchange->version))
        return exchange->caps.tasks && tool->task != TASK_NEVER;
    return exchange->version == MCP_2025_11_25 && node_find(exchange->params, "task");
}

static pawl_status check_mode(struct rpc_exchange *exchange, const struct definition_tool *tool)
{
    bool is_task = wants_task(exchange, tool);

    if (tool->task == TASK_REQUIRED && !is_task) {
        if (is_modern(exchange->version))
            return rpc_need(exchange, "{\"extensions\":{\"" TASKS_WORD "\":{}}}");
        return rpc_fail(exchange, RPC_METHOD, "%.*s can only be called as a task",
                        STR_ARG(tool->definition));
    }
    if (tool->task == TASK_NEVER && is_task)
        return rpc_fail(exchange, RPC_METHOD, "%.*s cannot be called as a task",
                        STR_ARG(tool->definition));
    return PAWL_OK;
}

static pawl_status create(struct rpc_exchange *exchange, const struct definition_tool *tool,
                          const struct node *arguments)
{
    const struct node *input = tool->is_wrapped ? node_find(arguments, "input") : arguments;
    struct node *answer;
    struct buf text;
    pawl_status status;
    str json;

    buf_init(&text, &heap_libc, LIMIT_SCOPE);
    if (input)
        node_print(input, &text);
    json = buf_take(&text, &exchange->turn->work.arena);
    status = op_ask_node(exchange, "instance.create",
                         MEMBERS({ "definition", tool->definition },
                                 { "input", .json = json.size > 0 ? json : STR_NONE },
                                 { "subject_ref", node_text(exchange->meta, "pawl/subjectRef") }),
                         &answer);
    if (status == PAWL_OK)
        exchange_watch(exchange, node_text(answer, "instance_id"));
    return status;
}

/* ---- Gates, for a client of the modern era without tasks ---- */

/* The state that the client sends back is the id of the process. It opens nothing: whatever is done
 * with it is checked as for any id that this caller sends. So it needs no key, and holds after a
 * restart. */
static void ask_about_gates(struct rpc_exchange *exchange, const struct task_view *view,
                            struct buf *result)
{
    exchange->result_type = "input_required";
    gates_print(exchange, view, result);
    json_put_str(result, "requestState", view->id);
}

static pawl_status take_responses(struct rpc_exchange *exchange, const struct task_view *view)
{
    const struct node *responses = node_find(exchange->params, "inputResponses");

    for (const struct node *one = view->waiting ? view->waiting->first : NULL; one;
         one = one->next) {
        str key = node_text(one, "step_id");

        if (key.data && gate_is_for(exchange, one) && node_find_str(responses, key))
            TRY(gate_decide(exchange, key, node_find_str(responses, key)));
    }
    return PAWL_OK;
}

/* The process is under way. Without tasks its caller waits a while for its end, and otherwise gets
 * a handle; a process that waits for a caller does not end by waiting. */
static pawl_status follow(struct rpc_exchange *exchange, struct buf *result)
{
    struct task_view view;
    struct buf words;
    int64_t entries = 0;

    TRY(task_read(exchange, str_of(exchange->instance), &view));
    if (view.has_ended && view.error)
        return task_error(exchange, &view);
    if (view.has_ended) {
        task_result(exchange, &view, result);
        return PAWL_OK;
    }
    if (is_modern(exchange->version) && view.status == TASK_INPUT) {
        ask_about_gates(exchange, &view, result);
        return PAWL_OK;
    }
    if (!is_modern(exchange->version))
        TRY(gate_ask(exchange, &view));
    if (exchange_is_late(exchange) ||
        (task_is_stuck(&view) && !exchange->asked && !exchange->waits)) {
        task_handle(exchange, &view, result);
        return PAWL_OK;
    }
    buf_init(&words, &heap_libc, LIMIT_TEXT);
    task_message(&view, &words);
    node_to_i64(node_find(view.instance, "next_sequence_number"), &entries);
    exchange_progress(exchange, (uint64_t)entries, 0, buf_view(&words));
    buf_fini(&words);
    if (!exchange->waits)
        exchange_wait(exchange, exchange->give_up_ms - tick_ms(exchange->server) + 1);
    return PAWL_OK;
}

/* The call goes on with the process that it began. */
static pawl_status resume(struct rpc_exchange *exchange, const struct definition_tool *tool,
                          const struct node *state, struct buf *result)
{
    struct task_view view;

    if (state->kind != NODE_STRING || task_read(exchange, state->text, &view) != PAWL_OK ||
        !str_eq(node_text(view.instance, "definition"), tool->definition))
        return rpc_fail(exchange, RPC_PARAMS, "params.requestState: not a state of this tool");
    exchange_watch(exchange, state->text);
    TRY(take_responses(exchange, &view));
    exchange->stage = 1;
    exchange->give_up_ms = tick_ms(exchange->server) + tool->sync_wait_ms;
    return follow(exchange, result);
}

static pawl_status begin(struct rpc_exchange *exchange, const struct definition_tool *tool,
                         struct buf *result)
{
    const struct node *state = node_find(exchange->params, "requestState");
    struct node *arguments;
    struct task_view view;
    pawl_status status;

    TRY(check_mode(exchange, tool));
    if (is_modern(exchange->version) && state)
        return resume(exchange, tool, state, result);
    TRY(read_arguments(exchange, &arguments));
    if (asks_for_missing(exchange, tool, arguments, result))
        return PAWL_OK;
    status = create(exchange, tool, arguments);
    if (status != PAWL_OK)
        return tool_refused(exchange, status, result);
    if (wants_task(exchange, tool)) {
        TRY(task_read(exchange, str_of(exchange->instance), &view));
        return task_created(exchange, &view, result);
    }
    exchange->stage = 1;
    exchange->give_up_ms = tick_ms(exchange->server) + tool->sync_wait_ms;
    return follow(exchange, result);
}

pawl_status definition_call(struct rpc_exchange *exchange, struct buf *result)
{
    return exchange->stage == 0 ? begin(exchange, exchange->kept, result)
                                : follow(exchange, result);
}
