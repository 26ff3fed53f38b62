/* types.c - the code types of a store that this program opens: its own, those its main() brought
 * (pawl_main(), with tools and reduces beside them), and those of modules. */
#include "api/modules.h"
#include "surface/cli/cli.h"
#include <limits.h>
#include <pawl_main.h>

#define OURSELVES "/proc/self/exe" /* what hosts a module is this very program */

static pawl_status register_own(const struct cli *cli, pawl *p, pawl_error *error)
{
    pawl_status status = PAWL_OK;

    for (const pawl_code_fn *type = cli->module ? cli->module->types : NULL;
         type && *type && status == PAWL_OK; type++)
        status = pawl_code_register(p, (*type)(), error);
    if (status == PAWL_OK && cli->opened)
        status = cli->opened(cli->opened_context, p, error);
    return status;
}

pawl_status types_register_beside(struct cli *cli, pawl *p, pawl_error *error)
{
    TRY(countdown_register(p, error));
    TRY(register_own(cli, p, error));
    return api_modules_share(p, error);
}

/* --module-time in milliseconds, digits as they were parsed; 0: the usual. */
static int turn_ms(const struct cli *cli)
{
    const char *given = args_option(cli, "module-time");
    uint64_t ms = 0;

    if (!given || !str_to_u64(str_of(given), &ms))
        return 0;
    return ms < INT_MAX ? (int)ms : INT_MAX;
}

pawl_status types_register(struct cli *cli, pawl *p, pawl_error *error)
{
    pawl_status status = countdown_register(p, error);

    if (status == PAWL_OK)
        status = register_own(cli, p, error);
    for (uint32_t i = 0; i < cli->given_count && status == PAWL_OK; i++)
        if (strcmp(cli->given[i].option->name, "module") == 0)
            status = api_module_load(p, OURSELVES, cli->given[i].value, turn_ms(cli), error);
    return status;
}
