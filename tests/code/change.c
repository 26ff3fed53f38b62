/* change.c - the table "Change it while instances run" of docs/durable-code.md, line by line: code
 * that changed under an instance that waits (E1, E2, E18). Each test has the build before and the
 * build after. */
#include "lib/test.h"
#include <pawl_code.h>
#include <pawl_test.h>
#include <unistd.h>

struct era {
    pawl_kit kit;
    char folder[32], url[64], id[27];
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
    memcpy(era->folder, "/tmp/pawl-change-XXXXXX", 24);
    EXPECT(mkdtemp(era->folder) != NULL);
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

TEST(change, a_signal_that_is_buffered_now_is_kept_once_the_instance_goes_by_the_new_list)
{
    struct era era;

    begin(&era, asking());
    answer_ok(&era, "true");
    build_calling(&era, calling());
    PAWL_EXPECT_STATUS(&era.kit, pawl_kit_signal(&era.kit, era.id, "later", "2"), PAWL_NOT_AWAITING);
    signal_ok(&era, "go", "1");
    signal_ok(&era, "later", "2");
    end(&era);
}
