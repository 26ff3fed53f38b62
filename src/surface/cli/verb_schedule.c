/* verb_schedule.c - schedule: when a cron expression or an interval is due next. */
#include "surface/cli/cli.h"

#define SLOTS_SHOWN 5

enum { SLOT_LOCAL, SLOT_UTC, SLOT_COLUMNS };
static const char *const slot_heads[SLOT_COLUMNS] = { "LOCAL", "UTC" };

static void fill_slot(struct cli *cli, const struct text_table *table, const struct node *row,
                      str *cells, enum style *styles)
{
    (void)cli, (void)table, (void)styles;
    cells[SLOT_LOCAL] = member_str(row, "local");
    cells[SLOT_UTC] = member_str(row, "slot");
}

static void put_slots(struct cli *cli, const struct node *answer)
{
    struct text_table table = { .column_count = SLOT_COLUMNS, .heads = slot_heads };

    if (!rows_print(cli, node_find(answer, "slots"), &table, fill_slot, &(struct table_pages){ 0 }))
        fprintf(cli->term.out, "it is never due: no such date exists\n");
}

int verb_schedule(struct cli *cli)
{
    struct node *answer;
    bool has_limit = args_option(cli, "limit") != NULL;

    if (target_open_any(cli, NULL) ||
        cli_ask_typed(cli, "schedule.preview",
                      has_limit ? NULL : WITH({ "limit", .number = SLOTS_SHOWN }), &answer))
        return report(cli);
    if (cli->json)
        print_json(cli, answer->raw);
    else
        put_slots(cli, answer);
    return EXIT_DONE;
}
