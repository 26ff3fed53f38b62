/* trace.h - W3C trace context: what names the request of another system that ours belongs to. */
#ifndef PAWL_BASE_TRACE_H
#define PAWL_BASE_TRACE_H

#include "base/str.h"

#define TRACE_SIZE 55 /* "00-", 32, "-", 16, "-", 2 */

/* "00-TRACE-PARENT-FLAGS" in small hexadecimal digits, neither id all zeros. Other versions are
 * none that we know. */
bool trace_is_valid(str text);

#endif
