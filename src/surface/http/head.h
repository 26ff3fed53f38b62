/* head.h - the first bytes of a connection: are they the beginning of a request? */
#ifndef PAWL_SURFACE_HTTP_HEAD_H
#define PAWL_SURFACE_HTTP_HEAD_H

#include "base/str.h"
#include <pawl.h>

#define HEAD_MAX        6000u /* bytes of a head, with what the library needs for its pieces */
#define HEAD_PIECE_COST 72u   /* a header, a cookie, a parameter of a query */
#define HEAD_LOOK       8192u /* bytes that are enough to judge */

enum head_verdict { HEAD_MORE, HEAD_SOUND, HEAD_BAD };

struct head_refusal {
    pawl_status status; /* INVALID_REQUEST or TOO_LARGE */
    const char *words;
};

/* MORE: it may become one. BAD: *refusal says why. */
enum head_verdict head_judge(str bytes, struct head_refusal *refusal);
/* Of a well-formed request: the bytes of its head and body, 0 if its head does not say; and whether
 * its client waits for 100 Continue before it sends the body. */
uint64_t head_request_size(str bytes, bool *is_expecting);
/* Is this a well-formed request for a stream of entries? */
bool head_is_stream(str bytes);

#endif
