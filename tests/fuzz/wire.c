/* wire.c - stands in for the library that speaks HTTP, for sockets and for workers. */
#include "wire.h"
#include "base/node.h"
#include "fuzz.h"
#include <stdarg.h>
#include <strings.h>

/* Who may go on: the engine and the hub resume a connection from threads of theirs. */
static struct {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct web_request *work; /* handed to a worker */
} turn = { PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, NULL };

/* ---- Workers: there are none ---- */

bool work_start(struct work_queue *work)
{
    (void)work;
    return true;
}

void work_init(struct work_queue *work, pawl *p)
{
    work->p = p;
}

bool work_add_lazily(struct work_queue *work, struct web_request *request)
{
    work_add(work, request);
    return true;
}

void work_stop(struct work_queue *work)
{
    (void)work;
    REQUIRE(!turn.work);
}

bool work_has_room(struct work_queue *work)
{
    (void)work;
    return true;
}

void work_add(struct work_queue *work, struct web_request *request)
{
    (void)work;
    pthread_mutex_lock(&turn.lock);
    REQUIRE(!turn.work);
    turn.work = request;
    pthread_cond_signal(&turn.changed);
    pthread_mutex_unlock(&turn.lock);
}

/* Nobody waits here: it goes on at once, as it does when the server stops. */
void work_park(struct work_queue *work, struct web_request *request, int64_t for_ms)
{
    (void)for_ms;
    work_add(work, request);
}

void work_wake(struct work_queue *work, struct web_request *request)
{
    (void)work;
    (void)request;
}

void work_close(struct work_queue *work)
{
    (void)work;
}

static void do_work(void)
{
    struct web_request *request = turn.work;
    struct http_server *server = request->server;
    bool is_stopping = atomic_load(&server->is_stopping);

    turn.work = NULL;
    pthread_mutex_unlock(&turn.lock);
    atomic_store(&server->is_stopping, is_stopping || request->is_waiting);
    request_work(request);
    atomic_store(&server->is_stopping, is_stopping);
    pthread_mutex_lock(&turn.lock);
}

void wire_wait(const struct MHD_Connection *connection)
{
    pthread_mutex_lock(&turn.lock);
    while (connection->is_suspended) {
        if (turn.work)
            do_work();
        else
            pthread_cond_wait(&turn.changed, &turn.lock);
    }
    pthread_mutex_unlock(&turn.lock);
}

/* ---- No socket ---- */

bool acceptor_start(struct http_server *server, int listener)
{
    (void)server;
    (void)listener;
    return true;
}

void acceptor_stop(struct http_server *server)
{
    (void)server;
}

int http_bind(const char *listen, uint16_t *out_port, pawl_error *error)
{
    (void)listen;
    (void)out_port;
    (void)error;
    return -1;
}

bool socket_is_loopback(int fd)
{
    (void)fd;
    return true;
}

uint16_t socket_port(int listener)
{
    (void)listener;
    return WIRE_PORT;
}

/* ---- The daemon ---- */

static void skip_option(enum MHD_OPTION option, va_list *rest)
{
    switch (option) {
    case MHD_OPTION_LISTEN_SOCKET:
        (void)va_arg(*rest, int);
        break;
    case MHD_OPTION_CONNECTION_MEMORY_LIMIT:
        (void)va_arg(*rest, size_t);
        break;
    default:
        (void)va_arg(*rest, unsigned);
    }
}

static void take_option(struct MHD_Daemon *daemon, enum MHD_OPTION option, va_list *rest)
{
    switch (option) {
    case MHD_OPTION_URI_LOG_CALLBACK:
        daemon->on_target = va_arg(*rest, void *(*)(void *, const char *, struct MHD_Connection *));
        break;
    case MHD_OPTION_NOTIFY_COMPLETED:
        daemon->on_completed = va_arg(*rest, MHD_RequestCompletedCallback);
        break;
    case MHD_OPTION_NOTIFY_CONNECTION:
        daemon->on_connection = va_arg(*rest, MHD_NotifyConnectionCallback);
        break;
    default:
        skip_option(option, rest);
        return;
    }
    REQUIRE(va_arg(*rest, void *) == daemon->context);
}

struct MHD_Daemon *MHD_start_daemon(unsigned flags, uint16_t port, MHD_AcceptPolicyCallback accept,
                                    void *accept_context, MHD_AccessHandlerCallback on_request,
                                    void *context, ...)
{
    struct MHD_Daemon *daemon = calloc(1, sizeof *daemon);
    va_list rest;

    (void)port;
    REQUIRE(daemon && !accept && !accept_context && (flags & MHD_ALLOW_SUSPEND_RESUME));
    daemon->on_request = on_request;
    daemon->context = context;
    va_start(rest, context);
    for (;;) {
        int option = va_arg(rest, int);

        if (option == MHD_OPTION_END)
            break;
        take_option(daemon, (enum MHD_OPTION)option, &rest);
    }
    va_end(rest);
    REQUIRE(daemon->on_target && daemon->on_completed && daemon->on_connection);
    return daemon;
}

MHD_socket MHD_quiesce_daemon(struct MHD_Daemon *daemon)
{
    (void)daemon;
    return MHD_INVALID_SOCKET;
}

void MHD_stop_daemon(struct MHD_Daemon *daemon)
{
    free(daemon);
}

const char *MHD_get_reason_phrase_for(unsigned status)
{
    return status == MHD_HTTP_OK ? "OK" : NULL;
}

/* ---- A connection ---- */

const union MHD_ConnectionInfo *MHD_get_connection_info(struct MHD_Connection *connection,
                                                        enum MHD_ConnectionInfoType type, ...)
{
    if (type == MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE)
        return NULL;
    return type == MHD_CONNECTION_INFO_SOCKET_CONTEXT ? &connection->known : &connection->fd;
}

enum MHD_Result MHD_set_connection_option(struct MHD_Connection *connection,
                                          enum MHD_CONNECTION_OPTION option, ...)
{
    (void)connection;
    (void)option;
    return MHD_YES;
}

void MHD_suspend_connection(struct MHD_Connection *connection)
{
    pthread_mutex_lock(&turn.lock);
    REQUIRE(!connection->is_suspended);
    connection->is_suspended = true;
    pthread_mutex_unlock(&turn.lock);
}

void MHD_resume_connection(struct MHD_Connection *connection)
{
    pthread_mutex_lock(&turn.lock);
    REQUIRE(connection->is_suspended);
    connection->is_suspended = false;
    pthread_cond_signal(&turn.changed);
    pthread_mutex_unlock(&turn.lock);
}

const char *MHD_lookup_connection_value(struct MHD_Connection *connection, enum MHD_ValueKind kind,
                                        const char *key)
{
    (void)kind;
    for (uint32_t i = 0; i < connection->count; i++)
        if (strcasecmp(connection->names[i], key) == 0)
            return connection->values[i];
    return NULL;
}

int MHD_get_connection_values(struct MHD_Connection *connection, enum MHD_ValueKind kind,
                              MHD_KeyValueIterator iterator, void *context)
{
    for (uint32_t i = 0; i < connection->count; i++)
        if (iterator(context, kind, connection->names[i], connection->values[i]) == MHD_NO)
            break;
    return (int)connection->count;
}

/* ---- A response ---- */

struct MHD_Response *MHD_create_response_from_buffer(size_t size, void *buffer,
                                                     enum MHD_ResponseMemoryMode mode)
{
    struct MHD_Response *response = calloc(1, sizeof *response);

    REQUIRE(response);
    REQUIRE(mode == MHD_RESPMEM_PERSISTENT);
    response->size = size;
    response->body = buffer;
    return response;
}

struct MHD_Response *MHD_create_response_from_callback(uint64_t size, size_t block,
                                                       MHD_ContentReaderCallback read,
                                                       void *context,
                                                       MHD_ContentReaderFreeCallback free_context)
{
    struct MHD_Response *response = calloc(1, sizeof *response);

    (void)block;
    REQUIRE(response && size == MHD_SIZE_UNKNOWN && !free_context);
    response->read = read;
    response->stream = context;
    return response;
}

enum MHD_Result MHD_add_response_header(struct MHD_Response *response, const char *header,
                                        const char *content)
{
    REQUIRE(header && content && !strpbrk(content, "\r\n"));
    if (strcasecmp(header, "Content-Type") == 0) {
        response->is_lines = strcmp(content, "application/x-ndjson") == 0;
        response->is_raw = !strstr(content, "json");
    }
    return MHD_YES;
}

void require_json(str body)
{
    struct scope scope;
    struct node *node;

    scope_init(&scope, &heap_libc, 4 * LIMIT_SCOPE);
    REQUIRE(node_read_json(&scope, body, &node) == PAWL_OK);
    scope_fini(&scope);
}

static void require_lines(str text)
{
    while (text.size > 0) {
        const char *end = memchr(text.data, '\n', text.size);

        REQUIRE(end);
        require_json((str){ text.data, (size_t)(end - text.data) });
        text = str_from(text, (size_t)(end - text.data) + 1);
    }
}

enum MHD_Result MHD_queue_response(struct MHD_Connection *connection, unsigned status,
                                   struct MHD_Response *response)
{
    REQUIRE(connection->status == 0);
    REQUIRE(status >= 200 && status < 600 && status != 500);
    if (response->is_lines)
        require_lines((str){ response->body, response->size });
    else if (!response->is_raw && response->size > 0)
        require_json((str){ response->body, response->size });
    connection->status = status;
    connection->answer = *response;
    return MHD_YES;
}

void MHD_destroy_response(struct MHD_Response *response)
{
    free(response);
}
