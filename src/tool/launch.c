/* launch.c - how a program of ours begins: its descriptors, its folder, its signals. */
#include "tool/keeper.h"
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#define FD_FREE_MIN 3 /* 0, 1 and 2 are the program's own */

int launch_raise(int fd)
{
    int raised;

    if (fd < 0 || fd >= FD_FREE_MIN)
        return fd;
    raised = fcntl(fd, F_DUPFD_CLOEXEC, FD_FREE_MIN);
    (void)close(fd);
    return raised;
}

int launch_actions(posix_spawn_file_actions_t *actions, const int fds[3], const char *cwd)
{
    int number = 0;

    for (int i = 0; i < 3 && number == 0; i++)
        number = posix_spawn_file_actions_adddup2(actions, fds[i], i);
    if (number == 0 && cwd)
        number = posix_spawn_file_actions_addchdir_np(actions, cwd);
#if defined(__GLIBC__) && __GLIBC_PREREQ(2, 34)
    /* Sockets and files of the host that it did not mark close-on-exec. */
    if (number == 0)
        number = posix_spawn_file_actions_addclosefrom_np(actions, FD_FREE_MIN);
#endif
    return number;
}

int launch_attributes(posix_spawnattr_t *attributes)
{
    static const int signals[] = { SIGPIPE, SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGCHLD };
    sigset_t none, restored;

    sigemptyset(&none);
    sigemptyset(&restored);
    for (size_t i = 0; i < sizeof signals / sizeof signals[0]; i++)
        sigaddset(&restored, signals[i]);
    (void)posix_spawnattr_setsigmask(attributes, &none);
    (void)posix_spawnattr_setsigdefault(attributes, &restored);
    (void)posix_spawnattr_setpgroup(attributes, 0);
    return posix_spawnattr_setflags(attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK |
                                                    POSIX_SPAWN_SETSIGDEF);
}
