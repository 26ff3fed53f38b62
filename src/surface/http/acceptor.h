/* acceptor.h - the thread that accepts connections and picks the daemon that serves each. */
#ifndef PAWL_SURFACE_HTTP_ACCEPTOR_H
#define PAWL_SURFACE_HTTP_ACCEPTOR_H

#include "surface/http/http_int.h"

/* The daemons are there and take connections. NULL: errno; the listener is still the caller's. */
struct acceptor *acceptor_start(struct http_server *server, int listener);
/* No more connections, and the listener is closed. NULL is allowed. */
void acceptor_stop(struct acceptor *acceptor);

#endif
