/* mcp.c - the Model Context Protocol beside /v1, with the same operations: a tool that fires, a task
 * that is looked at, and streams that listen to one process. */
#include "bench.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CONNECTIONS 64
#define STREAMS     10000
#define TEXT_SIZE   2048
#define META                                                                                       \
    "\"_meta\":{\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\","                       \
    "\"io.modelcontextprotocol/clientCapabilities\":{\"extensions\":{"                             \
    "\"io.modelcontextprotocol/tasks\":{}}}}"

struct asking {
    int port;
    struct crowd *crowd;
    char text[TEXT_SIZE];
};

static const char *anyone(struct asking *asking)
{
    return asking->crowd->ids[random_next(&asking->crowd->seed) % asking->crowd->count].text;
}

static const char *post(struct asking *asking, const char *path, const char *headers,
                        const char *body, size_t *size)
{
    *size = (size_t)snprintf(asking->text, sizeof asking->text,
                             "POST %s HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n%s"
                             "Content-Type: application/json\r\nContent-Length: %zu\r\n\r\n%s",
                             path, asking->port, headers, strlen(body), body);
    return asking->text;
}

static const char *post_mcp(struct asking *asking, const char *method, const char *name,
                            const char *params, size_t *size)
{
    char headers[400], body[1024];

    snprintf(headers, sizeof headers,
             "Accept: application/json, text/event-stream\r\nMCP-Protocol-Version: 2026-07-28\r\n"
             "Mcp-Method: %s\r\n%s%s%s",
             method, name ? "Mcp-Name: " : "", name ? name : "", name ? "\r\n" : "");
    snprintf(body, sizeof body,
             "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"%s\",\"params\":{%s," META "}}", method,
             params);
    return post(asking, "/mcp", headers, body, size);
}

static const char *ask_fire(void *context, size_t *size)
{
    struct asking *asking = context;
    char path[128];

    snprintf(path, sizeof path, "/v1/instances/%s/fire", anyone(asking));
    return post(asking, path, "", "{\"action\":\"turn\",\"actor_ref\":\"" ACTOR "\"}", size);
}

static const char *ask_tool(void *context, size_t *size)
{
    struct asking *asking = context;
    char params[300];

    snprintf(params, sizeof params,
             "\"name\":\"process_fire\",\"arguments\":{\"instance_id\":\"%s\",\"action\":\"turn\","
             "\"actor_ref\":\"" ACTOR "\"}",
             anyone(asking));
    return post_mcp(asking, "tools/call", "process_fire", params, size);
}

static const char *ask_instance(void *context, size_t *size)
{
    struct asking *asking = context;

    *size = (size_t)snprintf(asking->text, sizeof asking->text,
                             "GET /v1/instances/%s HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n\r\n",
                             anyone(asking), asking->port);
    return asking->text;
}

static const char *ask_task(void *context, size_t *size)
{
    struct asking *asking = context;
    const char *id = anyone(asking);
    char params[100];

    snprintf(params, sizeof params, "\"taskId\":\"%s\"", id);
    return post_mcp(asking, "tasks/get", id, params, size);
}

static void measure_ratio(struct bench *bench, struct asking *asking, struct row *row,
                          const char *(*subject)(void *, size_t *),
                          const char *(*base)(void *, size_t *))
{
    struct question asked = { subject, asking }, beside_it = { base, asking };
    double seconds = bench->quick ? 0.3 : 2, ratios[REPEATS], rates[REPEATS], bases[REPEATS];

    for (int i = 0; i < REPEATS; i++) {
        bases[i] = http_rate(asking->port, CONNECTIONS, seconds, &beside_it);
        rates[i] = http_rate(asking->port, CONNECTIONS, seconds, &asked);
        ratios[i] = rates[i] / bases[i];
    }
    row->unit = "x";
    row->sense = AT_LEAST;
    row->value = median(ratios, REPEATS);
    beside(row, "%.0f/s beside %.0f/s", median(rates, REPEATS), median(bases, REPEATS));
    report(bench, row);
}

/* All of them listen to one process, which is fired once. */
static void measure_streams(struct bench *bench, const struct server *server, struct asking *asking)
{
    int count = bench->quick ? 2000 : STREAMS,
        *streams = get_memory(sizeof *streams * (size_t)count);
    struct question fire = { ask_fire, asking };
    struct row each = { .key = "mcp_stream_kib", .unit = "KiB", .sense = AT_MOST, .gate = 12 };
    struct row heard = { .key = "mcp_stream_all_s", .unit = "s", .sense = AT_MOST, .gate = 1 };
    double took[REPEATS], before = resident_mib(server->pid);
    char params[200];
    size_t size;

    asking->crowd->count = 1;
    snprintf(params, sizeof params,
             "\"notifications\":{\"resourceSubscriptions\":[\"pawl://process/%s\"]}",
             anyone(asking));
    streams_open(server->port, streams, count,
                 post_mcp(asking, "subscriptions/listen", NULL, params, &size), "acknowledged");
    each.value = (resident_mib(server->pid) - before) * 1024 / count;
    snprintf(each.what, sizeof each.what, "resident: each of %d streams of MCP that listen", count);
    report(bench, &each);
    for (int i = 0; i < REPEATS; i++)
        took[i] = streams_hear(streams, count, server->port, &fire, "resources/updated");
    heard.value = median(took, REPEATS);
    snprintf(heard.what, sizeof heard.what,
             "one change to %d streams of MCP, until the last has it", count);
    report(bench, &heard);
    for (int i = 0; i < count; i++)
        close(streams[i]);
    free(streams);
}

void measure_mcp(struct bench *bench)
{
    struct row tool = { .key = "mcp_fire_ratio",
                        .what = "MCP tools/call that fires, against POST fire",
                        .gate = 0.7 };
    struct row task = { .key = "mcp_get_ratio",
                        .what = "MCP tasks/get, against GET instance",
                        .gate = 0.8 };
    struct asking asking;
    struct server server;
    struct crowd crowd;

    files_raise();
    asking.crowd = &crowd;
    crowd_make(bench, "mcp.db", bench->quick ? 1000 : 10000, &crowd);
    crowd_close(&crowd);
    server_start(bench, "mcp.db", &server);
    asking.port = server.port;
    measure_ratio(bench, &asking, &tool, ask_tool, ask_fire);
    measure_ratio(bench, &asking, &task, ask_task, ask_instance);
    server_stop(&server);
    server_start(bench, "mcp.db", &server);
    asking.port = server.port;
    measure_streams(bench, &server, &asking);
    server_stop(&server);
    crowd_free(&crowd);
    store_remove(bench, "mcp.db");
}
