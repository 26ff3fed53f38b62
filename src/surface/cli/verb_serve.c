/* verb_serve.c - serve: own a store, answer over HTTP until a signal stops it. */
#include "api/config.h"
#include "api/world.h"
#include "surface/cli/host.h"
#include "surface/cli/service.h"
#include "surface/http/http.h"

static int serve(struct cli *cli, struct host *host)
{
    if (!host->server) {
        scope_fail(&cli->scope, PAWL_IN_USE, "%s is already served at %s", store_shown(cli),
                   cli->target.address);
        return report(cli);
    }
    if ((args_flag(cli, "examples") && examples_put(cli) != PAWL_OK) ||
        (args_flag(cli, "mcp-fixtures") && mcp_fixtures_put(cli) != PAWL_OK))
        return report(cli);
    fprintf(cli->term.out, "pawl is ready on %s (store %s)\n", host->address, store_shown(cli));
    if (args_flag(cli, "examples"))
        fprintf(cli->term.out, "open %s/ in a browser\n", host->address);
    fflush(cli->term.out);
    service_tell("READY=1");
    host_wait(host, -1);
    service_tell("STOPPING=1");
    return host_lost_store() ? EXIT_STORE : EXIT_DONE;
}

/* An option of the command line wins over the file. */
static const char *choose(struct cli *cli, const char *option, const char *configured)
{
    const char *given = args_option(cli, option);

    return given ? given : configured;
}

static bool read_tls(struct cli *cli, const struct config *config, struct host_options *options)
{
    const char *cert = choose(cli, "tls-cert", config->tls_cert);
    const char *key = choose(cli, "tls-key", config->tls_key);
    str cert_text, key_text;

    if (!cert != !key) {
        usage_fail(cli, "--tls-cert and --tls-key go together");
        return false;
    }
    if (!cert)
        return true;
    if (file_read(&cli->scope, cert, &cert_text) != PAWL_OK ||
        file_read(&cli->scope, key, &key_text) != PAWL_OK) {
        report(cli);
        return false;
    }
    options->tls_cert = cert_text.data;
    options->tls_key = key_text.data;
    return true;
}

static bool read_bound(struct cli *cli, const char *option, uint32_t configured, uint32_t *out)
{
    const char *given = args_option(cli, option);
    uint64_t most = configured;

    if (given && (!str_to_u64(str_of(given), &most) || most > UINT32_MAX)) {
        usage_fail(cli, "--%s: expected a number, 1 to 4294967295, found '%s'", option, given);
        return false;
    }
    *out = (uint32_t)most;
    return true;
}

static bool read_shards(struct cli *cli, const struct config *config, struct host_options *options)
{
    const char *given = choose(cli, "shards", NULL);
    uint64_t count = config->shards;

    if (given && (!str_to_u64(str_of(given), &count) || !config_allows_shards(count))) {
        usage_fail(cli, "--shards: expected a power of two, 1 to 1024, found '%s'", given);
        return false;
    }
    options->shards = (uint32_t)count;
    return true;
}

/* What the command line says and else the file. */
static int read_options(struct cli *cli, const struct config *config, struct host_options *options)
{
    options->listen = choose(cli, "listen", config->listen ? config->listen : HTTP_LISTEN);
    options->hosts = choose(cli, "host", config->hosts);
    options->log_format = choose(cli, "log-format", config->log);
    options->tools = config->tools;
    options->retention = config->retention;
    options->workers = config->workers;
    options->body_memory = config->body_memory;
    options->needs_token = config->needs_token || args_flag(cli, "require-token");
    if (!read_shards(cli, config, options) || !read_tls(cli, config, options) ||
        !read_bound(cli, "max-entries", config->max_entries, &options->max_entries) ||
        !read_bound(cli, "max-live-steps", config->max_live_steps, &options->max_live_steps))
        return EXIT_USAGE;
    if (str_starts(str_of(cli->store), STR("http:")))
        return usage_fail(cli,
                          "a server has its store here: sqlite:FILE, postgres://HOST/DATABASE or "
                          "memory:");
    if (options->log_format && strcmp(options->log_format, "logfmt") != 0 &&
        strcmp(options->log_format, "json") != 0)
        return usage_fail(cli, "--log-format: expected logfmt or json");
    return EXIT_DONE;
}

int verb_serve(struct cli *cli)
{
    struct host_options options = { .reloads = true,
                                    .joins = true,
                                    .advertise = args_option(cli, "advertise"),
                                    .test_clock = args_flag(cli, "test"),
                                    .allow_exec = args_flag(cli, "allow-exec"),
                                    .mcp_fixtures = args_flag(cli, "mcp-fixtures"),
                                    .mcp_tools = args_option(cli, "mcp-tools") };
    struct config config;
    struct host host;
    int code;

    world_share_memory();
    if (config_load(cli, &config) != PAWL_OK)
        return report(cli);
    if (config.store && !cli->store_given)
        cli->store = config.store;
    code = read_options(cli, &config, &options);
    if (code != EXIT_DONE)
        return code;
    if (service_socket(&cli->scope, &options.socket) != PAWL_OK ||
        host_open(cli, &options, &host) != PAWL_OK)
        return report(cli);
    code = serve(cli, &host);
    host_close(cli, &host);
    return code;
}
