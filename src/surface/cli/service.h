/* service.h - private to the command line: the protocol of systemd's socket activation and
 * notifications, without its library. Without a service manager nothing happens. */
#ifndef PAWL_SURFACE_CLI_SERVICE_H
#define PAWL_SURFACE_CLI_SERVICE_H

#include "base/scope.h"

/* The socket that was opened for us (LISTEN_FDS): its number in *out, 0: none was. Programs
 * that we start do not inherit it. INVALID_REQUEST: more than one. */
pawl_status service_socket(struct scope *scope, int *out);

/* Notify the service manager (NOTIFY_SOCKET): "READY=1", "STOPPING=1". */
void service_tell(const char *state);

#endif
