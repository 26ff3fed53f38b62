/* porter.h - who comes in: the thread that accepts connections and turns malformed ones away. */
#ifndef PAWL_SURFACE_HTTP_PORTER_H
#define PAWL_SURFACE_HTTP_PORTER_H

#include "surface/http/http_int.h"

/* The daemon is there and takes connections. NULL: errno; the listener is still the caller's. */
struct porter *porter_start(struct http_server *server, int listener);
/* No more connections, and the listener is closed. NULL is allowed. */
void porter_stop(struct porter *porter);

#endif
