/* stream_int.h - private to http: streams of entries, and the hub that feeds them.
 *
 * What holds, under hub->lock:
 *  (1) The window holds the entries up to hub->at, in the order in which the hub read them,
 *      numbered without gaps; those before first_number have left it.
 *  (2) A stream has been given every entry it wants up to stream->at, and none behind it; one that
 *      is not behind stands where the hub stood before next_number.
 *  (3) A stream that is not behind wants nothing of the window before next_number.
 *  (4) A stream is suspended if and only if it is on an idle list, or behind and waiting for a
 *      page; the thread that takes it off resumes it. */
#ifndef PAWL_SURFACE_HTTP_STREAM_INT_H
#define PAWL_SURFACE_HTTP_STREAM_INT_H

#include "api/events.h"
#include "surface/http/http_int.h"

#define WINDOW_EVENTS 1024u
#define WINDOW_BYTES  ((size_t)4 << 20)
#define PAGE_EVENTS   256u
#define PAGE_BYTES    ((size_t)256 << 10)
#define BEAT_SECONDS  15u /* of silence before a comment is sent */
#define STALL_SECONDS 30u /* a client that takes nothing for so long is dropped */
#define HUB_BUCKETS   1024u

/* Text to be sent, shared by all streams that send it. */
struct piece {
    uint32_t references;
    uint32_t shard;
    uint64_t position, instance; /* of its entry; of a page: 0 */
    size_t size;
    char text[];
};

struct stream_list {
    struct stream *first, *last;
};

struct stream {
    struct hub *hub;
    struct MHD_Connection *connection;
    struct stream_list *list; /* the one it is on */
    struct stream *next, *previous;
    uint64_t next_number;
    uint64_t instance; /* its number; 0: all */
    char id[ID_SIZE + 1];
    bool is_behind, is_suspended, has_ended, wants_beat;
    uint32_t quiet_s;
    struct piece *piece; /* being sent, from `offset` on */
    size_t offset;
    struct shard_vector at; /* last: no longer than there are shards */
};

struct hub {
    struct hub *next; /* of the stores beside the first */
    pawl *p;
    pthread_t thread;
    struct guard lock;
    void (*tick)(void *context, uint32_t seconds);
    void *tick_context;
    int wake; /* an eventfd */
    atomic_bool is_stopping;
    atomic_uint stream_count;
    struct shard_vector at, end;         /* end: of the log, when the thread looked last; its own */
    struct piece *window[WINDOW_EVENTS]; /* by number, modulo */
    uint64_t first_number, end_number;
    size_t window_bytes;
    _Atomic uint64_t sent_bytes;             /* to all streams */
    struct stream_list busy;                 /* sending, or about to */
    struct stream_list waiting;              /* behind: for a page */
    struct stream_list idle;                 /* of all entries, with nothing to send */
    struct stream_list idle_of[HUB_BUCKETS]; /* of one instance, by its number */
};

/* ---- hub.c ---- */

/* `tick` (may be NULL) is called every second, in real time. NULL: errno says why. */
struct hub *hub_start(pawl *p, void (*tick)(void *context, uint32_t seconds), void *context);
void hub_end_streams(
    struct hub *hub); /* each as soon as it has sent its piece; no new ones; NULL is allowed */
void hub_free(struct hub *hub); /* when there are no streams any more; NULL is allowed */

void hub_wake(struct hub *hub);
void stream_move(struct stream *stream, struct stream_list *to);
struct piece *window_find(const struct hub *hub, uint64_t number);
struct piece *piece_new(const struct buf *text); /* NULL: no memory */
void piece_release(struct piece *piece);

/* ---- stream.c ---- */

/* Begin to stream from where the operation said. NULL: no memory, or the server is stopping. */
struct stream *stream_begin(struct hub *hub, struct MHD_Connection *connection,
                            const struct op_stream *from);
void stream_end(struct stream *stream); /* its connection is gone; NULL is allowed */
struct MHD_Response *stream_response(struct stream *stream);

#endif
