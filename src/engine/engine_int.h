/* engine_int.h - private to src/engine.
 *
 * Who may touch what:
 *   lock      guards the queue, the head cache, the actors and their mail, the tool queue.
 *   the drain (one thread at a time, `draining`) alone writes: batch, intern cache, tip.
 *   an actor's memory belongs to whoever holds its turn (`busy`). */
#ifndef PAWL_ENGINE_ENGINE_INT_H
#define PAWL_ENGINE_ENGINE_INT_H

#include "base/assert.h"
#include "base/limits.h"
#include "base/map.h"
#include "base/planted.h"
#include "engine/engine.h"
#include "flow/flow.h"
#include "tool/tool.h"
#include <pthread.h>

/* ---- Heads: where each instance stands, in memory (heads.c) ---- */

#define SKIP_UNKNOWN UINT64_MAX
#define HEAD_DIRTY   1u  /* its row lags behind */
#define HEAD_RAW     2u  /* read from the tail: `state` is the transition that led to it */
#define HEAD_FRESH   4u  /* RAW, and the last record is no entry: the state is the initial one */
#define HEAD_NOW     16u /* in a batch: its row is written with this commit, never later */
#define HEAD_PAUSED  32u /* it is held (pause.c) */
#define HEAD_TEST    8u  /* a test instance: its timers never fire by themselves */

struct head {
    uint64_t instance, pos;
    uint64_t skip; /* position of the last entry whose seq is a multiple of 64; 0: none */
    uint32_t definition, seq;
    uint8_t hash[SHA_SIZE];
    uint8_t random[ID_RANDOM_SIZE];
    uint16_t state;
    uint8_t flags;
    uint8_t recent; /* for eviction: touched since the hand passed */
};

struct heads {
    const struct heap *heap;
    struct head **chunks; /* of HEAD_CHUNK heads */
    uint32_t chunk_count, count, hand;
    uint32_t *slots; /* index + 1; 0: empty */
    uint32_t slot_count;
    uint32_t *free_list;
    uint32_t free_count, free_capacity;
    uint32_t dirty_capacity; /* of the three below */
    uint64_t *dirty;         /* instances whose rows lag, since the present cycle began */
    uint32_t dirty_count;
    uint64_t *cycle; /* those being swept now, in order of number */
    uint32_t cycle_count, cycle_next;
    uint64_t cycle_pos; /* the log's end when the cycle began */
    uint64_t *scratch;  /* for sorting */
};

bool heads_init(struct heads *heads, const struct heap *heap);
void heads_fini(struct heads *heads);
void heads_clear(struct heads *heads);
struct head *heads_find(struct heads *heads, uint64_t instance);
/* A hint that these will be asked for next; at most HEADS_EXPECTED at a time is sensible. */
#define HEADS_EXPECTED 32u
void heads_expect(const struct heads *heads, const uint64_t *instances, uint32_t count);
struct head *heads_add(struct heads *heads,
                       const struct head *head);               /* or replaces; NULL: no memory */
bool heads_mark_dirty(struct heads *heads, struct head *head); /* false: no memory */
uint32_t heads_lag(const struct heads *heads);
/* Up to `limit` rows to write next, in order; their marks are taken off. When a cycle ends,
 * *flushed is the position up to which rows are right, else 0. Copies: RAW ones are made whole by
 * the caller. */
uint32_t heads_slice(struct heads *heads, uint32_t limit, uint64_t end_pos, struct head *out,
                     uint64_t *flushed);

/* ---- Requests: what waits for the drain ---- */

enum request_kind {
    REQUEST_FIRE,
    REQUEST_CREATE,
    REQUEST_DEFINE,
    REQUEST_DECISION,
    REQUEST_CLOCK,
    REQUEST_CONTROL
};

struct actor;

struct create_request {
    const struct create_args *args;
    const struct definition_row *row; /* inline and new: to be stored; else only its id counts */
    struct definition *definition;
    const struct decision *decision; /* what START decided; count 0: a machine */
    int64_t decided_at_ms;
    struct created *out;
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
    struct definition *definition;
    const struct decision *decision;
    int64_t decided_at_ms;
    int64_t fired_at_ms; /* what the caller said; 0: the time of the commit */
    str snapshot;        /* data NULL: none; after the last draft */
    struct fired *out;   /* of the last draft; may be NULL */
    const uint8_t *key;  /* NULL: none */
    bool is_repeat;      /* out: its key was used for this very call: nothing was recorded */
    bool knew_pause;     /* it was decided in the knowledge that the instance is paused */
};

struct request {
    struct request *next;
    enum request_kind kind;
    struct scope *scope;
    pawl_status status;
    bool is_done;
    bool is_stale; /* DECISION: decide again */
    bool is_again; /* its key is in this very batch: submit it once more, for the answer */
    bool accepted; /* has something in the present batch */
    void (*after)(struct engine *engine, struct request *request); /* NULL: somebody waits */
    pthread_cond_t wake; /* whom it concerns alone: hundreds may wait at once */
    void *context;
    struct batch_fire *fires; /* FIRE */
    size_t fire_count;
    struct create_request *create;
    struct define_request *define;
    struct decision_request *decide;
    /* CONTROL: what it records, in the drain; what it needs is in `context`. */
    pawl_status (*control)(struct engine *engine, struct request *request, int64_t at_ms);
};

/* ---- The batch: one commit in the making (batch.c) ---- */

struct batch {
    const struct heap *heap;
    struct record *records;
    struct value *values;
    struct instance_row *instances;
    struct definition_row *definitions;
    struct live_change *live;
    struct snapshot_row *snapshots;
    struct kept_change *kept;
    uint32_t kept_count, kept_capacity;
    struct key_row *keys;
    uint32_t *key_slots; /* index + 1, by key id */
    struct head_row *rows;
    struct head *heads; /* as they will be, of the instances this batch touches */
    uint32_t *slots;    /* index + 1 */
    uint32_t record_count, record_capacity, value_count, value_capacity;
    uint32_t instance_count, instance_capacity, definition_count, definition_capacity;
    uint32_t live_count, live_capacity, snapshot_count, snapshot_capacity;
    uint32_t row_count, row_capacity, head_count, head_capacity, slot_count;
    uint32_t key_count, key_capacity, key_slot_count;
    uint64_t flushed;
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

#define ACTORS_KEPT     4096u        /* remembered while idle; twice as many at most */
#define ACTOR_BYTES     (256u << 10) /* an actor's arena is rebuilt when it has grown past this */
#define SNAPSHOT_BYTES  4096u /* history since the last snapshot before the next is worth it */
#define FLUSH_AFTER_MS  10    /* quiet time before rows that lag are put right */
#define TOOL_GRACE_MS   1000  /* a program is ended this long after its step has timed out */
#define RETRY_STORE_MS  1000  /* an event that met a failing store is tried again after this */
#define JOBS_QUICK      1024u /* log, set and fail: under way at once */
#define JOBS_PER_WORKER 4u    /* other tools */

/* ---- Actors: flows and code, one decision in flight each (mailbox.c) ---- */

struct mail {
    struct mail *next;
    uint64_t instance;
    struct event event;
    struct scope *scope; /* of whoever waits; results and words go there */
    struct scope own;    /* where nobody waits */
    struct fired *out;
    const struct fire_args *fire; /* a fired action's other checks, made after it was decided */
    const uint8_t *key;           /* NULL: none */
    pawl_status status;
    bool is_done;
    bool is_owned;            /* nobody waits: freed when done */
    bool holds_place;         /* STEP_START: counted in jobs_under_way until a job takes it over */
    int64_t retry_at_ms;      /* by the monotonic clock: the store failed, try again then */
    struct mail_group *group; /* of mails that somebody waits for together; may be NULL */
};

struct mail_group {
    uint32_t left, refused;
};

struct actor {
    uint64_t instance;
    struct definition *definition;
    struct arena arena; /* of its memory */
    void *memory;
    str input;
    uint32_t state, seq, snapshot_seq;
    uint32_t generation; /* the engine's, when this was loaded */
    size_t bytes_since_snapshot, snapshot_size;
    bool is_loaded, busy, is_test;
    bool is_paused; /* when its present event was decided */
    struct mail *first, *last;
    struct actor *next_runnable;
};

/* A tool call under way or queued (steps.c). */
struct job {
    struct job *next;
    uint64_t instance;
    uint32_t ordinal;
    struct scope scope;
    struct flow_call call;
    char id[ID_SIZE + 1];
};

struct ready_step {
    struct ready_step *next;
    uint64_t instance;
    uint32_t ordinal;
};

struct definition_slot {
    struct definition *definition;
    struct scope scope; /* holds it */
    str name;
    uint32_t version;
    bool is_bound; /* code: its handler is here */
};

struct engine {
    struct engine_options options;
    const struct heap *heap;
    struct env *env;
    struct store *store;
    struct toolbox *toolbox;
    struct sha *sha;    /* the drain's */
    struct scope scope; /* the drain's, emptied after each commit */

    pthread_mutex_t lock;
    pthread_cond_t changed; /* mail done, jobs queued, the drain free */
    pthread_cond_t work;    /* a request is queued: for the drain thread */
    struct request *first, *last;
    bool draining;
    uint32_t sweepers;     /* wait for the drain to be free */
    _Atomic bool broken;   /* what is in the store is not known: nothing is written meanwhile */
    bool commit_failed;    /* the last one did */
    _Atomic bool stopping; /* threads but the drain end as soon as they can */
    bool drain_stopping;   /* the others are gone: so does the drain */
    _Atomic uint32_t generation; /* grows when what actors remember may be wrong */
    struct store_tip tip;
    int64_t test_now_ms;
    bool clock_moved; /* the test clock has to be kept with the next commit */

    struct heads heads;
    struct batch batch;
    pawl_status batch_status; /* not OK: something was half put in, the whole batch fails */
    struct intern_table interned;

    pthread_mutex_t definitions_lock;
    struct definition_slot **definitions; /* by id */
    uint32_t definition_capacity;
    struct arena code_arena; /* holds the copies below, until close */
    const pawl_code_type **code_types;
    uint32_t code_count;

    struct map actor_map;
    struct actor **actors;
    uint32_t actor_count, actor_capacity;
    struct actor *runnable, *runnable_last;

    struct job *jobs, *jobs_last;
    struct ready_step *ready, *ready_last;
    struct ready_step *unserved; /* ready, but no tool of that name is here yet */
    struct mail *later;          /* events that met a failing store */
    uint32_t jobs_under_way, mail_under_way;
    _Atomic bool ready_lost;       /* a ready step could not be remembered: look for it */
    int64_t next_due_ms;           /* as far as known; INT64_MAX: none */
    bool timers_busy;              /* somebody is firing what is due */
    _Atomic uint32_t stuck_timers; /* due, but not to be fired now */
    int64_t stuck_until_ms;

    pthread_t *threads;
    uint32_t thread_count;
};

/* batch.c */
void batch_init(struct batch *batch, const struct heap *heap);
void batch_fini(struct batch *batch);
void batch_clear(struct batch *batch);
pawl_status batch_reserve(struct engine *engine, struct scope *scope, uint32_t records,
                          uint32_t live);
struct head *batch_find(struct batch *batch, uint64_t instance);
struct head *batch_put(struct batch *batch, const struct head *head);
/* Where `instance` stands for this batch: pending, cached, or loaded. NOT_KNOWN. The pointer
 * holds until the next batch_head(). */
pawl_status batch_head(struct engine *engine, struct scope *scope, uint64_t instance,
                       struct head **out);
/* Append one entry; space is reserved. `key` may be NULL. */
pawl_status batch_entry(struct engine *engine, struct scope *scope, struct head *head,
                        const struct definition *definition, const struct draft *draft,
                        int64_t at_ms, int64_t fired_at_ms, const uint8_t *key);
/* The store's own chain, instance 0. */
pawl_status batch_store_head(struct engine *engine, struct scope *scope, struct head **out);
/* Append one control record with this body to the store's chain; space is reserved. */
pawl_status batch_store_record(struct engine *engine, struct scope *scope, int32_t what,
                               int64_t at_ms, str body, str payload, const uint8_t *key);
bool batch_kept_room(struct batch *batch); /* for one more token or alarm; false: no memory */
void batch_seal(struct engine *engine, struct head *head, struct record *record, const char *id,
                str body, const struct commitments *commitments);
uint64_t batch_new_value(struct engine *engine, str bytes, bool interned,
                         const uint8_t **commitment);
pawl_status batch_know_skip(struct engine *engine, struct scope *scope, struct head *head);
pawl_status heads_make_whole(struct engine *engine, struct scope *scope, struct head *head);
struct record *batch_record(struct engine *engine, int32_t what, struct head *head, int64_t at_ms);

/* keys.c */
enum key_use { KEY_NEW, KEY_REPEAT, KEY_PENDING };
bool keys_reserve(struct batch *batch);                              /* room for one more */
void keys_note(struct batch *batch, const struct record *record);    /* it has a key */
/* In the drain: what is this key? NULL is new. REPEAT: *record is what it was used for; PENDING:
 * it is being used in this batch. CONFLICT: it was used for another call. */
pawl_status keys_look(struct engine *engine, struct scope *scope, const uint8_t *key, int64_t at_ms,
                      enum key_use *use, struct record *record);
/* A call was refused with *status; was it because it had been accepted before? *status becomes
 * CONFLICT if its key was used for another one. */
bool keys_explain(struct engine *engine, struct scope *scope, const uint8_t *key,
                  pawl_status *status, struct record *record);
pawl_status keys_fired(struct engine *engine, struct scope *scope, const struct record *record,
                       struct fired *out);
pawl_status keys_created(struct engine *engine, struct scope *scope, const struct record *record,
                         struct created *out);
pawl_status keys_defined(struct engine *engine, struct scope *scope, const struct record *record,
                         struct define_request *out);

/* intern.c */
bool intern_init(struct intern_table *table, const struct heap *heap);
void intern_fini(struct intern_table *table);
void intern_clear(struct intern_table *table);
pawl_status intern(struct engine *engine, struct scope *scope, str bytes, uint64_t *id,
                   const uint8_t **commitment);

/* definitions.c */
pawl_status definitions_get(struct engine *engine, struct scope *scope, uint32_t id,
                            struct definition_slot **out);
/* The definition of the instance that stands at `head`; a head that names no state of it is
 * STORAGE_FAILURE: the store is damaged. */
pawl_status definitions_of(struct engine *engine, struct scope *scope, const struct head *head,
                           struct definition_slot **out);
const struct behavior *behavior_of(enum definition_kind kind);
pawl_status definition_compile(struct scope *scope, str text, bool is_inline,
                               struct findings *findings, struct definition **out, str *name);
pawl_status definition_row_make(struct engine *engine, struct scope *scope, str source,
                                const struct definition *definition, struct definition_row *out);
pawl_status definition_put(struct engine *engine, struct scope *scope,
                           struct define_request *define);
void definitions_fini(struct engine *engine);

/* code_types.c */
void definitions_bind(struct engine *engine,
                      struct definition_slot *slot); /* to its handler, if here */

pawl_status drain_define(struct engine *engine, struct request *request, int64_t at_ms);

/* commit.c */
uint32_t commit_slice(const struct engine *engine); /* how many lagging rows should go along */
pawl_status commit_batch(struct engine *engine, uint32_t slice);
bool commit_accept(struct engine *engine); /* lock held; false: memory is short, start over */

/* drain.c */
pawl_status engine_submit(struct engine *engine, struct request *request); /* and wait */
void engine_post_request(struct engine *engine, struct request *request);  /* `after` is called */
void engine_lead(struct engine *engine);  /* lock held: drain what is queued, as leader */
void engine_drain(struct engine *engine); /* lock held */
void engine_sweep(struct engine *engine); /* an owner's rows, until none lags */
void engine_mend(struct engine *engine);  /* see whether a store that failed works again */
void engine_wait_changed(struct engine *engine, int64_t for_ms); /* lock held */

/* fire.c, create.c */
void drain_fires(struct engine *engine, struct request *request, int64_t at_ms);
void drain_create(struct engine *engine, struct request *request, int64_t at_ms);
void drain_decision(struct engine *engine, struct request *request, int64_t at_ms);

/* live.c */
void live_from_draft(struct engine *engine, struct head *head, const struct draft *draft,
                     bool is_terminal);
pawl_status fire_check_late(struct engine *engine, struct scope *scope,
                            const struct fire_args *args, uint64_t instance, uint32_t seq,
                            int64_t at_ms);
void fired_tell(const struct head *head, const struct definition *definition, struct fired *out);
uint32_t live_room(const struct decision *decision);

/* actors.c */
struct actor *actor_new(struct engine *engine);
void actor_free(struct engine *engine, struct actor *actor);
pawl_status actor_adopt(struct engine *engine, struct actor *actor); /* lock held */
struct actor *actor_get(struct engine *engine, uint64_t instance); /* lock held; NULL: no memory */
pawl_status actor_load(struct engine *engine, struct scope *scope, struct actor *actor);
void actors_fini(struct engine *engine);

/* alarms.c */
pawl_status alarms_fire_due(struct engine *engine, struct scope *scope, int64_t now_ms);
pawl_status alarms_next(struct engine *engine, struct scope *scope, int64_t *out);

/* mailbox.c */
pawl_status actor_step(struct actor *actor, const struct event *event, struct scope *scope,
                       struct decision *out);
pawl_status actor_decide(struct engine *engine, struct actor *actor, const struct event *event,
                         struct scope *scope, struct decision *out, struct job **jobs);
pawl_status engine_send(struct engine *engine, struct scope *scope, uint64_t instance,
                        const struct event *event, const struct fire_args *fire,
                        struct fired *out); /* fire and out may be NULL */
pawl_status engine_send_once(struct engine *engine, struct scope *scope, uint64_t instance,
                             const struct event *event, const struct fire_args *fire,
                             const uint8_t *key, struct fired *out);
struct mail *mail_new(struct engine *engine);
void mail_free(struct engine *engine, struct mail *mail);
bool engine_mail(struct engine *engine, uint64_t instance, struct mail *mail); /* lock held */
bool engine_pump(struct engine *engine);   /* lock held: one unit of waiting work, if any */
void mail_drop_all(struct engine *engine); /* at close: their causes are still in the store */

/* pause.c */
pawl_status pause_look(struct engine *engine, struct scope *scope, uint64_t instance, bool *out);
bool pause_bars(enum event_kind kind); /* does a paused instance refuse it? */
pawl_status pause_refusal(struct scope *scope);

/* steps.c */
pawl_status steps_chain(struct engine *engine, struct actor *actor, struct scope *scope,
                        const struct event *event, struct decision *decision, struct job **jobs);
void steps_act(struct engine *engine, uint64_t instance, struct job *jobs);       /* lock held */
void steps_drop(struct engine *engine, struct job *jobs);                         /* lock held */
bool steps_run_one(struct engine *engine);                                        /* lock held */
bool steps_add_ready(struct engine *engine, uint64_t instance, uint32_t ordinal); /* lock held */
void steps_note_ready(struct engine *engine, uint64_t instance, const struct decision *decision);
pawl_status steps_check_served(struct engine *engine, const struct actor *actor, uint32_t ordinal,
                               struct scope *scope); /* NOT_AWAITING: no such tool here */
void steps_leave_unserved(struct engine *engine, uint64_t instance, uint32_t ordinal);
void steps_fini(struct engine *engine);
void *steps_thread(void *engine);

/* timers.c */
pawl_status timers_fire_due(struct engine *engine, struct scope *scope);
void timers_look_again(struct engine *engine); /* what could not be fired may be fired now */
bool timers_are_due(struct engine *engine);    /* lock held */
void timers_note(struct engine *engine, const struct batch *batch); /* lock held */
void *timers_thread(void *engine);
void *drain_thread(void *engine);

/* recover.c */
pawl_status recover(struct engine *engine, struct scope *scope);
void engine_set_tip(struct engine *engine, const struct store_tip *tip); /* by the drain */
pawl_status recover_tail(struct engine *engine, struct scope *scope);
pawl_status recover_steps(struct engine *engine, struct scope *scope);
pawl_status recover_instance(struct engine *engine, struct scope *scope, uint64_t number,
                             bool after_death);
void recover_ready(struct engine *engine);        /* ready steps that could not be remembered */
pawl_status engine_reopen(struct engine *engine); /* by the drain, after OUTCOME_UNKNOWN */

/* read.c */
pawl_status value_text(struct engine *engine, struct scope *scope, uint64_t id, str *out);
pawl_status engine_locate(struct engine *engine, struct scope *scope, str id, struct head *out,
                          struct definition_slot **slot);
pawl_status ref_check(struct scope *scope, const char *what, str ref); /* at most LIMIT_ACTION */
pawl_status id_check(struct scope *scope, str id, uint64_t *number, uint8_t random[ID_RANDOM_SIZE]);

int64_t clock_at(struct engine *engine); /* what a record made now is stamped with; lock or drain */
void engine_log(struct engine *engine, pawl_log_level level, const char *event, const char *text);

#endif
