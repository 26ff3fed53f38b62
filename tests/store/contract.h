/* contract.h - a store to test, and a builder of commits for it.
 *
 * STORE_TEST(a_sentence) registers its body once for every backend: s is a fresh, open
 * store that is closed and removed afterwards. Hashes are not real here: no store looks
 * at them, except that a text is known by its own. */
#ifndef PAWL_TESTS_STORE_CONTRACT_H
#define PAWL_TESTS_STORE_CONTRACT_H

#include "base/grow.h"
#include "lib/postgres.h"
#include "lib/test.h"
#include "model/definition.h"
#include "store/store.h"
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

struct stand {
    struct test *test;
    struct scope *scope; /* the test's */
    struct env *env;
    bool is_memory;
    char dir[64], url[TEST_POSTGRES_URL + 16];
    struct store *store;
};

#define STORE_TEST(test_name)                                                                      \
    static void contract_##test_name(struct stand *s);                                             \
    TEST(store_memory, test_name)                                                                  \
    {                                                                                              \
        stand_run(t, "memory", contract_##test_name);                                              \
    }                                                                                              \
    TEST(store_sqlite, test_name)                                                                  \
    {                                                                                              \
        stand_run(t, "sqlite", contract_##test_name);                                              \
    }                                                                                              \
    TEST(store_postgres, test_name)                                                                \
    {                                                                                              \
        stand_run(t, "postgres", contract_##test_name);                                            \
    }                                                                                              \
    static void contract_##test_name(struct stand *s)

#define T0 INT64_C(1777593600000) /* 2026-05-01T00:00:00Z */

static inline pawl_status stand_open(struct stand *s, struct store_options options,
                                     struct store **out)
{
    options.env = s->env;
    options.heap = options.heap ? options.heap : &heap_libc;
    return store_open(str_of(s->url), &options, s->scope, out);
}

static inline struct store *stand_another(struct stand *s) /* a second handle */
{
    struct store *store;

    EXPECT_OK(stand_open(s, (struct store_options){ 0 }, &store));
    return store;
}

static inline void stand_reopen(struct stand *s)
{
    store_close(s->store);
    s->store = stand_another(s);
}

static inline int remove_file(const char *path, const struct stat *info, int kind, struct FTW *at)
{
    (void)info, (void)kind, (void)at;
    return remove(path);
}

static inline void stand_run(struct test *t, const char *backend, void (*body)(struct stand *s))
{
    struct stand s = { .test = t, .scope = &t->scope, .is_memory = strcmp(backend, "memory") == 0 };

    test_folder(s.dir);
    (void)snprintf(s.url, sizeof s.url, s.is_memory ? "memory:%s" : "sqlite:%s/store.db", s.dir);
    if (strcmp(backend, "postgres") == 0)
        test_postgres_url("store", s.url);
    s.env = env_sim_new(T0, 7);
    EXPECT(s.env);
    EXPECT_OK(stand_open(&s, (struct store_options){ .create = true }, &s.store));
    body(&s);
    store_close(s.store);
    s.env->close(s.env);
    EXPECT(nftw(s.dir, remove_file, 8, FTW_DEPTH | FTW_PHYS) == 0);
}

/* ---- Building commits ---- */

struct change {
    struct stand *stand;
    struct store *store;
    struct store_tip tip; /* counts on as things are added */
    struct record *records;
    struct value *values;
    struct definition_row *definitions;
    struct instance_row *instances;
    struct head_row *heads;
    struct live_change *live;
    struct snapshot_row *snapshots;
    struct key_row *keys;
    int64_t keys_before_ms;
    uint32_t count[8], capacity[8];
    struct standing_change standing; /* is_put false: none */
    bool lag; /* write no head rows, and leave flushed */
};

#define ADD(change, list, n)                                                                       \
    ((void)GROW(&(change)->stand->scope->arena, (change)->list, (change)->count[n],                \
                (change)->capacity[n]),                                                            \
     &(change)->list[(change)->count[n]++])

/* Take the turn, through any handle. */
static inline struct change change_by(struct stand *s, struct store *store)
{
    struct change change = { .stand = s, .store = store };

    EXPECT_OK(store_begin(store, s->scope, &change.tip));
    return change;
}

static inline struct change change_begin(struct stand *s)
{
    return change_by(s, s->store);
}

static inline struct record *add_record(struct change *c, uint64_t instance, uint64_t seq, int what)
{
    struct record *record = ADD(c, records, 0);

    *record =
        (struct record){ .pos = ++c->tip.pos, .instance = instance, .seq = seq, .what = what };
    record->at_ms = record->fired_at_ms = T0 + (int64_t)record->pos;
    memset(record->hash, (int)record->pos & 0xFF, SHA_SIZE);
    return record;
}

static inline void hash_text(str text, uint8_t out[SHA_SIZE])
{
    struct sha *sha = sha_new(&heap_libc);

    EXPECT(sha);
    sha_once(sha, text, out);
    sha_free(sha);
}

/* SHA-256(salt || bytes), as the format has it. */
static inline void commit_to(struct value *value)
{
    struct sha *sha = sha_new(&heap_libc);

    EXPECT(sha);
    sha_begin(sha);
    sha_add(sha, value->salt, SALT_SIZE);
    sha_add(sha, value->bytes.data, value->bytes.size);
    sha_end(sha, value->commitment);
    sha_free(sha);
}

static inline struct value *add_value(struct change *c, str bytes, bool interned)
{
    struct value *value = ADD(c, values, 1);

    *value = (struct value){ .id = ++c->tip.last_value, .bytes = bytes, .interned = interned };
    memset(value->salt, ~(int)value->id & 0xFF, SALT_SIZE);
    commit_to(value);
    return value;
}

/* The one machine of these tests; its transitions: 0 pay, 1 ship, 2 drop, 3 burn. */
enum { NEW, PAID, SHIPPED, DROPPED, BURNT };
#define COMPILED                                                                                   \
    "{\"compiler\":3,\"kind\":\"machine\",\"states\":[{\"name\":\"new\"},{\"name\":\"paid\"},"     \
    "{\"name\":\"shipped\",\"terminal\":\"success\"},{\"name\":\"dropped\",\"terminal\":"          \
    "\"cancel\"},{\"name\":\"burnt\",\"terminal\":\"failure\"}],\"initial\":0,\"transitions\":["   \
    "{\"from\":0,\"action\":\"pay\",\"to\":1},{\"from\":1,\"action\":\"ship\",\"to\":2},"          \
    "{\"from\":0,\"action\":\"drop\",\"to\":3},{\"from\":0,\"action\":\"burn\",\"to\":4}]}"

static inline struct definition_row *add_definition(struct change *c, str name, uint32_t version,
                                                    str source)
{
    struct definition_row *row = ADD(c, definitions, 2);

    *row = (struct definition_row){ .id = ++c->tip.last_definition, .name = name };
    row->version = version;
    row->kind = KIND_MACHINE;
    row->source = source;
    row->compiled = STR(COMPILED);
    row->created_at_ms = T0;
    hash_text(row->source, row->source_sha);
    hash_text(row->compiled, row->compiled_sha);
    return row;
}

static inline void add_head(struct change *c, uint64_t instance, uint64_t seq, uint64_t pos,
                            uint32_t state)
{
    *ADD(c, heads, 4) = (struct head_row){ instance, seq, pos, state };
}

/* An instance of a definition, its create record and, unless rows lag, its head. */
static inline struct instance_row *add_instance(struct change *c, uint32_t definition)
{
    struct instance_row *row = ADD(c, instances, 3);
    struct record *record = add_record(c, ++c->tip.last_instance, 0, CONTROL_CREATE);

    *row = (struct instance_row){ .number = record->instance, .definition = definition };
    row->instantiated_at_ms = record->fired_at_ms;
    row->created_pos = record->pos;
    memset(row->random, (int)row->number & 0xFF, ID_RANDOM_SIZE);
    if (!c->lag)
        add_head(c, row->number, 0, record->pos, NEW);
    return row;
}

/* A fired transition; `to` is where it leads. */
static inline struct record *add_entry(struct change *c, uint64_t instance, uint64_t seq, int what,
                                       uint32_t to)
{
    struct record *record = add_record(c, instance, seq, what);

    if (!c->lag)
        add_head(c, instance, seq, record->pos, to);
    return record;
}

static inline void add_live(struct change *c, struct live_change change)
{
    *ADD(c, live, 5) = change;
}

static inline void add_snapshot(struct change *c, uint64_t instance, uint64_t seq, str text)
{
    *ADD(c, snapshots, 6) = (struct snapshot_row){ instance, seq, text };
}

static inline void add_key(struct change *c, uint8_t id, const struct record *record)
{
    struct key_row *row = ADD(c, keys, 7);

    *row = (struct key_row){ .at_ms = record->at_ms, .pos = record->pos };
    memset(row->id, id, KEY_ID_SIZE);
}

static inline void add_step(struct change *c, uint64_t instance, uint32_t ordinal,
                            enum step_status status)
{
    add_live(c, (struct live_change){ .kind = LIVE_STEP_PUT,
                                      .instance = instance,
                                      .ordinal = ordinal,
                                      .step.plan = ordinal * 2,
                                      .step.attempt = 3,
                                      .step.status = status });
}

static inline pawl_status change_commit(struct change *c)
{
    struct commit commit = { .records = c->records,
                             .record_count = c->count[0],
                             .values = c->values,
                             .value_count = c->count[1],
                             .definitions = c->definitions,
                             .definition_count = c->count[2],
                             .instances = c->instances,
                             .instance_count = c->count[3],
                             .heads = c->heads,
                             .head_count = c->count[4],
                             .live = c->live,
                             .live_count = c->count[5],
                             .snapshots = c->snapshots,
                             .snapshot_count = c->count[6],
                             .keys = c->keys,
                             .key_count = c->count[7],
                             .keys_before_ms = c->keys_before_ms,
                             .flushed = c->lag ? 0 : c->tip.pos,
                             .standing = &c->standing,
                             .standing_count = c->standing.is_put };

    if (c->count[0] > 0) {
        struct record *last = &c->records[c->count[0] - 1];

        last->has_root = true;
        memset(last->root, ~(int)last->pos & 0xFF, SHA_SIZE);
    }
    return store_commit(c->store, c->stand->scope, &commit);
}

/* Put the machine as "order" version 1, and `count` instances of it: numbers 1.. */
static inline void put_orders(struct stand *s, uint32_t count)
{
    struct change c = change_begin(s);
    uint32_t id = add_definition(&c, STR("order"), 1, STR("name: order\n"))->id;

    for (uint32_t i = 0; i < count; i++)
        add_instance(&c, id);
    EXPECT_OK(change_commit(&c));
}

static inline bool same_bytes(str a, str b)
{
    return !a.data == !b.data && str_eq(a, b);
}

static inline struct store_tip tip_of(struct stand *s)
{
    struct store_tip tip;

    EXPECT_OK(store_tip(s->store, s->scope, &tip));
    return tip;
}

#endif
