/* export.h - an instance and its records as lines of an export file, in pieces. */
#ifndef PAWL_API_EXPORT_H
#define PAWL_API_EXPORT_H

#include "api/ops.h"
#include "engine/engine.h"

/* Its definition first. NOT_KNOWN. The pieces are the caller's to close. */
pawl_status export_open(struct engine *engine, struct scope *scope, str id, struct op_pieces **out);

#endif
