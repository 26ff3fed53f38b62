/* health.h - what is wrong with a store that is open, until it is no longer: the one list.
 *
 * health.get (/healthz) tells it, `pawl doctor` and the metrics do too, and the log has a line when
 * a condition begins and when it ends. To add a condition:
 *   1. a line in HEALTH_CONDITIONS: its name for callers, and how bad it is;
 *   2. health_set() where it is found, by any thread, as often as it is found (the log is told
 *      once); the words say what was found and what to do, and name no path: /healthz asks for
 *      no token;
 *   3. health_clear() where it is known to be over;
 *   4. its name in the list of src/api/describe/rest.yaml (health_condition), and a line in
 *      docs/howto/metrics.md.
 * What is found is an engine's own and goes with it: what should outlive it is found anew at
 * opening. */
#ifndef PAWL_ENGINE_HEALTH_H
#define PAWL_ENGINE_HEALTH_H

#include <stdbool.h>
#include <stdint.h>

struct engine;

enum health_level {
    HEALTH_DEGRADED, /* it works, and somebody should look: 200, status degraded */
    HEALTH_FAILING,  /* nothing can be recorded: 503 storage-failure */
};

#define HEALTH_CONDITIONS(X)                                                                       \
    X(COMMIT_FAILED, "commit-failed", HEALTH_FAILING) /* until one succeeds */                     \
    X(DISK_FULL, "disk-full", HEALTH_FAILING)         /* the same */                               \
    X(STORAGE_GONE, "storage-gone", HEALTH_FAILING)   /* for ever */                               \
    X(LINKED, "second-name", HEALTH_DEGRADED)         /* until the next commit finds one name */   \
    X(WENT_BACK, "went-back", HEALTH_DEGRADED)        /* until it is opened anew */                \
    X(CLOCK_JUMPED, "clock-jumped", HEALTH_DEGRADED)  /* until the two clocks are one again */

enum health_condition {
#define X(name, text, level) HEALTH_##name,
    HEALTH_CONDITIONS(X)
#undef X
    HEALTH_COUNT
};

#define HEALTH_WORDS 400

struct health_finding {
    const char *name;
    enum health_level level;
    int64_t since_ms; /* by the wall clock */
    char words[HEALTH_WORDS];
};

void health_set(struct engine *engine, enum health_condition condition, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void health_clear(struct engine *engine, enum health_condition condition);
bool health_has(struct engine *engine, enum health_condition condition);

/* All that holds now, in the order of the list. Cheap where nothing does. */
uint32_t engine_health(struct engine *engine, struct health_finding out[HEALTH_COUNT]);

/* For engine.c. */
struct health;
struct heap;
struct health *health_new(const struct heap *heap); /* NULL: no memory */
void health_free(struct health *health);            /* NULL is allowed */

#endif
