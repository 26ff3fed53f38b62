/* server_config.c - pawl.yaml, for `serve` and for `check`. */
#include "api/config.h"
#include "surface/cli/cli.h"
#include <stdio.h>
#include <unistd.h>

#define USUAL "pawl.yaml"

static pawl_status read_file(struct cli *cli, const char *path, struct config *out)
{
    char words[sizeof cli->scope.error.message];
    str text;
    pawl_status status;

    TRY(file_read(&cli->scope, path, &text));
    status = config_read(&cli->scope, text, out);
    if (status != PAWL_OK && status != PAWL_NO_MEMORY) {
        snprintf(words, sizeof words, "%s", cli->scope.error.message);
        return scope_fail(&cli->scope, status, "%s: %s", path, words);
    }
    return status;
}

pawl_status config_load(struct cli *cli, struct config *out)
{
    const char *path = args_option(cli, "config");

    *out = (struct config){ 0 };
    if (!path && access(USUAL, F_OK) != 0)
        return PAWL_OK;
    return read_file(cli, path ? path : USUAL, out);
}

bool config_is_named(const char *path)
{
    const char *slash = strrchr(path, '/');

    return strcmp(slash ? slash + 1 : path, USUAL) == 0;
}

pawl_status config_check(struct cli *cli, const char *path)
{
    struct config config;

    TRY(read_file(cli, path, &config));
    fprintf(cli->term.out, "%s: valid\n", path);
    return PAWL_OK;
}
