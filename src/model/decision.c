/* decision.c - what happens next, as drafts of entries. */
#include "model/decision.h"

#define CAPACITY_MIN 8u

/* Full at 8, 16, 32, ...: the count alone tells the capacity. */
static bool is_full(uint32_t count)
{
    return count == 0 || (count >= CAPACITY_MIN && (count & (count - 1)) == 0);
}

struct draft *decision_add(struct scope *scope, struct decision *decision, uint32_t transition)
{
    uint32_t count = decision->count;

    if (is_full(count)) {
        uint32_t capacity = count > 0 ? count * 2 : CAPACITY_MIN;
        struct draft *bigger = ARENA_ARRAY(&scope->arena, struct draft, capacity);

        if (!bigger)
            return NULL;
        if (count > 0)
            memcpy(bigger, decision->drafts, count * sizeof *bigger);
        decision->drafts = bigger;
    }
    decision->drafts[count] = (struct draft){ .transition = transition };
    decision->count = count + 1;
    return &decision->drafts[count];
}
