/* verb_alarm.c - alarm: set, list, cancel. */
#include "surface/cli/cli.h"

static void render(struct cli *cli, const struct node *answer)
{
    const struct node *alarms = node_find(answer, "alarms");
    str id = member_str(answer, "alarm_id");

    for (const struct node *row = alarms ? alarms->first : NULL; row; row = row->next) {
        str one = member_str(row, "alarm_id"), at = member_str(row, "at"),
            operation = member_str(row, "operation"), input = member_json(row, "input");

        fprintf(cli->term.out, "%.*s  %.*s  %.*s  %.*s%s\n", STR_ARG(one), STR_ARG(at),
                STR_ARG(operation), STR_ARG(input),
                member_true(row, "firing") ? "  (firing)" : "");
    }
    if (id.size > 0)
        fprintf(cli->term.out, "%.*s\n", STR_ARG(id));
    if (member_true(answer, "cancelled"))
        fputs("cancelled\n", cli->term.out);
}

int verb_alarm(struct cli *cli)
{
    static const char *const words[] = { "set", "list", "cancel" };
    static const char *const operations[] = { "alarm.set", "alarm.list", "alarm.cancel" };
    static const char *const members[] = { "operation", NULL, "alarm_id" };
    struct buf input;
    size_t which = 0;

    while (which < 3 && strcmp(cli->operands[0], words[which]) != 0)
        which++;
    if (which == 3 || (which != 1) != (cli->operand_count == 2))
        return usage_fail(cli, "expected alarm set OPERATION, alarm list or alarm cancel ID");
    if (target_open(cli, USE_EXISTING, NULL) != PAWL_OK)
        return report(cli, &cli->scope.error);
    input_init(&input);
    if (which != 1 && args_members(cli, &input) != PAWL_OK) {
        buf_fini(&input);
        return report(cli, &cli->scope.error);
    }
    if (members[which])
        json_put_text(&input, members[which], cli->operands[1]);
    return verb_ask(cli, operations[which], &input, render);
}
