/* health.h - the one list of conditions that can be wrong with an open store.
 *
 * health.get (/healthz), `pawl doctor` and the metrics report the conditions that hold, and the log
 * has a line when one begins and when it ends. To add a condition:
 *   1. add a line to HEALTH_CONDITIONS: its name for callers, and its level;
 *   2. call health_set() where it is found, from any thread, as often as it is found (the log gets
 *      one line). The words say what was found and what to do, and name no path: /healthz needs no
 *      token;
 *   3. call health_clear() where it is known to have ended;
 *   4. add its name to the list in src/api/describe/rest.yaml (health_condition), and a line to
 *      docs/howto/metrics.md.
 * Conditions belong to an engine and end with it. One that should outlive the engine is found again
 * when the store is opened. */
#ifndef PAWL_ENGINE_HEALTH_H
#define PAWL_ENGINE_HEALTH_H

#include <stdbool.h>
#include <stdint.h>

struct engine;

enum health_level {
    HEALTH_DEGRADED, /* it works, but needs attention: 200, status degraded */
    HEALTH_FAILING,  /* nothing can be recorded: 503 storage-failure */
};

#define HEALTH_CONDITIONS(X)                                                                       \
    X(COMMIT_FAILED, "commit-failed", HEALTH_FAILING) /* until a commit succeeds */                \
    X(DISK_FULL, "disk-full", HEALTH_FAILING)         /* the same */                               \
    X(STORAGE_GONE, "storage-gone", HEALTH_FAILING)   /* until it is closed */                     \
    X(LINKED, "second-name", HEALTH_DEGRADED)         /* until the next commit finds one name */   \
    X(WENT_BACK, "went-back", HEALTH_DEGRADED)        /* until it is reopened */                   \
    X(CLOCK_JUMPED, "clock-jumped", HEALTH_DEGRADED)  /* until both clocks agree again */

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

/* All conditions that hold now, in the order of the list. Cheap if no condition holds. */
uint32_t engine_health(struct engine *engine, struct health_finding out[HEALTH_COUNT]);

/* For engine.c. */
struct health;
struct heap;
struct health *health_new(const struct heap *heap); /* NULL: no memory */
void health_free(struct health *health);            /* NULL is allowed */

#endif
