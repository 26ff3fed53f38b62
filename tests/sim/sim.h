/* sim.h - a whole world in one thread: clients, workers, code, timers and faults, drawn from a seed.
 *
 * A run opens a store on the simulated disk of fault/vfs.h, lets clients and workers act in an order
 * that the seed draws, and injects faults meanwhile: power cuts, kills, disk and memory failures,
 * clock jumps, lost and repeated answers, workers that are late or die. Nothing sleeps and no thread
 * is started, so a seed repeats exactly.
 *
 * A ledger outside of the store notes what each caller knows. After every crash, and at the end,
 * check.c compares the ledger with the store, by the rules C1 to C15 of docs/internals/simulation.md.
 * A run ends by healing: faults stop, all work is done, and every instance must end. */
#ifndef PAWL_TESTS_SIM_SIM_H
#define PAWL_TESTS_SIM_SIM_H

#include "api/api.h"
#include "base/node.h"
#include "lib/fault.h"
#include "lib/test.h"

#define SUBJECTS_MAX 64 /* bits of a mask */
#define CREATES_MAX  10 /* of them by clients; the others are children and redriven ones */
#define ENTRIES_MAX  256
#define ACTS_MAX     1024
#define CLAIMS_MAX   512
#define NODES_MAX    2
#define STEPS_MAX    20
#define ITEMS_MAX    6
#define BOOKED_MAX   256
#define LINES_MAX    12
#define INPUT_MAX    8192 /* bytes of a call */
#define TRACE_LINES  60
#define TRACE_WIDTH  320

/* ---- Dice ---- */

struct dice {
    uint64_t state;
};
uint64_t dice_draw(struct dice *dice);
uint32_t dice_below(struct dice *dice, uint32_t bound); /* 0..bound-1 */
bool dice_chance(struct dice *dice, uint32_t per_thousand);

/* ---- What takes place ---- */

enum process {
    PROCESS_DOOR,
    PROCESS_ORDER,
    PROCESS_TREE,
    PROCESS_KEEPER,
    PROCESS_CLERK,
    PROCESS_PAIR,
    PROCESS_TRIP,
    PROCESS_LOAD,
    PROCESS_DESK,
    PROCESS_NOTICE, /* made by trips and desks, never by a client */
    PROCESS_COUNT,
};

enum outcome {
    OUTCOME_OPEN, /* the caller does not know: it may have happened */
    OUTCOME_DONE,
    OUTCOME_REFUSED,
};

enum act_kind {
    ACT_CREATE,
    ACT_FIRE,
    ACT_CANCEL,
    ACT_SIGNAL,
    ACT_BROADCAST,
    ACT_APPROVE,
    ACT_AMEND,
    ACT_REDRIVE,
    ACT_ERASE,
};

/* A call of a client. Its actor_ref is "c" and its index, its idempotency key "k" and its index. */
struct act {
    enum act_kind kind;
    uint32_t subject; /* CREATE: what it makes. BROADCAST: none */
    enum outcome outcome;
    bool was_sent; /* before: this would be a repeat */
    const char *action;
    bool guard, has_reason;
    bool is_early;             /* FIRE: with a time before anything was created */
    bool is_reject;            /* APPROVE */
    bool is_delivered;         /* SIGNAL: it was taken at once, and not kept */
    uint64_t expected;         /* FIRE: expected_sequence; 0: not given */
    uint64_t seq;              /* FIRE, CANCEL, AMEND: DONE with this entry; 0: not known */
    uint64_t sent_at, done_at; /* by `moment`: when it was first sent, and first acknowledged */
    uint64_t entry;            /* the entry with its actor, of its subject; 0: none was seen */
    uint64_t seen;             /* a mask of subjects whose histories have an entry with its actor */
    int64_t delivered;         /* BROADCAST: to so many */
    uint32_t version;          /* CREATE: of the definition */
    char made[27];             /* REDRIVE: the new instance; "": not known */
    char step[64];             /* APPROVE */
};

enum held { HELD_NO, HELD_YES, HELD_MAYBE };

/* What is known of one history, entry by entry. */
struct fold {
    uint32_t count; /* entries so far */
    char state[24];
    int64_t recorded_ms, ticked_ms, rested_ms; /* of the entry before; when a timer was armed */
    bool has_ended, is_cancelled;
    bool is_cleaning; /* TREE: it was cancelled, and its `finally` runs */
    bool is_cancelling;   /* the same, or its compensations run because of a cancel */
    uint32_t version;     /* of the definition that its next step is by */
    uint32_t way_version; /* ORDER: of the one that its way to `paid` was chosen by */
    struct {
        char name[32];
        uint32_t started, completed; /* entries */
        uint32_t done_at, undone_at; /* TRIP: the entries of its end, and of its compensation's */
        bool is_reused;              /* its result is that of the instance before it */
    } steps[STEPS_MAX];
    uint32_t step_count;
    uint32_t ticks, signals, answers, approvals;
    uint64_t sum;               /* CLERK: of what the signals said */
    char failed[32];            /* the step that failed last */
    bool is_undoing;            /* TRIP: what was done is undone */
    bool is_refused;            /* TRIP: `bill` failed with an error that is never tried again */
    int64_t group_ms;           /* LOAD: when the group with a timeout began; 0: it has not */
    bool is_timed_out;          /* LOAD: its time was over */
    uint32_t items_running;     /* LOAD: of its map */
    uint32_t items[ITEMS_MAX];  /* LOAD: 1 + the claim whose result the item has; 0: none */
    char told[12], told_of[27]; /* DESK: how what it started has ended, as it was told */
    char lines[LINES_MAX][160]; /* the last entries, in words */
};

/* An instance, as its callers know it. */
struct subject {
    enum process process;
    char id[27];         /* "": not known */
    uint32_t act;        /* that created it; ACTS_MAX: a child */
    uint32_t parent, of; /* of a child; of a redriven one: that it runs again. Else SUBJECTS_MAX */
    uint32_t sender;     /* NOTICE: that it was started by. Else SUBJECTS_MAX */
    uint32_t number;     /* its input `n` */
    uint32_t rounds;     /* KEEPER, CLERK: its input `count` */
    enum outcome created;
    char hashes[ENTRIES_MAX][17];
    uint32_t count;    /* entries seen */
    uint64_t last_seq; /* of the last entry that a caller knows of */
    char state[24];    /* DOOR: "": not certain */
    bool has_ended;    /* a terminal state was seen */
    bool is_listed;    /* in the list that was just read */
    uint32_t life;     /* of the world, when its history was last read */
    enum held erased;  /* by a call; MAYBE: its outcome is not known */
    bool is_erased;    /* as the store says */
    enum held held;
    uint32_t held_count; /* HELD_YES: entries when it was paused; UINT32_MAX: not known */
    struct fold fold;
};

/* A step in the hands of a worker. Its nonce, the result of the step, is its index. */
struct claim {
    uint32_t subject, attempt;
    uint32_t item; /* of a map; ITEMS_MAX: none */
    char step_id[64], lease[40], name[32];
    int64_t until_ms; /* by `elapsed_ms`: the lease holds until then */
    uint32_t life;    /* of the process that leased it */
    bool is_sent;     /* a result was sent; it may have been taken */
    bool is_over;     /* an answer was taken, or refused */
    bool may_be_lost; /* something happened that may have taken the lease */
    bool is_taken;    /* its result was acknowledged */
    bool is_seen;     /* its result is in the history */
};

/* Which faults the seed has, and how often: chances of a thousand for each act. */
struct swarm {
    uint32_t power, kill, disk, memory, jump, lost, repeat, late, slow, pause;
    uint32_t point;   /* the power goes where the engine names a point */
    uint32_t meddle;  /* another process acts between a decision and its commit */
    uint32_t shared;  /* chance that an opening is not by an owner, but by NODES_MAX processes */
    uint32_t restart; /* it is closed as it should be, and opened again */
    bool jumps_years; /* else the wall clock jumps by less than seven days in all */
};

struct streamed {
    uint64_t pos, seq;
    char id[27], hash[17];
};

struct sim {
    uint64_t seed;
    struct dice dice;
    struct swarm swarm;
    struct fault_heap heap;
    struct env *envs[NODES_MAX];
    pawl *nodes[NODES_MAX];
    uint32_t node_count;
    bool is_shared;   /* the nodes are processes that share the store */
    uint32_t release; /* of the program: its code types have this version */
    uint32_t inside;  /* 1 + the node that acts within the call of another one; 0: none */
    uint32_t meddled; /* how often one has */
    struct node_point {
        struct sim *sim;
        uint32_t index;
    } points[NODES_MAX];

    int64_t wall_ms, elapsed_ms; /* elapsed: what has really passed */
    int64_t latest_ms;           /* the wall clock, when it was farthest ahead */
    uint32_t life;               /* how often the store was opened */
    uint32_t crashes, jumps, step;
    uint64_t moment;        /* counts what clients learn */
    uint32_t unknown_count; /* calls whose outcome their callers do not know */
    bool is_healing;        /* faults are over */
    bool is_faulty;         /* a fault has hit since the last opening */

    struct act acts[ACTS_MAX];
    struct subject subjects[SUBJECTS_MAX];
    struct claim claims[CLAIMS_MAX];
    uint32_t act_count, subject_count, claim_count, create_count;
    int64_t booked_ms[BOOKED_MAX]; /* when trips began their first step */
    uint32_t booked_count;
    struct streamed *stream;
    uint32_t stream_count, stream_capacity;

    pawl_error error;
    struct scope scope; /* of the present step */
    bool is_traced;
    uint64_t trace_hash;
    char trace[TRACE_LINES][TRACE_WIDTH];
    uint32_t trace_count;
};

/* world.c: the store and its time; faults.c: what goes wrong. */
void world_prepare(void); /* once in a process */
void world_begin(struct sim *sim, uint64_t seed);
pawl_status world_open(struct sim *sim);
void world_close(struct sim *sim);
void world_set_wall(struct sim *sim, int64_t wall_ms);
void faults_begin(struct sim *sim);
void faults_watch(struct sim *sim, uint32_t node); /* what it meets within its calls */
void world_end(struct sim *sim);
void world_arm(struct sim *sim);    /* perhaps: the next act meets a fault */
void world_calm(struct sim *sim);   /* before a check */
void world_settle(struct sim *sim); /* after an act: did the power go? */
void world_crash(struct sim *sim, bool is_power_cut);
void world_restart(struct sim *sim); /* an orderly end, and the next release perhaps */
void world_pass(struct sim *sim, int64_t by_ms);
void world_jump(struct sim *sim);
void world_heal(struct sim *sim);            /* no more faults */
bool world_is_faulty(const struct sim *sim); /* a fault has hit: calls may fail */
bool world_is_off(void);                     /* the power has gone, and nobody has noticed yet */
pawl_status sim_run_due(struct sim *sim);
void world_rival(struct sim *sim); /* a second owner is refused */
pawl *sim_node(struct sim *sim);   /* the process that is asked next */

/* An operation by one of the nodes; *out in the step's scope. OUTCOME_UNKNOWN also if the answer was
 * lost on its way. */
pawl_status sim_ask(struct sim *sim, struct node **out, const char *operation, const char *format,
                    ...) __attribute__((format(printf, 4, 5)));
/* The same without lost answers, to look. */
pawl_status sim_look(struct sim *sim, struct node **out, const char *operation, const char *format,
                     ...) __attribute__((format(printf, 4, 5)));
str sim_text(const struct node *object, const char *name); /* data NULL: not there */
int64_t sim_number(const struct node *object, const char *name);

/* A rule is broken: prints the seed, the rule and the last lines of the trace, and ends the test. */
_Noreturn void sim_fail(struct sim *sim, const char *rule, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void sim_note(struct sim *sim, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* processes.c: definitions, and how the checker reads them; code.c: tools and code. */
extern const char *const process_names[PROCESS_COUNT];
extern const char *const process_sources[]; /* ends with NULL */
pawl_status code_register(struct sim *sim, pawl *p);
void tally_begin(void);            /* makes the host's own table, in the new store */
void views_drop(void);
void tally_check(struct sim *sim); /* the host's rows are those of the turns that were taken */
/* The door's transition, or NULL. */
struct door_way {
    const char *from, *action, *to;
    bool has_guard, needs_reason, is_cancel;
};
const struct door_way *door_way(const char *from, const char *action);
const struct door_way *door_way_at(uint32_t index); /* NULL: no more */
bool door_is_end(const char *state);
#define DOOR_DEADLINE_MS    30000
#define DOOR_DEADLINE_STATE "open"
#define ATTEMPTS_MAX        5u
#define RISKY_ATTEMPTS_MAX  2u
#define REST_MS             20000
#define TICK_MS             10000
#define BORED_MS            40000
#define BONUS               7 /* of the clerk's second release */
#define APPROVALS           2u
#define BILL_ATTEMPTS_MAX   3u
#define UNDO_ATTEMPTS_MAX   20u
#define NO_WORKER_MS        40000
#define GROUP_MS            50000
#define RETENTION_MS        120000
#define ITEMS_AT_ONCE       2u
#define ITEMS_TOLERATED     1u
#define BOOKED_WITHIN_MS    60000 /* no more than BOOKED_MOST trips begin in such a span */
#define BOOKED_MOST         2u
/* Does `step` have to wait for the end of `before`? */
struct order_rule {
    enum process process;
    const char *before, *step;
};
extern const struct order_rule order_rules[]; /* ends with a zero row */

/* clients.c, callers.c, workers.c: one act each. */
struct act *new_act(struct sim *sim, enum act_kind kind, uint32_t subject, const char *action);
uint32_t act_index(const struct sim *sim, const struct act *act);
uint32_t subject_index(const struct sim *sim, const struct subject *subject);
struct subject *new_subject(struct sim *sim, enum process process, uint32_t act);
void note_outcome(struct sim *sim, struct act *act, pawl_status status);
bool is_unknown(pawl_status status);
void doubt_leases(struct sim *sim, const struct subject *subject);
void client_act(struct sim *sim);
void client_retry(struct sim *sim, uint32_t act); /* what is open, with its key */
void client_read(struct sim *sim);
void client_push(struct sim *sim, struct subject *subject); /* what brings it nearer to its end */
void caller_act(struct sim *sim, struct subject *subject);  /* of a flow or code */
void caller_broadcast(struct sim *sim);
void caller_retry(struct sim *sim, struct act *act);
void caller_pause(struct sim *sim, struct subject *subject, bool is_pause);
void caller_approve(struct sim *sim, struct subject *subject, bool is_reject);
void client_push_desk(struct sim *sim, struct subject *subject);
bool claim_holds(const struct sim *sim, const struct claim *claim); /* its lease, for certain */
uint32_t item_count(const struct subject *subject);                 /* LOAD */
void worker_act(struct sim *sim);
void worker_finish_all(struct sim *sim);

/* check.c, senders.c, fold.c, stream.c */
bool senders_owe(const struct sim *sim,
                 const struct subject *subject); /* a notice that is not there */
void senders_meet(struct sim *sim, struct subject *notice, const struct node *row);
void senders_check(struct sim *sim);
void check_erased(struct sim *sim, struct subject *subject, const struct node *row);
void check_retention(struct sim *sim); /* long after the end */
void check_rate(struct sim *sim);
void check_all(struct sim *sim);   /* what changed since the last check */
void check_whole(struct sim *sim); /* all that was ever seen, from its beginning, and the store */
void check_store(struct sim *sim);
void fold_begin(struct sim *sim, struct subject *subject);
void fold_entry(struct sim *sim, struct subject *subject, const pawl_entry *entry);
bool fold_is_completed(const struct fold *fold, const char *step);
_Noreturn void fold_fail(struct sim *sim, const struct subject *subject, const char *rule,
                         const char *format, ...) __attribute__((format(printf, 4, 5)));
void stream_follow(struct sim *sim);
void stream_check(struct sim *sim); /* all that was streamed is what is there */

/* run.c */
struct sim_result {
    uint64_t trace_hash;
    uint32_t crashes, acts, claims;
    int64_t elapsed_ms;
};
struct sim_result sim_run(uint64_t seed);

#endif
