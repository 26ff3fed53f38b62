/* verify_all.c - store.verify: every record, value, definition and row of a store. */
#include "api/verify_all.h"
#include "api/ops_int.h"
#include "evidence/evidence.h"

/* As instance.verify answers it, with the instance beside it. */
static void put_bad(const struct verify_report *report, struct buf *out)
{
    json_key(out, "first_bad");
    json_u64(out, report->bad_seq);
    json_key(out, "what");
    json_text(out, report->what);
    if (report->bad_instance[0]) {
        json_key(out, "instance_id");
        json_text(out, report->bad_instance);
    }
    if (report->bad_pos > 0) {
        json_key(out, "position");
        json_u64(out, report->bad_pos);
    }
}

static void put_report(const struct verify_report *report, struct buf *out)
{
    json_open(out, '{');
    json_key(out, "valid");
    json_bool(out, report->valid);
    json_key(out, "records");
    json_u64(out, report->records);
    json_key(out, "entries");
    json_u64(out, report->entries);
    json_key(out, "instances");
    json_u64(out, report->instances);
    if (!report->valid)
        put_bad(report, out);
    json_close(out, '}');
}

pawl_status verify_all(pawl *p, verify_progress progress, void *context, struct buf *out,
                       pawl_error *error)
{
    struct verify_report report = { 0 };
    pawl_status status;

    status = verify_store(engine_store(p->engine), &p->heap, 0, progress, context, &report, error);
    if (status == PAWL_OK)
        put_report(&report, out);
    return status;
}

pawl_status op_store_verify(struct op_call *call, struct buf *out)
{
    return verify_all(call->p, NULL, NULL, out, &call->scope->error);
}
