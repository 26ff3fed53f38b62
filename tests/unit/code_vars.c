/* code_vars.c - tracked variables of every kind: what they are stored as, and what is refused. */
#include "base/limits.h"
#include "code/code.h"
#include "lib/fault.h"
#include "lib/test.h"
#include <float.h>
#include <pawl_code.h>

#define SPOT(has) has(double, x) has(text, tag, 8)
PAWL_STRUCT(spot, SPOT);

#define ALL(has)                                                                                   \
    has(input, uint32_t, first, 7)                                                                 \
    has(input, part, base, spot)                                                                   \
    has(var, int8_t, i8)                                                                           \
    has(var, int16_t, i16)                                                                         \
    has(var, int32_t, i32, -3)                                                                     \
    has(var, int64_t, i64)                                                                         \
    has(var, uint8_t, u8)                                                                          \
    has(var, uint16_t, u16)                                                                        \
    has(var, uint32_t, u32)                                                                        \
    has(var, uint64_t, u64)                                                                        \
    has(var, float, f32, 0.1f)                                                                     \
    has(var, double, f64)                                                                          \
    has(var, bool, yes, true)                                                                      \
    has(var, text, word, 8, "begin")                                                               \
    has(var, json, any, 32)                                                                        \
    has(var, list, few, int16_t, 3)                                                                \
    has(var, texts, words, 4, 2)                                                                   \
    has(var, part, home, spot)                                                                     \
    has(var, parts, way, spot, 2)                                                                  \
    has(timer, Tick)                                                                               \
    has(signal, SetSpot, part, spot)                                                               \
    has(signal, SetByte, uint8_t)                                                                  \
    has(signal, SetList, list, int16_t, 3)                                                         \
    has(await, here)

struct all;
struct all_got;
static void (*script)(struct all *self, const struct all_got *got);

PAWL_CODE(all, ALL)
{
    PAWL_BEGIN(ALL);
    for (;;) {
        if (script)
            script(self, got);
        PAWL_SELECT(here)
        {
            PAWL_ON_TIMER(Tick, PAWL_SECS(1)) continue;
            PAWL_ON_SIGNAL(SetSpot) self->home = got->SetSpot;
            PAWL_ON_SIGNAL(SetByte) self->u8 = got->SetByte;
            PAWL_ON_SIGNAL(SetList) memcpy(self->few, got->SetList, sizeof self->few);
        }
        PAWL_AWAIT;
    }
    PAWL_END;
}

static const pawl_code_type *wired(struct test *t)
{
    const pawl_code_type *type = code_copy(&t->scope.arena, all());

    EXPECT(type != NULL);
    return type;
}

/* One turn on a stored state. */
static pawl_status turn(struct test *t, const char *state, struct turn_request request,
                        struct turn_answer *out)
{
    struct code_binding binding = { .type = wired(t), .run = code_run };

    request.state = str_of(state);
    if (!request.kind)
        request.kind = PAWL_EVENT_TIMER;
    if (!request.name.data)
        request.name = STR("tick");
    return code_run(&binding, &request, &t->scope, out);
}

static str begin(struct test *t, const char *input)
{
    struct turn_answer answer;

    EXPECT_OK(turn(t, NULL,
                   (struct turn_request){ .kind = PAWL_EVENT_START, .payload = str_of(input) },
                   &answer));
    EXPECT_EQ(answer.end, TURN_WAITS);
    return answer.state;
}

/* E2, E18 */
TEST(code_vars, every_kind_has_its_first_value_and_is_stored_by_name)
{
    script = NULL;
    EXPECT_STR(begin(t, "null"),
               "{\"phase\":\"here\",\"first\":7,\"base\":{\"x\":0,\"tag\":\"\"},\"i8\":0,\"i16\":0,"
               "\"i32\":-3,\"i64\":0,\"u8\":0,\"u16\":0,\"u32\":0,\"u64\":0,\"f32\":0.1,\"f64\":0,"
               "\"yes\":true,\"word\":\"begin\",\"any\":null,\"few\":[],\"words\":[],"
               "\"home\":{\"x\":0,\"tag\":\"\"},\"way\":[]}");
}

static void set_extremes(struct all *self, const struct all_got *got)
{
    (void)got;
    if (self->i8)
        return;
    self->i8 = INT8_MIN;
    self->i16 = INT16_MIN;
    self->i32 = INT32_MIN;
    self->i64 = INT64_MIN;
    self->u8 = UINT8_MAX;
    self->u16 = UINT16_MAX;
    self->u32 = UINT32_MAX;
    self->u64 = UINT64_MAX;
    self->f32 = FLT_MAX;
    self->f64 = 0.1 + 0.2;
    self->yes = false;
    memcpy(self->word, "1234567", 8);
    memcpy(self->any, "[1, {\"a\":null}]", 16);
    self->few_count = 2;
    self->few[0] = -1;
    self->few[1] = 2;
    self->words_count = 2;
    memcpy(self->words[1], "abc", 4);
    self->way_count = 1;
    self->way[0].x = 1.5;
    memcpy(self->way[0].tag, "t", 2);
}

/* E3: a fresh handler that is given the stored bytes goes on the same. */
TEST(code_vars, extremes_of_every_kind_come_back_exactly)
{
    struct turn_answer answer;
    str first;

    script = set_extremes;
    first = begin(t, "{}");
    EXPECT_HAS(first.data, "\"i8\":-128,\"i16\":-32768,\"i32\":-2147483648,"
                           "\"i64\":-9223372036854775808,\"u8\":255,\"u16\":65535,"
                           "\"u32\":4294967295,\"u64\":18446744073709551615,"
                           "\"f32\":3.4028235e+38,\"f64\":0.30000000000000004,\"yes\":false");
    EXPECT_HAS(first.data, "\"any\":[1, {\"a\":null}],\"few\":[-1,2],\"words\":[\"\",\"abc\"],"
                           "\"home\":{\"x\":0,\"tag\":\"\"},\"way\":[{\"x\":1.5,\"tag\":\"t\"}]");
    EXPECT_OK(turn(t, first.data, (struct turn_request){ 0 }, &answer));
    EXPECT_STR(answer.state, first.data);
}

TEST(code_vars, a_stored_value_that_does_not_fit_is_named_and_the_instance_stays)
{
    static const struct {
        const char *state, *variable;
    } rows[] = {
        { "{\"i8\":128}", "'i8' is int8 of 1" },
        { "{\"i8\":-129}", "'i8'" },
        { "{\"i16\":32768}", "'i16'" },
        { "{\"i32\":2147483648}", "'i32'" },
        { "{\"i64\":9223372036854775808}", "'i64'" },
        { "{\"u8\":256}", "'u8'" },
        { "{\"u8\":-1}", "'u8'" },
        { "{\"u16\":65536}", "'u16'" },
        { "{\"u32\":4294967296}", "'u32'" },
        { "{\"u64\":18446744073709551616}", "'u64'" },
        { "{\"u64\":1.0}", "'u64'" },
        { "{\"f32\":1e300}", "'f32'" },
        { "{\"f64\":\"1\"}", "'f64'" },
        { "{\"yes\":1}", "'yes'" },
        { "{\"word\":\"12345678\"}", "'word' is text of 8 bytes, found a string of 8" },
        { "{\"any\":[1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16]}", "'any'" },
        { "{\"few\":[1,2,3,4]}", "'few' is int16 of 2 bytes each, in a list, found an array of 4" },
        { "{\"few\":[70000]}", "'few'" },
        { "{\"few\":7}", "'few'" },
        { "{\"words\":[\"abcd\"]}", "'words'" },
        { "{\"home\":[]}", "'home'" },
        { "{\"home\":{\"x\":\"far\"}}", "'x' is double" },
        { "{\"way\":[{},{},{}]}", "'way'" },
        { "{\"way\":[{\"tag\":7}]}", "'tag'" },
    };
    struct turn_answer answer;

    script = NULL;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        EXPECT_EQ(turn(t, rows[i].state, (struct turn_request){ 0 }, &answer), PAWL_NOT_KNOWN);
        EXPECT_HAS(t->scope.error.message, rows[i].variable);
        EXPECT_HAS(t->scope.error.message, "code type 'all' in this program cannot hold");
    }
}

TEST(code_vars, an_unknown_place_is_named_and_the_instance_stays)
{
    struct turn_answer answer;

    script = NULL;
    EXPECT_EQ(turn(t, "{\"phase\":\"there\"}", (struct turn_request){ 0 }, &answer),
              PAWL_NOT_KNOWN);
    EXPECT_HAS(t->scope.error.message, "waits at 'there'");
}

static void expect_defaults(struct all *self, const struct all_got *got)
{
    (void)got;
    EXPECT_EQ(self->i32, -3);
    EXPECT_EQ(self->first, 7);
    EXPECT(self->yes);
    EXPECT_TEXT(self->word, "begin");
    EXPECT_EQ(self->u8, 9);
}

TEST(code_vars, a_variable_the_state_does_not_have_begins_with_its_default)
{
    struct turn_answer answer;

    script = expect_defaults;
    EXPECT_OK(turn(t, "{\"phase\":\"here\",\"u8\":9,\"gone\":[1]}", (struct turn_request){ 0 },
                   &answer));
}

TEST(code_vars, the_input_fills_its_variables_and_is_refused_where_it_does_not_fit)
{
    struct turn_answer answer;

    script = NULL;
    EXPECT_HAS(begin(t, "{\"first\":41,\"base\":{\"tag\":\"b\"},\"u8\":5}").data,
               "\"first\":41,\"base\":{\"x\":0,\"tag\":\"b\"},\"i8\":0");
    EXPECT_HAS(begin(t, "{\"u8\":5}").data, "\"u8\":0"); /* no input of ours */
    EXPECT_EQ(turn(t, NULL,
                   (struct turn_request){ .kind = PAWL_EVENT_START,
                                          .payload = STR("{\"first\":-1}") },
                   &answer),
              PAWL_INVALID_REQUEST);
    EXPECT_TEXT(t->scope.error.message, "input: expected uint32 for 'first', found a number: -1");
}

/* Versions that a store had before the rule keep accepting what they accepted. */
TEST(code_vars, a_version_of_an_older_compiler_takes_members_that_are_unknown)
{
    struct code_binding binding = { .type = wired(t), .run = code_run };
    const struct event event = { EVENT_START, .at_ms = 1, .payload = STR("{\"frist\":1}") };
    struct standing standing = { .state = LIFE_CREATED };
    struct definition *definition;
    struct decision decision = { 0 };

    script = NULL;
    EXPECT_OK(code_compile(&t->scope, &binding, &definition));
    EXPECT_EQ(code_behavior.decide(definition, &standing, &event, &t->scope, &decision),
              PAWL_INVALID_REQUEST);
    EXPECT_HAS(t->scope.error.message, "found the member 'frist'; did you mean 'first'?");
    definition->compiler = 2;
    EXPECT_OK(code_behavior.decide(definition, &standing, &event, &t->scope, &decision));
}

TEST(code_vars, only_a_strict_turn_refuses_members_that_are_unknown)
{
    struct turn_request request = { .kind = PAWL_EVENT_SIGNAL,
                                    .name = STR("set_spot"),
                                    .payload = STR("{\"x\":4,\"z\":1}") };
    struct turn_answer answer;

    script = NULL;
    EXPECT_OK(turn(t, "{\"phase\":\"here\"}", request, &answer));
    EXPECT_HAS(answer.state.data, "\"home\":{\"x\":4,");
    request.is_strict = true;
    EXPECT_EQ(turn(t, "{\"phase\":\"here\"}", request, &answer), PAWL_INVALID_REQUEST);
    EXPECT_TEXT(t->scope.error.message,
                "the payload of 'set_spot': expected one of x, tag, found the member 'z'");
}

/* A signal that was kept was accepted then: what it has too much does not matter any more. */
TEST(code_vars, a_signal_that_was_kept_may_have_members_that_are_unknown)
{
    struct code_binding binding = { .type = wired(t), .run = code_run };
    struct standing standing = { .state = LIFE_CREATED };
    struct event event = { EVENT_START, .at_ms = 1, .payload = STR("{}") };
    struct definition *definition;
    struct decision decision = { 0 };
    void *memory;

    script = NULL;
    EXPECT_OK(code_compile(&t->scope, &binding, &definition));
    standing.memory = memory = code_behavior.memory_new(definition, STR_NONE, &t->scope.arena);
    EXPECT_OK(code_behavior.keep(memory, STR("set_spot"), STR("{\"x\":4,\"z\":1}"), &t->scope,
                                 &t->scope.arena));
    EXPECT_OK(code_behavior.decide(definition, &standing, &event, &t->scope, &decision));
    EXPECT_EQ(decision.count, 2); /* the start, and the kept signal */
    EXPECT_EQ(decision.drafts[1].transition, LIFE_T_SIGNAL);
    EXPECT(!decision.drafts[1].reason.data); /* it was not passed over */
}

/* E8: a single value, none, or a struct. */
TEST(code_vars, a_payload_is_decoded_for_its_arm_and_refused_where_it_does_not_fit)
{
    struct turn_request request = { .kind = PAWL_EVENT_SIGNAL, .name = STR("set_spot") };
    struct turn_answer answer;

    script = NULL;
    request.payload = STR("{\"x\":2.5,\"tag\":\"here\"}");
    EXPECT_OK(turn(t, "{\"phase\":\"here\"}", request, &answer));
    EXPECT_HAS(answer.state.data, "\"home\":{\"x\":2.5,\"tag\":\"here\"}");
    request.payload = STR("7");
    EXPECT_EQ(turn(t, "{\"phase\":\"here\"}", request, &answer), PAWL_INVALID_REQUEST);
    EXPECT_HAS(t->scope.error.message, "the payload of 'set_spot': expected struct");
    request.name = STR("set_byte");
    EXPECT_OK(turn(t, "{\"phase\":\"here\"}", request, &answer));
    EXPECT_HAS(answer.state.data, "\"u8\":7");
    request.payload = STR("256");
    EXPECT_EQ(turn(t, "{\"phase\":\"here\"}", request, &answer), PAWL_INVALID_REQUEST);
    EXPECT_HAS(t->scope.error.message, "'set_byte': expected uint8 for 'SetByte', found a number: 256");
    request.payload = STR_NONE;
    EXPECT_EQ(turn(t, "{\"phase\":\"here\"}", request, &answer), PAWL_INVALID_REQUEST);
}

static void overfill(struct all *self, const struct all_got *got)
{
    (void)got;
    self->few_count = 4;
}

static void write_bad_json(struct all *self, const struct all_got *got)
{
    (void)got;
    memcpy(self->any, "{oops", 6);
}

TEST(code_vars, what_cannot_be_stored_holds_the_instance_in_words)
{
    struct turn_answer answer;

    script = overfill;
    EXPECT_OK(turn(t, NULL, (struct turn_request){ .kind = PAWL_EVENT_START }, &answer));
    EXPECT_EQ(answer.end, TURN_HOLDS);
    EXPECT_STR(answer.problem, "the variable 'few' has room for 3, and its count is 4");
    EXPECT(!answer.state.data);
    script = write_bad_json;
    EXPECT_OK(turn(t, NULL, (struct turn_request){ .kind = PAWL_EVENT_START }, &answer));
    EXPECT_HAS(answer.problem.data, "the variable 'any' is not JSON: line 1, column 2: ");
}

/* E20 */
TEST(code_vars, names_are_snake_case_outside)
{
    static const char *const names[][2] = { { "StartPatrol", "start_patrol" },
                                            { "ThreatDetected", "threat_detected" },
                                            { "tick", "tick" },
                                            { "HTTPDone", "http_done" },
                                            { "Phase2", "phase2" },
                                            { "stand_down", "stand_down" },
                                            { "pay \"Now\"", "pay \"Now\"" } };
    char out[32], small[4];

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        EXPECT_EQ(pawl_wire_name(names[i][0], out, sizeof out), strlen(names[i][1]));
        EXPECT_TEXT(out, names[i][1]);
    }
    EXPECT_EQ(pawl_wire_name("StartPatrol", small, sizeof small), 12);
    EXPECT_TEXT(small, "sta");
    EXPECT_TEXT(wired(t)->timers[0], "tick");
    EXPECT_TEXT(wired(t)->signals[0], "set_spot");
}

TEST(code_vars, a_type_prints_its_parts_payloads_and_places)
{
    str source;

    EXPECT_OK(code_source(&t->scope, wired(t), &source));
    EXPECT_HAS(source.data, "\"timers\":[\"tick\"],\"signals\":[\"set_spot\",\"set_byte\",");
    EXPECT_HAS(source.data, "{\"name\":\"first\",\"type\":\"uint32\",\"input\":true}");
    EXPECT_HAS(source.data, "{\"name\":\"way\",\"type\":\"struct\",\"max\":2,\"fields\":[{\"name\":"
                            "\"x\",\"type\":\"double\"},{\"name\":\"tag\",\"type\":\"text\"}]}");
    EXPECT_HAS(source.data, "\"phases\":[\"here\"]");
    EXPECT_HAS(source.data, "\"payloads\":[{\"name\":\"SetSpot\",\"type\":\"struct\"");
}

TEST(code_vars, no_memory_is_a_status_wherever_it_strikes_a_turn)
{
    struct fault_heap fault = { 0 };
    struct code_binding binding = { .type = wired(t), .run = code_run };
    struct turn_request request = { .kind = PAWL_EVENT_SIGNAL,
                                    .name = STR("set_spot"),
                                    .payload = STR("{\"x\":1}") };
    str state;

    script = set_extremes;
    state = begin(t, "{}");
    request.state = state;
    FAULT_EACH(fault, FAULT_ONCE)
    {
        struct turn_answer answer;
        struct scope scope;
        pawl_status status;

        scope_init(&scope, &fault.heap, LIMIT_SCOPE);
        status = code_run(&binding, &request, &scope, &answer);
        EXPECT_EQ(status, fault.has_failed ? PAWL_NO_MEMORY : PAWL_OK);
        scope_fini(&scope);
    }
}
