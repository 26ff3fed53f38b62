/* log.c - who asked for what, and how it went: a request's id, its trace, and its line in the log.
 */
#include "api/world.h"
#include "base/time.h"
#include "base/trace.h"
#include "surface/http/http_int.h"
#include <ctype.h>
#include <stdio.h>

/* ---- Ids ---- */

/* What goes back into a header and a log must not be able to look like more than a word. */
static bool is_word(str text)
{
    for (size_t i = 0; i < text.size; i++)
        if (!isalnum((unsigned char)text.data[i]) && !strchr("-._~:/+=@", text.data[i]))
            return false;
    return text.size > 0 && text.size < REQUEST_ID_SIZE;
}

void request_number(struct web_request *request)
{
    struct http_server *server = request->server;

    request->number = atomic_fetch_add(&server->request_count, 1) + 1;
    snprintf(request->id, sizeof request->id, "%016llx-%llu", (unsigned long long)server->nonce,
             (unsigned long long)request->number);
}

void request_name(struct web_request *request)
{
    str given = request_header(request, "X-Request-Id");

    request_number(request);
    if (given.data && is_word(given))
        memcpy(request->id, given.data, given.size + 1);
}

/* ---- W3C trace context ---- */

/* "00-TRACE-PARENT-FLAGS"; what is no such thing is ignored, as the standard says. The answer has
 * the same trace with a span of our own; entries keep what was sent. */
void request_trace(struct web_request *request)
{
    str given = request_header(request, "traceparent");

    if (!trace_is_valid(given))
        return;
    request->call.trace = given;
    snprintf(request->trace, sizeof request->trace, "%.36s%016llx%s", given.data,
             (unsigned long long)(request->server->nonce ^ request->number), given.data + 52);
}

/* ---- The line ---- */

/* Quoted where it is more than a word; apart, because json_str() looks for a comma to put. */
static void add_text(struct buf *line, enum http_log format, const char *name, str value)
{
    struct buf quoted;

    if (!value.data || value.size == 0)
        return;
    if (format == HTTP_LOG_JSON) {
        json_put_str(line, name, value);
        return;
    }
    buf_init(&quoted, &heap_libc, 0);
    if (!is_word(value))
        json_str(&quoted, value);
    buf_fmt(line, " %s=", name);
    buf_str(line, quoted.size > 0 ? buf_view(&quoted) : value);
    buf_fini(&quoted);
}

static void add_number(struct buf *line, enum http_log format, const char *name, uint64_t number)
{
    if (format == HTTP_LOG_JSON)
        json_put_u64(line, name, number);
    else
        buf_fmt(line, " %s=%llu", name, (unsigned long long)number);
}

/* Without the query: it may say more about people than a log should. */
static void add_request(struct buf *line, enum http_log format, const struct web_request *request)
{
    str path = { request->target, strcspn(request->target, "?") };

    add_text(line, format, "id", str_of(request->id));
    add_text(line, format, "trace", (str){ request->trace + 3, request->trace[0] ? 32 : 0 });
    add_text(line, format, "method", request->method);
    add_text(line, format, "path", str_is_utf8(path, false) ? path : STR("(not UTF-8)"));
    if (!str_is(request->store, "default"))
        add_text(line, format, "store", request->store);
    add_text(line, format, "operation", str_of(request->op ? request->op->name : NULL));
}

void request_log(const struct web_request *request, int64_t took_us)
{
    const struct http_options *options = &request->server->options;
    enum http_log format = options->log_format;
    char at[TIME_TEXT_SIZE];
    struct buf line;

    if (!options->log)
        return;
    buf_init(&line, &heap_libc, 0);
    time_print(world_now_ms(request->server->p), at);
    buf_str(&line, format == HTTP_LOG_JSON ? STR("{\"at\":\"") : STR("at="));
    buf_fmt(&line, "%s%s", at, format == HTTP_LOG_JSON ? "\"" : "");
    add_request(&line, format, request);
    add_number(&line, format, "status", (uint64_t)request->result.http_status);
    if (request->status != PAWL_OK)
        add_text(&line, format, "reason", str_of(pawl_status_name(request->status)));
    if (request->status == PAWL_STORAGE_FAILURE || request->status == PAWL_OUTCOME_UNKNOWN)
        add_text(&line, format, "detail", str_of(request->scope.error.message)); /* with paths */
    add_number(&line, format, "us", (uint64_t)took_us);
    add_number(&line, format, "received", request->received);
    add_number(&line, format, "sent", request->answer.size);
    buf_str(&line, format == HTTP_LOG_JSON ? STR("}\n") : STR("\n"));
    if (!line.failed)
        options->log(options->log_context, buf_view(&line).data, line.size);
    buf_fini(&line);
}
