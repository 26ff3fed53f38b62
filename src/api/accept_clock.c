/* accept_clock.c - an operator sets the clock of a store that is ahead. */
#include "api/api.h"
#include "api/shards.h"
#include "api/world.h"
#include "base/limits.h"
#include "engine/engine.h"
#include <stdlib.h>

pawl_status clock_accept(const char *url, int64_t *ahead_ms, pawl_error *error)
{
    struct scope scope;
    pawl *p = NULL;
    pawl_status status = PAWL_OK;

    TRY(pawl_open(&p, url, &(pawl_options){ .own = true }, error));
    scope_init(&scope, &heap_libc, LIMIT_SCOPE);
    *ahead_ms = 0;
    for (uint32_t i = 0; i < shards_count(p) && status == PAWL_OK; i++) {
        int64_t one_ms = 0;

        status = engine_accept_clock(shard_at(p, i)->engine, &scope, &one_ms);
        if (llabs(one_ms) > llabs(*ahead_ms))
            *ahead_ms = one_ms;
    }
    if (status != PAWL_OK)
        *error = scope.error;
    scope_fini(&scope);
    pawl_close(p);
    return status;
}
