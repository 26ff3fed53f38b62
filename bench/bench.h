/* bench.h - what every measurement here shares.
 *
 * A figure is a ratio inside one run wherever it can be: the disk is noisy, so the yardstick
 * (append.c: plain SQLite, the same bytes, the same rows per commit, the same folder) is
 * measured in turns with the subject, five times each, and the medians are compared. */
#ifndef PAWL_BENCH_BENCH_H
#define PAWL_BENCH_BENCH_H

#include "pawl.h"
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define REPEATS   5
#define ROWS_MAX  64
#define ACTOR     "bench@example"
#define PATH_SIZE 1024

/* ---- What was measured, and how it is judged (report.c) ---- */

enum sense { AT_LEAST, AT_MOST, TOLD }; /* TOLD: no gate in this issue */

struct row {
    char key[48]; /* in the JSON file */
    char what[80];
    double value;
    const char *unit; /* "x", "B", ...: shown behind the value */
    enum sense sense;
    double gate, stretch; /* stretch 0: none is set */
    char beside[96];      /* the absolute numbers */
};

struct bench {
    char dir[PATH_SIZE];     /* everything is made in here, and removed at the end */
    char program[PATH_SIZE]; /* pawl, for what is measured from outside */
    const char *json, *only; /* `only`: sections by name, comma between; NULL: all */
    bool quick;
    struct row rows[ROWS_MAX];
    size_t row_count;
};

/* Take the row; its text is shown on stderr at once. */
void report(struct bench *bench, const struct row *row);
void report_table(const struct bench *bench);
void report_json(const struct bench *bench);
void beside(struct row *row, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* ---- Tools of measuring (tools.c) ---- */

double now_s(void); /* monotonic */
int64_t wall_ms(void);
void rest_ms(long ms);
double median(double *values, size_t count);               /* sorts */
double percentile(double *values, size_t count, double p); /* sorts; p of 0..100 */
void die(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));
void told(const char *format, ...) __attribute__((format(printf, 1, 2))); /* progress, on stderr */
void check(pawl_status status, const pawl_error *error, const char *doing);
void *get_memory(size_t size); /* zeroed, or the end */
uint64_t random_next(uint64_t *state);

void path_in(const struct bench *bench, const char *name, char out[PATH_SIZE]);
double store_bytes(const struct bench *bench, const char *name); /* the file and its WAL */
void store_remove(const struct bench *bench, const char *name);
void remove_dir(const char *path);

/* ---- A store full of machines (crowd.c) ---- */

struct crowd {
    pawl *p;
    pawl_id *ids;
    size_t count;
    uint64_t seed;
    pawl_batch_fire *fires; /* room for `fires_room` of them */
    size_t fires_room;
    const char *payload; /* of each fire in a batch; NULL: none */
};

pawl *store_open(const struct bench *bench, const char *name);
void define(pawl *p, const char *text);
/* A new store `name` with `count` instances of a machine that can be fired for ever. */
void crowd_make(const struct bench *bench, const char *name, size_t count, struct crowd *out);
/* Likewise of `definition`, whose text is given. */
void crowd_make_of(const struct bench *bench, const char *name, const char *text,
                   const char *definition, size_t count, struct crowd *out);
/* The same in a store that is open, and is the crowd's from now on. */
void crowd_fill(pawl *p, size_t count, struct crowd *out);
void crowd_reopen(const struct bench *bench, const char *name, struct crowd *crowd);
void crowd_close(struct crowd *crowd); /* its store; the ids stay */
void crowd_free(struct crowd *crowd);
/* One commit: a fire each of `size` instances at random; size 1 by pawl_fire(). */
void crowd_fire(struct crowd *crowd, size_t size);
/* One commit: the first `size` of crowd->fires, as the caller has set them. */
void crowd_fire_these(struct crowd *crowd, size_t size);

/* ---- The yardstick (append.c) ---- */

struct append;

struct append *append_open(const struct bench *bench, const char *name);
void append_commit(struct append *append, size_t rows, size_t instances);
void append_close(struct append *append);

/* ---- A server seen from outside (process.c) ---- */

pid_t child_start(char *const *words, int *output); /* output: what it prints can be read here */
void child_line(int output, char *line, size_t size);
void child_end(pid_t pid, int signal_number); /* 0: only wait */

struct server {
    pid_t pid;
    int port, output;
    double ready_ms; /* from exec to the line that says so */
};

void server_start(const struct bench *bench, const char *name, struct server *out);
void server_start_over(const struct bench *bench, char *url, struct server *out);
void server_stop(struct server *server);
double resident_mib(pid_t pid);
/* Fire at random over `connections` for `seconds`; fires per second. Resident memory is
 * looked at meanwhile. */
double server_load(struct server *server, const struct crowd *crowd, int connections,
                   double seconds, double *resident_max);

/* ---- Many connections from one thread (client.c) ---- */

struct question { /* the next request, as it goes over the wire */
    const char *(*next)(void *context, size_t *size);
    void *context;
};

int http_connect(int port);
/* One request and its answer's body, which ends with NUL; it must be a success. */
void http_ask(int fd, const char *path, const char *body, char *answer, size_t room);
/* Ask over `connections` for `seconds`, one request at a time each; answers per second. */
double http_rate(int port, int connections, double seconds, const struct question *question);
void files_raise(void); /* as many as may be open */
/* Each sends `text`, and is open when it has heard `word`. */
void streams_open(int port, int *streams, int count, const char *text, const char *word);
/* Ask, and wait until every stream has heard `word`; the seconds it took. */
double streams_hear(const int *streams, int count, int port, const struct question *question,
                    const char *word);

/* ---- Sections, in the order they run ---- */

/* The big crowd is made once and handed from one section to the next. */
struct big {
    struct crowd crowd;
    const char *name;
};

void measure_fires(struct bench *bench);
void measure_depth(struct bench *bench);
void measure_flows(struct bench *bench);
void measure_maps(struct bench *bench);
void measure_latency(struct bench *bench); /* of measure_flows() */
/* A store with the flow `ten`: nine steps of `tool` and one of a tool that counts in `arrived`. */
#define FLOW_STEPS 10
pawl *flow_open(const char *url, const pawl_options *options, const char *tool, size_t *arrived);
/* 64 of them under way all the time; flows a second. */
double flow_rate(pawl *p, const size_t *arrived, double seconds);
/* A flow of ten registered tools in a store without threads, alone: from create to its end. */
pawl *flow_alone_open(const struct bench *bench, size_t *arrived);
double flow_alone_ms(pawl *p);
void flow_alone_close(const struct bench *bench, pawl *p);
void measure_disk(struct bench *bench);
void measure_timers(struct bench *bench);
void measure_code(struct bench *bench);
void measure_sleepers(struct bench *bench);
void measure_postgres(struct bench *bench); /* only if it is named: it starts a server */
void measure_postgres_flows(struct bench *bench);
void measure_postgres_nodes(struct bench *bench);
void measure_lists(struct bench *bench);
void measure_erasing(struct bench *bench);
void measure_server(struct bench *bench);
void measure_http(struct bench *bench);
void measure_mcp(struct bench *bench);
void big_make(const struct bench *bench, struct big *big);
void measure_million_fires(struct bench *bench, struct big *big);
void measure_million_server(struct bench *bench, struct big *big);
void child_fire(const struct bench *bench, const char *name, size_t count, size_t batch,
                size_t fires);
void child_sleepers(const struct bench *bench, const char *name, size_t count, bool wake);

#endif
