/* engine_turn.c - a worker's turn (step.complete_many) that holds no thread: it is started, its
 * answers are committed and its claim waits while the calling thread does other things. */
#include "api/ops.h"
#include "engine/parts.h"
#include "engine_fixture.h"
#include <pthread.h>
#include <stdio.h>

#define TWICE                                                                                      \
    "name: twice\nsteps:\n  start: {tool: saw, args: {}, next: again}\n"                           \
    "  again: {tool: saw, args: {}, done: true}\n"
#define ONCE "name: once\nsteps:\n  start: {tool: saw, args: {}, done: true}\n"

/* ---- A commit that is held up ---- */

/* While it is closed, the thread that drains stays before its commit. */
struct gate {
    struct world *world;
    const char *id;
    pthread_t thread; /* which fires, and waits for that commit */
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool is_closed, is_reached;
};

static void at_point(void *context, enum env_point point)
{
    struct gate *gate = context;

    if (point != POINT_BEFORE_COMMIT)
        return;
    pthread_mutex_lock(&gate->lock);
    gate->is_reached = gate->is_closed;
    pthread_cond_broadcast(&gate->changed);
    while (gate->is_closed)
        pthread_cond_wait(&gate->changed, &gate->lock);
    pthread_mutex_unlock(&gate->lock);
}

static void gate_set(struct gate *gate, bool is_closed)
{
    pthread_mutex_lock(&gate->lock);
    gate->is_closed = is_closed;
    pthread_cond_broadcast(&gate->changed);
    pthread_mutex_unlock(&gate->lock);
}

static void *pay(void *context)
{
    struct gate *gate = context;

    pawl_fire(gate->world->p, gate->id, &(pawl_fire_args){ .action = "pay" }, NULL, NULL);
    return NULL;
}

/* When it returns, a commit is under way that does not end before gate_open(). */
static void gate_close(struct world *world, struct gate *gate)
{
    gate->world = world;
    world_define(world, ORDER);
    gate->id = world_create(world, "order", NULL);
    gate_set(gate, true);
    EXPECT(pthread_create(&gate->thread, NULL, pay, gate) == 0);
    pthread_mutex_lock(&gate->lock);
    while (!gate->is_reached)
        pthread_cond_wait(&gate->changed, &gate->lock);
    pthread_mutex_unlock(&gate->lock);
}

static void gate_open(struct gate *gate)
{
    gate_set(gate, false);
    pthread_join(gate->thread, NULL);
}

/* ---- A turn ---- */

struct turn {
    struct scope scope;
    struct waiter waiter;
    struct op_call call;
    struct op_answer answer;
    struct buf out;
    bool waits;
    pthread_mutex_t lock;
    pthread_cond_t woken;
    uint32_t called;
};

static void wake(void *context)
{
    struct turn *turn = context;

    pthread_mutex_lock(&turn->lock);
    turn->called++;
    pthread_cond_signal(&turn->woken);
    pthread_mutex_unlock(&turn->lock);
}

static uint32_t called(struct turn *turn)
{
    uint32_t count;

    pthread_mutex_lock(&turn->lock);
    count = turn->called;
    pthread_mutex_unlock(&turn->lock);
    return count;
}

static void start(struct world *world, struct turn *turn, const char *operation, const char *body,
                  bool has_thread)
{
    struct op_request request = { .waiter = has_thread ? NULL : &turn->waiter };

    *turn = (struct turn){ .waiter = { .wake = wake, .context = turn } };
    pthread_mutex_init(&turn->lock, NULL);
    pthread_cond_init(&turn->woken, NULL);
    scope_init(&turn->scope, &heap_libc, LIMIT_SCOPE);
    buf_init(&turn->out, &heap_libc, 1 << 20);
    EXPECT_OK(node_read_json(&turn->scope, str_of(body), &request.body));
    EXPECT_OK(
        op_prepare(world->p, op_find(str_of(operation)), &request, &turn->scope, &turn->call));
    EXPECT_OK(op_start(&turn->call, &turn->out, &turn->answer, &turn->waits));
}

/* When it is woken. */
static void go_on(struct turn *turn)
{
    pthread_mutex_lock(&turn->lock);
    while (!turn->called)
        pthread_cond_wait(&turn->woken, &turn->lock);
    turn->called = 0;
    pthread_mutex_unlock(&turn->lock);
    EXPECT_OK(op_go_on(&turn->call, false, &turn->out, &turn->answer, &turn->waits));
}

static void end(struct turn *turn)
{
    buf_fini(&turn->out);
    scope_fini(&turn->scope);
}

/* Claim a step of the tool "saw": the body that answers it and, if that is asked for, claims the next. */
static void claim_one(struct world *world, bool claims_next, char *body, size_t size)
{
    struct turn turn;
    const struct claimed *given;

    start(world, &turn, "step.claim", "{\"tools\":[\"saw\"],\"worker\":\"w/1\"}", true);
    EXPECT(!turn.waits);
    EXPECT_EQ(turn.answer.given.count, 1);
    given = turn.answer.given.steps;
    snprintf(body, size, "{\"steps\":[{\"step_id\":\"%s.%u\",\"lease\":\"%s\",\"result\":1}]%s}",
             given->id, given->ordinal, given->token,
             claims_next ? ",\"claim\":{\"tools\":[\"saw\"],\"worker\":\"w/1\",\"wait\":\"60s\"}"
                         : "");
    end(&turn);
}

/* An engine with threads of its own: without them, the caller commits its turn itself. */
static void begin(struct world *world, struct gate *gate)
{
    *gate = (struct gate){ .lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER };
    world_close(world);
    world->options.workers = 1;
    world->env = env_sim_new(world->now_ms, 7);
    env_sim_on_point(world->env, at_point, gate);
    EXPECT_OK(pawl_open_env(&world->p, world->url, &world->options, world->env, &world->error));
}

WORLD_TEST(turn, returns_to_its_caller_while_another_commit_is_under_way)
{
    struct gate gate;
    struct turn turn;
    char body[256];

    begin(world, &gate);
    world_define(world, TWICE);
    world_create(world, "twice", "{}");
    claim_one(world, true, body, sizeof body);
    gate_close(world, &gate);
    start(world, &turn, "step.complete_many", body, false); /* would never return if it waited */
    EXPECT(turn.waits);
    EXPECT(!turn.call.wait->is_slow);
    EXPECT_EQ(called(&turn), 0);
    gate_open(&gate);
    go_on(&turn);
    EXPECT(!turn.waits);
    EXPECT_HAS(buf_text(&turn.out), "\"status\":\"done\"");
    EXPECT_EQ(turn.answer.given.count, 1); /* the next step */
    end(&turn);
    world_close(world);
}

WORLD_TEST(turn, whose_claim_finds_nothing_goes_on_waiting_until_a_step_is_ready)
{
    struct gate gate;
    struct turn turn;
    char body[256];

    begin(world, &gate);
    world_define(world, ONCE);
    world_create(world, "once", "{}");
    claim_one(world, true, body, sizeof body);
    start(world, &turn, "step.complete_many", body, false);
    EXPECT(turn.waits);
    go_on(&turn); /* its answer is durable, and nothing is ready */
    EXPECT(turn.waits);
    EXPECT_EQ(called(&turn), 0);
    world_create(world, "once", "{}");
    go_on(&turn);
    EXPECT(!turn.waits);
    EXPECT_HAS(buf_text(&turn.out), "\"status\":\"done\"");
    EXPECT_EQ(turn.answer.given.count, 1);
    end(&turn);
    world_close(world);
}

/* As step.complete_many takes it: the answer, and so many others about steps that are not there. */
static void add_answers(struct buf *out, const char *body, int count)
{
    const char *end = strstr(body, "]}");

    buf_fmt(out, "%.*s", (int)(end - body), body);
    for (int i = 0; i < count; i++)
        buf_fmt(out, ",{\"step_id\":\"none\",\"result\":%d}", i);
    buf_fmt(out, "]}");
}

WORLD_TEST(turn, that_may_take_long_to_decide_is_woken_at_once_and_asks_for_a_thread)
{
    struct turn turn;
    struct buf many;
    char body[256];

    buf_init(&many, &heap_libc, 1 << 20);
    world_define(world, ONCE);
    world_create(world, "once", "{}");
    claim_one(world, false, body, sizeof body);
    add_answers(&many, body, 64);
    start(world, &turn, "step.complete_many", buf_text(&many), false);
    EXPECT(turn.waits);
    EXPECT(turn.call.wait->is_slow);
    EXPECT_EQ(called(&turn), 1);
    go_on(&turn);
    EXPECT(!turn.waits);
    EXPECT_HAS(buf_text(&turn.out), "\"status\":\"done\"");
    end(&turn);
    buf_fini(&many);
}
