/* panic.c - the end, when one of our own promises is broken. */
#include "base/assert.h"
#include <stdio.h>
#include <stdlib.h>

_Noreturn void panic_at(const char *file, int line, const char *what)
{
    fprintf(stderr, "pawl: %s:%d: broken promise: %s\n", file, line, what);
    abort();
}
