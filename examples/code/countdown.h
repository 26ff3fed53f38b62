/* countdown.h - it can be lengthened, stopped, and ends by itself. */
#include <pawl_code.h>

#define COUNTDOWN(has)                                                                             \
    has(input, uint32_t, from, 10)                                                                 \
    has(var, uint32_t, left)                                                                       \
    has(var, bool, stopped)                                                                        \
    has(timer, Tick)                                                                               \
    has(signal, Add, uint32_t)                                                                     \
    has(signal, Cancel)                                                                            \
    has(result, uint32_t, left)                                                                    \
    has(result, bool, stopped)                                                                     \
    has(await, counting)

PAWL_CODE_AS(counting_down, "examples/countdown", COUNTDOWN)
{
    PAWL_BEGIN(COUNTDOWN);
    self->left = self->from;
    while (self->left > 0) {
        PAWL_SELECT(counting) {
            PAWL_ON_TIMER(Tick, PAWL_SECS(1)) self->left--;
            PAWL_ON_SIGNAL(Add) self->left += got->Add;
            PAWL_ON_SIGNAL(Cancel) {
                self->stopped = true;
                break;
            }
        } PAWL_AWAIT;
    }
    result->left = self->left;
    result->stopped = self->stopped;
    PAWL_END;
}
