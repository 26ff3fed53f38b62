/* fault.h - a heap that fails when it is told to, and knows what was not given back.
 *
 *   struct fault_heap fault = { 0 };
 *   FAULT_EACH(fault, FAULT_ONCE)
 *   {
 *       ... use &fault.heap; the 1st, then the 2nd, then the 3rd allocation fails,
 *       ... until a round has none that does: that one must succeed (!fault.has_failed)
 *   }
 *
 * After each round nothing may be live: that is checked. Sizes handed back are checked
 * against those that were asked for. One thread at a time. */
#ifndef PAWL_TESTS_LIB_FAULT_H
#define PAWL_TESTS_LIB_FAULT_H

#include "base/heap.h"
#include <stdbool.h>
#include <stdint.h>

enum fault_mode { FAULT_ONCE, FAULT_FOR_EVER };

struct fault_heap {
    struct heap heap; /* points at this struct: do not copy it */
    enum fault_mode mode;
    uint64_t fail_at;         /* which allocation fails, from 1; 0: none */
    uint64_t count;           /* allocations asked for, growing included */
    uint64_t live, live_size; /* blocks and bytes not given back */
    bool has_failed;
};

void fault_init(struct fault_heap *fault, uint64_t fail_at, enum fault_mode mode);

/* Begin the next round; false after one in which nothing failed. */
bool fault_next(struct fault_heap *fault, enum fault_mode mode);

#define FAULT_EACH(fault, mode) while (fault_next(&(fault), (mode)))

#endif
