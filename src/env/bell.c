/* bell.c - a descriptor that becomes readable by itself: a timer of the kernel's. To ring at once
 * it is set to a time long past; so there is one descriptor for "now" and for "later". */
#include "base/assert.h"
#include "env/env.h"
#include <sys/timerfd.h>
#include <unistd.h>

int env_bell_new(void)
{
    return timerfd_create(CLOCK_REALTIME, TFD_NONBLOCK | TFD_CLOEXEC);
}

/* Zero would stop it: the earliest time there is comes one nanosecond after it. */
static struct timespec time_of(int64_t at_ms)
{
    if (at_ms == BELL_NEVER)
        return (struct timespec){ 0 };
    if (at_ms <= 0)
        return (struct timespec){ .tv_nsec = 1 };
    return (struct timespec){ .tv_sec = at_ms / 1000, .tv_nsec = at_ms % 1000 * 1000000 };
}

void env_bell_set(struct env *env, int bell, int64_t at_ms)
{
    struct itimerspec spec = { { 0 } };
    int failed;

    if (env->is_simulated)
        at_ms = at_ms <= env->now_ms(env) ? BELL_NOW : BELL_NEVER;
    spec.it_value = time_of(at_ms);
    failed = timerfd_settime(bell, TFD_TIMER_ABSTIME, &spec, NULL);
    ASSERT(!failed);
}

void env_bell_free(int bell)
{
    if (bell >= 0)
        close(bell);
}
