/* postgres_int.h - private to the PostgreSQL store: the store itself, and what its files share.
 *
 * Its connections are those of its node (pg_node.h): one to write by, which owners share with other
 * shards and a shared writer has for itself, and one to read by, each for one exchange at a time.
 * Reads that may take long have one of their own. */
#ifndef PAWL_STORE_POSTGRES_INT_H
#define PAWL_STORE_POSTGRES_INT_H

#include "base/map.h"
#include "link.h"
#include "pg_node.h"
#include "store/instance_log.h"
#include <pthread.h>

#define SCHEMA_VERSION    1
#define READ_DEADLINE_MS  15000
#define SHARE_DEADLINE_MS 30000  /* of a writer that shares the store */
#define LONG_DEADLINE_MS  600000 /* of reads that look at everything */
#define LOG_ROW_RECORDS   128u
#define LOG_ROW_BYTES     ((size_t)256 << 10)
#define WRITE_LIMIT       ((size_t)4 << 30)

/* ---- What was read ahead: expect.c ---- */

enum ahead_kind {
    AHEAD_HEADS,
    AHEAD_ROWS,
    AHEAD_RECORDS,
    AHEAD_VALUES,
    AHEAD_LIVE,
    AHEAD_SNAPSHOTS,
    AHEAD_KEYS,
    AHEAD_TEXTS,
    AHEAD_NAMES,
    AHEAD_KINDS
};
#define AHEAD_RESULTS 64u

struct reading_ahead {
    struct postgres_store *store;
    pthread_t thread; /* whose it is */
    uint64_t changes; /* of the store, when it was read; it holds until that has changed */
    bool is_used;
    bool are_heads_true; /* no head row lagged */
    PGresult *results[AHEAD_RESULTS];
    uint32_t result_count;
    struct map places[AHEAD_KINDS]; /* a name -> its result and row, or that it is missing */
    struct scope kept;              /* what was asked for by its bytes, and is missing: ... */
    str *asked;
    uint32_t asked_count, asked_capacity;
};

void pg_ahead_init(struct reading_ahead *ahead, struct postgres_store *store);
void pg_ahead_fini(struct reading_ahead *ahead);
/* True: *status is the answer, and *out is filled in where it is OK. */
bool pg_ahead_find(const struct reading_ahead *ahead, struct scope *scope,
                   const struct find_query *query, void *out, pawl_status *status);
bool pg_ahead_live(const struct reading_ahead *ahead, struct scope *scope, uint64_t instance,
                   struct live *out, pawl_status *status);
/* Takes over a result whose rows are named by their first column (AHEAD_LIVE: some rows each). */
bool pg_ahead_add(struct reading_ahead *ahead, enum ahead_kind kind, PGresult **result);
void pg_ahead_note_missing(struct reading_ahead *ahead, enum ahead_kind kind,
                           const uint64_t *numbers, uint32_t count);
/* The same of what the calling thread has expected, if that still holds. */
bool expected_find(struct postgres_store *store, struct scope *scope,
                   const struct find_query *query, void *out, pawl_status *status);
bool expected_live(struct postgres_store *store, struct scope *scope, uint64_t instance,
                   struct live *out, pawl_status *status);

/* ---- The store ---- */

#define AHEAD_THREADS 4 /* of them may have read ahead at a time */

/* Between calls:
 *   (a) in_turn is true exactly from begin() to commit() or rollback(); a shared writer is then in
 *       a transaction that holds its shard's row, an owner is in none;
 *   (b) `tip` and `epoch` are an owner's for as long as it owns; a shared writer's in its turn;
 *   (c) once `broken`, every call but reopen() and close() fails. */
struct postgres_store {
    struct store base;
    const struct heap *heap;
    struct env *env;
    bool own;
    bool is_held;                  /* a planted defect: its transaction is open */
    bool is_member;                /* cluster.h changes `own` */
    struct store_tip acknowledged; /* of a member: the end of the log as it has told its callers */
    struct scope kept; /* what lives as long as the store */
    struct pg_node *node; /* shared with the other shards of this process */
    struct postgres_store *next_owner;
    uint32_t shard;
    void (*lost)(void *context, const char *words);
    void *lost_context;

    struct shared_link alone; /* of a shared writer: its turn is a transaction */
    struct shared_link *lane; /* held during an exchange */
    struct pg_link *writer;   /* of the lane */
    struct scope work; /* what a commit sends */
    struct sha *write_sha;
    bool in_turn;
    int64_t epoch;
    struct store_tip tip;
    _Atomic uint64_t changes;
    atomic_bool broken; /* a commit was sent and not answered */

    pthread_mutex_t *read_lock;
    struct pg_link *reader;
    struct sha *sha;

    pthread_mutex_t ahead_lock;
    struct reading_ahead ahead[AHEAD_THREADS];

    uint64_t deadlocks; /* commits that were sent again */
};

static inline struct postgres_store *postgres_of(struct store *store)
{
    return (struct postgres_store *)(void *)store;
}

pawl_status postgres_check(struct postgres_store *store, struct scope *scope);
pawl_status postgres_fail_no_row(struct scope *scope, uint32_t shard);
/* Has it all that this process has acknowledged? STORAGE_FAILURE, "went backwards". */
pawl_status pg_check_log(const struct postgres_store *store, struct scope *scope,
                         const struct shard_row *row);
/* IN_USE, with who owns the shard. */
pawl_status postgres_fail_owned(struct scope *scope, const struct shard_row *row);

/* pg_schema.c: for the node's first shard. */
pawl_status postgres_find_schema(struct postgres_store *store, struct scope *scope,
                                 const struct store_options *options);
extern const str postgres_schema[][2]; /* made by tools/embed */

/* ---- Reading ---- */

/* One round trip on the reader; a lost connection is made again once. */
pawl_status pg_exchange(struct postgres_store *store, struct scope *scope,
                        struct statement *statements, size_t count);
/* The same on a connection of its own. */
pawl_status pg_exchange_long(struct postgres_store *store, struct scope *scope,
                             struct statement *statement);

/* Copies one row into the arena and *out. */
typedef void pg_row_reader(const struct pg_rows *rows, struct arena *arena, void *out);
/* All rows of a result, as an array of structs of `size`. */
pawl_status pg_read_all(struct scope *scope, struct pg_rows *rows, pg_row_reader *read, size_t size,
                        void *out, uint32_t *count);
pg_row_reader pg_read_head, pg_read_instance, pg_read_record, pg_read_snapshot, pg_read_key,
    pg_read_standing, pg_read_definition, pg_read_definition_facts, pg_read_number;
struct value_row {
    struct value value;
    bool is_bare; /* it has no commitment: it follows from its bytes */
};
pg_row_reader pg_read_value;
void pg_value_commit(struct postgres_store *store, struct value_row *row);
void pg_value_digest(struct postgres_store *store, str bytes, uint8_t out[SHA_SIZE]);
#define DIGEST_SIZE 16

/* The statements of finds, each for several names at once. */
extern const char pg_select_heads[], pg_select_instances[], pg_select_records[], pg_select_values[],
    pg_select_interned[], pg_select_snapshots[], pg_select_keys[], pg_select_newest[],
    pg_select_live[], pg_select_last_records[];
#define PG_INSTANCE_COLUMNS                                                                        \
    "i.number, i.random, i.definition, i.instantiated_at, i.created_pos, i.creator, i.subject,"    \
    " i.input, i.metadata, i.parent, i.correlation, i.labels, i.test"
#define PG_VALUE_COLUMNS "v.id, v.commitment, v.salt, v.bytes, v.interned"
/* Of the k-th record of the log's row `l`. */
#define PG_RECORD_COLUMNS                                                                          \
    "l.pos + k - 1, l.inst[k], l.seq[k], l.prev[k], l.skip[k], l.what[k], l.flags[k],"             \
    " coalesce(l.ats[k], l.at), coalesce(l.fired[k], l.ats[k], l.at), l.step[k], l.ord[k],"        \
    " l.attempt[k], l.actor[k], l.payload[k], l.reason[k], l.body[k], l.keys[k],"                  \
    " substr(l.hash, k * 32 - 31, 32), CASE WHEN k = l.n THEN l.root END"
/* The row of the record at a position, and which of its records it is. */
#define PG_LOG_AT(pos_of)                                                                          \
    "LATERAL (SELECT *, (" pos_of " - pos + 1)::int AS k FROM pawl_log WHERE shard = $1"           \
    " AND pos <= " pos_of " ORDER BY pos DESC LIMIT 1) l"

/* instance_logs.c: of an instance that this thread is gathering. */
bool gathered_live(struct scope *scope, uint64_t instance, struct live *out, pawl_status *status);
pawl_status live_take(struct scope *scope, struct pg_rows *rows, struct live *out);
pawl_status postgres_find_by(struct postgres_store *store, struct scope *scope,
                             const struct find_query *query, void *out);
pawl_status postgres_expect(struct store *store, struct scope *scope,
                            const struct expectation *expectation);

/* ---- Writing ---- */

pawl_status postgres_begin(struct store *store, struct scope *scope, struct store_tip *out);
pawl_status postgres_commit(struct store *store, struct scope *scope, const struct commit *commit);
void postgres_rollback(struct store *store);

/* The statements of one commit, as they are gathered. */
struct sending {
    struct postgres_store *store;
    struct scope *scope; /* the store's `work` */
    struct statement *statements;
    uint32_t count, capacity;
};

/* A commit that waits for its connection. */
struct waiting_commit {
    struct waiting_commit *next;
    struct postgres_store *store;
    struct scope *scope; /* has the words of a failure */
    struct sending *sending;
    pawl_status status;
    bool is_done;
};
extern const char pg_begin[], pg_end_commit[];
/* With others that wait. pg_train.c */
pawl_status pg_ride(struct postgres_store *store, struct scope *scope, struct sending *sending);
/* These hold the lane. pg_commit.c */
pawl_status pg_send_alone(struct postgres_store *store, struct scope *scope,
                          struct sending *sending);
/* Of a transaction that was committed: was this in it? `last`: its last statement. */
pawl_status pg_judge_part(struct postgres_store *store, struct scope *scope,
                          const struct statement *last);
pawl_status pg_fail_unknown(struct postgres_store *store, struct scope *scope);

bool pg_has_fence(void);
struct params *sending_add(struct sending *sending, const char *text); /* $1: the shard */
pawl_status send_log(struct sending *sending, const struct commit *commit);
bool log_is_one_row(const struct commit *commit);
void log_params(struct params *params, const struct record *records, size_t count);
pawl_status send_live(struct sending *sending, const struct commit *commit);
pawl_status send_definitions(struct sending *sending, const struct commit *commit);
pawl_status send_labels(struct sending *sending, const struct commit *commit);
pawl_status send_rows(struct sending *sending, const struct commit *commit);
pawl_status send_erased(struct sending *sending, const struct commit *commit);
pawl_status send_value_erasures(struct sending *sending, const struct value *values, size_t count);
pawl_status send_label_deletes(struct sending *sending, const struct instance_row *rows,
                               size_t count);

STORE_READS(postgres);
pawl_status postgres_sql(struct store *store, struct scope *scope, str text, int64_t limit_ms,
                         row_fn fn, void *context);
pawl_status postgres_facts(struct store *store, struct scope *scope, struct store_facts *out);

#endif
