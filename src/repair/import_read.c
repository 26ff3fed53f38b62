/* import_read.c - lines of an export file into what will be a commit. */
#include "base/grow.h"
#include "base/limits.h"
#include "base/node_own.h"
#include "model/rights.h"
#include "repair/import_int.h"
#include <stdio.h>

#define GROW_IMPORT(import, items, count, capacity)                                                \
    GROW(&(import)->scope->arena, (import)->items, (import)->count, (import)->capacity)

static pawl_status bad(const struct import *import, const char *what)
{
    return scope_fail(import->scope, PAWL_INVALID_REQUEST,
                      "line %llu: expected %s, found none that can be read",
                      (unsigned long long)import->line, what);
}

/* ---- Members ---- */

/* Bytes as text, or in hexadecimal under another name. */
static bool read_bytes(const struct import *import, const struct node *object, const char *key,
                       const char *hex_key, str *out)
{
    str hex = node_text(object, hex_key);
    uint8_t *bytes;

    *out = node_text(object, key);
    if (!hex.data)
        return true;
    bytes = arena_alloc(&import->scope->arena, hex.size / 2 + 1);
    *out = (str){ (const char *)bytes, hex.size / 2 };
    return bytes && sha_unhex(hex, bytes, hex.size / 2);
}

static bool read_i64(const struct node *object, const char *key, int64_t *out)
{
    return node_to_i64(node_find(object, key), out);
}

static bool read_u32(const struct node *object, const char *key, uint32_t *out)
{
    const struct node *node = node_find(object, key);
    int64_t number = 0;

    if (node && (!node_to_i64(node, &number) || number < 0 || number > UINT32_MAX))
        return false;
    *out = (uint32_t)number;
    return true;
}

/* ---- Values ---- */

static bool parse_value(struct import *import, const struct node *node, struct carried_value *out)
{
    const struct node *interned = node_find(node, "interned");
    uint8_t found[SHA_SIZE];

    *out = (struct carried_value){ .interned = interned && interned->truth };
    if (!sha_unhex(node_text(node, "commitment"), out->commitment, SHA_SIZE) ||
        !read_bytes(import, node, "text", "hex", &out->bytes))
        return false;
    if (!out->bytes.data)
        return true; /* erased: the commitment is all there is */
    if (!sha_unhex(node_text(node, "salt"), out->salt, SALT_SIZE))
        return false;
    value_commit(import->sha, out->salt, out->bytes, found);
    return memcmp(found, out->commitment, SHA_SIZE) == 0;
}

/* Its place. Of two that begin with the same 8 bytes, which only a forger makes, the last is found:
 * the other one is then rejected, if it has no bytes. */
static uint32_t find_value(const struct import *import, const uint8_t commitment[SHA_SIZE])
{
    uint32_t place = map_get(&import->by_commitment, commitment_key(commitment));

    return place != MAP_NONE && memcmp(import->values[place].commitment, commitment, SHA_SIZE) == 0
               ? place
               : MAP_NONE;
}

/* Its place + 1 into *id; one that came before is the same one. */
static pawl_status read_value(struct import *import, const struct node *object, const char *key,
                              uint64_t *id)
{
    const struct node *node = node_find(object, key);
    struct carried_value value;
    uint32_t known;

    *id = 0;
    if (!node || node->kind == NODE_NULL)
        return PAWL_OK;
    if (!parse_value(import, node, &value))
        return bad(import, "a value that matches its commitment");
    known = find_value(import, value.commitment);
    if (known != MAP_NONE) {
        *id = known + 1;
        return PAWL_OK;
    }
    TRY_MEMORY(import->scope, GROW_IMPORT(import, values, value_count, value_capacity) &&
                                  map_put(&import->by_commitment, commitment_key(value.commitment),
                                          import->value_count));
    import->values[import->value_count++] = value;
    *id = import->value_count;
    return PAWL_OK;
}

/* ---- Definitions ---- */

static bool parse_definition(struct import *import, const struct node *node,
                             struct definition_row *row)
{
    uint8_t source[SHA_SIZE], compiled[SHA_SIZE];

    *row = (struct definition_row){ .name = node_text(node, "name"),
                                    .kind = (int)definition_kind_read(node_text(node, "kind")),
                                    .compiled = node_text(node, "compiled"),
                                    .rights = node_text(node, "rights") };
    if (row->kind == KIND_UNKNOWN || !row->compiled.data ||
        (row->name.data && !definition_name_is_valid(row->name)) ||

        !read_bytes(import, node, "source", "source_hex", &row->source) || !row->source.data ||
        !read_u32(node, "version", &row->version) ||
        (row->name.data != NULL) != (row->version > 0) ||
        !read_i64(node, "created_at", &row->created_at_ms) ||
        (row->rights.data && (!row->name.data || !rights_are_valid(row->rights))) ||
        !sha_unhex(node_text(node, "sha256"), row->source_sha, SHA_SIZE) ||
        !sha_unhex(node_text(node, "compiled_sha256"), row->compiled_sha, SHA_SIZE))
        return false;
    sha_once(import->sha, row->source, source);
    sha_once(import->sha, row->compiled, compiled);
    return memcmp(source, row->source_sha, SHA_SIZE) == 0 &&
           memcmp(compiled, row->compiled_sha, SHA_SIZE) == 0;
}

static uint32_t find_definition(const struct import *import, const uint8_t *source,
                                const uint8_t *compiled, str name, uint32_t version)
{
    for (uint32_t i = 0; i < import->definition_count; i++) {
        const struct definition_row *row = &import->definitions[i].row;

        if (row->version == version && str_eq(row->name, name) &&
            memcmp(row->source_sha, source, SHA_SIZE) == 0 &&
            memcmp(row->compiled_sha, compiled, SHA_SIZE) == 0)
            return i;
    }
    return UINT32_MAX;
}

/* One name and version, two texts: the file is of more than one store. */
static bool has_another(const struct import *import, const struct definition_row *row)
{
    for (uint32_t i = 0; i < import->definition_count; i++) {
        const struct definition_row *other = &import->definitions[i].row;

        if (row->name.data
                ? row->version == other->version && str_eq(row->name, other->name)
                : !other->name.data && memcmp(row->source_sha, other->source_sha, SHA_SIZE) == 0)
            return true;
    }
    return false;
}

static pawl_status read_definition(struct import *import, const struct node *node)
{
    struct carried_definition one = { 0 };

    if (!parse_definition(import, node, &one.row))
        return bad(import, "a definition whose texts match their sha256");
    if (find_definition(import, one.row.source_sha, one.row.compiled_sha, one.row.name,
                        one.row.version) != UINT32_MAX)
        return PAWL_OK;
    if (has_another(import, &one.row))
        return bad(import, "one text for each name and version");
    if (definition_load(import->scope, one.row.compiled, &one.loaded) != PAWL_OK ||
        (int)one.loaded->kind != one.row.kind)
        return bad(import, "a compiled definition");
    TRY_MEMORY(import->scope,
               GROW_IMPORT(import, definitions, definition_count, definition_capacity));
    import->definitions[import->definition_count++] = one;
    return PAWL_OK;
}

/* ---- Instances and their records ---- */

static bool parse_instance(struct import *import, const struct node *node,
                           struct carried_instance *out)
{
    uint8_t source[SHA_SIZE], compiled[SHA_SIZE];
    str id = node_text(node, "id"), parent = node_text(node, "parent");
    const struct node *test = node_find(node, "test");
    uint32_t version;
    int64_t count = 0;

    *out = (struct carried_instance){ 0 };
    if (id.size != ID_SIZE || !id_parse(id, &out->row.number, out->row.random) ||
        out->row.number == 0 || out->row.number >= ID_NUMBER_MAX ||
        !sha_unhex(node_text(node, "source"), source, SHA_SIZE) ||
        !sha_unhex(node_text(node, "compiled"), compiled, SHA_SIZE) ||
        !read_u32(node, "version", &version) || !read_i64(node, "records", &count) ||
        !read_i64(node, "instantiated_at", &out->row.instantiated_at_ms) ||
        !read_bytes(import, node, "correlation", "correlation_hex", &out->row.correlation) ||
        !read_bytes(import, node, "labels", "labels_hex", &out->row.labels))
        return false;
    id_print(out->row.number, out->row.random, out->id);
    out->row.test = test && test->truth;
    out->said_count = (uint64_t)count;
    if (parent.data) {
        uint8_t random[ID_RANDOM_SIZE];

        if (parent.size != ID_SIZE || !id_parse(parent, &out->row.parent, random))
            return false;
        memcpy(out->parent, parent.data, ID_SIZE);
    }
    out->definition = find_definition(import, source, compiled, node_text(node, "name"), version);
    return out->definition != UINT32_MAX;
}

static pawl_status read_instance(struct import *import, const struct node *node)
{
    struct carried_instance one;

    if (!parse_instance(import, node, &one))
        return bad(import, "an instance whose definition stands before it");
    if (map_get(&import->by_number, one.row.number) != MAP_NONE)
        return bad(import, "an instance that was not in the file before");
    TRY(read_value(import, node, "subject", &one.row.subject));
    TRY(read_value(import, node, "input", &one.row.input));
    TRY(read_value(import, node, "metadata", &one.row.metadata));
    TRY_MEMORY(import->scope,
               GROW_IMPORT(import, instances, instance_count, instance_capacity) &&
                   map_put(&import->by_number, one.row.number, import->instance_count));
    import->instances[import->instance_count++] = one;
    return PAWL_OK;
}

/* Others stand in the store's own chain, which is not carried. */
static bool is_of_instance(int64_t what)
{
    return (what >= 0 && what <= INT32_MAX) || what == CONTROL_CREATE || what == CONTROL_PAUSE ||
           what == CONTROL_RESUME || what == CONTROL_KEEP_SIGNAL || what == CONTROL_ERASE ||
           what == CONTROL_RIGHTS;
}

static bool parse_record(struct import *import, const struct node *node, struct record *out,
                         uint64_t *position)
{
    str key = node_text(node, "key");
    uint8_t *bytes = NULL;
    int64_t seq, what, where;

    *out = (struct record){ 0 };
    if (!read_i64(node, "seq", &seq) || seq < 0 || !read_i64(node, "what", &what) ||
        !is_of_instance(what) || !read_i64(node, "position", &where) || where < 0 ||
        !read_i64(node, "at", &out->at_ms) || !read_i64(node, "fired", &out->fired_at_ms) ||
        !read_u32(node, "flags", &out->flags) || !read_u32(node, "step", &out->step) ||
        !read_u32(node, "ord", &out->ordinal) || !read_u32(node, "attempt", &out->attempt) ||
        !read_bytes(import, node, "body", "body_hex", &out->body) ||
        !sha_unhex(node_text(node, "hash"), out->hash, SHA_SIZE))
        return false;
    if (key.data) {
        bytes = arena_alloc(&import->scope->arena, KEY_SIZE);
        if (!bytes || !sha_unhex(key, bytes, KEY_SIZE))
            return false;
        out->key = (str){ (const char *)bytes, KEY_SIZE };
    }
    out->seq = (uint64_t)seq;
    out->what = (int32_t)what;
    *position = (uint64_t)where;
    return true;
}

/* The instance of a record: it stands before it, and has this very id. */
static uint32_t instance_of(const struct import *import, const struct node *node)
{
    str id = node_text(node, "id");
    uint8_t random[ID_RANDOM_SIZE];
    uint64_t number;
    uint32_t place;

    if (id.size != ID_SIZE || !id_parse(id, &number, random))
        return UINT32_MAX;
    place = number ? map_get(&import->by_number, number) : MAP_NONE;
    return place != MAP_NONE && str_is(id, import->instances[place].id) ? place : UINT32_MAX;
}

static pawl_status read_record(struct import *import, const struct node *node)
{
    struct carried_record one = { .instance = instance_of(import, node) };
    struct carried_instance *instance;

    if (one.instance == UINT32_MAX || !parse_record(import, node, &one.record, &one.position))
        return bad(import, "a record of an instance that stands before it");
    TRY(read_value(import, node, "actor", &one.record.actor));
    TRY(read_value(import, node, "payload", &one.record.payload));
    TRY(read_value(import, node, "reason", &one.record.reason));
    if ((one.record.what == CONTROL_CREATE) != (import->instances[one.instance].record_count == 0))
        return bad(import, "the creation of an instance first, and once");
    TRY_MEMORY(import->scope, GROW_IMPORT(import, records, record_count, record_capacity));
    instance = &import->instances[one.instance];
    one.record.instance = instance->row.number;
    if (one.record.what == CONTROL_CREATE)
        instance->row.creator = one.record.actor;
    instance->record_count++;
    memcpy(instance->last_hash, one.record.hash, SHA_SIZE);
    import->records[import->record_count++] = one;
    return PAWL_OK;
}

/* Marks the values that the line names as erased. A value without bytes that is not named is
 * rejected. */
static pawl_status read_erased(struct import *import, const struct node *list)
{
    uint8_t commitment[SHA_SIZE];
    uint32_t known;

    for (const struct node *item = list->first; item; item = item->next) {
        if (item->kind != NODE_STRING || !sha_unhex(item->text, commitment, SHA_SIZE))
            return bad(import, "a list of commitments");
        known = find_value(import, commitment);
        if (known != MAP_NONE)
            import->values[known].is_named = true;
    }
    return PAWL_OK;
}

static pawl_status read_erased_body(struct import *import, const struct node *item)
{
    struct carried_body one = { 0 };

    if (item->kind != NODE_STRING || !sha_unhex(item->text, one.hash, SHA_SIZE))
        return bad(import, "a list of hashes of records");
    TRY_MEMORY(import->scope,
               GROW_IMPORT(import, bodies, body_count, body_capacity) &&
                   map_put(&import->by_body, commitment_key(one.hash), import->body_count));
    import->bodies[import->body_count++] = one;
    return PAWL_OK;
}

/* Behind an instance: which of its records have lost a part of their bodies. */
static pawl_status read_erased_bodies(struct import *import, const struct node *line)
{
    const struct node *list = node_find(line, "bodies");
    str of = node_text(line, "of");
    uint8_t random[ID_RANDOM_SIZE];
    uint64_t number;
    uint32_t place = MAP_NONE;

    if (!list)
        return PAWL_OK;
    if (of.data && id_parse(of, &number, random) && number)
        place = map_get(&import->by_number, number);
    if (list->kind != NODE_ARRAY || place == MAP_NONE || !str_is(of, import->instances[place].id))
        return bad(import, "the erased bodies of an instance that stands before them");
    import->instances[place].is_erased = true;
    for (const struct node *item = list->first; item; item = item->next)
        TRY(read_erased_body(import, item));
    return PAWL_OK;
}

/* ["NAME",ORD,MS] */
static bool parse_moved(const struct node *item, struct carried_moved *out)
{
    const struct node *name = item->kind == NODE_ARRAY ? item->first : NULL;
    const struct node *ordinal = name ? name->next : NULL, *by = ordinal ? ordinal->next : NULL;
    int64_t row = -1;

    if (!by || by->next || name->kind != NODE_STRING || !node_to_i64(ordinal, &row) || row < 0 ||
        row > UINT32_MAX || !node_to_i64(by, &out->by_ms))
        return false;
    out->name = name->text;
    out->ordinal = (uint32_t)row;
    return out->by_ms != 0 && out->by_ms < MOVED_MAX_MS && out->by_ms > -MOVED_MAX_MS;
}

/* Reads by how much timers of an instance are due later than their entries say. */
static pawl_status read_moved(struct import *import, const struct node *node)
{
    const struct node *timers = node_find(node, "timers");
    struct carried_moved one = { .instance = instance_of(import, node) };

    if (one.instance == UINT32_MAX || !timers || timers->kind != NODE_ARRAY)
        return bad(import, "the moved timers of an instance that stands before them");
    for (const struct node *item = timers->first; item; item = item->next) {
        if (!parse_moved(item, &one))
            return bad(import, "a timer's name, its row and how far it has moved");
        TRY_MEMORY(import->scope, GROW_IMPORT(import, moved, moved_count, moved_capacity));
        import->moved[import->moved_count++] = one;
    }
    return PAWL_OK;
}

/* ---- The first line ---- */

static void say_found(const struct node *node, char *out, size_t size)
{
    const struct node *format = node_find(node, "format");

    if (!str_is(node_text(node, "pawl"), "export"))
        snprintf(out, size, "a line without \"pawl\":\"export\"");
    else if (!format)
        snprintf(out, size, "no format");
    else if (format->kind == NODE_NUMBER)
        snprintf(out, size, "format %.*s", format->text.size < 40 ? (int)format->text.size : 40,
                 format->text.data);
    else
        snprintf(out, size, "%s as the format", node_kind_name(format->kind));
}

static pawl_status read_header(struct import *import, const struct node *node)
{
    const struct node *format = node_find(node, "format");
    int64_t number;
    char found[80];

    if (str_is(node_text(node, "pawl"), "export") && node_to_i64(format, &number) &&
        number == EXPORT_FORMAT)
        return PAWL_OK;
    say_found(node, found, sizeof found);
    return scope_fail(import->scope, PAWL_INVALID_REQUEST,
                      "line 1: expected " EXPORT_HEADER
                      ", found %s; a file of a newer format needs "
                      "a newer pawl",
                      found);
}

pawl_status import_line(struct import *import, str line)
{
    struct scope *scope = import->scope;
    struct node *node, *inner;
    str kept = arena_str(&scope->arena, line); /* nodes point into it */

    import->line++;
    TRY_MEMORY(scope, kept.data);
    if (node_read_own(scope, kept, &node) != PAWL_OK)
        return scope_fail(scope, PAWL_INVALID_REQUEST, "line %llu: %.200s",
                          (unsigned long long)import->line, scope->error.message);
    if (import->line == 1)
        return read_header(import, node);
    if ((inner = node_find(node, "definition")))
        return read_definition(import, inner);
    if ((inner = node_find(node, "instance")))
        return read_instance(import, inner);
    if ((inner = node_find(node, "record")))
        return read_record(import, inner);
    if ((inner = node_find(node, "erased"))) {
        TRY(read_erased(import, inner));
        return read_erased_bodies(import, node);
    }
    if ((inner = node_find(node, "moved")))
        return read_moved(import, inner);
    return scope_fail(scope, PAWL_INVALID_REQUEST,
                      "line %llu: expected a definition, an instance or a record of `pawl export`, "
                      "found something else",
                      (unsigned long long)import->line);
}
