/* typed_args.c - values that both the typed functions and the operations take, checked in one way;
 * and what the typed functions check besides: a surface has seen to that for an operation. */
#include "api/typed_args.h"
#include "base/time.h"
#include "model/rights.h"
#include <stdio.h>

/* ---- Of both ---- */

str told(str text)
{
    return text.data && str_is_blank(text) ? STR_NONE : text;
}

static const char *words(struct scope *scope, const char *name, const char *rest)
{
    struct buf text;
    str kept;

    buf_init(&text, scope->arena.heap, 256);
    buf_fmt(&text, "'%s' %s", name, rest);
    kept = buf_take(&text, &scope->arena);
    return kept.data ? kept.data : rest;
}

const char *ref_defect(struct scope *scope, const char *name, str text)
{
    bool is_actor = strcmp(name, "actor_ref") == 0 || strcmp(name, "actor") == 0;

    if (is_actor && actor_is_reserved(text) && !scope->is_alarms)
        return words(scope, name, ACTOR_RESERVED_WORDS);
    if (!text.data || !str_is_blank(text))
        return NULL;
    return words(scope, name, "is nothing but white space: leave it out, or say something");
}

const char *time_defect(struct scope *scope, const char *name, str text, bool *has, int64_t *out)
{
    *has = text.data && !str_is_blank(text);
    if (!*has || time_parse(text, out))
        return NULL;
    return words(scope, name, "is not a time like 2026-05-01T00:00:00Z (RFC 3339)");
}

const char *metadata_defect(const struct node *node)
{
    bool is_empty =
        node && ((node->kind == NODE_STRING && node->text.size == 0) ||
                 ((node->kind == NODE_OBJECT || node->kind == NODE_ARRAY) && node->count == 0));

    return is_empty ? "'instance_metadata' is empty: leave it out, or say something" : NULL;
}

pawl_status check_labels(struct scope *scope, const struct node *labels)
{
    for (const struct node *label = labels ? labels->first : NULL; label; label = label->next)
        if (label->kind != NODE_STRING)
            return scope_fail(scope, PAWL_INVALID_REQUEST,
                              "'labels': '%.*s' must be a string, found %s", STR_ARG(label->key),
                              node_kind_name(label->kind));
    return PAWL_OK;
}

pawl_status defect_status(struct scope *scope, const char *defect)
{
    return defect ? scope_fail(scope, PAWL_INVALID_REQUEST, "%s", defect) : PAWL_OK;
}

/* ---- Of the typed functions ---- */

str supplied(const char *text)
{
    return text && *text ? str_of(text) : STR_NONE;
}

pawl_status check_utf8(struct scope *scope, const char *what, str text)
{
    if (!text.data || str_is_utf8(text, false))
        return PAWL_OK;
    return scope_fail(scope, PAWL_INVALID_REQUEST, "%s: expected UTF-8, found other bytes", what);
}

pawl_status check_ref(struct scope *scope, const char *what, str text)
{
    TRY(check_utf8(scope, what, text));
    return defect_status(scope, ref_defect(scope, what, text));
}

pawl_status check_json(struct scope *scope, const char *what, str text, struct node **out)
{
    pawl_status status = PAWL_OK;

    *out = NULL;
    if (text.data)
        status = node_read_json(scope, text, out);
    if (status == PAWL_INVALID_REQUEST) {
        char why[300];

        snprintf(why, sizeof why, "%.*s", 280, scope->error.message);
        return scope_fail(scope, PAWL_INVALID_REQUEST, "%s: %s", what, why);
    }
    return status;
}

const char *late_words(struct scope *scope, pawl_status status)
{
    return status ? arena_text(&scope->arena, str_of(scope->error.message)) : NULL;
}
