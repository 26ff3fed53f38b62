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

static pawl_status write_source(struct connection *writer, struct scope *scope,
                                const struct definition_row *row, uint64_t *id)
{
    sqlite3_stmt *statement;

    TRY(RUN(writer, scope, put_source, BYTES(row->source_sha, SHA_SIZE), BLOB(row->source)));
    TRY(statement_get(writer, scope, find_source, &statement));
    bind_bytes(statement, 1, row->source_sha, SHA_SIZE);
    return read_row(scope, statement, "source", read_number, id);
}

static uint64_t number_of(const struct node *object, const char *key)
{
    const struct node *node = node_find(object, key);
    int64_t number = 0;

    return node && node_to_i64(node, &number) && number > 0 ? (uint64_t)number : 0;
}

static str text_of(const struct node *object, const char *key)
{
    const struct node *node = node_find(object, key);

    return node && node->kind == NODE_STRING ? node->text : STR_NONE;
}

static enum terminal_kind terminal_of(const struct node *state)
{
    static const struct {
        const char *word;
        enum terminal_kind kind;
    } words[] = {
        { "plain", TERMINAL_PLAIN },
        { "success", TERMINAL_SUCCESS },
        { "failure", TERMINAL_FAILURE },
        { "cancel", TERMINAL_CANCEL },
    };
    str found = text_of(state, "terminal");

    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (found.data && str_is(found, words[i].word))
            return words[i].kind;
    return TERMINAL_NOT;
}

static pawl_status write_row(struct connection *writer, struct scope *scope,
                             const struct definition_row *row, uint64_t source, uint64_t compiler)
{
    return RUN(writer, scope, put_definition, NUMBER(row->id), TEXT(row->name),
               NUMBER(row->version), SIGNED(row->kind), NUMBER(source), TEXT(row->compiled),
               BYTES(row->compiled_sha, SHA_SIZE), NUMBER(compiler), SIGNED(row->created_at_ms));
}

static pawl_status write_states(struct connection *writer, struct scope *scope, uint32_t definition,
                                const struct node *states)
{
    uint32_t index = 0;

    for (const struct node *state = states ? states->first : NULL; state; state = state->next)
        TRY(RUN(writer, scope, put_state, NUMBER(definition), NUMBER(index++),
                TEXT(text_of(state, "name")), NUMBER(terminal_of(state))));
    return PAWL_OK;
}

static pawl_status write_transition(struct connection *writer, struct scope *scope,
                                    uint32_t definition, uint32_t index,
                                    const struct node *transition)
{
    const struct node *requires_reason = node_find(transition, "requires_reason");

    return RUN(writer, scope, put_transition, NUMBER(definition), NUMBER(index),
               NUMBER(number_of(transition, "from")), TEXT(text_of(transition, "action")),
               NUMBER(number_of(transition, "to")), TEXT(text_of(transition, "guard")),
               NUMBER(requires_reason && requires_reason->truth),
               NUMBER(str_eq(text_of(transition, "by"), STR("engine"))));
}

static pawl_status write_transitions(struct connection *writer, struct scope *scope,
                                     uint32_t definition, const struct node *transitions)
{
    uint32_t index = 0;

    for (const struct node *transition = transitions ? transitions->first : NULL; transition;
         transition = transition->next)
        TRY(write_transition(writer, scope, definition, index++, transition));
    return PAWL_OK;
}

pawl_status write_definition(struct connection *writer, struct scope *scope,
                             const struct definition_row *row)
{
    struct node *compiled;
    uint64_t source;
    pawl_status status = node_read_own(scope, row->compiled, &compiled);

    if (status == PAWL_INVALID_REQUEST)
        return scope_fail(scope, PAWL_STORAGE_FAILURE,
                          "definition %u has no compiled text that can be read", row->id);
    TRY(status);
    TRY(write_source(writer, scope, row, &source));
    TRY(write_row(writer, scope, row, source, number_of(compiled, "compiler")));
    TRY(write_states(writer, scope, row->id, node_find(compiled, "states")));
    return write_transitions(writer, scope, row->id, node_find(compiled, "transitions"));
}
