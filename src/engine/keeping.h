/* keeping.h - how long what instances hold is kept: erasing, holds, retention. */
#ifndef PAWL_ENGINE_KEEPING_H
#define PAWL_ENGINE_KEEPING_H

#include "engine/engine.h"
#include "store/store.h"

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

/* Between these two nothing is erased by another thread; a thread archives between them alone. */
void engine_keeping(struct engine *engine, bool is_begun);

/* What was erased or moved leaves the files now. False: a reader stands in the way. */
bool engine_scrub(struct engine *engine, struct scope *scope);

/* An instance that leaves for an archive file. */
struct leaving_member {
    struct instance_row row;
    char id[ID_SIZE + 1];
    uint64_t records;
    uint64_t erased_pos; /* of the last erase record that names it; 0: none */
    uint8_t last_hash[SHA_SIZE];
};
/* What leaves together: an instance, the first one, and all that it has begun. In a scope. */
#define ARCHIVE_RECORDS 100000u /* at most, of one family */
struct leaving {
    struct leaving_member *members;
    struct departure *departures;
    uint64_t *dropped;            /* ids of values */
    struct standing_change *gone; /* rows that go along */
    uint32_t member_count, departure_count, dropped_count, gone_count;
};
/* NOT_KNOWN; CONFLICT, with words: it may not leave. */
pawl_status engine_leaving(struct engine *engine, struct scope *scope, str id, struct leaving *out);
struct archive_args {
    uint8_t store_id[STORE_ID_SIZE]; /* of the archive, which has them */
    str actor, reason;
};
/* They leave, with one commit. CONFLICT: one was put on hold meanwhile. */
pawl_status engine_depart(struct engine *engine, struct scope *scope, const struct leaving *leaving,
                          uint32_t count, const struct archive_args *args);

/* What definitions say of instances that have ended, and what is due by it: of at most `max`
 * instances of each. */
struct retained {
    str definition;
    int64_t after_ms;
    bool is_archive; /* then it moves into the archive file; else what it holds is erased */
    uint64_t due, held, erased; /* of those whose time is over */
    int64_t oldest_due_ms;      /* of those that are due; 0: none is */
    bool has_more;
};
pawl_status engine_retained(struct engine *engine, struct scope *scope, uint32_t max,
                            struct retained **out, uint32_t *count);

#endif
