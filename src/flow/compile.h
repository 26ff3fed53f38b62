/* compile.h - private to the compiler: a document on its way to becoming a plan. */
#ifndef PAWL_FLOW_COMPILE_H
#define PAWL_FLOW_COMPILE_H

#include "expr/expr.h"
#include "flow/flow_int.h"
#include "model/vocabulary.h"
#include "model/words.h"

struct compilation;

struct source_step {
    struct compilation *compiler; /* that it is part of */
    struct plan_step plan;
    const struct node *node;
    const struct node *way; /* a graph's way on, names not yet looked up */
    const struct node *errors; /* ... and where its error leads; NULL: nowhere */
    str key;                   /* in the map of steps; data NULL: none */
};

struct compilation {
    struct scope *scope;
    struct reporter report;
    bool is_tree;
    const struct node *leaf; /* the document, if it is one leaf and nothing more; else NULL */
    struct source_step *steps;
    uint32_t count, capacity, first;
    struct plan_name *keys; /* of a graph's steps in their map, sorted, once all are known ... */
    struct plan named; /* ... and the names of all steps: as much as template_step() asks for */
    struct buf tree; /* the nodes, as plan_tree.c reads them */
    const struct node *input; /* its schema, if it has one and that is valid; else NULL */
    str own_name; /* as the document says; data NULL: it does not */
    const struct node *output;
    str output_text;
    uint32_t spawn_count;
    uint32_t undoes; /* the step whose compensation is compiled; STEP_NONE: none */
    uint32_t of;     /* the map whose step is compiled; STEP_NONE: none */
    str *buffered; /* signals that are kept */
    uint32_t buffered_count;
    struct plan_quotas quotas;
    const struct node *queries, *notify; /* NULL: none */
    const struct node *cancel_node; /* NULL: there is no `cancel` */
    enum cancel_rule cancel;
    bool cleans;               /* some try has a finally */
    uint32_t whole;            /* as in a plan */
    bool calculates;           /* some template is an expression */
    uint32_t expression_count; /* of the step whose templates are checked */
    const char **step_words; /* names of steps, to find the nearest; NULL: not made yet */
};

/* compile.c: report a finding at `node`. */
void compile_error(struct compilation *compiler, const struct node *node, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void compile_warning(struct compilation *compiler, const struct node *node, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* The same about a step, which the message names first; `node` NULL: at the step. */
void step_error(const struct source_step *step, const struct node *node, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void step_warning(const struct source_step *step, const struct node *node, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Is the value of a step's key of this kind? Else: "'KEY' must be EXPECTED, found ...". */
bool step_expect(const struct source_step *step, const struct node *node, enum node_kind kind,
                 const char *expected);
/* Is this key of a step true? What is not a boolean is reported. */
bool step_is_true(const struct source_step *step, const char *key);
/* Refuse the keys of `object`, of a step (NULL: of none), that are not in `keys`; `path` goes
 * before their names: "cancel.". */
void compile_keys(struct compilation *compiler, const struct source_step *step,
                  const struct node *object, const struct known_key *keys, const char *path);
/* The same with several tables, which NULL ends; `after` goes behind the names. */
void compile_tables(struct compilation *compiler, const struct source_step *step,
                    const struct node *object, const struct known_key *const *tables,
                    const char *path, const char *after);
bool compile_has_key(const struct known_key *const *tables, str key);
/* Refuse one key, of a step (NULL: of none). */
void compile_refuse_key(struct compilation *compiler, const struct source_step *step,
                        const struct node *node, const struct known_key *const *tables,
                        const char *path, const char *after);
/* flow_keys.c: those of a flow, a graph, ...; of every step, and of its way on in a graph. */
extern const struct known_key flow_keys[], graph_keys[], signal_keys[], cancel_keys[];
extern const struct known_key step_keys[], way_keys[], branch_keys[], retry_keys[], backoff_keys[];
extern const struct known_key concurrency_keys[], rate_keys[];
extern const struct known_key *const group_keys[]; /* each begins with the word of its group */
void compile_no_memory(struct compilation *compiler);
str compile_print(struct compilation *compiler, const struct node *node); /* compact JSON */
/* The same of an object without its free keys ("x-..."), which mean nothing to the engine. */
str compile_print_known(struct compilation *compiler, const struct node *object);
str compile_take(struct compilation *compiler, struct buf *buf); /* its text; frees it */

/* compile_step.c: add the step at `node`; `name` is what it is called if it has no `name`. Its
 * index, or STEP_NONE. */
uint32_t compile_step(struct compilation *compiler, const struct node *node, str key, str name);
uint32_t compile_limits(struct compilation *compiler, const struct node *group, str name);
bool compile_duration(const struct source_step *step, const struct node *node, const char *what,
                      int64_t *out_ms);

/* What kinds share. step_wait.c: the arms of a wait, or of a select; step_gate.c: `approval`, which
 * only a gate has; step_sleep.c: nothing, unless the tool is `sleep`. */
void arms_compile(struct source_step *step, const struct node *first,
                  const struct known_key *more_keys, bool is_one);
void gate_compile(struct source_step *step);
void sleep_check(const struct source_step *step);

/* compile_saga.c: `compensate` of a step; its compensation, as a step of its own; what such a step
 * may not have; and what `saga: true` demands, when all steps are known. */
void compile_compensate(struct source_step *step);
void compile_undo(struct compilation *compiler, uint32_t index);
void compile_check_undo(const struct source_step *step);
void compile_saga(struct compilation *compiler, const struct node *document);

/* compile_quota.c: `concurrency`, `rate` and `priority` of a step, and of the document. */
void compile_quotas(struct source_step *step);
void compile_quotas_of_flow(struct compilation *compiler, const struct node *document);

/* compile_retry.c: how often, and after how long. */
void compile_retry(struct source_step *step);

/* compile_way.c: a condition without the blanks around it; one that may not be of the six forms,
 * which compare a result: "a condition WORDS"; whether the steps that it names are there, with a
 * result. */
str condition_text(const struct node *condition);
const char *compile_lua_hint(str text); /* what other languages write; "": nothing of the kind */
/* A global that nothing gives the expression. */
void compile_warn_unknown(const struct source_step *step, const struct node *node,
                          enum expr_use use, str name);
void compile_condition(const struct source_step *step, const struct node *condition,
                       const char *words);
void compile_check_named(const struct source_step *step, const struct node *condition);
bool compile_has_result(const struct source_step *step, str name);
/* Does it see the result of the step `found`, which is one of a map's: of the same item? */
bool compile_sees_item(const struct source_step *step, uint32_t found);

/* compile_way.c: a graph's way on; the names are looked up when all steps are known. */
void compile_way(struct source_step *step);
void compile_link(struct compilation *compiler);

/* Finds a step by its key in the map, or else by its name (B12). STEP_NONE: not found. */
uint32_t compile_find_step(const struct compilation *compiler, str text);

/* compile_cancel.c: the name or key of the step that `text` may be a misspelling of; NULL: none. */
const char *compile_nearest_step(struct compilation *compiler, str text);
/* compiles `cancel`, when all steps are known. */
void compile_cancel(struct compilation *compiler);

/* compile_tree.c: the groups of a tree, "do", "dopar" or "try", and its leaves. */
void compile_tree(struct compilation *compiler, const struct node *document, const char *root);
/* A document that is one leaf: the smallest tree. */
void compile_leaf(struct compilation *compiler, const struct node *document);

/* compile_check.c: what can be said only when all steps are known. */
void compile_check(struct compilation *compiler);

/* compile_template.c: the templates in `node`, of a step; `plan` has the names of all steps. */
void compile_check_templates(const struct source_step *step, const struct node *node);

/* `queries`: expressions over an instance. */
void compile_queries(struct compilation *compiler);

/* notify.c: what is started when it ends or waits. */
void compile_notify(struct compilation *compiler);

/* A template that is replaced when the step begins; {{item}} where it is the step of a map. */
bool compile_has_template(const struct source_step *step, str text);

/* compile_ways.c: unreachable steps, joins, cycles without a wait. */
void compile_check_ways(struct compilation *compiler);

#endif
