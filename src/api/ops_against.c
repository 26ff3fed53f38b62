/* ops_against.c - definition.check with `against`: is it safe for the instances under way? */
#include "api/ops_int.h"

static void print_rows(const char *key, const char *what, const struct compare_row *rows,
                       uint32_t count, struct buf *out)
{
    json_put_open(out, key, '[');
    for (uint32_t i = 0; i < count; i++) {
        json_open(out, '{');
        json_put_str(out, what, rows[i].name);
        json_put_u64(out, "instances", rows[i].instances);
        json_put_text(out, "verdict", compare_verdict_name(rows[i].verdict));
        json_put_open(out, "missing", '[');
        for (uint32_t n = 0; n < rows[i].missing_count; n++)
            json_str(out, rows[i].missing[n]);
        json_close(out, ']');
        json_close(out, '}');
    }
    json_close(out, ']');
}

static void print_comparison(const struct comparison *comparison, struct buf *out)
{
    json_open(out, '{');
    json_put_str(out, "name", comparison->name);
    json_put_open(out, "versions", '[');
    for (uint32_t i = 0; i < comparison->version_count; i++)
        json_u64(out, comparison->versions[i]);
    json_close(out, ']');
    print_rows("states", "state", comparison->states, comparison->state_count, out);
    print_rows("steps", "step", comparison->steps, comparison->step_count, out);
    json_put_bool(out, "safe", comparison->is_safe);
    json_close(out, '}');
}

pawl_status print_against(const struct op_call *call, bool has_errors, struct buf *out)
{
    str reference = op_text(call, "against"), name;
    struct comparison comparison;
    uint32_t version;
    pawl_status status = PAWL_NOT_KNOWN;

    if (!reference.data)
        return PAWL_OK;
    json_key(out, "against");
    if (has_errors) {
        json_null(out);
        return PAWL_OK;
    }
    if (definition_reference(reference, &name, &version))
        status = engine_compare(op_engine(call), call->scope, name, version, op_text(call, "text"),
                                &comparison);
    if (status == PAWL_NOT_KNOWN)
        return scope_fail(call->scope, status, "no definition '%.*s' to compare with",
                          STR_ARG(reference));
    if (status == PAWL_OK)
        print_comparison(&comparison, out);
    return status;
}
