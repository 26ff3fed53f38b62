/* fuzz_load.c - what is read back from a store that may be damaged: bodies, compiled texts,
 * plans and snapshots. The first byte says as what the rest is read. */
#include "code/code.h"
#include "flow/flow.h"
#include "fuzz.h"
#include "model/effect.h"

static void load_effects(struct scope *scope, str text)
{
    struct effect_list list, again;
    struct buf first, second;

    if (effects_read(scope, text, &list) != PAWL_OK)
        return;
    buf_init(&first, &heap_libc, LIMIT_SCOPE);
    buf_init(&second, &heap_libc, LIMIT_SCOPE);
    effects_print(&list, &first);
    REQUIRE(effects_read(scope, buf_view(&first), &again) == PAWL_OK);
    effects_print(&again, &second);
    require_same(&first, &second);
    buf_fini(&second);
    buf_fini(&first);
}

static void load_definition(struct scope *scope, str text)
{
    static const struct behavior *const behaviors[] = { &machine_behavior, &flow_behavior,
                                                        &code_behavior };
    struct definition *definition;

    if (definition_load(scope, text, &definition) != PAWL_OK)
        return;
    REQUIRE(definition->initial < definition->state_count);
    for (int i = 0; i < 3; i++)
        if (behaviors[i]->kind == definition->kind && behaviors[i]->prepare)
            (void)behaviors[i]->prepare(definition, scope);
}

/* A flow of two steps, the second of which asks for the first one's result. */
static struct definition *small_flow(struct scope *scope)
{
    const str source =
        STR("name: f\nsteps:\n"
            "  start: {name: a, tool: set, args: {x: 1}, next: b, retry: {max: 2, backoff: [1s]}}\n"
            "  b: {tool: set, args: {y: \"{{steps.a.result.x}}\"}, done: true}\n");
    struct definition *definition;
    struct node *document;

    REQUIRE(node_read(scope, source, &document) == PAWL_OK);
    REQUIRE(flow_compile(scope, document, NULL, &definition) == PAWL_OK);
    REQUIRE(flow_behavior.prepare(definition, scope) == PAWL_OK);
    return definition;
}

static void load_memory(struct scope *scope, const struct behavior *behavior,
                        const struct definition *definition, str text)
{
    struct buf first, second;
    void *memory, *again;

    if (behavior->memory_load(definition, text, STR("{}"), scope, &scope->arena, &memory) !=
        PAWL_OK)
        return;
    buf_init(&first, &heap_libc, LIMIT_SCOPE);
    buf_init(&second, &heap_libc, LIMIT_SCOPE);
    behavior->memory_print(definition, memory, &first);
    REQUIRE(behavior->memory_load(definition, buf_view(&first), STR("{}"), scope, &scope->arena,
                                  &again) == PAWL_OK);
    behavior->memory_print(definition, again, &second);
    require_same(&first, &second);
    buf_fini(&second);
    buf_fini(&first);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct feed feed = { data, size };
    struct definition code = { .kind = KIND_CODE };
    struct scope scope;
    uint8_t as = feed_byte(&feed);
    str text = { (const char *)feed.data, feed.size };

    scope_init(&scope, &heap_libc, LIMIT_SCOPE);
    REQUIRE(definition_set_lifecycle(&code, &scope) == PAWL_OK);
    if (as == 'e')
        load_effects(&scope, text);
    else if (as == 'd')
        load_definition(&scope, text);
    else if (as == 'f')
        load_memory(&scope, &flow_behavior, small_flow(&scope), text);
    else
        load_memory(&scope, &code_behavior, &code, text);
    scope_fini(&scope);
    return 0;
}
