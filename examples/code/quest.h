/* quest.h - is reached by broadcasts of what happens in the world, as far as it has asked for it.
 *
 * The item may be found while the quest still hunts: the signal is buffered, so it is kept until it
 * is awaited. A broadcast without a filter, or a signal to this quest alone, may bring any item:
 * the code compares what it got, and waits on until it is the right one. */
#include <pawl_code.h>

#define QUEST(has)                                                                                 \
    has(input, text, enemy, 32, "wolf")                                                            \
    has(input, uint64_t, item)                                                                     \
    has(input, uint32_t, kills, 2)                                                                 \
    has(var, uint32_t, killed)                                                                     \
    has(var, bool, collected)             /* for those who look: pawl show, the view pawl_code */  \
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
    while (!self->collected) {
        PAWL_SIGNAL(gathering, ItemCollected); /* it may have been found long ago */
        self->collected = got->ItemCollected == self->item;
    }
    result->completed = true; /* set after the last await: a result is not kept over one */
    PAWL_END;
}
