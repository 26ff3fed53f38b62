/* http.h - the operations over HTTP/JSON: one address a row of ops.h, and nothing else.
 *
 * On loopback, or elsewhere if the store has tokens; with `needs_token` they count on loopback too.
 * A few threads read requests and write answers; none of them waits for a commit, so that as many
 * fires share one as there are connections. */
#ifndef PAWL_SURFACE_HTTP_HTTP_H
#define PAWL_SURFACE_HTTP_HTTP_H

#include <pawl.h>

#define HTTP_PORT        7295
#define HTTP_LISTEN      "127.0.0.1:7295"
#define HTTP_THREADS     4
#define HTTP_BODY_MEMORY ((uint64_t)256 << 20)

struct op;
enum http_log { HTTP_LOG_LOGFMT, HTTP_LOG_JSON };

struct http_options {
    const char *listen; /* "127.0.0.1:7295", "[::1]:7295", "localhost:0"; port 0: any free one;
                           NULL: HTTP_LISTEN */
    int socket;         /* of http_bind(), instead of `listen`; 0: none. The server's from now on */
    enum http_log log_format;
    void (*log)(void *context, const char *line, size_t size); /* a line for each request, with its
                           end; from any thread. NULL: none */
    void *log_context;
    uint32_t threads;     /* that read requests and write answers; 0: HTTP_THREADS */
    const char *hosts;    /* names under which it may be called beside the local ones: "a,b" */
    uint64_t body_memory; /* bytes that the bodies of all requests may take together; 0:
                           HTTP_BODY_MEMORY */
    const char *tls_cert, *tls_key; /* PEM texts; NULL: plain HTTP */
    bool needs_token;               /* also on loopback */
    const char *secret; /* who sends this as a token may do everything; NULL: none. It outlives the
                           server */
    pawl_status (*opened)(void *context, pawl *p, pawl_error *error); /* a store beside the first is
                           open: register tools and code; NULL: none */
    void *opened_context;
    const struct op *const *mounts; /* of other surfaces: tables of rows as in api/ops.h, ending in
                           NULL; NULL: none. A row's path may end in {name}, which takes the rest.
                           An operation's address is its own, and all below /v1/ are the
                           operations'. They outlive the server */
};

struct http_server;

/* Take the address before there is a store to serve, so that the store's owner entry can name it: a
 * socket, and its port in *out_port. -1 with INVALID_REQUEST (not an address) or IN_USE in `error`.
 * No request is answered before http_start(). */
int http_bind(const char *listen, uint16_t *out_port, pawl_error *error);

/* The same for a socket that listens already (a service manager's): its address in words in `out`.
 * False with INVALID_REQUEST in `error`. */
#define HTTP_ADDRESS_SIZE 64
bool http_adopt(int listener, char out[HTTP_ADDRESS_SIZE], pawl_error *error);

/* Serve `p`, which must outlive the server. NULL with INVALID_REQUEST, IN_USE or NO_MEMORY
 * in `error`, which may be NULL. */
struct http_server *http_start(pawl *p, const struct http_options *options, pawl_error *error);

/* Take no more requests, answer those that are being worked on, close. NULL is allowed. */
void http_stop(struct http_server *server);

#endif
