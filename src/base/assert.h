/* assert.h - our own promises, checked in every build. Input is checked with a
 * status, never asserted. */
#ifndef PAWL_BASE_ASSERT_H
#define PAWL_BASE_ASSERT_H

#define ASSERT(condition) \
    ((condition) ? (void)0 : panic_at(__FILE__, __LINE__, #condition))
#define IMPLIES(a, b) (!(a) || (b))

/* Report where, to the host's hook or on stderr, and abort: our memory cannot be trusted now. */
_Noreturn void panic_at(const char *file, int line, const char *what);

/* The hook of this thread, from a host's call until its return. The code that breaks a promise does
 * not know which host it works for: the thread does. */
struct panic_hook {
    void (*tell)(void *context, const char *text); /* NULL: stderr */
    void *context;
};
/* `hook` is borrowed until the next call; NULL is stderr. Returns the previous one. */
const struct panic_hook *panic_set(const struct panic_hook *hook);

#endif
