/* pg_nodes.c - several servers that share one store in PostgreSQL: a fire that is forwarded against
 * one at its owner, three nodes against one, and how long a shard is without an acknowledged fire
 * when its node hands over, is stopped or is killed.
 *
 * On a machine whose few processors are also the database's and the client's, three nodes cannot do
 * more than one: that row has its gate from eight processors on. */
#include "pg_bench.h"
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define NODES       3
#define SHARDS      16
#define CONNECTIONS 64
#define LEASE_S     3.0 /* the default */
#define TURN_S      1.5
#define SPREAD_S    40
#define PAUSE_MS    5
#define CORES_MANY  8

struct nodes {
    const struct bench *bench;
    struct server servers[NODES];
    char url[URL_SIZE + 40];
    struct crowd crowd;
    PGconn *conn;
    const char *schema;
};

/* ---- Starting ---- */

static void node_start(struct nodes *nodes, int i)
{
    server_start_over(nodes->bench, nodes->url, &nodes->servers[i]);
}

static long ask_number(const struct nodes *nodes, const char *what)
{
    PGresult *result;
    char text[256];
    long number;

    snprintf(text, sizeof text, "SELECT %s FROM %s.pawl_shard", what, nodes->schema);
    result = pq.exec(nodes->conn, text);
    if (pq.result(result) != TUPLES_OK)
        die("%s: %s", text, pq.words(nodes->conn));
    number = strtol(pq.value(result, 0, 0), NULL, 10);
    pq.clear(result);
    return number;
}

/* Each of `count` nodes has its part. */
static void wait_for_spread(const struct nodes *nodes, long count)
{
    char most[160];
    double until = now_s() + SPREAD_S;

    snprintf(most, sizeof most,
             "(SELECT max(c) FROM (SELECT count(*) c FROM %s.pawl_shard GROUP BY node) s)",
             nodes->schema);
    while (ask_number(nodes, "count(DISTINCT node)") != count ||
           ask_number(nodes, "count(node)") != SHARDS ||
           ask_number(nodes, most) > (SHARDS + count - 1) / count) {
        if (now_s() > until)
            die("the shards are not spread over %ld nodes after %d s", count, SPREAD_S);
        rest_ms(50);
    }
}

static void nodes_open(const struct bench *bench, const struct far_server *server, const char *name,
                       const char *schema, size_t shards, struct nodes *out)
{
    *out = (struct nodes){ .bench = bench, .schema = schema, .conn = yard_connect(server->url) };
    far_crowd(bench, server, name, shards, &out->crowd);
    crowd_close(&out->crowd);
    snprintf(out->url, sizeof out->url, "%s&schema=%s", server->url, schema);
    node_start(out, 0);
}

static void nodes_close(struct nodes *nodes, int count)
{
    for (int i = 0; i < count; i++)
        server_stop(&nodes->servers[i]);
    crowd_free(&nodes->crowd);
    pq.finish(nodes->conn);
}

/* ---- Load ---- */

struct node_load {
    const struct crowd *crowd;
    int port, connections;
    double seconds, rate;
    uint64_t seed;
    char text[512];
};

static int print_fire(const char *id, int port, char *text, size_t size)
{
    static const char body[] = "{\"action\":\"turn\",\"actor_ref\":\"" ACTOR "\"}";

    return snprintf(text, size,
                    "POST /v1/instances/%s/fire HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n"
                    "Content-Type: application/json\r\nContent-Length: %zu\r\n\r\n%s",
                    id, port, sizeof body - 1, body);
}

static const char *fire_anyone(void *context, size_t *size)
{
    struct node_load *load = context;
    const char *id = load->crowd->ids[random_next(&load->seed) % load->crowd->count].text;

    *size = (size_t)print_fire(id, load->port, load->text, sizeof load->text);
    return load->text;
}

static void *load_node(void *context)
{
    struct node_load *load = context;
    const struct question question = { fire_anyone, load };

    load->rate = http_rate(load->port, load->connections, load->seconds, &question);
    return NULL;
}

/* Fires a second over `count` nodes at once. */
static double load_nodes(const struct nodes *nodes, int first, int count)
{
    struct node_load loads[NODES];
    pthread_t threads[NODES];
    double sum = 0;

    for (int i = 0; i < count; i++) {
        loads[i] = (struct node_load){ .crowd = &nodes->crowd,
                                       .port = nodes->servers[first + i].port,
                                       .connections = CONNECTIONS / count,
                                       .seconds = nodes->bench->quick ? 0.3 : TURN_S,
                                       .seed = (uint64_t)i + 1 };
        if (pthread_create(&threads[i], NULL, load_node, &loads[i]) != 0)
            die("no thread");
    }
    for (int i = 0; i < count; i++) {
        pthread_join(threads[i], NULL);
        sum += loads[i].rate;
    }
    return sum;
}

static void measure_forwarding(struct bench *bench, const struct far_server *server)
{
    double there[REPEATS], here[REPEATS], ratios[REPEATS];
    struct row row = { .key = "postgres_forwarded_vs_local",
                       .what = "PostgreSQL, HTTP fire, forwarded against at its owner",
                       .unit = "x",
                       .sense = AT_LEAST,
                       .gate = 0.6,
                       .stretch = 0.8 };
    struct nodes nodes;

    nodes_open(bench, server, "pair", "pair1", 1, &nodes);
    node_start(&nodes, 1);
    (void)load_nodes(&nodes, 1, 1);
    for (int i = 0; i < REPEATS; i++) {
        here[i] = load_nodes(&nodes, 0, 1);
        there[i] = load_nodes(&nodes, 1, 1);
        ratios[i] = there[i] / here[i];
    }
    row.value = median(ratios, REPEATS);
    beside(&row, "%.0f fires/s beside %.0f/s, %d connections, ratios %.2f to %.2f",
           median(there, REPEATS), median(here, REPEATS), CONNECTIONS, ratios[0],
           ratios[REPEATS - 1]);
    report(bench, &row);
    nodes_close(&nodes, 2);
}

static void measure_three(struct bench *bench, struct nodes *nodes)
{
    double one[REPEATS], three[REPEATS];
    struct row row = { .key = "postgres_three_nodes_vs_one",
                       .what = "PostgreSQL, HTTP fires, three nodes against one",
                       .unit = "x",
                       .sense = sysconf(_SC_NPROCESSORS_ONLN) >= CORES_MANY ? AT_LEAST : TOLD,
                       .gate = 2.2,
                       .stretch = 2.7 };

    (void)load_nodes(nodes, 0, 1);
    for (int i = 0; i < REPEATS; i++)
        one[i] = load_nodes(nodes, 0, 1);
    node_start(nodes, 1);
    node_start(nodes, 2);
    wait_for_spread(nodes, NODES);
    for (int i = 0; i < REPEATS; i++)
        three[i] = load_nodes(nodes, 0, NODES);
    row.value = median(three, REPEATS) / median(one, REPEATS);
    beside(&row, "%.0f fires/s beside %.0f/s, %ld processors", median(three, REPEATS),
           median(one, REPEATS), sysconf(_SC_NPROCESSORS_ONLN));
    report(bench, &row);
}

/* ---- Without an acknowledged fire ---- */

struct watcher { /* fires one instance of a shard until told to stop */
    const char *id;
    int port;
    const int *is_over;
    double worst_s;
};

static bool is_acknowledged(int fd, const char *text, int size)
{
    char answer[4096];
    size_t used = 0, wanted = sizeof answer - 1;

    if (send(fd, text, (size_t)size, MSG_NOSIGNAL) != size)
        die("a node that should live has closed a connection");
    while (used < wanted) {
        ssize_t got = recv(fd, answer + used, sizeof answer - 1 - used, 0);
        const char *end, *length;

        if (got <= 0)
            die("a node that should live has closed a connection");
        used += (size_t)got;
        answer[used] = '\0';
        end = strstr(answer, "\r\n\r\n");
        length = end ? strcasestr(answer, "content-length:") : NULL;
        if (length)
            wanted = (size_t)(end + 4 - answer) + strtoul(length + 15, NULL, 10);
    }
    return strncmp(answer, "HTTP/1.1 200", 12) == 0;
}

static void *watch(void *context)
{
    struct watcher *watcher = context;
    int fd = http_connect(watcher->port);
    double last = now_s();
    char text[512];
    int size = print_fire(watcher->id, watcher->port, text, sizeof text);

    while (!__atomic_load_n(watcher->is_over, __ATOMIC_RELAXED)) {
        double now;
        bool ok = is_acknowledged(fd, text, size);

        now = now_s();
        if (now - last > watcher->worst_s)
            watcher->worst_s = now - last;
        if (ok)
            last = now;
        rest_ms(PAUSE_MS);
    }
    close(fd);
    return NULL;
}

/* What happens to node 0, seen from node 1: the worst shard's longest time without an answer. */
static double worst_of(const struct nodes *nodes, int signal_number, double seconds)
{
    struct watcher watchers[SHARDS];
    pthread_t threads[SHARDS];
    double worst = 0;
    int is_over = 0;

    for (size_t i = 0; i < SHARDS; i++) {
        watchers[i] =
            (struct watcher){ nodes->crowd.ids[i].text, nodes->servers[1].port, &is_over, 0 };
        if (pthread_create(&threads[i], NULL, watch, &watchers[i]) != 0)
            die("no thread");
    }
    rest_ms(500);
    kill(nodes->servers[0].pid, signal_number);
    rest_ms((long)(seconds * 1000));
    __atomic_store_n(&is_over, 1, __ATOMIC_RELAXED);
    for (size_t i = 0; i < SHARDS; i++) {
        pthread_join(threads[i], NULL);
        worst = watchers[i].worst_s > worst ? watchers[i].worst_s : worst;
    }
    return worst;
}

static void measure_takeovers(struct bench *bench, struct nodes *nodes)
{
    static const struct {
        const char *key, *what;
        double gate, stretch, seconds;
        int signal_number;
    } all[] = {
        { "postgres_hand_over_s", "hands over", 0.3, 0.1, 4, SIGTERM },
        { "postgres_killed_s", "is killed", 2, 1, 5, SIGKILL },
        { "postgres_stopped_s", "is stopped", LEASE_S + 3, LEASE_S + 1.5, LEASE_S + 6, SIGSTOP },
    };

    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        struct row row = { .unit = "s", .sense = AT_MOST };

        row.gate = all[i].gate, row.stretch = all[i].stretch;
        snprintf(row.key, sizeof row.key, "%s", all[i].key);
        snprintf(row.what, sizeof row.what, "PostgreSQL, worst shard without a fire, a node %s",
                 all[i].what);
        row.value = worst_of(nodes, all[i].signal_number, all[i].seconds);
        beside(&row, "%d shards on %d nodes, lease %.0f s", SHARDS, NODES, LEASE_S);
        report(bench, &row);
        if (all[i].signal_number == SIGSTOP) {
            kill(nodes->servers[0].pid, SIGCONT);
            continue;
        }
        child_end(nodes->servers[0].pid, 0);
        close(nodes->servers[0].output);
        node_start(nodes, 0);
        wait_for_spread(nodes, NODES);
    }
}

void measure_far_nodes(struct bench *bench, const struct far_server *server)
{
    struct nodes nodes;

    files_raise();
    measure_forwarding(bench, server);
    nodes_open(bench, server, "three", "three16", SHARDS, &nodes);
    measure_three(bench, &nodes);
    measure_takeovers(bench, &nodes);
    nodes_close(&nodes, NODES);
}
