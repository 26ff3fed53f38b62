/* refused_signals.c - signals to one instance that were refused, for people who ask why it still
 * waits: one may have come too early, or does not fit.
 *
 * Kept in memory, the last ones of all instances. */
#include "engine/parts.h"
#include "model/words.h"
#include <stdio.h>

#define REFUSED_MAX 256u

void refused_signals_fini(struct engine *engine)
{
    struct refused_signals *refused = &engine->actors.refused_signals;

    heap_free(engine->heap, refused->items, REFUSED_MAX * sizeof *refused->items);
}

/* Without memory it is not noted. */
void refused_signals_note(struct engine *engine, str id, str name, const char *words)
{
    struct refused_signals *refused = &engine->actors.refused_signals;
    uint8_t random[ID_RANDOM_SIZE];
    struct refused_signal *item;
    uint64_t instance;

    if (!id_parse(id, &instance, random))
        return;
    guard_lock(&engine->lock);
    if (!refused->items)
        refused->items = heap_new(engine->heap, REFUSED_MAX * sizeof *refused->items);
    item = refused->items ? &refused->items[refused->next++ % REFUSED_MAX] : NULL;
    if (item) {
        *item =
            (struct refused_signal){ .instance = instance, .at_ms = clock_read(engine).wall_ms };
        (void)snprintf(item->name, sizeof item->name, "%.*s", STR_ARG(words_shown(name)));
        (void)snprintf(item->words, sizeof item->words, "%s", words);
    }
    guard_unlock(&engine->lock);
}

/* It was accepted now: what was refused before explains nothing any more. */
void refused_signals_drop(struct engine *engine, str id, str name)
{
    struct refused_signals *refused = &engine->actors.refused_signals;
    uint8_t random[ID_RANDOM_SIZE];
    uint64_t instance;

    if (!id_parse(id, &instance, random))
        return;
    guard_lock(&engine->lock);
    for (uint32_t i = 0; refused->items && i < REFUSED_MAX; i++)
        if (refused->items[i].instance == instance &&
            str_eq(str_of(refused->items[i].name), words_shown(name)))
            refused->items[i].instance = 0;
    guard_unlock(&engine->lock);
}

bool refused_signals_find(struct engine *engine, uint64_t instance, str name,
                          struct refused_signal *out)
{
    const struct refused_signals *refused = &engine->actors.refused_signals;
    bool is_found = false;

    guard_lock(&engine->lock);
    for (uint32_t i = 0; refused->items && i < REFUSED_MAX && !is_found; i++) {
        const struct refused_signal *item =
            &refused->items[(refused->next - 1 - i) % REFUSED_MAX]; /* the last one first */

        is_found = item->instance == instance && str_eq(str_of(item->name), words_shown(name));
        if (is_found)
            *out = *item;
    }
    guard_unlock(&engine->lock);
    return is_found;
}
