/* accept_clock.c - an operator sets the clock of a store that is ahead. */
#include "api/api.h"
#include "api/world.h"
#include "base/limits.h"
#include "engine/engine.h"

pawl_status clock_accept(const char *url, int64_t *ahead_ms, pawl_error *error)
{
    struct scope scope;
    pawl *p = NULL;
    pawl_status status;

    TRY(pawl_open(&p, url, &(pawl_options){ .own = true }, error));
    scope_init(&scope, &heap_libc, LIMIT_SCOPE);
    status = engine_accept_clock(p->engine, &scope, ahead_ms);
    if (status != PAWL_OK)
        *error = scope.error;
    scope_fini(&scope);
    pawl_close(p);
    return status;
}
