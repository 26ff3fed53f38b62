/* methods.c - the table of methods, and those that are about the server itself. */
#include "surface/mcp/mcp_int.h"

const struct mcp_method mcp_methods[] = {
    { "server/discover", OF_MODERN, method_server_discover, .is_quick = true },
    { "initialize", OF_LEGACY, method_initialize },
    { "ping", OF_LEGACY, method_ping, .is_quick = true },
    { "logging/setLevel", OF_LEGACY, method_set_level },
    { "tools/list", ALL_ERAS, method_tools_list },
    { "tools/call", ALL_ERAS, method_tools_call, .header = "name" },
    { "tasks/get", ALL_ERAS, method_tasks_get, true, "taskId", MCP_2025_11_25, true },
    { "tasks/update", OF_MODERN, method_tasks_update, true, "taskId" },
    { "tasks/cancel", ALL_ERAS, method_tasks_cancel, true, "taskId", MCP_2025_11_25 },
    { "tasks/result", OF_LEGACY, method_tasks_result, .since = MCP_2025_11_25 },
    { "tasks/list", OF_LEGACY, method_tasks_list, .since = MCP_2025_11_25 },
    { "resources/list", ALL_ERAS, method_resources_list },
    { "resources/templates/list", ALL_ERAS, method_templates_list },
    { "resources/read", ALL_ERAS, method_resources_read, .header = "uri" },
    { "resources/subscribe", OF_LEGACY, method_subscribe },
    { "resources/unsubscribe", OF_LEGACY, method_unsubscribe },
    { "prompts/list", ALL_ERAS, method_prompts_list },
    { "prompts/get", ALL_ERAS, method_prompts_get, .header = "name" },
    { "completion/complete", ALL_ERAS, method_complete },
    { "subscriptions/listen", OF_MODERN, method_listen },
    { 0 },
};
const struct mcp_method stream_method = { "stream", OF_LEGACY, method_stream };

const struct mcp_method *method_find(str name)
{
    for (const struct mcp_method *method = mcp_methods; method->name; method++)
        if (str_is(name, method->name))
            return method;
    return NULL;
}

/* What outlives the request that it came with. */
pawl_status caller_keep(struct rpc_exchange *exchange, const struct op_principal *who)
{
    struct arena *arena = &exchange->arena;

    exchange->who =
        (struct op_principal){ arena_str(arena, who->name), arena_str(arena, who->scopes),
                               arena_str(arena, who->actor) };
    if (who->name.data)
        TRY_MEMORY(&exchange->turn->work, exchange->who.name.data && exchange->who.scopes.data);
    return PAWL_OK;
}

#define INSTRUCTIONS                                                                               \
    "pawl runs durable processes. Each definition is a tool that starts a process; a process "     \
    "survives crashes, and its id is a task id. process_get tells where a process stands and "     \
    "which actions are legal now, process_why what it waits for, approval_list what people have "  \
    "to decide. definition_search finds definitions."

static void put_lists(struct buf *out)
{
    buf_str(out, STR("\"tools\":{\"listChanged\":true},\"prompts\":{\"listChanged\":true},"
                     "\"resources\":{\"subscribe\":true,\"listChanged\":true},\"completions\":{}"));
}

pawl_status method_server_discover(struct rpc_exchange *exchange, struct buf *result)
{
    json_put_open(result, "supportedVersions", '[');
    json_text(result, mcp_version_words[MCP_2026_07_28]);
    json_close(result, ']');
    json_put_open(result, "capabilities", '{');
    put_lists(result);
    json_put_open(result, "extensions", '{');
    buf_str(result, STR("\"" TASKS_WORD "\":{},\"" UI_WORD "\":{}"));
    json_close(result, '}');
    json_close(result, '}');
    json_put_text(result, "instructions", INSTRUCTIONS);
    cache_put(exchange, result);
    return PAWL_OK;
}

/* ---- Legacy ---- */

static pawl_status begin_session(struct rpc_exchange *exchange, enum mcp_version version)
{
    bool is_listed = exchange->transport == OVER_HTTP;

    if (!exchange->session)
        exchange->session = session_new(exchange->server, &exchange->who, is_listed);
    TRY_MEMORY(&exchange->turn->work, exchange->session);
    exchange->session->version = version;
    caps_read(node_find(exchange->params, "capabilities"), &exchange->session->caps);
    return PAWL_OK;
}

/* A version that we do not speak is answered with the newest that begins so. */
pawl_status method_initialize(struct rpc_exchange *exchange, struct buf *result)
{
    enum mcp_version version = MCP_LEGACY_NEWEST;
    str asked = node_text(exchange->params, "protocolVersion");

    if (!asked.data)
        return rpc_fail(exchange, RPC_PARAMS, "params.protocolVersion: expected a string");
    if (!version_find(asked, &version) || is_modern(version) ||
        (version < MCP_2025_03_26 && exchange->transport == OVER_HTTP))
        version = MCP_LEGACY_NEWEST;
    TRY(begin_session(exchange, version));
    json_put_text(result, "protocolVersion", mcp_version_words[version]);
    json_put_open(result, "capabilities", '{');
    put_lists(result);
    buf_str(result, STR(",\"logging\":{}"));
    if (version == MCP_2025_11_25)
        buf_str(result, STR(",\"tasks\":{\"list\":{},\"cancel\":{},"
                            "\"requests\":{\"tools\":{\"call\":{}}}}"));
    json_close(result, '}');
    json_put_open(result, "serverInfo", '{');
    json_put_text(result, "name", "pawl");
    json_put_text(result, "version", PAWL_VERSION);
    json_close(result, '}');
    json_put_text(result, "instructions", INSTRUCTIONS);
    return PAWL_OK;
}

pawl_status method_ping(struct rpc_exchange *exchange, struct buf *result)
{
    (void)exchange;
    (void)result;
    return PAWL_OK;
}

pawl_status method_set_level(struct rpc_exchange *exchange, struct buf *result)
{
    static const char *const levels[] = { "debug",    "info",  "notice",    "warning", "error",
                                          "critical", "alert", "emergency", NULL };

    (void)result;
    if (!str_is_one_of(node_text(exchange->params, "level"), levels))
        return rpc_fail(exchange, RPC_PARAMS, "params.level: expected debug, info, ... emergency");
    return PAWL_OK;
}
