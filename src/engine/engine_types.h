/* engine_types.h - private to src/engine: what an engine has in memory.
 *
 * Who may touch what:
 *   lock      guards the queue, the head cache, the actors and their mail, the tool queue.
 *   the drain (one thread at a time, `drainer`) alone writes: batch, intern cache, tip.
 *   an actor's memory belongs to whoever holds its turn (`busy`). */
#ifndef PAWL_ENGINE_ENGINE_TYPES_H
#define PAWL_ENGINE_ENGINE_TYPES_H

#include "base/assert.h"
#include "base/guard.h"
#include "base/limits.h"
#include "base/map.h"
#include "base/planted.h"
#include "engine/engine.h"
#include "engine/heads.h"
#include "engine/workers.h"
#include "flow/flow.h"
#include "model/words.h"
#include "tool/tool.h"
#include <pthread.h>

/* ---- Requests: what waits for the drain ---- */

enum request_kind {
    REQUEST_FIRE,
    REQUEST_CREATE,
    REQUEST_DEFINE,
    REQUEST_DECISION,
    REQUEST_CONTROL
};

struct actor;
struct birth;

struct create_request {
    const struct create_args *args;
    const struct definition_row *row; /* inline and new: to be stored; else only its id counts */
    struct definition *definition;
    const struct decision *decision; /* what START decided; count 0: a machine */
    int64_t decided_at_ms;
    struct created *out;
    struct birth *births; /* children that the decision wants, theirs among them (family.c) */
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
    struct birth *births;  /* as in a create_request */
    struct definition *definition;
    const struct decision *decision;
    int64_t decided_at_ms;
    int64_t fired_at_ms; /* what the caller said; 0: the time of the commit */
    str snapshot;        /* data NULL: none; after the last draft */
    struct fired *out;   /* of the last draft; may be NULL */
    const uint8_t *key;  /* NULL: none */
    bool is_repeat;      /* out: its key was used for this very call: nothing was recorded */
    bool was_kept;       /* out: of a repeat: its signal was kept */
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
    struct reduce *reduces; /* done with its commit, in which it is alone */
    size_t reduce_count;
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
    struct reduce *reduces; /* of the one request that it holds then */
    size_t reduce_count;
    int64_t shift_ms; /* by which the commit shifts the store's clock (clock.c) */
};

/* The store's clock (clock.c). */
struct clock {
    struct guard lock; /* a leaf: no other lock is taken while it is held */
    int64_t at_ms;        /* the last reading */
    int64_t offset_ms;    /* the store's clock minus the wall clock */
    int64_t base_ms;      /* the store's clock minus the boot clock */
    uint64_t seen_pos;    /* position of the last clock record known here */
    uint64_t tip_pos;     /* clock_pos of the tip, for threads that do not hold the engine's lock */
    int64_t tip_offset_ms; /* likewise clock_offset_ms */
};
struct moment {
    int64_t at_ms, wall_ms; /* by the store's clock; by the wall clock */
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

#define MAILS_SPARED     256u /* a broadcast's worth, and no more than four megabytes of them */
#define SPARE_BYTES      (16u << 10)  /* a mail that took more gives it back */
#define ACTORS_KEPT      4096u        /* remembered; more only while they are busy */
#define ACTORS_AT_ONCE   64u          /* restored with one look at the store */
#define ACTORS_LET_GO    64u          /* at once, past that */
#define ACTOR_BYTES      (256u << 10) /* an actor's arena is rebuilt when it has grown past this */
#define SNAPSHOT_BYTES   4096u  /* history since the last snapshot before the next is worth it */
#define FLUSH_AFTER_MS   10     /* quiet time before rows that lag are put right */
#define TOOL_GRACE_MS    1000   /* a program is ended this long after its step has timed out */
#define POISON_AT        2u     /* an event that cannot be decided so often holds its instance */
#define RETRY_STORE_MS   1000   /* an event that met a failing store is tried again after this */
#define LEASE_DEFAULT_MS 120000 /* B33 */
#define WAKES_AT_ONCE    256u  /* instances that are woken because nothing else does */
#define WAKE_DRAFTS      4096u /* kept signals are taken in the decision that began to wait, likewise */
#define CHAIN_DRAFTS     64u   /* pure steps end in the decision that began them, up to this many ... */
#define CHAIN_BYTES      (LIMIT_SCOPE / 4) /* ... and until so much of its scope is used */
#define JOBS_QUICK       1024u /* log, set and fail: under way at once */
#define JOBS_WHEN_BRISK  16u   /* of other tools, for each worker, while each takes next to no time */
#define PLACES_MAX       256u  /* of them in all, unless there are more workers */
#define LATE_MS          5     /* a started step that no worker took by then gets another thread */
#define RUNNER_IDLE_MS   1000  /* a thread beyond the workers ends after so long without work */
#define BRISK_STREAK     64u   /* so many tools that took BRISK_MS at most */
#define BRISK_MS         1

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
    bool is_owned;       /* nobody waits: freed when done */
    bool is_poison;      /* it held its instance: tried again when that is resumed */
    bool holds_place;    /* STEP_START: counted in jobs_under_way until a job takes it over */
    int64_t retry_at_ms; /* by the monotonic clock: the store failed, try again then */
    bool may_ride;       /* a step begins or ends: decided with others of its instance */
    enum step_status outcome; /* of an answer: what the decision makes of its step */
    bool is_kept;             /* SIGNAL: nothing takes it yet */
    struct mail_group *group; /* of mails that somebody waits for together; may be NULL */
    struct claimed *claim;    /* STEP_START: for a worker elsewhere */
    uint64_t ready_since;     /* STEP_START: as the step that waited had it */
};

/* Instances that a broadcast does not fit, the first ones with the reason. */
#define REFUSALS_NAMED 8u
struct refusals {
    uint64_t count;
    uint64_t instances[REFUSALS_NAMED];
    pawl_error reasons[REFUSALS_NAMED];
};

struct mail_group {
    uint32_t left, refused;
    uint32_t kept;    /* signals: of those that were not refused */
    uint32_t full;    /* signals: of the refused, because the instance keeps no more */
    pawl_error error; /* the store's first failure, if there was one */
    pawl_error refusal; /* the first of them; status OK: none */
    struct refusals *refusals; /* signals: those that it does not fit; NULL: they are not noted */
};

/* Why an event that the engine itself sent was refused (untaken.c). */
struct refusal {
    uint64_t instance;
    enum event_kind kind;
    char words[sizeof((pawl_error *)0)->message];
};

struct actor {
    uint64_t instance;
    struct definition *definition;
    struct arena arena; /* of its memory */
    void *memory;
    struct engine *engine;
    struct payload_source payloads;     /* what its memory does not keep (payloads.c) ... */
    const struct decision *decided[2];  /* ... of entries that are drafts, in order; may be NULL */
    uint32_t decided_seq;               /* of the entry before them */
    str input;
    str creator, correlation; /* steps run in its name, children inherit both; data NULL: none */
    str trace;                /* of the request that created it: tools are told; data NULL: none */
    uint64_t pos;             /* shared: of the last record when it was loaded */
    uint32_t state, seq, snapshot_seq;
    uint32_t generation; /* the engine's, when this was loaded */
    size_t bytes_since_snapshot, snapshot_size;
    size_t loaded_size; /* of its arena when it was loaded; 0: it never was */
    uint32_t death; /* of its start: the mark in FILE-turns, until its reduces have run; 0: none */
    uint32_t failures; /* events in a row that nobody waits for and that could not be decided */
    bool is_loaded, busy, is_test;
    bool is_recent;    /* asked for since the hand came by (actors.c) */
    bool is_too_large; /* it could not be loaded: more than one decision may hold */
    bool is_paused;   /* when its present event was decided */
    bool is_at_bound; /* its present event would exceed a bound (bounds.c) */
    struct mail *first, *last;
    struct actor *next_runnable;
};

/* A tool call under way or queued (steps.c). */
struct job {
    struct job *next;
    uint64_t instance;
    uint32_t ordinal;
    bool holds_place; /* counted in jobs_under_way */
    bool is_counted;  /* if the process dies of it, that is counted (deaths.c) ... */
    bool is_alone;    /* ... and it has died so often that it is made alone */
    struct claimed *claim; /* it is started for a worker elsewhere; until that is committed */
    struct scope scope;
    struct flow_call call;
    const char *creator; /* NULL: nobody said */
    const char *trace;   /* NULL: none */
    char id[ID_SIZE + 1];
    bool is_quick;         /* of a tool that takes no time */
    int64_t queued_at_ms;  /* by the tick */
    struct tool_stop stop; /* to end it early */
    bool is_over;          /* its step has ended: its answer is for no one */
    bool is_held;          /* its instance was paused: if it did not begin, or was ended early, its attempt is
                              given back */
};

struct job_list {
    struct job *first, *last;
    uint32_t count;
};

/* A thread beyond the workers (runners.c). */
struct runner {
    struct engine *engine;
    pthread_t thread;
    enum { RUNNER_NONE, RUNNER_ALIVE, RUNNER_ENDED /* to be joined */ } state;
};

struct lease {
    uint64_t instance;
    uint32_t ordinal;
    int64_t length_ms, expires_at_ms; /* by the leases' clock */
    char hash[LEASE_HASH_SIZE + 1]; /* of its token; empty: it runs in this process */
    char worker[WORDS_SIZE_MAX + 1]; /* whose it is, as a message shows it; empty: not known */
};

/* Who started the steps of one instance (starters.c). */
struct starters {
    struct guard lock; /* the engine's is not held; the store is read under it */
    uint64_t instance;    /* 0: none */
    int64_t looked_ms;    /* by the tick */
    struct map places;    /* of an attempt, by its ordinal, in: */
    uint64_t *actors;     /* values */
    uint32_t count, capacity;
};

/* Ready steps whose tool is not here (claims.c). */
struct tool_queue {
    str tool;
    struct ready_step *oldest;
    uint32_t passed_over; /* by turns of workers that were given what they had made ready */
};

/* A step that waits among others, the oldest first (ages.c). */
struct ready_step {
    struct ready_step *next, *child; /* in the heap */
    uint64_t instance;
    uint32_t ordinal;
    uint32_t queue; /* for workers: of engine->queues */
    uint64_t since; /* a position: it became ready there, or before and in this process ... */
    uint64_t order; /* ... and of those with the same, the one that was put first is the oldest */
};

struct definition_slot {
    struct definition *definition;
    struct scope scope; /* holds it */
    str name;
    uint32_t version;
    bool is_bound;    /* code: its handler is here */
    bool is_doubtful; /* attached: a rollback may have put another one in its place */
    uint8_t compiled_sha[SHA_SIZE];
    str rights; /* what its instances may create; data NULL: anything */
    struct definition_slot *next; /* of those that a rollback took back */
};

/* What the host does in our transaction (reduces.c). */
struct reducer {
    const char *name;
    pawl_reduce_fn run;
    void *context;
};

struct engine {
    struct engine_options options;
    const struct heap *heap;
    struct env *env;
    struct store *store;
    struct toolbox *toolbox;
    struct sha *sha;    /* the drain's */
    struct sha *lease_sha; /* under the lock */
    struct scope scope; /* the drain's, emptied after each commit */

    struct guard lock;
    pthread_cond_t changed; /* mail done, jobs queued, the drain free */
    pthread_cond_t advanced; /* none moves the test clock any more */
    uint32_t advances;       /* calls that move it */
    pthread_t mover;         /* one of their threads: it drains what it queues itself ... */
    bool has_mover;          /* ... until its call ends */
    pthread_cond_t tools;   /* jobs queued or steps ready: for the threads that run tools */
    pthread_cond_t work;    /* a request is queued: for the drain thread */
    struct request *first, *last;
    thread_mark drainer; /* the thread that drains; 0: none. Set under the lock */
    bool is_telling, has_news; /* see engine_changed() */
    uint32_t wait_for_drain;   /* threads that wait until none drains */
    _Atomic bool broken;       /* what is in the store is not known: nothing is written meanwhile */
    bool commit_failed;        /* the last one did */
    _Atomic bool stopping;     /* threads but the drain end as soon as they can */
    bool drain_stopping;       /* the others are gone: so does the drain */
    bool is_suspect; /* a read failed: a commit is to look at the files */
    _Atomic uint32_t generation; /* grows when what actors remember may be wrong */
    struct store_tip tip;
    _Atomic int64_t test_now_ms; /* set under the lock; the drain reads it without */
    struct clock clock;
    struct moment now; /* of the present commit; the drain's */
    int64_t clock_retry_ms; /* by the tick: when to try again to record a jump */

    struct mail *spare_mails; /* freed, with the first block of their scope, to be used again */
    uint32_t spare_count;
    struct heads heads;
    struct batch batch;
    pawl_status batch_status; /* not OK: something was half put in, the whole batch fails */
    struct intern_table interned;

    struct starters starters;

    struct guard definitions_lock;
    struct definition_slot **definitions; /* by id */
    uint32_t definition_capacity;
    struct definition_slot *retired; /* not found any more, but names in results point into them */
    uint64_t seen_pos; /* attached: the end of the log when the last definition was loaded */
    uint8_t seen_root[SHA_SIZE];
    struct deaths {
        struct guard lock;
        bool is_tried; /* to open FILE-turns */
        bool is_open; /* it is kept: this process owns the store, and runs code or its calls */
        bool is_alone;    /* a call is under way that has to be the only one of its like ... */
        bool has_waiting; /* ... and others like it are ready */
        struct turn_mark marks[MARKS];
    } deaths;
    struct arena code_arena; /* holds the copies below, until close */
    const struct code_binding **code_types;
    uint32_t code_count;
    _Atomic bool has_renewals; /* of types with a higher version; see renewals.c */
    struct renewal {
        uint32_t type, version; /* the one under way, by its index; the version that created them */
        uint64_t after;         /* the last instance that was looked at */
        uint32_t tries;         /* of this page that failed */
        _Atomic int64_t retry_ms; /* the store failed: not before, by the tick */
        _Atomic bool is_busy;   /* a thread is at it */
    } renewal;
    struct wakes {
        uint64_t after;         /* the last instance that was looked at */
        _Atomic int64_t retry_ms; /* the store failed: not before, by the tick */
        _Atomic bool is_due;    /* not all have been looked at */
        _Atomic bool is_again;  /* look at all of them once more */
        _Atomic bool is_busy;   /* a thread is at it */
        _Atomic bool was_refused; /* one could not be woken: its code is not here */
    } wakes;
    struct reducer *reducers; /* in the order they were registered */
    uint32_t reducer_count;

    struct untaken {
        struct map map; /* from instances to items */
        struct refusal *items;
        uint32_t count, capacity;
    } untaken;
    struct map actor_map;
    struct actor **actors;
    uint32_t actor_count, actor_capacity, actor_hand;
    struct actor *runnable, *runnable_last;

    struct job_list jobs, quick; /* started, and not yet taken by a thread */
    struct job *running;         /* in threads now */
    uint32_t idle_runners;       /* threads for tools that wait */
    struct runner *runners, *watcher; /* watcher NULL: none */
    pthread_cond_t late;              /* what the watcher waits on; its waits are short */
    struct ready_step *ready; /* the oldest of those that are run here */
    struct tool_queue *queues; /* ready, but no tool of that name is here */
    uint32_t queue_count;
    uint64_t ready_count; /* so many steps were put into these and into `ready` */
    struct ticket *tickets, **tickets_end; /* claims that wait, the longest first (tickets.c) */
    _Atomic bool claims_ended;             /* none waits any more */
    uint32_t sleeper_count; /* of them, with a thread each */
    struct lease *leases;
    uint32_t lease_count, lease_capacity;
    int64_t next_lease_ms; /* none ends before, by the leases' clock; INT64_MAX: none */
    uint64_t *ended;       /* children that have ended and whose parents have not heard of it */
    uint32_t ended_count, ended_capacity, ended_told; /* the first of them have been told */
    _Atomic bool has_amends; /* some flow may have been amended; shared: always */
    bool ended_lost;         /* some of them are in the store only: look */
    struct mail *later;      /* events that met a failing store */
    struct key_turn
        *key_turns; /* keys whose calls are under way and leave no record of their own */
    uint32_t jobs_under_way, mail_under_way;
    uint32_t brisk_jobs;           /* that took next to no time lately */
    _Atomic bool ready_lost;       /* a ready step could not be remembered: look for it, */
    int64_t ready_look_ms;         /* by the tick, not before this */
    int64_t next_due_ms;           /* as far as is known, by the store's clock; INT64_MAX: none */
    int64_t next_wall_ms;          /* likewise by the wall clock */
    uint32_t firing_count;         /* alarms over many instances that fire here */
    int64_t firing_since_ms;       /* since when the first of them has; unset while there is none */
    bool timers_busy;              /* somebody is firing what is due */
    _Atomic uint32_t stuck_timers; /* due, but not to be fired now */
    int64_t stuck_until_ms;
    struct env_bell bell; /* fd -1: the host has not asked for it */
    int64_t bell_boot_ms, bell_wall_ms; /* what it is set to */
    bool bell_may_ring; /* it may have rung since: it has to be set again to fall silent */

    uint32_t queued; /* requests that wait for the drain */
    struct health *health; /* health.h */
    struct histogram commit_times;
    _Atomic uint64_t commits_failed;
    void (*committed)(void *context, uint64_t position); /* who follows the log; NULL: nobody */
    void *committed_context;

    pthread_t *threads;
    uint32_t thread_count;
};

/* What a function relies on; checked in every build. */
#define ASSERT_LOCKED(engine)   ASSERT_HOLDS(&(engine)->lock)
#define ASSERT_UNLOCKED(engine) ASSERT_RELEASED(&(engine)->lock)
#define ASSERT_DRAINING(engine) \
    ASSERT_THREAD(thread_is_self(&(engine)->drainer), "this thread drains")
#define ASSERT_LOCKED_OR_DRAINING(engine)                                                 \
    ASSERT_THREAD(thread_is_self(&(engine)->lock.owner) || thread_is_self(&(engine)->drainer), \
                  "this thread holds the lock, or drains")

#endif
