/* verify_types.c - every column holds what its table declares: INTEGER, TEXT, BLOB, or nothing.
 *
 * SQLite accepts any value in any column. A value of another storage class reads like the right one
 * here but not elsewhere: no query finds a name that is a BLOB. The columns are those in the file;
 * verify_schema.c has checked before that its tables are ours. */
#include "base/limits.h"
#include "evidence/verify_int.h"
#include <stdio.h>

static const char select_tables[] =
    "SELECT name FROM sqlite_schema WHERE type = 'table' AND name LIKE 'pawl\\_%' ESCAPE '\\'";

struct type_check {
    struct verify *v;
    str table;
    struct buf text; /* names of tables, a NUL behind each; or a query */
};

static pawl_status add_name(void *context, uint32_t column_count, const str *names,
                            const str *values, const bool *are_numbers)
{
    struct type_check *check = context;

    (void)names, (void)are_numbers;
    if (column_count == 1 && values[0].size > 0) {
        buf_str(&check->text, values[0]);
        buf_byte(&check->text, '\0');
    }
    return PAWL_OK;
}

enum { INFO_NAME = 1, INFO_TYPE = 2 };

/* One row of PRAGMA table_info: a column, as one more case. pawl_meta's value has no type. */
static pawl_status add_column(void *context, uint32_t column_count, const str *names,
                              const str *values, const bool *are_numbers)
{
    struct type_check *check = context;
    str name = values[INFO_NAME], type = values[INFO_TYPE];

    (void)names, (void)are_numbers;
    if (column_count <= INFO_TYPE)
        return PAWL_OK;
    if (type.size > 0)
        buf_fmt(&check->text, " WHEN typeof(%.*s) NOT IN ('null', lower('%.*s')) THEN '%.*s'",
                STR_ARG(name), STR_ARG(type), STR_ARG(name));
    else
        buf_fmt(&check->text,
                " WHEN typeof(%.*s) <> CASE key WHEN 'store_id' THEN 'blob' ELSE 'integer' END"
                " THEN '%.*s'",
                STR_ARG(name), STR_ARG(name));
    return PAWL_OK;
}

static pawl_status name_column(void *context, uint32_t column_count, const str *names,
                               const str *values, const bool *are_numbers)
{
    const struct type_check *check = context;

    (void)column_count, (void)names, (void)are_numbers;
    return verify_bad(check->v, "a row of %.*s holds in %.*s what the column does not declare",
                      STR_ARG(check->table), STR_ARG(values[0]));
}

static pawl_status check_table(struct verify *v, str table)
{
    struct type_check check = { .v = v, .table = table };
    char ask[128];
    pawl_status status;

    (void)snprintf(ask, sizeof ask, "PRAGMA table_info(%.*s)", STR_ARG(table));
    buf_init(&check.text, v->heap, LIMIT_TEXT);
    buf_str(&check.text, STR("SELECT CASE"));
    status = verify_sql(v, str_of(ask), add_column, &check);
    buf_fmt(&check.text, " END AS wrong FROM %.*s WHERE wrong IS NOT NULL LIMIT 1", STR_ARG(table));
    if (status == PAWL_OK && check.text.failed)
        status = scope_no_memory(&v->scope);
    if (status == PAWL_OK)
        status = verify_sql(v, buf_view(&check.text), name_column, &check);
    buf_fini(&check.text);
    return status;
}

pawl_status verify_types(struct verify *v)
{
    struct type_check check = { .v = v };
    pawl_status status;

    buf_init(&check.text, v->heap, LIMIT_TEXT);
    status = verify_sql(v, str_of(select_tables), add_name, &check);
    if (status == PAWL_OK && check.text.failed)
        status = scope_no_memory(&v->scope);
    for (size_t at = 0; status == PAWL_OK && at < check.text.size;) {
        str table = str_of((const char *)buf_view(&check.text).data + at);

        status = check_table(v, table);
        at += table.size + 1;
    }
    buf_fini(&check.text);
    return status;
}
