/* respawn.h - a player falls and returns after a while, or earlier by a signal, once per life. */
#include <pawl_code.h>

#define RESPAWN(has)                                                                               \
    has(input, uint32_t, lives, 3)                                                                 \
    has(input, uint32_t, delay_secs, 300)                                                          \
    has(var, uint32_t, fallen)                                                                     \
    has(var, uint32_t, raised)                                                                     \
    has(timer, Respawn)                                                                            \
    has(signal, Fall)                                                                              \
    has(signal, Raise)                                                                             \
    has(result, uint32_t, fallen)                                                                  \
    has(result, uint32_t, raised)                                                                  \
    has(await, alive)                                                                              \
    has(await, down)

PAWL_CODE(respawn, RESPAWN)
{
    PAWL_BEGIN(RESPAWN);
    for (;;) {
        PAWL_SIGNAL(alive, Fall);
        if (++self->fallen == self->lives)
            break;
        PAWL_SELECT(down) {
            PAWL_ON_TIMER(Respawn, PAWL_SECS(self->delay_secs)) {}
            PAWL_ON_SIGNAL(Raise) self->raised++;
        } PAWL_AWAIT;
    }
    result->fallen = self->fallen;
    result->raised = self->raised;
    PAWL_END;
}
