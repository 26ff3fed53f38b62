/* flow_int.h - private to flow: templates, conditions, retries, and what the reducer's files
 * share. The plan is in plan.h, the memory in memory.h, the compiler in compile.h. */
#ifndef PAWL_FLOW_FLOW_INT_H
#define PAWL_FLOW_FLOW_INT_H

#include "base/node_own.h"
#include "flow/memory.h"

/* ---- Templates: template.c ----------------------------------------------------- */

enum template_kind {
    TEMPLATE_TEXT,     /* plain text between templates */
    TEMPLATE_UNKNOWN,  /* {{...}} with another root: stays as it is */
    TEMPLATE_INPUT,    /* path into the input; data NULL: all of it */
    TEMPLATE_CONTEXT,  /* path into the context; likewise */
    TEMPLATE_STEP,     /* path: NAME.result or NAME.result.PATH */
    TEMPLATE_INSTANCE, /* path into what an instance is; data NULL: all of it */
    TEMPLATE_VALUE,    /* path: the expression of {{= ... }} */
};

#define EXPRESSION_OPEN STR("{{=")

struct template_part {
    enum template_kind kind;
    str text; /* as written, braces and all */
    str path;
};

/* What follows the first `size` bytes of a dotted path, and their dot; data NULL: nothing. */
static inline str path_after(str path, size_t size)
{
    return path.size > size ? str_from(path, size + 1) : STR_NONE;
}

/* Take the next part off the front of `rest`; false at its end. `calculates`: {{= ... }} is an
 * expression; in plans older than those it is text (plan.h). */
bool template_next(bool calculates, str *rest, struct template_part *out);
/* The rest of a text part from "{{input..." or "{{=" on, which has no end; data NULL: all have. */
str template_unclosed(str text);
bool template_is_replaced(const struct template_part *part);
bool template_has(str text); /* a template that is replaced, or an expression */

/* The longest step name that `path` (NAME.result...) can mean and that is shorter than
 * `below`; what follows ".result." is left in *rest (data NULL: nothing). STEP_NONE: none. */
uint32_t template_step(const struct plan *plan, str path, size_t below, str *rest);

/* What lies at the dotted `path` below `value`, JSON; a key with dots is tried whole first. data
 * NULL: nothing, or the arena has failed. */
str template_walk(struct arena *arena, str value, str path);

/* What the step of a map's item sees by its own roots: `name` and `index`; no name: nothing. */
struct template_item {
    str name, value;
    uint32_t index;
    const struct item_way *way; /* what its steps brought; NULL: it has but one */
};

/* A result that this very decision brings. */
struct fresh {
    uint32_t slot;
    str text;
    const struct fresh *next;
};

/* Where values come from. `fresh` is a result that this very decision brings, `context` what
 * it makes of the context, so that the memory does not have them yet; data NULL: none. */
struct template_source {
    const struct plan *plan;
    const struct flow_memory *memory;
    uint32_t fresh_slot;
    str fresh;
    const struct fresh *older; /* that this decision brought before it */
    struct template_item item;
    const struct flow_context *context; /* NULL: the memory's */
    const struct kept_text *last_error; /* of the try around the step; NULL: as the context says */
    bool names_conditions; /* an error of a condition says which one it is (compiler 3) */
    bool is_nameless; /* the instance is being made, and does not know yet what it is called */
};

/* The step's args with templates replaced. TOO_LARGE, NO_MEMORY. */
pawl_status template_expand(const struct template_source *source, const struct plan_step *step,
                            struct scope *scope, str *out);
/* A part of them, likewise. */
pawl_status template_expand_node(const struct template_source *source, const struct node *node,
                                 struct scope *scope, str *out);
/* Does it ask for nothing but the input? */
bool template_is_of_input(const struct node *node);
/* The plan's `output`, likewise. */
pawl_status template_expand_output(const struct template_source *source, struct scope *scope,
                                   str *out);

/* The result of a step that something asks for; data NULL: none yet. NO_MEMORY, STORAGE_FAILURE. */
pawl_status template_result(const struct template_source *source, uint32_t step,
                            struct scope *scope, str *out);

/* ---- Conditions: condition.c, condition_expr.c ------------------------------------- */

bool condition_is_pattern(str text); /* one of the six forms */
str condition_value(str text);       /* V of one of those */
bool condition_is_quoted(str text);  /* one of those, and its V is a text in quotes */
bool condition_begins_quoted(str text); /* ... and its V begins with a quote */
bool condition_matches(const struct plan_target *target, const struct node *result);

/* Of a branch: the first target whose condition holds, by its place; STEP_NONE: none does, or it is
 * no branch. What an expression cannot tell is INVALID_REQUEST with the reason, and the step's
 * failure; NO_MEMORY, STORAGE_FAILURE. `result` is that of the step which branches. */
pawl_status condition_choose(struct scope *scope, const struct template_source *source,
                             const struct plan_step *step, str result, uint32_t *out);

/* The first of these whose condition holds, or that has none; they see `error`, if it is there. */
pawl_status condition_first(struct scope *scope, const struct template_source *source,
                            const struct plan_step *step, const struct plan_target *targets,
                            uint32_t count, str error, uint32_t *out);
/* Likewise of a step that failed for good: where its error leads. */
pawl_status condition_choose_error(struct scope *scope, const struct template_source *source,
                                   const struct plan_step *step, str error, uint32_t *out);

/* ---- Retries: retry.c ---------------------------------------------------------- */

enum retry_cause { RETRY_FAILED, RETRY_TIMEOUT, RETRY_LOST };

bool retry_is_due(const struct plan_step *step, uint32_t attempt, enum retry_cause cause);
/* May this error be tried again, as far as `on` and `never` of the step say? The arena may fail. */
bool retry_takes(const struct plan_step *step, str error, struct arena *arena);
/* `seed` spreads the delays of many instances, where the step asks for jitter. */
int64_t retry_delay_ms(const struct plan_step *step, uint32_t attempt, uint64_t seed);

/* The list that {initial, factor, max} stands for; factor in thousandths. NULL: no memory. */
int64_t *retry_expand(struct arena *arena, int64_t initial_ms, int64_t factor_permille,
                      int64_t max_ms, uint32_t attempt_count_max, uint32_t *out_count);

#define RESULT_NULL   STR("null")
#define ERROR_TIMEOUT STR("\"timeout\"")
#define ERROR_WORKER  STR("\"no-worker\"")
#define ERROR_UNKNOWN                                                                              \
    STR("\"timeout: its outcome is unknown, and it is declared idempotent: false, so it is not "   \
        "run again\"")
#define ERROR_LOST    STR("\"lost\"") /* of an attempt whose process died */

/* ---- What an entry tells of its event: event.c ------------------------------------ */

bool flow_event_of(const struct definition *definition, const void *memory,
                   const struct entry_view *entry, uint32_t n, struct event *out);

/* ---- The reducer: reduce.c, reduce_begin.c, reduce_end.c -------------------------- */

/* Arguments of steps that begin together have a bound, by what they are for. */
enum args_sum { ARGS_OF_WAITS, ARGS_OF_CHILDREN, ARGS_SUM_COUNT };

struct begun {
    struct attempt attempt;
    str error; /* it could not begin; data NULL: it did */
    bool is_over; /* ... and has failed */
};

/* A decision in the making. `status` is sticky: after a failure the rest does nothing. */
struct turn {
    const struct plan *plan;
    uint32_t compiler; /* of the instance's definition: old versions keep their meaning */
    const struct flow_memory *memory;
    const struct event *event;
    struct scope *scope;
    struct decision decision;
    pawl_status status;
    uint32_t ordinal_last;
    struct begun *begun; /* by this decision, in order; those that could not begin fail next */
    uint32_t begun_count, begun_capacity, begun_seen;
    size_t args_sizes[ARGS_SUM_COUNT]; /* of the arguments of those that begin */
    struct node_pages nodes;     /* trees: as they will be; pages NULL: as in the memory */
    struct tree_errors errors;   /* likewise, once the pages are there */
    bool *joins;                 /* graphs: likewise; NULL: as in the memory */
    uint32_t fresh_slot;         /* what the ended step brought */
    str fresh, error;
    const struct fresh *older; /* what was brought before it by this decision */
    uint32_t *over;            /* ordinals of what this decision ended */
    uint32_t over_count, over_capacity;
    uint32_t undo_noted;          /* the compensation of what it completed; STEP_NONE: none */
    bool is_undone, is_pivoted;   /* it completed a compensation, or a pivot */
    struct map_turn *maps;        /* map_items.c: those whose items it concerns */
    struct template_item item;    /* of the item that begins */
    uint32_t item_map, item_over; /* ordinals: its map; of the item that this decision ended */
    struct flow_context *context; /* over the memory's; NULL: it puts nothing there */
    uint32_t branch; /* which target the ended step takes, by its place; STEP_NONE: none */
    bool is_finished;
    bool is_cancelling; /* the flow is cancelled when what it cleans up is done */
    bool is_hopeless; /* the step fails, and another attempt would fail likewise */
};

/* Fails the turn with a status and words. */
#define turn_fail(turn, ...) ((turn)->status = scope_fail((turn)->scope, __VA_ARGS__))

/* reduce.c: drafts and their effects. */
void turn_draft(struct turn *turn, enum lifecycle_transition transition,
                const struct attempt *attempt, str payload);
void turn_cause(struct turn *turn, struct effect effect);
/* notify.c: of the draft that was made last. */
void turn_notify(struct turn *turn, enum lifecycle_transition transition,
                 const struct attempt *attempt, str payload);
void turn_arm(struct turn *turn, uint32_t ordinal, str name, int64_t due_at_ms);
struct attempt turn_create(struct turn *turn, uint32_t plan, uint32_t number,
                           enum step_status status);
void turn_end(struct turn *turn, const struct attempt *attempt);
void turn_await_worker(struct turn *turn, const struct attempt *attempt); /* it is ready now */
void turn_note_over(struct turn *turn, uint32_t ordinal);
struct template_source turn_source(const struct turn *turn);
/* ... for the args of a step, which sees the error of the try around it. */
struct template_source turn_step_source(const struct turn *turn, const struct plan_step *step);
/* The scope's error as a JSON string: the decision is made, and it is that the step fails. */
str turn_take_error(struct turn *turn);

str turn_quoted(struct turn *turn, str message); /* as a JSON string */

/* The text of `buf`, which is freed; data NULL: no memory, and the turn has failed. */
str turn_take(struct turn *turn, struct buf *buf);

/* reduce_wait.c: timers and signals. */
void decide_timer(struct turn *turn);
void decide_signal(struct turn *turn);
void take_arm(struct turn *turn, enum lifecycle_transition transition,
              const struct attempt *attempt, uint32_t arm, str payload);

/* reduce_keep.c: signals that nothing awaits yet. */
bool is_behind_kept(const struct turn *turn); /* older ones of its name are to be taken first */
void keep_signal(struct turn *turn, str payload);
void decide_wake(struct turn *turn);
bool flow_wakes(const void *memory);
/* The rows by which broadcasts find a flow that keeps their signals, on the last draft; `before`:
 * the plan that it went by, NULL: it begins. */
void turn_keep_signals(struct turn *turn, const struct plan *before, const struct plan *plan);

/* reduce.c: decide with this function. */
pawl_status turn_run(void (*handle)(struct turn *turn), const struct definition *definition,
                     const struct standing *standing, const struct event *event,
                     struct scope *scope, struct decision *out);

/* cancel.c: the two events that cancel a flow. */
pawl_status cancel_decide(const struct definition *definition, const struct standing *standing,
                          const struct event *event, struct scope *scope, struct decision *out);
pawl_status cancel_decide_fire(const struct definition *definition, const struct standing *standing,
                               const struct event *event, struct scope *scope,
                               struct decision *out);

/* amend.c */
void decide_amend(struct turn *turn);
str amend_plan_text(const struct effect_list *effects); /* data NULL: none */

/* arm_match.c: the arms of a select in another version of it. */
struct awaited_arm {
    const struct node *written; /* as its plan has it; NULL: not known */
    bool is_timer;
    str name;       /* live: of the timer or signal */
    uint32_t index; /* live: in the plan in force */
    uint32_t match; /* out: in the other version; ARM_NONE: no arm there waits for this */
};
/* For each arm of `from` the one of `to`. NO_MEMORY. */
pawl_status arms_match(struct scope *scope, const struct plan_step *from,
                       const struct plan_step *to, struct awaited_arm **out, uint32_t *count);
/* Where the arms of live attempts are in the plan of an amend: [[ORDINAL,ARM,...]], of those that
 * have moved. CONFLICT in the turn: one has no match. */
str arms_move(struct turn *turn, const struct plan *merged);
/* The same, read back; false: it has another form. */
bool arms_take(const struct flow_memory *memory, const struct node *rows);

/* redrive.c */
void decide_restart(struct turn *turn);

/* reduce_begin.c: a step begins: its row, and what it waits for. */
void begin_step(struct turn *turn, uint32_t step);
void begin_again(struct turn *turn, const struct attempt *attempt); /* after its backoff */
/* For the kinds: the step's args with templates replaced, as text or as a node. TOO_LARGE. */
pawl_status begin_args(struct turn *turn, const struct plan_step *step, enum args_sum sum, str *out);
pawl_status begin_args_node(struct turn *turn, const struct plan_step *step, struct node **out);
/* INVALID_REQUEST: "'KEY': expected EXPECTED, found ...". */
pawl_status begin_refuse(const struct turn *turn, const char *key, const char *expected,
                         const struct node *found);
/* step_wait.c: what the arms of a wait, or of a select, wait for. */
pawl_status arms_begin(struct turn *turn, const struct plan_step *step, uint32_t ordinal);

/* reduce_end.c: what went wrong, where steps find it; a walk that begins steps, on a copy of the
 * states (false: no memory); what follows it. */
void turn_note_error(struct turn *turn, str error);
bool turn_walk(struct turn *turn, struct tree_walk *walk);
void turn_settled(struct turn *turn, enum settled settled);
void turn_walk_on(struct turn *turn, struct tree_walk *walk, uint32_t node, bool is_success);

/* reduce_end.c: a step is over: what follows, or the end of the flow. */
void flow_begin(struct turn *turn, const struct tree_redo *redo); /* NULL: from the beginning */
void flow_begin_whole(struct turn *turn);                         /* the time of a whole graph */
/* A graph goes on after a step that is done already, with its result, as when it was completed; not
 * into a join. */
void flow_go_on(struct turn *turn, uint32_t step, str result);
void step_succeed(struct turn *turn, enum lifecycle_transition transition,
                  const struct attempt *attempt, str result, uint32_t arm);
/* A step of a tree that leads by arms is over in the decision that began it. Nothing may ask for
 * its result, and it puts nothing into the context. */
void step_take_arm(struct turn *turn, const struct attempt *attempt, str result, uint32_t arm);
void step_try_again(struct turn *turn, const struct attempt *failed, enum retry_cause cause);
/* step_spawn.c: ends the step whose child has ended; bare: its error is the child's own. */
void child_has_ended(struct turn *turn, const struct attempt *attempt, bool is_bare);
bool spawn_event(const struct entry_view *entry, uint32_t n, struct event *out);
void step_fail(struct turn *turn, enum lifecycle_transition transition,
               const struct attempt *attempt, enum retry_cause cause, str error);
/* What came cannot be used (a context past all bounds, a condition that cannot be told): the step
 * fails with the scope's error, without another attempt. Trouble fails the turn. */
void step_spoil(struct turn *turn, const struct attempt *attempt, pawl_status status);
void step_time_out(struct turn *turn, const struct attempt *attempt);

#endif
