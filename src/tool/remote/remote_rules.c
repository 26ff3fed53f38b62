/* remote_rules.c - what pawl.yaml says of MCP servers.
 *
 *   NAME: {url: "https://...", token: VARIABLE, headers: {NAME: VALUE}, private: [ADDRESS]}
 *   NAME: {command: [PROGRAM, ...], env: [VARIABLE], cwd: FOLDER}
 *   either: timeout: 5m, era: auto | modern | legacy, for: [CREATOR] */
#include "base/limits.h"
#include "base/time.h"
#include "model/words.h"
#include "tool/remote/mcp_servers.h"

#define TIMEOUT_MS  300000
#define SERVERS_MAX 100u

static pawl_status fail_at(struct scope *scope, const struct node *node, const char *expected)
{
    return scope_fail(scope, PAWL_INVALID_REQUEST,
                      "line %u, column %u: tools.mcp.servers: '%.*s': expected %s, found %s",
                      node->line, node->column, STR_ARG(words_shown(node->key)), expected,
                      node_kind_name(node->kind));
}

static pawl_status read_list(struct scope *scope, const struct node *list, struct rule_names *out)
{
    if (list->kind != NODE_ARRAY)
        return fail_at(scope, list, "a list of texts");
    out->items = ARENA_ARRAY(&scope->arena, str, list->count + 1);
    TRY_MEMORY(scope, out->items);
    for (const struct node *item = list->first; item; item = item->next) {
        if (item->kind != NODE_STRING || item->text.size == 0)
            return fail_at(scope, list, "a list of texts");
        out->items[out->count++] = item->text;
    }
    return PAWL_OK;
}

static pawl_status read_command(struct scope *scope, const struct node *node,
                                struct remote_rule *out)
{
    struct rule_names words = { 0 };

    TRY(read_list(scope, node, &words));
    if (words.count == 0)
        return fail_at(scope, node, "the program and its arguments");
    out->argv = ARENA_ARRAY(&scope->arena, char *, words.count + 1);
    TRY_MEMORY(scope, out->argv);
    for (uint32_t i = 0; i < words.count; i++) {
        out->argv[i] = arena_text(&scope->arena, words.items[i]);
        TRY_MEMORY(scope, out->argv[i]);
    }
    return PAWL_OK;
}

/* Neither ends a line, and a name is a token. */
static bool is_header(const struct node *node)
{
    for (size_t i = 0; i < node->key.size; i++)
        if (node->key.data[i] <= ' ' || node->key.data[i] >= 0x7f || node->key.data[i] == ':')
            return false;
    return node->kind == NODE_STRING && node->key.size > 0 && !str_has(node->text, '\n') &&
           !str_has(node->text, '\r');
}

static pawl_status read_headers(struct scope *scope, const struct node *node,
                                struct remote_rule *out)
{
    if (node->kind != NODE_OBJECT)
        return fail_at(scope, node, "{NAME: VALUE}");
    out->headers = ARENA_ARRAY(&scope->arena, struct remote_header, node->count + 1);
    TRY_MEMORY(scope, out->headers);
    for (const struct node *item = node->first; item; item = item->next) {
        if (!is_header(item))
            return fail_at(scope, item, "a header and its value, a text of one line");
        out->headers[out->header_count++] = (struct remote_header){ item->key, item->text };
    }
    return PAWL_OK;
}

static pawl_status read_era(struct scope *scope, const struct node *node, struct remote_rule *out)
{
    static const char *const words[] = { "auto", "modern", "legacy" };

    for (int i = 0; i < 3; i++)
        if (node->kind == NODE_STRING && str_is(node->text, words[i])) {
            out->era = i;
            return PAWL_OK;
        }
    return fail_at(scope, node, "auto, modern or legacy");
}

static pawl_status read_text(struct scope *scope, const struct node *node, str *out)
{
    if (node->kind != NODE_STRING || node->text.size == 0)
        return fail_at(scope, node, "a text");
    *out = node->text;
    return PAWL_OK;
}

static pawl_status read_url(struct scope *scope, const struct node *node, struct remote_rule *out)
{
    TRY(read_text(scope, node, &out->url));
    if (str_starts(out->url, STR("http://")) || str_starts(out->url, STR("https://")))
        return PAWL_OK;
    return fail_at(scope, node, "a url of https:// or http://");
}

static pawl_status read_member(struct scope *scope, const struct node *node,
                               struct remote_rule *out)
{
    if (str_is(node->key, "url"))
        return read_url(scope, node, out);
    if (str_is(node->key, "command"))
        return read_command(scope, node, out);
    if (str_is(node->key, "token"))
        return read_text(scope, node, &out->token);
    if (str_is(node->key, "cwd"))
        return read_text(scope, node, &out->cwd);
    if (str_is(node->key, "headers"))
        return read_headers(scope, node, out);
    if (str_is(node->key, "env"))
        return read_list(scope, node, &out->variables);
    if (str_is(node->key, "private"))
        return read_list(scope, node, &out->private_addresses);
    if (str_is(node->key, "era"))
        return read_era(scope, node, out);
    if (str_is(node->key, "for")) {
        out->is_restricted = true;
        return read_list(scope, node, &out->creators);
    }
    if (!str_is(node->key, "timeout"))
        return scope_fail(
            scope, PAWL_INVALID_REQUEST,
            "line %u, column %u: unknown key 'tools.mcp.servers.%.*s.%.*s'; there are "
            "url, token, headers, private, command, env, cwd, timeout, era and for",
            node->key_line, node->key_column, STR_ARG(words_shown(out->name)),
            STR_ARG(words_shown(node->key)));
    if (node->kind != NODE_STRING || !duration_parse(node->text, &out->timeout_ms) ||
        out->timeout_ms <= 0)
        return fail_at(scope, node, "a duration like 30s");
    return PAWL_OK;
}

static pawl_status read_server(struct scope *scope, const struct node *node,
                               struct remote_rule *out)
{
    *out = (struct remote_rule){ .name = node->key, .timeout_ms = TIMEOUT_MS };
    if (node->kind != NODE_OBJECT)
        return fail_at(scope, node, "{url: URL} or {command: [PROGRAM, ...]}");
    for (const struct node *child = node->first; child; child = child->next)
        TRY(read_member(scope, child, out));
    if (!out->url.data == !out->argv)
        return fail_at(scope, node, "either a 'url' or a 'command'");
    return PAWL_OK;
}

pawl_status remote_rules_read(struct scope *scope, const struct node *servers,
                              struct tool_rules *out)
{
    if (servers->kind != NODE_OBJECT || servers->count > SERVERS_MAX)
        return fail_at(scope, servers, "at most 100 servers, {NAME: {url | command, ...}}");
    out->servers = ARENA_ARRAY(&scope->arena, struct remote_rule, servers->count + 1);
    TRY_MEMORY(scope, out->servers);
    for (const struct node *node = servers->first; node; node = node->next)
        TRY(read_server(scope, node, &out->servers[out->server_count++]));
    return PAWL_OK;
}
