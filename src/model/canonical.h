/* canonical.h - one text for each value of JSON, so that values are equal if their texts are.
 *
 * No white space; members in the byte order of their keys; of a string only that is escaped which
 * has to be; a number as decimal_print() writes it. docs/format.md has it under "Canonical
 * values". */
#ifndef PAWL_MODEL_CANONICAL_H
#define PAWL_MODEL_CANONICAL_H

#include "base/node.h"

pawl_status canonical_print(struct scope *scope, const struct node *value, str *out);

#endif
