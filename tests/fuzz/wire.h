/* wire.h - stands in for the library that speaks HTTP, for sockets and for workers: what the
 * adapter is started with, and a connection as its functions see it. */
#ifndef PAWL_TESTS_FUZZ_WIRE_H
#define PAWL_TESTS_FUZZ_WIRE_H

#include "surface/http/stream_int.h"

#define WIRE_HEADERS_MAX 12
#define WIRE_PORT        7295

struct MHD_Daemon {
    MHD_AccessHandlerCallback on_request;
    MHD_RequestCompletedCallback on_completed;
    MHD_NotifyConnectionCallback on_connection;
    void *(*on_target)(void *context, const char *target, struct MHD_Connection *connection);
    void *context;
};

struct MHD_Response {
    size_t size;
    const char *body;
    bool is_raw;   /* of a type that need not be JSON */
    bool is_lines; /* each of them JSON */
    MHD_ContentReaderCallback read;
    struct stream *stream;
};

struct MHD_Connection {
    char *names[WIRE_HEADERS_MAX], *values[WIRE_HEADERS_MAX];
    uint32_t count;
    unsigned status;   /* of the answer; 0: none */
    uint32_t logged;   /* lines */
    bool is_suspended; /* under turn.lock */
    union MHD_ConnectionInfo known, fd;
    struct MHD_Response answer; /* its stream, if it is one */
};

/* Until it is not suspended any more; what was handed to a worker meanwhile is run here. */
void wire_wait(const struct MHD_Connection *connection);

void require_json(str text);

#endif
