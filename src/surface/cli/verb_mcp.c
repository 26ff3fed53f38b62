/* verb_mcp.c - mcp: own a store, and speak MCP on stdin and stdout until stdin ends. */
#include "surface/cli/host.h"
#include "surface/mcp/mcp.h"
#include <sys/signalfd.h>
#include <unistd.h>

extern const str mcp_fixture_files[][2]; /* made by tools/embed from src/surface/mcp/fixtures/ */

pawl_status mcp_fixtures_put(struct cli *cli)
{
    struct put put;

    for (const str(*file)[2] = mcp_fixture_files; (*file)[0].data; file++)
        TRY(define_text(cli, (*file)[1], (*file)[0].data, NULL, &put));
    return PAWL_OK;
}

/* Messages alone go to stdout. */
static int speak(struct cli *cli, struct host *host)
{
    int stop;

    if (!host->mcp) {
        scope_fail(&cli->scope, PAWL_IN_USE, "%s is served by another process: use %s/mcp",
                   cli->store, cli->target.address);
        return report(cli);
    }
    if (args_flag(cli, "mcp-fixtures") && mcp_fixtures_put(cli) != PAWL_OK)
        return report(cli);
    signal(SIGPIPE, SIG_IGN);
    stop = signalfd(-1, &host->stop_signals, SFD_CLOEXEC);
    mcp_serve_stdio(host->mcp, STDIN_FILENO, STDOUT_FILENO, stop);
    if (stop >= 0)
        close(stop);
    return host_lost_store() ? EXIT_STORE : EXIT_DONE;
}

/* The port is for other commands on this machine, which go through this process. */
int verb_mcp(struct cli *cli)
{
    struct host_options options = { .listen = "127.0.0.1:0",
                                    .needs_token = true,
                                    .allow_exec = args_flag(cli, "allow-exec"),
                                    .mcp_fixtures = args_flag(cli, "mcp-fixtures"),
                                    .mcp_tools = args_option(cli, "mcp-tools"),
                                    .actor = args_option(cli, "actor") };
    struct host host;
    int code;

    if (run_tools(cli, &options) != PAWL_OK || host_open(cli, &options, &host) != PAWL_OK)
        return report(cli);
    code = speak(cli, &host);
    host_close(cli, &host);
    return code;
}
