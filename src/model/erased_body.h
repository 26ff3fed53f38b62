/* erased_body.h - a record's body without what could be private.
 *
 * Values leave the store with their salts, and the log has only their commitments. Bodies are
 * covered by hashes as they are: what people and programs put into them (the state of code, the
 * arguments of its calls, values that are awaited) is taken out, and an erase record says which
 * record that was and what it hashes to now. docs/format.md, "Erased bodies". */
#ifndef PAWL_MODEL_ERASED_BODY_H
#define PAWL_MODEL_ERASED_BODY_H

#include "base/scope.h"
#include "model/record.h"

/* *is_private: there is something to take out, and *out is the body without it. Of a record of an
 * instance that is not its creation. STORAGE_FAILURE: the body can't be read. */
pawl_status redact_body(struct scope *scope, const struct record *record, bool *is_private,
                        str *out);

/* What an erase record names in place of a commitment: this record, with what it hashes to now.
 * It is H("pawl.erased.1" ‖ hash ‖ now). */
void redaction_name(struct sha *sha, const uint8_t hash[SHA_SIZE], const uint8_t now[SHA_SIZE],
                    uint8_t out[SHA_SIZE]);

#endif
