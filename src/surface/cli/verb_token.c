/* verb_token.c - token: create, list, revoke. */
#include "surface/cli/cli.h"

static void render(struct cli *cli, const struct node *answer)
{
    str token = member_str(answer, "token");

    for (const struct node *row = node_first(answer, "tokens"); row; row = row->next)
        fprintf(cli->term.out, "%.*s  %.*s  until %.*s\n", STR_ARG(member_str(row, "token_id")),
                STR_ARG(member_str(row, "scopes")), STR_ARG(member_str(row, "expires_at")));
    if (token.size > 0)
        fprintf(cli->term.out, "%.*s\n", STR_ARG(token));
    if (token.size > 0 && cli->term.tty)
        term_put(&cli->term, DIM, "it is shown only once; use it as PAWL_TOKEN or Bearer token\n");
    if (member_true(answer, "revoked"))
        fputs("revoked\n", cli->term.out);
}

int verb_token(struct cli *cli)
{
    static const struct verb_part parts[] = {
        { "create", "token.create", NULL, USE_CREATE, true },
        { "list", "token.list", NULL, USE_CREATE, false },
        { "revoke", "token.revoke", "token_id", USE_CREATE, false },
        { 0 },
    };

    return verb_do_part(cli, parts, "token create --scope LIST, token list or token revoke ID",
                        render);
}
