/* verb_token.c - token: create, list, revoke. */
#include "surface/cli/cli.h"

static void render_token(struct cli *cli, const struct node *token)
{
    str id = member_str(token, "token_id"), scopes = member_str(token, "scopes"),
        expires = member_str(token, "expires_at");

    fprintf(cli->term.out, "%.*s  %.*s  until %.*s\n", STR_ARG(id), STR_ARG(scopes),
            STR_ARG(expires));
}

static void render(struct cli *cli, const struct node *answer)
{
    const struct node *tokens = node_find(answer, "tokens");
    str token = member_str(answer, "token");

    for (const struct node *row = tokens ? tokens->first : NULL; row; row = row->next)
        render_token(cli, row);
    if (token.size > 0)
        fprintf(cli->term.out, "%.*s\n", STR_ARG(token));
    if (token.size > 0 && cli->term.tty)
        term_put(&cli->term, DIM, "it is shown this once; use it as PAWL_TOKEN or Bearer\n");
    if (member_true(answer, "revoked"))
        fputs("revoked\n", cli->term.out);
}

int verb_token(struct cli *cli)
{
    static const char *const words[] = { "create", "list", "revoke" };
    static const char *const operations[] = { "token.create", "token.list", "token.revoke" };
    struct buf input;
    size_t which = 0;

    while (which < 3 && strcmp(cli->operands[0], words[which]) != 0)
        which++;
    if (which == 3 || (which == 2) != (cli->operand_count == 2))
        return usage_fail(cli, "expected token create --scope LIST, token list or token revoke ID");
    if (target_open(cli, USE_CREATE, NULL) != PAWL_OK)
        return report(cli, &cli->scope.error);
    input_init(&input);
    if (which == 0 && args_members(cli, &input) != PAWL_OK) {
        buf_fini(&input);
        return report(cli, &cli->scope.error);
    }
    if (which == 2)
        json_put_text(&input, "token_id", cli->operands[1]);
    return verb_ask(cli, operations[which], &input, render);
}
