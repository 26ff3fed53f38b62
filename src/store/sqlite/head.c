/* head.c - where an instance stands.
 *
 * The head row is right up to the flushed position. Records behind that one, the tail, are the
 * newer truth: the last of them gives seq and position, the last entry among them the state. */
#include "base/assert.h"
#include "read_int.h"

static const char select_head[] = "SELECT inst, seq, pos, state,"
                                  " EXISTS (SELECT 1 FROM pawl_pause WHERE inst = ?1)"
                                  " FROM pawl_head WHERE inst = ?1";
static const char select_tail[] =
    "SELECT seq, pos, what FROM pawl_log"
    " WHERE pos > (SELECT value FROM pawl_meta WHERE key = 'flushed') AND inst = ?1"
    " ORDER BY pos DESC";
static const char select_state[] =
    "SELECT t.to_state FROM pawl_instance i"
    " JOIN pawl_transition t ON t.definition = i.definition AND t.idx = ?2 WHERE i.number = ?1";
static const char select_initial[] =
    "SELECT json_extract(d.compiled, '$.initial') FROM pawl_instance i"
    " JOIN pawl_definition d ON d.id = i.definition WHERE i.number = ?1";

struct head_tail {
    bool found;
    uint64_t seq, pos;  /* of the last record */
    int64_t transition; /* of the last entry; -1: no entry */
};

static void read_head(sqlite3_stmt *statement, struct arena *arena, void *out)
{
    (void)arena;
    *(struct head_row *)out = (struct head_row){
        .instance = column_u64(statement, 0),
        .seq = column_u64(statement, 1),
        .pos = column_u64(statement, 2),
        .state = column_u32(statement, 3),
        .paused = column_u32(statement, 4) != 0,
    };
}

static pawl_status read_head_row(struct connection *reader, struct scope *scope, uint64_t instance,
                                 struct head_row *out)
{
    sqlite3_stmt *statement;

    TRY(statement_get(reader, scope, select_head, &statement));
    bind_u64(statement, 1, instance);
    return read_row(scope, statement, "instance", read_head, out);
}

static pawl_status read_tail(struct connection *reader, struct scope *scope, uint64_t instance,
                             struct head_tail *out)
{
    bool row = true;
    sqlite3_stmt *statement;

    *out = (struct head_tail){ .transition = -1 };
    TRY(statement_get(reader, scope, select_tail, &statement));
    bind_u64(statement, 1, instance);
    while (out->transition < 0) {
        TRY(statement_step(statement, scope, &row));
        if (!row)
            return PAWL_OK;
        if (!out->found) {
            out->seq = column_u64(statement, 0);
            out->pos = column_u64(statement, 1);
        }
        out->found = true;
        out->transition = column_i64(statement, 2);
    }
    sqlite3_reset(statement);
    return PAWL_OK;
}

/* The state that a transition of the instance leads to; -1: its initial one. */
static pawl_status read_state(struct connection *reader, struct scope *scope, uint64_t instance,
                              int64_t transition, uint64_t *out)
{
    bool initial = transition < 0;
    sqlite3_stmt *statement;

    TRY(statement_get(reader, scope, initial ? select_initial : select_state, &statement));
    bind_u64(statement, 1, instance);
    if (!initial)
        bind_i64(statement, 2, transition);
    return read_row(scope, statement, "transition of the instance", read_number, out);
}

/* The row, if there is one, with the tail laid over it. */
static pawl_status read_with_tail(struct connection *reader, struct scope *scope, uint64_t instance,
                                  struct head_row *out)
{
    struct head_row head = { .instance = instance };
    uint64_t state = 0;
    struct head_tail tail;
    pawl_status status = read_head_row(reader, scope, instance, &head);
    bool has_row = status == PAWL_OK;

    if (!has_row && status != PAWL_NOT_KNOWN)
        return status;
    TRY(read_tail(reader, scope, instance, &tail));
    if (!has_row && !tail.found)
        return status;
    if (tail.found && instance != 0 && (tail.transition >= 0 || !has_row)) {
        TRY(read_state(reader, scope, instance, tail.transition, &state));
        head.state = (uint32_t)state;
    }
    if (tail.found) {
        head.seq = tail.seq;
        head.pos = tail.pos;
    }
    *out = head;
    return PAWL_OK;
}

pawl_status head_find(struct connection *reader, struct scope *scope, uint64_t instance,
                      bool trust_rows, struct head_row *out)
{
    if (instance > INT64_MAX)
        return scope_fail(scope, PAWL_NOT_KNOWN, "there is no such instance");
    return trust_rows ? read_head_row(reader, scope, instance, out)
                      : read_with_tail(reader, scope, instance, out);
}
