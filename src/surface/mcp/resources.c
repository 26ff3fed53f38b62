/* resources.c - definitions and processes as resources, read through the operations. */
#include "surface/mcp/fixtures.h"
#include "surface/mcp/mcp_int.h"
#include <stdio.h>

#define SCHEME "pawl://"

/* What a process has: the end of its URI, the operation, and what that prints. */
static const struct part {
    const char *end, *name, *operation, *format, *media;
} parts[] = {
    { "", "A process", "instance.get", NULL, "application/json" },
    { "/history", "The history of a process", "instance.history", NULL, "application/json" },
    { "/why", "What a process waits for", "instance.why", NULL, "application/json" },
    { "/diagram", "A diagram of a process with the path that it took", "instance.graph", "mermaid",
      "text/vnd.mermaid" },
    { "/layout", "The same diagram, with the place of everything", "instance.graph", "layout",
      "application/json" },
    { 0 },
};

extern const str mcp_app_files[]
                              [2]; /* made by tools/gen-app of app.html and the dashboard's graph */

/* "pawl://process/ID/history": the id, and what follows it. */
static bool split_process(str uri, str *id, str *end)
{
    const str prefix = STR(SCHEME "process/");

    if (!str_starts(uri, prefix) || uri.size < prefix.size + ID_SIZE)
        return false;
    *id = (str){ uri.data + prefix.size, ID_SIZE };
    *end = str_from(uri, prefix.size + ID_SIZE);
    return true;
}

/* NULL: it has no such part. */
static const struct part *find_part(str end)
{
    for (const struct part *part = parts; part->end; part++)
        if (str_is(end, part->end))
            return part;
    return NULL;
}

uint64_t uri_instance(str uri)
{
    uint8_t random[ID_RANDOM_SIZE];
    uint64_t number = 0;
    str id, end;

    return split_process(uri, &id, &end) && find_part(end) && id_parse(id, &number, random) ? number
                                                                                            : 0;
}

static const str definition_prefix = STR_INIT(SCHEME "definition/"),
                 diagram_prefix = STR_INIT(SCHEME "diagram/");

/* data NULL: it is of no definition. */
static str uri_definition(str uri)
{
    if (str_starts(uri, definition_prefix))
        return str_from(uri, definition_prefix.size);
    return str_starts(uri, diagram_prefix) ? str_from(uri, diagram_prefix.size) : STR_NONE;
}

int64_t resource_stamp(struct rpc_exchange *exchange, str uri)
{
    str name = uri_definition(uri), id, end;
    pawl_status status = PAWL_NOT_KNOWN;
    struct node *answer = NULL;
    int64_t stamp = -1;

    if (name.data)
        status = op_ask_node(exchange, "definition.get", MEMBERS({ "name", name }), &answer);
    else if (split_process(uri, &id, &end) && find_part(end))
        status = op_ask_node(exchange, "instance.get", MEMBERS({ "instance_id", id }), &answer);
    else if (str_is(uri, APP_URI) || fixture_resource_has(exchange, uri))
        return 0; /* it never changes */
    if (status == PAWL_OK)
        node_to_i64(node_find(answer, name.data ? "version" : "next_sequence_number"), &stamp);
    return stamp;
}

/* ---- Lists ---- */

static void put_entry(struct buf *out, const char *kind, str name, const char *words,
                      const char *media)
{
    json_open(out, '{');
    json_key(out, "uri");
    buf_fmt(out, "\"" SCHEME "%s/%.*s\"", kind, STR_ARG(name));
    json_put_str(out, "name", name);
    json_put_text(out, "description", words);
    json_put_text(out, "mimeType", media);
    json_close(out, '}');
}

static void put_app(struct buf *out)
{
    json_open(out, '{');
    json_put_text(out, "uri", APP_URI);
    json_put_text(out, "name", "process");
    json_put_text(out, "description", "The page of a process, for hosts that show MCP Apps");
    json_put_text(out, "mimeType", APP_MEDIA);
    json_close(out, '}');
}

#define PAGE "100"

/* A page of definitions, each with its diagram. */
pawl_status method_resources_list(struct rpc_exchange *exchange, struct buf *result)
{
    const struct node *cursor = node_find(exchange->params, "cursor");
    struct node *page = NULL;
    pawl_status status;

    status = op_ask_node(
        exchange, "definition.list",
        MEMBERS({ "limit", STR(PAGE) }, { "after", cursor ? cursor->text : STR_NONE }), &page);
    if (status == PAWL_INVALID_QUERY || (cursor && !cursor->text.data))
        return cursor_refuse(exchange);
    if (status != PAWL_FORBIDDEN)
        TRY(status);
    json_put_open(result, "resources", '[');
    if (!cursor) {
        put_app(result);
        fixtures_put_resources(exchange, result);
    }
    for (const struct node *one = node_first(page, "definitions"); one; one = one->next) {
        put_entry(result, "definition", node_text(one, "name"), "A definition, as it was written",
                  "text/plain");
        put_entry(result, "diagram", node_text(one, "name"), "A diagram of a definition",
                  "text/vnd.mermaid");
    }
    json_close(result, ']');
    if (node_text(page, "next").data)
        json_put_str(result, "nextCursor", node_text(page, "next"));
    cache_put(exchange, result);
    return PAWL_OK;
}

static void put_template(struct buf *out, const char *uri, const char *name, const char *media)
{
    json_open(out, '{');
    json_put_text(out, "uriTemplate", uri);
    json_put_text(out, "name", name);
    json_put_text(out, "description", name);
    json_put_text(out, "mimeType", media);
    json_close(out, '}');
}

pawl_status method_templates_list(struct rpc_exchange *exchange, struct buf *result)
{
    if (node_find(exchange->params, "cursor"))
        return cursor_refuse(exchange);
    json_put_open(result, "resourceTemplates", '[');
    fixtures_put_templates(exchange, result);
    put_template(result, SCHEME "definition/{name}", "A definition, as it was written",
                 "text/plain");
    put_template(result, SCHEME "diagram/{name}", "A diagram of a definition", "text/vnd.mermaid");
    for (const struct part *part = parts; part->end; part++) {
        char uri[64];

        snprintf(uri, sizeof uri, SCHEME "process/{id}%s", part->end);
        put_template(result, uri, part->name, part->media);
    }
    json_close(result, ']');
    cache_put(exchange, result);
    return PAWL_OK;
}

/* ---- Reading ---- */

static pawl_status not_found(struct rpc_exchange *exchange, str uri)
{
    struct buf data;

    rpc_fail(exchange, is_modern(exchange->version) ? RPC_PARAMS : RPC_NO_RESOURCE,
             "Resource not found");
    buf_init(&data, &heap_libc, LIMIT_TEXT + 64);
    json_open(&data, '{');
    json_put_str(&data, "uri", uri);
    json_close(&data, '}');
    exchange->turn->error.data = buf_take(&data, &exchange->arena);
    return PAWL_INVALID_REQUEST;
}

void contents_put(struct buf *result, str uri, const char *media, const char *member, str text)
{
    json_put_open(result, "contents", '[');
    json_open(result, '{');
    json_put_str(result, "uri", uri);
    json_put_text(result, "mimeType", media);
    json_put_str(result, member, text);
    json_close(result, '}');
    json_close(result, ']');
}

static pawl_status read_definition(struct rpc_exchange *exchange, str name, str *out)
{
    struct node *answer;

    TRY(op_ask_node(exchange, "definition.get", MEMBERS({ "name", name }), &answer));
    *out = node_text(answer, "text");
    return PAWL_OK;
}

static pawl_status read_uri(struct rpc_exchange *exchange, str uri, str *out, const char **media)
{
    str name = uri_definition(uri), id, end;
    const struct part *part = split_process(uri, &id, &end) ? find_part(end) : NULL;

    *media = APP_MEDIA;
    if (str_is(uri, APP_URI)) {
        *out = mcp_app_files[0][1];
        return PAWL_OK;
    }
    *media = "text/plain";
    if (str_starts(uri, definition_prefix))
        return read_definition(exchange, name, out);
    *media = "text/vnd.mermaid";
    if (name.data)
        return op_ask_text(exchange, "definition.graph",
                           MEMBERS({ "name", name }, { "format", STR("mermaid") }), out);
    if (part) {
        *media = part->media;
        return op_ask_text(exchange, part->operation,
                           MEMBERS({ "instance_id", id }, { "format", str_of(part->format) }), out);
    }
    return scope_fail(&exchange->turn->work, PAWL_NOT_KNOWN, "no such resource");
}

pawl_status method_resources_read(struct rpc_exchange *exchange, struct buf *result)
{
    str uri = node_text(exchange->params, "uri"), text = STR_NONE;
    const char *media;
    pawl_status status;
    bool is_there = false;

    if (!uri.data)
        return rpc_fail(exchange, RPC_PARAMS, "params.uri: expected a string");
    TRY(fixture_resource_read(exchange, uri, result, &is_there));
    if (!is_there) {
        status = read_uri(exchange, uri, &text, &media);
        if (status == PAWL_NOT_KNOWN || status == PAWL_FORBIDDEN ||
            status == PAWL_INVALID_REQUEST || status == PAWL_INVALID_QUERY)
            return not_found(exchange, uri);
        TRY(status);
        contents_put(result, uri, media, "text", text);
    }
    cache_put(exchange, result);
    return PAWL_OK;
}

/* ---- Legacy subscriptions ---- */

pawl_status method_subscribe(struct rpc_exchange *exchange, struct buf *result)
{
    str uri = node_text(exchange->params, "uri");
    int64_t stamp;
    pawl_status status;

    (void)result;
    if (!uri.data)
        return rpc_fail(exchange, RPC_PARAMS, "params.uri: expected a string");
    stamp = resource_stamp(exchange, uri);
    if (stamp < 0)
        return not_found(exchange, uri);
    status = session_subscribe(exchange->server, exchange->session, uri, stamp);
    if (status == PAWL_OVERLOADED)
        return rpc_fail(exchange, RPC_PARAMS, "a session has at most %u subscriptions",
                        SUBSCRIPTIONS_MAX);
    TRY_MEMORY(&exchange->turn->work, status == PAWL_OK);
    return PAWL_OK;
}

pawl_status method_unsubscribe(struct rpc_exchange *exchange, struct buf *result)
{
    str uri = node_text(exchange->params, "uri");

    (void)result;
    if (!uri.data)
        return rpc_fail(exchange, RPC_PARAMS, "params.uri: expected a string");
    session_unsubscribe(exchange->server, exchange->session, uri);
    return PAWL_OK;
}
