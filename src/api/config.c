/* config.c - pawl.yaml, key by key. What is not known is an error: a slip of the pen must not turn
 * a limit off. */
#include "api/config.h"
#include "base/buf.h"
#include "base/limits.h"
#include "base/node.h"
#include "model/retention_key.h"
#include "model/shard.h"
#include "model/words.h"
#include "tool/rules.h"

#define WORKERS_MAX    256
#define BOUND_EXPECTED "a number, 1 to 4294967295"
#define AT(member)     offsetof(struct config, member)

struct reading {
    struct scope *scope;
    struct config *config;
};

struct key {
    const char *name;
    pawl_status (*read)(struct reading *reading, const struct node *node, const struct key *key);
    size_t at; /* of its member in struct config */
    int64_t most;
    const char *expected; /* of a number */
};

static pawl_status fail_at(const struct reading *reading, const struct node *node,
                           const char *expected)
{
    return scope_fail(reading->scope, PAWL_INVALID_REQUEST,
                      "line %u, column %u: '%.*s': expected %s, found %s", node->line, node->column,
                      STR_ARG(words_shown(node->key)), expected, node_kind_name(node->kind));
}

static void *member_of(struct reading *reading, const struct key *key)
{
    return (char *)reading->config + key->at;
}

static pawl_status read_text(struct reading *reading, const struct node *node,
                             const struct key *key)
{
    const char **out = member_of(reading, key);

    if (node->kind != NODE_STRING || str_is_blank(node->text))
        return fail_at(reading, node, "a text");
    *out = arena_text(&reading->scope->arena, node->text);
    return *out ? PAWL_OK : scope_no_memory(reading->scope);
}

static pawl_status read_number(struct reading *reading, const struct node *node,
                               const struct key *key)
{
    uint32_t *out = member_of(reading, key);
    int64_t number;

    if (!node_to_i64(node, &number) || number < 1 || number > key->most)
        return fail_at(reading, node, key->expected);
    *out = (uint32_t)number;
    return PAWL_OK;
}

/* Each key of an object by its reader; `where` comes before a name: "tls." */
static pawl_status read_keys(struct reading *reading, const struct node *object, const char *where,
                             const struct key *keys)
{
    if (object->kind != NODE_OBJECT)
        return fail_at(reading, object, "an object");
    for (const struct node *node = object->first; node; node = node->next) {
        const struct key *key = keys;

        while (key->name && !str_is(node->key, key->name))
            key++;
        if (!key->name)
            return scope_fail(reading->scope, PAWL_INVALID_REQUEST,
                              "line %u, column %u: unknown key '%s%.*s'", node->key_line,
                              node->key_column, where, STR_ARG(words_shown(node->key)));
        TRY(key->read(reading, node, key));
    }
    return PAWL_OK;
}

static pawl_status keep_text(struct reading *reading, const struct key *key, struct buf *buf)
{
    const char **out = member_of(reading, key);

    *out = buf_take(buf, &reading->scope->arena).data;
    return *out ? PAWL_OK : scope_no_memory(reading->scope);
}

/* A list, as the option --host takes it. */
static pawl_status read_hosts(struct reading *reading, const struct node *node,
                              const struct key *key)
{
    struct buf buf;

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
    return keep_text(reading, key, &buf);
}

static pawl_status read_log(struct reading *reading, const struct node *node, const struct key *key)
{
    if (node->kind != NODE_STRING || (!str_is(node->text, "logfmt") && !str_is(node->text, "json")))
        return fail_at(reading, node, "logfmt or json");
    return read_text(reading, node, key);
}

static pawl_status read_flag(struct reading *reading, const struct node *node,
                             const struct key *key)
{
    if (node->kind != NODE_BOOL)
        return fail_at(reading, node, "true or false");
    *(bool *)member_of(reading, key) = node->truth;
    return PAWL_OK;
}

static pawl_status read_tls(struct reading *reading, const struct node *node, const struct key *key)
{
    static const struct key keys[] = { { "cert", read_text, AT(tls_cert) },
                                       { "key", read_text, AT(tls_key) },
                                       { 0 } };

    (void)key;
    TRY(read_keys(reading, node, "tls.", keys));
    if (!reading->config->tls_cert || !reading->config->tls_key)
        return fail_at(reading, node, "both cert and key");
    return PAWL_OK;
}

static pawl_status read_body_memory(struct reading *reading, const struct node *node,
                                    const struct key *key)
{
    uint64_t *out = member_of(reading, key);
    int64_t bytes;

    if (!node_to_i64(node, &bytes) || bytes < LIMIT_BATCH_TEXT)
        return fail_at(reading, node, "a number of bytes, at least 16777216");
    *out = (uint64_t)bytes;
    return PAWL_OK;
}

static pawl_status read_limits(struct reading *reading, const struct node *node,
                               const struct key *key)
{
    static const struct key keys[] = {
        { "workers", read_number, AT(workers), WORKERS_MAX, "a number of threads, 1 to 256" },
        { "body_memory", read_body_memory, AT(body_memory) },
        { "max_entries", read_number, AT(max_entries), UINT32_MAX, BOUND_EXPECTED },
        { "max_live_steps", read_number, AT(max_live_steps), UINT32_MAX, BOUND_EXPECTED },
        { 0 },
    };

    (void)key;
    return read_keys(reading, node, "limits.", keys);
}

bool config_allows_shards(uint64_t count)
{
    return shards_are_valid(count);
}

static pawl_status read_shards(struct reading *reading, const struct node *node,
                               const struct key *key)
{
    TRY(read_number(reading, node, key));
    return shards_are_valid(reading->config->shards) ? PAWL_OK
                                                     : fail_at(reading, node, key->expected);
}

/* Read here for its errors, which know their line; the engine reads them again. */
static pawl_status read_tools(struct reading *reading, const struct node *node,
                              const struct key *key)
{
    struct tool_rules rules;
    struct buf buf;

    TRY(tool_rules_read(reading->scope, node, &rules));
    buf_init(&buf, reading->scope->arena.heap, LIMIT_TEXT);
    node_print(node, &buf);
    return keep_text(reading, key, &buf);
}

struct retention_defect {
    struct reading *reading;
    const struct node *of; /* its name has the place where the value has none */
};

static void note_retention(void *context, const struct node *at, const char *message)
{
    const struct retention_defect *defect = context;

    if (!defect->reading->scope->error.status)
        (void)scope_fail(defect->reading->scope, PAWL_INVALID_REQUEST,
                         "line %u, column %u: '%.*s': %s", at->line, at->column,
                         STR_ARG(words_shown(defect->of->key)), message);
}

/* {NAME: {after_end, then}} */
static pawl_status read_retention(struct reading *reading, const struct node *node,
                                  const struct key *key)
{
    struct buf buf;

    if (node->kind != NODE_OBJECT)
        return fail_at(reading, node, "names of definitions, each with {after_end, then}");
    for (const struct node *one = node->first; one; one = one->next) {
        retention_key_check(one, note_retention, &(struct retention_defect){ reading, one });
        if (reading->scope->error.status)
            return reading->scope->error.status;
    }
    buf_init(&buf, reading->scope->arena.heap, LIMIT_TEXT);
    node_print(node, &buf);
    return keep_text(reading, key, &buf);
}

pawl_status config_read(struct scope *scope, str text, struct config *out)
{
    static const struct key keys[] = {
        { "listen", read_text, AT(listen) },
        { "store", read_text, AT(store) },
        { "hosts", read_hosts, AT(hosts) },
        { "log", read_log, AT(log) },
        { "tls", read_tls },
        { "limits", read_limits },
        { "shards", read_shards, AT(shards), SHARDS_MAX, "a power of two, 1 to 1024" },
        { "tools", read_tools, AT(tools) },
        { "retention", read_retention, AT(retention) },
        { "require_token", read_flag, AT(needs_token) },
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
