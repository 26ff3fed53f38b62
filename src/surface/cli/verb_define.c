/* verb_define.c - init, define: a store and what is defined in it. */
#include "base/limits.h"
#include "surface/cli/cli.h"
#include <libgen.h>
#include <unistd.h>

int verb_init(struct cli *cli)
{
    const char *file = store_file(cli->store);
    bool was_there = file && access(file, F_OK) == 0;

    if (target_open(cli, USE_CREATE, NULL) != PAWL_OK)
        return report(cli);
    if (cli->json)
        print_json(cli, was_there ? STR("{\"created\":false}") : STR("{\"created\":true}"));
    else
        fprintf(cli->term.out, "%s %s\n", store_shown(cli),
                was_there ? "exists already" : "created");
    if (cli->term.tty && !cli->json)
        term_put(&cli->term, DIM, "next: pawl define FILE, or pawl run FILE\n");
    return EXIT_DONE;
}

const char *file_stem(struct cli *cli, const char *path)
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
        *out = file_stem(cli, path);
        return *out ? PAWL_OK : scope_no_memory(&cli->scope);
    }
    name = node_find(document, "name");
    if (!name || name->kind != NODE_STRING)
        return scope_fail(&cli->scope, PAWL_INVALID_DEFINITION,
                          "%s: expected 'name: ...' inside, or --name NAME; found neither", path);
    *out = name->text.data;
    return PAWL_OK;
}

struct ask_member version_of(const char *word)
{
    struct ask_member version = { "version", .text = str_after(str_of(word), '@') };
    uint64_t number;

    if (str_to_u64(version.text, &number) && number > 0)
        version = (struct ask_member){ "version", .number = (int64_t)number };
    return version;
}

pawl_status definition_ask(struct cli *cli, const char *word, struct node **out)
{
    return cli_ask(cli, "definition.get",
                   WITH({ "name", str_before(str_of(word), '@') }, version_of(word)), out);
}

pawl_status define_text(struct cli *cli, str text, const char *path, const char *name,
                        struct put *out)
{
    pawl_status status;

    *out = (struct put){ 0 };
    if (!name)
        TRY(find_name(cli, text, path, &name));
    out->source = text;
    out->name = name;
    status = cli_ask(cli, "definition.put",
                     WITH({ "name", str_of(name) }, { "text", text },
                          { "idempotency_key", str_of(args_option(cli, "key")) }),
                     &out->answer);
    if (status == PAWL_INVALID_DEFINITION)
        return scope_fail(&cli->scope, status, "%s: %s", path, cli->scope.error.message);
    return status;
}

pawl_status define_file(struct cli *cli, const char *path, const char *name, struct put *out)
{
    str text;

    *out = (struct put){ 0 };
    TRY(file_read(&cli->scope, path, &text));
    return define_text(cli, text, path, name, out);
}

int report_definition(struct cli *cli, const char *path, const struct put *put)
{
    bool is_refused = cli->scope.error.status == PAWL_INVALID_DEFINITION;
    int code = report(cli);

    if (is_refused && put->source.data)
        findings_explain(cli, path, put->source);
    return code;
}

/* The answer is what was put; what is odd about it goes beside it, to stderr, a line each: it may
 * be meant so, and `check` shows more. */
static void put_defined(struct cli *cli, const struct put *put, const char *path)
{
    str kind = member_str(put->answer, "kind"), sha = member_str(put->answer, "sha256");
    const struct checked checked = { .path = path, .answer = put->answer };
    struct term errors;

    term_put(&cli->term, BOLD, "%s@%lld", put->name, (long long)member_int(put->answer, "version"));
    fprintf(cli->term.out, "  %.*s  ", STR_ARG(kind));
    term_put(&cli->term, DIM, "sha256 %.12s\n", sha.size ? sha.data : "");
    fflush(cli->term.out);
    term_init(&errors, stderr);
    findings_put(&errors, &checked, "warnings");
}

/* A file that is not there is a wrong word, not a refusal of the store. */
bool can_read_all(const struct cli *cli)
{
    for (uint32_t i = 0; i < cli->operand_count; i++)
        if (!file_is_readable(cli->operands[i]))
            return false;
    return true;
}

/* Code is registered by the program that runs it. NULL: there is none. */
static const char *find_code(const struct cli *cli)
{
    for (uint32_t i = 0; i < cli->operand_count; i++)
        if (word_is_code(cli->operands[i]))
            return cli->operands[i];
    return NULL;
}

int verb_define(struct cli *cli)
{
    const char *name = args_option(cli, "name"), *code = find_code(cli);
    struct put put;

    if (code)
        return usage_fail(cli,
                          "'%s' is code, and no definition: pawl serve --module %s registers and "
                          "runs its workflows, pawl run %s one of them",
                          code, code, code);

    if ((name || args_option(cli, "key")) && cli->operand_count > 1)
        return usage_fail(cli, "--%s goes with one file", name ? "name" : "key");
    if (!can_read_all(cli))
        return EXIT_USAGE;
    if (target_open(cli, USE_CREATE, NULL) != PAWL_OK)
        return report(cli);
    for (uint32_t i = 0; i < cli->operand_count; i++) {
        if (define_file(cli, cli->operands[i], name, &put) != PAWL_OK)
            return report_definition(cli, cli->operands[i], &put);
        if (cli->json)
            print_json(cli, put.answer->raw);
        else
            put_defined(cli, &put, cli->operands[i]);
    }
    return EXIT_DONE;
}
