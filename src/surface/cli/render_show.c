/* render_show.c - one view of an instance, whatever its kind: its state, how it came
 * there, its steps and variables, what it waits for, what may come next. */
#include "base/limits.h"
#include "surface/cli/view.h"

#define PATH_MAX_ENTRIES 24 /* of the newest entries; the rest is in `history` */
#define TIMELINE_ENTRIES 1000
#define STEPS_MAX        1000

bool has_ended(const struct node *instance)
{
    str status = member_str(instance, "status");

    return str_is(status, "completed") || str_is(status, "failed") || str_is(status, "cancelled");
}

int exit_of_end(const struct node *instance)
{
    return str_is(member_str(instance, "terminal_kind"), "success") ? EXIT_DONE : EXIT_REJECTED;
}

void put_title(struct cli *cli, const struct node *instance)
{
    str name = member_str(instance, "definition"), status = status_shown(instance);

    term_put(&cli->term, status_style(status), "%s ", status_mark(status));
    term_cell(&cli->term, BOLD, name.size ? name : STR("(inline)"), LIMIT_NAME, 0);
    if (member_int(instance, "version") > 0)
        term_put(&cli->term, DIM, "@%lld", (long long)member_int(instance, "version"));
    term_put(&cli->term, DIM, "  %s\n", member_str(instance, "instance_id").data);
}

static void put_fact(struct cli *cli, enum style style, const char *name, str value)
{
    if (value.size == 0)
        return;
    term_put(&cli->term, style, "  %-12s", name);
    term_cell(&cli->term, PLAIN, value, cli->term.tty ? cli->term.width - 15 : TABLE_CELL_MAX, 0);
    fputc('\n', cli->term.out);
}

static void put_moment(struct cli *cli, const char *name, str at, str who)
{
    char moment[MOMENT_SIZE], distance[MOMENT_SIZE];

    moment_print(at, moment);
    distance_print(at, distance);
    term_put(&cli->term, DIM, "  %-12s", name);
    fprintf(cli->term.out, "%s", moment);
    term_put(&cli->term, DIM, "  %s", distance);
    if (who.size > 0) {
        int columns = 14 + term_columns(str_of(moment)) + 2 + term_columns(str_of(distance)) + 5;
        bool fits = !cli->term.tty || columns + term_columns(who) <= cli->term.width;

        term_put(&cli->term, DIM, fits ? "  by " : "\n              by ");
        term_cell(&cli->term, PLAIN, who, LIMIT_ACTION, 0);
    }
    fputc('\n', cli->term.out);
}

void put_standing(struct cli *cli, const struct node *instance)
{
    str status = status_shown(instance), state = member_str(instance, "current_state");

    term_cell(&cli->term, status_style(status), state, LIMIT_ACTION, 0);
    if (!str_eq(state, status))
        term_put(&cli->term, DIM, "  %.*s", STR_ARG(status));
    fputc('\n', cli->term.out);
}

static void put_head(struct cli *cli, const struct node *instance)
{
    put_title(cli, instance);
    term_put(&cli->term, DIM, "  %-12s", "state");
    put_standing(cli, instance);
}

static void put_facts(struct cli *cli, const struct node *instance)
{
    static const char *const texts[][2] = {
        { "kind", "kind" },
        { "subject", "subject_ref" },
        { "correlation", "correlation_id" },
        { "labels", "labels" },
        { "retry of", "retry_of" },
        { "retried as", "retried_as" },
        { "parent", "parent_id" },
    };
    const struct node *pause = node_find(instance, "pause");
    const struct node *erased = node_find(instance, "erased");

    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        const struct node *fact = node_find(instance, texts[i][1]);
        bool is_object = fact && fact->kind == NODE_OBJECT;

        put_fact(cli, DIM, texts[i][0], is_object ? fact->raw : member_str(instance, texts[i][1]));
    }
    put_moment(cli, "created", member_str(instance, "instantiated_at"),
               member_str(instance, "created_by"));
    put_moment(cli, "updated", member_str(instance, "updated_at"), STR(""));
    if (pause) {
        put_moment(cli, "paused", member_str(pause, "paused_at"), member_str(pause, "actor_ref"));
        put_fact(cli, DIM, "reason", member_str(pause, "reason"));
    }
    put_fact(cli, DIM, "input", member_json(instance, "input"));
    put_fact(cli, DIM, "metadata", member_json(instance, "instance_metadata"));
    if (erased) {
        put_moment(cli, "erased", member_str(erased, "erased_at"), member_str(erased, "actor_ref"));
        put_fact(cli, DIM, "reason", member_str(erased, "reason"));
    }
}

void put_outcome(struct cli *cli, const struct node *instance)
{
    put_fact(cli, GOOD, "result", member_json(instance, "result"));
    put_fact(cli, BAD, "error", member_json(instance, "error"));
}

/* ---- The path ---- */

static void put_path(struct cli *cli, const struct showing *showing)
{
    const struct node *first = node_first(showing->view, "entries");
    str before = member_str(showing->instance, "instantiated_at"), to;
    str status = status_shown(showing->instance);
    int64_t number = member_int(first, "sequence_number");

    if (number > 1)
        term_put(&cli->term, DIM, "  ⋮ %lld earlier: %s history %.10s\n", (long long)number - 1,
                 cli->command, member_str(showing->instance, "instance_id").data);
    if (first) {
        put_path_head(cli);
        put_state(cli, DIM, "○", member_str(first, "from_state"));
    }
    for (const struct node *entry = first; entry; entry = entry->next) {
        put_entry(cli, entry, number == 1 || entry != first ? before : STR(""));
        before = member_str(entry, "fired_at");
        to = member_str(entry, "to_state");
        if (entry->next && !str_eq(member_str(entry, "from_state"), to))
            put_state(cli, DIM, "○", to);
    }
    put_state(cli, status_style(status), status_mark(status),
              first ? to : member_str(showing->instance, "current_state"));
}

/* ---- What may come next ---- */

static void put_action(struct cli *cli, const struct node *action)
{
    str guard = member_str(action, "guard");

    fputs("    ", cli->term.out);
    term_cell(&cli->term, BOLD, member_str(action, "action"), LIMIT_ACTION, 0);
    term_put(&cli->term, DIM, " → ");
    term_cell(&cli->term, PLAIN, member_str(action, "to_state"), LIMIT_ACTION, 0);
    if (guard.size > 0) {
        term_put(&cli->term, WARN, "  guard ");
        term_cell(&cli->term, WARN, guard, LIMIT_ACTION, 0);
    }
    if (member_true(action, "requires_reason"))
        term_put(&cli->term, WARN, "  wants a reason");
    fputc('\n', cli->term.out);
}

/* Of a machine: flows and code move by themselves. */
void put_actions(struct cli *cli, const struct node *instance)
{
    const struct node *first = node_first(instance, "actions");

    if (!first || !str_is(member_str(instance, "kind"), "machine"))
        return;
    term_put(&cli->term, DIM, "\n  next\n");
    for (const struct node *action = first; action; action = action->next)
        put_action(cli, action);
    term_put(&cli->term, DIM, "    %s fire %.10s %s%s%s\n", cli->command,
             member_str(instance, "instance_id").data, member_str(first, "action").data,
             member_str(first, "guard").size ? " --guard" : "",
             member_true(first, "requires_reason") ? " --reason TEXT" : "");
}

static void put_approvers(struct cli *cli, const struct node *approval)
{
    const struct node *by = node_find(approval, "by");
    int64_t count = member_int(approval, "count");

    if (by && by->kind == NODE_ARRAY)
        fputs("  for ", cli->term.out);
    for (const struct node *name = by ? by->first : NULL; name; name = name->next) {
        term_cell(&cli->term, PLAIN, name->text, LIMIT_ACTION, 0);
        fputs(name->next ? ", " : "", cli->term.out);
    }
    if (count > 1 && by && by->kind == NODE_ARRAY)
        fprintf(cli->term.out, " (%lld of %u)", (long long)count, by->count);
    else if (count > 1)
        fprintf(cli->term.out, "  for %lld people", (long long)count);
}

void put_gate(struct cli *cli, const struct node *waiting)
{
    const struct node *approval = node_find(waiting, "approval");
    char since[MOMENT_SIZE];

    if (!approval)
        return;
    put_approvers(cli, approval);
    moment_print(member_str(waiting, "since"), since);
    if (since[0])
        fprintf(cli->term.out, "%s  since %s", term_is_slim(&cli->term) ? "\n      " : "", since);
}

/* The command that approves a gate, or completes an external step, by the id of the waiting
 * attempt. */
static void put_answer(struct cli *cli, const struct node *step, const struct node *item)
{
    bool is_gate = str_is(member_str(item, "kind"), "approval");

    if (!is_gate && !str_is(member_str(item, "kind"), "step"))
        return;
    for (; step; step = step->next)
        if (str_eq(member_str(step, "name"), member_str(item, "name")) &&
            str_is(member_str(step, "status"), "pending"))
            term_put(&cli->term, DIM, "      %s %s %.*s %s\n", cli->command,
                     is_gate ? "approve" : "complete", STR_ARG(member_str(step, "step_id")),
                     is_gate ? "--actor WHO" : "--result JSON");
}

static void put_waits(struct cli *cli, const struct showing *showing)
{
    bool titled = false;

    for (const struct node *item = node_first(showing->view, "waiting_for"); item;
         item = item->next) {
        char until[MOMENT_SIZE];
        str kind = member_str(item, "kind");

        if (str_is(kind, "action"))
            continue;
        if (!titled)
            term_put(&cli->term, DIM, "\n  waits for\n");
        titled = true;
        until_print(member_str(item, "until"), until);
        fprintf(cli->term.out, "    %.*s ", STR_ARG(kind));
        term_cell(&cli->term, BOLD, member_str(item, "name"), LIMIT_ACTION, 0);
        put_gate(cli, item);
        put_tool(cli, item);
        term_put(&cli->term, DIM, until[0] ? "  %s\n" : "%s\n", until);
        put_causes(cli, member_str(showing->instance, "instance_id").data, item);
        put_answer(cli, node_first(showing->view, "steps"), item);
    }
    if (member_int(showing->view, "waiting_more") > 0)
        term_put(&cli->term, DIM, "    ⋮ %lld more: %s why %.10s\n",
                 (long long)member_int(showing->view, "waiting_more"), cli->command,
                 member_str(showing->instance, "instance_id").data);
}

/* ---- All of it ---- */

/* Variables of code, or a flow's context; that of a tree that completed is its result. */
static void put_variables(struct cli *cli, const struct showing *showing)
{
    bool is_code = str_is(member_str(showing->instance, "kind"), "code");
    bool is_result = str_is(member_str(showing->instance, "status"), "completed");
    str variables = member_json(showing->view, "variables");

    if (is_code || (!is_result && !str_is(variables, "{}")))
        put_fact(cli, DIM, is_code ? "variables" : "context", variables);
}

static void put_body(struct cli *cli, const struct showing *showing)
{
    if (args_flag(cli, "timeline"))
        put_timeline(cli, showing);
    else if (showing->graph)
        put_steps(cli, showing);
    else
        put_path(cli, showing);
    put_waits(cli, showing);
    put_actions(cli, showing->instance);
}

const char *spinner_at(uint32_t frame)
{
    static const char *const frames[] = { "⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧" };

    return frames[frame % 8];
}

static void put_all(struct cli *cli, const struct showing *showing)
{
    put_head(cli, showing->instance);
    put_facts(cli, showing->instance);
    put_variables(cli, showing);
    put_outcome(cli, showing->instance);
    put_redrive(cli, member_str(showing->instance, "instance_id").data, showing->instance);
    fputc('\n', cli->term.out);
    put_body(cli, showing);
}

static void put_frame(struct cli *cli, const struct showing *showing)
{
    put_head(cli, showing->instance);
    fputc('\n', cli->term.out);
    put_body(cli, showing);
    put_variables(cli, showing);
    if (has_ended(showing->instance))
        fputc('\n', cli->term.out);
    put_outcome(cli, showing->instance);
}

static pawl_status read_shown(struct cli *cli, const char *id, struct showing *showing)
{
    TRY(cli_ask(cli, "instance.view",
                WITH({ "instance_id", str_of(id) }, { "entries", .number = showing->entries_max },
                     { "steps", .number = STEPS_MAX }),
                &showing->view));
    showing->instance = node_find(showing->view, "instance");
    showing->graph = node_find(showing->view, "graph");
    return PAWL_OK;
}

pawl_status view_read(struct cli *cli, const char *id, int64_t entries, struct node **out)
{
    const str none = STR("0"); /* a number that is 0 would be left out */

    return cli_ask(cli, "instance.view",
                   WITH({ "instance_id", str_of(id) },
                        { "entries", .number = entries, .json = entries > 0 ? STR_NONE : none },
                        { "steps", .json = none }, { "children", .json = none }),
                   out);
}

pawl_status view_draw(struct cli *cli, const char *id, int rows, uint32_t frame, struct node **view)
{
    struct showing showing = { .lines_max = rows > 12 ? (uint32_t)rows - 8 : 4,
                               .spinner = spinner_at(frame) };

    showing.entries_max = showing.lines_max / 2;
    TRY(read_shown(cli, id, &showing));
    *view = showing.view;
    put_frame(cli, &showing);
    return PAWL_OK;
}

static int show_json(struct cli *cli)
{
    struct node *instance;

    if (cli_ask_typed(cli, cli->verb->operation, NULL, &instance) != PAWL_OK)
        return report(cli);
    print_json(cli, instance->raw);
    return EXIT_DONE;
}

int verb_show(struct cli *cli)
{
    struct showing showing = { .entries_max = args_flag(cli, "timeline") ? TIMELINE_ENTRIES
                                                                         : PATH_MAX_ENTRIES };
    const char *id;

    if (target_open(cli, USE_EXISTING, NULL) != PAWL_OK)
        return report(cli);
    if (args_flag(cli, "evidence"))
        return show_evidence(cli);
    if (args_option(cli, "format"))
        return usage_fail(cli, "--format goes with --evidence");
    if (cli->json)
        return show_json(cli);
    if (id_resolve(cli, cli->operands[0], &id) != PAWL_OK ||
        read_shown(cli, id, &showing) != PAWL_OK)
        return report(cli);
    put_all(cli, &showing);
    return EXIT_DONE;
}
