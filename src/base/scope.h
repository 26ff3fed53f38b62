/* scope.h - one unit of work: its arena and its error.
 *
 * A request, a timer, a replay opens one; everything transient is allocated in it
 * and goes with it. The words for people are written once, at the place that knows
 * most; callers pass the status up unchanged. */
#ifndef PAWL_BASE_SCOPE_H
#define PAWL_BASE_SCOPE_H

#include "base/arena.h"
#include "base/assert.h"
#include <pawl.h>

struct scope {
    struct arena arena;
    pawl_error error;
    const struct panic_hook *outer; /* of a host's call: the hook that the thread had before it */
    str trace;                      /* W3C traceparent of the caller, borrowed; data NULL: none */
    str alarm; /* its one commit also ends this alarm; data NULL: none */
    bool is_alarms; /* an alarm's operation: not rejected because of the clock, or of an actor that
                       was reserved after the alarm was set */
    bool is_machines; /* the alarm is what a machine's transition starts, or its end fires */
    str on_end;       /* ... and what the end of its instance fires: of a rights record */
};

void scope_init(struct scope *scope, const struct heap *heap, size_t limit);
void scope_fini(struct scope *scope);
void scope_clear(struct scope *scope); /* for reuse: arena emptied, error forgotten */
/* Ends a scope that was opened for a part of the work of `outer`, which gets its error unless
 * `status` is PAWL_OK. Returns `status`. */
pawl_status scope_leave(struct scope *scope, struct scope *outer, pawl_status status);

/* Write the error and return its status, which is not PAWL_OK. */
pawl_status scope_fail(struct scope *scope, pawl_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* NO_MEMORY with its usual words. */
pawl_status scope_no_memory(struct scope *scope);

/* Return what the call returns, unless it is PAWL_OK. Only where nothing has to be released. */
#define TRY(call)                                                                                  \
    do {                                                                                           \
        pawl_status tried = (call);                                                                \
        if (tried != PAWL_OK)                                                                      \
            return tried;                                                                          \
    } while (0)

/* Return NO_MEMORY unless it was `allocated`. Only where nothing has to be released. */
#define TRY_MEMORY(scope, allocated)                                                               \
    do {                                                                                           \
        if (!(allocated))                                                                          \
            return scope_no_memory(scope);                                                         \
    } while (0)

#endif
