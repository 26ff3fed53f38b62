/* verb_validate.c - validate: checks every instance of a definition, part by part, to the end. */
#include "surface/cli/cli.h"

static void render_validation(struct cli *cli, const struct node *answer)
{
    fprintf(cli->term.out, "%.*s: %.*s valid, %.*s invalid, of %.*s  (%.*s)\n",
            STR_ARG(node_text(answer, "state")), STR_ARG(node_raw(answer, "valid")),
            STR_ARG(node_raw(answer, "invalid")), STR_ARG(node_raw(answer, "total")),
            STR_ARG(node_text(answer, "instance_id")));
}

static pawl_status run_to_end(struct cli *cli, str id, struct node **answer)
{
    struct scope kept;
    pawl_status status = PAWL_OK;

    id = arena_str(&cli->scope.arena, id);
    TRY_MEMORY(&cli->scope, id.data);
    while (status == PAWL_OK && !node_text(*answer, "terminal_kind").data) {
        kept = scope_take(cli); /* the answers before are not needed any more */
        status = cli_ask(cli, "validation.run", WITH({ "instance_id", id }), answer);
        scope_give(cli, kept);
        if (status == PAWL_OK)
            status = cli_ask(cli, "validation.run",
                             WITH({ "instance_id", id }, { "max", .json = STR("0") }), answer);
    }
    return status;
}

/* What was found is an answer, and not a rejection; the exit status tells it. */
int verb_validate(struct cli *cli)
{
    struct node *answer;
    pawl_status status;
    int code;

    if (target_open(cli, USE_EXISTING, NULL) != PAWL_OK)
        return report(cli);
    status = cli_ask(cli, "validation.start",
                     WITH({ "definition", str_of(cli->operands[0]) },
                          { "actor_ref", str_of(args_option(cli, "actor")) }),
                     &answer);
    if (status == PAWL_OK) {
        last_note(cli, node_text(answer, "instance_id"));
        status = run_to_end(cli, node_text(answer, "instance_id"), &answer);
    }
    code = verb_conclude(cli, status, answer, render_validation);
    if (code == EXIT_DONE && !str_is(node_text(answer, "terminal_kind"), "success"))
        code = EXIT_REJECTED;
    target_close(cli);
    return code;
}
