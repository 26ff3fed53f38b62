/* store.c - stores by URL, and the checks round every call of every backend.
 *
 * Arguments are our own promises, so they are asserted; so are results, where a backend could
 * only get them wrong by its own fault. What a damaged disk could bring about is checked, and
 * is a STORAGE_FAILURE: the layers above may rely on it. */
#include "store/store.h"
#include "base/assert.h"
#include "base/limits.h"
#include "base/redact.h"
#include "model/definition.h"
#include "store/instance_log.h"

static const struct {
    const char *scheme; /* of the URL */
    const struct store_ops *ops;
} backends[] = { { "sqlite", &sqlite_store_ops },
                 { "memory", &memory_store_ops },
                 { "postgres", &postgres_store_ops },
                 { "postgresql", &postgres_store_ops } };
#define BACKEND_COUNT (sizeof backends / sizeof *backends)

/* Rows that are claimed are there. */
#define ASSERT_ROWS(rows, count) ASSERT(IMPLIES((count) > 0, (rows) != NULL))

static pawl_status expect(struct scope *scope, bool is_sound, const char *what)
{
    return is_sound ? PAWL_OK : store_fail_damaged(scope, what);
}

pawl_status store_open(str url, const struct store_options *options, struct scope *scope,
                       struct store **out)
{
    str path = str_after(url, ':');
    const struct store_ops *ops = NULL;
    pawl_status status;

    ASSERT(options && options->env && options->heap);
    ASSERT(out);
    for (size_t i = 0; path.data && i < BACKEND_COUNT; i++)
        if (str_is(str_before(url, ':'), backends[i].scheme))
            ops = backends[i].ops;
    if (!ops)
        return scope_fail(scope, PAWL_INVALID_REQUEST,
                          "a store's URL is sqlite:FILE, postgres://HOST/DATABASE or memory:, "
                          "found '%.*s'",
                          STR_ARG(url_redact(&scope->arena, url)));
    status = ops->open(path, options, scope, out);
    ASSERT(IMPLIES(status == PAWL_OK, *out && (*out)->ops == ops));
    return status;
}

void store_close(struct store *store)
{
    if (store)
        store->ops->close(store);
}

/* Contract (14) */
static pawl_status check_taken(const struct store *store, struct scope *scope)
{
    if (store->trouble != TROUBLE_TAKEN)
        return PAWL_OK;
    return scope_fail(scope, PAWL_IN_USE,
                      "another process has taken this store over: nothing more is written here");
}

pawl_status store_reopen(struct store *store, struct scope *scope)
{
    TRY(check_taken(store, scope));
    return store->ops->reopen(store, scope);
}

/* Numbers from which a commit can go on. */
static bool tip_is_sound(const struct store_tip *tip)
{
    return tip->flushed <= tip->pos && tip->pos < INT64_MAX && tip->last_value < INT64_MAX &&
           tip->last_instance < ID_NUMBER_MAX && tip->last_definition < UINT32_MAX &&
           tip->offset < tip->stride;
}

pawl_status store_begin(struct store *store, struct scope *scope, struct store_tip *out)
{
    ASSERT(out);
    TRY(check_taken(store, scope));
    TRY(store->ops->begin(store, scope, out));
    if (tip_is_sound(out))
        return PAWL_OK;
    store_rollback(store);
    return store_fail_damaged(scope, "an end of the log");
}

static void check_records(const struct commit *commit)
{
    ASSERT_ROWS(commit->records, commit->record_count);
    for (size_t i = 0; i < commit->record_count; i++) {
        const struct record *record = &commit->records[i];

        ASSERT(record->pos == commit->records[0].pos + i);
        ASSERT(record->prev < record->pos);
        ASSERT(record->skip < record->pos);
        ASSERT(record->what >= CONTROL_GONE);
    }
}

static void check_rows(const struct commit *commit)
{
    ASSERT_ROWS(commit->values, commit->value_count);
    for (size_t i = 0; i < commit->value_count; i++)
        ASSERT(commit->values[i].id > 0);
    ASSERT_ROWS(commit->definitions, commit->definition_count);
    for (size_t i = 0; i < commit->definition_count; i++)
        ASSERT(commit->definitions[i].id > 0);
    ASSERT_ROWS(commit->instances, commit->instance_count);
    for (size_t i = 0; i < commit->instance_count; i++)
        ASSERT(commit->instances[i].number > 0 && commit->instances[i].number <= ID_NUMBER_MAX);
}

static void check_derived(const struct commit *commit)
{
    ASSERT_ROWS(commit->heads, commit->head_count);
    for (size_t i = 1; i < commit->head_count; i++)
        ASSERT(commit->heads[i - 1].instance <= commit->heads[i].instance);
    ASSERT_ROWS(commit->live, commit->live_count);
    for (size_t i = 0; i < commit->live_count; i++)
        ASSERT(commit->live[i].instance > 0);
    ASSERT_ROWS(commit->keys, commit->key_count);
    for (size_t i = 0; i < commit->key_count; i++)
        ASSERT(commit->keys[i].pos > 0);
    ASSERT_ROWS(commit->snapshots, commit->snapshot_count);
    for (size_t i = 0; i < commit->snapshot_count; i++)
        ASSERT(commit->is_rebuild == !commit->snapshots[i].text.data);
    ASSERT(IMPLIES(commit->is_rebuild, commit->record_count == 0 && commit->instance_count == 0 &&
                                           commit->value_count == 0));
}

static void check_erased(const struct commit *commit)
{
    ASSERT_ROWS(commit->erasures, commit->erasure_count);
    for (size_t i = 0; i < commit->erasure_count; i++)
        ASSERT(commit->erasures[i].id > 0 && !commit->erasures[i].bytes.data);
    ASSERT_ROWS(commit->redactions, commit->redaction_count);
    for (size_t i = 0; i < commit->redaction_count; i++)
        ASSERT(commit->redactions[i].pos > 0 && (commit->redactions[i].flags & RECORD_ERASED));
    ASSERT_ROWS(commit->cleared, commit->cleared_count);
}

static void check_departures(const struct store *store, const struct commit *commit)
{
    ASSERT(IMPLIES(commit->departure_count + commit->departed_count > 0, store->ops->archives));
    ASSERT_ROWS(commit->departures, commit->departure_count);
    for (size_t i = 0; i < commit->departure_count; i++)
        ASSERT(commit->departures[i].pos < commit->departures[i].archived);
    ASSERT_ROWS(commit->dropped, commit->dropped_count);
    ASSERT_ROWS(commit->departed, commit->departed_count);
}

bool commit_erases(const struct commit *commit)
{
    return commit->erasure_count + commit->redaction_count + commit->cleared_count > 0;
}

pawl_status store_scrub(struct store *store, struct scope *scope)
{
    return store->ops->scrub ? store->ops->scrub(store, scope) : PAWL_OK;
}

pawl_status store_commit(struct store *store, struct scope *scope, const struct commit *commit)
{
    pawl_status status;

    ASSERT(commit);
    check_records(commit);
    check_rows(commit);
    check_derived(commit);
    check_erased(commit);
    check_departures(store, commit);
    status = store->ops->commit(store, scope, commit);
    if (status == PAWL_IN_USE)
        store->trouble = TROUBLE_TAKEN;
    ASSERT(IMPLIES(status != PAWL_OK, scope->error.status == status));
    return status;
}

void store_rollback(struct store *store)
{
    store->ops->rollback(store);
}

pawl_status store_tip(struct store *store, struct scope *scope, struct store_tip *out)
{
    ASSERT(out);
    TRY(store->ops->tip(store, scope, out));
    return expect(scope, tip_is_sound(out), "an end of the log");
}

uint64_t chain_next(const struct chain_query *query, const struct record *record)
{
    uint64_t next = record->skip && record->seq >= query->skip_from ? record->skip : record->prev;

    if (record->seq < query->first || (record->seq == query->first && record->what >= 0))
        return 0;
    return next < record->pos ? next : 0; /* else it is not sound, which store_records_of() tells */
}

pawl_status store_records_of(struct store *store, struct scope *scope, struct chain_query *query,
                             struct record *out, uint32_t room, uint32_t *count)
{
    bool is_sound = true;
    pawl_status status;

    ASSERT(query->pos > 0 && room > 0);
    *count = 0;
    memset(out, 0, room * sizeof *out);
    status = store->ops->records_of(store, scope, query, out, room, count);
    ASSERT(*count <= room && IMPLIES(status == PAWL_OK, *count > 0));
    for (uint32_t i = 0; i < *count; i++)
        is_sound = is_sound && record_is_sound(&out[i], out[i].pos);
    return status ? status : expect(scope, is_sound, "a record");
}

/* Most walks end soon: pages grow. */
#define WALK_PAGE 256u

pawl_status store_walk(struct store *store, struct scope *scope, const struct chain_query *from,
                       record_sight see, void *context)
{
    struct chain_query query = *from;
    struct scope page;
    bool is_enough = false;
    pawl_status status = PAWL_OK;

    scope_init(&page, scope->arena.heap, LIMIT_SCOPE);
    for (uint32_t room = 1, count; !status && query.pos && !is_enough; room *= 4) {
        struct record *records;

        room = room < WALK_PAGE ? room : WALK_PAGE;
        scope_clear(&page);
        records = ARENA_ARRAY(&page.arena, struct record, room);
        status = records ? store_records_of(store, &page, &query, records, room, &count)
                         : scope_no_memory(&page);
        for (uint32_t i = 0; !status && !is_enough && i < count; i++)
            is_enough = see(context, &records[i]);
    }
    return scope_leave(&page, scope, status);
}

struct entry_sight {
    uint64_t seq, pos;
};

static bool is_entry(void *context, const struct record *record)
{
    struct entry_sight *sight = context;

    if (record->what >= 0 && record->seq == sight->seq)
        sight->pos = record->pos;
    return sight->pos || record->seq < sight->seq;
}

/* Control records have the number of the entry before them. */
pawl_status store_entry(struct store *store, struct scope *scope, uint64_t pos, uint64_t seq,
                        struct record *out)
{
    const struct chain_query query = { .pos = pos, .first = seq, .skip_from = seq + SKIP_EVERY };
    struct entry_sight sight = { .seq = seq };
    if (pos)
        TRY(store_walk(store, scope, &query, is_entry, &sight));
    if (sight.pos)
        return store_record(store, scope, sight.pos, out);
    return scope_fail(scope, PAWL_NOT_KNOWN, "entry %llu is not in its instance's chain",
                      (unsigned long long)seq);
}

pawl_status store_records(struct store *store, struct scope *scope, const uint64_t *positions,
                          uint32_t count, struct record *out, uint32_t *read)
{
    bool is_sound = true;

    ASSERT(count > 0);
    *read = 0;
    TRY(store->ops->records(store, scope, positions, count, out, read));
    ASSERT(*read > 0 && *read <= count);
    for (uint32_t i = 0; i < *read; i++)
        is_sound = is_sound && out[i].pos == positions[i] && record_is_sound(&out[i], positions[i]);
    return expect(scope, is_sound, "a record");
}

pawl_status store_scan(struct store *store, struct scope *scope, uint64_t from, record_fn fn,
                       void *context)
{
    ASSERT(fn);
    ASSERT(from <= INT64_MAX);
    return store->ops->scan(store, scope, from, fn, context);
}

/* Contract (9), of what one page can show. */
static bool page_is_sound(const struct list_query *query, const uint64_t *numbers, uint32_t count)
{
    uint64_t last = query->after;

    for (uint32_t i = 0; i < count; last = numbers[i++])
        if (!is_instance_number(numbers[i]) ||
            (query->oldest_first ? numbers[i] <= last : last > 0 && numbers[i] >= last))
            return false;
    return true;
}

bool list_query_by_state(const struct list_query *query)
{
    return query->state.data || query->status || query->is_active || query->has_ended ||
           query->ended.has_after || query->ended.has_before;
}

pawl_status store_list(struct store *store, struct scope *scope, const struct list_query *query,
                       uint64_t **out, uint32_t *count)
{
    ASSERT(query && out && count);
    TRY(store->ops->list(store, scope, query, out, count));
    ASSERT(*count <= query->limit);
    return expect(scope, page_is_sound(query, *out, *count), "an instance");
}

pawl_status store_counts(struct store *store, struct scope *scope, str name, uint32_t version,
                         struct state_count **out, uint32_t *count)
{
    ASSERT(out && count);
    TRY(store->ops->counts(store, scope, name, version, out, count));
    for (uint32_t i = 0; i < *count; i++)
        ASSERT((*out)[i].state.data);
    return PAWL_OK;
}

pawl_status store_sql(struct store *store, struct scope *scope, str text, int64_t limit_ms,
                      row_fn fn, void *context)
{
    ASSERT(fn && limit_ms >= 0);
    if (!store->ops->sql)
        return scope_fail(scope, PAWL_INVALID_REQUEST, "a %s: store has no SQL",
                          store->ops->scheme);
    if (text.size == 0)
        return scope_fail(scope, PAWL_INVALID_REQUEST, "expected a statement, found none");
    return store->ops->sql(store, scope, text, limit_ms, fn, context);
}

pawl_status store_objects(struct store *store, struct scope *scope, object_fn fn, void *context)
{
    ASSERT(fn);
    return store->ops->objects ? store->ops->objects(store, scope, fn, context) : PAWL_OK;
}

pawl_status store_examine(struct store *store, struct scope *scope, bad_row_fn fn, void *context)
{
    ASSERT(fn);
    return store->ops->examine ? store->ops->examine(store, scope, fn, context) : PAWL_OK;
}

pawl_status store_facts(struct store *store, struct scope *scope, struct store_facts *out)
{
    *out = (struct store_facts){ 0 };
    return store->ops->facts ? store->ops->facts(store, scope, out) : PAWL_OK;
}
