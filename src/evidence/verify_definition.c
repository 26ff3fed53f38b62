/* verify_definition.c - definitions: their texts against their hashes, their rows against
 * their texts and define records; and what a replay needs to know of each. */
#include "base/assert.h"
#include "evidence/verify_int.h"
#include "model/rights.h"

static pawl_status check_hashes(struct verify *v, const struct definition_row *row)
{
    uint8_t sha[SHA_SIZE];

    sha_once(v->sha, row->source, sha);
    if (memcmp(sha, row->source_sha, SHA_SIZE) != 0)
        return verify_bad(v, "definition %u: the source does not match its hash", row->id);
    sha_once(v->sha, row->compiled, sha);
    if (memcmp(sha, row->compiled_sha, SHA_SIZE) != 0)
        return verify_bad(v, "definition %u: the compiled text does not match its hash", row->id);
    return PAWL_OK;
}

/* States, transitions and deadlines are valid: definition_load() has checked them. */
static pawl_status check_definition(struct verify *v, const struct definition_row *row,
                                    const struct definition *definition)
{
    if ((int)definition->kind != row->kind)
        return verify_bad(v, "definition %u: its kind is not the compiled one", row->id);
    if ((row->name.size == 0) != (row->version == 0))
        return verify_bad(v, "definition %u: a name and a version go together", row->id);
    return PAWL_OK;
}

static pawl_status keep_rules(struct verify *v, const struct definition_row *row,
                              struct definition *definition, uint32_t *out_index)
{
    struct rules *rules;

    TRY_MEMORY(&v->scope, HEAP_GROW(v->heap, v->rules, v->rules_capacity, v->rules_count + 1));
    rules = &v->rules[v->rules_count];
    *rules = (struct rules){
        .id = row->id,
        .version = row->version,
        .definition = definition,
        .created_at_ms = row->created_at_ms,
        .name = arena_str(&v->plans.arena, row->name),
    };
    memcpy(rules->source_sha, row->source_sha, SHA_SIZE);
    memcpy(rules->compiled_sha, row->compiled_sha, SHA_SIZE);
    TRY_MEMORY(&v->scope,
               !v->plans.arena.failed && map_put(&v->rules_map, row->id, v->rules_count));
    *out_index = v->rules_count++;
    return verify_plan(v, rules);
}

pawl_status verify_definition(struct verify *v, uint32_t id, uint32_t *out_index)
{
    uint32_t index = id != 0 ? map_get(&v->rules_map, id) : MAP_NONE;
    struct definition_row row;
    struct definition *definition;
    pawl_status status;

    if (index != MAP_NONE) {
        *out_index = index;
        return PAWL_OK;
    }
    TRY_FOUND(v, id != 0 ? store_definition(v->store, &v->scope, id, &row) : PAWL_NOT_KNOWN,
              "definition %u is missing", id);
    row.id = id;
    TRY(check_hashes(v, &row));
    row.compiled = arena_str(&v->plans.arena, row.compiled); /* the definition points into it */
    status =
        row.compiled.data ? definition_load(&v->plans, row.compiled, &definition) : PAWL_NO_MEMORY;
    if (status == PAWL_STORAGE_FAILURE)
        return verify_bad(v, "definition %u: %.160s", id, v->plans.error.message);
    TRY_MEMORY(&v->scope, status == PAWL_OK);
    TRY(check_definition(v, &row, definition));
    return keep_rules(v, &row, definition, out_index);
}

/* ---- define records ---- */

/* The number of the definition that a define record puts, 0: none; and its rights. */
static pawl_status find_defined(struct verify *v, str body, uint32_t *out_id, str *out_rights)
{
    struct node *root = NULL;
    struct definition_row row;
    int64_t number;
    str name, rights;
    pawl_status status = body.data ? node_read_json(&v->scope, body, &root) : PAWL_INVALID_REQUEST;

    *out_id = 0;
    *out_rights = STR_NONE;
    if (status != PAWL_OK)
        return status == PAWL_INVALID_REQUEST ? PAWL_OK : status;
    name = node_text(root, "name");
    rights = node_text(root, "rights");
    if (rights_are_valid(rights))
        *out_rights = rights;
    if (name.size == 0 || !node_to_i64(node_find(root, "version"), &number) || number < 1 ||
        number > UINT32_MAX)
        return PAWL_OK;
    status = store_find_definition(v->store, &v->scope, name, (uint32_t)number, NULL, &row);
    if (status == PAWL_OK)
        *out_id = row.id;
    return status == PAWL_NOT_KNOWN ? PAWL_OK : status;
}

/* The row's created_at must be the time of this record, which defines it. */
static pawl_status begin_rules(struct verify *v, struct rules *rules, const struct record *record)
{
    rules->is_defined = true;
    if (rules->created_at_ms == record->at_ms ||
        (!rules->name.size && v->archived_count && rules->created_at_ms < record->at_ms))
        return PAWL_OK; /* of an inline one, whose first instance was moved into an archive */
    return verify_bad(v, "the time of definition %u's row is not that of the record that defines it",
                      rules->id);
}

pawl_status verify_define(struct verify *v, const struct record *record)
{
    struct definition_row row;
    uint32_t id, index;
    str rights;

    TRY(find_defined(v, record->body, &id, &rights));
    if (id == 0)
        return verify_bad(v, "the definition that this record puts is missing");
    TRY(verify_definition(v, id, &index));
    row = (struct definition_row){ .name = v->rules[index].name,
                                   .version = v->rules[index].version,
                                   .kind = (int)v->rules[index].definition->kind };
    memcpy(row.source_sha, v->rules[index].source_sha, SHA_SIZE);
    memcpy(row.compiled_sha, v->rules[index].compiled_sha, SHA_SIZE);
    buf_clear(&v->body);
    define_body(&v->body, &row, rights);
    TRY_MEMORY(&v->scope, !v->body.failed);
    if (!str_eq(buf_view(&v->body), record->body))
        return verify_bad(v, "definition %u is not the one that was put here", id);
    if (v->rules[index].is_defined)
        return verify_bad(v, "definition %u was put before", id);
    TRY(begin_rules(v, &v->rules[index], record));
    if (!rights.data)
        return PAWL_OK;
    return verify_note_rights(v, record, v->rules[index].name, v->rules[index].version);
}

pawl_status verify_inline(struct verify *v, uint32_t rules, const struct record *record)
{
    if (!v->whole || v->rules[rules].name.size > 0 || v->rules[rules].is_defined)
        return PAWL_OK;
    return begin_rules(v, &v->rules[rules], record);
}

/* ---- the rest ---- */

static pawl_status check_known(struct verify *v, uint32_t id)
{
    struct definition_row row;
    uint32_t index = 0;
    pawl_status status;

    scope_clear(&v->scope);
    if (map_get(&v->rules_map, id) == MAP_NONE) {
        status = store_definition(v->store, &v->scope, id, &row);
        if (status != PAWL_OK)
            return status == PAWL_NOT_KNOWN ? PAWL_OK : status;
    }
    status = verify_definition(v, id, &index);
    if (status == PAWL_OK && v->rules[index].name.size > 0 && !v->rules[index].is_defined)
        return verify_bad(v, "definition %u has a name, but no record puts it", id);
    return status;
}

pawl_status verify_all_definitions(struct verify *v)
{
    verify_at(v, 0, 0, 0);
    if (v->tip.last_definition > v->tip.pos)
        return verify_bad(v, "there is a definition %u, but the log can't name so many",
                          v->tip.last_definition);
    for (uint32_t id = 1; id <= v->tip.last_definition; id++)
        TRY(check_known(v, id));
    return PAWL_OK;
}
