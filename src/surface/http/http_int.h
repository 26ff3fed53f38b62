/* http_int.h - private to http: a request on its way from the wire to its answer. */
#ifndef PAWL_SURFACE_HTTP_HTTP_INT_H
#define PAWL_SURFACE_HTTP_HTTP_INT_H

#include "api/ops.h"
#include "base/figures.h"
#include "base/guard.h"
#include "base/limits.h"
#include "base/trace.h"
#include "surface/http/http.h"
#include <microhttpd.h>
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

#define ALLOW_SIZE         64
#define HTTP_PAIRS_MAX     64                 /* path and query parameters of one request */
#define HTTP_DRAIN_MAX     ((size_t)64 << 20) /* of a rejected body, so that the answer arrives */
#define HTTP_EARLY_MAX     ((size_t)64 << 10) /* of a body, before its sender is authenticated */
#define SHARED_STREAMS_MAX 256u       /* streams on connections that began with another request */
#define HTTP_CHUNKED       UINT64_MAX /* a body of unknown length */

struct hub;
struct http_server;
struct web_request;
struct stream;

#define HTTP_WORKERS 16u   /* of each reach (api/ops.h) */
#define WORK_MAX     1024u /* requests that may wait for a worker */

/* ---- work.c: threads for what has to be waited for ---- */

#define UNTIL_WOKEN INT64_MAX

struct work_list {
    struct web_request *first, *last;
};

struct work_queue {
    pawl *p; /* for its clock */
    struct guard lock;
    pthread_cond_t more;
    struct work_list requests, pieces; /* that begin or go on; the next piece of an answer */
    struct web_request *parked; /* without a thread; the first that gives up comes first */
    int64_t watched_ms; /* until then a thread waits for the time to pass; UNTIL_WOKEN: none does */
    uint32_t count;     /* of requests */
    uint32_t turns;     /* in which both lists had something */
    uint32_t thread_count;
    bool is_closing; /* requests are not parked any more */
    bool is_stopping;
    pthread_t threads[HTTP_WORKERS];
};

void work_init(struct work_queue *work, pawl *p);
bool work_start(struct work_queue *work); /* false: errno; work_stop() all the same */
void work_stop(struct work_queue *work);  /* what is queued is done first */
bool work_has_room(struct work_queue *work);
void work_add(struct work_queue *work, struct web_request *request);
/* Its threads come with the first request. False: there is no thread for it. */
bool work_add_lazily(struct work_queue *work, struct web_request *request);
/* Until it is woken, and no longer than this (0: however long it takes): then it is worked on.
 * It may have been woken before. */
void work_park(struct work_queue *work, struct web_request *request, int64_t for_ms);
/* Once for each time it is parked. */
void work_wake(struct work_queue *work, struct web_request *request);
/* Those that are parked, or would be from now on, are worked on at once. */
void work_close(struct work_queue *work);

/* ---- connections.c: connections and their patience ---- */

#define CONNECTIONS_SERVED_MAX 12000u /* more are `overloaded` */
#define FOREVER                0
#define IDLE_S                 120 /* between requests; the library's own limit as well */

/* What a connection is waiting for, and for how many seconds it may. */
#define PATIENCE_MAP(X)                                                                            \
    X(ANY, FOREVER)                                                                                \
    X(HEAD, 10)     /* a request's first byte on a new connection, and its head */                 \
    X(BODY, 60)     /* all of a request */                                                         \
    X(ANSWER, 300)  /* that the client takes the answer */                                         \
    X(PIECE, 60)    /* that it takes one piece of an answer that comes in pieces */                \
    X(IDLE, IDLE_S) /* the next request */                                                         \
    X(DRAIN, 10)    /* the rest of a rejected body */                                              \
    X(REJECTED, 2)  /* that the client closes a connection whose head was rejected */

enum patience {
#define X(name, seconds) PATIENCE_##name,
    PATIENCE_MAP(X)
#undef X
};

struct http_connection {
    struct http_connection *next, **link;
    int fd;
    _Atomic enum patience patience;
    atomic_int left_s;
    uint64_t acked_before; /* what the client's kernel had acknowledged when it was joined */
    struct op_given given; /* steps in the last answer, until the client is known to have read it */
    char *store;           /* whose they are */
    int64_t given_at_us;   /* when they were sent, by the tick */
};

struct http_connections {
    struct guard lock;
    struct http_connection *first;
    atomic_uint count;
    _Atomic uint64_t dropped; /* their time was up */
};

void connection_join(struct http_connections *all, struct http_connection *connection, int fd);
void connection_leave(struct http_connections *all, struct http_connection *connection);
void connection_wait(struct http_connection *connection, enum patience patience);
/* Steps that were sent to a worker with the last answer: a client that sends another request has
 * read it. */
void connection_gave(struct web_request *request);
void connection_asks(struct MHD_Connection *connection);
void connection_allow(struct MHD_Connection *connection, enum patience patience);
int connection_fd(struct MHD_Connection *connection); /* -1: it has none */
uint32_t connections_count(const struct http_server *server);
void connections_age(void *context, uint32_t seconds); /* every second, for all of the server */
void on_connection(void *context, struct MHD_Connection *connection, void **kept,
                   enum MHD_ConnectionNotificationCode code);

/* ---- acceptor.c: accepts connections, and picks the daemon that serves each ---- */

/* Connections that wait here are server->arrivals: for their first head, or, rejected, for their
 * end. When their patience is over they are shut down, and found closed. */
struct acceptor {
    struct http_server *server;
    int listener, epoll, stop_event;
    pthread_t thread;
};

/* When the daemons take connections. False: errno; the listener is still the caller's. */
bool acceptor_start(struct http_server *server, int listener);
void acceptor_stop(struct http_server *server); /* closes the listener */

/* ---- early.c: answers that the library cannot send ---- */

/* The rejection in request->status, written to a socket that has nothing else to send, after which
 * the connection is closed. False: not all of it was sent. */
bool reject_past(struct web_request *request, int fd);
enum MHD_Result reject_now(struct web_request *request); /* before the end of its body */
void reject_cut_short(struct web_request *request);      /* its client has closed its side */

/* ---- metrics.c: what is counted ---- */

#define OPS_MAX       128 /* rows of the table */
#define HTTP_STATUSES 600

#define HTTP_LIMIT_MAP(X)                                                                          \
    X(BODY, "body")                                                                                \
    X(BODIES, "bodies")                                                                            \
    X(WORK, "work")                                                                                \
    X(CONNECTIONS, "connections")                                                                  \
    X(TIME, "time")

enum http_limit {
#define X(name, text) HTTP_LIMIT_##name,
    HTTP_LIMIT_MAP(X)
#undef X
        HTTP_LIMITS
};

struct http_metrics {
    struct histogram operations[OPS_MAX]; /* by their place in the table */
    _Atomic uint64_t answers[HTTP_STATUSES];
    _Atomic uint64_t refused[HTTP_LIMITS];
};

/* ---- siblings.c: the stores beside the first ---- */

struct siblings {
    struct guard lock;
    struct hub *first;
    pthread_t thread;
    int stop_event; /* an eventfd */
    bool is_running;
};

struct http_server {
    pawl *p; /* the first store: `default` */
    struct siblings siblings;
    struct http_options options; /* as they were given */
    struct http_metrics metrics;
    uint64_t nonce; /* tells the requests of this server from those of others */
    _Atomic uint64_t request_count;
    struct http_connections connections; /* that the library serves */
    struct http_connections arrivals;    /* that wait in the acceptor */
    struct hub *hub;                     /* streams of entries */
    struct MHD_Daemon *daemon;
    struct MHD_Daemon *stream_daemon; /* one thread for connections that begin with a stream; NULL
                                         with TLS */
    atomic_uint shared_streams;       /* those that share a thread with requests */
    struct acceptor acceptor; /* not with TLS: there the library accepts connections itself */
    uint16_t port;
    bool needs_token;            /* it listens on more than loopback, or was asked to */
    _Atomic uint64_t body_bytes; /* kept of the bodies of all requests */
    struct work_queue work;      /* of what waits for no other node */
    struct work_queue farther[OP_REACHES]; /* the others, by reach; the first is not used */
    atomic_uint away;   /* requests whose connection is suspended while they are worked on */
    atomic_uint active; /* requests between their first byte and their last */
    atomic_bool is_stopping;
    int idle_event; /* an eventfd: written when the last active request ends */
};

/* Makes an eventfd readable. It is full only if its reader is awake already. */
static inline void wake_fd(int event)
{
    ssize_t written = write(event, &(uint64_t){ 1 }, sizeof(uint64_t));

    (void)written;
}

static inline bool is_tls(const struct http_server *server)
{
    return server->options.tls_cert != NULL;
}

#define REQUEST_ID_SIZE 65
#define TAG_SIZE        40

/* Away, it belongs to the worker or to the engine; else to the thread of its connection. */
enum request_stage { STAGE_COMING, STAGE_AWAY, STAGE_OPENED /* its store is */, STAGE_BACK };

/* A request that was started where it was read: does its connection have to be suspended? */
enum request_start { START_HERE, START_WOKEN, START_AWAY };

struct web_request {
    struct http_server *server;
    struct web_request *next; /* in the queue of work */
    enum request_stage stage;
    _Atomic int start; /* enum request_start */
    uint64_t number;
    int64_t begun_us;           /* when it had been read */
    char id[REQUEST_ID_SIZE];   /* the client's, or ours */
    char trace[TRACE_SIZE + 1]; /* ours; "": none */
    const struct op *op;        /* NULL until routed */
    bool is_mounted;            /* it is another surface's */
    str store;                  /* the name of the store that it is for; data NULL until routed */
    pawl *p;                    /* that store, in use until the request has ended; NULL: not yet */
    struct op_request call;
    struct op_signed by_node; /* header data NULL: no other node forwarded it */
    struct op_call running;
    bool is_set_up;      /* `running` is */
    enum op_reach reach; /* of the worker that has it, or will */
    bool is_waiting; /* it goes on when it is woken */
    bool goes_on;    /* it was woken before: from then on it is parked while it waits */
    struct waiter waiter;
    int64_t parked_until_ms; /* guarded by work.lock, as the next two */
    bool is_parked, is_woken;
    struct op_answer result;
    struct MHD_Connection *connection;
    char *target;    /* as it came: path and query, nothing decoded */
    char *authority; /* of a target that names one: it counts instead of Host; NULL: none */
    str method;
    struct scope scope;
    struct buf body, answer;
    bool has_begun;
    bool is_at_head;    /* only its head has been read */
    bool is_admitted;   /* its caller is authenticated, and may call this operation */
    bool is_whole;      /* its last byte has been read */
    bool is_discarding; /* rejected before its end: the rest is discarded */
    bool is_last;       /* the connection is closed after the answer */
    bool is_prepared;   /* the answer is tagged, and compressed if it shall be: */
    bool is_gzip;
    char tag[TAG_SIZE]; /* ETag; "": none */
    pawl_status status; /* how it went; before: a rejection that waits for the body's end */
    uint32_t body_limit;
    uint64_t length;        /* of the body, as its head says; HTTP_CHUNKED: it does not */
    size_t received;        /* bytes of the body, kept or not */
    size_t counted;         /* its share of server->body_bytes */
    bool is_reading_on;     /* its answer comes in pieces, and the next one is wanted */
    size_t sent;            /* of the present piece of an answer that comes in pieces */
    struct stream *stream;  /* what it has become; NULL: an ordinary answer */
    bool is_shared_stream;  /* and shares a thread with requests */
    char allow[ALLOW_SIZE]; /* the methods that its address takes, "" until routed */
};

/* ---- server.c, listen.c ---- */

/* Returns -1; `error` may be NULL. */
int http_fail(pawl_error *error, pawl_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

uint16_t socket_port(int listener);
bool socket_is_loopback(int listener);

/* ---- request.c: what came ---- */

#define HEAD_MAX       6000u /* bytes of the request line and the headers */
#define HEAD_TOO_LARGE "request line and headers: expected at most 6,000 bytes"

/* Look at the headers. *answer_now: the end of the body cannot be trusted, or its length says
 * too much to read it: answer at once and close. */
pawl_status request_check(struct web_request *request, bool *answer_now);

/* Decode %XX (and, in a query, '+') into the scope. INVALID_REQUEST unless it is UTF-8
 * without NUL. */
pawl_status url_decode(struct scope *scope, str text, bool is_query, str *out);

/* Is it a name of this machine, with any port or none? "localhost:80", "[::1]". */
bool host_is_local(str host);

str request_header(const struct web_request *request, const char *name);
pawl_status body_too_large(struct web_request *request);

/* ---- body.c: the request's body ---- */

/* Takes one more piece. False: drop the connection. The piece is not kept if the request has been
 * rejected, or is now: TOO_LARGE, OVERLOADED. */
bool body_take(struct web_request *request, const char *data, size_t size);
void body_release(struct web_request *request); /* frees its memory; after the answer, or its end */

/* ---- auth.c: who calls ---- */

#define PAGE_HEADER      "X-Pawl-Page" /* our own pages send it with each write */
#define COOKIE_NAME_SIZE 16

void cookie_name(const struct http_server *server, char out[COOKIE_NAME_SIZE]);
bool request_has_token(const struct web_request *request); /* not checked */

/* Fill in request->call.who, by the tokens that count in `p`. UNAUTHENTICATED. */
pawl_status request_authenticate(struct web_request *request, pawl *p);
/* The same for a store that does not exist: answers as if it existed. */
pawl_status request_authenticate_nowhere(struct web_request *request);

bool siblings_start(struct http_server *server); /* false: errno; siblings_free() all the same */
void siblings_end_streams(struct http_server *server);
void siblings_free(struct http_server *server); /* when there are no streams any more */
struct hub *sibling_hub(struct http_server *server,
                        pawl *p); /* NULL: no memory, or it is stopping */
struct stream_totals {            /* of all stores that are open */
    uint32_t count;
    uint64_t bytes; /* sent */
};
struct stream_totals siblings_streams(struct http_server *server);

/* ---- route.c: where it goes ---- */

struct route {
    const struct op *op;
    bool is_mounted; /* it is another surface's */
    str store;       /* decoded; not yet known to be one */
    struct op_pair pairs[HTTP_PAIRS_MAX];
    uint32_t count;
};

/* How large a body this address takes: a batch may be larger than anything else. */
uint32_t route_body_limit(str target);

/* Find the operation, or the mounted row (http.h; NULL: none), for a method and a target; HEAD is
 * GET. NOT_KNOWN: no such address; NOT_ALLOWED: another method. In both other cases `allow` names
 * the methods that the address takes. */
pawl_status route_find(struct scope *scope, const struct op *const *mounts, str method, str target,
                       struct route *out, char allow[ALLOW_SIZE]);

/* ---- run.c: what was asked for ---- */

/* By its head: finds its route and its caller. True: it is away, as below. */
bool request_enter(struct web_request *request);
bool request_is_quick(const struct web_request *request); /* it will not be away */
/* Run it, or take what came out. True: it is away, and its connection is suspended. */
bool request_run(struct web_request *request);
void request_work(struct web_request *request); /* by a worker */
/* Its connection goes on with it. */
void request_come_back(struct web_request *request, enum request_stage stage);
/* The next piece of its answer shall be read: the connection is suspended meanwhile. False: the
 * server is stopping. */
bool request_read_on(struct web_request *request);
void request_close_pieces(struct web_request *request);

/* ---- log.c, metrics.c ---- */

void request_number(struct web_request *request); /* and an id of ours */
void request_name(struct web_request *request);
void request_trace(struct web_request *request);
void request_log(const struct web_request *request, int64_t took_us);
void count_refused(struct http_server *server, enum http_limit limit);
void count_answer(struct web_request *request); /* and log it */
void metrics_print(struct http_server *server, struct buf *out);

/* ---- gzip.c: smaller answers ---- */

bool answer_varies(const struct web_request *request);
/* If it pays. A thread that serves other connections may not take its time. */
void answer_compress(struct web_request *request, bool may_take_time);

/* ---- response.c: the answer ---- */

/* Tag it and compress it; once. */
void answer_prepare(struct web_request *request, bool may_take_time);

/* Run what was asked for and queue the answer, or the rejection in request->status. */
enum MHD_Result request_serve(struct web_request *request);

#endif
