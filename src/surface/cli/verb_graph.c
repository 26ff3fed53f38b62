/* verb_graph.c - graph: a picture of a definition in the store or in a file, or of an instance. */
#include "surface/cli/cli.h"
#include <unistd.h>

static int ask(struct cli *cli, const char *operation, struct buf *input)
{
    const char *format = cli->json ? "json" : args_option(cli, "format");
    str text = STR_NONE;
    pawl_status status;

    if (format)
        json_put_text(input, "format", format);
    json_close(input, '}');
    status = target_call(cli, &cli->scope, operation, input, &text);
    buf_fini(input);
    if (status != PAWL_OK)
        return report(cli, &cli->scope.error);
    fwrite(text.data, 1, text.size, cli->term.out);
    if (text.size > 0 && text.data[text.size - 1] != '\n')
        fputc('\n', cli->term.out);
    return EXIT_DONE;
}

static int graph_instance(struct cli *cli)
{
    struct buf input;
    const char *id;

    if (target_open(cli, USE_EXISTING, NULL) != PAWL_OK ||
        id_resolve(cli, args_option(cli, "instance"), &id) != PAWL_OK)
        return report(cli, &cli->scope.error);
    input_init(&input);
    json_put_text(&input, "instance_id", id);
    return ask(cli, "instance.graph", &input);
}

static int graph_named(struct cli *cli, const char *name)
{
    struct buf input;

    input_init(&input);
    put_definition(&input, name);
    return ask(cli, "definition.graph", &input);
}

/* A name has letters, digits, dots, hyphens and underscores; each other byte becomes a hyphen. */
static const char *name_from(struct cli *cli, const char *stem)
{
    char *name = stem ? arena_text(&cli->scope.arena, str_of(stem)) : NULL;

    for (char *at = name; at && *at; at++)
        if (!(*at >= 'a' && *at <= 'z') && !(*at >= 'A' && *at <= 'Z') &&
            !(*at >= '0' && *at <= '9') && *at != '.' && *at != '_')
            *at = '-';
    return name;
}

/* A file without a `name` is drawn under its own; *out NULL: it has one. A text that cannot be read
 * is refused when it is put. */
static pawl_status name_of_file(struct cli *cli, const char *path, const char **out)
{
    struct node *document;
    str text;

    *out = NULL;
    TRY(file_read(&cli->scope, path, &text));
    if (node_read(&cli->scope, text, &document) != PAWL_OK || node_find(document, "name"))
        return PAWL_OK;
    *out = name_from(cli, file_stem(cli, path));
    return *out ? PAWL_OK : scope_no_memory(&cli->scope);
}

/* A file needs no store: it is put into one that is forgotten. */
static int graph_file(struct cli *cli, const char *path)
{
    const char *name;
    struct put put;

    if (!file_is_readable(path))
        return EXIT_USAGE;
    cli->store = "memory:";
    if (target_open(cli, USE_CREATE, NULL) != PAWL_OK || name_of_file(cli, path, &name) != PAWL_OK)
        return report(cli, &cli->scope.error);
    if (define_file(cli, path, name, &put) != PAWL_OK)
        return report_definition(cli, path, &put);
    return graph_named(cli, put.name);
}

int verb_graph(struct cli *cli)
{
    bool is_instance = args_option(cli, "instance") != NULL;

    if (is_instance == (cli->operand_count == 1))
        return usage_fail(cli, "graph needs a NAME, a FILE or --instance ID, and not both");
    if (is_instance)
        return graph_instance(cli);
    if (word_is_file(cli->operands[0]))
        return graph_file(cli, cli->operands[0]);
    if (target_open(cli, USE_EXISTING, NULL) != PAWL_OK)
        return report(cli, &cli->scope.error);
    return graph_named(cli, cli->operands[0]);
}
