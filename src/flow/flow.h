/* flow.h - the behavior whose steps the engine runs.
 *
 * Pure: no clock, no store, no I/O. See model/decision.h for the port. Graphs (seed 001) and
 * trees (seed 002) compile to one plan, which one reducer runs. */
#ifndef PAWL_FLOW_FLOW_H
#define PAWL_FLOW_FLOW_H

#include "machine/machine.h"

/* Compile a document with `steps`, a bare map with an object under `start`, a group (`do`, `dopar`,
 * `try`), or one leaf. */
pawl_status flow_compile(struct scope *scope, const struct node *document,
                         struct findings *findings, struct definition **out);

/* Do the keys of an object say that it is a flow? */
bool flow_is_flow(const struct node *document);

/* What a runner needs to take a ready attempt to its tool. Its texts are copies in the scope that
 * flow_call() was given: none points into the memory or its plan, which go with their actor. */
struct flow_call {
    str step;                        /* name */
    str tool;                        /* data NULL: none */
    str args;                        /* JSON, templates replaced */
    uint32_t attempt, first_ordinal; /* of the first attempt: its idempotency key is ID.N ... */
    str key;                         /* ... unless it was given this one; else data NULL ... */
    str own_key;                     /* ... or has its own, which makes it ID:KEY; else data NULL */
    int64_t timeout_ms;              /* how long a runner may take */
    bool is_timed;                   /* the step has a timer of its own for that */
    bool is_idempotent;              /* it may be run again after it was ended */
    bool is_once;                    /* it must not, even if its time was over */
    str type;                        /* of code: its name, ... */
    uint32_t number;                 /* ... the number of the call, ... */
    uint64_t mark;                   /* ... and what its turns have seen (code/code.h) */
};
pawl_status flow_call(const struct definition *definition, const void *memory, uint32_t ordinal,
                      struct scope *scope, struct flow_call *out);

/* The limits of an attempt, in the order in which they are taken: those of what works at once, then
 * rates; of the flow's instances, then of the step. They follow from the input, so that they are
 * the same whenever they are asked for. */
struct flow_quota {
    uint32_t max;
    int64_t per_ms;  /* a rate: so many may begin within this; 0: so many may work at once */
    bool is_of_flow; /* it counts instances, else calls of the step */
    str step;        /* its name; data NULL: of the flow */
    str key;         /* JSON; data NULL: one for all */
};
#define FLOW_QUOTAS 4u
struct flow_quotas {
    struct flow_quota items[FLOW_QUOTAS];
    uint32_t count;
    int32_t priority; /* the higher goes first */
};
bool flow_has_quotas(const struct definition *definition, const void *memory);
bool flow_definition_has_quotas(
    const struct definition *definition);                        /* false: it is no flow, too */
bool flow_counts_instances(const struct definition *definition); /* how many work at once */
int64_t flow_rate_span_ms(const struct definition *definition);  /* of its longest rate; 0: none */
/* Texts are copies in the scope. By a memory, of a live attempt; or by the definition in force. A
 * priority that is no number is 0. NO_MEMORY. */
pawl_status flow_quotas(const void *memory, uint32_t ordinal, struct scope *scope,
                        struct flow_quotas *out);
pawl_status flow_quotas_of(const struct definition *definition, uint32_t plan_index, str input,
                           struct scope *scope, struct flow_quotas *out);

/* The tool of a live attempt that is taken to one; data NULL: none. */
str flow_tool_of(const struct definition *definition, const void *memory, uint32_t ordinal);

/* The child that a live attempt had in the instance that this one runs again; data NULL: none. */
str flow_child_before(const void *memory, uint32_t ordinal);

/* Step names for people: of a plan index. */
str flow_step_name(const struct definition *definition, uint32_t plan_index);
str flow_step_tool(const struct definition *definition, uint32_t plan_index); /* NULL: none */
/* What its declaration names as tool, also where no tool is called. */
str flow_plan_tool(const struct definition *definition, uint32_t plan_index);
/* The tool of a leaf that is called by its path; data NULL: it has a name, or calls none. */
str flow_unnamed_tool(const struct definition *definition, uint32_t plan_index);
/* The kind of a leaf that is called by its path and calls no tool: gate, wait, ...; else NULL. */
const char *flow_unnamed_kind(const struct definition *definition, uint32_t plan_index);
uint32_t flow_step_count(const struct definition *definition);
bool flow_has_step(const struct definition *definition, str name);
/* What a pending step waits for, as `why` says it: "approval", "step" (another program), "child".
 * NULL: its timers and signals say so. */
const char *flow_step_why(const struct definition *definition, uint32_t plan_index);
/* How often it is tried at most; 0: not known. */
uint32_t flow_step_attempts(const struct definition *definition, uint32_t plan_index);
#define MCP_DEFINITION "pawl.mcp" /* of which a step with `tool: mcp` is an instance */
#define GATE_COMPILER 3 /* from this compiler on, an entry says that a gate waits */
/* Who may decide a gate, and how many have to: {"by":[NAME],"count":N}; `by` null: any actor. */
void flow_print_approval(const struct definition *definition, uint32_t plan_index, struct buf *out);
bool flow_gate_asks(const struct definition *definition, uint32_t plan_index); /* a question */
/* From where a flow may be cancelled; NOT_FROM: not while a live step bars it. After an amend, pass
 * the definition in force. */
enum cancel_rule { CANCEL_ALWAYS, CANCEL_NOT_FROM, CANCEL_NEVER };
enum cancel_rule flow_cancel_rule(const struct definition *definition);
/* Has it compensations, or a `finally`? Then a cancel may not end it at once. */
bool flow_undoes(const struct definition *definition);
bool flow_step_bars_cancel(const struct definition *definition, uint32_t plan_index);

/* After an amend: the definition as it is in force, its plan being that of `definition` and the
 * amend's (whose entry has these effects) together. Indices of steps mean the same in both. */
pawl_status flow_amended(struct scope *scope, const struct definition *definition,
                         const struct effect_list *effects, struct definition **out);
/* What the select `name` waits for in `from` and no arm of it in `to`: "signal paid", "timer 3d".
 * NO_MEMORY. */
struct flow_lost_arms {
    str *texts;
    uint32_t count;
};
pawl_status flow_lost_arms(struct scope *scope, const struct definition *from,
                           const struct definition *to, str name, struct flow_lost_arms *out);
/* The name of a step by the plan that a memory goes by. */
str flow_step_name_now(const void *memory, uint32_t plan_index);
/* Does anything in it ask for the result of this step? */
bool flow_wants_result(const struct definition *definition, str name);
struct flow_attempt;
/* What the arguments of a step are made from, beside the input and what the instance is: the last
 * results of some steps, or, where that is not enough, the whole memory. */
struct flow_sources {
    bool is_whole;
    uint32_t *steps; /* plan indices, ascending */
    uint32_t count;
};
pawl_status flow_sources(const struct definition *definition, uint32_t plan_index,
                         struct scope *scope, struct flow_sources *out);
/* Does the entry have the result of the step that it names? Of a flow. */
bool flow_has_result(const struct entry_view *entry);
/* The number of the entry with the last result of a step; 0: it has none. FLOW_DONE_UNKNOWN: the
 * memory does not know. */
#define FLOW_DONE_UNKNOWN UINT32_MAX
uint32_t flow_done(const void *memory, uint32_t plan_index);
/* Puts the result of a step into a memory, as folding entry `seq` does, and an attempt that is
 * live. With these alone a memory answers flow_call(). */
pawl_status flow_recall(void *memory, uint32_t plan_index, str result, uint32_t seq,
                        struct scope *scope, struct arena *arena);
pawl_status flow_recall_live(void *memory, const struct flow_attempt *attempt, struct scope *scope,
                             struct arena *arena);
/* The last result of the step of this index in `attempts`; NULL: it has none. */
struct flow_attempts;
const struct flow_attempt *flow_last_result(const struct flow_attempts *attempts, uint32_t plan_index);

/* The paths of the input that its templates read and `input` does not have, each once, with the
 * first step that reads it; at most `max`. They are replaced by "". */
struct input_gap {
    str path, step;
};
uint32_t flow_input_gaps(struct scope *scope, const struct definition *definition, str input,
                         struct input_gap *out, uint32_t max);

/* Is a signal of this name kept until a step awaits it? */
bool flow_keeps(const struct definition *definition, str signal);
/* Does anything in it look at what the instance is? Then its memory has to be introduced. */
bool flow_asks_instance(const struct definition *definition);

/* For a caller that runs a graph without an engine: the running attempt `ordinal`, of whatever
 * kind, is over with this result. What it begins, or the end. */
pawl_status flow_after(const struct definition *definition, const struct standing *standing,
                       uint32_t ordinal, str result, struct scope *scope, struct decision *out);
const char *flow_step_kind(const struct definition *definition, uint32_t plan_index);
bool flow_step_is_joined(const struct definition *definition, uint32_t plan_index);

/* For a caller that runs a tree without an engine: nodes are numbered depth first from 0.
 * UINT32_MAX: not in a tree. */
uint32_t flow_step_node(const struct definition *definition, uint32_t plan_index);
uint32_t flow_step_at(const struct definition *definition, uint32_t node);
bool flow_step_is_taken(const struct definition *definition, uint32_t plan_index);
uint32_t flow_live_ordinal(const void *memory, uint32_t plan_index); /* 0: it is not live */
void flow_mark_live(const void *memory, bool *is_live); /* by step; those that are become true */
void flow_print_context(const void *memory, struct buf *out);
/* The value of one of its `queries`, JSON; `state` is that of the instance. NOT_KNOWN: it has no
 * such query; INVALID_REQUEST: its expression fails; NO_MEMORY, STORAGE_FAILURE. */
pawl_status flow_query(const void *memory, str name, str state, struct scope *scope, str *out);
/* A tree that goes on, and whose end is known all the same: a branch has failed beside others, or
 * what a finally follows (C13, X17). */
bool flow_must_fail(const void *memory);

/* What a new instance is given (`event.given` of its START) to run one again that has failed or was
 * cancelled. CONFLICT: nothing is left to do; INVALID_REQUEST: not by this definition, or not from
 * there; TOO_LARGE. */
struct flow_attempts;
struct flow_redrive {
    const void *memory; /* that one's at its end */
    const struct flow_attempts *attempts;
    str retry_of;                        /* its id */
    str before;                          /* what it was given itself; data NULL: nothing */
    str from;                            /* a step to begin at; data NULL: where it ended */
    const struct definition *definition; /* that the new one runs */
    bool is_other;                       /* ... which is not the one that the first ran */
};
pawl_status flow_redrive(struct scope *scope, const struct flow_redrive *args, str *out);

/* Attempts in creation order, folded from the history by the caller: it feeds entries in order.
 * With `max` it keeps a window of so many behind ordinal `after`, from an entry on that has not
 * created any of them. With `is_sparse` it keeps what an amend or a redrive asks for, which does
 * not grow with the history: live attempts, unfinished ones that were not retried, of each step the
 * last and the last that is done, and what those began. Without both, every attempt. A window, and
 * what `is_sparse`, has no results and errors: `ended_pos` and `ended_seq` say which record has
 * them. */
struct flow_attempt {
    uint32_t ordinal, plan, attempt;
    uint32_t begun_by; /* the ordinal of the attempt whose entry created it; 0: none */
    uint32_t first;    /* not of a window: the ordinal of the first attempt of its round ... */
    uint32_t round;    /* ... and how many rounds of its step were before this one */
    bool is_retried;   /* not of a window: another attempt of its round came after it */
    enum step_status status;
    uint32_t made_seq; /* the number of the entry that created it ... */
    uint64_t made_pos; /* ... and where that is, if `pos` of the attempts says so */
    int64_t created_at_ms;
    int64_t ready_at_ms, started_at_ms, completed_at_ms; /* 0: not yet */
    str result, error;                                   /* JSON; data NULL: none */
    str child; /* not of a window: the id of the last child that it waited for; data NULL: none */
    uint64_t ended_pos; /* of the entry that ended it; 0: none, or an end of the instance */
    uint32_t ended_seq; /* ... and its number */
    bool is_left_out;   /* of attempts.c */
};
struct flow_attempts {
    struct flow_attempt *items;
    uint32_t count, capacity;
    uint32_t after, max;
    uint32_t live;  /* of those that are kept, how many have not ended */
    uint64_t pos;   /* where the entry is that is fed next */
    bool is_sparse;
    uint32_t sparse_next; /* of attempts.c: as many are let be */
    uint32_t made;  /* not of a window: the last ordinal */
    struct flow_step_past {
        uint32_t last, done; /* ordinals of its last attempt and its last done one; 0: none */
        uint32_t rounds;
    } *steps; /* not of a window: by plan index */
    uint32_t step_count, step_capacity;
};
/* What an attempt comes to that an entry of this transition ends: done or failed. */
enum step_status flow_end_status(uint32_t transition);
/* Does an entry of this transition end the instance? What is live then is cancelled. */
bool flow_is_end(uint32_t transition);
pawl_status flow_attempts_apply(struct scope *scope, struct flow_attempts *attempts,
                                const struct entry_view *entry);

#endif
