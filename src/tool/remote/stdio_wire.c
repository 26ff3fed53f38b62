/* stdio_wire.c - a server that is a program: a message a line on its stdin and stdout. It runs
 * under a keeper, so it ends with us; its own log, on stderr, is kept only for the words of an
 * error. */
#include "base/str.h"
#include "tool/remote/remote_int.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#define END_WAIT_MS 300 /* for a program to end by itself when its stdin does */

/* ---- Starting and ending ---- */

struct pipes {
    int theirs[3], ours[3];
};

static bool open_pipes(struct pipes *pipes)
{
    for (int i = 0; i < 3; i++)
        pipes->theirs[i] = pipes->ours[i] = -1;
    for (int i = 0; i < 3; i++) {
        int ends[2];
        /* Its stdin is a socket: writing to a pipe without a reader would end us. */
        int failed = i == 0 ? socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends)
                            : pipe2(ends, O_CLOEXEC);

        if (failed)
            return false;
        pipes->theirs[i] = launch_raise(ends[i > 0]);
        pipes->ours[i] = launch_raise(ends[i == 0]);
        if (pipes->theirs[i] < 0 || pipes->ours[i] < 0 ||
            fcntl(pipes->ours[i], F_SETFL, O_NONBLOCK) != 0)
            return false;
    }
    return true;
}

static int spawn(struct remote_talk *talk, const struct pipes *pipes)
{
    const struct remote_rule *rule = talk->server->rule;
    struct remote_link *link = talk->link;
    struct arena *arena = &talk->scope->arena;
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    struct launch launch = { .argv = rule->argv,
                             .environment = environment_of_server(arena, &rule->variables),
                             .actions = &actions,
                             .attributes = &attributes };
    int number = launch.environment ? posix_spawn_file_actions_init(&actions) : ENOMEM;

    if (number != 0)
        return number;
    number = posix_spawnattr_init(&attributes);
    if (number == 0) {
        number = launch_actions(&actions, pipes->theirs, rule->cwd.data);
        if (number == 0)
            number = launch_attributes(&attributes);
        if (number == 0)
            number = keeper_begin(&link->running.keeper, &launch);
        if (number == 0)
            number = keeper_started(&link->running.keeper);
        (void)posix_spawnattr_destroy(&attributes);
    }
    (void)posix_spawn_file_actions_destroy(&actions);
    return number;
}

bool stdio_start(struct remote_talk *talk)
{
    struct remote_link *link = talk->link;
    struct pipes pipes;
    char words[128];
    int number = open_pipes(&pipes) ? spawn(talk, &pipes) : errno, status;

    for (int i = 0; i < 3; i++)
        fd_close(&pipes.theirs[i]);
    if (number != 0) {
        for (int i = 0; i < 3; i++)
            fd_close(&pipes.ours[i]);
        (void)keeper_end(&link->running.keeper, &status);
        return talk_fails(talk, FAULT_UNREACHABLE, "'%s' could not be started: %s",
                          talk->server->rule->argv[0], strerror_r(number, words, sizeof words));
    }
    link->input = pipes.ours[0];
    link->output = pipes.ours[1];
    link->errors = pipes.ours[2];
    link->peer = (struct remote_peer){ .era = (enum remote_era)talk->server->rule->era };
    link->has_tasks = false;
    link->tail_size = 0;
    buf_clear(&link->unread);
    pthread_mutex_lock(&talk->remote->lock);
    link->number = ++talk->remote->last_number;
    pthread_mutex_unlock(&talk->remote->lock);
    return true;
}

static bool has_ended(const struct remote_link *link)
{
    siginfo_t info = { .si_pid = 0 };

    return waitid(P_PID, (id_t)link->running.keeper.pid, &info, WEXITED | WNOHANG | WNOWAIT) != 0 ||
           info.si_pid != 0;
}

void stdio_end(struct remote *remote, struct remote_link *link)
{
    int status;

    (void)remote;
    if (link->input < 0)
        return;
    fd_close(&link->input);
    for (int waited = 0; !has_ended(link) && waited < END_WAIT_MS; waited += SLICE_WAIT_MS)
        (void)poll(NULL, 0, SLICE_WAIT_MS);
    (void)keeper_end(&link->running.keeper, &status);
    fd_close(&link->output);
    fd_close(&link->errors);
}

/* ---- Lines ---- */

/* What it logs is drained, so that it never waits for us; the end of it is kept. */
static void read_errors(struct remote_link *link)
{
    char data[512];
    ssize_t size;

    while (link->errors >= 0 && (size = read(link->errors, data, sizeof data)) != 0) {
        size_t kept =
            size > 0 && (size_t)size < sizeof link->tail ? (size_t)size : sizeof link->tail;

        if (size < 0)
            return;
        memcpy(link->tail, data + (size_t)size - kept, kept <= (size_t)size ? kept : (size_t)size);
        link->tail_size = kept <= (size_t)size ? kept : (size_t)size;
    }
    fd_close(&link->errors);
}

static bool gone(struct remote_talk *talk, enum remote_fault fault)
{
    struct remote_link *link = talk->link;
    struct pollfd door = { link->errors, POLLIN, 0 };

    (void)poll(&door, 1, SLICE_WAIT_MS); /* its last words may be under way */
    read_errors(link);
    return talk_fails(talk, fault, "the program '%s' has ended%s%.*s", talk->server->rule->argv[0],
                      link->tail_size > 0 ? "; stderr: " : "", (int)link->tail_size, link->tail);
}

/* Waits until the descriptor is ready, for a slice at most. False: the talk is over. */
static bool wait_for(struct remote_talk *talk, int fd, short events)
{
    struct pollfd doors[] = { { fd, events, 0 }, { talk->link->errors, POLLIN, 0 } };
    struct env *env = talk->remote->toolbox->options.env;
    int64_t begun = env->tick_ms(env), spent;
    int found;

    if (talk_is_over(talk))
        return talk_fails(talk, FAULT_STOPPED, "stopped before it answered");
    if (talk->left_ms <= 0)
        return talk_fails(talk, FAULT_LATE, "no answer in time");
    found = poll(doors, 2, SLICE_WAIT_MS);
    spent = env->tick_ms(env) - begun;
    talk->left_ms -= found == 0 && spent < SLICE_WAIT_MS ? SLICE_WAIT_MS : spent;
    read_errors(talk->link);
    return true;
}

bool stdio_tell(struct remote_talk *talk, str body)
{
    struct buf line;
    str rest;
    bool is_first = true;

    buf_init(&line, talk->scope->arena.heap, REMOTE_TEXT_MAX);
    buf_str(&line, body);
    buf_byte(&line, '\n');
    rest = buf_view(&line);
    while (rest.size > 0 && !line.failed && talk->fault == FAULT_NONE) {
        ssize_t size = send(talk->link->input, rest.data, rest.size, MSG_NOSIGNAL);

        if (size > 0) {
            rest = str_from(rest, (size_t)size);
            is_first = false;
        } else if (size < 0 && errno != EAGAIN && errno != EINTR) {
            gone(talk, is_first ? FAULT_UNREACHABLE : FAULT_BROKEN);
        } else {
            (void)wait_for(talk, talk->link->input, POLLOUT);
        }
    }
    if (line.failed)
        talk_fails(talk, FAULT_MEMORY, "no memory");
    buf_fini(&line);
    return talk->fault == FAULT_NONE;
}

/* The next line, in the scope; data NULL: none yet. */
static str take_line(struct remote_talk *talk)
{
    struct buf *unread = &talk->link->unread;
    const char *end = unread->size ? memchr(unread->data, '\n', unread->size) : NULL;
    size_t size = end ? (size_t)(end - unread->data) : 0;
    str line;

    if (!end)
        return STR_NONE;
    line = arena_str(&talk->scope->arena, (str){ unread->data, size });
    memmove(unread->data, unread->data + size + 1, unread->size - size - 1);
    unread->size -= size + 1;
    if (!line.data)
        talk_fails(talk, FAULT_MEMORY, "no memory");
    return line;
}

static bool read_more(struct remote_talk *talk)
{
    char data[16384];
    ssize_t size;

    if (!wait_for(talk, talk->link->output, POLLIN))
        return false;
    size = read(talk->link->output, data, sizeof data);
    if (size == 0 || (size < 0 && errno != EAGAIN && errno != EINTR))
        return gone(talk, FAULT_BROKEN);
    if (size > 0)
        buf_add(&talk->link->unread, data, (size_t)size);
    if (talk->link->unread.failed)
        return talk_fails(talk, FAULT_INVALID, "a message of over %zu bytes", REMOTE_TEXT_MAX);
    return true;
}

bool stdio_exchange(struct remote_talk *talk, str body, uint64_t id, struct node **message)
{
    if (!stdio_tell(talk, body))
        return false;
    while (id && talk->fault == FAULT_NONE) {
        str line = take_line(talk);

        if (!line.data) {
            (void)(talk->fault == FAULT_NONE && read_more(talk));
            continue;
        }
        line = str_trim(line, " \t\r");
        if (line.size == 0)
            continue;
        if (node_read_json(talk->scope, line, message) != PAWL_OK)
            return talk_fails(talk, FAULT_INVALID, "what it prints is no message of JSON-RPC");
        if (talk_take(talk, id, *message))
            return true;
    }
    return talk->fault == FAULT_NONE;
}
