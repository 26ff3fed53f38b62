/* mcp_servers.c - the servers that are configured, and the programs of those that are programs.
 *
 * A program serves one talk at a time, so a call that takes long does not hold up the others: they
 * start another one, up to LINKS_MAX. A task is asked for at the program that knows it. */
#include "tool/remote/remote_int.h"
#include <poll.h>

struct remote *remote_new(struct toolbox *toolbox)
{
    const struct heap *heap = toolbox->options.heap;
    struct remote *remote = heap_new(heap, sizeof *remote);
    uint32_t count = toolbox->rules.server_count;

    if (!remote)
        return NULL;
    *remote = (struct remote){ .toolbox = toolbox, .count = count };
    remote->servers = heap_new(heap, sizeof *remote->servers * (count + 1));
    if (!remote->servers || pthread_mutex_init(&remote->lock, NULL) != 0) {
        heap_free(heap, remote->servers, sizeof *remote->servers * (count + 1));
        heap_free(heap, remote, sizeof *remote);
        return NULL;
    }
    for (uint32_t i = 0; i < count; i++) {
        struct remote_server *server = &remote->servers[i];

        server->rule = &toolbox->rules.servers[i];
        buf_init(&server->tools, heap, REMOTE_TEXT_MAX);
        for (uint32_t n = 0; n < LINKS_MAX; n++) {
            server->links[n].input = server->links[n].output = server->links[n].errors = -1;
            server->links[n].running.keeper = KEEPER_NONE;
            buf_init(&server->links[n].unread, heap, REMOTE_TEXT_MAX);
        }
    }
    return remote;
}

void remote_stop(struct remote *remote)
{
    if (remote)
        remote->is_stopping = true;
}

void remote_free(struct remote *remote)
{
    const struct heap *heap;

    if (!remote)
        return;
    heap = remote->toolbox->options.heap;
    remote_stop(remote);
    held_end_all(remote);
    for (uint32_t i = 0; i < remote->count; i++) {
        for (uint32_t n = 0; n < LINKS_MAX; n++) {
            stdio_end(remote, &remote->servers[i].links[n]);
            buf_fini(&remote->servers[i].links[n].unread);
        }
        buf_fini(&remote->servers[i].tools);
    }
    (void)pthread_mutex_destroy(&remote->lock);
    heap_free(heap, remote->servers, sizeof *remote->servers * (remote->count + 1));
    heap_free(heap, remote, sizeof *remote);
}

struct remote_server *server_find(struct remote *remote, str name)
{
    for (uint32_t i = 0; remote && i < remote->count; i++)
        if (str_eq(remote->servers[i].rule->name, name))
            return &remote->servers[i];
    return NULL;
}

/* The program with this number; or one that is free: best one that runs and knows no task, next
 * one that does not run yet. */
static struct remote_link *choose(struct remote_server *server, uint64_t number)
{
    struct remote_link *found = NULL;
    int best = 0;

    for (uint32_t n = 0; n < LINKS_MAX; n++) {
        struct remote_link *link = &server->links[n];
        int rank = link->input < 0 ? 2 : link->has_tasks ? 1 : 3;

        if (number && link->number == number && link->input >= 0)
            return link;
        if (!link->is_used && rank > best) {
            best = rank;
            found = link;
        }
    }
    return found;
}

static struct remote_link *try_acquire(struct remote_talk *talk, uint64_t number)
{
    struct remote_link *link;

    pthread_mutex_lock(&talk->remote->lock);
    link = choose(talk->server, number);
    if (link && link->is_used)
        link = NULL;
    if (link)
        link->is_used = true;
    pthread_mutex_unlock(&talk->remote->lock);
    return link;
}

bool link_acquire(struct remote_talk *talk, uint64_t number)
{
    while (!(talk->link = try_acquire(talk, number))) {
        if (talk_is_over(talk))
            return talk_fails(talk, FAULT_STOPPED, "stopped");
        if (talk->left_ms <= 0)
            return talk_fails(talk, FAULT_UNREACHABLE, "all %u programs of the server are busy",
                              LINKS_MAX);
        (void)poll(NULL, 0, SLICE_WAIT_MS);
        talk->left_ms -= SLICE_WAIT_MS;
    }
    if (talk->link->input < 0 && !stdio_start(talk)) {
        link_release(talk);
        return false;
    }
    talk->peer = talk->link->peer;
    return true;
}

/* A program that did not answer as it should is ended: what it says later belongs to no talk. */
void link_release(struct remote_talk *talk)
{
    struct remote_link *link = talk->link;

    if (!link)
        return;
    link->peer = talk->peer;
    if (talk->fault == FAULT_BROKEN || talk->fault == FAULT_INVALID ||
        (talk->fault == FAULT_LATE && !link->has_tasks))
        stdio_end(talk->remote, link);
    pthread_mutex_lock(&talk->remote->lock);
    link->is_used = false;
    pthread_mutex_unlock(&talk->remote->lock);
    talk->link = NULL;
}
