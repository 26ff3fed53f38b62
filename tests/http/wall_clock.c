/* wall_clock.c - preloaded into a server: sets its wall clock ahead of the machine's by the seconds
 * in the file WALL_CLOCK, and changes no other clock. */
#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#define SEEN __attribute__((visibility("default"))) /* for the program that preloads it */

static long long ahead_s(void)
{
    char text[32] = "";
    const char *path = getenv("WALL_CLOCK");
    int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;

    if (file < 0)
        return 0;
    if (read(file, text, sizeof text - 1) < 0)
        text[0] = '\0';
    close(file);
    return atoll(text);
}

SEEN int clock_gettime(clockid_t clock, struct timespec *out)
{
    static int (*real)(clockid_t, struct timespec *);
    int failed;

    if (!real)
        *(void **)&real = dlsym(RTLD_NEXT, "clock_gettime");
    failed = real(clock, out);
    if (!failed && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE))
        out->tv_sec += (time_t)ahead_s();
    return failed;
}

SEEN int gettimeofday(struct timeval *out, void *zone)
{
    struct timespec now;

    (void)zone;
    clock_gettime(CLOCK_REALTIME, &now);
    *out = (struct timeval){ .tv_sec = now.tv_sec, .tv_usec = now.tv_nsec / 1000 };
    return 0;
}

SEEN time_t time(time_t *out)
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    if (out)
        *out = now.tv_sec;
    return now.tv_sec;
}
