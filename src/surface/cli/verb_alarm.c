/* verb_alarm.c - alarm: set, list, cancel. */
#include "surface/cli/cli.h"

static void render(struct cli *cli, const struct node *answer)
{
    str id = member_str(answer, "alarm_id");

    for (const struct node *row = node_first(answer, "alarms"); row; row = row->next)
        fprintf(cli->term.out, "%.*s  %.*s  %.*s  %.*s%s\n", STR_ARG(member_str(row, "alarm_id")),
                STR_ARG(member_str(row, "at")), STR_ARG(member_str(row, "operation")),
                STR_ARG(member_json(row, "input")), member_true(row, "firing") ? "  (firing)" : "");
    if (id.size > 0)
        fprintf(cli->term.out, "%.*s\n", STR_ARG(id));
    if (member_true(answer, "cancelled"))
        fputs("cancelled\n", cli->term.out);
}

int verb_alarm(struct cli *cli)
{
    static const struct verb_part parts[] = {
        { "set", "alarm.set", "operation", USE_EXISTING, true },
        { "list", "alarm.list", NULL, USE_EXISTING, false },
        { "cancel", "alarm.cancel", "alarm_id", USE_EXISTING, true },
        { 0 },
    };

    return verb_do_part(cli, parts, "alarm set OPERATION, alarm list or alarm cancel ID", render);
}
