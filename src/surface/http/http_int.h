/* http_int.h - private to http: a request on its way from the wire to its answer. */
#ifndef PAWL_SURFACE_HTTP_HTTP_INT_H
#define PAWL_SURFACE_HTTP_HTTP_INT_H

#include "api/ops.h"
#include "base/limits.h"
#include "surface/http/http.h"
#include <microhttpd.h>
#include <stdatomic.h>

#define ALLOW_SIZE     64
#define HTTP_PAIRS_MAX 64                 /* path and query parameters of one request */
#define HTTP_DRAIN_MAX ((size_t)64 << 20) /* of a body too large, read so that the answer arrives  \
                                           */

struct http_server {
    pawl *p;
    struct MHD_Daemon *daemon;
    uint16_t port;
    bool needs_token;  /* it listens on more than loopback */
    const char *hosts; /* names it has beside the local ones, "a.example,b"; NULL: none */
    atomic_uint active; /* requests between their first byte and their last */
    atomic_bool is_stopping;
    int idle_event; /* an eventfd: written when the last active request ends */
};

struct request {
    struct http_server *server;
    struct MHD_Connection *connection;
    char *target; /* as it came: path and query, nothing decoded */
    str method;
    struct scope scope;
    struct buf body, answer;
    bool has_begun;
    pawl_status status;     /* a rejection that waits for the end of the body, else OK */
    size_t received;        /* bytes of the body, kept or not */
    char allow[ALLOW_SIZE]; /* the methods that its address takes, "" until routed */
};

/* ---- listen.c ---- */

uint16_t socket_port(int listener);
bool socket_is_loopback(int listener);

/* ---- request.c: what came ---- */

/* Look at the headers. *answer_now: the end of the body cannot be trusted, or its length says
 * too much to read it: answer at once and close. */
pawl_status request_check(struct request *request, bool *answer_now);

/* One more piece of the body; false: drop the connection. */
bool request_take(struct request *request, const char *data, size_t size);

/* Decode %XX (and, in a query, '+') into the scope. INVALID_REQUEST unless it is UTF-8
 * without NUL. */
pawl_status url_decode(struct scope *scope, str text, bool is_query, str *out);

/* Is it a name of this machine, with any port or none? "localhost:80", "[::1]". */
bool host_is_local(str host);

str request_header(const struct request *request, const char *name);

/* ---- auth.c: who calls ---- */

/* UNAUTHENTICATED; who->name.data NULL: somebody local, who may do everything. */
pawl_status request_authenticate(struct request *request, const struct op *op,
                                 struct op_principal *who);

/* ---- route.c: where it goes ---- */

struct route {
    const struct op *op;
    struct op_pair pairs[HTTP_PAIRS_MAX];
    uint32_t count;
};

/* Find the operation for a method and a target; HEAD is GET. NOT_KNOWN: no such address;
 * NOT_ALLOWED: another method; `allow` names those it takes in both other cases. */
pawl_status route_find(struct scope *scope, str method, str target, struct route *out,
                       char allow[ALLOW_SIZE]);

/* ---- response.c: the answer ---- */

/* Run what was asked for and queue the answer, or the rejection in request->status. */
enum MHD_Result respond(struct request *request);

#endif
