/* cli.c - from main() to a verb and back to an exit status. */
#include "surface/cli/cli.h"
#include "api/modules.h"
#include <pawl_main.h>
#include <signal.h>
#include <stdlib.h>

void print_json(struct cli *cli, str answer)
{
    fwrite(answer.data, 1, answer.size, cli->term.out);
    fputc('\n', cli->term.out);
}

bool rows_print(struct cli *cli, const struct node *rows, struct text_table *table, fill_fn fill,
                struct table_pages *pages)
{
    size_t size = rows ? (size_t)rows->count * table->column_count : 0;
    str *cells = ARENA_ARRAY(&cli->scope.arena, str, size + 1);
    enum style *styles = ARENA_ARRAY(&cli->scope.arena, enum style, size + 1);

    if (size == 0 || !cells || !styles)
        return false;
    table->row_count = rows->count;
    table->cells = cells;
    table->styles = styles;
    for (const struct node *row = rows->first; row; row = row->next) {
        fill(cli, table, row, cells, styles);
        cells += table->column_count;
        styles += table->column_count;
    }
    table_print(&cli->term, table, pages);
    return true;
}

int verb_conclude(struct cli *cli, pawl_status status, const struct node *answer, render_fn render)
{
    if (status != PAWL_OK)
        return report(cli);
    if (cli->json)
        print_json(cli, answer->raw);
    else
        render(cli, answer);
    return EXIT_DONE;
}

pawl_status answer_take(struct cli *cli, pawl_status status, struct buf *text, struct node **out)
{
    str taken = buf_take(text, &cli->scope.arena);

    return status == PAWL_OK ? node_read_json(&cli->scope, taken, out) : status;
}

int verb_put_text(struct cli *cli, const char *operation, struct buf *input, bool ends_line)
{
    str text;

    if (target_call(cli, operation, input, &(struct answer_to){ .whole = &text }) != PAWL_OK)
        return report(cli);
    fwrite(text.data, 1, text.size, cli->term.out);
    if (ends_line && text.size > 0 && text.data[text.size - 1] != '\n')
        fputc('\n', cli->term.out);
    return EXIT_DONE;
}

int verb_do_part(struct cli *cli, const struct verb_part *part, const char *usage, render_fn render)
{
    struct node *answer = NULL;
    pawl_status status;

    while (part->word && strcmp(cli->operands[0], part->word) != 0)
        part++;
    if (!part->word || cli->operand_count != (part->member ? 2 : 1))
        return usage_fail(cli, "expected %s", usage);
    status = target_open(cli, part->use, NULL);
    if (status == PAWL_OK)
        status = (part->has_options ? cli_ask_typed : cli_ask)(
            cli, part->operation, WITH({ part->member, str_of(cli->operands[1]) }), &answer);
    return verb_conclude(cli, status, answer, render);
}

struct scope scope_take(struct cli *cli)
{
    struct scope kept = cli->scope;

    scope_init(&cli->scope, &heap_libc, CLI_MEMORY_MAX);
    return kept;
}

void scope_give(struct cli *cli, struct scope kept)
{
    kept.error = cli->scope.error;
    scope_fini(&cli->scope);
    cli->scope = kept;
}

int verb_do(struct cli *cli, enum target_use use, const char *operation, render_fn render)
{
    struct node *answer = NULL;
    pawl_status status = target_open(cli, use, NULL);

    if (status == PAWL_OK)
        status = cli_ask_typed(cli, operation, NULL, &answer);
    return verb_conclude(cli, status, answer, render);
}

static int run_verb(struct cli *cli)
{
    const struct verb *verb = cli->verb;
    int code =
        verb->run ? verb->run(cli) : verb_do(cli, USE_EXISTING, verb->operation, verb->render);

    target_close(cli);
    if (fflush(stdout) != 0 && code == EXIT_DONE) {
        perror("pawl: standard output");
        return EXIT_STORE;
    }
    return code;
}

/* The commands that messages advise must reach the same store. */
static void name_command(struct cli *cli, const char *usual_store)
{
    size_t size = strlen(store_shown(cli)) + 32;
    char *command = arena_alloc(&cli->scope.arena, size);

    cli->command = "pawl";
    if (!command || strcmp(cli->store, usual_store) == 0)
        return;
    snprintf(command, size, "pawl --store %s", store_shown(cli));
    cli->command = command;
}

static int dispatch(struct cli *cli)
{
    if (cli->help && cli->verb)
        help_verb(&cli->term, cli->verb);
    else if (cli->help || !cli->verb)
        help_overview(&cli->term);
    else
        return run_verb(cli);
    return EXIT_DONE;
}

int pawl_main(int argc, char **argv, const pawl_module *module)
{
    return pawl_main_with(argc, argv, module, NULL, NULL);
}

int pawl_main_with(int argc, char **argv, const pawl_module *module, pawl_opened_fn opened,
                   void *context)
{
    const char *store = getenv("PAWL_STORE");
    const char *usual = store && *store ? store : CLI_STORE;
    struct cli cli = { .store = usual,
                       .usual = usual,
                       .store_given = store && *store,
                       .module = module,
                       .opened = opened,
                       .opened_context = context };
    int code;

    signal(SIGPIPE, SIG_IGN);
    if (argc == 3 && strcmp(argv[1], "--module-host") == 0)
        return api_module_host(argv[2]);
    scope_init(&cli.scope, &heap_libc, CLI_MEMORY_MAX);
    term_init(&cli.term, stdout);
    if (argc == 2 && strcmp(argv[1], "--version") == 0) {
        puts("pawl " PAWL_VERSION);
        return EXIT_DONE;
    }
    code = args_parse(&cli, argc, argv);
    if (code == EXIT_DONE) {
        cli.store = store_normal(&cli, cli.store);
        name_command(&cli, usual);
        code = dispatch(&cli);
    }
    scope_fini(&cli.scope);
    return code;
}
