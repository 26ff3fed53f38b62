/* memory.h - what a flow instance remembers between entries: folded from them, nothing else.
 *
 * Its size depends on the plan and on what is live, never on how long the history is. */
#ifndef PAWL_FLOW_MEMORY_H
#define PAWL_FLOW_MEMORY_H

#include "flow/context.h"
#include "flow/plan.h"

/* The engine's own timers; no step's name begins with '~'. */
#define TIMER_TIMEOUT STR("~timeout")
#define TIMER_RETRY   STR("~retry")
#define TIMER_WORKER  STR("~worker") /* while it is ready: wait_for_worker */

/* Where rescue and finally find what went wrong (C27). */
#define CONTEXT_LAST_ERROR STR("exec/last-error")

struct attempt {
    uint32_t plan, ordinal, attempt, first_ordinal; /* first: of its step's first attempt */
    str key;                 /* idempotency key that it was given; data NULL: its first ordinal */
    enum step_status status; /* PENDING, READY or RUNNING */
    bool is_backing_off;                            /* waits for its retry */
    uint32_t map, item; /* of an item: the ordinal of its map's attempt, 0: none; its index */
};

/* Written over in place, so that a loop stays bounded. */
struct kept_text {
    char *data; /* JSON; NULL: none yet */
    size_t size, capacity;
    uint32_t seq; /* > 0: it is the payload of this entry, and not here (kept_text.c) */
};

/* How far an item has come in a map of several steps: item_way.c. */
struct passed {
    uint32_t plan; /* this step is done, with this result */
    struct kept_text text;
    struct passed *next;
};
struct item_way {
    uint32_t plan, ordinal; /* of the attempt that began last; 0: none in this instance yet */
    str key;                /* its idempotency key, if it was given one */
    struct passed *passed;
    bool is_begun; /* `plan` is known: here or in the instance that this one runs again */
};

/* The items of a map that is under way, or has failed: map_items.c. */
enum map_item_end { MAP_OPEN, MAP_DONE, MAP_FAILED };
struct map_state {
    uint32_t ordinal, plan;
    str over; /* the list, JSON */
    str *items;
    uint8_t *ends;             /* by item: enum map_item_end */
    struct kept_text *results; /* by item: its result, or its error */
    struct item_way *ways;     /* by item; NULL: one step is done for each */
    uint32_t count, begun, live, ended,
        failed; /* begun: those before it have begun, or were done */
    bool is_over;
};
/* What is to be undone, in the order in which it was done: undo.c. */
struct undo {
    uint32_t plan; /* of the compensation */
    str args;      /* JSON: what it is called with */
};
enum undoing { UNDO_NOT, UNDO_FAILING, UNDO_CANCELLING };

/* What an instance that is run again had done of a map. */
struct given_map {
    uint32_t plan;
    str items; /* JSON: [[INDEX,RESULT],...] */
};

/* The idempotency key that a step has when it begins: it did not finish in the instance that this
 * one runs again. */
struct given_key {
    uint32_t plan;
    str key;
};

/* Something a live attempt waits for, in the order in which it began to. */
struct live_arm {
    uint32_t ordinal;
    uint32_t index; /* of the arm in the plan in force; an amend may have moved it */
    bool is_timer;
    str name;
    str value; /* of a signal, for a broadcast's filter, JSON; data NULL: none */
};

/* A signal that came before a step awaited it. */
struct approval {
    uint32_t ordinal;
    str approver; /* data NULL: did not say */
};

struct node_state {
    uint32_t at; /* DO: which child; DOPAR: how many are open; TRY: which part */
    bool is_open, has_failed;
    bool is_stopping; /* cancelled, or out of time: nothing forward begins in it (tree_stop.c) */
    uint32_t error; /* row of tree_errors with what failed it, from 1; 0: none */
};

/* What failed the groups that are still open (compiler 3): a dopar until it is settled, a try for
 * its rescue and its finally. An error is in one row at a time: it moves up with the failure. */
struct error_row {
    struct kept_text text;
    uint32_t next_free; /* of a row that is free, as `free` */
};
struct tree_errors {
    struct error_row *rows;
    uint32_t count, capacity, free; /* free: the first free row, from 1; 0: none */
};

struct flow_memory {
    const struct plan *plan; /* in force: the definition's, or what an amend made of it */
    bool is_amended;
    str instance; /* JSON: what it is; data NULL: not known yet */
    str input; /* JSON; data NULL: none */
    uint32_t ordinal_last;
    struct attempt *live; /* by ordinal */
    struct live_arm *arms;
    struct approval *approvals;
    struct kept_signal *signals; /* oldest first */
    uint32_t signal_count, signal_capacity;
    uint32_t live_count, live_capacity, arm_count, arm_capacity;
    uint32_t approval_count, approval_capacity;
    struct given_key *keys; /* of steps that have not begun yet, in order */
    uint32_t key_count, key_capacity;
    struct undo *undos;
    uint32_t undo_count, undo_capacity;
    enum undoing undoing;
    struct kept_text undo_error;     /* UNDO_FAILING: what the flow fails with */
    str cancel_actor, cancel_reason; /* UNDO_CANCELLING; data NULL: not supplied */
    struct map_state *maps;
    uint32_t map_count, map_capacity;
    struct passed *spare_passed; /* of items that are done */
    struct given_map *given_maps;
    uint32_t given_map_count, given_map_capacity;
    uint32_t live_skip;          /* places before `live` that are free */
    struct kept_text *results;   /* by result_slot */
    uint32_t *done; /* by step: the entry that has its last result; 0: it has none. NULL: not known,
                     * because the memory was loaded from a snapshot that does not say */
    struct flow_context *context;
    struct kept_text last_error; /* trees: of the last step that failed for good */
    struct node_state *nodes;    /* trees, by node */
    struct tree_errors errors;   /* trees */
    size_t kept_size;                      /* of the results and errors that are kept as text */
    const struct payload_source *payloads; /* reads those that are not; NULL: all are kept */
    bool is_cancelling; /* what is cleaned up now ends with `cancel`, by cancel_actor */
    bool *joins; /* graphs, by step: a branch has arrived, and it waits for others */
    uint32_t join_count;
};

static inline str kept_view(const struct kept_text *kept)
{
    return kept->seq == 0 && kept->data ? (str){ kept->data, kept->size } : STR_NONE;
}

static inline bool kept_is_there(const struct kept_text *kept)
{
    return kept->data || kept->seq > 0;
}

/* The live attempt with this ordinal, else NULL. */
const struct attempt *memory_find(const struct flow_memory *memory, uint32_t ordinal);

/* The index of the attempt's arm of this name, or ARM_NONE. */
#define ARM_NONE UINT32_MAX
uint32_t memory_find_arm(const struct flow_memory *memory, uint32_t ordinal, bool is_timer,
                         str name);

/* ---- The walk through a tree: tree.c --------------------------------------------- */

enum settled { TREE_GOES_ON, TREE_SUCCEEDED, TREE_FAILED };

/* What is not begun again when a flow is run once more: redrive.c. */
enum redo_outcome { REDO_OPEN, REDO_DONE, REDO_FAILED };
struct tree_redo {
    uint8_t *outcomes; /* by node: enum redo_outcome */
    uint32_t *arms;    /* by node: of a select that had its arm; else NODE_NONE */
};
pawl_status redo_fail_nothing(struct scope *scope);
pawl_status redo_read(struct scope *scope, const struct plan *plan, const struct node *given,
                      struct tree_redo **out);

/* The states of all nodes, of which those are copied, page by page, that a decision looks at: a
 * wide tree has thousands, and a step's end concerns a few. */
struct node_pages {
    const struct node_state *states;
    uint32_t count;
    struct node_state **pages; /* NULL: not copied */
    struct arena *arena;       /* which fails if there is no memory; then the states mean nothing */
    struct node_state spare;
};
bool node_pages_init(struct node_pages *pages, const struct plan *plan,
                     const struct node_state *states, struct arena *arena);

/* One walk serves deciding (on a copy of the states, beginning steps) and folding (on the
 * memory itself, where the entries say which steps begin): both see the same tree. */
struct tree_walk {
    const struct plan *plan;
    struct node_state *states; /* the memory's; NULL: the copy is changed instead */
    struct node_pages *copy;
    void (*begin)(void *context, uint32_t step); /* NULL: only the states count */
    /* The step of a group is over, and what failed it (NULL: *error). True: it is tried again. */
    bool (*over)(void *over_context, uint32_t step, bool is_success, const struct kept_text *held);
    void *over_context;
    bool (*stays)(void *stops, uint32_t step);   /* tree_stop(): is its end awaited? Else it ends */
    void *stops;
    void *context;
    const struct tree_redo *redo; /* NULL: everything is to be done */
    struct tree_errors *errors;   /* NULL: nothing is kept, as before compiler 3 */
    struct arena *arena;          /* for what is kept; it has failed: no memory */
    str *error;              /* of the step that failed, ... */
    uint32_t error_seq;      /* ... which a memory may leave in this entry; 0: not */
    struct kept_text *ended; /* out: what failed the tree, if it was kept; may be NULL */
};

/* The compilers from which on a version means it so: docs/format.md, "Compilers". */
#define COMPILER_ERRORS_OF_TRIES  3 /* each try has its error */
#define COMPILER_NAMED_CONDITIONS 3 /* a condition that fails is named with its step */
#define COMPILER_CANONICAL_VALUES 3 /* values of waits are compared as values */
#define COMPILER_HELD_WORKERS     3 /* `idempotent: false` holds when a worker is gone */

/* tree_error.c: what failed a group moves up with the failure. `holder` is the row where the error
 * lies; 0: it is walk->error. */
void tree_error_keep(const struct tree_walk *walk, uint32_t node, uint32_t *holder);
void tree_error_lift(const struct tree_walk *walk, uint32_t node, uint32_t *holder);
void tree_error_drop(const struct tree_walk *walk, uint32_t node);
void tree_error_forget(const struct tree_walk *walk, uint32_t *holder);
/* Those of a memory, if its version keeps them; before there was one error for all. */
static inline struct tree_errors *tree_errors_of(uint32_t compiler, struct tree_errors *errors)
{
    return compiler >= COMPILER_ERRORS_OF_TRIES ? errors : NULL;
}
/* The tree has failed: walk->ended is what failed it, unless it is the error of the step itself. */
void tree_error_end(const struct tree_walk *walk, uint32_t holder);
bool tree_errors_copy(const struct tree_errors *from, struct arena *arena, struct tree_errors *out);
/* A row with this text, or with the payload of entry `seq` if it is large or not given, from 1; 0:
 * no memory. */
uint32_t tree_errors_add(struct tree_errors *errors, str text, uint32_t seq, struct arena *arena);
/* What a step of a rescue or a finally sees: the error of the innermost try around it that has
 * one; without a text if none has. NULL: it is in neither, or there is one error for all. */
const struct kept_text *tree_last_error(const struct tree_walk *walk, uint32_t node);

/* A state, to be looked at or changed. */
struct node_state *tree_state_of(const struct tree_walk *walk, uint32_t node);
enum settled tree_begin(const struct tree_walk *walk, uint32_t node);
enum settled tree_settle(const struct tree_walk *walk, uint32_t node, bool is_success);
/* The select at `node` has its arm: what stands under it is next. */
enum settled tree_take_arm(const struct tree_walk *walk, uint32_t node, uint32_t arm);

/* tree_stop.c: what is open at `node` and below it ends, and nothing forward begins there any more:
 * only what a `finally` does, and what stays. The state of what fails by it is for the caller:
 * TREE_FAILED: nothing goes on there. */
enum settled tree_stop(const struct tree_walk *walk, uint32_t node);
/* A child of `parent`, which is being stopped, is settled. True: the tree goes on below it. */
bool tree_stop_goes_on(const struct tree_walk *walk, uint32_t parent, uint32_t place, bool *outcome,
                       uint32_t *holder);

/* ---- What is put into the context: augment.c ----------------------------------------- */

/* What went wrong last; a context that would grow past its limit stays as it is. NO_MEMORY. */
pawl_status context_note_error(struct scope *scope, struct flow_context *context, str error,
                               struct arena *arena);
/* What a step's `augment` takes from its result. TOO_LARGE, NO_MEMORY: the context is not to be
 * used. */
pawl_status context_augment(struct scope *scope, const struct plan_step *step,
                            struct flow_context *context, str result, struct arena *arena);

/* ---- The port ----------------------------------------------------------------------- */

void *flow_memory_new(const struct definition *definition, str input, struct arena *arena);
pawl_status flow_apply(const struct definition *definition, void *memory,
                       const struct entry_view *entry, struct scope *scope, struct arena *arena);
pawl_status flow_keep(void *memory, str name, str payload, struct scope *scope,
                      struct arena *arena);
void flow_memory_print(const struct definition *definition, const void *memory, struct buf *out);
pawl_status flow_memory_load(const struct definition *definition, str text, str input,
                             struct scope *scope, struct arena *arena, void **out);

bool flow_introduce(void *memory, const struct identity *identity, struct arena *arena);
struct flow_memory *memory_of_plan(const struct plan *plan, str input, struct arena *arena);
/* redrive.c: what a redrive gives to its new instance. STORAGE_FAILURE: another form. */
pawl_status given_read(struct scope *scope, str text, struct node **out);
pawl_status memory_begin(struct flow_memory *memory, const struct node *given, struct scope *scope,
                         struct arena *arena);

/* amend.c: another plan is in force from now on. */
pawl_status memory_amend(struct flow_memory *memory, const struct entry_view *entry,
                         struct scope *scope, struct arena *arena);
/* Results by step name that the plan did not ask for before. */
pawl_status memory_take_results(struct flow_memory *memory, const struct node *results,
                                struct scope *scope, struct arena *arena);
pawl_status plan_load_into(struct arena *arena, str text, struct scope *scope, struct plan **out);

/* memory_way.c: which arm a select's result tells of. */
uint32_t memory_taken_arm(str result, struct scope *scope);
/* A branch waits at a join, and an attempt of its step begins: the join is complete, unless it is
 * tried again, or the way of `subject`, which ended with `entry`, leads to it. NO_MEMORY. */
pawl_status memory_end_join(struct flow_memory *memory, const struct attempt *subject,
                            const struct entry_view *entry, const struct effect *effect,
                            struct scope *scope);

/* kept_text.c: a text; or the payload of entry `seq` (0: not known), which may stay there. */
bool memory_keep(struct kept_text *kept, str json, struct arena *arena);
bool memory_keep_payload(struct flow_memory *memory, struct kept_text *kept, str json, uint32_t seq,
                         struct arena *arena);
/* The text, read from its entry if it is there; data NULL: no result yet. NO_MEMORY,
 * STORAGE_FAILURE. */
pawl_status memory_text(const struct flow_memory *memory, const struct kept_text *kept,
                        struct scope *scope, str *out);
void flow_attach(void *memory, const struct payload_source *payloads);
/* Is it the fault of the machine, and not of what was decided? */
static inline bool status_is_trouble(pawl_status status)
{
    return status == PAWL_NO_MEMORY || status == PAWL_STORAGE_FAILURE;
}

/* What memory.c and memory_text.c share. */
bool memory_add_live(struct flow_memory *memory, const struct attempt *attempt,
                     struct arena *arena);
bool memory_add_arm(struct flow_memory *memory, const struct live_arm *arm, struct arena *arena);
bool memory_add_approval(struct flow_memory *memory, const struct approval *approval,
                         struct arena *arena);
bool memory_add_given_map(struct flow_memory *memory, const struct given_map *given,
                          struct arena *arena);
bool memory_add_key(struct flow_memory *memory, const struct given_key *key, struct arena *arena);
bool memory_add_signal(struct flow_memory *memory, const struct kept_signal *signal,
                       struct arena *arena);

#endif
