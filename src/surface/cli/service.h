/* service.h - private to the command line: what a service manager gives and wants to hear, in the
 * words of systemd and without its library. Where there is none, nothing happens. */
#ifndef PAWL_SURFACE_CLI_SERVICE_H
#define PAWL_SURFACE_CLI_SERVICE_H

#include "base/scope.h"

/* The socket that was opened for us (LISTEN_FDS): its number in *out, 0 if there is none. Programs
 * that we start do not inherit it. INVALID_REQUEST: more than one. */
pawl_status service_socket(struct scope *scope, int *out);

/* Tell who waits for it (NOTIFY_SOCKET): "READY=1", "STOPPING=1". Nobody there is no failure. */
void service_tell(const char *state);

#endif
