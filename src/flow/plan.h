/* plan.h - what a flow's document is compiled to: one plan for both notations.
 *
 * Steps are the units of work. In a graph each step knows its way on; in a tree the nodes
 * above the steps say what comes next. Everything a step needs when it begins stands in its
 * `args`, templates not yet replaced: a tool's arguments, but also how long to wait, which
 * signal to await. */
#ifndef PAWL_FLOW_PLAN_H
#define PAWL_FLOW_PLAN_H

#include "base/limits.h"
#include "flow/flow.h"
#include "flow/kinds.h"

#define STEP_NONE UINT32_MAX
#define NODE_NONE UINT32_MAX

/* How a graph goes on after a step. A tree's steps have WAY_TREE: their node knows. */
#define WAY_MAP(X)                                                                                 \
    X(DONE, "done")                                                                                \
    X(NEXT, "next")                                                                                \
    X(BRANCH, "branch")                                                                            \
    X(PARALLEL, "parallel")                                                                        \
    X(JOIN, "join")                                                                                \
    X(ARMS, "arms")                                                                                \
    X(TREE, "tree")

enum way_kind {
#define X(name, word) WAY_##name,
    WAY_MAP(X)
#undef X
        WAY_KIND_COUNT
};

struct plan_target {
    uint32_t step;
    str condition;  /* BRANCH, and where an error leads; data NULL: always */
    bool is_quoted; /* ... which compares with the text between its quotes (compiler 3) */
};

struct plan_augment {
    str dest, source; /* dotted paths; source `identity`: all of the result */
};

/* How many work at once, or (per_ms > 0) begin within a time, of those with the same key. */
struct plan_quota {
    uint32_t max; /* 0: there is no such limit */
    int64_t per_ms;
    const struct node *key; /* a template of the input; NULL: one for all */
};
struct plan_quotas {
    struct plan_quota at_once, rate;
    const struct node *priority; /* a number, or a template of the input; NULL: 0 */
};

struct plan_step {
    str name, tool; /* tool: data NULL where it has no tool */
    const struct step_kind *kind;
    str args;                     /* a compact JSON object */
    const struct node *args_node; /* the same, read; set by plan_load() */
    enum way_kind way;
    struct plan_target *targets; /* one for NEXT and JOIN; by arm for ARMS */
    uint32_t target_count;
    struct plan_target
        *errors; /* graphs: where it leads if it fails for good: the first that holds */
    uint32_t error_count;
    uint32_t attempt_count_max;
    int64_t *backoff_ms; /* its last value is repeated */
    uint32_t backoff_count, jitter_permille;
    str *retry_on, *retry_never; /* kinds of errors; no `on`: all but those of `never` */
    uint32_t retry_on_count, retry_never_count;
    int64_t worker_ms;  /* how long an attempt may be ready; 0: for ever */
    int64_t timeout_ms; /* 0: none said; a runner's own limit still holds */
    bool is_idempotent;
    bool is_once; /* ... it is declared not to be: what ran out of time is not run again */
    struct plan_augment *augments;
    uint32_t augment_count;
    str *approvers; /* GATE: who may decide; empty: any actor */
    uint32_t approver_count, approval_count;
    bool bars_cancel; /* while it is live the flow cannot be cancelled */
    bool has_template;    /* set by plan_load() */
    uint32_t result_slot; /* where a memory keeps its result; STEP_NONE: nothing asks for it */
    uint32_t node;        /* in a tree: where it stands; set by plan_load() */
    uint32_t undoes;      /* the step that it compensates; STEP_NONE: it is no compensation */
    uint32_t undo;        /* its compensation; STEP_NONE: it has none; set by plan_load() */
    bool is_pivot;        /* when it is done, what was done before stays */
    uint32_t of;          /* the map whose items it is done for; STEP_NONE: it is no item's */
    uint32_t after;       /* ... that is done next for the same item; STEP_NONE: it is the last */
    uint32_t body;        /* of a map: the first of those steps; set by plan_load() */
    struct plan_quotas quotas; /* of its calls */
};

/* The nodes of a tree, in depth-first pre-order (C9); 0 is the root. */
#define NODE_KIND_MAP(X)                                                                           \
    X(LEAF, "leaf")                                                                                \
    X(DO, "do")                                                                                    \
    X(DOPAR, "dopar")                                                                              \
    X(TRY, "try")                                                                                  \
    X(ARMS, "select")                                                                              \
    X(GROUP, "group")

enum plan_node_kind {
#define X(name, word) PLAN_##name,
    NODE_KIND_MAP(X)
#undef X
};

enum try_part { TRY_FORMS, TRY_RESCUE, TRY_FINALLY, TRY_PART_COUNT };

struct plan_node {
    enum plan_node_kind kind;
    uint32_t parent, place; /* its place among its parent's children */
    uint32_t *children;
    uint32_t child_count;
    uint32_t step; /* LEAF, ARMS, GROUP */
    bool is_empty; /* nothing in it to do: it is settled as soon as it is begun */
};

struct plan_name {
    str text;
    uint32_t step;
};

struct plan {
    bool is_tree;
    uint32_t first, count;
    struct plan_step *steps;
    struct plan_node *nodes; /* trees */
    uint32_t node_count;
    str tree;                       /* trees: the same as text, see plan_tree.c */
    str output;                     /* a template value, JSON; data NULL: none */
    const struct node *output_node; /* the same, read */
    bool output_has_template;
    bool calculates; /* {{= ... }} is an expression; in older plans it is text */
    const struct node *notify;  /* {definition, on, input}, read; NULL: none */
    const struct node *queries; /* {NAME: EXPRESSION}, read; NULL: none */
    str *buffered; /* signals that are kept until a step awaits them */
    uint32_t buffered_count;
    enum cancel_rule cancel; /* NOT_FROM: some steps bar it */
    bool cleans; /* a `finally` also runs when it is cancelled; in older plans it does not */
    uint32_t whole; /* graphs: the step, + 1, whose time is that of all; 0: it has no limit */
    bool has_undo;           /* some step has a compensation */
    struct plan_quotas quotas; /* of the instances */
    bool has_quotas;           /* there are limits, or priorities; set by plan_load() */
    bool asks_instance;      /* some template or condition looks at what the instance is */
    struct plan_name *names; /* sorted */
    uint32_t slot_count;
    uint8_t *
        *reach; /* graphs, by step that is joined at: bit s: step s can still reach that join */
};

const char *way_kind_name(enum way_kind kind);
const char *plan_node_kind_name(enum plan_node_kind kind);

void plan_print(const struct plan *plan, struct buf *out);
void plan_print_texts(const str *texts, uint32_t count, struct buf *out); /* as a list */

/* The arms of a wait or a select as its args have them; NULL: none. */
const struct node *plan_arms(const struct plan_step *step);
/* What one of them waits for: "signal paid", "timer 3d". */
void arm_print(const struct node *arm, struct buf *out);

/* quota.c: as members of a step, or of the plan; false: they are not. */
void quotas_print(const struct plan_quotas *quotas, struct buf *out);
bool quotas_read(const struct node *node, struct plan_quotas *quotas);
bool quotas_any(const struct plan_quotas *quotas);

/* plan_text.c: false: it is not a plan, or no memory. */
bool plan_read(struct scope *scope, const struct node *document, struct plan *plan);

/* Read a printed plan and make it ready; `text` must live as long. STORAGE_FAILURE: not a plan. */
pawl_status plan_load(struct scope *scope, str text, struct plan **out);

/* plan_tree.c: nodes of the printed tree; false: it is not a tree, or no memory. */
bool plan_load_tree(struct scope *scope, const struct node *tree, struct plan *plan);

/* plan_join.c: fill `reach`. NO_MEMORY. */
pawl_status plan_find_reach(struct scope *scope, struct plan *plan);
bool plan_can_reach(const struct plan *plan, uint32_t join, uint32_t step);
bool plan_is_joined(const struct plan *plan, uint32_t step); /* does some step join at this one? */

/* plan_name.c: sort `names` and find one; plan_find() returns STEP_NONE if no step has the name. */
void plan_sort_names(struct plan_name *names, uint32_t count);
const struct plan_name *plan_find_name(const struct plan_name *names, uint32_t count, str text);
uint32_t plan_find(const struct plan *plan, str name);

static inline const struct plan *plan_of(const struct definition *definition)
{
    return definition->plan;
}

/* Is a signal of this name kept until a step awaits it? */
static inline bool plan_keeps(const struct plan *plan, str signal)
{
    for (uint32_t i = 0; i < plan->buffered_count; i++)
        if (str_eq(plan->buffered[i], signal))
            return true;
    return false;
}

/* Does the way of a step begin its target? All of NEXT and PARALLEL, of BRANCH and ARMS the one
 * that is chosen (STEP_NONE: none is), of a JOIN none. */
static inline bool way_begins(const struct plan_step *step, uint32_t target, uint32_t chosen)
{
    return step->way == WAY_NEXT || step->way == WAY_PARALLEL ||
           ((step->way == WAY_BRANCH || step->way == WAY_ARMS) && target == chosen);
}

/* Every step that it may lead to, when it succeeds or fails: `i` below the count. */
static inline uint32_t step_lead_count(const struct plan_step *step)
{
    return step->target_count + step->error_count;
}

static inline uint32_t step_lead(const struct plan_step *step, uint32_t i)
{
    return i < step->target_count ? step->targets[i].step
                                  : step->errors[i - step->target_count].step;
}

/* Is it taken to a runner? All others wait where they are. */
static inline bool step_is_taken(const struct plan_step *step)
{
    return step->kind->is_taken;
}

#endif
