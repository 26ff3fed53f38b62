/* ops_input.c - how handlers read their input: members, filters, and values checked last. */
#include "api/ops_int.h"
#include "base/limits.h"
#include "base/time.h"
#include "model/words.h"

struct engine *op_engine(const struct op_call *call)
{
    return call->p->engine;
}

str op_text(const struct op_call *call, const char *name)
{
    const struct node *node = node_find(call->input, name);

    return node ? node->text : STR_NONE;
}

str op_ref(const struct op_call *call, const char *name)
{
    str text = op_text(call, name);

    if (call->who.actor.data && strcmp(name, "actor_ref") == 0)
        return call->who.actor; /* no other was allowed: access.c */
    return text.size > 0 ? text : STR_NONE;
}

str op_json(const struct op_call *call, const char *name)
{
    return node_raw(call->input, name);
}

bool op_is_true(const struct op_call *call, const char *name)
{
    const struct node *node = node_find(call->input, name);

    return node && node->kind == NODE_BOOL && node->truth;
}

pawl_status require_known(const struct op_call *call)
{
    str state;

    return engine_current(op_engine(call), call->scope, op_text(call, "instance_id"), &state);
}

/* ---- Filters ---- */

/* A time of nothing but white space counts as not supplied. */
static bool is_time(str key)
{
    static const char *const times[] = { "created_after", "created_before", "ended_after",
                                         "ended_before",  "fired_after",    "fired_before",
                                         "fired_at" };

    for (size_t i = 0; i < sizeof times / sizeof times[0]; i++)
        if (str_is(key, times[i]))
            return true;
    return false;
}

static pawl_status check_key(const struct op_call *call, const struct node *node, bool labels)
{
    const struct op_param *param = op_param_find(call->op, node->key);
    bool has_value = node->kind == NODE_STRING || node->kind == NODE_NUMBER;
    bool is_first = node_find_str(call->input, node->key) == node;
    bool is_label = labels && node->key.size > 6 && str_starts(node->key, STR("label."));

    if (param && param->place == IN_PATH && is_first)
        return PAWL_OK;
    if (param ? param->place == IN_PATH : !is_label)
        return op_unknown(call->scope, call->op, node->key, true, labels);
    if (!has_value || node->text.size == 0 || (str_is_blank(node->text) && !is_time(node->key)))
        return scope_fail(call->scope, PAWL_INVALID_QUERY, "the filter '%.*s' has no value",
                          STR_ARG(node->key));
    if (!is_first)
        return scope_fail(call->scope, PAWL_INVALID_QUERY, "the filter '%.*s' is given twice",
                          STR_ARG(node->key));
    return PAWL_OK;
}

pawl_status query_check(const struct op_call *call, bool labels)
{
    for (const struct node *node = call->input->first; node; node = node->next)
        TRY(check_key(call, node, labels));
    return PAWL_OK;
}

/* What cannot be a value: of a filter, or of another parameter. */
static pawl_status bad_value(const struct op_call *call)
{
    return call->op->flags & OP_ANY_QUERY ? PAWL_INVALID_QUERY : PAWL_INVALID_REQUEST;
}

pawl_status query_refuse(const struct op_call *call, const char *name, const char *expected)
{
    return scope_fail(call->scope, PAWL_INVALID_QUERY, "the filter '%s': expected %s, found '%.*s'",
                      name, expected, STR_ARG(words_shown(op_text(call, name))));
}

pawl_status query_count(const struct op_call *call, const char *name, bool *has, uint64_t *out)
{
    str text = op_text(call, name);

    *has = text.data != NULL;
    if (*has && !str_to_u64(text, out))
        return scope_fail(call->scope, bad_value(call),
                          "the filter '%s': expected a whole number, found '%.*s'", name,
                          STR_ARG(text));
    return PAWL_OK;
}

/* A '+' that was not encoded arrives as a space: in a time it can only have been a '+'. */
bool query_time_of(str text, int64_t *out)
{
    char copy[64];
    char *space;

    if (time_parse(text, out))
        return true;
    if (text.size >= sizeof copy)
        return false;
    memcpy(copy, text.data, text.size);
    copy[text.size] = 0;
    space = strrchr(copy, ' ');
    if (!space)
        return false;
    *space = '+';
    return time_parse((str){ copy, text.size }, out);
}

static pawl_status query_time(const struct op_call *call, const char *name, bool *has, int64_t *out)
{
    str text = op_text(call, name);

    *has = text.size > 0 ? !str_is_blank(text) : text.data != NULL;
    if (*has && !query_time_of(text, out))
        return query_refuse(call, name, "a time like 2026-05-01T00:00:00Z");
    return PAWL_OK;
}

pawl_status query_span(const struct op_call *call, const char *after, const char *before,
                       struct time_span *out)
{
    TRY(query_time(call, after, &out->has_after, &out->after_ms));
    TRY(query_time(call, before, &out->has_before, &out->before_ms));
    if (out->has_after && out->has_before && out->before_ms < out->after_ms)
        return scope_fail(call->scope, PAWL_INVALID_QUERY, "'%s' is earlier than '%s'", before,
                          after);
    return PAWL_OK;
}

pawl_status query_flag(const struct op_call *call, const char *name, bool *out)
{
    const struct node *node = node_find(call->input, name);
    bool is_true = op_is_true(call, name) || (node && str_is(node->text, "true"));

    *out = is_true;
    if (!node || is_true || node->kind == NODE_BOOL || str_is(node->text, "false"))
        return PAWL_OK;
    return scope_fail(call->scope, bad_value(call),
                      "'%s': expected true or false, found '%.*s'", name, STR_ARG(node->text));
}

pawl_status query_limit(const struct op_call *call, uint32_t *out)
{
    uint64_t limit = 100;
    bool has;

    TRY(query_count(call, "limit", &has, &limit));
    if (limit < 1 || limit > LIMIT_LIST)
        return scope_fail(call->scope, PAWL_INVALID_QUERY,
                          "the filter 'limit': expected 1..%d, found %llu", LIMIT_LIST,
                          (unsigned long long)limit);
    *out = (uint32_t)limit;
    return PAWL_OK;
}

pawl_status query_definition(const struct op_call *call, str *name, uint32_t *version)
{
    str reference = op_text(call, "definition");

    if (reference.data && !definition_reference(reference, name, version))
        return query_refuse(call, "definition", "a name or name@version");
    return PAWL_OK;
}

/* ---- Values that are checked last ---- */

/* A token's own actor is used as it is: it may be older than a rule. */
const char *op_ref_defect(const struct op_call *call, const char *name)
{
    str used = op_ref(call, name);
    bool is_tokens = used.data && used.data == call->who.actor.data;

    return ref_defect(call->scope, name, is_tokens ? told(op_text(call, name)) : used);
}

str op_told(const struct op_call *call, const char *name)
{
    return told(op_ref(call, name));
}
