/* calls.c - a number of equal calls through pawl.h, whose instructions script/bench-against counts.
 *
 *     calls ROW COUNT
 *
 * It is compiled against two versions of the library: it uses only what both of them have. */
#include <pawl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define INSTANCES 64 /* that are fired, one after the other */
#define DURATION  20000

static const char machine[] =
    "name: door\nstates: [shut, open, gone]\ninitial_state: shut\n"
    "terminal_states: [gone]\nterminal_kinds: {gone: success}\ntransitions:\n"
    "  - {from_state: shut, action: turn, to_state: open}\n"
    "  - {from_state: open, action: turn, to_state: shut}\n"
    "  - {from_state: open, action: remove, to_state: gone}\n";

static const char ten_steps[] =
    "name: ten\ndo:\n"
    "  - {tool: answer, args: {x: '{{input.x}}'}}\n  - {tool: answer, args: {x: 1}}\n"
    "  - {tool: answer, args: {x: 1}}\n  - {tool: answer, args: {x: 1}}\n"
    "  - {tool: answer, args: {x: 1}}\n  - {tool: answer, args: {x: 1}}\n"
    "  - {tool: answer, args: {x: 1}}\n  - {tool: answer, args: {x: 1}}\n"
    "  - {tool: answer, args: {x: 1}}\n  - {tool: answer, args: {x: 1}}\n";

static const char nap[] =
    "name: nap\nsteps:\n  start: {name: wait, wait: {timer: 10s}, done: true}\n";

struct calls {
    pawl *p;
    pawl_error error;
    pawl_id ids[INSTANCES];
    size_t count;
};

static void check(const struct calls *c, pawl_status status)
{
    if (!status)
        return;
    fprintf(stderr, "calls: %s: %s\n", pawl_status_name(status), c->error.message);
    exit(1);
}

static void answer(void *context, const pawl_tool_call *call, pawl_tool_answer *out)
{
    (void)context;
    (void)call;
    pawl_answer_result(out, "7");
}

static void make(struct calls *c, const char *definition, size_t count)
{
    pawl_create_args args = { .definition = definition, .input = "{\"x\":1}" };

    for (size_t i = 0; i < count; i++)
        check(c, pawl_create(c->p, &args, &c->ids[i % INSTANCES], &c->error));
}

static void fire(struct calls *c)
{
    const pawl_fire_args args = { .action = "turn", .actor_ref = "ann" };

    for (size_t i = 0; i < c->count; i++)
        check(c, pawl_fire(c->p, c->ids[i % INSTANCES].text, &args, NULL, &c->error));
}

static void batch(struct calls *c)
{
    pawl_batch_fire fires[INSTANCES];

    for (size_t i = 0; i < c->count; i += INSTANCES) {
        memset(fires, 0, sizeof fires);
        for (size_t k = 0; k < INSTANCES; k++) {
            fires[k].id = c->ids[k].text;
            fires[k].args = (pawl_fire_args){ .action = "turn", .actor_ref = "ann" };
        }
        check(c, pawl_fire_batch(c->p, fires, INSTANCES, &c->error));
    }
}

static void create(struct calls *c)
{
    make(c, "door", c->count);
}

static void flow(struct calls *c)
{
    for (size_t i = 0; i < c->count; i += INSTANCES) {
        make(c, "ten", INSTANCES);
        check(c, pawl_run_due(c->p, &c->error));
    }
}

static void timer(struct calls *c)
{
    make(c, "nap", c->count);
    check(c, pawl_test_advance(c->p, DURATION, &c->error));
}

static void history(struct calls *c)
{
    pawl_history *open;
    pawl_entry entry;

    for (size_t i = 0; i < c->count; i++) {
        check(c, pawl_history_open(c->p, c->ids[i % INSTANCES].text, NULL, &open, &c->error));
        while (pawl_history_next(open, &entry))
            ;
        check(c, pawl_history_close(open, &c->error));
    }
}

static const struct row {
    const char *name;
    void (*run)(struct calls *c);
} rows[] = {
    { "fire", fire }, { "batch", batch }, { "create", create },
    { "flow", flow }, { "timer", timer }, { "history", history },
};

static const struct row *row_of(const char *name)
{
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (strcmp(rows[i].name, name) == 0)
            return &rows[i];
    fprintf(stderr, "calls: expected fire, batch, create, flow, timer or history, found '%s'\n",
            name);
    exit(2);
}

int main(int argc, char **argv)
{
    const struct row *row = row_of(argc == 3 ? argv[1] : "");
    struct calls c = { .count = (size_t)atoi(argv[2]) };
    pawl_options options = { .own = true, .test_clock = row->run == timer };

    check(&c, pawl_open(&c.p, "sqlite:calls.db", &options, &c.error));
    check(&c, pawl_tool_register(c.p, "answer", answer, NULL, &c.error));
    check(&c, pawl_define(c.p, machine, sizeof machine - 1, NULL, &c.error));
    check(&c, pawl_define(c.p, ten_steps, sizeof ten_steps - 1, NULL, &c.error));
    check(&c, pawl_define(c.p, nap, sizeof nap - 1, NULL, &c.error));
    make(&c, "door", INSTANCES);
    row->run(&c);
    pawl_close(c.p);
    return 0;
}
