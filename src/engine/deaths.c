/* deaths.c - turns of code that runs in this very process, and what became of them.
 *
 * A module's process may die in its stead; here the host dies, and is started again, and the event comes
 * again: a timer that crashes would do so for ever. So the owner notes which turns it is taking
 * (FILE-turns). A turn that was under way when the process died has one death more; at DEATHS_MAX in a row
 * it is not taken, and its instance is paused as for any mistake of its author. */
#include "code/code.h"
#include "engine/engine_int.h"

#define DEATHS_MAX 3u /* fewer may be kills from outside that happened to hit the same turn */
#define STARTS     (UINT64_C(1) << 63) /* a start is known by its definition and input instead */

static void write_mark(struct engine *engine, uint32_t slot)
{
    store_turns_mark(engine->store, slot, &engine->deaths.marks[slot]);
}

void deaths_open(struct engine *engine)
{
    struct deaths *deaths = &engine->deaths;

    if (deaths->is_open || !engine->options.own)
        return;
    deaths->is_open = store_turns_open(engine->store, engine->tip.store_id, deaths->marks);
    for (uint32_t i = 0; deaths->is_open && i < TURN_MARKS; i++) {
        if (!deaths->marks[i].is_running)
            continue;
        deaths->marks[i].is_running = 0;
        deaths->marks[i].deaths++;
        write_mark(engine, i);
    }
}

void deaths_close(struct engine *engine)
{
    bool is_empty = true;

    for (uint32_t i = 0; i < TURN_MARKS; i++)
        is_empty = is_empty && !engine->deaths.marks[i].instance;
    if (engine->deaths.is_open)
        store_turns_close(engine->store, is_empty);
    engine->deaths.is_open = false;
}

/* The mark of this turn, else a free one, else that of a death which no turn has come to since. */
static uint32_t find_mark(const struct deaths *deaths, uint64_t instance)
{
    uint32_t best = TURN_MARKS;

    for (uint32_t i = 0; i < TURN_MARKS; i++) {
        if (deaths->marks[i].instance == instance)
            return i;
        if (!deaths->marks[i].instance)
            best = i;
    }
    for (uint32_t i = 0; best == TURN_MARKS && i < TURN_MARKS; i++)
        if (!deaths->marks[i].is_running)
            best = i;
    return best;
}

/* False: it has died too often. *slot: for deaths_end(). */
static bool begin(struct engine *engine, uint64_t instance, uint32_t *slot)
{
    struct deaths *deaths = &engine->deaths;
    struct turn_mark *mark;
    bool may = true;

    pthread_mutex_lock(&deaths->lock);
    *slot = find_mark(deaths, instance);
    mark = *slot < TURN_MARKS ? &deaths->marks[*slot] : NULL;
    if (mark && mark->instance == instance && mark->is_running) { /* another start just like it */
        *slot = TURN_MARKS;
    } else if (mark) {
        may = mark->instance != instance || mark->deaths < DEATHS_MAX;
        *mark = (struct turn_mark){ .instance = instance,
                                    .deaths = mark->instance == instance ? mark->deaths : 0,
                                    .is_running = may };
        if (!may)
            mark->deaths = DEATHS_MAX - 1; /* resume tries once more */
        write_mark(engine, *slot);
    }
    *slot = may ? *slot : TURN_MARKS;
    pthread_mutex_unlock(&deaths->lock);
    return may;
}

void deaths_end(struct engine *engine, uint32_t *slot)
{
    if (*slot >= TURN_MARKS)
        return;
    pthread_mutex_lock(&engine->deaths.lock);
    engine->deaths.marks[*slot] = (struct turn_mark){ 0 };
    write_mark(engine, *slot);
    pthread_mutex_unlock(&engine->deaths.lock);
    *slot = TURN_MARKS;
}

static bool takes_turn(const struct event *event)
{
    return event->kind == EVENT_START || event->kind == EVENT_TIMER ||
           event->kind == EVENT_SIGNAL || event->kind == EVENT_STEP_DONE ||
           event->kind == EVENT_STEP_FAILED || event->kind == EVENT_STEP_TIMEOUT ||
           event->kind == EVENT_CHILD || event->kind == EVENT_WAKE;
}

static uint64_t hash_text(uint64_t hash, str text)
{
    for (size_t i = 0; i < text.size; i++)
        hash = (hash ^ (uint8_t)text.data[i]) * UINT64_C(0x100000001b3);
    return hash;
}

static uint64_t name_of(const struct actor *actor, const struct event *event)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325);

    if (event->kind != EVENT_START)
        return actor->instance;
    hash = hash_text(hash, actor->definition->plan_text);
    return hash_text(hash, event->payload) | STARTS;
}

pawl_status deaths_begin(struct engine *engine, const struct actor *actor, struct event *event,
                         struct scope *scope, uint32_t *slot)
{
    struct buf buf;

    *slot = TURN_MARKS;
    if (!engine->deaths.is_open || actor->is_paused || actor->definition->kind != KIND_CODE ||
        !takes_turn(event) || !code_runs_here(actor->definition) ||
        begin(engine, name_of(actor, event), slot))
        return PAWL_OK;
    buf_init(&buf, engine->heap, LIMIT_TEXT);
    buf_fmt(&buf, "its turn ended the process %u times in a row", DEATHS_MAX);
    event->poison = buf_take(&buf, &scope->arena);
    return event->poison.data ? PAWL_OK : scope_no_memory(scope);
}
