/* report.c - a rejection: its token, its words, and the next command to try. */
#include "api/ops.h"
#include "surface/cli/cli.h"

int exit_of(pawl_status status)
{
    switch (status) {
    case PAWL_OK:
        return EXIT_DONE;
    case PAWL_STORAGE_FAILURE:
    case PAWL_OUTCOME_UNKNOWN:
    case PAWL_IN_USE:
        return EXIT_STORE;
    case PAWL_INVALID_REQUEST:
    case PAWL_INVALID_QUERY:
    case PAWL_UNAUTHENTICATED:
    case PAWL_FORBIDDEN:
    case PAWL_NOT_KNOWN:
    case PAWL_NOT_ALLOWED:
    case PAWL_TERMINAL:
    case PAWL_INVALID_TRANSITION:
    case PAWL_REASON_REQUIRED:
    case PAWL_GUARD_NOT_SATISFIED:
    case PAWL_NO_CANCEL_TRANSITION:
    case PAWL_NOT_AWAITING:
    case PAWL_LEASE_LOST:
    case PAWL_CONFLICT:
    case PAWL_PAUSED:
    case PAWL_TOO_LARGE:
    case PAWL_INVALID_DECLARATION:
    case PAWL_INVALID_DEFINITION:
    case PAWL_OVERLOADED:
    case PAWL_NO_MEMORY:
        return EXIT_REJECTED;
    }
    return EXIT_REJECTED;
}

static bool names_an_instance(const struct cli *cli)
{
    return cli->verb && cli->operand_count > 0 && cli->verb->members[0] &&
           strcmp(cli->verb->members[0], "instance_id") == 0;
}

/* What to add to the same command, or which one to try instead; NULL: nothing. */
static const char *advice(const struct cli *cli, pawl_status status)
{
    static const struct {
        pawl_status status;
        const char *verb; /* "show": try this one with the same id; else words */
    } rows[] = {
        { PAWL_INVALID_TRANSITION, "show" },
        { PAWL_TERMINAL, "history" },
        { PAWL_NO_CANCEL_TRANSITION, "show" },
        { PAWL_NOT_AWAITING, "why" },
        { PAWL_CONFLICT, "show" },
        { PAWL_OUTCOME_UNKNOWN, "show" },
        { PAWL_PAUSED, "resume" },
        { PAWL_NOT_KNOWN, "list" },
    };

    for (size_t i = 0; names_an_instance(cli) && i < sizeof rows / sizeof rows[0]; i++)
        if (rows[i].status == status)
            return rows[i].verb;
    return NULL;
}

static void hint(const struct cli *cli, pawl_status status)
{
    const char *verb = advice(cli, status);

    if (status == PAWL_REASON_REQUIRED)
        fputs("  add a reason: --reason TEXT\n", stderr);
    else if (status == PAWL_GUARD_NOT_SATISFIED)
        fputs("  if its guard is satisfied, say so: --guard\n", stderr);
    else if (verb && status == PAWL_NOT_KNOWN)
        fprintf(stderr, "  try: %s list\n", cli->command);
    else if (verb)
        fprintf(stderr, "  try: %s %s %s\n", cli->command, verb, cli->operands[0]);
}

int report(struct cli *cli, const pawl_error *error)
{
    struct buf problem;

    fflush(stdout);
    fprintf(stderr, "pawl: %s: %s\n", pawl_status_name(error->status), error->message);
    if (!cli->json) {
        hint(cli, error->status);
        return exit_of(error->status);
    }
    buf_init(&problem, &heap_libc, CLI_ANSWER_MAX);
    op_problem(error->status, error->message, &problem);
    print_json(cli, buf_view(&problem));
    buf_fini(&problem);
    return exit_of(error->status);
}
