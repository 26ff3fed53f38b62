/* known_workers.c - which workers have asked for steps since this engine was opened, for which
 * tools, and when each was seen last. For people who ask why a step waits.
 *
 * Kept in memory, a bounded number: where there are more, the one that was seen the longest ago
 * is forgotten, and what is said of workers holds since then. */
#include "engine/parts.h"

#define WORKERS_MAX 256u
#define TOOLS_MAX   64u /* of a worker; as many as a claim names */

/* ---- Texts of its own ---- */

static str text_copy(struct engine *engine, str text)
{
    char *copy = heap_new(engine->heap, text.size + 1);

    if (!copy)
        return STR_NONE;
    memcpy(copy, text.data, text.size);
    return (str){ copy, text.size };
}

static void text_free(struct engine *engine, str text)
{
    if (text.data)
        heap_free(engine->heap, (char *)(uintptr_t)text.data, text.size + 1);
}

static void worker_free(struct engine *engine, struct known_worker *worker)
{
    for (uint32_t i = 0; i < worker->tool_count; i++)
        text_free(engine, worker->tools[i].name);
    heap_free(engine->heap, worker->tools, worker->tool_capacity * sizeof *worker->tools);
    text_free(engine, worker->name);
}

void workers_init(struct engine *engine)
{
    engine->work.workers.since_ms = engine_wall_ms(engine);
}

void workers_fini(struct engine *engine)
{
    struct known_workers *workers = &engine->work.workers;

    for (uint32_t i = 0; i < workers->count; i++)
        worker_free(engine, &workers->items[i]);
    heap_free(engine->heap, workers->items, workers->capacity * sizeof *workers->items);
}

/* ---- Noting ---- */

/* By its name, or by as much of it as a lease has. */
static struct known_worker *find_worker(struct engine *engine, str name)
{
    struct known_workers *workers = &engine->work.workers;

    ASSERT_LOCKED(engine);
    for (uint32_t i = 0; i < workers->count; i++)
        if (str_eq(words_shown(workers->items[i].name), words_shown(name)))
            return &workers->items[i];
    return NULL;
}

static uint32_t held_by(const struct engine *engine, str name)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < engine->work.lease_count; i++) {
        const struct lease *lease = &engine->work.leases[i];

        count += lease->hash[0] && str_eq(str_of(lease->worker), words_shown(name));
    }
    return count;
}

static bool is_busy(const struct engine *engine, const struct known_worker *worker)
{
    return waiting_has(engine, worker->name) || held_by(engine, worker->name) > 0;
}

/* One that waits or holds steps stays, as long as there is another. */
static void forget_oldest(struct engine *engine)
{
    struct known_workers *workers = &engine->work.workers;
    uint32_t oldest = 0;
    bool oldest_is_busy = is_busy(engine, &workers->items[0]);

    for (uint32_t i = 1; i < workers->count; i++) {
        bool busy = is_busy(engine, &workers->items[i]);

        if (busy != oldest_is_busy ? oldest_is_busy
                                   : workers->items[i].seen_ms < workers->items[oldest].seen_ms) {
            oldest = i;
            oldest_is_busy = busy;
        }
    }
    if (workers->since_ms < workers->items[oldest].seen_ms)
        workers->since_ms = workers->items[oldest].seen_ms;
    worker_free(engine, &workers->items[oldest]);
    workers->items[oldest] = workers->items[--workers->count];
}

static struct known_worker *get_worker(struct engine *engine, str name, int64_t now_ms)
{
    struct known_workers *workers = &engine->work.workers;
    struct known_worker *worker = find_worker(engine, name);
    str copy;

    if (worker)
        return worker;
    if (workers->count == WORKERS_MAX)
        forget_oldest(engine);
    if (!HEAP_GROW(engine->heap, workers->items, workers->capacity, workers->count + 1))
        return NULL;
    copy = text_copy(engine, name);
    if (!copy.data)
        return NULL;
    worker = &workers->items[workers->count++];
    *worker = (struct known_worker){ .name = copy, .first_ms = now_ms };
    return worker;
}

/* Its place; of too many the one that was asked for the longest ago makes room. NULL: no memory. */
static struct known_tool *get_tool(struct engine *engine, struct known_worker *worker, str name)
{
    struct known_tool *oldest = worker->tools;
    str copy;

    for (uint32_t i = 0; i < worker->tool_count; i++) {
        if (str_eq(worker->tools[i].name, name))
            return &worker->tools[i];
        if (worker->tools[i].asked_ms < oldest->asked_ms)
            oldest = &worker->tools[i];
    }
    if (worker->tool_count < TOOLS_MAX &&
        !HEAP_GROW(engine->heap, worker->tools, worker->tool_capacity, worker->tool_count + 1))
        return NULL;
    copy = text_copy(engine, name);
    if (!copy.data)
        return NULL;
    if (worker->tool_count < TOOLS_MAX)
        oldest = &worker->tools[worker->tool_count++];
    else
        text_free(engine, oldest->name);
    *oldest = (struct known_tool){ .name = copy };
    return oldest;
}

/* Without memory it is not noted. */
void workers_ask(struct engine *engine, const struct claim_args *args)
{
    struct known_worker *worker;
    int64_t now_ms;

    guard_lock(&engine->lock);
    now_ms = clock_read(engine).wall_ms;
    worker = get_worker(engine, args->worker, now_ms);
    if (worker)
        worker->seen_ms = now_ms;
    for (uint32_t i = 0; worker && i < args->tool_count; i++) {
        struct known_tool *tool = get_tool(engine, worker, args->tools[i]);

        if (tool)
            tool->asked_ms = now_ms;
    }
    guard_unlock(&engine->lock);
}

void workers_see(struct engine *engine, const struct lease *lease)
{
    struct known_worker *worker =
        lease->worker[0] ? find_worker(engine, str_of(lease->worker)) : NULL;

    if (worker)
        worker->seen_ms = clock_read(engine).wall_ms;
}

/* ---- Asking ---- */

static bool copy_worker(const struct engine *engine, struct arena *arena,
                        const struct known_worker *worker, struct worker_view *out)
{
    struct known_tool *tools = ARENA_ARRAY(arena, struct known_tool, worker->tool_count + 1);

    *out = (struct worker_view){ .name = arena_str(arena, worker->name),
                                 .tools = tools,
                                 .tool_count = worker->tool_count,
                                 .first_ms = worker->first_ms,
                                 .seen_ms = worker->seen_ms,
                                 .held = held_by(engine, worker->name),
                                 .is_waiting = waiting_has(engine, worker->name) };
    for (uint32_t i = 0; tools && i < worker->tool_count; i++)
        tools[i] = (struct known_tool){ arena_str(arena, worker->tools[i].name),
                                        worker->tools[i].asked_ms };
    return !arena->failed;
}

pawl_status engine_workers(struct engine *engine, struct scope *scope, struct workers_view *out)
{
    const struct known_workers *workers = &engine->work.workers;
    bool has_room = true;

    guard_lock(&engine->lock);
    *out = (struct workers_view){ .since_ms = workers->since_ms,
                                  .is_owner = engine->options.own,
                                  .items = ARENA_ARRAY(&scope->arena, struct worker_view,
                                                       workers->count + 1) };
    for (uint32_t i = 0; out->items && has_room && i < workers->count; i++)
        has_room =
            copy_worker(engine, &scope->arena, &workers->items[i], &out->items[out->count++]);
    for (uint32_t i = 0; i < engine->work.lease_count; i++)
        out->held_unknown += engine->work.leases[i].hash[0] && !engine->work.leases[i].worker[0];
    guard_unlock(&engine->lock);
    return out->items && has_room ? PAWL_OK : scope_no_memory(scope);
}
