/* server.c - the daemon, and the life of a request. */
#include "api/stores.h"
#include "api/world.h"
#include "surface/http/stream_int.h"
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>
#include <sys/eventfd.h>
#include <unistd.h>

/* For the head and what the library makes of it; a head that does not fit is answered by the
 * library itself. It must be more than HEAD_MAX needs, except where the acceptor has seen the head:
 * an idle stream costs about as much as its connection's memory. */
#define CONNECTION_MEMORY (16u << 10)
#define STREAM_MEMORY     (5u << 10)
#define CONNECTIONS_MAX   16384u
#define STOP_WAIT_MS      2000
#define AWAY_LOOK_MS      5

/* ---- The life of a request ---- */

/* "http://HOST/path" is "/path" of HOST, whatever the Host header says. *authority: NULL if it
 * names none. */
static const char *target_path(const char *target, char **authority)
{
    static const char *const schemes[] = { "http://", "https://" };

    *authority = NULL;
    for (size_t i = 0; i < 2; i++) {
        size_t size = strlen(schemes[i]);

        if (strncasecmp(target, schemes[i], size) != 0)
            continue;
        target += size;
        size = strcspn(target, "/?");
        *authority = strndup(target, size);
        return target[size] == '/' ? target + size : "/";
    }
    return target;
}

/* The target as it came is seen only here: later it is decoded, and leniently. */
static void *on_target(void *context, const char *target, struct MHD_Connection *connection)
{
    struct http_server *server = context;
    struct web_request *request = calloc(1, sizeof *request);

    connection_allow(connection, PATIENCE_HEAD);
    connection_asks(connection);
    if (!request)
        return NULL;
    target = target_path(target, &request->authority);
    request->server = server;
    request->connection = connection;
    request->target = strdup(target);
    scope_init(&request->scope, &heap_libc, LIMIT_SCOPE);
    request->body_limit = route_body_limit(str_of(target));
    buf_init(&request->body, &heap_libc, request->body_limit);
    buf_init(&request->answer, &heap_libc, LIMIT_SCOPE);
    atomic_fetch_add(&server->active, 1);
    return request;
}

static void on_completed(void *context, struct MHD_Connection *connection, void **kept,
                         enum MHD_RequestTerminationCode code)
{
    struct http_server *server = context;
    struct web_request *request = *kept;

    connection_allow(connection, PATIENCE_IDLE);
    if (!request)
        return;
    *kept = NULL;
    if (code == MHD_REQUEST_TERMINATED_CLIENT_ABORT)
        reject_cut_short(request);
    if (request->result.given.count > 0) {
        if (code == MHD_REQUEST_TERMINATED_COMPLETED_OK)
            connection_gave(request);
        else
            op_not_sent(request->p, &request->result.given);
    }
    stream_end(request->stream);
    request_close_pieces(request);
    if (request->is_shared_stream)
        atomic_fetch_sub(&server->shared_streams, 1);
    store_leave(request->p);
    buf_fini(&request->answer);
    body_release(request);
    scope_fini(&request->scope);
    free(request->target);
    free(request->authority);
    free(request);
    if (atomic_fetch_sub(&server->active, 1) == 1 && atomic_load(&server->is_stopping))
        wake_fd(server->idle_event);
}

/* ---- A request comes in ---- */

/* A client that sent Expect gets the rejection instead of 100 Continue. A long body is rejected
 * before it is sent; a short one is read, not kept, and the connection stays open. */
static enum MHD_Result refuse_head(struct web_request *request)
{
    if (request->length > 0 && request_header(request, "Expect").data) {
        request->is_last = true;
        return request_serve(request);
    }
    return request->length > HTTP_EARLY_MAX ? reject_now(request) : MHD_YES;
}

static enum MHD_Result enter(struct web_request *request)
{
    if (request->status == PAWL_OK && request_enter(request))
        return MHD_YES; /* the library calls again */
    request->is_at_head = false;
    return request->status == PAWL_OK ? MHD_YES : refuse_head(request);
}

static enum MHD_Result begin(struct web_request *request, const char *method)
{
    bool answer_now;

    request->has_begun = request->is_at_head = true;
    request->begun_us = world_tick_us(request->server->p);
    request_name(request);
    request_trace(request);
    request->method = str_of(method);
    connection_allow(request->connection, PATIENCE_BODY);
    request->status = request_check(request, &answer_now);
    if (connections_count(request->server) > CONNECTIONS_SERVED_MAX) {
        request->status = scope_fail(&request->scope, PAWL_OVERLOADED,
                                     "more than %u connections; try later", CONNECTIONS_SERVED_MAX);
        count_refused(request->server, HTTP_LIMIT_CONNECTIONS);
        answer_now = true;
    }
    request->is_last = answer_now;
    request->is_at_head = !answer_now;
    return answer_now ? request_serve(request) : enter(request);
}

/* A body that turns out to be too large is read to its end, and the connection stays open. */
static enum MHD_Result take(struct web_request *request, const char *data, size_t size)
{
    bool was_refused = request->status != PAWL_OK;

    if (!body_take(request, data, size))
        return MHD_NO;
    return request->status == PAWL_OVERLOADED && !was_refused ? reject_now(request) : MHD_YES;
}

/* The body's last byte has been read. If we give no answer now, the library calls again at once and
 * has noted that there is nothing to read: only then may the connection be suspended. Otherwise it
 * would read on resuming, find that the client has closed its side (a half-closed one), and close
 * without an answer. */
static bool is_settled(struct web_request *request)
{
    bool was_whole = request->is_whole;

    request->is_whole = true;
    if (!was_whole)
        request->begun_us = world_tick_us(request->server->p);
    return was_whole || request->status != PAWL_OK || request_is_quick(request);
}

static enum MHD_Result on_request(void *context, struct MHD_Connection *connection, const char *url,
                                  const char *method, const char *version, const char *data,
                                  size_t *size, void **kept)
{
    struct web_request *request = *kept;

    (void)context;
    (void)connection;
    (void)url;
    (void)version;
    if (!request || !request->target)
        return MHD_NO;
    if (!request->has_begun)
        return begin(request, method);
    if (request->is_at_head)
        return enter(request);
    if (*size > 0) {
        size_t count = *size;

        *size = 0;
        return take(request, data, count);
    }
    if (request->is_discarding)
        return MHD_NO; /* the answer was sent already */
    return is_settled(request) ? request_serve(request) : MHD_YES;
}

/* ---- Start and stop ---- */

int http_fail(pawl_error *error, pawl_status status, const char *format, ...)
{
    va_list arguments;

    if (!error)
        return -1;
    error->status = status;
    va_start(arguments, format);
    vsnprintf(error->message, sizeof error->message, format, arguments);
    va_end(arguments);
    return -1;
}

/* threads 0: one thread, and no pool, for streams. Without MHD_USE_ERROR_LOG the library writes
 * nothing to the host's stderr. It only reads the certificate and the key. */
static struct MHD_Daemon *start_daemon(struct http_server *server, int listener, uint32_t threads)
{
    unsigned flags = MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_EPOLL | MHD_USE_ITC |
                     MHD_ALLOW_SUSPEND_RESUME |
                     (is_tls(server) ? MHD_USE_TLS : MHD_USE_NO_LISTEN_SOCKET);
    const struct http_options *options = &server->options;
    struct MHD_OptionItem items[] = {
        { MHD_OPTION_LISTEN_SOCKET, listener, NULL },
        { MHD_OPTION_HTTPS_MEM_CERT, 0, (void *)(uintptr_t)options->tls_cert },
        { MHD_OPTION_HTTPS_MEM_KEY, 0, (void *)(uintptr_t)options->tls_key },
        { MHD_OPTION_END, 0, NULL },
    };
    size_t memory = threads > 0 ? CONNECTION_MEMORY : STREAM_MEMORY;

    return MHD_start_daemon(
        flags, 0, NULL, NULL, on_request, server, MHD_OPTION_CONNECTION_LIMIT, CONNECTIONS_MAX,
        MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)IDLE_S, MHD_OPTION_CONNECTION_MEMORY_LIMIT, memory,
        MHD_OPTION_URI_LOG_CALLBACK, on_target, server, MHD_OPTION_NOTIFY_COMPLETED, on_completed,
        server, MHD_OPTION_NOTIFY_CONNECTION, on_connection, server, MHD_OPTION_THREAD_POOL_SIZE,
        threads, MHD_OPTION_ARRAY, items + (is_tls(server) ? 0 : 3), MHD_OPTION_END);
}

/* There are no streams and no active requests any more. */
static void free_server(struct http_server *server)
{
    if (server->stream_daemon)
        MHD_stop_daemon(server->stream_daemon);
    if (server->daemon)
        MHD_stop_daemon(server->daemon);
    for (int reach = OP_REACHES - 1; reach > OP_NEAR; reach--)
        work_stop(&server->farther[reach]);
    work_stop(&server->work);
    siblings_free(server);
    hub_free(server->hub);
    if (server->idle_event >= 0)
        close(server->idle_event);
    guard_fini(&server->connections.lock);
    guard_fini(&server->arrivals.lock);
    free(server);
}

static struct http_server *new_server(pawl *p, const struct http_options *options, int listener)
{
    struct http_server *server = calloc(1, sizeof *server);

    if (!server)
        return NULL;
    server->p = p;
    work_init(&server->work, p);
    for (int reach = OP_NEAR + 1; reach < OP_REACHES; reach++)
        work_init(&server->farther[reach], p);
    server->options = *options;
    if (options->body_memory == 0)
        server->options.body_memory = HTTP_BODY_MEMORY;
    if (options->threads == 0)
        server->options.threads = HTTP_THREADS;
    server->needs_token = options->needs_token || !socket_is_loopback(listener);
    world_random(p, &server->nonce, sizeof server->nonce);
    server->port = socket_port(listener);
    guard_init(&server->connections.lock);
    guard_init(&server->arrivals.lock);
    server->idle_event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    return server;
}

/* With TLS the library accepts connections itself, so we cannot see their first request. */
static bool start(struct http_server *server, int listener)
{
    bool are_started = siblings_start(server);

    if (work_start(&server->work) && are_started && server->idle_event >= 0)
        server->hub = hub_start(server->p, connections_age, server);
    if (server->hub)
        server->daemon = start_daemon(server, listener, server->options.threads);
    if (!server->daemon || is_tls(server))
        return server->daemon != NULL;
    server->stream_daemon = start_daemon(server, listener, 0);
    return server->stream_daemon && acceptor_start(server, listener);
}

struct http_server *http_start(pawl *p, const struct http_options *options, pawl_error *error)
{
    struct http_server *server;
    uint16_t port = 0;
    int listener = options->socket;

    if (listener == 0)
        listener = http_bind(options->listen ? options->listen : HTTP_LISTEN, &port, error);
    if (listener < 0)
        return NULL;
    if (!socket_is_loopback(listener) && !op_has_tokens(p)) {
        close(listener);
        http_fail(error, PAWL_FORBIDDEN,
                  "refuses to listen on more than loopback without a token: make one first "
                  "(pawl token create --scope all)");
        return NULL;
    }
    server = new_server(p, options, listener);
    if (server && start(server, listener))
        return server;
    http_fail(error, PAWL_NO_MEMORY, "the HTTP server cannot start: %s", strerror(errno));
    if (server) {
        hub_end_streams(server->hub);
        siblings_end_streams(server);
        free_server(server);
    }
    return NULL;
}

/* Requests that have begun get their answers, unless their clients are too slow to take them. What
 * is away has to come back first, however long it takes: the daemon must not be stopped while a
 * connection is suspended. */
static void wait_for_active(struct http_server *server)
{
    struct pollfd idle = { .fd = server->idle_event, .events = POLLIN };

    atomic_store(&server->is_stopping, true);
    work_close(&server->work);
    while (atomic_load(&server->away) > 0) {
        stores_end_claims(server->p); /* those that hold a thread; a store may have come since */
        poll(NULL, 0, AWAY_LOOK_MS);
    }
    if (atomic_load(&server->active) > 0)
        poll(&idle, 1, STOP_WAIT_MS);
}

void http_stop(struct http_server *server)
{
    int listener;

    if (!server)
        return;
    if (!is_tls(server))
        acceptor_stop(server);
    listener = MHD_quiesce_daemon(server->daemon);
    if (server->stream_daemon)
        MHD_quiesce_daemon(server->stream_daemon);
    hub_end_streams(server->hub);
    atomic_store(&server->is_stopping, true); /* no more hubs */
    siblings_end_streams(server);
    wait_for_active(server);
    free_server(server);
    if (listener != MHD_INVALID_SOCKET)
        close(listener);
}
