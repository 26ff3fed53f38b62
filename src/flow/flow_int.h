/* flow_int.h - private to flow: the plan, the memory, and what its files share. */
#ifndef PAWL_FLOW_FLOW_INT_H
#define PAWL_FLOW_FLOW_INT_H

#include "base/limits.h"
#include "flow/flow.h"

#define STEP_NONE  UINT32_MAX
#define ERROR_LOST STR("\"lost\"") /* of an attempt whose process died */

/* ---- The plan: plan.c ---------------------------------------------------------- */

struct plan_step {
    str name, tool;
    str args;                     /* a compact JSON object, templates not yet replaced */
    const struct node *args_node; /* the same, read; set by plan_load() */
    uint32_t next;                /* index; STEP_NONE: this step says done */
    uint32_t attempt_count_max;
    int64_t *backoff_ms; /* its last value is repeated */
    uint32_t backoff_count;
    int64_t timeout_ms; /* 0: none */
    bool is_idempotent;
    bool has_template;    /* set by plan_load() */
    uint32_t result_slot; /* where a memory keeps its result; STEP_NONE: nobody asks for it */
};

struct plan_name {
    str text;
    uint32_t step;
};

struct plan {
    bool is_tree;
    uint32_t first, count;
    struct plan_step *steps;
    struct plan_name *names; /* sorted */
    uint32_t slot_count;
};

void plan_print(const struct plan *plan, struct buf *out);

/* Read a printed plan; `text` must live as long. STORAGE_FAILURE if it is not one. */
pawl_status plan_load(struct scope *scope, str text, struct plan **out);

/* Sort `names` and find in them; plan_find() answers STEP_NONE if there is none. */
void plan_sort_names(struct plan_name *names, uint32_t count);
const struct plan_name *plan_find_name(const struct plan_name *names, uint32_t count, str text);
uint32_t plan_find(const struct plan *plan, str name);

static inline const struct plan *plan_of(const struct definition *definition)
{
    return definition->plan;
}

static inline bool step_is_sleep(const struct plan_step *step)
{
    return str_is(step->tool, "sleep");
}

/* ---- The memory of an instance: memory.c --------------------------------------- */

enum timer_kind { TIMER_NONE, TIMER_TIMEOUT, TIMER_RETRY, TIMER_SLEEP };

struct attempt {
    uint32_t plan, ordinal, attempt, first_ordinal;
    enum step_status status; /* PENDING, READY or RUNNING */
    enum timer_kind timer;   /* the one it has armed */
};

struct kept_result {
    char *data; /* JSON; NULL: none yet. Written over in place, so that a loop stays bounded */
    size_t size, capacity;
};

/* Steps run in sequence, so one attempt is live at a time; all others are spent, and of
 * those only the results that some template asks for are kept. */
struct flow_memory {
    str input; /* JSON; data NULL: none */
    uint32_t ordinal_last;
    bool has_live;
    struct attempt live;
    struct kept_result *results; /* by result_slot */
};

/* The live attempt if it has this ordinal, else NULL. */
const struct attempt *memory_find(const struct flow_memory *memory, uint32_t ordinal);

str timer_name(enum timer_kind kind, const struct plan_step *step);

void *flow_memory_new(const struct definition *definition, str input, struct arena *arena);
pawl_status flow_apply(const struct definition *definition, void *memory,
                       const struct entry_view *entry, struct scope *scope, struct arena *arena);
void flow_memory_print(const struct definition *definition, const void *memory, struct buf *out);
pawl_status flow_memory_load(const struct definition *definition, str text, str input,
                             struct scope *scope, struct arena *arena, void **out);

/* ---- What an entry tells of its event: event.c ------------------------------------ */

bool flow_event_of(const struct definition *definition, const void *memory,
                   const struct entry_view *entry, uint32_t n, struct event *out);

/* ---- Templates: template.c ----------------------------------------------------- */

enum template_kind {
    TEMPLATE_TEXT,     /* plain text between templates */
    TEMPLATE_UNKNOWN,  /* {{...}} of somebody else: stays as it is */
    TEMPLATE_INPUT,    /* path into the input; data NULL: all of it */
    TEMPLATE_STEP,     /* path: NAME.result or NAME.result.PATH */
    TEMPLATE_RESERVED, /* path: the root, which later versions will know */
};

struct template_part {
    enum template_kind kind;
    str text; /* as written, braces and all */
    str path;
};

/* Take the next part off the front of `rest`; false at its end. */
bool template_next(str *rest, struct template_part *out);

/* The longest step name that `path` (NAME.result...) can mean and that is shorter than
 * `below`; what follows ".result." is left in *rest (data NULL: nothing). STEP_NONE: none. */
uint32_t template_step(const struct plan *plan, str path, size_t below, str *rest);

/* Where values come from. `fresh` is a result that this very decision brings, so that the
 * memory does not have it yet; data NULL: none. */
struct template_source {
    const struct plan *plan;
    const struct flow_memory *memory;
    uint32_t fresh_slot;
    str fresh;
};

/* The step's args with templates replaced. TOO_LARGE, NO_MEMORY. */
pawl_status template_expand(const struct template_source *source, const struct plan_step *step,
                            struct scope *scope, str *out);

/* ---- Retries: retry.c ---------------------------------------------------------- */

enum retry_cause { RETRY_FAILED, RETRY_TIMEOUT, RETRY_LOST };

bool retry_is_due(const struct plan_step *step, uint32_t attempt, enum retry_cause cause);
int64_t retry_delay_ms(const struct plan_step *step, uint32_t attempt);

/* The list that {initial, factor, max} stands for; factor in thousandths. NULL: no memory. */
int64_t *retry_expand(struct arena *arena, int64_t initial_ms, int64_t factor_permille,
                      int64_t max_ms, uint32_t attempt_count_max, uint32_t *out_count);

/* ---- The compiler: compile.c, compile_step.c, compile_check.c ------------------- */

struct source_step {
    struct plan_step plan;
    const struct node *node;
    const struct node *next; /* a graph's `next`, not yet looked up */
    str key;                 /* in the map of steps; data NULL: none */
    bool is_refused;         /* for a word of a later version: say no more about it */
};

struct compilation {
    struct scope *scope;
    struct findings *findings;
    pawl_status status; /* of the first error */
    uint32_t error_count, warning_count;
    bool is_tree;
    struct source_step *steps;
    uint32_t count, capacity, first;
};

/* Note a finding at `node`. */
void compile_error(struct compilation *compiler, const struct node *node, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void compile_warning(struct compilation *compiler, const struct node *node, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void compile_no_memory(struct compilation *compiler);

/* Warn of a key that means nothing, where it stands. `before` is what comes before its name:
 * "step 'a': unknown key 'retry." */
void compile_unknown_key(struct compilation *compiler, const struct node *node, const char *before,
                         const char *const *known);

/* Add the step at `node`; `name` is what it is called if it has no `name`. */
void compile_step(struct compilation *compiler, const struct node *node, str key, str name);
bool compile_is_reserved(str key);

/* What can be said only when all steps are known: names, ways on, templates. */
void compile_check(struct compilation *compiler);

#endif
