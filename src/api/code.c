/* code.c - processes written in C, and what their turns may do in our transaction. */
#include "api/api.h"
#include "api/modules.h"
#include "api/shards.h"

pawl_status pawl_code_register(pawl *p, const pawl_code_type *type, pawl_error *error)
{
    struct scope scope;
    pawl_status status = PAWL_OK;

    TRY(API_NEED(error, GIVEN(p), GIVEN(type)));
    api_enter(p, &scope);
    for (uint32_t i = 0; i < shards_count(p) && status == PAWL_OK; i++)
        status = engine_code_register(shard_at(p, i)->engine, type, &scope);
    return api_leave(&scope, status, error);
}

pawl_status api_code_offer(pawl *p, const pawl_code_type *type, pawl_error *error)
{
    struct scope scope;
    pawl_status status = PAWL_OK;

    api_enter(p, &scope);
    for (uint32_t i = 0; i < shards_count(p) && status == PAWL_OK; i++)
        status = engine_code_offer(shard_at(p, i)->engine, type, &scope);
    return api_leave(&scope, status, error);
}

pawl_status pawl_reduce_register(pawl *p, const char *name, pawl_reduce_fn fn, void *context,
                                 pawl_error *error)
{
    struct scope scope;
    pawl_status status = PAWL_OK;

    TRY(API_NEED(error, GIVEN(p), GIVEN(name), { "fn", fn != NULL }));
    api_enter(p, &scope);
    for (uint32_t i = 0; i < shards_count(p) && status == PAWL_OK; i++)
        status = engine_reduce_register(shard_at(p, i)->engine, &scope, str_of(name), fn, context);
    return api_leave(&scope, status, error);
}
