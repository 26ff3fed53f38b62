/* sqlite_int.h - private to the SQLite store.
 *
 * Three connections to one file:
 *   writer  begin..commit, one thread at a time (the drain);
 *   reader  all reads, one at a time, under read_lock; no read transaction outlives a call;
 *   keeper  moves the WAL into the file, so that neither of the others has to.
 * An attached store has one, the host's, for all of it: guest.c.
 * What must hold between calls is listed at struct sqlite_store. */
#ifndef PAWL_STORE_SQLITE_INT_H
#define PAWL_STORE_SQLITE_INT_H

#include "store/instance_log.h"
#include <limits.h>
#include <pthread.h>
#include <sqlite3.h>
#include <stdatomic.h>
#include <sys/stat.h>

#define SQLITE_APPLICATION_ID 0x7061776C /* "pawl" */
#define BUSY_TIMEOUT_MS       5000       /* how long a write waits for another process's */

/* ---- Statements: statement.c ---- */

#define STATEMENT_SLOTS     256 /* for about a hundred statements on one connection */
#define STATEMENT_VARIABLES 304 /* of the largest of them */

struct connection {
    sqlite3 *db;      /* NULL: not open */
    bool is_borrowed; /* it is the host's: never closed, its settings never changed */
    struct {
        const char *text; /* NULL: the slot is free */
        sqlite3_stmt *statement;
    } cache[STATEMENT_SLOTS]; /* by the address of the text */
};

enum connection_use { USE_WRITER, USE_READER, USE_KEEPER, USE_SQL };

/* Open the file, which must be there, and set it up for its use. */
pawl_status connection_open(struct connection *connection, struct scope *scope, const char *path,
                            enum connection_use use);
void connection_close(struct connection *connection); /* one that is not open is fine */

/* The words for what SQLite said last: NO_MEMORY or STORAGE_FAILURE. `doing`: "reading a record".
 */
pawl_status sqlite_fail(struct scope *scope, sqlite3 *db, const char *doing);

/* A prepared statement, ready to be bound. The connection keeps it under the address of `text`,
 * which is a constant: what must be prepared in advance is asked for with the same constant. */
pawl_status statement_get(struct connection *connection, struct scope *scope, const char *text,
                          sqlite3_stmt **out);
/* Step once. *row is whether there is a row; the statement is reset after the last row, and
 * when it fails. */
pawl_status statement_step(sqlite3_stmt *statement, struct scope *scope, bool *row);
/* Step a statement that gives no rows, and reset it. */
pawl_status statement_run(sqlite3_stmt *statement, struct scope *scope);
/* statement_get() and statement_run() of one without parameters. */
pawl_status connection_run(struct connection *connection, struct scope *scope, const char *text);

/* What is bound is borrowed until the statement is reset or bound again. */
void bind_u64(sqlite3_stmt *statement, int index, uint64_t n);
void bind_i64(sqlite3_stmt *statement, int index, int64_t n);
void bind_text(sqlite3_stmt *statement, int index, str s);          /* data NULL is NULL */
void bind_blob(sqlite3_stmt *statement, int index, str s);          /* data NULL is NULL */
void bind_bytes(sqlite3_stmt *statement, int index, const uint8_t *bytes, size_t size);

/* One parameter, for RUN(). */
struct param {
    enum { PARAM_NUMBER, PARAM_SIGNED, PARAM_OPTIONAL, PARAM_TEXT, PARAM_BLOB } kind;
    union {
        uint64_t n;
        int64_t i;
        str s;
    };
};
#define NUMBER(number)    { PARAM_NUMBER, { .n = (number) } }
#define SIGNED(number)    { PARAM_SIGNED, { .i = (number) } }
#define OPTIONAL(number)  { PARAM_OPTIONAL, { .n = (uint64_t)(number) } }
#define TEXT(text)        { PARAM_TEXT, { .s = (text) } }
#define BLOB(bytes)       { PARAM_BLOB, { .s = (bytes) } }
#define BYTES(data, size) { PARAM_BLOB, { .s = { (const char *)(data), size } } }

/* Run a statement that gives no rows, with these parameters from ?1 on. */
#define RUN(connection, scope, text, ...)                                                          \
    connection_put(connection, scope, text, (const struct param[]){ __VA_ARGS__ },                 \
                   sizeof((const struct param[]){ __VA_ARGS__ }) / sizeof(struct param))
pawl_status connection_put(struct connection *connection, struct scope *scope, const char *text,
                           const struct param *params, size_t count);

uint64_t column_u64(sqlite3_stmt *statement, int index); /* NULL is 0 */
uint32_t column_u32(sqlite3_stmt *statement, int index);
int64_t column_i64(sqlite3_stmt *statement, int index);
/* A copy in the arena; NULL is STR_NONE. Text and blobs alike. Look at arena->failed after. */
str column_str(sqlite3_stmt *statement, int index, struct arena *arena);
/* Exactly `size` bytes; a damaged column that has another size leaves zeros, for verify to find. */
void column_bytes(sqlite3_stmt *statement, int index, uint8_t *out, size_t size);

/* ---- The sidecar: lock.c ---- */

/* FILE-owner is only a lock. An owner holds it exclusively for life, a process that makes or
 * migrates the file while it does so; each write of any other process holds it shared. An owner
 * writes "PID ADDRESS" into it. Text in a file without a lock is of an owner that died. */
struct sidecar {
    const char *database;
    char path[PATH_MAX];
    int fd; /* -1: not open */
};

enum sidecar_lock { LOCK_SHARED, LOCK_EXCLUSIVE };

/* Lock, waiting a short while for writers and makers, but not for an owner: IN_USE, naming it. */
pawl_status sidecar_lock(struct sidecar *sidecar, struct scope *scope, enum sidecar_lock how);
void sidecar_unlock(struct sidecar *sidecar);
/* Write that this process owns the store, or, if not `owned`, that it has no owner. `address`
 * may be NULL. The caller holds the exclusive lock. */
pawl_status sidecar_announce(struct sidecar *sidecar, struct scope *scope, const char *address,
                             bool owned);
/* Write FILE-secret, or, if `secret` is NULL, remove the one that an owner has left. Only under the
 * exclusive lock, and before the announcement: who finds the owner finds its secret. */
pawl_status sidecar_keep_secret(struct sidecar *sidecar, struct scope *scope, const char *secret);
void sidecar_close(struct sidecar *sidecar); /* unlocks */

/* Opens one of our files beside the database, made if missing; -1 and errno. watch.c */
int sqlite_open_beside(const char *database, const char *path);
/* "FILE" and an ending, of the file itself, whatever links lead to it. False: that is no path. */
#define BESIDE_SIZE (PATH_MAX + 16)
bool sqlite_name_beside(str path, const char *ending, char out[BESIDE_SIZE]);

/* STORAGE_FAILURE that says what errno says. `doing`: "opening". create_file.c */
pawl_status sqlite_fail_file(struct scope *scope, const char *doing, const char *path);
/* `flags`: O_DIRECTORY or 0. */
pawl_status sqlite_sync(struct scope *scope, const char *path, int flags);
void sqlite_folder_of(const char *path, char out[PATH_MAX]); /* of an absolute path */

/* ---- The store ---- */

#define WATCHED_COUNT 3 /* the database, its -wal, its -shm: watch.c */
struct watched {
    dev_t device;
    ino_t inode; /* 0: it is not watched */
};

struct wal_index { /* what the store's -shm says: changed.c */
    uint32_t page_size;     /* 0: the -shm cannot be read */
    uint32_t pages, frames; /* of the database; committed in the -wal */
    uint32_t salt, moved, moving; /* which -wal it is; frames that checkpoints moved, or began to */
};

struct unchanged { /* the database file as it was last seen: changed.c */
    struct wal_index index;
    struct timespec mtime;
    off_t size;
};

struct witness_file { /* FILE-head: witness_file.c */
    char path[PATH_MAX];
    struct sha *sha;       /* of those who write it: the turn's, or alone */
    int fd;                /* -1: not open */
    bool is_off;           /* the file is a host's */
    bool is_held;          /* the log contradicts it: it is not written over */
    uint32_t behind;       /* commits since the last write */
    int64_t written_at_ms; /* by the monotonic clock */
    struct head_witness set_aside; /* when this handle made the store; NONE: there was no other */
};

/* Between calls:
 *   (a) in_turn is true exactly from begin() to commit() or rollback(), and then the writer is
 *       in a transaction and the sidecar is locked;
 *   (b) an owner's sidecar is locked exclusively as long as the store is open, an attached
 *       store's shared;
 *   (c) the reader is in no transaction while read_lock is free, but for an attached store's:
 *       there it is in the host's, or in none;
 *   (d) once `broken`, no call but close() touches the file;
 *   (e) `tip` is the tip as the writer last saw it, at writer_version. */
struct sqlite_store {
    struct store base;
    const struct heap *heap;
    struct env *env;
    bool own;
    bool is_attached;   /* writer and reader are one connection, and it is the host's */
    bool is_joined;     /* attached, in turn: inside of a transaction of the host's */
    bool has_savepoint; /* joined: and there is something of ours to undo */
    bool has_lost;      /* attached: SQLite has rolled back the host's transaction by itself */
    bool is_guest;      /* attached, reading: inside of a transaction */
    struct store_tip made; /* the ids that it gets if it is made */
    char path[PATH_MAX];
    char *uri; /* is_read_only: the path for SQLite, with how it is read; NULL: `path` */
    size_t uri_size;
    bool is_read_only, is_immutable; /* readonly.c */
    off_t read_size;                 /* is_immutable: of the file, as it must stay */
    struct timespec read_mtime;
    struct sidecar sidecar;

    struct connection writer;
    bool in_turn;
    bool tip_known;
    struct store_tip tip;
    uint64_t writer_version;  /* PRAGMA data_version when `tip` was right */
    _Atomic uint64_t changes; /* see read_tip.c */
    atomic_bool broken;       /* a COMMIT failed: what the file holds is unknown */
    atomic_bool is_rescued; /* and the contents of a deleted WAL were moved into the database */
    char gone_words[256]; /* written once, before is_gone is set: any thread reads it after that */
    struct watched watched[WATCHED_COUNT];
    struct unchanged unchanged;
    struct witness_file witness;

    pthread_mutex_t read_lock;
    struct sha *sha; /* of what is read: commitments that are not stored */
    struct connection reader;
    uint64_t reader_version;

    struct connection keeper;
    _Atomic uint32_t wal_pages; /* in the WAL after the last commit */
    uint32_t wal_next;          /* move the WAL into the file when it has so many */
};

static inline struct sqlite_store *sqlite_store_of(struct store *store)
{
    return (struct sqlite_store *)(void *)store;
}

/* What SQLite opens. */
static inline const char *sqlite_name(const struct sqlite_store *store)
{
    return store->uri ? store->uri : store->path;
}

/* ---- readonly.c ---- */

/* Is it there, and may this user only read it? Then how; own: STORAGE_FAILURE. */
pawl_status readonly_begin(struct sqlite_store *store, struct scope *scope, bool own);
/* Is what is immutable still as it was? STORAGE_FAILURE. */
pawl_status readonly_check(const struct sqlite_store *store, struct scope *scope);
pawl_status readonly_refuse(const struct sqlite_store *store, struct scope *scope); /* a write */
void readonly_end(struct sqlite_store *store);

/* STORAGE_FAILURE once the store is broken. */
pawl_status sqlite_check(struct sqlite_store *store, struct scope *scope);
/* Opens one more connection to the store's file, for reading. */
pawl_status connection_open_sql(struct sqlite_store *store, struct scope *scope,
                                struct connection *out);

/* ---- Making and migrating: create_file.c, migrate.c ---- */

extern const str sqlite_schema[][2]; /* made by tools/embed: name and text of each migration */
extern const str sqlite_flat[][2]; /* made by tools/flatten: what all of them make, in one text */

/* Make the store's file. Only under the exclusive lock, and if it is not there. */
pawl_status sqlite_create(struct sqlite_store *store, struct scope *scope);

/* Which of our migrations a file has, and whether it is a host's. */
struct schema {
    uint32_t version; /* of ours; 0: none */
    bool is_hosted;   /* the next two belong to the host, and `version` lies in pawl_meta */
    int32_t application_id, user_version;
};

pawl_status schema_read(sqlite3 *db, struct scope *scope, struct schema *out);
/* STORAGE_FAILURE for a schema that is newer than this binary knows. */
pawl_status schema_check(struct sqlite_store *store, struct scope *scope,
                         const struct schema *schema);
/* Apply the migrations that are missing, and, to the first, what makes a store itself; in one
 * transaction. */
pawl_status sqlite_migrate(struct sqlite_store *store, sqlite3 *db, struct scope *scope,
                           const struct schema *schema);
int sqlite_put_facts(const struct sqlite_store *store, sqlite3 *db);
int schema_make(sqlite3 *db, uint32_t version, bool is_hosted); /* what migrations 1.. make */
uint32_t sqlite_schema_version(void); /* the newest one known */

/* open_schema.c: STORAGE_FAILURE that names a trigger on a table or view of ours. */
pawl_status schema_refuse_triggers(sqlite3 *db, struct scope *scope, const char *path,
                                   bool is_hosted);
pawl_status sqlite_objects(struct store *store, struct scope *scope, object_fn fn, void *context);

/* ---- Opening: open_file.c; inside a host's transaction: guest.c ---- */

struct sqlite_store *sqlite_store_new(const struct store_options *options); /* NULL: no memory */
pawl_status sqlite_reopen(struct store *store, struct scope *scope);
/* Fill in where the file and its sidecar are. */
pawl_status sqlite_find_path(struct sqlite_store *store, struct scope *scope, str name);

/* An attached store's begin: its own transaction, or, joined, a part of the host's. OVERLOADED if
 * another connection is writing. */
pawl_status join_begin(struct sqlite_store *store, struct scope *scope);
pawl_status join_release(struct sqlite_store *store, struct scope *scope);
void join_abandon(struct sqlite_store *store);
/* Says in the scope's words, too, that the host's transaction is gone, if it is. */
pawl_status join_words(struct sqlite_store *store, struct scope *scope, pawl_status status);

/* ---- The verbs ---- */

/* Take the reader. On OK, give it back with reader_leave(). */
pawl_status reader_enter(struct sqlite_store *store, struct scope *scope);
void reader_leave(struct sqlite_store *store);
/* The same, with one snapshot for several statements. */
pawl_status reader_begin(struct sqlite_store *store, struct scope *scope);
void reader_end(struct sqlite_store *store);

pawl_status sqlite_begin(struct store *store, struct scope *scope, struct store_tip *out);
pawl_status sqlite_commit(struct store *store, struct scope *scope, const struct commit *commit);
void sqlite_rollback(struct store *store);

/* Make store->tip right. Only in the writer's transaction. */
pawl_status tip_refresh(struct sqlite_store *store, struct scope *scope);

pawl_status write_rows(struct connection *writer, struct scope *scope, const struct commit *commit);
pawl_status write_labels(struct connection *writer, struct scope *scope,
                         const struct commit *commit);
pawl_status delete_labels(struct connection *writer, struct scope *scope,
                          const struct instance_row *rows, size_t count);
/* write_departed.c: what was moved into an archive file. */
pawl_status write_departed(struct connection *writer, struct scope *scope,
                           const struct commit *commit);
pawl_status write_live(struct connection *writer, struct scope *scope, const struct commit *commit);
pawl_status write_keys(struct connection *writer, struct scope *scope, const struct commit *commit);
pawl_status write_standing(struct connection *writer, struct scope *scope,
                           const struct commit *commit);
pawl_status write_reduces(struct sqlite_store *store, struct scope *scope,
                          const struct commit *commit);
pawl_status write_definition(struct connection *writer, struct scope *scope,
                             const struct definition_row *row);

void watch_begin(struct sqlite_store *store);
pawl_status watch_check(struct sqlite_store *store, struct scope *scope); /* before COMMIT */
void watch_rescue(struct sqlite_store *store); /* after a failed watch_check(), outside a turn */
const char *watch_words(const struct sqlite_store *store); /* once is_gone */
void watch_second_owner(struct sqlite_store *store); /* another process extended our log */
void watch_end(struct sqlite_store *store);                /* before the connections are closed */

/* changed.c: what was done to files that are still there. */
void unchanged_note(struct sqlite_store *store);
struct wal_index unchanged_index(const struct sqlite_store *store);
/* What happened ("was truncated"), or NULL; *what is the file. `found`: of each watched file,
 * looked at after the index was read into `before`. */
const char *unchanged_check(struct sqlite_store *store, const struct wal_index *before,
                            const struct stat found[WATCHED_COUNT], const char **what);

void witness_set_aside(struct sqlite_store *store); /* before a new file gets its name */
pawl_status witness_begin(struct sqlite_store *store, struct scope *scope);
void witness_note(struct sqlite_store *store, bool is_at_rest); /* after COMMIT */
void witness_flush(struct sqlite_store *store);
pawl_status sqlite_witness(struct store *base, struct scope *scope, str accepted_by,
                           struct head_witness *out);

int wal_hook(void *store, sqlite3 *db, const char *name, int pages);
void wal_keep_small(struct sqlite_store *store); /* after a commit */
pawl_status sqlite_scrub(struct store *base, struct scope *scope);

STORE_READS(sqlite);
pawl_status sqlite_sql(struct store *store, struct scope *scope, str text, int64_t limit_ms,
                       row_fn fn, void *context);
/* What a statement says is its author's fault (INVALID_REQUEST); what the file does is ours. */
/* sql_shards.c: makes the tables and views of this reader those of all shards. */
pawl_status sqlite_sql_shards(struct sqlite_store *store, sqlite3 *db, struct scope *scope);
pawl_status sql_fail(struct scope *scope, sqlite3 *db);
pawl_status sqlite_examine(struct store *base, struct scope *scope, bad_row_fn fn, void *context);
pawl_status sqlite_facts(struct store *base, struct scope *scope, struct store_facts *out);

#endif
