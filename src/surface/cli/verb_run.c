/* verb_run.c - run, resume: this process owns the store and works until an instance ends. */
#include "surface/cli/host.h"
#include "surface/cli/view.h"
#include <unistd.h>

#define CONTEXT_ENTRIES 3 /* shown again when an instance is resumed */

static const struct host_options here = { .listen = "127.0.0.1:0", .allow_exec = true };

static pawl_status create(struct cli *cli, const char *definition, struct node **out, str *text)
{
    struct buf input;
    pawl_status status;

    input_init(&input);
    json_key(&input, "definition");
    json_text(&input, definition);
    status = args_members(cli, &input);
    if (status != PAWL_OK) {
        buf_fini(&input);
        return status;
    }
    json_close(&input, '}');
    return target_ask(cli, &cli->scope, "instance.create", &input, out, text);
}

/* The id first, and at once: whatever happens to this process, it can be resumed. */
static void announce(struct cli *cli, const char *id, str text)
{
    if (cli->json)
        print_json(cli, text);
    else
        fprintf(cli->term.out, "%s\n", id);
    fflush(cli->term.out);
}

static int run_here(struct cli *cli, struct host *host)
{
    struct put put;
    struct node *created;
    const char *id;
    str text;

    if (define_file(cli, cli->operands[0], args_option(cli, "name"), &put) != PAWL_OK)
        return report_definition(cli, cli->operands[0], &put);
    if (create(cli, put.name, &created, &text) != PAWL_OK)
        return report(cli, &cli->scope.error);
    id = member_str(created, "instance_id").data;
    announce(cli, id, text);
    return live_follow(cli, host, id, 0);
}

int verb_run(struct cli *cli)
{
    struct host host;
    int code;

    if (!file_is_readable(cli->operands[0]))
        return EXIT_USAGE;
    if (host_open(cli, &here, &host) != PAWL_OK)
        return report(cli, &cli->scope.error);
    code = run_here(cli, &host);
    host_close(cli, &host);
    return code;
}

/* Only one that is paused: whose instance merely stopped needs no permission to go on. */
static pawl_status clear_pause(struct cli *cli, const struct node *instance)
{
    struct buf input;
    struct node *answer;

    if (!str_is(member_str(instance, "status"), "paused"))
        return PAWL_OK;
    input_init(&input);
    if (args_members(cli, &input) != PAWL_OK) { /* instance_id among them */
        buf_fini(&input);
        return cli->scope.error.status;
    }
    json_close(&input, '}');
    return target_ask(cli, &cli->scope, "instance.resume", &input, &answer, NULL);
}

static int resume_here(struct cli *cli, struct host *host)
{
    struct node *instance;
    const char *id;
    int64_t seq;

    if (id_resolve(cli, cli->operands[0], &id) != PAWL_OK ||
        target_ask_id(cli, &cli->scope, "instance.get", id, &instance, NULL) != PAWL_OK)
        return report(cli, &cli->scope.error);
    if (clear_pause(cli, instance) != PAWL_OK)
        return report(cli, &cli->scope.error);
    if (str_is(member_str(instance, "status"), "paused") &&
        str_is(member_str(instance, "kind"), "machine")) {
        fputs("resumed\n", cli->term.out); /* nothing runs it but those who fire */
        return EXIT_DONE;
    }
    if (!host->server && !has_ended(instance)) {
        fprintf(cli->term.out, "%s runs it\n", cli->target.address);
        return EXIT_DONE;
    }
    if (!cli->json)
        put_title(cli, instance);
    seq = member_int(instance, "next_sequence_number") - 1;
    return live_follow(cli, host, id, seq > CONTEXT_ENTRIES ? seq - CONTEXT_ENTRIES : 0);
}

int verb_resume(struct cli *cli)
{
    const char *file = store_file(cli->store);
    struct host host;
    int code;

    if (file && access(file, F_OK) != 0) {
        scope_fail(&cli->scope, PAWL_NOT_KNOWN, "there is no store at '%s'", file);
        return report(cli, &cli->scope.error);
    }
    if (host_open(cli, &here, &host) != PAWL_OK)
        return report(cli, &cli->scope.error);
    code = resume_here(cli, &host);
    host_close(cli, &host);
    return code;
}
