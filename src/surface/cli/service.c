/* service.c - sd_listen_fds(3) and sd_notify(3), as far as a server needs them. */
#include "surface/cli/service.h"
#include "base/str.h"
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define FIRST_SOCKET 3 /* by the protocol */

/* A number in the environment; 0 if it is not there. */
static uint64_t number_of(const char *name)
{
    const char *text = getenv(name);
    uint64_t number = 0;

    return text && str_to_u64(str_of(text), &number) ? number : 0;
}

pawl_status service_socket(struct scope *scope, int *out)
{
    bool is_ours = number_of("LISTEN_PID") == (uint64_t)getpid();
    uint64_t count = is_ours ? number_of("LISTEN_FDS") : 0;

    unsetenv("LISTEN_PID");
    unsetenv("LISTEN_FDS");
    unsetenv("LISTEN_FDNAMES");
    *out = count == 1 ? FIRST_SOCKET : 0;
    if (count <= 1)
        return PAWL_OK;
    return scope_fail(
        scope, PAWL_INVALID_REQUEST,
        "the service manager gave %llu sockets: expected one (a single ListenStream=)",
        (unsigned long long)count);
}

/* A path, or a name in the abstract space, written with an '@'. */
static socklen_t name_of(const char *text, struct sockaddr_un *out)
{
    size_t size = strlen(text);

    *out = (struct sockaddr_un){ .sun_family = AF_UNIX };
    if (size < 2 || size >= sizeof out->sun_path || !strchr("/@", text[0]))
        return 0;
    memcpy(out->sun_path, text, size);
    if (text[0] == '@')
        out->sun_path[0] = 0;
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + size);
}

void service_tell(const char *state)
{
    const char *where = getenv("NOTIFY_SOCKET");
    struct sockaddr_un name;
    socklen_t size = where ? name_of(where, &name) : 0;
    int notifier = size ? socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0) : -1;
    ssize_t sent;

    if (notifier < 0)
        return;
    sent = sendto(notifier, state, strlen(state), MSG_NOSIGNAL, (struct sockaddr *)&name, size);
    (void)sent; /* it would start us again if it had to know */
    close(notifier);
}
