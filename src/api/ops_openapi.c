/* ops_openapi.c - openapi.get: the document that tools/gen-ops makes from describe/. */
#include "api/ops_int.h"

extern const str openapi_files[][2]; /* one */

pawl_status op_openapi_get(struct op_call *call, struct buf *out)
{
    (void)call;
    buf_str(out, openapi_files[0][1]);
    return PAWL_OK;
}
