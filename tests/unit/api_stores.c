/* api_stores.c - stores beside the first (D1): made, listed and opened from C, closed when they
 * rest and opened again before something falls due. */
#include "api/stores_int.h"
#include "lib/test.h"
#include <poll.h>
#include <sqlite3.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define LATER_MS (STORE_REST_MS + 1)

static const char wait_for_it[] =
    "name: wait\nstates: [open, shut]\ninitial_state: open\nterminal_states: [shut]\n"
    "terminal_kinds: {shut: success}\n"
    "transitions: [{from_state: open, action: end, to_state: shut}]\n"
    "deadlines: [{state: open, after: %s, action: end}]\n";

static pawl *p;
static pawl_error error;

static void begin(const char *url, const pawl_options *options)
{
    char folder[TEST_FOLDER_SIZE];

    test_folder(folder);
    EXPECT(chdir(folder) == 0);
    EXPECT_OK(pawl_open(&p, url, options, &error));
}

static pawl_status put(const char *name)
{
    char input[300], *answer = NULL;
    pawl_status status;

    snprintf(input, sizeof input, "{\"store\":\"%s\"}", name);
    status = pawl_call(p, "store.put", input, &answer, &error);
    pawl_free(p, answer);
    return status;
}

static void expect_list(const char *wanted)
{
    char *answer = NULL;

    EXPECT_OK(pawl_call(p, "store.list", NULL, &answer, &error));
    EXPECT_TEXT(answer, wanted);
    pawl_free(p, answer);
}

static void expect_independent(void)
{
    pawl *a, *b, *again;
    char text[400];
    pawl_id id;
    const char *state;

    EXPECT_OK(put("b"));
    EXPECT_OK(put("a"));
    EXPECT_OK(put("a"));
    expect_list("{\"stores\":[\"default\",\"a\",\"b\"]}");
    EXPECT_OK(pawl_store(p, "a", &a, &error));
    EXPECT_OK(pawl_store(p, "b", &b, &error));
    EXPECT_OK(pawl_store(a, "b", &again, &error));
    EXPECT(a != b && b == again && a != p);
    EXPECT_OK(pawl_store(a, "default", &again, &error));
    EXPECT(again == p);
    snprintf(text, sizeof text, wait_for_it, "1h");
    EXPECT_OK(pawl_define(a, text, strlen(text), NULL, &error));
    EXPECT_OK(pawl_create(a, &(pawl_create_args){ .definition = "wait" }, &id, &error));
    EXPECT_EQ(pawl_create(b, &(pawl_create_args){ .definition = "wait" }, &id, &error),
              PAWL_NOT_KNOWN);
    EXPECT_OK(pawl_current(a, id.text, &state, &error));
    EXPECT_EQ(pawl_current(p, id.text, &state, &error), PAWL_NOT_KNOWN);
    EXPECT_EQ(pawl_store(p, "none", &again, &error), PAWL_NOT_KNOWN);
    pawl_close(a); /* is the first one's to close */
    EXPECT_OK(pawl_current(a, id.text, &state, &error));
}

TEST(stores, of_a_file_share_nothing_and_survive_it)
{
    begin("sqlite:first.db", NULL);
    expect_independent();
    pawl_close(p);
    EXPECT(access("first.db-stores/a.db", F_OK) == 0);
    EXPECT_OK(pawl_open(&p, "sqlite:first.db", NULL, &error));
    expect_list("{\"stores\":[\"default\",\"a\",\"b\"]}");
    pawl_close(p);
}

TEST(stores, in_memory_share_nothing_and_go_with_the_first)
{
    begin("memory:", NULL);
    expect_independent();
    pawl_close(p);
    EXPECT_OK(pawl_open(&p, "memory:", NULL, &error));
    expect_list("{\"stores\":[\"default\"]}");
    pawl_close(p);
}

TEST(stores, have_names_that_cannot_lead_elsewhere)
{
    static const char *const bad[] = { "", ".", "..", ".a", "-a", "a/b", "../a", "a\\\\b", "a b" };
    pawl *out;

    begin("sqlite:first.db", NULL);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        EXPECT_EQ(put(bad[i]), PAWL_INVALID_REQUEST);
        EXPECT_EQ(pawl_store(p, bad[i], &out, &error), PAWL_NOT_KNOWN);
    }
    EXPECT_OK(put("default"));
    EXPECT(access("first.db-stores", F_OK) != 0);
    pawl_close(p);
}

/* ---- Resting ---- */

static void open_with_workers(void)
{
    begin("sqlite:first.db", &(pawl_options){ .own = true, .workers = 1 });
    EXPECT_OK(put("a"));
}

static void wait_for_rest(struct test *t)
{
    int64_t due_in_ms;
    pawl *a;

    EXPECT_OK(store_enter(p, &t->scope, STR("a"), &a));
    while (!engine_is_at_rest(a->engine, &due_in_ms))
        poll(NULL, 0, 1);
    store_leave(a);
}

static void rest(int64_t after_ms)
{
    guard_lock(&p->stores->lock);
    stores_close_resting(p, stores_tick_ms(p) + after_ms, STORE_REST_MS);
    guard_unlock(&p->stores->lock);
}

static pawl_id define_in(struct test *t, const char *after)
{
    char text[400];
    pawl_id id;
    pawl *a;

    snprintf(text, sizeof text, wait_for_it, after);
    EXPECT_OK(store_enter(p, &t->scope, STR("a"), &a));
    EXPECT_OK(pawl_define(a, text, strlen(text), NULL, &error));
    EXPECT_OK(pawl_create(a, &(pawl_create_args){ .definition = "wait" }, &id, &error));
    store_leave(a);
    return id;
}

TEST(stores, are_closed_when_they_rest_and_opened_when_they_are_used)
{
    pawl *a;

    open_with_workers();
    EXPECT_EQ(stores_open_count(p), 1);
    wait_for_rest(t);
    rest(0);
    EXPECT_EQ(stores_open_count(p), 1); /* not yet */
    EXPECT_OK(store_enter(p, &t->scope, STR("a"), &a));
    rest(LATER_MS);
    EXPECT_EQ(stores_open_count(p), 1); /* somebody uses it */
    store_leave(a);
    rest(LATER_MS);
    EXPECT_EQ(stores_open_count(p), 0);
    EXPECT(!store_enter_open(p, STR("a")));
    EXPECT_OK(store_enter(p, &t->scope, STR("a"), &a));
    EXPECT(store_enter_open(p, STR("a")) == a);
    EXPECT_EQ(stores_open_count(p), 1);
    pawl_close(p);
}

TEST(stores, whose_file_is_gone_are_not_known_and_no_path_is_told)
{
    pawl *a;

    open_with_workers();
    wait_for_rest(t);
    rest(LATER_MS);
    EXPECT_EQ(unlink("first.db-stores/a.db"), 0);
    EXPECT_EQ(store_enter(p, &t->scope, STR("a"), &a), PAWL_NOT_KNOWN);
    EXPECT_TEXT(t->scope.error.message, "no store 'a'; make it: PUT /v1/stores/a");
    pawl_close(p);
}

TEST(stores, with_something_due_soon_stay_open)
{
    open_with_workers();
    define_in(t, "30s");
    wait_for_rest(t);
    rest(LATER_MS);
    EXPECT_EQ(stores_open_count(p), 1);
    pawl_close(p);
}

TEST(stores, with_something_due_later_are_opened_in_time)
{
    struct member *member;

    open_with_workers();
    define_in(t, "10m");
    wait_for_rest(t);
    rest(LATER_MS);
    EXPECT_EQ(stores_open_count(p), 0);
    stores_tend(p);
    EXPECT_EQ(stores_open_count(p), 0);
    guard_lock(&p->stores->lock);
    member = member_find(p->stores, STR("a"));
    guard_unlock(&p->stores->lock);
    EXPECT(member->due_at_ms > stores_tick_ms(p) + 9 * 60000);
    EXPECT(member->due_at_ms < stores_tick_ms(p) + 11 * 60000);
    member->due_at_ms = stores_tick_ms(p); /* as if the time had passed */
    stores_tend(p);
    EXPECT(member->p || member->due_at_ms < STORE_NEVER); /* looked at: open, or asleep again */
    pawl_close(p);
}

TEST(stores, are_looked_at_when_the_first_is_opened)
{
    open_with_workers();
    define_in(t, "10ms");
    pawl_close(p);
    EXPECT_OK(
        pawl_open(&p, "sqlite:first.db", &(pawl_options){ .own = true, .workers = 1 }, &error));
    EXPECT_EQ(stores_open_count(p), 0);
    EXPECT_OK(stores_wake(p, &t->scope));
    stores_tend(p);
    EXPECT_EQ(stores_open_count(p), 1);
    pawl_close(p);
}

/* ---- Resting while the wall clock is set ---- */

#define BEGUN_AT INT64_C(1777593600000) /* 2026-05-01T00:00:00Z */
#define MINUTE   INT64_C(60000)
#define DAY      (24 * 60 * MINUTE)

static struct env *world;

static void open_in_a_box(void)
{
    char folder[TEST_FOLDER_SIZE];

    test_folder(folder);
    EXPECT(chdir(folder) == 0);
    world = env_sim_new(BEGUN_AT, 3);
    EXPECT_OK(pawl_open_env(&p, "sqlite:first.db", &(pawl_options){ .own = true }, world, &error));
    EXPECT_OK(put("a"));
}

static const char *state_of(struct test *t, const pawl_id *id)
{
    const char *state;
    pawl *a;

    EXPECT_OK(store_enter(p, &t->scope, STR("a"), &a));
    EXPECT_OK(pawl_run_due(a, &error));
    EXPECT_OK(pawl_current(a, id->text, &state, &error));
    store_leave(a);
    return state;
}

static void rest_in_a_box(struct test *t)
{
    int64_t due_in_ms;
    pawl *a;

    EXPECT_OK(store_enter(p, &t->scope, STR("a"), &a));
    while (!engine_is_at_rest(a->engine, &due_in_ms)) {
        env_sim_advance(world, 100);
        EXPECT_OK(pawl_run_due(a, &error));
    }
    store_leave(a);
    rest(LATER_MS);
    EXPECT_EQ(stores_open_count(p), 0);
}

/* A timer of ten minutes takes ten minutes, even if the wall clock is set while its store is
 * closed. */
static void expect_ten_minutes(struct test *t, int64_t jump_ms)
{
    pawl_id id = define_in(t, "10m");

    rest_in_a_box(t);
    env_sim_advance(world, 5 * MINUTE);
    env_sim_set_wall(world, world->now_ms(world) + jump_ms);
    EXPECT_TEXT(state_of(t, &id), "open");
    rest_in_a_box(t);
    env_sim_advance(world, 4 * MINUTE);
    EXPECT_TEXT(state_of(t, &id), "open");
    env_sim_advance(world, MINUTE);
    EXPECT_TEXT(state_of(t, &id), "shut");
}

TEST(stores, that_are_closed_keep_their_durations_while_the_wall_clock_is_set)
{
    open_in_a_box();
    expect_ten_minutes(t, DAY);
    expect_ten_minutes(t, -2 * DAY);
    pawl_close(p);
}

static const char until[] = "name: until\n"
                            "do: [{name: noon, wait: {until: '2026-05-01T12:00:00Z'}}]\n";

TEST(stores, that_wait_for_a_time_of_day_are_opened_when_the_wall_clock_is_set)
{
    pawl_id id;
    pawl *a;

    open_in_a_box();
    EXPECT_OK(store_enter(p, &t->scope, STR("a"), &a));
    EXPECT_OK(pawl_define(a, until, strlen(until), NULL, &error));
    EXPECT_OK(pawl_create(a, &(pawl_create_args){ .definition = "until" }, &id, &error));
    store_leave(a);
    rest_in_a_box(t);
    stores_tend(p);
    EXPECT_EQ(stores_open_count(p), 0);
    env_sim_set_wall(world, BEGUN_AT + DAY);
    stores_tend(p);
    EXPECT_EQ(stores_open_count(p), 1);
    EXPECT_TEXT(state_of(t, &id), "completed");
    pawl_close(p);
}

/* ---- Memory of stores that were closed ---- */

#define ROUNDS 4
#define MANY   24

static _Atomic int64_t live_bytes;

static void *count_bytes(void *context, void *block, size_t old_size, size_t new_size)
{
    (void)context;
    atomic_fetch_add(&live_bytes, (int64_t)new_size - (int64_t)old_size);
    if (new_size > 0)
        return realloc(block, new_size);
    free(block);
    return NULL;
}

static long resident_pages(void)
{
    FILE *file = fopen("/proc/self/statm", "r");
    long size = 0, resident = 0;

    EXPECT(file && fscanf(file, "%ld %ld", &size, &resident) == 2);
    fclose(file);
    return resident;
}

static void use_and_close(struct test *t)
{
    int64_t due_in_ms;
    char name[16];
    pawl *one;

    for (int i = 0; i < MANY; i++) {
        snprintf(name, sizeof name, "s%d", i);
        EXPECT_OK(put(name));
        EXPECT_OK(store_enter(p, &t->scope, str_of(name), &one));
        while (!engine_is_at_rest(one->engine, &due_in_ms))
            poll(NULL, 0, 1);
        store_leave(one);
    }
    EXPECT_EQ(stores_open_count(p), MANY);
    rest(LATER_MS);
    EXPECT_EQ(stores_open_count(p), 0);
}

TEST(stores, that_were_closed_release_their_memory)
{
    int64_t ours[ROUNDS], sqlites[ROUNDS];
    long pages[ROUNDS], first;

    begin("sqlite:first.db",
          &(pawl_options){ .own = true, .workers = 1, .resize = count_bytes });
    first = resident_pages();
    for (int i = 0; i < ROUNDS; i++) {
        use_and_close(t);
        ours[i] = live_bytes;
        sqlites[i] = sqlite3_memory_used();
        pages[i] = resident_pages();
    }
    EXPECT_EQ(ours[ROUNDS - 1], ours[0]); /* only the names of stores stay */
    EXPECT(sqlites[ROUNDS - 1] <= sqlites[0] + 4096);
    if (!test_is_sanitized())                     /* it keeps freed memory */
        EXPECT(pages[ROUNDS - 1] < first + 1536); /* 6 MiB, of the 20 or more that they had */
    printf("# resident with none open, in pages: %ld, then %ld %ld %ld %ld\n", first, pages[0],
           pages[1], pages[2], pages[3]);
    pawl_close(p);
    EXPECT_EQ(live_bytes, 0);
}
