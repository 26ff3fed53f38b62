/* ops_against.c - definition.check with `against`: is it safe for the instances under way? */
#include "api/ops_int.h"
#include "api/shards.h"

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

static pawl_status add_row(struct scope *scope, const struct compare_row *row,
                           struct compare_row **rows, uint32_t *count)
{
    struct compare_row *more;
    uint32_t at = *count;

    for (uint32_t i = 0; i < *count; i++)
        if (str_eq((*rows)[i].name, row->name)) {
            (*rows)[i].instances += row->instances;
            return PAWL_OK;
        }
    more = ARENA_ARRAY(&scope->arena, struct compare_row, *count + 1);
    TRY_MEMORY(scope, more);
    if (at > 0)
        memcpy(more, *rows, at * sizeof *more);
    for (; at > 0 && str_compare(more[at - 1].name, row->name) > 0; at--)
        more[at] = more[at - 1];
    more[at] = *row;
    (*count)++;
    *rows = more;
    return PAWL_OK;
}

static pawl_status add_version(struct scope *scope, uint32_t version, struct comparison *sum)
{
    uint32_t at = sum->version_count, *more;

    for (uint32_t i = 0; i < sum->version_count; i++)
        if (sum->versions[i] == version)
            return PAWL_OK;
    more = ARENA_ARRAY(&scope->arena, uint32_t, sum->version_count + 1);
    TRY_MEMORY(scope, more);
    if (at > 0)
        memcpy(more, sum->versions, at * sizeof *more);
    for (; at > 0 && more[at - 1] > version; at--)
        more[at] = more[at - 1];
    more[at] = version;
    sum->versions = more;
    sum->version_count++;
    return PAWL_OK;
}

static pawl_status add_comparison(struct scope *scope, const struct comparison *one,
                                  struct comparison *sum)
{
    sum->is_safe = sum->is_safe && one->is_safe;
    for (uint32_t i = 0; i < one->version_count; i++)
        TRY(add_version(scope, one->versions[i], sum));
    for (uint32_t i = 0; i < one->state_count; i++)
        TRY(add_row(scope, &one->states[i], &sum->states, &sum->state_count));
    for (uint32_t i = 0; i < one->step_count; i++)
        TRY(add_row(scope, &one->steps[i], &sum->steps, &sum->step_count));
    return PAWL_OK;
}

/* The home shard has every definition, each of the others those that it has used. */
static pawl_status compare_all(const struct op_call *call, str name, uint32_t version,
                               struct comparison *out)
{
    struct comparison one;
    pawl_status status;

    TRY(engine_compare(op_engine(call), call->scope, name, version, op_text(call, "text"), out));
    for (uint32_t i = 1; i < shards_count(call->p); i++) {
        status = engine_compare(shard_at(call->p, i)->engine, call->scope, name, version,
                                op_text(call, "text"), &one);
        if (status == PAWL_OK)
            status = add_comparison(call->scope, &one, out);
        if (status != PAWL_OK && status != PAWL_NOT_KNOWN)
            return status;
    }
    return PAWL_OK;
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
        status = compare_all(call, name, version, &comparison);
    if (status == PAWL_NOT_KNOWN)
        return scope_fail(call->scope, status, "no definition '%.*s' to compare with",
                          STR_ARG(reference));
    if (status == PAWL_OK)
        print_comparison(&comparison, out);
    return status;
}
