/* lookup.c - one row by its name, and rows in order: every answer of a backend is checked here. */
#include "base/assert.h"
#include "base/limits.h"
#include "store/instance_log.h"

bool is_instance_number(uint64_t number)
{
    return number > 0 && number <= ID_NUMBER_MAX;
}

pawl_status store_fail_damaged(struct scope *scope, const char *what)
{
    return scope_fail(scope, PAWL_STORAGE_FAILURE,
                      "the store is damaged: it has %s that cannot be; run pawl verify", what);
}

pawl_status store_expect(struct store *store, struct scope *scope,
                         const struct expectation *expectation)
{
    return store->ops->expect ? store->ops->expect(store, scope, expectation) : PAWL_OK;
}

/* ---- One row ---- */

bool record_is_sound(const struct record *record, uint64_t pos)
{
    return record->instance <= ID_NUMBER_MAX && record->prev < pos && record->skip < pos &&
           (record->seq <= UINT32_MAX || record->what == CONTROL_GONE);
}

static bool definition_is_sound(const struct definition_row *row)
{
    return row->kind >= KIND_MACHINE && row->kind <= KIND_CODE;
}

/* NULL: the row can be as it is; else what it would be. Only a backend's own fault can bring
 * another row than the one that was asked for. */
static const char *find_fault(const struct find_query *query, const void *out)
{
    const struct head_row *head = out;
    const struct instance_row *instance = out;
    const struct record *record = out;
    const struct value *value = out;
    const struct key_row *key = out;
    const struct definition_row *definition = out;

    switch (query->kind) {
    case FIND_HEAD:
        ASSERT(head->instance == query->by.head.instance);
        return head->seq <= UINT32_MAX && head->state < LIMIT_STATES ? NULL : "a head";
    case FIND_INSTANCE:
        ASSERT(instance->number == query->by.number);
        return is_instance_number(instance->number) && instance->parent <= ID_NUMBER_MAX
                   ? NULL
                   : "an instance";
    case FIND_RECORD:
        ASSERT(record->pos == query->by.number);
        return record_is_sound(record, record->pos) ? NULL : "a record";
    case FIND_VALUE:
    case FIND_BYTES:
        ASSERT(value->id == query->by.number);
        return NULL;
    case FIND_INTERNED:
        ASSERT(value->interned && str_eq(value->bytes, query->by.bytes));
        return NULL;
    case FIND_SNAPSHOT:
        ASSERT(((const struct snapshot_row *)out)->instance == query->by.number);
        return NULL;
    case FIND_STANDING:
        return NULL;
    case FIND_KEY:
        return key->pos > 0 && key->pos < INT64_MAX ? NULL : "a key";
    case FIND_NAMED:
        ASSERT(str_eq(definition->name, query->by.named.name));
        ASSERT(IMPLIES(query->by.named.version, definition->version == query->by.named.version));
        break;
    case FIND_DEFINITION:
        ASSERT(definition->id == query->by.number);
        break;
    case FIND_INLINE:
        ASSERT(definition->name.size == 0);
        break;
    }
    return definition_is_sound(definition) ? NULL : "a definition";
}

const char *find_word(enum find_kind kind)
{
    static const char *const words[] = {
        [FIND_HEAD] = "instance",
        [FIND_INSTANCE] = "instance",
        [FIND_RECORD] = "record",
        [FIND_VALUE] = "value",
        [FIND_BYTES] = "value",
        [FIND_INTERNED] = "value",
        [FIND_SNAPSHOT] = "snapshot",
        [FIND_KEY] = "key",
        [FIND_STANDING] = "token or alarm",
        [FIND_DEFINITION] = "definition",
        [FIND_NAMED] = "definition",
        [FIND_INLINE] = "definition",
    };

    return words[kind];
}

pawl_status find_check(struct scope *scope, const struct find_query *query, const void *out,
                       pawl_status status)
{
    const char *fault = status == PAWL_OK ? find_fault(query, out) : NULL;

    return fault ? store_fail_damaged(scope, fault) : status;
}

static pawl_status find(struct store *store, struct scope *scope, const struct find_query *query,
                        void *out)
{
    ASSERT(out);
    return find_check(scope, query, out, store->ops->find(store, scope, query, out));
}

/* Of what has a number. */
static pawl_status find_number(struct store *store, struct scope *scope, enum find_kind kind,
                               uint64_t number, void *out)
{
    return find(store, scope, &(struct find_query){ .kind = kind, .by.number = number }, out);
}

pawl_status store_head(struct store *store, struct scope *scope, uint64_t instance, bool trust_rows,
                       struct head_row *out)
{
    return find(store, scope,
                &(struct find_query){ .kind = FIND_HEAD, .by.head = { instance, trust_rows } },
                out);
}

pawl_status store_instance(struct store *store, struct scope *scope, uint64_t number,
                           struct instance_row *out)
{
    return find_number(store, scope, FIND_INSTANCE, number, out);
}

pawl_status store_record(struct store *store, struct scope *scope, uint64_t pos, struct record *out)
{
    return find_number(store, scope, FIND_RECORD, pos, out);
}

pawl_status store_value(struct store *store, struct scope *scope, uint64_t id, struct value *out)
{
    return find_number(store, scope, FIND_VALUE, id, out);
}

pawl_status store_snapshot(struct store *store, struct scope *scope, uint64_t instance,
                           struct snapshot_row *out)
{
    return find_number(store, scope, FIND_SNAPSHOT, instance, out);
}

pawl_status store_definition(struct store *store, struct scope *scope, uint32_t id,
                             struct definition_row *out)
{
    return find_number(store, scope, FIND_DEFINITION, id, out);
}

pawl_status store_find_value(struct store *store, struct scope *scope, str bytes, struct value *out)
{
    ASSERT(bytes.data);
    return find(store, scope, &(struct find_query){ .kind = FIND_INTERNED, .by.bytes = bytes },
                out);
}

pawl_status store_find_definition(struct store *store, struct scope *scope, str name,
                                  uint32_t version, const uint8_t *source_sha,
                                  struct definition_row *out)
{
    struct find_query query = { .kind = FIND_NAMED, .by.named = { name, version } };

    ASSERT(IMPLIES(name.size == 0, source_sha));
    if (name.size == 0)
        query = (struct find_query){ .kind = FIND_INLINE, .by.hash = source_sha };
    return find(store, scope, &query, out);
}

pawl_status store_key(struct store *store, struct scope *scope, const uint8_t id[KEY_ID_SIZE],
                      struct key_row *out)
{
    return find(store, scope, &(struct find_query){ .kind = FIND_KEY, .by.hash = id }, out);
}

pawl_status store_standing(struct store *store, struct scope *scope, int32_t what, str id,
                           struct standing_row *out)
{
    return find(
        store, scope,
        &(struct find_query){ .kind = FIND_STANDING, .by.standing = { .what = what, .id = id } },
        out);
}

/* ---- Rows ---- */

/* Is row `i` in order behind the one before, or behind the number that was asked for? */
static bool is_behind(uint64_t after, uint64_t before, uint64_t number, uint32_t i)
{
    return is_instance_number(number) && number > (i == 0 ? after : before);
}

static bool timer_is_sound(const struct rows_query *query, const struct live_timer *timers,
                           uint32_t i)
{
    return timers[i].name.data && is_instance_number(timers[i].instance) &&
           timers[i].wall == query->by.clock.wall &&
           timers[i].due_at_ms <= query->by.clock.until_ms &&
           (i == 0 || timers[i - 1].due_at_ms <= timers[i].due_at_ms);
}

static bool step_is_sound(const struct step_count *steps, uint32_t i)
{
    const struct step_count *one = &steps[i - (i > 0)], *next = &steps[i];

    return i == 0 || one->version < next->version ||
           (one->version == next->version && one->plan < next->plan);
}

static const char *live_fault(const struct live *live)
{
    const char *fault = NULL;

    ASSERT(IMPLIES(live->step_count, live->steps) && IMPLIES(live->timer_count, live->timers));
    ASSERT(IMPLIES(live->wait_count, live->waits) && IMPLIES(live->child_count, live->children));
    for (uint32_t i = 0; i < live->step_count; i++)
        fault = live->steps[i].status <= STEP_RUNNING ? fault : "a step";
    for (uint32_t i = 0; i < live->timer_count; i++)
        fault = live->timers[i].name.data ? fault : "a timer";
    for (uint32_t i = 0; i < live->wait_count; i++)
        fault = live->waits[i].name.data ? fault : "a wait";
    return fault;
}

pawl_status live_check(struct scope *scope, const struct live *live)
{
    const char *fault = live_fault(live);

    return fault ? store_fail_damaged(scope, fault) : PAWL_OK;
}

pawl_status store_live(struct store *store, struct scope *scope, uint64_t instance,
                       struct live *out)
{
    ASSERT(out);
    ASSERT(instance <= ID_NUMBER_MAX);
    TRY(store->ops->live(store, scope, instance, out));
    return live_check(scope, out);
}

/* The same for row `i` of those that were listed. */
static const char *row_fault(const struct rows_query *query, const void *out, uint32_t i)
{
    const struct definition_row *definitions = out;
    const struct last_row *last = out;
    const struct live_child *children = out;
    const struct busy_row *busy = out;
    const uint64_t *numbers = out;
    uint32_t before = i - (i > 0);

    switch (query->kind) {
    case LIST_DEFINITIONS:
        return definitions[i].name.data && definition_is_sound(&definitions[i]) ? NULL
                                                                                : "a definition";
    case LIST_DUE:
        return timer_is_sound(query, out, i) ? NULL : "a timer";
    case LIST_BUSY:
        return is_behind(query->by.numbers.after, busy[before].instance, busy[i].instance, i)
                   ? live_fault(&busy[i].live)
                   : "a step";
    case LIST_AWAITING:
        return is_behind(query->by.numbers.after, last[before].instance, last[i].instance, i)
                   ? NULL
                   : "a wait";
    case LIST_CHILDREN:
        return is_instance_number(children[i].child) && is_instance_number(children[i].parent)
                   ? NULL
                   : "a child";
    case LIST_WAITING:
        return is_behind(query->by.waiting->after, numbers[before], numbers[i], i) ? NULL
                                                                                   : "an instance";
    case LIST_STEPS:
        return step_is_sound(out, i) ? NULL : "a step";
    case LIST_STANDING:
    case LIST_ALARMS:
        break;
    }
    return NULL;
}

/* `out` is where the pointer to the array goes; its type is that of the query's kind. */
static pawl_status rows(struct store *store, struct scope *scope, const struct rows_query *query,
                        void *out, uint32_t *count)
{
    const char *fault = NULL;
    void *found = NULL;
    pawl_status status;

    ASSERT(query->limit > 0);
    *count = 0;
    status = store->ops->rows(store, scope, query, &found, count);
    memcpy(out, &found, sizeof found);
    TRY(status);
    ASSERT(*count <= query->limit && IMPLIES(*count > 0, found));
    for (uint32_t i = 0; i < *count && !fault; i++)
        fault = row_fault(query, found, i);
    return fault ? store_fail_damaged(scope, fault) : PAWL_OK;
}

pawl_status store_definitions(struct store *store, struct scope *scope, str after, uint32_t limit,
                              struct definition_row **out, uint32_t *count)
{
    return rows(store, scope, &(struct rows_query){ LIST_DEFINITIONS, limit, { .name = after } },
                out, count);
}

pawl_status store_busy(struct store *store, struct scope *scope, uint64_t after, bool pending,
                       uint32_t limit, struct busy_row **out, uint32_t *count)
{
    return rows(store, scope,
                &(struct rows_query){ LIST_BUSY, limit, { .numbers = { after, pending } } }, out,
                count);
}

pawl_status store_awaiting(struct store *store, struct scope *scope, uint64_t after, uint32_t limit,
                           struct last_row **out, uint32_t *count)
{
    return rows(store, scope,
                &(struct rows_query){ LIST_AWAITING, limit, { .numbers = { after, false } } }, out,
                count);
}

pawl_status store_children(struct store *store, struct scope *scope,
                           const struct child_query *query, struct live_child **out,
                           uint32_t *count)
{
    return rows(store, scope,
                &(struct rows_query){ LIST_CHILDREN, query->limit, { .children = query } }, out,
                count);
}

pawl_status store_waiting(struct store *store, struct scope *scope, const struct wait_query *query,
                          uint64_t **out, uint32_t *count)
{
    return rows(store, scope,
                &(struct rows_query){ LIST_WAITING, query->limit, { .waiting = query } }, out,
                count);
}

pawl_status store_standing_list(struct store *store, struct scope *scope, int32_t what,
                                uint32_t limit, struct standing_row **out, uint32_t *count)
{
    return rows(store, scope, &(struct rows_query){ LIST_STANDING, limit, { .what = what } }, out,
                count);
}

pawl_status store_alarms(struct store *store, struct scope *scope, bool wall, uint32_t limit,
                         struct standing_row **out, uint32_t *count)
{
    return rows(store, scope, &(struct rows_query){ LIST_ALARMS, limit, { .clock = { wall, 0 } } },
                out, count);
}

pawl_status store_step_counts(struct store *store, struct scope *scope, str name,
                              struct step_count **out, uint32_t *count)
{
    return rows(store, scope, &(struct rows_query){ LIST_STEPS, UINT32_MAX, { .name = name } }, out,
                count);
}

pawl_status store_due(struct store *store, struct scope *scope, bool wall, int64_t until_ms,
                      uint32_t limit, struct live_timer **out, uint32_t *count)
{
    return rows(store, scope,
                &(struct rows_query){ LIST_DUE, limit, { .clock = { wall, until_ms } } }, out,
                count);
}
