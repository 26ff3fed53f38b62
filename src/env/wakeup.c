/* wakeup.c - a descriptor that becomes readable by itself: two kernel timers behind one epoll
 * descriptor, because durations follow the boot clock and absolute times the wall clock. To make it
 * readable at once, a timer is set to a time long past, so "now" and "later" are one case. */
#include "base/assert.h"
#include "env/env.h"
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

static bool add(int fd, int timer)
{
    struct epoll_event event = { .events = EPOLLIN };

    return timer >= 0 && epoll_ctl(fd, EPOLL_CTL_ADD, timer, &event) == 0;
}

bool env_wakeup_new(struct env_wakeup *wakeup)
{
    wakeup->fd = epoll_create1(EPOLL_CLOEXEC);
    wakeup->by_boot = timerfd_create(CLOCK_BOOTTIME, TFD_NONBLOCK | TFD_CLOEXEC);
    wakeup->by_wall = timerfd_create(CLOCK_REALTIME, TFD_NONBLOCK | TFD_CLOEXEC);
    if (wakeup->fd >= 0 && add(wakeup->fd, wakeup->by_boot) && add(wakeup->fd, wakeup->by_wall))
        return true;
    env_wakeup_free(wakeup);
    return false;
}

/* Zero would stop it: the earliest time there is comes one nanosecond after it. */
static struct timespec time_of(int64_t at_ms)
{
    if (at_ms == WAKEUP_NEVER)
        return (struct timespec){ 0 };
    if (at_ms <= 0)
        return (struct timespec){ .tv_nsec = 1 };
    return (struct timespec){ .tv_sec = at_ms / 1000, .tv_nsec = at_ms % 1000 * 1000000 };
}

static void set(int timer, int64_t at_ms)
{
    struct itimerspec spec = { .it_value = time_of(at_ms) };
    int failed = timerfd_settime(timer, TFD_TIMER_ABSTIME, &spec, NULL);

    ASSERT(!failed);
}

static int64_t now_or_never(int64_t at_ms, int64_t now_ms)
{
    return at_ms <= now_ms ? WAKEUP_NOW : WAKEUP_NEVER;
}

void env_wakeup_set(struct env *env, const struct env_wakeup *wakeup, int64_t boot_ms,
                    int64_t wall_ms)
{
    if (env->is_simulated) {
        boot_ms = now_or_never(boot_ms, env->boot_ms(env));
        wall_ms = now_or_never(wall_ms, env->now_ms(env));
    }
    set(wakeup->by_boot, boot_ms);
    set(wakeup->by_wall, wall_ms);
}

void env_wakeup_free(struct env_wakeup *wakeup)
{
    int *const all[] = { &wakeup->fd, &wakeup->by_boot, &wakeup->by_wall };

    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        if (*all[i] >= 0)
            close(*all[i]);
        *all[i] = -1;
    }
}
