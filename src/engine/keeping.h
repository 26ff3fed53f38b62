/* keeping.h - how long what instances hold is kept: erasing, holds, retention. */
#ifndef PAWL_ENGINE_KEEPING_H
#define PAWL_ENGINE_KEEPING_H

#include "engine/engine.h"

/* What an instance that has ended holds leaves the store, and what its children hold; or all
 * instances of a subject, and its name. Twice is once. NOT_KNOWN; CONFLICT: it has not ended, or is
 * on hold. Of a subject's instances, and of children, those are counted as left. */
struct erase_args {
    str id, subject; /* one of them, or: */
    const uint64_t *numbers;
    uint32_t count;
    str actor, reason;
    const char *late; /* as in struct event */
};
struct erased {
    uint64_t instances, values; /* that were erased now */
    uint64_t repeated;          /* instances that had been erased before */
    uint64_t left;              /* instances that have not ended or are on hold */
    bool is_name_erased;        /* of the subject */
    bool is_left_in_log;        /* a reader kept the write-ahead log: a later commit will cut it */
};
pawl_status engine_erase(struct engine *engine, struct scope *scope, const struct erase_args *args,
                         struct erased *out);

/* An instance on hold is not erased. Twice is once. NOT_KNOWN. */
struct hold_args {
    str id, actor, reason;
    bool is_lift;
    const char *late;
};
pawl_status engine_hold(struct engine *engine, struct scope *scope, const struct hold_args *args,
                        bool *has_changed);
struct standing_hold {
    str id, actor, reason; /* data NULL: not given, or erased */
    int64_t at_ms;
};
pawl_status engine_holds(struct engine *engine, struct scope *scope, uint32_t limit,
                         struct standing_hold **out, uint32_t *count);

/* What definitions say of instances that have ended, and what is due by it: of at most `max`
 * instances of each. */
struct retained {
    str definition;
    int64_t after_ms;
    uint64_t due, held, erased; /* of those whose time is over */
    int64_t oldest_due_ms;      /* of those that are due; 0: none is */
    bool has_more;
};
pawl_status engine_retained(struct engine *engine, struct scope *scope, uint32_t max,
                            struct retained **out, uint32_t *count);

#endif
