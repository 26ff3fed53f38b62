/* ops_sql.c - store.sql: read-only SQL over the views, for people. It has no HTTP route: what
 * SQL can see is everything, and a statement costs as much as its author likes, up to its
 * timeout. */
#include "api/ops_int.h"
#include "base/limits.h"
#include "base/time.h"

#define TIMEOUT_MS ((int64_t)30 * 1000)

struct sql_answer {
    struct buf *out;
    bool begun;
};

static void put_columns(struct buf *out, uint32_t count, const str *names)
{
    json_put_open(out, "columns", '[');
    for (uint32_t i = 0; i < count; i++)
        json_str(out, names[i]);
    json_close(out, ']');
    json_put_open(out, "rows", '[');
}

static pawl_status put_row(void *context, uint32_t count, const str *names, const str *values,
                           const bool *are_numbers)
{
    struct sql_answer *answer = context;

    if (!answer->begun)
        put_columns(answer->out, count, names);
    answer->begun = true;
    json_open(answer->out, '[');
    for (uint32_t i = 0; i < count; i++)
        (are_numbers[i] ? json_raw : json_str)(answer->out, values[i]);
    json_close(answer->out, ']');
    return answer->out->failed ? PAWL_TOO_LARGE : PAWL_OK;
}

/* {columns: [...], rows: [[...]]}: numbers as numbers, NULL as null, all else as its text. */
pawl_status op_store_sql(struct op_call *call, struct buf *out)
{
    struct sql_answer answer = { .out = out };
    str timeout = op_text(call, "timeout");
    int64_t timeout_ms = TIMEOUT_MS;
    pawl_status status;

    if (timeout.data && (!duration_parse(timeout, &timeout_ms) || timeout_ms <= 0))
        return scope_fail(call->scope, PAWL_INVALID_REQUEST,
                          "'timeout': expected a duration like 30s or 5m, found '%.*s'",
                          STR_ARG(timeout));
    status = store_sql(engine_store(op_engine(call)), call->scope, op_text(call, "text"),
                       timeout_ms, put_row, &answer);
    if (status == PAWL_TOO_LARGE && out->failed)
        return scope_fail(call->scope, status, "the answer is too large; add a LIMIT");
    if (status != PAWL_OK)
        return status;
    if (!answer.begun)
        put_columns(out, 0, NULL);
    json_close(out, ']');
    return PAWL_OK;
}
