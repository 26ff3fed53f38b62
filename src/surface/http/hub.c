/* hub.c - one thread reads what is new, once, and wakes the streams that want it. */
#include "api/world.h"
#include "surface/http/stream_int.h"
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define TICK_MS 1000

/* ---- Lists and waking ---- */

void stream_move(struct stream *stream, struct stream_list *to)
{
    ASSERT_HOLDS(&stream->hub->lock);
    if (stream->list) {
        *(stream->previous ? &stream->previous->next : &stream->list->first) = stream->next;
        *(stream->next ? &stream->next->previous : &stream->list->last) = stream->previous;
    }
    stream->list = to;
    stream->next = NULL;
    stream->previous = to ? to->last : NULL;
    if (!to)
        return;
    *(to->last ? &to->last->next : &to->first) = stream;
    to->last = stream;
}

static void stream_resume(struct stream *stream)
{
    stream_move(stream, &stream->hub->busy);
    if (!stream->is_suspended)
        return;
    stream->is_suspended = false;
    MHD_resume_connection(stream->connection);
}

static void resume_all(struct stream_list *list)
{
    while (list->first)
        stream_resume(list->first);
}

void hub_wake(struct hub *hub)
{
    wake_fd(hub->wake);
}

/* The engine calls this after a commit: it may not wait. */
static void on_commit(void *context, uint64_t position)
{
    struct hub *hub = context;

    (void)position;
    if (atomic_load(&hub->stream_count) > 0)
        hub_wake(hub);
}

/* ---- The window ---- */

void piece_release(struct piece *piece)
{
    if (piece && --piece->references == 0)
        free(piece);
}

struct piece *window_find(const struct hub *hub, uint64_t number)
{
    return hub->window[number % WINDOW_EVENTS];
}

static void window_shrink(struct hub *hub)
{
    struct piece **oldest = &hub->window[hub->first_number++ % WINDOW_EVENTS];

    hub->window_bytes -= (*oldest)->size;
    piece_release(*oldest);
    *oldest = NULL;
}

static void window_clear(struct hub *hub)
{
    while (hub->first_number < hub->end_number)
        window_shrink(hub);
}

/* Streams of its instance learn at which number their next entry is. */
static void window_add(struct hub *hub, struct piece *piece)
{
    struct stream *next, *stream = hub->idle_of[piece->instance % HUB_BUCKETS].first;

    ASSERT_HOLDS(&hub->lock);
    while (hub->end_number - hub->first_number == WINDOW_EVENTS ||
           (hub->first_number < hub->end_number && hub->window_bytes + piece->size > WINDOW_BYTES))
        window_shrink(hub);
    hub->window[hub->end_number % WINDOW_EVENTS] = piece;
    hub->window_bytes += piece->size;
    for (; stream; stream = next) {
        next = stream->next;
        if (stream->instance != piece->instance)
            continue;
        stream->next_number = hub->end_number;
        stream_resume(stream);
    }
    hub->end_number++;
}

/* ---- Entries become text ---- */

/* A payload is kept as it was supplied, line ends and all: each begins another data line. */
static void add_event(struct buf *out, const struct log_event *event)
{
    buf_str(out, STR("id: "));
    event_cursor_print(event->after, out);
    buf_fmt(out, "\nevent: %s\ndata: ", event->kind);
    for (size_t i = 0; i < event->json.size; i++) {
        char byte = event->json.data[i];

        if (byte == '\n' || byte == '\r')
            buf_str(out, STR("\ndata: "));
        else
            buf_byte(out, (unsigned char)byte);
    }
    buf_str(out, STR("\n\n"));
}

struct piece *piece_new(const struct buf *text)
{
    struct piece *piece = text->failed ? NULL : malloc(sizeof *piece + text->size);

    if (!piece)
        return NULL;
    *piece = (struct piece){ .references = 1, .size = text->size };
    memcpy(piece->text, text->data, text->size);
    return piece;
}

/* A stream of one instance has its entries alone. */
static pawl_status add_to_window(void *context, const struct log_event *event)
{
    struct hub *hub = context;
    bool is_entry = strcmp(event->kind, EVENT_ENTRY) == 0;
    struct piece *piece;
    struct buf text;

    buf_init(&text, &heap_libc, LIMIT_SCOPE);
    add_event(&text, event);
    piece = piece_new(&text);
    buf_fini(&text);
    if (!piece)
        return PAWL_NO_MEMORY;
    piece->shard = event->shard;
    piece->position = event->position;
    piece->instance = is_entry ? event->instance : 0;
    guard_lock(&hub->lock);
    window_add(hub, piece);
    hub->at.at[event->shard] = event->position;
    guard_unlock(&hub->lock);
    return PAWL_OK;
}

/* Read on to the end of the log. What fails now (the store is being reopened, memory is short)
 * is tried again with the next commit or tick: hub->at says how far it came. */
static bool follow_page(struct hub *hub, struct scope *scope)
{
    struct shard_vector at;
    bool has_more;
    pawl_status status;

    events_end(hub->p, &hub->end);
    guard_lock(&hub->lock);
    vector_copy(&at, &hub->at);
    has_more = atomic_load(&hub->stream_count) > 0 && !vector_reaches(&at, &hub->end);
    guard_unlock(&hub->lock);
    if (!has_more)
        return false;
    status = events_read(hub->p, scope, "", &at, &hub->end, PAGE_EVENTS, add_to_window, hub);
    guard_lock(&hub->lock);
    if (status == PAWL_OK)
        vector_copy(&hub->at, &at);
    resume_all(&hub->idle);
    guard_unlock(&hub->lock);
    return status == PAWL_OK;
}

static void follow(struct hub *hub)
{
    struct scope scope;

    scope_init(&scope, &heap_libc, LIMIT_SCOPE);
    while (follow_page(hub, &scope))
        scope_clear(&scope);
    scope_fini(&scope);
}

/* ---- Those behind ---- */

struct hub_page {
    struct buf text;
    struct shard_vector at, until; /* where the stream stands then; where the hub stood */
    uint64_t number;               /* the window's end there */
};

static pawl_status add_to_page(void *context, const struct log_event *event)
{
    struct hub_page *page = context;

    if (page->text.size > PAGE_BYTES)
        return PAWL_TOO_LARGE; /* enough for now; the caller does not report it */
    add_event(&page->text, event);
    return page->text.failed ? PAWL_NO_MEMORY : PAWL_OK;
}

/* Level with the window as it was when the page was begun: what follows comes from there. */
static void give_page(struct stream *stream, const struct hub_page *page, struct piece *piece)
{
    vector_copy(&stream->at, &page->at);
    if (vector_reaches(&page->at, &page->until)) {
        stream->is_behind = false;
        stream->next_number = page->number;
    }
    stream->piece = piece;
    stream->offset = 0;
    stream_resume(stream);
}

static void begin_page(struct hub *hub, const struct stream *stream, struct hub_page *page)
{
    buf_init(&page->text, &heap_libc, LIMIT_SCOPE);
    guard_lock(&hub->lock);
    vector_copy(&page->at, &stream->at);
    vector_copy(&page->until, &hub->at);
    page->number = hub->end_number;
    guard_unlock(&hub->lock);
}

/* One page for the stream that waits first. The lock is free while it is read: the stream cannot
 * go meanwhile, because it is suspended. */
static void serve_one_behind(struct hub *hub, struct stream *stream)
{
    struct piece *piece = NULL;
    struct hub_page page;
    struct scope scope;
    pawl_status status;

    begin_page(hub, stream, &page);
    scope_init(&scope, &heap_libc, LIMIT_SCOPE);
    status = events_read(hub->p, &scope, stream->id, &page.at, &page.until, PAGE_EVENTS,
                         add_to_page, &page);
    if (status == PAWL_TOO_LARGE && page.text.size > 0)
        status = PAWL_OK;
    if (status == PAWL_OK && page.text.size > 0 && !(piece = piece_new(&page.text)))
        status = PAWL_NO_MEMORY;
    guard_lock(&hub->lock);
    if (status == PAWL_OK)
        give_page(stream, &page, piece);
    else
        stream->has_ended = true, stream_resume(stream); /* it may resume by its cursor */
    guard_unlock(&hub->lock);
    scope_fini(&scope);
    buf_fini(&page.text);
}

static bool serve_behind(struct hub *hub)
{
    struct stream *stream;

    guard_lock(&hub->lock);
    stream = hub->waiting.first;
    guard_unlock(&hub->lock);
    if (stream)
        serve_one_behind(hub, stream);
    return stream != NULL;
}

/* ---- Heartbeats ---- */

static void age_list(struct hub *hub, struct stream_list *list, uint32_t seconds)
{
    struct stream *next, *stream = list->first;

    for (; stream; stream = next) {
        next = stream->next;
        stream->quiet_s += seconds;
        if (stream->quiet_s < BEAT_SECONDS)
            continue;
        stream->wants_beat = true;
        stream->next_number = hub->end_number; /* being idle, it wants nothing before */
        stream_resume(stream);
    }
}

static void age(struct hub *hub, uint32_t seconds)
{
    if (hub->tick)
        hub->tick(hub->tick_context, seconds);
    guard_lock(&hub->lock);
    age_list(hub, &hub->idle, seconds);
    for (uint32_t i = 0; i < HUB_BUCKETS; i++)
        age_list(hub, &hub->idle_of[i], seconds);
    if (atomic_load(&hub->stream_count) == 0)
        window_clear(hub);
    guard_unlock(&hub->lock);
}

/* ---- The thread ---- */

/* Seconds of real time: the store's clock may be a test's. */
static int64_t now_s(const struct hub *hub)
{
    return world_tick_us(hub->p) / 1000000;
}

static void *hub_thread(void *context)
{
    struct hub *hub = context;
    struct pollfd wake = { .fd = hub->wake, .events = POLLIN };
    int64_t aged_s = now_s(hub);
    bool has_more = false;
    uint64_t count;

    while (!atomic_load(&hub->is_stopping)) {
        int64_t now;

        if (poll(&wake, 1, has_more ? 0 : TICK_MS) > 0 && read(hub->wake, &count, sizeof count) < 0)
            continue;
        now = now_s(hub);
        if (now > aged_s)
            age(hub, (uint32_t)(now - aged_s));
        aged_s = now;
        follow(hub);
        has_more = serve_behind(hub);
    }
    return NULL;
}

struct hub *hub_start(pawl *p, void (*tick)(void *context, uint32_t seconds), void *context)
{
    struct hub *hub = calloc(1, sizeof *hub);

    if (!hub)
        return NULL;
    hub->p = p;
    events_end(p, &hub->at);
    hub->tick = tick;
    hub->tick_context = context;
    hub->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    guard_init(&hub->lock);
    if (hub->wake < 0 || (errno = pthread_create(&hub->thread, NULL, hub_thread, hub)) != 0) {
        hub_free(hub);
        return NULL;
    }
    events_watch(p, on_commit, hub);
    return hub;
}

/* The thread goes first: from then on nothing else looks at a stream that waits for a page. */
void hub_end_streams(struct hub *hub)
{
    if (!hub)
        return;
    events_watch(hub->p, NULL, hub);
    atomic_store(&hub->is_stopping, true);
    hub_wake(hub);
    pthread_join(hub->thread, NULL);
    guard_lock(&hub->lock);
    resume_all(&hub->waiting);
    resume_all(&hub->idle);
    for (uint32_t i = 0; i < HUB_BUCKETS; i++)
        resume_all(&hub->idle_of[i]);
    guard_unlock(&hub->lock);
}

void hub_free(struct hub *hub)
{
    if (!hub)
        return;
    window_clear(hub);
    if (hub->wake >= 0)
        close(hub->wake);
    guard_fini(&hub->lock);
    free(hub);
}
