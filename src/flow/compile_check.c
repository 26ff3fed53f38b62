/* compile_check.c - what can be said only when all steps are known: names, templates, sleep. */
#include "base/time.h"
#include "flow/compile.h"
#include "model/input_schema.h"
#include "model/words.h"

struct check {
    struct compilation *compiler;
    struct plan_name *keys, *names; /* sorted; a graph's steps have both */
    struct plan plan;               /* as much of it as template_step() looks at */
};

static str step_name(const struct compilation *compiler, uint32_t index)
{
    if (index == STEP_NONE)
        return STR("output");
    return words_shown(compiler->steps[index].plan.name);
}

/* ---- Names ------------------------------------------------------------------------------ */

static bool collect_names(struct check *check)
{
    struct compilation *compiler = check->compiler;
    struct arena *arena = &compiler->scope->arena;

    check->keys = ARENA_ARRAY(arena, struct plan_name, compiler->count + 1);
    check->names = ARENA_ARRAY(arena, struct plan_name, compiler->count + 1);
    if (!check->keys || !check->names) {
        compile_no_memory(compiler);
        return false;
    }
    for (uint32_t i = 0; i < compiler->count; i++) {
        check->keys[i] = (struct plan_name){ compiler->steps[i].key, i };
        check->names[i] = (struct plan_name){ compiler->steps[i].plan.name, i };
    }
    plan_sort_names(check->keys, compiler->count);
    plan_sort_names(check->names, compiler->count);
    check->plan = (struct plan){ .count = compiler->count, .names = check->names };
    return true;
}

static void check_unique(const struct check *check)
{
    struct compilation *compiler = check->compiler;

    for (uint32_t i = 1; i < compiler->count; i++)
        if (str_eq(check->names[i - 1].text, check->names[i].text))
            compile_error(compiler, compiler->steps[check->names[i].step].node,
                          "step '%.*s': another step has this name",
                          STR_ARG(words_shown(check->names[i].text)));
}

/* ---- Templates ----------------------------------------------------------------------------- */

static bool is_of_instance(str path)
{
    static const char *const words[] = { "id",         "definition",     "version", "subject_ref",
                                         "created_by", "correlation_id", "labels",  NULL };
    const char *dot = path.data ? memchr(path.data, '.', path.size) : NULL;

    return !path.data ||
           compile_is_one_of((str){ path.data, dot ? (size_t)(dot - path.data) : path.size },
                             words);
}

#define PROPERTIES_MAX 64 /* that a suggestion is looked for among */

/* The property that a word of `path` is a slip of the hand for, or NULL: among the members of what
 * the words before it name. */
static const char *nearest_property(struct compilation *compiler, str path)
{
    const struct node *properties =
        node_find(input_schema_reach(compiler->input, &path), "properties");
    const char *dot = memchr(path.data, '.', path.size), *words[PROPERTIES_MAX + 1];
    size_t count = 0;

    for (const struct node *node = properties ? properties->first : NULL;
         node && count < PROPERTIES_MAX; node = node->next)
        words[count++] = arena_str(&compiler->scope->arena, node->key).data;
    words[count] = NULL;
    return compiler->scope->arena.failed
               ? NULL
               : words_nearest((str){ path.data, dot ? (size_t)(dot - path.data) : path.size },
                               words);
}

/* Without a schema a path that an input lacks is replaced by "". */
static void check_input_path(struct compilation *compiler, str name, const struct node *node,
                             const struct template_part *part)
{
    const char *nearest;

    if (!compiler->input || input_schema_has(compiler->input, part->path))
        return;
    nearest = nearest_property(compiler, part->path);
    if (nearest)
        compile_error(compiler, node,
                      "step '%.*s': %.*s: the schema under 'input' has no such path; did you mean "
                      "'%.*s'?",
                      STR_ARG(name), STR_ARG(words_shown(part->text)),
                      STR_ARG(words_shown(str_of(nearest))));
    else
        compile_error(compiler, node,
                      "step '%.*s': %.*s: the schema under 'input' has no such path; add it to its "
                      "'properties', or correct the path",
                      STR_ARG(name), STR_ARG(words_shown(part->text)));
}

/* A path may be any key, so that it is no error: but one like `l[1]` is hardly ever meant. */
static void warn_template(struct compilation *compiler, str name, const struct node *node,
                          const struct template_part *part, const char *hint)
{
    if (hint[0] != '\0')
        compile_warning(compiler, node,
                        "step '%.*s': %.*s is read as one key, and is \"\" where there is none%s",
                        STR_ARG(name), STR_ARG(words_shown(part->text)), hint);
}

/* Text is left as it is, but "{{input.x" without its end was hardly meant so. */
static void check_unclosed(struct compilation *compiler, str name, const struct node *node,
                           const struct template_part *part)
{
    str open = template_unclosed(part->text);

    if (open.data)
        compile_warning(compiler, node,
                        "step '%.*s': %.*s stays as it is: expected }} at the end of the template, "
                        "found none",
                        STR_ARG(name), STR_ARG(words_shown(open)));
}

static void check_template(const struct check *check, uint32_t index, const struct node *node,
                           const struct template_part *part)
{
    struct compilation *compiler = check->compiler;
    str name = step_name(compiler, index), text = words_shown(part->text);
    char hint[TEMPLATE_HINT_SIZE] = "";
    str rest;

    if (part->kind != TEMPLATE_TEXT)
        compile_template_hint(part->text, hint);
    switch (part->kind) {
    case TEMPLATE_TEXT:
        check_unclosed(compiler, name, node, part);
        break;
    case TEMPLATE_CONTEXT:
        warn_template(compiler, name, node, part, hint);
        break;
    case TEMPLATE_INPUT:
        check_input_path(compiler, name, node, part);
        if (!compiler->input)
            warn_template(compiler, name, node, part, hint);
        break;
    case TEMPLATE_UNKNOWN: /* "{{.Names}}" may be meant for the tool (B21) */
        compile_warning(compiler, node,
                        "step '%.*s': %.*s stays as it is: templates begin with input, context, "
                        "steps or instance%s",
                        STR_ARG(name), STR_ARG(text), hint);
        break;
    case TEMPLATE_INSTANCE:
        if (!is_of_instance(part->path))
            compile_error(compiler, node,
                          "step '%.*s': %.*s is nothing an instance has: id, definition, version, "
                          "subject_ref, correlation_id, created_by, labels",
                          STR_ARG(name), STR_ARG(text));
        break;
    case TEMPLATE_STEP:
        if (template_step(&check->plan, part->path, SIZE_MAX, &rest) == STEP_NONE)
            compile_error(compiler, node,
                          "step '%.*s': %.*s names no result; write steps.NAME.result%s",
                          STR_ARG(name), STR_ARG(text), hint);
        else if (rest.data && (memchr(rest.data, '[', rest.size) || memchr(rest.data, '|', rest.size)))
            warn_template(compiler, name, node, part, hint);
        break;
    }
}

static void check_templates(const struct check *check, uint32_t index, const struct node *node)
{
    struct template_part part;

    if (node->kind == NODE_STRING)
        for (str rest = node->text; template_next(&rest, &part);)
            check_template(check, index, node, &part);
    for (const struct node *child = node->first; child; child = child->next)
        check_templates(check, index, child);
}

/* ---- Sleep ---------------------------------------------------------------------------------- */

static bool has_template(str text)
{
    struct template_part part;

    while (template_next(&text, &part))
        if (template_is_replaced(&part))
            return true;
    return false;
}

static void check_sleep(const struct check *check, uint32_t index)
{
    struct compilation *compiler = check->compiler;
    const struct source_step *step = &compiler->steps[index];
    const struct node *duration = node_find(step->plan.args_node, "for");
    str name = step_name(compiler, index);
    int64_t ms;

    if (!duration || duration->kind != NODE_STRING ||
        (!has_template(duration->text) && !duration_parse(duration->text, &ms)))
        compile_error(compiler, duration ? duration : step->node,
                      "step '%.*s': sleep needs {for: DURATION}, like \"30s\"", STR_ARG(name));
    if (!step->plan.args_node)
        return;
    for (const struct node *node = step->plan.args_node->first; node; node = node->next)
        if (node != duration)
            compile_warning(compiler, node, "step '%.*s': sleep does not know '%.*s'",
                            STR_ARG(name), STR_ARG(words_shown(node->key)));
}

/* ---- A flow that spawns itself -------------------------------------------------------------- */

/* NAME or NAME@VERSION of the flow itself? */
static bool spawns_itself(const struct compilation *compiler, const struct plan_step *step)
{
    const struct node *definition =
        step->kind == STEP_KIND_SPAWN ? node_find(step->args_node, "definition") : NULL;
    str own = compiler->own_name;

    return own.data && definition && str_eq(reference_name(definition->text), own);
}

/* Without a step that waits before it, it would spawn as fast as the store can write. */
static void check_spawn(struct compilation *compiler, uint32_t index)
{
    const struct plan_step *step = &compiler->steps[index].plan;

    if (!spawns_itself(compiler, step))
        return;
    for (uint32_t i = 0; i < compiler->count; i++) {
        const struct plan_step *other = &compiler->steps[i].plan;

        if (other->kind != STEP_KIND_SPAWN && !step_is_taken(other))
            return;
    }
    compile_warning(compiler, compiler->steps[index].node,
                    "step '%.*s': it spawns the flow itself, and nothing waits: a cycle without a "
                    "wait; add a sleep",
                    STR_ARG(step_name(compiler, index)));
}

/* A warning alone: the host of a plan, or a worker, may have a `log` of its own. */
static void check_log(const struct check *check, uint32_t index)
{
    struct compilation *compiler = check->compiler;
    const struct source_step *step = &compiler->steps[index];
    const struct node *args = step->plan.args_node;

    if (args && args->kind == NODE_STRING && has_template(args->text))
        return;
    if (!args || !node_find(args, "message"))
        compile_warning(compiler, args ? args : step->node,
                        "step '%.*s': the built-in log takes {message: TEXT}, and fails with %s",
                        STR_ARG(step_name(compiler, index)),
                        !args || args->kind == NODE_OBJECT ? "no message"
                                                           : node_kind_name(args->kind));
}

void compile_check(struct compilation *compiler)
{
    struct check check = { .compiler = compiler };

    if (!collect_names(&check))
        return;
    check_unique(&check);
    compile_link(compiler, check.keys, check.names);
    compile_cancel(compiler, check.keys, check.names);
    for (uint32_t i = 0; i < compiler->count; i++) {
        const struct plan_step *plan = &compiler->steps[i].plan;

        if (plan->args_node)
            check_templates(&check, i, plan->args_node);
        if (step_is_sleep(plan))
            check_sleep(&check, i);
        else if (plan->kind == STEP_KIND_TOOL && str_is(plan->tool, "log"))
            check_log(&check, i);
        check_spawn(compiler, i);
    }
    if (compiler->output)
        check_templates(&check, STEP_NONE, compiler->output);
    if (compiler->status == PAWL_OK && !compiler->is_tree)
        compile_check_ways(compiler);
}
