/* code.c - processes written in C, and what their turns may do in our transaction. */
#include "api/api.h"
#include "api/modules.h"

pawl_status pawl_code_register(pawl *p, const pawl_code_type *type, pawl_error *error)
{
    struct scope scope;

    TRY(API_NEED(error, GIVEN(p), GIVEN(type)));
    api_enter(p, &scope);
    return api_leave(&scope, engine_code_register(p->engine, type, &scope), error);
}

pawl_status api_code_offer(pawl *p, const pawl_code_type *type, pawl_error *error)
{
    struct scope scope;

    api_enter(p, &scope);
    return api_leave(&scope, engine_code_offer(p->engine, type, &scope), error);
}

pawl_status pawl_reduce_register(pawl *p, const char *name, pawl_reduce_fn fn, void *context,
                                 pawl_error *error)
{
    struct scope scope;

    TRY(API_NEED(error, GIVEN(p), GIVEN(name), { "fn", fn != NULL }));
    api_enter(p, &scope);
    return api_leave(&scope,
                     engine_reduce_register(p->engine, &scope, str_of(name), fn, context), error);
}
