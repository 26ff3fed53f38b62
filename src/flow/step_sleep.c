/* step_sleep.c - `tool: sleep` with {for: DURATION}: a wait that is written as a tool. */
#include "base/time.h"
#include "flow/compile.h"

/* Arguments: sleep. */
static const struct known_key sleep_arguments[] = {
    { "for", "DURATION", "how long", NULL, "required" },
    { 0 },
};

void sleep_check(const struct source_step *step)
{
    const struct node *args = step->plan.args_node,
                      *duration = node_find(args, sleep_arguments->word);
    int64_t ms;

    if (!str_is(step->plan.tool, "sleep"))
        return;
    if (!duration || duration->kind != NODE_STRING ||
        (!compile_has_template(step, duration->text) && !duration_parse(duration->text, &ms)))
        step_error(step, duration, "sleep needs {for: DURATION}, like \"30s\"");
    for (const struct node *node = args ? args->first : NULL; node; node = node->next)
        if (node != duration)
            step_warning(step, node, "sleep does not know '%.*s'", STR_ARG(words_shown(node->key)));
}

static pawl_status sleep_begin(struct turn *turn, const struct plan_step *step, uint32_t ordinal)
{
    struct node *args = NULL;
    const struct node *duration;
    int64_t ms;

    TRY(begin_args_node(turn, step, &args));
    duration = node_find(args, sleep_arguments->word);
    if (!duration || duration->kind != NODE_STRING || !duration_parse(duration->text, &ms))
        return begin_refuse(turn, "for", "a duration like \"30s\"", duration);
    turn_arm(turn, ordinal, step->name, turn->event->at_ms + ms);
    return turn->status;
}

const struct step_kind step_kind_sleep = {
    .word = "tool",
    .tool = "sleep",
    .is_tool = true,
    .check = sleep_check,
    .begin = sleep_begin,
};
