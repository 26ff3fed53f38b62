/* key.h - an idempotency key and the call it came with, as they ride in a record.
 *
 * The request hash covers the members of the operation's input, whichever way they came: a call
 * repeated through another surface is still the same call. */
#ifndef PAWL_API_KEY_H
#define PAWL_API_KEY_H

#include "api/ops.h"
#include "model/record.h"

struct key_member {
    str name, value; /* value.data NULL: absent */
    bool is_text;    /* characters, not JSON */
};

/* `principal` data NULL: local. INVALID_REQUEST: the key is not plain. On OK
 * *out is KEY_SIZE bytes in the scope. */
pawl_status key_of_members(struct scope *scope, str principal, str key, const char *operation,
                           struct key_member *members, uint32_t count, const uint8_t **out);

/* The same for an input that was checked: an object's members. */
pawl_status key_of_input(struct scope *scope, str principal, str key, const struct op *op,
                         const struct node *input, const uint8_t **out);

/* The key of the n-th of several calls that share one key; NULL if `key` is. */
pawl_status key_nth(struct scope *scope, const uint8_t *key, uint64_t n, const uint8_t **out);

/* Run an operation that keeps no key in a record of its own: once done, its answer is kept. */
pawl_status key_run(struct op_call *call, struct buf *out);

#endif
