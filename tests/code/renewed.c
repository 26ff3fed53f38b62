/* renewed.c - a module in three builds: -DBUILD=1; -DBUILD=2, which has more to call; -DBUILD=3, a
 * higher version with a way out for those that wait. */
#include <pawl_code.h>
#include <pawl_main.h>

#if BUILD == 1
#define RENEWED(has)                                                                               \
    has(signal, Go)                                                                                \
    has(await, waiting)
#elif BUILD == 2
#define RENEWED(has)                                                                               \
    has(external, sign)                                                                            \
    has(signal, Go)                                                                                \
    has(await, waiting)                                                                            \
    has(await, signing)
#else
#define RENEWED(has)                                                                               \
    has(version, 2)                                                                                \
    has(external, sign)                                                                            \
    has(signal, Go)                                                                                \
    has(timer, Late)                                                                               \
    has(await, waiting)                                                                            \
    has(await, signing)
#endif

PAWL_CODE(renewed, RENEWED)
{
    PAWL_BEGIN(RENEWED);
#if BUILD == 3
    PAWL_SELECT(waiting) {
        PAWL_ON_SIGNAL(Go) {}
        PAWL_ON_TIMER(Late, PAWL_SECS(5)) PAWL_FAIL("late");
    } PAWL_AWAIT;
#else
    PAWL_SIGNAL(waiting, Go);
#endif
#if BUILD > 1
    PAWL_EXTERNAL(signing, sign, "\"here\"");
#endif
    PAWL_END;
}

PAWL_MODULE(renewed);
