/* stuck.c - a trial that is blocked: what it waits for, and the option that would help. */
#include "base/limits.h"
#include "surface/cli/trial.h"
#include "surface/cli/view.h"

#define FAMILY_DEPTH_MAX 32

struct stuck {
    struct cli *cli;
    struct term term; /* on stderr */
};

pawl_status step_find(struct cli *cli, const char *id, str name, const char *status,
                      const struct node **out)
{
    struct node *answer;

    *out = NULL;
    TRY(cli_ask_id(cli, "instance.steps", id, &answer));
    for (const struct node *step = node_first(answer, "steps"); step; step = step->next)
        if (str_eq(member_str(step, "name"), name) &&
            (!status || str_is(member_str(step, "status"), status)))
            *out = step;
    return PAWL_OK;
}

static void put_words(const struct stuck *stuck, const char *before, str name, const char *behind)
{
    fputs(before, stderr);
    term_cell(&stuck->term, PLAIN, name, LIMIT_ACTION, 0);
    fputs(behind, stderr);
}

/* A step that waits for its tool, or an external step. */
static pawl_status advise_step(const struct stuck *stuck, const char *id, str name)
{
    const struct node *step;

    TRY(step_find(stuck->cli, id, name, NULL, &step));
    if (str_is(member_str(step, "status"), "pending"))
        put_words(stuck, "; say: --complete ", name, "=JSON");
    else if (member_str(step, "tool").size > 0)
        put_words(stuck, ", whose tool is not here; say: --stub ", member_str(step, "tool"),
                  "=JSON");
    return PAWL_OK;
}

static pawl_status advise(const struct stuck *stuck, const char *id, int depth,
                          const struct node *item)
{
    str kind = member_str(item, "kind"), name = member_str(item, "name");

    fprintf(stderr, "%*swaits for %.*s", 2 + 2 * depth, "", STR_ARG(kind));
    put_words(stuck, " ", name, "");
    if (str_is(kind, "signal"))
        put_words(stuck, "; say: --signal ", name, "=JSON");
    if (str_is(kind, "action"))
        put_words(stuck, "; say: --fire ", name, "");
    if (str_is(kind, "approval"))
        fputs("; say: --approve WHO, or --reject WHO", stderr);
    if (str_is(kind, "step"))
        TRY(advise_step(stuck, id, name));
    fputs(str_is(kind, "child") ? ", which\n" : "\n", stderr);
    return PAWL_OK;
}

static pawl_status report_waits(const struct stuck *stuck, const char *id, int depth)
{
    struct node *why;

    TRY(cli_ask_id(stuck->cli, "instance.why", id, &why));
    for (const struct node *item = node_first(why, "waiting_for"); item; item = item->next) {
        str child = member_str(item, "instance_id");

        TRY(advise(stuck, id, depth, item));
        if (child.size > 0 && depth < FAMILY_DEPTH_MAX)
            TRY(report_waits(stuck, child.data, depth + 1));
    }
    return PAWL_OK;
}

pawl_status stuck_report(struct cli *cli, const char *id)
{
    struct stuck stuck = { .cli = cli, .term = cli->term };

    stuck.term.out = stderr;
    fputs("  blocked: what it waits for will not come by itself\n", stderr);
    return report_waits(&stuck, id, 0);
}
