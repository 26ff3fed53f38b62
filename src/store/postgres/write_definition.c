/* write_definition.c - a definition's rows: its source once per distinct text, the version itself,
 * its states and transitions spelled out for SQL; and the labels of new instances. */
#include "base/grow.h"
#include "base/limits.h"
#include "base/node.h"
#include "base/node_own.h"
#include "model/definition.h"
#include "postgres_int.h"

static const char put_source[] = "INSERT INTO pawl_source (shard, sha256, bytes) VALUES ($1,"
                                 " $2, $3)"
                                 " ON CONFLICT DO NOTHING";
static const char put_definition[] =
    "INSERT INTO pawl_definition (shard, id, name, version, kind, source, compiled,"
    " compiled_sha256,"
    " compiler, created_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)";
static const char put_states[] = "INSERT INTO pawl_state (shard, definition, idx, name, terminal)"
                                 " SELECT $1, $2, * FROM unnest($3, $4, $5)";
static const char put_transitions[] =
    "INSERT INTO pawl_transition (shard, definition, idx, from_state, action, to_state, guard,"
    " requires_reason, by_engine) SELECT $1, $2, * FROM unnest($3, $4, $5, $6, $7, $8, $9)";

struct state_put {
    uint32_t index, terminal;
    str name;
};
struct transition_put {
    uint32_t index, from, to;
    str action, guard;
    bool requires_reason, by_engine;
};

static uint32_t number_of(const struct node *object, const char *key)
{
    const struct node *node = node_find(object, key);
    int64_t number = 0;

    return node && node_to_i64(node, &number) && number > 0 ? (uint32_t)number : 0;
}

static pawl_status send_states(struct sending *sending, uint32_t definition,
                               const struct node *compiled)
{
    static const struct column columns[] = {
        COLUMN(struct state_put, index, FROM_U32, PG_INT4),
        COLUMN(struct state_put, name, FROM_STR, PG_BYTEA),
        COLUMN(struct state_put, terminal, FROM_U32, PG_INT4),
    };
    struct state_put *rows = NULL;
    struct params *params;
    uint32_t count = 0, capacity = 0;

    for (const struct node *state = node_first(compiled, "states"); state; state = state->next) {
        enum terminal_kind terminal = TERMINAL_NOT;

        TRY_MEMORY(sending->scope, GROW(&sending->scope->arena, rows, count, capacity));
        terminal_kind_read(node_text(state, "terminal"), &terminal);
        rows[count] = (struct state_put){ count, terminal, node_text(state, "name") };
        count++;
    }
    if (count == 0)
        return PAWL_OK;
    params = sending_add(sending, put_states);
    TRY_MEMORY(sending->scope, params);
    params_int4(params, definition);
    PARAMS_COLUMNS(params, rows, count, columns);
    return PAWL_OK;
}

static pawl_status send_transitions(struct sending *sending, uint32_t definition,
                                    const struct node *compiled)
{
    static const struct column columns[] = {
        COLUMN(struct transition_put, index, FROM_U32, PG_INT4),
        COLUMN(struct transition_put, from, FROM_U32, PG_INT4),
        COLUMN(struct transition_put, action, FROM_STR, PG_BYTEA),
        COLUMN(struct transition_put, to, FROM_U32, PG_INT4),
        COLUMN(struct transition_put, guard, FROM_STR, PG_BYTEA),
        COLUMN(struct transition_put, requires_reason, FROM_BOOL, PG_INT4),
        COLUMN(struct transition_put, by_engine, FROM_BOOL, PG_INT4),
    };
    struct transition_put *rows = NULL;
    struct params *params;
    uint32_t count = 0, capacity = 0;

    for (const struct node *at = node_first(compiled, "transitions"); at; at = at->next) {
        const struct node *reason = node_find(at, "requires_reason");

        TRY_MEMORY(sending->scope, GROW(&sending->scope->arena, rows, count, capacity));
        rows[count] = (struct transition_put){
            .index = count,
            .from = number_of(at, "from"),
            .to = number_of(at, "to"),
            .action = node_text(at, "action"),
            .guard = node_text(at, "guard"),
            .requires_reason = reason && reason->truth,
            .by_engine = str_is(node_text(at, "by"), "engine"),
        };
        count++;
    }
    if (count == 0)
        return PAWL_OK;
    params = sending_add(sending, put_transitions);
    TRY_MEMORY(sending->scope, params);
    params_int4(params, definition);
    PARAMS_COLUMNS(params, rows, count, columns);
    return PAWL_OK;
}

static pawl_status send_definition(struct sending *sending, const struct definition_row *row)
{
    const str source_sha = { (const char *)row->source_sha, SHA_SIZE };
    struct params *source, *version;
    struct node *compiled;
    pawl_status status = node_read_own(sending->scope, row->compiled, &compiled);

    if (status == PAWL_INVALID_REQUEST)
        return scope_fail(sending->scope, PAWL_STORAGE_FAILURE,
                          "definition %u has no compiled text that can be read", row->id);
    TRY(status);
    source = sending_add(sending, put_source);
    version = sending_add(sending, put_definition);
    TRY_MEMORY(sending->scope, source && version);
    params_bytes(source, source_sha);
    params_bytes(source, row->source);
    params_int4(version, row->id);
    params_bytes(version, row->name);
    params_int4(version, row->version);
    params_int4(version, row->kind);
    params_bytes(version, source_sha);
    params_bytes(version, row->compiled);
    params_bytes(version, (str){ (const char *)row->compiled_sha, SHA_SIZE });
    params_int4(version, number_of(compiled, "compiler"));
    params_int(version, row->created_at_ms);
    TRY(send_states(sending, row->id, compiled));
    return send_transitions(sending, row->id, compiled);
}

pawl_status send_definitions(struct sending *sending, const struct commit *commit)
{
    for (size_t i = 0; i < commit->definition_count; i++)
        TRY(send_definition(sending, &commit->definitions[i]));
    return PAWL_OK;
}

/* ---- Labels ---- */

static const char put_labels[] =
    "INSERT INTO pawl_label (shard, key, value, inst) SELECT $1, * FROM unnest($2, $3, $4)"
    " ON CONFLICT DO NOTHING";
static const char delete_labels[] =
    "DELETE FROM pawl_label l USING unnest($2, $3, $4) u(key, value, inst) WHERE l.shard = $1"
    " AND l.key = u.key AND l.value = u.value AND l.inst = u.inst";

struct label_put {
    str key, value;
    uint64_t instance;
};

struct label_list {
    struct label_put *rows;
    uint32_t count, capacity;
};

/* What is no JSON has no labels. */
static pawl_status add_labels(struct scope *scope, const struct instance_row *row,
                              struct label_list *list)
{
    struct node *object;
    pawl_status status = node_read_json(scope, row->labels, &object);

    if (status == PAWL_NO_MEMORY)
        return status;
    if (status != PAWL_OK || object->kind != NODE_OBJECT)
        return PAWL_OK;
    for (const struct node *label = object->first; label; label = label->next)
        if (label->kind == NODE_STRING) {
            TRY_MEMORY(scope, GROW(&scope->arena, list->rows, list->count, list->capacity));
            list->rows[list->count++] = (struct label_put){ label->key, label->text, row->number };
        }
    return PAWL_OK;
}

static pawl_status send_for_labels(struct sending *sending, const char *text,
                                   const struct instance_row *rows, size_t count)
{
    static const struct column columns[] = {
        COLUMN(struct label_put, key, FROM_STR, PG_BYTEA),
        COLUMN(struct label_put, value, FROM_STR, PG_BYTEA),
        COLUMN(struct label_put, instance, FROM_U64, PG_INT8),
    };
    struct label_list list = { 0 };
    struct params *params;

    for (size_t i = 0; i < count; i++)
        if (rows[i].labels.data)
            TRY(add_labels(sending->scope, &rows[i], &list));
    if (list.count == 0)
        return PAWL_OK;
    params = sending_add(sending, text);
    TRY_MEMORY(sending->scope, params);
    PARAMS_COLUMNS(params, list.rows, list.count, columns);
    return PAWL_OK;
}

pawl_status send_labels(struct sending *sending, const struct commit *commit)
{
    return send_for_labels(sending, put_labels, commit->instances, commit->instance_count);
}

pawl_status send_label_deletes(struct sending *sending, const struct instance_row *rows,
                               size_t count)
{
    return send_for_labels(sending, delete_labels, rows, count);
}
