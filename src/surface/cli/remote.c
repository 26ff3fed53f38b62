/* remote.c - (operation, input) -> method, path, query and body; the answer, or the problem
 * as a status with the server's words. The reverse of what the HTTP surface does. */
#include "surface/cli/remote.h"
#include "api/outgoing.h"
#include "base/assert.h"

/* A rejection keeps its token and words; what no pawl server would say is a broken store. */
static pawl_status reject(const struct client *client, const struct http_response *response,
                          struct scope *scope)
{
    TRY(op_read_problem(scope, response->body));
    return scope_fail(
        scope, PAWL_STORAGE_FAILURE,
        "%s answered %d, but not as a pawl server does: another program listens there, "
        "or a proxy answered in its place",
        client->address, (int)response->status);
}

/* A header ends where its line does: a key with a line end in it would be another request. */
static pawl_status add_key(struct scope *scope, const struct node *input,
                           struct http_request *request)
{
    const struct node *key = node_find(input, "idempotency_key");

    if (key && !key_is_plain(key->text))
        return scope_fail(scope, PAWL_INVALID_REQUEST, KEY_EXPECTED);
    request->key = key ? key->text : STR_NONE;
    return PAWL_OK;
}

pawl_status remote_call(struct client *client, const char *operation, str input,
                        struct scope *scope, const struct answer_to *to)
{
    const struct op *op = op_find(str_of(operation));
    struct http_request request;
    struct http_response response;
    struct op_outgoing out;
    struct node *members;
    pawl_status status;

    ASSERT(op);
    if (!op->method)
        return scope_fail(scope, PAWL_NOT_KNOWN,
                          "%s works on a store's file, not through its server at %s", operation,
                          client->address);
    TRY(node_read_json(scope, input, &members));
    TRY(op_print_request(scope, op, client->store, members, true, &out));
    request = (struct http_request){ .method = op->method,
                                     .target = out.target,
                                     .content_type = out.content_type,
                                     .body = out.body };
    TRY(add_key(scope, members, &request));
    status = client_send(client, &request, scope, to, &response);
    if (status == PAWL_OK && response.status >= 300)
        return reject(client, &response, scope);
    if (status == PAWL_OK && to->whole)
        *to->whole = response.body;
    return status;
}
