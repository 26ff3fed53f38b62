/* code.h - the behavior whose turns are a C function's.
 *
 * The port is model/decision.h. A definition's plan is the registration itself; rebuilding
 * and verifying never run a handler, because each entry carries the resulting state. */
#ifndef PAWL_CODE_CODE_H
#define PAWL_CODE_CODE_H

#include "model/decision.h"
#include <pawl.h>

/* The canonical print of a registration: the source of its definition. JSON:
 * {"code":NAME,"version":V,"timers":[...],"signals":[...],"vars":[{"name":N,"type":"int64"}]} */
pawl_status code_source(struct scope *scope, const pawl_code_type *type, str *out);

/* Check a registration and make its definition; plan is `type`. INVALID_REQUEST names what
 * is wrong (no name, bad or doubled timer, signal or variable, no handler, a size that does
 * not fit its type). */
pawl_status code_compile(struct scope *scope, const pawl_code_type *type, struct definition **out);

#endif
