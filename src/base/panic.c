/* panic.c - the end, when one of our own promises is broken. */
#include "base/assert.h"
#include <stdio.h>
#include <stdlib.h>

static _Thread_local const struct panic_hook *present;

const struct panic_hook *panic_set(const struct panic_hook *hook)
{
    const struct panic_hook *before = present;

    present = hook;
    return before;
}

/* The hook may leave for good (exit, longjmp); if it comes back there is nothing more to be done. A
 * promise that breaks inside it is for stderr. */
_Noreturn void panic_at(const char *file, int line, const char *what)
{
    const struct panic_hook *hook = panic_set(NULL);
    char text[512];

    snprintf(text, sizeof text, "pawl: %s:%d: broken promise: %s", file, line, what);
    if (hook && hook->tell)
        hook->tell(hook->context, text);
    else
        fprintf(stderr, "%s\n", text);
    abort();
}
