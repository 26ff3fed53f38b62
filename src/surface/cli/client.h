/* client.h - as much of HTTP/1.1 as the command line needs to talk to a pawl server: one
 * request on one connection, plain text, no redirects. */
#ifndef PAWL_SURFACE_CLI_CLIENT_H
#define PAWL_SURFACE_CLI_CLIENT_H

#include "api/ops.h"
#include "base/scope.h"

#define CLIENT_LOOK_MS    1000
#define CLIENT_SILENT_MS  10000 /* then a line on stderr: there is no answer yet */
#define CLIENT_ANSWER_MAX ((size_t)256 << 20)

struct client {
    bool is_tls; /* then client_is_loopback(): the certificate is not verified (tunnel.h) */
    char host[256], port[8];
    char address[288]; /* "http://HOST:PORT" */
    char store[160]; /* "/v1/stores/NAME"; "": the server's first */
    char token[128]; /* sent as the bearer token; "": $PAWL_TOKEN, if it is set */
    bool nothing_listens; /* the last connection was refused */
    /* Waits about CLIENT_LOOK_MS for fd: 1 if it can be read, 0 if not yet, -1 to give up. NULL:
     * the usual way, with a line on stderr after CLIENT_SILENT_MS. */
    int (*wait)(void *context, int fd, int64_t waited_ms);
    void *wait_context;
};

struct http_request {
    const char *method;
    const char *target;       /* path and query */
    const char *content_type; /* NULL: no body */
    str body;
    str key; /* an Idempotency-Key; data NULL: none */
    const char *last; /* of a stream of events: the last one seen, or ""; NULL: no stream */
};

/* Where an answer goes: piece by piece to `put`, which returns false to end it (STORAGE_FAILURE,
 * with the words that `put` left in the scope); or as a whole into the scope. */
struct answer_to {
    put_piece_fn put; /* NULL: */
    void *context;
    str *whole;
};

struct http_response {
    uint64_t status;
    str body; /* in the scope; empty if `put` had it */
};

/* Take an address apart: "http[s]://host[:port][/v1/stores/NAME]". INVALID_REQUEST. */
pawl_status client_init(struct client *client, const char *url, struct scope *scope);

/* Ask, and wait for the answer; to->put gets the body of a success as it comes. STORAGE_FAILURE if
 * the server cannot be reached: nothing was asked. OUTCOME_UNKNOWN if the connection broke after
 * that. */
pawl_status client_send(struct client *client, const struct http_request *request,
                        struct scope *scope, const struct answer_to *to, struct http_response *out);

/* Ask for a stream of events; what comes is read from *fd as it comes, its head with it.
 * `last`: the id of the last event seen, or "". STORAGE_FAILURE. */
pawl_status client_stream(struct client *client, const char *target, const char *last,
                          struct scope *scope, int *fd);

bool client_is_loopback(const struct client *client);

/* `answer` is all that came, and is no HTTP: STORAGE_FAILURE if the server speaks TLS. */
pawl_status client_check_tls(const struct client *client, struct scope *scope, str answer);

/* Does a process listen there? */
bool client_reaches(struct client *client);

#endif
