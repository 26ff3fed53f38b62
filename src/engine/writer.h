/* writer.h - the engine's writer: a queue of requests, one drain, one commit for all of them.
 * Private to src/engine.
 *
 * Rules:
 *  (1) One thread at a time drains (`drainer`). It takes and gives back the role under the lock, in
 *      drain_if_free() alone, and does not hold the lock in between.
 *  (2) The drain alone writes the batch, the table of interned texts, the scope and `now`. The tip
 *      and the heads change after a commit, under the lock, by the drain.
 *  (3) Space is reserved before something is appended to the batch. What fails in the middle fails
 *      the whole batch (`batch_status`).
 *  (4) What is in the batch becomes visible after its commit, never before.
 *  (5) A head whose row lags is never evicted. A head that is not in memory is right in its row.
 *  (6) `after` of a request runs on the draining thread without the lock. It must not wait for the
 *      drain. */
#ifndef PAWL_ENGINE_WRITER_H
#define PAWL_ENGINE_WRITER_H

#include "base/guard.h"
#include "base/limits.h"
#include "base/planted.h"
#include "engine/clock.h"
#include "engine/engine.h"
#include "engine/heads.h"

struct actor;
struct child_plan;
struct definition_slot;
struct job;

struct create_request {
    const struct create_args *args;
    const struct definition_row *row; /* inline and new: to be stored; else only its id counts */
    struct definition *definition;
    const struct decision *decision; /* what START decided; count 0: a machine */
    int64_t decided_at_ms;
    struct created *out;
    struct child_plan
        *child_plans;     /* children that the decision wants, theirs among them (family.c) */
    uint64_t parent;      /* 0: none; else number and random are given (family_number()) */
    char parent_id[ID_SIZE + 1];
    uint8_t random[ID_RANDOM_SIZE];
    uint64_t number; /* out */
    bool is_repeat;  /* out: its key was used for this very call: nothing was created */
};

struct define_request {
    struct definition_row row;
    const uint8_t *key; /* NULL: none */
    bool is_new;        /* out */
};

struct decision_request {
    uint64_t instance;
    uint32_t expected_seq;
    uint64_t expected_pos; /* shared: others may have kept a signal, which is no entry; 0: any */
    struct child_plan *child_plans; /* as in a create_request */
    struct definition *definition;
    const struct decision *decision;
    int64_t decided_at_ms;
    int64_t fired_at_ms; /* what the caller said; 0: the time of the commit */
    str snapshot;        /* data NULL: none; after the last draft */
    str trace;           /* of the instance: what it sends belongs to it; data NULL: none */
    struct fired *out;   /* of the last draft; may be NULL */
    const uint8_t *key;  /* NULL: none */
    bool is_repeat;      /* out: its key was used for this very call: nothing was recorded */
    bool was_kept;       /* out: of a repeat: its signal was kept */
    bool knew_pause;     /* it was decided in the knowledge that the instance is paused */
};

struct request {
    struct request *next;
    /* What it records, called by the drain. What it needs is below, or in `context`. */
    pawl_status (*drain)(struct engine *engine, struct request *request, int64_t at_ms);
    struct scope *scope;
    pawl_status status;
    bool is_done;
    bool is_stale; /* of a decision: decide again */
    bool is_again; /* its key is in this very batch: submit it once more, for the answer */
    bool accepted; /* has something in the present batch */
    void (*after)(struct engine *engine, struct request *request); /* NULL: a caller waits */
    pthread_cond_t wake; /* the shell's: whom it concerns alone; hundreds may wait at once */
    void *context;
    struct reduce *reduces; /* done with its commit, in which it is alone */
    size_t reduce_count;
    struct batch_fire *fires;
    size_t fire_count;
    struct create_request *create;
    struct define_request *define;
    struct decision_request *decide;
};

/* ---- The batch: one commit in the making (batch.c) ---- */

/* Its lists: those that the commit has by the same names, the rows of heads that go along, and the
 * heads as they will be, of the instances this batch touches. */
#define COMMITTED_LISTS(X)                                                                         \
    X(struct record, records, record)                                                              \
    X(struct value, values, value)                                                                 \
    X(struct instance_row, instances, instance)                                                    \
    X(struct definition_row, definitions, definition)                                              \
    X(struct live_change, live, live)                                                              \
    X(struct snapshot_row, snapshots, snapshot)                                                    \
    X(struct standing_change, standing, standing)                                                  \
    X(struct key_row, keys, key)                                                                   \
    X(struct value, erasures, erasure)                                                             \
    X(struct redaction, redactions, redaction)                                                     \
    X(struct instance_row, cleared, cleared)                                                       \
    X(struct departure, departures, departure)                                                     \
    X(uint64_t, dropped, dropped)                                                                  \
    X(struct instance_row, departed, departed)
#define BATCH_LISTS(X)                                                                             \
    COMMITTED_LISTS(X)                                                                             \
    X(struct head_row, rows, row)                                                                  \
    X(struct head, heads, head)                                                                    \
    X(struct batch_end, ends, end)

/* An instance that its last entry has ended, and whose starter may want to know. */
struct batch_end {
    uint64_t instance;
    uint8_t random[ID_RANDOM_SIZE];
    enum instance_status status;
    str payload, reason;
};

struct batch {
    const struct heap *heap;
#define X(type, items, name)                                                                       \
    type *items;                                                                                   \
    uint32_t name##_count, name##_capacity;
    BATCH_LISTS(X)
#undef X
    uint32_t *slots, *key_slots; /* index + 1; of heads, and of keys by their id */
    uint32_t slot_count, key_slot_count;
    uint64_t flushed;
    struct reduce *reduces; /* of the one request that it holds then */
    size_t reduce_count;
    int64_t shift_ms; /* by which the commit shifts the store's clock (clock.c) */
};

/* An actor_ref or subject_ref that the store already knows (intern.c). */
struct interned {
    uint64_t id;
    uint8_t commitment[SHA_SIZE];
    size_t size;
    char *bytes;
};

struct intern_table {
    const struct heap *heap;
    struct interned *slots; /* open addressing; bytes NULL: empty */
    uint32_t slot_count, count;
};

#define LOG_WATCHERS 5u
struct log_watcher {
    void (*committed)(void *context, uint64_t position); /* NULL: none */
    void *context;
};

#define FLUSH_AFTER_MS   10     /* quiet time before rows that lag are put right */

/* Under the lock, but for what the drain alone uses. */
struct writer {
    struct request *first, *last; /* that wait for the drain */
    uint32_t queued;              /* so many */
    thread_mark drainer;          /* the thread that drains; 0: none */
    uint64_t drains;              /* that have ended */
    int64_t commit_us;            /* the drain's: how long the last commit took */
    int64_t commit_ms;            /* the same, under the lock */
    uint64_t commits, answers;    /* made; calls of `after` */
    _Atomic bool is_taken;        /* for good: another process owns the store */
    _Atomic bool broken;          /* the store's content is not known: nothing is written */
    bool commit_failed;           /* the last one did */
    bool is_suspect;              /* a read failed: a commit is to look at the files */
    bool scrub_asked;             /* the drain's: what was erased is to leave the files now */
    _Atomic bool is_unscrubbed;   /* it has not, since a reader stood in the way */
    struct store_tip tip;
    struct heads heads;
    struct key_turn *key_turns; /* keys of calls under way that leave no record of their own */
    struct log_watcher watchers[LOG_WATCHERS]; /* who follow the log */
    struct histogram commit_times;
    _Atomic uint64_t commits_failed;

    /* The drain's. */
    struct sha *sha;
    struct scope scope; /* emptied after each commit */
    struct moment now;  /* of the present commit */
    struct batch batch;
    pawl_status batch_status; /* not OK: something was half put in, the whole batch fails */
    struct intern_table interned;
};

/* batch.c */
void batch_init(struct batch *batch, const struct heap *heap);
void batch_fini(struct batch *batch);
void batch_clear(struct batch *batch);
pawl_status batch_reserve(struct engine *engine, struct scope *scope, uint32_t records,
                          uint32_t live);
struct head *batch_find(struct batch *batch, uint64_t instance);
struct head *batch_put(struct batch *batch, const struct head *head);
/* The first record of this kind that the batch has of an instance; NULL: none. */
const struct record *batch_find_record(const struct engine *engine, int32_t what,
                                       uint64_t instance);
/* Where `instance` stands for this batch: pending, cached, or loaded. NOT_KNOWN. The pointer
 * holds until the next batch_head(). */
pawl_status batch_head(struct engine *engine, struct scope *scope, uint64_t instance,
                       struct head **out);
/* Append one entry; space is reserved. `key` may be NULL. */
pawl_status batch_entry(struct engine *engine, struct scope *scope, struct head *head,
                        const struct definition *definition, const struct draft *draft,
                        int64_t at_ms, int64_t fired_at_ms, const uint8_t *key);
/* Append one control record with this body to the store's own chain; space is reserved. */
pawl_status batch_store_record(struct engine *engine, struct scope *scope, int32_t what,
                               int64_t at_ms, str body, str payload, const uint8_t *key);
/* The same, with who and why (data NULL: not given). */
struct store_record {
    int32_t what;
    str body, payload, actor, reason;
    const uint8_t *key;
};
pawl_status batch_store_record_by(struct engine *engine, struct scope *scope,
                                  const struct store_record *draft, int64_t at_ms);
bool head_is_cached(struct engine *engine, uint64_t number, struct head *out, bool *trust_rows);
/* What creation fixed: its definition and random bits. The rest is not to be trusted. */
pawl_status head_fixed(struct engine *engine, struct scope *scope, uint64_t number,
                       struct head *out);
/* The head and definition of the instance with this id, and room for so many records and changes of
 * rows. NOT_KNOWN. */
pawl_status batch_locate(struct engine *engine, struct scope *scope, str id, uint32_t room,
                         struct head **head, struct definition_slot **slot);
/* Is it paused, by its row? A pause is written with its row, so one without a row is not paused. */
pawl_status pause_by_row(struct engine *engine, struct scope *scope, uint64_t instance, bool *out);
/* Reserves space for a standing row, its record and one more, so that adding them cannot fail. */
pawl_status standing_room(struct engine *engine, struct scope *scope);
/* Does this batch put or end that row? */
bool batch_changes_standing(const struct engine *engine, int32_t what, str id);
/* Puts or ends a standing row, named by the last record unless `row` names another. */
pawl_status batch_add_standing(struct engine *engine, struct scope *scope, struct standing_row row,
                               bool is_put);
/* Something was half put in: the whole batch fails with `status`, which is returned. */
pawl_status batch_spoil(struct engine *engine, const struct scope *scope, pawl_status status);
/* Append the record of a kept signal; space is reserved. */
pawl_status batch_keep_signal(struct engine *engine, struct scope *scope, struct head *head,
                              const struct draft *draft, int64_t at_ms, const uint8_t *key);
void batch_seal(struct engine *engine, struct head *head, struct record *record, str body,
                const struct commitments *commitments);
uint64_t batch_new_value(struct engine *engine, str bytes, bool interned,
                         const uint8_t **commitment);
/* An entry's payload. The end of a flow repeats what its last step gave: one value serves both. */
uint64_t batch_payload(struct engine *engine, uint64_t instance, str bytes,
                       const uint8_t **commitment);
/* When the instance came into its state: the time of its last entry, or of its creation. */
pawl_status batch_entered_at(struct engine *engine, struct scope *scope, const struct head *head,
                             int64_t *out);
pawl_status heads_make_whole(struct engine *engine, struct scope *scope, struct head *head);
/* One more record, to be sealed. `key` may be NULL. */
struct record *batch_record(struct engine *engine, int32_t what, struct head *head, int64_t at_ms,
                            str body, const uint8_t *key);

/* keys.c */
enum key_use { KEY_NEW, KEY_REPEAT, KEY_PENDING };
bool keys_reserve(struct batch *batch);                           /* room for one more */
void keys_note(struct batch *batch, const struct record *record); /* it has a key */
/* What is this key? NULL is new. REPEAT: *record is what it was used for; PENDING:
 * it is being used in this batch. CONFLICT: it was used for another call. */
pawl_status keys_look(struct engine *engine, struct scope *scope, const uint8_t *key, int64_t at_ms,
                      enum key_use *use, struct record *record);
/* The record it was used for: NOT_KNOWN, CONFLICT. */
pawl_status keys_find(struct engine *engine, struct scope *scope, const uint8_t *key,
                      struct record *out);
/* A call was refused with *status; was it because it had been accepted before? *status becomes
 * CONFLICT if its key was used for another one. */
bool keys_explain(struct engine *engine, struct scope *scope, const uint8_t *key,
                  pawl_status *status, struct record *record);
pawl_status keys_fired(struct engine *engine, struct scope *scope, const struct record *record,
                       struct fired *out);
pawl_status keys_created(struct engine *engine, struct scope *scope, const struct record *record,
                         struct created *out);
pawl_status keys_defined(struct scope *scope, const struct record *record,
                         struct define_request *out);

/* intern.c */
bool intern_init(struct intern_table *table, const struct heap *heap);
void intern_fini(struct intern_table *table);
void intern_clear(struct intern_table *table);
bool intern_has(struct intern_table *table, str bytes); /* it is known without a look */
/* No text (data NULL) has the id 0, and its commitment is left as it is. */
pawl_status intern(struct engine *engine, struct scope *scope, str bytes, uint64_t *id,
                   const uint8_t **commitment);

/* archive.c */
void archive_committed(struct engine *engine, const struct batch *batch);
/* There is no such instance here: NOT_KNOWN, and where it is. */
pawl_status archive_words(struct engine *engine, struct scope *scope, str id);

/* holds.c: CONFLICT: it is on hold. */
pawl_status hold_check(struct engine *engine, struct scope *scope, str id);

/* commit.c */
uint32_t commit_slice(const struct engine *engine); /* how many lagging rows should go along */
pawl_status commit_batch(struct engine *engine, uint32_t slice);
bool commit_accept(struct engine *engine); /* false: memory is short, start over */

/* drain.c */
void engine_submit(struct engine *engine, struct request *request); /* `after` is called */
void engine_submit_list(struct engine *engine, struct request *list);
void writer_queue(struct engine *engine, struct request *request);
/* The drain's role: false: another thread has it. */
bool writer_take(struct engine *engine);
void writer_give(struct engine *engine);
bool writer_drain(struct engine *engine);    /* once; false: nothing is queued, or another drains */
void writer_read_ahead(struct engine *engine, const struct request *list); /* ahead.c */
void writer_note_highest(struct engine *engine);                 /* for the other shards */
void writer_mark_id(const struct engine *engine, uint8_t id[2]); /* a random id tells its shard */
/* The id of the next definition; one of this batch, version 0: the last; NULL: not known. */
uint32_t writer_definition_id(const struct engine *engine);
const struct definition_row *writer_find_definition(const struct engine *engine, str name,
                                                    uint32_t version);
int64_t writer_commit_ms(const struct engine *engine); /* so long the last one took */
bool writer_has_rest(struct engine *engine); /* for a quiet moment? */
int64_t writer_rest_ms(struct engine *engine); /* how long to wait for one; -1: there is no rest */
bool writer_tidy(struct engine *engine);  /* mends a store that failed, or writes rows that lag */
void engine_sweep(struct engine *engine); /* an owner's rows, until none lags */
void engine_mend(struct engine *engine);  /* see whether a store that failed works again */

/* fire.c, create.c, decide.c */
pawl_status drain_decision(struct engine *engine, struct request *request, int64_t at_ms);
pawl_status fire_check_late(struct engine *engine, struct scope *scope,
                            const struct fire_args *args, uint64_t instance, uint32_t seq,
                            struct moment now);
void fired_tell(const struct head *head, const struct definition *definition, struct fired *out);

/* create.c, for family.c: which version, what START decides, the records, and afterwards. */
pawl_status create_resolve(struct engine *engine, struct scope *scope,
                           const struct create_args *args, struct definition_row *row,
                           struct definition **definition);
pawl_status create_decide(struct engine *engine, struct scope *scope,
                          const struct create_args *args, struct actor *actor,
                          int64_t decided_at_ms, str failure, struct decision *decision,
                          struct job **jobs);
pawl_status create_record(struct engine *engine, struct scope *scope, struct create_request *create,
                          int64_t at_ms);
void create_over(struct engine *engine, const struct create_request *create, struct actor *actor,
                 struct job *jobs, bool is_refused);

/* decide.c: the entries of a decision and what they cause; a key rides in the last. A failure in
 * the middle fails the whole batch. */
pawl_status decision_record(struct engine *engine, struct scope *scope, struct head *head,
                            const struct definition *definition, const struct decision *decision,
                            int64_t decided_at_ms, int64_t at_ms, int64_t fired_at_ms,
                            const uint8_t *key);

/* singleton.c: by the drain: one that is there is the answer; and what a key was kept with. */
pawl_status singleton_find(struct engine *engine, struct request *request, int64_t at_ms,
                           bool *is_there);
pawl_status singleton_told(struct engine *engine, struct scope *scope, const struct record *record,
                           struct created *out);

/* draft_rows.c */
void live_from_draft(struct engine *engine, struct head *head, const struct definition *definition,
                     const struct draft *draft, int64_t at_ms, bool ends);
uint32_t live_room(const struct decision *decision);

/* recover.c */
pawl_status recover(struct engine *engine, struct scope *scope);
void engine_set_tip(struct engine *engine, const struct store_tip *tip); /* by the drain */
uint32_t engine_last_definition(struct engine *engine);
pawl_status recover_tail(struct engine *engine, struct scope *scope);
pawl_status recover_steps(struct engine *engine, struct scope *scope);
pawl_status recover_instance(struct engine *engine, struct scope *scope, uint64_t number);
void recover_ready(struct engine *engine);        /* ready steps that could not be remembered */
void commit_note_failure(struct engine *engine, pawl_status status); /* of the last commit */
void commit_note_success(struct engine *engine);
bool commit_is_due_again(struct engine *engine); /* after a failed one */
void engine_ask_witness(struct engine *engine, struct scope *scope);
pawl_status engine_reopen(struct engine *engine); /* by the drain, after OUTCOME_UNKNOWN */

#endif
