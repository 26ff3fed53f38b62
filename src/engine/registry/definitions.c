/* definitions.c - texts become versions; versions stay in memory until the engine closes.
 *
 * At run time only the compiled text counts: a version is compiled once, when it is put, and
 * loaded ever after. */
#include "engine/parts.h"
#include "model/rights.h"

const struct behavior *behavior_of(enum definition_kind kind)
{
    switch (kind) {
    case KIND_MACHINE:
        return &machine_behavior;
    case KIND_FLOW:
        return &flow_behavior;
    case KIND_CODE:
        return &code_behavior;
    case KIND_UNKNOWN:
        break;
    }
    panic_at(__FILE__, __LINE__, "a definition of unknown kind");
}

/* ---- the cache ---- */

static pawl_status load_slot(struct engine *engine, struct scope *scope, uint32_t id,
                             struct definition_slot *slot)
{
    struct arena *arena = &slot->scope.arena;
    struct definition_row row;
    str rights = STR_NONE;
    pawl_status status = store_definition(engine->store, scope, id, &row);

    if (status == PAWL_NOT_KNOWN)
        return scope_fail(scope, PAWL_STORAGE_FAILURE, "definition number %u is missing", id);
    TRY(status);
    status = definition_load(&slot->scope, arena_str(arena, row.compiled), &slot->definition);
    if (!status && behavior_of(slot->definition->kind)->prepare)
        status = behavior_of(slot->definition->kind)->prepare(slot->definition, &slot->scope);
    if (status)
        scope->error = slot->scope.error;
    TRY(status);
    if (row.name.data)
        TRY(engine_definition_rights(engine, scope, row.name, row.version, &rights));
    slot->name = arena_str(arena, row.name);
    slot->version = row.version;
    slot->rights = arena_str(arena, rights);
    memcpy(slot->source_sha, row.source_sha, SHA_SIZE);
    memcpy(slot->compiled_sha, row.compiled_sha, SHA_SIZE);
    TRY_MEMORY(scope, !arena->failed);
    return PAWL_OK;
}

#define DEFINITIONS_MAX (1u << 24) /* a damaged store may name any number */

static bool room_for(struct engine *engine, uint32_t id)
{
    struct registry *registry = &engine->registry;
    uint32_t before = registry->definition_capacity;

    if (!HEAP_GROW(engine->heap, registry->definitions, registry->definition_capacity, id + 1))
        return false;
    for (uint32_t i = before; i < registry->definition_capacity; i++)
        registry->definitions[i] = NULL;
    return true;
}

void definition_slot_free(struct engine *engine, struct definition_slot *slot)
{
    scope_fini(&slot->scope);
    heap_free(engine->heap, slot, sizeof *slot);
}

static pawl_status add_slot(struct engine *engine, struct scope *scope, uint32_t id)
{
    struct definition_slot *slot = heap_new(engine->heap, sizeof *slot);
    pawl_status status;

    TRY_MEMORY(scope, slot);
    scope_init(&slot->scope, engine->heap, LIMIT_SCOPE);
    status = load_slot(engine, scope, id, slot);
    if (!status && (id > DEFINITIONS_MAX || !room_for(engine, id)))
        status = scope_no_memory(scope);
    if (!status)
        status = attached_note(engine, scope);
    if (status) {
        definition_slot_free(engine, slot);
        return status;
    }
    definitions_bind(engine, slot);
    engine->registry.definitions[id] = slot;
    return PAWL_OK;
}

pawl_status definitions_get(struct engine *engine, struct scope *scope, uint32_t id,
                            struct definition_slot **out)
{
    pawl_status status;

    guard_lock(&engine->registry.lock);
    status = attached_check(engine, scope, id);
    if (!status && (id >= engine->registry.definition_capacity || !engine->registry.definitions[id]))
        status = add_slot(engine, scope, id);
    if (!status)
        *out = engine->registry.definitions[id];
    guard_unlock(&engine->registry.lock);
    return status;
}

/* ---- references ----
 *
 * Each creation names its definition. Reading its row takes its whole text from the store, so an
 * owner remembers what a reference named, for as long as no other definition is stored. */

static struct resolved *resolved_at(struct engine *engine, str text)
{
    uint32_t hash = 2166136261u;

    for (size_t i = 0; i < text.size; i++)
        hash = (hash ^ (unsigned char)text.data[i]) * 16777619u;
    return &engine->registry.resolved[hash % RESOLVED_KEPT];
}

static bool is_resolved(struct engine *engine, str text, uint32_t last, struct definition_row *row,
                        struct definition_slot **out)
{
    const struct resolved *known = resolved_at(engine, text);
    bool is_known;

    guard_lock(&engine->registry.lock);
    is_known = known->id && known->last == last && str_is(text, known->text);
    if (is_known) {
        *out = engine->registry.definitions[known->id];
        *row = (struct definition_row){ .id = known->id,
                                        .name = (*out)->name,
                                        .version = (*out)->version };
        memcpy(row->source_sha, (*out)->source_sha, SHA_SIZE);
        memcpy(row->compiled_sha, (*out)->compiled_sha, SHA_SIZE);
    }
    guard_unlock(&engine->registry.lock);
    return is_known;
}

static void remember(struct engine *engine, str text, uint32_t last, uint32_t id)
{
    struct resolved *known = resolved_at(engine, text);

    if (text.size >= RESOLVED_SIZE)
        return;
    guard_lock(&engine->registry.lock);
    *known = (struct resolved){ .id = id, .last = last };
    memcpy(known->text, text.data, text.size);
    guard_unlock(&engine->registry.lock);
}

/* Grows with each definition that is stored here, or in the home shard. */
static uint32_t last_of(struct engine *engine)
{
    uint32_t last = engine_last_definition(engine);

    return engine->options.home ? last + engine_last_definition(engine->options.home) : last;
}

/* A home shard that another node owns changes without our knowledge. */
static bool may_remember(const struct engine *engine)
{
    return engine->options.own && (!engine->options.home || engine->options.home->options.own);
}

bool definitions_are_far(struct engine *engine, str text)
{
    struct definition_row row;
    struct definition_slot *slot;

    return engine->options.home &&
           (!may_remember(engine) || !is_resolved(engine, text, last_of(engine), &row, &slot));
}

pawl_status definitions_resolve(struct engine *engine, struct scope *scope, str text,
                                struct definition_row *row, struct definition_slot **out)
{
    bool remembers = may_remember(engine);
    uint32_t last = remembers ? last_of(engine) : 0;

    if (remembers && is_resolved(engine, text, last, row, out))
        return PAWL_OK;
    TRY(definition_find_registered(engine, scope, text, row));
    TRY(definitions_get(engine, scope, row->id, out));
    if (remembers)
        remember(engine, text, last, row->id);
    return PAWL_OK;
}

pawl_status definitions_of(struct engine *engine, struct scope *scope, const struct head *head,
                           struct definition_slot **out)
{
    pawl_status status = definitions_get(engine, scope, head->definition, out);

    if (!status && head->state >= (*out)->definition->state_count)
        return scope_fail(scope, PAWL_STORAGE_FAILURE,
                          "instance number %llu stands in state %u, which its definition does not "
                          "have: run pawl verify",
                          (unsigned long long)head->instance, head->state);
    return status;
}

void definitions_fini(struct engine *engine)
{
    for (uint32_t i = 0; i < engine->registry.definition_capacity; i++)
        if (engine->registry.definitions[i])
            definition_slot_free(engine, engine->registry.definitions[i]);
    attached_fini(engine);
    heap_free(engine->heap, engine->registry.definitions,
              sizeof *engine->registry.definitions * engine->registry.definition_capacity);
    heap_free(engine->heap, engine->registry.code_types, sizeof *engine->registry.code_types * engine->registry.code_count);
    reduces_fini(engine);
    arena_fini(&engine->registry.code_arena);
}

/* ---- putting one ---- */

static bool is_machine(const struct node *document)
{
    return node_find(document, "states") != NULL;
}

/* Is `text`, which is neither JSON nor YAML, nearer to JSON: does its first key have quotes? */
static bool is_meant_as_json(str text)
{
    size_t at = str_span(text, " \t\r\n{[");

    return at == text.size || text.data[at] == '"';
}

static pawl_status read_document(struct scope *scope, str text, pawl_status bad, struct node **out)
{
    pawl_status status;

    if (text.size > LIMIT_TEXT)
        return scope_fail(scope, PAWL_TOO_LARGE, "expected at most %u bytes, found %zu", LIMIT_TEXT,
                          text.size);
    status = node_read(scope, text, out);
    if (status == PAWL_INVALID_REQUEST && bad == PAWL_INVALID_DEFINITION) {
        /* A flow mapping of YAML begins like JSON. */
        pawl_error first = scope->error;

        status = node_read_yaml(scope, text, out);
        if (status == PAWL_INVALID_REQUEST && is_meant_as_json(text))
            scope->error = first;
    }
    if (status == PAWL_INVALID_REQUEST) {
        scope->error.status = bad;
        return bad;
    }
    if (!status && (*out)->kind != NODE_OBJECT)
        return scope_fail(scope, bad, "expected an object with `states`, `steps` or `do`, found %s",
                          node_kind_name((*out)->kind));
    return status;
}

pawl_status definition_compile(struct scope *scope, str text, bool is_inline,
                               struct findings *findings, struct definition **out, str *name)
{
    pawl_status bad = is_inline ? PAWL_INVALID_DECLARATION : PAWL_INVALID_DEFINITION;
    struct node *document, *own_name;

    TRY(read_document(scope, text, bad, &document));
    own_name = node_find(document, "name");
    *name = own_name && own_name->kind == NODE_STRING ? own_name->text : STR_NONE;
    if (is_inline || (is_machine(document) && !flow_is_flow(document)))
        return machine_compile(scope, document, is_inline, findings, out);
    if (is_machine(document))
        return scope_fail(scope, bad,
                          "expected one of `states` (a machine), `steps` or `do` (a "
                          "flow), found more than one");
    if (flow_is_flow(document))
        return flow_compile(scope, document, findings, out);
    return scope_fail(scope, bad,
                      "expected `states` (a machine), `steps` or `do` (a flow); found "
                      "none of them");
}

pawl_status definition_row_make(struct engine *engine, struct scope *scope, str source,
                                const struct definition *definition, struct definition_row *out)
{
    struct sha *sha = sha_new(engine->heap);
    struct buf buf;

    buf_init(&buf, engine->heap, LIMIT_SCOPE);
    definition_print(definition, &buf);
    *out = (struct definition_row){ .kind = (int)definition->kind,
                                    .source = source,
                                    .compiled = buf_take(&buf, &scope->arena) };
    if (!sha || !out->compiled.data) {
        sha_free(sha);
        return scope_no_memory(scope);
    }
    sha_once(sha, out->source, out->source_sha);
    sha_once(sha, out->compiled, out->compiled_sha);
    sha_free(sha);
    return PAWL_OK;
}

static pawl_status resolve_name(struct scope *scope, str name, str own_name, str *out)
{
    if (name.data && own_name.data && !str_eq(name, own_name))
        return scope_fail(scope, PAWL_INVALID_DEFINITION,
                          "the text names itself '%.*s', but it is put as '%.*s'",
                          STR_ARG(own_name), STR_ARG(name));
    *out = name.data ? name : own_name;
    if (!out->data)
        return scope_fail(scope, PAWL_INVALID_DEFINITION,
                          "expected a `name`, found none in the text nor beside it");
    if (!definition_name_is_valid(*out))
        return scope_fail(scope, PAWL_INVALID_DEFINITION,
                          "name: expected 1 to 128 of A-Za-z0-9._/-, found '%.*s'", STR_ARG(*out));
    return PAWL_OK;
}

pawl_status engine_define(struct engine *engine, struct scope *scope, str name, str text,
                          str rights, const uint8_t *key, struct defined *out)
{
    struct findings *findings = ARENA_NEW(&scope->arena, struct findings);
    struct define_request define = { .key = key };
    struct definition *definition;
    str own_name, resolved;

    TRY_MEMORY(scope, findings);
    TRY(definition_compile(scope, text, false, findings, &definition, &own_name));
    TRY(resolve_name(scope, name, own_name, &resolved));
    TRY(own_texts_put(engine, scope, resolved, findings));
    TRY(references_check(engine, scope, resolved, findings));
    TRY(definition_row_make(engine, scope, text, definition, &define.row));
    define.row.name = resolved;
    define.row.rights = rights;
    TRY(definition_put(engine, scope, &define));
    *out = (struct defined){ .name = resolved,
                             .version = define.row.version,
                             .kind = definition->kind,
                             .is_new = define.is_new,
                             .warnings = findings };
    memcpy(out->sha256, define.row.source_sha, SHA_SIZE);
    retention_changed(engine, text);
    return PAWL_OK;
}

/* The newest version of `name`: in this batch, else in the store. */
static pawl_status find_newest(struct engine *engine, struct scope *scope, str name,
                               struct definition_row *out)
{
    const struct definition_row *known = writer_find_definition(engine, name, 0);

    if (known) {
        *out = *known;
        return PAWL_OK;
    }
    TRY(store_find_definition(engine->store, scope, name, 0, NULL, out));
    return engine_definition_rights(engine, scope, name, out->version, &out->rights);
}

static str print_define(struct engine *engine, struct scope *scope,
                        const struct definition_row *row)
{
    struct buf buf;

    buf_init(&buf, engine->heap, LIMIT_SCOPE);
    define_body(&buf, row, row->rights);
    return buf_take(&buf, &scope->arena);
}

/* Everything behind the number of {"compiler":N,...}. */
static str behind_number(str compiled)
{
    str rest = str_after(compiled, ',');

    return rest.data ? rest : compiled;
}

/* A text that compiles differently now becomes a new version: an existing version never changes its
 * meaning. */
static bool is_as_put(const struct definition_row *newest, const struct definition_row *row)
{
    return memcmp(newest->source_sha, row->source_sha, SHA_SIZE) == 0 &&
           (row->kind == KIND_CODE ||
            str_eq(behind_number(newest->compiled), behind_number(row->compiled)));
}

static pawl_status record_define(struct engine *engine, struct request *request, int64_t at_ms,
                                 int32_t what, str body)
{
    const struct define_request *define = request->define;
    struct batch *batch = &engine->writer.batch;
    pawl_status status;

    TRY(standing_room(engine, request->scope));
    TRY(batch_store_record(engine, request->scope, what, at_ms, body, STR_NONE, define->key));
    if (what == CONTROL_DEFINE) {
        status = rights_note(engine, request->scope, &define->row);
        if (status)
            return batch_spoil(engine, request->scope, status);
        batch->definitions[batch->definition_count++] = define->row;
    }
    request->accepted = true;
    return PAWL_OK;
}

/* Putting the same text again returns the existing version, unless the caller has rights which that
 * version lacks: then it becomes a new version, so that the rights of a version never grow. */
static pawl_status define_new(struct engine *engine, struct request *request, int64_t at_ms)
{
    struct define_request *define = request->define;
    struct definition_row newest;
    str body;
    pawl_status status = find_newest(engine, request->scope, define->row.name, &newest);

    if (status && status != PAWL_NOT_KNOWN)
        return status;
    define->is_new = status == PAWL_NOT_KNOWN ||
                     !is_as_put(&newest, &define->row) ||
                     !rights_within(define->row.rights, newest.rights);
    if (!define->is_new)
        define->row.rights = newest.rights;
    define->row.version = define->is_new ? (status ? 0 : newest.version) + 1 : newest.version;
    if (!define->is_new && !define->key)
        return PAWL_OK;
    define->row.id = writer_definition_id(engine);
    define->row.created_at_ms = at_ms;
    body = print_define(engine, request->scope, &define->row);
    TRY_MEMORY(request->scope, body.data);
    return record_define(engine, request, at_ms, define->is_new ? CONTROL_DEFINE : CONTROL_KEYED,
                         body);
}

static pawl_status drain_define(struct engine *engine, struct request *request, int64_t at_ms)
{
    struct record record;
    enum key_use use;

    ASSERT_DRAINING(engine);
    TRY(keys_look(engine, request->scope, request->define->key, at_ms, &use, &record));
    request->is_again = use == KEY_PENDING;
    if (use == KEY_REPEAT)
        return keys_defined(request->scope, &record, request->define);
    return request->is_again ? PAWL_OK : define_new(engine, request, at_ms);
}

pawl_status definition_put(struct engine *engine, struct scope *scope,
                           struct define_request *define)
{
    struct request request = { .drain = drain_define, .scope = scope, .define = define };

    return shell_submit(engine, &request);
}

/* ---- from the home shard ---- */

/* Another creation may have brought it here meanwhile. */
static pawl_status find_here(struct engine *engine, struct scope *scope, str name, uint32_t version,
                             struct definition_row *out)
{
    const struct definition_row *known = writer_find_definition(engine, name, version);

    if (!known)
        return store_find_definition(engine->store, scope, name, version, NULL, out);
    *out = *known;
    return PAWL_OK;
}

/* As the home shard has it: name, version, text, what it was compiled to, and its rights. */
static pawl_status drain_copy(struct engine *engine, struct request *request, int64_t at_ms)
{
    struct definition_row *row = &request->define->row, known;
    str body;
    pawl_status status = find_here(engine, request->scope, row->name, row->version, &known);

    ASSERT_DRAINING(engine);
    if (status != PAWL_NOT_KNOWN) {
        row->id = status ? 0 : known.id;
        return status;
    }
    row->id = writer_definition_id(engine);
    row->created_at_ms = at_ms;
    body = print_define(engine, request->scope, row);
    TRY_MEMORY(request->scope, body.data);
    return record_define(engine, request, at_ms, CONTROL_DEFINE, body);
}

pawl_status definition_copy(struct engine *engine, struct scope *scope, str name, uint32_t version,
                            struct definition_row *row)
{
    struct define_request define = { 0 };
    struct request request = { .drain = drain_copy, .scope = scope, .define = &define };
    pawl_error before = scope->error; /* what the caller has found, to be reported later */
    str alarm = scope->alarm;
    pawl_status status;

    TRY(store_find_definition(engine->options.home->store, scope, name, version, NULL,
                              &define.row));
    status = store_find_definition(engine->store, scope, name, define.row.version, NULL, row);
    if (status != PAWL_NOT_KNOWN)
        return status;
    TRY(engine_definition_rights(engine->options.home, scope, name, define.row.version,
                                 &define.row.rights));
    scope->alarm = STR_NONE; /* the alarm's operation is not this commit */
    status = shell_submit(engine, &request);
    scope->alarm = alarm;
    if (status != PAWL_OK)
        return status;
    scope->error = before;
    *row = define.row;
    return PAWL_OK;
}

/* ---- checking ---- */

static bool has_error(const struct findings *findings)
{
    for (uint32_t i = 0; i < findings->count; i++)
        if (!findings->items[i].is_warning)
            return true;
    return false;
}

pawl_status engine_check(struct engine *engine, struct scope *scope, str name, str text,
                         struct findings *out)
{
    struct definition *definition;
    str own_name, resolved;
    pawl_status status;

    *out = (struct findings){ 0 };
    status = definition_compile(scope, text, false, out, &definition, &own_name);
    if (!status && out->reference_count > 0 && references_are_known(engine, scope))
        status = references_check(engine, scope, name.data ? name : own_name, out);
    if (!status && (name.data || own_name.data))
        status = resolve_name(scope, name, own_name, &resolved);
    if (status == PAWL_INVALID_DEFINITION) {
        if (!has_error(out))
            finding_add(scope, out, (struct finding){ .line = 1, .column = 1 },
                        scope->error.message);
        status = PAWL_OK;
    }
    return status;
}
