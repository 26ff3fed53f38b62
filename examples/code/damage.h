/* damage.h - asks a tool, and lives with its refusal. */
#include <pawl_code.h>

#define DAMAGE(has)                                                                                \
    has(input, int32_t, health, 100)                                                               \
    has(input, uint64_t, target)                                                                   \
    has(var, uint32_t, hits)                                                                       \
    has(timer, Delay)                                                                              \
    has(call, compute_damage, int32_t)                                                             \
    has(call, log_death)                                                                           \
    has(result, uint32_t, hits)                                                                    \
    has(await, hitting)                                                                            \
    has(await, resting)                                                                            \
    has(await, burying)

PAWL_CODE(damage, DAMAGE)
{
    PAWL_BEGIN(DAMAGE);
    while (self->health > 0) {
        PAWL_CALL(hitting, compute_damage,
                  pawl_turn_text(turn, "{\"target\":%llu}", (unsigned long long)self->target));
        self->health -= got->compute_damage;
        self->hits++;
        PAWL_TIMER(resting, Delay, PAWL_SECS(1));
    }
    PAWL_TRY_CALL(burying, log_death, "{}");
    if (PAWL_ERROR)
        self->hits += 1000; /* it goes on all the same */
    result->hits = self->hits;
    PAWL_END;
}
