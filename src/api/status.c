/* status.c - what each status is called, means and answers: read off PAWL_STATUS_MAP. */
#include "api/ops.h"

struct status_row {
    const char *token, *text;
    int http;
};

static struct status_row row_of(pawl_status status)
{
    switch (status) {
#define X(name, code, token, http, text)                                                           \
    case PAWL_##name:                                                                              \
        return (struct status_row){ token, text, http };
        PAWL_STATUS_MAP(X)
#undef X
    }
    return (struct status_row){ "unknown-status", "not a status of this version", 500 };
}

const char *pawl_status_name(pawl_status status)
{
    return row_of(status).token;
}

int pawl_status_http(pawl_status status)
{
    return row_of(status).http;
}

const char *pawl_status_text(pawl_status status)
{
    return row_of(status).text;
}

void op_problem(pawl_status status, const char *detail, struct buf *out)
{
    struct status_row row = row_of(status);

    json_open(out, '{');
    json_key(out, "type");
    json_text(out, "about:blank");
    json_key(out, "title");
    json_text(out, row.text);
    json_key(out, "status");
    json_i64(out, row.http);
    json_key(out, "detail");
    json_text(out, detail && detail[0] ? detail : row.text);
    json_key(out, "reason");
    json_text(out, row.token);
    json_close(out, '}');
}
