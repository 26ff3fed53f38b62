/* expect.c - what is about to be read, read in one round trip.
 *
 * It answers for the thread that expected it, until the store changes: contract (13) says that
 * nothing differs because of it. Where other processes may write, it is used only inside of a turn,
 * which keeps them out. */
#include "base/assert.h"
#include "base/grow.h"
#include "postgres_int.h"

#define PLACE_NONE (MAP_NONE - 1) /* it was asked for, and is not there */
#define ROW_BITS   24
/* As a result: the row is a place in `asked`. Two texts may have one hash, so that only what was
 * asked for is known to be missing. */
#define ASKED AHEAD_RESULTS

void pg_ahead_init(struct reading_ahead *ahead, struct postgres_store *store)
{
    *ahead = (struct reading_ahead){ .store = store };
    for (int i = 0; i < AHEAD_KINDS; i++)
        map_init(&ahead->places[i], store->heap);
    scope_init(&ahead->kept, store->heap, 0);
}

static void forget(struct reading_ahead *ahead)
{
    for (uint32_t i = 0; i < ahead->result_count; i++)
        ahead->store->writer->pq->clear(ahead->results[i]);
    ahead->result_count = 0;
    for (int i = 0; i < AHEAD_KINDS; i++)
        map_clear(&ahead->places[i]);
    scope_clear(&ahead->kept);
    ahead->asked = NULL;
    ahead->asked_count = ahead->asked_capacity = 0;
    ahead->is_used = false;
}

void pg_ahead_fini(struct reading_ahead *ahead)
{
    forget(ahead);
    for (int i = 0; i < AHEAD_KINDS; i++)
        map_fini(&ahead->places[i]);
    scope_fini(&ahead->kept);
}

/* ---- Names: numbers, or hashes of bytes; never 0 ---- */

static uint64_t name_number(uint64_t number)
{
    return number + 1;
}

static uint64_t name_bytes(str bytes)
{
    return str_hash(bytes) | 1;
}

static str bytes_column(enum ahead_kind kind, const struct pg_rows *rows)
{
    return cell_view(rows, kind == AHEAD_TEXTS ? 3 : kind == AHEAD_NAMES ? 1 : 0);
}

static uint64_t name_of(enum ahead_kind kind, const struct pg_rows *rows)
{
    bool is_bytes = kind == AHEAD_KEYS || kind == AHEAD_TEXTS || kind == AHEAD_NAMES;

    return is_bytes ? name_bytes(bytes_column(kind, rows)) : name_number(cell_u64(rows, 0));
}

bool pg_ahead_add(struct reading_ahead *ahead, enum ahead_kind kind, PGresult **result)
{
    struct pg_rows rows = { ahead->store->writer->pq, *result, 0 };
    uint32_t count = rows_count(&rows), index = ahead->result_count;
    uint64_t before = 0;

    if (index == AHEAD_RESULTS || count >= 1u << ROW_BITS)
        return false;
    ahead->results[ahead->result_count++] = *result;
    *result = NULL;
    for (uint32_t i = 0; i < count; i++) {
        uint64_t name;

        rows.row = (int)i;
        name = name_of(kind, &rows);
        if ((kind != AHEAD_LIVE || name != before) &&
            !map_put(&ahead->places[kind], name, index << ROW_BITS | i))
            return false;
        before = name;
    }
    return true;
}

void pg_ahead_note_missing(struct reading_ahead *ahead, enum ahead_kind kind,
                           const uint64_t *numbers, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        if (map_get(&ahead->places[kind], name_number(numbers[i])) == MAP_NONE)
            (void)map_put(&ahead->places[kind], name_number(numbers[i]), PLACE_NONE);
}

static void note_missing_bytes(struct reading_ahead *ahead, enum ahead_kind kind, str bytes)
{
    struct arena *arena = &ahead->kept.arena;

    if (map_get(&ahead->places[kind], name_bytes(bytes)) != MAP_NONE ||
        !GROW(arena, ahead->asked, ahead->asked_count, ahead->asked_capacity))
        return;
    ahead->asked[ahead->asked_count] = arena_str(arena, bytes);
    if (ahead->asked[ahead->asked_count].data)
        (void)map_put(&ahead->places[kind], name_bytes(bytes),
                      ASKED << ROW_BITS | ahead->asked_count++);
}

/* ---- Answering ---- */

static struct pg_rows row_at(const struct reading_ahead *ahead, uint32_t place)
{
    return (struct pg_rows){ ahead->store->writer->pq, ahead->results[place >> ROW_BITS],
                             (int)(place & ((1u << ROW_BITS) - 1)) };
}

/* Which of them would have it, and under which name; false: none. */
static bool place_of(const struct reading_ahead *ahead, const struct find_query *query,
                     enum ahead_kind *kind, uint64_t *name, str *bytes)
{
    *bytes = STR_NONE;
    *name = name_number(query->by.number);
    switch (query->kind) {
    case FIND_HEAD:
        *kind = AHEAD_HEADS;
        *name = name_number(query->by.head.instance);
        return query->by.head.trust_rows || ahead->are_heads_true;
    case FIND_INSTANCE:
        *kind = AHEAD_ROWS;
        return true;
    case FIND_RECORD:
        *kind = AHEAD_RECORDS;
        return true;
    case FIND_VALUE:
    case FIND_BYTES:
        *kind = AHEAD_VALUES;
        return true;
    case FIND_SNAPSHOT:
        *kind = AHEAD_SNAPSHOTS;
        return true;
    case FIND_KEY:
        *kind = AHEAD_KEYS;
        *bytes = (str){ (const char *)query->by.hash, KEY_ID_SIZE };
        break;
    case FIND_INTERNED:
        *kind = AHEAD_TEXTS;
        *bytes = query->by.bytes;
        break;
    case FIND_NAMED:
        *kind = AHEAD_NAMES;
        *bytes = query->by.named.name;
        if (query->by.named.version)
            return false;
        break;
    case FIND_STANDING:
    case FIND_DEFINITION:
    case FIND_INLINE:
        return false;
    }
    *name = name_bytes(*bytes);
    return true;
}

static pawl_status copy_row(const struct reading_ahead *ahead, struct scope *scope,
                            enum ahead_kind kind, enum find_kind find, const struct pg_rows *rows,
                            void *out)
{
    static pg_row_reader *const readers[] = {
        [AHEAD_HEADS] = pg_read_head,         [AHEAD_ROWS] = pg_read_instance,
        [AHEAD_RECORDS] = pg_read_record,     [AHEAD_VALUES] = pg_read_value,
        [AHEAD_SNAPSHOTS] = pg_read_snapshot, [AHEAD_KEYS] = pg_read_key,
        [AHEAD_TEXTS] = pg_read_value,        [AHEAD_NAMES] = pg_read_definition,
    };
    bool is_value = kind == AHEAD_VALUES || kind == AHEAD_TEXTS;
    struct value_row value;

    readers[kind](rows, &scope->arena, is_value ? &value : out);
    TRY_MEMORY(scope, !scope->arena.failed);
    if (!is_value)
        return PAWL_OK;
    if (find != FIND_BYTES)
        pg_value_commit(ahead->store, &value);
    *(struct value *)out = value.value;
    return PAWL_OK;
}

bool pg_ahead_find(const struct reading_ahead *ahead, struct scope *scope,
                   const struct find_query *query, void *out, pawl_status *status)
{
    enum ahead_kind kind = 0;
    uint64_t name = 0;
    uint32_t place;
    struct pg_rows rows;
    str bytes;

    if (!place_of(ahead, query, &kind, &name, &bytes))
        return false;
    place = name ? map_get(&ahead->places[kind], name) : MAP_NONE;
    if (place == MAP_NONE)
        return false;
    if (place != PLACE_NONE && place >> ROW_BITS == ASKED) {
        if (!str_eq(ahead->asked[place & ((1u << ROW_BITS) - 1)], bytes))
            return false;
        place = PLACE_NONE;
    }
    if (place == PLACE_NONE) {
        *status = scope_fail(scope, PAWL_NOT_KNOWN,
                             "there is no such"
                             " %s",
                             find_word(query->kind));
        return true;
    }
    rows = row_at(ahead, place);
    if (bytes.data && !str_eq(bytes_column(kind, &rows), bytes))
        return false;
    *status = copy_row(ahead, scope, kind, query->kind, &rows, out);
    return true;
}

bool pg_ahead_live(const struct reading_ahead *ahead, struct scope *scope, uint64_t instance,
                   struct live *out, pawl_status *status)
{
    uint32_t place = map_get(&ahead->places[AHEAD_LIVE], name_number(instance));
    struct pg_rows rows;

    if (place == MAP_NONE)
        return false;
    *out = (struct live){ 0 };
    *status = PAWL_OK;
    if (place == PLACE_NONE)
        return true;
    rows = row_at(ahead, place);
    *status = live_take(scope, &rows, out);
    return true;
}

/* Under the lock: what this thread has read ahead, if it still holds; else NULL. */
static const struct reading_ahead *mine(struct postgres_store *store)
{
    for (int i = 0; i < AHEAD_THREADS; i++)
        if (store->ahead[i].is_used && pthread_equal(store->ahead[i].thread, pthread_self()) &&
            store->ahead[i].changes == atomic_load(&store->changes))
            return &store->ahead[i];
    return NULL;
}

bool expected_find(struct postgres_store *store, struct scope *scope,
                   const struct find_query *query, void *out, pawl_status *status)
{
    const struct reading_ahead *ahead;
    bool is_found;

    pthread_mutex_lock(&store->ahead_lock);
    ahead = mine(store);
    is_found = ahead && pg_ahead_find(ahead, scope, query, out, status);
    pthread_mutex_unlock(&store->ahead_lock);
    return is_found;
}

bool expected_live(struct postgres_store *store, struct scope *scope, uint64_t instance,
                   struct live *out, pawl_status *status)
{
    const struct reading_ahead *ahead;
    bool is_found;

    pthread_mutex_lock(&store->ahead_lock);
    ahead = mine(store);
    is_found = ahead && pg_ahead_live(ahead, scope, instance, out, status);
    pthread_mutex_unlock(&store->ahead_lock);
    return is_found;
}

/* ---- Asking ---- */

/* The last record of each instance, by its head row. */
const char pg_select_last_records[] = "SELECT " PG_RECORD_COLUMNS " FROM pawl_head h, " PG_LOG_AT(
    "h.pos") " WHERE h.shard = $1 AND h.inst = ANY ($2) AND k <= l.n";
static const char select_their_values[] =
    "SELECT " PG_VALUE_COLUMNS " FROM pawl_value v WHERE v.shard = $1 AND v.id IN ("
    "SELECT unnest(ARRAY[l.actor[k], l.payload[k], l.reason[k]]) FROM pawl_head h, " PG_LOG_AT(
        "h.pos") " WHERE h.shard = $1 AND h.inst = ANY ($2) AND k <= l.n"
                 " UNION SELECT unnest(ARRAY[creator, subject, input, metadata]) FROM"
                 " pawl_instance"
                 " WHERE shard = $1 AND number = ANY ($2) UNION SELECT unnest($3))";

struct pg_asking {
    struct postgres_store *store;
    struct scope *scope;
    struct statement statements[AHEAD_KINDS];
    enum ahead_kind kinds[AHEAD_KINDS];
    uint32_t count;
    struct params spare; /* without memory: the arena remembers it, and nothing is sent */
};

static struct params *ask(struct pg_asking *asking, enum ahead_kind kind, const char *text)
{
    struct params *params = ARENA_NEW(&asking->scope->arena, struct params);

    if (!params)
        params = &asking->spare;
    *params = (struct params){ .arena = &asking->scope->arena };
    params_int4(params, asking->store->shard);
    asking->statements[asking->count] = (struct statement){ text, params, NULL, false };
    asking->kinds[asking->count++] = kind;
    return params;
}

static void ask_for_instances(struct pg_asking *asking, const struct expectation *e)
{
    static const struct {
        unsigned rows;
        enum ahead_kind kind;
        const char *text;
    } all[] = { { EXPECT_HEADS, AHEAD_HEADS, pg_select_heads },
                { EXPECT_ROWS, AHEAD_ROWS, pg_select_instances },
                { EXPECT_RECORDS, AHEAD_RECORDS, pg_select_last_records },
                { EXPECT_LIVE, AHEAD_LIVE, pg_select_live } };

    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (e->instance_count && (e->rows & all[i].rows))
            params_numbers(ask(asking, all[i].kind, all[i].text), e->instances, e->instance_count);
}

static void ask_for_values(struct pg_asking *asking, const struct expectation *e)
{
    bool has_theirs = e->instance_count && (e->rows & EXPECT_VALUES);
    struct params *params;

    if (!has_theirs && !e->value_count)
        return;
    params = ask(asking, AHEAD_VALUES, has_theirs ? select_their_values : pg_select_values);
    if (has_theirs)
        params_numbers(params, e->instances, e->instance_count);
    params_numbers(params, e->values, e->value_count);
}

static void ask_for_names(struct pg_asking *asking, const struct expectation *e)
{
    static const struct column key = { FROM_BYTES, PG_BYTEA, 0, KEY_ID_SIZE, false };
    static const struct column digest = { FROM_BYTES, PG_BYTEA, 0, DIGEST_SIZE, false };
    static const struct column name = { FROM_STR, PG_BYTEA, 0, 0, false };
    uint8_t(*digests)[SHA_SIZE];

    if (e->key_count)
        params_column(ask(asking, AHEAD_KEYS, pg_select_keys), e->keys, KEY_ID_SIZE, e->key_count,
                      &key);
    if (e->definition_count)
        params_column(ask(asking, AHEAD_NAMES, pg_select_newest), e->definitions, sizeof(str),
                      e->definition_count, &name);
    if (!e->text_count)
        return;
    digests = arena_alloc(&asking->scope->arena, (size_t)e->text_count * SHA_SIZE);
    for (uint32_t i = 0; digests && i < e->text_count; i++)
        pg_value_digest(asking->store, e->texts[i], digests[i]);
    if (digests)
        params_column(ask(asking, AHEAD_TEXTS, pg_select_interned), digests, SHA_SIZE,
                      e->text_count, &digest);
}

/* What was asked for by number and did not come is not there. */
static void note_all_missing(struct reading_ahead *ahead, const struct expectation *e)
{
    if (e->rows & EXPECT_HEADS)
        pg_ahead_note_missing(ahead, AHEAD_HEADS, e->instances, e->instance_count);
    if (e->rows & EXPECT_ROWS)
        pg_ahead_note_missing(ahead, AHEAD_ROWS, e->instances, e->instance_count);
    if (e->rows & EXPECT_LIVE)
        pg_ahead_note_missing(ahead, AHEAD_LIVE, e->instances, e->instance_count);
    pg_ahead_note_missing(ahead, AHEAD_VALUES, e->values, e->value_count);
    for (uint32_t i = 0; i < e->text_count; i++)
        note_missing_bytes(ahead, AHEAD_TEXTS, e->texts[i]);
    for (uint32_t i = 0; i < e->key_count; i++)
        note_missing_bytes(ahead, AHEAD_KEYS, (str){ (const char *)e->keys[i], KEY_ID_SIZE });
}

/* The thread's own, a free one, or one that holds no more; NULL: none. */
static struct reading_ahead *take_slot(struct postgres_store *store)
{
    struct reading_ahead *slot = NULL;

    for (int i = 0; i < AHEAD_THREADS; i++) {
        struct reading_ahead *at = &store->ahead[i];

        if (at->is_used && pthread_equal(at->thread, pthread_self()))
            return at;
        if (!at->is_used || at->changes != atomic_load(&store->changes))
            slot = at;
    }
    return slot;
}

static pawl_status read_ahead(struct postgres_store *store, struct pg_asking *asking,
                              const struct expectation *e)
{
    struct reading_ahead *slot;
    uint64_t changes = atomic_load(&store->changes);

    TRY(pg_exchange(store, asking->scope, asking->statements, asking->count));
    pthread_mutex_lock(&store->ahead_lock);
    slot = take_slot(store);
    if (slot) {
        forget(slot);
        slot->thread = pthread_self();
        slot->changes = changes;
        slot->are_heads_true = store->in_turn && store->tip.flushed == store->tip.pos;
        slot->is_used = true;
        for (uint32_t i = 0; i < asking->count && slot->is_used; i++)
            if (!pg_ahead_add(slot, asking->kinds[i], &asking->statements[i].result))
                forget(slot);
        if (slot->is_used)
            note_all_missing(slot, e);
    }
    pthread_mutex_unlock(&store->ahead_lock);
    link_clear(store->reader, asking->statements, asking->count);
    return PAWL_OK;
}

pawl_status postgres_expect(struct store *base, struct scope *scope, const struct expectation *e)
{
    struct postgres_store *store = postgres_of(base);
    struct pg_asking asking = { .store = store, .scope = scope };

    TRY(postgres_check(store, scope));
    if (!store->own && !store->in_turn)
        return PAWL_OK; /* another process may write meanwhile */
    ask_for_instances(&asking, e);
    ask_for_values(&asking, e);
    ask_for_names(&asking, e);
    if (asking.count == 0)
        return PAWL_OK;
    return read_ahead(store, &asking, e);
}
