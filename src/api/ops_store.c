/* ops_store.c - the stores of a server, or of a program: made and listed. */
#include "api/ops_int.h"
#include "api/stores.h"

/* What belongs to all stores is asked of the first: a token of one of the others must not reach
 * its neighbours by a batch or an alarm. */
static pawl_status check_first(const struct op_call *call)
{
    return call->p->first
               ? scope_fail(call->scope, PAWL_NOT_KNOWN,
                            "%s is not for a store beside another: ask the first", call->op->name)
               : PAWL_OK;
}

pawl_status op_store_put(struct op_call *call, struct buf *out)
{
    str name = op_text(call, "store");
    bool is_new;

    TRY(check_first(call));
    TRY(stores_put(call->p, call->scope, name, &is_new));
    call->http_status = is_new ? 201 : 200;
    json_put_str(out, "store", name);
    return PAWL_OK;
}

pawl_status op_store_list(struct op_call *call, struct buf *out)
{
    str *names;
    uint32_t count;

    TRY(check_first(call));
    TRY(stores_names(call->p, call->scope, &names, &count));
    json_put_open(out, "stores", '[');
    for (uint32_t i = 0; i < count; i++)
        json_str(out, names[i]);
    json_close(out, ']');
    return PAWL_OK;
}
