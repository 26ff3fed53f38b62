/* verify_tables.c - tables that repeat what is said elsewhere, for people and their SQL.
 *
 * The verbs of a store do not show them, so this is the one place above store/ that asks in
 * SQL; a store that speaks none has no such tables. The states and transitions of a
 * definition are compared by a digest over their rows, which is made from the compiled text
 * when it is read: one pass over the tables, however many definitions there are. */
#include "base/assert.h"
#include "evidence/verify_int.h"
#include <stdio.h>

pawl_status verify_sql(struct verify *v, str text, row_fn fn, void *context)
{
    scope_clear(&v->scope);
    return sql_read(&v->sql, &v->scope, text, 0, fn, context);
}

/* ---- the digest ---- */

static void add_text(struct sha *sha, str text)
{
    uint64_t size = text.size;

    sha_add(sha, &size, sizeof size);
    sha_add(sha, text.data, text.size);
}

static void add_number(struct sha *sha, uint64_t n)
{
    char text[24];

    add_text(sha,
             (str){ text, (size_t)snprintf(text, sizeof text, "%llu", (unsigned long long)n) });
}

static void add_state(struct sha *sha, uint32_t index, const struct state *state)
{
    add_number(sha, index);
    add_text(sha, state->name);
    add_number(sha, (uint64_t)state->terminal);
}

static void add_transition(struct sha *sha, uint32_t index, const struct transition *transition)
{
    add_number(sha, index);
    add_number(sha, transition->from);
    add_text(sha, transition->action);
    add_number(sha, transition->to);
    add_text(sha, transition->guard);
    add_number(sha, transition->requires_reason);
    add_number(sha, transition->by_engine);
}

void verify_digest_definition(struct verify *v, const struct definition *definition,
                              uint8_t out[SHA_SIZE])
{
    sha_begin(v->sha);
    for (uint32_t i = 0; i < definition->state_count; i++)
        add_state(v->sha, i, &definition->states[i]);
    for (uint32_t i = 0; i < definition->transition_count; i++)
        add_transition(v->sha, i, &definition->transitions[i]);
    sha_end(v->sha, out);
}

/* ---- states and transitions ---- */

/* Both tables as one list, the rows of a definition in the order of its digest; a guard is the
 * only column where nothing and "" are alike. */
static const char rows_query[] =
    "SELECT definition, 0 AS part, idx, coalesce(name, ''), coalesce(terminal, 0), '', '', '', ''"
    " FROM pawl_state WHERE definition <= %u"
    " UNION ALL "
    "SELECT definition, 1, idx, coalesce(from_state, -1), coalesce(action, ''),"
    " coalesce(to_state, -1), coalesce(guard, ''), coalesce(requires_reason, 0),"
    " coalesce(by_engine, 0) FROM pawl_transition WHERE definition <= %u"
    " ORDER BY 1, 2, 3";

enum { ROW_DEFINITION, ROW_PART, ROW_INDEX, ROW_COLUMNS = 9 };

struct table_scan {
    struct verify *v;
    uint64_t definition; /* whose rows are being added; 0: none yet */
};

static struct rules *find_rules(struct verify *v, uint64_t id)
{
    uint32_t index = id > 0 && id <= UINT32_MAX ? map_get(&v->rules_map, id) : MAP_NONE;

    return index == MAP_NONE ? NULL : &v->rules[index];
}

static pawl_status end_definition(struct table_scan *scan)
{
    struct verify *v = scan->v;
    struct rules *rules = find_rules(v, scan->definition);
    uint8_t sha[SHA_SIZE];

    if (scan->definition == 0)
        return PAWL_OK;
    sha_end(v->sha, sha);
    if (!rules || memcmp(sha, rules->table_sha, SHA_SIZE) != 0)
        return verify_bad(v,
                          "the state and transition rows of definition %llu do not repeat "
                          "its compiled text",
                          (unsigned long long)scan->definition);
    rules->has_table = true;
    return PAWL_OK;
}

static pawl_status add_row(void *context, uint32_t column_count, const str *names,
                           const str *values, const bool *are_numbers)
{
    struct table_scan *scan = context;
    uint64_t definition = 0;
    pawl_status status = PAWL_OK;

    (void)names, (void)are_numbers;
    if (column_count != ROW_COLUMNS || !str_to_u64(values[ROW_DEFINITION], &definition) ||
        definition == 0)
        return verify_bad(scan->v, "a state or transition row has no definition");
    if (definition != scan->definition) {
        status = end_definition(scan);
        scan->definition = definition;
        sha_begin(scan->v->sha);
    }
    for (uint32_t i = ROW_INDEX; i < (str_is(values[ROW_PART], "0") ? 5u : ROW_COLUMNS); i++)
        add_text(scan->v->sha, values[i]);
    return status;
}

static pawl_status check_definition_rows(struct verify *v)
{
    struct table_scan scan = { .v = v };
    char query[sizeof rows_query + 24];
    pawl_status status;

    (void)snprintf(query, sizeof query, rows_query, v->tip.last_definition, v->tip.last_definition);
    status = verify_sql(v, str_of(query), add_row, &scan);
    if (status == PAWL_OK)
        status = end_definition(&scan);
    for (uint32_t i = 0; status == PAWL_OK && i < v->rules_count; i++)
        if (!v->rules[i].has_table && v->rules[i].id <= v->tip.last_definition)
            return verify_bad(v, "definition %u has no state and transition rows", v->rules[i].id);
    return status;
}

/* ---- rows that belong to nothing ---- */

/* A column holds a number or nothing: else it would read as one that it is not, or be cut off
 * on its way into a struct. */
#define IS_NO_NUMBER(column)  "typeof(" column ") NOT IN ('integer', 'null')"
#define IS_NOT_COUNT(column)  IS_NO_NUMBER(column) " OR " column " < 0"
#define IS_NOT_32_BIT(column) IS_NO_NUMBER(column) " OR " column " NOT BETWEEN 0 AND 4294967295"
#define IS_NOT_BETWEEN(column, low, high)                                                          \
    IS_NO_NUMBER(column) " OR " column " NOT BETWEEN " low " AND " high
/* Actors, creators among them, and subjects. */
#define IS_REFERENCE                                                                               \
    "(SELECT actor FROM pawl_log WHERE actor IS NOT NULL"                                          \
    " UNION SELECT subject FROM pawl_instance WHERE subject IS NOT NULL)"
/* All values that records name, by themselves or by the row of an instance. */
#define IS_NAMED                                                                                   \
    "(SELECT actor FROM pawl_log WHERE actor IS NOT NULL"                                          \
    " UNION ALL SELECT payload FROM pawl_log WHERE payload IS NOT NULL"                            \
    " UNION ALL SELECT reason FROM pawl_log WHERE reason IS NOT NULL"                              \
    " UNION ALL SELECT subject FROM pawl_instance WHERE subject IS NOT NULL"                       \
    " UNION ALL SELECT input FROM pawl_instance WHERE input IS NOT NULL"                           \
    " UNION ALL SELECT metadata FROM pawl_instance WHERE metadata IS NOT NULL)"
#define IS_NOBODY(column) column " NOT IN (SELECT number FROM pawl_instance)"

/* Each gives the rows that should not be: a number, by whose name it is known what it counts,
 * and what is wrong there. */
/* clang-format off */
static const char *const stray_queries[] = {
    "SELECT inst, 'a head row belongs to no instance' FROM pawl_head"
    " WHERE inst <> 0 AND " IS_NOBODY("inst") " LIMIT 1",
    "SELECT inst, 'a step row belongs to no instance' FROM pawl_step"
    " WHERE " IS_NOBODY("inst") " LIMIT 1",
    "SELECT inst, 'a wait row belongs to no instance' FROM pawl_wait"
    " WHERE " IS_NOBODY("inst") " LIMIT 1",
    "SELECT inst, 'an interest row belongs to no instance' FROM pawl_interest"
    " WHERE " IS_NOBODY("inst") " LIMIT 1",
    "SELECT inst, 'an interest row does not begin with ~' FROM pawl_interest"
    " WHERE substr(name, 1, 1) IS NOT '~' LIMIT 1",
    "SELECT inst, 'a wait row that should be an interest row' FROM pawl_wait"
    " WHERE ord = 0 AND substr(name, 1, 1) = '~' LIMIT 1",
    "SELECT inst, 'a child row belongs to no instance, or to one of another parent' FROM pawl_child"
    " LEFT JOIN pawl_instance ON number = child WHERE parent IS NOT inst OR " IS_NOT_32_BIT("ord")
    " OR " IS_NOT_BETWEEN("abandon", "0", "1") " OR " IS_NOT_BETWEEN("ended", "0", "1") " LIMIT 1",
    "SELECT inst, 'a pause row belongs to no instance' FROM pawl_pause"
    " WHERE " IS_NOBODY("inst") " OR " IS_NOT_COUNT("pos") " LIMIT 1",
    "SELECT inst, 'a timer row belongs to no instance' FROM pawl_timer"
    " WHERE " IS_NOBODY("inst") " LIMIT 1",
    "SELECT inst, 'a timer row is marked as a test, or not, unlike its instance' FROM pawl_timer"
    " JOIN pawl_instance ON number = inst"
    " WHERE coalesce(pawl_timer.test, 0) <> coalesce(pawl_instance.test, 0) LIMIT 1",
    "SELECT id, 'a source belongs to no definition' FROM pawl_source AS s"
    " WHERE NOT EXISTS (SELECT 1 FROM pawl_definition WHERE source = s.id) LIMIT 1",
    "SELECT definition, 'a state row belongs to no definition' FROM pawl_state"
    " WHERE definition NOT IN (SELECT id FROM pawl_definition) LIMIT 1",
    "SELECT definition, 'a transition row belongs to no definition' FROM pawl_transition"
    " WHERE definition NOT IN (SELECT id FROM pawl_definition) LIMIT 1",
    "SELECT inst, 'a snapshot belongs to no instance' FROM pawl_snapshot"
    " WHERE " IS_NOBODY("inst") " LIMIT 1",
    "SELECT id, 'no record names this value' FROM pawl_value WHERE id NOT IN " IS_NAMED " LIMIT 1",
    "SELECT id, 'half of a value is erased' FROM pawl_value"
    " WHERE (salt IS NULL) <> (bytes IS NULL) OR (bytes IS NULL AND commitment IS NULL) LIMIT 1",
    "SELECT id, 'a value is none' FROM pawl_value WHERE bytes IS NOT NULL"
    " AND (typeof(bytes) NOT IN ('blob', 'text') OR typeof(salt) NOT IN ('blob', 'text')"
    " OR length(CAST(salt AS BLOB)) <> 16) LIMIT 1",
    "SELECT id, 'a value is found by its bytes (interned) that is no actor and no subject'"
    " FROM pawl_value WHERE " IS_NOT_BETWEEN("interned", "0", "1") " OR (interned = 1 AND"
    " (bytes IS NULL OR id NOT IN " IS_REFERENCE ")) LIMIT 1",
    "SELECT id, 'an actor or subject is not found by its bytes (interned)' FROM pawl_value AS v"
    " WHERE coalesce(interned, 0) = 0 AND bytes IS NOT NULL AND id IN " IS_REFERENCE
    " AND NOT EXISTS (SELECT 1 FROM pawl_value AS w"
    " WHERE w.interned = 1 AND w.bytes = v.bytes AND w.id < v.id) LIMIT 1",
    "SELECT key, 'pawl_meta has an unknown row' FROM pawl_meta"
    " WHERE key NOT IN ('format', 'store_id', 'flushed', 'test_now', 'schema')"
    " OR typeof(key) <> 'text' LIMIT 1",
    "SELECT value, 'pawl_meta has a test clock, and a clock record must hold it' FROM pawl_meta"
    " WHERE key = 'test_now' AND (value = 0"
    " OR EXISTS (SELECT 1 FROM pawl_kept WHERE what = -11 AND id = '" CLOCK_TEST "')"
    " OR EXISTS (SELECT 1 FROM pawl_definition WHERE compiler > 1))",
    "SELECT 'flushed', 'pawl_meta has no such row, or no number there' WHERE NOT EXISTS"
    " (SELECT 1 FROM pawl_meta WHERE key = 'flushed' AND value IS NOT NULL)",
    "SELECT value, 'head rows are said to be right up to a position that is not there'"
    " FROM pawl_meta WHERE key = 'flushed'"
    " AND value NOT BETWEEN 0 AND (SELECT coalesce(max(pos), 0) FROM pawl_log)",
    "SELECT 1, 'the format is not'"
    " WHERE (SELECT value FROM pawl_meta WHERE key = 'format') IS NOT 1",
    "SELECT pos, 'a number of this record is out of range' FROM pawl_log WHERE pos < 1"
    " OR " IS_NOT_COUNT("inst") " OR " IS_NOT_COUNT("seq") " OR " IS_NOT_COUNT("prev")
    " OR " IS_NOT_COUNT("skip") " OR " IS_NOT_BETWEEN("what", "-12", "2147483647")
    " OR " IS_NOT_32_BIT("flags") " OR " IS_NO_NUMBER("at") " OR " IS_NO_NUMBER("fired")
    " OR " IS_NOT_32_BIT("step") " OR " IS_NOT_32_BIT("ord") " OR " IS_NOT_32_BIT("attempt")
    " OR " IS_NOT_COUNT("actor") " OR " IS_NOT_COUNT("payload") " OR " IS_NOT_COUNT("reason")
    " LIMIT 1",
    "SELECT id, 'there can be no such value' FROM pawl_value WHERE id < 1 LIMIT 1",
    "SELECT id, 'a number of this definition is out of range' FROM pawl_definition WHERE id < 1"
    " OR " IS_NOT_32_BIT("version") " OR " IS_NOT_BETWEEN("kind", "1", "3") " LIMIT 1",
    "SELECT number, 'a number in the row of this instance is out of range' FROM pawl_instance"
    " WHERE number < 1 OR " IS_NOT_32_BIT("definition") " OR " IS_NO_NUMBER("instantiated_at")
    " OR " IS_NOT_COUNT("created_pos") " OR " IS_NOT_COUNT("creator")
    " OR " IS_NOT_COUNT("subject") " OR " IS_NOT_COUNT("input") " OR " IS_NOT_COUNT("metadata")
    " OR " IS_NOT_COUNT("parent") " OR " IS_NOT_BETWEEN("test", "0", "1") " LIMIT 1",
    "SELECT inst, 'a number in the head row of this instance is out of range' FROM pawl_head"
    " WHERE " IS_NOT_COUNT("seq") " OR " IS_NOT_32_BIT("state") " OR " IS_NOT_COUNT("pos")
    " LIMIT 1",
    "SELECT inst, 'a number in a step row of this instance is out of range' FROM pawl_step"
    " WHERE " IS_NOT_32_BIT("ord") " OR " IS_NOT_32_BIT("plan") " OR " IS_NOT_32_BIT("attempt")
    " OR " IS_NOT_BETWEEN("status", "0", "2") " LIMIT 1",
    "SELECT inst, 'a number in a timer row of this instance is out of range' FROM pawl_timer"
    " WHERE " IS_NOT_32_BIT("ord") " OR " IS_NO_NUMBER("due") " OR coalesce(wall, 1) <> 1"
    " OR typeof(coalesce(shift, 1)) <> 'integer' OR shift = 0 LIMIT 1",
    "SELECT inst, 'a number in a wait row of this instance is out of range' FROM pawl_wait"
    " WHERE " IS_NOT_32_BIT("ord") " LIMIT 1",
    "SELECT id, 'the row of a token, alarm, amend, redrive, definition or clock is out of range'"
    " FROM pawl_kept WHERE what NOT IN (-2, -5, -7, -11, 0, 11) OR " IS_NO_NUMBER("due") " OR " IS_NOT_COUNT("pos")
    " OR " IS_NO_NUMBER("firing") " OR firing = 0 OR coalesce(wall, 1) <> 1 LIMIT 1",
    "SELECT k.pos AS pos, 'a key row names a record that has no such key, or another time'"
    " FROM pawl_key k LEFT JOIN pawl_log l ON l.pos = k.pos"
    " WHERE l.pos IS NULL OR substr(l.key, 1, 16) IS NOT k.id OR l.at IS NOT k.at LIMIT 1",
};
/* clang-format on */

static pawl_status name_stray(void *context, uint32_t column_count, const str *names,
                              const str *values, const bool *are_numbers)
{
    struct verify *v = context;
    uint64_t number = 0;

    (void)are_numbers;
    if (column_count != 2)
        return PAWL_OK;
    if (str_to_u64(values[0], &number) && str_is(names[0], "pos"))
        verify_at(v, number, 0, 0);
    else if (number > 0 && (str_is(names[0], "inst") || str_is(names[0], "number")))
        verify_at(v, 0, number, 0);
    return verify_bad(v, "%.*s: %.*s", STR_ARG(values[1]), STR_ARG(values[0]));
}

/* Indexes repeat columns: what is found by one must be what is there. */
static pawl_status check_damage(void *context, uint32_t column_count, const str *names,
                                const str *values, const bool *are_numbers)
{
    (void)names, (void)are_numbers;
    if (column_count != 1 || str_is(values[0], "ok"))
        return PAWL_OK;
    return verify_bad(context, "SQLite finds damage: %.*s", STR_ARG(values[0]));
}

static pawl_status check_compiler(void *context, uint32_t column_count, const str *names,
                                  const str *values, const bool *are_numbers)
{
    struct verify *v = context;
    const struct rules *rules;
    uint64_t id = 0, compiler = 0;

    (void)names, (void)are_numbers;
    if (column_count != 2 || !str_to_u64(values[0], &id))
        return PAWL_OK;
    rules = find_rules(v, id);
    if (rules && (!str_to_u64(values[1], &compiler) || compiler != rules->compiler))
        return verify_bad(v, "definition %u: its compiler is not the compiled one", rules->id);
    return PAWL_OK;
}

static pawl_status check_tables(struct verify *v)
{
    pawl_status status = verify_sql(v, STR("PRAGMA integrity_check"), check_damage, v);

    if (status == PAWL_OK)
        status = check_definition_rows(v);
    for (size_t i = 0; status == PAWL_OK && i < sizeof stray_queries / sizeof *stray_queries; i++)
        status = verify_sql(v, str_of(stray_queries[i]), name_stray, v);
    if (status == PAWL_OK)
        status = verify_types(v);
    if (status == PAWL_OK)
        status = verify_labels(v);
    if (status == PAWL_OK)
        status = verify_sql(v, STR("SELECT id, compiler FROM pawl_definition"), check_compiler, v);
    return status;
}

pawl_status verify_tables(struct verify *v)
{
    pawl_status status;

    if (!v->store->ops->sql)
        return PAWL_OK;
    verify_at(v, 0, 0, 0);
    v->sql = (struct sql_reader){ .store = v->store };
    status = check_tables(v);
    sql_end(&v->sql);
    if (status == PAWL_INVALID_REQUEST) /* our own SQL is right: a table is not there */
        return verify_bad(v, "its tables can't be read: %.200s", v->scope.error.message);
    return status;
}
