/* live_rows.h - live rows: what the entries of an instance leave behind, and how one entry changes
 * it.
 *
 * A live row says what is true now: a step under way, a timer, a wait, a child, a pause. Effects
 * (effect.h) become changes of rows in live_change_of() alone; the engine, import, verify and
 * rebuild use it, and both stores apply the changes. */
#ifndef PAWL_MODEL_LIVE_ROWS_H
#define PAWL_MODEL_LIVE_ROWS_H

#include "model/effect.h"

/* ---- The rows of one instance, as a store returns them ---- */

struct live_step {
    uint32_t ordinal, plan, attempt;
    enum step_status status;
    str lease; /* of a worker elsewhere: its token's hash, in old rows its token; data NULL: none */
    int64_t lease_ms;
    int64_t ready_at_ms; /* the time of the entry that made it ready; 0: it is not ready */
};
struct live_timer {
    uint64_t instance;
    uint32_t ordinal;
    str name;
    int64_t due_at_ms;
    uint32_t definition; /* of its instance, where due() tells of it; else 0 */
    bool wall;           /* due by the wall clock */
    int64_t shift_ms;    /* how far its due time has moved, with the store's clock */
};
struct live_wait {
    uint32_t ordinal;
    str name;
    str value; /* JSON; data NULL: none */
};
struct live_child {
    uint64_t child, parent; /* numbers */
    uint32_t ordinal;
    bool abandon, ended;
};

struct live {
    struct live_step *steps;
    struct live_timer *timers;
    struct live_wait *waits;
    struct live_child *children;
    uint32_t step_count, timer_count, wait_count, child_count;
    uint64_t paused_pos; /* of the pause record, while it is held; 0: it is not */
};

/* ---- Changes ---- */

enum live_change_kind {
    LIVE_STEP_PUT,
    LIVE_STEP_DELETE, /* with its timers, waits and child */
    LIVE_TIMER_PUT,
    LIVE_TIMER_DELETE,
    LIVE_WAIT_PUT,
    LIVE_WAIT_DELETE,
    LIVE_PAUSE_PUT,
    LIVE_PAUSE_DELETE,
    LIVE_CHILD_PUT,
    LIVE_CHILD_ENDED, /* the instance itself has ended; no parent need wait for it */
    LIVE_CLEAR,       /* all rows of the instance, but not that it is a child */
};
/* LIVE_CLEAR: rows that there may be; the others need not be looked for. */
enum live_rows {
    ROWS_STEPS = 1,
    ROWS_TIMERS = 2,
    ROWS_WAITS = 4,
    ROWS_CHILDREN = 8,
    ROWS_PAUSE = 16,
    ROWS_ALL = 31
};

/* A row is found by its instance, kind, ordinal and name. One that is put has the rest, too. */
struct live_change {
    enum live_change_kind kind;
    uint64_t instance;
    uint32_t ordinal;
    str name; /* timers and waits */
    union {   /* by kind */
        struct {
            uint32_t plan, attempt;
            enum step_status status;
            str lease; /* of a worker elsewhere: its token's hash; data NULL: none */
            int64_t lease_ms;
            int64_t ready_at_ms; /* since when it is ready; 0: it is not */
            bool is_bare;        /* STEP_DELETE: it has no timers and waits to go with it */
        } step;
        struct {
            int64_t due_at_ms;
            int64_t shift_ms; /* of a rebuild or an import: moved by so much since it was armed */
            bool wall;        /* due by the wall clock */
            bool test;        /* of a test instance: never due by itself */
        } timer;
        struct {
            str value; /* JSON, what a broadcast's filter is compared with; data NULL: none */
        } wait;
        struct {
            uint64_t number; /* the child's; `instance` is its parent's */
            bool is_abandoned; /* it outlives its parent */
        } child;
        struct {
            uint64_t pos;   /* of its record */
            bool ends_runs; /* a caller asked for it: what runs and may be repeated ends */
        } pause;
        unsigned rows; /* CLEAR: of enum live_rows; 0 is all */
    };
};

/* The change that an effect of an entry about this step (plan index + 1; 0: none) and attempt
 * makes; false: none. The instance, and whether it is a test, are the caller's to fill in. */
bool live_change_of(const struct effect *effect, uint32_t step, uint32_t attempt, int64_t at_ms,
                    struct live_change *out);

#endif
