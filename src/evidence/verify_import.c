/* verify_import.c - times along the log. They never fall, with two exceptions: at a clock record
 * with a shift (verify_clock.c), and for the records of another store, which an import record
 * announces and which keep their times: these fall where the other store's clock was shifted, and
 * the record of that shift is not here. The last record of a commit is not one of those: the
 * time of the log's end is the latest. */
#include "base/node.h"
#include "evidence/verify_int.h"

pawl_status verify_import_body(struct verify *v, const struct record *record, struct node **body,
                               uint64_t *count)
{
    int64_t number = -1;

    *body = NULL;
    if (node_read_json(&v->scope, record->body, body) == PAWL_NO_MEMORY)
        return PAWL_NO_MEMORY;
    if (!node_to_i64(node_find(*body, "records"), &number) || number < 0)
        return verify_bad(v, "an import that does not say how many records it brings");
    *count = (uint64_t)number;
    return PAWL_OK;
}

static pawl_status begin_import(struct verify *v, const struct record *record)
{
    struct node *body;
    pawl_status status;

    if (record->instance != 0)
        return verify_bad(v, "an import in an instance's chain");
    TRY(verify_import_body(v, record, &body, &v->imported));
    if (v->imported > 0)
        v->import_pos = 0; /* nothing has come yet that could be moved */
    status = verify_moved(v, body);
    v->import_pos = v->imported > 0 ? record->pos : 0;
    return status;
}

static pawl_status check_imported(struct verify *v, const struct record *record)
{
    v->imported--;
    if (record->instance == 0 && record->what != CONTROL_GONE)
        return verify_bad(v, "an import brings a record of the store itself");
    if (record->has_root)
        return verify_bad(v, "a commit ends with a record of another store");
    if (record->at_ms > v->at_ms)
        return verify_bad(v, "the time of this record is after that of its import");
    return PAWL_OK;
}

pawl_status verify_time(struct verify *v, const struct record *record)
{
    if (v->imported > 0)
        return check_imported(v, record);
    if (record->what == CONTROL_CLOCK)
        TRY(verify_clock_time(v, record));
    else if (v->pos > 0 && record->at_ms < v->at_ms)
        return verify_bad(v, "the time of this record is before that of the one before it");
    v->at_ms = record->at_ms;
    if (v->peak_ms < record->at_ms)
        v->peak_ms = record->at_ms;
    return record->what == CONTROL_IMPORT ? begin_import(v, record) : PAWL_OK;
}
