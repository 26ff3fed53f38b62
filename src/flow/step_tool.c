/* step_tool.c - a step that a runner takes to its tool; and which kind a step is that has no key
 * of a kind that stands alone: a tool, a gate (tool null, or `approval`), or external. */
#include "flow/compile.h"
#include <stdio.h>

/* Keys: a step that calls a tool. */
static const struct known_key tool_keys[] = {
    { "tool", "NAME or null", "the tool that is called; null: a gate", NULL },
    { "args", "OBJECT", "what the tool gets; templates are replaced", "input", "{}" },
    { "action", "NAME", "another word for `tool`", NULL },
    { "payload", "ANYTHING", "another word for `args`", NULL },
    { 0 },
};

/* The same thing under both notations' names; giving both is an error. */
static const struct node *find_either(const struct source_step *step, const char *one,
                                      const char *other)
{
    const struct node *first = node_find(step->node, one), *second = node_find(step->node, other);

    if (first && second)
        step_error(step, second, "'%s' and '%s' are the same thing; keep one", one, other);
    return first ? first : second;
}

static void read_args(struct source_step *step)
{
    const struct node *args = find_either(step, "args", "payload");

    if (!args && step->compiler->is_tree && node_find(step->node, "action")) /* C2 */
        step_error(step, NULL, "an 'action' needs its 'payload'");
    if (!args || (!str_is(args->key, "payload") && /* C2: that is anything */
                  !step_expect(step, args, NODE_OBJECT, "an object")))
        return;
    step->plan.args_node = args;
    step->plan.args = compile_print(step->compiler, args);
}

/* An explicit null is a gate; a value that was forgotten is not. */
static void refuse_missing_tool(const struct source_step *step, const struct node *tool)
{
    const struct node at_key = { .line = tool->key_line, .column = tool->key_column };

    step_error(
        step, &at_key,
        "'%.*s' has no value; name a tool, or write '%.*s: null' or 'approval: {}' for a gate",
        STR_ARG(tool->key), STR_ARG(tool->key));
}

/* "'tool', 'approval' (a gate), 'wait', ... or 'external'" */
static void refuse_nothing(const struct source_step *step)
{
    char keys[200] = "", last[40] = "";
    size_t used = 0;

    for (uint32_t i = 0; i < STEP_KIND_COUNT; i++) {
        const struct step_kind *kind = step_kinds[i];

        if (!kind->key)
            continue;
        if (last[0] != '\0')
            used +=
                (size_t)snprintf(keys + used, sizeof keys - used, "%s%s", used ? ", " : "", last);
        if (strcmp(kind->key, kind->word) == 0)
            (void)snprintf(last, sizeof last, "'%s'", kind->key);
        else
            (void)snprintf(last, sizeof last, "'%s' (a %s)", kind->key, kind->word);
    }
    step_error(step, NULL, "the step does nothing; write %s or %s", keys, last);
}

static void tool_compile(struct source_step *step, const struct node *node)
{
    const struct node *tool = find_either(step, "tool", "action");
    bool is_external = step_is_true(step, "external");
    bool is_gate = tool ? tool->kind == NODE_NULL : node_find(step->node, "approval") != NULL;

    (void)node;
    if (tool && tool->is_missing)
        refuse_missing_tool(step, tool);
    else if (tool && tool->kind == NODE_STRING && definition_name_is_valid(tool->text))
        step->plan.tool = tool->text;
    else if (tool && tool->kind != NODE_NULL)
        step_error(step, tool, "'%.*s' must name a tool: 1..%d of A-Z a-z 0-9 . _ / -",
                   STR_ARG(tool->key), LIMIT_NAME);
    else if (!is_external && !is_gate)
        refuse_nothing(step);
    step->plan.kind = is_external ? &step_kind_external
                      : is_gate   ? &step_kind_gate
                                  : step_kind_of_tool(step->plan.tool);
    if (step->plan.kind->of_tool)
        step->plan.tool = STR_NONE;
    read_args(step);
}

/* A warning alone: the host of a plan, or a worker, may have a `log` of its own. */
static void tool_check(const struct source_step *step)
{
    const struct node *args = step->plan.args_node;

    if (!str_is(step->plan.tool, "log") ||
        (args && args->kind == NODE_STRING && compile_has_template(step, args->text)))
        return;
    if (!args || !node_find(args, "message"))
        step_warning(step, args, "the built-in log takes {message: TEXT}, and fails with %s",
                     !args || args->kind == NODE_OBJECT ? "no message"
                                                        : node_kind_name(args->kind));
}

const struct step_kind step_kind_tool = {
    .word = "tool",
    .about = "calls a tool, and takes its result",
    .key = "tool",
    .keys = tool_keys,
    .is_tool = true,
    .is_taken = true,
    .compile = tool_compile,
    .check = tool_check,
};
