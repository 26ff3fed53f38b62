/* pg_bench.h - what the measurements over PostgreSQL share: libpq as the yardstick needs it, a
 * private server, and threads that do one thing until their time is over. */
#ifndef PAWL_BENCH_PG_BENCH_H
#define PAWL_BENCH_PG_BENCH_H

#include "bench.h"

#define URL_SIZE     400
#define WRITERS_MOST 16

typedef struct pg_conn PGconn;
typedef struct pg_result PGresult;

struct yard_pq {
    PGconn *(*connect)(const char *url);
    int (*status)(const PGconn *conn);
    void (*finish)(PGconn *conn);
    PGresult *(*exec)(PGconn *conn, const char *text);
    PGresult *(*prepare)(PGconn *conn, const char *name, const char *text, int count,
                         const unsigned *types);
    PGresult *(*run)(PGconn *conn, const char *name, int count, const char *const *values,
                     const int *sizes, const int *formats, int format);
    int (*result)(const PGresult *result);
    char *(*value)(const PGresult *result, int row, int column);
    char *(*words)(const PGconn *conn);
    void (*clear)(PGresult *result);
};
extern struct yard_pq pq;

#define COMMAND_OK 1
#define TUPLES_OK  2

PGconn *yard_connect(const char *url);
void check_result(PGconn *conn, PGresult *result, const char *doing);

struct far_server {
    pid_t pid;
    int to;             /* it ends with this */
    char url[URL_SIZE]; /* without a schema */
};

/* A column of a bare commit, as it goes over the wire. */
struct wire {
    char *bytes;
    int size;
};

struct writer {
    void (*once)(struct writer *writer);
    struct crowd *crowd;
    pawl_batch_fire *fires;
    size_t shard, shards, size;
    PGconn *conn;
    struct wire shard_number, count, longs, ints, hashes; /* of a bare commit */
    uint64_t pos, seed;
    double end;
    size_t done; /* rows */
};

/* A store in the schema NAME, with a crowd whose instances go round its shards in order. */
void far_crowd(const struct bench *bench, const struct far_server *server, const char *name,
               size_t shards, struct crowd *out);

/* Rows a second, of all together. */
double writers_rate(struct writer *writers, size_t count, double seconds);

void measure_far_flows(struct bench *bench, const struct far_server *server);
void measure_far_nodes(struct bench *bench, const struct far_server *server);

#endif
