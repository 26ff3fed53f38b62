/* remote.h - an operation of the table as an HTTP request. */
#ifndef PAWL_SURFACE_CLI_REMOTE_H
#define PAWL_SURFACE_CLI_REMOTE_H

#include "surface/cli/client.h"

/* Call an operation on a server: its method and path come from the table. Fails as the operation
 * does, with the server's words; NOT_KNOWN for an operation that has no address. */
pawl_status remote_call(struct client *client, const char *operation, str input,
                        struct scope *scope, const struct answer_to *to);

#endif
