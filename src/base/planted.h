/* planted.h - deliberate defects, to prove that the checks have teeth. In an ordinary build
 * PLANTED() is the constant false; with -Dplanted_bugs=true the environment variable PAWL_BUG
 * names the one that is on. */
#ifndef PAWL_BASE_PLANTED_H
#define PAWL_BASE_PLANTED_H

#include <stdbool.h>

#define PLANTED_MAP(X)                                                                    \
    X(ACK_BEFORE_COMMIT, "a call is answered before its commit is asked for")             \
    X(SEQUENCE_RESET, "an instance read from the store begins again at entry 1")          \
    X(STALE_DECISION, "a decision is committed though its instance has moved on")         \
    X(KEY_IGNORED, "an idempotency key is recorded, but not looked for")                  \
    X(TIMER_TWICE, "a due timer is delivered twice, and nobody looks whether it is due")

enum planted {
#define X(name, text) PLANTED_##name,
    PLANTED_MAP(X)
#undef X
    PLANTED_COUNT
};

#ifdef PAWL_PLANTED_BUGS
#define PLANTED(name) planted_is_on(PLANTED_##name)
#else
#define PLANTED(name) false
#endif

bool planted_is_on(enum planted bug);
bool planted_is_built(void);

#endif
