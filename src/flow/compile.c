/* compile.c - a document becomes a plan: which notation it is, and its steps in order.
 *
 * Two notations, one plan: a graph (a map of steps, each with its way on; seed 001) and a
 * tree (a list of leaves, one after another; seed 002). */
#include "flow/flow_int.h"
#include "model/grow.h"
#include "model/words.h"
#include <stdio.h>

#define FINDING_COUNT_MAX  100u /* of errors, and of warnings: nobody reads more */
#define PLAN_TEXT_SIZE_MAX ((size_t)8 * LIMIT_TEXT)

/* ---- Findings -------------------------------------------------------------------- */

void compile_no_memory(struct compilation *compiler)
{
    compiler->status = scope_no_memory(compiler->scope);
}

static void add_finding(struct compilation *compiler, const struct finding *finding)
{
    struct findings *findings = compiler->findings;
    struct finding *items;
    uint32_t *count = finding->is_warning ? &compiler->warning_count : &compiler->error_count;

    if ((*count)++ >= FINDING_COUNT_MAX)
        return;
    items = grow_array(&compiler->scope->arena, findings->items, findings->count,
                       &findings->capacity, sizeof *items);
    if (!items) {
        compile_no_memory(compiler);
        return;
    }
    findings->items = items;
    items[findings->count++] = *finding;
}

static void report(struct compilation *compiler, const struct node *node, bool is_warning,
                   const char *format, va_list args) __attribute__((format(printf, 4, 0)));

static void report(struct compilation *compiler, const struct node *node, bool is_warning,
                   const char *format, va_list args)
{
    struct finding finding = { .line = node->line,
                               .column = node->column,
                               .is_warning = is_warning };

    if (vsnprintf(finding.message, sizeof finding.message, format, args) < 0)
        finding.message[0] = '\0';
    add_finding(compiler, &finding);
    if (!is_warning && compiler->status == PAWL_OK)
        compiler->status =
            scope_fail(compiler->scope, PAWL_INVALID_DEFINITION, "line %u, column %u: %s",
                       finding.line, finding.column, finding.message);
}

void compile_error(struct compilation *compiler, const struct node *node, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    report(compiler, node, false, format, args);
    va_end(args);
}

void compile_warning(struct compilation *compiler, const struct node *node, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    report(compiler, node, true, format, args);
    va_end(args);
}

void compile_unknown_key(struct compilation *compiler, const struct node *node, const char *before,
                         const char *const *known)
{
    const struct node at_key = { .line = node->key_line, .column = node->key_column };
    const char *nearest = words_nearest(node->key, known);
    str key = words_shown(node->key);

    if (nearest)
        compile_warning(compiler, &at_key, "%s%.*s': it means nothing; did you mean '%s'?", before,
                        STR_ARG(key), nearest);
    else
        compile_warning(compiler, &at_key, "%s%.*s': it means nothing; remove it", before,
                        STR_ARG(key));
}

/* ---- The top level ----------------------------------------------------------------- */

static bool is_one_of(str key, const char *const *words)
{
    for (; *words; words++)
        if (str_is(key, *words))
            return true;
    return false;
}

/* What a definition says of itself. */
static const char *const about_words[] = { "name", "description", NULL };

static bool is_about(str key)
{
    return is_one_of(key, about_words);
}

static void check_top_keys(struct compilation *compiler, const struct node *document,
                           const char *body)
{
    for (const struct node *node = document->first; node; node = node->next) {
        if (str_is(node->key, body) || is_about(node->key))
            continue;
        if (compile_is_reserved(node->key))
            compile_error(compiler, node, "'%.*s' is not supported by this version yet",
                          STR_ARG(node->key));
        else
            compile_unknown_key(compiler, node, "unknown key '", about_words);
    }
}

/* ---- A graph ------------------------------------------------------------------------ */

/* The first step is `start`, or else the first in the document (B10). */
static void set_first(struct compilation *compiler)
{
    for (uint32_t i = 0; i < compiler->count; i++)
        if (str_is(compiler->steps[i].key, "start"))
            compiler->first = i;
}

static void compile_graph(struct compilation *compiler, const struct node *document)
{
    const struct node *steps = node_find(document, "steps");

    check_top_keys(compiler, document, "steps");
    if (steps->kind != NODE_OBJECT) {
        compile_error(compiler, steps, "'steps' must be an object of steps, found %s",
                      node_kind_name(steps->kind));
        return;
    }
    for (const struct node *node = steps->first; node; node = node->next)
        compile_step(compiler, node, node->key, node->key);
    set_first(compiler);
}

/* A bare map: what is an object is a step; the definition's own words stand beside them. */
static void compile_bare_graph(struct compilation *compiler, const struct node *document)
{
    for (const struct node *node = document->first; node; node = node->next) {
        if (node->kind == NODE_OBJECT || !(is_about(node->key) || compile_is_reserved(node->key)))
            compile_step(compiler, node, node->key, node->key);
        else if (!is_about(node->key))
            compile_error(compiler, node, "'%.*s' is not supported by this version yet",
                          STR_ARG(node->key));
    }
    set_first(compiler);
}

/* ---- A tree ------------------------------------------------------------------------- */

static str path_of(struct compilation *compiler, str parent, uint32_t index)
{
    struct buf buf;
    str path;

    buf_init(&buf, compiler->scope->arena.heap, 0);
    buf_fmt(&buf, "%.*s.%u", STR_ARG(parent), index);
    path = buf_keep(&buf, &compiler->scope->arena);
    buf_fini(&buf);
    if (!path.data)
        compile_no_memory(compiler);
    return path;
}

static void compile_sequence(struct compilation *compiler, const struct node *list, str path);

static void compile_group(struct compilation *compiler, const struct node *node, str path)
{
    char text[LIMIT_ACTION];
    int size = snprintf(text, sizeof text, "%.*s.do", STR_ARG(path));

    check_top_keys(compiler, node, "do");
    if (size < 0 || (size_t)size >= sizeof text)
        compile_error(compiler, node, "'do' inside 'do' inside 'do' is too deep here");
    else
        compile_sequence(compiler, node_find(node, "do"), (str){ text, (size_t)size });
}

/* Depth is bounded by the document's. */
static void compile_sequence(struct compilation *compiler, const struct node *list, str path)
{
    uint32_t index = 0;

    if (list->kind != NODE_ARRAY) {
        compile_error(compiler, list, "'do' must be an array of steps, found %s",
                      node_kind_name(list->kind));
        return;
    }
    for (const struct node *node = list->first; node; node = node->next) {
        str name = path_of(compiler, path, index++);

        if (!name.data)
            return;
        if (node_find(node, "do"))
            compile_group(compiler, node, name);
        else
            compile_step(compiler, node, STR_NONE, name);
    }
}

static void compile_tree(struct compilation *compiler, const struct node *document)
{
    compiler->is_tree = true;
    check_top_keys(compiler, document, "do");
    compile_sequence(compiler, node_find(document, "do"), STR("do"));
    for (uint32_t i = 0; i + 1 < compiler->count; i++)
        compiler->steps[i].plan.next = i + 1;
}

/* ---- Which of them ------------------------------------------------------------------ */

/* The keys that say what a document is; more than one is none (DESIGN, "Definitions"). */
static const struct node *find_notation(struct compilation *compiler, const struct node *document)
{
    static const char *const words[] = { "states", "steps", "start", "do", "dopar", "try", NULL };
    const struct node *found = NULL;

    for (const struct node *node = document->first; node; node = node->next) {
        if (!is_one_of(node->key, words) ||
            (str_is(node->key, "start") && node->kind != NODE_OBJECT))
            continue;
        if (found) {
            compile_error(compiler, node, "'%.*s' beside '%.*s': a definition is one thing",
                          STR_ARG(node->key), STR_ARG(found->key));
            return NULL;
        }
        found = node;
    }
    if (!found)
        compile_error(compiler, document, "no 'steps', no 'start' and no 'do': not a flow");
    return found;
}

static void compile_document(struct compilation *compiler, const struct node *document)
{
    const struct node *notation = find_notation(compiler, document);

    if (!notation)
        return;
    if (str_is(notation->key, "steps"))
        compile_graph(compiler, document);
    else if (str_is(notation->key, "start"))
        compile_bare_graph(compiler, document);
    else if (str_is(notation->key, "do"))
        compile_tree(compiler, document);
    else if (str_is(notation->key, "states"))
        compile_error(compiler, notation, "'states' makes a machine, not a flow");
    else
        compile_error(compiler, notation, "'%.*s' is not supported by this version yet",
                      STR_ARG(notation->key));
    if (compiler->status == PAWL_OK && compiler->count == 0)
        compile_error(compiler, notation, "a flow needs at least one step");
}

/* ---- The definition ------------------------------------------------------------------ */

static str print_plan(struct compilation *compiler)
{
    struct plan plan = { .is_tree = compiler->is_tree,
                         .first = compiler->first,
                         .count = compiler->count };
    struct buf buf;
    str text = STR_NONE;

    plan.steps = ARENA_ARRAY(&compiler->scope->arena, struct plan_step, plan.count);
    for (uint32_t i = 0; i < plan.count && plan.steps; i++)
        plan.steps[i] = compiler->steps[i].plan;
    buf_init(&buf, compiler->scope->arena.heap, PLAN_TEXT_SIZE_MAX);
    if (plan.steps) {
        plan_print(&plan, &buf);
        text = buf_keep(&buf, &compiler->scope->arena);
    }
    if (!text.data)
        compile_no_memory(compiler);
    buf_fini(&buf);
    return text;
}

static pawl_status make_definition(struct compilation *compiler, struct definition **out)
{
    struct scope *scope = compiler->scope;
    struct definition *definition = ARENA_NEW(&scope->arena, struct definition);
    pawl_status status;

    if (!definition)
        return scope_no_memory(scope);
    definition->kind = KIND_FLOW;
    definition->compiler = COMPILER_NUMBER;
    definition->plan_text = print_plan(compiler);
    status = compiler->status;
    if (status == PAWL_OK)
        status = definition_set_lifecycle(definition, scope);
    if (status == PAWL_OK)
        status = flow_behavior.prepare(definition, scope);
    if (status == PAWL_OK)
        *out = definition;
    return status;
}

pawl_status flow_compile(struct scope *scope, const struct node *document,
                         struct findings *findings, struct definition **out)
{
    struct findings unread = { 0 };
    struct compilation compiler = { .scope = scope, .findings = findings ? findings : &unread };

    if (document->kind != NODE_OBJECT)
        compile_error(&compiler, document, "a definition must be an object, found %s",
                      node_kind_name(document->kind));
    else
        compile_document(&compiler, document);
    if (compiler.count > 0 && compiler.status != PAWL_NO_MEMORY)
        compile_check(&compiler);
    return compiler.status == PAWL_OK ? make_definition(&compiler, out) : compiler.status;
}
