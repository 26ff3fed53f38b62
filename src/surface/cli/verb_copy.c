/* verb_copy.c - copy: a store into another backend, the same evidence. */
#include "base/redact.h"
#include "repair/repair.h"
#include "surface/cli/cli.h"

/* A copy of the operand: a password in it must not be seen in the list of processes. */
static const char *take_url(struct cli *cli, int index)
{
    char *given = (char *)(uintptr_t)cli->operands[index];
    const char *kept = arena_text(&cli->scope.arena, str_of(given));

    url_blank(given);
    return kept ? store_normal(cli, kept) : NULL;
}

static bool show_progress(void *context, const char *what, uint64_t done, uint64_t all)
{
    const struct term *errors = context;

    if (errors->tty)
        fprintf(stderr, "\r\033[K%s: %llu of %llu", what, (unsigned long long)done,
                (unsigned long long)all);
    return true;
}

static int conclude(struct cli *cli, const struct node *answer)
{
    struct arena *arena = &cli->scope.arena;

    if (cli->json)
        print_json(cli, answer->raw);
    if (!member_true(answer, "copied")) {
        fprintf(stderr, "pawl: not-valid: the log is not valid at position %lld: %.*s\n",
                (long long)member_int(answer, "position"), STR_ARG(member_str(answer, "what")));
        return EXIT_REJECTED;
    }
    if (!cli->json)
        fprintf(cli->term.out, "copied and checked: %s of %s; root %.*s\n",
                counted(arena, member_int(answer, "records"), "record", "records"),
                counted(arena, member_int(answer, "instances"), "instance", "instances"),
                STR_ARG(member_str(answer, "root")));
    return EXIT_DONE;
}

int verb_copy(struct cli *cli)
{
    const char *from = take_url(cli, 0), *to = take_url(cli, 1);
    struct term errors;
    struct rebuild_options options = { .progress = show_progress, .context = &errors };
    struct node *answer;
    struct buf out;
    pawl_status status;

    if (!from || !to) {
        scope_no_memory(&cli->scope);
        return report(cli);
    }
    if (!store_outlives(from) || !store_outlives(to))
        return usage_fail(cli, "copy needs two stores that last: sqlite:FILE or "
                               "postgres://HOST/DATABASE");
    term_init(&errors, stderr);
    buf_init(&out, &heap_libc, CLI_ANSWER_MAX);
    status = copy_store(from, to, &options, &out, &cli->scope.error);
    if (errors.tty)
        fputs("\r\033[K", stderr);
    if (answer_take(cli, status, &out, &answer) != PAWL_OK)
        return report(cli);
    return conclude(cli, answer);
}
