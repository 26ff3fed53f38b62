/* verify_all.c - instance.verify and store.verify: what is to be checked, and the answer.
 *
 * Checking is evidence's; that flows are decided again comes from here: it alone knows both. */
#include "api/verify_all.h"
#include "api/ops_int.h"
#include "api/shards.h"
#include "base/limits.h"
#include "evidence/evidence.h"
#include "flow/flow.h"
#include <stdio.h>

/* ---- the answer ---- */

/* As instance.verify answers it, with the instance beside it. */
static void put_bad(const struct verify_report *report, struct buf *out)
{
    json_put_u64(out, "first_bad", report->bad_seq);
    json_put_text(out, "what", report->what);
    if (report->bad_instance[0])
        json_put_text(out, "instance_id", report->bad_instance);
    json_opt_u64(out, "position", report->bad_pos);
}

static void put_report(const struct verify_report *report, bool is_whole, str foreign,
                       struct buf *out)
{
    if (!report->stopped)
        json_put_bool(out, "valid", report->valid);
    json_put_u64(out, "records", report->records);
    json_put_u64(out, "entries", report->entries);
    json_put_u64(out, "instances", report->instances);
    if (report->stopped) {
        json_put_u64(out, "stopped_at", report->pos);
        json_put_u64(out, "last", report->last);
    } else if (!report->valid) {
        put_bad(report, out);
    } else if (is_whole) {
        json_put_hex(out, "root", report->root, SHA_SIZE);
    }
    json_opt_u64(out, "resumed_at", report->resumed);
    if (report->not_resumed[0])
        json_put_text(out, "not_resumed", report->not_resumed);
    if (foreign.size > 0) {
        json_put_open(out, "foreign", '[');
        json_raw(out, foreign);
        json_close(out, ']');
    }
}

/* ---- objects of the host ---- */

struct verify_telling {
    struct verify_options options;
    struct buf foreign; /* a list of objects, as JSON */
};

static void list_foreign(void *context, str type, str name, str table)
{
    struct verify_telling *telling = context;

    json_open(&telling->foreign, '{');
    json_put_str(&telling->foreign, "type", type);
    json_put_str(&telling->foreign, "name", name);
    json_put_str(&telling->foreign, "table", table);
    json_close(&telling->foreign, '}');
}

/* ---- many instances ---- */

static bool tell(void *context, enum verify_part part, uint64_t done, uint64_t all)
{
    static const char *const words[] = {
        [VERIFY_RECORDS] = "records", [VERIFY_INSTANCES] = "instances", [VERIFY_VALUES] = "values"
    };
    const struct verify_options *options = &((const struct verify_telling *)context)->options;

    return !options->progress || options->progress(options->context, words[part], done, all);
}

static void keep(void *context, str checkpoint)
{
    const struct verify_options *options = &((const struct verify_telling *)context)->options;

    options->keep(options->context, checkpoint);
}

static pawl_status ask_definition(str reference, struct verify_request *request, pawl_error *error)
{
    struct scope scope;
    pawl_status status = PAWL_OK;

    if (reference.data &&
        !definition_reference(reference, &request->definition, &request->version)) {
        scope_init(&scope, &heap_libc, 0);
        status = scope_fail(&scope, PAWL_NOT_KNOWN, "no definition '%.*s'", STR_ARG(reference));
        *error = scope.error;
        scope_fini(&scope);
    }
    return status;
}

/* A store that went back in time is valid by itself; only FILE-head knows that its log was
 * longer. */
static pawl_status ask_witness(pawl *p, struct verify_report *report, pawl_error *error)
{
    struct head_witness witness;
    struct scope scope;
    pawl_status status;

    scope_init(&scope, &p->heap, LIMIT_SCOPE);
    status = store_witness(engine_store(p->engine), &scope, STR_NONE, &witness);
    if (status != PAWL_OK)
        *error = scope.error;
    scope_fini(&scope);
    if (status == PAWL_OK && witness_proves_loss(&witness)) {
        report->valid = false;
        report->bad_pos = witness.pos;
        witness_words(&witness, report->what, sizeof report->what);
    }
    return status;
}

/* ---- several shards, one after the other ---- */

struct verify_sums {
    struct verify_report report;
    struct shard_tip *tips; /* in the scope */
    struct scope scope;
};

static pawl_status verify_shard(pawl *p, uint32_t shard, const struct verify_request *request,
                                struct verify_sums *sums, pawl_error *error)
{
    struct verify_report one, *sum = &sums->report;
    pawl *of = shard_at(p, shard);
    pawl_status status = verify_run(engine_store(of->engine), &p->heap, request, &one, error);

    if (status == PAWL_NOT_KNOWN && request->definition.data && shard != SHARD_HOME)
        return PAWL_OK; /* nothing there was created by it */
    if (status == PAWL_OK && !request->definition.data && one.valid && !one.stopped)
        status = ask_witness(of, &one, error);
    if (status != PAWL_OK)
        return status;
    one.records += sum->records;
    one.entries += sum->entries;
    one.instances += sum->instances;
    memcpy(sums->tips[shard].root, one.root, SHA_SIZE);
    sums->tips[shard].pos = one.last;
    *sum = one;
    if (!one.valid && !one.stopped)
        snprintf(sum->what, sizeof sum->what, "shard %u: %.*s", shard, (int)sizeof sum->what - 32,
                 one.what);
    return PAWL_OK;
}

/* The root of all, over their ends; each shard's stands beside it. */
static pawl_status put_roots(pawl *p, struct verify_sums *sums, struct buf *out)
{
    struct sha *sha = sha_new(&p->heap);
    struct store_tip home;

    TRY_MEMORY(&sums->scope, sha);
    TRY(store_tip(engine_store(p->engine), &sums->scope, &home));
    shards_root(sha, home.whole_id, sums->tips, home.stride, sums->report.root);
    sha_free(sha);
    json_put_open(out, "shards", '[');
    for (uint32_t i = 0; i < shards_count(p); i++) {
        json_open(out, '{');
        json_put_u64(out, "shard", i);
        json_put_u64(out, "records", sums->tips[i].pos);
        json_put_hex(out, "root", sums->tips[i].root, SHA_SIZE);
        json_close(out, '}');
    }
    json_close(out, ']');
    return PAWL_OK;
}

static pawl_status verify_each(pawl *p, const struct verify_request *request,
                               struct verify_telling *telling, struct verify_sums *sums,
                               struct buf *out, pawl_error *error)
{
    struct verify_request whole = *request;
    bool is_whole = !request->definition.data;
    pawl_status status = PAWL_OK;

    whole.limit = whole.keep_every = 0; /* a shard is checked in one go */
    whole.checkpoint = STR_NONE;
    whole.keep = NULL;
    sums->tips = ARENA_ARRAY(&sums->scope.arena, struct shard_tip, shards_count(p));
    TRY_MEMORY(&sums->scope, sums->tips);
    sums->report.valid = true;
    for (uint32_t i = 0;
         i < shards_count(p) && status == PAWL_OK && sums->report.valid && !sums->report.stopped;
         i++)
        status = verify_shard(p, i, &whole, sums, error);
    if (status == PAWL_OK && sums->report.valid && !sums->report.stopped && is_whole)
        TRY(put_roots(p, sums, out));
    if (status == PAWL_OK)
        put_report(&sums->report, is_whole, buf_view(&telling->foreign), out);
    return status;
}

static pawl_status verify_shards(pawl *p, const struct verify_request *request,
                                 struct verify_telling *telling, struct buf *out, pawl_error *error)
{
    struct verify_sums sums = { 0 };
    pawl_status status;

    scope_init(&sums.scope, &p->heap, LIMIT_SCOPE);
    status = verify_each(p, request, telling, &sums, out, error);
    if (status != PAWL_OK && sums.scope.error.status == status)
        *error = sums.scope.error;
    scope_fini(&sums.scope);
    return status;
}

pawl_status verify_all(pawl *p, const struct verify_options *options, struct buf *out,
                       pawl_error *error)
{
    struct verify_telling telling = { .options = *options };
    struct verify_report report;
    struct verify_request request = {
        .flows = &flow_behavior,
        .progress = tell,
        .foreign = list_foreign,
        .limit = options->limit,
        .checkpoint = options->checkpoint,
        .keep_every = options->keep_every,
        .keep = options->keep ? keep : NULL,
        .context = &telling,
    };
    pawl_status status = ask_definition(options->definition, &request, error);

    buf_init(&telling.foreign, &p->heap, LIMIT_SCOPE);
    if (status == PAWL_OK && shards_count(p) > 1) {
        status = verify_shards(p, &request, &telling, out, error);
        buf_fini(&telling.foreign);
        return status;
    }
    if (status == PAWL_OK)
        status = verify_run(engine_store(p->engine), &p->heap, &request, &report, error);
    if (status == PAWL_OK && !request.definition.data && report.valid && !report.stopped)
        status = ask_witness(p, &report, error);
    if (status == PAWL_OK)
        put_report(&report, !request.definition.data, buf_view(&telling.foreign), out);
    buf_fini(&telling.foreign);
    return status;
}

pawl_status op_store_verify(struct op_call *call, struct buf *out)
{
    struct verify_options options = { .definition = op_text(call, "definition") };

    return verify_all(call->p, &options, out, &call->scope->error);
}

/* ---- one instance ---- */

pawl_status op_instance_verify(struct op_call *call, struct buf *out)
{
    struct engine *engine = op_engine(call);
    struct verify_request request = { .flows = &flow_behavior };
    struct verify_report report;
    uint8_t random[ID_RANDOM_SIZE];

    TRY(require_known(call));
    if (!id_parse(op_text(call, "instance_id"), &request.instance, random))
        return scope_fail(call->scope, PAWL_NOT_KNOWN, "no such instance");
    TRY(verify_run(engine_store(engine), engine_heap(engine), &request, &report,
                   &call->scope->error));
    json_put_bool(out, "valid", report.valid);
    json_put_u64(out, "entries", report.entries);
    if (!report.valid) {
        json_put_u64(out, "first_bad", report.bad_seq);
        json_put_text(out, "what", report.what);
    }
    return PAWL_OK;
}

bool verify_is_finding(const pawl_error *error)
{
    return error->status == PAWL_STORAGE_FAILURE &&
           strstr(error->message, STORE_TRIGGER_WORDS) != NULL;
}
