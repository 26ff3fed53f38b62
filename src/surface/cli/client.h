/* client.h - as much of HTTP/1.1 as the command line needs to talk to a pawl server: one
 * request on one connection, plain text, no redirects. */
#ifndef PAWL_SURFACE_CLI_CLIENT_H
#define PAWL_SURFACE_CLI_CLIENT_H

#include "base/scope.h"

#define CLIENT_LOOK_MS    1000
#define CLIENT_SILENT_MS  10000 /* then it is said that there is no answer yet */
#define CLIENT_ANSWER_MAX ((size_t)256 << 20)

struct client {
    const char *scheme; /* "http", or "https": then client_is_loopback() */
    char host[256], port[8];
    char store[160]; /* "/v1/stores/NAME"; "": the server's first */
    char token[128]; /* sent as the bearer token; "": $PAWL_TOKEN, if it is set */
    bool nothing_listens; /* the last connection was refused */
    /* Waits about CLIENT_LOOK_MS for fd: 1 if it can be read, 0 if not yet, -1 to give up. NULL: the
     * usual way, with a line on stderr after CLIENT_SILENT_MS. */
    int (*wait)(void *context, int fd, int64_t waited_ms);
    void *wait_context;
};

struct http_request {
    const char *method;
    const char *target;       /* path and query */
    const char *content_type; /* NULL: no body */
    str body;
    str key; /* an Idempotency-Key; data NULL: none */
};

struct http_response {
    int status;
    str content_type, body; /* in the scope */
};

/* Take an address apart: "http[s]://host[:port][/v1/stores/NAME]". INVALID_REQUEST. */
pawl_status client_init(struct client *client, const char *url, struct scope *scope);

/* Ask, and wait for the answer. STORAGE_FAILURE if the server cannot be reached: nothing was
 * asked. OUTCOME_UNKNOWN if the connection broke after that. */
pawl_status client_send(struct client *client, const struct http_request *request,
                        struct scope *scope, struct http_response *out);

/* The same, but the body of a success goes to `put` as it comes, and out->body is empty. An answer
 * that breaks off is OUTCOME_UNKNOWN; `put` returns false to end it, which is STORAGE_FAILURE. */
pawl_status client_send_pieces(struct client *client, const struct http_request *request,
                               struct scope *scope,
                               bool (*put)(void *context, struct scope *scope, str piece),
                               void *context, struct http_response *out);

/* Ask for a stream of events; what comes is read from *fd as it comes, its head with it.
 * `last`: the id of the last event seen, or "". STORAGE_FAILURE. */
pawl_status client_stream(struct client *client, const char *target, const char *last,
                          struct scope *scope, int *fd);

/* With TLS the certificate is not verified (tunnel.h), so a caller refuses any address but a
 * loopback one. */
bool client_is_tls(const struct client *client);
bool client_is_loopback(const struct client *client);

/* `answer` is all that came, and is no HTTP: STORAGE_FAILURE if the server speaks TLS. */
pawl_status client_check_tls(const struct client *client, struct scope *scope, str answer);

/* Does a process listen there? */
bool client_reaches(struct client *client);

/* What came back, taken apart; also for tests. False if it is no whole HTTP answer. */
bool http_parse(struct scope *scope, str bytes, struct http_response *out);

#endif
