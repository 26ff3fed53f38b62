/* auth.c - who calls. On loopback no token is needed unless the server wants one, but one that is
 * sent is checked. The server's own secret is as good as access to the store's file. */
#include "api/world.h"
#include "surface/http/http_int.h"
#include <stdio.h>
#include <strings.h>

/* The token of the header; "": none. */
static str bearer_of(str header)
{
    return header.size > 7 && strncasecmp(header.data, "Bearer ", 7) == 0 ? str_from(header, 7)
                                                                          : STR("");
}

/* No token is needed, or it is the server's secret: the caller has no limits. */
static bool is_free(const struct web_request *request, str header)
{
    const char *secret = request->server->options.secret;
    str bearer = bearer_of(header);

    if (!header.data)
        return !request->server->needs_token;
    return secret && bearer.size > 0 && world_same_secret(secret, bearer.data, bearer.size);
}

/* ---- The token that a browser keeps ---- */

/* Cookies belong to a host, whatever its port: two servers on one machine have two names. */
void cookie_name(const struct http_server *server, char out[COOKIE_NAME_SIZE])
{
    snprintf(out, COOKIE_NAME_SIZE, "pawl-%u", server->port);
}

static str cookie_of(const struct web_request *request)
{
    char name[COOKIE_NAME_SIZE];

    cookie_name(request->server, name);
    return str_of(MHD_lookup_connection_value(request->connection, MHD_COOKIE_KIND, name));
}

bool request_has_token(const struct web_request *request)
{
    return request_header(request, "Authorization").data || cookie_of(request).data;
}

/* A browser sends a cookie by itself. A header of our own it sends for our pages alone: a page of
 * another site would have to ask us first, and we allow none. */
static bool may_use_cookie(const struct web_request *request)
{
    return str_is(request->method, "GET") || str_is(request->method, "HEAD") ||
           request_header(request, PAGE_HEADER).data;
}

static pawl_status find_token(struct web_request *request, str header, str *out)
{
    str cookie = cookie_of(request);

    *out = bearer_of(header);
    if (header.data || !cookie.data)
        return PAWL_OK;
    *out = cookie;
    return may_use_cookie(request)
               ? PAWL_OK
               : scope_fail(&request->scope, PAWL_UNAUTHENTICATED,
                            "a token in a cookie: expected the header " PAGE_HEADER
                            " with it, found none");
}

/* ---- A request that another node forwards ---- */

static pawl_status accept_node(struct web_request *request, pawl *p, str header)
{
    request->by_node = (struct op_signed){ .header = header,
                                           .as = request_header(request, OP_SIGNED_AS),
                                           .method = request->method,
                                           .target = str_of(request->target),
                                           .key = request_header(request, "Idempotency-Key"),
                                           .trace = request_header(request, "traceparent"),
                                           .part = request_header(request, OP_SIGNED_PART) };
    TRY(op_accept_signed(p, &request->scope, &request->by_node, &request->call.who));
    request->call.is_forwarded = true;
    request->call.part = request->by_node.part;
    return PAWL_OK;
}

/* ---- Who it is ---- */

pawl_status request_authenticate(struct web_request *request, pawl *p)
{
    const struct op *op = request->op;
    str header = request_header(request, "Authorization"), token;
    str node = request_header(request, OP_SIGNED_HEADER);

    if (node.data)
        return accept_node(request, p, node);
    if (is_free(request, header))
        return PAWL_OK;
    if (op->scope && strcmp(op->scope, "none") == 0 && p == request->server->p)
        return PAWL_OK; /* for another store this would reveal that it exists */
    TRY(find_token(request, header, &token));
    return op_authenticate(p, &request->scope, token, &request->call.who);
}

pawl_status request_authenticate_nowhere(struct web_request *request)
{
    str header = request_header(request, "Authorization"), token;

    if (is_free(request, header))
        return PAWL_OK;
    TRY(find_token(request, header, &token));
    return op_authenticate_nowhere(request->server->p, &request->scope, token);
}
