/* pq.c - libpq, looked up by name. A host that forks or unloads us keeps it: it is never closed. */
#include "pq.h"
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>

static struct pq_api api;
static bool is_loaded;
static char missing[200];
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void load(void)
{
    void *library = dlopen("libpq.so.5", RTLD_NOW | RTLD_LOCAL), *found;

    if (!library) {
        snprintf(missing, sizeof missing, "%s", dlerror());
        return;
    }
    /* POSIX lets a pointer to a function stand in a void *; C wants it copied. */
#define X(type, name, parameters)                                                                  \
    found = dlsym(library, "PQ" #name);                                                            \
    if (!found) {                                                                                  \
        snprintf(missing, sizeof missing, "it has no PQ" #name);                                   \
        return;                                                                                    \
    }                                                                                              \
    memcpy(&api.name, &found, sizeof found);
    PQ_FUNCTIONS(X)
#undef X
    is_loaded = true;
}

const struct pq_api *pq_get(struct scope *scope)
{
    (void)pthread_once(&once, load);
    if (is_loaded)
        return &api;
    scope_fail(scope, PAWL_STORAGE_FAILURE,
               "expected PostgreSQL's client library, libpq 14 or newer, found none (%s):"
               " install "
               "the package libpq5",
               missing);
    return NULL;
}
