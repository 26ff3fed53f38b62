/* combat.h - what it does to the world (reduce) is in the same transaction as its own step on. */
#include <pawl_code.h>

#define COMBAT(has)                                                                                \
    has(input, uint64_t, target_id)                                                                \
    has(input, int32_t, damage, 50)                                                                \
    has(var, uint32_t, rounds)                                                                     \
    has(timer, Delay)                                                                              \
    has(signal, Flee)                                                                              \
    has(result, bool, victory)                                                                     \
    has(result, uint32_t, rounds)                                                                  \
    has(await, fighting)

PAWL_CODE(combat, COMBAT)
{
    PAWL_BEGIN(COMBAT);
    for (self->rounds = 1; self->rounds <= 2; self->rounds++) {
        PAWL_REDUCE(apply_damage,
                    pawl_turn_text(turn, "{\"target\":%llu,\"damage\":%d}",
                                   (unsigned long long)self->target_id, (int)self->damage));
        PAWL_SELECT(fighting) {
            PAWL_ON_TIMER(Delay, PAWL_SECS(1)) continue;
            PAWL_ON_SIGNAL(Flee) {
                result->rounds = self->rounds;
                PAWL_DONE;
            }
        } PAWL_AWAIT;
    }
    result->victory = true;
    result->rounds = self->rounds - 1;
    PAWL_END;
}
