/* buff.h - a buff that stacks and runs out; every stack restarts its time. */
#include <pawl_code.h>

#define BUFF(has)                                                                                  \
    has(input, uint32_t, duration_secs, 60)                                                        \
    has(var, uint32_t, stacks, 1)                                                                  \
    has(timer, Expire)                                                                             \
    has(signal, Dispel)                                                                            \
    has(signal, Stack, uint32_t)                                                                   \
    has(result, uint32_t, final_stacks)                                                            \
    has(await, buffed)

PAWL_CODE(buff, BUFF)
{
    PAWL_BEGIN(BUFF);
    for (;;) {
        PAWL_SELECT(buffed) {
            PAWL_ON_TIMER(Expire, PAWL_SECS(self->duration_secs)) break;
            PAWL_ON_SIGNAL(Dispel) break;
            PAWL_ON_SIGNAL(Stack) {
                self->stacks += got->Stack;
                continue;
            }
        } PAWL_AWAIT;
    }
    result->final_stacks = self->stacks;
    PAWL_END;
}
