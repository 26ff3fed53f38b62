/* quest.h - hears of what happens in the world, but only of what it asked for. */
#include <pawl_code.h>

#define QUEST(has)                                                                                 \
    has(input, text, enemy, 32, "wolf")                                                            \
    has(input, uint64_t, item)                                                                     \
    has(input, uint32_t, kills, 2)                                                                 \
    has(var, uint32_t, killed)                                                                     \
    has(var, bool, collected)                                                                      \
    has(signal, EnemyKilled, text, 32)                                                             \
    has(signal, ItemCollected, uint64_t)                                                           \
    has(buffered, ItemCollected)                                                                   \
    has(result, bool, completed)                                                                   \
    has(await, hunting)                                                                            \
    has(await, gathering)

PAWL_CODE(quest, QUEST)
{
    PAWL_BEGIN(QUEST);
    PAWL_SUBSCRIBE(EnemyKilled, pawl_turn_quote(turn, self->enemy));
    PAWL_SUBSCRIBE(ItemCollected, pawl_turn_text(turn, "%llu", (unsigned long long)self->item));
    while (self->killed < self->kills) {
        PAWL_SIGNAL(hunting, EnemyKilled);
        self->killed++;
    }
    PAWL_SIGNAL(gathering, ItemCollected); /* it may have been found long ago */
    self->collected = got->ItemCollected == self->item;
    result->completed = self->collected;
    PAWL_END;
}
