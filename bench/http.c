/* http.c - the server under many connections: fires against GET /healthz, batches against single
 * fires, and thousands of idle streams. */
#include "bench.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CONNECTIONS 64
#define BATCHES     4 /* connections that send batches */
#define BATCH_LINES 500
#define STREAMS     10000

struct asking {
    int port;
    struct crowd *crowd;
    size_t lines; /* of a batch */
    char *text;
    size_t room;
};

static const char *anyone(struct asking *asking)
{
    return asking->crowd->ids[random_next(&asking->crowd->seed) % asking->crowd->count].text;
}

static const char *ask_health(void *context, size_t *size)
{
    struct asking *asking = context;

    *size = (size_t)snprintf(asking->text, asking->room,
                             "GET /healthz HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n\r\n", asking->port);
    return asking->text;
}

static const char *ask_fire(void *context, size_t *size)
{
    static const char body[] = "{\"action\":\"turn\",\"actor_ref\":\"" ACTOR "\"}";
    struct asking *asking = context;

    *size = (size_t)snprintf(asking->text, asking->room,
                             "POST /v1/instances/%s/fire HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n"
                             "Content-Type: application/json\r\nContent-Length: %zu\r\n\r\n%s",
                             anyone(asking), asking->port, sizeof body - 1, body);
    return asking->text;
}

static const char *ask_batch(void *context, size_t *size)
{
    static char lines[BATCH_LINES * 160];
    struct asking *asking = context;
    size_t used = 0;

    for (size_t i = 0; i < asking->lines; i++)
        used += (size_t)snprintf(lines + used, sizeof lines - used,
                                 "{\"operation\":\"instance.fire\",\"input\":{\"instance_id\":"
                                 "\"%s\",\"action\":\"turn\",\"actor_ref\":\"" ACTOR "\"}}\n",
                                 anyone(asking));
    *size = (size_t)snprintf(asking->text, asking->room,
                             "POST /v1/batch HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n"
                             "Content-Type: application/x-ndjson\r\nContent-Length: %zu\r\n\r\n%s",
                             asking->port, used, lines);
    return asking->text;
}

static void report_ratio(struct bench *bench, const char *key, const char *what, double gate,
                         double stretch, double value, double subject, double base)
{
    struct row row = {
        .unit = "x", .sense = AT_LEAST, .gate = gate, .stretch = stretch, .value = value
    };

    snprintf(row.key, sizeof row.key, "%s", key);
    snprintf(row.what, sizeof row.what, "%s", what);
    beside(&row, "%.0f/s beside %.0f/s", subject, base);
    report(bench, &row);
}

static void measure_rates(struct bench *bench, const struct server *server, struct asking *asking)
{
    struct question health = { ask_health, asking }, fire = { ask_fire, asking };
    struct question batch = { ask_batch, asking };
    double healths[REPEATS], fires[REPEATS], batches[REPEATS], ratios[REPEATS], gains[REPEATS];
    double seconds = bench->quick ? 0.3 : 2;

    for (int i = 0; i < REPEATS; i++) {
        healths[i] = http_rate(server->port, CONNECTIONS, seconds, &health);
        fires[i] = http_rate(server->port, CONNECTIONS, seconds, &fire);
        batches[i] = http_rate(server->port, BATCHES, seconds, &batch) * (double)asking->lines;
        ratios[i] = fires[i] / healths[i];
        gains[i] = batches[i] / fires[i];
    }
    report_ratio(bench, "http_fire_ratio", "HTTP fire, 64 keep-alive connections, against healthz",
                 0.3, 0.4, median(ratios, REPEATS), median(fires, REPEATS),
                 median(healths, REPEATS));
    report_ratio(bench, "http_batch_gain", "HTTP batch of 500, fires against single HTTP fires", 3,
                 6, median(gains, REPEATS), median(batches, REPEATS), median(fires, REPEATS));
}

static void measure_streams(struct bench *bench, const struct server *server, struct asking *asking)
{
    int count = bench->quick ? 500 : STREAMS;
    int *streams = get_memory(sizeof *streams * (size_t)count);
    struct question fire = { ask_fire, asking };
    struct row each = { .key = "http_stream_kib", .unit = "KiB", .sense = AT_MOST };
    struct row heard = { .key = "http_stream_all_s", .unit = "s", .sense = AT_MOST };
    double took[REPEATS], before = resident_mib(server->pid);
    char text[128];

    snprintf(text, sizeof text, "GET /v1/events HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n\r\n",
             server->port);
    streams_open(server->port, streams, count, text, ":\nid: ");
    each.value = (resident_mib(server->pid) - before) * 1024 / count;
    each.gate = 12, each.stretch = 6;
    snprintf(each.what, sizeof each.what, "resident: each of %d idle streams", count);
    report(bench, &each);
    for (int i = 0; i < REPEATS; i++)
        took[i] = streams_hear(streams, count, server->port, &fire, "event: entry");
    heard.value = median(took, REPEATS);
    heard.gate = 1, heard.stretch = 0.2;
    snprintf(heard.what, sizeof heard.what, "one event to %d streams, until the last has it",
             count);
    report(bench, &heard);
    for (int i = 0; i < count; i++)
        close(streams[i]);
    free(streams);
}

void measure_http(struct bench *bench)
{
    struct server server;
    struct crowd crowd;
    struct asking asking = { .crowd = &crowd,
                             .lines = BATCH_LINES,
                             .room = BATCH_LINES * 160 + 512 };

    files_raise();
    asking.text = get_memory(asking.room);
    crowd_make(bench, "http.db", bench->quick ? 1000 : 10000, &crowd);
    crowd_close(&crowd);
    server_start(bench, "http.db", &server);
    asking.port = server.port;
    measure_rates(bench, &server, &asking);
    server_stop(&server);
    server_start(bench, "http.db", &server);
    asking.port = server.port;
    measure_streams(bench, &server, &asking);
    server_stop(&server);
    crowd_free(&crowd);
    store_remove(bench, "http.db");
    free(asking.text);
}
