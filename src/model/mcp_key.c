/* mcp_key.c - the keys of `mcp:`, and what they may say. */
#include "model/mcp_key.h"
#include "base/time.h"
#include "model/vocabulary.h"
#include "model/words.h"
#include <stdio.h>

/* Keys: `mcp`. */
static const struct known_key mcp_keys[] = {
    { "task", "auto | required | never",
      "whether a client that knows tasks gets a task at once, or waits", NULL,
      "auto; of a machine never" },
    { "sync_wait", "DURATION", "how long a call without a task waits for the end", NULL, "10s" },
    { "description", "TEXT", "what agents read about the tool", NULL, "the definition's" },
    { "result", "SCHEMA", "what the result is: an object", NULL, "any result" },
    { "read_only", "true | false", "whether it changes nothing that matters", NULL, "false" },
    { "destructive", "true | false", "whether it may overwrite or delete something", NULL,
      "whether its steps reach beyond pawl" },
    { "idempotent", "true | false", "whether a second call with the same arguments has no effect",
      NULL, "false" },
    { "open_world", "true | false", "whether it acts on anything outside of pawl", NULL,
      "whether its steps reach beyond pawl" },
    { 0 },
};

static void check_result(const struct node *node, schema_report *report, void *context)
{
    key_schema_check(node, "mcp.result", report, context);
    if (node->kind == NODE_OBJECT && !str_is(node_text(node, "type"), "object"))
        report(context, node, "'mcp.result': expected the schema of an object: {type: object}");
}

static void check_value(const struct node *node, schema_report *report, void *context)
{
    static const char *const modes[] = { "auto", "required", "never", NULL };
    static const char *const hints[] = { "read_only", "destructive", "idempotent", "open_world",
                                         NULL };
    char message[KEY_HINT_SIZE];
    int64_t ms;

    if (str_is(node->key, "result"))
        check_result(node, report, context);
    else if (str_is_one_of(node->key, hints) && node->kind != NODE_BOOL) {
        snprintf(message, sizeof message, "'mcp.%.*s': expected true or false", STR_ARG(node->key));
        report(context, node, message);
    } else if (str_is(node->key, "task") && !str_is_one_of(node->text, modes))
        report(context, node, "'mcp.task': expected auto, required or never, found something else");
    else if (str_is(node->key, "sync_wait") &&
             (node->kind != NODE_STRING || !duration_parse(node->text, &ms) || ms > 300000))
        report(context, node, "'mcp.sync_wait': expected a duration of at most 5m, such as 10s");
    else if (str_is(node->key, "description") && node->kind != NODE_STRING)
        report(context, node, "'mcp.description': expected a text");
}

static void check_one(const struct node *node, schema_report *report, void *context)
{
    const struct known_key *const tables[] = { mcp_keys, NULL };
    const struct node at_key = { .line = node->key_line, .column = node->key_column };
    char hint[KEY_HINT_SIZE], message[KEY_HINT_SIZE + 256];

    if (keys_have(mcp_keys, node->key)) {
        check_value(node, report, context);
        return;
    }
    keys_hint(tables, node->key, hint);
    snprintf(message, sizeof message, "unknown key 'mcp.%.*s'; %s", STR_ARG(words_shown(node->key)),
             hint);
    report(context, &at_key, message);
}

void mcp_key_check(const struct node *mcp, schema_report *report, void *context)
{
    if (mcp->kind != NODE_OBJECT) {
        report(context, mcp, "'mcp': expected {task, sync_wait, description, result, ...}");
        return;
    }
    for (const struct node *node = mcp->first; node; node = node->next)
        check_one(node, report, context);
}
