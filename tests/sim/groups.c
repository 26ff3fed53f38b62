/* groups.c - what histories of trees must keep to: a map, a group with a timeout, and a `finally`. */
#include "sim/reading.h"
#include <stdlib.h>

#define ITEM  "rows.map.0"
#define GROUP "do.1.try.0.do"

uint32_t item_count(const struct subject *subject)
{
    return subject->rounds + 2;
}

/* ---- A map ---- */

bool groups_is_item(const struct reading *r)
{
    return r->subject->process == PROCESS_LOAD && reading_is_of(r, ITEM);
}

static void end_item(struct reading *r)
{
    const struct claim *claim = reading_nonce(r);
    uint32_t *item;

    if (!claim)
        return; /* it was erased */
    if (claim->item >= item_count(r->subject))
        FAIL(r, "C8 effects", "a worker did item %u of %u", claim->item, item_count(r->subject));
    item = &r->fold->items[claim->item];
    if (*item)
        FAIL(r, "X1 one result", "item %u has two results", claim->item);
    *item = (uint32_t)(claim - r->sim->claims) + 1;
}

/* An item begins, ends, fails, or is given back. A retry by the clock comes after a failure. */
void groups_item(struct reading *r)
{
    struct fold *fold = r->fold;
    const char *actor = r->entry->actor_ref ? r->entry->actor_ref : "";

    if (reading_is(r, "step.start")) {
        if (fold->is_cleaning)
            FAIL(r, "cancel", "an item begins after the cancel");
        if (r->entry->attempt > ATTEMPTS_MAX)
            FAIL(r, "X4 attempts", "attempt %u of an item", r->entry->attempt);
        if (++fold->items_running > ITEMS_AT_ONCE)
            FAIL(r, "C11 joins", "%u items are under way at once", fold->items_running);
        return;
    }
    if (reading_is(r, "step.complete"))
        end_item(r);
    if (!reading_is(r, "step.retry") || strcmp(actor, "pawl/timer") != 0)
        fold->items_running--;
}

static uint32_t check_item(struct reading *r, const struct node *result, uint32_t index)
{
    int64_t nonce = sim_number(result, "nonce");
    uint32_t known = r->fold->items[index];

    if (nonce < 0 && (known || sim_number(result, "index") != (int64_t)index))
        FAIL(r, "C11 joins", "the result of item %u is another one's", index);
    if (nonce >= 0 && nonce + 1 != (int64_t)known && r->subject->of == SUBJECTS_MAX)
        FAIL(r, "C11 joins", "item %u has the result %" PRId64 ", and a worker sent %d", index,
             nonce, (int)known - 1);
    return nonce < 0;
}

/* The results are in the order of the list, and no more have failed than are tolerated. */
static void check_map(struct reading *r)
{
    struct scope *scope = &r->sim->scope;
    struct node *list;
    uint32_t count = 0, failed = 0;

    if (!r->entry->payload)
        return;
    EXPECT_OK(node_read_json(scope, arena_str(&scope->arena, str_of(r->entry->payload)), &list));
    for (const struct node *result = list->first; result; result = result->next, count++)
        if (count < item_count(r->subject))
            failed += check_item(r, result, count);
    if (count != item_count(r->subject) || failed > ITEMS_TOLERATED)
        FAIL(r, "C11 joins", "a map of %u has %u results, and %u failed", item_count(r->subject),
             count, failed);
}

/* ---- A group with a timeout, a rescue and a finally ---- */

static void check_group(struct reading *r)
{
    struct fold *fold = r->fold;

    if (reading_is(r, "step.timeout") && reading_is_of(r, GROUP)) {
        reading_early(r, fold->group_ms, GROUP_MS);
        fold->is_timed_out = true;
    }
    if (fold->is_timed_out && (reading_is(r, "step.start") || reading_is(r, "signal")) &&
        (reading_is_of(r, "knock") || reading_is_of(r, "open")))
        FAIL(r, "C10 timers", "%s goes on after the time of its group", r->entry->step);
    if (reading_is(r, "step.start") && reading_is_of(r, "leave") &&
        fold_is_completed(fold, "open") && !fold->is_timed_out)
        FAIL(r, "C15 rescue", "nothing failed, and there is a rescue");
}

/* What was tried is tidied up, however it ends. */
static void check_finally(struct reading *r, const char *tried, const char *last)
{
    const struct fold *fold = r->fold;
    bool has_begun = r->fold->steps[reading_step(r, tried)].started > 0;

    if (strcmp(r->entry->to_state, "running") == 0 || !has_begun || fold_is_completed(fold, last) ||
        fold->steps[reading_step(r, last)].started >= ATTEMPTS_MAX)
        return;
    FAIL(r, "C11 joins", "it is %s, and %s has not run", r->entry->to_state, last);
}

void groups_load(struct reading *r)
{
    struct fold *fold = r->fold;

    if (reading_is(r, "step.complete") && reading_is_of(r, "rows")) {
        fold->group_ms = r->entry->recorded_at_ms;
        check_map(r);
    }
    if (fold->is_cleaning && reading_is(r, "step.start") && !reading_is_of(r, "shut"))
        FAIL(r, "cancel", "%s begins after the cancel", r->entry->step);
    check_group(r);
    check_finally(r, "knock", "shut");
    if (strcmp(r->entry->to_state, "completed") == 0 && fold->is_timed_out &&
        !fold_is_completed(fold, "leave"))
        FAIL(r, "C15 rescue", "its time was over, and it was not rescued");
}

void groups_tree(struct reading *r)
{
    check_finally(r, "risky", "tidy");
}
