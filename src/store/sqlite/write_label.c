/* write_label.c - a row for each label of a new instance, to find it by. */
#include "base/limits.h"
#include "base/node.h"
#include "sqlite_int.h"

static const char put_label[] =
    "INSERT INTO pawl_label (key, value, inst) VALUES (?1, ?2, ?3) ON CONFLICT DO NOTHING";

/* What is no JSON has no labels. The text is read in a scope of its own, emptied for each. */
static pawl_status write_one(struct connection *writer, struct scope *scope, struct scope *reading,
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
            TRY(RUN(writer, scope, put_label, TEXT(label->key), TEXT(label->text),
                    NUMBER(row->number)));
    return PAWL_OK;
}

pawl_status write_labels(struct connection *writer, struct scope *scope,
                         const struct commit *commit)
{
    struct scope reading;
    pawl_status status = PAWL_OK;

    scope_init(&reading, scope->arena.heap, LIMIT_SCOPE);
    for (size_t i = 0; i < commit->instance_count && status == PAWL_OK; i++)
        if (commit->instances[i].labels.data)
            status = write_one(writer, scope, &reading, &commit->instances[i]);
    scope_fini(&reading);
    return status;
}
