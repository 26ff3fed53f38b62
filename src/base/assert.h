/* assert.h - our own promises, checked in every build. Input is checked with a
 * status, never asserted. */
#ifndef PAWL_BASE_ASSERT_H
#define PAWL_BASE_ASSERT_H

#define ASSERT(condition) \
    ((condition) ? (void)0 : panic_at(__FILE__, __LINE__, #condition))
#define IMPLIES(a, b) (!(a) || (b))

/* Say where, on stderr, and abort: our own memory can no longer be trusted. */
_Noreturn void panic_at(const char *file, int line, const char *what);

#endif
