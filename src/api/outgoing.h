/* outgoing.h - an operation as an HTTP request: the reverse of what the HTTP surface does. */
#ifndef PAWL_API_OUTGOING_H
#define PAWL_API_OUTGOING_H

#include "api/ops.h"

struct op_outgoing {
    const char *target;       /* path and query; in the scope */
    const char *content_type; /* NULL: no body */
    str body;
};

/* `store` is "/v1/stores/NAME" or "". `guesses_format`: a text whose format is not said is called
 * what it looks like. INVALID_REQUEST, TOO_LARGE. */
pawl_status op_print_request(struct scope *scope, const struct op *op, const char *store,
                             const struct node *input, bool guesses_format,
                             struct op_outgoing *out);

/* What a rejection in application/problem+json says: its status, with its words in the scope.
 * OK: it is no such text. */
pawl_status op_read_problem(struct scope *scope, str body);

#endif
