/* body.c - the bodies of requests: read into growing buffers whose sizes are counted over all
 * requests, and released as soon as there is an answer or the client has gone. */
#include "surface/http/http_int.h"

/* Counts the buffer's capacity, used or not. */
static void count(struct web_request *request)
{
    size_t has = request->body.capacity;

    if (has > request->counted)
        atomic_fetch_add(&request->server->body_bytes, has - request->counted);
    else
        atomic_fetch_sub(&request->server->body_bytes, request->counted - has);
    request->counted = has;
}

void body_release(struct web_request *request)
{
    buf_fini(&request->body);
    buf_init(&request->body, &heap_libc, request->body_limit);
    count(request);
}

static pawl_status check(struct web_request *request, size_t size)
{
    const struct http_server *server = request->server;

    if (request->received > request->body_limit)
        return body_too_large(request);
    if (atomic_load(&server->body_bytes) + size <= server->options.body_memory)
        return PAWL_OK;
    count_refused(request->server, HTTP_LIMIT_BODIES);
    return scope_fail(&request->scope, PAWL_OVERLOADED,
                      "the bodies of all requests take over %llu bytes together; try later",
                      (unsigned long long)server->options.body_memory);
}

bool body_take(struct web_request *request, const char *data, size_t size)
{
    request->received += size;
    if (request->status == PAWL_OK)
        request->status = check(request, size);
    if (request->status == PAWL_OK) {
        buf_add(&request->body, data, size);
        if (request->body.failed)
            request->status = scope_no_memory(&request->scope);
        count(request);
    }
    if (request->status != PAWL_OK)
        body_release(request);
    return request->received <= HTTP_DRAIN_MAX;
}
