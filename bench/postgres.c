/* postgres.c - a store in PostgreSQL: fires a second against one INSERT a transaction, which is the
 * limit of an engine with a transaction for each step, and against the bare commit that pawl sends.
 *
 * A private server with fsync, full pages and synchronous commits; its client and pawl share the
 * processors with it. Both sides take turns; a figure is the median of the ratios of their turns. */
#include "pg_bench.h"
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define TURN_S       1.2
#define CROWD        2048 /* instances of a shard, or 8,192 together if that is less */
#define CROWD_MOST   8192
#define BATCH_MOST   1000
#define HASH_SIZE    32
#define BARE_PARAMS  5
#define ARRAY_HEAD   20
#define OID_INT8     20
#define OID_INT4     23

/* ---- libpq, as the yardstick needs it ---- */

struct yard_pq pq;

static bool load_libpq(void)
{
    void *library = dlopen("libpq.so.5", RTLD_NOW);
    static const struct {
        const char *name;
        void *to;
    } all[] = { { "PQconnectdb", &pq.connect },   { "PQstatus", &pq.status },
                { "PQfinish", &pq.finish },       { "PQexec", &pq.exec },
                { "PQprepare", &pq.prepare },     { "PQexecPrepared", &pq.run },
                { "PQresultStatus", &pq.result }, { "PQgetvalue", &pq.value },
                { "PQerrorMessage", &pq.words },  { "PQclear", &pq.clear } };

    for (size_t i = 0; library && i < sizeof all / sizeof *all; i++)
        *(void **)all[i].to = dlsym(library, all[i].name);
    return library != NULL;
}

void check_result(PGconn *conn, PGresult *result, const char *doing)
{
    int status = pq.result(result);

    if (status != COMMAND_OK && status != TUPLES_OK)
        die("%s: %s", doing, pq.words(conn));
    pq.clear(result);
}

PGconn *yard_connect(const char *url)
{
    PGconn *conn = pq.connect(url);

    if (pq.status(conn) != 0)
        die("connecting: %s", pq.words(conn));
    return conn;
}

/* ---- The server ---- */

static bool cluster_start(struct far_server *cluster)
{
    int in[2], out[2];
    ssize_t size;

    if (pipe2(in, O_CLOEXEC) != 0 || pipe2(out, O_CLOEXEC) != 0)
        die("no pipe");
    cluster->pid = fork();
    if (cluster->pid == 0) {
        dup2(in[0], 0);
        dup2(out[1], 1);
        close(in[1]);
        execlp("python3", "python3", PAWL_SOURCE_ROOT "/tests/lib/postgres.py", "--durable",
               (char *)NULL);
        _exit(127);
    }
    close(in[0]);
    close(out[1]);
    cluster->to = in[1];
    size = read(out[0], cluster->url, sizeof cluster->url - 1);
    close(out[0]);
    cluster->url[size > 0 ? size : 0] = '\0';
    cluster->url[strcspn(cluster->url, "\n")] = '\0';
    return size > 0;
}

static void cluster_stop(struct far_server *cluster)
{
    close(cluster->to);
    waitpid(cluster->pid, NULL, 0);
}

static double wal_bytes(const struct far_server *cluster)
{
    PGconn *conn = yard_connect(cluster->url);
    PGresult *result = pq.exec(conn, "SELECT pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')");
    double bytes;

    if (pq.result(result) != TUPLES_OK)
        die("WAL: %s", pq.words(conn));
    bytes = strtod(pq.value(result, 0, 0), NULL);
    pq.clear(result);
    pq.finish(conn);
    return bytes;
}

/* ---- Writers: threads that do one thing until the turn is over ---- */

static void *write_on(void *context)
{
    struct writer *writer = context;

    while (now_s() < writer->end)
        writer->once(writer);
    return NULL;
}

double writers_rate(struct writer *writers, size_t count, double seconds)
{
    pthread_t threads[WRITERS_MOST];
    double begin = now_s(), sum = 0;

    for (size_t i = 0; i < count; i++) {
        writers[i].end = begin + seconds;
        writers[i].done = 0;
        if (pthread_create(&threads[i], NULL, write_on, &writers[i]) != 0)
            die("no thread");
    }
    for (size_t i = 0; i < count; i++) {
        pthread_join(threads[i], NULL);
        sum += (double)writers[i].done;
    }
    return sum / (now_s() - begin);
}

/* One commit of one shard. */
static void fire_batch(struct writer *writer)
{
    const struct crowd *crowd = writer->crowd;
    size_t own = crowd->count / writer->shards;
    pawl_error error;

    for (size_t i = 0; i < writer->size; i++) {
        size_t at = random_next(&writer->seed) % own * writer->shards + writer->shard;

        writer->fires[i] = (pawl_batch_fire){ .id = crowd->ids[at].text,
                                              .args = { .action = "turn", .actor_ref = ACTOR } };
    }
    check(pawl_fire_batch(crowd->p, writer->fires, writer->size, &error), &error, "fire_batch");
    for (size_t i = 0; i < writer->size; i++)
        if (writer->fires[i].status != PAWL_OK)
            die("%s: %s", writer->fires[i].id, pawl_status_name(writer->fires[i].status));
    writer->done += writer->size;
}

/* What a fire leaves in a log with a row for each record. */
static void insert_one(struct writer *writer)
{
    char pos[24];
    const char *values[] = { pos, writer->shard % 2 ? "1" : "0" };

    snprintf(pos, sizeof pos, "%llu",
             (unsigned long long)(++writer->pos * WRITERS_MOST + writer->shard));
    check_result(writer->conn,
                 pq.run(writer->conn, "one", 2, values, (int[]){ 0, 0 }, (int[]){ 0, 0 }, 0),
                 "INSERT");
    writer->done++;
}

/* The statement of pawl's commit of records alone, in the same binary form, with nothing decided and
 * nothing hashed. */
static void commit_bare(struct writer *writer)
{
    const struct wire *wires[] = { &writer->shard_number, &writer->count, &writer->longs,
                                   &writer->ints, &writer->hashes };
    const char *values[BARE_PARAMS];
    int sizes[BARE_PARAMS], formats[BARE_PARAMS];

    for (int i = 0; i < BARE_PARAMS; i++) {
        values[i] = wires[i]->bytes;
        sizes[i] = wires[i]->size;
        formats[i] = 1;
    }
    check_result(writer->conn, pq.run(writer->conn, "bare", BARE_PARAMS, values, sizes, formats, 1),
                 "a bare commit");
    writer->done += writer->size;
}

/* ---- Numbers as the server reads them ---- */

static void wire_put(struct wire *wire, uint64_t number, int size)
{
    for (int i = size - 1; i >= 0; i--)
        wire->bytes[wire->size++] = (char)(number >> (8 * i));
}

static void wire_number(struct wire *wire, uint64_t number)
{
    if (!wire->bytes)
        wire->bytes = get_memory(4);
    wire->size = 0;
    wire_put(wire, number, 4);
}

static void wire_array(struct wire *wire, size_t count, int size, uint64_t type)
{
    if (!wire->bytes)
        wire->bytes = get_memory(ARRAY_HEAD + (size_t)BATCH_MOST * (4 + 8));
    wire->size = 0;
    wire_put(wire, 1, 4); /* dimensions */
    wire_put(wire, 0, 4); /* no NULL */
    wire_put(wire, type, 4);
    wire_put(wire, count, 4);
    wire_put(wire, 1, 4); /* the first is number 1 */
    for (size_t i = 0; i < count; i++) {
        wire_put(wire, (uint64_t)size, 4);
        wire_put(wire, i % 1000 + 1, size);
    }
}

static void set_bare(struct writer *writer, size_t size)
{
    wire_number(&writer->shard_number, writer->shard);
    wire_number(&writer->count, size);
    wire_array(&writer->longs, size, 8, OID_INT8);
    wire_array(&writer->ints, size, 4, OID_INT4);
    if (!writer->hashes.bytes)
        writer->hashes.bytes = get_memory(BATCH_MOST * HASH_SIZE);
    for (size_t i = 0; i < size * HASH_SIZE; i++)
        writer->hashes.bytes[i] = (char)random_next(&writer->seed);
    writer->hashes.size = (int)(size * HASH_SIZE);
}

static void free_bare(struct writer *writer)
{
    free(writer->shard_number.bytes);
    free(writer->count.bytes);
    free(writer->longs.bytes);
    free(writer->ints.bytes);
    free(writer->hashes.bytes);
}

/* ---- Sides ---- */

static const char yard[] =
    "CREATE SCHEMA yard; CREATE TABLE yard.log (pos bigint PRIMARY KEY, inst bigint, seq int,"
    " prev bigint, what int, at bigint, actor bigint, hash bytea, root bytea);"
    "CREATE TABLE yard.shard (shard int PRIMARY KEY, pos bigint) WITH (fillfactor = 20);"
    "INSERT INTO yard.shard SELECT g, 0 FROM generate_series(0, 15) g;"
    "CREATE TABLE yard.packed (shard int, pos bigint, n int, at bigint, inst bigint[], seq int[],"
    " prev bigint[], what int[], actor bigint[], hash bytea, PRIMARY KEY (shard, pos))";
static const char one[] = "INSERT INTO yard.log VALUES ($1, 7, 7, 7, $2, 1777593600000, 1,"
                          " sha256('h'), sha256('r'))";
static const char bare[] =
    "WITH f AS (UPDATE yard.shard SET pos = pos + $2::int WHERE shard = $1::int RETURNING pos)"
    " INSERT INTO yard.packed SELECT $1::int, pos, $2::int, 1777593600000, $3::bigint[],"
    " $4::int[], $3::bigint[], $4::int[], $3::bigint[], $5::bytea FROM f";

static void writers_connect(struct writer *writers, const char *url, void (*once)(struct writer *))
{
    static uint64_t pos;

    for (size_t i = 0; i < WRITERS_MOST; i++) {
        writers[i] =
            (struct writer){ .once = once, .shard = i, .pos = pos, .conn = yard_connect(url) };
        check_result(writers[i].conn, pq.prepare(writers[i].conn, "one", one, 0, NULL), "prepare");
        check_result(writers[i].conn, pq.prepare(writers[i].conn, "bare", bare, 0, NULL),
                     "prepare");
    }
    pos += 1u << 24;
}

static size_t shard_of(const pawl_id *id, size_t shards)
{
    static const char digits[] = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";
    uint64_t number = 0;

    for (int i = 0; i < 10; i++)
        number = number * 32 + (uint64_t)(strchr(digits, id->text[i]) - digits);
    return number % shards;
}

/* Creations without a key go round the shards: in order, each shard has as many. */
static void sort_by_shard(struct crowd *crowd, size_t shards)
{
    size_t own = crowd->count / shards, *used = get_memory(shards * sizeof *used);
    pawl_id *sorted = get_memory(crowd->count * sizeof *sorted);

    for (size_t i = 0; i < crowd->count; i++) {
        size_t shard = shard_of(&crowd->ids[i], shards);

        if (used[shard] < own)
            sorted[used[shard]++ * shards + shard] = crowd->ids[i];
    }
    for (size_t i = 0; i < shards; i++)
        if (used[i] < own)
            die("shard %zu has %zu instances, expected %zu", i, used[i], own);
    free(crowd->ids);
    free(used);
    crowd->ids = sorted;
}

void far_crowd(const struct bench *bench, const struct far_server *server, const char *name,
               size_t shards, struct crowd *out)
{
    size_t most = bench->quick ? 1024 : CROWD_MOST, count = CROWD * shards;
    pawl_options options = { .own = true, .shards = (uint32_t)shards };
    char url[URL_SIZE + 40];
    pawl_error error;
    pawl *p;

    snprintf(url, sizeof url, "%s&schema=%s%zu", server->url, name, shards);
    check(pawl_open(&p, url, &options, &error), &error, "opening the store");
    crowd_fill(p, count < most ? count : most, out);
    sort_by_shard(out, shards);
}

/* ---- Contests ---- */

struct contest {
    struct writer fires[WRITERS_MOST], inserts[WRITERS_MOST], bares[WRITERS_MOST];
    double fired[REPEATS], inserted[REPEATS], bared[REPEATS];
};

static void run_turns(const struct bench *bench, struct contest *contest, size_t shards,
                      size_t size)
{
    double seconds = bench->quick ? 0.1 : TURN_S;

    for (size_t i = 0; i < WRITERS_MOST; i++) {
        contest->fires[i].size = contest->bares[i].size = size;
        set_bare(&contest->bares[i], size);
    }
    (void)writers_rate(contest->fires, shards, seconds / 2);
    for (int turn = 0; turn < REPEATS; turn++) {
        contest->fired[turn] = writers_rate(contest->fires, shards, seconds);
        contest->inserted[turn] = writers_rate(contest->inserts, shards, seconds);
        contest->bared[turn] = writers_rate(contest->bares, shards, seconds);
    }
}

static double ratio_of(const double *a, const double *b, double *least, double *most)
{
    double ratios[REPEATS], middle;

    for (int i = 0; i < REPEATS; i++)
        ratios[i] = a[i] / b[i];
    middle = median(ratios, REPEATS);
    *least = ratios[0];
    *most = ratios[REPEATS - 1];
    return middle;
}

static void report_against(struct bench *bench, struct row row, const double *fired,
                           const double *other, const char *name)
{
    double sorted[REPEATS], others[REPEATS], least, most;

    row.unit = "x";
    row.sense = row.gate > 0 ? AT_LEAST : TOLD;
    row.value = ratio_of(fired, other, &least, &most);
    memcpy(sorted, fired, sizeof sorted);
    memcpy(others, other, sizeof others);
    beside(&row, "%.0f fires/s, %s %.0f/s, ratios %.2f to %.2f", median(sorted, REPEATS), name,
           median(others, REPEATS), least, most);
    report(bench, &row);
}

struct gates {
    size_t size;
    double gate, stretch, bare_gate, bare_stretch;
};

static void measure_size(struct bench *bench, const struct far_server *cluster,
                         struct contest *contest, size_t shards, const struct gates *gates)
{
    bool has_gate = gates->size > 1 || shards == 1; /* one fire a commit: one thread's */
    struct row row = { .gate = has_gate ? gates->gate : 0, .stretch = gates->stretch };
    double wal, fired;

    run_turns(bench, contest, shards, gates->size);
    snprintf(row.key, sizeof row.key, "postgres_%zu_shards_%zu_vs_insert", gates->size, shards);
    snprintf(row.what, sizeof row.what, "PostgreSQL, %zu a commit, %zu shard%s, against INSERTs",
             gates->size, shards, shards > 1 ? "s" : "");
    report_against(bench, row, contest->fired, contest->inserted, "insert");
    if (gates->size == 1)
        return;
    row = (struct row){ .gate = gates->bare_gate, .stretch = gates->bare_stretch };
    snprintf(row.key, sizeof row.key, "postgres_%zu_shards_%zu_vs_bare", gates->size, shards);
    snprintf(row.what, sizeof row.what,
             "PostgreSQL, %zu a commit, %zu shard%s, against bare commits", gates->size, shards,
             shards > 1 ? "s" : "");
    report_against(bench, row, contest->fired, contest->bared, "bare");
    if (gates->size != 64 || shards != 1)
        return;
    wal = wal_bytes(cluster);
    fired = writers_rate(contest->fires, shards, bench->quick ? 0.1 : TURN_S) *
            (bench->quick ? 0.1 : TURN_S);
    row = (struct row){ .key = "postgres_wal_a_fire",
                        .what = "PostgreSQL, WAL a fire, 64 a commit",
                        .unit = "B",
                        .sense = AT_MOST,
                        .gate = 130,
                        .stretch = 100 };
    row.value = (wal_bytes(cluster) - wal) / fired;
    report(bench, &row);
}

static void measure_shards(struct bench *bench, const struct far_server *cluster,
                           struct contest *contest, size_t shards)
{
    static const struct gates all[] = { { 1, 0.7, 0.8, 0, 0 },
                                        { 64, 10, 20, 0.5, 0.7 },
                                        { 1000, 40, 100, 0.3, 0.5 } };
    struct crowd crowd;

    far_crowd(bench, cluster, "crowd", shards, &crowd);
    for (size_t i = 0; i < WRITERS_MOST; i++)
        contest->fires[i] =
            (struct writer){ .once = fire_batch,
                             .crowd = &crowd,
                             .fires = get_memory(BATCH_MOST * sizeof(pawl_batch_fire)),
                             .shard = i,
                             .shards = shards,
                             .seed = i + 1 };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        measure_size(bench, cluster, contest, shards, &all[i]);
    for (size_t i = 0; i < WRITERS_MOST; i++)
        free(contest->fires[i].fires);
    crowd_free(&crowd);
}

static void measure_fires_of(struct bench *bench, const struct far_server *server)
{
    static struct contest contest;
    PGconn *conn = yard_connect(server->url);

    check_result(conn, pq.exec(conn, yard), "making the yardstick's tables");
    pq.finish(conn);
    writers_connect(contest.inserts, server->url, insert_one);
    writers_connect(contest.bares, server->url, commit_bare);
    for (size_t shards = 1; shards <= WRITERS_MOST; shards *= 4)
        measure_shards(bench, server, &contest, shards);
    for (size_t i = 0; i < WRITERS_MOST; i++) {
        pq.finish(contest.inserts[i].conn);
        pq.finish(contest.bares[i].conn);
        free_bare(&contest.bares[i]);
    }
}

static bool server_begin(struct far_server *server)
{
    if (load_libpq() && cluster_start(server))
        return true;
    told("  there is no PostgreSQL here: ./script/install-postgres");
    return false;
}

void measure_postgres(struct bench *bench)
{
    struct far_server server;

    if (!server_begin(&server))
        return;
    measure_fires_of(bench, &server);
    measure_far_flows(bench, &server);
    measure_far_nodes(bench, &server);
    cluster_stop(&server);
}

void measure_postgres_flows(struct bench *bench)
{
    struct far_server server;

    if (!server_begin(&server))
        return;
    measure_far_flows(bench, &server);
    cluster_stop(&server);
}

void measure_postgres_nodes(struct bench *bench)
{
    struct far_server server;

    if (!server_begin(&server))
        return;
    measure_far_nodes(bench, &server);
    cluster_stop(&server);
}
