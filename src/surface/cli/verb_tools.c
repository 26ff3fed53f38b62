/* verb_tools.c - tools: what steps can call. Of a server that runs, else by pawl.yaml. */
#include "api/config.h"
#include "base/limits.h"
#include "surface/cli/view.h"

enum { TOOL_NAME, TOOL_FROM, TOOL_WHAT, TOOL_COLUMNS };
static const char *const tool_heads[TOOL_COLUMNS] = { "TOOL", "FROM", "WHAT" };

static void fill_tool(struct cli *cli, const struct text_table *table, const struct node *row,
                      str *cells, enum style *styles)
{
    (void)cli, (void)table;
    cells[TOOL_NAME] = member_str(row, "tool");
    cells[TOOL_FROM] = member_str(row, "kind");
    cells[TOOL_WHAT] = member_true(row, "on") ? STR("") : STR("off: pawl.yaml turns it on");
    styles[TOOL_WHAT] = DIM;
}

static void fill_remote(struct cli *cli, const struct text_table *table, const struct node *row,
                        str *cells, enum style *styles)
{
    (void)cli, (void)table;
    cells[TOOL_NAME] = member_str(row, "name");
    cells[TOOL_FROM] = STR("");
    cells[TOOL_WHAT] = str_before(member_str(row, "description"), '\n');
    styles[TOOL_WHAT] = DIM;
}

static void render_server(struct cli *cli, const struct node *server)
{
    struct text_table table = { .column_count = TOOL_COLUMNS,
                                .heads = tool_heads,
                                .whole = 1u << TOOL_NAME };
    str error = member_str(server, "error");

    fprintf(cli->term.out, "\nMCP server %.*s (%.*s%s%.*s)\n",
            STR_ARG(member_str(server, "server")), STR_ARG(member_str(server, "transport")),
            error.size > 0 ? "" : ", ", STR_ARG(member_str(server, "version")));
    if (error.size > 0)
        fprintf(cli->term.out, "  %.*s\n", STR_ARG(error));
    else
        (void)rows_print(cli, node_find(server, "tools"), &table, fill_remote,
                         &(struct table_pages){ 0 });
}

static void render_tools(struct cli *cli, const struct node *answer)
{
    struct text_table table = { .column_count = TOOL_COLUMNS,
                                .heads = tool_heads,
                                .whole = 1u << TOOL_NAME };

    (void)rows_print(cli, node_find(answer, "tools"), &table, fill_tool,
                     &(struct table_pages){ 0 });
    for (const struct node *one = node_first(answer, "servers"); one; one = one->next)
        render_server(cli, one);
}

int verb_tools(struct cli *cli)
{
    struct node *answer = NULL;
    struct config config;
    pawl_status status = config_load(cli, &config);
    int code;

    if (status != PAWL_OK ||
        target_open_any(cli, &(pawl_options){ .tools = config.tools }) != PAWL_OK)
        return report(cli);
    status = cli_ask(cli, "tool.list", WITH({ "", STR_NONE }), &answer);
    code = verb_conclude(cli, status, answer, render_tools);
    target_close(cli);
    return code;
}
