/* config.c - pawl.yaml, key by key. What is not known is an error: a slip of the pen must not turn
 * a limit off. */
#include "api/config.h"
#include "base/buf.h"
#include "base/limits.h"
#include "base/node.h"
#include "model/words.h"
#include "tool/rules.h"

#define WORKERS_MAX 256

struct reading {
    struct scope *scope;
    struct config *config;
};

struct key {
    const char *name;
    pawl_status (*read)(struct reading *reading, const struct node *node);
};

static pawl_status fail_at(const struct reading *reading, const struct node *node,
                           const char *expected)
{
    return scope_fail(reading->scope, PAWL_INVALID_REQUEST,
                      "line %u, column %u: '%.*s': expected %s, found %s", node->line, node->column,
                      STR_ARG(words_shown(node->key)), expected, node_kind_name(node->kind));
}

static pawl_status read_text(const struct reading *reading, const struct node *node,
                             const char **out)
{
    if (node->kind != NODE_STRING || str_is_blank(node->text))
        return fail_at(reading, node, "a text");
    *out = arena_text(&reading->scope->arena, node->text);
    return *out ? PAWL_OK : scope_no_memory(reading->scope);
}

/* Each key of an object by its reader; `where` comes before a name: "tls." */
static pawl_status read_keys(struct reading *reading, const struct node *object, const char *where,
                             const struct key *keys)
{
    pawl_status status = PAWL_OK;

    if (object->kind != NODE_OBJECT)
        return fail_at(reading, object, "an object");
    for (const struct node *node = object->first; node && status == PAWL_OK; node = node->next) {
        const struct key *key = keys;

        while (key->name && !str_is(node->key, key->name))
            key++;
        status = key->name ? key->read(reading, node)
                           : scope_fail(reading->scope, PAWL_INVALID_REQUEST,
                                        "line %u, column %u: unknown key '%s%.*s'", node->key_line,
                                        node->key_column, where, STR_ARG(words_shown(node->key)));
    }
    return status;
}

static pawl_status read_listen(struct reading *reading, const struct node *node)
{
    return read_text(reading, node, &reading->config->listen);
}

static pawl_status read_store(struct reading *reading, const struct node *node)
{
    return read_text(reading, node, &reading->config->store);
}

/* A list, as the option --host takes it. */
static pawl_status read_hosts(struct reading *reading, const struct node *node)
{
    struct buf buf;
    str text;

    if (node->kind != NODE_ARRAY)
        return fail_at(reading, node, "a list of names");
    buf_init(&buf, reading->scope->arena.heap, LIMIT_TEXT);
    for (const struct node *item = node->first; item; item = item->next) {
        if (item->kind != NODE_STRING) {
            buf_fini(&buf);
            return fail_at(reading, item, "a name");
        }
        buf_fmt(&buf, "%s%.*s", item == node->first ? "" : ",", STR_ARG(item->text));
    }
    text = buf_take(&buf, &reading->scope->arena);
    reading->config->hosts = text.data;
    return text.data ? PAWL_OK : scope_no_memory(reading->scope);
}

static pawl_status read_log(struct reading *reading, const struct node *node)
{
    if (node->kind != NODE_STRING || (!str_is(node->text, "logfmt") && !str_is(node->text, "json")))
        return fail_at(reading, node, "logfmt or json");
    return read_text(reading, node, &reading->config->log);
}

static pawl_status read_needs_token(struct reading *reading, const struct node *node)
{
    if (node->kind != NODE_BOOL)
        return fail_at(reading, node, "true or false");
    reading->config->needs_token = node->truth;
    return PAWL_OK;
}

static pawl_status read_cert(struct reading *reading, const struct node *node)
{
    return read_text(reading, node, &reading->config->tls_cert);
}

static pawl_status read_key(struct reading *reading, const struct node *node)
{
    return read_text(reading, node, &reading->config->tls_key);
}

static pawl_status read_tls(struct reading *reading, const struct node *node)
{
    static const struct key keys[] = { { "cert", read_cert }, { "key", read_key }, { 0 } };
    pawl_status status = read_keys(reading, node, "tls.", keys);

    if (status == PAWL_OK && (!reading->config->tls_cert || !reading->config->tls_key))
        return fail_at(reading, node, "both cert and key");
    return status;
}

static pawl_status read_workers(struct reading *reading, const struct node *node)
{
    int64_t workers;

    if (!node_to_i64(node, &workers) || workers < 1 || workers > WORKERS_MAX)
        return fail_at(reading, node, "a number of threads, 1 to 256");
    reading->config->workers = (uint32_t)workers;
    return PAWL_OK;
}

static pawl_status read_body_memory(struct reading *reading, const struct node *node)
{
    int64_t bytes;

    if (!node_to_i64(node, &bytes) || bytes < LIMIT_BATCH_TEXT)
        return fail_at(reading, node, "a number of bytes, at least 16777216");
    reading->config->body_memory = (uint64_t)bytes;
    return PAWL_OK;
}

static pawl_status read_bound(struct reading *reading, const struct node *node, uint32_t *out)
{
    int64_t most;

    if (!node_to_i64(node, &most) || most < 1 || most > UINT32_MAX)
        return fail_at(reading, node, "a number, 1 to 4294967295");
    *out = (uint32_t)most;
    return PAWL_OK;
}

static pawl_status read_max_entries(struct reading *reading, const struct node *node)
{
    return read_bound(reading, node, &reading->config->max_entries);
}

static pawl_status read_max_live_steps(struct reading *reading, const struct node *node)
{
    return read_bound(reading, node, &reading->config->max_live_steps);
}

static pawl_status read_limits(struct reading *reading, const struct node *node)
{
    static const struct key keys[] = { { "workers", read_workers },
                                       { "body_memory", read_body_memory },
                                       { "max_entries", read_max_entries },
                                       { "max_live_steps", read_max_live_steps },
                                       { 0 } };

    return read_keys(reading, node, "limits.", keys);
}

/* Read here for its errors, which know their line; the engine reads them again. */
static pawl_status read_tools(struct reading *reading, const struct node *node)
{
    struct tool_rules rules;
    struct buf buf;
    str text;

    TRY(tool_rules_read(reading->scope, node, &rules));
    buf_init(&buf, reading->scope->arena.heap, LIMIT_TEXT);
    node_print(node, &buf);
    text = buf_take(&buf, &reading->scope->arena);
    reading->config->tools = text.data;
    return text.data ? PAWL_OK : scope_no_memory(reading->scope);
}

pawl_status config_read(struct scope *scope, str text, struct config *out)
{
    static const struct key keys[] = {
        { "listen", read_listen }, { "store", read_store },
        { "hosts", read_hosts },   { "log", read_log },
        { "tls", read_tls },       { "limits", read_limits },
        { "tools", read_tools },   { "require_token", read_needs_token },
        { 0 },
    };
    struct config config = { 0 };
    struct reading reading = { scope, &config };
    struct node *document = NULL;

    TRY(node_read_yaml(scope, text, &document));
    if (document->kind != NODE_NULL)
        TRY(read_keys(&reading, document, "", keys));
    *out = config;
    return PAWL_OK;
}
