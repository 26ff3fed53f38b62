/* evidence_world.c - a store made by hand, and one that lies: see evidence_world.h. */
#include "evidence_world.h"
#include "base/limits.h"
#include "store/instance_log.h"

#define T0 INT64_C(1780000000000)

static const char order_compiled[] =
    "{\"compiler\":1,\"kind\":\"machine\",\"states\":[{\"name\":\"open\"},{\"name\":\"paid\"},"
    "{\"name\":\"done\",\"terminal\":\"success\"}],\"initial\":0,\"transitions\":["
    "{\"from\":0,\"action\":\"pay\",\"to\":1,\"guard\":\"funds\"},"
    "{\"from\":1,\"action\":\"ship\",\"to\":2},{\"from\":0,\"action\":\"note\",\"to\":0},"
    "{\"from\":0,\"action\":\"void\",\"to\":2,\"requires_reason\":true}]}";

/* ---- definitions ---- */

static str flow_compiled(struct test *t)
{
    struct definition flow = { .kind = KIND_FLOW, .compiler = COMPILER_NUMBER };
    struct buf buf;
    str text;

    EXPECT_OK(definition_set_lifecycle(&flow, &t->scope));
    buf_init(&buf, &heap_libc, LIMIT_TEXT);
    definition_print(&flow, &buf);
    text = buf_keep(&buf, &t->scope.arena);
    buf_fini(&buf);
    return text;
}

static str define_body(struct test *t, const struct definition_row *row)
{
    char source[2 * SHA_SIZE + 1], compiled[2 * SHA_SIZE + 1];
    struct buf buf;
    str text;

    sha_hex(row->source_sha, SHA_SIZE, source);
    sha_hex(row->compiled_sha, SHA_SIZE, compiled);
    buf_init(&buf, &heap_libc, LIMIT_TEXT);
    buf_fmt(
        &buf,
        "{\"name\":\"%.*s\",\"version\":%u,\"kind\":\"%s\",\"source\":\"%s\",\"compiled\":\"%s\"}",
        STR_ARG(row->name), row->version, row->kind == KIND_FLOW ? "flow" : "machine", source,
        compiled);
    text = buf_keep(&buf, &t->scope.arena);
    buf_fini(&buf);
    return text;
}

static void put_definition(struct world *w, uint32_t id, enum definition_kind kind, str name,
                           str compiled)
{
    struct definition_row *row = &w->definitions[id - 1];

    *row = (struct definition_row){ .id = id,
                                    .name = name,
                                    .version = 1,
                                    .kind = (int)kind,
                                    .source = name,
                                    .compiled = compiled };
    sha_once(w->sha, row->source, row->source_sha);
    sha_once(w->sha, row->compiled, row->compiled_sha);
    EXPECT_OK(definition_load(&w->t->scope, compiled, &w->compiled[id - 1]));
    w->next.definitions = row;
    w->next.definition_count = 1;
    row->created_at_ms =
        world_record(w, 0, CONTROL_DEFINE, define_body(w->t, row).data)->at_ms;
    world_commit(w);
}

void world_open(struct world *w, struct test *t)
{
    struct store_options options = { .create = true, .heap = &heap_libc };
    struct store_tip tip;

    *w = (struct world){ .t = t, .at_ms = T0, .env = env_sim_new(T0, 1), .sha = sha_new(&heap_libc) };
    EXPECT(w->env && w->sha);
    options.env = w->env;
    EXPECT_OK(store_open(STR("memory:"), &options, &t->scope, &w->store));
    EXPECT_OK(store_tip(w->store, &t->scope, &tip));
    root_first(w->sha, tip.store_id, w->root);
    put_definition(w, DEFINITION_ORDER, KIND_MACHINE, STR("order"), str_of(order_compiled));
    put_definition(w, DEFINITION_FLOW, KIND_FLOW, STR("flow"), flow_compiled(t));
}

void world_close(struct world *w)
{
    store_close(w->store);
    sha_free(w->sha);
    w->env->close(w->env);
}

/* ---- records ---- */

static const uint8_t *commitment_of(const struct world *w, uint64_t id)
{
    for (size_t i = 0; i < w->next.value_count; i++)
        if (w->values[i].id == id)
            return w->values[i].commitment;
    return NULL;
}

static uint64_t add_value(struct world *w, str bytes)
{
    struct value *value = &w->values[w->next.value_count++];

    EXPECT(w->next.value_count <= WORLD_PENDING);
    *value = (struct value){ .id = ++w->value_count, .bytes = bytes, .salt = { 1, 2, 3 } };
    value_commit(w->sha, value->salt, bytes, value->commitment);
    return value->id;
}

static void print_id(const struct world *w, uint64_t number, char out[ID_SIZE + 1])
{
    memset(out, '0', ID_SIZE);
    out[ID_SIZE] = '\0';
    if (number != 0)
        id_print(number, w->chains[number].random, out);
}

static void hash_record(struct world *w, struct record *record, const uint8_t prev[SHA_SIZE],
                        str body)
{
    struct commitments commitments = { commitment_of(w, record->actor),
                                       commitment_of(w, record->payload),
                                       commitment_of(w, record->reason) };
    char id[ID_SIZE + 1];

    print_id(w, record->instance, id);
    record_hash(w->sha, prev, id, record, body, &commitments, record->hash);
    memcpy(w->chains[record->instance].hash, record->hash, SHA_SIZE);
}

static struct record *next_record(struct world *w, uint64_t number, int32_t what)
{
    struct world_chain *chain = &w->chains[number];
    struct record *record = &w->records[w->next.record_count++];

    EXPECT(w->next.record_count <= WORLD_PENDING);
    w->at_ms += 5;
    *record = (struct record){
        .pos = ++w->pos,
        .instance = number,
        .seq = what >= 0 ? ++chain->seq : chain->seq,
        .prev = chain->pos,
        .what = what,
        .at_ms = w->at_ms,
        .fired_at_ms = w->at_ms,
    };
    chain->pos = record->pos;
    chain->is_dirty = true;
    if (what >= 0 && record->seq % SKIP_EVERY == 0) {
        record->skip = chain->skip_pos;
        chain->skip_pos = record->pos;
    }
    return record;
}

struct record *world_record(struct world *w, uint64_t number, int32_t what, const char *body)
{
    struct world_chain *chain = &w->chains[number];
    const struct definition *definition = number ? w->compiled[chain->definition - 1] : NULL;
    struct record *record = next_record(w, number, what);

    record->body = str_of(body);
    if (what >= 0 && (uint32_t)what < definition->transition_count) {
        record->flags = definition->transitions[what].guard.data ? RECORD_GUARD : 0;
        record->actor = add_value(w, STR("ann"));
        record->payload = add_value(w, STR("{\"n\":1}"));
        chain->state = definition->transitions[what].to;
    }
    hash_record(w, record, chain->hash, record->body);
    return record;
}

/* Only the first record of a chain in a commit: the hash before it must still be known. */
void world_seal(struct world *w, struct record *record)
{
    struct record before;

    EXPECT_OK(store_record(w->store, &w->t->scope, record->prev, &before));
    hash_record(w, record, before.hash, record->body);
}

void world_create(struct world *w, uint64_t number, uint32_t definition)
{
    const struct definition_row *row = &w->definitions[definition - 1];
    struct instance_row *instance = &w->instances[w->next.instance_count++];
    struct world_chain *chain = &w->chains[number];
    struct record *record;
    struct buf body;

    EXPECT(number < WORLD_INSTANCES);
    *chain = (struct world_chain){ .definition = definition, .random = { 7, (uint8_t)number } };
    record = next_record(w, number, CONTROL_CREATE);
    record->actor = add_value(w, STR("ann"));
    *instance = (struct instance_row){ .number = number,
                                       .definition = definition,
                                       .instantiated_at_ms = record->fired_at_ms,
                                       .created_pos = record->pos,
                                       .creator = record->actor,
                                       .subject = add_value(w, STR("cart/1")),
                                       .correlation = STR("c-1") };
    memcpy(instance->random, chain->random, ID_RANDOM_SIZE);
    buf_init(&body, &heap_libc, LIMIT_TEXT);
    creation_body(&(struct creation_facts){ .source_sha = row->source_sha,
                                            .compiled_sha = row->compiled_sha,
                                            .name = row->name,
                                            .version = row->version,
                                            .subject = commitment_of(w, instance->subject),
                                            .correlation = instance->correlation },
                  &body);
    hash_record(w, record, chain->hash, buf_view(&body));
    buf_fini(&body);
}

void world_live(struct world *w, struct live_change change)
{
    EXPECT(w->next.live_count < WORLD_PENDING);
    w->live[w->next.live_count++] = change;
}

/* ---- commits ---- */

static size_t dirty_heads(struct world *w, struct head_row *out)
{
    size_t count = 0;

    for (uint64_t i = 0; i < WORLD_INSTANCES; i++) {
        struct world_chain *chain = &w->chains[i];

        if (chain->is_dirty && !w->lag)
            out[count++] = (struct head_row){ i, chain->seq, chain->pos, chain->state };
        chain->is_dirty = chain->is_dirty && w->lag;
    }
    return count;
}

void world_commit(struct world *w)
{
    struct head_row heads[WORLD_INSTANCES];
    struct record *last = &w->records[w->next.record_count - 1];
    struct store_tip tip;

    EXPECT(w->next.record_count > 0);
    root_begin(w->sha, w->root);
    for (size_t i = 0; i < w->next.record_count; i++)
        root_add(w->sha, w->records[i].hash);
    root_end(w->sha, w->root);
    last->has_root = true;
    memcpy(last->root, w->root, SHA_SIZE);
    w->next.records = w->records;
    w->next.values = w->values;
    w->next.instances = w->instances;
    w->next.live = w->live;
    w->next.heads = heads;
    w->next.head_count = dirty_heads(w, heads);
    w->next.flushed = w->lag ? 0 : w->pos;
    EXPECT_OK(store_begin(w->store, &w->t->scope, &tip));
    EXPECT_OK(store_commit(w->store, &w->t->scope, &w->next));
    w->next = (struct commit){ 0 };
}

void world_check(struct world *w, uint64_t number, struct verify_report *report)
{
    pawl_error error = { PAWL_OK, "" };

    EXPECT_OK(verify_run(w->store, &heap_libc, &(struct verify_request){ .instance = number },
                         report, &error));
}

void world_two_orders(struct world *w, struct test *t)
{
    world_open(w, t);
    world_create(w, 1, DEFINITION_ORDER);
    world_commit(w);
    world_record(w, 1, ORDER_PAY, NULL);
    world_record(w, 1, ORDER_SHIP, NULL);
    world_commit(w);
    world_create(w, 2, DEFINITION_ORDER);
    world_record(w, 2, ORDER_NOTE, NULL);
    world_commit(w);
}

void world_expect_valid(struct world *w, uint64_t records, uint64_t entries, uint64_t instances)
{
    struct verify_report report;

    world_check(w, 0, &report);
    EXPECT_TEXT(report.what, "");
    EXPECT(report.valid);
    EXPECT_EQ(report.records, records);
    EXPECT_EQ(report.entries, entries);
    EXPECT_EQ(report.instances, instances);
    EXPECT_EQ(report.bad_pos, 0);
}

void world_expect_bad(struct world *w, uint64_t pos, uint64_t seq, const char *what)
{
    struct verify_report report;

    world_check(w, 0, &report);
    EXPECT(!report.valid);
    EXPECT_HAS(report.what, what);
    EXPECT_EQ(report.bad_pos, pos);
    EXPECT_EQ(report.bad_seq, seq);
}

/* ---- lying ---- */

#define LIAR(name)                                                                                 \
    struct liar *liar = (struct liar *)store;                                                      \
    pawl_status status

#define PASS_ON(lie, out)                                                                          \
    if (status == PAWL_OK && liar->lie)                                                            \
        liar->lie(out);                                                                            \
    return status

static pawl_status lie_tip(struct store *store, struct scope *scope, struct store_tip *out)
{
    LIAR(tip) = store_tip(liar->truth, scope, out);
    PASS_ON(tip, out);
}

static pawl_status unreadable(struct scope *scope)
{
    return scope_fail(scope, PAWL_STORAGE_FAILURE, "the disk is on fire");
}

static void lie_of(const struct liar *liar, enum find_kind kind, void *out)
{
    if (kind == FIND_HEAD && liar->head)
        liar->head(out);
    if (kind == FIND_INSTANCE && liar->instance)
        liar->instance(out);
    if (kind == FIND_RECORD && liar->record)
        liar->record(out);
    if ((kind == FIND_VALUE || kind == FIND_BYTES) && liar->value)
        liar->value(out);
    if (kind == FIND_DEFINITION && liar->definition)
        liar->definition(out);
}

static pawl_status lie_find(struct store *store, struct scope *scope,
                            const struct find_query *query, void *out)
{
    struct liar *liar = (struct liar *)store;
    pawl_status status = liar->truth->ops->find(liar->truth, scope, query, out);

    if (query->kind == FIND_RECORD && liar->fail_pos && query->by.number >= liar->fail_pos)
        return unreadable(scope);
    if (status == PAWL_OK)
        lie_of(liar, query->kind, out);
    return status;
}

static pawl_status lie_records_of(struct store *store, struct scope *scope,
                                  struct chain_query *query, struct record *out, uint32_t room,
                                  uint32_t *count)
{
    pawl_status status =
        lie_find(store, scope, &(struct find_query){ FIND_RECORD, { query->pos } }, out);

    (void)room;
    if (status)
        return status;
    query->pos = chain_next(query, out);
    *count = 1;
    return PAWL_OK;
}

static pawl_status list_true_rows(struct store *store, struct scope *scope,
                                  const struct rows_query *query, void **out, uint32_t *count)
{
    struct store *truth = ((struct liar *)store)->truth;

    return truth->ops->rows(truth, scope, query, out, count);
}

static pawl_status lie_live(struct store *store, struct scope *scope, uint64_t instance,
                            struct live *out)
{
    LIAR(live) = store_live(liar->truth, scope, instance, out);
    PASS_ON(live, out);
}

struct lying_scan {
    struct liar *liar;
    struct scope *scope;
    record_fn fn;
    void *context;
};

static pawl_status give_lie(void *context, const struct record *record)
{
    struct lying_scan *scan = context;
    struct record copy = *record;

    if (scan->liar->fail_pos && record->pos >= scan->liar->fail_pos)
        return unreadable(scan->scope);
    if (scan->liar->record)
        scan->liar->record(&copy);
    return scan->fn(scan->context, &copy);
}

static pawl_status lie_scan(struct store *store, struct scope *scope, uint64_t from, record_fn fn,
                            void *context)
{
    struct lying_scan scan = { (struct liar *)store, scope, fn, context };

    return store_scan(scan.liar->truth, scope, from, give_lie, &scan);
}

static pawl_status list_truth(struct store *store, struct scope *scope,
                              const struct list_query *query, uint64_t **out, uint32_t *count)
{
    return store_list(((struct liar *)store)->truth, scope, query, out, count);
}

static const struct store_ops liar_ops = {
    .scheme = "liar",
    .tip = lie_tip,
    .find = lie_find,
    .rows = list_true_rows,
    .live = lie_live,
    .records_of = lie_records_of,
    .scan = lie_scan,
    .list = list_truth,
};

void liar_init(struct liar *liar, struct store *truth)
{
    *liar = (struct liar){ .store = { &liar_ops }, .truth = truth };
}
