/* types.c - the code types of a store that this program opens: its own, those its main() brought
 * (pawl_main(), with tools and reduces beside them), and those of modules. */
#include "api/modules.h"
#include "surface/cli/cli.h"
#include <limits.h>
#include <pawl_main.h>

#define OURSELVES "/proc/self/exe" /* what hosts a module is this very program */

static pawl_status register_own(const struct cli *cli, pawl *p, pawl_error *error)
{
    TRY(countdown_register(p, error));
    for (const pawl_code_fn *type = cli->module ? cli->module->types : NULL; type && *type; type++)
        TRY(pawl_code_register(p, (*type)(), error));
    return cli->opened ? cli->opened(cli->opened_context, p, error) : PAWL_OK;
}

pawl_status types_register_beside(void *cli, pawl *p, pawl_error *error)
{
    TRY(register_own(cli, p, error));
    TRY(api_modules_share(p, error));
    api_modules_ready(p);
    return PAWL_OK;
}

/* --module-time in milliseconds, digits as they were parsed; 0: the usual. */
static int turn_ms(const struct cli *cli)
{
    uint64_t ms = 0;

    (void)str_to_u64(str_of(args_option(cli, "module-time")), &ms);
    return ms < INT_MAX ? (int)ms : INT_MAX;
}

pawl_status types_register(struct cli *cli, pawl *p, pawl_error *error)
{
    TRY(register_own(cli, p, error));
    for (const struct given *given = NULL; (given = given_next(cli, "module", given));)
        TRY(api_module_load(p, OURSELVES, given->value, turn_ms(cli), error));
    api_modules_ready(p);
    return PAWL_OK;
}
