/* untaken.c - why an event that comes by itself was refused: a timer that is due and stays armed,
 * the end of a child. It has no sender that could be answered, so `why` says it.
 *
 * Kept in memory, of each instance the last one: the event comes again, and so does its refusal. */
#include "engine/parts.h"
#include <stdio.h>

#define UNTAKEN_MAX 1024u /* instances; why others wait is in the log alone */

void untaken_fini(struct engine *engine)
{
    struct untaken *untaken = &engine->actors.untaken;

    heap_free(engine->heap, untaken->items, sizeof *untaken->items * untaken->capacity);
    map_fini(&untaken->map);
}

/* Not what passes (a failing store), is expected (a timer that was disarmed) or is said elsewhere
 * (a pause). */
static bool is_worth_saying(const struct mail *mail, pawl_status status)
{
    if (mail->event.kind != EVENT_TIMER && mail->event.kind != EVENT_CHILD)
        return false;
    return status == PAWL_NOT_KNOWN || status == PAWL_INVALID_REQUEST || status == PAWL_TOO_LARGE ||
           status == PAWL_OVERLOADED || status == PAWL_CONFLICT;
}

void untaken_note(struct engine *engine, const struct mail *mail, pawl_status status)
{
    struct untaken *untaken = &engine->actors.untaken;
    struct refusal *refusal;
    uint32_t at;

    ASSERT_LOCKED(engine);
    if (!is_worth_saying(mail, status))
        return;
    at = map_get(&untaken->map, mail->instance);
    if (at == MAP_NONE) {
        if (untaken->count == UNTAKEN_MAX ||
            !HEAP_GROW(engine->heap, untaken->items, untaken->capacity, untaken->count + 1) ||
            !map_put(&untaken->map, mail->instance, untaken->count))
            return;
        at = untaken->count++;
    }
    refusal = &untaken->items[at];
    refusal->instance = mail->instance;
    refusal->kind = mail->event.kind;
    (void)snprintf(refusal->words, sizeof refusal->words, "%s", mail->own.error.message);
}

void untaken_forget(struct engine *engine, uint64_t instance)
{
    struct untaken *untaken = &engine->actors.untaken;
    uint32_t found = untaken->count ? map_get(&untaken->map, instance) : MAP_NONE;

    ASSERT_LOCKED(engine);
    if (found == MAP_NONE)
        return;
    map_remove(&untaken->map, instance);
    untaken->items[found] = untaken->items[--untaken->count];
    if (found < untaken->count)
        (void)map_put(&untaken->map, untaken->items[found].instance, found); /* it has a place */
}

bool untaken_of(struct engine *engine, uint64_t instance, struct refusal *out)
{
    uint32_t found;

    guard_lock(&engine->lock);
    found = map_get(&engine->actors.untaken.map, instance);
    if (found != MAP_NONE)
        *out = engine->actors.untaken.items[found];
    guard_unlock(&engine->lock);
    return found != MAP_NONE;
}
