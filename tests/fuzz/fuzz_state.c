/* fuzz_state.c - the stored state of a code instance, its event, and what a module's child says: any text
 * is refused by name, or held and printed the same again. The first byte says as what the rest is read. */
#include "code/code.h"
#include "fuzz.h"
#include "module/module_int.h"
#include <pawl_code.h>

#define SPOT(has) has(double, x) has(text, tag, 8)
PAWL_STRUCT(spot, SPOT);

#define ALL(has)                                                                                   \
    has(input, int8_t, i8, 3)                                                                      \
    has(input, uint16_t, u16)                                                                      \
    has(var, int64_t, i64)                                                                         \
    has(var, uint64_t, u64)                                                                        \
    has(var, float, f32)                                                                           \
    has(var, bool, yes, true)                                                                      \
    has(var, text, word, 8, "begin")                                                               \
    has(var, json, any, 32)                                                                        \
    has(var, list, few, int16_t, 3)                                                                \
    has(var, texts, words, 4, 2)                                                                   \
    has(var, part, home, spot)                                                                     \
    has(var, parts, way, spot, 2)                                                                  \
    has(timer, Tick)                                                                               \
    has(signal, Set, part, spot)                                                                   \
    has(signal, Count, int64_t)                                                                    \
    has(await, here)

PAWL_CODE(all, ALL)
{
    PAWL_BEGIN(ALL);
    for (;;) {
        PAWL_SELECT(here)
        {
            PAWL_ON_TIMER(Tick, PAWL_SECS(1)) continue;
            PAWL_ON_SIGNAL(Set) self->home = got->Set;
            PAWL_ON_SIGNAL(Count) self->i64 = got->Count;
        }
        PAWL_AWAIT;
    }
    PAWL_END;
}

static pawl_status turn(struct scope *scope, struct turn_request request, struct turn_answer *out)
{
    struct code_binding binding = { .type = code_copy(&scope->arena, all()), .run = code_run };

    REQUIRE(binding.type != NULL);
    return code_run(&binding, &request, scope, out);
}

/* What one turn left, the next one holds, and leaves the same. */
static void hold(struct scope *scope, struct turn_request request)
{
    const struct turn_request tick = { .kind = PAWL_EVENT_TIMER, .name = STR("tick") };
    struct turn_request again = tick;
    struct turn_answer first, second;

    if (turn(scope, request, &first) != PAWL_OK)
        return;
    REQUIRE(first.end == TURN_WAITS && first.state.data);
    again.state = first.state;
    REQUIRE(turn(scope, again, &second) == PAWL_OK);
    REQUIRE(str_eq(first.state, second.state));
}

static void answer(struct scope *scope, str text)
{
    struct turn_answer first, second;
    struct buf buf;

    if (wire_read_answer(scope, text, &first) != PAWL_OK)
        return;
    buf_init(&buf, &heap_libc, LIMIT_SCOPE);
    wire_print_answer(&first, &buf);
    REQUIRE(wire_read_answer(scope, buf_view(&buf), &second) == PAWL_OK);
    REQUIRE(first.end == second.end && first.timers.count == second.timers.count);
    buf_fini(&buf);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct feed feed = { data, size };
    struct scope scope;
    uint8_t as = feed_byte(&feed);
    str text = { (const char *)feed.data, feed.size };

    scope_init(&scope, &heap_libc, LIMIT_SCOPE);
    if (as == 's')
        hold(&scope, (struct turn_request){ .kind = PAWL_EVENT_TIMER,
                                            .name = STR("tick"),
                                            .state = text });
    else if (as == 'i')
        hold(&scope, (struct turn_request){ .kind = PAWL_EVENT_START, .payload = text });
    else if (as == 'p')
        hold(&scope, (struct turn_request){ .kind = PAWL_EVENT_SIGNAL,
                                            .name = STR("set"),
                                            .payload = text,
                                            .state = STR("{\"phase\":\"here\"}") });
    else
        answer(&scope, text);
    scope_fini(&scope);
    return 0;
}
