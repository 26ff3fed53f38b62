/* import_own.c - what an import writes into the store's own chain: definitions that are new, where
 * the records of another store begin and end, which values came without their bytes, and the test
 * clock that an older program left without a record. */
#include "base/limits.h"
#include "model/rights.h"
#include "repair/import_int.h"

static const char store_id_text[] = "00000000000000000000000000";

struct record *import_next_record(struct building *b)
{
    struct record *record = &b->records[b->record_count++];

    record->pos = b->tip->pos + b->record_count;
    return record;
}

/* A record of this store's own chain. */
static pawl_status add_own(struct building *b, int32_t what, struct buf *body)
{
    struct record *record = import_next_record(b);

    *record = (struct record){ .pos = record->pos,
                               .prev = b->store_pos,
                               .what = what,
                               .at_ms = b->now_ms,
                               .fired_at_ms = b->now_ms,
                               .body = buf_keep(body, &b->scope->arena) };
    buf_fini(body);
    TRY_MEMORY(b->scope, record->body.data);
    record_hash(b->import->sha, b->store_hash, store_id_text, record, record->body,
                &(struct commitments){ 0 }, record->hash);
    b->store_pos = record->pos;
    memcpy(b->store_hash, record->hash, SHA_SIZE);
    return PAWL_OK;
}

/* Adds the row that says where the rights of a version are recorded. */
static pawl_status keep_rights(struct building *b, const struct definition_row *row)
{
    struct buf id;
    str kept;

    buf_init(&id, b->scope->arena.heap, 0);
    rights_id(&id, row->name, row->version);
    kept = buf_take(&id, &b->scope->arena);
    b->standing[b->standing_count++] = (struct standing_change){
        .row = { .what = CONTROL_DEFINE, .id = kept, .pos = b->store_pos }, .is_put = true
    };
    return kept.data ? PAWL_OK : scope_no_memory(b->scope);
}

pawl_status import_add_define(struct building *b, const struct definition_row *row)
{
    struct buf body;

    buf_init(&body, b->scope->arena.heap, LIMIT_TEXT);
    define_body(&body, row, row->rights);
    TRY(add_own(b, CONTROL_DEFINE, &body));
    return row->rights.data ? keep_rights(b, row) : PAWL_OK;
}

/* The import record before the records of another store. */
pawl_status import_add_begin(struct building *b, uint32_t count)
{
    struct buf body;

    buf_init(&body, b->scope->arena.heap, LIMIT_TEXT);
    buf_fmt(&body, "{\"records\":%u}", count);
    return add_own(b, CONTROL_IMPORT, &body);
}

/* The import record behind them, so that the log ends with a time of its own. */
pawl_status import_add_end(struct building *b)
{
    struct buf body;

    buf_init(&body, b->scope->arena.heap, LIMIT_SCOPE);
    json_open(&body, '{');
    json_put_u64(&body, "records", 0);
    import_print_moved(b, &body);
    json_close(&body, '}');
    return add_own(b, CONTROL_IMPORT, &body);
}

/* The first commit to a store whose test clock no record holds yet records it. */
pawl_status import_add_clock(struct building *b)
{
    struct buf body;
    pawl_status status;

    if (!b->tip->test_is_old || b->record_count == 0)
        return PAWL_OK;
    buf_init(&body, b->scope->arena.heap, LIMIT_TEXT);
    buf_fmt(&body, "{\"test_now\":%lld}", (long long)b->tip->test_now_ms);
    status = add_own(b, CONTROL_CLOCK, &body);
    b->standing[b->standing_count++] =
        (struct standing_change){ .row = { .what = CONTROL_CLOCK,
                                           .id = STR(CLOCK_TEST),
                                           .due_at_ms = b->tip->test_now_ms,
                                           .pos = b->store_pos },
                                  .is_put = true };
    return status;
}

static void print_values(const struct building *b, struct buf *body)
{
    if (b->erased_count == 0)
        return;
    json_put_open(body, "values", '[');
    for (uint32_t i = 0; i < b->value_count; i++)
        if (!b->values[i].bytes.data)
            json_hex(body, b->values[i].commitment, SHA_SIZE);
    json_close(body, ']');
}

/* Those of instances that are not here yet: the others were not looked at. */
static void print_bodies(const struct building *b, struct buf *body)
{
    const struct import *import = b->import;

    json_put_open(body, "bodies", '[');
    for (uint32_t i = 0; i < import->body_count; i++) {
        if (!import->bodies[i].is_used)
            continue;
        json_open(body, '[');
        json_hex(body, import->bodies[i].hash, SHA_SIZE);
        json_hex(body, import->bodies[i].now, SHA_SIZE);
        json_close(body, ']');
    }
    json_close(body, ']');
}

static bool is_erased_now(const struct carried_instance *instance)
{
    return instance->is_erased && instance->is_taken;
}

static uint32_t count_erased(const struct import *import)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < import->instance_count; i++)
        count += is_erased_now(&import->instances[i]);
    return count;
}

static void print_erased(const struct building *b, struct buf *body)
{
    const struct import *import = b->import;

    json_open(body, '{');
    if (count_erased(import)) {
        json_put_open(body, "instances", '[');
        for (uint32_t i = 0; i < import->instance_count; i++)
            if (is_erased_now(&import->instances[i]))
                json_text(body, import->instances[i].id);
        json_close(body, ']');
        print_bodies(b, body);
    }
    print_values(b, body);
    json_close(body, '}');
}

/* What came erased needs an erase record in this log. */
pawl_status import_add_erase(struct building *b)
{
    const struct import *import = b->import;
    struct buf body;

    if (b->erased_count == 0 && count_erased(import) == 0)
        return PAWL_OK;
    buf_init(&body, b->scope->arena.heap, LIMIT_SCOPE);
    print_erased(b, &body);
    TRY(add_own(b, CONTROL_ERASE, &body));
    for (uint32_t i = 0; i < import->instance_count; i++)
        if (is_erased_now(&import->instances[i]))
            b->standing[b->standing_count++] =
                (struct standing_change){ .row = { .what = CONTROL_ERASE,
                                                   .id = str_of(import->instances[i].id),
                                                   .pos = b->store_pos },
                                          .is_put = true };
    return PAWL_OK;
}
