/* verb_graph.c - graph: a picture of a definition in the store or in a file, or of an instance. */
#include "surface/cli/cli.h"
#include <unistd.h>

static str format_of(const struct cli *cli)
{
    return cli->json ? STR("json") : str_of(args_option(cli, "format"));
}

static int graph_instance(struct cli *cli)
{
    struct buf input;
    const char *id;

    if (target_open(cli, USE_EXISTING, NULL) != PAWL_OK ||
        id_resolve(cli, args_option(cli, "instance"), &id) != PAWL_OK)
        return report(cli);
    input_with(&input, WITH({ "instance_id", str_of(id) }, { "format", format_of(cli) }));
    return verb_put_text(cli, "instance.graph", &input, true);
}

static int graph_named(struct cli *cli, const char *word)
{
    struct buf input;

    input_with(&input, WITH({ "name", str_before(str_of(word), '@') }, version_of(word),
                            { "format", format_of(cli) }));
    return verb_put_text(cli, "definition.graph", &input, true);
}

/* What is the name of a file without a `name`: its own. A name has letters, digits, dots, hyphens
 * and underscores; each other byte becomes a hyphen. NULL: no memory. */
static const char *name_from(struct cli *cli, const char *path)
{
    char *name = arena_text(&cli->scope.arena, str_of(file_stem(cli, path)));

    for (char *at = name; at && *at; at++)
        if (!(*at >= 'a' && *at <= 'z') && !(*at >= 'A' && *at <= 'Z') &&
            !(*at >= '0' && *at <= '9') && *at != '.' && *at != '_')
            *at = '-';
    return name;
}

/* A file needs no store: it is put into one that is forgotten. A text that cannot be read is
 * refused when it is put. */
static int graph_file(struct cli *cli, const char *path)
{
    struct node *document;
    struct put put;
    const char *name = NULL;
    str text;

    if (!file_is_readable(path))
        return EXIT_USAGE;
    cli->store = "memory:";
    if (target_open(cli, USE_CREATE, NULL) != PAWL_OK ||
        file_read(&cli->scope, path, &text) != PAWL_OK)
        return report(cli);
    if (node_read(&cli->scope, text, &document) == PAWL_OK && !node_find(document, "name"))
        name = name_from(cli, path);
    if (define_text(cli, text, path, name, &put) != PAWL_OK)
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
        return report(cli);
    return graph_named(cli, cli->operands[0]);
}
