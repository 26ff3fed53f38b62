/* retention_key.c - the keys of `retention:`, and what they may say. */
#include "model/retention_key.h"
#include "base/time.h"
#include "model/vocabulary.h"
#include "model/words.h"
#include <stdio.h>

#define AFTER_MIN_MS 1000
#define AFTER_MAX_MS (INT64_C(100) * 366 * 24 * 3600 * 1000)

/* Keys: `retention`. */
static const struct known_key retention_keys[] = {
    { "after_end", "DURATION", "how long an instance is kept once it has ended", NULL, "required" },
    { "then", "erase \\| archive",
      "what is done with it then: what it holds is erased, or it moves into the archive file", NULL,
      "required" },
    { 0 },
};

static bool read_after(const struct node *node, int64_t *ms)
{
    return node && node->kind == NODE_STRING && duration_parse(node->text, ms) &&
           *ms >= AFTER_MIN_MS && *ms <= AFTER_MAX_MS;
}

static void check_one(const struct node *node, schema_report *report, void *context)
{
    const struct known_key *const tables[] = { retention_keys, NULL };
    const struct node at_key = { .line = node->key_line, .column = node->key_column };
    char hint[KEY_HINT_SIZE], message[KEY_HINT_SIZE + 256];
    int64_t ms;

    if (!keys_have(retention_keys, node->key)) {
        keys_hint(tables, node->key, hint);
        snprintf(message, sizeof message, "unknown key 'retention.%.*s'; %s",
                 STR_ARG(words_shown(node->key)), hint);
        report(context, &at_key, message);
    } else if (str_is(node->key, "after_end") && !read_after(node, &ms)) {
        report(context, node,
               "'retention.after_end': expected a duration from 1s to 36600d, such as 90d");
    } else if (str_is(node->key, "then") && !str_is(node->text, "erase") &&
               !str_is(node->text, "archive")) {
        report(context, node, "'retention.then': expected erase or archive, found something else");
    }
}

void retention_key_check(const struct node *retention, schema_report *report, void *context)
{
    if (retention->kind != NODE_OBJECT) {
        report(context, retention, "'retention': expected {after_end, then}");
        return;
    }
    for (const struct node *node = retention->first; node; node = node->next)
        check_one(node, report, context);
    if (!node_find(retention, "after_end"))
        report(context, retention, "'retention': expected after_end, such as 90d, found none");
    if (!node_find(retention, "then"))
        report(context, retention,
               "'retention': expected `then: erase` or `then: archive`, found none");
}

struct retention retention_of(const struct node *retention)
{
    struct retention found = { 0 };

    if (!retention || retention->kind != NODE_OBJECT ||
        !read_after(node_find(retention, "after_end"), &found.after_ms))
        return (struct retention){ 0 };
    found.is_archive = str_is(node_text(retention, "then"), "archive");
    return found;
}

struct retention retention_read(struct scope *scope, str text)
{
    struct node *document = NULL;

    if (!text.data || !memmem(text.data, text.size, "retention", strlen("retention")) ||
        node_read(scope, text, &document) != PAWL_OK || document->kind != NODE_OBJECT)
        return (struct retention){ 0 };
    return retention_of(node_find(document, "retention"));
}
