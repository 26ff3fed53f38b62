/* retention_key.h - `retention:` of a definition: how long its instances are kept once they have
 * ended. Nothing is compiled from it: the engine reads the text of the newest version. */
#ifndef PAWL_MODEL_RETENTION_KEY_H
#define PAWL_MODEL_RETENTION_KEY_H

#include "model/input_schema.h"

void retention_key_check(const struct node *retention, schema_report *report, void *context);

struct retention {
    int64_t after_ms; /* how long what has ended is kept; 0: for ever */
    bool is_archive;  /* then it moves into the archive file; else what it holds is erased */
};
/* Of a definition with this text. */
struct retention retention_read(struct scope *scope, str text);
/* What `retention: {...}` says, which was checked. */
struct retention retention_of(const struct node *retention);

#endif
