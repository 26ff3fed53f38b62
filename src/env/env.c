/* env.c - the names of the points. */
#include "env/env.h"
#include "base/assert.h"

const char *env_point_name(enum env_point point)
{
    static const char *const names[POINT_COUNT] = {
#define X(name, text) [POINT_##name] = (text),
        ENV_POINT_MAP(X)
#undef X
    };

    ASSERT((unsigned)point < POINT_COUNT);
    return names[point];
}
