/* engine_fixture.c - see engine_fixture.h. */
#include "engine_fixture.h"
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

void world_open(struct world *world)
{
    world->env = env_sim_new(world->now_ms, 7);
    if (pawl_open_env(&world->p, world->url, &world->options, world->env, &world->error))
        test_fail(__FILE__, __LINE__, "open: %s", world->error.message);
    EXPECT_OK(pawl_code_register(world->p, &ticker_type, &world->error));
}

void world_begin(struct world *world, const char *backend)
{
    static int number;

    *world = (struct world){ .now_ms = NOON, .options = { .own = true } };
    test_folder(world->folder);
    if (strcmp(backend, "sqlite") == 0)
        snprintf(world->url, sizeof world->url, "sqlite:%s/store.db", world->folder);
    else if (strcmp(backend, "postgres") == 0)
        test_postgres_url("world", world->url);
    else
        snprintf(world->url, sizeof world->url, "memory:engine-%d", number++);
    world_open(world);
}

void world_close(struct world *world)
{
    world->now_ms = world->env->now_ms(world->env);
    pawl_close(world->p);
    world->p = NULL;
}

void world_end(struct world *world)
{
    static const char *const files[] = { "store.db", "store.db-wal", "store.db-shm",
                                         "store.db-owner", "store.db-head" };
    char path[128];

    if (world->p)
        world_close(world);
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        snprintf(path, sizeof path, "%s/%s", world->folder, files[i]);
        unlink(path);
    }
    EXPECT(rmdir(world->folder) == 0);
}

void world_advance(struct world *world, int64_t by_ms)
{
    env_sim_advance(world->env, by_ms);
    EXPECT_OK(pawl_run_due(world->p, &world->error));
}

void world_define(struct world *world, const char *text)
{
    if (pawl_define(world->p, text, strlen(text), NULL, &world->error))
        test_fail(__FILE__, __LINE__, "define: %s", world->error.message);
}

const char *world_create(struct world *world, const char *definition, const char *input)
{
    static pawl_id ids[64];
    static int next;
    pawl_id *id = &ids[next++ % 64];

    if (pawl_create(world->p, &(pawl_create_args){ .definition = definition, .input = input }, id,
                    &world->error))
        test_fail(__FILE__, __LINE__, "create: %s", world->error.message);
    return id->text;
}

pawl_status world_fire(struct world *world, const char *id, const char *action)
{
    pawl_fired fired;

    return pawl_fire(world->p, id, &(pawl_fire_args){ .action = action }, &fired, &world->error);
}

void world_expect_state(struct world *world, const char *id, const char *state)
{
    const char *found;

    EXPECT_OK(pawl_current(world->p, id, &found, &world->error));
    EXPECT_TEXT(found, state);
}

const char *world_actions(struct world *world, const char *id)
{
    static char actions[4096];
    pawl_history *history;
    pawl_entry entry;
    size_t used = 0;

    EXPECT_OK(pawl_history_open(world->p, id, NULL, &history, &world->error));
    actions[0] = '\0';
    while (pawl_history_next(history, &entry))
        used += (size_t)snprintf(actions + used, sizeof actions - used, "%s%s", used ? " " : "",
                                 entry.action);
    EXPECT_OK(pawl_history_close(history, &world->error));
    return actions;
}

void world_expect_valid(struct world *world)
{
    struct verify_report report;

    EXPECT_OK(verify_run(engine_store(world->p->engine), &world->p->heap,
                         &(struct verify_request){ .flows = &flow_behavior }, &report,
                         &world->error));
    EXPECT_TEXT(report.what, "");
    EXPECT(report.valid);
}

/* ---- the ticker ---- */

struct ticker {
    int64_t ticks, every_ms;
};

static const pawl_var ticker_vars[] = {
    PAWL_VAR(struct ticker, ticks, PAWL_VAR_INT64),
    PAWL_VAR(struct ticker, every_ms, PAWL_VAR_INT64),
    { 0 },
};

static void ticker_handle(void *context, pawl_turn *turn, void *state, const pawl_event *event)
{
    struct ticker *ticker = state;
    char result[32];

    (void)context;
    if (event->kind == PAWL_EVENT_START)
        ticker->every_ms = 1000;
    else if (event->kind == PAWL_EVENT_TIMER)
        ticker->ticks++;
    else if (strcmp(event->name, "slower") == 0)
        ticker->every_ms *= 2;
    if (event->name && strcmp(event->name, "stop") == 0) {
        snprintf(result, sizeof result, "%lld", (long long)ticker->ticks);
        pawl_turn_complete(turn, result);
        return;
    }
    pawl_turn_timer(turn, "tick", ticker->every_ms);
    pawl_turn_signal(turn, "stop");
    pawl_turn_signal(turn, "slower");
}

static const char *const ticker_timers[] = { "tick", NULL };
static const char *const ticker_signals[] = { "stop", "slower", NULL };

const pawl_code_type ticker_type = {
    .name = "ticker",
    .timers = ticker_timers,
    .signals = ticker_signals,
    .vars = ticker_vars,
    .state_size = sizeof(struct ticker),
    .handle = ticker_handle,
};
