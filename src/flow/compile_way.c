/* compile_way.c - how a graph goes on after a step: exactly one of next, branch, parallel,
 * join and done; a select's arms are its way on. */
#include "expr/expr.h"
#include "flow/compile.h"
#include <stdio.h>

/* ---- What is written ------------------------------------------------------------------------ */

/* Blanks around a condition do not count: YAML's `if: |` ends it with a newline. */
str condition_text(const struct node *condition)
{
    str text = condition->text;

    while (text.size > 0 && str_is_blank((str){ text.data, 1 }))
        text = str_from(text, 1);
    while (text.size > 0 && str_is_blank(str_from(text, text.size - 1)))
        text.size--;
    return text;
}

struct foreign {
    const char *word, *hint;
};

/* Values of other languages, and what they are here. */
static const struct foreign foreign_values[] = {
    { "null", "write nil" },  { "None", "write nil" },   { "undefined", "write nil" },
    { "True", "write true" }, { "False", "write false" }, { 0 },
};

/* Other names that mean nothing here. */
static const struct foreign foreign_names[] = {
    { "AND", "write and" },
    { "OR", "write or" },
    { "NOT", "write not" },
    { "default", "for the last branch write if: \"true\"" },
    { "otherwise", "for the last branch write if: \"true\"" },
    { "always", "for the last branch write if: \"true\"" },
    { 0 },
};

/* NULL: it is not in the table. */
static const char *hint_for(const struct foreign *table, str word)
{
    while (table->word && !str_is(word, table->word))
        table++;
    return table->hint;
}

/* What other languages write and Lua does not; "": nothing of the kind. */
const char *compile_lua_hint(str text)
{
    static const char *const words[][2] = {
        { "&&", "; write 'and' for &&" },   { "||", "; write 'or' for ||" },
        { "!=", "; write ~= for !=" },      { "!", "; write 'not' for !" },
        { " = ", "; write == to compare" },
    };

    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (memmem(text.data, text.size, words[i][0], strlen(words[i][0])))
            return words[i][1];
    return "";
}

/* What reads like an expression and is not one (B19). */
static bool looks_composed(str text)
{
    static const char *const words[] = { " and ", " or ", "&&", "||" };

    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (memmem(text.data, text.size, words[i], strlen(words[i])))
            return true;
    return false;
}

static void check_pattern(const struct source_step *step, const struct node *condition)
{
    str text = condition_text(condition), value = condition_value(text);
    const char *hint = hint_for(foreign_values, value);

    if (condition_is_quoted(text))
        return;
    if (looks_composed(text))
        step_warning(step, condition,
                     "the result is compared with all that follows; for an "
                     "expression begin with a parenthesis%s",
                     compile_lua_hint(value));
    else if (condition_begins_quoted(text))
        step_warning(step, condition,
                     "the result is compared with all that follows, the quotes "
                     "too; write one text in quotes, like result == \"yes\"");
    else if (hint)
        step_warning(step, condition,
                     "the result is compared with the text %.*s; %s, or the text in quotes",
                     STR_ARG(value), hint);
}

/* A global that nothing gives the expression is nil: a slip of the pen would be false in silence.
 */
void compile_warn_unknown(const struct source_step *step, const struct node *node,
                          enum expr_use use, str name)
{
    const char *nearest = words_nearest(name, expr_names(use));
    const char *other = hint_for(foreign_values, name);
    char hint[80] = "", known[120]; /* "result, input, context" */
    size_t used = 0;

    for (const char *const *word = expr_names(use); *word && used < sizeof known; word++)
        used += (size_t)snprintf(known + used, sizeof known - used, "%s%s", used > 0 ? ", " : "",
                                 *word);
    if (!other)
        other = hint_for(foreign_names, name);
    if (other)
        (void)snprintf(hint, sizeof hint, "%s; ", other);
    else if (nearest)
        (void)snprintf(hint, sizeof hint, "did you mean '%s'? ", nearest);
    step_warning(step, node, "the %s names '%.*s', which is always nil; %sknown are %s",
                 use == EXPR_CONDITION ? "condition"
                 : use == EXPR_QUERY   ? "query"
                                       : "expression",
                 STR_ARG(words_shown(name)), hint, known);
}

static void check_globals(const struct source_step *step, const struct node *condition)
{
    struct expr_unknown unknown;
    str name;

    expr_unknown_begin(&unknown, EXPR_CONDITION, condition_text(condition));
    while (expr_unknown_next(&unknown, &name))
        compile_warn_unknown(step, condition, EXPR_CONDITION, name);
}

static void check_condition(const struct source_step *step, const struct node *condition)
{
    str text = condition_text(condition);
    pawl_status status;

    if (condition_is_pattern(text)) {
        check_pattern(step, condition);
        return;
    }
    if (text.size == 0) {
        step_error(step, condition, "'if' is empty");
        return;
    }
    status = expr_check(step->compiler->scope, EXPR_CONDITION, text);
    if (status == PAWL_NO_MEMORY)
        compile_no_memory(step->compiler);
    else if (status != PAWL_OK)
        step_error(step, condition, "'%.*s' is not an expression: %s%s", STR_ARG(words_shown(text)),
                   step->compiler->scope->error.message, compile_lua_hint(text));
    else
        check_globals(step, condition);
}

void compile_condition(const struct source_step *step, const struct node *condition,
                       const char *words)
{
    if (condition_is_pattern(condition_text(condition)))
        step_error(step, condition, "a condition %s", words);
    else
        check_condition(step, condition);
}

static void check_branch(const struct source_step *step, const struct node *item, const char *path)
{
    const struct node *condition = node_find(item, "if"), *then = node_find(item, "then");

    compile_keys(step->compiler, step, item, branch_keys, path);
    if (!condition || condition->kind != NODE_STRING || !then || then->kind != NODE_STRING)
        step_error(step, item, "%s is {if: CONDITION, then: STEP}",
                   strcmp(path, "branch.") == 0 ? "a branch" : "each of 'on_error'");
    else
        check_condition(step, condition);
}

/* The six forms compare a result, and a step that has failed has none. */
static void check_error(const struct source_step *step, const struct node *item)
{
    const struct node *condition = node_find(item, "if");

    check_branch(step, item, "on_error.");
    if (condition && condition->kind == NODE_STRING &&
        condition_is_pattern(condition_text(condition)))
        step_error(step, condition,
                   "a step that failed has no result; compare 'error', like error == \"timeout\"");
}

/* `on_error: STEP` or `on_error: [{if, then}]` */
static void check_errors(struct source_step *step)
{
    const struct node *errors = node_find(step->node, "on_error");

    if (!errors)
        return;
    step->errors = errors;
    if (errors->kind != NODE_STRING && (errors->kind != NODE_ARRAY || errors->count == 0))
        step_error(step, errors,
                   "'on_error' must name a step, or be a list of {if, then}, found %s",
                   errors->kind == NODE_ARRAY ? "an empty one" : node_kind_name(errors->kind));
    for (const struct node *item = errors->kind == NODE_ARRAY ? errors->first : NULL; item;
         item = item->next)
        check_error(step, item);
}

static void check_way(const struct source_step *step)
{
    const struct node *way = step->way;
    bool is_list = str_is(way->key, "branch") || str_is(way->key, "parallel");

    if (way->kind != (is_list ? NODE_ARRAY : NODE_STRING) || (is_list && way->count == 0)) {
        step_error(step, way, "'%.*s' must %s, found %s", STR_ARG(way->key),
                   is_list ? "be a list of one or more" : "name a step",
                   way->kind == NODE_ARRAY && is_list ? "an empty one" : node_kind_name(way->kind));
        return;
    }
    for (const struct node *item = is_list ? way->first : NULL; item; item = item->next)
        if (str_is(way->key, "branch"))
            check_branch(step, item, "branch.");
        else if (item->kind != NODE_STRING)
            step_error(step, item, "'parallel' lists names of steps, found %s",
                       node_kind_name(item->kind));
}

static void check_arms(const struct source_step *step)
{
    for (const struct node *arm = step->way->first; arm; arm = arm->next) {
        const struct node *then = node_find(arm, "then");

        if (!then || then->kind != NODE_STRING)
            step_error(step, arm, "an arm needs 'then: STEP'");
    }
}

/* The first way found; *count of all. */
static enum way_kind find_way(struct source_step *step, uint32_t *count)
{
    enum way_kind found = WAY_DONE;

    *count = step_is_true(step, "done");
    for (enum way_kind kind = WAY_NEXT; kind <= WAY_JOIN; kind++) {
        const struct node *node = node_find(step->node, way_kind_name(kind));

        if (!node)
            continue;
        if ((*count)++ > 0) {
            step_error(step, node, "'%s': another key already says what follows; keep one",
                       way_kind_name(kind));
            continue;
        }
        found = kind;
        step->way = node;
    }
    return found;
}

void compile_way(struct source_step *step)
{
    uint32_t count;

    check_errors(step);
    step->plan.way = find_way(step, &count);
    if (step->plan.kind->leads_by_arm) {
        if (count > 0)
            step_error(step, NULL, "a %s's arms are its way on; the step needs no other",
                       step->plan.kind->word);
        step->plan.way = WAY_ARMS;
        step->way = node_find(step->node, step->plan.kind->key);
        check_arms(step);
    } else if (count == 0) {
        step_error(step, NULL,
                   "no way on; write 'next', 'branch', 'parallel', 'join' or 'done: "
                   "true'");
    } else if (step->way) {
        check_way(step);
    }
}

/* ---- Where it leads ----------------------------------------------------------------------------
 */

uint32_t compile_find_step(const struct compilation *compiler, str text)
{
    const struct plan_name *found = plan_find_name(compiler->keys, compiler->count, text);

    return found ? found->step : plan_find(&compiler->named, text);
}

bool compile_sees_item(const struct source_step *step, uint32_t found)
{
    const struct source_step *steps = step->compiler->steps;
    uint32_t undoes = step->plan.undoes;

    if (undoes != STEP_NONE)
        return found == undoes || (steps[found].plan.of == steps[undoes].plan.of && found < undoes);
    return step->plan.of != STEP_NONE && steps[found].plan.of == step->plan.of &&
           &steps[found] < step;
}

bool compile_has_result(const struct source_step *step, str name)
{
    uint32_t found = plan_find(&step->compiler->named, name);

    return found != STEP_NONE && !step->compiler->steps[found].plan.kind->is_without_result &&
           (step->compiler->steps[found].plan.of == STEP_NONE || compile_sees_item(step, found));
}

/* An expression names steps that are there: a slip of the pen is not left for the run. */
void compile_check_named(const struct source_step *step, const struct node *condition)
{
    str text = condition && condition->kind == NODE_STRING ? condition_text(condition) : STR("");
    size_t at = 0;
    str name;

    if (condition_is_pattern(text))
        return;
    while (expr_next_step(text, &at, &name))
        if (!compile_has_result(step, name))
            step_error(
                step, condition, "the condition names steps.%.*s, and there is no such step%s",
                STR_ARG(words_shown(name)),
                plan_find(&step->compiler->named, name) == STEP_NONE ? "" : " with a result");
}

/* The steps of maps, compensations and the time of the whole flow stand in no way. */
static bool is_own_step(const struct compilation *compiler, uint32_t step)
{
    const struct plan_step *plan = &compiler->steps[step].plan;

    return plan->of == STEP_NONE && plan->undoes == STEP_NONE && step + 1 != compiler->whole;
}

/* One that is listed has `then`, and may have `if`; others are a name alone. */
static void link_one(struct source_step *step, const struct node *item, bool is_listed,
                     const struct node *way, struct plan_target *targets, uint32_t *count)
{
    const struct node *name = is_listed ? node_find(item, "then") : item;
    const struct node *condition = is_listed ? node_find(item, "if") : NULL;
    struct plan_target *target = &targets[*count];

    if (!name || name->kind != NODE_STRING)
        return; /* said already */
    target->step = compile_find_step(step->compiler, name->text);
    if (condition && condition->kind == NODE_STRING) {
        target->condition = condition_text(condition);
        target->is_quoted = condition_is_quoted(target->condition);
        compile_check_named(step, condition);
    }
    if (target->step == STEP_NONE)
        step_error(step, name, "'%.*s' names '%.*s', and there is no such step", STR_ARG(way->key),
                   STR_ARG(words_shown(name->text)));
    else if (!is_own_step(step->compiler, target->step))
        step_error(step, name, "'%.*s' names '%.*s', which is a part of another step and in no way",
                   STR_ARG(way->key), STR_ARG(words_shown(name->text)));
    else
        ++*count;
}

static struct plan_target *link_way(struct source_step *step, const struct node *way,
                                    bool is_listed, uint32_t *count)
{
    bool is_list = way->kind == NODE_ARRAY;
    struct plan_target *targets = ARENA_ARRAY(&step->compiler->scope->arena, struct plan_target,
                                              (is_list ? way->count : 1) + 1);

    for (const struct node *item = is_list ? way->first : way; item && targets;
         item = is_list ? item->next : NULL)
        link_one(step, item, is_listed, way, targets, count);
    return targets;
}

void compile_link(struct compilation *compiler)
{
    for (uint32_t i = 0; i < compiler->count; i++) {
        struct source_step *step = &compiler->steps[i];
        struct plan_step *plan = &step->plan;
        bool is_listed = plan->way == WAY_BRANCH || plan->way == WAY_ARMS;

        if (step->way)
            plan->targets = link_way(step, step->way, is_listed, &plan->target_count);
        if (step->errors)
            plan->errors =
                link_way(step, step->errors, step->errors->kind == NODE_ARRAY, &plan->error_count);
    }
}
