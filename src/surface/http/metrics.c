/* metrics.c - what the server has counted: answers, times, connections, streams, refusals. */
#include "api/stores.h"
#include "api/world.h"
#include "base/assert.h"
#include "surface/http/stream_int.h"
#include <stdio.h>

static const char *const limit_names[] = {
#define X(name, text) text,
    HTTP_LIMIT_MAP(X)
#undef X
};

void count_refused(struct http_server *server, enum http_limit limit)
{
    atomic_fetch_add(&server->metrics.refused[limit], 1);
}

void count_answer(struct web_request *request)
{
    struct http_metrics *metrics = &request->server->metrics;
    int64_t took_us = world_tick_us(request->server->p) - request->begun_us;
    int http = request->result.http_status;

    if (http > 0 && http < HTTP_STATUSES)
        atomic_fetch_add_explicit(&metrics->answers[http], 1, memory_order_relaxed);
    if (request->op && !request->is_mounted) {
        ASSERT(request->op - ops < OPS_MAX);
        histogram_add(&metrics->operations[request->op - ops], took_us);
    }
    request_log(request, took_us);
}

static void print_answers(const struct http_metrics *metrics, struct buf *out)
{
    char code[16];

    figure_head(out, "pawl_http_answers_total", "counter", "Answers by status.");
    for (int i = 0; i < HTTP_STATUSES; i++) {
        snprintf(code, sizeof code, "%d", i);
        if (metrics->answers[i])
            figure(out, "pawl_http_answers_total", "status", code, metrics->answers[i]);
    }
}

static void print_operations(const struct http_metrics *metrics, struct buf *out)
{
    figure_head(out, "pawl_operation_seconds", "histogram",
                "Time from a whole request to its answer.");
    for (const struct op *op = ops; op->name; op++) {
        const struct histogram *times = &metrics->operations[op - ops];

        if (times->sum_us)
            figure_histogram(out, "pawl_operation_seconds", "operation", op->name, times);
    }
}

static void print_refused(struct http_server *server, struct buf *out)
{
    figure_head(out, "pawl_http_refused_total", "counter", "What a limit has refused.");
    for (int i = 0; i < HTTP_LIMITS; i++)
        figure(out, "pawl_http_refused_total", "limit", limit_names[i],
               i == HTTP_LIMIT_TIME ? server->connections.dropped + server->arrivals.dropped
                                    : server->metrics.refused[i]);
}

void metrics_print(struct http_server *server, struct buf *out)
{
    struct stream_totals streams = siblings_streams(server);

    figure_alone(out, "pawl_http_connections", "gauge", "Open connections.",
                 connections_count(server));
    figure_alone(out, "pawl_http_body_bytes", "gauge", "Bytes of request bodies in memory.",
                 server->body_bytes);
    figure_alone(out, "pawl_http_streams", "gauge", "Open streams of entries.", streams.count);
    figure_alone(out, "pawl_http_shared_streams", "gauge",
                 "Streams that share a thread with requests.", server->shared_streams);
    figure_alone(out, "pawl_http_stream_bytes", "gauge", "Bytes of entries written to streams.",
                 streams.bytes);
    figure_alone(out, "pawl_stores_open", "gauge", "Stores that are open beside the first.",
                 stores_open_count(server->p));
    figure_alone(out, "pawl_http_requests_active", "gauge", "Requests begun and not yet answered.",
                 server->active);
    figure_alone(out, "pawl_http_requests_away", "gauge",
                 "Requests that wait for a commit or a worker.", server->away);
    print_answers(&server->metrics, out);
    print_operations(&server->metrics, out);
    print_refused(server, out);
}
