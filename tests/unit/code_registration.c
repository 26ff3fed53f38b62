/* code_registration.c - which code types may be registered, and what they are printed as. */
#include "base/limits.h"
#include "code/code.h"
#include "lib/fault.h"
#include "lib/test.h"

struct cart {
    int64_t count;
    double price;
    bool paid;
    char name[16];
};

static const pawl_var vars[] = { PAWL_VAR(struct cart, count, PAWL_VAR_INT64),
                                 PAWL_VAR(struct cart, price, PAWL_VAR_DOUBLE),
                                 PAWL_VAR(struct cart, paid, PAWL_VAR_BOOL),
                                 PAWL_VAR(struct cart, name, PAWL_VAR_TEXT),
                                 { 0 } };
static const char *const timers[] = { "expire", "remind", NULL };
static const char *const signals[] = { "pay \"now\"", NULL };

static void handle(void *context, pawl_turn *turn, void *state, const pawl_event *event)
{
    (void)context;
    (void)state;
    (void)event;
    pawl_turn_complete(turn, NULL);
}

static const pawl_code_type cart = { .name = "cart",
                                     .timers = timers,
                                     .signals = signals,
                                     .vars = vars,
                                     .state_size = sizeof(struct cart),
                                     .handle = handle };

static void expect_refused(struct test *t, pawl_code_type type, const char *words)
{
    struct definition *definition = NULL;

    EXPECT_EQ(code_compile(&t->scope, &(struct code_binding){ .type = &type, .run = code_run }, &definition), PAWL_INVALID_REQUEST);
    EXPECT(definition == NULL);
    EXPECT_HAS(t->scope.error.message, words);
}

TEST(code_registration, a_type_is_printed_as_its_source_and_plan)
{
    struct definition *definition;
    str source;

    EXPECT_OK(code_source(&t->scope, &cart, &source));
    EXPECT_STR(
        source,
        "{\"code\":\"cart\",\"version\":1,\"timers\":[\"expire\",\"remind\"],"
        "\"signals\":[\"pay \\\"now\\\"\"],\"vars\":[{\"name\":\"count\",\"type\":\"int64\"},"
        "{\"name\":\"price\",\"type\":\"double\"},{\"name\":\"paid\",\"type\":\"bool\"},"
        "{\"name\":\"name\",\"type\":\"text\"}]}");
    EXPECT_OK(code_compile(&t->scope, &(struct code_binding){ .type = &cart, .run = code_run }, &definition));
    EXPECT_STR(definition->plan_text, source.data);
    EXPECT_EQ(definition->kind, KIND_CODE);
    EXPECT_EQ(definition->transition_count, LIFE_T_COUNT);
}

TEST(code_registration, a_type_may_have_no_timers_signals_or_variables)
{
    pawl_code_type bare = { .name = "bare", .version = 7, .handle = handle };
    struct definition *definition;

    EXPECT_OK(code_compile(&t->scope, &(struct code_binding){ .type = &bare, .run = code_run }, &definition));
    EXPECT_STR(definition->plan_text,
               "{\"code\":\"bare\",\"version\":7,\"timers\":[],\"signals\":[],\"vars\":[]}");
}

TEST(code_registration, a_bad_type_is_refused_by_what_is_wrong)
{
    static const char *const twice[] = { "a", "b", "a", NULL };
    static const char *const unknown[] = { "gone", NULL };
    static const char *const blank[] = { "a", " ", NULL };
    static const char *const not_utf8[] = { "\xFF", NULL };
    static const char *const reserved[] = { "b", "~a", NULL };
    static const char *many[LIMIT_STATES];
    static char texts[LIMIT_STATES][8];
    pawl_code_type type = cart;

    expect_refused(t, (pawl_code_type){ .handle = handle }, "name");
    expect_refused(t, (pawl_code_type){ .name = "a@1", .handle = handle }, "'a@1'");
    expect_refused(t, (pawl_code_type){ .name = "cart" }, "no handler");
    type.timers = twice;
    expect_refused(t, type, "timer 'a' is declared twice");
    type = cart;
    type.buffered = twice;
    expect_refused(t, type, "buffered signal 'a' is declared twice");
    type.buffered = unknown;
    expect_refused(t, type, "'gone' is buffered, and no signal of the type");
    type = cart;
    type.timers = blank;
    expect_refused(t, type, "timer 1");
    type = cart;
    type.signals = not_utf8;
    expect_refused(t, type, "signal 0");
    type.signals = reserved;
    expect_refused(t, type, "signal '~a' begins with '~'");
    for (size_t i = 0; i + 1 < LIMIT_STATES; i++) {
        texts[i][0] = (char)('a' + i % 26);
        texts[i][1] = (char)('a' + i / 26 % 26);
        texts[i][2] = (char)('a' + i / 676);
        many[i] = texts[i];
    }
    type.signals = many;
    expect_refused(t, type, "at most 1024 signals");
    type = cart;
    type.state_size = (size_t)1 << 40;
    expect_refused(t, type, "state_size");
}

static void expect_var_refused(struct test *t, pawl_var var, const char *words)
{
    pawl_var rows[] = { PAWL_VAR(struct cart, count, PAWL_VAR_INT64), var, { 0 } };
    pawl_code_type type = cart;

    type.vars = rows;
    expect_refused(t, type, words);
}

TEST(code_registration, a_bad_variable_is_refused_by_what_is_wrong)
{
    expect_var_refused(t, (pawl_var){ "count", PAWL_VAR_INT64, 8, 8 }, "declared twice");
    expect_var_refused(t, (pawl_var){ NULL, PAWL_VAR_INT64, 8, 8 }, "variable 1");
    expect_var_refused(t, (pawl_var){ "", PAWL_VAR_INT64, 8, 8 }, "variable 1");
    expect_var_refused(t, (pawl_var){ "a", (pawl_var_type)0, 8, 8 }, "found 0");
    expect_var_refused(t, (pawl_var){ "a", (pawl_var_type)99, 8, 8 }, "found 99");
    expect_var_refused(t, (pawl_var){ "a", PAWL_VAR_INT64, 8, 4 }, "expected 8 bytes");
    expect_var_refused(t, (pawl_var){ "a", PAWL_VAR_BOOL, 8, 8 }, "found 8");
    expect_var_refused(t, (pawl_var){ "a", PAWL_VAR_TEXT, 8, 1 }, "at least 2");
    expect_var_refused(t, (pawl_var){ "a", PAWL_VAR_INT64, sizeof(struct cart) - 4, 8 },
                       "state_size");
    expect_var_refused(t, (pawl_var){ "a", PAWL_VAR_INT64, SIZE_MAX - 3, 8 }, "state_size");
    expect_var_refused(t, (pawl_var){ "a", PAWL_VAR_TEXT, 8, SIZE_MAX }, "state_size");
}

TEST(code_registration, no_memory_is_a_status)
{
    struct fault_heap fault = { 0 };

    FAULT_EACH(fault, FAULT_ONCE)
    {
        struct definition *definition = NULL;
        struct scope scope;
        pawl_status status;

        scope_init(&scope, &fault.heap, LIMIT_SCOPE);
        status = code_compile(&scope, &(struct code_binding){ .type = &cart, .run = code_run }, &definition);
        EXPECT_EQ(status, fault.has_failed ? PAWL_NO_MEMORY : PAWL_OK);
        EXPECT(!definition == (status != PAWL_OK));
        scope_fini(&scope);
    }
}
