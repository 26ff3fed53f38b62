/* rebuild_store.c - a store taken without an engine, and its derived rows made from its log. */
#include "base/limits.h"
#include "evidence/evidence.h"
#include "flow/flow.h"
#include "repair/owned.h"
#include "repair/repair.h"

static bool tell(void *context, enum verify_part part, uint64_t done, uint64_t all)
{
    static const char *const words[] = {
        [VERIFY_RECORDS] = "records", [VERIFY_INSTANCES] = "instances", [VERIFY_VALUES] = "values"
    };
    const struct rebuild_options *options = context;

    if (options->progress)
        (void)options->progress(options->context, words[part], done, all);
    return true; /* half of it would be nothing: it is not stopped */
}

static void put_rebuilt(const struct rebuild_report *report, struct buf *out)
{
    json_put_bool(out, "rebuilt", true);
    json_put_u64(out, "heads", report->heads);
    json_put_u64(out, "steps", report->steps);
    json_put_u64(out, "timers", report->timers);
    json_put_u64(out, "waits", report->waits);
    json_put_u64(out, "pauses", report->pauses);
    json_put_u64(out, "kept", report->kept);
    json_put_u64(out, "keys", report->keys);
    json_put_u64(out, "differences", report->differences);
    json_put_open(out, "what", '[');
    for (uint32_t i = 0; i < report->told; i++)
        json_text(out, report->what[i]);
    json_close(out, ']');
}

static pawl_status rebuild(struct store *store, const struct rebuild_options *options,
                           struct rebuild_report *rebuilt, struct buf *out, pawl_error *error)
{
    struct rebuild_options asked = *options;
    struct verify_request request = {
        .flows = &flow_behavior, .progress = tell, .context = &asked, .rebuild = rebuilt
    };
    struct verify_report report;

    TRY(verify_run(store, &heap_libc, &request, &report, error));
    json_open(out, '{');
    if (report.valid) {
        put_rebuilt(rebuilt, out);
    } else {
        json_put_bool(out, "rebuilt", false);
        json_put_text(out, "what", report.what);
        json_put_u64(out, "position", report.bad_pos);
    }
    json_close(out, '}');
    return PAWL_OK;
}

pawl_status rebuild_store(const char *url, const struct rebuild_options *options, struct buf *out,
                          pawl_error *error)
{
    struct rebuild_report *report;
    struct owned owned;
    pawl_status status = owned_open(&owned, url);

    report = ARENA_NEW(&owned.scope.arena, struct rebuild_report);
    if (status == PAWL_OK && !report)
        status = scope_no_memory(&owned.scope);
    if (status == PAWL_OK)
        status = rebuild(owned.store, options, report, out, &owned.scope.error);
    return owned_close(&owned, status, error);
}
