/* verify_schema.c - what only a store in a database has: tables, indexes and views, which must be
 * those that its migrations make (a view that shows something else misleads as much as a wrong
 * row), and rows that repeat what is said elsewhere, for people and their SQL. */
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
    if (v->request->is_schema_known)
        return PAWL_OK;
    verify_at(v, 0, 0, 0);
    scope_clear(&v->scope);
    return store_objects(v->store, &v->scope, judge, v);
}

static pawl_status judge_row(void *context, const struct bad_row *row)
{
    verify_at(context, row->pos, row->instance, 0);
    return verify_bad(context, "%s", row->words);
}

pawl_status verify_tables(struct verify *v)
{
    verify_at(v, 0, 0, 0);
    scope_clear(&v->scope);
    return store_examine(v->store, &v->scope, judge_row, v);
}
