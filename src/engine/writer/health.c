/* health.c - the conditions that hold. The log gets a line when one begins and when it ends. */
#include "engine/health.h"
#include "engine/parts.h"
#include <stdarg.h>
#include <stdio.h>

struct health {
    const struct heap *heap;
    pthread_mutex_t lock;
    _Atomic uint32_t held; /* a bit for each condition */
    struct health_finding findings[HEALTH_COUNT];
};

static const struct {
    const char *name;
    enum health_level level;
} conditions[] = {
#define X(name, text, level) { text, level },
    HEALTH_CONDITIONS(X)
#undef X
};
_Static_assert(HEALTH_COUNT <= 32, "a bit for each");

struct health *health_new(const struct heap *heap)
{
    struct health *health = heap_new(heap, sizeof *health);

    if (!health)
        return NULL;
    health->heap = heap;
    pthread_mutex_init(&health->lock, NULL);
    for (uint32_t i = 0; i < HEALTH_COUNT; i++) {
        health->findings[i].name = conditions[i].name;
        health->findings[i].level = conditions[i].level;
    }
    return health;
}

void health_free(struct health *health)
{
    if (!health)
        return;
    pthread_mutex_destroy(&health->lock);
    heap_free(health->heap, health, sizeof *health);
}

bool health_has(struct engine *engine, enum health_condition condition)
{
    return atomic_load(&engine->health->held) & 1u << condition;
}

static void log_change(struct engine *engine, enum health_condition condition, bool begins,
                       const char *words)
{
    bool is_failing = conditions[condition].level == HEALTH_FAILING;
    char line[HEALTH_WORDS + 64];

    snprintf(line, sizeof line, "%s%s%s", conditions[condition].name, begins ? ": " : " is over",
             words);
    if (begins)
        engine_log(engine, is_failing ? PAWL_LOG_ERROR : PAWL_LOG_WARN,
                   is_failing ? "health.failing" : "health.degraded", line);
    else
        engine_log(engine, PAWL_LOG_INFO, "health.ok", line);
}

void health_set(struct engine *engine, enum health_condition condition, const char *format, ...)
{
    struct health *health = engine->health;
    struct health_finding *finding = &health->findings[condition];
    char words[HEALTH_WORDS];
    va_list arguments;
    bool begins;

    va_start(arguments, format);
    vsnprintf(words, sizeof words, format, arguments);
    va_end(arguments);
    pthread_mutex_lock(&health->lock);
    begins = !health_has(engine, condition);
    if (begins)
        finding->since_ms = engine->env->now_ms(engine->env);
    memcpy(finding->words, words, sizeof words);
    atomic_fetch_or(&health->held, 1u << condition);
    pthread_mutex_unlock(&health->lock);
    if (begins)
        log_change(engine, condition, true, words);
}

void health_clear(struct engine *engine, enum health_condition condition)
{
    uint32_t bit = 1u << condition;

    if (health_has(engine, condition) && (atomic_fetch_and(&engine->health->held, ~bit) & bit))
        log_change(engine, condition, false, "");
}

uint32_t engine_health(struct engine *engine, struct health_finding out[HEALTH_COUNT])
{
    struct health *health = engine->health;
    uint32_t count = 0;

    if (!atomic_load(&health->held))
        return 0;
    pthread_mutex_lock(&health->lock);
    for (uint32_t i = 0; i < HEALTH_COUNT; i++)
        if (atomic_load(&health->held) & 1u << i)
            out[count++] = health->findings[i];
    pthread_mutex_unlock(&health->lock);
    return count;
}
