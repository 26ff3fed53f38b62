/* verb_run.c - run, resume: this process owns the store and works until an instance ends. */
#include "api/modules.h"
#include "surface/cli/host.h"
#include "surface/cli/trial.h"
#include "surface/cli/view.h"
#include <unistd.h>

#define CONTEXT_ENTRIES 3 /* shown again when an instance is resumed */

/* A port of its own, so that other commands beside it go through it. Other users of this machine
 * can connect there as well, and exec is on: so callers need the secret. */
static const struct host_options here = { .listen = "127.0.0.1:0",
                                          .allow_exec = true,
                                          .needs_token = true };

struct run_view {
    struct host host;
    struct trial *trial; /* --test; else NULL */
};

/* The definition that is to be run: put from its file, or there already, under its name. */
static int find_definition(struct cli *cli, const struct trial *trial, const char **out)
{
    const char *word = cli->operands[0], *at = strchr(word, '@');
    struct put put;

    *out = word;
    if (word_is_code(word)) {
        const char *name = args_option(cli, "name");

        *out = name ? name : api_module_type(cli->target.local, 0);
    } else if (word_is_file(word)) {
        if (define_file(cli, word, args_option(cli, "name"), &put) != PAWL_OK)
            return report_definition(cli, word, &put);
        *out = put.name;
    } else if (trial && trial->has_meant && at) { /* there it is the newest of its name */
        *out = arena_text(&cli->scope.arena, (str){ word, (size_t)(at - word) });
    }
    if (*out)
        return EXIT_DONE;
    scope_no_memory(&cli->scope);
    return report(cli);
}

/* A name that is not there may have been meant as a file. */
static int report_unknown(struct cli *cli)
{
    scope_fail(&cli->scope, PAWL_NOT_KNOWN,
               "no file '%s', and no definition or code type of that name", cli->operands[0]);
    report(cli);
    if (!cli->json)
        hint_definitions(cli);
    return EXIT_REJECTED;
}

/* What is known may still lack something here: its handler, say. */
static int report_create(struct cli *cli, const char *definition)
{
    const pawl_error error = cli->scope.error;
    struct node *answer;

    if (error.status == PAWL_NOT_KNOWN && !word_is_file(cli->operands[0]) &&
        definition_ask(cli, definition, &answer) == PAWL_NOT_KNOWN)
        return report_unknown(cli);
    cli->scope.error = error;
    return report(cli);
}

/* Only of an instance that is paused: one that merely stopped needs no permission to resume. */
static pawl_status clear_pause(struct cli *cli, const struct node *instance)
{
    struct node *answer;

    if (!str_is(member_str(instance, "status"), "paused"))
        return PAWL_OK;
    TRY(cli_ask_typed(cli, "instance.resume", NULL, &answer)); /* with its instance_id */
    if (str_is(member_str(answer, "status"), "paused"))
        return scope_fail(&cli->scope, PAWL_PAUSED,
                          "it is at a limit and is paused again: `pawl why` names the limit");
    return PAWL_OK;
}

/* `pawl run game.py` again goes on with what the last one left unfinished, unless it is given an
 * input. NULL: it did not. */
static const char *unfinished(struct cli *cli, const char *definition)
{
    struct node *instance;
    const char *id = NULL;

    if (!word_is_code(cli->operands[0]) || args_option(cli, "input") || args_flag(cli, "test"))
        return NULL;
    if (id_resolve(cli, "@last", &id) != PAWL_OK ||
        cli_ask_id(cli, "instance.get", id, &instance) != PAWL_OK || has_ended(instance) ||
        !str_is(member_str(instance, "definition"), definition))
        id = NULL;
    cli->scope.error = (pawl_error){ .status = PAWL_OK };
    return id;
}

static int follow_unfinished(struct cli *cli, struct run_view *running, const char *id)
{
    struct node *instance;
    int64_t seq;

    cli->operands[0] = id;
    if (cli_ask_id(cli, "instance.get", id, &instance) != PAWL_OK ||
        clear_pause(cli, instance) != PAWL_OK)
        return report(cli);
    if (!cli->json)
        fprintf(cli->term.out, "%s was unfinished and goes on\n", id);
    fflush(cli->term.out);
    seq = member_int(instance, "next_sequence_number") - 1;
    return live_follow(cli, &running->host, id, seq, running->trial);
}

static int run_here(struct cli *cli, struct run_view *running)
{
    struct node *created;
    const char *definition, *id;
    struct put put;
    int code;

    if (running->trial && borrow_put(cli, running->trial->borrowed) != PAWL_OK)
        return report(cli);
    for (const struct given *with = NULL; (with = given_next(cli, "with", with));)
        if (define_file(cli, with->value, NULL, &put) != PAWL_OK)
            return report_definition(cli, with->value, &put);
    code = find_definition(cli, running->trial, &definition);
    if (code != EXIT_DONE)
        return code;
    id = unfinished(cli, definition);
    if (id)
        return follow_unfinished(cli, running, id);
    if (cli_ask_typed(cli, "instance.create", WITH({ "definition", str_of(definition) }),
                      &created) != PAWL_OK)
        return report_create(cli, definition);
    id = member_str(created, "instance_id").data;
    last_note(cli, str_of(id));
    /* The id first, and at once: whatever happens to this process, it can be resumed. */
    print_json(cli, cli->json ? created->raw : str_of(id));
    fflush(cli->term.out);
    if (!cli->json)
        put_start_warnings(created);
    return live_follow(cli, &running->host, id, 0, running->trial);
}

/* What replaces tools, brings code or moves the clock happens in the owner of the store, so that
 * must be us. */
static const char *needs_owner(const struct cli *cli)
{
    static const char *const options[] = { "test", "stub", "module" };

    for (size_t i = 0; i < sizeof options / sizeof options[0]; i++)
        if (args_flag(cli, options[i]))
            return options[i];
    return NULL;
}

typedef int (*run_fn)(struct cli *cli, struct run_view *running);

static int in_host(struct cli *cli, struct trial *trial, run_fn run)
{
    struct host_options options = here;
    struct run_view running = { .trial = trial };
    int code;

    options.test_clock = args_flag(cli, "test");
    if (run_tools(cli, &options) != PAWL_OK || host_open(cli, &options, &running.host) != PAWL_OK)
        return report(cli);
    if (!running.host.server && needs_owner(cli)) {
        scope_fail(
            &cli->scope, PAWL_IN_USE,
            "--%s needs a store of its own, and %s is served at %s; name another, or none with "
            "--test",
            needs_owner(cli), store_shown(cli), cli->target.address);
        code = report(cli);
    } else {
        code = run(cli, &running);
    }
    host_close(cli, &running.host);
    return code;
}

static int check_words(struct cli *cli)
{
    for (uint32_t i = 0; i < cli->given_count; i++) {
        const char *option = cli->given[i].option->name;

        if (strcmp(option, "with") == 0 && !file_is_readable(cli->given[i].value))
            return EXIT_USAGE;
        if (option_is_for_trials(option) && !args_flag(cli, "test"))
            return usage_fail(cli, "--%s goes with --test", option);
    }
    return EXIT_DONE;
}

/* In memory, a name is meant as it would be without --test: that of a definition of the usual
 * store.
 */
static pawl_status borrow(struct cli *cli, struct trial *trial)
{
    if (cli->store_named || cli->verb->run != verb_run || word_is_file(cli->operands[0]))
        return PAWL_OK;
    return borrow_read(cli, store_file(cli->usual) ? cli->usual : CLI_STORE, cli->operands[0],
                       &trial->has_meant, &trial->borrowed);
}

/* In a store for trials, if that is what was asked for. */
static int in_store(struct cli *cli, run_fn run)
{
    struct trial trial;
    int code;

    if (!args_flag(cli, "test"))
        return in_host(cli, NULL, run);
    if (trial_init(&trial, cli) != PAWL_OK || trial_store(cli) != PAWL_OK ||
        borrow(cli, &trial) != PAWL_OK)
        code = report(cli);
    else
        code = in_host(cli, &trial, run);
    trial_fini(&trial);
    return code;
}

/* A file that can be read, or the name of a definition. What cannot be an input is refused before a
 * store is made and a definition put for it. */
static int check_operand(struct cli *cli)
{
    struct buf input;

    if (word_is_file(cli->operands[0]) && !file_is_readable(cli->operands[0]))
        return EXIT_USAGE;
    if (word_is_code(cli->operands[0]) && !args_add(cli, "module", cli->operands[0]))
        return usage_fail(cli, "too many options");
    if (!word_is_file(cli->operands[0]) && args_option(cli, "name"))
        return usage_fail(cli, "--name goes with a FILE");
    if (input_typed(cli, &input, NULL) != PAWL_OK)
        return report(cli);
    buf_fini(&input);
    return EXIT_DONE;
}

/* A store is not made for a word that means nothing: what is known without it is looked at first,
 * in memory. */
static int check_name(struct cli *cli)
{
    const char *store = cli->store, *file = store_file(store), *word = cli->operands[0];
    struct node *answer;
    int code = EXIT_DONE;

    if (word_is_code(word) || word_is_file(word) || !file || access(file, F_OK) == 0 ||
        args_flag(cli, "with"))
        return EXIT_DONE;
    cli->store = "memory:";
    if (target_open(cli, USE_CREATE, NULL) != PAWL_OK)
        code = report(cli);
    else if (definition_ask(cli, word, &answer) != PAWL_OK &&
             !api_has_code(cli->target.local, word))
        code = report_unknown(cli);
    target_close(cli);
    cli->store = store;
    return code;
}

int verb_run(struct cli *cli)
{
    int code = check_words(cli);

    if (code == EXIT_DONE)
        code = check_operand(cli);
    if (args_flag(cli, "test") && !cli->store_named) /* $PAWL_STORE has a clock of its own */
        cli->store = "memory:";
    if (code == EXIT_DONE)
        code = check_name(cli);
    return code == EXIT_DONE ? in_store(cli, run_here) : code;
}

/* An instance whose code is not here would never take a turn. */
static bool lacks_code(const struct cli *cli, const struct node *instance)
{
    return cli->target.local && str_is(member_str(instance, "kind"), "code") &&
           !has_ended(instance) &&
           !api_has_code(cli->target.local, member_str(instance, "definition").data);
}

static int resume_here(struct cli *cli, struct run_view *running)
{
    struct node *instance;
    const char *id;
    int64_t seq;

    if (id_resolve(cli, cli->operands[0], &id) != PAWL_OK ||
        cli_ask_id(cli, "instance.get", id, &instance) != PAWL_OK ||
        clear_pause(cli, instance) != PAWL_OK)
        return report(cli);
    if (str_is(member_str(instance, "status"), "paused") &&
        str_is(member_str(instance, "kind"), "machine")) {
        fputs("resumed\n", cli->term.out); /* nothing runs it but those who fire */
        return EXIT_DONE;
    }
    if (!running->host.server && !has_ended(instance)) {
        fprintf(cli->term.out, "%s runs it\n", cli->target.address);
        return EXIT_DONE;
    }
    if (lacks_code(cli, instance)) {
        scope_fail(&cli->scope, PAWL_NOT_KNOWN,
                   "no handler registered for code type '%.*s' in this program",
                   STR_ARG(member_str(instance, "definition")));
        return report(cli);
    }
    if (!cli->json && !(cli->term.tty && str_is(member_str(instance, "kind"), "flow")))
        put_title(cli, instance); /* a flow on a terminal is drawn with its own */
    seq = member_int(instance, "next_sequence_number") - 1;
    return live_follow(cli, &running->host, id, seq > CONTEXT_ENTRIES ? seq - CONTEXT_ENTRIES : 0,
                       running->trial);
}

int verb_resume(struct cli *cli)
{
    const char *file = store_file(cli->store);
    int code = check_words(cli);

    if (code != EXIT_DONE)
        return code;
    if (file && access(file, F_OK) != 0) {
        scope_fail(&cli->scope, PAWL_NOT_KNOWN, "there is no store at '%s'", file);
        return report(cli);
    }
    return in_store(cli, resume_here);
}
