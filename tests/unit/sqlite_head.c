/* sqlite_head.c - FILE-head, the sidecar that remembers a recent root: who reads and writes it at
 * once, and which store it belongs to. What a store that went back reports is tested in
 * tests/http/run_storage.py. */
#include "base/limits.h"
#include "store/contract.h"
#include <pthread.h>
#include <stdatomic.h>

#define HEAD_TEST(test_name)                                                                       \
    static void body_##test_name(struct stand *s);                                                 \
    TEST(sqlite_head, test_name)                                                                   \
    {                                                                                              \
        stand_run(t, "sqlite", body_##test_name);                                                  \
    }                                                                                              \
    static void body_##test_name(struct stand *s)

/* One commit that FILE-head remembers at once: enough time has passed since the last. */
static void write_one(struct stand *s)
{
    struct change c = change_begin(s);

    env_sim_advance(s->env, 1000);
    add_record(&c, 0, 0, CONTROL_KEYED);
    EXPECT_OK(change_commit(&c));
    scope_clear(s->scope);
}

static enum witness_verdict ask(struct store *store)
{
    struct head_witness witness = { .verdict = WITNESS_UNREADABLE };
    struct scope scope;

    scope_init(&scope, &heap_libc, LIMIT_SCOPE);
    EXPECT_OK(store_witness(store, &scope, STR_NONE, &witness));
    scope_fini(&scope);
    return witness.verdict;
}

/* ---- Reading it while it is written ---- */

struct asker {
    struct store *store;
    atomic_bool is_over;
    uint32_t asked, against;
};

static void *ask_on(void *context)
{
    struct asker *asker = context;

    for (; !atomic_load(&asker->is_over); asker->asked++)
        asker->against += ask(asker->store) != WITNESS_AGREES;
    return NULL;
}

HEAD_TEST(a_thread_that_verifies_and_the_thread_that_commits_use_the_head_at_once)
{
    struct asker asker = { .store = s->store };
    pthread_t thread;

    write_one(s);
    EXPECT_EQ(ask(s->store), WITNESS_AGREES);
    EXPECT(pthread_create(&thread, NULL, ask_on, &asker) == 0);
    for (int i = 0; i < 500; i++)
        write_one(s);
    atomic_store(&asker.is_over, true);
    EXPECT(pthread_join(thread, NULL) == 0);
    EXPECT(asker.asked > 0);
    EXPECT_EQ(asker.against, 0);
}

/* ---- A new store where another one was ---- */

static const char *file_of(struct stand *s, const char *name)
{
    static char path[192];

    (void)snprintf(path, sizeof path, "%s/%s", s->dir, name);
    return path;
}

static bool has_file(struct stand *s, const char *name)
{
    return access(file_of(s, name), F_OK) == 0;
}

/* The store's file is deleted and made again; its FILE-head was left. */
static void replace_store(struct stand *s)
{
    store_close(s->store);
    EXPECT(unlink(file_of(s, "store.db")) == 0);
    EXPECT(has_file(s, "store.db-head"));
    EXPECT_OK(stand_open(s, (struct store_options){ .create = true }, &s->store));
}

HEAD_TEST(a_new_store_sets_aside_the_head_of_the_store_that_was_there_and_has_one_of_its_own)
{
    char aside[64], words[512];
    struct head_witness witness;

    write_one(s);
    write_one(s);
    replace_store(s);
    EXPECT_OK(store_witness(s->store, s->scope, STR_NONE, &witness));
    EXPECT_EQ(witness.verdict, WITNESS_SET_ASIDE);
    EXPECT(!witness_is_against(&witness));
    EXPECT_EQ(witness.pos, 2);
    witness_words(&witness, words, sizeof words);
    (void)snprintf(aside, sizeof aside, "store.db-head-%s", witness.other);
    EXPECT_EQ(strlen(witness.other), 2 * STORE_ID_SIZE);
    EXPECT_HAS(words, aside + strlen("store.db-"));
    EXPECT(has_file(s, aside));
    EXPECT(!has_file(s, "store.db-head"));
    write_one(s);
    EXPECT_EQ(ask(s->store), WITNESS_AGREES);
    stand_reopen(s);
    EXPECT_EQ(ask(s->store), WITNESS_AGREES);
}

HEAD_TEST(a_new_store_sets_aside_a_head_that_cannot_be_read)
{
    write_one(s);
    EXPECT(truncate(file_of(s, "store.db-head"), 100) == 0);
    replace_store(s);
    EXPECT_EQ(ask(s->store), WITNESS_SET_ASIDE);
    EXPECT(has_file(s, "store.db-head-unreadable"));
    write_one(s);
    EXPECT_EQ(ask(s->store), WITNESS_AGREES);
}
