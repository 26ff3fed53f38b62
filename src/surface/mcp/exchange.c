/* exchange.c - one request: turns of its method until it is answered, and what goes out
 * meanwhile. */
#include "api/world.h"
#include "surface/mcp/mcp_int.h"
#include <stdio.h>
#include <stdlib.h>

#define BEAT_MS 15000 /* of silence before a comment is sent on a stream */

int64_t tick_ms(const struct mcp_server *server)
{
    return world_tick_us(server->p) / 1000;
}

/* ---- Beginning and ending ---- */

static pawl_status read_piece(struct op_pieces *pieces, struct scope *scope, struct buf *out,
                              bool *is_last)
{
    struct rpc_exchange *exchange = (struct rpc_exchange *)pieces;

    (void)scope;
    if (!exchange->is_done)
        exchange_run(exchange);
    exchange_take(exchange, out);
    *is_last = exchange->is_done;
    return PAWL_OK;
}

static void close_pieces(struct op_pieces *pieces)
{
    exchange_free((struct rpc_exchange *)pieces);
}

static bool begin_turn(struct rpc_exchange *exchange)
{
    if (exchange->turn)
        return true;
    exchange->turn = calloc(1, sizeof *exchange->turn);
    if (exchange->turn)
        scope_init(&exchange->turn->work, &heap_libc, LIMIT_SCOPE);
    return exchange->turn != NULL;
}

static void end_turn(struct rpc_exchange *exchange)
{
    if (exchange->turn)
        scope_fini(&exchange->turn->work);
    free(exchange->turn);
    exchange->turn = NULL;
}

struct rpc_exchange *exchange_new(struct mcp_server *server, enum transport transport)
{
    struct rpc_exchange *exchange = calloc(1, sizeof *exchange);

    if (!exchange)
        return NULL;
    exchange->pieces = (struct op_pieces){ read_piece, close_pieces, exchange_sleep };
    exchange->server = server;
    exchange->transport = transport;
    arena_init_small(&exchange->arena, &heap_libc, LIMIT_SCOPE);
    buf_init(&exchange->meta_out, &heap_libc, LIMIT_TEXT);
    buf_init(&exchange->out, &heap_libc, LIMIT_SCOPE);
    buf_init(&exchange->answer, &heap_libc, LIMIT_SCOPE);
    buf_init(&exchange->under_way_out, &heap_libc, LIMIT_SCOPE);
    exchange->http_status = 200;
    if (begin_turn(exchange))
        return exchange;
    exchange_free(exchange);
    return NULL;
}

void exchange_free(struct rpc_exchange *exchange)
{
    if (!exchange)
        return;
    watcher_leave(exchange);
    session_leave(exchange->server, exchange->session);
    free((void *)(uintptr_t)exchange->reply_text);
    buf_fini(&exchange->meta_out);
    buf_fini(&exchange->out);
    buf_fini(&exchange->answer);
    buf_fini(&exchange->under_way_out);
    end_turn(exchange);
    arena_fini(&exchange->arena);
    free(exchange);
}

pawl_status exchange_read(struct rpc_exchange *exchange,
                          pawl_status (*read)(struct scope *scope, str text, struct node **out),
                          str text, struct node **out)
{
    struct arena *work = &exchange->turn->work.arena, own = *work;
    pawl_status status;

    *work = exchange->arena;
    status = read(&exchange->turn->work, text, out);
    exchange->arena = *work;
    *work = own;
    return status;
}

pawl_status exchange_settle(struct rpc_exchange *exchange, struct arena *message)
{
    struct op_principal who = exchange->who;

    *message = exchange->arena;
    arena_init_small(&exchange->arena, &heap_libc, LIMIT_SCOPE);
    exchange->id = arena_str(&exchange->arena, exchange->id);
    exchange->message = exchange->params = NULL;
    exchange->meta = NULL;
    exchange->progress_token = exchange->method_name = exchange->turn->work.trace = STR_NONE;
    TRY(caller_keep(exchange, &who));
    TRY_MEMORY(&exchange->turn->work, exchange->id.data);
    return PAWL_OK;
}

/* ---- What goes out ---- */

/* In whole seconds: those of thousands of streams are due together. */
static void note_beat(struct rpc_exchange *exchange)
{
    exchange->beat_ms = (tick_ms(exchange->server) + BEAT_MS + 999) / 1000 * 1000;
}

static void put_framed(struct rpc_exchange *exchange, str message)
{
    if (exchange->is_deaf)
        return;
    if (exchange->transport == OVER_HTTP)
        buf_str(&exchange->out, STR("event: message\ndata: "));
    buf_str(&exchange->out, message);
    buf_str(&exchange->out, exchange->transport == OVER_HTTP ? STR("\n\n") : STR("\n"));
    note_beat(exchange);
}

void exchange_notify(struct rpc_exchange *exchange, const char *method, str params)
{
    struct buf message;

    exchange->is_stream = true;
    buf_init(&message, &heap_libc, LIMIT_SCOPE);
    buf_fmt(&message, "{\"jsonrpc\":\"2.0\",\"method\":\"%s\",\"params\":{", method);
    buf_str(&message, params);
    buf_str(&message, STR("}}"));
    if (!message.failed)
        put_framed(exchange, buf_view(&message));
    buf_fini(&message);
}

void exchange_ask(struct rpc_exchange *exchange, const char *method, str params)
{
    struct buf message;

    exchange->is_stream = true;
    guard_lock(&exchange->server->lock);
    exchange->asked = ++exchange->server->asked;
    exchange->reply = STR_NONE;
    guard_unlock(&exchange->server->lock);
    buf_init(&message, &heap_libc, LIMIT_SCOPE);
    buf_fmt(&message, "{\"jsonrpc\":\"2.0\",\"id\":\"pawl-%llu\",\"method\":\"%s\",\"params\":{",
            (unsigned long long)exchange->asked, method);
    buf_str(&message, params);
    buf_str(&message, STR("}}"));
    if (!message.failed)
        put_framed(exchange, buf_view(&message));
    buf_fini(&message);
}

void exchange_progress(struct rpc_exchange *exchange, uint64_t done, uint64_t total, str words)
{
    struct buf params;

    if (!exchange->progress_token.data || (exchange->progress && done <= exchange->progress))
        return;
    exchange->progress = done;
    buf_init(&params, &heap_libc, LIMIT_TEXT);
    json_put_raw(&params, "progressToken", exchange->progress_token);
    json_put_u64(&params, "progress", done);
    json_opt_u64(&params, "total", total);
    json_opt_str(&params, "message", words);
    exchange_notify(exchange, "notifications/progress", buf_view(&params));
    buf_fini(&params);
}

void exchange_take(struct rpc_exchange *exchange, struct buf *out)
{
    if (exchange->out.size == 0 && !exchange->is_done && exchange->transport == OVER_HTTP &&
        exchange->beat_ms && tick_ms(exchange->server) >= exchange->beat_ms) {
        buf_str(out, STR(":\n\n"));
        note_beat(exchange);
    }
    if (exchange->is_done && exchange->answer.size > 0) {
        put_framed(exchange, buf_view(&exchange->answer));
        buf_clear(&exchange->answer);
    }
    buf_str(out, buf_view(&exchange->out));
    buf_fini(&exchange->out); /* of a stream that may be silent for days */
    buf_init(&exchange->out, &heap_libc, LIMIT_SCOPE);
}

/* ---- Turns ---- */

static void put_server_info(struct buf *out)
{
    json_put_raw(out, META_PREFIX "serverInfo",
                 STR("{\"name\":\"pawl\",\"version\":\"" PAWL_VERSION "\"}"));
}

static void print_result(struct rpc_exchange *exchange, struct buf *members)
{
    struct buf *out = &exchange->answer;
    bool modern = is_modern(exchange->version);

    json_open(out, '{');
    json_put_text(out, "jsonrpc", "2.0");
    json_put_raw(out, "id", exchange->id);
    json_put_open(out, "result", '{');
    if (modern)
        json_put_text(out, "resultType",
                      exchange->result_type ? exchange->result_type : "complete");
    if (members->size > 0) {
        if (modern)
            buf_byte(out, ',');
        buf_str(out, buf_view(members));
    }
    if (modern || exchange->meta_out.size > 0) {
        json_put_open(out, "_meta", '{');
        if (modern)
            put_server_info(out);
        if (modern && exchange->meta_out.size > 0)
            buf_byte(out, ',');
        buf_str(out, buf_view(&exchange->meta_out));
        json_close(out, '}');
    }
    buf_str(out, STR("}}"));
}

static void conclude(struct rpc_exchange *exchange, pawl_status status, struct buf *members)
{
    exchange->is_done = true;
    buf_clear(&exchange->answer);
    if (!exchange->id.data || exchange->is_deaf)
        return;
    if (status == PAWL_OK && !members->failed)
        print_result(exchange, members);
    if (status != PAWL_OK || members->failed || exchange->answer.failed) {
        if (!exchange->turn->error.code)
            rpc_fail_as(exchange, status == PAWL_OK ? PAWL_NO_MEMORY : status);
        buf_fini(&exchange->answer);
        buf_init(&exchange->answer, &heap_libc, LIMIT_SCOPE);
        error_print(exchange, &exchange->answer);
    }
}

/* What the client has answered lies on libc's heap until the exchange's own thread takes it. */
static void take_reply(struct rpc_exchange *exchange)
{
    guard_lock(&exchange->server->lock);
    if (exchange->reply_text) {
        exchange->reply =
            arena_str(&exchange->arena, (str){ exchange->reply_text, exchange->reply_size });
        free((void *)(uintptr_t)exchange->reply_text);
        exchange->reply_text = NULL;
    }
    guard_unlock(&exchange->server->lock);
}

/* The server stops. What was begun is durable, and goes on. */
static pawl_status end_early(struct rpc_exchange *exchange)
{
    if (exchange->ends_well)
        return PAWL_OK;
    return rpc_fail(exchange, RPC_INTERNAL, "the server is stopping%s%s",
                    exchange->instance[0] ? "; look again later at the process " : "",
                    exchange->instance);
}

/* It may wait for days, and thousands may: what a turn needed is let go. */
static void rest(struct rpc_exchange *exchange)
{
    watcher_join(exchange);
    end_turn(exchange);
}

void exchange_run(struct rpc_exchange *exchange)
{
    pawl_status status;
    struct buf members;

    if (exchange->is_done)
        return;
    if (!begin_turn(exchange)) { /* the client sees the connection end, and asks again */
        exchange->is_done = true;
        return;
    }
    if (exchange->is_known)
        take_reply(exchange);
    scope_clear(&exchange->turn->work);
    exchange->turn->work.trace = node_text(exchange->meta, "traceparent");
    exchange->waits = false;
    exchange->due_ms = 0;
    buf_init(&members, &heap_libc, LIMIT_SCOPE);
    status = exchange->is_deaf ? PAWL_OK : exchange->method->run(exchange, &members);
    if (exchange->under_way || exchange->needs_thread)
        ; /* it goes on later */
    else if (!exchange->waits || status != PAWL_OK || exchange->is_deaf)
        conclude(exchange, status, &members);
    else if (atomic_load(&exchange->server->is_stopping))
        conclude(exchange, end_early(exchange), &members);
    else
        rest(exchange);
    buf_fini(&members);
}

/* ---- On a thread that may not wait ---- */

void exchange_start(struct rpc_exchange *exchange, const struct waiter *waiter)
{
    exchange->waiter = waiter;
    exchange_run(exchange);
    exchange->waiter = NULL;
}

bool exchange_go_on(struct rpc_exchange *exchange, bool is_stopping)
{
    struct op_answer answer;
    struct buf members;
    pawl_status status;
    bool waits;

    if (!exchange->under_way) {
        exchange->needs_thread = false;
        exchange_run(exchange);
        return false;
    }
    status = op_go_on(exchange->under_way, is_stopping, &exchange->under_way_out, &answer, &waits);
    if (waits)
        return true;
    exchange->under_way = NULL;
    buf_init(&members, &heap_libc, LIMIT_SCOPE);
    status = manage_end(exchange, status, &exchange->under_way_out, &members);
    conclude(exchange, status, &members);
    buf_fini(&members);
    return false;
}

/* ---- Waiting ---- */

void exchange_follow(struct rpc_exchange *exchange, struct mcp_watch *watch, uint64_t instance)
{
    watch->exchange = exchange;
    watch->instance = instance;
    watch->more = exchange->watches;
    exchange->watches = watch;
}

void exchange_watch(struct rpc_exchange *exchange, str instance)
{
    uint8_t random[ID_RANDOM_SIZE];
    uint64_t number;

    if (exchange->own.instance || instance.size != ID_SIZE || !id_parse(instance, &number, random))
        return;
    memcpy(exchange->instance, instance.data, ID_SIZE);
    exchange_follow(exchange, &exchange->own, number);
    watcher_join(exchange);
}

void exchange_follow_lists(struct rpc_exchange *exchange)
{
    exchange->follows_lists = true;
    watcher_join(exchange);
    look_at_definitions(exchange->server);
}

void exchange_wait(struct rpc_exchange *exchange, int64_t most_ms)
{
    exchange->waits = true;
    exchange->due_ms = most_ms > 0 ? tick_ms(exchange->server) + most_ms : 0;
}

bool exchange_is_late(struct rpc_exchange *exchange)
{
    return exchange->give_up_ms && tick_ms(exchange->server) >= exchange->give_up_ms;
}

/* When it is to be woken even if nothing happens. */
static void note_due(struct rpc_exchange *exchange)
{
    struct mcp_server *server = exchange->server;
    int64_t due = exchange->due_ms;

    if (exchange->transport == OVER_HTTP) {
        if (!exchange->beat_ms)
            note_beat(exchange);
        due = !due || exchange->beat_ms < due ? exchange->beat_ms : due;
    }
    exchange->due_ms = due;
    if (due && (!server->due_ms || due < server->due_ms)) {
        server->due_ms = due;
        watcher_wake(server);
    }
}

bool exchange_sleep(struct op_pieces *pieces, void (*wake)(void *context), void *context)
{
    struct rpc_exchange *exchange = (struct rpc_exchange *)pieces;
    struct mcp_server *server = exchange->server;
    bool sleeps;

    guard_lock(&server->lock);
    sleeps = !exchange->is_woken && !atomic_load(&server->is_stopping);
    exchange->is_woken = false;
    if (sleeps) {
        exchange->wake = wake;
        exchange->wake_context = context;
        exchange->is_asleep = true;
        note_due(exchange);
    }
    guard_unlock(&server->lock);
    return sleeps;
}

/* ---- In this thread ---- */

struct napping {
    pthread_mutex_t lock;
    pthread_cond_t woken;
    bool is_woken;
};

static void end_nap(void *context)
{
    struct napping *nap = context;

    pthread_mutex_lock(&nap->lock);
    nap->is_woken = true;
    pthread_cond_signal(&nap->woken);
    pthread_mutex_unlock(&nap->lock);
}

static void take_nap(struct rpc_exchange *exchange, struct napping *nap)
{
    nap->is_woken = false;
    if (!exchange_sleep(&exchange->pieces, end_nap, nap))
        return;
    pthread_mutex_lock(&nap->lock);
    while (!nap->is_woken)
        pthread_cond_wait(&nap->woken, &nap->lock);
    pthread_mutex_unlock(&nap->lock);
}

void exchange_finish(struct rpc_exchange *exchange, void (*put)(void *context, str text),
                     void *context)
{
    struct napping nap = { .lock = PTHREAD_MUTEX_INITIALIZER, .woken = PTHREAD_COND_INITIALIZER };
    struct buf text;

    buf_init(&text, &heap_libc, LIMIT_SCOPE);
    while (!exchange->is_done) {
        exchange_run(exchange);
        if (put && !exchange->is_done) {
            exchange_take(exchange, &text);
            put(context, buf_view(&text));
            buf_clear(&text);
        }
        if (!exchange->is_done)
            take_nap(exchange, &nap);
    }
    if (put) {
        exchange_take(exchange, &text);
        put(context, buf_view(&text));
    }
    buf_fini(&text);
    pthread_mutex_destroy(&nap.lock);
    pthread_cond_destroy(&nap.woken);
}

void exchange_refused_in_batch(struct rpc_exchange *exchange, struct buf *out)
{
    json_raw(out, STR("")); /* a comma, where one is needed */
    error_print(exchange, out);
}

void exchange_in_batch(struct rpc_exchange *exchange, struct node *message, struct buf *out)
{
    if (!message_take(exchange, message) || !era_enter(exchange)) {
        exchange_refused_in_batch(exchange, out);
    } else if (!exchange->method_name.data) {
        exchange_answered(exchange);
    } else if (exchange->id.data) {
        exchange_finish(exchange, NULL, NULL);
        json_raw(out, buf_view(&exchange->answer));
    } else if (str_is(exchange->method_name, "notifications/cancelled")) {
        exchange_cancelled(exchange);
    }
}
