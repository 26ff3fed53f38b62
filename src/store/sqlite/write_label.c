/* write_label.c - a row for each label of a new instance, to find it by, until it is erased. */
#include "base/limits.h"
#include "base/node.h"
#include "sqlite_int.h"

static const char put_label[] =
    "INSERT INTO pawl_label (key, value, inst) VALUES (?1, ?2, ?3) ON CONFLICT DO NOTHING";
static const char delete_label[] =
    "DELETE FROM pawl_label WHERE key = ?1 AND value = ?2 AND inst = ?3";

/* Runs a statement for each. What is no JSON has no labels. The text is read in a scope of its own,
 * emptied for each. */
static pawl_status run_for_each(struct connection *writer, struct scope *scope,
                                struct scope *reading, const char *text,
                                const struct instance_row *row)
{
    struct node *object;
    pawl_status status;

    scope_clear(reading);
    status = node_read_json(reading, row->labels, &object);
    if (status == PAWL_NO_MEMORY)
        return scope_no_memory(scope);
    if (status != PAWL_OK || object->kind != NODE_OBJECT)
        return PAWL_OK;
    for (const struct node *label = object->first; label; label = label->next)
        if (label->kind == NODE_STRING)
            TRY(RUN(writer, scope, text, TEXT(label->key), TEXT(label->text), NUMBER(row->number)));
    return PAWL_OK;
}

static pawl_status run_for_all(struct connection *writer, struct scope *scope, const char *text,
                               const struct instance_row *rows, size_t count)
{
    struct scope reading;
    pawl_status status = PAWL_OK;

    scope_init(&reading, scope->arena.heap, LIMIT_SCOPE);
    for (size_t i = 0; i < count && status == PAWL_OK; i++)
        if (rows[i].labels.data)
            status = run_for_each(writer, scope, &reading, text, &rows[i]);
    scope_fini(&reading);
    return status;
}

pawl_status write_labels(struct connection *writer, struct scope *scope,
                         const struct commit *commit)
{
    return run_for_all(writer, scope, put_label, commit->instances, commit->instance_count);
}

pawl_status delete_labels(struct connection *writer, struct scope *scope,
                          const struct instance_row *rows, size_t count)
{
    return run_for_all(writer, scope, delete_label, rows, count);
}
