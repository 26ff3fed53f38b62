/* era.c - which version of the protocol a request speaks, and what that version demands of it. */
#include "surface/mcp/mcp_int.h"
#include <strings.h>

const char *const mcp_version_words[MCP_VERSIONS] = {
#define X(name, text) text,
    MCP_VERSION_MAP(X)
#undef X
};

bool version_find(str word, enum mcp_version *out)
{
    for (int i = 0; i < MCP_VERSIONS; i++)
        if (str_is(word, mcp_version_words[i])) {
            *out = (enum mcp_version)i;
            return true;
        }
    return false;
}

/* `elicitation: {}` means forms. */
void caps_read(const struct node *declared, struct client_caps *out)
{
    const struct node *elicitation = node_find(declared, "elicitation");

    *out = (struct client_caps){
        .tasks = node_find(node_find(declared, "extensions"), TASKS_WORD) != NULL,
        .form = elicitation && (elicitation->count == 0 || node_find(elicitation, "form")),
        .url = node_find(elicitation, "url") != NULL,
        .sampling = node_find(declared, "sampling") != NULL,
        .roots = node_find(declared, "roots") != NULL,
    };
}

/* ---- Headers ---- */

static str header(const struct rpc_exchange *exchange, const char *name)
{
    str value =
        exchange->headers.get ? exchange->headers.get(exchange->headers.context, name) : STR_NONE;

    return value.data ? str_trim(value, " \t") : value;
}

static int sextet(char c)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const char *at = c ? strchr(digits, c) : NULL;

    return at ? (int)(at - digits) : -1;
}

/* Strictly: whole groups of four, padding only at the end. */
static bool base64_decode(struct arena *arena, str text, str *out)
{
    char *bytes = arena_alloc(arena, text.size + 1);
    size_t size = 0, padding = 0;

    if (!bytes || text.size % 4 != 0)
        return false;
    while (padding < 2 && padding < text.size && text.data[text.size - 1 - padding] == '=')
        padding++;
    for (size_t i = 0; i < text.size; i += 4) {
        uint32_t group = 0;

        for (size_t j = i; j < i + 4; j++) {
            int six = j >= text.size - padding ? 0 : sextet(text.data[j]);

            if (six < 0)
                return false;
            group = group << 6 | (uint32_t)six;
        }
        for (int shift = 16; shift >= 0; shift -= 8)
            bytes[size++] = (char)(group >> shift & 255);
    }
    *out = (str){ bytes, size - padding };
    return true;
}

/* "=?base64?...?=" stands for other bytes; what lacks one of its ends is as it is. */
static bool header_decode(struct rpc_exchange *exchange, str value, str *out)
{
    const str begin = STR("=?base64?");

    *out = value;
    if (!str_starts(value, begin) || value.size < begin.size + 2 ||
        memcmp(value.data + value.size - 2, "?=", 2) != 0)
        return true;
    value = str_from(value, begin.size);
    value.size -= 2;
    return base64_decode(&exchange->arena, value, out);
}

static bool fail_header(struct rpc_exchange *exchange, const char *name, str value, str wanted)
{
    if (!value.data)
        rpc_fail(exchange, RPC_HEADERS, "the header %s is missing", name);
    else
        rpc_fail(exchange, RPC_HEADERS, "the header %s: expected '%.*s', as in the body", name,
                 STR_ARG(wanted));
    return false;
}

static bool check_header(struct rpc_exchange *exchange, const char *name, str wanted)
{
    str value = header(exchange, name), decoded;

    if (value.data && header_decode(exchange, value, &decoded) && str_eq(decoded, wanted))
        return true;
    return fail_header(exchange, name, value, wanted);
}

/* Integers are compared as numbers. */
static bool same_value(const struct node *value, str text)
{
    int64_t number, other;
    struct node node = { .kind = NODE_NUMBER, .text = text };

    if (value->kind == NODE_BOOL)
        return str_is(text, value->truth ? "true" : "false");
    if (value->kind == NODE_NUMBER && node_to_i64(value, &number) && node_to_i64(&node, &other))
        return number == other;
    return str_eq(value->text, text);
}

static bool check_param(struct rpc_exchange *exchange, str word, const struct node *value)
{
    struct buf name;
    str given, decoded;
    bool is_right = true;

    buf_init(&name, &heap_libc, 256);
    buf_fmt(&name, "Mcp-Param-%.*s", STR_ARG(word));
    given = header(exchange, buf_text(&name));
    if (!value || value->kind == NODE_NULL)
        is_right = !given.data;
    else
        is_right =
            given.data && header_decode(exchange, given, &decoded) && same_value(value, decoded);
    if (!is_right)
        rpc_fail(exchange, RPC_HEADERS, "the header %s does not say what the body says",
                 buf_text(&name));
    buf_fini(&name);
    return is_right;
}

bool headers_match_schema(struct rpc_exchange *exchange, const struct node *schema,
                          const struct node *arguments)
{
    if (!is_modern(exchange->version) || exchange->transport != OVER_HTTP || !exchange->headers.get)
        return true;
    for (const struct node *one = node_first(schema, "properties"); one; one = one->next) {
        str word = node_text(one, "x-mcp-header");

        if (word.data && !check_param(exchange, word, node_find_str(arguments, one->key)))
            return false;
    }
    return true;
}

/* ---- Modern ---- */

static bool fail_meta(struct rpc_exchange *exchange, const char *what)
{
    rpc_fail(exchange, RPC_PARAMS, "params._meta: expected %s", what);
    exchange->turn->error.http = 400;
    return false;
}

static void print_versions(struct buf *out)
{
    json_open(out, '[');
    json_text(out, mcp_version_words[MCP_2026_07_28]);
    json_close(out, ']');
}

static bool fail_version(struct rpc_exchange *exchange, str requested)
{
    struct buf data;

    rpc_fail(exchange, RPC_VERSION, "the version '%.*s' is not supported", STR_ARG(requested));
    buf_init(&data, &heap_libc, LIMIT_TEXT);
    json_open(&data, '{');
    json_key(&data, "supported");
    print_versions(&data);
    json_put_str(&data, "requested", requested);
    json_close(&data, '}');
    exchange->turn->error.data = buf_take(&data, &exchange->arena);
    return false;
}

/* Before anything else is looked at: an intermediary routes by these headers. */
static bool check_headers(struct rpc_exchange *exchange)
{
    const char *param = exchange->method ? exchange->method->header : NULL;

    if (!check_header(exchange, "Mcp-Method", exchange->method_name))
        return false;
    if (!param)
        return true;
    if (!node_text(exchange->params, param).data) {
        rpc_fail(exchange, RPC_PARAMS, "params.%s: expected a string", param);
        return false;
    }
    return check_header(exchange, "Mcp-Name", node_text(exchange->params, param));
}

static bool check_meta(struct rpc_exchange *exchange)
{
    str version = node_text(exchange->meta, META_PREFIX "protocolVersion");
    const struct node *caps = node_find(exchange->meta, META_PREFIX "clientCapabilities");

    if (!exchange->meta || exchange->meta->kind != NODE_OBJECT)
        return fail_meta(exchange, "an object with the version and the client's capabilities");
    if (!version.data)
        return fail_meta(exchange, META_PREFIX "protocolVersion, a string");
    if (!caps || caps->kind != NODE_OBJECT)
        return fail_meta(exchange, META_PREFIX "clientCapabilities, an object");
    if (exchange->transport == OVER_HTTP &&
        !check_header(exchange, "MCP-Protocol-Version", version))
        return false;
    if (!version_find(version, &exchange->version) || !is_modern(exchange->version)) {
        exchange->version = MCP_2026_07_28;
        return fail_version(exchange, version);
    }
    caps_read(caps, &exchange->caps);
    return true;
}

static bool enter_modern(struct rpc_exchange *exchange)
{
    exchange->version = MCP_2026_07_28;
    exchange->method = method_find(exchange->method_name);
    if (exchange->transport == OVER_HTTP && !check_headers(exchange))
        return false;
    if (!exchange->id.data) /* a notification; its _meta is optional */
        return true;
    if (!check_meta(exchange))
        return false;
    if (!exchange->method || !(exchange->method->eras & OF_MODERN)) {
        rpc_fail(exchange, RPC_METHOD, "no method '%.*s'", STR_ARG(exchange->method_name));
        return false;
    }
    if (exchange->method->needs_tasks && !exchange->caps.tasks) {
        rpc_need(exchange, "{\"extensions\":{\"" TASKS_WORD "\":{}}}");
        return false;
    }
    return true;
}

/* ---- Legacy ---- */

static bool fail_session(struct rpc_exchange *exchange, int http, const char *words)
{
    rpc_fail(exchange, RPC_REQUEST, "%s", words);
    exchange->turn->error.http = http;
    return false;
}

static bool find_session(struct rpc_exchange *exchange)
{
    str id = header(exchange, "Mcp-Session-Id");

    if (exchange->transport == OVER_STDIO)
        return exchange->session || fail_session(exchange, 400, "expected initialize first");
    if (!id.data)
        return fail_session(exchange, 400,
                            "expected Mcp-Session-Id, or a request of 2026-07-28 with _meta");
    exchange->session = session_find(exchange->server, id, &exchange->who);
    return exchange->session || fail_session(exchange, 404, "no such session: initialize again");
}

static bool enter_legacy(struct rpc_exchange *exchange)
{
    enum mcp_version said;
    str version = header(exchange, "MCP-Protocol-Version");

    exchange->version = MCP_LEGACY_NEWEST;
    exchange->method = method_find(exchange->method_name);
    if (!str_is(exchange->method_name, "initialize")) {
        if (!find_session(exchange))
            return false;
        exchange->version = exchange->session->version;
        exchange->caps = exchange->session->caps;
        exchange->caps.tasks = false;
        if (version.data && (!version_find(version, &said) || is_modern(said)))
            return fail_session(exchange, 400, "MCP-Protocol-Version: this version is not spoken");
    }
    if (!exchange->id.data || !exchange->method_name.data)
        return true;
    if (exchange->method && (exchange->method->eras & OF_LEGACY) &&
        exchange->version >= exchange->method->since)
        return true;
    rpc_fail(exchange, RPC_METHOD, "no method '%.*s'", STR_ARG(exchange->method_name));
    return false;
}

/* ---- Either ---- */

/* By the shape of the request: nothing is concluded from those before it. */
static bool is_modern_request(const struct rpc_exchange *exchange)
{
    enum mcp_version said;
    str version = header(exchange, "MCP-Protocol-Version");

    if (node_find(exchange->meta, META_PREFIX "protocolVersion") ||
        node_find(exchange->meta, META_PREFIX "clientCapabilities"))
        return true;
    return version.data && version_find(version, &said) && is_modern(said);
}

/* A notification need not say its version. On stdio there is one client, whatever it speaks. */
static bool is_anyones(const struct rpc_exchange *exchange)
{
    return exchange->transport == OVER_STDIO && exchange->method_name.data && !exchange->id.data;
}

bool era_enter(struct rpc_exchange *exchange)
{
    if (is_anyones(exchange))
        return true;
    if (!is_modern_request(exchange))
        return enter_legacy(exchange);
    if (!exchange->method_name.data) {
        rpc_fail(exchange, RPC_REQUEST, "2026-07-28 has no requests to the client");
        return false;
    }
    return enter_modern(exchange);
}
