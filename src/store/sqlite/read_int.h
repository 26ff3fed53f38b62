/* read_int.h - private to the SQLite store: how its read_*.c and list.c share a shape. */
#ifndef PAWL_STORE_SQLITE_READ_INT_H
#define PAWL_STORE_SQLITE_READ_INT_H

#include "base/limits.h"
#include "sqlite_int.h"

/* Copies one row into the arena and *out, which is not to be used if the arena has failed. */
typedef void row_reader(sqlite3_stmt *statement, struct arena *arena, void *out);

/* Step a bound statement, read its one row and reset it. NOT_KNOWN, in words with `what`. */
pawl_status read_row(struct scope *scope, sqlite3_stmt *statement, const char *what,
                     row_reader *read, void *out);

/* The `find` of store_ops, inside of a read that has begun. */
pawl_status sqlite_find_inside(struct store *base, struct scope *scope,
                               const struct find_query *query, void *out);
pawl_status head_find(struct connection *reader, struct scope *scope, uint64_t instance,
                      bool trust_rows, struct head_row *out);

/* whole_log.c: of a reader who shows an instance, inside of a read that has begun. */
pawl_status sqlite_read_whole(struct sqlite_store *store, struct scope *scope,
                              struct instance_log_query *query);
/* rows.c, likewise inside. */
pawl_status live_read(struct sqlite_store *store, struct scope *scope, uint64_t instance,
                      struct live *out);

/* Columns in the order of these statements. */
#define INSTANCE_COLUMNS                                                                           \
    "number, random, definition, instantiated_at, created_pos, creator, subject, input,"           \
    " metadata, parent, correlation, labels, test"
#define INSTANCE_COLUMN_COUNT 13
#define RECORD_COLUMNS                                                                             \
    "pos, inst, seq, prev, skip, what, flags, at, coalesce(fired, at), step, ord, attempt, actor," \
    " payload, reason, body, key, hash, root"
#define RECORD_COLUMN_COUNT 19
extern const char select_record[];
void read_instance(sqlite3_stmt *statement, struct arena *arena, void *out);
void read_record(sqlite3_stmt *statement, struct arena *arena, void *out);
void read_definition_facts(sqlite3_stmt *statement, struct arena *arena, void *out);
void read_standing(sqlite3_stmt *statement, struct arena *arena, void *out);
void read_number(sqlite3_stmt *statement, struct arena *arena, void *out); /* a uint64_t */
/* The only number of a statement without parameters. */
pawl_status read_one_number(struct connection *connection, struct scope *scope, const char *text,
                            uint64_t *out);

#endif
