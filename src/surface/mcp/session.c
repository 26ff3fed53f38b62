/* session.c - sessions of the legacy era. They are in memory alone: after a restart the answer is
 * 404, and clients begin again. What lasts are instances. */
#include "api/world.h"
#include "base/sha.h"
#include "surface/mcp/mcp_int.h"
#include <stdlib.h>

static void free_session(struct mcp_server *server, struct session *session)
{
    while (session->subscriptions) {
        struct subscription *next = session->subscriptions->next;

        watch_leave(server, &session->subscriptions->watch);
        free(session->subscriptions);
        session->subscriptions = next;
    }
    free(session->principal);
    free(session);
}

static void release(struct mcp_server *server, struct session *session)
{
    if (--session->references == 0)
        free_session(server, session);
}

/* Out of the table. */
static void unlist(struct mcp_server *server, struct session *session)
{
    struct session **link = &server->sessions;

    ASSERT_HOLDS(&server->lock);
    while (*link && *link != session)
        link = &(*link)->next;
    if (!*link)
        return;
    *link = session->next;
    server->session_count--;
    session->has_ended = true;
    release(server, session);
}

/* The one that was used longest ago, of those that nothing uses now. */
static void make_room(struct mcp_server *server)
{
    struct session *oldest = NULL;

    for (struct session *one = server->sessions; one; one = one->next)
        if (one->references == 1 && (!oldest || one->used_ms < oldest->used_ms))
            oldest = one;
    if (oldest)
        unlist(server, oldest);
}

static void list(struct mcp_server *server, struct session *session)
{
    uint8_t random[SESSION_ID_SIZE / 2];

    world_random(server->p, random, sizeof random);
    sha_hex(random, sizeof random, session->id);
    guard_lock(&server->lock);
    if (server->session_count >= SESSIONS_MAX)
        make_room(server);
    session->next = server->sessions;
    session->references++;
    server->sessions = session;
    server->session_count++;
    guard_unlock(&server->lock);
}

struct session *session_new(struct mcp_server *server, const struct op_principal *who,
                            bool is_listed)
{
    struct session *session = calloc(1, sizeof *session);

    if (!session)
        return NULL;
    session->references = 1;
    session->version = MCP_LEGACY_NEWEST;
    session->used_ms = tick_ms(server);
    if (who->name.data) {
        session->principal = strndup(who->name.data, who->name.size);
        if (!session->principal) {
            free(session);
            return NULL;
        }
    }
    if (is_listed)
        list(server, session);
    return session;
}

/* A session is no proof of who calls: it is found by its own principal alone. */
static bool is_of(const struct session *session, const struct op_principal *who)
{
    return session->principal ? str_is(who->name, session->principal) : !who->name.data;
}

struct session *session_find(struct mcp_server *server, str id, const struct op_principal *who)
{
    struct session *found = NULL;

    guard_lock(&server->lock);
    for (struct session *one = server->sessions; one && !found; one = one->next)
        if (str_is(id, one->id) && is_of(one, who))
            found = one;
    if (found) {
        found->references++;
        found->used_ms = tick_ms(server);
    }
    guard_unlock(&server->lock);
    return found;
}

void session_leave(struct mcp_server *server, struct session *session)
{
    if (!session)
        return;
    guard_lock(&server->lock);
    release(server, session);
    guard_unlock(&server->lock);
}

/* Its streams end, too. */
void session_end(struct mcp_server *server, struct session *session)
{
    guard_lock(&server->lock);
    unlist(server, session);
    for (struct rpc_exchange *one = server->first, *next; one; one = next) {
        next = one->of_all.next;
        if (one->session == session)
            exchange_wake(one);
    }
    guard_unlock(&server->lock);
}

void sessions_free(struct mcp_server *server)
{
    guard_lock(&server->lock);
    while (server->sessions) {
        struct session *next = server->sessions->next;

        free_session(server, server->sessions);
        server->sessions = next;
    }
    guard_unlock(&server->lock);
}

/* ---- Subscriptions ---- */

static struct subscription **find_subscription(struct session *session, str uri)
{
    struct subscription **link = &session->subscriptions;

    while (*link && !str_is(uri, (*link)->uri))
        link = &(*link)->next;
    return link;
}

/* Under the lock. */
static pawl_status take_subscription(struct mcp_server *server, struct session *session,
                                     struct subscription *one)
{
    struct subscription **link = find_subscription(session, str_of(one->uri));

    if (*link)
        return PAWL_CONFLICT;
    if (session->subscription_count >= SUBSCRIPTIONS_MAX)
        return PAWL_OVERLOADED;
    *link = one;
    session->subscription_count++;
    watch_join(server, &one->watch);
    for (struct rpc_exchange *stream = session->streams, *next; stream; stream = next) {
        next = stream->next_stream;
        exchange_wake(stream); /* it may have changed since the stamp was taken */
    }
    return PAWL_OK;
}

pawl_status session_subscribe(struct mcp_server *server, struct session *session, str uri,
                              int64_t stamp)
{
    struct subscription *one = calloc(1, sizeof *one + uri.size + 1);
    pawl_status status;

    if (!one)
        return PAWL_NO_MEMORY;
    memcpy(one->uri, uri.data, uri.size);
    one->watch.session = session;
    one->watch.instance = uri_instance(uri);
    one->watch.has_changed = true;
    one->seen = stamp;
    guard_lock(&server->lock);
    status = take_subscription(server, session, one);
    guard_unlock(&server->lock);
    if (status != PAWL_OK)
        free(one);
    return status == PAWL_CONFLICT ? PAWL_OK : status;
}

void session_unsubscribe(struct mcp_server *server, struct session *session, str uri)
{
    struct subscription **link, *one;

    guard_lock(&server->lock);
    link = find_subscription(session, uri);
    one = *link;
    if (one) {
        *link = one->next;
        watch_leave(server, &one->watch);
        session->subscription_count--;
    }
    guard_unlock(&server->lock);
    free(one);
}

/* ---- Messages about other requests ---- */

/* "pawl-17" as JSON. */
static uint64_t asked_number(str id)
{
    const str begin = STR("\"pawl-");
    uint64_t number = 0;

    if (!str_starts(id, begin) || id.data[id.size - 1] != '"')
        return 0;
    id = str_from(id, begin.size);
    id.size--;
    return str_to_u64(id, &number) ? number : 0;
}

/* An answer to what we did not ask, or asked another client, is dropped. */
void exchange_answered(struct rpc_exchange *message)
{
    struct mcp_server *server = message->server;
    uint64_t number = asked_number(message->id);
    str text = message->message->raw;

    guard_lock(&server->lock);
    for (struct rpc_exchange *one = server->first; one; one = one->of_all.next) {
        if (!number || one->asked != number || one->session != message->session || one->reply_text)
            continue;
        one->reply_text = strndup(text.data, text.size);
        one->reply_size = text.size;
        exchange_wake(one);
        break;
    }
    guard_unlock(&server->lock);
}

/* Ids are those of one client: over HTTP of a session, on stdio there is no other. */
static bool is_of_client(const struct rpc_exchange *one, const struct rpc_exchange *message)
{
    if (one->transport != message->transport)
        return false;
    return one->transport == OVER_STDIO || (message->session && one->session == message->session);
}

/* The request stays unanswered; a process that it has started goes on. In the newer era a client
 * gives a request up by closing its connection. */
void exchange_cancelled(struct rpc_exchange *message)
{
    struct mcp_server *server = message->server;
    str id = node_raw(message->params, "requestId");

    guard_lock(&server->lock);
    for (struct rpc_exchange *one = server->first; one && id.data; one = one->of_all.next) {
        if (!is_of_client(one, message) || !str_eq(one->id, id))
            continue;
        one->is_deaf = true;
        exchange_wake(one);
        break;
    }
    guard_unlock(&server->lock);
}
