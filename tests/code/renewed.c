/* renewed.c - a module in two builds: -DBUILD=1, and -DBUILD=2, which has more to call. */
#include <pawl_code.h>
#include <pawl_main.h>

#if BUILD == 1
#define RENEWED(has)                                                                               \
    has(signal, Go)                                                                                \
    has(await, waiting)
#else
#define RENEWED(has)                                                                               \
    has(external, sign)                                                                            \
    has(signal, Go)                                                                                \
    has(await, waiting)                                                                            \
    has(await, signing)
#endif

PAWL_CODE(renewed, RENEWED)
{
    PAWL_BEGIN(RENEWED);
    PAWL_SIGNAL(waiting, Go);
#if BUILD == 2
    PAWL_EXTERNAL(signing, sign, "\"here\"");
#endif
    PAWL_END;
}

PAWL_MODULE(renewed);
