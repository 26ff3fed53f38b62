/* scenario.h - processes of each behavior, driven over pawl.h call by call, and a witness who
 * remembers what was answered and what was seen.
 *
 * A scenario is a list of acts. After each the witness looks at the histories, as far as they
 * can be read, and insists:
 *   - what was acknowledged is there, and what was once seen stays, hash by hash;
 *   - after a refusal, STORAGE_FAILURE and NO_MEMORY nothing of the call is there;
 *   - after OUTCOME_UNKNOWN all of it is there or nothing, over all instances of a batch;
 *   - an instance that is held is paused, takes nothing, and nobody else is;
 *   - a deadline is never early;
 *   - entries are numbered 1..N.
 * An act that did not happen is done again. The same witness goes on with the next pawl that
 * opens the store. */
#ifndef PAWL_TESTS_FAULT_SCENARIO_H
#define PAWL_TESTS_FAULT_SCENARIO_H

#include "api/api.h"
#include "lib/fault.h"
#include "lib/test.h"

#define ENTRIES_MAX   64
#define INSTANCES_MAX 3
#define FIRES_MAX     8
#define SHOWS_MAX     5

enum act_kind {
    ACT_END, /* of a list */
    ACT_DEFINE,
    ACT_CREATE,
    ACT_FIRE,
    ACT_BATCH,
    ACT_CANCEL,
    ACT_SIGNAL,
    ACT_ADVANCE,
    ACT_PAUSE,
    ACT_RESUME,
    ACT_SWEEP, /* an owner's rows that lag are put right */
};

struct act {
    enum act_kind kind;
    uint32_t of;                    /* which instance, from 0 */
    const char *name;               /* the action or signal */
    const char *payload;            /* JSON */
    const char *reason;             /* FIRE */
    bool guard;                     /* FIRE: it is asserted */
    bool expects;                   /* FIRE: with expected_sequence, the number of the next entry */
    pawl_status refusal;            /* what it is answered with instead, whenever it is done */
    int64_t by_ms;                  /* ADVANCE */
    const char *source;             /* DEFINE: NULL is the scenario's */
    uint32_t version;               /* DEFINE: what it becomes; 0 is 1 */
    const pawl_create_args *create; /* CREATE: NULL is the scenario's definition and input */
    const struct act *fires;        /* BATCH */
};

struct scenario {
    const char *name;
    bool own;
    const char *definition; /* its name; NULL: inline declarations alone */
    const char *source;     /* NULL: code, which is registered, or inline */
    const char *input;
    const struct act *acts;
    const char *ends[INSTANCES_MAX]; /* the state that each must end in; NULL: no more of them */
    uint32_t entries[INSTANCES_MAX]; /* at least; */
    bool is_exact; /* and never more: attempts of a flow may be lost and made again */
    const char *shows[SHOWS_MAX]; /* what instance.get must show of the first one then */
    const char *declaration;      /* of the first one, byte for byte; NULL: it has a name */
    int64_t held_ms; /* every state that is left by a timer has been held for so long, at least */
};

extern const struct scenario scenarios[]; /* ends with a zero row */
const struct scenario *scenario_find(const char *name);

/* One instance, as it was seen. */
struct seen {
    char id[27];    /* "": not there yet */
    uint32_t count; /* entries seen */
    char hashes[ENTRIES_MAX][65];
    uint32_t promised; /* entries that a PAWL_OK stands for */
    uint32_t room;     /* entries that may be there beyond those known of: the last act may have
                          happened, or time was moved */
    bool has_heard;    /* the signal is in the history */
    bool is_held;      /* it is paused, */
    bool may_turn;     /* or may not be: the last act may have happened */
};

struct witness {
    const struct scenario *scenario;
    char url[128];
    const struct heap *heap; /* NULL: libc's */
    struct env *env;         /* of the pawl that is open */
    int64_t newest_ms;       /* with jumps: the wall clock when the last instance was created */
    uint64_t jumps;          /* not 0: the wall clock counts, and jumps before each act; a seed */
    pawl *p;
    uint32_t next; /* act */
    struct seen instances[INSTANCES_MAX];
    uint32_t version;   /* of the definition: acknowledged or seen */
    bool is_open;       /* the last act may have happened */
    bool is_late;       /* time was moved, and what fell due may not have been fired yet */
    bool looks_closely; /* also at what was seen before */
    uint32_t refusals;  /* acts that failed, in all */
    uint32_t unknowns;  /* of them with OUTCOME_UNKNOWN */
};

void witness_init(struct witness *w, const struct scenario *scenario, const char *url);

/* Open a pawl and register tools and code. Any honest failure is returned, and then w->p is NULL.
 */
pawl_status witness_open(struct witness *w);
void witness_close(struct witness *w);

/* Do the acts, until all are done or `refusals_max` have failed. */
void witness_act(struct witness *w, uint32_t refusals_max);

/* A host's loop, which comes by anyway. */
pawl_status witness_sweep(struct witness *w);

/* Without faults from here on: look, move time until it has ended, and check everything. */
void witness_finish(struct witness *w);

/* Look at the store; false where it can not be read. */
bool witness_look(struct witness *w);

#endif
