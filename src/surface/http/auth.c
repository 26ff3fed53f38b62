/* auth.c - who calls. On loopback nobody needs a token, but one that is shown counts. */
#include "surface/http/http_int.h"
#include <strings.h>

static bool is_bearer(str header)
{
    return header.size > 7 && strncasecmp(header.data, "Bearer ", 7) == 0;
}

pawl_status request_authenticate(struct request *request, pawl *p)
{
    const struct op *op = request->op;
    str header = request_header(request, "Authorization");

    if (!header.data && !request->server->needs_token)
        return PAWL_OK;
    if (op->scope && strcmp(op->scope, "none") == 0 && p == request->server->p)
        return PAWL_OK; /* for another store this would reveal that it exists */
    return op_authenticate(p, &request->scope, is_bearer(header) ? str_from(header, 7) : STR(""),
                           &request->call.who);
}

pawl_status request_authenticate_nowhere(struct request *request)
{
    str header = request_header(request, "Authorization");

    if (!header.data && !request->server->needs_token)
        return PAWL_OK;
    return op_authenticate_nowhere(request->server->p, &request->scope,
                                   is_bearer(header) ? str_from(header, 7) : STR(""));
}
