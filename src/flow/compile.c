/* compile.c - a document becomes a plan: which notation it is, and what stands beside its steps.
 *
 * Two notations, one plan: a graph (a map of steps, each with its way on; seed 001) and a
 * tree (groups of leaves: do, dopar, try; seed 002). */
#include "flow/compile.h"
#include "base/grow.h"
#include "model/input_schema.h"
#include "model/mcp_key.h"
#include "model/retention_key.h"
#include <stdio.h>

#define PLAN_TEXT_SIZE_MAX ((size_t)8 * LIMIT_TEXT)

/* ---- Findings -------------------------------------------------------------------- */

/* What cannot be allocated marks the arena, and flow_compile() asks that at its end. */
void compile_no_memory(struct compilation *compiler)
{
    compiler->scope->arena.failed = true;
}

#define REPORT(compiler, node, step, is_warning)                                                   \
    do {                                                                                           \
        va_list args;                                                                              \
        va_start(args, format);                                                                    \
        findings_report(&(compiler)->report, node, step, is_warning, format, args);                \
        va_end(args);                                                                              \
    } while (0)

void compile_error(struct compilation *compiler, const struct node *node, const char *format, ...)
{
    REPORT(compiler, node, STR_NONE, false);
}

void compile_warning(struct compilation *compiler, const struct node *node, const char *format, ...)
{
    REPORT(compiler, node, STR_NONE, true);
}

void step_error(const struct source_step *step, const struct node *node, const char *format, ...)
{
    REPORT(step->compiler, node ? node : step->node, step->plan.name, false);
}

void step_warning(const struct source_step *step, const struct node *node, const char *format, ...)
{
    REPORT(step->compiler, node ? node : step->node, step->plan.name, true);
}

bool step_expect(const struct source_step *step, const struct node *node, enum node_kind kind,
                 const char *expected)
{
    if (node->kind != kind)
        step_error(step, node, "'%.*s' must be %s, found %s", STR_ARG(node->key), expected,
                   node_kind_name(node->kind));
    return node->kind == kind;
}

bool step_is_true(const struct source_step *step, const char *key)
{
    const struct node *node = node_find(step->node, key);

    return node && step_expect(step, node, NODE_BOOL, "true or false") && node->truth;
}

void compile_refuse_key(struct compilation *compiler, const struct source_step *step,
                        const struct node *node, const struct known_key *const *tables,
                        const char *path, const char *after)
{
    const struct node at_key = { .line = node->key_line, .column = node->key_column };
    char hint[KEY_HINT_SIZE] = "";
    str key = words_shown(node->key);

    if (compiler->report.error_count < FINDINGS_MAX) /* a hint that is not shown costs time */
        keys_hint(tables, node->key, hint);
    if (step)
        step_error(step, &at_key, "unknown key '%s%.*s'%s; %s", path, STR_ARG(key), after, hint);
    else
        compile_error(compiler, &at_key, "unknown key '%s%.*s'%s; %s", path, STR_ARG(key), after,
                      hint);
}

bool compile_has_key(const struct known_key *const *tables, str key)
{
    while (*tables && !keys_have(*tables, key))
        tables++;
    return *tables != NULL;
}

void compile_tables(struct compilation *compiler, const struct source_step *step,
                    const struct node *object, const struct known_key *const *tables,
                    const char *path, const char *after)
{
    for (const struct node *node = object->kind == NODE_OBJECT ? object->first : NULL; node;
         node = node->next)
        if (!compile_has_key(tables, node->key))
            compile_refuse_key(compiler, step, node, tables, path, after);
}

void compile_keys(struct compilation *compiler, const struct source_step *step,
                  const struct node *object, const struct known_key *keys, const char *path)
{
    const struct known_key *const tables[] = { keys, NULL };

    compile_tables(compiler, step, object, tables, path, "");
}

/* ---- The top level ----------------------------------------------------------------- */

str compile_take(struct compilation *compiler, struct buf *buf)
{
    str text = buf_take(buf, &compiler->scope->arena);

    if (!text.data)
        compile_no_memory(compiler);
    return text;
}

str compile_print(struct compilation *compiler, const struct node *node)
{
    str text = node_keep(node, &compiler->scope->arena);

    if (!text.data)
        compile_no_memory(compiler);
    return text;
}

str compile_print_known(struct compilation *compiler, const struct node *object)
{
    struct buf buf;

    buf_init(&buf, compiler->scope->arena.heap, 0);
    json_open(&buf, '{');
    for (const struct node *node = object->first; node; node = node->next)
        if (!key_is_free(node->key)) {
            json_key_str(&buf, node->key);
            node_print(node, &buf);
        }
    json_close(&buf, '}');
    return compile_take(compiler, &buf);
}

/* The top level has the keys of a flow, and those of its graph or group. */
static void check_top_keys(struct compilation *compiler, const struct node *document,
                           const struct known_key *root)
{
    const struct known_key *const tables[] = { root, flow_keys, NULL };

    for (const struct node *node = document->first; node; node = node->next)
        if (!compile_has_key(tables, node->key))
            compile_refuse_key(compiler, NULL, node, tables, "", "");
}

/* ---- Beside the steps --------------------------------------------------------------- */

/* signals: {NAME: {buffer: true}} */
static void read_signals(struct compilation *compiler, const struct node *signals)
{
    char path[WORDS_SIZE_MAX + 16];

    if (signals->kind != NODE_OBJECT)
        compile_error(compiler, signals, "'signals' must be {NAME: {buffer: true}}, found %s",
                      node_kind_name(signals->kind));
    compiler->buffered = ARENA_ARRAY(&compiler->scope->arena, str, signals->count + 1);
    for (const struct node *signal = signals->kind == NODE_OBJECT ? signals->first : NULL;
         signal && compiler->buffered; signal = signal->next) {
        const struct node *buffer = node_find(signal, "buffer");

        if (signal->kind != NODE_OBJECT || (buffer && buffer->kind != NODE_BOOL) ||
            str_is_blank(signal->key) || signal->key.size > LIMIT_ACTION)
            compile_error(compiler, signal, "signal '%.*s': expected NAME: {buffer: true}",
                          STR_ARG(words_shown(signal->key)));
        (void)snprintf(path, sizeof path, "signals.%.*s.", STR_ARG(words_shown(signal->key)));
        compile_keys(compiler, NULL, signal, signal_keys, path);
        if (buffer && buffer->truth)
            compiler->buffered[compiler->buffered_count++] = signal->key;
    }
}

static void report_schema(void *context, const struct node *at, const char *message)
{
    compile_error(context, at, "%s", message);
}

static void read_about(struct compilation *compiler, const struct node *document)
{
    const struct node *signals = node_find(document, "signals"), *input;
    uint32_t error_count;

    if (signals)
        read_signals(compiler, signals);
    input = node_find(document, "input");
    error_count = compiler->report.error_count;
    if (input)
        input_schema_check(input, report_schema, compiler);
    compiler->input = compiler->report.error_count == error_count ? input : NULL;
    if (node_find(document, "mcp"))
        mcp_key_check(node_find(document, "mcp"), report_schema, compiler);
    if (node_find(document, "retention"))
        retention_key_check(node_find(document, "retention"), report_schema, compiler);
    compile_quotas_of_flow(compiler, document);
    compiler->queries = node_find(document, "queries");
    compiler->notify = node_find(document, "notify");
    compiler->cancel_node = node_find(document, "cancel");
    compiler->output = node_find(document, "output");
    if (compiler->output)
        compiler->output_text = compile_print(compiler, compiler->output);
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

    check_top_keys(compiler, document, graph_keys);
    read_about(compiler, document);
    if (steps->kind != NODE_OBJECT) {
        compile_error(compiler, steps, "'steps' must be an object of steps, found %s",
                      node_kind_name(steps->kind));
        return;
    }
    for (const struct node *node = steps->first; node; node = node->next)
        compile_step(compiler, node, node->key, node->key);
    set_first(compiler);
    if (node_find(document, "timeout") && compiler->count > 0)
        compiler->whole = compile_limits(compiler, document, STR("steps")) + 1;
}

/* A bare map: what is an object is a step, whatever it is called; name, description and free keys
 * stand beside them. It is seed 001's own form and has no other words, so that steps may be called
 * `output`. */
static void compile_bare_graph(struct compilation *compiler, const struct node *document)
{
    static const char *const words[] = { "name", "description", NULL };

    for (const struct node *node = document->first; node; node = node->next)
        if (node->kind == NODE_OBJECT ||
            (!str_is_one_of(node->key, words) && !key_is_free(node->key)))
            compile_step(compiler, node, node->key, node->key);
    set_first(compiler);
}

/* ---- Which of them ------------------------------------------------------------------ */

static const char *const notation_words[] = {
    "states", "steps", "start", "do", "dopar", "try", NULL
};

static bool is_notation(const struct node *node)
{
    return str_is_one_of(node->key, notation_words) &&
           (!str_is(node->key, "start") || node->kind == NODE_OBJECT);
}

/* A key that says what kind of step it is in. */
static bool is_kind_key(str key)
{
    bool is_it = str_is(key, "action");

    for (uint32_t i = 0; i < STEP_KIND_COUNT && !is_it; i++)
        is_it = step_kinds[i]->key && str_is(key, step_kinds[i]->key);
    return is_it;
}

/* Without a key of a notation: a leaf, which is a tree by itself (C2). */
static const struct node *find_leaf(const struct node *document)
{
    for (const struct node *node = document->first; node; node = node->next)
        if (is_kind_key(node->key))
            return node;
    return NULL;
}

bool flow_is_flow(const struct node *document)
{
    for (const struct node *node = document->first; node; node = node->next)
        if (is_notation(node) && !str_is(node->key, "states"))
            return true;
    return !node_find(document, "states") && find_leaf(document);
}

/* The key that says which notation the document has. Several are an error. */
static const struct node *find_notation(struct compilation *compiler, const struct node *document)
{
    const struct node *found = NULL;

    for (const struct node *node = document->first; node; node = node->next) {
        if (!is_notation(node))
            continue;
        if (found) {
            compile_error(compiler, node,
                          "'%.*s' and '%.*s' do not go together: a definition is of one kind",
                          STR_ARG(node->key), STR_ARG(found->key));
            return NULL;
        }
        found = node;
    }
    found = found ? found : find_leaf(document);
    if (!found)
        compile_error(compiler, document,
                      "no 'steps', 'start', 'do', 'dopar', 'try' or 'action': not a flow");
    return found;
}

static void compile_document(struct compilation *compiler, const struct node *document)
{
    const struct node *notation = find_notation(compiler, document);
    const struct node *name = node_find(document, "name");

    compiler->own_name = name && name->kind == NODE_STRING ? name->text : STR_NONE;
    if (!notation)
        return;
    for (const struct known_key *const *group = group_keys; *group; group++)
        if (str_is(notation->key, (*group)->word)) {
            check_top_keys(compiler, document, *group);
            read_about(compiler, document);
            compile_tree(compiler, document, (*group)->word);
            return;
        }
    if (is_kind_key(notation->key)) {
        read_about(compiler, document);
        compile_leaf(compiler, document);
    } else if (str_is(notation->key, "steps")) {
        compile_graph(compiler, document);
    } else if (str_is(notation->key, "start")) {
        compile_bare_graph(compiler, document);
    } else {
        compile_error(compiler, notation, "'states' makes a machine, not a flow");
    }
    if (compiler->report.error_count == 0 && compiler->count == 0)
        compile_error(compiler, notation, "a flow needs at least one step");
}

/* ---- The definition ------------------------------------------------------------------ */

static str print_plan(struct compilation *compiler)
{
    struct plan plan = { .is_tree = compiler->is_tree,
                         .first = compiler->first,
                         .count = compiler->count,
                         .output = compiler->output_text,
                         .calculates = compiler->calculates,
                         .queries = compiler->queries,
                         .notify = compiler->notify,
                         .cleans = compiler->cleans,
                         .whole = compiler->whole,
                         .cancel = compiler->cancel,
                         .quotas = compiler->quotas,
                         .buffered = compiler->buffered,
                         .buffered_count = compiler->buffered_count };
    struct buf buf;

    if (compiler->is_tree)
        plan.tree = buf_keep(&compiler->tree, &compiler->scope->arena);
    plan.steps = ARENA_ARRAY(&compiler->scope->arena, struct plan_step, plan.count + 1);
    for (uint32_t i = 0; i < plan.count && plan.steps; i++)
        plan.steps[i] = compiler->steps[i].plan;
    buf_init(&buf, compiler->scope->arena.heap, PLAN_TEXT_SIZE_MAX);
    if (!compiler->scope->arena.failed)
        plan_print(&plan, &buf);
    return compile_take(compiler, &buf);
}

static pawl_status make_definition(struct compilation *compiler, struct definition **out)
{
    struct scope *scope = compiler->scope;
    struct definition *definition = ARENA_NEW(&scope->arena, struct definition);

    TRY_MEMORY(scope, definition);
    definition->kind = KIND_FLOW;
    definition->compiler = COMPILER_NUMBER;
    definition->plan_text = print_plan(compiler);
    definition->input_schema = compiler->input;
    if (compiler->input)
        definition->input_text = compile_print(compiler, compiler->input);
    TRY_MEMORY(scope, !scope->arena.failed);
    TRY(definition_set_lifecycle(definition, scope));
    TRY(flow_behavior.prepare(definition, scope));
    *out = definition;
    return PAWL_OK;
}

pawl_status flow_compile(struct scope *scope, const struct node *document,
                         struct findings *findings, struct definition **out)
{
    struct findings unread = { 0 };
    struct compilation compiler = { .scope = scope,
                                    .of = STEP_NONE,
                                    .undoes = STEP_NONE,
                                    .report = { scope, findings ? findings : &unread } };
    pawl_status status;

    buf_init(&compiler.tree, scope->arena.heap, PLAN_TEXT_SIZE_MAX);
    if (document->kind != NODE_OBJECT)
        compile_error(&compiler, document, "a definition must be an object, found %s",
                      node_kind_name(document->kind));
    else
        compile_document(&compiler, document);
    compile_saga(&compiler, document);
    if (!scope->arena.failed)
        compile_check(&compiler);
    if (scope->arena.failed || compiler.tree.failed)
        status = scope_no_memory(scope);
    else
        status = compiler.report.error_count == 0 ? make_definition(&compiler, out)
                                                  : PAWL_INVALID_DEFINITION;
    buf_fini(&compiler.tree);
    return status;
}
