/* forgive.c - nothing from outside ends an instance for good, and neither does a mistake of its author. */
#include "lib/test.h"
#include <math.h>
#include <pawl_code.h>
#include <pawl_test.h>

/* What a build does wrong; 0: it was corrected. */
enum mistake { NO_MISTAKE, BAD_JSON, NEITHER, TEXT_WITHOUT_NUL, NOT_A_NUMBER, MISTAKE_COUNT };

static enum mistake mistake;
static const char *greeted;

static const char *const mistake_words[MISTAKE_COUNT] = {
    [BAD_JSON] = "the handler's error is not JSON",
    [NEITHER] = "the handler neither waited nor ended; code leaves by PAWL_DONE or PAWL_FAIL",
    [TEXT_WITHOUT_NUL] = "the variable 'heard' does not end in NUL within its 16 bytes",
    [NOT_A_NUMBER] = "the variable 'share' is not a finite number",
};

#define FRAIL(has)                                                                                 \
    has(input, text, name, 32)                                                                     \
    has(var, text, heard, 16)                                                                      \
    has(var, double, share)                                                                        \
    has(external, ask, text, 16)                                                                   \
    has(timer, Tick)                                                                               \
    has(signal, Say, text, 16)                                                                     \
    has(signal, Later, uint32_t)                                                                   \
    has(buffered, Later)                                                                           \
    has(var, uint32_t, sum)                                                                        \
    has(result, text, heard, 16)                                                                   \
    has(result, uint32_t, sum)                                                                     \
    has(await, woken)                                                                              \
    has(await, counting)

PAWL_CODE(frail, FRAIL)
{
    PAWL_BEGIN(FRAIL);
    PAWL_SELECT(woken) {
        PAWL_ON_EXTERNAL(ask, pawl_turn_quote(turn, self->name)) {
            snprintf(self->heard, sizeof self->heard, "%s", PAWL_ERROR ? "error" : got->ask);
        }
        PAWL_ON_TIMER(Tick, PAWL_SECS(10)) snprintf(self->heard, sizeof self->heard, "tick");
        PAWL_ON_SIGNAL(Say) snprintf(self->heard, sizeof self->heard, "%s", got->Say);
    } PAWL_AWAIT;
    switch (mistake) {
    case BAD_JSON:
        pawl_turn_fail(turn, "\"Conan \"the\" Barbarian\"");
        return;
    case NEITHER:
        return;
    case TEXT_WITHOUT_NUL:
        memset(self->heard, 'x', sizeof self->heard);
        break;
    case NOT_A_NUMBER:
        self->share = (double)NAN;
        break;
    case NO_MISTAKE:
    case MISTAKE_COUNT:
        break;
    }
    while (self->sum < 3) {
        PAWL_SIGNAL(counting, Later);
        self->sum += got->Later;
    }
    snprintf(result->heard, sizeof result->heard, "%s", self->heard);
    result->sum = self->sum;
    PAWL_END;
}

/* Its first turn builds JSON by hand. */
#define GREETING(has)                                                                              \
    has(input, text, name, 32)                                                                     \
    has(external, greet)                                                                           \
    has(result, text, name, 32)                                                                    \
    has(await, greeted)

PAWL_CODE(greeting, GREETING)
{
    PAWL_BEGIN(GREETING);
    PAWL_EXTERNAL(greeted, greet,
                  mistake ? pawl_turn_text(turn, "\"%s\"", self->name)
                          : pawl_turn_quote(turn, self->name));
    snprintf(result->name, sizeof result->name, "%s", self->name);
    PAWL_END;
}

/* A saga: what was paid is paid back. */
#define SAGA(has)                                                                                  \
    has(call, charge, text, 8)                                                                     \
    has(call, charge_in_select, uint32_t)                                                          \
    has(call, refund)                                                                              \
    has(child, greeting, uint32_t)                                                                 \
    has(input, uint32_t, way)                                                                      \
    has(var, text, error, 200)                                                                     \
    has(timer, Late)                                                                               \
    has(result, text, error, 200)                                                                  \
    has(await, charging)                                                                           \
    has(await, selecting)                                                                          \
    has(await, greeting_now)                                                                       \
    has(await, refunding)

PAWL_CODE(saga, SAGA)
{
    PAWL_BEGIN(SAGA);
    if (self->way == 0) {
        PAWL_TRY_CALL(charging, charge, "{}");
        snprintf(self->error, sizeof self->error, "%s", PAWL_ERROR ? PAWL_ERROR : "none");
    } else if (self->way == 1) {
        PAWL_SELECT(selecting) {
            PAWL_ON_CALL(charge_in_select, "{}") {
                snprintf(self->error, sizeof self->error, "%s", PAWL_ERROR ? PAWL_ERROR : "none");
            }
            PAWL_ON_TIMER(Late, PAWL_SECS(10)) {}
        } PAWL_AWAIT;
    } else {
        PAWL_TRY_SPAWN(greeting_now, greeting,
                       pawl_turn_text(turn, "{\"name\":\"%s\"}", greeted));
        if (mistake)
            return;
        snprintf(self->error, sizeof self->error, "%s", PAWL_ERROR ? PAWL_ERROR : "none");
    }
    PAWL_CALL(refunding, refund, "{}");
    snprintf(result->error, sizeof result->error, "%s", self->error);
    PAWL_END;
}

struct desk {
    pawl_kit kit;
    char folder[TEST_FOLDER_SIZE], url[96];
    const char *charged; /* what the tool answers */
};

static void charge(void *context, const pawl_tool_call *call, pawl_tool_answer *answer)
{
    (void)call;
    pawl_answer_result(answer, ((const struct desk *)context)->charged);
}

static void begin(struct desk *desk)
{
    memset(desk, 0, sizeof *desk);
    mistake = NO_MISTAKE;
    greeted = "bo";
    test_folder(desk->folder);
    snprintf(desk->url, sizeof desk->url, "sqlite:%s/desk.db", desk->folder);
    pawl_kit_open(&desk->kit, desk->url);
    pawl_kit_register(&desk->kit, frail());
    pawl_kit_register(&desk->kit, greeting());
    pawl_kit_register(&desk->kit, saga());
}

static void end(struct desk *desk)
{
    char *out, command[96];

    PAWL_EXPECT_OK(&desk->kit,
                   pawl_call(desk->kit.p, "store.verify", NULL, &out, &desk->kit.error));
    EXPECT_HAS(out, "\"valid\":true");
    pawl_free(desk->kit.p, out);
    pawl_kit_close(&desk->kit);
    snprintf(command, sizeof command, "rm -r %s", desk->folder);
    EXPECT(system(command) == 0);
}

static void expect_call(struct desk *desk, const char *operation, const char *input,
                        const char *words)
{
    char *out;

    PAWL_EXPECT_OK(&desk->kit, pawl_call(desk->kit.p, operation, input, &out, &desk->kit.error));
    EXPECT_HAS(out, words);
    pawl_free(desk->kit.p, out);
}

/* Where people and programs look for the reason. */
static void expect_paused(struct desk *desk, const char *id, const char *words)
{
    EXPECT_HAS(pawl_kit_member(&desk->kit, "instance.get", id, "status"), "paused");
    EXPECT_HAS(pawl_kit_member(&desk->kit, "instance.get", id, "pause"), words);
    EXPECT_HAS(pawl_kit_member(&desk->kit, "instance.get", id, "pause"), "correct it, then resume");
    EXPECT_HAS(pawl_kit_ask(&desk->kit, "instance.why", id), words);
    EXPECT_HAS(pawl_kit_ask(&desk->kit, "instance.history", id), words);
    expect_call(desk, "instance.list", "{\"status\":\"paused\"}", words);
}

static void resume_it(struct desk *desk, const char *id)
{
    EXPECT_HAS(pawl_kit_ask(&desk->kit, "instance.resume", id), "status");
    pawl_kit_advance(&desk->kit, 0);
}

static void run_saga(struct desk *desk, const char *input, const char *charged, const char *words)
{
    const char *id;

    desk->charged = charged;
    id = pawl_kit_start(&desk->kit, "saga", input);
    pawl_kit_advance(&desk->kit, 0);
    EXPECT_HAS(pawl_kit_member(&desk->kit, "instance.get", id, "result"), words);
    EXPECT_HAS(pawl_kit_history(&desk->kit, id), "step.complete:refund finish");
    EXPECT_HAS(pawl_kit_ask(&desk->kit, "instance.history", id), "\"reason\":\"the payload of 'charge");
}

TEST(forgive, an_answer_of_another_shape_or_size_is_an_error_of_its_call)
{
    struct desk desk;

    begin(&desk);
    for (int i = 0; i < 3; i++) {
        static const char *const names[] = { "charge", "charge_in_select", "refund" };

        PAWL_EXPECT_OK(&desk.kit, pawl_tool_register(desk.kit.p, names[i], charge, &desk,
                                                     &desk.kit.error));
    }
    run_saga(&desk, "{\"way\":0}", "{\"receipt\":1}",
             "the payload of 'charge': expected text that fits its size for 'charge', found an "
             "object");
    run_saga(&desk, "{\"way\":0}", "\"12345678\"", "found a string");
    run_saga(&desk, "{\"way\":1}", "\"12\"",
             "the payload of 'charge_in_select': expected uint32 for 'charge_in_select', found a "
             "string");
    end(&desk);
}

static const char *spawn(struct desk *desk, char child[27])
{
    const char *id;
    char *list;

    desk->charged = "1";
    PAWL_EXPECT_OK(&desk->kit,
                   pawl_tool_register(desk->kit.p, "refund", charge, desk, &desk->kit.error));
    id = pawl_kit_start(&desk->kit, "saga", "{\"way\":2}");
    PAWL_EXPECT_OK(&desk->kit, pawl_call(desk->kit.p, "instance.list",
                                         "{\"definition\":\"greeting\"}", &list,
                                         &desk->kit.error));
    memcpy(child, strstr(list, "\"instance_id\":\"") + strlen("\"instance_id\":\""), 26);
    child[26] = '\0';
    pawl_free(desk->kit.p, list);
    return id;
}

TEST(forgive, a_childs_result_of_another_shape_is_an_error_of_its_spawn)
{
    struct desk desk;
    char child[27];
    const char *id;

    begin(&desk);
    id = spawn(&desk, child);
    PAWL_EXPECT_OK(&desk.kit, pawl_kit_answer(&desk.kit, child, "1", NULL));
    pawl_kit_advance(&desk.kit, 0);
    PAWL_EXPECT_STATE(&desk.kit, child, "completed");
    EXPECT_HAS(pawl_kit_member(&desk.kit, "instance.get", id, "result"),
               "the payload of 'greeting': expected uint32 for 'greeting', found an object");
    end(&desk);
}

TEST(forgive, a_mistake_in_the_first_turn_pauses_the_instance_and_resume_starts_it_with_corrected_code)
{
    static const char input[] = "{\"name\":\"Conan \\\"the\\\" Barbarian\"}";
    struct desk desk;
    const char *id;

    begin(&desk);
    mistake = BAD_JSON;
    id = pawl_kit_start(&desk.kit, "greeting", input);
    expect_paused(&desk, id, "the code of 'greeting' cannot go on: the handler's arguments is not "
                             "JSON");
    PAWL_EXPECT_HISTORY(&desk.kit, id, "start");
    pawl_kit_restart(&desk.kit);
    pawl_kit_advance(&desk.kit, PAWL_DAYS(1));
    resume_it(&desk, id); /* not corrected yet: paused again */
    expect_paused(&desk, id, "the handler's arguments is not JSON");
    PAWL_EXPECT_HISTORY(&desk.kit, id, "start");
    mistake = NO_MISTAKE;
    pawl_kit_restart(&desk.kit);
    resume_it(&desk, id);
    PAWL_EXPECT_HISTORY(&desk.kit, id, "start timer:~turn");
    PAWL_EXPECT_OK(&desk.kit, pawl_kit_answer(&desk.kit, id, "1", NULL));
    PAWL_EXPECT_RESULT(&desk.kit, id, "{\"name\":\"Conan \\\"the\\\" Barbarian\"}");
    end(&desk);
}

/* A child that is spawned is created, and is paused itself; its parent waits. */
TEST(forgive, a_mistake_in_a_childs_first_turn_pauses_the_child)
{
    struct desk desk;
    char child[27];
    const char *id;

    begin(&desk);
    mistake = BAD_JSON;
    greeted = "Bo \\\"the\\\" Bold";
    id = spawn(&desk, child);
    EXPECT_HAS(pawl_kit_member(&desk.kit, "instance.get", id, "status"), "suspended");
    expect_paused(&desk, child, "the handler's arguments is not JSON");
    mistake = NO_MISTAKE;
    resume_it(&desk, child);
    PAWL_EXPECT_OK(&desk.kit, pawl_kit_answer(&desk.kit, child, "1", NULL));
    pawl_kit_advance(&desk.kit, 0);
    PAWL_EXPECT_RESULT(&desk.kit, child, "{\"name\":\"Bo \\\"the\\\" Bold\"}");
    PAWL_EXPECT_STATE(&desk.kit, id, "completed");
    end(&desk);
}

/* The child has ended and says so once: a mistake of its parent does not lose that. */
TEST(forgive, a_mistake_in_the_turn_for_a_childs_end_pauses_the_parent_and_resume_retries_it)
{
    struct desk desk;
    char child[27];
    const char *id;

    begin(&desk);
    id = spawn(&desk, child);
    mistake = NEITHER;
    PAWL_EXPECT_OK(&desk.kit, pawl_kit_answer(&desk.kit, child, "1", NULL));
    pawl_kit_advance(&desk.kit, 0);
    expect_paused(&desk, id, mistake_words[NEITHER]);
    pawl_kit_restart(&desk.kit);
    PAWL_EXPECT_OK(&desk.kit,
                   pawl_tool_register(desk.kit.p, "refund", charge, &desk, &desk.kit.error));
    mistake = NO_MISTAKE;
    resume_it(&desk, id);
    PAWL_EXPECT_STATE(&desk.kit, id, "completed");
    end(&desk);
}

static void wake_by_answer(struct desk *desk, const char *id)
{
    PAWL_EXPECT_OK(&desk->kit, pawl_kit_answer(&desk->kit, id, "\"answer\"", NULL));
}

static void wake_by_timer(struct desk *desk, const char *id)
{
    (void)id;
    pawl_kit_advance(&desk->kit, PAWL_SECS(10));
}

static void wake_by_signal(struct desk *desk, const char *id)
{
    PAWL_EXPECT_OK(&desk->kit, pawl_kit_signal(&desk->kit, id, "say", "\"hello\""));
}

static void expect_retried(struct desk *desk, const char *id, const char *heard)
{
    char wanted[64];

    snprintf(wanted, sizeof wanted, "{\"heard\":\"%s\",\"sum\":3}", heard);
    PAWL_EXPECT_OK(&desk->kit, pawl_kit_signal(&desk->kit, id, "later", "3"));
    PAWL_EXPECT_RESULT(&desk->kit, id, wanted);
}

static void make_mistake(struct desk *desk, enum mistake made,
                         void (*wake)(struct desk *desk, const char *id), const char *heard)
{
    const char *id = pawl_kit_start(&desk->kit, "frail", "{\"name\":\"ann\"}");

    mistake = made;
    wake(desk, id);
    expect_paused(desk, id, mistake_words[made]);
    PAWL_EXPECT_VARIABLE(&desk->kit, id, "phase", "\"woken\"");
    PAWL_EXPECT_VARIABLE(&desk->kit, id, "heard", "\"\"");
    PAWL_EXPECT_STATUS(&desk->kit, pawl_kit_signal(&desk->kit, id, "say", "\"x\""), PAWL_PAUSED);
    pawl_kit_advance(&desk->kit, PAWL_SECS(60));
    resume_it(desk, id);
    expect_paused(desk, id, mistake_words[made]);
    mistake = NO_MISTAKE;
    if (made % 2)
        pawl_kit_restart(&desk->kit);
    resume_it(desk, id);
    expect_retried(desk, id, heard);
}

TEST(forgive, every_mistake_of_an_author_pauses_the_instance_and_resume_retries_the_same_event)
{
    struct desk desk;

    begin(&desk);
    for (int made = BAD_JSON; made < MISTAKE_COUNT; made++) {
        make_mistake(&desk, (enum mistake)made, wake_by_answer, "answer");
        make_mistake(&desk, (enum mistake)made, wake_by_timer, "tick");
        make_mistake(&desk, (enum mistake)made, wake_by_signal, "hello");
    }
    end(&desk);
}

static const char *redrive(struct desk *desk, const char *id, char out[27])
{
    const char *text = pawl_kit_member(&desk->kit, "instance.redrive", id, "instance_id");

    EXPECT_EQ(strlen(text), 28);
    memcpy(out, text + 1, 26);
    out[26] = '\0';
    return out;
}

TEST(forgive, code_that_failed_is_run_again_from_its_beginning_as_a_new_instance)
{
    static const char asked[] = "{\"instance_id\":\"%s\",\"%s\":\"frail\"}";
    pawl_create_args args = { .definition = "greeting",
                              .input = "{\"name\":\"a\\\"n\"}",
                              .subject_ref = "S-1",
                              .correlation_id = "C-1" };
    struct desk desk;
    char second[27], third[27], input[96], *out;
    const char *id;

    begin(&desk);
    id = pawl_kit_create(&desk.kit, &args);
    snprintf(input, sizeof input, asked, id, "definition");
    PAWL_EXPECT_STATUS(&desk.kit,
                       pawl_call(desk.kit.p, "instance.redrive", input, &out, &desk.kit.error),
                       PAWL_CONFLICT);
    PAWL_EXPECT_OK(&desk.kit, pawl_kit_answer(&desk.kit, id, NULL, "\"no\""));
    PAWL_EXPECT_STATE(&desk.kit, id, "failed");
    snprintf(input, sizeof input, asked, id, "from");
    PAWL_EXPECT_STATUS(&desk.kit,
                       pawl_call(desk.kit.p, "instance.redrive", input, &out, &desk.kit.error),
                       PAWL_INVALID_REQUEST);
    redrive(&desk, id, second);
    EXPECT_HAS(pawl_kit_member(&desk.kit, "instance.get", second, "retry_of"), id);
    EXPECT_HAS(pawl_kit_member(&desk.kit, "instance.get", id, "retried_as"), second);
    PAWL_EXPECT_HISTORY(&desk.kit, id, "start step.fail:greet fail");
    EXPECT_HAS(pawl_kit_ask(&desk.kit, "instance.get", second), "\"subject_ref\":\"S-1\"");
    snprintf(input, sizeof input, "{\"instance_id\":\"%s\"}", id);
    PAWL_EXPECT_STATUS(&desk.kit,
                       pawl_call(desk.kit.p, "instance.redrive", input, &out, &desk.kit.error),
                       PAWL_CONFLICT); /* its successor is under way */
    PAWL_EXPECT_OK(&desk.kit, pawl_cancel(desk.kit.p, second, NULL, NULL, NULL, &desk.kit.error));
    pawl_kit_restart(&desk.kit);
    mistake = BAD_JSON; /* a start that is owed names the instance that it runs again, too */
    redrive(&desk, second, third);
    EXPECT_HAS(pawl_kit_member(&desk.kit, "instance.get", third, "retry_of"), second);
    expect_paused(&desk, third, "the handler's arguments is not JSON");
    mistake = NO_MISTAKE;
    resume_it(&desk, third);
    PAWL_EXPECT_OK(&desk.kit, pawl_kit_answer(&desk.kit, third, "1", NULL));
    PAWL_EXPECT_RESULT(&desk.kit, third, "{\"name\":\"a\\\"n\"}");
    end(&desk);
}

/* Takes so many turns that it is restored from a snapshot. */
#define LASTING(has)                                                                               \
    has(var, uint32_t, sum)                                                                        \
    has(signal, More, uint32_t)                                                                    \
    has(result, uint32_t, sum)                                                                     \
    has(await, counting)

PAWL_CODE(lasting, LASTING)
{
    PAWL_BEGIN(LASTING);
    while (self->sum < 100) {
        PAWL_SIGNAL(counting, More);
        if (mistake)
            return;
        self->sum += got->More;
    }
    result->sum = self->sum;
    PAWL_END;
}

TEST(forgive, what_a_paused_turn_is_owed_for_survives_a_snapshot)
{
    static char large[5000];
    struct desk desk;
    const char *id;

    begin(&desk);
    pawl_kit_register(&desk.kit, lasting());
    id = pawl_kit_start(&desk.kit, "lasting", NULL);
    for (int i = 0; i < 20; i++)
        PAWL_EXPECT_OK(&desk.kit, pawl_kit_signal(&desk.kit, id, "more", "1"));
    memset(large, ' ', sizeof large - 1);
    memcpy(large, "80", 2);
    mistake = NEITHER;
    PAWL_EXPECT_OK(&desk.kit, pawl_kit_signal(&desk.kit, id, "more", large));
    expect_call(&desk, "store.sql", "{\"text\":\"SELECT seq FROM pawl_snapshot\"}", "[[22]]");
    mistake = NO_MISTAKE;
    pawl_kit_restart(&desk.kit);
    resume_it(&desk, id);
    PAWL_EXPECT_RESULT(&desk.kit, id, "{\"sum\":100}");
    end(&desk);
}

TEST(forgive, a_kept_signal_that_does_not_fit_is_passed_over_and_the_instance_waits_on)
{
    struct desk desk;
    const char *id;

    begin(&desk);
    id = pawl_kit_start(&desk.kit, "frail", "{\"name\":\"ann\"}");
    pawl_kit_close(&desk.kit); /* a program without the code cannot tell what fits */
    desk.kit.type_count = 0;
    pawl_kit_open_again(&desk.kit);
    PAWL_EXPECT_OK(&desk.kit, pawl_kit_signal(&desk.kit, id, "later", "1"));
    PAWL_EXPECT_OK(&desk.kit, pawl_kit_signal(&desk.kit, id, "later", "\"one\""));
    PAWL_EXPECT_OK(&desk.kit, pawl_kit_signal(&desk.kit, id, "later", "1"));
    pawl_kit_register(&desk.kit, frail());
    PAWL_EXPECT_STATUS(&desk.kit, pawl_kit_signal(&desk.kit, id, "later", "\"one\""),
                       PAWL_INVALID_REQUEST);
    wake_by_signal(&desk, id);
    EXPECT_HAS(pawl_kit_member(&desk.kit, "instance.get", id, "status"), "suspended");
    PAWL_EXPECT_HISTORY(&desk.kit, id,
                        "start signal:say signal:later signal:later signal:later");
    EXPECT_HAS(pawl_kit_ask(&desk.kit, "instance.history", id),
               "\"reason\":\"the payload of 'later': expected uint32 for 'Later', found a string");
    pawl_kit_restart(&desk.kit);
    PAWL_EXPECT_OK(&desk.kit, pawl_kit_signal(&desk.kit, id, "later", "1"));
    PAWL_EXPECT_RESULT(&desk.kit, id, "{\"heard\":\"hello\",\"sum\":3}");
    end(&desk);
}

TEST(forgive, kept_signals_that_are_awaited_in_a_loop_are_taken_once_each)
{
    struct desk desk;
    const char *id;

    begin(&desk);
    id = pawl_kit_start(&desk.kit, "frail", "{\"name\":\"ann\"}");
    for (int i = 0; i < 2; i++)
        PAWL_EXPECT_OK(&desk.kit, pawl_kit_signal(&desk.kit, id, "later", "1"));
    wake_by_signal(&desk, id);
    PAWL_EXPECT_VARIABLE(&desk.kit, id, "sum", "2");
    PAWL_EXPECT_OK(&desk.kit, pawl_kit_signal(&desk.kit, id, "later", "1"));
    PAWL_EXPECT_RESULT(&desk.kit, id, "{\"heard\":\"hello\",\"sum\":3}");
    end(&desk);
}
