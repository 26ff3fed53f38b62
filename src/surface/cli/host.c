/* host.c - taking a store, a port and the signals that end it, and giving them back. */
#include "surface/cli/host.h"
#include "api/modules.h"
#include "store/owner.h"
#include "surface/dashboard/dashboard.h"
#include "surface/http/http.h"
#include "surface/mcp/mcp.h"
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

static bool is_terminal_there(void)
{
    int fd = open("/dev/tty", O_RDWR | O_CLOEXEC | O_NOCTTY);

    if (fd >= 0)
        close(fd);
    return fd >= 0;
}

/* nohup: the process is to live longer than its terminal. */
static bool is_hangup_ignored(void)
{
    struct sigaction action;

    return sigaction(SIGHUP, NULL, &action) == 0 && action.sa_handler == SIG_IGN;
}

/* Blocked in every thread from now on, so that only host_wait() receives them. */
static void hold_signals(struct host *host, bool reloads)
{
    sigemptyset(&host->stop_signals);
    sigaddset(&host->stop_signals, SIGINT);
    sigaddset(&host->stop_signals, SIGTERM);
    if (reloads) {
        sigaddset(&host->stop_signals, SIGHUP);
        host->has_terminal = is_terminal_there() && !is_hangup_ignored();
    }
    pthread_sigmask(SIG_BLOCK, &host->stop_signals, NULL);
}

/* A connection is a file: as many as this process may have. */
static void raise_files(void)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
        return;
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
}

static atomic_bool store_is_lost;

bool host_lost_store(void)
{
    return atomic_load(&store_is_lost);
}

/* A warning is worth a line, and so is what was asked for by a signal; what happens every day is
 * not. Tools that log talk to people. */
static void log_line(void *context, pawl_log_level level, const char *event, const char *text)
{
    const struct cli *cli = context;

    /* The store failed and could not be reopened: a server that can only refuse stops. */
    if (strcmp(event, "store.lost") == 0 && !atomic_exchange(&store_is_lost, true))
        kill(getpid(), SIGTERM);
    if (level < PAWL_LOG_WARN && strcmp(event, "module.reloaded") != 0)
        return;
    fprintf(stderr, "%spawl: %s: %s\n", cli->term.tty ? "\r\033[K" : "", event, text);
}

/* One write for one line: those of other threads do not come in between. */
static void log_request(void *context, const char *line, size_t size)
{
    ssize_t written = write(STDERR_FILENO, line, size);

    (void)context;
    (void)written;
}

static pawl_status serve_on(struct cli *cli, const struct host_options *options, struct host *host,
                            int listener)
{
    struct http_options http = { .socket = listener,
                                 .mounts = host->mounts,
                                 .hosts = options->hosts,
                                 .body_memory = options->body_memory,
                                 .opened = types_register_beside,
                                 .opened_context = cli,
                                 .tls_cert = options->tls_cert,
                                 .tls_key = options->tls_key,
                                 .needs_token = options->needs_token,
                                 .secret = options->needs_token ? host->secret : NULL };

    host->mcp =
        mcp_start(cli->target.local, &(struct mcp_options){ .has_fixtures = options->mcp_fixtures,
                                                            .tools = options->mcp_tools,
                                                            .actor = options->actor });
    if (!host->mcp)
        return scope_fail(&cli->scope, PAWL_NO_MEMORY, "the MCP surface cannot start: %s",
                          strerror(errno));
    host->mounts[0] = mcp_rows(host->mcp);
    host->mounts[1] = dashboard_rows;
    if (options->log_format) {
        http.log = log_request;
        http.log_format =
            strcmp(options->log_format, "json") == 0 ? HTTP_LOG_JSON : HTTP_LOG_LOGFMT;
    }
    host->server = http_start(cli->target.local, &http, &cli->scope.error);
    if (host->server)
        return PAWL_OK;
    mcp_free(host->mcp);
    host->mcp = NULL;
    return cli->scope.error.status;
}

/* The socket that was given, or one on the address that was asked for; -1 with the error in cli. */
static int take_port(struct cli *cli, const struct host_options *options, struct host *host)
{
    char given[HTTP_ADDRESS_SIZE];
    const char *listen = options->listen, *colon;
    int listener = options->socket;
    uint16_t port = 0;

    if (!listener) {
        listener = http_bind(listen, &port, &cli->scope.error);
        cli->is_advised = listener < 0 && cli->scope.error.status == PAWL_IN_USE;
    } else if (http_adopt(listener, given, &cli->scope.error)) {
        listen = given;
        port = (uint16_t)strtoul(strrchr(given, ':') + 1, NULL, 10);
    } else {
        listener = -1;
    }
    colon = strrchr(listen, ':');
    snprintf(host->address, sizeof host->address, "http%s://%.*s:%u", options->tls_cert ? "s" : "",
             (int)(colon ? (size_t)(colon - listen) : strlen(listen)), listen, (unsigned)port);
    return listener;
}

/* One of several nodes: it serves from now on, whatever it owns. */
static pawl_status join_nodes(struct cli *cli, struct host *host,
                              const struct host_options *options)
{
    return world_join(cli->target.local, options->advertise ? options->advertise : host->address,
                      host->secret[0] ? host->secret : NULL, &cli->scope.error);
}

/* The port is taken before the store, so that the store's owner can say where it is. */
pawl_status host_open(struct cli *cli, const struct host_options *options, struct host *out)
{
    pawl_options own = { .own = true,
                         .workers = options->workers ? options->workers : HOST_WORKERS,
                         .tools = options->tools,
                         .retention = options->retention,
                         .test_clock = options->test_clock,
                         .allow_exec = options->allow_exec,
                         .max_entries = options->max_entries,
                         .max_live_steps = options->max_live_steps,
                         .shards = options->shards,
                         .log = log_line,
                         .log_context = cli };
    int listener;
    bool is_node;
    pawl_status status;

    *out = (struct host){ 0 };
    hold_signals(out, options->reloads);
    raise_files();
    if (options->needs_token && !world_secret(out->secret))
        return scope_no_memory(&cli->scope);
    own.secret = options->needs_token ? out->secret : NULL;
    listener = take_port(cli, options, out);
    if (listener < 0)
        return cli->scope.error.status;
    own.address = out->address;
    is_node = options->joins && url_is_postgres(str_of(cli->store));
    if (is_node)
        world_expect_nodes();
    status = target_open(cli, is_node ? USE_SERVE : USE_OWN, &own);
    if (status == PAWL_OK && is_node)
        status = join_nodes(cli, out, options);
    out->reloaded = cli->target.local;
    if (status == PAWL_OK && cli->target.local)
        return serve_on(cli, options, out, listener);
    close(listener);
    return status;
}

void host_close(struct cli *cli, struct host *host)
{
    if (cli->target.local && host->server)
        world_retire(cli->target.local);
    mcp_end_streams(host->mcp);
    http_stop(host->server);
    host->server = NULL;
    mcp_free(host->mcp);
    host->mcp = NULL;
    target_close(cli);
}

/* False: the terminal has gone, and this process is to go as well. */
static bool reload(const struct host *host)
{
    if (host->has_terminal && !is_terminal_there())
        return false;
    api_modules_reload(host->reloaded);
    return true;
}

bool host_wait(struct host *host, int64_t wait_ms)
{
    struct timespec most = { .tv_sec = wait_ms / 1000, .tv_nsec = wait_ms % 1000 * 1000000 };
    int number;

    do
        number = wait_ms < 0 ? sigwaitinfo(&host->stop_signals, NULL)
                             : sigtimedwait(&host->stop_signals, NULL, &most);
    while ((number < 0 && errno == EINTR) || (number == SIGHUP && reload(host)));
    if (number > 0)
        pthread_sigmask(SIG_UNBLOCK, &host->stop_signals, NULL);
    return number > 0;
}
