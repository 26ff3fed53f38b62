/* ticker.h - code that takes a turn a second, as often as its input says. */
#include <pawl_code.h>

#define TICKER(has)                                                                                \
    has(input, uint32_t, most)                                                                     \
    has(var, uint32_t, n)                                                                          \
    has(timer, Tick)                                                                               \
    has(await, ticking)

PAWL_CODE(ticker, TICKER)
{
    PAWL_BEGIN(TICKER);
    for (self->n = 0; self->n < self->most; self->n++)
        PAWL_TIMER(ticking, Tick, PAWL_SECS(1));
    PAWL_END;
}
