/* engine_claims.c - workers that claim and answer from several threads, while others create, pause
 * and cancel: each step is worked on once, and every flow ends. */
#include "engine/parts.h"
#include "engine_fixture.h"
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#define CROWD                                                                                      \
    "name: crowd\nsteps:\n  start: {tool: saw, args: {n: 1}, parallel: [left, right]}\n"           \
    "  left: {tool: saw, args: {n: 2}, join: end}\n"                                               \
    "  right: {tool: file, args: {n: 3}, join: end}\n"                                             \
    "  end: {tool: saw, args: {n: 4}, done: true}\n"

enum { WORKERS = 5, MAKERS = 2, EACH = 25, STEPS = 4 };

struct crowd {
    pawl *p;
    atomic_uint done, cancelled, refused;
    char ids[MAKERS][EACH][27];
};

struct member {
    struct crowd *crowd;
    int number;
};

static bool is_over(struct crowd *crowd)
{
    return crowd->done + crowd->cancelled == MAKERS * EACH;
}

/* The next {"step_id":"…","lease":"…"} of an answer, as part of the next turn; NULL: no more. */
static const char *next_answer(const char *at, char *out, size_t size)
{
    const char *step = strstr(at, "\"step_id\":\""),
               *lease = step ? strstr(step, "\"lease\":\"") : NULL;

    if (!lease)
        return NULL;
    snprintf(out, size, "{\"step_id\":\"%.*s\",\"lease\":\"%.32s\",\"result\":1}",
             (int)strcspn(step + 11, "\""), step + 11, lease + 9);
    return lease;
}

/* Answers to all that the last turn brought, and a claim: the whole turn. */
static void print_turn(const char *last, char *out, size_t size)
{
    const char *at = strstr(last, "\"steps\":");
    size_t used = (size_t)snprintf(out, size, "{\"steps\":[");
    char one[160];

    while (at && (at = next_answer(at, one, sizeof one)) != NULL)
        used +=
            (size_t)snprintf(out + used, size - used, "%s%s", out[used - 1] == '[' ? "" : ",", one);
    snprintf(out + used, size - used,
             "],\"claim\":{\"tools\":[\"saw\",\"file\"],\"worker\":\"w/"
             "1\",\"max\":3,\"wait\":\"20ms\"}}");
}

static void count_refused(struct crowd *crowd, const char *answer)
{
    for (; (answer = strstr(answer, "\"reason\":")) != NULL; answer++)
        crowd->refused++;
}

static void *work(void *context)
{
    struct crowd *crowd = ((struct member *)context)->crowd;
    char turn[1024], *answer = NULL;
    pawl_error error;

    while (!is_over(crowd)) {
        print_turn(answer ? answer : "", turn, sizeof turn);
        pawl_free(crowd->p, answer);
        EXPECT_OK(pawl_call(crowd->p, "step.complete_many", turn, &answer, &error));
        count_refused(crowd, answer);
    }
    pawl_free(crowd->p, answer);
    return NULL;
}

static bool has_completed(struct crowd *crowd, const char *id)
{
    const char *state;
    pawl_error error;

    EXPECT_OK(pawl_current(crowd->p, id, &state, &error));
    return strcmp(state, "completed") == 0;
}

/* Its last answer may have been under way when it was paused: then it has ended. */
static void resume(struct crowd *crowd, const char *id, const char *input)
{
    pawl_error error;
    char *out = NULL;
    pawl_status status = pawl_call(crowd->p, "instance.resume", input, &out, &error);

    EXPECT(status == PAWL_OK || (status == PAWL_TERMINAL && has_completed(crowd, id)));
    if (status == PAWL_OK)
        pawl_free(crowd->p, out);
}

static void disturb(struct crowd *crowd, const char *id, int number)
{
    pawl_error error;
    char input[64], *out;

    snprintf(input, sizeof input, "{\"instance_id\":\"%s\"}", id);
    if (number % 5 == 0 && pawl_call(crowd->p, "instance.cancel", input, &out, &error) == PAWL_OK) {
        pawl_free(crowd->p, out);
        crowd->cancelled++;
    } else if (number % 5 == 1 &&
               pawl_call(crowd->p, "instance.pause", input, &out, &error) == PAWL_OK) {
        pawl_free(crowd->p, out);
        resume(crowd, id, input);
    }
}

static void *make(void *context)
{
    struct member *member = context;
    struct crowd *crowd = member->crowd;

    for (int i = 0; i < EACH; i++) {
        pawl_error error;
        pawl_id id;

        EXPECT_OK(pawl_create(crowd->p, &(pawl_create_args){ .definition = "crowd" }, &id, &error));
        memcpy(crowd->ids[member->number][i], id.text, 27);
        disturb(crowd, id.text, i);
    }
    return NULL;
}

/* As often as it takes: those who work go on until all are done. */
static void count_done(struct crowd *crowd)
{
    while (!is_over(crowd)) {
        unsigned done = 0;
        pawl_error error;

        EXPECT_OK(pawl_run_due(crowd->p, &error)); /* where there is no thread that does */
        for (int m = 0; m < MAKERS; m++)
            for (int i = 0; i < EACH; i++)
                done += has_completed(crowd, crowd->ids[m][i]);
        crowd->done = done;
    }
}

static unsigned count_starts(struct world *world, const char *id)
{
    unsigned count = 0;

    for (const char *at = world_actions(world, id); (at = strstr(at, "step.start")) != NULL; at++)
        count++;
    return count;
}

static void run_crowd(struct world *world, unsigned workers)
{
    struct crowd crowd = { .p = NULL };
    struct member members[WORKERS + MAKERS];
    pthread_t threads[WORKERS + MAKERS];

    world_close(world);
    EXPECT_OK(pawl_open(&world->p, world->url, &(pawl_options){ .own = true, .workers = workers },
                        &world->error));
    world_define(world, CROWD);
    crowd.p = world->p;
    for (int i = 0; i < WORKERS + MAKERS; i++) {
        members[i] = (struct member){ &crowd, i };
        EXPECT(pthread_create(&threads[i], NULL, i < MAKERS ? make : work, &members[i]) == 0);
    }
    for (int i = 0; i < MAKERS; i++)
        pthread_join(threads[i], NULL);
    count_done(&crowd);
    for (int i = MAKERS; i < MAKERS + WORKERS; i++)
        pthread_join(threads[i], NULL);
    EXPECT(crowd.refused <= crowd.cancelled * 2); /* what was cancelled under somebody's hands */
    for (int m = 0; m < MAKERS; m++)
        for (int i = 0; i < EACH; i++)
            if (has_completed(&crowd, crowd.ids[m][i]))
                EXPECT_EQ(count_starts(world, crowd.ids[m][i]), STEPS);
    world_expect_valid(world);
    pawl_close(world->p);
    world->p = NULL;
}

WORLD_TEST(claims, of_workers_that_wait_one_gets_each_step_and_once) /* B30, B31 */
{
    run_crowd(world, 2);
}

WORLD_TEST(claims, they_do_in_a_program_without_threads_of_the_engine)
{
    run_crowd(world, 0);
}

/* ---- Waiting claims, and owners of theirs that may go ---- */

struct visitor {
    struct scope scope;
    struct waiting_claim *waiting;
    bool has_gone;
    int woken;
};

static void wake_visitor(void *context)
{
    ((struct visitor *)context)->woken++;
}

static bool visitor_is_there(void *context)
{
    return !((const struct visitor *)context)->has_gone;
}

static void come(struct world *world, struct visitor *visitor)
{
    static const str tools[] = { STR_INIT("saw") };
    struct claim_args args = {
        .tools = tools, .tool_count = 1, .worker = STR("w/1"), .max = 1, .wait_ms = 60000
    };
    struct waiter waiter = { wake_visitor, visitor_is_there, visitor };

    *visitor = (struct visitor){ .woken = 0 };
    scope_init(&visitor->scope, &heap_libc, LIMIT_SCOPE);
    EXPECT_OK(engine_claim_open(world->p->engine, &visitor->scope, &args, &waiter, NULL,
                                &visitor->waiting));
    engine_claim_offer(world->p->engine, visitor->waiting);
}

/* How many steps it got. */
static uint32_t leave(struct world *world, struct visitor *visitor)
{
    struct claimed *claimed;
    uint32_t count;
    bool is_parked;

    EXPECT_OK(engine_claim_take(world->p->engine, &visitor->scope, visitor->waiting, false,
                                &claimed, &count, &is_parked));
    EXPECT(!is_parked);
    engine_claim_told(world->p->engine, claimed, count);
    scope_fini(&visitor->scope);
    return count;
}

static const struct flow_call saw = { .tool = STR_INIT("saw") };

static void call_for_saw(struct world *world)
{
    struct engine *engine = world->p->engine;

    guard_lock(&engine->lock);
    waiting_call(engine, STR("saw"));
    guard_unlock(&engine->lock);
}

WORLD_TEST(claims, a_step_that_was_queued_while_a_claim_hoped_for_another_is_told_to_it) /* B30 */
{
    struct engine *engine = world->p->engine;
    struct visitor visitor;
    struct claimed *hoped;

    world_define(world, CROWD);
    come(world, &visitor);
    hoped = waiting_reserve(engine, &saw, 1); /* for a decision that will be refused */
    EXPECT(hoped != NULL);
    (void)world_create(world, "crowd", NULL);
    EXPECT_EQ(visitor.woken, 0);
    guard_lock(&engine->lock);
    waiting_settle(engine, hoped, false);
    guard_unlock(&engine->lock);
    EXPECT_EQ(visitor.woken, 1);
    EXPECT_EQ(leave(world, &visitor), 1);
}

WORLD_TEST(claims, a_step_is_told_to_one_who_is_there_not_only_to_those_who_have_gone) /* B30 */
{
    struct visitor gone, stays;

    world_define(world, CROWD);
    (void)world_create(world, "crowd", NULL);
    come(world, &gone);
    come(world, &stays);
    gone.has_gone = true;
    call_for_saw(world);
    EXPECT(gone.woken == 1 && stays.woken == 1);
    EXPECT_EQ(leave(world, &gone), 0);
    EXPECT_EQ(leave(world, &stays), 1);
}

WORLD_TEST(claims, who_goes_when_called_leaves_the_step_to_the_next) /* B30 */
{
    struct visitor gone, stays;

    world_define(world, CROWD);
    (void)world_create(world, "crowd", NULL);
    come(world, &gone);
    come(world, &stays);
    call_for_saw(world);
    EXPECT(gone.woken == 1 && stays.woken == 0);
    gone.has_gone = true;
    EXPECT_EQ(leave(world, &gone), 0);
    EXPECT_EQ(stays.woken, 1);
    EXPECT_EQ(leave(world, &stays), 1);
}

/* ---- Leases ---- */

enum { LEASED = 20000, LEASED_EACH = 200 };

static struct lease lease_number(uint32_t n)
{
    return (struct lease){ .instance = n / LEASED_EACH + 1,
                           .ordinal = n % LEASED_EACH + 1,
                           .length_ms = 60000 };
}

/* Drops them in another order; each is there until it is dropped, and the others stay. */
static void drop_all(struct engine *engine)
{
    for (uint32_t i = 0; i < LEASED; i++) {
        struct lease one = lease_number(i * 7919u % LEASED),
                     next = lease_number((i + 1) * 7919u % LEASED);

        EXPECT(lease_is_watched(engine, one.instance, one.ordinal));
        lease_drop(engine, one.instance, one.ordinal);
        EXPECT(!lease_is_watched(engine, one.instance, one.ordinal));
        EXPECT(i + 1 == LEASED || lease_is_watched(engine, next.instance, next.ordinal));
    }
    EXPECT_EQ(engine->work.lease_count, 0);
    EXPECT_EQ(engine->work.lease_places.count, 0);
}

WORLD_TEST(claims, each_of_twenty_thousand_leases_is_found_whatever_the_order_they_end_in) /* B30 */
{
    struct engine *engine = world->p->engine;
    struct lease lease;

    guard_lock(&engine->lock);
    for (uint32_t i = 0; i < LEASED; i++) {
        lease = lease_number(i);
        lease_add(engine, &lease);
        lease_add(engine, &lease); /* given out again: it is the same one */
    }
    EXPECT_EQ(engine->work.lease_count, LEASED);
    drop_all(engine);
    guard_unlock(&engine->lock);
}
