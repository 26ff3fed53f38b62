/* patrol.h - walks waypoints until it sees a threat, fights (a child), walks on. Uses combat.h. */
#include <pawl_code.h>

#define OUTCOME(has) has(bool, victory) has(uint32_t, rounds)
PAWL_STRUCT(outcome, OUTCOME);

#define PATROL(has)                                                                                \
    has(input, uint32_t, waypoints, 3)                                                             \
    has(var, uint32_t, waypoint)                                                                   \
    has(var, uint64_t, enemy)                                                                      \
    has(var, uint32_t, fights)                                                                     \
    has(timer, StartPatrol)                                                                        \
    has(timer, Arrival)                                                                            \
    has(signal, ThreatDetected, uint64_t)                                                          \
    has(signal, StandDown)                                                                         \
    has(child, combat, part, outcome)                                                              \
    has(result, uint32_t, waypoint)                                                                \
    has(result, uint32_t, fights)                                                                  \
    has(await, resting)                                                                            \
    has(await, walking)                                                                            \
    has(await, fighting)

PAWL_CODE(patrol, PATROL)
{
    PAWL_BEGIN(PATROL);
    PAWL_TIMER(resting, StartPatrol, PAWL_SECS(1));
    while (self->waypoint < self->waypoints) {
        PAWL_SELECT(walking) {
            PAWL_ON_TIMER(Arrival, PAWL_SECS(10)) self->waypoint++;
            PAWL_ON_SIGNAL(StandDown) break;
            PAWL_ON_SIGNAL(ThreatDetected) {
                self->enemy = got->ThreatDetected;
                PAWL_SPAWN(fighting, combat,
                           pawl_turn_text(turn, "{\"target_id\":%llu}", (unsigned long long)self->enemy));
                self->fights++;
                if (!got->combat.victory)
                    PAWL_FAIL("lost against %llu after %u rounds", (unsigned long long)self->enemy,
                              (unsigned)got->combat.rounds);
            }
        } PAWL_AWAIT;
    }
    result->waypoint = self->waypoint;
    result->fights = self->fights;
    PAWL_END;
}
