/* pg_write_live.c - live rows: steps, timers, waits, children and pauses.
 *
 * A commit says its changes in order; here they are folded: of each row only the last one counts,
 * and what clears rows goes first, because a statement must not touch a row twice. A row that was
 * put before its instance or its step was cleared is not put at all. */
#include "base/assert.h"
#include "base/grow.h"
#include "model/interest.h"
#include "postgres_int.h"
#include <stdlib.h>

enum live_table { STEPS, TIMERS, WAITS, INTERESTS, CHILDREN, PAUSES, TABLES };
enum act { CLEAR_INSTANCE, CLEAR_STEP, DELETE_ROW, PUT_ROW }; /* the first two go first */

struct touch {
    enum live_table table;
    enum act act;
    uint64_t instance;
    uint32_t ordinal;
    str name; /* of a child: the bytes of its number */
    uint32_t index;
    const struct live_change *change;
};

struct live_folding {
    struct scope *scope;
    struct touch *touches;
    uint32_t count, capacity;
    uint64_t *ended; /* children */
    uint32_t ended_count, ended_capacity;
};

/* ---- What a change touches ---- */

static pawl_status touch(struct live_folding *folding, enum live_table table, enum act act,
                         const struct live_change *change, uint32_t index)
{
    struct touch *next;

    TRY_MEMORY(folding->scope,
               GROW(&folding->scope->arena, folding->touches, folding->count, folding->capacity));
    next = &folding->touches[folding->count++];
    *next = (struct touch){ table, act,   change->instance, change->ordinal, change->name,
                            index, change };
    if (table == CHILDREN && act == PUT_ROW)
        next->name = (str){ (const char *)&change->child.number, sizeof change->child.number };
    if (act < DELETE_ROW || table == STEPS || table == PAUSES)
        next->name = STR_NONE;
    if (act == CLEAR_INSTANCE || table == PAUSES || table == INTERESTS)
        next->ordinal = 0;
    return PAWL_OK;
}

static pawl_status touch_clear(struct live_folding *folding, const struct live_change *change,
                               uint32_t index)
{
    static const unsigned rows_of[TABLES] = { ROWS_STEPS, ROWS_TIMERS,   ROWS_WAITS,
                                              ROWS_WAITS, ROWS_CHILDREN, ROWS_PAUSE };
    unsigned rows = change->rows ? change->rows : ROWS_ALL;

    for (enum live_table table = STEPS; table < TABLES; table++)
        if (rows & rows_of[table])
            TRY(touch(folding, table, CLEAR_INSTANCE, change, index));
    return PAWL_OK;
}

static pawl_status touch_step_delete(struct live_folding *folding, const struct live_change *change,
                                     uint32_t index)
{
    TRY(touch(folding, STEPS, DELETE_ROW, change, index));
    if (change->step.is_bare)
        return PAWL_OK;
    TRY(touch(folding, TIMERS, CLEAR_STEP, change, index));
    TRY(touch(folding, WAITS, CLEAR_STEP, change, index));
    return touch(folding, CHILDREN, CLEAR_STEP, change, index);
}

static pawl_status touch_all(struct live_folding *folding, const struct live_change *change,
                             uint32_t index)
{
    bool is_interest = change->ordinal == 0 && interest_is(change->name);

    switch (change->kind) {
    case LIVE_STEP_PUT:
        ASSERT(change->step.status <= STEP_RUNNING); /* what is over is no longer live */
        return touch(folding, STEPS, PUT_ROW, change, index);
    case LIVE_STEP_DELETE:
        return touch_step_delete(folding, change, index);
    case LIVE_TIMER_PUT:
        return touch(folding, TIMERS, PUT_ROW, change, index);
    case LIVE_TIMER_DELETE:
        return touch(folding, TIMERS, DELETE_ROW, change, index);
    case LIVE_WAIT_PUT:
        return touch(folding, is_interest ? INTERESTS : WAITS, PUT_ROW, change, index);
    case LIVE_WAIT_DELETE:
        return touch(folding, is_interest ? INTERESTS : WAITS, DELETE_ROW, change, index);
    case LIVE_PAUSE_PUT:
        return touch(folding, PAUSES, PUT_ROW, change, index);
    case LIVE_PAUSE_DELETE:
        return touch(folding, PAUSES, DELETE_ROW, change, index);
    case LIVE_CHILD_PUT:
        return touch(folding, CHILDREN, PUT_ROW, change, index);
    case LIVE_CHILD_ENDED:
        TRY_MEMORY(folding->scope, GROW(&folding->scope->arena, folding->ended,
                                        folding->ended_count, folding->ended_capacity));
        folding->ended[folding->ended_count++] = change->instance;
        return PAWL_OK;
    case LIVE_CLEAR:
        return touch_clear(folding, change, index);
    }
    panic_at(__FILE__, __LINE__, "a live change of no kind");
}

/* ---- Folding ---- */

/* By table and instance, then what clears the instance; by step, then what clears the step; by name
 * and, of one row, in the order of the commit. */
static int compare(const void *a, const void *b)
{
    const struct touch *x = a, *y = b;
    bool x_all = x->act == CLEAR_INSTANCE, y_all = y->act == CLEAR_INSTANCE;
    bool x_step = x->act == CLEAR_STEP, y_step = y->act == CLEAR_STEP;
    int names;

    if (x->table != y->table)
        return x->table < y->table ? -1 : 1;
    if (x->instance != y->instance)
        return x->instance < y->instance ? -1 : 1;
    if (x_all != y_all)
        return x_all ? -1 : 1;
    if (x->ordinal != y->ordinal)
        return x->ordinal < y->ordinal ? -1 : 1;
    if (x_step != y_step)
        return x_step ? -1 : 1;
    names = str_compare(x->name, y->name);
    return names ? names : x->index < y->index ? -1 : x->index > y->index;
}

static bool is_same_row(const struct touch *a, const struct touch *b)
{
    return a->table == b->table && a->act >= DELETE_ROW && b->act >= DELETE_ROW &&
           a->instance == b->instance && a->ordinal == b->ordinal && str_eq(a->name, b->name);
}

/* Those that are left, in order: each row once. */
static void fold(struct live_folding *folding)
{
    const struct touch *all = NULL, *step = NULL; /* the last that cleared */
    uint32_t kept = 0;

    if (folding->count > 0)
        qsort(folding->touches, folding->count, sizeof *folding->touches, compare);
    for (uint32_t i = 0; i < folding->count; i++) {
        const struct touch next = folding->touches[i];
        bool is_last = i + 1 == folding->count || !is_same_row(&next, &folding->touches[i + 1]);
        bool is_all, is_step;

        if (next.act == CLEAR_INSTANCE || next.act == CLEAR_STEP) {
            const struct touch *before = next.act == CLEAR_INSTANCE ? all : step;
            bool is_again = before && before->table == next.table &&
                            before->instance == next.instance && before->ordinal == next.ordinal;

            kept -= is_again; /* the later one counts */
            folding->touches[kept] = next;
            *(next.act == CLEAR_INSTANCE ? &all : &step) = &folding->touches[kept++];
            continue;
        }
        is_all = all && all->table == next.table && all->instance == next.instance;
        is_step = step && step->table == next.table && step->instance == next.instance &&
                  step->ordinal == next.ordinal;
        if (is_last && !(is_all && all->index >= next.index) &&
            !(is_step && step->index >= next.index))
            folding->touches[kept++] = next;
    }
    folding->count = kept;
}

/* ---- The statements ---- */

#define CLEAR_ALL(table) "DELETE FROM " table " WHERE shard = $1 AND inst = ANY ($2)"
#define CLEAR_ONE(table)                                                                           \
    "DELETE FROM " table " t USING unnest($2, $3) u(inst, ord) WHERE t.shard = $1"                 \
    " AND t.inst = u.inst AND t.ord = u.ord"
#define DELETE_NAMED(table)                                                                        \
    "DELETE FROM " table " t USING unnest($2, $3, $4) u(inst, ord, name) WHERE t.shard = $1"       \
    " AND t.inst = u.inst AND t.ord = u.ord AND t.name = u.name"

static const char *const texts[TABLES][4] = {
    [STEPS] = { CLEAR_ALL("pawl_step"), NULL, CLEAR_ONE("pawl_step"),
                "INSERT INTO pawl_step (shard, inst, ord, plan, attempt, status, lease_ms,"
                " ready_at,"
                " lease) SELECT $1, * FROM unnest($2, $3, $4, $5, $6, $7, $8, $9)"
                " ON CONFLICT (shard, inst, ord) DO UPDATE SET plan = excluded.plan,"
                " attempt = excluded.attempt, status = excluded.status, lease = excluded.lease,"
                " lease_ms = excluded.lease_ms, ready_at = excluded.ready_at" },
    [TIMERS] = { CLEAR_ALL("pawl_timer"), CLEAR_ONE("pawl_timer"), DELETE_NAMED("pawl_timer"),
                 "INSERT INTO pawl_timer (shard, inst, ord, name, due, test, wall, shift)"
                 " SELECT $1, * FROM unnest($2, $3, $4, $5, $6, $7, $8)"
                 " ON CONFLICT (shard, inst, ord, name) DO UPDATE SET due = excluded.due,"
                 " test = excluded.test, wall = excluded.wall, shift = excluded.shift" },
    [WAITS] = { CLEAR_ALL("pawl_wait"), CLEAR_ONE("pawl_wait"), DELETE_NAMED("pawl_wait"),
                "INSERT INTO pawl_wait AS w (shard, inst, ord, name, value)"
                " SELECT $1, * FROM unnest($2, $3, $4, $5)"
                " ON CONFLICT (shard, inst, ord, name) DO UPDATE SET value = excluded.value"
                " WHERE w.value IS DISTINCT FROM excluded.value" },
    [INTERESTS] = { CLEAR_ALL("pawl_interest"), NULL,
                    "DELETE FROM pawl_interest t USING unnest($2, $3, $4) u(inst, ord, name)"
                    " WHERE t.shard = $1 AND t.inst = u.inst AND t.name = u.name",
                    "INSERT INTO pawl_interest (shard, inst, name) SELECT $1, u.inst, u.name"
                    " FROM unnest($2, $3, $4) u(inst, ord, name) ON CONFLICT DO NOTHING" },
    [CHILDREN] = { CLEAR_ALL("pawl_child"), CLEAR_ONE("pawl_child"), NULL,
                   "INSERT INTO pawl_child (shard, inst, ord, child, abandon, ended)"
                   " SELECT $1, *, 0 FROM unnest($2, $3, $4, $5) ON CONFLICT (shard, child)"
                   " DO UPDATE SET inst = excluded.inst, ord = excluded.ord,"
                   " abandon = excluded.abandon, ended = 0" },
    [PAUSES] = { CLEAR_ALL("pawl_pause"), NULL, CLEAR_ALL("pawl_pause"),
                 "INSERT INTO pawl_pause (shard, inst, pos) SELECT $1, u.inst, u.pos"
                 " FROM unnest($2, $3, $4) u(inst, ord, pos) ON CONFLICT (shard, inst)"
                 " DO UPDATE SET pos = excluded.pos" },
};
static const char end_children[] =
    "UPDATE pawl_child SET ended = 1 WHERE shard = $1 AND child = ANY ($2)";

/* Each row that goes is named by its key in a statement of its own, unless they are very many. Then
 * the server uses the key, whatever it believes of the table. Where rows come and go it may believe
 * that a shard has few, and would read all of them, dead ones too. */
#define SINGLES_MOST     (LINK_EXCHANGE_MAX / 2)
#define ONE_ALL(table)   "DELETE FROM " table " WHERE shard = $1 AND inst = $2"
#define ONE_OF(table)    ONE_ALL(table) " AND ord = $3"
#define ONE_NAMED(table) ONE_OF(table) " AND name = $4"

static const char *const single_texts[TABLES][PUT_ROW] = {
    [STEPS] = { ONE_ALL("pawl_step"), NULL, ONE_OF("pawl_step") },
    [TIMERS] = { ONE_ALL("pawl_timer"), ONE_OF("pawl_timer"), ONE_NAMED("pawl_timer") },
    [WAITS] = { ONE_ALL("pawl_wait"), ONE_OF("pawl_wait"), ONE_NAMED("pawl_wait") },
    [INTERESTS] = { ONE_ALL("pawl_interest"), NULL, NULL },
    [CHILDREN] = { ONE_ALL("pawl_child"), ONE_OF("pawl_child"), NULL },
    [PAUSES] = { ONE_ALL("pawl_pause"), NULL, ONE_ALL("pawl_pause") },
};

/* A row as its put statement wants it: what of these it has depends on its table. */
struct live_put {
    uint64_t instance;
    uint32_t ordinal;
    str name;
    struct live_change change;
};

#define FIELD(field, from, to)         COLUMN(struct live_put, field, from, to)
#define FIELD_OR_NULL(field, from, to) OPTIONAL_OF(struct live_put, field, from, to)

static const struct column naming[] = { FIELD(instance, FROM_U64, PG_INT8),
                                        FIELD(ordinal, FROM_U32, PG_INT4),
                                        FIELD(name, FROM_STR, PG_BYTEA) };
static const struct column of_steps[] = {
    FIELD(change.step.plan, FROM_U32, PG_INT4),
    FIELD(change.step.attempt, FROM_U32, PG_INT4),
    FIELD(change.step.status, FROM_U32, PG_INT4),
    FIELD_OR_NULL(change.step.lease_ms, FROM_I64, PG_INT8),
    FIELD_OR_NULL(change.step.ready_at_ms, FROM_I64, PG_INT8),
    FIELD(change.step.lease, FROM_STR, PG_BYTEA),
};
static const struct column of_timers[] = {
    FIELD(change.timer.due_at_ms, FROM_I64, PG_INT8),
    FIELD(change.timer.test, FROM_BOOL, PG_INT4),
    FIELD_OR_NULL(change.timer.wall, FROM_BOOL, PG_INT4),
    FIELD_OR_NULL(change.timer.shift_ms, FROM_I64, PG_INT8),
};
static const struct column of_waits[] = { FIELD(change.wait.value, FROM_STR, PG_BYTEA) };
static const struct column of_children[] = {
    FIELD(change.child.number, FROM_U64, PG_INT8),
    FIELD(change.child.is_abandoned, FROM_BOOL, PG_INT4),
};
static const struct column of_pauses[] = { FIELD(change.pause.pos, FROM_U64, PG_INT8) };

static const struct {
    uint32_t named; /* of the naming columns */
    const struct column *columns;
    uint32_t count;
} row_of[TABLES] = {
    [STEPS] = { 2, of_steps, 6 },       [TIMERS] = { 3, of_timers, 4 },
    [WAITS] = { 3, of_waits, 1 },       [INTERESTS] = { 3, NULL, 0 },
    [CHILDREN] = { 2, of_children, 2 }, [PAUSES] = { 2, of_pauses, 1 },
};

/* How many columns name what goes: the instance; with its step; with a name, too. */
static uint32_t naming_count(enum live_table table, enum act act)
{
    if (act == CLEAR_INSTANCE || table == PAUSES)
        return 1;
    return act == CLEAR_STEP || table == STEPS ? 2 : 3;
}

static pawl_status send_singly(struct sending *sending, enum live_table table, enum act act,
                               const struct live_put *rows, size_t count)
{
    uint32_t names = naming_count(table, act);

    for (size_t i = 0; i < count; i++) {
        struct params *params = sending_add(sending, single_texts[table][act]);

        TRY_MEMORY(sending->scope, params);
        params_int(params, (int64_t)rows[i].instance);
        if (names > 1)
            params_int4(params, rows[i].ordinal);
        if (names > 2)
            params_bytes(params, rows[i].name);
    }
    return PAWL_OK;
}

/* All touches of one table and one act. */
static pawl_status send_touches(struct sending *sending, const struct live_folding *folding,
                                enum live_table table, enum act act)
{
    struct live_put *rows = ARENA_ARRAY(&sending->scope->arena, struct live_put, folding->count);
    struct params *params;
    size_t count = 0;

    TRY_MEMORY(sending->scope, rows);
    for (uint32_t i = 0; i < folding->count; i++) {
        const struct touch *touch = &folding->touches[i];

        if (touch->table == table && touch->act == act)
            rows[count++] =
                (struct live_put){ touch->instance, touch->ordinal, touch->name, *touch->change };
    }
    if (count == 0)
        return PAWL_OK;
    if (act != PUT_ROW && sending->count + count <= SINGLES_MOST && single_texts[table][act])
        return send_singly(sending, table, act, rows, count);
    ASSERT(texts[table][act]);
    params = sending_add(sending, texts[table][act]);
    TRY_MEMORY(sending->scope, params);
    if (act != PUT_ROW) {
        params_columns(params, rows, sizeof *rows, count, naming, naming_count(table, act));
        return PAWL_OK;
    }
    params_columns(params, rows, sizeof *rows, count, naming, row_of[table].named);
    params_columns(params, rows, sizeof *rows, count, row_of[table].columns, row_of[table].count);
    return PAWL_OK;
}

pawl_status send_live(struct sending *sending, const struct commit *commit)
{
    struct live_folding folding = { .scope = sending->scope };
    struct params *params;

    for (size_t i = 0; i < commit->live_count; i++)
        TRY(touch_all(&folding, &commit->live[i], (uint32_t)i));
    fold(&folding);
    for (enum live_table table = STEPS; table < TABLES && folding.count > 0; table++)
        for (enum act act = CLEAR_INSTANCE; act <= PUT_ROW; act++)
            TRY(send_touches(sending, &folding, table, act));
    if (folding.ended_count == 0)
        return PAWL_OK;
    params = sending_add(sending, end_children);
    TRY_MEMORY(sending->scope, params);
    params_numbers(params, folding.ended, folding.ended_count);
    return PAWL_OK;
}
