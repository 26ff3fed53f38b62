/* examine_copies.c - rows that repeat a text: states and transitions of definitions, and labels. */
#include "base/limits.h"
#include "base/node.h"
#include "examine_int.h"
#include "read_int.h"
#include <stdlib.h>

/* ---- States and transitions ---- */

static const char select_definitions[] = "SELECT id, compiler, compiled FROM pawl_definition";
static const char select_states[] =
    "SELECT idx, name, terminal FROM pawl_state WHERE definition = ?1 ORDER BY idx";
static const char select_transitions[] =
    "SELECT idx, coalesce(from_state, -1), action, coalesce(to_state, -1), guard, requires_reason,"
    " by_engine"
    " FROM pawl_transition WHERE definition = ?1 ORDER BY idx";

struct definition_check {
    struct examining *examining;
    sqlite3_stmt *states, *transitions;
};

static bool state_is(sqlite3_stmt *row, const struct definition *definition, uint32_t i)
{
    return i < definition->state_count && column_u64(row, 0) == i &&
           str_eq(examine_text(row, 1), definition->states[i].name) &&
           column_u64(row, 2) == (uint64_t)definition->states[i].terminal;
}

/* No guard and an empty one are alike. */
static bool transition_is(sqlite3_stmt *row, const struct definition *definition, uint32_t i)
{
    const struct transition *transition = &definition->transitions[i];

    return i < definition->transition_count && column_u64(row, 0) == i &&
           column_u64(row, 1) == transition->from &&
           str_eq(examine_text(row, 2), transition->action) &&
           column_u64(row, 3) == transition->to &&
           str_eq(examine_text(row, 4), transition->guard) &&
           column_u64(row, 5) == transition->requires_reason &&
           column_u64(row, 6) == transition->by_engine;
}

/* *count: how many rows are as they should be, in order; *is_same: there are no others. */
static pawl_status compare_rows(const struct definition_check *check, sqlite3_stmt *statement,
                                uint32_t id, const struct definition *definition, bool *is_same,
                                uint32_t *count)
{
    bool row = true;
    pawl_status status = PAWL_OK;

    *count = 0;
    *is_same = true;
    bind_u64(statement, 1, id);
    while (status == PAWL_OK && row && *is_same) {
        status = statement_step(statement, check->examining->scope, &row);
        if (status != PAWL_OK || !row)
            break;
        *is_same = statement == check->states ? state_is(statement, definition, *count)
                                              : transition_is(statement, definition, *count);
        *count += *is_same;
    }
    sqlite3_reset(statement);
    return status;
}

static pawl_status compare_definition(const struct definition_check *check, uint32_t id,
                                      uint64_t compiler, const struct definition *definition)
{
    bool states_same, transitions_same;
    uint32_t states, transitions;

    TRY(compare_rows(check, check->states, id, definition, &states_same, &states));
    TRY(compare_rows(check, check->transitions, id, definition, &transitions_same, &transitions));
    if (states + transitions == 0 && states_same && transitions_same)
        return examine_bad(check->examining, 0, 0, "definition %u has no state and transition rows",
                           id);
    if (!states_same || !transitions_same || states != definition->state_count ||
        transitions != definition->transition_count)
        return examine_bad(check->examining, 0, 0,
                           "the state and transition rows of definition %u do not repeat its "
                           "compiled text",
                           id);
    return compiler == definition->compiler
               ? PAWL_OK
               : examine_bad(check->examining, 0, 0,
                             "definition %u: its compiler is not the compiled one", id);
}

/* What cannot be loaded is found where definitions are verified. */
static pawl_status check_definition(void *context, sqlite3_stmt *statement)
{
    const struct definition_check *check = context;
    struct definition *definition;
    uint32_t id = column_u32(statement, 0);
    struct scope scope;
    pawl_status status;

    scope_init(&scope, check->examining->store->heap, LIMIT_SCOPE);
    status = definition_load(&scope, examine_text(statement, 2), &definition);
    if (status == PAWL_OK)
        status = compare_definition(check, id, column_u64(statement, 1), definition);
    else
        status = status == PAWL_NO_MEMORY ? scope_no_memory(check->examining->scope) : PAWL_OK;
    scope_fini(&scope);
    return status;
}

/* In one snapshot: a definition that is added meanwhile has all of its rows, or none. */
pawl_status examine_definitions(struct examining *examining)
{
    struct definition_check check = { .examining = examining };
    sqlite3 *db = examining->db;
    pawl_status status = PAWL_OK;

    if (sqlite3_exec(db, "BEGIN", NULL, NULL, NULL) != SQLITE_OK ||
        sqlite3_prepare_v2(db, select_states, -1, &check.states, NULL) != SQLITE_OK ||
        sqlite3_prepare_v2(db, select_transitions, -1, &check.transitions, NULL) != SQLITE_OK)
        status = sql_fail(examining->scope, db);
    if (status == PAWL_OK)
        status = examine_run(examining, select_definitions, check_definition, &check);
    sqlite3_finalize(check.states);
    sqlite3_finalize(check.transitions);
    (void)sqlite3_exec(db, "COMMIT", NULL, NULL, NULL);
    return status;
}

/* ---- Labels ----
 *
 * One list: for each instance first its labels as they were supplied, then its rows in order. */

static const char select_labels[] =
    "SELECT number AS inst, 0 AS part, labels AS key, '' AS value FROM pawl_instance"
    " WHERE labels IS NOT NULL UNION ALL SELECT inst, 1, key, value FROM pawl_label"
    " ORDER BY 1, 2, 3, 4";

struct label {
    str key, value;
};

struct label_scan {
    struct examining *examining;
    struct scope scope; /* of the instance being looked at */
    uint64_t number;
    struct label *labels; /* in order; those before `next` had their row */
    uint32_t count, next;
};

static int compare_labels(const void *a, const void *b)
{
    const struct label *left = a, *right = b;
    int order = str_compare(left->key, right->key);

    return order != 0 ? order : str_compare(left->value, right->value);
}

static pawl_status end_instance(struct label_scan *scan, bool is_right)
{
    return is_right ? PAWL_OK
                    : examine_bad(scan->examining, 0, scan->number,
                                  "its label rows are not what its labels say");
}

/* What is no JSON object has no labels, and needs no rows. */
static pawl_status read_labels(struct label_scan *scan, str text)
{
    struct node *object;
    pawl_status status = node_read_json(&scan->scope, text, &object);

    if (status != PAWL_OK || object->kind != NODE_OBJECT)
        return status == PAWL_NO_MEMORY ? scope_no_memory(scan->examining->scope) : PAWL_OK;
    scan->labels = ARENA_ARRAY(&scan->scope.arena, struct label, (size_t)object->count + 1);
    TRY_MEMORY(scan->examining->scope, scan->labels);
    for (const struct node *node = object->first; node; node = node->next)
        if (node->kind == NODE_STRING)
            scan->labels[scan->count++] = (struct label){ node->key, node->text };
    qsort(scan->labels, scan->count, sizeof *scan->labels, compare_labels);
    return PAWL_OK;
}

static pawl_status take_row(void *context, sqlite3_stmt *statement)
{
    struct label_scan *scan = context;
    struct label found = { examine_text(statement, 2), examine_text(statement, 3) };
    pawl_status status = PAWL_OK;

    if (column_u64(statement, 0) != scan->number) {
        status = end_instance(scan, scan->next == scan->count);
        scope_clear(&scan->scope);
        scan->number = column_u64(statement, 0);
        scan->count = scan->next = 0;
    }
    if (status != PAWL_OK || column_u64(statement, 1) == 0)
        return status != PAWL_OK ? status : read_labels(scan, found.key);
    return end_instance(scan, scan->next < scan->count &&
                                  compare_labels(&scan->labels[scan->next++], &found) == 0);
}

pawl_status examine_labels(struct examining *examining)
{
    struct label_scan scan = { .examining = examining };
    pawl_status status;

    scope_init(&scan.scope, examining->store->heap, LIMIT_SCOPE);
    status = examine_run(examining, select_labels, take_row, &scan);
    if (status == PAWL_OK)
        status = end_instance(&scan, scan.next == scan.count);
    scope_fini(&scan.scope);
    return status;
}
