/* sim.h - a whole world in one thread: clients, workers, code, timers and faults, drawn from a seed.
 *
 * A run opens a store on the simulated disk of fault/vfs.h, lets clients and workers act in an order
 * that the seed draws, and injects faults meanwhile: power cuts, kills, disk and memory failures,
 * clock jumps, lost and repeated answers, workers that are late or die. Nothing sleeps and no thread
 * is started, so a seed repeats exactly.
 *
 * A ledger outside of the store notes what each caller knows. After every crash, and at the end,
 * check.c compares the ledger with the store, by the rules C1 to C15 of docs/internals/simulation.md.
 * A run ends with heal.c: faults stop, all work is done, and every instance must end. */
#ifndef PAWL_TESTS_SIM_SIM_H
#define PAWL_TESTS_SIM_SIM_H

#include "api/api.h"
#include "base/node.h"
#include "lib/fault.h"
#include "lib/test.h"

#define SUBJECTS_MAX 10
#define ENTRIES_MAX  256
#define ACTS_MAX     1024
#define CLAIMS_MAX   512
#define NODES_MAX    2
#define TRACE_LINES  60
#define TRACE_WIDTH  200

/* ---- Dice ---- */

struct dice {
    uint64_t state;
};
uint64_t dice_draw(struct dice *dice);
uint32_t dice_below(struct dice *dice, uint32_t bound); /* 0..bound-1 */
bool dice_chance(struct dice *dice, uint32_t per_thousand);

/* ---- What takes place ---- */

enum process { PROCESS_DOOR, PROCESS_ORDER, PROCESS_TREE, PROCESS_KEEPER, PROCESS_COUNT };

enum outcome {
    OUTCOME_OPEN, /* the caller does not know: it may have happened */
    OUTCOME_DONE,
    OUTCOME_REFUSED,
};

enum act_kind { ACT_CREATE, ACT_FIRE, ACT_CANCEL, ACT_SIGNAL, ACT_APPROVE };

/* A call of a client. Its actor_ref is "c" and its index, its idempotency key "k" and its index. */
struct act {
    enum act_kind kind;
    uint32_t subject;
    enum outcome outcome;
    bool was_sent; /* before: this would be a repeat */
    const char *action;
    bool guard, has_reason;
    uint64_t expected; /* FIRE: expected_sequence; 0: not given */
    uint64_t seq;      /* FIRE, CANCEL: DONE with this entry; 0: not known */
    uint32_t seen;     /* entries with its actor in the last check */
};

enum held { HELD_NO, HELD_YES, HELD_MAYBE };

/* An instance, as its callers know it. */
struct subject {
    enum process process;
    char id[27]; /* "": not known */
    enum outcome created;
    uint32_t count; /* entries seen */
    char hashes[ENTRIES_MAX][65];
    uint64_t last_seq; /* of the last entry that a caller knows of */
    char state[24];    /* DOOR: "": not certain */
    bool has_ended;    /* a terminal state was seen */
    enum held held;
    uint32_t held_count; /* entries when it was paused */
    bool may_move;       /* calls that a paused instance takes were made since */
};

/* A step in the hands of a worker. Its nonce, the result of the step, is its index. */
struct claim {
    uint32_t subject, attempt;
    char step_id[64], lease[40], name[32];
    int64_t until_ms; /* by `elapsed_ms`: the lease holds until then */
    uint32_t life;    /* of the process that leased it */
    bool is_sent;     /* a result was sent; it may have been taken */
    bool is_over;     /* an answer was taken, or refused */
    bool may_be_lost; /* something happened that may have taken the lease */
};

/* Which faults the seed has, and how often: chances of a thousand for each act. */
struct swarm {
    uint32_t power, kill, disk, memory, jump, lost, repeat, late, slow, pause;
    bool jumps_years; /* else the wall clock jumps by less than seven days in all */
    bool is_shared;   /* not owned: NODES_MAX handles take turns */
};

struct streamed {
    uint64_t pos, seq;
    char id[27], hash[65];
};

struct sim {
    uint64_t seed;
    struct dice dice;
    struct swarm swarm;
    struct fault_heap heap;
    struct env *envs[NODES_MAX];
    pawl *nodes[NODES_MAX];
    uint32_t node_count;

    int64_t wall_ms, elapsed_ms; /* elapsed: what has really passed */
    int64_t latest_ms;           /* the wall clock, when it was farthest ahead */
    uint32_t life;               /* how often the store was opened */
    uint32_t crashes, jumps, step;
    uint32_t unknown_count; /* calls whose outcome their callers do not know */
    bool is_healing;        /* faults are over */
    bool is_faulty;         /* a fault has hit since the last opening */

    struct act acts[ACTS_MAX];
    struct subject subjects[SUBJECTS_MAX];
    struct claim claims[CLAIMS_MAX];
    uint32_t act_count, subject_count, claim_count;
    struct streamed *stream;
    uint32_t stream_count, stream_capacity;

    pawl_error error;
    struct scope scope; /* of the present step */
    uint64_t trace_hash;
    char trace[TRACE_LINES][TRACE_WIDTH];
    uint32_t trace_count;
};

/* world.c: the store, its faults and its time. */
void world_begin(struct sim *sim, uint64_t seed);
void world_end(struct sim *sim);
void world_arm(struct sim *sim);    /* perhaps: the next act meets a fault */
void world_calm(struct sim *sim);   /* before a check */
void world_settle(struct sim *sim); /* after an act: did the power go? */
void world_crash(struct sim *sim, bool is_power_cut);
void world_pass(struct sim *sim, int64_t by_ms);
void world_jump(struct sim *sim);
void world_heal(struct sim *sim);            /* no more faults */
bool world_is_faulty(const struct sim *sim); /* a fault has hit: calls may fail */
bool world_is_off(void);                     /* the power has gone, and nobody has noticed yet */
pawl_status sim_run_due(struct sim *sim);

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

/* processes.c: definitions, tools and code. */
extern const char *const process_names[PROCESS_COUNT];
const char *process_source(enum process process); /* NULL: code */
pawl_status processes_register(struct sim *sim, pawl *p);
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
#define REST_MS             20000
#define TICK_MS             10000
/* Does `step` have to wait for the end of `before`? */
struct order_rule {
    enum process process;
    const char *before, *step;
};
extern const struct order_rule order_rules[]; /* ends with a zero row */

/* clients.c, workers.c: one act each. */
void client_act(struct sim *sim);
void client_create(struct sim *sim);
void client_retry(struct sim *sim, uint32_t act); /* what is open, with its key */
void client_read(struct sim *sim);
void client_push(struct sim *sim, struct subject *subject); /* what brings it nearer to its end */
void worker_act(struct sim *sim);
void worker_finish_all(struct sim *sim);

/* check.c, stream.c */
void check_all(struct sim *sim);
void check_store(struct sim *sim);
void stream_follow(struct sim *sim);
void stream_check(struct sim *sim); /* all that was streamed is what is there */

/* heal.c */
void heal(struct sim *sim);

/* run.c */
struct sim_result {
    uint64_t trace_hash;
    uint32_t crashes, acts, claims;
    int64_t elapsed_ms;
};
struct sim_result sim_run(uint64_t seed);

#endif
