/* guard.h - a mutex that knows which thread holds it.
 *
 * A function that relies on a lock asserts it, in every build: the check is one comparison. Waiting
 * on a condition releases the guard and takes it again, as with any mutex. A guard is not
 * recursive. */
#ifndef PAWL_BASE_GUARD_H
#define PAWL_BASE_GUARD_H

#include "base/assert.h"
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* The number of a thread; 0: no thread. */
typedef _Atomic uintptr_t thread_mark;

static inline uintptr_t thread_self(void)
{
    return (uintptr_t)pthread_self();
}

static inline bool thread_is_self(const thread_mark *mark)
{
    return atomic_load_explicit(mark, memory_order_relaxed) == thread_self();
}

static inline void thread_note(thread_mark *mark, uintptr_t thread)
{
    atomic_store_explicit(mark, thread, memory_order_relaxed);
}

struct guard {
    pthread_mutex_t mutex;
    thread_mark owner;
};

/* The thread relies on something that is about threads; `words` name it. */
#define ASSERT_THREAD(condition, words) \
    ((condition) ? (void)0 : panic_at(__FILE__, __LINE__, words))
#define ASSERT_HOLDS(guard) \
    ASSERT_THREAD(thread_is_self(&(guard)->owner), "this thread holds " #guard)
#define ASSERT_RELEASED(guard) \
    ASSERT_THREAD(!thread_is_self(&(guard)->owner), "this thread does not hold " #guard)

static inline void guard_init(struct guard *guard)
{
    pthread_mutex_init(&guard->mutex, NULL);
    thread_note(&guard->owner, 0);
}

static inline void guard_fini(struct guard *guard)
{
    ASSERT(!atomic_load(&guard->owner));
    pthread_mutex_destroy(&guard->mutex);
}

static inline void guard_lock(struct guard *guard)
{
    ASSERT_RELEASED(guard);
    pthread_mutex_lock(&guard->mutex);
    thread_note(&guard->owner, thread_self());
}

static inline void guard_unlock(struct guard *guard)
{
    ASSERT_HOLDS(guard);
    thread_note(&guard->owner, 0);
    pthread_mutex_unlock(&guard->mutex);
}

/* Wait until the condition is signalled, or, with a time, until then. It may return early. */
static inline void guard_wait(struct guard *guard, pthread_cond_t *condition)
{
    ASSERT_HOLDS(guard);
    thread_note(&guard->owner, 0);
    pthread_cond_wait(condition, &guard->mutex);
    thread_note(&guard->owner, thread_self());
}

static inline void guard_wait_until(struct guard *guard, pthread_cond_t *condition,
                                    const struct timespec *time)
{
    ASSERT_HOLDS(guard);
    thread_note(&guard->owner, 0);
    pthread_cond_timedwait(condition, &guard->mutex, time);
    thread_note(&guard->owner, thread_self());
}

#endif
