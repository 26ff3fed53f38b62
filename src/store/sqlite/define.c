/* define.c - a definition's rows: its source once per distinct text, the version itself, and
 * its states and transitions spelled out so that SQL can name them. */
#include "base/node_own.h"
#include "model/definition.h"
#include "read_int.h"

static const char put_source[] =
    "INSERT INTO pawl_source (sha256, bytes) VALUES (?1, ?2) ON CONFLICT DO NOTHING";
static const char find_source[] = "SELECT id FROM pawl_source WHERE sha256 = ?1";
static const char put_definition[] =
    "INSERT INTO pawl_definition (id, name, version, kind, source, compiled, compiled_sha256,"
    " compiler, created_at) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)";
static const char put_state[] =
    "INSERT INTO pawl_state (definition, idx, name, terminal) VALUES (?1, ?2, ?3, ?4)";
static const char put_transition[] =
    "INSERT INTO pawl_transition (definition, idx, from_state, action, to_state, guard,"
    " requires_reason, by_engine) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)";

static uint64_t number_of(const struct node *object, const char *key)
{
    const struct node *node = node_find(object, key);
    int64_t number = 0;

    return node && node_to_i64(node, &number) && number > 0 ? (uint64_t)number : 0;
}

static pawl_status write_states(struct connection *writer, struct scope *scope, uint32_t definition,
                                const struct node *compiled)
{
    uint32_t index = 0;

    for (const struct node *state = node_first(compiled, "states"); state; state = state->next) {
        enum terminal_kind terminal = TERMINAL_NOT;

        terminal_kind_read(node_text(state, "terminal"), &terminal);
        TRY(RUN(writer, scope, put_state, NUMBER(definition), NUMBER(index++),
                TEXT(node_text(state, "name")), NUMBER(terminal)));
    }
    return PAWL_OK;
}

static pawl_status write_transitions(struct connection *writer, struct scope *scope,
                                     uint32_t definition, const struct node *compiled)
{
    uint32_t index = 0;

    for (const struct node *at = node_first(compiled, "transitions"); at; at = at->next) {
        const struct node *requires_reason = node_find(at, "requires_reason");

        TRY(RUN(writer, scope, put_transition, NUMBER(definition), NUMBER(index++),
                NUMBER(number_of(at, "from")), TEXT(node_text(at, "action")),
                NUMBER(number_of(at, "to")), TEXT(node_text(at, "guard")),
                NUMBER(requires_reason && requires_reason->truth),
                NUMBER(str_is(node_text(at, "by"), "engine"))));
    }
    return PAWL_OK;
}

pawl_status write_definition(struct connection *writer, struct scope *scope,
                             const struct definition_row *row)
{
    struct node *compiled;
    sqlite3_stmt *statement;
    uint64_t source;
    pawl_status status = node_read_own(scope, row->compiled, &compiled);

    if (status == PAWL_INVALID_REQUEST)
        return scope_fail(scope, PAWL_STORAGE_FAILURE,
                          "definition %u has no compiled text that can be read", row->id);
    TRY(status);
    TRY(RUN(writer, scope, put_source, BYTES(row->source_sha, SHA_SIZE), BLOB(row->source)));
    TRY(statement_get(writer, scope, find_source, &statement));
    bind_bytes(statement, 1, row->source_sha, SHA_SIZE);
    TRY(read_row(scope, statement, "source", read_number, &source));
    TRY(RUN(writer, scope, put_definition, NUMBER(row->id), TEXT(row->name), NUMBER(row->version),
            SIGNED(row->kind), NUMBER(source), TEXT(row->compiled),
            BYTES(row->compiled_sha, SHA_SIZE), NUMBER(number_of(compiled, "compiler")),
            SIGNED(row->created_at_ms)));
    TRY(write_states(writer, scope, row->id, compiled));
    return write_transitions(writer, scope, row->id, compiled);
}
