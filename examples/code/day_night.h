/* day_night.h - day and night take turns until the world ends. There is only one instance of it
 * because it is always started with the same key: pawl start day_night --key the-world */
#include <pawl_code.h>

#define DAY_NIGHT(has)                                                                             \
    has(input, uint32_t, day_secs, 600)                                                            \
    has(input, uint32_t, night_secs, 300)                                                          \
    has(var, bool, is_night)                                                                       \
    has(var, uint32_t, days)                                                                       \
    has(timer, Turn)                                                                               \
    has(signal, End)                                                                               \
    has(result, uint32_t, days)                                                                    \
    has(await, turning)

PAWL_CODE(day_night, DAY_NIGHT)
{
    PAWL_BEGIN(DAY_NIGHT);
    for (;;) {
        PAWL_SELECT(turning) {
            PAWL_ON_TIMER(Turn, PAWL_SECS(self->is_night ? self->night_secs : self->day_secs)) {
                self->days += self->is_night;
                self->is_night = !self->is_night;
            }
            PAWL_ON_SIGNAL(End) break;
        } PAWL_AWAIT;
    }
    result->days = self->days;
    PAWL_END;
}
