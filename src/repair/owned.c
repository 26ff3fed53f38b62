/* owned.c - see owned.h. */
#include "repair/owned.h"
#include "base/limits.h"
#include "env/env.h"

pawl_status owned_open(struct owned *owned, const char *url)
{
    struct env *env = env_os_new(&heap_libc);
    struct store_options options = { .own = true, .env = env, .heap = &heap_libc };

    *owned = (struct owned){ .env = env };
    scope_init(&owned->scope, &heap_libc, LIMIT_SCOPE);
    return env ? store_open(str_of(url), &options, &owned->scope, &owned->store)
               : scope_no_memory(&owned->scope);
}

pawl_status owned_close(struct owned *owned, pawl_status status, pawl_error *error)
{
    store_close(owned->store);
    if (owned->env)
        owned->env->close(owned->env);
    if (status != PAWL_OK)
        *error = owned->scope.error;
    scope_fini(&owned->scope);
    return status;
}
