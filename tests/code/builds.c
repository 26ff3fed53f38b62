/* builds.c - a module in two builds, -DBUILD=1 and -DBUILD=2, whose code records which one took each
 * of its turns. A turn for `hold` waits until the test has opened its gate. */
#include <pawl_code.h>
#include <pawl_main.h>
#include <stdio.h>

static bool is_there(const char *name)
{
    FILE *file = fopen(name, "r");

    if (file)
        fclose(file);
    return file != NULL;
}

#define BUILDS(has)                                                                                \
    has(var, list, by, uint32_t, 64)                                                               \
    has(signal, Sit)                                                                               \
    has(signal, Hold)                                                                              \
    has(await, here)

PAWL_CODE(builds, BUILDS)
{
    PAWL_BEGIN(BUILDS);
    for (;;) {
        PAWL_SELECT(here) {
            PAWL_ON_SIGNAL(Sit) {}
            PAWL_ON_SIGNAL(Hold) {
                FILE *held = fopen("held", "w");

                if (held)
                    fclose(held);
                while (!is_there("gate")) {
                }
            }
        } PAWL_AWAIT;
        self->by[self->by_count++] = BUILD;
    }
    PAWL_END;
}

#if BUILD == 2
#define FRESH(has) has(signal, Go) has(await, here)

PAWL_CODE(fresh, FRESH)
{
    PAWL_BEGIN(FRESH);
    PAWL_SIGNAL(here, Go);
    PAWL_END;
}

PAWL_MODULE(builds, fresh);
#else
PAWL_MODULE(builds);
#endif
