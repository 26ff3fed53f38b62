/* env.h - the one door to the world: time, randomness, waiting, named points.
 *
 * env_os is the real one. env_sim has a clock that stands still until it is moved, a
 * seeded generator, and a hook at every named point, where a test may end the world.
 * Nothing else in src/ reads a clock or rolls a die (tools/tidy holds that). */
#ifndef PAWL_ENV_ENV_H
#define PAWL_ENV_ENV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Where a crash is worth trying: tests kill -9 a process at each of them. */
#define ENV_POINT_MAP(X)                             \
    X(BEFORE_BEGIN, "before-begin")                  \
    X(BEFORE_COMMIT, "before-commit")                \
    X(AFTER_COMMIT, "after-commit")  /* durable, not yet acknowledged */ \
    X(AFTER_ACK, "after-ack")        /* acknowledged, effects not yet acted on */ \
    X(BEFORE_TOOL, "before-tool")                    \
    X(AFTER_TOOL, "after-tool")      /* a tool has run, its answer is not yet recorded */ \
    X(BEFORE_SWEEP, "before-sweep")

enum env_point {
#define X(name, text) POINT_##name,
    ENV_POINT_MAP(X)
#undef X
    POINT_COUNT
};

struct env {
    int64_t (*now_ms)(struct env *env);   /* wall clock; may jump either way */
    int64_t (*boot_ms)(struct env *env);  /* since start, also asleep; cannot be set */
    int64_t (*tick_ms)(struct env *env);  /* monotonic; stops while the machine sleeps */
    int64_t (*tick_us)(struct env *env);  /* the same, finer: for measuring */
    void (*random)(struct env *env, void *out, size_t size); /* thread-safe */
    void (*reached)(struct env *env, enum env_point point);
    /* Shares the world with one more user, who closes it too. NULL: no memory. */
    struct env *(*share)(struct env *env);
    void (*close)(struct env *env);
    bool is_simulated; /* time passes only by env_sim_...() */
    /* From now on now_ms() is this far ahead of what the system says. NULL: it cannot be. */
    void (*correct)(struct env *env, int64_t by_ms);
};

/* The real world. If the environment variable PAWL_CRASH_AT is "POINT:N", the process kills
 * itself with SIGKILL the N-th time that point is reached. NULL if there is no memory. */
struct heap;
struct env *env_os_new(const struct heap *heap);

/* A simulated one, starting at `now_ms`. */
struct env *env_sim_new(int64_t now_ms, uint64_t seed);
void env_sim_set_wall(struct env *env, int64_t now_ms); /* jumps the wall clock, either way */
void env_sim_advance(struct env *env, int64_t by_ms);   /* all clocks */
void env_sim_on_point(struct env *env, void (*hook)(void *context, enum env_point point), void *context);

/* A wakeup: a descriptor for a host to poll, readable from the earlier of two times on. The host
 * does not read it: it stops being readable when it is set again. */
#define WAKEUP_NOW   INT64_MIN
#define WAKEUP_NEVER INT64_MAX
struct env_wakeup {
    int fd;                /* to be polled; -1: no wakeup */
    int by_boot, by_wall;  /* the two timers behind it */
};
bool env_wakeup_new(struct env_wakeup *wakeup); /* false: the system cannot make one */
/* Readable from `boot_ms` by env's boot clock on, or from `wall_ms` by its wall clock, even if that
 * is set meanwhile. In a simulated world, where nothing happens by itself, at once or never. */
void env_wakeup_set(struct env *env, const struct env_wakeup *wakeup, int64_t boot_ms,
                    int64_t wall_ms);
void env_wakeup_free(struct env_wakeup *wakeup); /* one that was never made is allowed */

const char *env_point_name(enum env_point point);

#endif
