/* engine_waiting_claims.c - claims that wait without a thread: a step that nobody took finds whoever waits
 * for its tool, whatever became of those before. */
#include "engine/parts.h"
#include "engine_fixture.h"
#include <stdio.h>

/* Their first steps ask what their instance is called, and so wait in their tool's queue. */
#define SAWN "name: sawn\nsteps:\n  start: {tool: saw, args: {of: '{{instance.id}}'}, done: true}\n"
#define FILED                                                                                      \
    "name: filed\nsteps:\n  start: {tool: file, args: {of: '{{instance.id}}'}, done: true}\n"

struct claimant {
    struct scope scope;
    struct claim_args args;
    struct waiting_claim *waiting;
    struct claimed *claimed;
    uint32_t count, called;
    bool is_gone;
};

static void wake(void *context)
{
    ((struct claimant *)context)->called++;
}

static bool is_there(void *context)
{
    return !((struct claimant *)context)->is_gone;
}

static bool take(struct world *world, struct claimant *waiting)
{
    bool is_parked;

    EXPECT_OK(engine_claim_take(world->p->engine, &waiting->scope, waiting->waiting, true,
                                &waiting->claimed, &waiting->count, &is_parked));
    return is_parked;
}

static void open_claim(struct world *world, struct claimant *out, const str *tools, uint32_t count,
                       uint32_t max)
{
    struct waiter waiter = { .wake = wake, .is_there = is_there, .context = out };

    *out = (struct claimant){ .args = { .tools = tools,
                                        .tool_count = count,
                                        .max = max,
                                        .worker = STR("w/1"),
                                        .wait_ms = 60000 } };
    scope_init(&out->scope, &heap_libc, LIMIT_SCOPE);
    EXPECT_OK(
        engine_claim_open(world->p->engine, &out->scope, &out->args, &waiter, NULL, &out->waiting));
}

/* One that finds nothing, and waits. */
static void wait_for(struct world *world, struct claimant *out, const str *tools, uint32_t count,
                     uint32_t max)
{
    open_claim(world, out, tools, count, max);
    EXPECT(take(world, out));
}

static void stop_waiting(struct world *world, struct claimant *waiting)
{
    struct engine *engine = world->p->engine;
    bool is_parked;

    if (waiting->count == 0)
        EXPECT_OK(engine_claim_take(engine, &waiting->scope, waiting->waiting, false,
                                    &waiting->claimed, &waiting->count, &is_parked));
    engine_claim_told(engine, waiting->claimed, waiting->count);
    scope_fini(&waiting->scope);
}

static const str file_and_saw[] = { { "file", 4 }, { "saw", 3 } };
static const str only_saw[] = { { "saw", 3 } };
static const struct flow_call saw = { .tool = STR_INIT("saw") };

WORLD_TEST(waiting, one_whose_step_was_refused_is_called_for_another_that_came_meanwhile)
{
    struct engine *engine = world->p->engine;
    struct claimant waiting;
    struct claimed *claimed;

    world_define(world, SAWN);
    wait_for(world, &waiting, only_saw, 1, 1);
    claimed = waiting_reserve(engine, &saw, 1); /* of a decision that will be refused */
    EXPECT(claimed);
    world_create(world, "sawn", "{}"); /* its only place is taken: into the queue */
    EXPECT_EQ(waiting.called, 0);
    guard_lock(&engine->lock);
    waiting_settle(engine, claimed, false);
    guard_unlock(&engine->lock);
    EXPECT_EQ(waiting.called, 1);
    EXPECT(!take(world, &waiting));
    EXPECT_EQ(waiting.count, 1);
    stop_waiting(world, &waiting);
}

WORLD_TEST(waiting, one_whose_owner_has_gone_passes_the_call_on)
{
    struct claimant gone, there;

    world_define(world, SAWN);
    wait_for(world, &gone, only_saw, 1, 1);
    wait_for(world, &there, only_saw, 1, 1);
    gone.is_gone = true;
    world_create(world, "sawn", "{}");
    if (gone.called)
        EXPECT(!take(world, &gone));
    EXPECT_EQ(gone.count, 0);
    EXPECT_EQ(there.called, 1);
    EXPECT(!take(world, &there));
    EXPECT_EQ(there.count, 1);
    stop_waiting(world, &gone);
    stop_waiting(world, &there);
}

WORLD_TEST(waiting, one_that_waits_for_several_tools_takes_the_oldest_step)
{
    struct claimant both, other;

    world_define(world, SAWN);
    world_define(world, FILED);
    wait_for(world, &both, file_and_saw, 2, 1);
    wait_for(world, &other, only_saw, 1, 1);
    world_create(world, "sawn", "{}"); /* the first is called for it ... */
    world_create(world, "filed", "{}");
    EXPECT_EQ(both.called, 1);
    EXPECT(!take(world, &both)); /* ... and takes it, although its tool is the second of the list */
    EXPECT_EQ(both.count, 1);
    EXPECT(str_is(both.claimed[0].call.tool, "saw"));
    EXPECT_EQ(other.called, 0);
    stop_waiting(world, &both);
    stop_waiting(world, &other);
}

/* ---- What one answer can hold ---- */

enum { WIDE = 24, LARGE = 900 * 1000 };

/* Slow, and about what an engine does in memory: one kind of store is enough. */
#define WIDE_TEST(suite, backend, name)                                                            \
    static void suite##_##name##_on(struct world *world);                                          \
    TEST(suite##_##backend, name)                                                                  \
    {                                                                                              \
        struct world world;                                                                        \
        world_begin(&world, #backend);                                                             \
        suite##_##name##_on(&world);                                                               \
        world_end(&world);                                                                         \
    }                                                                                              \
    static void suite##_##name##_on(struct world *world)

/* A flow whose steps are ready at once, each with arguments of LARGE bytes: more than an answer
 * holds. */
static const char *begin_wide(struct world *world, const char *first)
{
    static const char pad[LARGE];
    struct buf text;
    const char *id;

    buf_init(&text, &heap_libc, 0);
    buf_fmt(&text, "name: wide\ndo:\n%s  - dopar:\n", first);
    for (int i = 0; i < WIDE; i++)
        buf_fmt(&text, "    - {action: saw, payload: '{{input}}'}\n");
    world_define(world, buf_text(&text));
    buf_clear(&text);
    buf_fmt(&text, "{\"pad\":\"");
    buf_add(&text, pad, LARGE);
    memset(text.data + text.size - LARGE, 'x', LARGE);
    buf_fmt(&text, "\"}");
    id = world_create(world, "wide", buf_text(&text));
    buf_fini(&text);
    return id;
}

/* How many steps an answer brings; `turn` becomes the beginning of a worker's answers to them. */
static int read_steps(const char *answer, struct buf *turn)
{
    int count = 0;

    buf_clear(turn);
    buf_fmt(turn, "{\"steps\":[");
    for (const char *at = strstr(answer, "\"steps\":");
         at && (at = strstr(at, "\"step_id\":\""));) {
        const char *lease = strstr(at, "\"lease\":\"");

        buf_fmt(turn, "%s{\"step_id\":\"%.*s\",\"lease\":\"%.32s\",\"result\":1}",
                count++ ? "," : "", (int)strcspn(at + 11, "\""), at + 11, lease + 9);
        at = lease;
    }
    buf_byte(turn, ']');
    return count;
}

static int call_for_steps(struct world *world, const char *operation, const char *body,
                          struct buf *turn)
{
    char *answer;
    int count;

    EXPECT_OK(pawl_call(world->p, operation, body, &answer, &world->error));
    count = read_steps(answer, turn);
    pawl_free(world->p, answer);
    return count;
}

#define CLAIM_ALL "{\"tools\":[\"saw\"],\"worker\":\"w/1\",\"max\":1000}"

WIDE_TEST(claims, memory, what_does_not_fit_an_answer_stays_ready_and_is_given_to_the_next_claim)
{
    const char *id = begin_wide(world, "");
    struct buf turn;
    int some, all = 0;

    buf_init(&turn, &heap_libc, 0);
    while ((some = call_for_steps(world, "step.claim", CLAIM_ALL, &turn)) > 0) {
        EXPECT(some > 1 && some < WIDE);
        all += some;
        buf_byte(&turn, '}');
        EXPECT_EQ(call_for_steps(world, "step.complete_many", buf_text(&turn), &turn), 0);
    }
    EXPECT_EQ(all, WIDE);
    world_expect_state(world, id, "completed");
    buf_fini(&turn);
}

WIDE_TEST(claims, sqlite, a_turn_takes_along_what_fits_its_answer_and_loses_nothing)
{
    static const char plane[] = "{\"tools\":[\"plane\"],\"worker\":\"w/1\"}";
    const char *id = begin_wide(world, "  - {action: plane, payload: {}}\n");
    struct buf turn;
    int some, all = 0;

    buf_init(&turn, &heap_libc, 0);
    EXPECT_EQ(call_for_steps(world, "step.claim", plane, &turn), 1);
    do {
        buf_fmt(&turn, ",\"claim\":" CLAIM_ALL "}");
        some = call_for_steps(world, "step.complete_many", buf_text(&turn), &turn);
        EXPECT(some < WIDE);
        all += some;
    } while (some > 0);
    EXPECT_EQ(all, WIDE);
    world_expect_state(world, id, "completed");
    buf_fini(&turn);
}

WORLD_TEST(claims, a_client_that_has_gone_before_a_step_is_started_leaves_it_ready)
{
    struct claimant gone, there;
    const char *id;

    world_define(world, SAWN);
    id = world_create(world, "sawn", "{}");
    open_claim(world, &gone, only_saw, 1, 1);
    gone.is_gone = true;
    (void)take(world, &gone);
    EXPECT_EQ(gone.count, 0);
    EXPECT_TEXT(world_actions(world, id), "start");
    open_claim(world, &there, only_saw, 1, 1);
    EXPECT(!take(world, &there));
    EXPECT_EQ(there.count, 1);
    EXPECT_TEXT(world_actions(world, id), "start step.start");
    stop_waiting(world, &gone);
    stop_waiting(world, &there);
}

WORLD_TEST(waiting, one_that_is_called_a_thousand_times_for_nothing_needs_no_memory_for_it)
{
    struct claimant waiting;

    wait_for(world, &waiting, only_saw, 1, 1000);
    for (int i = 0; i < 1000; i++)
        EXPECT(take(world, &waiting));
    stop_waiting(world, &waiting);
}

#define TIMED                                                                                      \
    "name: timed\nsteps:\n"                                                                        \
    "  start: {tool: saw, args: {}, timeout: 1m, retry: {max: 1}, done: true}\n"

/* The only step has this status, and this time of its start. */
static void expect_step(struct world *world, const char *id, const char *status,
                        const char *started)
{
    char input[64], *out;

    snprintf(input, sizeof input, "{\"instance_id\":\"%s\"}", id);
    EXPECT_OK(pawl_call(world->p, "instance.steps", input, &out, &world->error));
    EXPECT_HAS(out, status);
    EXPECT_HAS(out, started);
    pawl_free(world->p, out);
}

WORLD_TEST(claims, a_step_whose_answer_could_not_be_sent_is_ready_again_and_costs_no_attempt)
{
    struct claimant gone, there;
    const char *id;

    world_define(world, TIMED);
    id = world_create(world, "timed", "{}");
    open_claim(world, &gone, only_saw, 1, 1);
    EXPECT(!take(world, &gone));
    EXPECT_EQ(gone.count, 1);
    engine_claim_return(world->p->engine, gone.claimed, gone.count);
    engine_claim_return(world->p->engine, gone.claimed, gone.count); /* once is enough */
    world_advance(world, 1);
    EXPECT_TEXT(world_actions(world, id), "start step.start step.retry");
    expect_step(world, id, "\"status\":\"ready\"", "\"started_at\":null");
    world_expect_valid(world);
    open_claim(world, &there, only_saw, 1, 1);
    EXPECT(!take(world, &there));
    EXPECT_EQ(there.count, 1);
    EXPECT_EQ(there.claimed[0].ordinal, gone.claimed[0].ordinal);
    EXPECT_EQ(there.claimed[0].call.attempt, 1);
    EXPECT(!lease_is_held(world->p->engine, there.claimed[0].instance, 1,
                          str_of(gone.claimed[0].token)));
    stop_waiting(world, &gone);
    stop_waiting(world, &there);
    world_advance(world, 59000);
    world_expect_state(world, id, "running");
    world_advance(world, 2000);
    world_expect_state(world, id, "failed");
    world_expect_valid(world);
}

static void note_warning(void *context, pawl_log_level level, const char *event, const char *text)
{
    (void)text;
    if (level >= PAWL_LOG_WARN)
        snprintf(context, 64, "%s", event);
}

WORLD_TEST(claims, a_restart_with_ready_steps_of_workers_elsewhere_warns_of_nothing)
{
    char warned[64] = "";
    const char *id;

    world_define(world, TIMED);
    id = world_create(world, "timed", "{}");
    world_close(world);
    world->options.log = note_warning;
    world->options.log_context = warned;
    world_open(world);
    world_advance(world, 1);
    EXPECT_TEXT(warned, "");
    EXPECT_TEXT(world_actions(world, id), "start");
    world_close(world); /* before `warned` goes */
}

/* ---- A start that has another step begin beside it ---- */

/* What `near` does is begun by a signal that was kept while the instance was paused. */
#define BESIDE                                                                                     \
    "name: beside\nsignals: {go: {buffer: true}}\nsteps:\n"                                        \
    "  start: {tool: set, args: {}, parallel: [far, wait]}\n"                                      \
    "  far: {tool: saw, args: {}, retry: {max: 1}, join: end}\n"                                   \
    "  wait: {wait: {signal: go}, next: near}\n"                                                   \
    "  near: {tool: near, args: {}, join: end}\n"                                                  \
    "  end: {tool: set, args: {}, done: true}\n"

static void run_near(void *context, const pawl_tool_call *call, pawl_tool_answer *answer)
{
    (void)context;
    (void)call;
    pawl_answer_result(answer, "1");
}

struct early {
    struct world *world;
    struct claimant waiting;
    bool has_come;
};

/* The worker claims as soon as the instance is resumed, before it has seen the kept signal. */
static void claim_early(void *context, enum env_point point)
{
    struct early *early = context;
    bool is_parked;

    if (point != POINT_AFTER_ACK || early->has_come)
        return;
    early->has_come = true;
    EXPECT_OK(engine_claim_take(early->world->p->engine, &early->waiting.scope,
                                early->waiting.waiting, false, &early->waiting.claimed,
                                &early->waiting.count, &is_parked));
}

static void hold(struct world *world, const char *id, bool resume)
{
    struct pause_args args = { .id = str_of(id), .actor = STR("ann"), .resume = resume };
    enum instance_status status;
    struct scope scope;

    scope_init(&scope, &heap_libc, LIMIT_SCOPE);
    EXPECT_OK(engine_pause(world->p->engine, &scope, &args, &status));
    scope_fini(&scope);
}

WORLD_TEST(claims, a_step_whose_start_lets_a_kept_signal_through_is_the_workers)
{
    struct early early = { .world = world };
    const char *id;

    EXPECT_OK(pawl_tool_register(world->p, "near", run_near, NULL, &world->error));
    world_define(world, BESIDE);
    id = world_create(world, "beside", "{}");
    world_advance(world, 1);
    hold(world, id, false);
    EXPECT_OK(pawl_signal(world->p, id, "go", NULL, NULL, &world->error));
    open_claim(world, &early.waiting, only_saw, 1, 1);
    env_sim_on_point(world->env, claim_early, &early);
    hold(world, id, true);
    env_sim_on_point(world->env, NULL, NULL);
    EXPECT_EQ(early.waiting.count, 1);
    world_advance(world, 1);
    world_expect_state(world, id, "running");
    stop_waiting(world, &early.waiting);
}

WIDE_TEST(waiting, memory, those_that_wait_are_given_what_fits_their_answers)
{
    struct claimant first, second;
    struct buf turn;
    uint32_t all = 0, some;

    wait_for(world, &first, only_saw, 1, 1000);
    wait_for(world, &second, only_saw, 1, 1000);
    (void)begin_wide(world, "");
    EXPECT(first.called == 1 && second.called == 1);
    EXPECT(!take(world, &first) && !take(world, &second));
    EXPECT(first.count > 1 && first.count < WIDE && second.count > 0);
    all = first.count + second.count;
    stop_waiting(world, &first);
    stop_waiting(world, &second);
    buf_init(&turn, &heap_libc, 0);
    while ((some = (uint32_t)call_for_steps(world, "step.claim", CLAIM_ALL, &turn)) > 0)
        all += some;
    EXPECT_EQ(all, WIDE);
    buf_fini(&turn);
}

/* ---- Several tools ---- */

WORLD_TEST(claims, steps_of_several_tools_are_given_by_age)
{
    static const char *const made[] = { "sawn", "filed", "filed", "sawn", "filed" };
    char *answer;
    const char *at;

    world_define(world, SAWN);
    world_define(world, FILED);
    for (int i = 0; i < 5; i++)
        (void)world_create(world, made[i], "{}");
    EXPECT_OK(pawl_call(world->p, "step.claim",
                        "{\"tools\":[\"file\",\"saw\"],\"worker\":\"w/1\",\"max\":9}", &answer,
                        &world->error));
    at = answer;
    for (int i = 0; i < 5; i++) {
        at = strstr(at, "\"tool\":\"") + 8;
        EXPECT(strncmp(at, made[i], 3) == 0);
    }
    EXPECT(!strstr(at, "\"tool\":\""));
    pawl_free(world->p, answer);
}

#define PLANED                                                                                     \
    "name: planed\nsteps:\n  start: {tool: plane, args: {}, next: saw}\n"                          \
    "  saw: {tool: saw, args: {}, done: true}\n"

/* Whose steps a claim is given: their places in `ids`, as digits. */
static void expect_claimed(struct world *world, const char *const *ids, const char *places)
{
    char *answer, found[16] = "";
    size_t count = 0;

    EXPECT_OK(pawl_call(world->p, "step.claim",
                        "{\"tools\":[\"file\",\"saw\"],\"worker\":\"w/1\",\"max\":9}", &answer,
                        &world->error));
    for (const char *at = answer; (at = strstr(at, "\"instance_id\":\"")) && count < 15; at++)
        for (int i = 0; i < 5; i++)
            if (strncmp(at + 15, ids[i], ID_SIZE) == 0)
                found[count++] = (char)('0' + i);
    EXPECT_TEXT(found, places);
    pawl_free(world->p, answer);
}

/* The second step of the oldest instance is the youngest step. */
WORLD_TEST(claims, steps_are_given_by_their_own_age_also_after_a_restart_and_a_resume)
{
    static const char *const made[] = { "planed", "sawn", "filed", "sawn", "filed" };
    const char *ids[5];
    struct buf turn;
    char input[64], *out;

    world_define(world, SAWN);
    world_define(world, FILED);
    world_define(world, PLANED);
    buf_init(&turn, &heap_libc, 0);
    for (int i = 0; i < 5; i++)
        ids[i] = world_create(world, made[i], "{}");
    EXPECT_EQ(
        call_for_steps(world, "step.claim", "{\"tools\":[\"plane\"],\"worker\":\"w/1\"}", &turn),
        1);
    buf_byte(&turn, '}');
    EXPECT_EQ(call_for_steps(world, "step.complete_many", buf_text(&turn), &turn), 0);
    snprintf(input, sizeof input, "{\"instance_id\":\"%s\"}", ids[1]);
    EXPECT_OK(pawl_call(world->p, "instance.pause", input, &out, &world->error));
    pawl_free(world->p, out);
    world_close(world);
    world_open(world);
    EXPECT_OK(pawl_call(world->p, "instance.resume", input, &out, &world->error));
    pawl_free(world->p, out);
    EXPECT_OK(pawl_run_due(world->p, &world->error));
    expect_claimed(world, ids, "12340");
    buf_fini(&turn);
}

/* ---- A worker that dies ---- */

#define CHARGE(idempotent)                                                                         \
    "name: charge\nsteps:\n  start: {tool: saw, args: {}, idempotent: " idempotent                 \
    ", retry: {max: 3, backoff: [1s]}, done: true}\n"

static const char *die_at_work(struct world *world, const char *definition, int64_t after_ms)
{
    const char *id;
    struct buf turn;

    buf_init(&turn, &heap_libc, 0);
    world_define(world, definition);
    id = world_create(world, "charge", "{}");
    EXPECT_EQ(call_for_steps(world, "step.claim", CLAIM_ALL, &turn), 1);
    world_advance(world, after_ms);
    world_advance(world, 2000);
    buf_fini(&turn);
    return id;
}

/* It has failed, and its error begins so. */
static void expect_error(struct world *world, const char *id, const char *begin)
{
    char input[64], part[64], *answer;

    world_expect_state(world, id, "failed");
    snprintf(input, sizeof input, "{\"instance_id\":\"%s\"}", id);
    snprintf(part, sizeof part, "\"error\":\"%s", begin);
    EXPECT_OK(pawl_call(world->p, "instance.get", input, &answer, &world->error));
    EXPECT_HAS(answer, part);
    pawl_free(world->p, answer);
    world_expect_valid(world);
}

WORLD_TEST(claims, a_step_that_is_not_idempotent_is_lost_with_its_worker)
{
    const char *id = die_at_work(world, CHARGE("false"), LEASE_DEFAULT_MS + 1);

    EXPECT_TEXT(world_actions(world, id), "start step.start step.fail fail");
    expect_error(world, id, "lost\"");
}

WORLD_TEST(claims, an_idempotent_step_whose_worker_died_is_tried_again)
{
    const char *id = die_at_work(world, CHARGE("true"), LEASE_DEFAULT_MS + 1);

    world_expect_state(world, id, "running");
    EXPECT_TEXT(world_actions(world, id), "start step.start step.timeout step.retry");
    world_expect_valid(world);
}

/* A death is seen as the step's own timeout if that is shorter than the lease. */
WORLD_TEST(claims, a_step_declared_not_idempotent_is_not_run_again_after_its_own_timeout)
{
    const char *id = die_at_work(world, CHARGE("false, timeout: 5s"), 5001);

    EXPECT_TEXT(world_actions(world, id), "start step.start step.timeout fail");
    expect_error(world, id, "timeout: its outcome is unknown");
    id = die_at_work(world, CHARGE("true, timeout: 5s"), 5001);
    EXPECT_TEXT(world_actions(world, id), "start step.start step.timeout step.retry");
}

/* ---- Another version for a step that is ready ---- */

#define SEND(tool)                                                                                 \
    "name: send\nsteps:\n  start: {tool: " tool ", args: {by: " tool "}, done: true}\n"

static void amend(struct world *world, const char *id, const char *definition)
{
    struct buf body;
    char *answer;

    world_define(world, definition);
    buf_init(&body, &heap_libc, 0);
    buf_fmt(&body, "{\"instance_id\":\"%s\",\"definition\":\"send\"}", id);
    EXPECT_OK(pawl_call(world->p, "instance.amend", buf_text(&body), &answer, &world->error));
    pawl_free(world->p, answer);
    buf_fini(&body);
}

static void expect_answer(struct world *world, const char *operation, const char *body,
                          const char *words)
{
    char *answer;

    EXPECT_OK(pawl_call(world->p, operation, body, &answer, &world->error));
    EXPECT_HAS(answer, words);
    pawl_free(world->p, answer);
}

WORLD_TEST(claims, an_amend_moves_a_ready_step_to_the_tool_of_the_new_version)
{
    const char *id;
    struct buf body;

    world_define(world, SEND("mail"));
    id = world_create(world, "send", "{}");
    amend(world, id, SEND("sms"));
    buf_init(&body, &heap_libc, 0);
    buf_fmt(&body, "{\"instance_id\":\"%s\"}", id);
    expect_answer(world, "step.list", buf_text(&body), "\"tool\":\"sms\"");
    expect_answer(world, "step.list", buf_text(&body), "\"args\":{\"by\":\"sms\"}");
    expect_answer(world, "step.list", "{\"status\":\"ready\",\"tool\":\"sms\"}", id);
    expect_answer(world, "step.claim", "{\"tools\":[\"mail\"],\"worker\":\"w/1\"}", "\"steps\":[]");
    expect_answer(world, "step.claim", "{\"tools\":[\"sms\"],\"worker\":\"w/1\"}",
                  "\"tool\":\"sms\",\"args\":{\"by\":\"sms\"},\"attempt\":1");
    amend(world, id, SEND("fax")); /* a step that a worker has stays with it */
    expect_answer(world, "step.list", buf_text(&body), "\"tool\":\"sms\"");
    world_expect_valid(world);
    buf_fini(&body);
}

WORLD_TEST(claims, a_ready_step_that_is_amended_to_a_tool_of_the_process_is_run_there)
{
    const char *id;

    world_define(world, SEND("mail"));
    id = world_create(world, "send", "{}");
    amend(world, id, SEND("set"));
    world_advance(world, 1);
    world_expect_state(world, id, "completed");
    world_expect_valid(world);
}

WORLD_TEST(waiting, one_that_waits_for_the_new_tool_gets_the_step_that_is_amended_to_it)
{
    struct claimant waiting;
    const char *id;

    world_define(world, SEND("mail"));
    id = world_create(world, "send", "{}");
    wait_for(world, &waiting, only_saw, 1, 1);
    amend(world, id, SEND("saw"));
    EXPECT_EQ(waiting.called, 1);
    EXPECT(!take(world, &waiting));
    EXPECT_EQ(waiting.count, 1);
    stop_waiting(world, &waiting);
}

/* A cancel that is refused after its decision: the next event has the actor loaded again. */
static void spoil_actor(struct world *world, const char *id)
{
    char body[96], *answer;

    snprintf(body, sizeof body, "{\"instance_id\":\"%s\",\"actor_ref\":\" \"}", id);
    EXPECT_EQ(pawl_call(world->p, "instance.cancel", body, &answer, &world->error),
              PAWL_INVALID_REQUEST);
    pawl_free(world->p, answer);
}

WORLD_TEST(claims, the_answer_to_a_claim_owns_its_texts_when_an_amended_flow_is_loaded_again)
{
    struct claimant waiting;
    const char *id;

    world_define(world, SEND("mail"));
    id = world_create(world, "send", "{}");
    amend(world, id, SEND("saw"));
    open_claim(world, &waiting, only_saw, 1, 1);
    EXPECT(!take(world, &waiting));
    EXPECT_EQ(waiting.count, 1);
    spoil_actor(world, id);
    spoil_actor(world, id);
    EXPECT(str_is(waiting.claimed[0].call.step, "start"));
    EXPECT(str_is(waiting.claimed[0].call.tool, "saw"));
    EXPECT(str_is(waiting.claimed[0].call.args, "{\"by\":\"saw\"}"));
    stop_waiting(world, &waiting);
    world_expect_valid(world);
}
