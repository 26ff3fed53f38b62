/* verb_stores.c - stores: list those of a server or a file, and make one. */
#include "surface/cli/cli.h"

static void render(struct cli *cli, const struct node *answer)
{
    const struct node *stores = node_find(answer, "stores");
    str made = member_str(answer, "store");

    for (const struct node *row = stores ? stores->first : NULL; row; row = row->next)
        fprintf(cli->term.out, "%.*s\n", STR_ARG(row->text));
    if (made.size > 0)
        fprintf(cli->term.out, "store %.*s is there\n", STR_ARG(made));
}

int verb_stores(struct cli *cli)
{
    bool makes = cli->operand_count == 2;
    const char *word = cli->operand_count ? cli->operands[0] : "list";
    struct buf input;
    struct node *answer;
    str text;

    if (strcmp(word, makes ? "create" : "list") != 0)
        return usage_fail(cli, "expected stores, stores list or stores create NAME");
    if (target_open(cli, makes ? USE_CREATE : USE_EXISTING, NULL) != PAWL_OK)
        return report(cli, &cli->scope.error);
    input_init(&input);
    if (makes)
        json_put_text(&input, "store", cli->operands[1]);
    json_close(&input, '}');
    if (target_ask(cli, &cli->scope, makes ? "store.put" : "store.list", &input, &answer, &text) !=
        PAWL_OK)
        return report(cli, &cli->scope.error);
    if (cli->json)
        print_json(cli, text);
    else
        render(cli, answer);
    return EXIT_DONE;
}
