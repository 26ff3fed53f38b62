/* engine_fixture.h - a store in a folder of its own, in a world whose clock the test moves. */
#ifndef PAWL_TESTS_ENGINE_FIXTURE_H
#define PAWL_TESTS_ENGINE_FIXTURE_H

#include "api/api.h"
#include "evidence/evidence.h"
#include "lib/postgres.h"
#include "lib/test.h"

#define NOON INT64_C(1777636800000) /* 2026-05-01T12:00:00Z */

struct world {
    char folder[64], url[TEST_POSTGRES_URL];
    struct env *env;  /* of the present pawl */
    pawl *p;
    pawl_error error;
    pawl_options options;
    int64_t now_ms;
};

void world_begin(struct world *world, const char *backend); /* "sqlite", "memory", "postgres" */
void world_open(struct world *world);   /* again, after world_close(): a restart */
void world_close(struct world *world);
void world_end(struct world *world);    /* and remove the folder */
void world_advance(struct world *world, int64_t by_ms); /* the simulated clock; then run what is due */

void world_define(struct world *world, const char *text);
const char *world_create(struct world *world, const char *definition, const char *input);
pawl_status world_fire(struct world *world, const char *id, const char *action);
void world_expect_state(struct world *world, const char *id, const char *state);
/* Actions of the history, "start step.start ..."; in a static buffer. */
const char *world_actions(struct world *world, const char *id);
void world_expect_valid(struct world *world);

/* The code type of the tests: counts ticks of a timer until told to stop. */
extern const pawl_code_type ticker_type;

#define ORDER                                                                                      \
    "name: order\nstates: [new, paid, shipped, dropped]\ninitial_state: new\n"                     \
    "terminal_states: [shipped, dropped]\n"                                                        \
    "terminal_kinds: {shipped: success, dropped: cancel}\ntransitions:\n"                          \
    "  - {from_state: new, action: pay, to_state: paid}\n"                                         \
    "  - {from_state: new, action: drop, to_state: dropped}\n"                                     \
    "  - {from_state: paid, action: note, to_state: paid}\n"                                       \
    "  - {from_state: paid, action: ship, to_state: shipped, guard: checked}\n"

#define WORLD_TEST(suite, name)                                                                    \
    static void suite##_##name##_on(struct test *t, struct world *world);                          \
    TEST_OVER("memory", suite##_memory, name)                                                      \
    {                                                                                              \
        struct world world;                                                                        \
        world_begin(&world, "memory");                                                             \
        suite##_##name##_on(t, &world);                                                            \
        world_end(&world);                                                                         \
    }                                                                                              \
    TEST_OVER("sqlite", suite##_sqlite, name)                                                      \
    {                                                                                              \
        struct world world;                                                                        \
        world_begin(&world, "sqlite");                                                             \
        suite##_##name##_on(t, &world);                                                            \
        world_end(&world);                                                                         \
    }                                                                                              \
    TEST_OVER("postgres", suite##_postgres, name)                                                  \
    {                                                                                              \
        struct world world;                                                                        \
        world_begin(&world, "postgres");                                                           \
        suite##_##name##_on(t, &world);                                                            \
        world_end(&world);                                                                         \
    }                                                                                              \
    static void suite##_##name##_on(__attribute__((unused)) struct test *t, struct world *world)

#endif
