/* stream.c - one stream: what it sends when the daemon asks, and when it is put to sleep. */
#include "surface/http/stream_int.h"
#include <stdlib.h>
#include <sys/socket.h>

#define STREAM_BLOCK  512        /* the daemon's buffer where it cannot send chunks */
#define STREAM_KERNEL (16 << 10) /* bytes that the kernel buffers for a client that does not read */

/* ---- What comes next ---- */

/* The next entry of the window that this stream wants; false: none, or it has left the window. */
static bool look_in_window(struct stream *stream)
{
    const struct hub *hub = stream->hub;

    ASSERT_HOLDS(&stream->hub->lock);
    if (stream->is_behind || stream->next_number >= hub->end_number)
        return false;
    if (stream->next_number < hub->first_number) {
        stream->is_behind = true;
        return false;
    }
    while (stream->next_number < hub->end_number) {
        struct piece *piece = window_find(hub, stream->next_number++);

        if (piece->position <= stream->at.at[piece->shard])
            continue;
        stream->at.at[piece->shard] = piece->position;
        if ((stream->instance && stream->instance != piece->instance))
            continue;
        piece->references++;
        stream->piece = piece;
        stream->offset = 0;
        return true;
    }
    return false;
}

static size_t copy_piece(struct stream *stream, char *out, size_t size)
{
    size_t left = stream->piece->size - stream->offset;

    size = size < left ? size : left;
    memcpy(out, stream->piece->text + stream->offset, size);
    stream->offset += size;
    if (stream->offset == stream->piece->size) {
        piece_release(stream->piece);
        stream->piece = NULL;
    }
    return size;
}

/* A comment with the stream's position: a client that has seen no event yet can resume, too. Sent
 * as a piece, since a cursor may be longer than the room there is. */
static void make_beat(struct stream *stream)
{
    struct buf text;

    buf_init(&text, &heap_libc, SHARD_VECTOR_TEXT + 16);
    buf_str(&text, STR(":\nid: "));
    event_cursor_print(&stream->at, &text);
    buf_str(&text, STR("\n\n"));
    stream->piece = piece_new(&text); /* NULL: the next beat comes in its time */
    stream->offset = 0;
    stream->wants_beat = false;
    buf_fini(&text);
}

static size_t fill(struct stream *stream, char *out, size_t size)
{
    size_t used = 0;

    while (used < size && (stream->piece || look_in_window(stream)))
        used += copy_piece(stream, out + used, size - used);
    if (used == 0 && stream->wants_beat)
        make_beat(stream);
    if (used == 0 && stream->piece)
        used = copy_piece(stream, out, size);
    if (used > 0) {
        stream->wants_beat = false;
        stream->quiet_s = 0;
    }
    return used;
}

static void sleep_until_there_is_more(struct stream *stream)
{
    struct hub *hub = stream->hub;

    if (stream->is_behind)
        stream_move(stream, &hub->waiting);
    else if (stream->instance)
        stream_move(stream, &hub->idle_of[stream->instance % HUB_BUCKETS]);
    else
        stream_move(stream, &hub->idle);
    stream->is_suspended = true;
    MHD_suspend_connection(stream->connection);
    if (stream->is_behind)
        hub_wake(hub);
}

static ssize_t read_stream(void *context, uint64_t offset, char *out, size_t size)
{
    struct stream *stream = context;
    struct hub *hub = stream->hub;
    ssize_t given;

    (void)offset;
    guard_lock(&hub->lock);
    given = (ssize_t)fill(stream, out, size);
    atomic_fetch_add(&hub->sent_bytes, (uint64_t)given);
    if (given == 0 && (stream->has_ended || atomic_load(&hub->is_stopping)))
        given = MHD_CONTENT_READER_END_OF_STREAM;
    else if (given == 0)
        sleep_until_there_is_more(stream);
    guard_unlock(&hub->lock);
    return given;
}

/* ---- Beginning and ending ---- */

/* A stream that begins where the hub stands follows the window; any other is behind, also one that
 * begins where the hub has not come to yet: it reads on when the hub is there. While there was no
 * stream the hub did not read: it goes on from the end of the log. */
struct stream *stream_begin(struct hub *hub, struct MHD_Connection *connection,
                            const struct op_stream *from)
{
    struct stream *stream =
        calloc(1, offsetof(struct stream, at) + vector_size(from->after->count));
    uint8_t random[ID_RANDOM_SIZE];
    int kernel = STREAM_KERNEL;

    if (!stream)
        return NULL;
    stream->hub = hub;
    stream->connection = connection;
    vector_copy(&stream->at, from->after);
    stream->wants_beat = true; /* so that a client sees at once that the stream is open */
    memcpy(stream->id, from->instance, sizeof stream->id);
    if (stream->id[0])
        id_parse(str_of(stream->id), &stream->instance, random);
    setsockopt(connection_fd(connection), SOL_SOCKET, SO_SNDBUF, &kernel, sizeof kernel);
    MHD_set_connection_option(connection, MHD_CONNECTION_OPTION_TIMEOUT, STALL_SECONDS);
    guard_lock(&hub->lock);
    op_count_streams(hub->p, 1);
    if (atomic_fetch_add(&hub->stream_count, 1) == 0)
        events_end(hub->p, &hub->at);
    stream->is_behind =
        !vector_reaches(&stream->at, &hub->at) || !vector_reaches(&hub->at, &stream->at);
    stream->next_number = hub->end_number;
    stream_move(stream, &hub->busy);
    guard_unlock(&hub->lock);
    return stream;
}

void stream_end(struct stream *stream)
{
    struct hub *hub;

    if (!stream)
        return;
    hub = stream->hub;
    guard_lock(&hub->lock);
    stream_move(stream, NULL);
    piece_release(stream->piece);
    atomic_fetch_sub(&hub->stream_count, 1);
    op_count_streams(hub->p, -1);
    guard_unlock(&hub->lock);
    free(stream);
}

struct MHD_Response *stream_response(struct stream *stream)
{
    return MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, STREAM_BLOCK, read_stream, stream,
                                             NULL);
}
