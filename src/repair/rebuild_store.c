/* rebuild_store.c - a store taken without an engine, and its derived rows made from its log. */
#include "base/limits.h"
#include "evidence/evidence.h"
#include "flow/flow.h"
#include "repair/owned.h"
#include "repair/repair.h"
#include <stdio.h>

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

/* What a shard's rebuilding changed, added to what is known. */
static void add(struct rebuild_report *sum, const struct rebuild_report *one, uint32_t shard)
{
    sum->heads += one->heads;
    sum->steps += one->steps;
    sum->timers += one->timers;
    sum->waits += one->waits;
    sum->pauses += one->pauses;
    sum->kept += one->kept;
    sum->keys += one->keys;
    sum->differences += one->differences;
    for (uint32_t i = 0; i < one->told && sum->told < REBUILD_TOLD_MAX; i++)
        snprintf(sum->what[sum->told++], REBUILD_WORDS_SIZE, "shard %u: %.*s", shard,
                 REBUILD_WORDS_SIZE - 24, one->what[i]);
}

static void put_bad(const struct owned *owned, uint32_t shard, const struct verify_report *report,
                    struct buf *out)
{
    char what[sizeof report->what + 20];

    snprintf(what, sizeof what, owned->count > 1 ? "shard %u: %s" : "%.0u%s", shard, report->what);
    json_put_bool(out, "rebuilt", false);
    json_put_text(out, "what", what);
    json_put_u64(out, "position", report->bad_pos);
}

/* All are checked before any is written to. */
static pawl_status check_all(struct owned *owned, const struct verify_request *request,
                             struct verify_report *report, uint32_t *shard)
{
    struct verify_request checking = *request;

    checking.rebuild = NULL;
    checking.log_alone = true;
    report->valid = true;
    for (*shard = 0; owned->count > 1 && *shard < owned->count; ++*shard) {
        TRY(verify_run(owned->shards[*shard], &heap_libc, &checking, report, &owned->scope.error));
        if (!report->valid)
            return PAWL_OK;
    }
    *shard = 0;
    return PAWL_OK;
}

static pawl_status rebuild_all(struct owned *owned, struct verify_request *request,
                               struct verify_report *report, struct rebuild_report *sum,
                               uint32_t *shard)
{
    struct rebuild_report *one = request->rebuild;

    TRY(check_all(owned, request, report, shard));
    for (; report->valid && *shard < owned->count; ++*shard) {
        *one = (struct rebuild_report){ 0 };
        TRY(verify_run(owned->shards[*shard], &heap_libc, request, report, &owned->scope.error));
        if (owned->count > 1)
            add(sum, one, *shard);
        else
            *sum = *one;
        if (!report->valid)
            break;
    }
    return PAWL_OK;
}

static pawl_status rebuild(struct owned *owned, const struct rebuild_options *options,
                           struct buf *out)
{
    struct rebuild_options asked = *options;
    struct rebuild_report *sum = ARENA_NEW(&owned->scope.arena, struct rebuild_report),
                          *one = ARENA_NEW(&owned->scope.arena, struct rebuild_report);
    struct verify_request request = {
        .flows = &flow_behavior, .progress = tell, .context = &asked, .rebuild = one
    };
    struct verify_report report;
    uint32_t shard;

    TRY_MEMORY(&owned->scope, sum && one);
    TRY(rebuild_all(owned, &request, &report, sum, &shard));
    json_open(out, '{');
    if (report.valid)
        put_rebuilt(sum, out);
    else
        put_bad(owned, shard, &report, out);
    json_close(out, '}');
    return PAWL_OK;
}

pawl_status rebuild_store(const char *url, const struct rebuild_options *options, struct buf *out,
                          pawl_error *error)
{
    struct owned owned;
    pawl_status status = owned_open(&owned, url);

    if (status == PAWL_OK)
        status = rebuild(&owned, options, out);
    return owned_close(&owned, status, error);
}
