/* copy_store.c - a store copied through store.h alone, from one backend to another.
 *
 * The copy has the same store id, positions, hashes and roots, so that it is the same evidence.
 * Copied are the log, the values, the definitions and the rows of instances. The rows that follow
 * from the log are made from the copied log, which is checked on the way. A store of several shards
 * is copied shard by shard. */
#include "base/grow.h"
#include "base/limits.h"
#include "evidence/evidence.h"
#include "flow/flow.h"
#include "model/shard.h"
#include "repair/owned.h"
#include "repair/repair.h"

#define PAGE_ROWS    1000u
#define PAGE_RECORDS 4096u
#define PAGE_BYTES   ((size_t)8 << 20)

struct copying {
    struct store *from, *to; /* one shard of each */
    struct store_tip tip;    /* of the source */
    struct scope page;    /* of what is copied together; emptied after each commit */
    struct record *records;
    uint32_t count, capacity;
    const struct rebuild_options *options;
};

static void tell(struct copying *copying, const char *what, uint64_t done, uint64_t all)
{
    if (copying->options->progress)
        (void)copying->options->progress(copying->options->context, what, done, all);
}

static pawl_status put(struct copying *copying, const struct commit *commit)
{
    struct store_tip tip;

    TRY(store_begin(copying->to, &copying->page, &tip));
    return store_commit(copying->to, &copying->page, commit);
}

/* ---- Definitions and values: by their numbers, which may have gaps ---- */

static pawl_status copy_definitions(struct copying *copying)
{
    for (uint32_t id = 1; id <= copying->tip.last_definition; id++) {
        struct definition_row row;
        pawl_status status = store_definition(copying->from, &copying->page, id, &row);

        if (status == PAWL_OK)
            status = put(copying, &(struct commit){ .definitions = &row, .definition_count = 1 });
        if (status != PAWL_OK && status != PAWL_NOT_KNOWN)
            return status;
        scope_clear(&copying->page);
    }
    return PAWL_OK;
}

/* As many as fit, from `first` on. */
static pawl_status read_values(struct copying *copying, uint64_t first, struct value *out,
                               uint32_t *count, uint64_t *next)
{
    uint64_t *ids = ARENA_ARRAY(&copying->page.arena, uint64_t, PAGE_ROWS);
    uint64_t left = copying->tip.last_value + 1 - first;
    uint32_t room = left < PAGE_ROWS ? (uint32_t)left : PAGE_ROWS;

    TRY_MEMORY(&copying->page, ids);
    for (uint32_t i = 0; i < room; i++)
        ids[i] = first + i;
    TRY(store_expect(copying->from, &copying->page,
                     &(struct expectation){ .values = ids, .value_count = room }));
    for (*next = first; *next < first + room; ++*next) {
        pawl_status status = store_value(copying->from, &copying->page, *next, &out[*count]);

        if (status != PAWL_OK && status != PAWL_NOT_KNOWN)
            return status;
        *count += status == PAWL_OK;
        if (copying->page.arena.used > PAGE_BYTES) {
            ++*next;
            break;
        }
    }
    return PAWL_OK;
}

static pawl_status copy_values(struct copying *copying)
{
    for (uint64_t next = 1; next <= copying->tip.last_value;) {
        struct value *values = ARENA_ARRAY(&copying->page.arena, struct value, PAGE_ROWS);
        uint32_t count = 0;

        TRY_MEMORY(&copying->page, values);
        TRY(read_values(copying, next, values, &count, &next));
        if (count > 0)
            TRY(put(copying, &(struct commit){ .values = values, .value_count = count }));
        scope_clear(&copying->page);
        tell(copying, "values", next - 1, copying->tip.last_value);
    }
    return PAWL_OK;
}

/* ---- Instances ---- */

static pawl_status copy_instances(struct copying *copying)
{
    struct list_query query = { .oldest_first = true, .limit = PAGE_ROWS };
    uint32_t count;

    do {
        struct instance_row *rows =
            ARENA_ARRAY(&copying->page.arena, struct instance_row, PAGE_ROWS);
        uint64_t *numbers;

        TRY_MEMORY(&copying->page, rows);
        TRY(store_list(copying->from, &copying->page, &query, &numbers, &count));
        if (count == 0)
            break;
        TRY(store_expect(copying->from, &copying->page,
                         &(struct expectation){
                             .instances = numbers, .instance_count = count, .rows = EXPECT_ROWS }));
        for (uint32_t i = 0; i < count; i++)
            TRY(store_instance(copying->from, &copying->page, numbers[i], &rows[i]));
        query.after = numbers[count - 1];
        TRY(put(copying, &(struct commit){ .instances = rows, .instance_count = count }));
        scope_clear(&copying->page);
        tell(copying, "instances", query.after, copying->tip.last_instance);
    } while (count == PAGE_ROWS);
    return PAWL_OK;
}

/* ---- The log ---- */

static pawl_status put_records(struct copying *copying)
{
    if (copying->count == 0)
        return PAWL_OK;
    TRY(put(copying,
            &(struct commit){ .records = copying->records, .record_count = copying->count }));
    tell(copying, "records", copying->records[copying->count - 1].pos, copying->tip.pos);
    scope_clear(&copying->page);
    copying->records = NULL;
    copying->count = copying->capacity = 0;
    return PAWL_OK;
}

/* Several commits of the source go together, and end where one of them ends. */
static pawl_status take_record(void *context, const struct record *record)
{
    struct copying *copying = context;
    struct record *next;

    TRY_MEMORY(&copying->page,
               GROW(&copying->page.arena, copying->records, copying->count, copying->capacity));
    next = &copying->records[copying->count++];
    *next = *record;
    next->body = arena_str(&copying->page.arena, record->body);
    next->key = arena_str(&copying->page.arena, record->key);
    TRY_MEMORY(&copying->page, !copying->page.arena.failed);
    if (record->has_root &&
        (copying->count >= PAGE_RECORDS || copying->page.arena.used > PAGE_BYTES))
        return put_records(copying);
    return PAWL_OK;
}

static pawl_status copy_log(struct copying *copying)
{
    struct scope scanning;
    pawl_status status;

    scope_init(&scanning, &heap_libc, LIMIT_SCOPE);
    status = store_scan(copying->from, &scanning, 1, take_record, copying);
    if (status == PAWL_OK)
        status = put_records(copying);
    if (status != PAWL_OK && copying->page.error.status != status)
        copying->page.error = scanning.error;
    scope_fini(&scanning);
    return status;
}

/* ---- All of it ---- */

/* Only into a store that is new, and was made for this. */
static pawl_status check_empty(struct copying *copying)
{
    struct store_tip tip;

    TRY(store_tip(copying->to, &copying->page, &tip));
    if (tip.pos == 0 && tip.last_value == 0 && tip.last_definition == 0 &&
        memcmp(tip.store_id, copying->tip.store_id, STORE_ID_SIZE) == 0)
        return PAWL_OK;
    return scope_fail(
        &copying->page, PAWL_CONFLICT,
        "expected that there is no store yet where the copy is to be, found one: name "
        "another file or schema");
}

static pawl_status copy_all(struct copying *copying)
{
    TRY(check_empty(copying));
    TRY(copy_definitions(copying));
    TRY(copy_values(copying));
    TRY(copy_instances(copying));
    return copy_log(copying);
}

struct copy_sums {
    struct verify_report report; /* of the last shard that was copied */
    uint64_t records, instances, values;
    struct shard_tip *tips;
};

static void put_answer(const struct owned *from, const struct copy_sums *sums, struct buf *out)
{
    const struct verify_report *report = &sums->report;

    json_open(out, '{');
    json_put_bool(out, "copied", report->valid);
    json_put_u64(out, "records", sums->records);
    json_put_u64(out, "instances", sums->instances);
    json_put_u64(out, "values", sums->values);
    json_put_hex(out, "store_id", from->tip.whole_id, STORE_ID_SIZE);
    json_put_hex(out, "root", report->root, SHA_SIZE);
    if (from->count > 1)
        json_put_u64(out, "shards", from->count);
    if (!report->valid) {
        json_put_text(out, "what", report->what);
        json_put_u64(out, "position", report->bad_pos);
    }
    json_close(out, '}');
}

/* Checks the copied log, and makes the rows that follow from it. */
static pawl_status finish(struct copying *copying, struct scope *scope, struct copy_sums *sums)
{
    struct rebuild_report *rebuilt = ARENA_NEW(&scope->arena, struct rebuild_report);
    struct verify_request request = { .flows = &flow_behavior, .rebuild = rebuilt };
    struct verify_report *report = &sums->report;

    TRY_MEMORY(scope, rebuilt);
    TRY(verify_run(copying->to, &heap_libc, &request, report, &scope->error));
    if (report->valid && memcmp(report->root, copying->tip.root, SHA_SIZE) != 0 &&
        copying->tip.pos > 0)
        return scope_fail(scope, PAWL_STORAGE_FAILURE,
                          "the copy has another root than what it was copied from");
    sums->records += report->records;
    sums->instances += report->instances;
    sums->values += copying->tip.last_value;
    return PAWL_OK;
}

static pawl_status copy_shard(struct owned *from, struct owned *to, uint32_t shard,
                              const struct rebuild_options *options, struct copy_sums *sums)
{
    struct copying copying = { .from = from->shards[shard],
                               .to = to->shards[shard],
                               .options = options };
    struct shard_tip *tip = &sums->tips[shard];
    pawl_status status = store_tip(copying.from, &to->scope, &copying.tip);

    if (status != PAWL_OK)
        return status;
    scope_init(&copying.page, &heap_libc, (size_t)1 << 30);
    TRY(scope_leave(&copying.page, &to->scope, copy_all(&copying)));
    TRY(finish(&copying, &to->scope, sums));
    tip->pos = copying.tip.pos;
    memcpy(tip->root, sums->report.root, SHA_SIZE);
    return PAWL_OK;
}

/* The root of the whole, over those of its shards. */
static pawl_status put_whole_root(const struct owned *from, struct scope *scope,
                                  struct copy_sums *sums)
{
    struct sha *sha = sha_new(&heap_libc);

    TRY_MEMORY(scope, sha);
    shards_root(sha, from->tip.whole_id, sums->tips, from->count, sums->report.root);
    sha_free(sha);
    return PAWL_OK;
}

static pawl_status copy_into(struct owned *from, struct owned *to,
                             const struct rebuild_options *options, struct buf *out)
{
    struct copy_sums sums = { .tips =
                                  ARENA_ARRAY(&to->scope.arena, struct shard_tip, from->count) };

    TRY_MEMORY(&to->scope, sums.tips);
    if (to->count != from->count)
        return scope_fail(&to->scope, PAWL_CONFLICT,
                          "expected that there is no store yet where the copy is to be, found one "
                          "of %u shards: name another file or schema",
                          to->count);
    sums.report.valid = true;
    for (uint32_t i = 0; i < from->count && sums.report.valid; i++)
        TRY(copy_shard(from, to, i, options, &sums));
    if (sums.report.valid && from->count > 1)
        TRY(put_whole_root(from, &to->scope, &sums));
    put_answer(from, &sums, out);
    return PAWL_OK;
}

pawl_status copy_store(const char *from_url, const char *to_url,
                       const struct rebuild_options *options, struct buf *out, pawl_error *error)
{
    struct owned from, to;
    pawl_status status = owned_open(&from, from_url);

    if (status != PAWL_OK)
        return owned_close(&from, status, error);
    status = owned_make(&to, to_url, from.tip.whole_id, from.count);
    if (status == PAWL_OK)
        status = copy_into(&from, &to, options, out);
    status = owned_close(&to, status, error);
    (void)owned_close(&from, PAWL_OK, error);
    return status;
}
