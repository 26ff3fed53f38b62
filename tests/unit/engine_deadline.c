/* engine_deadline.c - a state that is held for too long fires an action, on every backend.
 * Numbers in parentheses are the promises of engine/engine.h. */
#include "engine_fixture.h"
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#define CLAIM                                                                                      \
    "name: claim\nstates: [open, asked, lapsed, settled]\ninitial_state: open\n"                   \
    "terminal_states: [lapsed, settled]\nterminal_kinds: {lapsed: failure, settled: success}\n"    \
    "transitions:\n"                                                                               \
    "  - {from_state: open, action: ask, to_state: asked}\n"                                       \
    "  - {from_state: open, action: lapse, to_state: lapsed}\n"                                    \
    "  - {from_state: asked, action: remind, to_state: asked}\n"                                   \
    "  - {from_state: asked, action: answer, to_state: open}\n"                                    \
    "  - {from_state: asked, action: settle, to_state: settled}\n"                                 \
    "  - {from_state: asked, action: lapse, to_state: lapsed}\n"                                   \
    "deadlines:\n"                                                                                 \
    "  - {state: open, after: 10s, action: lapse}\n"                                               \
    "  - {state: asked, after: 4s, action: remind}\n"

static const char *ask(struct world *world, const char *operation, const char *id)
{
    static char answer[1 << 14];
    char input[128], *given = NULL;

    snprintf(input, sizeof input, "{\"instance_id\":\"%s\"}", id);
    if (pawl_call(world->p, operation, input, &given, &world->error))
        test_fail(__FILE__, __LINE__, "%s: %s", operation, world->error.message);
    snprintf(answer, sizeof answer, "%s", given ? given : "");
    pawl_free(world->p, given);
    return answer;
}

WORLD_TEST(deadline, a_state_held_long_enough_fires_its_action_once_and_never_early) /* (4) */
{
    const char *id;

    world_define(world, CLAIM);
    id = world_create(world, "claim", NULL);
    world_advance(world, 9999);
    EXPECT_TEXT(world_actions(world, id), "");
    world_advance(world, 1);
    EXPECT_TEXT(world_actions(world, id), "lapse");
    EXPECT_HAS(ask(world, "instance.history", id), "\"actor_ref\":\"pawl/timer\"");
    world_advance(world, 100000);
    EXPECT_TEXT(world_actions(world, id), "lapse");
    world_expect_valid(world);
}

WORLD_TEST(deadline, leaving_the_state_disarms_it_and_coming_back_counts_anew)
{
    const char *id;

    world_define(world, CLAIM);
    id = world_create(world, "claim", NULL);
    world_advance(world, 9000);
    EXPECT_OK(world_fire(world, id, "ask"));
    world_expect_valid(world);
    world_advance(world, 2000);
    EXPECT_TEXT(world_actions(world, id), "ask");
    EXPECT_OK(world_fire(world, id, "answer"));
    world_advance(world, 9999);
    EXPECT_TEXT(world_actions(world, id), "ask answer");
    world_advance(world, 1);
    EXPECT_TEXT(world_actions(world, id), "ask answer lapse");
    world_expect_valid(world);
}

WORLD_TEST(deadline, a_self_loop_arms_it_again_whoever_fires_it)
{
    const char *id;

    world_define(world, CLAIM);
    id = world_create(world, "claim", NULL);
    EXPECT_OK(world_fire(world, id, "ask"));
    world_advance(world, 3000);
    EXPECT_OK(world_fire(world, id, "remind")); /* by hand: the 4 s begin again */
    world_advance(world, 3999);
    EXPECT_TEXT(world_actions(world, id), "ask remind");
    world_advance(world, 1);
    EXPECT_TEXT(world_actions(world, id), "ask remind remind");
    world_advance(world, 4000);
    EXPECT_TEXT(world_actions(world, id), "ask remind remind remind");
    EXPECT_OK(world_fire(world, id, "settle"));
    world_advance(world, 100000);
    EXPECT_TEXT(world_actions(world, id), "ask remind remind remind settle");
    world_expect_valid(world);
}

WORLD_TEST(deadline, it_counts_from_the_engines_clock_not_from_what_callers_say)
{
    pawl_create_args args = { .definition = "claim", .instantiated_at = "2026-05-01T11:00:00Z" };
    pawl_fired fired;
    pawl_id id;

    world_define(world, CLAIM);
    EXPECT_OK(pawl_create(world->p, &args, &id, &world->error));
    world_advance(world, 9999);
    EXPECT_TEXT(world_actions(world, id.text), "");
    EXPECT_OK(pawl_fire(world->p, id.text,
                        &(pawl_fire_args){ .action = "ask", .fired_at = "2026-05-01T11:59:57Z" },
                        &fired, &world->error));
    world_advance(world, 3999);
    EXPECT_TEXT(world_actions(world, id.text), "ask");
    world_advance(world, 1);
    EXPECT_TEXT(world_actions(world, id.text), "ask remind");
    world_expect_valid(world);
}

WORLD_TEST(deadline, it_survives_a_restart_and_fires_at_once_when_overdue)
{
    const char *early, *late;

    world_define(world, CLAIM);
    early = world_create(world, "claim", NULL);
    world_advance(world, 5000);
    late = world_create(world, "claim", NULL);
    world_close(world);
    world->now_ms += 7000;
    world_open(world);
    EXPECT_OK(pawl_run_due(world->p, &world->error));
    EXPECT_TEXT(world_actions(world, early), "lapse");
    EXPECT_TEXT(world_actions(world, late), "");
    world_advance(world, 2999);
    EXPECT_TEXT(world_actions(world, late), "");
    world_advance(world, 1);
    EXPECT_TEXT(world_actions(world, late), "lapse");
    world_expect_valid(world);
}

/* Head rows lag when the owner is killed; timers do not, and neither is believed alone. */
TEST(deadline, after_a_kill_it_fires_by_where_the_instance_really_stands)
{
    struct world world;
    char left[27], held[27];
    int status;
    pid_t child;

    world_begin(&world, "sqlite");
    world_define(&world, CLAIM);
    memcpy(left, world_create(&world, "claim", NULL), 27);
    memcpy(held, world_create(&world, "claim", NULL), 27);
    world_close(&world);
    child = fork();
    if (child == 0) {
        world_open(&world);
        if (world_fire(&world, left, "ask"))
            _exit(1);
        kill(getpid(), SIGKILL);
    }
    waitpid(child, &status, 0);
    EXPECT(WIFSIGNALED(status));
    world.now_ms += 10000;
    world_open(&world);
    EXPECT_OK(pawl_run_due(world.p, &world.error));
    EXPECT_TEXT(world_actions(&world, left), "ask remind");
    EXPECT_TEXT(world_actions(&world, held), "lapse");
    world_expect_valid(&world);
    world_end(&world);
}

WORLD_TEST(deadline, a_shared_engine_fires_it_too_and_two_of_them_fire_it_once)
{
    struct world other;
    const char *id;

    world_close(world);
    world->options.own = false;
    world_open(world);
    world_define(world, CLAIM);
    id = world_create(world, "claim", NULL);
    other = *world;
    other.env = NULL;
    other.now_ms = world->now_ms + 10000;
    world_open(&other);
    env_sim_advance(world->env, 10000);
    EXPECT_OK(pawl_run_due(other.p, &other.error));
    EXPECT_OK(pawl_run_due(world->p, &world->error));
    EXPECT_TEXT(world_actions(world, id), "lapse");
    pawl_close(other.p);
    world_expect_valid(world);
}

WORLD_TEST(deadline, why_tells_the_timer_beside_the_actions)
{
    const char *id;

    world_define(world, CLAIM);
    id = world_create(world, "claim", NULL);
    EXPECT_TEXT(ask(world, "instance.why", id),
                "{\"waiting_for\":[{\"kind\":\"action\",\"name\":\"ask\"},"
                "{\"kind\":\"action\",\"name\":\"lapse\"},{\"kind\":\"timer\",\"name\":\"lapse\","
                "\"until\":\"2026-05-01T12:00:10.000Z\"}]}");
    EXPECT_OK(world_fire(world, id, "ask"));
    EXPECT_HAS(ask(world, "instance.why", id),
               "{\"kind\":\"timer\",\"name\":\"remind\",\"until\":\"2026-05-01T12:00:04.000Z\"}]}");
    EXPECT_OK(world_fire(world, id, "settle"));
    EXPECT_HAS(ask(world, "instance.why", id),
               "{\"waiting_for\":[],\"ended\":{\"status\":\"completed\",");
}

WORLD_TEST(deadline, of_a_test_instance_fires_only_by_hand)
{
    pawl_create_args args = { .definition = "claim", .test = true };
    char input[128], *answer = NULL;
    pawl_id id;

    world_define(world, CLAIM);
    EXPECT_OK(pawl_create(world->p, &args, &id, &world->error));
    world_advance(world, 100000);
    EXPECT_TEXT(world_actions(world, id.text), "");
    snprintf(input, sizeof input, "{\"instance_id\":\"%s\",\"name\":\"remind\"}", id.text);
    EXPECT_EQ(pawl_call(world->p, "test.fire_timer", input, &answer, &world->error),
              PAWL_NOT_AWAITING);
    snprintf(input, sizeof input, "{\"instance_id\":\"%s\",\"name\":\"lapse\"}", id.text);
    EXPECT_OK(pawl_call(world->p, "test.fire_timer", input, &answer, &world->error));
    pawl_free(world->p, answer);
    EXPECT_TEXT(world_actions(world, id.text), "lapse");
    world_expect_valid(world);
}

WORLD_TEST(deadline, the_test_clock_fires_each_at_its_due_time)
{
    const char *id;
    pawl_history *history;
    pawl_entry entry;

    world_close(world);
    world->options.test_clock = true;
    world_open(world);
    world_define(world, CLAIM);
    id = world_create(world, "claim", NULL);
    EXPECT_OK(world_fire(world, id, "ask"));
    EXPECT_OK(pawl_test_advance(world->p, 9000, &world->error));
    EXPECT_TEXT(world_actions(world, id), "ask remind remind");
    EXPECT_OK(pawl_history_open(world->p, id, NULL, &history, &world->error));
    for (int64_t due_ms = NOON; pawl_history_next(history, &entry); due_ms += 4000)
        EXPECT_EQ(entry.fired_at_ms, due_ms);
    EXPECT_OK(pawl_history_close(history, &world->error));
    world_expect_valid(world);
}

WORLD_TEST(deadline, an_inline_declaration_has_deadlines_too)
{
    pawl_create_args args = {
        .declaration =
            "{\"states\":[\"a\",\"b\"],\"initial_state\":\"a\",\"terminal_states\":[\"b\"],"
            "\"transitions\":[{\"from_state\":\"a\",\"action\":\"go\",\"to_state\":\"b\"}],"
            "\"deadlines\":[{\"state\":\"a\",\"after\":\"2s\",\"action\":\"go\"}]}"
    };
    pawl_id id;

    EXPECT_OK(pawl_create(world->p, &args, &id, &world->error));
    world_advance(world, 1999);
    EXPECT_TEXT(world_actions(world, id.text), "");
    world_advance(world, 1);
    EXPECT_TEXT(world_actions(world, id.text), "go");
    world_expect_valid(world);
}

WORLD_TEST(deadline, many_that_fall_due_at_one_instant_all_fire)
{
    char ids[50][27];

    world_define(world, CLAIM);
    for (int i = 0; i < 50; i++)
        memcpy(ids[i], world_create(world, "claim", NULL), 27);
    world_advance(world, 10000);
    for (int i = 0; i < 50; i++)
        EXPECT_TEXT(world_actions(world, ids[i]), "lapse");
    world_expect_valid(world);
}

/* ---- the race between a caller and the timer ---- */

struct racer {
    pawl *p;
    const char *id;
};

static void *fire_ask(void *context)
{
    struct racer *racer = context;
    pawl_error error;
    pawl_fired fired;

    (void)pawl_fire(racer->p, racer->id, &(pawl_fire_args){ .action = "ask" }, &fired, &error);
    return NULL;
}

WORLD_TEST(deadline, of_a_caller_and_the_deadline_exactly_one_wins)
{
    world_define(world, CLAIM);
    for (int round = 0; round < 20; round++) {
        const char *id = world_create(world, "claim", NULL);
        struct racer racer = { world->p, id };
        pthread_t thread;
        const char *actions;

        env_sim_advance(world->env, 10000);
        EXPECT(pthread_create(&thread, NULL, fire_ask, &racer) == 0);
        EXPECT_OK(pawl_run_due(world->p, &world->error));
        pthread_join(thread, NULL);
        actions = world_actions(world, id);
        EXPECT(strcmp(actions, "ask") == 0 || strcmp(actions, "lapse") == 0);
    }
    world_expect_valid(world);
}
