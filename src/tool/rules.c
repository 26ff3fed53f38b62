/* rules.c - the rules for tools, read from their part of pawl.yaml. */
#include "tool/rules.h"
#include "base/buf.h"
#include "base/limits.h"
#include "base/time.h"
#include "model/words.h"
#include "tool/remote/mcp_servers.h"

#define HTTP_TIMEOUT_MS 30000

static pawl_status fail_at(struct scope *scope, const struct node *node, const char *what,
                           const char *expected)
{
    return scope_fail(scope, PAWL_INVALID_REQUEST,
                      "line %u, column %u: '%s': expected %s, found %s", node->line, node->column,
                      what, expected, node_kind_name(node->kind));
}

static pawl_status fail_unknown(struct scope *scope, const struct node *node, str tool,
                                const char *known)
{
    return scope_fail(scope, PAWL_INVALID_REQUEST,
                      "line %u, column %u: unknown key 'tools.%.*s.%.*s'; there are %s",
                      node->key_line, node->key_column, STR_ARG(words_shown(tool)),
                      STR_ARG(words_shown(node->key)), known);
}

static pawl_status read_names(struct scope *scope, const struct node *list, const char *what,
                              struct rule_names *out)
{
    if (list->kind != NODE_ARRAY)
        return fail_at(scope, list, what, "a list of texts");
    out->items = ARENA_ARRAY(&scope->arena, str, list->count + 1);
    TRY_MEMORY(scope, out->items);
    for (const struct node *item = list->first; item; item = item->next) {
        if (item->kind != NODE_STRING || item->text.size == 0)
            return fail_at(scope, item, what, "a text");
        out->items[out->count++] = item->text;
    }
    return PAWL_OK;
}

static pawl_status read_reply(struct scope *scope, const struct node *node, struct tool_reply *out)
{
    const struct node *given = node->kind == NODE_OBJECT && node->count == 1 ? node->first : NULL;
    struct buf text;

    out->failed = given && str_is(given->key, "error");
    if (!given || (!out->failed && !str_is(given->key, "result")))
        return fail_at(scope, node, "answers", "{result: ...} or {error: ...}");
    buf_init(&text, scope->arena.heap, LIMIT_TEXT);
    node_print(given, &text);
    out->json = buf_take(&text, &scope->arena);
    return out->json.data ? PAWL_OK : scope_no_memory(scope);
}

static pawl_status read_replies(struct scope *scope, const struct node *list,
                                struct tool_rule *rule)
{
    if (list->kind != NODE_ARRAY || list->count == 0)
        return fail_at(scope, list, "answers", "a list of {result: ...} and {error: ...}");
    if (str_is(rule->tool, "sleep"))
        return scope_fail(scope, PAWL_INVALID_REQUEST,
                          "line %u, column %u: 'sleep' is a timer, which has no answer to replace",
                          list->line, list->column);
    rule->replies = ARENA_ARRAY(&scope->arena, struct tool_reply, list->count);
    TRY_MEMORY(scope, rule->replies);
    for (const struct node *item = list->first; item; item = item->next)
        TRY(read_reply(scope, item, &rule->replies[rule->reply_count++]));
    return PAWL_OK;
}

static pawl_status read_exec(struct scope *scope, const struct node *node, struct tool_rules *out)
{
    if (str_is(node->key, "env"))
        return read_names(scope, node, "env", &out->variables);
    if (!str_is(node->key, "programs"))
        return fail_unknown(scope, node, STR("exec"),
                            "programs, env, for, answers, concurrency and rate");
    out->has_programs = true;
    return read_names(scope, node, "programs", &out->programs);
}

static pawl_status read_http(struct scope *scope, const struct node *node, struct tool_rules *out)
{
    uint32_t size = 0;

    if (str_is(node->key, "hosts"))
        return read_names(scope, node, "hosts", &out->hosts);
    if (str_is(node->key, "secrets"))
        return read_names(scope, node, "secrets", &out->secrets);
    if (str_is(node->key, "private"))
        return read_names(scope, node, "private", &out->private_addresses);
    if (str_is(node->key, "timeout"))
        return node->kind == NODE_STRING && duration_parse(node->text, &out->timeout_ms) &&
                       out->timeout_ms > 0
                   ? PAWL_OK
                   : fail_at(scope, node, "timeout", "a duration like 30s");
    if (!str_is(node->key, "size"))
        return fail_unknown(
            scope, node, STR("http"),
            "hosts, private, secrets, timeout, size, for, answers, concurrency and rate");
    if (!node_to_u32(node, LIMIT_TEXT, &size) || size == 0)
        return fail_at(scope, node, "size", "a number of bytes up to 1048576");
    out->size_max = size;
    return PAWL_OK;
}

/* {max} or {max, per}: as a flow's definition has them, without a key. */
static pawl_status read_limit(struct scope *scope, const struct node *node, uint32_t most,
                              uint32_t *max, int64_t *per_ms)
{
    const struct node *number = node_find(node, "max"), *per = node_find(node, "per");

    if (node->kind != NODE_OBJECT || node->count != (per_ms ? 2 : 1) || !number || (per_ms && !per))
        return fail_at(scope, node, per_ms ? "rate" : "concurrency",
                       per_ms ? "{max: NUMBER, per: DURATION}" : "{max: NUMBER}");
    if (!node_to_u32(number, most, max) || *max == 0)
        return fail_at(scope, number, "max", "a number from 1");
    if (per && (per->kind != NODE_STRING || !duration_parse(per->text, per_ms) || *per_ms <= 0 ||
                *per_ms > LIMIT_RATE_MS))
        return fail_at(scope, per, "per", "a duration of at most a day");
    return PAWL_OK;
}

static pawl_status read_rate(struct scope *scope, const struct node *node, struct tool_rule *rule,
                             struct tool_rules *out)
{
    out->has_limits = true;
    TRY(read_limit(scope, node, LIMIT_RATE, &rule->limits.rate, &rule->limits.per_ms));
    if (rule->limits.per_ms > out->per_max_ms)
        out->per_max_ms = rule->limits.per_ms;
    return PAWL_OK;
}

static pawl_status read_mcp(struct scope *scope, const struct node *node, struct tool_rules *out)
{
    if (str_is(node->key, "servers"))
        return remote_rules_read(scope, node, out);
    return fail_unknown(scope, node, STR("mcp"), "servers, for and answers");
}

static pawl_status read_member(struct scope *scope, const struct node *node, struct tool_rule *rule,
                               struct tool_rules *out)
{
    if (str_is(node->key, "for")) {
        rule->is_restricted = true;
        return read_names(scope, node, "for", &rule->creators);
    }
    if (str_is(node->key, "answers"))
        return read_replies(scope, node, rule);
    if (str_is(node->key, "concurrency")) {
        out->has_limits = true;
        return read_limit(scope, node, LIMIT_AT_ONCE, &rule->limits.at_once, NULL);
    }
    if (str_is(node->key, "rate"))
        return read_rate(scope, node, rule, out);
    if (str_is(rule->tool, "exec"))
        return read_exec(scope, node, out);
    if (str_is(rule->tool, "http"))
        return read_http(scope, node, out);
    if (str_is(rule->tool, "mcp"))
        return read_mcp(scope, node, out);
    return fail_unknown(scope, node, rule->tool, "for, answers, concurrency and rate");
}

static pawl_status read_tool(struct scope *scope, const struct node *node, struct tool_rules *out)
{
    struct tool_rule *rule = &out->rules[out->rule_count++];
    bool is_exec = str_is(node->key, "exec");

    rule->tool = node->key;
    if (is_exec && node->kind == NODE_BOOL) {
        out->has_exec = true;
        out->exec = node->truth;
        return PAWL_OK;
    }
    if (node->kind != NODE_OBJECT)
        return fail_at(scope, node, node->key.data,
                       is_exec ? "true, false or {programs, env, for}" : "an object");
    out->has_exec = out->has_exec || is_exec;
    out->exec = out->exec || is_exec;
    out->http = out->http || str_is(node->key, "http");
    for (const struct node *child = node->first; child; child = child->next)
        TRY(read_member(scope, child, rule, out));
    return PAWL_OK;
}

pawl_status tool_rules_read(struct scope *scope, const struct node *tools, struct tool_rules *out)
{
    *out = (struct tool_rules){ .timeout_ms = HTTP_TIMEOUT_MS, .size_max = LIMIT_TEXT };
    if (tools->kind != NODE_OBJECT)
        return fail_at(scope, tools, "tools", "an object");
    out->rules = ARENA_ARRAY(&scope->arena, struct tool_rule, tools->count + 1);
    TRY_MEMORY(scope, out->rules);
    for (const struct node *tool = tools->first; tool; tool = tool->next)
        TRY(read_tool(scope, tool, out));
    return PAWL_OK;
}

bool rule_names_have(const struct rule_names *names, str name)
{
    for (uint32_t i = 0; i < names->count; i++)
        if (str_eq(names->items[i], name))
            return true;
    return false;
}

/* The tools of the flow pawl.mcp are one to those who write rules. */
static bool is_of(const struct tool_rule *rule, str tool)
{
    return str_eq(rule->tool, tool) || (str_is(rule->tool, "mcp") && str_starts(tool, STR("mcp.")));
}

bool tool_rules_allow(const struct tool_rules *rules, str tool, str creator)
{
    for (uint32_t i = 0; i < rules->rule_count; i++)
        if (is_of(&rules->rules[i], tool) && rules->rules[i].is_restricted)
            return creator.data && rule_names_have(&rules->rules[i].creators, creator);
    return true;
}

const struct tool_limits *tool_rules_limits(const struct tool_rules *rules, str tool)
{
    for (uint32_t i = 0; i < rules->rule_count; i++)
        if (str_eq(rules->rules[i].tool, tool))
            return rules->rules[i].limits.at_once || rules->rules[i].limits.rate
                       ? &rules->rules[i].limits
                       : NULL;
    return NULL;
}

const struct tool_reply *tool_rules_reply(const struct tool_rules *rules, str tool,
                                          uint32_t attempt)
{
    for (uint32_t i = 0; i < rules->rule_count; i++) {
        const struct tool_rule *rule = &rules->rules[i];
        uint32_t number = attempt < rule->reply_count ? attempt : rule->reply_count;

        if (str_eq(rule->tool, tool) && rule->reply_count > 0)
            return &rule->replies[number > 0 ? number - 1 : 0];
    }
    return NULL;
}
