/* step_mcp.c - a step that calls a tool of an MCP server: `tool: mcp`.
 *
 * Such a call may take days, ask people, and has to be found again after a crash. A flow can do all
 * of that, so the step is a child of the definition `pawl.mcp`, which is put with the first text
 * that has such a step (engine/registry/own_texts.c). */
#include "base/json_scan.h"
#include "flow/compile.h"

/* Arguments: mcp. */
static const struct known_key mcp_arguments[] = {
    { "server", "NAME", "the server, as pawl.yaml names it", NULL, "required" },
    { "tool", "NAME", "the tool that is called", NULL },
    { "resource", "URI", "instead of a tool: the resource that is read", NULL },
    { "prompt", "NAME", "instead of a tool: the prompt that is fetched", NULL },
    { "list", "tools | resources | prompts", "instead of a tool: what is listed", NULL },
    { "args", "OBJECT", "what the tool, or the prompt, is given", NULL, "{}" },
    { "idempotent", "true | false", "whether it may be called again if the outcome is unknown",
      NULL, "what the server says of the tool" },
    { 0 },
};

/* ---- Compiling ------------------------------------------------------------------------------ */

static void check_argument(const struct source_step *step, const struct node *node)
{
    const struct known_key *known = mcp_arguments;

    while (known->word && !str_is(node->key, known->word))
        known++;
    if (!known->word)
        step_error(step, node,
                   "the tool mcp does not know '%.*s'; it takes server, tool, resource, "
                   "prompt, list, args and idempotent",
                   STR_ARG(words_shown(node->key)));
}

static uint32_t count_of_targets(const struct node *args)
{
    static const char *const words[] = { "tool", "resource", "prompt", "list" };
    uint32_t count = 0;

    for (int i = 0; i < 4; i++)
        count += node_find(args, words[i]) != NULL;
    return count;
}

static void mcp_check(const struct source_step *step)
{
    const struct node *args = step->plan.args_node, *server = node_find(args, "server");

    for (const struct node *node = args ? args->first : NULL; node; node = node->next)
        check_argument(step, node);
    if (!server || server->kind != NODE_STRING || str_is_blank(server->text))
        step_error(step, server, "the tool mcp needs {server: NAME, tool: NAME, args: {...}}");
    if (count_of_targets(args) != 1)
        step_error(step, args, "the tool mcp takes one of 'tool', 'resource', 'prompt' and 'list'");
    if (step->compiler->spawn_count++ == LIMIT_SPAWNS)
        compile_error(step->compiler, step->node,
                      "more than %u steps that spawn or call an MCP server; let children do some "
                      "of them",
                      LIMIT_SPAWNS);
    findings_refer(step->compiler->report.findings, step->compiler->scope,
                   &(struct reference){ .owner = "step",
                                        .key = "tool",
                                        .of = step->plan.name,
                                        .name = STR(MCP_DEFINITION),
                                        .line = step->node->line,
                                        .column = step->node->column });
}

/* ---- Running -------------------------------------------------------------------------------- */

static pawl_status mcp_begin(struct turn *turn, const struct plan_step *step, uint32_t ordinal)
{
    str args;

    TRY(begin_args(turn, step, ARGS_OF_CHILDREN, &args));
    turn_cause(turn, (struct effect){ .kind = EFFECT_SPAWN,
                                      .ordinal = ordinal,
                                      .name = STR(""),
                                      .definition = STR(MCP_DEFINITION),
                                      .input = args });
    return turn->status;
}

/* What may have been done already is not done again, whatever `retry` says. */
static void mcp_on_child(struct turn *turn, const struct attempt *attempt)
{
    struct node kind = { 0 };
    str found;

    if (turn->event->outcome == TERMINAL_FAILURE && turn->event->payload.data &&
        json_member(&turn->scope->arena, turn->event->payload, STR("kind"), &found))
        json_peek(&turn->scope->arena, found, &kind);
    if (kind.kind == NODE_STRING && str_is(kind.text, "unknown-outcome"))
        turn->is_hopeless = true;
    child_has_ended(turn, attempt, true);
}

static void mcp_note(const struct plan_step *step, struct buf *out)
{
    static const char *const words[] = { "tool", "resource", "prompt", "list" };

    buf_str(out, STR("mcp"));
    for (int i = 0; i < 4; i++)
        if (node_text(step->args_node, words[i]).data)
            buf_fmt(out, " %.*s %.*s", STR_ARG(words_shown(node_text(step->args_node, "server"))),
                    STR_ARG(words_shown(node_text(step->args_node, words[i]))));
}

const struct step_kind step_kind_mcp = {
    .word = "mcp",
    .of_tool = "mcp",
    .why = "child",
    .may_spawn = true,
    .note = mcp_note,
    .check = mcp_check,
    .begin = mcp_begin,
    .on = { [EVENT_CHILD] = mcp_on_child },
    .event = spawn_event,
};
