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
    uint32_t records_max;
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
    struct definition_row definition;

    TRY(find_number(gather, FIND_INSTANCE, number, &log->instance));
    TRY(gather_text(gather, log->instance.input, &log->input));
    TRY(gather_text(gather, log->instance.creator, &log->creator));
    if (!log->is_whole)
        return PAWL_OK;
    TRY(find_number(gather, FIND_DEFINITION, log->instance.definition, &definition));
    log->kind = definition.kind;
    TRY(gather_text(gather, log->instance.subject, &log->subject));
    TRY(gather_text(gather, log->instance.metadata, &log->metadata));
    return store_live(gather->store, gather->scope, number, &log->live);
}

/* None is no failure. */
static pawl_status gather_snapshot(const struct gather *gather, uint64_t instance)
{
    struct instance_log *log = gather->log;
    pawl_status status;

    if (log->head.seq <= (log->is_whole ? INSTANCE_LOG_RECORDS : INSTANCE_LOG_SHORT))
        return PAWL_OK; /* of a whole one: all of it is read, or none is wanted */
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
           (gather->log->record_count == gather->records_max ||
            gather->scope->arena.used - gather->begun > INSTANCE_LOG_BYTES);
}

static pawl_status gather_texts(struct gather *gather, struct instance_log_record *out)
{
    out->is_left = gather->scope->arena.used - gather->begun > INSTANCE_LOG_BYTES;
    if (!out->is_left)
        TRY(gather_text(gather, out->record.payload, &out->payload));
    if (!gather->log->is_whole)
        return PAWL_OK;
    TRY(gather_text(gather, out->record.reason, &out->reason));
    return gather_text(gather, out->record.actor, &out->actor);
}

/* Back to the entry that names the snapshot, or to the first entry, as far as they fit. */
static pawl_status gather_records(struct gather *gather)
{
    struct instance_log *log = gather->log;
    bool has_snapshot = log->snapshot.text.data && !log->is_whole;
    uint64_t pos = log->head.pos;

    while (pos && !is_enough(gather)) {
        struct instance_log_record *next = add_record(gather);

        TRY_MEMORY(gather->scope, next);
        TRY(find_number(gather, FIND_RECORD, pos, &next->record));
        TRY(gather_texts(gather, next));
        if (next->record.what >= 0 && next->record.seq <= (has_snapshot ? log->snapshot.seq : 1))
            break;
        pos = next->record.prev;
    }
    return PAWL_OK;
}

static pawl_status gather_one(struct gather *gather, struct instance_log_query *query)
{
    const struct find_query head = { .kind = FIND_HEAD,
                                     .by.head = { query->instance, query->trust_rows } };
    struct instance_log log = { .head = query->head, .is_whole = query->is_whole };

    gather->log = &log;
    gather->capacity = 0;
    if (!query->is_known)
        TRY(gather_row(gather, &head, &log.head));
    TRY(gather_instance(gather, query->instance));
    TRY(gather_snapshot(gather, query->instance));
    gather->records_max = instance_log_max(query, &log);
    TRY(gather_records(gather));
    *query->out = log;
    query->is_read = true;
    return PAWL_OK;
}

uint32_t instance_log_max(const struct instance_log_query *query, const struct instance_log *log)
{
    bool is_idle = log->live.step_count == 0 && log->live.wait_count == 0;

    if (!query->is_whole)
        return INSTANCE_LOG_RECORDS;
    return log->kind == KIND_MACHINE ? query->machine_max
           : is_idle                 ? query->idle_max
                                     : query->records_max;
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
    ASSERT(IMPLIES(queries[0].is_whole, count == 1 && queries[0].records_max > 0 &&
                                            queries[0].idle_max > 0 && queries[0].machine_max > 0));
    status = store->ops->instance_logs(store, scope, queries, count);
    if (status == PAWL_OK && queries[0].is_whole)
        status = live_check(scope, &queries[0].out->live);
    for (uint32_t i = 0; i < count && queries[i].is_read; i++) {
        ASSERT(queries[i].out->instance.number == queries[i].instance);
        ASSERT(queries[i].out->record_count <= INSTANCE_LOG_RECORDS);
    }
    ASSERT(IMPLIES(status == PAWL_OK, queries[0].is_read));
    return status;
}
