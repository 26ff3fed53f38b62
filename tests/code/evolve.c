/* evolve.c - code that changed under an instance that waits: what can be held goes on, what cannot is
 * refused by name, and nothing is lost (E1, E2, E18). */
#include "lib/test.h"
#include <pawl_code.h>
#include <pawl_test.h>
#include <sqlite3.h>
#include <unistd.h>

#define FIRST(has)                                                                                 \
    has(var, int32_t, count, 1)                                                                    \
    has(timer, Tick)                                                                               \
    has(signal, Go, int32_t)                                                                       \
    has(signal, Stop)                                                                              \
    has(result, int32_t, count)                                                                    \
    has(await, waiting)

PAWL_CODE_AS(first, "evolving", FIRST)
{
    PAWL_BEGIN(FIRST);
    for (;;) {
        PAWL_SELECT(waiting) {
            PAWL_ON_SIGNAL(Go) self->count += got->Go;
            PAWL_ON_SIGNAL(Stop) break;
            PAWL_ON_TIMER(Tick, PAWL_DAYS(1)) break;
        } PAWL_AWAIT;
    }
    result->count = self->count;
    PAWL_END;
}

/* Code above the await, a variable more, another order: nobody is disturbed. */
#define GROWN(has)                                                                                 \
    has(timer, Warm)                                                                               \
    has(timer, Tick)                                                                               \
    has(signal, Stop)                                                                              \
    has(signal, Go, int32_t)                                                                       \
    has(var, int32_t, bonus, 100)                                                                  \
    has(var, int32_t, count, 1)                                                                    \
    has(result, int32_t, count)                                                                    \
    has(await, warming)                                                                            \
    has(await, waiting)

PAWL_CODE_AS(grown, "evolving", GROWN)
{
    PAWL_BEGIN(GROWN);
    PAWL_TIMER(warming, Warm, PAWL_SECS(9));
    for (;;) {
        PAWL_SELECT(waiting) {
            PAWL_ON_TIMER(Tick, PAWL_DAYS(1)) break;
            PAWL_ON_SIGNAL(Stop) break;
            PAWL_ON_SIGNAL(Go) self->count += got->Go + self->bonus;
        } PAWL_AWAIT;
    }
    result->count = self->count;
    PAWL_END;
}

#define RENAMED(has) has(var, int32_t, count) has(signal, Go, int32_t) has(await, resting)
PAWL_CODE_AS(renamed, "evolving", RENAMED)
{
    PAWL_BEGIN(RENAMED);
    PAWL_SIGNAL(resting, Go);
    PAWL_END;
}

#define RETYPED(has) has(var, text, count, 8) has(signal, Go, int32_t) has(await, waiting)
PAWL_CODE_AS(retyped, "evolving", RETYPED)
{
    PAWL_BEGIN(RETYPED);
    PAWL_SIGNAL(waiting, Go);
    PAWL_END;
}

#define ARMLESS(has) has(var, int32_t, count) has(signal, Stop) has(await, waiting)
PAWL_CODE_AS(armless, "evolving", ARMLESS)
{
    PAWL_BEGIN(ARMLESS);
    PAWL_SIGNAL(waiting, Stop);
    PAWL_END;
}

static const char *bring_over(void *context, uint32_t from, const char *stored, void *state);

#define MOVED(has)                                                                                 \
    has(version, 2)                                                                                \
    has(migrate, bring_over)                                                                       \
    has(var, text, count, 8)                                                                       \
    has(signal, Go, int32_t)                                                                       \
    has(result, text, count, 8)                                                                    \
    has(await, resting)

PAWL_CODE_AS(moved, "evolving", MOVED)
{
    PAWL_BEGIN(MOVED);
    for (;;) {
        PAWL_SIGNAL(resting, Go);
        if (got->Go == 0)
            break;
    }
    memcpy(result->count, self->count, sizeof result->count);
    PAWL_END;
}

static const char *bring_over(void *context, uint32_t from, const char *stored, void *state)
{
    struct moved *self = state;

    (void)context;
    EXPECT_EQ(from, 1);
    snprintf(self->count, sizeof self->count, "n=%d", atoi(strstr(stored, "\"count\":") + 8));
    return "resting";
}

struct era {
    pawl_kit kit;
    char folder[TEST_FOLDER_SIZE], url[96];
};

/* A new build of the program opens the same store. */
static void build(struct era *era, const pawl_code_type *type)
{
    if (era->kit.p)
        pawl_kit_close(&era->kit);
    pawl_kit_open(&era->kit, era->url);
    pawl_kit_register(&era->kit, type);
}

static const char *begin(struct era *era, char id[27])
{
    memset(era, 0, sizeof *era);
    test_folder(era->folder);
    snprintf(era->url, sizeof era->url, "sqlite:%s/e.db", era->folder);
    build(era, first());
    memcpy(id, pawl_kit_start(&era->kit, "evolving", NULL), 27);
    PAWL_EXPECT_OK(&era->kit, pawl_kit_signal(&era->kit, id, "go", "4"));
    return id;
}

static void end(struct era *era)
{
    char *out, command[96];

    PAWL_EXPECT_OK(&era->kit, pawl_call(era->kit.p, "store.verify", NULL, &out, &era->kit.error));
    EXPECT_HAS(out, "\"valid\":true");
    pawl_free(era->kit.p, out);
    pawl_kit_close(&era->kit);
    snprintf(command, sizeof command, "rm -r %s", era->folder);
    EXPECT(system(command) == 0);
}

TEST(evolve, code_above_an_await_and_new_variables_disturb_nobody)
{
    struct era era;
    char id[27];

    begin(&era, id);
    build(&era, grown());
    PAWL_EXPECT_OK(&era.kit, pawl_kit_signal(&era.kit, id, "go", "5"));
    PAWL_EXPECT_VARIABLE(&era.kit, id, "count", "110"); /* 1 + 4, then 5 and the default bonus */
    PAWL_EXPECT_OK(&era.kit, pawl_kit_signal(&era.kit, id, "stop", NULL));
    PAWL_EXPECT_RESULT(&era.kit, id, "{\"count\":110}");
    end(&era);
}

TEST(evolve, what_a_build_cannot_hold_is_refused_by_name_and_kept)
{
    const struct {
        const pawl_code_type *type;
        const char *words;
    } rows[] = { { renamed(), "waits at 'waiting', and code type 'evolving' in this program has no" },
                 { retyped(), "variable 'count' is text of 8 bytes, found a number" },
                 { armless(), "has no arm for 'go' at 'waiting'" } };
    struct era era;
    char id[27];

    begin(&era, id);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        build(&era, rows[i].type);
        PAWL_EXPECT_STATUS(&era.kit, pawl_kit_signal(&era.kit, id, "go", "1"), PAWL_NOT_KNOWN);
        EXPECT_HAS(era.kit.error.message, rows[i].words);
        pawl_kit_advance(&era.kit, PAWL_DAYS(2)); /* its timer is due, and waits too */
        PAWL_EXPECT_HISTORY(&era.kit, id, "start signal:go");
        EXPECT_HAS(pawl_kit_ask(&era.kit, "instance.why", id), "\"name\":\"go\"");
    }
    build(&era, first());
    pawl_kit_advance(&era.kit, 0);
    PAWL_EXPECT_HISTORY(&era.kit, id, "start signal:go timer:tick finish");
    PAWL_EXPECT_RESULT(&era.kit, id, "{\"count\":5}");
    end(&era);
}

TEST(evolve, migrating_is_an_entry_of_its_own_and_happens_once)
{
    struct era era;
    char id[27];

    begin(&era, id);
    build(&era, moved());
    PAWL_EXPECT_OK(&era.kit, pawl_kit_signal(&era.kit, id, "go", "1"));
    PAWL_EXPECT_VARIABLE(&era.kit, id, "count", "\"n=5\"");
    build(&era, moved());
    PAWL_EXPECT_OK(&era.kit, pawl_kit_signal(&era.kit, id, "go", "0"));
    PAWL_EXPECT_HISTORY(&era.kit, id, "start signal:go amend signal:go signal:go finish");
    PAWL_EXPECT_RESULT(&era.kit, id, "{\"count\":\"n=5\"}");
    end(&era);
}

/* ---- A long history of large states ------------------------------------------------------------ */

#define BALLAST 900000 /* bytes of each state; 80 of them are more than one unit of work may hold */
#define TURNS   80

#define HEAVY(has)                                                                                 \
    has(var, text, ballast, BALLAST, "")                                                           \
    has(var, int32_t, n)                                                                           \
    has(signal, Go)                                                                                \
    has(await, waiting)

PAWL_CODE_AS(heavy, "heavy", HEAVY)
{
    PAWL_BEGIN(HEAVY);
    memset(self->ballast, 'x', BALLAST - 1);
    for (;;) {
        PAWL_SIGNAL(waiting, Go);
        self->n++;
    }
    PAWL_END;
}

#define HEAVIER(has) has(version, 2) HEAVY(has) has(call, charge, uint32_t) has(await, charging)
PAWL_CODE_AS(heavier, "heavy", HEAVIER)
{
    PAWL_BEGIN(HEAVIER);
    for (;;) {
        PAWL_SIGNAL(waiting, Go);
        PAWL_CALL(charging, charge, "[1]");
    }
    PAWL_END;
}

static void forget_snapshots(struct era *era)
{
    sqlite3 *db;

    pawl_kit_close(&era->kit);
    EXPECT_EQ(sqlite3_open(era->url + strlen("sqlite:"), &db), SQLITE_OK);
    EXPECT_EQ(sqlite3_exec(db, "DELETE FROM pawl_snapshot", NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(db);
    memset(&era->kit, 0, sizeof era->kit);
}

TEST(evolve, code_with_a_long_history_of_large_states_is_loaded_without_a_snapshot_renewed_and_verified)
{
    struct era era;
    char id[27];

    begin(&era, id);
    build(&era, heavy());
    memcpy(id, pawl_kit_start(&era.kit, "heavy", NULL), 27);
    for (int i = 0; i < TURNS; i++)
        PAWL_EXPECT_OK(&era.kit, pawl_kit_signal(&era.kit, id, "go", NULL));
    forget_snapshots(&era);
    build(&era, heavy());
    PAWL_EXPECT_OK(&era.kit, pawl_kit_signal(&era.kit, id, "go", NULL));
    PAWL_EXPECT_VARIABLE(&era.kit, id, "n", "81");
    build(&era, heavier());
    PAWL_EXPECT_OK(&era.kit, pawl_kit_signal(&era.kit, id, "go", NULL));
    end(&era);
}
