/* env_sim.c - a world in a box: clocks that stand still until they are moved, randomness
 * from a seed, and a hook where a test may end it all. The same seed and the same calls
 * give the same run. Never for keeping secrets: its bytes can be foretold, that is the point. */
#include "base/assert.h"
#include "base/heap.h"
#include "env/env.h"
#include <pthread.h>
#include <string.h>

struct env_sim {
    struct env env;
    pthread_mutex_t lock; /* over all that follows */
    uint32_t users;
    int64_t now_ms, tick_ms;
    uint64_t random[4]; /* the state of xoshiro256** */
    void (*hook)(void *context, enum env_point point);
    void *hook_context;
};

static struct env_sim *sim_lock(struct env *env)
{
    struct env_sim *sim = (struct env_sim *)env;

    pthread_mutex_lock(&sim->lock);
    return sim;
}

static int64_t sim_now_ms(struct env *env)
{
    struct env_sim *sim = sim_lock(env);
    int64_t now_ms = sim->now_ms;

    pthread_mutex_unlock(&sim->lock);
    return now_ms;
}

static int64_t sim_tick_ms(struct env *env)
{
    struct env_sim *sim = sim_lock(env);
    int64_t tick_ms = sim->tick_ms;

    pthread_mutex_unlock(&sim->lock);
    return tick_ms;
}

static int64_t sim_tick_us(struct env *env)
{
    return sim_tick_ms(env) * 1000;
}

static uint64_t rotate(uint64_t n, int by)
{
    return n << by | n >> (64 - by);
}

/* xoshiro256** by Blackman and Vigna, from its description. */
static uint64_t next_random(uint64_t s[4])
{
    uint64_t result = rotate(s[1] * 5, 7) * 9, shifted = s[1] << 17;

    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= shifted;
    s[3] = rotate(s[3], 45);
    return result;
}

/* splitmix64: spreads a small seed over the whole state, which must not be all zero. */
static void seed_random(uint64_t s[4], uint64_t seed)
{
    for (int i = 0; i < 4; i++) {
        uint64_t n = seed += UINT64_C(0x9E3779B97F4A7C15);

        n = (n ^ n >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
        n = (n ^ n >> 27) * UINT64_C(0x94D049BB133111EB);
        s[i] = n ^ n >> 31;
    }
}

/* Byte by byte from the low end, so that a seed means the same on every machine. */
static void sim_random(struct env *env, void *out, size_t size)
{
    struct env_sim *sim = sim_lock(env);
    unsigned char *bytes = out;
    uint64_t n = 0;

    for (size_t i = 0; i < size; i++) {
        n = i % 8 == 0 ? next_random(sim->random) : n >> 8;
        bytes[i] = (unsigned char)n;
    }
    pthread_mutex_unlock(&sim->lock);
}

/* The hook runs without the lock: it may move the clock, or never come back. */
static void sim_reached(struct env *env, enum env_point point)
{
    struct env_sim *sim = sim_lock(env);
    void (*hook)(void *context, enum env_point point) = sim->hook;
    void *context = sim->hook_context;

    pthread_mutex_unlock(&sim->lock);
    if (hook)
        hook(context, point);
}

static struct env *sim_share(struct env *env)
{
    struct env_sim *sim = sim_lock(env);

    sim->users++;
    pthread_mutex_unlock(&sim->lock);
    return env;
}

static void sim_close(struct env *env)
{
    struct env_sim *sim = sim_lock(env);
    bool is_last = --sim->users == 0;

    pthread_mutex_unlock(&sim->lock);
    if (!is_last)
        return;
    pthread_mutex_destroy(&sim->lock);
    heap_free(&heap_libc, sim, sizeof *sim);
}

struct env *env_sim_new(int64_t now_ms, uint64_t seed)
{
    struct env_sim *sim = heap_new(&heap_libc, sizeof *sim);

    if (!sim)
        return NULL;
    if (pthread_mutex_init(&sim->lock, NULL)) {
        heap_free(&heap_libc, sim, sizeof *sim);
        return NULL;
    }
    sim->env = (struct env){ sim_now_ms,  sim_tick_ms, sim_tick_ms, sim_tick_us, sim_random,
                             sim_reached, sim_share,   sim_close,   true };
    sim->users = 1;
    sim->now_ms = now_ms;
    seed_random(sim->random, seed);
    return &sim->env;
}

void env_sim_set_wall(struct env *env, int64_t now_ms)
{
    struct env_sim *sim = sim_lock(env);

    sim->now_ms = now_ms;
    pthread_mutex_unlock(&sim->lock);
}

void env_sim_advance(struct env *env, int64_t by_ms)
{
    struct env_sim *sim = sim_lock(env);

    ASSERT(by_ms >= 0); /* the monotonic clock is one; env_sim_set_wall() goes back */
    sim->now_ms += by_ms;
    sim->tick_ms += by_ms;
    pthread_mutex_unlock(&sim->lock);
}

void env_sim_on_point(struct env *env, void (*hook)(void *context, enum env_point point),
                      void *context)
{
    struct env_sim *sim = sim_lock(env);

    sim->hook = hook;
    sim->hook_context = context;
    pthread_mutex_unlock(&sim->lock);
}
