/* conditional.h - awaits in both branches: the branch that was taken is the one that goes on. */
#include <pawl_code.h>

#define CONDITIONAL(has)                                                                           \
    has(input, bool, use_short_timer)                                                              \
    has(var, uint32_t, value)                                                                      \
    has(timer, Short)                                                                              \
    has(timer, Long)                                                                               \
    has(result, uint32_t, value)                                                                   \
    has(await, short_wait)                                                                         \
    has(await, long_wait)

PAWL_CODE(conditional, CONDITIONAL)
{
    PAWL_BEGIN(CONDITIONAL);
    if (self->use_short_timer) {
        PAWL_TIMER(short_wait, Short, PAWL_SECS(1));
        self->value += 10;
    } else {
        PAWL_TIMER(long_wait, Long, PAWL_SECS(5));
        self->value += 50;
    }
    result->value = self->value;
    PAWL_END;
}
