/* engine_alone.c - a server's work in a process that cannot start a thread: calls are submitted as a
 * server submits them, with waiters and without threads, and ticks do the rest.
 *
 * pthread_create() of this program ends it. */
#include "api/ops.h"
#include "engine/parts.h"
#include "engine_fixture.h"
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>

int pthread_create(pthread_t *restrict thread, const pthread_attr_t *restrict attributes,
                   void *(*body)(void *), void *restrict context)
{
    (void)thread;
    (void)attributes;
    (void)body;
    (void)context;
    fputs("engine_alone: a thread was started\n", stderr);
    abort();
}

enum { FLOWS = 24, MACHINES = 8, ROUNDS_MAX = 1000 };

/* A tool of this program, one of a worker's, a timer and a signal. */
#define TRIP                                                                                       \
    "name: trip\nsteps:\n  start: {tool: pack, args: {n: '{{input.n}}'}, next: drive}\n"           \
    "  drive: {tool: drive, args: {n: '{{steps.start.result}}'}, next: rest}\n"                    \
    "  rest: {tool: sleep, args: {for: 5s}, next: gate}\n"                                         \
    "  gate: {wait: {signal: open}, done: true}\n"

static void pack(void *context, const pawl_tool_call *call, pawl_tool_answer *answer)
{
    (void)context;
    (void)call;
    pawl_answer_result(answer, "7");
}

static uint32_t thread_count(void)
{
    DIR *tasks = opendir("/proc/self/task");
    uint32_t count = 0;

    EXPECT(tasks);
    while (tasks && readdir(tasks))
        count++;
    closedir(tasks);
    return count - 2; /* "." and ".." */
}

/* ---- A call as the server makes it ---- */

struct call {
    struct scope scope;
    struct waiter waiter;
    struct op_call op;
    struct op_answer answer;
    struct buf out;
    bool waits;      /* it was started, and is not over */
    uint32_t called; /* `wake`, and op_go_on() not since */
};

static void wake(void *context)
{
    ((struct call *)context)->called++;
}

/* `id` NULL: it is about no instance. */
static void begin(struct world *world, struct call *call, const char *operation, const char *id,
                  const char *body)
{
    struct op_pair instance = { STR("instance_id"), str_of(id), IN_PATH };
    struct op_request request = { .pairs = &instance,
                                  .pair_count = id ? 1 : 0,
                                  .waiter = &call->waiter };

    *call = (struct call){ .waiter = { .wake = wake, .context = call } };
    scope_init(&call->scope, &heap_libc, LIMIT_SCOPE);
    buf_init(&call->out, &heap_libc, 1 << 20);
    EXPECT_OK(node_read_json(&call->scope, str_of(body), &request.body));
    EXPECT_OK(op_prepare(world->p, op_find(str_of(operation)), &request, &call->scope, &call->op));
    EXPECT_OK(op_start(&call->op, &call->out, &call->answer, &call->waits));
}

static bool is_over(struct call *call)
{
    if (call->waits && call->called > 0) {
        call->called = 0;
        EXPECT_OK(op_go_on(&call->op, false, &call->out, &call->answer, &call->waits));
    }
    return !call->waits;
}

static void end(struct call *call)
{
    buf_fini(&call->out);
    scope_fini(&call->scope);
}

/* ---- A worker that has one request under way ---- */

struct worker {
    struct call call;
    uint32_t done;
};

#define CLAIM "{\"tools\":[\"drive\"],\"worker\":\"w/1\",\"max\":5,\"wait\":\"60s\"}"

static void answer_and_claim(struct world *world, struct worker *worker)
{
    const struct op_given given = worker->call.answer.given;
    struct buf body;

    buf_init(&body, &heap_libc, 1 << 20);
    buf_fmt(&body, "{\"steps\":[");
    for (uint32_t i = 0; i < given.count; i++)
        buf_fmt(&body, "%s{\"step_id\":\"%s.%u\",\"lease\":\"%s\",\"result\":1}", i ? "," : "",
                given.steps[i].id, given.steps[i].ordinal, given.steps[i].token);
    buf_fmt(&body, "],\"claim\":" CLAIM "}");
    worker->done += given.count;
    end(&worker->call);
    begin(world, &worker->call, "step.complete_many", NULL, buf_text(&body));
    buf_fini(&body);
}

/* ---- The loop of a server ---- */

static struct tick tick(struct world *world)
{
    struct scope scope;
    struct tick out;

    scope_init(&scope, &heap_libc, LIMIT_SCOPE);
    EXPECT_OK(engine_tick(world->p->engine, &scope, 0, &out));
    scope_fini(&scope);
    EXPECT_EQ(thread_count(), 1);
    return out;
}

/* An operation without a waiter: the caller does what it waits for. */
static char *ask(struct world *world, const char *operation, const char *input)
{
    char *out = NULL;

    EXPECT_OK(pawl_call(world->p, operation, input, &out, &world->error));
    return out;
}

static uint64_t ended(struct world *world)
{
    char *counts = ask(world, "instance.counts", "{\"definition\":\"trip\"}");
    const char *at = strstr(counts, "\"completed\":");
    uint64_t count = at ? strtoull(at + strlen("\"completed\":"), NULL, 10) : 0;

    pawl_free(world->p, counts);
    return count;
}

static void create_all(struct world *world)
{
    char body[128];
    struct call calls[FLOWS];

    for (int i = 0; i < FLOWS; i++) {
        snprintf(body, sizeof body, "{\"definition\":\"trip\",\"input\":{\"n\":%d}}", i);
        begin(world, &calls[i], "instance.create", NULL, body);
    }
    for (int i = 0; i < FLOWS; i++) {
        while (!is_over(&calls[i]))
            tick(world);
        EXPECT_HAS(buf_text(&calls[i].out), "instance_id");
        end(&calls[i]);
    }
}

static void fire_all(struct world *world)
{
    struct call call;

    for (int i = 0; i < MACHINES; i++) {
        const char *id = world_create(world, "order", NULL);

        begin(world, &call, "instance.fire", id, "{\"action\":\"pay\"}");
        while (!is_over(&call))
            tick(world);
        end(&call);
        world_expect_state(world, id, "paid");
    }
}

WORLD_TEST(alone, a_servers_work_is_done_without_a_thread)
{
    struct worker worker = { 0 };
    struct tick last = { 0 };
    uint64_t commits = 0, answers = 0, done = 0;
    const char *ticker;

    EXPECT_OK(pawl_tool_register(world->p, "pack", pack, NULL, &world->error));
    world_define(world, ORDER);
    world_define(world, TRIP);
    ticker = world_create(world, "ticker", NULL);
    begin(world, &worker.call, "step.claim", NULL, CLAIM); /* there is no step yet: it is parked */
    EXPECT(worker.call.waits);
    create_all(world);
    fire_all(world);
    for (int i = 0; i < ROUNDS_MAX && done < FLOWS; i++) {
        last = tick(world);
        commits += last.commits;
        answers += last.answers;
        if (is_over(&worker.call))
            answer_and_claim(world, &worker);
        pawl_free(world->p, ask(world, "signal.broadcast", "{\"name\":\"open\"}"));
        done = ended(world);
        if (last.due_in_ms > 0 && !worker.call.called)
            env_sim_advance(world->env, last.due_in_ms);
    }
    EXPECT_EQ(done, FLOWS);
    EXPECT_EQ(worker.done, FLOWS);
    EXPECT(commits > 0 && answers > 0);
    EXPECT_OK(pawl_signal(world->p, ticker, "stop", NULL, NULL, &world->error));
    EXPECT_HAS(world_actions(world, ticker), "timer");
    world_expect_state(world, ticker, "completed");
    EXPECT_EQ(thread_count(), 1);
    engine_claims_end(world->p->engine);
    EXPECT(is_over(&worker.call));
    end(&worker.call);
    world_expect_valid(world);
}
