/* code_fixture.h - a code type whose handler does what the test says, and one instance of it. */
#ifndef PAWL_TESTS_UNIT_CODE_FIXTURE_H
#define PAWL_TESTS_UNIT_CODE_FIXTURE_H

#include "base/limits.h"
#include "code/code.h"
#include "lib/fault.h"
#include "lib/test.h"

/* The script of a turn: the test says what the handler does, and sees what it was given. */
struct script {
    void (*act)(pawl_turn *turn, void *state, const pawl_event *event);
    pawl_event_kind kind;
    char name[16], payload[64];
    int64_t at_ms;
    bool aligned;
};

struct vars {
    int64_t count;
    double price;
    bool paid;
    char name[8];
};

static inline void handle(void *context, pawl_turn *turn, void *state, const pawl_event *event)
{
    struct script *script = context;

    script->kind = event->kind;
    script->at_ms = event->at_ms;
    script->aligned = (uintptr_t)state % _Alignof(max_align_t) == 0;
    strncpy(script->name, event->name ? event->name : "(null)", sizeof script->name - 1);
    strncpy(script->payload, event->payload, sizeof script->payload - 1);
    script->act(turn, state, event);
}

static const pawl_var vars[] = { PAWL_VAR(struct vars, count, PAWL_VAR_INT64),
                                 PAWL_VAR(struct vars, price, PAWL_VAR_DOUBLE),
                                 PAWL_VAR(struct vars, paid, PAWL_VAR_BOOL),
                                 PAWL_VAR(struct vars, name, PAWL_VAR_TEXT),
                                 { 0 } };
static const char *const timers[] = { "tick", "expire", NULL };
static const char *const signals[] = { "pay", "stop", NULL };

struct fixture {
    struct scope *scope;
    struct script script;
    pawl_code_type type;
    struct code_binding binding;
    struct definition *definition;
    struct standing standing;
    void *memory;
    struct decision decision;
};

static inline void begin(struct fixture *f, struct scope *scope)
{
    *f = (struct fixture){ .scope = scope,
                           .type = { .name = "shop/cart",
                                     .timers = timers,
                                     .signals = signals,
                                     .vars = vars,
                                     .state_size = sizeof(struct vars),
                                     .handle = handle } };
    f->type.context = &f->script;
    f->binding = (struct code_binding){ .type = &f->type, .run = code_run };
    EXPECT_OK(code_compile(scope, &f->binding, &f->definition));
    f->memory = code_behavior.memory_new(f->definition, STR_NONE, &scope->arena);
    EXPECT(f->memory != NULL);
    f->standing = (struct standing){ .state = LIFE_CREATED, .memory = f->memory };
}

static inline pawl_status decide(struct fixture *f, struct event event)
{
    f->decision = (struct decision){ 0 };
    return code_behavior.decide(f->definition, &f->standing, &event, f->scope, &f->decision);
}

static inline pawl_status apply(struct fixture *f)
{
    for (uint32_t i = 0; i < f->decision.count; i++) {
        const struct draft *draft = &f->decision.drafts[i];
        struct entry_view view = { .transition = draft->transition,
                                   .payload = draft->payload,
                                   .effects = &draft->effects };
        pawl_status status =
            code_behavior.apply(f->definition, f->memory, &view, f->scope, &f->scope->arena);

        if (status != PAWL_OK)
            return status;
        EXPECT_EQ(f->definition->transitions[draft->transition].from, f->standing.state);
        f->standing.state = f->definition->transitions[draft->transition].to;
        f->standing.seq++;
    }
    return PAWL_OK;
}

static inline void act(struct fixture *f, struct event event,
                       void (*script)(pawl_turn *turn, void *state, const pawl_event *event))
{
    f->script.act = script;
    EXPECT_OK(decide(f, event));
    EXPECT_OK(apply(f));
}

static inline str effects_of(struct fixture *f, uint32_t draft)
{
    struct buf buf;
    str text;

    EXPECT(draft < f->decision.count);
    buf_init(&buf, &heap_libc, LIMIT_TEXT);
    effects_print(&f->decision.drafts[draft].effects, &buf);
    text = buf_keep(&buf, &f->scope->arena);
    buf_fini(&buf);
    return text;
}

static inline str memory_of(struct fixture *f)
{
    struct buf buf;
    str text;

    buf_init(&buf, &heap_libc, LIMIT_TEXT);
    code_behavior.memory_print(f->definition, f->memory, &buf);
    text = buf_keep(&buf, &f->scope->arena);
    buf_fini(&buf);
    return text;
}

#define ZERO "{\"count\":0,\"price\":0,\"paid\":false,\"name\":\"\"}"
#define ONE  "{\"count\":1,\"price\":0,\"paid\":false,\"name\":\"\"}"

static const struct event start = { EVENT_START, .at_ms = 1000 };

static inline void wait_for_all(pawl_turn *turn, void *state, const pawl_event *event)
{
    (void)state;
    (void)event;
    pawl_turn_timer(turn, "tick", 500);
    pawl_turn_timer(turn, "expire", 60000);
    pawl_turn_signal(turn, "pay");
    pawl_turn_signal(turn, "stop");
}

static inline void count_and_wait(pawl_turn *turn, void *state, const pawl_event *event)
{
    (void)event;
    ((struct vars *)state)->count++;
    pawl_turn_timer(turn, "tick", 1000);
}

static inline void complete(pawl_turn *turn, void *state, const pawl_event *event)
{
    (void)state;
    (void)event;
    pawl_turn_complete(turn, "{\"total\": 4.10}");
}

static inline void fail(pawl_turn *turn, void *state, const pawl_event *event)
{
    (void)state;
    (void)event;
    pawl_turn_fail(turn, "[\"no money\"]");
}

static inline pawl_status load(struct fixture *f, const char *snapshot)
{
    return code_behavior.memory_load(f->definition, str_of(snapshot), STR_NONE, f->scope,
                                     &f->scope->arena, &f->memory);
}

#endif
