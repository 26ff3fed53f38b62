/* engine_tickets.c - claims that wait without a thread: a step that nobody took finds whoever waits
 * for its tool, whatever became of those before. */
#include "engine/engine_int.h"
#include "engine_fixture.h"

/* Their first steps ask what their instance is called, and so wait in their tool's queue. */
#define SAWN "name: sawn\nsteps:\n  start: {tool: saw, args: {of: '{{instance.id}}'}, done: true}\n"
#define FILED                                                                                      \
    "name: filed\nsteps:\n  start: {tool: file, args: {of: '{{instance.id}}'}, done: true}\n"

struct claimant {
    struct scope scope;
    struct claim_args args;
    struct ticket *ticket;
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

    EXPECT_OK(engine_claim_take(world->p->engine, &waiting->scope, waiting->ticket, true,
                                &waiting->claimed, &waiting->count, &is_parked));
    return is_parked;
}

/* One that finds nothing, and waits. */
static void wait_for(struct world *world, struct claimant *out, const str *tools, uint32_t count)
{
    struct claim_waiter waiter = { .wake = wake, .is_there = is_there, .context = out };

    *out = (struct claimant){ .args = { .tools = tools,
                                        .tool_count = count,
                                        .max = 1,
                                        .worker = STR("w/1"),
                                        .wait_ms = 60000 } };
    scope_init(&out->scope, &heap_libc, LIMIT_SCOPE);
    EXPECT_OK(engine_claim_open(world->p->engine, &out->scope, &out->args, &waiter, &out->ticket));
    EXPECT(take(world, out));
}

static void stop_waiting(struct world *world, struct claimant *waiting)
{
    if (waiting->count == 0)
        engine_claim_close(world->p->engine, waiting->ticket);
    scope_fini(&waiting->scope);
}

static const str file_and_saw[] = { { "file", 4 }, { "saw", 3 } };
static const str only_saw[] = { { "saw", 3 } };

WORLD_TEST(tickets, one_whose_step_was_refused_is_called_for_another_that_came_meanwhile)
{
    struct engine *engine = world->p->engine;
    struct claimant waiting;
    struct claimed *claimed;

    world_define(world, SAWN);
    wait_for(world, &waiting, only_saw, 1);
    claimed = ticket_reserve(engine, STR("saw"), 1); /* of a decision that will be refused */
    EXPECT(claimed);
    world_create(world, "sawn", "{}"); /* its only place is taken: into the queue */
    EXPECT_EQ(waiting.called, 0);
    pthread_mutex_lock(&engine->lock);
    ticket_settle(engine, claimed, false);
    pthread_mutex_unlock(&engine->lock);
    EXPECT_EQ(waiting.called, 1);
    EXPECT(!take(world, &waiting));
    EXPECT_EQ(waiting.count, 1);
    stop_waiting(world, &waiting);
}

WORLD_TEST(tickets, one_whose_owner_has_gone_passes_the_call_on)
{
    struct claimant gone, there;

    world_define(world, SAWN);
    wait_for(world, &gone, only_saw, 1);
    wait_for(world, &there, only_saw, 1);
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

WORLD_TEST(tickets, one_that_is_full_passes_on_what_it_leaves)
{
    struct claimant both, other;

    world_define(world, SAWN);
    world_define(world, FILED);
    wait_for(world, &both, file_and_saw, 2);
    wait_for(world, &other, only_saw, 1);
    world_create(world, "sawn", "{}"); /* the first is called for it ... */
    world_create(world, "filed", "{}");
    EXPECT_EQ(both.called, 1);
    EXPECT(!take(world, &both)); /* ... and takes this one */
    EXPECT_EQ(both.count, 1);
    EXPECT_EQ(other.called, 1);
    EXPECT(!take(world, &other));
    EXPECT_EQ(other.count, 1);
    stop_waiting(world, &both);
    stop_waiting(world, &other);
}
