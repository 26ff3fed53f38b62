/* import.h - instances and definitions of another store, taken in with their ids and hashes.
 *
 * It is one commit: all or nothing. What is there already, with the same records, is left alone.
 * Before anything is written the whole is put into a store in memory and verified there, decisions
 * of flows included. */
#ifndef PAWL_REPAIR_IMPORT_H
#define PAWL_REPAIR_IMPORT_H

#include "base/buf.h"
#include "base/scope.h"
#include "model/record.h"

#define EXPORT_FORMAT 1
#define EXPORT_HEADER "{\"pawl\":\"export\",\"format\":1}" /* the first line of every file */

struct import;

/* Own the store at `url`, without an engine; it is made if it is missing. IN_USE. What is read
 * lives in `scope`, which has the words of every failure. */
pawl_status import_open(const char *url, struct scope *scope, struct import **out);
void import_close(struct import *import); /* NULL is allowed */

/* One line of an export file; the first one is its header, with a format known here.
 * INVALID_REQUEST: the line is not valid, or a value does not match its hash. */
pawl_status import_line(struct import *import, str line);

/* The store's clock is taken to be no earlier than this: that of where the lines come from. */
void import_not_before(struct import *import, int64_t now_ms);
/* Of the store that is imported into. */
void import_store_id(const struct import *import, uint8_t out[STORE_ID_SIZE]);

/* How many records have been read. */
uint64_t import_count(const struct import *import);

/* Check, and write. Into `out`: {instances, records, definitions, already_there}. INVALID_REQUEST:
 * a hash does not check, or the records are not valid; CONFLICT: something is there already, and
 * is not the same. */
pawl_status import_finish(struct import *import, struct buf *out);

#endif
