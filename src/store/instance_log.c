/* instance_log.c - what restoring an instance takes, in one read. Restoring is most of what waking
 * an instance costs, and each single read would take the lock and a snapshot of the store again. */
#include "store/instance_log.h"
#include "base/assert.h"

struct gather {
    find_fn find;
    struct store *store;
    struct scope *scope;
    struct instance_log *log;
    uint32_t capacity;
    size_t begun; /* how much of the scope was used before */
};

static pawl_status gather_row(const struct gather *gather, const struct find_query *query,
                              void *out)
{
    return find_check(gather->scope, query, out,
                      gather->find(gather->store, gather->scope, query, out));
}

static pawl_status find_number(const struct gather *gather, enum find_kind kind, uint64_t number,
                               void *out)
{
    return gather_row(gather, &(struct find_query){ .kind = kind, .by.number = number }, out);
}

static pawl_status gather_text(const struct gather *gather, uint64_t id, str *out)
{
    struct value value = { 0 };

    if (id)
        TRY(find_number(gather, FIND_BYTES, id, &value));
    *out = value.bytes;
    return PAWL_OK;
}

static pawl_status gather_instance(const struct gather *gather, uint64_t number)
{
    struct instance_log *log = gather->log;

    TRY(find_number(gather, FIND_INSTANCE, number, &log->instance));
    TRY(gather_text(gather, log->instance.input, &log->input));
    return gather_text(gather, log->instance.creator, &log->creator);
}

/* None is no failure. */
static pawl_status gather_snapshot(const struct gather *gather, uint64_t instance)
{
    struct instance_log *log = gather->log;
    pawl_status status;

    if (log->head.seq <= INSTANCE_LOG_SHORT)
        return PAWL_OK;
    status = find_number(gather, FIND_SNAPSHOT, instance, &log->snapshot);
    if (status == PAWL_NOT_KNOWN)
        log->snapshot = (struct snapshot_row){ 0 };
    return status == PAWL_NOT_KNOWN ? PAWL_OK : status;
}

static struct instance_log_record *add_record(struct gather *gather)
{
    struct instance_log *log = gather->log;

    if (log->record_count == gather->capacity) {
        uint32_t capacity = gather->capacity ? gather->capacity * 4 : INSTANCE_LOG_SHORT + 2;
        struct instance_log_record *grown =
            ARENA_ARRAY(&gather->scope->arena, struct instance_log_record, capacity);

        if (!grown)
            return NULL;
        if (log->record_count)
            memcpy(grown, log->records, sizeof *grown * log->record_count);
        log->records = grown;
        gather->capacity = capacity;
    }
    log->records[log->record_count] = (struct instance_log_record){ 0 };
    return &log->records[log->record_count++];
}

static bool is_enough(const struct gather *gather)
{
    return gather->log->record_count > 0 &&
           (gather->log->record_count == INSTANCE_LOG_RECORDS ||
            gather->scope->arena.used - gather->begun > INSTANCE_LOG_BYTES);
}

/* Back to the entry that names the snapshot, or to the first entry, as far as they fit. */
static pawl_status gather_records(struct gather *gather)
{
    struct instance_log *log = gather->log;
    uint64_t pos = log->head.pos;

    while (pos && !is_enough(gather)) {
        struct instance_log_record *next = add_record(gather);

        TRY_MEMORY(gather->scope, next);
        TRY(find_number(gather, FIND_RECORD, pos, &next->record));
        next->is_left = gather->scope->arena.used - gather->begun > INSTANCE_LOG_BYTES;
        if (!next->is_left)
            TRY(gather_text(gather, next->record.payload, &next->payload));
        if (next->record.what >= 0 &&
            next->record.seq <= (log->snapshot.text.data ? log->snapshot.seq : 1))
            break;
        pos = next->record.prev;
    }
    return PAWL_OK;
}

static pawl_status gather_one(struct gather *gather, struct instance_log_query *query)
{
    const struct find_query head = { .kind = FIND_HEAD,
                                     .by.head = { query->instance, query->trust_rows } };
    struct instance_log log = { .head = query->head };

    gather->log = &log;
    gather->capacity = 0;
    if (!query->is_known)
        TRY(gather_row(gather, &head, &log.head));
    TRY(gather_instance(gather, query->instance));
    TRY(gather_snapshot(gather, query->instance));
    TRY(gather_records(gather));
    *query->out = log;
    query->is_read = true;
    return PAWL_OK;
}

pawl_status instance_log_gather(find_fn find, struct store *store, struct scope *scope,
                                struct instance_log_query *queries, uint32_t count)
{
    struct gather gather = {
        .find = find, .store = store, .scope = scope, .begun = scope->arena.used
    };
    for (uint32_t i = 0; i < count; i++) {
        if (i > 0 && scope->arena.used - gather.begun > INSTANCE_LOG_BYTES)
            break;
        TRY(gather_one(&gather, &queries[i]));
    }
    return PAWL_OK;
}

pawl_status store_instance_logs(struct store *store, struct scope *scope,
                                struct instance_log_query *queries, uint32_t count)
{
    pawl_status status;

    ASSERT(count > 0);
    for (uint32_t i = 0; i < count; i++) {
        ASSERT(queries[i].out && queries[i].instance > 0 && queries[i].instance <= ID_NUMBER_MAX);
        queries[i].is_read = false;
    }
    status = store->ops->instance_logs(store, scope, queries, count);
    for (uint32_t i = 0; i < count && queries[i].is_read; i++) {
        ASSERT(queries[i].out->instance.number == queries[i].instance);
        ASSERT(queries[i].out->record_count <= INSTANCE_LOG_RECORDS);
    }
    ASSERT(IMPLIES(status == PAWL_OK, queries[0].is_read));
    return status;
}
