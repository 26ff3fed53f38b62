/* compile_kind.c - what kind of step it is, and what it takes along.
 *
 * A step is exactly one of: a tool call, a gate (tool null, or `approval`), `external: true`,
 * `wait`, `select`, `spawn`.
 * Whatever it needs when it begins becomes its `args`, so that templates work alike. */
#include "base/time.h"
#include "flow/compile.h"
#include "model/words.h"

static str shown_name(const struct source_step *step)
{
    return words_shown(step->plan.name);
}

/* ---- A tool ------------------------------------------------------------------------------ */

/* The same thing under both seeds' names; giving both is an error. */
static const struct node *find_either(struct compilation *compiler, const struct source_step *step,
                                      const char *one, const char *other)
{
    const struct node *first = node_find(step->node, one), *second = node_find(step->node, other);

    if (first && second)
        compile_error(compiler, second, "step '%.*s': '%s' and '%s' are the same thing; keep one",
                      STR_ARG(shown_name(step)), one, other);
    return first ? first : second;
}

static void read_tool(struct compilation *compiler, struct source_step *step,
                      const struct node *tool)
{
    if (tool->kind == NODE_STRING && definition_name_is_valid(tool->text))
        step->plan.tool = tool->text;
    else
        compile_error(compiler, tool,
                      "step '%.*s': '%.*s' must name a tool: 1..%d of A-Z a-z 0-9 . _ / -",
                      STR_ARG(shown_name(step)), STR_ARG(tool->key), LIMIT_NAME);
}

static void read_args(struct compilation *compiler, struct source_step *step)
{
    const struct node *args = find_either(compiler, step, "args", "payload");

    if (!args) {
        if (compiler->is_tree && node_find(step->node, "action")) /* C2 */
            compile_error(compiler, step->node, "step '%.*s': an 'action' needs its 'payload'",
                          STR_ARG(shown_name(step)));
        return;
    }
    if (args->kind != NODE_OBJECT && !str_is(args->key, "payload")) { /* C2: that is anything */
        compile_error(compiler, args, "step '%.*s': 'args' must be an object, found %s",
                      STR_ARG(shown_name(step)), node_kind_name(args->kind));
        return;
    }
    step->plan.args_node = args;
    step->plan.args = compile_print(compiler, args);
}

/* ---- A gate -------------------------------------------------------------------------------- */

static void read_approvers(struct compilation *compiler, struct source_step *step,
                           const struct node *by)
{
    struct plan_step *plan = &step->plan;
    const struct node *first = by->kind == NODE_ARRAY ? by->first : by;

    plan->approvers = ARENA_ARRAY(&compiler->scope->arena, str, by->count + 1);
    if (!plan->approvers) {
        compile_no_memory(compiler);
        return;
    }
    for (const struct node *item = first; item; item = item == by ? NULL : item->next) {
        if (item->kind != NODE_STRING || str_is_blank(item->text))
            compile_error(compiler, item, "step '%.*s': approval.by lists actor_refs",
                          STR_ARG(shown_name(step)));
        for (uint32_t i = 0; i < plan->approver_count; i++)
            if (str_eq(plan->approvers[i], item->text))
                compile_error(compiler, item, "step '%.*s': approval.by names '%.*s' twice",
                              STR_ARG(shown_name(step)), STR_ARG(words_shown(item->text)));
        plan->approvers[plan->approver_count++] = item->text;
    }
    if (plan->approver_count == 0)
        compile_error(compiler, by, "step '%.*s': approval.by names nobody: it would wait for ever",
                      STR_ARG(shown_name(step)));
}

static void read_approval(struct compilation *compiler, struct source_step *step)
{
    const struct node *approval = node_find(step->node, "approval");
    const struct node *by = node_find(approval, "by"), *count = node_find(approval, "count");
    struct plan_step *plan = &step->plan;
    int64_t n = 1;

    if (!approval)
        return;
    if (approval->kind != NODE_OBJECT)
        compile_error(compiler, approval,
                      "step '%.*s': 'approval' must be {by, count}, found %s; write {} if anyone "
                      "may approve",
                      STR_ARG(shown_name(step)),
                      approval->is_missing ? "no value" : node_kind_name(approval->kind));
    compile_step_keys(compiler, step, approval, KEYS_APPROVAL, "approval.");
    if (by)
        read_approvers(compiler, step, by);
    if (count && (!node_to_i64(count, &n) || n < 1 || n > LIMIT_STEPS))
        compile_error(compiler, count, "step '%.*s': approval.count must be 1..%d",
                      STR_ARG(shown_name(step)), LIMIT_STEPS);
    else if (by && n > plan->approver_count)
        compile_error(compiler, count ? count : by,
                      "step '%.*s': approval.count is %lld, and only %u may approve",
                      STR_ARG(shown_name(step)), (long long)n, plan->approver_count);
    plan->approval_count = (uint32_t)n;
}

/* ---- Waits ----------------------------------------------------------------------------------- */

static bool has_template(str text)
{
    struct template_part part;

    while (template_next(&text, &part))
        if (template_is_replaced(&part))
            return true;
    return false;
}

static void check_value(struct compilation *compiler, const struct source_step *step,
                        const struct node *value)
{
    int64_t ms;

    if (value->kind == NODE_STRING && has_template(value->text))
        return;
    if (str_is(value->key, "timer"))
        compile_duration(compiler, step, value, "'timer'", &ms);
    else if (str_is(value->key, "until") &&
             (value->kind != NODE_STRING || !time_parse(value->text, &ms)))
        compile_error(compiler, value, "step '%.*s': 'until' must be a time in RFC 3339",
                      STR_ARG(shown_name(step)));
    else if (str_is(value->key, "signal") &&
             (value->kind != NODE_STRING || str_is_blank(value->text)))
        compile_error(compiler, value, "step '%.*s': 'signal' must name a signal",
                      STR_ARG(shown_name(step)));
}

/* What one arm waits for; NULL, and said so, if that is not exactly one thing. */
static const struct node *read_arm(struct compilation *compiler, const struct source_step *step,
                                   const struct node *arm)
{
    static const char *const words[] = { "timer", "until", "signal", NULL };
    const struct node *value = node_find(arm, "value"), *found = NULL;
    uint32_t count = 0;

    for (const struct node *node = arm->first; node && arm->kind == NODE_OBJECT; node = node->next)
        if (compile_is_one_of(node->key, words)) {
            found = node;
            count++;
        }
    if (count != 1) {
        compile_error(compiler, arm,
                      "step '%.*s': expected one of {timer: DURATION}, {until: TIME}, {signal: "
                      "NAME}, found %s",
                      STR_ARG(shown_name(step)), count == 0 ? "none of them" : "several");
        return NULL;
    }
    if (value && !str_is(found->key, "signal"))
        compile_error(compiler, value, "step '%.*s': 'value' belongs to a signal",
                      STR_ARG(shown_name(step)));
    check_value(compiler, step, found);
    return found;
}

static void check_arm_keys(struct compilation *compiler, const struct source_step *step,
                           const struct node *arm, bool is_wait)
{
    if (is_wait)
        compile_step_keys(compiler, step, arm, KEYS_WAIT, "wait.");
    else
        compile_step_keys(compiler, step, arm, compiler->is_tree ? KEYS_TREE_ARM : KEYS_ARM,
                          "select.");
}

/* {"arms":[{"timer":"30s"},{"signal":"paid"}]} */
static void read_arms(struct compilation *compiler, struct source_step *step,
                      const struct node *first, bool is_one)
{
    struct buf buf;

    buf_init(&buf, compiler->scope->arena.heap, 0);
    json_open(&buf, '{');
    json_key(&buf, "arms");
    json_open(&buf, '[');
    for (const struct node *arm = first; arm; arm = is_one ? NULL : arm->next) {
        const struct node *value = read_arm(compiler, step, arm);

        check_arm_keys(compiler, step, arm, is_one);
        json_open(&buf, '{');
        if (value) {
            json_key_str(&buf, value->key);
            node_print(value, &buf);
        }
        if (value && node_find(arm, "value")) {
            json_key(&buf, "value");
            node_print(node_find(arm, "value"), &buf);
        }
        json_close(&buf, '}');
    }
    json_close(&buf, ']');
    json_close(&buf, '}');
    step->plan.args = buf_keep(&buf, &compiler->scope->arena);
    if (!step->plan.args.data)
        compile_no_memory(compiler);
    buf_fini(&buf);
}

static void read_select(struct compilation *compiler, struct source_step *step,
                        const struct node *select)
{
    if (select->kind != NODE_ARRAY || select->count == 0)
        compile_error(compiler, select, "step '%.*s': 'select' must be a list of arms",
                      STR_ARG(shown_name(step)));
    else
        read_arms(compiler, step, select->first, false);
    step->plan.args_node = select;
}

/* ---- A child ----------------------------------------------------------------------------------
 */

/* `object` without its free keys, which mean nothing to the engine. */
static str print_known(struct compilation *compiler, const struct node *object)
{
    struct buf buf;
    str text;

    buf_init(&buf, compiler->scope->arena.heap, 0);
    json_open(&buf, '{');
    for (const struct node *node = object->first; node; node = node->next)
        if (!vocabulary_is_free(node->key)) {
            json_key_str(&buf, node->key);
            node_print(node, &buf);
        }
    json_close(&buf, '}');
    text = buf_keep(&buf, &compiler->scope->arena);
    buf_fini(&buf);
    if (!text.data)
        compile_no_memory(compiler);
    return text;
}

static void read_spawn(struct compilation *compiler, struct source_step *step,
                       const struct node *spawn)
{
    const struct node *definition = node_find(spawn, "definition");
    const struct node *end = node_find(spawn, "on_parent_end");

    step->plan.kind = STEP_KIND_SPAWN;
    if (compiler->spawn_count++ == LIMIT_SPAWNS)
        compile_error(compiler, spawn,
                      "more than %u steps that spawn; let children spawn some of them",
                      LIMIT_SPAWNS);
    if (spawn->kind != NODE_OBJECT || !definition || definition->kind != NODE_STRING ||
        str_is_blank(definition->text)) {
        compile_error(compiler, definition ? definition : spawn,
                      "step '%.*s': 'spawn' must be {definition: NAME, input}",
                      STR_ARG(shown_name(step)));
        return;
    }
    if (end && (end->kind != NODE_STRING ||
                (!str_is(end->text, "abandon") && !str_is(end->text, "cancel"))))
        compile_error(compiler, end, "step '%.*s': 'on_parent_end' is cancel or abandon",
                      STR_ARG(shown_name(step)));
    compile_step_keys(compiler, step, spawn, KEYS_SPAWN, "spawn.");
    step->plan.args_node = spawn;
    step->plan.args = print_known(compiler, spawn);
    if (!has_template(definition->text))
        findings_refer(compiler->findings, compiler->scope,
                       &(struct reference){ .owner = "step",
                                            .key = "spawn",
                                            .of = step->plan.name,
                                            .name = definition->text,
                                            .line = definition->line,
                                            .column = definition->column });
}

/* ---- Which of them ------------------------------------------------------------------------------
 */

static bool is_true(struct compilation *compiler, const struct source_step *step,
                    const struct node *node)
{
    if (node && node->kind != NODE_BOOL)
        compile_error(compiler, node, "step '%.*s': '%.*s' must be true or false, found %s",
                      STR_ARG(shown_name(step)), STR_ARG(node->key), node_kind_name(node->kind));
    return node && node->truth;
}

/* An explicit null is a gate; a value that was forgotten is not. */
static void refuse_missing_tool(struct compilation *compiler, struct source_step *step,
                                const struct node *tool)
{
    const struct node at_key = { .line = tool->key_line, .column = tool->key_column };

    compile_error(compiler, &at_key,
                  "step '%.*s': '%.*s' has no value; name a tool, or write '%.*s: null' or "
                  "'approval: {}' for a gate",
                  STR_ARG(shown_name(step)), STR_ARG(tool->key), STR_ARG(tool->key));
}

/* tool null, or an approval instead of a tool. */
static bool is_gate(const struct source_step *step, const struct node *tool)
{
    return tool ? tool->kind == NODE_NULL : node_find(step->node, "approval") != NULL;
}

static void read_tool_step(struct compilation *compiler, struct source_step *step,
                           const struct node *tool)
{
    bool is_external = is_true(compiler, step, node_find(step->node, "external"));

    if (is_external)
        step->plan.kind = STEP_KIND_EXTERNAL;
    else if (is_gate(step, tool))
        step->plan.kind = STEP_KIND_GATE;
    if (tool && tool->is_missing)
        refuse_missing_tool(compiler, step, tool);
    else if (tool && tool->kind != NODE_NULL)
        read_tool(compiler, step, tool);
    else if (step->plan.kind == STEP_KIND_TOOL && !step->is_refused)
        compile_error(compiler, step->node,
                      "step '%.*s': nothing to do; say 'tool', 'approval' (a gate), 'wait', "
                      "'select', 'spawn' or 'external'",
                      STR_ARG(shown_name(step)));
    read_args(compiler, step);
}

/* Only what is taken to a tool is tried again unasked; gates and children never are. */
static void limit_attempts(struct compilation *compiler, struct source_step *step)
{
    const struct node *retry = node_find(step->node, "retry");

    if (step->plan.kind == STEP_KIND_TOOL)
        return;
    step->plan.attempt_count_max = 1;
    if (retry && (step->plan.kind == STEP_KIND_GATE || step->plan.kind == STEP_KIND_SPAWN))
        compile_error(compiler, retry, "step '%.*s': a %s is not tried again",
                      STR_ARG(shown_name(step)), step_kind_name(step->plan.kind));
}

void compile_kind(struct compilation *compiler, struct source_step *step)
{
    const struct node *tool = find_either(compiler, step, "tool", "action");
    const struct node *wait = node_find(step->node, "wait");
    const struct node *select = node_find(step->node, "select");
    const struct node *approval = node_find(step->node, "approval");
    const struct node *external = node_find(step->node, "external");
    const struct node *spawn = node_find(step->node, "spawn");

    if (!!tool + !!wait + !!select + !!spawn > 1 || (external && (wait || select || spawn)))
        compile_error(compiler, step->node,
                      "step '%.*s': 'tool', 'wait', 'select', 'spawn' and 'external': it can be "
                      "only one",
                      STR_ARG(shown_name(step)));
    else if (wait) {
        step->plan.kind = STEP_KIND_WAIT;
        step->plan.args_node = wait;
        read_arms(compiler, step, wait, true);
    } else if (select) {
        step->plan.kind = STEP_KIND_SELECT;
        read_select(compiler, step, select);
    } else if (spawn) {
        read_spawn(compiler, step, spawn);
    } else {
        read_tool_step(compiler, step, tool);
    }
    limit_attempts(compiler, step);
    if (approval && step->plan.kind != STEP_KIND_GATE)
        compile_error(compiler, approval, "step '%.*s': only a gate has an 'approval'; a gate has no tool",
                      STR_ARG(shown_name(step)));
    else
        read_approval(compiler, step);
}
