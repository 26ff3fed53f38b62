/* definition.h - a compiled definition: states, transitions, and the behavior's plan.
 *
 * A definition version is two things: `source`, the bytes as supplied, and
 * `compiled`, the canonical JSON text that definition_print() writes and the store
 * keeps. At run time only the compiled text is read (definition_load()), so a newer
 * compiler can't reinterpret an old history. An entry names its transition by its
 * index in `transitions`: an undeclared transition cannot even be written down. */
#ifndef PAWL_MODEL_DEFINITION_H
#define PAWL_MODEL_DEFINITION_H

#include "base/buf.h"
#include "base/node.h"
#include "base/scope.h"

/* Goes up when the same source would compile, or its history read, differently. 2: leases in
 * entries, wall-clock times, `cancel: false`. 3: the meanings that docs/format.md lists under
 * "Compilers". */
#define COMPILER_NUMBER 3

enum definition_kind { KIND_UNKNOWN, KIND_MACHINE, KIND_FLOW, KIND_CODE };
enum terminal_kind {
    TERMINAL_NOT,
    TERMINAL_PLAIN,
    TERMINAL_SUCCESS,
    TERMINAL_FAILURE,
    TERMINAL_CANCEL
};

/* How an instance is doing. ANY is no status: of one that has not ended, or in a query. */
enum instance_status {
    STATUS_ANY,
    STATUS_RUNNING,
    STATUS_SUSPENDED,
    STATUS_PAUSED,
    STATUS_COMPLETED,
    STATUS_FAILED,
    STATUS_CANCELLED,
    STATUS_COUNT
};
const char *instance_status_name(enum instance_status status); /* not of ANY */
bool instance_status_read(str name, enum instance_status *out);
/* Of one that is in a state of this kind; a terminal state without a kind counts as completed. */
enum instance_status instance_status_ended(enum terminal_kind terminal);

struct state {
    str name;
    enum terminal_kind terminal; /* PLAIN: terminal without a kind (inline machines only) */
};

struct transition {
    uint32_t from, to; /* indices of states */
    str action;
    str guard; /* data NULL: none */
    bool requires_reason;
    bool by_engine; /* a caller who fires it gets invalid-transition */
    str starts;     /* machines: JSON {definition, input}: started with it; data NULL: nothing */
};

/* When `state` has been held for `after_ms`, `transition` is fired; machines alone have them. */
struct deadline {
    uint32_t state, transition; /* indices */
    str name;                   /* of its timer: the transition's action */
    int64_t after_ms;
};

struct definition {
    enum definition_kind kind;
    uint32_t compiler;
    struct state *states;
    uint32_t state_count, initial;
    struct transition *transitions;
    uint32_t transition_count;
    struct deadline *deadlines; /* in the order of their declaration */
    uint32_t deadline_count;
    uint32_t *exits;      /* transition indices ordered by (from, index) ... */
    uint32_t *exit_start; /* ... those of state s are exits[exit_start[s] .. exit_start[s + 1]) */
    unsigned live_rows;   /* of enum live_rows: what its flows or code may have; known when its
                             plan is loaded */
    str plan_text;        /* the behavior's part of the compiled text, JSON; data NULL: none */
    str input_text;       /* the schema of its input, JSON; data NULL: none */
    const struct node *input_schema; /* the same as a tree; NULL: none */
    void *_Atomic plan;   /* the plan, loaded by the behavior; for code: its registration, which may
                             come while others look */
};

/* Fill `exits` and `exit_start` after states and transitions are set. */
pawl_status definition_index(struct definition *definition, struct scope *scope);

/* The canonical text: {"compiler":3,"kind":"machine","states":[{"name":"a"},{"name":"z",
 * "terminal":"success"}],"initial":0,"transitions":[{"from":0,"action":"go","to":1,
 * "guard":"g","requires_reason":true,"by":"engine"}],"deadlines":[{"state":0,"after":1000,
 * "transition":0}],"plan":{...},"input":{...}}; members that are absent, empty `deadlines`, false
 * or "caller" are left out; a terminal without a kind has "terminal":"plain". */
void definition_print(const struct definition *definition, struct buf *out);

/* Read a canonical text. The result and all it points to live in scope->arena; the
 * behavior's plan is not loaded. STORAGE_FAILURE if it is not one (the store is damaged). */
pawl_status definition_load(struct scope *scope, str compiled, struct definition **out);

uint32_t definition_find_state(const struct definition *definition,
                               str name); /* UINT32_MAX: none */

/* The transition for (state, action), or NULL. Engine's transitions are found too. */
const struct transition *definition_find(const struct definition *definition, uint32_t state,
                                         str action);

/* The first unguarded transition from `state` into a terminal of kind cancel, or NULL. */
const struct transition *definition_find_cancel(const struct definition *definition,
                                                uint32_t state);

uint32_t definition_transition_index(const struct definition *d, const struct transition *t);

/* "pay, drop": the actions a caller may fire from `state`, or "none". */
void definition_legal_actions(const struct definition *definition, uint32_t state, struct buf *out);

const char *definition_kind_name(enum definition_kind kind); /* "machine", "flow", "code" */
enum definition_kind definition_kind_read(str name);
const char *
terminal_kind_name(enum terminal_kind terminal); /* "success", ...; NULL for NOT and PLAIN */
bool terminal_kind_read(str name, enum terminal_kind *out); /* as the compiled text has it */
bool definition_name_is_valid(str name);         /* 1..128 of A-Za-z0-9._/- */

/* NAME or NAME@VERSION: the name, whatever is behind the mark; and both. Version 0: none is given.
 * False: what is behind the mark is no version. The name may still be none. */
str reference_name(str reference);
bool reference_split(str reference, str *name, uint32_t *version);

/* The lifecycle that flows and code share, in this order; their entries name it by index. */
#define LIFECYCLE_STATES(X)                                                                        \
    X(CREATED, "created", TERMINAL_NOT)                                                            \
    X(RUNNING, "running", TERMINAL_NOT)                                                            \
    X(COMPLETED, "completed", TERMINAL_SUCCESS)                                                    \
    X(FAILED, "failed", TERMINAL_FAILURE)                                                          \
    X(CANCELLED, "cancelled", TERMINAL_CANCEL)

/* name, action, from, to, fired by the engine alone? Order is part of the format:
 * new ones go to the end. */
#define LIFECYCLE_TRANSITIONS(X)                                                                   \
    X(START, "start", CREATED, RUNNING, true)                                                      \
    X(STEP_START, "step.start", RUNNING, RUNNING, true)                                            \
    X(STEP_COMPLETE, "step.complete", RUNNING, RUNNING, true)                                      \
    X(STEP_FAIL, "step.fail", RUNNING, RUNNING, true)                                              \
    X(STEP_RETRY, "step.retry", RUNNING, RUNNING, true)                                            \
    X(STEP_TIMEOUT, "step.timeout", RUNNING, RUNNING, true)                                        \
    X(GATE_APPROVE, "gate.approve", RUNNING, RUNNING, true)                                        \
    X(GATE_REJECT, "gate.reject", RUNNING, RUNNING, true)                                          \
    X(TIMER, "timer", RUNNING, RUNNING, true)                                                      \
    X(SIGNAL, "signal", RUNNING, RUNNING, true)                                                    \
    X(CHILD, "child", RUNNING, RUNNING, true)                                                      \
    X(AMEND, "amend", RUNNING, RUNNING, true)                                                      \
    X(FINISH, "finish", RUNNING, COMPLETED, true)                                                  \
    X(FAIL, "fail", RUNNING, FAILED, true)                                                         \
    X(CANCEL, "cancel", RUNNING, CANCELLED, false)                                                 \
    X(CANCEL_CREATED, "cancel", CREATED, CANCELLED, false)                                         \
    X(GATE_WAIT, "gate.wait", RUNNING, RUNNING, true)                                              \
    X(COMPENSATE, "compensate", RUNNING, RUNNING, true)                                            \
    X(CLEAN_UP, "clean-up", RUNNING, RUNNING, true)

enum lifecycle_state {
#define X(name, text, terminal) LIFE_##name,
    LIFECYCLE_STATES(X)
#undef X
        LIFE_STATE_COUNT
};

enum lifecycle_transition {
#define X(name, action, from, to, engine) LIFE_T_##name,
    LIFECYCLE_TRANSITIONS(X)
#undef X
        LIFE_T_COUNT
};

/* Does an entry of this transition end its step with an error? */
bool lifecycle_is_failure(uint32_t transition);
/* Does it end what is live, without a result? */
bool lifecycle_is_stop(uint32_t transition);

/* Give a flow's or code's definition the states and transitions above, indexed. */
pawl_status definition_set_lifecycle(struct definition *definition, struct scope *scope);

#endif
