/* env_os.c - the real world: the system's clocks, its randomness, and a real death at a
 * named point for the crash tests. Beside env_sim.c the only file that asks for any of it. */
#include "base/assert.h"
#include "base/heap.h"
#include "base/str.h"
#include "env/env.h"
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

/* Random bytes fetched at once: a call of the kernel per id is dear. A forked child must not
 * hand out its parent's bytes: the kernel empties the page for it, so that nothing is left
 * there. */
struct pool {
    size_t left; /* the last bytes, not handed out yet */
    unsigned char bytes[4096 - sizeof(size_t)];
};

struct env_os {
    struct env env;
    struct heap heap;
    pthread_mutex_t lock; /* over the pool */
    struct pool *pool;
    enum env_point crash_at;  /* POINT_COUNT: nowhere */
    atomic_llong correction_ms;
    atomic_ullong crash_left; /* that point is passed this many times, the last time dead */
};

static int64_t read_clock_us(clockid_t clock)
{
    struct timespec now;
    int failed = clock_gettime(clock, &now);

    ASSERT(!failed);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

static int64_t read_clock(clockid_t clock)
{
    return read_clock_us(clock) / 1000;
}

static int64_t os_now_ms(struct env *env)
{
    return read_clock(CLOCK_REALTIME) + atomic_load(&((struct env_os *)env)->correction_ms);
}

static void os_correct(struct env *env, int64_t by_ms)
{
    atomic_store(&((struct env_os *)env)->correction_ms, by_ms);
}

static int64_t os_boot_ms(struct env *env)
{
    (void)env;
    return read_clock(CLOCK_BOOTTIME);
}

static int64_t os_tick_ms(struct env *env)
{
    (void)env;
    return read_clock(CLOCK_MONOTONIC);
}

static int64_t os_tick_us(struct env *env)
{
    (void)env;
    return read_clock_us(CLOCK_MONOTONIC);
}

/* There is no going on without: ids that can be guessed are worse than no ids. */
static void fetch_random(unsigned char *out, size_t size)
{
    while (size > 0) {
        ssize_t got = getrandom(out, size, 0);

        ASSERT(got >= 0 || errno == EINTR);
        if (got > 0)
            out += got, size -= (size_t)got;
    }
}

/* Bytes leave the pool when they are handed out, so that no later reader of our memory
 * learns a salt or an id from it. */
static void take_from_pool(struct pool *pool, void *out, size_t size)
{
    unsigned char *from;

    if (pool->left < size) {
        fetch_random(pool->bytes, sizeof pool->bytes);
        pool->left = sizeof pool->bytes;
    }
    from = pool->bytes + (sizeof pool->bytes - pool->left);
    memcpy(out, from, size);
    explicit_bzero(from, size);
    pool->left -= size;
}

static void os_random(struct env *env, void *out, size_t size)
{
    struct env_os *os = (struct env_os *)env;

    if (!os->pool || size > sizeof os->pool->bytes) {
        fetch_random(out, size);
        return;
    }
    pthread_mutex_lock(&os->lock);
    take_from_pool(os->pool, out, size);
    pthread_mutex_unlock(&os->lock);
}

static void os_reached(struct env *env, enum env_point point)
{
    struct env_os *os = (struct env_os *)env;

    if (point == os->crash_at && atomic_fetch_sub(&os->crash_left, 1) == 1)
        kill(getpid(), SIGKILL);
}

static struct env *os_share(struct env *env)
{
    return env_os_new(&((struct env_os *)env)->heap);
}

static void os_close(struct env *env)
{
    struct env_os *os = (struct env_os *)env;
    struct heap heap = os->heap;

    if (os->pool) {
        explicit_bzero(os->pool, sizeof *os->pool);
        munmap(os->pool, sizeof *os->pool);
    }
    pthread_mutex_destroy(&os->lock);
    heap_free(&heap, os, sizeof *os);
}

/* "POINT:N". Anything else is ignored: the crash tests notice that no process died. */
static void read_crash_point(struct env_os *os, str text)
{
    str name = str_before(text, ':');
    uint64_t times;

    os->crash_at = POINT_COUNT;
    if (!str_to_u64(str_after(text, ':'), &times) || times == 0)
        return;
    atomic_init(&os->crash_left, times);
    for (enum env_point point = 0; point < POINT_COUNT; point++)
        if (str_is(name, env_point_name(point)))
            os->crash_at = point;
}

/* NULL: each call asks the kernel. */
static struct pool *pool_new(void)
{
    struct pool *pool =
        mmap(NULL, sizeof *pool, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (pool == MAP_FAILED)
        return NULL;
    if (madvise(pool, sizeof *pool, MADV_WIPEONFORK) == 0)
        return pool;
    munmap(pool, sizeof *pool);
    return NULL;
}

struct env *env_os_new(const struct heap *heap)
{
    struct env_os *os = heap_new(heap, sizeof *os);

    if (!os)
        return NULL;
    if (pthread_mutex_init(&os->lock, NULL)) {
        heap_free(heap, os, sizeof *os);
        return NULL;
    }
    os->heap = *heap;
    os->pool = pool_new();
    os->env = (struct env){ os_now_ms,  os_boot_ms, os_tick_ms, os_tick_us, os_random,
                            os_reached, os_share,   os_close,   false,      os_correct };
    read_crash_point(os, str_of(getenv("PAWL_CRASH_AT")));
    return &os->env;
}
