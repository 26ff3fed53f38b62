/* verify_schema.c - compares the tables, indexes and views with those that the store's migrations
 * make: a view that shows something else misleads as much as a wrong row. */
#include "evidence/verify_int.h"

static pawl_status judge(void *context, enum object_verdict verdict, str type, str name, str table)
{
    static const char *const words[] = {
        [OBJECT_MISSING] = "is missing",
        [OBJECT_CHANGED] = "is not the one that the migrations make",
        [OBJECT_UNKNOWN] = "is not made by any migration",
        [OBJECT_TRIGGER] = "is on a table or view of pawl's: it could change what is recorded",
    };
    struct verify *v = context;

    if (verdict != OBJECT_FOREIGN)
        return verify_bad(v, "the schema: %.*s %.*s %s", STR_ARG(type), STR_ARG(name),
                          words[verdict]);
    if (v->request->foreign)
        v->request->foreign(v->request->context, type, name, table);
    return PAWL_OK;
}

pawl_status verify_schema(struct verify *v)
{
    verify_at(v, 0, 0, 0);
    scope_clear(&v->scope);
    return store_objects(v->store, &v->scope, judge, v);
}
