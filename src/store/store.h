/* store.h - the only door to durable state.
 *
 * What every backend must honour (tests/store/contract.c checks each by its number, over
 * every backend):
 *
 *  (1) commit() is all or nothing, and durable once it returns OK.
 *  (2) After a commit() that failed with STORAGE_FAILURE nothing of it is there, also after
 *      reopening. After OUTCOME_UNKNOWN all of it is there or nothing, and the store answers
 *      STORAGE_FAILURE until reopen() has succeeded.
 *  (3) Between begin() and commit() or rollback() no other process or thread writes;
 *      begin() returns the present tip, also after another process wrote.
 *  (4) What a read returns was committed, and is no older than the last commit made through
 *      this store or, without an owner's lag, by anyone.
 *  (5) Positions, values, definitions and instances get the numbers the commit says; a commit
 *      whose first position is not tip.pos + 1 is refused whole with CONFLICT.
 *  (6) A head row is replaced only by one with a higher seq or position.
 *  (7) due() gives timers in order of (due, instance, ordinal, name), none due later than asked.
 *  (8) An interned value is found by its exact bytes. The commitment of one that is there follows
 *      from its salt and bytes, and is given whether it is stored or not; one put again without
 *      bytes, with its commitment, is erased.
 *  (9) list() gives each matching instance once, in order of number, and its cursor goes on
 *      where it stopped, also if instances were created meanwhile. Without a clock record, no
 *      instance has an instantiated_at after the time of its create record.
 * (10) A store may be reopened after a kill at any instant.
 * (11) Bytes come back as they went in: sources, values, bodies, labels, also with NUL in them.
 * (12) A key names the last record that was committed with it; keys older than the commit says
 *      may go, a few at a time, and no others.
 * (13) Nothing that is read differs because of expect().
 * (14) After a commit() that answered IN_USE nothing of it is there, and this handle is over:
 *      begin() and reopen() answer IN_USE, too.
 * (15) records_of() gives what following `prev` (or `skip`) record by record gives, in that order.
 * (16) What a commit erases is not read again, by anyone: values keep their commitments alone,
 *      records their hashes. list() finds no instance by a label or correlation that was erased.
 * (17) Where a commit has departures, their records are CONTROL_GONE from then on, with position,
 *      time, hash and root, and nothing else of them or of their instances is read again.
 *
 * Reads may come from any thread; begin..commit from one thread at a time (the drain).
 * Results live in the scope's arena. */
#ifndef PAWL_STORE_STORE_H
#define PAWL_STORE_STORE_H

#include "base/scope.h"
#include "base/time.h"
#include "env/env.h"
#include "model/definition.h"
#include "model/live_rows.h"
#include "model/record.h"
#include <stdatomic.h>

struct store_tip {
    uint64_t pos;             /* of the last record; 0: empty */
    uint64_t flushed;         /* head rows are right up to this position */
    uint64_t last_instance, last_value;
    uint32_t last_definition;
    uint32_t stride, offset;  /* numbers of instances are `offset` modulo `stride`; 1 and 0 where a
                               * store is not one of several shards */
    int64_t at_ms;            /* at_ms of the last record */
    int64_t test_now_ms;      /* the kept test clock; 0: none */
    bool test_is_old;         /* it is in pawl_meta, from before there were clock records */
    int64_t clock_offset_ms;  /* of the last clock record; 0 without one */
    uint64_t clock_pos;       /* of that record; 0: none */
    uint8_t store_id[STORE_ID_SIZE];
    uint8_t whole_id[STORE_ID_SIZE]; /* of the store that it is a shard of; alone: store_id */
    uint8_t root[SHA_SIZE];   /* after the last commit */
    uint64_t changes;         /* grows with every commit of any process: caches are checked by it */
};

/* Which children are asked for: all that is not 0 must match. */
struct child_query {
    uint64_t parent, child;
    uint32_t ordinal;
    bool ended;           /* those that have ended, and whose parent has not recorded it */
    uint64_t after;       /* numbers above this one */
    uint32_t limit;
};

/* Which instances are asked for: those that await `name`, with a filter by a wait of that value;
 * and those that have a row called `also` (data NULL: none), whatever its value. With `or_filter`,
 * those too that have this value, or a row called `or_also`, in its place. */
struct wait_query {
    str name, filter, also;
    str or_filter, or_also;
    uint64_t after; /* numbers above this one */
    uint32_t limit;
};

struct snapshot_row {
    uint64_t instance, seq;
    str text;
};

/* All that restoring an instance takes: its rows, its snapshot and the records after that. */
struct instance_log_record {
    struct record record;
    str payload;
    str reason, actor; /* of a whole log */
    bool is_left; /* the payload was not read: there was much already */
};
struct instance_log {
    struct head_row head;
    struct instance_row instance;
    str input, creator;
    struct snapshot_row snapshot; /* text.data NULL: none, or too few entries to look for one */
    /* The last one first, back to the snapshot's entry or to the first one; at most
     * INSTANCE_LOG_RECORDS or _BYTES. */
    struct instance_log_record *records;
    uint32_t record_count;
    bool is_whole; /* as it was asked for; then these, too: */
    int kind;      /* of its definition */
    str subject, metadata;
    struct live live;
};
struct instance_log_query {
    uint64_t instance;
    bool is_known;          /* where it stands: in `head`; else as head() says, with trust_rows */
    bool trust_rows;
    struct head_row head;
    bool
        is_whole; /* for a reader who shows it, alone in its read: with live rows and all texts, and
                    * the records back to the first entry, whatever the snapshot */
    uint32_t records_max; /* is_whole: no more than these, and at most INSTANCE_LOG_RECORDS; ... */
    uint32_t idle_max, machine_max; /* ... without a live step or wait; of a machine */
    struct instance_log *out;
    bool is_read; /* out: *out is filled in */
};
#define INSTANCE_LOG_RECORDS 1024u
/* In one read. Beyond it: no more instances, no more records, and not the last one's payload. */
#define INSTANCE_LOG_BYTES ((size_t)4 << 20)
#define INSTANCE_LOG_SHORT 8u /* so many entries are read as soon as a snapshot */

/* An instance's records, from one of them back. */
struct chain_query {
    uint64_t pos;       /* of the record where it begins; after a read, where it resumes; 0: end */
    uint64_t first;     /* the number of the entry where it ends; 0: at the first record */
    uint64_t skip_from; /* records from this number on lead to `skip`, not to `prev`; 0: all */
    bool with_texts;    /* else only pos, seq, prev, skip, what, step, actor and fired_at_ms */
};
#define RECORDS_BYTES ((size_t)64 << 10)

struct standing_change {
    struct standing_row row;
    bool is_put; /* else it is over */
};

struct reduce; /* store/sqlite.h */

/* Everything that one commit writes. Arrays may be empty. */
struct commit {
    const struct record *records;
    size_t record_count;
    const struct value *values;
    size_t value_count;
    const struct definition_row *definitions;
    size_t definition_count;
    const struct instance_row *instances;
    size_t instance_count;
    const struct head_row *heads; /* rows to write now, in order of instance */
    size_t head_count;
    const struct live_change *live; /* applied in order */
    size_t live_count;
    const struct snapshot_row *snapshots;
    size_t snapshot_count;
    const struct key_row *keys; /* of these records */
    size_t key_count;
    int64_t keys_before_ms; /* with keys: older ones may go */
    const struct standing_change *standing; /* applied in order */
    size_t standing_count;
    /* What is erased, before all that is written (a text may be interned again): values (their
     * ids and commitments count), what records had in their bodies, and of instances (number and
     * labels count) correlation, labels and snapshot. Once the commit is durable, no byte of it
     * is in the store's files: a backend that can't see to that at once does so with a later
     * commit, and says so: scrub(). */
    const struct value *erasures;
    size_t erasure_count;
    const struct redaction *redactions;
    size_t redaction_count;
    const struct instance_row *cleared;
    size_t cleared_count;
    /* What was moved into an archive file, after all that is written: records, values of theirs
     * alone (interned ones stay), and the rows of instances (number and labels count). Only where
     * the store's `archives` says so. */
    const struct departure *departures;
    size_t departure_count;
    const uint64_t *dropped; /* ids of values */
    size_t dropped_count;
    const struct instance_row *departed;
    size_t departed_count;
    struct reduce *reduces; /* in order, after all rows above; CONFLICT: one failed */
    size_t reduce_count;
    uint64_t flushed;     /* head rows are now right up to here; 0: leave it */
    int64_t shift_ms;     /* shifts the store's clock, and timers and alarms by it */
    bool is_rebuild; /* All rows that follow from the log (heads, live rows, keys, what is kept) are
                      * deleted first, and a snapshot without a text is deleted; there are no
                      * records. INVALID_REQUEST where such rows are in memory alone */
};

struct list_query { /* data NULL and 0: any */
    str definition;       /* a name */
    uint32_t version;
    int kind;             /* enum definition_kind */
    str state;
    enum instance_status status; /* STATUS_ANY: any */
    str subject, correlation;
    str label_key[8], label_value[8];
    uint32_t label_count;
    struct time_span created;
    bool is_active, has_ended; /* it has not ended; it has */
    struct time_span
        ended; /* by the time of the record that ended it; either: only what has ended */
    bool oldest_first;
    uint64_t after;       /* number of the last row seen; 0: from the beginning */
    uint32_t limit;
};

/* How many instances stand in one state of one version of a definition. */
struct state_count {
    str definition;       /* data NULL: inline */
    uint32_t version;     /* 0: inline */
    str state;
    enum terminal_kind terminal;
    uint64_t total;
    uint64_t running;     /* of them, with a ready or running step and not paused */
    uint64_t paused;
};

/* How many live attempts of one step of one version of a definition there are. */
struct step_count {
    uint32_t version, plan; /* plan: the step's index */
    uint64_t total;
};

/* In the error of opening a file with a trigger on our tables: it can be read, and is not valid. */
#define STORE_TRIGGER_WORDS "expected no trigger on pawl's tables"

/* Why the last commit failed, or why none will succeed. */
enum store_trouble {
    TROUBLE_NONE, /* no failure, or an unknown cause */
    TROUBLE_FULL, /* the disk is full */
    TROUBLE_GONE, /* its files were deleted or replaced: every call fails until it is closed */
    TROUBLE_LINKED, /* it works, but its file has a second name */
    TROUBLE_TAKEN,  /* a commit answered IN_USE: this handle is over */
};

/* An instance with steps, and all of its live rows. */
struct busy_row {
    uint64_t instance;
    struct live live;
};

/* What is about to be read: a store that is far away reads it in one round trip, and answers from
 * there until the turn ends or more is expected. */
enum expected_rows { EXPECT_HEADS = 1, EXPECT_ROWS = 2, EXPECT_RECORDS = 4 /* the last ones */,
                     EXPECT_VALUES = 8 /* of those */, EXPECT_LIVE = 16 };
struct expectation {
    const uint64_t *instances;
    uint32_t instance_count;
    unsigned rows; /* of these instances: of enum expected_rows */
    const uint8_t (*keys)[KEY_ID_SIZE];
    uint32_t key_count;
    const str *texts, *definitions; /* interned; names */
    uint32_t text_count, definition_count;
    const uint64_t *values;
    uint32_t value_count;
};

/* The last record of an instance. */
struct last_row {
    uint64_t instance, pos;
    int32_t what;
};

/* What FILE-head, outside of the store, remembers of its log, compared with the log. */
enum witness_verdict {
    WITNESS_NONE,        /* there is nothing to compare with */
    WITNESS_AGREES,
    WITNESS_LOG_SHORT,   /* the log ends before that position */
    WITNESS_LOG_DIFFERS, /* it has another root there */
    WITNESS_FOREIGN,     /* another store is remembered: not compared */
    WITNESS_UNREADABLE,  /* not compared */
    WITNESS_SET_ASIDE,   /* another store's was here, and was renamed: this store is new */
};
struct head_witness {
    enum witness_verdict verdict;
    uint64_t pos;      /* remembered; 0: it could not be read */
    int64_t at_ms;     /* of that record */
    char other[2 * STORE_ID_SIZE + 1]; /* the id of another store; SET_ASIDE: the file's ending */
    uint64_t log_pos;  /* where the log ends */
    uint32_t accepted; /* how often a finding was accepted */
};
bool witness_is_against(const struct head_witness *witness); /* all but NONE, AGREES and
                                                                SET_ASIDE */
bool witness_proves_loss(const struct head_witness *witness); /* the log was longer or another */
void witness_words(const struct head_witness *witness, char *out, size_t size);

/* Which one of several shards a new store is to be (model/shard.h). */
struct store_shard {
    uint32_t shard, shards;
    const uint8_t *whole_id; /* of the store that they make together; NULL: a new one */
};

struct store_options {
    bool own;             /* hold the store exclusively for life */
    const char *address;  /* with own: written for others to find */
    const char *secret;   /* with own: written for other processes of this user; NULL: none */
    bool create;          /* make it if it is not there */
    const uint8_t *store_id; /* with create: of what it is to be a copy of; NULL: a new one */
    struct store_shard shard; /* with create: as this one; shards 0: alone */
    bool member; /* without own: claimed and released by cluster.h, it writes only in between */
    struct store *beside;     /* another shard of it that this process has open: what they can share
                           * (connections, a lease) they do; NULL: none */
    /* With own, may be NULL: another process has it now. From a thread of the store's own. */
    void (*lost)(void *context, const char *words);
    void *lost_context;
    struct env *env;
    const struct heap *heap;
};

struct store;
typedef pawl_status (*record_fn)(void *context, const struct record *record);
typedef bool (*record_sight)(void *context, const struct record *record); /* true: stop */
typedef pawl_status (*row_fn)(void *context, uint32_t column_count, const str *names, const str *values,
                              const bool *are_numbers); /* those whose text is a JSON number */

/* Objects (tables, indexes, views, triggers) of a store that is a database, compared with the
 * expected ones. */
enum object_verdict {
    OBJECT_RIGHT,
    OBJECT_MISSING,
    OBJECT_CHANGED, /* with another SQL text */
    OBJECT_UNKNOWN, /* its name or its table is ours, but we have no such object */
    OBJECT_TRIGGER, /* on a table or view of ours */
    OBJECT_FOREIGN  /* the host's own */
};
typedef pawl_status (*object_fn)(void *context, enum object_verdict verdict, str type, str name,
                                 str table);

/* A row that cannot be, or that does not repeat what another row says. */
struct bad_row {
    uint64_t pos, instance; /* where it is; 0: it is not of a record or an instance */
    const char *words;
};
typedef pawl_status (*bad_row_fn)(void *context, const struct bad_row *row);

/* What a database says of itself, as texts; data NULL: it does not. */
struct store_facts {
    str sqlite, format, migrations;
};

/* What find() finds, and the struct that it fills in. */
enum find_kind {
    FIND_HEAD,       /* head_row, by `head` */
    FIND_INSTANCE,   /* instance_row, by number */
    FIND_RECORD,     /* record, by position */
    FIND_VALUE,      /* value, by id */
    FIND_BYTES,      /* the same; its commitment may be missing */
    FIND_INTERNED,   /* value: the interned one with these bytes */
    FIND_SNAPSHOT,   /* snapshot_row, by the number of its instance */
    FIND_KEY,        /* key_row, by its KEY_ID_SIZE bytes */
    FIND_STANDING,   /* standing_row, by `standing` */
    FIND_DEFINITION, /* definition_row, by id */
    FIND_NAMED,      /* definition_row, by `named` */
    FIND_INLINE,     /* definition_row: without a name, of this hash of its source, as the present
                      * compiler compiles it */
};
struct find_query {
    enum find_kind kind;
    union {
        uint64_t number; /* INSTANCE, RECORD, VALUE, BYTES, SNAPSHOT, DEFINITION */
        struct {
            uint64_t instance; /* 0: the store's own records */
            bool trust_rows;   /* the row as it is (an owner that keeps its dirty set); else the
                                * tail of the log is looked at as well */
        } head;
        str bytes;             /* INTERNED */
        const uint8_t *hash;   /* KEY, INLINE */
        struct {
            int32_t what;
            str id;
        } standing;
        struct {
            str name;
            uint32_t version; /* 0: the newest */
        } named;
    } by;
};

/* What rows() gives, and the struct of one row. */
enum rows_kind {
    LIST_DEFINITIONS, /* definition_row, without their texts: the newest version of each name after
                       * `after_name`, in byte order */
    LIST_DUE,         /* live_timer by one clock, in order of (due, instance, ordinal, name), with
                       * what its instance is an instance of. Not those of test instances or of
                       * paused ones, nor those due later than `until_ms` */
    LIST_BUSY,        /* busy_row: instances > after with a ready or running step, in order;
                       * `pending`: or a pending one */
    LIST_AWAITING,    /* last_row: instances > after that await a signal, in order. None where
                       * nothing outlives its process. Not for machines, whose rows may lag */
    LIST_CHILDREN,    /* live_child: those that a step still waits for, in order of number */
    LIST_WAITING,     /* uint64_t: instances, in order, each once */
    LIST_STANDING,    /* standing_row of one `what`, in order of due time and id */
    LIST_ALARMS,      /* standing_row by one clock, in the same order */
    LIST_STEPS,       /* step_count of a definition by name: its live steps (pending, ready or
                       * running), in order of version and step. It may take a while, and delays no
                       * other caller */
};
struct rows_query {
    enum rows_kind kind;
    uint32_t limit;
    union {
        str name; /* DEFINITIONS: those after it; STEPS */
        struct {
            bool wall;        /* by the wall clock; else by the store's */
            int64_t until_ms; /* DUE */
        } clock;              /* DUE, ALARMS */
        struct {
            uint64_t after;
            bool pending; /* BUSY */
        } numbers;        /* BUSY, AWAITING */
        const struct child_query *children;
        const struct wait_query *waiting;
        int32_t what; /* KEPT */
    } by;
};

struct store_ops {
    const char *scheme; /* of the URL: "sqlite" */
    bool archives;      /* commits may have departures */

    /* Open what `rest` names (the URL behind the colon). IN_USE names the owner (pid and
     * address); NOT_KNOWN if it is missing and not to be created; STORAGE_FAILURE, with
     * words, for a file that is no store or has a newer schema than this binary knows. */
    pawl_status (*open)(str rest, const struct store_options *options, struct scope *scope,
                        struct store **out);
    void (*close)(struct store *store);
    /* Close what was opened and open it again through recovery, as after a death; ownership is
     * kept, and other threads may go on reading (they fail or wait meanwhile). By the drain. */
    pawl_status (*reopen)(struct store *store, struct scope *scope);

    /* Take the turn to write and tell the tip. IN_USE: an owner has appeared. */
    pawl_status (*begin)(struct store *store, struct scope *scope, struct store_tip *out);
    /* Write and end the turn, whatever comes out. IN_USE: another process has taken the store over,
     * and nothing was written. */
    pawl_status (*commit)(struct store *store, struct scope *scope, const struct commit *commit);
    void (*rollback)(struct store *store); /* ends the turn, nothing written */

    /* The tip without a turn, e.g. at open. */
    pawl_status (*tip)(struct store *store, struct scope *scope, struct store_tip *out);

    /* May be NULL: reads are near. */
    pawl_status (*expect)(struct store *store, struct scope *scope,
                          const struct expectation *expectation);
    /* One row, by what names it, into the struct of its kind (enum find_kind). NOT_KNOWN. */
    pawl_status (*find)(struct store *store, struct scope *scope, const struct find_query *query,
                        void *out);
    /* Rows of a kind, in its order, as an array of its struct (enum rows_kind). */
    pawl_status (*rows)(struct store *store, struct scope *scope, const struct rows_query *query,
                        void **out, uint32_t *count);
    pawl_status (*live)(struct store *store, struct scope *scope, uint64_t instance,
                        struct live *out);

    /* Up to `room` of them, one at least; with texts until they take RECORDS_BYTES. NOT_KNOWN. */
    pawl_status (*records_of)(struct store *store, struct scope *scope, struct chain_query *query,
                              struct record *out, uint32_t room, uint32_t *count);
    /* The records at these positions, one at least, until they take RECORDS_BYTES. NOT_KNOWN. */
    pawl_status (*records)(struct store *store, struct scope *scope, const uint64_t *positions,
                           uint32_t count, struct record *out, uint32_t *read);
    /* Every record from position `from` on, in order, until the end or until `fn` returns
     * other than OK, which is then returned. What `fn` is given lives for that call. */
    pawl_status (*scan)(struct store *store, struct scope *scope, uint64_t from, record_fn fn,
                        void *context);

    /* What find() says of instances, of their records and of the values of those, in one read; a
     * snapshot may be newer than the rest. Until one fails, which is returned (NOT_KNOWN), or there
     * are INSTANCE_LOG_BYTES of them. */
    pawl_status (*instance_logs)(struct store *store, struct scope *scope,
                                 struct instance_log_query *queries, uint32_t count);
    pawl_status (*list)(struct store *store, struct scope *scope, const struct list_query *query,
                        uint64_t **out, uint32_t *count);
    /* Where all instances stand, or those of one definition (a name; version 0: all of them).
     * States without instances are left out; one moment for all. It may take a while, and blocks
     * no other call meanwhile. */
    pawl_status (*counts)(struct store *store, struct scope *scope, str name, uint32_t version,
                          struct state_count **out, uint32_t *count);

    /* Read-only SQL over the pawl_... views, for people. TOO_LARGE: it was stopped after limit_ms
     * of this process's time (0: never). NULL: it has no SQL, and neither of the next three. */
    pawl_status (*sql)(struct store *store, struct scope *scope, str text, int64_t limit_ms,
                       row_fn fn, void *context);
    /* Reports the objects that differ from those that the migrations make. */
    pawl_status (*objects)(struct store *store, struct scope *scope, object_fn fn, void *context);
    /* Reports rows, until `fn` returns other than OK, which is then returned. It may take a while,
     * and delays no other caller. */
    pawl_status (*examine)(struct store *store, struct scope *scope, bad_row_fn fn, void *context);
    pawl_status (*facts)(struct store *store, struct scope *scope, struct store_facts *out);
    /* Removes what erasing commits have left behind in the store's files, by the drain. OVERLOADED:
     * a reader stands in the way, and a later call may succeed. May be NULL: there is nothing. */
    pawl_status (*scrub)(struct store *store, struct scope *scope);
    /* Compares FILE-head with the log. With a name in `accepted_by`, a FILE-head that contradicts
     * the log then remembers it as it is now. May be NULL. */
    pawl_status (*witness)(struct store *store, struct scope *scope, str accepted_by,
                           struct head_witness *out);
};

struct store {
    const struct store_ops *ops;
    const char *file; /* that it is, and beside which this process may write; NULL: none */
    bool may_return;  /* it is far away: a reopen() that fails may succeed later */
    /* What a backend notes for its callers. */
    enum store_trouble trouble; /* by the drain, and for it */
    atomic_bool is_gone;        /* TROUBLE_GONE, whatever `trouble` says */
    _Atomic uint64_t wal_bytes; /* of a write-ahead log in use */
};

/* Open by URL ("sqlite:FILE", "memory:"). INVALID_REQUEST for an unknown scheme. */
pawl_status store_open(str url, const struct store_options *options, struct scope *scope,
                       struct store **out);
void store_close(struct store *store); /* NULL is allowed */

/* Where shard `shard` of the store at `url` lies: the home shard is the store itself. With `make`,
 * so that it can be opened there: STORAGE_FAILURE. */
pawl_status store_shard_url(struct scope *scope, str url, uint32_t shard, bool make,
                            const char **out);
/* Does a store begin here? INVALID_REQUEST: it is a shard, and not the first. */
pawl_status store_check_home(const struct store_tip *tip, struct scope *scope);
/* Is it the shard that its place says? A file may have been put there by hand. */
pawl_status store_check_shard(struct store *store, struct scope *scope, uint32_t shard,
                              const struct store_tip *whole);
pawl_status sqlite_shard_url(struct scope *scope, str url, uint32_t shard, bool make,
                             const char **out); /* of a shard that is not the first */
/* The ids of a new store, random where it is alone. NO_MEMORY. */
pawl_status store_new_ids(const struct store_options *options, struct scope *scope,
                          struct store_tip *out);

/* The layers above call these, never the table: they check arguments and results of every
 * backend at once. Same contracts as the methods above. */
pawl_status store_reopen(struct store *store, struct scope *scope);
pawl_status store_begin(struct store *store, struct scope *scope, struct store_tip *out);
pawl_status store_commit(struct store *store, struct scope *scope, const struct commit *commit);
void store_rollback(struct store *store);
pawl_status store_tip(struct store *store, struct scope *scope, struct store_tip *out);
pawl_status store_expect(struct store *store, struct scope *scope,
                         const struct expectation *expectation);
pawl_status store_head(struct store *store, struct scope *scope, uint64_t instance, bool trust_rows,
                       struct head_row *out);
pawl_status store_instance(struct store *store, struct scope *scope, uint64_t number,
                           struct instance_row *out);
pawl_status store_record(struct store *store, struct scope *scope, uint64_t pos, struct record *out);
/* Entry `seq` of the chain of the record at `pos`, from there back; NOT_KNOWN: it has none. */
pawl_status store_entry(struct store *store, struct scope *scope, uint64_t pos, uint64_t seq,
                        struct record *out);
pawl_status store_records_of(struct store *store, struct scope *scope, struct chain_query *query,
                             struct record *out, uint32_t room, uint32_t *count);
/* The same, record by record, read a page at a time; what `see` is given lives for that call. */
pawl_status store_walk(struct store *store, struct scope *scope, const struct chain_query *query,
                       record_sight see, void *context);
pawl_status store_records(struct store *store, struct scope *scope, const uint64_t *positions,
                          uint32_t count, struct record *out, uint32_t *read);
pawl_status store_scan(struct store *store, struct scope *scope, uint64_t from, record_fn fn,
                       void *context);
pawl_status store_value(struct store *store, struct scope *scope, uint64_t id, struct value *out);
pawl_status store_find_value(struct store *store, struct scope *scope, str bytes, struct value *out);
pawl_status store_definition(struct store *store, struct scope *scope, uint32_t id,
                             struct definition_row *out);
pawl_status store_find_definition(struct store *store, struct scope *scope, str name,
                                  uint32_t version, const uint8_t *source_sha,
                                  struct definition_row *out);
pawl_status store_definitions(struct store *store, struct scope *scope, str after, uint32_t limit,
                              struct definition_row **out, uint32_t *count);
pawl_status store_live(struct store *store, struct scope *scope, uint64_t instance, struct live *out);
pawl_status store_alarms(struct store *store, struct scope *scope, bool wall, uint32_t limit,
                         struct standing_row **out, uint32_t *count);
pawl_status store_due(struct store *store, struct scope *scope, bool wall, int64_t until_ms,
                      uint32_t limit, struct live_timer **out, uint32_t *count);
pawl_status store_busy(struct store *store, struct scope *scope, uint64_t after, bool pending,
                       uint32_t limit, struct busy_row **out, uint32_t *count);
pawl_status store_awaiting(struct store *store, struct scope *scope, uint64_t after, uint32_t limit,
                           struct last_row **out, uint32_t *count);
pawl_status store_children(struct store *store, struct scope *scope, const struct child_query *query,
                           struct live_child **out, uint32_t *count);
pawl_status store_waiting(struct store *store, struct scope *scope, const struct wait_query *query,
                          uint64_t **out, uint32_t *count);
pawl_status store_snapshot(struct store *store, struct scope *scope, uint64_t instance,
                           struct snapshot_row *out);
pawl_status store_instance_logs(struct store *store, struct scope *scope,
                                struct instance_log_query *queries, uint32_t count);
pawl_status store_key(struct store *store, struct scope *scope, const uint8_t id[KEY_ID_SIZE],
                      struct key_row *out);
pawl_status store_standing(struct store *store, struct scope *scope, int32_t what, str id,
                           struct standing_row *out);
pawl_status store_standing_list(struct store *store, struct scope *scope, int32_t what,
                                uint32_t limit, struct standing_row **out, uint32_t *count);
pawl_status store_list(struct store *store, struct scope *scope, const struct list_query *query,
                       uint64_t **out, uint32_t *count);
bool list_query_by_state(const struct list_query *query); /* states have to be looked at */
pawl_status store_counts(struct store *store, struct scope *scope, str name, uint32_t version,
                         struct state_count **out, uint32_t *count);
pawl_status store_step_counts(struct store *store, struct scope *scope, str name,
                              struct step_count **out, uint32_t *count);
enum store_trouble store_trouble(const struct store *store); /* by the drain */
pawl_status store_scrub(struct store *store, struct scope *scope);
/* Does this commit erase anything? */
bool commit_erases(const struct commit *commit);
pawl_status store_witness(struct store *store, struct scope *scope, str accepted_by,
                          struct head_witness *out);
pawl_status store_sql(struct store *store, struct scope *scope, str text, int64_t limit_ms,
                      row_fn fn, void *context);

/* These three have nothing to say of a store that is no database. */
pawl_status store_objects(struct store *store, struct scope *scope, object_fn fn, void *context);
pawl_status store_examine(struct store *store, struct scope *scope, bad_row_fn fn, void *context);
pawl_status store_facts(struct store *store, struct scope *scope, struct store_facts *out);

extern const struct store_ops memory_store_ops, postgres_store_ops, sqlite_store_ops;

/* How a commit changes the tip, but for `changes`. tip.c */
void tip_advance(struct store_tip *tip, const struct commit *commit);
/* The number of the first new instance, or of the one `index` behind it. */
uint64_t tip_new_instance(const struct store_tip *tip, uint64_t index);

#endif
