/* doctor.c - what doctor changes if it is asked to: --rebuild, --accept-head, --accept-clock. */
#include "api/verify_all.h"
#include "api/world.h"
#include "repair/repair.h"
#include "store/owner.h"
#include "surface/cli/cli.h"
#include <pwd.h>
#include <unistd.h>

/* ---- --rebuild ---- */

static bool show_progress(void *context, const char *what, uint64_t done, uint64_t all)
{
    const struct term *term = context;

    if (term->tty && all > 0) {
        fprintf(term->out, "\r\033[K  %s %llu of %llu", what, (unsigned long long)done,
                (unsigned long long)all);
        fflush(term->out);
    }
    return true;
}

static void put_rebuilt(struct cli *cli, const struct node *answer)
{
    static const char *const counts[][2] = {
        { "heads", "heads" }, { "steps", "steps" },   { "timers", "timers" },
        { "waits", "waits" }, { "pauses", "pauses" }, { "kept", "tokens and alarms" },
        { "keys", "keys" },
    };
    long long differences = (long long)member_int(answer, "differences");
    struct term *term = &cli->term;

    term_put(term, GOOD, "✔ rebuilt");
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++)
        fprintf(term->out, "%s %lld %s", i ? "," : " ", (long long)member_int(answer, counts[i][0]),
                counts[i][1]);
    fputc('\n', term->out);
    fprintf(term->out, differences ? "  what differed: %lld\n" : "  nothing differed\n",
            differences);
    for (const struct node *one = node_first(answer, "what"); one; one = one->next) {
        fputs("    ", term->out);
        term_cell(term, WARN, one->text, TABLE_CELL_MAX, 0);
        fputc('\n', term->out);
    }
    term_put(term, DIM, "  now: %s verify\n", cli->command);
}

/* Is there a file to work on? If not, *code is the exit status. */
static bool has_file(struct cli *cli, const char *option, bool may_be_far, int *code)
{
    const char *file = store_file(cli->store);

    if (may_be_far && url_is_postgres(str_of(cli->store)))
        return true;
    if (!file || !*file) {
        *code = usage_fail(cli, "%s needs a local store file: --store sqlite:FILE", option);
        return false;
    }
    if (access(file, F_OK) == 0)
        return true;
    scope_fail(&cli->scope, PAWL_NOT_KNOWN, "there is no store at '%s'", file);
    *code = report(cli);
    return false;
}

int doctor_accept_clock(struct cli *cli)
{
    char span[MOMENT_SIZE];
    int64_t ahead_ms = 0;
    int code;

    if (!has_file(cli, "--accept-clock", false, &code))
        return code;
    if (clock_accept(cli->store, &ahead_ms, &cli->scope.error) != PAWL_OK)
        return report(cli);
    span_print(ahead_ms > 0 ? ahead_ms : -ahead_ms, span);
    if (cli->json)
        fprintf(cli->term.out, "{\"clock_ahead_ms\":%lld}\n", (long long)ahead_ms);
    else if (ahead_ms)
        fprintf(cli->term.out, "the store's clock was %s %s this machine's; it is now set to it\n",
                span, ahead_ms > 0 ? "ahead of" : "behind");
    else
        fprintf(cli->term.out, "nothing to accept: the store's clock is this machine's\n");
    return EXIT_DONE;
}

int doctor_rebuild(struct cli *cli)
{
    struct term errors;
    struct rebuild_options options = { .progress = show_progress, .context = &errors };
    struct node *answer;
    struct buf out;
    pawl_status status;
    int code;

    if (!has_file(cli, "--rebuild", true, &code))
        return code;
    term_init(&errors, stderr);
    buf_init(&out, &heap_libc, CLI_ANSWER_MAX);
    status = rebuild_store(cli->store, &options, &out, &cli->scope.error);
    if (errors.tty)
        fputs("\r\033[K", stderr);
    if (answer_take(cli, status, &out, &answer) != PAWL_OK)
        return report(cli);
    if (cli->json)
        print_json(cli, answer->raw);
    else if (member_true(answer, "rebuilt"))
        put_rebuilt(cli, answer);
    else
        fprintf(stderr,
                "pawl: storage-failure: nothing was rebuilt: the log itself is not valid at "
                "position %lld: %.*s\n  try: %s verify\n",
                (long long)member_int(answer, "position"), STR_ARG(member_str(answer, "what")),
                cli->command);
    return member_true(answer, "rebuilt") ? EXIT_DONE : EXIT_REJECTED;
}

/* ---- --accept-head ---- */

static void put_accepted(struct cli *cli, const struct node *answer)
{
    struct term *term = &cli->term;

    term_put(term, GOOD, member_true(answer, "accepted") ? "✔ accepted" : "✔ nothing to accept");
    fprintf(term->out, "  %.*s\n", STR_ARG(member_str(answer, "what")));
    if (member_true(answer, "accepted"))
        term_put(term, DIM, "  %s-head says who accepted what, and when\n",
                 store_file(cli->store));
}

int doctor_accept_head(struct cli *cli)
{
    const struct passwd *user = getpwuid(getuid());
    struct node *answer = NULL;
    struct buf out;
    pawl_status status;
    int code;

    if (!has_file(cli, "--accept-head", false, &code))
        return code;
    buf_init(&out, &heap_libc, CLI_ANSWER_MAX);
    status = accept_head(cli->store, user ? str_of(user->pw_name) : STR("unknown"), &out,
                         &cli->scope.error);
    status = answer_take(cli, status, &out, &answer);
    return verb_conclude(cli, status, answer, put_accepted);
}
