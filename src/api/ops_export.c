/* ops_export.c - definition.export and instance.export: lines of JSON with everything that a hash
 * covers, so that another store can hold the same records (docs/format.md, "Export files"). */
#include "api/ops_int.h"
#include "base/limits.h"
#include "evidence/evidence.h"
#include "model/rights.h"

#define EXPORT_TRIES 16

static void put_hex(struct buf *out, const char *key, const uint8_t *bytes, size_t size)
{
    char hex[2 * KEY_SIZE + 1];

    ASSERT(size <= KEY_SIZE);
    sha_hex(bytes, size, hex);
    json_key(out, key);
    json_text(out, hex);
}

/* As text where it is one; what JSON cannot hold, in hexadecimal. */
static void put_bytes(struct buf *out, const char *key, const char *hex_key, str bytes)
{
    static const char digits[] = "0123456789abcdef";

    if (!bytes.data || str_is_utf8(bytes, false)) {
        json_key(out, key);
        json_str(out, bytes);
        return;
    }
    json_key(out, hex_key);
    buf_byte(out, '"');
    for (size_t i = 0; i < bytes.size; i++) {
        buf_byte(out, (unsigned char)digits[(unsigned char)bytes.data[i] >> 4]);
        buf_byte(out, (unsigned char)digits[bytes.data[i] & 15]);
    }
    buf_byte(out, '"');
}

static void put_i64(struct buf *out, const char *key, int64_t number)
{
    json_key(out, key);
    json_i64(out, number);
}

static void put_u64_unless_0(struct buf *out, const char *key, uint64_t number)
{
    if (number == 0)
        return;
    json_key(out, key);
    json_u64(out, number);
}

/* A line is no part of what stands before it: no comma. */
static void begin_line(struct buf *out, const char *kind)
{
    buf_fmt(out, "{\"%s\":{", kind);
}

/* ---- A definition ---- */

static void print_definition(const struct definition_row *row, struct buf *out)
{
    begin_line(out, "definition");
    json_key(out, "name");
    json_str(out, row->name);
    json_key(out, "version");
    json_u64(out, row->version);
    json_key(out, "kind");
    json_text(out, definition_kind_name((enum definition_kind)row->kind));
    put_bytes(out, "source", "source_hex", row->source);
    json_key(out, "compiled");
    json_str(out, row->compiled);
    put_hex(out, "sha256", row->source_sha, SHA_SIZE);
    put_hex(out, "compiled_sha256", row->compiled_sha, SHA_SIZE);
    put_i64(out, "created_at", row->created_at_ms);
    rights_member(out, row->rights);
    buf_str(out, STR("}}\n"));
}

static pawl_status read_rights(const struct op_call *call, struct definition_row *row)
{
    return row->name.data ? engine_definition_rights(op_engine(call), call->scope, row->name,
                                                     row->version, &row->rights)
                          : PAWL_OK;
}

pawl_status op_definition_export(struct op_call *call, struct buf *out)
{
    struct definition_row row;
    pawl_status status = definition_asked(call, &row);

    if (status == PAWL_OK)
        status = read_rights(call, &row);
    if (status != PAWL_OK)
        return status;
    call->content_type = "application/x-ndjson";
    print_definition(&row, out);
    return PAWL_OK;
}

/* ---- An instance ---- */

struct exporting {
    struct op_call *call;
    struct store *store;
    struct buf *out;
    const char *id;
    uint64_t *positions; /* of its records, the last first */
    uint64_t count;
    struct live live;    /* as the last of them left it, if a timer has moved */
    int64_t offset_ms;   /* of the store's clock */
    struct buf erased; /* the commitments of values without bytes, as JSON */
};

static void note_erased(struct exporting *work, const struct value *value)
{
    char hex[2 * SHA_SIZE + 1];

    sha_hex(value->commitment, SHA_SIZE, hex);
    json_text(&work->erased, hex);
}

static pawl_status put_value(struct exporting *work, const char *key, uint64_t id)
{
    struct value value;
    pawl_status status;

    if (id == 0)
        return PAWL_OK;
    status = store_value(work->store, work->call->scope, id, &value);
    if (status != PAWL_OK)
        return status;
    json_key(work->out, key);
    json_open(work->out, '{');
    put_hex(work->out, "commitment", value.commitment, SHA_SIZE);
    if (value.bytes.data) {
        put_hex(work->out, "salt", value.salt, SALT_SIZE);
        put_bytes(work->out, "text", "hex", value.bytes);
    } else {
        note_erased(work, &value);
    }
    if (value.interned) {
        json_key(work->out, "interned");
        json_bool(work->out, true);
    }
    json_close(work->out, '}');
    return PAWL_OK;
}

static pawl_status print_parent(struct exporting *work, uint64_t parent)
{
    char id[ID_SIZE + 1];
    pawl_status status;

    if (parent == 0)
        return PAWL_OK;
    status = engine_id_of(op_engine(work->call), work->call->scope, parent, id);
    json_key(work->out, "parent");
    json_text(work->out, id);
    return status;
}

static pawl_status print_row(struct exporting *work, const struct instance_row *row,
                             const struct definition_row *definition)
{
    struct buf *out = work->out;
    pawl_status status;

    begin_line(out, "instance");
    json_key(out, "id");
    json_text(out, work->id);
    put_hex(out, "source", definition->source_sha, SHA_SIZE);
    put_hex(out, "compiled", definition->compiled_sha, SHA_SIZE);
    json_key(out, "name");
    json_str(out, definition->name);
    json_key(out, "version");
    json_u64(out, definition->version);
    put_i64(out, "instantiated_at", row->instantiated_at_ms);
    put_bytes(out, "correlation", "correlation_hex", row->correlation);
    put_bytes(out, "labels", "labels_hex", row->labels);
    json_key(out, "test");
    json_bool(out, row->test);
    json_key(out, "records");
    json_u64(out, work->count);
    status = print_parent(work, row->parent);
    if (status == PAWL_OK)
        status = put_value(work, "subject", row->subject);
    if (status == PAWL_OK)
        status = put_value(work, "input", row->input);
    if (status == PAWL_OK)
        status = put_value(work, "metadata", row->metadata);
    buf_str(out, STR("}}\n"));
    return status;
}

static pawl_status print_record(struct exporting *work, const struct record *record)
{
    struct buf *out = work->out;
    pawl_status status;

    begin_line(out, "record");
    json_key(out, "id");
    json_text(out, work->id);
    json_key(out, "position");
    json_u64(out, record->pos);
    json_key(out, "seq");
    json_u64(out, record->seq);
    put_i64(out, "what", record->what);
    put_i64(out, "at", record->at_ms);
    put_i64(out, "fired", record->fired_at_ms);
    put_u64_unless_0(out, "flags", record->flags);
    put_u64_unless_0(out, "step", record->step);
    put_u64_unless_0(out, "ord", record->ordinal);
    put_u64_unless_0(out, "attempt", record->attempt);
    if (record->body.data)
        put_bytes(out, "body", "body_hex", record->body);
    if (record->key.data && record->key.size == KEY_SIZE)
        put_hex(out, "key", (const uint8_t *)record->key.data, KEY_SIZE);
    status = put_value(work, "actor", record->actor);
    if (status == PAWL_OK)
        status = put_value(work, "payload", record->payload);
    if (status == PAWL_OK)
        status = put_value(work, "reason", record->reason);
    put_hex(out, "hash", record->hash, SHA_SIZE);
    buf_str(out, STR("}}\n"));
    return status;
}

/* Its chain leads from the last record back. */
static pawl_status find_records(struct exporting *work, uint64_t number)
{
    struct scope *scope = work->call->scope;
    struct head_row head = { 0 };
    struct record record = { 0 };
    uint64_t pos;
    pawl_status status = store_head(work->store, scope, number, false, &head);

    work->count = 0;
    for (pos = head.pos; status == PAWL_OK && pos != 0; pos = record.prev, work->count++)
        status = store_record(work->store, scope, pos, &record);
    work->positions = ARENA_ARRAY(&scope->arena, uint64_t, work->count + 1);
    if (!work->positions)
        return scope_no_memory(scope);
    pos = head.pos;
    for (uint64_t i = 0; status == PAWL_OK && i < work->count; i++, pos = record.prev) {
        work->positions[i] = pos;
        status = store_record(work->store, scope, pos, &record);
    }
    return status;
}

/* By how much a timer is due later, by the wall clock, than its entry says. */
static int64_t moved_ms(const struct exporting *work, const struct live_timer *timer)
{
    return timer->wall || timer->due_at_ms >= DUE_NEVER_MS ? 0
                                                           : timer->shift_ms - work->offset_ms;
}

static bool has_moved(const struct exporting *work)
{
    for (uint32_t i = 0; i < work->live.timer_count; i++)
        if (moved_ms(work, &work->live.timers[i]) != 0)
            return true;
    return false;
}

/* Reads its records and, if a timer has moved, the timers that the last record left. An instance
 * that changes in between is read again. */
static pawl_status find_all(struct exporting *work, uint64_t number)
{
    struct scope *scope = work->call->scope;
    struct head_row head = { 0 };
    pawl_status status;

    for (uint32_t tries = 0; tries < EXPORT_TRIES; tries++) {
        status = find_records(work, number);
        if (status == PAWL_OK)
            status = store_live(work->store, scope, number, &work->live);
        if (status != PAWL_OK || !has_moved(work))
            return status;
        status = store_head(work->store, scope, number, false, &head);
        if (status != PAWL_OK || head.pos == work->positions[0])
            return status;
    }
    return scope_fail(scope, PAWL_OVERLOADED,
                      "instance %.26s changes faster than it can be exported; pause it, or try "
                      "again",
                      work->id);
}

static void print_moved(struct exporting *work)
{
    struct buf *out = work->out;

    if (!has_moved(work))
        return;
    begin_line(out, "moved");
    json_key(out, "id");
    json_text(out, work->id);
    json_key(out, "timers");
    json_open(out, '[');
    for (uint32_t i = 0; i < work->live.timer_count; i++) {
        const struct live_timer *timer = &work->live.timers[i];

        if (moved_ms(work, timer) == 0)
            continue;
        json_open(out, '[');
        json_str(out, timer->name);
        json_u64(out, timer->ordinal);
        json_i64(out, moved_ms(work, timer));
        json_close(out, ']');
    }
    json_close(out, ']');
    buf_str(out, STR("}}\n"));
}

static pawl_status print_records(struct exporting *work)
{
    struct record record;
    pawl_status status = PAWL_OK;

    for (uint64_t i = work->count; status == PAWL_OK && i > 0; i--) {
        status = store_record(work->store, work->call->scope, work->positions[i - 1], &record);
        if (status == PAWL_OK)
            status = print_record(work, &record);
    }
    return status;
}

/* Exports an `erased` line for values without bytes, if this log's erase records name them. */
static pawl_status print_erased(struct exporting *work, uint64_t number)
{
    struct verify_request request = { .instance = number };
    struct verify_report report;
    pawl_status status;

    if (work->erased.size == 0)
        return PAWL_OK;
    if (work->erased.failed)
        return scope_no_memory(work->call->scope);
    status = verify_run(work->store, engine_heap(op_engine(work->call)), &request, &report,
                        &work->call->scope->error);
    if (status == PAWL_OK && !report.valid)
        return scope_fail(work->call->scope, PAWL_STORAGE_FAILURE,
                          "instance %.26s can't be exported: %.200s; run pawl verify",
                          work->id, report.what);
    buf_fmt(work->out, "{\"erased\":[%.*s]}\n", STR_ARG(buf_view(&work->erased)));
    return status;
}

pawl_status op_instance_export(struct op_call *call, struct buf *out)
{
    struct exporting work = { .call = call,
                              .store = engine_store(op_engine(call)),
                              .out = out,
                              .id = op_text(call, "instance_id").data,
                              .offset_ms = engine_clock_offset_ms(op_engine(call)) };
    uint8_t random[ID_RANDOM_SIZE];
    struct definition_row definition;
    struct instance_row row;
    uint64_t number = 0;
    pawl_status status = require_known(call);

    if (status != PAWL_OK || !id_parse(op_text(call, "instance_id"), &number, random))
        return status != PAWL_OK ? status : PAWL_NOT_KNOWN;
    status = store_instance(work.store, call->scope, number, &row);
    if (status == PAWL_OK)
        status = store_definition(work.store, call->scope, row.definition, &definition);
    if (status == PAWL_OK)
        status = read_rights(call, &definition);
    if (status == PAWL_OK)
        status = find_all(&work, number);
    if (status != PAWL_OK)
        return status;
    call->content_type = "application/x-ndjson";
    print_definition(&definition, out);
    buf_init(&work.erased, engine_heap(op_engine(call)), LIMIT_SCOPE);
    status = print_row(&work, &row, &definition);
    if (status == PAWL_OK)
        status = print_records(&work);
    if (status == PAWL_OK)
        print_moved(&work);
    if (status == PAWL_OK)
        status = print_erased(&work, number);
    buf_fini(&work.erased);
    return status;
}
