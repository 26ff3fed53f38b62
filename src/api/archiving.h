/* archiving.h - instances that have ended move from a store's file into its archive file. */
#ifndef PAWL_API_ARCHIVING_H
#define PAWL_API_ARCHIVING_H

#include "engine/keeping.h"

#define ARCHIVE_SUFFIX "-archive" /* behind the name of the store's file */

struct archive_sum {
    uint64_t instances, records; /* that were moved */
    uint64_t left;               /* ids that could not be: on hold, children, not ended, ... */
};

/* Each of them, with all that it has begun, is written into the archive file, verified there, and
 * then leaves the store. With `is_strict` the first one that may not leave is an error (CONFLICT),
 * else it is counted. IN_USE: another process has the archive file open as its owner. */
pawl_status archive_move(struct engine *engine, struct scope *scope, const str *ids, uint32_t count,
                         str actor, str reason, bool is_strict, struct archive_sum *out);
/* The same of instances by number, counted; for engine_options.archive. */
pawl_status archive_numbers(void *context, struct engine *engine, struct scope *scope,
                            const uint64_t *numbers, uint32_t count, str actor, str reason,
                            uint64_t *moved);

#endif
