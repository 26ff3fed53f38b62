/* fuzz_evidence.c - records, bodies and values that no engine wrote, given to the verifier. It says
 * valid or not, and never crashes; and what was changed without new hashes is never valid.
 *
 * An input is a list of changes to a small store's log: 'r' record field(1) number(8): a field;
 * 'b' record size text: a body; 'd' record: deleted; 't' record: there twice; 's' record: swapped
 * with the next; 'v' value size text: its bytes; 'c' value offset mask: its commitment; 'e' value:
 * erased; 'h': all hashes and roots are made anew after the changes. */
#include "api/api.h"
#include "evidence/evidence.h"
#include "fuzz.h"
#include "store/instance_log.h"

#define RECORDS_MAX 64
#define VALUES_MAX  64
#define CHANGES_MAX 12

static const char order[] =
    "name: order\nstates: [new, paid, gone]\ninitial_state: new\n"
    "terminal_states: [gone]\nterminal_kinds: {gone: cancel}\ntransitions:\n"
    "  - {from_state: new, action: pay, to_state: paid, guard: sure}\n"
    "  - {from_state: paid, action: back, to_state: new}\n"
    "  - {from_state: new, action: drop, to_state: gone}\n";
static const char nap[] = "name: nap\nsteps:\n"
                          "  start: {name: doze, tool: sleep, args: {for: 1m}, next: say}\n"
                          "  say: {tool: set, args: {x: \"{{input.x}}\"}, done: true}\n";

struct log {
    struct record records[RECORDS_MAX];
    struct value values[VALUES_MAX];
    uint32_t record_count, value_count;
};

static struct {
    pawl *p;
    struct scope scope; /* holds the log's texts */
    struct sha *sha;
    struct log log;
} sample;

struct forger {
    struct store store;
    struct log log;
    bool is_sealed;
};

static struct store *truth(void)
{
    return engine_store(sample.p->engine);
}

/* ---- The sample ---- */

static pawl_status keep_record(void *context, const struct record *record)
{
    struct record *copy = &sample.log.records[sample.log.record_count++];

    (void)context;
    REQUIRE(sample.log.record_count < RECORDS_MAX - CHANGES_MAX);
    *copy = *record;
    if (record->body.data)
        copy->body = arena_str(&sample.scope.arena, record->body);
    return PAWL_OK;
}

static void live(pawl *p)
{
    pawl_error error;
    pawl_id id;

    REQUIRE(!pawl_define(p, order, sizeof order - 1, NULL, &error));
    REQUIRE(!pawl_define(p, nap, sizeof nap - 1, NULL, &error));
    for (int i = 0; i < 3; i++)
        REQUIRE(!pawl_create(p,
                             &(pawl_create_args){ .definition = i ? "order" : "nap",
                                                  .input = "{\"x\":1}",
                                                  .actor_ref = "ann",
                                                  .subject_ref = "A-17" },
                             &id, &error));
    for (int i = 0; i < 5; i++) {
        pawl_fire_args args = { .action = i % 2 ? "back" : "pay",
                                .guard_satisfied = true,
                                .actor_ref = "bob",
                                .payload = "[1]",
                                .reason = "r" };

        REQUIRE(!pawl_fire(p, id.text, &args, NULL, &error));
    }
    REQUIRE(!pawl_run_due(p, &error));
}

static void make_sample(void)
{
    pawl_error error;

    scope_init(&sample.scope, &heap_libc, LIMIT_SCOPE);
    sample.sha = sha_new(&heap_libc);
    REQUIRE(sample.sha &&
            !pawl_open_env(&sample.p, "memory:", &(pawl_options){ .test_clock = true },
                           env_sim_new(FUZZ_NOW_MS, 7), &error));
    live(sample.p);
    REQUIRE(store_scan(truth(), &sample.scope, 1, keep_record, NULL) == PAWL_OK);
    while (store_value(truth(), &sample.scope, sample.log.value_count + 1,
                       &sample.log.values[sample.log.value_count]) == PAWL_OK)
        REQUIRE(++sample.log.value_count < VALUES_MAX);
}

/* ---- The forger's store: its own log and values, all else is true ---- */

static struct forger *forger_of(struct store *store)
{
    return (struct forger *)store;
}

static pawl_status forged_record(struct store *store, struct scope *scope, uint64_t pos,
                                 struct record *out)
{
    const struct log *log = &forger_of(store)->log;

    for (uint32_t i = 0; i < log->record_count; i++)
        if (log->records[i].pos == pos) {
            *out = log->records[i];
            return PAWL_OK;
        }
    return scope_fail(scope, PAWL_NOT_KNOWN, "no record %llu", (unsigned long long)pos);
}

static pawl_status forged_scan(struct store *store, struct scope *scope, uint64_t from,
                               record_fn fn, void *context)
{
    const struct log *log = &forger_of(store)->log;
    pawl_status status = PAWL_OK;

    (void)scope;
    for (uint32_t i = 0; i < log->record_count && !status; i++)
        if (log->records[i].pos >= from)
            status = fn(context, &log->records[i]);
    return status;
}

static pawl_status forged_value(struct store *store, struct scope *scope, uint64_t id,
                                struct value *out)
{
    const struct log *log = &forger_of(store)->log;

    if (id == 0 || id > log->value_count)
        return scope_fail(scope, PAWL_NOT_KNOWN, "no value %llu", (unsigned long long)id);
    *out = log->values[id - 1];
    return PAWL_OK;
}

static pawl_status forged_tip(struct store *store, struct scope *scope, struct store_tip *out)
{
    (void)store;
    return store_tip(truth(), scope, out);
}

static pawl_status forged_find(struct store *store, struct scope *scope,
                               const struct find_query *query, void *out)
{
    if (query->kind == FIND_RECORD)
        return forged_record(store, scope, query->by.number, out);
    if (query->kind == FIND_VALUE || query->kind == FIND_BYTES)
        return forged_value(store, scope, query->by.number, out);
    return truth()->ops->find(truth(), scope, query, out);
}

static pawl_status forged_records_of(struct store *store, struct scope *scope,
                                     struct chain_query *query, struct record *out, uint32_t room,
                                     uint32_t *count)
{
    pawl_status status = forged_record(store, scope, query->pos, out);

    (void)room;
    if (status)
        return status;
    query->pos = chain_next(query, out);
    *count = 1;
    return PAWL_OK;
}

static pawl_status forged_rows(struct store *store, struct scope *scope,
                               const struct rows_query *query, void **out, uint32_t *count)
{
    (void)store;
    return truth()->ops->rows(truth(), scope, query, out, count);
}

static pawl_status forged_live(struct store *store, struct scope *scope, uint64_t instance,
                               struct live *out)
{
    (void)store;
    return store_live(truth(), scope, instance, out);
}

static pawl_status forged_list(struct store *store, struct scope *scope,
                               const struct list_query *query, uint64_t **out, uint32_t *count)
{
    (void)store;
    return store_list(truth(), scope, query, out, count);
}

static const struct store_ops forger_ops = {
    .scheme = "forged",
    .tip = forged_tip,
    .find = forged_find,
    .rows = forged_rows,
    .live = forged_live,
    .records_of = forged_records_of,
    .scan = forged_scan,
    .list = forged_list,
};

/* ---- Changes ---- */

static void set_field(struct record *record, uint8_t field, uint64_t number)
{
    uint64_t *const wide[] = {
        &record->pos,  &record->instance, &record->seq,     &record->prev,
        &record->skip, &record->actor,    &record->payload, &record->reason
    };

    switch (field % 16) {
    default:
        *wide[field % 8] = number;
        break;
    case 8:
        record->what = (int32_t)number;
        break;
    case 9:
        record->flags = (uint32_t)number;
        break;
    case 10:
        record->at_ms = (int64_t)number;
        break;
    case 11:
        record->fired_at_ms = (int64_t)number;
        break;
    case 12:
        record->step = (uint32_t)number;
        break;
    case 13:
        record->ordinal = (uint32_t)number;
        break;
    case 14:
        record->attempt = (uint32_t)number;
        break;
    case 15:
        record->has_root = number & 1;
    }
}

static void move_records(struct log *log, uint8_t kind, uint32_t at)
{
    struct record kept = log->records[at];
    size_t after = sizeof kept * (log->record_count - at - 1);

    if (kind == 'd') {
        memmove(&log->records[at], &log->records[at + 1], after);
        log->record_count--;
    } else if (kind == 't') {
        memmove(&log->records[at + 1], &log->records[at], after + sizeof kept);
        log->record_count++;
    } else if (at + 1 < log->record_count) {
        log->records[at] = log->records[at + 1];
        log->records[at + 1] = kept;
    }
}

static str feed_body(struct feed *feed)
{
    str text = feed_text(feed, feed_byte(feed));

    return text.size ? text : STR_NONE;
}

static void change_value(struct value *value, uint8_t kind, struct feed *feed)
{
    if (kind == 'v')
        value->bytes = feed_text(feed, feed_byte(feed));
    else if (kind == 'c') {
        uint8_t offset = feed_byte(feed);

        value->commitment[offset % SHA_SIZE] ^= feed_byte(feed);
    } else {
        value->bytes = STR_NONE;
        memset(value->salt, 0, sizeof value->salt);
    }
}

static void change(struct forger *forger, struct feed *feed)
{
    struct log *log = &forger->log;
    uint8_t kind = feed_byte(feed);
    uint32_t at = kind == 'h' || !log->record_count ? 0 : feed_byte(feed) % log->record_count;
    uint8_t field;

    if (kind == 'h')
        forger->is_sealed = true;
    else if (kind == 'v' || kind == 'c' || kind == 'e')
        change_value(&log->values[at % log->value_count], kind, feed);
    else if (kind == 'b' && log->record_count)
        log->records[at].body = feed_body(feed);
    else if ((kind == 'd' || kind == 't' || kind == 's') && log->record_count)
        move_records(log, kind, at);
    else if (log->record_count) {
        field = feed_byte(feed);
        set_field(&log->records[at], field, feed_number(feed, 8));
    }
}

/* ---- Hashes made anew, so that the checks behind them are reached ---- */

static const uint8_t *commitment_of(const struct log *log, uint64_t id)
{
    return id > 0 && id <= log->value_count ? log->values[id - 1].commitment : NULL;
}

static const uint8_t *hash_before(const struct log *log, uint32_t at)
{
    static const uint8_t none[SHA_SIZE];

    for (uint32_t i = at; i > 0; i--)
        if (log->records[i - 1].instance == log->records[at].instance)
            return log->records[i - 1].hash;
    return none;
}

static void print_id(uint64_t number, struct scope *scope, char out[ID_SIZE + 1])
{
    struct instance_row row;

    memset(out, '0', ID_SIZE);
    out[ID_SIZE] = '\0';
    if (number > 0 && number <= ID_NUMBER_MAX &&
        store_instance(truth(), scope, number, &row) == PAWL_OK)
        id_print(number, row.random, out);
}

/* The body of a creation is not in its record: its hash stays. */
static void seal(struct log *log, struct scope *scope)
{
    struct store_tip tip;
    uint8_t root[SHA_SIZE];

    REQUIRE(store_tip(truth(), scope, &tip) == PAWL_OK);
    root_first(sample.sha, tip.store_id, root);
    for (uint32_t i = 0; i < log->record_count; i++) {
        struct record *record = &log->records[i];
        struct commitments commitments = { commitment_of(log, record->actor),
                                           commitment_of(log, record->payload),
                                           commitment_of(log, record->reason) };
        char id[ID_SIZE + 1];

        print_id(record->instance, scope, id);
        if (record->what != CONTROL_CREATE)
            record_hash(sample.sha, hash_before(log, i), id, record, record->body, &commitments,
                        record->hash);
    }
    for (uint32_t i = 0, first = 0; i < log->record_count; i++) {
        if (!log->records[i].has_root)
            continue;
        root_begin(sample.sha, root);
        for (uint32_t j = first; j <= i; j++)
            root_add(sample.sha, log->records[j].hash);
        root_end(sample.sha, root);
        memcpy(log->records[i].root, root, SHA_SIZE);
        first = i + 1;
    }
}

/* No scan gives a record at position 0: it is not there. */
static void drop_hidden(struct log *log)
{
    for (uint32_t i = log->record_count; i > 0; i--)
        if (log->records[i - 1].pos == 0)
            move_records(log, 'd', i - 1);
}

static bool same_records(const struct log *a, const struct log *b)
{
    if (a->record_count != b->record_count)
        return false;
    for (uint32_t i = 0; i < a->record_count; i++) {
        struct record left = a->records[i], right = b->records[i];

        if (!left.body.data != !right.body.data || !str_eq(left.body, right.body))
            return false;
        left.body = right.body = STR_NONE;
        if (memcmp(&left, &right, sizeof left) != 0)
            return false;
    }
    return true;
}

/* ---- The check ---- */

static void verify(struct forger *forger, uint64_t number)
{
    struct verify_report report = { 0 };
    pawl_error error = { 0 };
    pawl_status status =
        verify_run(&forger->store, &heap_libc, &(struct verify_request){ .instance = number },
                   &report, &error);

    if (status != PAWL_OK)
        REQUIRE(error.message[0]);
    else if (!report.valid)
        REQUIRE(report.what[0]);
    if (number == 0 && !forger->is_sealed && !same_records(&forger->log, &sample.log))
        REQUIRE(status != PAWL_OK || !report.valid);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct forger forger;
    struct feed feed = { data, size };
    struct scope scope;

    if (!sample.p)
        make_sample();
    scope_init(&scope, &heap_libc, LIMIT_SCOPE);
    forger = (struct forger){ .store = { &forger_ops } };
    forger.log = sample.log;
    for (int i = 0; i < CHANGES_MAX && feed.size > 0; i++)
        change(&forger, &feed);
    drop_hidden(&forger.log);
    if (forger.is_sealed)
        seal(&forger.log, &scope);
    for (uint64_t number = 0; number <= 3; number++)
        verify(&forger, number);
    scope_fini(&scope);
    return 0;
}
