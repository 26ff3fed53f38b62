/* peer.h - one node calls another over HTTP/1.1, on connections that are kept.
 *
 * It knows nothing of operations. A request comes out in one of three ways: there is an answer,
 * nothing was sent, or it was sent and not answered. */
#ifndef PAWL_PEER_PEER_H
#define PAWL_PEER_PEER_H

#include "base/buf.h"
#include "base/scope.h"
#include "env/env.h"

struct peers;

struct peer_header {
    const char *name; /* NULL: the last one */
    str value;        /* of printable characters */
};
struct peer_request {
    const char *method, *target;
    const struct peer_header *headers;
    str body; /* data NULL: none */
    /* Asked while an answer is waited for, every PEER_LOOK_MS; false: it is given up. NULL:
     * true. */
    bool (*may_wait)(void *context);
    void *context;
};
#define PEER_LOOK_MS    50
#define PEER_CONNECT_MS 2000
#define PEER_ANSWER_MAX ((size_t)80 << 20)

enum peer_end { PEER_ANSWERED, PEER_NOT_SENT, PEER_UNKNOWN };
struct peer_answer {
    enum peer_end end;
    bool was_refused; /* NOT_SENT: nothing listens there */
    int status;
    const char *type; /* of its content; in the scope */
    const char *why;  /* it was not answered; static */
};

struct peers *peers_new(const struct heap *heap, struct env *env); /* NULL: no memory */
void peers_free(struct peers *peers);

/* `address` is "http://HOST:PORT". The body of the answer is added to `out`. */
void peer_call(struct peers *peers, struct scope *scope, const char *address,
               const struct peer_request *request, struct buf *out, struct peer_answer *answer);

/* Does anything accept connections there? *refuses: certainly nothing does. */
bool peer_reaches(const char *address, bool *refuses);

#endif
