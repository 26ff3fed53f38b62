/* past.c - the past of an instance, read at one go: restoring one that sleeps is most of what
 * waking it costs, and each read by itself would take the lock and a snapshot of the store anew. */
#include "store/past.h"
#include "base/assert.h"

struct gather {
    const struct past_reads *reads;
    struct store *store;
    struct scope *scope;
    struct past *past;
    uint32_t capacity;
    size_t begun; /* how much of the scope was used before */
};

static pawl_status damaged(struct scope *scope, const char *what)
{
    return scope_fail(scope, PAWL_STORAGE_FAILURE,
                      "the store is damaged: it has %s that cannot be; run pawl verify", what);
}

static pawl_status gather_text(const struct gather *gather, uint64_t id, str *out)
{
    struct value value = { 0 };
    pawl_status status =
        id ? gather->reads->value(gather->store, gather->scope, id, &value) : PAWL_OK;

    if (!status)
        *out = value.bytes;
    return status;
}

static pawl_status gather_instance(const struct gather *gather, uint64_t number)
{
    struct past *past = gather->past;
    pawl_status status =
        gather->reads->instance(gather->store, gather->scope, number, &past->instance);

    if (status)
        return status;
    if (!instance_is_sound(&past->instance))
        return damaged(gather->scope, "an instance");
    status = gather_text(gather, past->instance.input, &past->input);
    return status ? status : gather_text(gather, past->instance.creator, &past->creator);
}

/* None is no failure. */
static pawl_status gather_snapshot(const struct gather *gather, uint64_t instance)
{
    struct past *past = gather->past;
    pawl_status status;

    if (past->head.seq <= PAST_SHORT)
        return PAWL_OK;
    status = gather->reads->snapshot(gather->store, gather->scope, instance, &past->snapshot);
    if (status == PAWL_NOT_KNOWN)
        past->snapshot = (struct snapshot_row){ 0 };
    return status == PAWL_NOT_KNOWN ? PAWL_OK : status;
}

static struct past_record *add_record(struct gather *gather)
{
    struct past *past = gather->past;

    if (past->record_count == gather->capacity) {
        uint32_t capacity = gather->capacity ? gather->capacity * 4 : PAST_SHORT + 2;
        struct past_record *grown =
            ARENA_ARRAY(&gather->scope->arena, struct past_record, capacity);

        if (!grown)
            return NULL;
        if (past->record_count)
            memcpy(grown, past->records, sizeof *grown * past->record_count);
        past->records = grown;
        gather->capacity = capacity;
    }
    past->records[past->record_count] = (struct past_record){ 0 };
    return &past->records[past->record_count++];
}

static bool is_enough(const struct gather *gather)
{
    return gather->past->record_count > 0 &&
           (gather->past->record_count == PAST_RECORDS ||
            gather->scope->arena.used - gather->begun > PAST_BYTES);
}

/* Back to the entry that names the snapshot, or to the first entry, as far as they fit. */
static pawl_status gather_records(struct gather *gather)
{
    struct past *past = gather->past;
    uint64_t pos = past->head.pos;

    while (pos && !is_enough(gather)) {
        struct past_record *next = add_record(gather);
        pawl_status status;

        if (!next)
            return scope_no_memory(gather->scope);
        status = gather->reads->record(gather->store, gather->scope, pos, &next->record);
        if (!status && !record_is_sound(&next->record, pos))
            status = damaged(gather->scope, "a record");
        next->is_left = gather->scope->arena.used - gather->begun > PAST_BYTES;
        if (!status && !next->is_left)
            status = gather_text(gather, next->record.payload, &next->payload);
        if (status)
            return status;
        if (next->record.what >= 0 &&
            next->record.seq <= (past->snapshot.text.data ? past->snapshot.seq : 1))
            break;
        pos = next->record.prev;
    }
    return PAWL_OK;
}

static pawl_status gather_one(struct gather *gather, struct past_query *query)
{
    struct past past = { .head = query->head };
    pawl_status status = PAWL_OK;

    gather->past = &past;
    gather->capacity = 0;
    if (!query->is_known)
        status = gather->reads->head(gather->store, gather->scope, query->instance,
                                     query->trust_rows, &past.head);
    if (!status && !head_is_sound(&past.head))
        status = damaged(gather->scope, "a head");
    if (!status)
        status = gather_instance(gather, query->instance);
    if (!status)
        status = gather_snapshot(gather, query->instance);
    if (!status)
        status = gather_records(gather);
    if (status)
        return status;
    *query->out = past;
    query->is_read = true;
    return PAWL_OK;
}

pawl_status past_gather(const struct past_reads *reads, struct store *store, struct scope *scope,
                        struct past_query *queries, uint32_t count)
{
    struct gather gather = {
        .reads = reads, .store = store, .scope = scope, .begun = scope->arena.used
    };
    pawl_status status = PAWL_OK;

    for (uint32_t i = 0; i < count && !status; i++) {
        if (i > 0 && scope->arena.used - gather.begun > PAST_BYTES)
            break;
        status = gather_one(&gather, &queries[i]);
    }
    return status;
}

pawl_status store_pasts(struct store *store, struct scope *scope, struct past_query *queries,
                        uint32_t count)
{
    pawl_status status;

    ASSERT(count > 0);
    for (uint32_t i = 0; i < count; i++) {
        ASSERT(queries[i].out && queries[i].instance > 0 && queries[i].instance <= ID_NUMBER_MAX);
        queries[i].is_read = false;
    }
    status = store->ops->pasts(store, scope, queries, count);
    for (uint32_t i = 0; i < count && queries[i].is_read; i++) {
        ASSERT(queries[i].out->instance.number == queries[i].instance);
        ASSERT(queries[i].out->record_count <= PAST_RECORDS);
    }
    ASSERT(IMPLIES(status == PAWL_OK, queries[0].is_read));
    return status;
}
