/* ops_export.c - definition.export, instance.export and instance.records: lines of JSON with
 * everything that a hash covers, so that another store can hold the same records, and a caller can
 * verify them (docs/format.md, "Export files"). */
#include "api/export.h"
#include "api/ops_int.h"
#include "base/limits.h"
#include "base/node_own.h"
#include "evidence/evidence.h"
#include "model/rights.h"
#include <stdio.h>

#define EXPORT_TRIES 16

/* As text where it is one; what JSON cannot hold, in hexadecimal. */
static void put_bytes(struct buf *out, const char *key, const char *hex_key, str bytes)
{
    if (!bytes.data || str_is_utf8(bytes, false))
        json_put_str(out, key, bytes);
    else
        json_put_hex(out, hex_key, bytes.data, bytes.size);
}

/* Each line is a document of its own: no comma before it. */
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
    json_put_hex(out, "sha256", row->source_sha, SHA_SIZE);
    json_put_hex(out, "compiled_sha256", row->compiled_sha, SHA_SIZE);
    json_put_i64(out, "created_at", row->created_at_ms);
    rights_member(out, row->rights);
    buf_str(out, STR("}}\n"));
}

static pawl_status read_rights(struct engine *engine, struct scope *scope,
                               struct definition_row *row)
{
    return row->name.data
               ? engine_definition_rights(engine, scope, row->name, row->version, &row->rights)
               : PAWL_OK;
}

pawl_status op_definition_export(struct op_call *call, struct buf *out)
{
    struct definition_row row;

    TRY(definition_asked(call, &row));
    TRY(read_rights(op_engine(call), call->scope, &row));
    call->content_type = "application/x-ndjson";
    print_definition(&row, out);
    return PAWL_OK;
}

/* ---- An instance ---- */

/* Its chain leads from the last record back, and the export goes forward: the positions of some
 * records are noted on one way back, the marks; then a window of positions at a time. However long
 * the chain is, one record is held. */
#define MARKS_MAX   8192u
#define MARK_STRIDE 512u /* records between two marks, in a chain of up to 4 million */

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
    bool without_definitions;
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
    struct buf bodies; /* the hashes of records whose bodies were erased in part, likewise */
    struct definition_row definition;
    struct instance_row row;
};

static pawl_status put_value(struct exporting *work, const char *key, uint64_t id)
{
    struct value value;

    if (id == 0)
        return PAWL_OK;
    TRY(store_value(work->store, &work->record_scope, id, &value));
    json_put_open(work->out, key, '{');
    json_put_hex(work->out, "commitment", value.commitment, SHA_SIZE);
    if (value.bytes.data) {
        json_put_hex(work->out, "salt", value.salt, SALT_SIZE);
        put_bytes(work->out, "text", "hex", value.bytes);
    } else {
        json_hex(&work->erased, value.commitment, SHA_SIZE);
    }
    if (value.interned)
        json_put_bool(work->out, "interned", true);
    json_close(work->out, '}');
    return PAWL_OK;
}

static pawl_status print_row(struct exporting *work)
{
    const struct definition_row *definition = &work->definition;
    const struct instance_row *row = &work->row;
    struct buf *out = work->out;
    char parent[ID_SIZE + 1];

    begin_line(out, "instance");
    json_put_text(out, "id", work->id);
    json_put_hex(out, "source", definition->source_sha, SHA_SIZE);
    json_put_hex(out, "compiled", definition->compiled_sha, SHA_SIZE);
    json_put_str(out, "name", definition->name);
    json_put_u64(out, "version", definition->version);
    json_put_i64(out, "instantiated_at", row->instantiated_at_ms);
    put_bytes(out, "correlation", "correlation_hex", row->correlation);
    put_bytes(out, "labels", "labels_hex", row->labels);
    json_put_bool(out, "test", row->test);
    json_put_u64(out, "records", work->count);
    if (row->parent != 0) {
        TRY(engine_id_of(work->engine, &work->record_scope, row->parent, parent));
        json_put_text(out, "parent", parent);
    }
    TRY(put_value(work, "subject", row->subject));
    TRY(put_value(work, "input", row->input));
    TRY(put_value(work, "metadata", row->metadata));
    buf_str(out, STR("}}\n"));
    return PAWL_OK;
}

/* The name and version that an amend's payload says; false: it was erased, or says none. */
static bool read_amended(struct exporting *work, str payload, str *name, uint32_t *version)
{
    struct node *document = NULL;
    int64_t number = 0;

    if (!payload.data || node_read_own(&work->record_scope, payload, &document) != PAWL_OK)
        return false;
    *name = node_text(document, "definition");
    if (!name->data || !node_to_i64(node_find(document, "version"), &number) || number < 1 ||
        number > UINT32_MAX)
        return false;
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
        status = read_rights(work->engine, scope, &row);
    if (status == PAWL_OK)
        print_definition(&row, work->out);
    return status == PAWL_NOT_KNOWN ? PAWL_OK : status;
}

static pawl_status print_record(struct exporting *work, const struct record *record)
{
    bool is_amend = record->what == LIFE_T_AMEND && record->payload != 0 &&
                    work->definition.kind == KIND_FLOW && !work->without_definitions;
    struct buf *out = work->out;

    TRY(is_amend ? print_amended(work, record) : PAWL_OK);
    begin_line(out, "record");
    json_put_text(out, "id", work->id);
    json_put_u64(out, "position", record->pos);
    json_put_u64(out, "seq", record->seq);
    json_put_i64(out, "what", record->what);
    json_put_i64(out, "at", record->at_ms);
    json_put_i64(out, "fired", record->fired_at_ms);
    json_opt_u64(out, "flags", record->flags);
    json_opt_u64(out, "step", record->step);
    json_opt_u64(out, "ord", record->ordinal);
    json_opt_u64(out, "attempt", record->attempt);
    if (record->body.data)
        put_bytes(out, "body", "body_hex", record->body);
    if (record->key.data && record->key.size == KEY_SIZE)
        json_put_hex(out, "key", (const uint8_t *)record->key.data, KEY_SIZE);
    TRY(put_value(work, "actor", record->actor));
    TRY(put_value(work, "payload", record->payload));
    TRY(put_value(work, "reason", record->reason));
    json_put_hex(out, "hash", record->hash, SHA_SIZE);
    buf_str(out, STR("}}\n"));
    if (record->flags & RECORD_ERASED)
        json_hex(&work->bodies, record->hash, SHA_SIZE);
    return PAWL_OK;
}

static pawl_status read_back(struct exporting *work, uint64_t pos, struct record *record)
{
    scope_clear(&work->record_scope);
    return store_record(work->store, &work->record_scope, pos, record);
}

/* If there is no room, every other mark goes, and the rest are twice as far apart. */
static bool mark_record(void *context, const struct record *record)
{
    struct exporting *work = context;

    if (work->count % work->stride == 0 && work->mark_count == MARKS_MAX) {
        work->mark_count = MARKS_MAX / 2;
        work->stride *= 2;
        for (uint32_t i = 0; i < work->mark_count; i++)
            work->marks[i] = work->marks[2 * i];
    }
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

    if (!work->window)
        work->window = ARENA_ARRAY(&work->kept.arena, uint64_t, work->stride);
    TRY_MEMORY(&work->record_scope, work->window);
    for (; pos != 0 && work->window_left < work->stride; pos = record.prev) {
        work->window[work->window_left++] = pos;
        TRY(read_back(work, pos, &record));
    }
    return PAWL_OK;
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

    for (uint32_t tries = 0; tries < EXPORT_TRIES; tries++) {
        TRY(find_records(work));
        TRY(store_live(work->store, &work->kept, work->number, &work->live));
        if (!has_moved(work))
            return PAWL_OK;
        TRY(store_head(work->store, &work->record_scope, work->number, false, &head));
        if (head.pos == work->last_pos)
            return PAWL_OK;
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

    if (work->window_left == 0)
        TRY(fill_window(work));
    TRY(read_back(work, work->window[--work->window_left], &record));
    return print_record(work, &record);
}

static void put_erased_line(struct exporting *work)
{
    buf_fmt(work->out, "{\"erased\":[%.*s]", STR_ARG(buf_view(&work->erased)));
    if (work->bodies.size)
        buf_fmt(work->out, ",\"bodies\":[%.*s],\"of\":\"%s\"", STR_ARG(buf_view(&work->bodies)),
                work->id);
    buf_str(work->out, STR("}\n"));
}

/* Exports an `erased` line for what was erased, if this log's erase records name it. */
static pawl_status print_erased(struct exporting *work)
{
    struct verify_request request = { .instance = work->number };
    struct verify_report report;
    pawl_status status;

    if (work->erased.size == 0 && work->bodies.size == 0)
        return PAWL_OK;
    TRY_MEMORY(&work->record_scope, !work->erased.failed && !work->bodies.failed);
    status = verify_run(work->store, &work->heap, &request, &report, &work->record_scope.error);
    if (status == PAWL_OK && !report.valid)
        return scope_fail(&work->record_scope, PAWL_STORAGE_FAILURE,
                          "instance %.26s can't be exported: %.200s; run pawl verify",
                          work->id, report.what);
    put_erased_line(work);
    return status;
}

/* ---- In pieces ---- */

static pawl_status print_stage(struct exporting *work, bool *is_last)
{
    switch (work->stage) {
    case EXPORT_HEAD:
        work->stage = EXPORT_RECORDS;
        if (!work->without_definitions)
            print_definition(&work->definition, work->out);
        return print_row(work);
    case EXPORT_RECORDS:
        if (work->window_left > 0 || work->mark_count > 0)
            return print_next(work);
        work->stage = EXPORT_TAIL;
        return PAWL_OK;
    case EXPORT_TAIL:
        break;
    }
    *is_last = true;
    print_moved(work);
    return print_erased(work);
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
    buf_fini(&work->bodies);
    scope_fini(&work->kept);
    scope_fini(&work->record_scope);
    heap_free(&heap, work, sizeof *work);
}

static struct exporting *export_new(struct engine *engine, str id)
{
    struct exporting *work = heap_new(engine_heap(engine), sizeof *work);

    if (!work)
        return NULL;
    work->base = (struct op_pieces){ read_export, close_export };
    work->heap = *engine_heap(engine);
    work->engine = engine;
    work->store = engine_store(engine);
    work->offset_ms = engine_clock_offset_ms(engine);
    snprintf(work->id, sizeof work->id, "%.*s", STR_ARG(id));
    scope_init(&work->kept, &work->heap, LIMIT_SCOPE);
    scope_init(&work->record_scope, &work->heap, LIMIT_SCOPE);
    buf_init(&work->erased, &work->heap, LIMIT_SCOPE);
    buf_init(&work->bodies, &work->heap, LIMIT_SCOPE);
    return work;
}

static pawl_status export_begin(struct exporting *work)
{
    struct scope *scope = &work->kept;

    TRY(store_instance(work->store, scope, work->number, &work->row));
    TRY(store_definition(work->store, scope, work->row.definition, &work->definition));
    TRY(read_rights(work->engine, scope, &work->definition));
    return find_all(work);
}

static pawl_status open_lines(struct engine *engine, struct scope *scope, str id,
                              bool without_definitions, struct op_pieces **out)
{
    uint8_t random[ID_RANDOM_SIZE];
    struct exporting *work;
    uint64_t number = 0;
    pawl_status status;

    if (!id_parse(id, &number, random))
        return PAWL_NOT_KNOWN;
    work = export_new(engine, id);
    TRY_MEMORY(scope, work);
    work->number = number;
    work->without_definitions = without_definitions;
    status = export_begin(work);
    if (status == PAWL_OK) {
        *out = &work->base;
        return PAWL_OK;
    }
    scope->error = work->record_scope.error.status ? work->record_scope.error : work->kept.error;
    close_export(&work->base);
    return status;
}

pawl_status export_open(struct engine *engine, struct scope *scope, str id, struct op_pieces **out)
{
    return open_lines(engine, scope, id, false, out);
}

static pawl_status export_lines(struct op_call *call, bool without_definitions)
{
    TRY(require_known(call));
    call->content_type = "application/x-ndjson";
    return open_lines(op_engine(call), call->scope, op_text(call, "instance_id"),
                      without_definitions, &call->pieces);
}

pawl_status op_instance_export(struct op_call *call, struct buf *out)
{
    (void)out;
    return export_lines(call, false);
}

/* A caller that may read the instance may not be allowed to read the definitions that it was
 * amended to: their lines are for exports. */
pawl_status op_instance_records(struct op_call *call, struct buf *out)
{
    (void)out;
    return export_lines(call, true);
}
