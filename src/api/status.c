/* status.c - what each status is called, means and answers: read off PAWL_STATUS_MAP. */
#include "api/ops.h"
#include <stdio.h>

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

/* ---- What a remote caller does not see ---- */

/* The path's end: after the last word with a slash before the next mark. Names may have blanks. */
static const char *end_of_path(const char *path)
{
    const char *end = path, *word = path;

    while (*word && strncmp(word, ": ", 2) != 0 && strncmp(word, "; ", 2) != 0) {
        size_t size = strcspn(word, " '\",;:()");

        if (memchr(word, '/', size) && strncmp(word, "//", 2) != 0)
            end = word + size;
        word += size;
        if (*word && strncmp(word, ": ", 2) != 0 && strncmp(word, "; ", 2) != 0)
            word++;
    }
    return end > path ? end : path + 1;
}

/* A path begins neither with the "//" of a URL nor with the slash of a word such as I/O. */
const char *op_detail(pawl_status status, const char *words, char out[OP_DETAIL_SIZE])
{
    size_t used = 0;

    if (!words ||
        (status != PAWL_STORAGE_FAILURE && status != PAWL_OUTCOME_UNKNOWN && status != PAWL_IN_USE))
        return words;
    for (const char *at = words; *at && used + 1 < OP_DETAIL_SIZE;) {
        if (at[0] == '/' && at[1] != '/' && (at == words || strchr(" '\"(:=", at[-1]))) {
            used += (size_t)snprintf(out + used, OP_DETAIL_SIZE - used, "the store's file");
            at = end_of_path(at);
        } else {
            out[used++] = *at++;
        }
    }
    out[used < OP_DETAIL_SIZE ? used : OP_DETAIL_SIZE - 1] = '\0';
    return out;
}

void op_problem(pawl_status status, const char *detail, struct buf *out)
{
    struct status_row row = row_of(status);

    json_open(out, '{');
    json_put_text(out, "type", "about:blank");
    json_put_text(out, "title", row.text);
    json_put_i64(out, "status", row.http);
    json_put_text(out, "detail", detail && detail[0] ? detail : row.text);
    json_put_text(out, "reason", row.token);
    json_close(out, '}');
}

void op_problem_remote(pawl_status status, const char *words, struct buf *out)
{
    char detail[OP_DETAIL_SIZE];

    op_problem(status, op_detail(status, words, detail), out);
}
