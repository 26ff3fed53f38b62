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
    table_print_page(&cli->term, table, pages);
    return true;
}

pawl_status verb_call(struct cli *cli, struct node **answer, str *text)
{
    return verb_call_as(cli, cli->verb->operation, answer, text);
}

pawl_status verb_call_as(struct cli *cli, const char *operation, struct node **answer, str *text)
{
    struct buf input;
    pawl_status status;

    input_init(&input);
    status = args_members(cli, &input);
    if (status != PAWL_OK) {
        buf_fini(&input);
        return status;
    }
    json_close(&input, '}');
    return target_ask(cli, &cli->scope, operation, &input, answer, text);
}

int verb_conclude(struct cli *cli, pawl_status status, const struct node *answer, str text,
                  render_fn render)
{
    if (status != PAWL_OK)
        return report(cli, &cli->scope.error);
    if (cli->json)
        print_json(cli, text);
    else
        render(cli, answer);
    return EXIT_DONE;
}

int verb_conclude_buf(struct cli *cli, pawl_status status, struct buf *out, render_fn render)
{
    struct node *answer = NULL;
    str text = buf_take(out, &cli->scope.arena);

    if (status == PAWL_OK)
        status = node_read_json(&cli->scope, text, &answer);
    return verb_conclude(cli, status, answer, text, render);
}

/* False: its second operand is missing, or there is one too many. */
static bool fits(const struct cli *cli, const struct verb_part *part)
{
    return part->word && cli->operand_count == (part->member ? 2 : 1);
}

static pawl_status ask_part(struct cli *cli, const struct verb_part *part, struct node **answer,
                            str *text)
{
    struct buf input;
    pawl_status status = target_open(cli, part->use, NULL);

    input_init(&input);
    if (status == PAWL_OK && part->has_options)
        status = args_members(cli, &input);
    if (part->member)
        json_put_text(&input, part->member, cli->operands[1]);
    json_close(&input, '}');
    if (status == PAWL_OK)
        return target_ask(cli, &cli->scope, part->operation, &input, answer, text);
    buf_fini(&input);
    return status;
}

int verb_do_part(struct cli *cli, const struct verb_part *parts, const char *usage,
                 render_fn render)
{
    struct node *answer = NULL;
    str text = STR_NONE;
    pawl_status status;

    while (parts->word && strcmp(cli->operands[0], parts->word) != 0)
        parts++;
    if (!fits(cli, parts))
        return usage_fail(cli, "expected %s", usage);
    status = ask_part(cli, parts, &answer, &text);
    return verb_conclude(cli, status, answer, text, render);
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
    str text = STR_NONE;
    pawl_status status = target_open(cli, use, NULL);

    if (status == PAWL_OK)
        status = verb_call_as(cli, operation, &answer, &text);
    return verb_conclude(cli, status, answer, text, render);
}

static int verb_default(struct cli *cli)
{
    return verb_do(cli, USE_EXISTING, cli->verb->operation, cli->verb->render);
}

static int run_verb(struct cli *cli)
{
    int code = cli->verb->run ? cli->verb->run(cli) : verb_default(cli);

    target_close(cli);
    if (fflush(stdout) != 0 && code == EXIT_DONE) {
        perror("pawl: standard output");
        return EXIT_STORE;
    }
    return code;
}

/* Commands that we tell people to type must reach the same store. */
static void name_command(struct cli *cli, const char *usual_store)
{
    size_t size = strlen(cli->store) + 32;
    char *command = arena_alloc(&cli->scope.arena, size);

    cli->command = "pawl";
    if (!command || strcmp(cli->store, usual_store) == 0)
        return;
    snprintf(command, size, "pawl --store %s", cli->store);
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
    struct cli cli = { .program = argc > 0 ? argv[0] : "pawl",
                       .store = usual,
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
