/* counter.h - a for loop around a timer: its counter and bound are stored. */
#include <pawl_code.h>

#define COUNTER(has)                                                                               \
    has(input, uint32_t, iterations, 3)                                                            \
    has(var, uint32_t, count)                                                                      \
    has(var, uint32_t, i)                                                                          \
    has(timer, Tick)                                                                               \
    has(result, uint32_t, final_count)                                                             \
    has(await, ticking)

PAWL_CODE(counter, COUNTER)
{
    PAWL_BEGIN(COUNTER);
    for (self->i = 0; self->i < self->iterations; self->i++) {
        PAWL_TIMER(ticking, Tick, PAWL_SECS(1));
        self->count++;
    }
    result->final_count = self->count;
    PAWL_END;
}
