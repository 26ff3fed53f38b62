/* args.c - arguments of the typed functions: texts that end in NUL become views, and are looked at.
 */
#include "api/args.h"
#include "base/node.h"
#include "base/time.h"
#include "model/rights.h"
#include <stdio.h>

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
    pawl_status status = check_utf8(scope, what, text);

    if (status || !text.data)
        return status;
    if (str_is_blank(text))
        return scope_fail(scope, PAWL_INVALID_REQUEST,
                          "'%s' is nothing but white space: leave it out, or say something", what);
    if (strcmp(what, "actor_ref") == 0 && actor_is_reserved(text))
        return scope_fail(scope, PAWL_INVALID_REQUEST, "'%s' %s", what, ACTOR_RESERVED_WORDS);
    return PAWL_OK;
}

pawl_status check_json(struct scope *scope, const char *what, str text, bool is_object)
{
    struct node *node;
    pawl_status status = PAWL_OK;

    if (!text.data)
        return PAWL_OK;
    status = node_read_json(scope, text, &node);
    if (status == PAWL_INVALID_REQUEST) {
        char words[300];

        snprintf(words, sizeof words, "%.*s", 280, scope->error.message);
        return scope_fail(scope, PAWL_INVALID_REQUEST, "%s: %s", what, words);
    }
    if (!status && is_object && node->kind != NODE_OBJECT)
        return scope_fail(scope, PAWL_INVALID_REQUEST, "%s: expected an object, found %s", what,
                          node_kind_name(node->kind));
    return status;
}

pawl_status read_time(struct scope *scope, const char *what, const char *text, bool *has,
                      int64_t *out)
{
    *has = text && !str_is_blank(str_of(text));
    if (*has && !time_parse(str_of(text), out))
        return scope_fail(scope, PAWL_INVALID_REQUEST,
                          "'%s' is not a time like 2026-05-01T00:00:00Z (RFC 3339)", what);
    return PAWL_OK;
}
