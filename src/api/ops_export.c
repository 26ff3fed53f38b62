/* ops_export.c - definition.export and instance.export: lines of JSON with everything that a hash
 * covers, so that another store can hold the same records (docs/format.md, "Export files"). */
#include "api/ops_int.h"
#include "base/limits.h"
#include "base/node_own.h"
#include "evidence/evidence.h"
#include "model/rights.h"
#include <stdio.h>

#define EXPORT_TRIES 16

static void put_hex(struct buf *out, const char *key, const uint8_t *bytes, size_t size)
{
    char hex[2 * KEY_SIZE + 1];

    ASSERT(size <= KEY_SIZE);
    sha_hex(bytes, size, hex);
    json_put_text(out, key, hex);
}

/* As text where it is one; what JSON cannot hold, in hexadecimal. */
static void put_bytes(struct buf *out, const char *key, const char *hex_key, str bytes)
{
    static const char digits[] = "0123456789abcdef";

    if (!bytes.data || str_is_utf8(bytes, false)) {
        json_put_str(out, key, bytes);
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

static void put_u64_unless_0(struct buf *out, const char *key, uint64_t number)
{
    if (number > 0)
        json_put_u64(out, key, number);
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
    json_put_str(out, "name", row->name);
    json_put_u64(out, "version", row->version);
    json_put_text(out, "kind", definition_kind_name((enum definition_kind)row->kind));
    put_bytes(out, "source", "source_hex", row->source);
    json_put_str(out, "compiled", row->compiled);
    put_hex(out, "sha256", row->source_sha, SHA_SIZE);
    put_hex(out, "compiled_sha256", row->compiled_sha, SHA_SIZE);
    json_put_i64(out, "created_at", row->created_at_ms);
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

    TRY(definition_asked(call, &row));
    TRY(read_rights(call, &row));
    call->content_type = "application/x-ndjson";
    print_definition(&row, out);
    return PAWL_OK;
}

/* ---- An instance ---- */

/* Its chain leads from the last record back, and the export goes forward: the positions of some
 * records are noted on one way back, the marks; then a window of positions at a time. However long
 * the chain is, one record is held. */
#define MARKS_MAX   8192u
#define MARK_STRIDE 512u /* records between two marks, in a chain that is not longer than 4 million */

enum export_stage { EXPORT_HEAD, EXPORT_RECORDS, EXPORT_TAIL };

struct exporting {
    struct op_pieces base; /* first */
    struct heap heap;
    struct engine *engine;
    struct store *store;
    struct scope kept;   /* what lasts: rows, live, the window */
    struct scope record_scope; /* one record */
    struct buf *out;
    char id[ID_SIZE + 1];
    uint64_t number;
    enum export_stage stage;
    uint64_t last_pos;
    uint64_t count; /* of its records */
    uint64_t marks[MARKS_MAX]; /* of the last record, and of every stride-th before it */
    uint32_t mark_count;
    uint64_t stride;
    uint64_t *window; /* positions between the mark and the one before it, the last first */
    uint64_t window_left;
    struct live live;  /* as the last of them left it, if a timer has moved */
    int64_t offset_ms; /* of the store's clock */
    struct buf erased; /* the commitments of values without bytes, as JSON */
    struct definition_row definition;
    struct instance_row row;
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

    if (id == 0)
        return PAWL_OK;
    TRY(store_value(work->store, &work->record_scope, id, &value));
    json_put_open(work->out, key, '{');
    put_hex(work->out, "commitment", value.commitment, SHA_SIZE);
    if (value.bytes.data) {
        put_hex(work->out, "salt", value.salt, SALT_SIZE);
        put_bytes(work->out, "text", "hex", value.bytes);
    } else {
        note_erased(work, &value);
    }
    if (value.interned)
        json_put_bool(work->out, "interned", true);
    json_close(work->out, '}');
    return PAWL_OK;
}

static pawl_status print_parent(struct exporting *work, uint64_t parent)
{
    char id[ID_SIZE + 1];

    if (parent == 0)
        return PAWL_OK;
    TRY(engine_id_of(work->engine, &work->record_scope, parent, id));
    json_put_text(work->out, "parent", id);
    return PAWL_OK;
}

static pawl_status print_row(struct exporting *work, const struct instance_row *row,
                             const struct definition_row *definition)
{
    struct buf *out = work->out;

    begin_line(out, "instance");
    json_put_text(out, "id", work->id);
    put_hex(out, "source", definition->source_sha, SHA_SIZE);
    put_hex(out, "compiled", definition->compiled_sha, SHA_SIZE);
    json_put_str(out, "name", definition->name);
    json_put_u64(out, "version", definition->version);
    json_put_i64(out, "instantiated_at", row->instantiated_at_ms);
    put_bytes(out, "correlation", "correlation_hex", row->correlation);
    put_bytes(out, "labels", "labels_hex", row->labels);
    json_put_bool(out, "test", row->test);
    json_put_u64(out, "records", work->count);
    TRY(print_parent(work, row->parent));
    TRY(put_value(work, "subject", row->subject));
    TRY(put_value(work, "input", row->input));
    TRY(put_value(work, "metadata", row->metadata));
    buf_str(out, STR("}}\n"));
    return PAWL_OK;
}

/* The name and version that an amend's payload says; false: it was erased, or says none. */
static bool read_amended(struct exporting *work, str payload, str *name, uint32_t *version)
{
    struct node *document = NULL, *named;
    int64_t number = 0;

    if (!payload.data || node_read_own(&work->record_scope, payload, &document) != PAWL_OK)
        return false;
    named = node_find(document, "definition");
    if (!named || named->kind != NODE_STRING ||
        !node_to_i64(node_find(document, "version"), &number) || number < 1 || number > UINT32_MAX)
        return false;
    *name = named->text;
    *version = (uint32_t)number;
    return true;
}

/* The definition that a flow was moved to comes before the record that says so. */
static pawl_status print_amended(struct exporting *work, const struct record *record)
{
    struct scope *scope = &work->record_scope;
    struct definition_row row;
    struct value value = { 0 };
    uint32_t version = 0;
    str name = STR_NONE;
    pawl_status status = store_value(work->store, scope, record->payload, &value);

    if (status != PAWL_OK || !read_amended(work, value.bytes, &name, &version))
        return status;
    status = store_find_definition(work->store, scope, name, version, NULL, &row);
    if (status == PAWL_OK)
        status = engine_definition_rights(work->engine, scope, name, version, &row.rights);
    if (status == PAWL_OK)
        print_definition(&row, work->out);
    return status == PAWL_NOT_KNOWN ? PAWL_OK : status;
}

static pawl_status print_record(struct exporting *work, const struct record *record)
{
    bool is_amend = record->what == LIFE_T_AMEND && record->payload != 0 &&
                    work->definition.kind == KIND_FLOW;
    struct buf *out = work->out;

    TRY(is_amend ? print_amended(work, record) : PAWL_OK);
    begin_line(out, "record");
    json_put_text(out, "id", work->id);
    json_put_u64(out, "position", record->pos);
    json_put_u64(out, "seq", record->seq);
    json_put_i64(out, "what", record->what);
    json_put_i64(out, "at", record->at_ms);
    json_put_i64(out, "fired", record->fired_at_ms);
    put_u64_unless_0(out, "flags", record->flags);
    put_u64_unless_0(out, "step", record->step);
    put_u64_unless_0(out, "ord", record->ordinal);
    put_u64_unless_0(out, "attempt", record->attempt);
    if (record->body.data)
        put_bytes(out, "body", "body_hex", record->body);
    if (record->key.data && record->key.size == KEY_SIZE)
        put_hex(out, "key", (const uint8_t *)record->key.data, KEY_SIZE);
    TRY(put_value(work, "actor", record->actor));
    TRY(put_value(work, "payload", record->payload));
    TRY(put_value(work, "reason", record->reason));
    put_hex(out, "hash", record->hash, SHA_SIZE);
    buf_str(out, STR("}}\n"));
    return PAWL_OK;
}

static pawl_status read_back(struct exporting *work, uint64_t pos, struct record *record)
{
    scope_clear(&work->record_scope);
    return store_record(work->store, &work->record_scope, pos, record);
}

/* Every other mark goes, and the rest are twice as far apart. */
static void thin_marks(struct exporting *work)
{
    for (uint32_t i = 0; i < MARKS_MAX / 2; i++)
        work->marks[i] = work->marks[2 * i];
    work->mark_count = MARKS_MAX / 2;
    work->stride *= 2;
}

static bool mark_record(void *context, const struct record *record)
{
    struct exporting *work = context;

    if (work->count % work->stride == 0 && work->mark_count == MARKS_MAX)
        thin_marks(work);
    if (work->count % work->stride == 0)
        work->marks[work->mark_count++] = record->pos;
    work->count++;
    return false;
}

static pawl_status find_records(struct exporting *work)
{
    struct head_row head = { 0 };

    TRY(store_head(work->store, &work->record_scope, work->number, false, &head));
    work->count = work->mark_count = 0;
    work->stride = MARK_STRIDE;
    work->last_pos = head.pos;
    return store_walk(work->store, &work->record_scope,
                      &(struct chain_query){ .pos = head.pos, .skip_from = UINT64_MAX },
                      mark_record, work);
}

/* The positions from the last mark back to where that part of the chain ends. */
static pawl_status fill_window(struct exporting *work)
{
    uint64_t pos = work->marks[--work->mark_count];
    struct record record;
    pawl_status status = PAWL_OK;

    if (!work->window)
        work->window = ARENA_ARRAY(&work->kept.arena, uint64_t, work->stride);
    TRY_MEMORY(&work->record_scope, work->window);
    for (; status == PAWL_OK && pos != 0 && work->window_left < work->stride; pos = record.prev) {
        work->window[work->window_left++] = pos;
        status = read_back(work, pos, &record);
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
static pawl_status find_all(struct exporting *work)
{
    struct head_row head = { 0 };
    pawl_status status;

    for (uint32_t tries = 0; tries < EXPORT_TRIES; tries++) {
        status = find_records(work);
        if (status == PAWL_OK)
            status = store_live(work->store, &work->kept, work->number, &work->live);
        if (status != PAWL_OK || !has_moved(work))
            return status;
        status = store_head(work->store, &work->record_scope, work->number, false, &head);
        if (status != PAWL_OK || head.pos == work->last_pos)
            return status;
    }
    return scope_fail(&work->record_scope, PAWL_OVERLOADED,
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
    json_put_text(out, "id", work->id);
    json_put_open(out, "timers", '[');
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

static pawl_status print_next(struct exporting *work)
{
    struct record record;

    TRY(work->window_left > 0 ? PAWL_OK : fill_window(work));
    TRY(read_back(work, work->window[--work->window_left], &record));
    return print_record(work, &record);
}

/* Exports an `erased` line for values without bytes, if this log's erase records name them. */
static pawl_status print_erased(struct exporting *work)
{
    struct verify_request request = { .instance = work->number };
    struct verify_report report;
    pawl_status status;

    if (work->erased.size == 0)
        return PAWL_OK;
    TRY_MEMORY(&work->record_scope, !work->erased.failed);
    status = verify_run(work->store, &work->heap, &request, &report, &work->record_scope.error);
    if (status == PAWL_OK && !report.valid)
        return scope_fail(&work->record_scope, PAWL_STORAGE_FAILURE,
                          "instance %.26s can't be exported: %.200s; run pawl verify",
                          work->id, report.what);
    buf_fmt(work->out, "{\"erased\":[%.*s]}\n", STR_ARG(buf_view(&work->erased)));
    return status;
}

/* ---- In pieces ---- */

static pawl_status print_stage(struct exporting *work, bool *is_last)
{
    pawl_status status = PAWL_OK;

    switch (work->stage) {
    case EXPORT_HEAD:
        print_definition(&work->definition, work->out);
        status = print_row(work, &work->row, &work->definition);
        work->stage = EXPORT_RECORDS;
        break;
    case EXPORT_RECORDS:
        if (work->window_left == 0 && work->mark_count == 0)
            work->stage = EXPORT_TAIL;
        else
            status = print_next(work);
        break;
    case EXPORT_TAIL:
        print_moved(work);
        status = print_erased(work);
        *is_last = true;
        break;
    }
    return status;
}

static pawl_status read_export(struct op_pieces *base, struct scope *scope, struct buf *out,
                               bool *is_last)
{
    struct exporting *work = (struct exporting *)base;
    size_t begun = out->size;
    pawl_status status = PAWL_OK;

    work->out = out;
    while (status == PAWL_OK && !*is_last && out->size - begun < OP_PIECE)
        status = print_stage(work, is_last);
    if (status != PAWL_OK)
        scope->error = work->record_scope.error;
    return status;
}

static void close_export(struct op_pieces *base)
{
    struct exporting *work = (struct exporting *)base;
    struct heap heap = work->heap;

    buf_fini(&work->erased);
    scope_fini(&work->kept);
    scope_fini(&work->record_scope);
    heap_free(&heap, work, sizeof *work);
}

static struct exporting *export_new(struct op_call *call)
{
    struct engine *engine = op_engine(call);
    struct exporting *work = heap_new(engine_heap(engine), sizeof *work);

    if (!work)
        return NULL;
    work->base = (struct op_pieces){ read_export, close_export };
    work->heap = *engine_heap(engine);
    work->engine = engine;
    work->store = engine_store(engine);
    work->offset_ms = engine_clock_offset_ms(engine);
    snprintf(work->id, sizeof work->id, "%.*s", STR_ARG(op_text(call, "instance_id")));
    scope_init(&work->kept, &work->heap, LIMIT_SCOPE);
    scope_init(&work->record_scope, &work->heap, LIMIT_SCOPE);
    buf_init(&work->erased, &work->heap, LIMIT_SCOPE);
    return work;
}

static pawl_status export_begin(struct exporting *work)
{
    struct scope *scope = &work->kept;

    TRY(store_instance(work->store, scope, work->number, &work->row));
    TRY(store_definition(work->store, scope, work->row.definition, &work->definition));
    if (work->definition.name.data)
        TRY(engine_definition_rights(work->engine, scope, work->definition.name,
                                     work->definition.version, &work->definition.rights));
    return find_all(work);
}

pawl_status op_instance_export(struct op_call *call, struct buf *out)
{
    uint8_t random[ID_RANDOM_SIZE];
    struct exporting *work;
    uint64_t number = 0;
    pawl_status status = require_known(call);

    (void)out;
    if (status != PAWL_OK || !id_parse(op_text(call, "instance_id"), &number, random))
        return status != PAWL_OK ? status : PAWL_NOT_KNOWN;
    work = export_new(call);
    TRY_MEMORY(call->scope, work);
    work->number = number;
    status = export_begin(work);
    call->content_type = "application/x-ndjson";
    call->pieces = &work->base;
    if (status == PAWL_OK)
        return PAWL_OK;
    call->scope->error =
        work->record_scope.error.status ? work->record_scope.error : work->kept.error;
    call->pieces = NULL;
    close_export(&work->base);
    return status;
}
