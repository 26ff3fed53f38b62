/* pg_flows.c - flows of ten registered tools over PostgreSQL: steps a second against an engine
 * with transactions of its own for each step, which looks whether the step was done and then
 * records its result. */
#include "pg_bench.h"
#include <stdio.h>

#define FLOW_WORKERS 4
#define TURN_S       1.5

static const char yard[] =
    "CREATE SCHEMA steps; CREATE TABLE steps.outputs (flow bigint, step int, output text,"
    " error text, at bigint, PRIMARY KEY (flow, step))";
static const char look[] = "SELECT output, error FROM steps.outputs WHERE flow = $1 AND step = $2";
static const char record[] = "INSERT INTO steps.outputs VALUES ($1, $2, '{\"n\":1}', NULL,"
                             " 1777593600000)";

static void look_and_record(struct writer *writer)
{
    char flow[24], step[8];
    const char *values[] = { flow, step };
    const char *const both[] = { "look", "record" };

    snprintf(flow, sizeof flow, "%llu",
             (unsigned long long)(writer->pos / FLOW_STEPS * WRITERS_MOST + writer->shard));
    snprintf(step, sizeof step, "%d", (int)(writer->pos++ % FLOW_STEPS));
    for (int i = 0; i < 2; i++)
        check_result(writer->conn,
                     pq.run(writer->conn, both[i], 2, values, (int[]){ 0, 0 }, (int[]){ 0, 0 }, 0),
                     both[i]);
    writer->done++;
}

static void connect_all(struct writer *writers, const char *url)
{
    for (size_t i = 0; i < WRITERS_MOST; i++) {
        PGconn *conn = yard_connect(url);

        writers[i] = (struct writer){ .once = look_and_record, .shard = i, .conn = conn };
        if (i == 0)
            check_result(conn, pq.exec(conn, yard), "making the yardstick's table");
        check_result(conn, pq.prepare(conn, "look", look, 0, NULL), "prepare");
        check_result(conn, pq.prepare(conn, "record", record, 0, NULL), "prepare");
    }
}

static void measure(struct bench *bench, const struct far_server *server, struct writer *others,
                    size_t shards)
{
    double flows[REPEATS], steps[REPEATS], ratios[REPEATS], seconds = bench->quick ? 0.2 : TURN_S;
    pawl_options options = { .own = true, .workers = FLOW_WORKERS, .shards = (uint32_t)shards };
    struct row row = { .unit = "x", .sense = AT_LEAST, .gate = 6, .stretch = 12 };
    char url[URL_SIZE + 40];
    size_t arrived = 0;
    pawl *p;

    snprintf(url, sizeof url, "%s&schema=flows%zu", server->url, shards);
    p = flow_open(url, &options, "work", &arrived);
    (void)flow_rate(p, &arrived, seconds / 2);
    for (int i = 0; i < REPEATS; i++) {
        flows[i] = flow_rate(p, &arrived, seconds) * FLOW_STEPS;
        steps[i] = writers_rate(others, shards, seconds);
        ratios[i] = flows[i] / steps[i];
    }
    pawl_close(p);
    row.value = median(ratios, REPEATS);
    snprintf(row.key, sizeof row.key, "postgres_flows_shards_%zu_vs_steps", shards);
    snprintf(row.what, sizeof row.what,
             "PostgreSQL, 64 flows, %zu shard%s, against look-and-record", shards,
             shards > 1 ? "s" : "");
    beside(&row, "%.0f steps/s, looked up and recorded %.0f/s, ratios %.2f to %.2f",
           median(flows, REPEATS), median(steps, REPEATS), ratios[0], ratios[REPEATS - 1]);
    report(bench, &row);
}

void measure_far_flows(struct bench *bench, const struct far_server *server)
{
    static struct writer others[WRITERS_MOST];

    connect_all(others, server->url);
    for (size_t shards = 1; shards <= WRITERS_MOST; shards *= 4)
        measure(bench, server, others, shards);
    for (size_t i = 0; i < WRITERS_MOST; i++)
        pq.finish(others[i].conn);
}
