/* change.c - the table "Change it while instances run" of docs/durable-code.md, line by line: code
 * that changed under an instance that waits (E1, E2, E18). Each test names its line, and has the build
 * before and the build after. */
#include "lib/test.h"
#include <pawl_code.h>
#include <pawl_test.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

struct era {
    pawl_kit kit;
    char folder[TEST_FOLDER_SIZE], url[96], id[27];
};

/* Another build of the program opens the same store. */
static void build(struct era *era, const pawl_code_type *type)
{
    if (era->kit.p)
        pawl_kit_close(&era->kit);
    pawl_kit_open(&era->kit, era->url);
    pawl_kit_register(&era->kit, type);
}

/* The first build, with one instance. */
static void begin(struct era *era, const pawl_code_type *type)
{
    memset(era, 0, sizeof *era);
    test_folder(era->folder);
    snprintf(era->url, sizeof era->url, "sqlite:%s/c.db", era->folder);
    build(era, type);
    memcpy(era->id, pawl_kit_start(&era->kit, "changing", NULL), 27);
}

static void signal_ok(struct era *era, const char *name, const char *payload)
{
    PAWL_EXPECT_OK(&era->kit, pawl_kit_signal(&era->kit, era->id, name, payload));
}

static void signal_refused(struct era *era, const char *name, const char *words)
{
    PAWL_EXPECT_STATUS(&era->kit, pawl_kit_signal(&era->kit, era->id, name, "1"), PAWL_NOT_KNOWN);
    EXPECT_HAS(era->kit.error.message, words);
}

static void expect_no_variable(struct era *era, const char *name)
{
    const char *variables = pawl_kit_ask(&era->kit, "instance.variables", era->id);

    EXPECT(strstr(variables, name) == NULL);
}

static void end(struct era *era)
{
    char *out, command[96];

    PAWL_EXPECT_OK(&era->kit, pawl_call(era->kit.p, "store.verify", NULL, &out, &era->kit.error));
    EXPECT_HAS(out, "\"valid\":true");
    pawl_free(era->kit.p, out);
    pawl_kit_close(&era->kit);
    snprintf(command, sizeof command, "rm -r %s", era->folder);
    EXPECT(system(command) == 0);
}

/* ---- Variables -------------------------------------------------------------------------------- */

#define COUNTS(has)                                                                                \
    has(var, uint32_t, n, 300)                                                                     \
    has(var, double, share, 0.1)                                                                   \
    has(var, text, word, 16, "a long word")                                                        \
    has(signal, Go, uint32_t)                                                                      \
    has(result, uint32_t, n)                                                                       \
    has(await, first)                                                                              \
    has(await, second)

PAWL_CODE_AS(counts, "changing", COUNTS)
{
    PAWL_BEGIN(COUNTS);
    PAWL_SIGNAL(first, Go);
    self->n += got->Go;
    PAWL_SIGNAL(second, Go);
    result->n = self->n;
    PAWL_END;
}

#define ONE_AWAIT(has) has(signal, Go, uint32_t) has(await, first) has(await, second)

/* Waits at both places and does nothing with what it has. */
#define BUILD_OF(name, ...)                                                                        \
    PAWL_CODE_AS(name, "changing", __VA_ARGS__)                                                    \
    {                                                                                              \
        PAWL_BEGIN(__VA_ARGS__);                                                                   \
        PAWL_SIGNAL(first, Go);                                                                    \
        PAWL_SIGNAL(second, Go);                                                                   \
        PAWL_END;                                                                                  \
    }

#define ADDED(has) ONE_AWAIT(has) has(var, uint32_t, more, 7) has(var, uint32_t, n)
BUILD_OF(added, ADDED)

/* | a variable more | */
TEST(change, a_variable_that_is_added_begins_with_its_first_value)
{
    struct era era;

    begin(&era, counts());
    build(&era, added());
    signal_ok(&era, "go", "1");
    PAWL_EXPECT_VARIABLE(&era.kit, era.id, "more", "7");
    PAWL_EXPECT_VARIABLE(&era.kit, era.id, "n", "300");
    end(&era);
}

#define DROPPED(has) ONE_AWAIT(has) has(var, text, word, 16) has(var, uint32_t, n)
BUILD_OF(dropped, DROPPED)

/* | a variable less, or the list in another order | */
TEST(change, variables_may_be_dropped_and_put_in_another_order)
{
    struct era era;

    begin(&era, counts());
    build(&era, dropped());
    signal_ok(&era, "go", "1");
    PAWL_EXPECT_VARIABLE(&era.kit, era.id, "n", "300");
    PAWL_EXPECT_VARIABLE(&era.kit, era.id, "word", "\"a long word\"");
    expect_no_variable(&era, "\"share\"");
    end(&era);
}

#define RENAMED(has)                                                                               \
    ONE_AWAIT(has)                                                                                 \
    has(renamed, m, count)                                                                         \
    has(renamed, n, count)                                                                         \
    has(var, uint32_t, count, 1)
BUILD_OF(renamed, RENAMED)

/* | a variable with another name | */
TEST(change, a_renamed_variable_keeps_its_value)
{
    struct era era;

    begin(&era, counts());
    build(&era, renamed());
    signal_ok(&era, "go", "1");
    PAWL_EXPECT_VARIABLE(&era.kit, era.id, "count", "300");
    expect_no_variable(&era, "\"n\"");
    end(&era);
}

#define TO_NOTHING(has) ONE_AWAIT(has) has(renamed, n, count)
#define FROM_LIVING(has)                                                                           \
    ONE_AWAIT(has) has(renamed, n, count) has(var, uint32_t, n) has(var, uint32_t, count)
#define FROM_TWICE(has)                                                                            \
    ONE_AWAIT(has) has(renamed, n, a) has(renamed, n, b) has(var, uint32_t, a) has(var, uint32_t, b)
BUILD_OF(to_nothing, TO_NOTHING)
BUILD_OF(from_living, FROM_LIVING)
BUILD_OF(from_twice, FROM_TWICE)

/* | a variable with another name | */
TEST(change, a_renaming_that_cannot_be_meant_is_refused_at_registration)
{
    const struct {
        const pawl_code_type *type;
        const char *words;
    } rows[] = { { to_nothing(), "renamed 'n' to 'count': expected a variable of the list" },
                 { from_living(), "renamed 'n' to 'count': 'n' is a variable" },
                 { from_twice(), "renamed 'n' to 'b': it is renamed to 'a' already" } };
    struct era era;

    begin(&era, counts());
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        EXPECT_EQ(pawl_code_register(era.kit.p, rows[i].type, &era.kit.error),
                  PAWL_INVALID_REQUEST);
        EXPECT_HAS(era.kit.error.message, rows[i].words);
    }
    end(&era);
}

#define WIDER(has)                                                                                 \
    ONE_AWAIT(has) has(var, int64_t, n) has(var, double, share) has(var, text, word, 64)
#define NARROWER(has)                                                                              \
    ONE_AWAIT(has) has(var, int16_t, n) has(var, double, share) has(var, text, word, 12)
BUILD_OF(wider, WIDER)
BUILD_OF(narrower, NARROWER)

/* | a variable of another size | */
TEST(change, a_variable_of_another_size_holds_a_value_that_fits)
{
    const pawl_code_type *types[] = { wider(), narrower() };

    for (size_t i = 0; i < 2; i++) {
        struct era era;

        begin(&era, counts());
        build(&era, types[i]);
        signal_ok(&era, "go", "1");
        PAWL_EXPECT_VARIABLE(&era.kit, era.id, "n", "300");
        PAWL_EXPECT_VARIABLE(&era.kit, era.id, "share", "0.1");
        PAWL_EXPECT_VARIABLE(&era.kit, era.id, "word", "\"a long word\"");
        end(&era);
    }
}

#define BYTE(has) ONE_AWAIT(has) has(var, uint8_t, n)
#define SHORTER(has) ONE_AWAIT(has) has(var, text, word, 8)
BUILD_OF(byte, BYTE)
BUILD_OF(shorter, SHORTER)

/* Refused, and the build before goes on as if nothing had been. */
static void refuse_all(const pawl_code_type *const types[], const char *const words[], size_t count)
{
    struct era era;

    begin(&era, counts());
    for (size_t i = 0; i < count; i++) {
        build(&era, types[i]);
        signal_refused(&era, "go", words[i]);
        EXPECT_HAS(era.kit.error.message, "raise the version and migrate");
        PAWL_EXPECT_HISTORY(&era.kit, era.id, "start");
    }
    build(&era, counts());
    signal_ok(&era, "go", "1");
    signal_ok(&era, "go", "1");
    PAWL_EXPECT_RESULT(&era.kit, era.id, "{\"n\":301}");
    end(&era);
}

/* | a variable of another size | */
TEST(change, a_value_that_does_not_fit_the_new_size_is_refused_and_shown)
{
    const pawl_code_type *const types[] = { byte(), shorter() };
    const char *const words[] = { "variable 'n' is uint8 of 1 bytes, found a number: 300",
                                  "variable 'word' is text of 8 bytes, found a string of 11" };

    refuse_all(types, words, 2);
}

#define TO_TEXT(has) ONE_AWAIT(has) has(var, text, n, 16)
#define TO_DOUBLE(has) ONE_AWAIT(has) has(var, double, n)
#define TO_LIST(has) ONE_AWAIT(has) has(var, list, n, uint32_t, 3)
#define TO_JSON(has) ONE_AWAIT(has) has(var, json, word, 64)
#define TO_FLOAT(has) ONE_AWAIT(has) has(var, float, share)
#define TO_DOUBLE_RENAMED(has) ONE_AWAIT(has) has(renamed, n, count) has(var, double, count)
BUILD_OF(to_text, TO_TEXT)
BUILD_OF(to_double, TO_DOUBLE)
BUILD_OF(to_list, TO_LIST)
BUILD_OF(to_json, TO_JSON)
BUILD_OF(to_float, TO_FLOAT)
BUILD_OF(to_double_renamed, TO_DOUBLE_RENAMED)

/* | a variable of another kind | */
TEST(change, a_variable_of_another_kind_is_refused_whatever_its_value)
{
    const pawl_code_type *const types[] = { to_text(), to_double(), to_list(), to_json(),
                                            to_float(), to_double_renamed() };
    const char *const words[] = { "variable 'n' is text of 16 bytes, found a number: 300",
                                  "variable 'n' was uint32 and is double",
                                  "variable 'n' is uint32 of 4 bytes each, in a list, found a number: 300",
                                  "variable 'word' was text and is json",
                                  "variable 'share' was double and is float",
                                  "variable 'count' was uint32 and is double" };

    refuse_all(types, words, 6);
}

/* ---- Calls, externals, children --------------------------------------------------------------- */

/* Asks once, and then waits for Go. */
#define ASKING(has)                                                                                \
    has(external, approve, bool)                                                                   \
    has(signal, Go, uint32_t)                                                                      \
    has(var, uint32_t, n)                                                                          \
    has(await, asking)                                                                             \
    has(await, first)

PAWL_CODE_AS(asking, "changing", ASKING)
{
    PAWL_BEGIN(ASKING);
    PAWL_EXTERNAL(asking, approve, "\"old\"");
    PAWL_SIGNAL(first, Go);
    PAWL_END;
}

/* A hotfix: after Go it asks for more, calls a tool and spawns a child. */
#define CALLING(has)                                                                               \
    has(call, charge, uint32_t)                                                                    \
    has(external, sign, bool)                                                                      \
    has(external, approve, bool)                                                                   \
    has(child, helping)                                                                            \
    has(signal, Go, uint32_t)                                                                      \
    has(signal, Later, uint32_t)                                                                   \
    has(buffered, Later)                                                                           \
    has(var, uint32_t, n)                                                                          \
    has(result, uint32_t, n)                                                                       \
    has(await, asking)                                                                             \
    has(await, first)                                                                              \
    has(await, charging)                                                                           \
    has(await, signing)                                                                            \
    has(await, helped)                                                                             \
    has(await, last)

PAWL_CODE_AS(calling, "changing", CALLING)
{
    PAWL_BEGIN(CALLING);
    PAWL_EXTERNAL(asking, approve, "\"new\"");
    PAWL_SIGNAL(first, Go);
    PAWL_CALL(charging, charge, "[1]");
    self->n += got->charge;
    PAWL_EXTERNAL(signing, sign, "\"new\"");
    PAWL_SPAWN(helped, helping, "{}");
    PAWL_SIGNAL(last, Later);
    self->n += got->Later;
    result->n = self->n;
    PAWL_END;
}

#define HELPING(has) has(signal, Done) has(result, uint32_t, n) has(await, working)

PAWL_CODE(helping, HELPING)
{
    PAWL_BEGIN(HELPING);
    PAWL_SIGNAL(working, Done);
    result->n = 5;
    PAWL_END;
}

static void charge_tool(void *context, const pawl_tool_call *call, pawl_tool_answer *answer)
{
    (void)context;
    (void)call;
    pawl_answer_result(answer, "7");
}

/* The hotfix, with its tool; what is ready is run at once. */
static void build_calling(struct era *era, const pawl_code_type *type)
{
    build(era, type);
    pawl_kit_register(&era->kit, helping());
    PAWL_EXPECT_OK(&era->kit,
                   pawl_tool_register(era->kit.p, "charge", charge_tool, NULL, &era->kit.error));
    pawl_kit_advance(&era->kit, 0);
}

/* The instance that was created last. */
static void find_child(struct era *era, char out[27])
{
    char *list;

    PAWL_EXPECT_OK(&era->kit,
                   pawl_call(era->kit.p, "instance.list", "{\"limit\":1}", &list, &era->kit.error));
    memcpy(out, strstr(list, "\"instance_id\":\"") + strlen("\"instance_id\":\""), 26);
    out[26] = '\0';
    pawl_free(era->kit.p, list);
}

static void answer_ok(struct era *era, const char *result)
{
    PAWL_EXPECT_OK(&era->kit, pawl_kit_answer(&era->kit, era->id, result, NULL));
}

/* | a call, an external step or a child more | */
TEST(change, a_call_an_external_and_a_child_more_reach_instances_under_way)
{
    struct era era;
    char child[27];

    begin(&era, asking());
    answer_ok(&era, "true");
    build_calling(&era, calling());
    signal_ok(&era, "go", "1");
    pawl_kit_advance(&era.kit, 0);
    EXPECT_HAS(pawl_kit_ask(&era.kit, "instance.why", era.id), "\"sign\"");
    build_calling(&era, calling()); /* what the entry brought is there for the next process */
    EXPECT_HAS(pawl_kit_ask(&era.kit, "instance.steps", era.id), "\"charge\"");
    answer_ok(&era, "true");
    find_child(&era, child);
    signal_ok(&era, "later", "2"); /* kept, and taken in the commit that awaits it */
    PAWL_EXPECT_OK(&era.kit, pawl_kit_signal(&era.kit, child, "done", NULL));
    pawl_kit_advance(&era.kit, 0);
    PAWL_EXPECT_RESULT(&era.kit, era.id, "{\"n\":9}");
    PAWL_EXPECT_HISTORY(&era.kit, era.id,
                        "start step.complete:approve amend signal:go step.start:charge "
                        "step.complete:charge step.complete:sign child:helping signal:later finish");
    end(&era);
}

/* | a call, an external step or a child less, or in another order | */
TEST(change, what_was_called_before_keeps_its_name_and_its_answer)
{
    struct era era;

    begin(&era, asking());
    build_calling(&era, calling()); /* `approve` is the third of its steps here, and was the first */
    EXPECT_HAS(pawl_kit_ask(&era.kit, "instance.why", era.id), "\"approve\"");
    answer_ok(&era, "true");
    signal_ok(&era, "go", "1");
    pawl_kit_advance(&era.kit, 0);
    PAWL_EXPECT_HISTORY(&era.kit, era.id,
                        "start step.complete:approve amend signal:go step.start:charge "
                        "step.complete:charge");
    end(&era);
}

/* | a signal that is buffered now | */
TEST(change, a_signal_that_is_buffered_now_is_kept_once_the_instance_goes_by_the_new_list)
{
    struct era era;
    char *out;

    begin(&era, asking());
    answer_ok(&era, "true");
    build_calling(&era, calling());
    PAWL_EXPECT_STATUS(&era.kit, pawl_kit_signal(&era.kit, era.id, "later", "2"), PAWL_NOT_AWAITING);
    signal_ok(&era, "go", "1");
    signal_ok(&era, "later", "2");
    PAWL_EXPECT_OK(&era.kit, pawl_call(era.kit.p, "signal.broadcast",
                                       "{\"name\":\"later\",\"payload\":3}", &out, &era.kit.error));
    EXPECT_HAS(out, "\"kept\":1");
    pawl_free(era.kit.p, out);
    end(&era);
}

/* ---- Arms and places -------------------------------------------------------------------------- */

/* Waits for a month. */
#define LONG(has)                                                                                  \
    has(timer, Month)                                                                              \
    has(signal, Stop)                                                                              \
    has(result, bool, is_out)                                                                      \
    has(await, resting)

PAWL_CODE_AS(lasting, "changing", LONG)
{
    PAWL_BEGIN(LONG);
    PAWL_SELECT(resting) {
        PAWL_ON_TIMER(Month, PAWL_DAYS(30)) {}
        PAWL_ON_SIGNAL(Stop) {}
    } PAWL_AWAIT;
    PAWL_END;
}

/* The same place, with two ways out more. */
#define WAYS_OUT(has)                                                                              \
    has(timer, Week)                                                                               \
    has(timer, Month)                                                                              \
    has(signal, Escape)                                                                            \
    has(signal, Stop)                                                                              \
    has(result, bool, is_out)                                                                      \
    has(await, resting)

#define WAY_OUT_CODE(LIST)                                                                         \
    PAWL_BEGIN(LIST);                                                                              \
    PAWL_SELECT(resting) {                                                                         \
        PAWL_ON_TIMER(Week, PAWL_DAYS(7)) result->is_out = true;                                   \
        PAWL_ON_TIMER(Month, PAWL_DAYS(300)) {}                                                    \
        PAWL_ON_SIGNAL(Escape) result->is_out = true;                                              \
        PAWL_ON_SIGNAL(Stop) {}                                                                    \
    } PAWL_AWAIT;                                                                                  \
    PAWL_END

#define SAME_VERSION(has) WAYS_OUT(has)
PAWL_CODE_AS(same_version, "changing", SAME_VERSION)
{
    WAY_OUT_CODE(SAME_VERSION);
}

#define HIGHER(has) has(version, 2) WAYS_OUT(has)
PAWL_CODE_AS(higher, "changing", HIGHER)
{
    WAY_OUT_CODE(HIGHER);
}

/* | an arm more | */
TEST(change, a_new_arm_is_awaited_when_the_code_comes_to_its_place_again)
{
    struct era era;

    begin(&era, lasting());
    build(&era, same_version());
    pawl_kit_advance(&era.kit, PAWL_DAYS(8));
    PAWL_EXPECT_STATUS(&era.kit, pawl_kit_signal(&era.kit, era.id, "escape", NULL),
                       PAWL_NOT_AWAITING);
    PAWL_EXPECT_HISTORY(&era.kit, era.id, "start");
    memcpy(era.id, pawl_kit_start(&era.kit, "changing", NULL), 27);
    signal_ok(&era, "escape", NULL);
    end(&era);
}

/* Rests for a day again and again, and awaits no signal. */
#define DAYS_ALONE(has) has(timer, Day) has(await, resting)
PAWL_CODE_AS(alone, "changing", DAYS_ALONE)
{
    PAWL_BEGIN(DAYS_ALONE);
    for (;;)
        PAWL_TIMER(resting, Day, PAWL_DAYS(1));
    PAWL_END;
}

#define DAYS_UNTIL(has) has(timer, Day) has(signal, Stop) has(await, resting)
PAWL_CODE_AS(until_stopped, "changing", DAYS_UNTIL)
{
    PAWL_BEGIN(DAYS_UNTIL);
    for (;;) {
        PAWL_SELECT(resting)
        {
            PAWL_ON_TIMER(Day, PAWL_DAYS(1)) continue;
            PAWL_ON_SIGNAL(Stop) break;
        }
        PAWL_AWAIT;
    }
    PAWL_END;
}

TEST(change, the_first_signal_of_a_type_is_awaited_when_the_code_comes_to_its_place_again)
{
    struct era era;

    begin(&era, alone());
    build(&era, until_stopped());
    pawl_kit_advance(&era.kit, PAWL_DAYS(2));
    signal_ok(&era, "stop", NULL);
    end(&era);
}

/* | an arm more, and a higher version | */
TEST(change, with_a_higher_version_an_instance_that_waits_is_given_a_new_way_out)
{
    struct era era;

    begin(&era, lasting());
    build(&era, higher());
    signal_ok(&era, "escape", NULL); /* whether or not it was brought over before */
    PAWL_EXPECT_HISTORY(&era.kit, era.id, "start amend signal:escape finish");
    PAWL_EXPECT_RESULT(&era.kit, era.id, "{\"is_out\":true}");
    end(&era);
}

/* | an arm more, and a higher version | */
TEST(change, a_new_timer_runs_from_the_amend_and_one_that_ran_keeps_its_due_time)
{
    struct era era;

    begin(&era, lasting());
    pawl_kit_advance(&era.kit, PAWL_DAYS(10));
    build(&era, higher());
    pawl_kit_advance(&era.kit, PAWL_DAYS(6));
    PAWL_EXPECT_HISTORY(&era.kit, era.id, "start amend");
    pawl_kit_advance(&era.kit, PAWL_DAYS(1));
    PAWL_EXPECT_HISTORY(&era.kit, era.id, "start amend timer:week finish");
    end(&era);
    begin(&era, lasting());
    pawl_kit_advance(&era.kit, PAWL_DAYS(24));
    build(&era, higher());
    pawl_kit_advance(&era.kit, PAWL_DAYS(6));
    PAWL_EXPECT_HISTORY(&era.kit, era.id, "start amend timer:month finish");
    end(&era);
}

/* | an arm more, and a higher version | */
TEST(change, an_instance_is_brought_over_once_through_restarts_and_reached_by_broadcasts)
{
    struct era era;
    char *out;

    begin(&era, lasting());
    for (int i = 0; i < 3; i++) {
        build(&era, higher());
        pawl_kit_advance(&era.kit, 0);
    }
    PAWL_EXPECT_HISTORY(&era.kit, era.id, "start amend");
    PAWL_EXPECT_OK(&era.kit, pawl_call(era.kit.p, "signal.broadcast", "{\"name\":\"escape\"}", &out,
                                       &era.kit.error));
    pawl_free(era.kit.p, out);
    PAWL_EXPECT_HISTORY(&era.kit, era.id, "start amend signal:escape finish");
    end(&era);
}

#define KEEPING(has)                                                                               \
    has(version, 2) has(signal, Later, uint32_t) has(buffered, Later) WAYS_OUT(has)
PAWL_CODE_AS(keeping, "changing", KEEPING)
{
    WAY_OUT_CODE(KEEPING);
}

/* | a signal that is buffered now | */
TEST(change, with_a_higher_version_a_broadcast_that_is_buffered_now_is_kept_at_once)
{
    struct era era;
    char *out;

    begin(&era, lasting());
    build(&era, keeping());
    pawl_kit_advance(&era.kit, 0);
    PAWL_EXPECT_OK(&era.kit, pawl_call(era.kit.p, "signal.broadcast",
                                       "{\"name\":\"later\",\"payload\":3}", &out, &era.kit.error));
    EXPECT_HAS(out, "\"kept\":1");
    pawl_free(era.kit.p, out);
    end(&era);
}

/* The entry that brings the instance over is in the same commit. */
TEST(change, a_signal_that_brings_an_instance_over_and_is_kept_is_reported_as_kept)
{
    struct era era;
    char input[96], *out;

    begin(&era, lasting());
    build(&era, keeping());
    snprintf(input, sizeof input, "{\"instance_id\":\"%s\",\"name\":\"later\",\"payload\":3}",
             era.id);
    PAWL_EXPECT_OK(&era.kit, pawl_call(era.kit.p, "signal.send", input, &out, &era.kit.error));
    EXPECT_TEXT(out, "{\"delivered\":0,\"kept\":1}");
    pawl_free(era.kit.p, out);
    PAWL_EXPECT_HISTORY(&era.kit, era.id, "start amend");
    end(&era);
}

/* | an arm more, and a higher version | */
TEST(change, a_paused_instance_is_brought_over_when_it_is_resumed)
{
    struct era era;

    begin(&era, lasting());
    pawl_kit_ask(&era.kit, "instance.pause", era.id);
    build(&era, higher());
    pawl_kit_advance(&era.kit, PAWL_DAYS(8));
    PAWL_EXPECT_HISTORY(&era.kit, era.id, "start");
    pawl_kit_ask(&era.kit, "instance.resume", era.id);
    pawl_kit_advance(&era.kit, PAWL_DAYS(7));
    PAWL_EXPECT_HISTORY(&era.kit, era.id, "start amend timer:week finish");
    end(&era);
}

/* | a lower version again | */
TEST(change, a_build_that_was_taken_back_goes_on_with_what_it_has)
{
    struct era era;

    begin(&era, lasting());
    build(&era, higher());
    pawl_kit_advance(&era.kit, 0);
    build(&era, lasting());
    signal_refused(&era, "escape", "has no arm for 'escape' at 'resting'");
    signal_ok(&era, "stop", NULL);
    PAWL_EXPECT_RESULT(&era.kit, era.id, "{\"is_out\":false}");
    PAWL_EXPECT_HISTORY(&era.kit, era.id, "start amend signal:stop finish");
    end(&era);
}

#define ARMLESS(has)                                                                               \
    has(version, 2) has(timer, Month) has(signal, Escape) has(await, resting)
PAWL_CODE_AS(armless, "changing", ARMLESS)
{
    PAWL_BEGIN(ARMLESS);
    PAWL_SELECT(resting) {
        PAWL_ON_TIMER(Month, PAWL_DAYS(30)) {}
        PAWL_ON_SIGNAL(Escape) {}
    } PAWL_AWAIT;
    PAWL_END;
}

/* | an arm less | */
TEST(change, an_arm_that_is_gone_is_refused_by_name_and_the_others_work)
{
    struct era era;

    begin(&era, lasting());
    build(&era, armless());
    pawl_kit_advance(&era.kit, 0);
    PAWL_EXPECT_STATUS(&era.kit, pawl_kit_signal(&era.kit, era.id, "stop", NULL), PAWL_NOT_KNOWN);
    EXPECT_HAS(era.kit.error.message, "has no arm for 'stop' at 'resting'");
    signal_ok(&era, "escape", NULL);
    PAWL_EXPECT_HISTORY(&era.kit, era.id, "start amend signal:escape finish");
    end(&era);
}

static const char *stay(void *context, uint32_t from, const char *stored, void *state)
{
    (void)context;
    (void)from;
    (void)stored;
    (void)state;
    return "resting";
}

#define LET_GO(has)                                                                                \
    has(version, 2) has(migrate, stay) has(signal, Escape) has(signal, Stop) has(await, resting)
PAWL_CODE_AS(let_go, "changing", LET_GO)
{
    PAWL_BEGIN(LET_GO);
    PAWL_SIGNAL(resting, Escape);
    PAWL_END;
}

/* | a higher version, and a `migrate` that returns a place | */
TEST(change, a_place_that_migrate_returns_has_the_arms_of_the_new_build_alone)
{
    struct era era;

    begin(&era, lasting());
    build(&era, let_go());
    pawl_kit_advance(&era.kit, PAWL_DAYS(40)); /* the month is over, and nothing is due */
    PAWL_EXPECT_HISTORY(&era.kit, era.id, "start amend");
    PAWL_EXPECT_STATUS(&era.kit, pawl_kit_signal(&era.kit, era.id, "stop", NULL),
                       PAWL_NOT_AWAITING);
    signal_ok(&era, "escape", NULL);
    PAWL_EXPECT_STATE(&era.kit, era.id, "completed");
    end(&era);
}

/* What has begun: `approve` of the build `asking`, which waits for it alone. */
#define BESIDE(has)                                                                                \
    has(version, 2)                                                                                \
    has(call, charge, uint32_t)                                                                    \
    has(external, approve, bool)                                                                   \
    has(timer, Late)                                                                               \
    has(signal, Go, uint32_t)                                                                      \
    has(var, uint32_t, n)                                                                          \
    has(result, uint32_t, n)                                                                       \
    has(await, asking)                                                                             \
    has(await, first)

PAWL_CODE_AS(beside, "changing", BESIDE)
{
    PAWL_BEGIN(BESIDE);
    PAWL_SELECT(asking) {
        PAWL_ON_EXTERNAL(approve, "\"again\"") self->n = 1;
        PAWL_ON_TIMER(Late, PAWL_DAYS(1)) self->n = 2;
    } PAWL_AWAIT;
    PAWL_SELECT(first) {
        PAWL_ON_SIGNAL(Go) self->n += 10;
        PAWL_ON_CALL(charge, "[1]") self->n += got->charge;
    } PAWL_AWAIT;
    result->n = self->n;
    PAWL_END;
}

/* | an arm more, and a higher version | */
TEST(change, what_has_begun_is_not_begun_again_and_gets_a_deadline)
{
    struct era era;

    begin(&era, asking());
    build_calling(&era, beside());
    EXPECT_HAS(pawl_kit_ask(&era.kit, "instance.steps", era.id), "\"old\"");
    EXPECT(strstr(era.kit.text, "again") == NULL);
    answer_ok(&era, "true");
    pawl_kit_advance(&era.kit, 0);
    PAWL_EXPECT_RESULT(&era.kit, era.id, "{\"n\":8}");
    end(&era);
    begin(&era, asking());
    build_calling(&era, beside());
    pawl_kit_advance(&era.kit, PAWL_DAYS(1));
    PAWL_EXPECT_RESULT(&era.kit, era.id, "{\"n\":9}");
    PAWL_EXPECT_HISTORY(&era.kit, era.id,
                        "start amend timer:late step.start:charge step.complete:charge finish");
    end(&era);
}

/* | an arm more, and a higher version | */
TEST(change, an_answer_to_a_paused_instance_does_not_bring_it_over)
{
    struct era era;

    begin(&era, asking());
    pawl_kit_ask(&era.kit, "instance.pause", era.id);
    build_calling(&era, beside());
    answer_ok(&era, "true");
    pawl_kit_advance(&era.kit, 0);
    PAWL_EXPECT_HISTORY(&era.kit, era.id, "start step.complete:approve");
    pawl_kit_ask(&era.kit, "instance.resume", era.id);
    pawl_kit_advance(&era.kit, 0);
    PAWL_EXPECT_RESULT(&era.kit, era.id, "{\"n\":8}");
    end(&era);
}

/* | an arm more, and a higher version | */
TEST(change, a_call_that_is_a_new_arm_begins_with_the_amend)
{
    struct era era;

    begin(&era, asking());
    answer_ok(&era, "true");
    build_calling(&era, beside());
    PAWL_EXPECT_RESULT(&era.kit, era.id, "{\"n\":7}");
    PAWL_EXPECT_HISTORY(&era.kit, era.id,
                        "start step.complete:approve amend step.start:charge step.complete:charge "
                        "finish");
    end(&era);
}

static const char *go_first(void *context, uint32_t from, const char *stored, void *state)
{
    (void)context;
    (void)from;
    (void)state;
    return strstr(stored, "\"phase\":\"asking\"") ? "first" : NULL;
}

#define MOVED(has)                                                                                 \
    has(version, 2)                                                                                \
    has(migrate, go_first)                                                                         \
    has(external, approve, bool)                                                                   \
    has(signal, Go, uint32_t)                                                                      \
    has(var, uint32_t, n)                                                                          \
    has(await, asking)                                                                             \
    has(await, first)

PAWL_CODE_AS(moved, "changing", MOVED)
{
    PAWL_BEGIN(MOVED);
    PAWL_EXTERNAL(asking, approve, "\"again\"");
    PAWL_SIGNAL(first, Go);
    PAWL_END;
}

/* | a higher version, and a `migrate` that returns a place | */
TEST(change, a_place_that_gives_up_what_has_begun_is_refused_by_name)
{
    struct era era;

    begin(&era, asking());
    build(&era, moved());
    pawl_kit_advance(&era.kit, 0);
    signal_refused(&era, "go", "the instance has begun 'approve', which code type 'changing'");
    PAWL_EXPECT_HISTORY(&era.kit, era.id, "start");
    build(&era, asking());
    answer_ok(&era, "true");
    build(&era, moved());
    signal_ok(&era, "go", "1");
    PAWL_EXPECT_HISTORY(&era.kit, era.id, "start step.complete:approve amend signal:go finish");
    end(&era);
}

#define NAPPING(has)                                                                               \
    has(version, 2)                                                                                \
    has(migrate, stay)                                                                             \
    has(timer, Nap)                                                                                \
    has(await, resting)

PAWL_CODE_AS(napping, "changing", NAPPING)
{
    PAWL_BEGIN(NAPPING);
    PAWL_TIMER(resting, Nap, PAWL_SECS(1));
    PAWL_END;
}

/* | a higher version, and a `migrate` that returns a place | */
TEST(change, a_place_that_waits_for_a_new_timer_alone_is_refused_by_name)
{
    struct era era;

    begin(&era, lasting());
    build(&era, napping());
    pawl_kit_advance(&era.kit, PAWL_SECS(1));
    signal_refused(&era, "stop", "waits for 'nap' alone");
    EXPECT_HAS(era.kit.error.message, "write a PAWL_SELECT at that place");
    PAWL_EXPECT_HISTORY(&era.kit, era.id, "start");
    end(&era);
}

static int64_t never_comes_back(void)
{
    (void)raise(SIGKILL);
    return 1;
}

#define DEADLY(has) has(version, 2) has(timer, Month) has(timer, Week) has(await, resting)
PAWL_CODE_AS(deadly, "changing", DEADLY)
{
    PAWL_BEGIN(DEADLY);
    PAWL_SELECT(resting) {
        PAWL_ON_TIMER(Week, never_comes_back()) {}
        PAWL_ON_TIMER(Month, PAWL_DAYS(30)) {}
    } PAWL_AWAIT;
    PAWL_END;
}

/* Another process runs the build; the signal that ended it. */
static int run_deadly(struct era *era)
{
    int how = 0;
    pid_t pid = fork();

    if (pid == 0) {
        build(era, deadly());
        pawl_kit_advance(&era->kit, 0);
        pawl_kit_close(&era->kit);
        _exit(0);
    }
    EXPECT_EQ(waitpid(pid, &how, 0), pid);
    return WIFSIGNALED(how) ? WTERMSIG(how) : 0;
}

/* | an arm more, and a higher version | */
TEST(change, a_build_whose_new_arms_end_the_program_pauses_the_instance_and_a_better_one_goes_on)
{
    struct era era;

    begin(&era, lasting());
    pawl_kit_close(&era.kit);
    for (int i = 0; i < 3; i++)
        EXPECT_EQ(run_deadly(&era), SIGKILL);
    EXPECT_EQ(run_deadly(&era), 0);
    build(&era, higher());
    PAWL_EXPECT_HISTORY(&era.kit, era.id, "start");
    EXPECT_HAS(pawl_kit_ask(&era.kit, "instance.why", era.id), "ended the process 3 times in a row");
    pawl_kit_ask(&era.kit, "instance.resume", era.id);
    signal_ok(&era, "escape", NULL);
    PAWL_EXPECT_HISTORY(&era.kit, era.id, "start amend signal:escape finish");
    end(&era);
}

/* ---- The rest --------------------------------------------------------------------------------- */

#define OTHER_PAYLOAD(has)                                                                         \
    has(var, uint32_t, n)                                                                          \
    has(signal, Go, text, 8)                                                                       \
    has(result, text, word, 8)                                                                     \
    has(timer, Nap)                                                                                \
    has(await, napping)                                                                            \
    has(await, first)                                                                              \
    has(await, second)

/* The awaits in another order, a timer between them, another payload and another result. */
PAWL_CODE_AS(other_payload, "changing", OTHER_PAYLOAD)
{
    PAWL_BEGIN(OTHER_PAYLOAD);
    PAWL_SIGNAL(second, Go);
    PAWL_SIGNAL(first, Go);
    memcpy(result->word, got->Go, sizeof result->word);
    PAWL_TIMER(napping, Nap, PAWL_SECS(1));
    memcpy(result->word, "awake", 6);
    PAWL_END;
}

/* | code above, below or around a place | */
/* | a timer, a payload or a result | */
TEST(change, code_around_an_await_payloads_results_and_timers_may_change)
{
    struct era era;

    begin(&era, counts());
    build(&era, other_payload());
    PAWL_EXPECT_STATUS(&era.kit, pawl_kit_signal(&era.kit, era.id, "go", "1"),
                       PAWL_INVALID_REQUEST);
    signal_ok(&era, "go", "\"x\"");
    pawl_kit_advance(&era.kit, PAWL_SECS(1));
    PAWL_EXPECT_RESULT(&era.kit, era.id, "{\"word\":\"awake\"}");
    PAWL_EXPECT_HISTORY(&era.kit, era.id, "start signal:go timer:nap finish");
    end(&era);
}

#define NO_PLACE(has) has(var, uint32_t, n) has(signal, Go, uint32_t) has(await, elsewhere)
PAWL_CODE_AS(no_place, "changing", NO_PLACE)
{
    PAWL_BEGIN(NO_PLACE);
    PAWL_SIGNAL(elsewhere, Go);
    PAWL_END;
}

/* | a place with another name, or no longer there | */
TEST(change, a_place_that_has_another_name_is_refused_by_name)
{
    const pawl_code_type *const types[] = { no_place() };
    const char *const words[] = { "waits at 'first', and code type 'changing' in this program" };

    refuse_all(types, words, 1);
}
