/* soak_ticker.c - code that arms a timer of one name again and again: a due timer that came twice
 * would be taken for the next one, before its time. A module of run_soak.py's server. */
#include <pawl_code.h>
#include <pawl_main.h>

#define TICKER(has)                                                                                \
    has(input, uint32_t, n) has(var, uint32_t, i) has(timer, Tick) has(result, uint32_t, ticks)    \
        has(await, ticking)

PAWL_CODE_AS(ticker, "soak-ticker", TICKER)
{
    PAWL_BEGIN(TICKER);
    for (self->i = 0; self->i < 5; self->i++)
        PAWL_TIMER(ticking, Tick, PAWL_MS(70));
    result->ticks = self->i;
    PAWL_END;
}

PAWL_MODULE(ticker);
