/* server.c - the daemon, and the life of a request. */
#include "api/stores.h"
#include "api/world.h"
#include "surface/http/porter.h"
#include "surface/http/stream_int.h"
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define CONNECTION_MEMORY                                                                          \
    (8u << 10) /* headers over this are refused; an idle stream costs about as much */
#define CONNECTIONS_MAX 16384u
#define STOP_WAIT_MS    2000
#define AWAY_LOOK_MS    5

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
    struct request *request = calloc(1, sizeof *request);

    visit_allow(connection, VISIT_HEAD_S);
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

static void wake_stopper(struct http_server *server)
{
    uint64_t one = 1;
    ssize_t written = write(server->idle_event, &one, sizeof one);

    (void)written; /* it is full only if the stopper is awake already */
}

static void on_completed(void *context, struct MHD_Connection *connection, void **kept,
                         enum MHD_RequestTerminationCode code)
{
    struct http_server *server = context;
    struct request *request = *kept;

    visit_allow(connection, VISIT_IDLE_S);
    if (!request)
        return;
    *kept = NULL;
    if (code != MHD_REQUEST_TERMINATED_COMPLETED_OK && request->result.given.count > 0)
        op_not_sent(request->p, &request->result.given);
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
        wake_stopper(server);
}

static enum MHD_Result look_at_header(void *context, enum MHD_ValueKind kind, const char *name,
                                      const char *value)
{
    bool *is_sound = context;

    (void)kind;
    *is_sound = name && name[0] && !strpbrk(name, " \t\r\n()<>@,;:\\\"/[]?={}") &&
                (!value || !strpbrk(value, "\r\n"));
    return *is_sound ? MHD_YES : MHD_NO;
}

/* A name with a blank in it, or a line end in a value, is read as another header by somebody in
 * between. */
static pawl_status check_headers(struct request *request)
{
    bool is_sound = true;

    MHD_get_connection_values(request->connection, MHD_HEADER_KIND, look_at_header, &is_sound);
    return is_sound ? PAWL_OK
                    : scope_fail(&request->scope, PAWL_INVALID_REQUEST,
                                 "a header: expected a name of letters, digits and -, and a value "
                                 "on one line, found others");
}

/* ---- Rejecting before the end of a request ---- */

static void print_rejection(struct request *request, struct buf *out)
{
    struct buf body;

    buf_init(&body, &heap_libc, LIMIT_TEXT);
    request->result = (struct op_answer){ .http_status = pawl_status_http(request->status) };
    op_problem_remote(request->status, request->scope.error.message, &body);
    print_refusal(request->id, request->result.http_status, buf_view(&body), out);
    out->failed = out->failed || body.failed;
    buf_fini(&body);
}

/* The library cannot answer while a body is coming in, and closing the connection would destroy an
 * answer that the client has not read yet. So we write the answer ourselves, and discard the
 * rest. */
static enum MHD_Result reject_now(struct request *request)
{
    struct buf answer;
    bool is_sent;

    buf_init(&answer, &heap_libc, LIMIT_TEXT);
    print_rejection(request, &answer);
    if (request->status == PAWL_TOO_LARGE)
        count_refused(request->server, HTTP_LIMIT_BODY);
    count_answer(request);
    is_sent = !answer.failed && send_bytes(request->connection, &answer);
    buf_fini(&answer);
    request->is_discarding = true;
    visit_allow(request->connection, VISIT_DRAIN_S);
    return is_sent ? MHD_YES : MHD_NO;
}

/* A client that sent Expect gets the rejection instead of 100 Continue. A long body is rejected
 * before it is sent; a short one is read, not kept, and the connection stays open. */
static enum MHD_Result refuse_head(struct request *request)
{
    if (request->length > 0 && request_header(request, "Expect").data) {
        request->is_last = true;
        return respond(request);
    }
    return request->length > HTTP_EARLY_MAX ? reject_now(request) : MHD_YES;
}

/* ---- A request comes in ---- */

static enum MHD_Result enter(struct request *request)
{
    if (request->status == PAWL_OK && request_enter(request))
        return MHD_YES; /* the library calls again */
    request->is_at_head = false;
    return request->status == PAWL_OK ? MHD_YES : refuse_head(request);
}

static enum MHD_Result begin(struct request *request, const char *method)
{
    bool answer_now;

    request->has_begun = request->is_at_head = true;
    request->begun_us = world_tick_us(request->server->p);
    request_name(request);
    request_trace(request);
    request->method = str_of(method);
    visit_allow(request->connection, VISIT_BODY_S);
    request->status = request_check(request, &answer_now);
    if (request->status == PAWL_OK && (request->status = check_headers(request)) != PAWL_OK)
        answer_now = true;
    if (atomic_load(&request->server->visits.count) > VISITS_MAX) {
        request->status = scope_fail(&request->scope, PAWL_OVERLOADED,
                                     "more than %u connections; try later", VISITS_MAX);
        count_refused(request->server, HTTP_LIMIT_CONNECTIONS);
        answer_now = true;
    }
    request->is_last = answer_now;
    request->is_at_head = !answer_now;
    return answer_now ? respond(request) : enter(request);
}

/* A body that turns out to be too large is read to its end, and the connection stays open. */
static enum MHD_Result take(struct request *request, const char *data, size_t size)
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
static bool is_settled(struct request *request)
{
    bool was_whole = request->is_whole;

    request->is_whole = true;
    if (!was_whole)
        request->begun_us = world_tick_us(request->server->p);
    return was_whole || request->status != PAWL_OK || request->op->flags & OP_QUICK;
}

static enum MHD_Result on_request(void *context, struct MHD_Connection *connection, const char *url,
                                  const char *method, const char *version, const char *data,
                                  size_t *size, void **kept)
{
    struct request *request = *kept;

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
    return is_settled(request) ? respond(request) : MHD_YES;
}

/* The library must not write to the host's stderr. */
static void on_log(void *context, const char *format, va_list arguments)
{
    (void)context;
    (void)format;
    (void)arguments;
}

/* ---- Start and stop ---- */

/* threads 0: one thread, and no pool. */
static struct MHD_Daemon *start_daemon(struct http_server *server, int listener,
                                       const struct http_options *options, uint32_t threads)
{
    unsigned flags = MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_EPOLL | MHD_USE_ITC |
                     MHD_USE_ERROR_LOG | MHD_ALLOW_SUSPEND_RESUME;
    union {
        const char *text;
        char *value; /* the library only reads it */
    } cert = { options->tls_cert }, key = { options->tls_key };
    struct MHD_OptionItem tls[] = {
        { cert.text ? MHD_OPTION_HTTPS_MEM_CERT : MHD_OPTION_END, 0, cert.value },
        { MHD_OPTION_HTTPS_MEM_KEY, 0, key.value },
        { MHD_OPTION_LISTEN_SOCKET, listener, NULL },
        { MHD_OPTION_END, 0, NULL },
    };
    struct MHD_OptionItem pool[] = {
        { threads > 0 ? MHD_OPTION_THREAD_POOL_SIZE : MHD_OPTION_END, (intptr_t)threads, NULL },
        { MHD_OPTION_END, 0, NULL },
    };

    flags |= cert.text ? MHD_USE_TLS : MHD_USE_NO_LISTEN_SOCKET; /* else the porter listens */

    /* The logger comes first: it is for what the other options may say. */
    return MHD_start_daemon(
        flags, 0, NULL, NULL, on_request, server, MHD_OPTION_EXTERNAL_LOGGER, on_log, NULL,
        MHD_OPTION_ARRAY, pool, MHD_OPTION_CONNECTION_LIMIT, CONNECTIONS_MAX,
        MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)VISIT_IDLE_S, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
        (size_t)CONNECTION_MEMORY, MHD_OPTION_URI_LOG_CALLBACK, on_target, server,
        MHD_OPTION_NOTIFY_COMPLETED, on_completed, server, MHD_OPTION_NOTIFY_CONNECTION, on_visit,
        server, MHD_OPTION_ARRAY, tls, MHD_OPTION_END);
}

static void stop_daemons(struct http_server *server)
{
    if (server->stream_daemon)
        MHD_stop_daemon(server->stream_daemon);
    if (server->daemon)
        MHD_stop_daemon(server->daemon);
    server->daemon = server->stream_daemon = NULL;
}

static struct http_server *fail_start(struct http_server *server, pawl_error *error)
{
    if (error) {
        error->status = PAWL_NO_MEMORY;
        snprintf(error->message, sizeof error->message, "the HTTP server cannot start: %s",
                 strerror(errno));
    }
    if (server && server->hub) {
        hub_end_streams(server->hub);
        hub_free(server->hub);
    }
    if (server) {
        sites_end_streams(server);
        sites_free(server);
        work_stop(&server->work);
    }
    if (server && server->idle_event >= 0)
        close(server->idle_event);
    free(server);
    return NULL;
}

/* Whoever can connect could do everything. */
static struct http_server *refuse_open(pawl_error *error)
{
    if (error) {
        error->status = PAWL_FORBIDDEN;
        snprintf(error->message, sizeof error->message,
                 "refuses to listen on more than loopback without a token: make one first "
                 "(pawl token create --scope all)");
    }
    return NULL;
}

/* With TLS the library accepts connections itself, so we cannot see their first request. */
static bool start_daemons(struct http_server *server, int listener,
                          const struct http_options *options)
{
    bool is_tls = options->tls_cert != NULL;

    server->daemon =
        start_daemon(server, listener, options, options->threads ? options->threads : HTTP_THREADS);
    if (server->daemon && !is_tls)
        server->stream_daemon = start_daemon(server, listener, options, 0);
    if (server->daemon && (is_tls || (server->stream_daemon &&
                                      (server->porter = porter_start(server, listener)) != NULL)))
        return true;
    stop_daemons(server);
    return false;
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
    server = calloc(1, sizeof *server);
    if (!server)
        return fail_start(NULL, error);
    server->p = server->work.p = p;
    server->options = *options;
    server->needs_token = options->needs_token || !socket_is_loopback(listener);
    if (!socket_is_loopback(listener) && !op_has_tokens(p)) {
        free(server);
        close(listener);
        return refuse_open(error);
    }
    world_random(p, &server->nonce, sizeof server->nonce);
    server->port = socket_port(listener);
    guard_init(&server->visits.lock);
    server->idle_event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (sites_start(server) && work_start(&server->work) && server->idle_event >= 0)
        server->hub = hub_start(p, visits_age, &server->visits);
    if (server->hub && start_daemons(server, listener, options))
        return server;
    return fail_start(server, error);
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
    porter_stop(server->porter);
    listener = MHD_quiesce_daemon(server->daemon);
    if (server->stream_daemon)
        MHD_quiesce_daemon(server->stream_daemon);
    hub_end_streams(server->hub);
    atomic_store(&server->is_stopping, true); /* no more hubs */
    sites_end_streams(server);
    wait_for_active(server);
    stop_daemons(server);
    work_stop(&server->work);
    sites_free(server);
    hub_free(server->hub);
    if (listener != MHD_INVALID_SOCKET)
        close(listener);
    close(server->idle_event);
    guard_fini(&server->visits.lock);
    free(server);
}
