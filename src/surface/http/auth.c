/* auth.c - who calls. On loopback no token is needed unless the server wants one, but one that is
 * sent is checked. The server's own secret is as good as access to the store's file. */
#include "api/world.h"
#include "surface/http/http_int.h"
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

pawl_status request_authenticate(struct web_request *request, pawl *p)
{
    const struct op *op = request->op;
    str header = request_header(request, "Authorization");

    if (is_free(request, header))
        return PAWL_OK;
    if (op->scope && strcmp(op->scope, "none") == 0 && p == request->server->p)
        return PAWL_OK; /* for another store this would reveal that it exists */
    return op_authenticate(p, &request->scope, bearer_of(header), &request->call.who);
}

pawl_status request_authenticate_nowhere(struct web_request *request)
{
    str header = request_header(request, "Authorization");

    if (is_free(request, header))
        return PAWL_OK;
    return op_authenticate_nowhere(request->server->p, &request->scope, bearer_of(header));
}
