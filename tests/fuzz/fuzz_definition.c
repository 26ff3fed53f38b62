/* fuzz_definition.c - any text as a definition. What compiles is printed, loaded and printed as
 * the same; a machine is asked for every action, a flow is run to its end. */
#include "flow/flow.h"
#include "fuzz.h"
#include "machine/machine.h"

#define EVENTS_MAX 60

static struct definition *require_loads(struct scope *scope, const struct definition *definition)
{
    struct buf first, second;
    struct definition *loaded;
    str kept;

    buf_init(&first, &heap_libc, LIMIT_SCOPE);
    buf_init(&second, &heap_libc, LIMIT_SCOPE);
    definition_print(definition, &first);
    kept = buf_keep(&first, &scope->arena);
    REQUIRE(kept.data);
    REQUIRE(definition_load(scope, kept, &loaded) == PAWL_OK);
    definition_print(loaded, &second);
    require_same(&first, &second);
    buf_fini(&second);
    buf_fini(&first);
    return loaded;
}

static void fire_everything(struct scope *scope, const struct definition *definition)
{
    for (uint32_t i = 0; i < definition->transition_count; i++) {
        const struct transition *transition = &definition->transitions[i];
        struct standing standing = { .state = transition->from };
        struct event event = { .kind = EVENT_FIRE,
                               .name = transition->action,
                               .guard_satisfied = true };
        struct decision decision = { 0 };

        event.reason = STR("because");
        REQUIRE(transition->from < definition->state_count &&
                transition->to < definition->state_count);
        if (machine_behavior.decide(definition, &standing, &event, scope, &decision) == PAWL_OK)
            REQUIRE(decision.count == 1 &&
                    decision.drafts[0].transition < definition->transition_count);
        event.name = STR("no such action");
        (void)machine_behavior.decide(definition, &standing, &event, scope, &decision);
        event = (struct event){ .kind = EVENT_CANCEL };
        (void)machine_behavior.decide(definition, &standing, &event, scope, &decision);
    }
}

/* ---- A flow, run without an engine ---- */

struct run {
    struct scope *scope;
    const struct definition *definition;
    struct standing standing;
    void *memory;
    struct event next;
};

static void require_memory_loads(struct run *run)
{
    struct buf first, second;
    void *loaded;

    buf_init(&first, &heap_libc, LIMIT_SCOPE);
    buf_init(&second, &heap_libc, LIMIT_SCOPE);
    flow_behavior.memory_print(run->definition, run->memory, &first);
    REQUIRE(flow_behavior.memory_load(run->definition, buf_view(&first), STR("{}"), run->scope,
                                      &run->scope->arena, &loaded) == PAWL_OK);
    flow_behavior.memory_print(run->definition, loaded, &second);
    require_same(&first, &second);
    buf_fini(&second);
    buf_fini(&first);
}

/* What the world would do next about an effect. */
static void follow(struct run *run, const struct effect *effect)
{
    struct event *next = &run->next;

    switch (effect->kind) {
    case EFFECT_STEP:
    case EFFECT_READY:
        if (effect->kind == EFFECT_READY || effect->status == STEP_READY)
            *next = (struct event){ .kind = EVENT_STEP_START, .ordinal = effect->ordinal };
        break;
    case EFFECT_RUN:
        *next = (struct event){ .kind = run->standing.seq % 3 ? EVENT_STEP_DONE : EVENT_STEP_FAILED,
                                .ordinal = effect->ordinal,
                                .payload = STR("{\"a\":[1,{\"b\":null}]}") };
        break;
    case EFFECT_ARM:
        if (next->kind == EVENT_UNKNOWN)
            *next = (struct event){ .kind = EVENT_TIMER,
                                    .name = effect->name,
                                    .ordinal = effect->ordinal,
                                    .is_forced = true };
        break;
    case EFFECT_END:
    case EFFECT_DISARM:
    case EFFECT_AWAIT:
    case EFFECT_LEAVE:
    case EFFECT_STATE:
    case EFFECT_SNAPSHOT:
        break;
    }
}

static void fold(struct run *run, const struct draft *draft)
{
    const struct entry_view view = { .transition = draft->transition,
                                     .step = draft->step,
                                     .ordinal = draft->ordinal,
                                     .attempt = draft->attempt,
                                     .payload = draft->payload,
                                     .reason = draft->reason,
                                     .effects = &draft->effects,
                                     .at_ms = FUZZ_NOW_MS };
    const struct transition *taken = &run->definition->transitions[draft->transition];

    REQUIRE(draft->transition < run->definition->transition_count);
    REQUIRE(taken->from == run->standing.state);
    REQUIRE(flow_behavior.apply(run->definition, run->memory, &view, run->scope,
                                &run->scope->arena) == PAWL_OK);
    run->standing.state = taken->to;
    run->standing.seq++;
    for (uint32_t i = 0; i < draft->effects.count; i++)
        follow(run, &draft->effects.items[i]);
}

static bool step(struct run *run)
{
    struct event event = run->next;
    struct decision decision = { 0 };

    event.at_ms = FUZZ_NOW_MS;
    run->next = (struct event){ 0 };
    if (flow_behavior.decide(run->definition, &run->standing, &event, run->scope, &decision) !=
        PAWL_OK)
        return false;
    for (uint32_t i = 0; i < decision.count; i++)
        fold(run, &decision.drafts[i]);
    require_memory_loads(run);
    return run->next.kind != EVENT_UNKNOWN;
}

static void run_flow(struct scope *scope, struct definition *definition)
{
    const str input = STR("{\"a\":\"x\",\"b\":[1,2],\"name\":null}");
    struct run run = { .scope = scope, .definition = definition };

    REQUIRE(flow_behavior.prepare(definition, scope) == PAWL_OK);
    run.standing.state = definition->initial;
    run.memory = flow_behavior.memory_new(definition, input, &scope->arena);
    REQUIRE(run.memory);
    run.standing.memory = run.memory;
    run.next = (struct event){ .kind = EVENT_START, .payload = input };
    for (int i = 0; i < EVENTS_MAX && step(&run); i++)
        ;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const str text = { (const char *)data, size };
    struct findings findings = { 0 };
    struct definition *definition;
    struct scope scope;
    struct node *document;

    scope_init(&scope, &heap_libc, LIMIT_SCOPE);
    if (node_read(&scope, text, &document) == PAWL_OK) {
        for (int is_inline = 0; is_inline < 2; is_inline++)
            if (machine_compile(&scope, document, is_inline, &findings, &definition) == PAWL_OK)
                fire_everything(&scope, require_loads(&scope, definition));
        if (flow_compile(&scope, document, &findings, &definition) == PAWL_OK)
            run_flow(&scope, require_loads(&scope, definition));
    }
    scope_fini(&scope);
    return 0;
}
