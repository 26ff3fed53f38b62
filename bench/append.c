/* append.c - the yardstick: plain SQLite, appending rows like those of pawl_log.
 *
 * Columns, numbers, hash and root are what one fire with an actor leaves in the log: WAL,
 * synchronous = FULL, one statement prepared once, nothing decided, nothing hashed, no other
 * table. What pawl adds to that is what the ratios show. */
#include "bench.h"
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HASH_SIZE 32

static const char schema[] =
    "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;"
    "CREATE TABLE log (pos INTEGER PRIMARY KEY, inst INTEGER, seq INTEGER, prev INTEGER,"
    " skip INTEGER, what INTEGER, flags INTEGER, at INTEGER, fired INTEGER, step INTEGER,"
    " ord INTEGER, attempt INTEGER, actor INTEGER, payload INTEGER, reason INTEGER, body BLOB,"
    " key BLOB, hash BLOB, root BLOB)";

static const char insert[] = "INSERT INTO log (pos, inst, seq, prev, what, at, actor, hash, root)"
                             " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)";

struct append {
    sqlite3 *db;
    sqlite3_stmt *begin, *put, *commit;
    uint64_t pos, seed;
    uint64_t hash[HASH_SIZE / sizeof(uint64_t)];
};

static void prepare(struct append *append, const char *text, sqlite3_stmt **out)
{
    if (sqlite3_prepare_v3(append->db, text, -1, SQLITE_PREPARE_PERSISTENT, out, NULL) != SQLITE_OK)
        die("append: %s", sqlite3_errmsg(append->db));
}

static void run(struct append *append, sqlite3_stmt *statement)
{
    if (sqlite3_step(statement) != SQLITE_DONE)
        die("append: %s", sqlite3_errmsg(append->db));
    sqlite3_reset(statement);
}

struct append *append_open(const struct bench *bench, const char *name)
{
    struct append *append = get_memory(sizeof *append);
    int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX;
    char path[PATH_SIZE];

    path_in(bench, name, path);
    store_remove(bench, name);
    if (sqlite3_open_v2(path, &append->db, flags, NULL) != SQLITE_OK ||
        sqlite3_exec(append->db, schema, NULL, NULL, NULL) != SQLITE_OK)
        die("append: %s: %s", path, sqlite3_errmsg(append->db));
    prepare(append, "BEGIN IMMEDIATE", &append->begin);
    prepare(append, insert, &append->put);
    prepare(append, "COMMIT", &append->commit);
    append->seed = 1;
    return append;
}

void append_close(struct append *append)
{
    sqlite3_finalize(append->begin);
    sqlite3_finalize(append->put);
    sqlite3_finalize(append->commit);
    sqlite3_close(append->db);
    free(append);
}

/* A row as the log would have it when `instances` are fired at random. */
static void bind(struct append *append, size_t instances, int64_t at_ms, bool is_last)
{
    uint64_t random = random_next(&append->seed), pos = ++append->pos;
    sqlite3_stmt *put = append->put;

    for (size_t i = 0; i < HASH_SIZE / sizeof *append->hash; i++)
        append->hash[i] = random * (i + 1) + pos;
    sqlite3_bind_int64(put, 1, (int64_t)pos);
    sqlite3_bind_int64(put, 2, (int64_t)(random % instances + 1));
    sqlite3_bind_int64(put, 3, (int64_t)(pos / instances + 1));
    sqlite3_bind_int64(put, 4, (int64_t)(pos > instances ? pos - random % instances : pos));
    sqlite3_bind_int64(put, 5, (int64_t)(random & 1));
    sqlite3_bind_int64(put, 6, at_ms);
    sqlite3_bind_int64(put, 7, 1);
    sqlite3_bind_blob(put, 8, append->hash, HASH_SIZE, SQLITE_STATIC);
    if (is_last)
        sqlite3_bind_blob(put, 9, append->hash, HASH_SIZE, SQLITE_STATIC);
    else
        sqlite3_bind_null(put, 9);
}

void append_commit(struct append *append, size_t rows, size_t instances)
{
    int64_t at_ms = wall_ms();

    run(append, append->begin);
    for (size_t i = 0; i < rows; i++) {
        bind(append, instances, at_ms, i + 1 == rows);
        run(append, append->put);
    }
    run(append, append->commit);
}
