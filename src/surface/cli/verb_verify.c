/* verb_verify.c - verify the whole store, or an instance; the checkpoint of a stopped check. */
#include "api/verify_all.h"
#include "surface/cli/cli.h"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#define BAR_COLUMNS 32

#define SUFFIX     "-verify"
#define SUFFIX_NEW "-new"

/* ---- The checkpoint of a check, in a file beside the store ---- */

/* FILE-verify: how far a check of FILE has come, for one that is interrupted. NULL: nowhere, it is
 * no file of ours. */
static const char *checkpoint_path(struct cli *cli)
{
    const char *file = store_file(cli->store);
    size_t size = file ? strlen(file) + sizeof SUFFIX : 0;
    char *path = file && *file ? arena_alloc(&cli->scope.arena, size) : NULL;

    if (path)
        snprintf(path, size, "%s%s", file, SUFFIX);
    return path;
}

/* What was kept; data NULL: nothing. INVALID_REQUEST if it is there and can't be read. */
static pawl_status checkpoint_read(struct cli *cli, const char *path, str *out)
{
    int file = open(path, O_RDONLY | O_CLOEXEC);
    pawl_status status = PAWL_OK;
    struct buf text;

    *out = STR_NONE;
    if (file < 0 && errno == ENOENT)
        return PAWL_OK;
    buf_init(&text, &heap_libc, CLI_MEMORY_MAX);
    if (file < 0 || !read_to_end(file, &text))
        status = scope_fail(&cli->scope, PAWL_INVALID_REQUEST, "cannot read '%s': %s", path,
                            strerror(text.failed ? ENOMEM : errno));
    else
        *out = buf_keep(&text, &cli->scope.arena);
    if (file >= 0)
        close(file);
    buf_fini(&text);
    return status;
}

/* Replace it whole or not at all. False, with errno: not written. */
static bool checkpoint_write(const char *path, str checkpoint)
{
    char name[4096];
    int file;
    bool ok;

    if (snprintf(name, sizeof name, "%s%s", path, SUFFIX_NEW) >= (int)sizeof name) {
        errno = ENAMETOOLONG;
        return false;
    }
    file = open(name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (file < 0)
        return false;
    ok = write_whole(file, checkpoint) && fsync(file) == 0;
    ok = close(file) == 0 && ok && rename(name, path) == 0;
    if (!ok)
        unlink(name);
    return ok;
}

/* ---- How far it is ---- */

struct check {
    struct cli *cli;
    struct term bar;            /* standard error */
    const char *path;           /* of the checkpoint; NULL: none is kept */
    const char *what;           /* is shown now */
    uint64_t shown;             /* in thousandths */
    bool has_failed;            /* to keep the checkpoint: that was reported */
};

static volatile sig_atomic_t stop_asked;

static void ask_to_stop(int number)
{
    (void)number;
    stop_asked = 1;
}

/* The first asks to stop where a checkpoint can be kept; the second does not ask. */
static void listen_for_stop(void)
{
    struct sigaction action = { .sa_handler = ask_to_stop,
                                .sa_flags = (int)(SA_RESETHAND | SA_RESTART) };

    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
}

static void draw_bar(const struct term *term, const char *what, uint64_t done, uint64_t all)
{
    int filled = all ? (int)(done * BAR_COLUMNS / all) : BAR_COLUMNS;

    fputs("\r\033[K  ", term->out);
    for (int i = 0; i < BAR_COLUMNS; i++)
        term_put(term, i < filled ? GOOD : DIM, i < filled ? "█" : "░");
    fprintf(term->out, " %s %llu of %llu", what, (unsigned long long)done, (unsigned long long)all);
    fflush(term->out);
}

static bool show_progress(void *context, const char *what, uint64_t done, uint64_t all)
{
    struct check *check = context;
    uint64_t thousandths = all ? done * 1000 / all : 1000;

    if (check->bar.tty && (check->what != what || check->shown != thousandths))
        draw_bar(&check->bar, what, done, all);
    check->what = what;
    check->shown = thousandths;
    return !stop_asked;
}

static void keep_checkpoint(void *context, str checkpoint)
{
    struct check *check = context;

    if (checkpoint_write(check->path, checkpoint))
        return;
    if (!check->has_failed)
        fprintf(stderr, "pawl: cannot write the checkpoint '%s': %s\n", check->path,
                strerror(errno));
    check->has_failed = true;
}

/* ---- The answer ---- */

static void render_stopped(struct cli *cli, const struct node *answer)
{
    struct term *term = &cli->term;

    term_put(term, WARN, "… stopped");
    fprintf(term->out, "  at record %lld of %lld; nothing wrong so far\n",
            (long long)member_int(answer, "stopped_at"), (long long)member_int(answer, "last"));
    if (store_file(cli->store))
        fprintf(term->out, "  resume: %s verify --resume\n", cli->command);
}

static void render_wrong(struct cli *cli, const struct node *answer)
{
    struct term *term = &cli->term;
    str instance = member_str(answer, "instance_id");

    term_put(term, BAD, "✘ not valid");
    fputs("  ", term->out);
    if (instance.size > 0)
        fprintf(term->out, "%.*s ", STR_ARG(instance));
    if (member_int(answer, "first_bad") > 0)
        fprintf(term->out, "entry %lld ", (long long)member_int(answer, "first_bad"));
    term_cell(term, PLAIN, member_str(answer, "what"), 1000, 0);
    fputc('\n', term->out);
}

#define FOREIGN_SHOWN 5u

/* Tables, indexes, views and triggers of the host. */
static void render_foreign(struct cli *cli, const struct node *answer)
{
    const struct node *foreign = node_find(answer, "foreign"), *object;
    FILE *out = cli->term.out;
    uint32_t shown = 0;

    if (!foreign || foreign->count == 0)
        return;
    fprintf(out, "  not pawl's, and not checked:");
    for (object = foreign->first; object && shown < FOREIGN_SHOWN; object = object->next) {
        fprintf(out, "%s %.*s ", shown++ > 0 ? "," : "", STR_ARG(member_str(object, "type")));
        term_cell(&cli->term, PLAIN, member_str(object, "name"), 60, 0);
    }
    if (object)
        fprintf(out, " and %u more", foreign->count - shown);
    fputc('\n', out);
}

/* Of a store of several shards: where each of them ends, and all together. */
static void render_roots(struct cli *cli, const struct node *answer)
{
    const struct node *shards = node_find(answer, "shards");
    FILE *out = cli->term.out;

    if (!shards)
        return;
    for (const struct node *shard = shards->first; shard; shard = shard->next)
        fprintf(out, "  shard %-4lld  %lld records  root %.*s\n",
                (long long)member_int(shard, "shard"), (long long)member_int(shard, "records"),
                STR_ARG(member_str(shard, "root")));
    fprintf(out, "  all together  root %.*s\n", STR_ARG(member_str(answer, "root")));
}

static void render_verified(struct cli *cli, const struct node *answer)
{
    struct arena *arena = &cli->scope.arena;
    struct term *term = &cli->term;

    if (!member_true(answer, "valid")) {
        render_wrong(cli, answer);
        return;
    }
    term_put(term, GOOD, "✔ valid");
    fprintf(term->out, "  %s", counted(arena, member_int(answer, "entries"), "entry", "entries"));
    if (node_find(answer, "instances"))
        fprintf(term->out, " of %s",
                counted(arena, member_int(answer, "instances"), "instance", "instances"));
    fputc('\n', term->out);
    render_roots(cli, answer);
}

/* Where it went on is no part of the verdict, but people want to know. */
static void say_resumed(const struct node *answer)
{
    str why = member_str(answer, "not_resumed");

    if (why.size > 0)
        fprintf(stderr, "pawl: checking from the beginning: the checkpoint cannot be used, %.*s\n",
                STR_ARG(why));
    else if (member_int(answer, "resumed_at") > 0)
        fprintf(stderr, "pawl: resumed after record %lld\n",
                (long long)member_int(answer, "resumed_at"));
}

static int conclude(struct cli *cli, const struct node *answer)
{
    bool is_stopped = node_find(answer, "stopped_at") != NULL;

    say_resumed(answer);
    if (cli->json)
        print_json(cli, answer->raw);
    else if (is_stopped)
        render_stopped(cli, answer);
    else
        render_verified(cli, answer);
    if (!cli->json)
        render_foreign(cli, answer);
    if (is_stopped)
        return EXIT_STOPPED;
    return member_true(answer, "valid") ? EXIT_DONE : EXIT_REJECTED;
}

/* ---- Asking ---- */

/* A number that was checked with the other words; 0: not given. */
static uint64_t number_of(const struct cli *cli, const char *name)
{
    uint64_t number = 0;

    (void)str_to_u64(str_of(args_option(cli, name)), &number);
    return number;
}

static pawl_status run_check(struct check *check, const struct verify_options *options,
                             struct node **out)
{
    struct cli *cli = check->cli;
    struct buf answer;
    pawl_status status;

    input_init(&answer);
    status = verify_all(cli->target.local, options, &answer, &cli->scope.error);
    json_close(&answer, '}');
    if (check->bar.tty && check->what)
        fputs("\r\033[K", check->bar.out);
    return answer_take(cli, status, &answer, out);
}

/* All of the store, in its file: it may be stopped, and resumed later. */
static pawl_status verify_whole(struct check *check, struct verify_options options,
                                struct node **out)
{
    struct cli *cli = check->cli;

    listen_for_stop();
    options.limit = number_of(cli, "limit");
    options.keep_every = number_of(cli, "keep-every");
    check->path = checkpoint_path(cli);
    if (check->path && args_flag(cli, "resume"))
        TRY(checkpoint_read(cli, check->path, &options.checkpoint));
    if (args_flag(cli, "resume") && !options.checkpoint.data)
        fputs("pawl: checking from the beginning: there is no checkpoint\n", stderr);
    options.keep = check->path ? keep_checkpoint : NULL;
    return run_check(check, &options, out);
}

static pawl_status verify_asked(struct check *check, struct node **out)
{
    struct cli *cli = check->cli;
    struct verify_options options = { .definition = str_of(args_option(cli, "definition")),
                                      .progress = show_progress,
                                      .context = check };
    const char *id;

    if (cli->operand_count > 0) {
        TRY(id_resolve(cli, cli->operands[0], &id));
        return cli_ask_id(cli, "instance.verify", id, out);
    }
    if (!cli->target.local)
        return cli_ask(cli, "store.verify", WITH({ "definition", options.definition }), out);
    return options.definition.data ? run_check(check, &options, out)
                                   : verify_whole(check, options, out);
}

/* What does not go together; NULL: all does. */
static const char *find_clash(const struct cli *cli)
{
    bool has_definition = args_option(cli, "definition") != NULL;
    bool has_checkpoint =
        args_flag(cli, "resume") || args_option(cli, "limit") || args_option(cli, "keep-every");

    if (cli->operand_count > 0 && has_definition)
        return "an ID or --definition, not both";
    if (has_checkpoint && (cli->operand_count > 0 || has_definition))
        return "--resume, --limit and --keep-every are for the whole store";
    if (has_checkpoint && !store_file(cli->store))
        return "--resume, --limit and --keep-every are for a store in a file here: sqlite:FILE";
    return NULL;
}

static int conclude_unopened(struct cli *cli)
{
    const char *what = cli->scope.error.message;
    struct buf answer;

    fprintf(stderr, "pawl: not-valid: %s\n", what);
    if (cli->json) {
        input_with(&answer, WITH({ "valid", .json = STR("false") }, { "what", str_of(what) }));
        print_json(cli, buf_view(&answer));
        buf_fini(&answer);
        return EXIT_REJECTED;
    }
    term_put(&cli->term, BAD, "✘ not valid");
    fprintf(cli->term.out, "  a trigger on pawl's tables\n");
    return EXIT_REJECTED;
}

int verb_verify(struct cli *cli)
{
    struct check check = { .cli = cli };
    const char *clash = find_clash(cli);
    struct node *answer;
    pawl_status status;
    int code;

    if (clash)
        return usage_fail(cli, "%s", clash);
    term_init(&check.bar, stderr);
    status = target_open(cli, USE_READ, NULL);
    if (status != PAWL_OK && verify_is_finding(&cli->scope.error))
        return conclude_unopened(cli);
    if (status != PAWL_OK || verify_asked(&check, &answer) != PAWL_OK)
        return report(cli);
    code = conclude(cli, answer);
    if (check.path && code != EXIT_STOPPED)
        unlink(check.path); /* the check has ended: there is nothing to resume */
    return code;
}
