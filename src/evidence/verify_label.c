/* verify_label.c - the rows that find instances by label, against the labels themselves.
 *
 * One list in SQL: for each instance first its labels as they were supplied, then its rows in
 * order; one moment of a store that may be written to. */
#include "base/limits.h"
#include "base/node.h"
#include "evidence/verify_int.h"
#include <stdlib.h>

static const char query[] =
    "SELECT number AS inst, 0 AS part, labels AS key, '' AS value FROM pawl_instance"
    " WHERE labels IS NOT NULL UNION ALL SELECT inst, 1, key, value FROM pawl_label"
    " ORDER BY 1, 2, 3, 4";

struct label {
    str key, value;
};

struct label_scan {
    struct verify *v;
    struct scope scope; /* of the instance being looked at */
    uint64_t number;
    struct label *labels; /* in order; those before `next` had their row */
    uint32_t count, next;
};

static int compare_labels(const void *a, const void *b)
{
    const struct label *left = a, *right = b;
    int order = str_compare(left->key, right->key);

    return order != 0 ? order : str_compare(left->value, right->value);
}

static pawl_status bad_labels(struct label_scan *scan)
{
    verify_at(scan->v, 0, scan->number, 0);
    return verify_bad(scan->v, "its label rows are not what its labels say");
}

static pawl_status end_instance(struct label_scan *scan)
{
    return scan->next < scan->count ? bad_labels(scan) : PAWL_OK;
}

/* What is no JSON object has no labels, and needs no rows. */
static pawl_status read_labels(struct label_scan *scan, str text)
{
    struct node *object;
    pawl_status status = node_read_json(&scan->scope, text, &object);

    if (status != PAWL_OK || object->kind != NODE_OBJECT)
        return status == PAWL_NO_MEMORY ? scope_no_memory(&scan->v->scope) : PAWL_OK;
    scan->labels = ARENA_ARRAY(&scan->scope.arena, struct label, (size_t)object->count + 1);
    if (!scan->labels)
        return scope_no_memory(&scan->v->scope);
    for (const struct node *node = object->first; node; node = node->next)
        if (node->kind == NODE_STRING)
            scan->labels[scan->count++] = (struct label){ node->key, node->text };
    qsort(scan->labels, scan->count, sizeof *scan->labels, compare_labels);
    return PAWL_OK;
}

static pawl_status begin_instance(struct label_scan *scan, uint64_t number)
{
    pawl_status status = end_instance(scan);

    scope_clear(&scan->scope);
    scan->number = number;
    scan->count = scan->next = 0;
    return status;
}

static pawl_status take_row(void *context, uint32_t column_count, const str *names,
                            const str *values, const bool *are_numbers)
{
    struct label_scan *scan = context;
    struct label found;
    uint64_t number = 0;
    pawl_status status = PAWL_OK;

    (void)are_numbers;
    (void)names;
    if (column_count != 4 || !str_to_u64(values[0], &number))
        return bad_labels(scan);
    if (number != scan->number)
        status = begin_instance(scan, number);
    if (status != PAWL_OK || str_is(values[1], "0"))
        return status != PAWL_OK ? status : read_labels(scan, values[2]);
    found = (struct label){ values[2], values[3] };
    if (scan->next == scan->count || compare_labels(&scan->labels[scan->next], &found) != 0)
        return bad_labels(scan);
    scan->next++;
    return PAWL_OK;
}

pawl_status verify_labels(struct verify *v)
{
    struct label_scan scan = { .v = v };
    pawl_status status;

    scope_init(&scan.scope, v->heap, LIMIT_SCOPE);
    status = verify_sql(v, str_of(query), take_row, &scan);
    if (status == PAWL_OK)
        status = end_instance(&scan);
    scope_fini(&scan.scope);
    return status;
}
