/* stuck.c - a trial that cannot go on: what it waits for, and the option that would help. */
#include "base/limits.h"
#include "surface/cli/trial.h"
#include "surface/cli/view.h"

#define FAMILY_DEPTH_MAX 32

struct stuck {
    struct cli *cli;
    struct scope *scope;
    struct term term; /* on stderr */
    int depth;        /* of children */
};

/* The last attempt of a step; *out NULL: it has none. */
static pawl_status find_step(struct stuck *stuck, str id, str name, const struct node **out)
{
    struct node *answer;

    *out = NULL;
    TRY(target_ask_id(stuck->cli, stuck->scope, "instance.steps", id.data, &answer, NULL));
    for (const struct node *step = node_first(answer, "steps"); step; step = step->next)
        if (str_eq(member_str(step, "name"), name))
            *out = step;
    return PAWL_OK;
}

static void put_words(struct stuck *stuck, const char *before, str name, const char *behind)
{
    fputs(before, stderr);
    term_cell(&stuck->term, PLAIN, name, LIMIT_ACTION, 0);
    fputs(behind, stderr);
}

/* A step that waits for its tool, or an external step. */
static pawl_status advise_step(struct stuck *stuck, str id, str name)
{
    const struct node *step;
    pawl_status status = find_step(stuck, id, name, &step);

    if (status != PAWL_OK || !step)
        return status;
    if (str_is(member_str(step, "status"), "pending"))
        put_words(stuck, "; say: --complete ", name, "=JSON");
    else if (member_str(step, "tool").size > 0)
        put_words(stuck, ", whose tool is not here; say: --stub ", member_str(step, "tool"),
                  "=JSON");
    return PAWL_OK;
}

static pawl_status advise(struct stuck *stuck, str id, const struct node *item)
{
    str kind = member_str(item, "kind"), name = member_str(item, "name");
    pawl_status status = PAWL_OK;

    fprintf(stderr, "%*swaits for %.*s", 2 + 2 * stuck->depth, "", STR_ARG(kind));
    put_words(stuck, " ", name, "");
    if (str_is(kind, "signal"))
        put_words(stuck, "; say: --signal ", name, "=JSON");
    if (str_is(kind, "action"))
        put_words(stuck, "; say: --fire ", name, "");
    if (str_is(kind, "approval"))
        fputs("; say: --approve WHO, or --reject WHO", stderr);
    if (str_is(kind, "step"))
        status = advise_step(stuck, id, name);
    fputs(str_is(kind, "child") ? ", which\n" : "\n", stderr);
    return status;
}

static pawl_status report_waits(struct stuck *stuck, str id)
{
    struct node *why;
    pawl_status status = PAWL_OK;

    TRY(target_ask_id(stuck->cli, stuck->scope, "instance.why", id.data, &why, NULL));
    for (const struct node *item = node_first(why, "waiting_for"); item && status == PAWL_OK;
         item = item->next) {
        str child = member_str(item, "instance_id");

        status = advise(stuck, id, item);
        if (status != PAWL_OK || child.size == 0 || stuck->depth == FAMILY_DEPTH_MAX)
            continue;
        stuck->depth++;
        status = report_waits(stuck, child);
        stuck->depth--;
    }
    return status;
}

pawl_status stuck_report(struct cli *cli, struct scope *scope, str id)
{
    struct stuck stuck = { .cli = cli, .scope = scope, .term = cli->term };

    stuck.term.out = stderr;
    fputs("  blocked: what it waits for will not come by itself\n", stderr);
    return report_waits(&stuck, id);
}
