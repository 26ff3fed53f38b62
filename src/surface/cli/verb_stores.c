/* verb_stores.c - stores: list those of a server or a file, and make one. */
#include "surface/cli/cli.h"

static void render(struct cli *cli, const struct node *answer)
{
    str made = member_str(answer, "store");

    for (const struct node *row = node_first(answer, "stores"); row; row = row->next)
        fprintf(cli->term.out, "%.*s\n", STR_ARG(row->text));
    if (made.size > 0)
        fprintf(cli->term.out, "store %.*s exists\n", STR_ARG(made));
}

int verb_stores(struct cli *cli)
{
    static const struct verb_part parts[] = {
        { "list", "store.list", NULL, USE_EXISTING, false },
        { "create", "store.put", "store", USE_CREATE, false },
        { 0 },
    };

    if (cli->operand_count == 0)
        cli->operands[cli->operand_count++] = "list";
    return verb_do_part(cli, parts, "stores, stores list or stores create NAME", render);
}
