/* retention_key.h - `retention:` of a definition: how long its instances are kept once they have
 * ended. Nothing is compiled from it: the engine reads the text of the newest version. */
#ifndef PAWL_MODEL_RETENTION_KEY_H
#define PAWL_MODEL_RETENTION_KEY_H

#include "model/input_schema.h"

void retention_key_check(const struct node *retention, schema_report *report, void *context);

/* How long a definition with this text keeps what has ended; 0: for ever. */
int64_t retention_read(struct scope *scope, str text);

#endif
