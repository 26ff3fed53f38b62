/* verb_define.c - init, define, check: a store and what is defined in it. */
#include "base/limits.h"
#include "surface/cli/cli.h"
#include <libgen.h>
#include <unistd.h>

int verb_init(struct cli *cli)
{
    const char *file = store_file(cli->store);
    bool was_there = file && access(file, F_OK) == 0;

    if (target_open(cli, USE_CREATE, NULL) != PAWL_OK)
        return report(cli, &cli->scope.error);
    if (cli->json)
        print_json(cli, was_there ? STR("{\"created\":false}") : STR("{\"created\":true}"));
    else
        fprintf(cli->term.out, "%s %s\n", cli->store, was_there ? "is already there" : "created");
    if (cli->term.tty && !cli->json)
        term_put(&cli->term, DIM, "next: pawl define FILE, or pawl run FILE\n");
    return EXIT_DONE;
}

/* A file's name without folder and ending: a name for a text that has none we could read. */
static const char *stem_of(struct cli *cli, const char *path)
{
    char *copy = arena_text(&cli->scope.arena, str_of(path));
    char *base = copy ? basename(copy) : NULL;
    char *dot = base ? strchr(base, '.') : NULL;

    if (dot && dot != base)
        *dot = '\0';
    return base;
}

/* A text that cannot be read has no name; the engine will say where it is wrong. */
static pawl_status find_name(struct cli *cli, str text, const char *path, const char **out)
{
    struct node *document;
    const struct node *name;

    if (node_read(&cli->scope, text, &document) != PAWL_OK) {
        *out = stem_of(cli, path);
        return *out ? PAWL_OK : scope_no_memory(&cli->scope);
    }
    name = node_find(document, "name");
    if (!name || name->kind != NODE_STRING)
        return scope_fail(&cli->scope, PAWL_INVALID_DEFINITION,
                          "%s: expected 'name: ...' inside, or --name NAME; found neither", path);
    *out = name->text.data;
    return PAWL_OK;
}

pawl_status define_text(struct cli *cli, str text, const char *path, const char *name,
                        struct put *out)
{
    struct buf input;
    pawl_status status;

    if (!name && find_name(cli, text, path, &name) != PAWL_OK)
        return cli->scope.error.status;
    input_init(&input);
    json_key(&input, "name");
    json_text(&input, name);
    json_key(&input, "text");
    json_str(&input, text);
    if (args_option(cli, "key")) {
        json_key(&input, "idempotency_key");
        json_text(&input, args_option(cli, "key"));
    }
    json_close(&input, '}');
    out->name = name;
    status = target_ask(cli, &cli->scope, "definition.put", &input, &out->answer, &out->text);
    if (status == PAWL_INVALID_DEFINITION)
        return scope_fail(&cli->scope, status, "%s: %s", path, cli->scope.error.message);
    return status;
}

pawl_status define_file(struct cli *cli, const char *path, const char *name, struct put *out)
{
    str text;
    pawl_status status = file_read(&cli->scope, path, &text);

    return status == PAWL_OK ? define_text(cli, text, path, name, out) : status;
}

static void put_findings(struct cli *cli, const struct node *list, const char *path,
                         enum style style, const char *word)
{
    for (const struct node *item = list ? list->first : NULL; item; item = item->next) {
        str message = item->kind == NODE_STRING ? item->text : member_str(item, "message");

        fputs(path, cli->term.out);
        if (member_int(item, "line") > 0)
            fprintf(cli->term.out, ":%lld:%lld", (long long)member_int(item, "line"),
                    (long long)member_int(item, "column"));
        fputs(": ", cli->term.out);
        term_put(&cli->term, style, "%s", word);
        fprintf(cli->term.out, ": %.*s\n", STR_ARG(message));
    }
}

static void put_defined(struct cli *cli, const struct put *put, const char *path)
{
    str kind = member_str(put->answer, "kind"), sha = member_str(put->answer, "sha256");

    put_findings(cli, node_find(put->answer, "warnings"), path, WARN, "warning");
    term_put(&cli->term, BOLD, "%s@%lld", put->name, (long long)member_int(put->answer, "version"));
    fprintf(cli->term.out, "  %.*s  ", STR_ARG(kind));
    term_put(&cli->term, DIM, "sha256 %.12s\n", sha.size ? sha.data : "");
}

/* A file that is not there is a wrong word, not a refusal of the store. */
static bool can_read_all(struct cli *cli)
{
    for (uint32_t i = 0; i < cli->operand_count; i++)
        if (strcmp(cli->operands[i], "-") != 0 && access(cli->operands[i], R_OK) != 0) {
            fprintf(stderr, "pawl: cannot read '%s'\n", cli->operands[i]);
            return false;
        }
    return true;
}

int verb_define(struct cli *cli)
{
    const char *name = args_option(cli, "name");
    struct put put;

    if ((name || args_option(cli, "key")) && cli->operand_count > 1)
        return usage_fail(cli, "--%s goes with one file", name ? "name" : "key");
    if (!can_read_all(cli))
        return EXIT_USAGE;
    if (target_open(cli, USE_CREATE, NULL) != PAWL_OK)
        return report(cli, &cli->scope.error);
    for (uint32_t i = 0; i < cli->operand_count; i++) {
        if (define_file(cli, cli->operands[i], name, &put) != PAWL_OK)
            return report(cli, &cli->scope.error);
        if (cli->json)
            print_json(cli, put.text);
        else
            put_defined(cli, &put, cli->operands[i]);
    }
    return EXIT_DONE;
}

static pawl_status check_file(struct cli *cli, const char *path, bool *valid)
{
    struct buf input;
    struct node *answer;
    const struct node *errors;
    str text;

    if (file_read(&cli->scope, path, &text) != PAWL_OK)
        return cli->scope.error.status;
    input_init(&input);
    json_key(&input, "text");
    json_str(&input, text);
    json_close(&input, '}');
    if (target_ask(cli, &cli->scope, "definition.check", &input, &answer, &text) != PAWL_OK)
        return cli->scope.error.status;
    errors = node_find(answer, "errors");
    *valid = !errors || errors->count == 0;
    if (cli->json) {
        print_json(cli, text);
        return PAWL_OK;
    }
    put_findings(cli, errors, path, BAD, "error");
    put_findings(cli, node_find(answer, "warnings"), path, WARN, "warning");
    if (*valid)
        fprintf(cli->term.out, "%s: valid\n", path);
    return PAWL_OK;
}

int verb_check(struct cli *cli)
{
    const char *file = store_file(cli->store);
    bool all_valid = true, valid = false;

    if (!can_read_all(cli))
        return EXIT_USAGE;
    if (file && access(file, F_OK) != 0)
        cli->store = "memory:"; /* to check needs no store */
    if (target_open(cli, USE_CREATE, NULL) != PAWL_OK)
        return report(cli, &cli->scope.error);
    for (uint32_t i = 0; i < cli->operand_count; i++) {
        if (check_file(cli, cli->operands[i], &valid) != PAWL_OK)
            return report(cli, &cli->scope.error);
        all_valid = all_valid && valid;
    }
    return all_valid ? EXIT_DONE : EXIT_REJECTED;
}
