/* stdio.c - one message a line. What may wait has a thread of its own; lines are written whole. */
#include "surface/mcp/mcp_int.h"
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <unistd.h>

#define THREADS_MAX   64u
#define WRITE_WAIT_MS 1000

struct channel {
    struct mcp_server *server;
    int out;
    struct guard lock; /* of what follows, and of each line */
    pthread_cond_t idle;
    uint32_t threads;
    struct session *session; /* of the legacy era; NULL before initialize */
    bool has_stream;
    atomic_bool is_closed; /* the client no longer reads; the reader looks without the lock */
};

/* ---- Writing ---- */

/* A client that takes nothing while we stop is given up. */
static bool write_some(struct channel *channel, str *text)
{
    struct pollfd room = { .fd = channel->out, .events = POLLOUT };
    ssize_t size;

    if (poll(&room, 1, WRITE_WAIT_MS) == 0)
        return !atomic_load(&channel->server->is_stopping);
    size = write(channel->out, text->data, text->size);
    if (size < 0)
        return errno == EAGAIN || errno == EINTR;
    *text = str_from(*text, (size_t)size);
    return true;
}

static void put(void *context, str text)
{
    struct channel *channel = context;

    if (text.size == 0)
        return;
    guard_lock(&channel->lock);
    while (text.size > 0 && !channel->is_closed)
        channel->is_closed = !write_some(channel, &text);
    guard_unlock(&channel->lock);
}

static void put_error(struct channel *channel, struct rpc_exchange *exchange)
{
    struct buf line;

    buf_init(&line, &heap_libc, LIMIT_TEXT);
    error_print(exchange, &line);
    buf_byte(&line, '\n');
    put(channel, buf_view(&line));
    buf_fini(&line);
}

/* ---- Batches ---- */

static void join_session(struct channel *channel, struct rpc_exchange *exchange)
{
    if (!channel->session)
        return;
    guard_lock(&channel->server->lock);
    channel->session->references++;
    guard_unlock(&channel->server->lock);
    exchange->session = channel->session;
}

/* 2025-03-26 alone has batches, behind its initialize. */
static bool may_batch(const struct channel *channel, const struct rpc_exchange *exchange)
{
    return channel->session && channel->session->version == MCP_2025_03_26 &&
           exchange->message->count > 0 && exchange->message->count <= RPC_BATCH_MAX;
}

/* The answers are one line, once all are there. */
static void run_batch(struct channel *channel, struct rpc_exchange *batch)
{
    struct node *next;
    struct buf line;

    buf_init(&line, &heap_libc, LIMIT_SCOPE);
    json_open(&line, '[');
    for (struct node *message = batch->message->first; message; message = next) {
        struct rpc_exchange *one = exchange_new(channel->server, OVER_STDIO);

        next = message->next;
        if (!one)
            continue;
        join_session(channel, one);
        exchange_in_batch(one, message, &line);
        exchange_free(one);
    }
    json_close(&line, ']');
    buf_byte(&line, '\n');
    if (!str_is(buf_view(&line), "[]\n"))
        put(channel, buf_view(&line));
    buf_fini(&line);
}

/* ---- Threads ---- */

struct stdio_job {
    struct channel *channel;
    struct rpc_exchange *exchange;
};

static void *job_thread(void *context)
{
    struct stdio_job job = *(struct stdio_job *)context;

    free(context);
    if (job.exchange->message && job.exchange->message->kind == NODE_ARRAY)
        run_batch(job.channel, job.exchange);
    else
        exchange_finish(job.exchange, put, job.channel);
    exchange_free(job.exchange);
    guard_lock(&job.channel->lock);
    job.channel->threads--;
    pthread_cond_broadcast(&job.channel->idle);
    guard_unlock(&job.channel->lock);
    return NULL;
}

/* False: there are too many, or no memory. */
static bool start_thread(struct channel *channel, struct rpc_exchange *exchange)
{
    struct stdio_job *job = malloc(sizeof *job);
    pthread_t thread;
    bool is_free;

    guard_lock(&channel->lock);
    is_free = channel->threads < THREADS_MAX;
    channel->threads += is_free;
    guard_unlock(&channel->lock);
    if (job)
        *job = (struct stdio_job){ channel, exchange };
    if (job && is_free && pthread_create(&thread, NULL, job_thread, job) == 0) {
        pthread_detach(thread);
        return true;
    }
    free(job);
    guard_lock(&channel->lock);
    channel->threads -= is_free;
    guard_unlock(&channel->lock);
    return false;
}

static void wait_for_threads(struct channel *channel)
{
    guard_lock(&channel->lock);
    while (channel->threads > 0)
        guard_wait(&channel->lock, &channel->idle);
    guard_unlock(&channel->lock);
}

/* ---- Messages ---- */

static bool may_wait(const struct rpc_exchange *exchange)
{
    static const char *const names[] = { "tools/call", "tasks/result", "subscriptions/listen",
                                         NULL };

    return str_is_one_of(exchange->method_name, names);
}

/* A legacy client gets what it has subscribed to from now on. */
static void begin_stream(struct channel *channel)
{
    struct rpc_exchange *stream;

    if (channel->has_stream || !channel->session)
        return;
    stream = exchange_new(channel->server, OVER_STDIO);
    if (!stream)
        return;
    join_session(channel, stream);
    stream->version = channel->session->version;
    stream->method = &stream_method;
    channel->has_stream = start_thread(channel, stream);
    if (!channel->has_stream)
        exchange_free(stream);
}

static void take_notification(struct channel *channel, struct rpc_exchange *exchange)
{
    if (str_is(exchange->method_name, "notifications/cancelled"))
        exchange_cancelled(exchange);
    else if (str_is(exchange->method_name, "notifications/initialized"))
        begin_stream(channel);
}

static void run_here(struct channel *channel, struct rpc_exchange *exchange)
{
    exchange_finish(exchange, put, channel);
    if (exchange->session && !channel->session) {
        guard_lock(&channel->server->lock);
        exchange->session->references++;
        guard_unlock(&channel->server->lock);
        channel->session = exchange->session;
    }
}

/* True: the exchange is a thread's, which may wait. */
static bool handle_later(struct channel *channel, struct rpc_exchange *exchange)
{
    if (start_thread(channel, exchange))
        return true;
    rpc_fail(exchange, RPC_INTERNAL, "%u requests are under way already; try later", THREADS_MAX);
    put_error(channel, exchange);
    return false;
}

/* True: the exchange is a thread's. */
static bool handle(struct channel *channel, struct rpc_exchange *exchange, str line)
{
    bool is_right = message_read(exchange, line);

    if (is_right && exchange->message->kind == NODE_ARRAY) {
        if (may_batch(channel, exchange))
            return handle_later(channel, exchange);
        rpc_fail(exchange, RPC_REQUEST, "expected one message, found a batch");
        is_right = false;
    }
    join_session(channel, exchange);
    if (!is_right || !era_enter(exchange)) {
        if (exchange->id.data || !exchange->method_name.data)
            put_error(channel, exchange);
        return false;
    }
    if (!exchange->method_name.data) {
        exchange_answered(exchange);
    } else if (!exchange->id.data) {
        take_notification(channel, exchange);
    } else if (!may_wait(exchange)) {
        run_here(channel, exchange);
    } else {
        return handle_later(channel, exchange);
    }
    return false;
}

static void take_line(struct channel *channel, str line)
{
    struct rpc_exchange *exchange;

    line = str_trim(line, " \t\r");
    if (line.size == 0)
        return;
    exchange = exchange_new(channel->server, OVER_STDIO);
    if (exchange && !handle(channel, exchange, line))
        exchange_free(exchange);
}

/* ---- Reading ---- */

struct reader {
    struct buf line;
    bool is_skipping; /* the rest of a line that is too long */
};

static void refuse_long(struct channel *channel)
{
    struct rpc_exchange *exchange = exchange_new(channel->server, OVER_STDIO);

    if (!exchange)
        return;
    rpc_fail(exchange, RPC_REQUEST, "a message: expected at most %u bytes", LIMIT_TEXT);
    put_error(channel, exchange);
    exchange_free(exchange);
}

static void take_bytes(struct channel *channel, struct reader *reader, str bytes)
{
    while (bytes.size > 0) {
        str piece = str_before(bytes, '\n');
        bool ends = piece.size < bytes.size;

        bytes = str_from(bytes, piece.size + ends);
        if (!reader->is_skipping && reader->line.size + piece.size > LIMIT_TEXT) {
            reader->is_skipping = true;
            refuse_long(channel);
        }
        if (!reader->is_skipping)
            buf_str(&reader->line, piece);
        if (!ends)
            continue;
        if (!reader->is_skipping && !reader->line.failed)
            take_line(channel, buf_view(&reader->line));
        buf_clear(&reader->line);
        reader->is_skipping = false;
    }
}

static void read_all(struct channel *channel, int in, int stop)
{
    struct pollfd wait[2] = { { .fd = in, .events = POLLIN }, { .fd = stop, .events = POLLIN } };
    struct reader reader = { .is_skipping = false };
    char block[16 << 10];
    ssize_t size = 1;

    buf_init(&reader.line, &heap_libc, LIMIT_TEXT + 1);
    while (size > 0 && !channel->is_closed) {
        if (poll(wait, 2, -1) < 0 && errno != EINTR)
            break;
        if (wait[1].revents)
            break;
        if (!wait[0].revents)
            continue;
        size = read(in, block, sizeof block);
        if (size > 0)
            take_bytes(channel, &reader, (str){ block, (size_t)size });
        else if (size < 0 && (errno == EINTR || errno == EAGAIN))
            size = 1;
    }
    buf_fini(&reader.line);
}

void mcp_serve_stdio(struct mcp_server *server, int in, int out, int stop)
{
    struct channel channel = { .server = server, .out = out };

    guard_init(&channel.lock);
    pthread_cond_init(&channel.idle, NULL);
    read_all(&channel, in, stop);
    mcp_end_streams(server);
    wait_for_threads(&channel);
    session_leave(server, channel.session);
    pthread_cond_destroy(&channel.idle);
    guard_fini(&channel.lock);
}
