/* tools.c - tools/list and tools/call: what manages instances, and what definitions are. */
#include "surface/mcp/fixtures.h"
#include "surface/mcp/mcp_int.h"

/* ---- Which tools ---- */

/* `name` or its group is in the list; without a list all are. */
bool tool_is_selected(const struct mcp_server *server, const char *group, str name)
{
    str list = str_of(server->options.tools), one;

    if (!list.data)
        return true;
    while (str_take(&list, ',', &one))
        if (str_is(one, group) || str_eq(one, name))
            return true;
    return false;
}

static bool names_definitions(const struct mcp_server *server)
{
    return server->options.tools != NULL;
}

/* ---- Results ---- */

void tool_result_text(struct buf *result, str text, bool is_error)
{
    json_put_open(result, "content", '[');
    json_open(result, '{');
    json_put_text(result, "type", "text");
    json_put_str(result, "text", text);
    json_close(result, '}');
    json_close(result, ']');
    json_put_bool(result, "isError", is_error);
}

/* Over HTTP a client may get itself a better token (403). */
static bool lacks_scope(const struct rpc_exchange *exchange)
{
    return exchange->lacks && exchange->transport == OVER_HTTP && exchange->who.name.data &&
           !exchange->is_stream;
}

static pawl_status refuse_scope(struct rpc_exchange *exchange)
{
    struct buf words;

    rpc_fail_as(exchange, PAWL_FORBIDDEN);
    exchange->turn->error.http = 403;
    buf_init(&words, &heap_libc, LIMIT_TEXT);
    op_problem_remote(PAWL_FORBIDDEN, exchange->turn->work.error.message, &words);
    exchange->turn->error.data = buf_take(&words, &exchange->arena);
    return PAWL_FORBIDDEN;
}

/* The token and the words, and as JSON what HTTP would answer. */
pawl_status tool_refused(struct rpc_exchange *exchange, pawl_status status, struct buf *result)
{
    char detail[OP_DETAIL_SIZE];
    struct buf words;

    if (exchange->turn->error.code || status == PAWL_NO_MEMORY)
        return status;
    if (status == PAWL_FORBIDDEN && lacks_scope(exchange))
        return refuse_scope(exchange);
    buf_init(&words, &heap_libc, LIMIT_TEXT);
    buf_fmt(&words, "%s: %s", pawl_status_name(status),
            op_detail(status, exchange->turn->work.error.message, detail));
    buf_clear(result);
    tool_result_text(result, buf_view(&words), true);
    buf_clear(&words);
    op_problem_remote(status, exchange->turn->work.error.message, &words);
    json_put_raw(&exchange->meta_out, "pawl/problem", buf_view(&words));
    buf_fini(&words);
    return PAWL_OK;
}

/* ---- tools/list ---- */

/* Of 2025-11-25 alone. */
static void put_task_support(struct rpc_exchange *exchange, enum task_mode mode, struct buf *out)
{
    static const char *const words[] = { "optional", "required", "forbidden" };

    if (exchange->version != MCP_2025_11_25)
        return;
    json_put_open(out, "execution", '{');
    json_put_text(out, "taskSupport", words[mode]);
    json_close(out, '}');
}

static void put_manage(const struct manage_tool *tool, struct buf *out)
{
    json_open(out, '{');
    json_put_text(out, "name", tool->name);
    json_put_text(out, "title", tool->title);
    json_put_text(out, "description", tool->description);
    json_put_raw(out, "inputSchema", str_of(tool->input_schema));
    json_opt_raw(out, "outputSchema", str_of(tool->output_schema));
    json_put_raw(out, "annotations", str_of(tool->annotations));
    if (strcmp(tool->name, "process_get") == 0 || strcmp(tool->name, "approval_list") == 0)
        json_put_raw(out, "_meta", STR("{\"ui\":{\"resourceUri\":\"" APP_URI "\"}}"));
    json_close(out, '}');
}

static void put_definition(struct rpc_exchange *exchange, const struct definition_tool *tool,
                           struct buf *out)
{
    char name[TOOL_NAME_MAX + 1];

    tool_name_of(tool->definition, name);
    json_open(out, '{');
    json_put_text(out, "name", name);
    json_put_str(out, "title", tool->definition);
    json_put_str(out, "description", tool->description);
    json_put_raw(out, "inputSchema", tool->schema);
    definition_output_print(tool, out);
    definition_hints_print(tool, out);
    put_task_support(exchange, tool->task, out);
    json_close(out, '}');
}

#define TOOLS_PAGE 100u

/* Where the page that a client asks for begins; a cursor is the last definition of the page
 * before. */
static pawl_status page_begin(struct rpc_exchange *exchange, const str *names, uint32_t count,
                              uint32_t *out)
{
    const struct node *cursor = node_find(exchange->params, "cursor");
    uint32_t i = 0;

    *out = 0;
    if (!cursor)
        return PAWL_OK;
    while (i < count && !(cursor->text.data && str_eq(names[i], cursor->text)))
        i++;
    *out = i + 1;
    return i < count ? PAWL_OK : cursor_refuse(exchange);
}

static bool is_offered(struct rpc_exchange *exchange, str definition)
{
    return tool_is_selected(exchange->server, "definitions", definition) &&
           op_is_allowed(exchange, "instance.create", definition);
}

/* *next: another page follows; its cursor. */
static pawl_status put_definitions(struct rpc_exchange *exchange, struct buf *out, str *next)
{
    str names[LIMIT_LIST + 1], last = STR_NONE;
    uint32_t most = names_definitions(exchange->server) ? LIMIT_LIST : TOOLS_OF_DEFINITIONS_MAX;
    uint32_t count = 0, put = 0, first;

    TRY(definitions_list(exchange, most, names, &count));
    if (count > most) /* definition_search finds them */
        count = 0;
    TRY(page_begin(exchange, names, count, &first));
    for (uint32_t i = first; i < count && !next->data; i++) {
        struct definition_tool tool;

        if (!is_offered(exchange, names[i]))
            continue;
        if (put++ == TOOLS_PAGE) {
            *next = last;
            continue;
        }
        TRY(definition_tool_read(exchange, names[i], &tool));
        put_definition(exchange, &tool, out);
        last = names[i];
    }
    return PAWL_OK;
}

void cache_put(struct rpc_exchange *exchange, struct buf *out)
{
    if (!is_modern(exchange->version))
        return;
    json_put_u64(out, "ttlMs", 0);
    json_put_text(out, "cacheScope", "private");
}

pawl_status cursor_refuse(struct rpc_exchange *exchange)
{
    return rpc_fail(exchange, RPC_PARAMS, "params.cursor: expected a nextCursor of ours");
}

static void put_managing(struct rpc_exchange *exchange, struct buf *out)
{
    for (const struct manage_tool *tool = manage_tools; tool->name; tool++)
        if (tool_is_selected(exchange->server, "manage", str_of(tool->name)) &&
            op_is_allowed(exchange, tool->operations[0], STR_NONE))
            put_manage(tool, out);
    fixtures_put_tools(exchange, out);
}

pawl_status method_tools_list(struct rpc_exchange *exchange, struct buf *result)
{
    str next = STR_NONE;

    json_put_open(result, "tools", '[');
    if (!node_find(exchange->params, "cursor"))
        put_managing(exchange, result);
    TRY(put_definitions(exchange, result, &next));
    json_close(result, ']');
    if (next.data)
        json_put_str(result, "nextCursor", next);
    cache_put(exchange, result);
    return PAWL_OK;
}

/* ---- tools/call ---- */

pawl_status method_tools_call(struct rpc_exchange *exchange, struct buf *result)
{
    str name = node_text(exchange->params, "name");
    const struct node *arguments = node_find(exchange->params, "arguments");
    const struct manage_tool *manage;
    const struct definition_tool *tool = NULL;

    if (exchange->stage > 0 && exchange->kept)
        return definition_call(exchange, result);
    if (!name.data)
        return rpc_fail(exchange, RPC_PARAMS, "params.name: expected a string");
    if (arguments && arguments->kind != NODE_OBJECT)
        return rpc_fail(exchange, RPC_PARAMS, "params.arguments: expected an object");
    if (fixture_tool_has(exchange, name))
        return fixture_tool_call(exchange, name, result);
    manage = manage_find(name);
    if (manage && tool_is_selected(exchange->server, "manage", name))
        return manage_call(exchange, manage, result);
    TRY(definition_tool_find(exchange, name, &tool));
    if (!tool)
        return rpc_fail(exchange, RPC_PARAMS, "Unknown tool: %.*s",
                        name.size > 128 ? 128 : (int)name.size, name.data);
    exchange->kept = tool;
    return definition_call(exchange, result);
}
