/* compile_template.c - the templates of a step, checked when all steps are known.
 *
 * Authors write what other languages have: an index in brackets, a filter, an operator, another
 * root. A template without = has paths and nothing else, so such a text is a key which hardly any
 * value has, and "" comes of it. */
#include "expr/expr.h"
#include "flow/compile.h"
#include "model/input_schema.h"
#include <stdio.h>

#define TEMPLATE_HINT_SIZE 160

/* ---- Hints --------------------------------------------------------------------------------- */

static bool has_text(str text, const char *part)
{
    return memmem(text.data, text.size, part, strlen(part)) != NULL;
}

static bool calculates(str text)
{
    static const char *const signs[] = { " + ",  " - ",  " * ", " / ", " % ", " .. ",
                                         " == ", " ~= ", " > ", " < ", " ? ", " and ",
                                         " or ", "()",   "??",  NULL };

    for (const char *const *sign = signs; *sign; sign++)
        if (has_text(text, *sign))
            return true;
    return false;
}

/* `l[1].a["b"]` as the path that it means: `l.1.a.b`. */
static void print_path(str text, char *out, size_t size)
{
    size_t used = 0;

    for (size_t i = 0; i < text.size && used + 1 < size; i++) {
        char byte = text.data[i];

        if (byte == '[' && used > 0)
            out[used++] = '.';
        else if (!memchr("[]\"'", byte, 4))
            out[used++] = byte;
    }
    out[used] = '\0';
}

static void print_root(str text, char out[TEMPLATE_HINT_SIZE])
{
    static const char *const roots[] = { "input", "context", "steps", "instance", NULL };
    size_t size = 0;
    const char *nearest;

    while (size < text.size && !memchr(".[| ", text.data[size], 4))
        size++;
    nearest = words_nearest((str){ text.data, size }, roots);
    if (nearest && !str_is((str){ text.data, size }, nearest))
        (void)snprintf(out, TEMPLATE_HINT_SIZE, "; did you mean '%s'?", nearest);
}

/* "; write {{input.l.1}}: ...": what to write instead of a template that no value can have a path
 * for, or "". `template` is the text with its braces. */
static void print_hint(str template, char out[TEMPLATE_HINT_SIZE])
{
    str text = { template.data + 2, template.size - 4 };
    const char *words = "";
    char path[WORDS_SIZE_MAX];

    if (has_text(text, "|"))
        words = "; a template has no filters: write an expression: {{= ... }}";
    else if (calculates(text))
        words = "; to calculate, write an expression: {{= ... }}";
    else if (text.size > 0 && (has_text(text, "..") || text.data[text.size - 1] == '.'))
        words = "; a path has a name before and after each dot";
    else if (has_text(text, ":"))
        words = "; a template has no default; an expression may: {{= input.x or 0 }}";
    (void)snprintf(out, TEMPLATE_HINT_SIZE, "%s", words);
    if (words[0] == '\0' && has_text(text, "[")) {
        print_path(text, path, sizeof path);
        (void)snprintf(out, TEMPLATE_HINT_SIZE,
                       "; write {{%s}}: a path has dots, and the first element is 0", path);
    } else if (words[0] == '\0') {
        print_root(text, out);
    }
}

/* ---- Checks --------------------------------------------------------------------------------- */

static bool is_of_instance(str path)
{
    static const char *const words[] = { "id",         "definition",     "version", "subject_ref",
                                         "created_by", "correlation_id", "labels",  NULL };

    return !path.data || str_is_one_of(str_before(path, '.'), words);
}

#define PROPERTIES_MAX 64 /* that a suggestion is looked for among */

/* The property that a word of `path` is a slip of the hand for, or NULL: among the members of what
 * the words before it name. */
static const char *nearest_property(struct compilation *compiler, str path)
{
    const struct node *properties =
        node_find(input_schema_reach(compiler->input, &path), "properties");
    const char *words[PROPERTIES_MAX + 1];
    size_t count = 0;

    for (const struct node *node = properties ? properties->first : NULL;
         node && count < PROPERTIES_MAX; node = node->next)
        words[count++] = arena_str(&compiler->scope->arena, node->key).data;
    words[count] = NULL;
    return compiler->scope->arena.failed ? NULL : words_nearest(str_before(path, '.'), words);
}

/* Without a schema a path that an input lacks is replaced by "". */
static void check_input_path(const struct source_step *step, const struct node *node,
                             const struct template_part *part)
{
    const char *nearest;

    if (!step->compiler->input || input_schema_has(step->compiler->input, part->path))
        return;
    nearest = nearest_property(step->compiler, part->path);
    if (nearest)
        step_error(step, node,
                   "%.*s: the schema under 'input' has no such path; did you mean "
                   "'%.*s'?",
                   STR_ARG(words_shown(part->text)), STR_ARG(words_shown(str_of(nearest))));
    else
        step_error(step, node,
                   "%.*s: the schema under 'input' has no such path; add it to its "
                   "'properties', or correct the path",
                   STR_ARG(words_shown(part->text)));
}

/* A path may be any key, so that it is no error: but one like `l[1]` is hardly ever meant. */
static void warn_template(const struct source_step *step, const struct node *node,
                          const struct template_part *part, const char *hint)
{
    if (hint[0] != '\0')
        step_warning(step, node, "%.*s is read as one key, and is \"\" where that key is missing%s",
                     STR_ARG(words_shown(part->text)), hint);
}

/* Text is left as it is, but "{{input.x" without its end was hardly meant so. */
static void check_unclosed(const struct source_step *step, const struct node *node,
                           const struct template_part *part)
{
    str open = template_unclosed(part->text);

    if (open.data && str_starts(open, EXPRESSION_OPEN))
        step_error(step, node, "%.*s: expected }} at the end of the expression, found none",
                   STR_ARG(words_shown(open)));
    else if (open.data)
        step_warning(step, node,
                     "%.*s stays as it is: expected }} at the end of the template, "
                     "found none",
                     STR_ARG(words_shown(open)));
}

/* NAME of NAME.result or NAME.result.PATH; data NULL: it has another form. */
static str named_step(str path)
{
    const char *word = path.data ? memmem(path.data, path.size, ".result", 7) : NULL;
    size_t size = word ? (size_t)(word - path.data) : 0;
    bool is_whole = word && (size + 7 == path.size || path.data[size + 7] == '.');

    return is_whole ? (str){ path.data, size } : STR_NONE;
}

static void refuse_step(const struct source_step *step, const struct node *node,
                        const struct template_part *part, const char *hint)
{
    str text = words_shown(part->text), name = named_step(part->path);
    const char *nearest = name.data ? compile_nearest_step(step->compiler, name) : NULL;

    if (nearest)
        step_error(
            step, node, "%.*s names no result: there is no step '%.*s'; did you mean '%.*s'?",
            STR_ARG(text), STR_ARG(words_shown(name)), STR_ARG(words_shown(str_of(nearest))));
    else if (name.data)
        step_error(step, node, "%.*s names no result: there is no step '%.*s'%s", STR_ARG(text),
                   STR_ARG(words_shown(name)), hint);
    else
        step_error(step, node, "%.*s names no result; write steps.NAME.result%s", STR_ARG(text),
                   hint);
}

/* {{item}} and {{index}} of the step of a map. */
static bool is_item_root(const struct source_step *step, str root)
{
    uint32_t of = step->plan.undoes == STEP_NONE ? step->plan.of
                                                 : step->compiler->steps[step->plan.undoes].plan.of;
    const struct node *map = of == STEP_NONE ? NULL : step->compiler->steps[of].node;
    const struct node *as = node_find(node_find(map, "map"), "as");

    return map && (str_is(root, "index") || (as ? str_eq(root, as->text) : str_is(root, "item")));
}

static bool is_of_item(const struct source_step *step, const struct template_part *part)
{
    str inner = str_trim((str){ part->text.data + 2, part->text.size - 4 }, " \t");

    return is_item_root(step, str_before(inner, '.'));
}

/* ---- Expressions ---------------------------------------------------------------------------- */

static void check_expression_names(const struct source_step *step, const struct node *node,
                                   enum expr_use use, str text)
{
    struct expr_unknown unknown;
    size_t at = 0;
    str name;

    expr_unknown_begin(&unknown, use, text);
    while (expr_unknown_next(&unknown, &name))
        if (use == EXPR_QUERY || !is_item_root(step, name))
            compile_warn_unknown(step, node, use, name);
    while (expr_next_step(text, &at, &name))
        if (!compile_has_result(step, name))
            step_error(step, node, "the expression names steps.%.*s, and there is no such step%s",
                       STR_ARG(words_shown(name)),
                       plan_find(&step->compiler->named, name) == STEP_NONE ? ""
                                                                            : " with a result");
}

static void check_text(const struct source_step *step, const struct node *node, enum expr_use use,
                       str text)
{
    pawl_status status = expr_check(step->compiler->scope, use, text);

    if (status == PAWL_NO_MEMORY)
        compile_no_memory(step->compiler);
    else if (status != PAWL_OK)
        step_error(step, node, "'%.*s' is not an expression: %s%s", STR_ARG(words_shown(text)),
                   step->compiler->scope->error.message, compile_lua_hint(text));
    else
        check_expression_names(step, node, use, text);
}

static void check_expression(const struct source_step *step, const struct node *node, str text)
{
    struct compilation *compiler = step->compiler;

    compiler->calculates = true;
    if (++compiler->expression_count == LIMIT_STEP_EXPRESSIONS + 1)
        step_error(step, node, "more than %u expressions in one step", LIMIT_STEP_EXPRESSIONS);
    if (text.size == 0)
        step_error(step, node, "{{= }} is empty");
    else
        check_text(step, node, EXPR_VALUE, text);
}

static bool is_query_name(str name)
{
    return name.size > 0 && name.size <= LIMIT_NAME &&
           str_span(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-") ==
               name.size;
}

void compile_queries(struct compilation *compiler)
{
    const struct source_step step = {
        .compiler = compiler,
        .plan = { .name = STR("queries"), .of = STEP_NONE, .undoes = STEP_NONE }
    };
    const struct node *queries = compiler->queries;

    if (queries->kind != NODE_OBJECT || queries->count == 0 || queries->count > LIMIT_QUERIES) {
        step_error(&step, queries, "expected {NAME: EXPRESSION}, from 1 to %u of them",
                   LIMIT_QUERIES);
        return;
    }
    for (const struct node *query = queries->first; query; query = query->next)
        if (!is_query_name(query->key))
            step_error(&step, query,
                       "'%.*s': a name has 1 to %u of the characters A-Z a-z 0-9 . _ -",
                       STR_ARG(words_shown(query->key)), LIMIT_NAME);
        else if (query->kind != NODE_STRING || str_is_blank(query->text))
            step_error(&step, query, "'%.*s' must be an expression in quotes", STR_ARG(query->key));
        else
            check_text(&step, query, EXPR_QUERY, query->text);
}

/* ---- One template ---------------------------------------------------------------------------- */

static void check_template(const struct source_step *step, const struct node *node,
                           const struct template_part *part)
{
    str text = words_shown(part->text);
    char hint[TEMPLATE_HINT_SIZE] = "";
    uint32_t found;
    str rest;

    if (part->kind != TEMPLATE_TEXT && part->kind != TEMPLATE_VALUE)
        print_hint(part->text, hint);
    switch (part->kind) {
    case TEMPLATE_TEXT:
        check_unclosed(step, node, part);
        break;
    case TEMPLATE_VALUE:
        check_expression(step, node, part->path);
        break;
    case TEMPLATE_CONTEXT:
        warn_template(step, node, part, hint);
        break;
    case TEMPLATE_INPUT:
        check_input_path(step, node, part);
        if (!step->compiler->input)
            warn_template(step, node, part, hint);
        break;
    case TEMPLATE_UNKNOWN: /* "{{.Names}}" may be meant for the tool (B21) */
        if (is_of_item(step, part))
            break;
        step_warning(step, node,
                     "%.*s stays as it is: templates begin with input, context, "
                     "steps or instance%s",
                     STR_ARG(text), hint);
        break;
    case TEMPLATE_INSTANCE:
        if (!is_of_instance(part->path))
            step_error(step, node,
                       "%.*s is nothing an instance has: id, definition, version, "
                       "subject_ref, correlation_id, created_by, labels",
                       STR_ARG(text));
        break;
    case TEMPLATE_STEP:
        found = template_step(&step->compiler->named, part->path, SIZE_MAX, &rest);
        if (found == STEP_NONE)
            refuse_step(step, node, part, hint);
        else if (step->compiler->steps[found].plan.of != STEP_NONE &&
                 !compile_sees_item(step, found))
            step_error(step, node,
                       "%.*s: the results of a map's items are its own result, and only a later "
                       "step of the same item sees them",
                       STR_ARG(text));
        else if (step->compiler->steps[found].plan.kind->is_without_result)
            step_error(step, node, "%.*s: a %s has no result", STR_ARG(text),
                       step->compiler->steps[found].plan.kind->word);
        else if (rest.data && (str_has(rest, '[') || str_has(rest, '|')))
            warn_template(step, node, part, hint);
        break;
    }
}

/* {{{{input.x}}}}: the inner braces are the template's, and the others stay. */
static void check_braces(const struct source_step *step, const struct node *node,
                         const struct template_part *part, str rest)
{
    size_t before = (size_t)(part->text.data - node->text.data);
    bool is_twice = template_is_replaced(part) && before >= 2 &&
                    memcmp(part->text.data - 2, "{{", 2) == 0 && str_starts(rest, STR("}}"));

    if (is_twice)
        step_warning(step, node,
                     "{{%.*s}} keeps its outer braces: they stay around the value; write %.*s",
                     STR_ARG(words_shown(part->text)), STR_ARG(words_shown(part->text)));
}

bool compile_has_template(const struct source_step *step, str text)
{
    struct template_part part;

    for (str rest = text; template_next(true, &rest, &part);)
        if (template_is_replaced(&part) ||
            (part.kind == TEMPLATE_UNKNOWN && is_of_item(step, &part)))
            return true;
    return false;
}

static void check_templates(const struct source_step *step, const struct node *node)
{
    struct template_part part;

    for (str rest = node->text; node->kind == NODE_STRING && template_next(true, &rest, &part);) {
        check_template(step, node, &part);
        check_braces(step, node, &part, rest);
    }
    for (const struct node *child = node->first; child; child = child->next)
        check_templates(step, child);
}

void compile_check_templates(const struct source_step *step, const struct node *node)
{
    bool has_arms = step->plan.kind && step->plan.kind->has_arms && node->kind == NODE_ARRAY;

    step->compiler->expression_count = 0;
    if (!has_arms)
        check_templates(step, node);
    for (const struct node *arm = has_arms ? node->first : NULL; arm; arm = arm->next)
        for (const struct node *member = arm->first; member; member = member->next)
            if (!str_is(member->key, "do")) /* steps of their own, in a tree */
                check_templates(step, member);
}
