/* production.h - a line that makes things one after another and can be held: a select in an arm of
 * a select. What was left of a piece's time when it was held is not lost. */
#include <pawl_code.h>

#define PRODUCTION(has)                                                                            \
    has(input, uint32_t, pieces, 3)                                                                \
    has(input, uint32_t, secs_each, 10)                                                            \
    has(var, uint32_t, made)                                                                       \
    has(var, uint32_t, secs_done)                                                                  \
    has(timer, Second)                                                                             \
    has(signal, Hold)                                                                              \
    has(signal, Continue)                                                                          \
    has(signal, Abort)                                                                             \
    has(result, uint32_t, made)                                                                    \
    has(await, working)                                                                            \
    has(await, held)

PAWL_CODE(production, PRODUCTION)
{
    PAWL_BEGIN(PRODUCTION);
    while (self->made < self->pieces) {
        PAWL_SELECT(working) {
            PAWL_ON_TIMER(Second, PAWL_SECS(1)) {
                if (++self->secs_done == self->secs_each) {
                    self->secs_done = 0;
                    self->made++;
                }
            }
            PAWL_ON_SIGNAL(Hold) {
                PAWL_SELECT(held) {
                    PAWL_ON_SIGNAL(Continue) continue;
                    PAWL_ON_SIGNAL(Abort) break;
                } PAWL_AWAIT;
            }
            PAWL_ON_SIGNAL(Abort) break;
        } PAWL_AWAIT;
    }
    result->made = self->made;
    PAWL_END;
}
