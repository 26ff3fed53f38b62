/* planted.c - which deliberate defect is on; none in an ordinary build. */
#include "base/planted.h"
#include <stdlib.h>
#include <string.h>

bool planted_is_built(void)
{
#ifdef PAWL_PLANTED_BUGS
    return true;
#else
    return false;
#endif
}

bool planted_is_on(enum planted bug)
{
    static const char *const names[] = {
#define X(name, text) #name,
        PLANTED_MAP(X)
#undef X
    };
    const char *wanted = planted_is_built() ? getenv("PAWL_BUG") : NULL;

    return wanted && strcmp(wanted, names[bug]) == 0;
}
