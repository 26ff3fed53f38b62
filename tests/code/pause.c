/* pause.c - a paused code instance takes no turn; what comes meanwhile is handled at resume. */
#include "lib/test.h"
#include <pawl_code.h>
#include <pawl_test.h>
#include <sys/wait.h>
#include <unistd.h>

#define ASKING(has)                                                                                \
    has(var, uint32_t, turns)                                                                      \
    has(var, text, heard, 32)                                                                      \
    has(external, ask, int64_t)                                                                    \
    has(timer, GiveUp)                                                                             \
    has(signal, More)                                                                              \
    has(result, uint32_t, turns)                                                                   \
    has(result, text, heard, 32)                                                                   \
    has(await, asked)                                                                              \
    has(await, answered)

PAWL_CODE(asking, ASKING)
{
    PAWL_BEGIN(ASKING);
    PAWL_SELECT(asked) {
        PAWL_ON_EXTERNAL(ask, "{\"what\":1}") {
            snprintf(self->heard, sizeof self->heard, "%s", PAWL_ERROR ? PAWL_ERROR : "answer");
        }
        PAWL_ON_TIMER(GiveUp, PAWL_SECS(10)) snprintf(self->heard, sizeof self->heard, "nothing");
    } PAWL_AWAIT;
    self->turns++;
    PAWL_SIGNAL(answered, More);
    result->turns = self->turns;
    snprintf(result->heard, sizeof result->heard, "%s", self->heard);
    PAWL_END;
}

#define PARENT(has)                                                                                \
    has(child, asking, json, 64)                                                                   \
    has(result, json, of_child, 64)                                                                \
    has(await, born)

PAWL_CODE(parent, PARENT)
{
    PAWL_BEGIN(PARENT);
    PAWL_SPAWN(born, asking, "{}");
    snprintf(result->of_child, sizeof result->of_child, "%s", got->asking);
    PAWL_END;
}

struct desk {
    pawl_kit kit;
    char folder[TEST_FOLDER_SIZE], url[96];
    const char *id;
};

static void begin(struct desk *desk, const char *type)
{
    memset(desk, 0, sizeof *desk);
    test_folder(desk->folder);
    snprintf(desk->url, sizeof desk->url, "sqlite:%s/desk.db", desk->folder);
    pawl_kit_open(&desk->kit, desk->url);
    pawl_kit_register(&desk->kit, asking());
    pawl_kit_register(&desk->kit, parent());
    desk->id = pawl_kit_start(&desk->kit, type, NULL);
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

static void pause_it(struct desk *desk)
{
    EXPECT_HAS(pawl_kit_ask(&desk->kit, "instance.pause", desk->id), "paused");
}

static void resume_it(struct desk *desk)
{
    EXPECT_HAS(pawl_kit_ask(&desk->kit, "instance.resume", desk->id), "status");
}

/* One answer while it is held, with or without a new program before and after it. */
static void answer_held(struct desk *desk, const char *result, const char *error, bool restart)
{
    pause_it(desk);
    if (restart)
        pawl_kit_restart(&desk->kit);
    PAWL_EXPECT_OK(&desk->kit, pawl_kit_answer(&desk->kit, desk->id, result, error));
    PAWL_EXPECT_STATUS(&desk->kit, pawl_kit_answer(&desk->kit, desk->id, "2", NULL),
                       PAWL_LEASE_LOST);
    if (restart)
        pawl_kit_restart(&desk->kit);
    pawl_kit_advance(&desk->kit, PAWL_SECS(60)); /* its other timer has long been due */
    PAWL_EXPECT_VARIABLE(&desk->kit, desk->id, "turns", "0");
    PAWL_EXPECT_VARIABLE(&desk->kit, desk->id, "phase", "\"asked\"");
    EXPECT_HAS(pawl_kit_ask(&desk->kit, "instance.get", desk->id), "\"status\":\"paused\"");
}

TEST(code_pause, an_answer_is_kept_and_handled_at_resume)
{
    for (int restart = 0; restart < 2; restart++) {
        struct desk desk;

        begin(&desk, "asking");
        answer_held(&desk, "1", NULL, restart);
        PAWL_EXPECT_HISTORY(&desk.kit, desk.id, "start step.complete:ask");
        resume_it(&desk);
        PAWL_EXPECT_HISTORY(&desk.kit, desk.id, "start step.complete:ask timer:~turn");
        PAWL_EXPECT_VARIABLE(&desk.kit, desk.id, "phase", "\"answered\"");
        PAWL_EXPECT_OK(&desk.kit, pawl_kit_signal(&desk.kit, desk.id, "more", NULL));
        PAWL_EXPECT_RESULT(&desk.kit, desk.id, "{\"turns\":1,\"heard\":\"answer\"}");
        end(&desk);
    }
}

TEST(code_pause, an_error_is_kept_as_an_error)
{
    struct desk desk;

    begin(&desk, "asking");
    answer_held(&desk, NULL, "\"no\"", true);
    resume_it(&desk);
    PAWL_EXPECT_OK(&desk.kit, pawl_kit_signal(&desk.kit, desk.id, "more", NULL));
    PAWL_EXPECT_HISTORY(&desk.kit, desk.id, "start step.fail:ask timer:~turn signal:more finish");
    PAWL_EXPECT_RESULT(&desk.kit, desk.id, "{\"turns\":1,\"heard\":\"\\\"no\\\"\"}");
    end(&desk);
}

TEST(code_pause, of_an_answer_and_a_timer_the_one_that_came_first_is_handled)
{
    struct desk desk;

    begin(&desk, "asking");
    pause_it(&desk);
    pawl_kit_advance(&desk.kit, PAWL_SECS(60));
    resume_it(&desk);
    pawl_kit_advance(&desk.kit, 0);
    PAWL_EXPECT_STATUS(&desk.kit, pawl_kit_answer(&desk.kit, desk.id, "1", NULL), PAWL_LEASE_LOST);
    PAWL_EXPECT_HISTORY(&desk.kit, desk.id, "start timer:give_up");
    end(&desk);
}

TEST(code_pause, an_answer_that_is_not_as_declared_is_an_error_of_its_call_at_resume)
{
    struct desk desk;

    begin(&desk, "asking");
    answer_held(&desk, "\"many\"", NULL, false);
    resume_it(&desk);
    PAWL_EXPECT_HISTORY(&desk.kit, desk.id, "start step.complete:ask timer:~turn");
    EXPECT_HAS(pawl_kit_member(&desk.kit, "instance.variables", desk.id, "heard"),
               "the payload of 'ask': expected");
    end(&desk);
}

TEST(code_pause, what_is_owed_goes_with_a_cancel)
{
    struct desk desk;

    begin(&desk, "asking");
    answer_held(&desk, "1", NULL, false);
    PAWL_EXPECT_OK(&desk.kit,
                   pawl_cancel(desk.kit.p, desk.id, NULL, NULL, NULL, &desk.kit.error));
    pawl_kit_advance(&desk.kit, PAWL_SECS(60));
    PAWL_EXPECT_HISTORY(&desk.kit, desk.id, "start step.complete:ask cancel");
    end(&desk);
}

/* A paused parent hears of its child at resume. */
TEST(code_pause, a_child_that_ends_meanwhile_is_heard_of_at_resume)
{
    struct desk desk;
    char child[27] = "", *list;

    begin(&desk, "parent");
    PAWL_EXPECT_OK(&desk.kit, pawl_call(desk.kit.p, "instance.list", "{\"definition\":\"asking\"}",
                                        &list, &desk.kit.error));
    memcpy(child, strstr(list, "\"instance_id\":\"") + strlen("\"instance_id\":\""), 26);
    pawl_free(desk.kit.p, list);
    pause_it(&desk);
    PAWL_EXPECT_OK(&desk.kit, pawl_kit_answer(&desk.kit, child, "1", NULL));
    PAWL_EXPECT_OK(&desk.kit, pawl_kit_signal(&desk.kit, child, "more", NULL));
    pawl_kit_restart(&desk.kit);
    pawl_kit_advance(&desk.kit, PAWL_SECS(60));
    PAWL_EXPECT_HISTORY(&desk.kit, desk.id, "start");
    resume_it(&desk);
    pawl_kit_advance(&desk.kit, 0);
    PAWL_EXPECT_HISTORY(&desk.kit, desk.id, "start child:asking finish");
    PAWL_EXPECT_RESULT(&desk.kit, desk.id,
                       "{\"of_child\":{\"turns\":1,\"heard\":\"answer\"}}");
    end(&desk);
}

/* ---- A death between a resume and what it gives to the instance ---- */

#define COUNTING(has)                                                                              \
    has(input, uint32_t, wanted)                                                                   \
    has(var, uint32_t, sum)                                                                        \
    has(signal, One, uint32_t)                                                                     \
    has(buffered, One)                                                                             \
    has(result, uint32_t, sum)                                                                     \
    has(await, counting)

PAWL_CODE(counting, COUNTING)
{
    PAWL_BEGIN(COUNTING);
    while (self->sum < self->wanted) {
        PAWL_SIGNAL(counting, One);
        self->sum += got->One;
    }
    result->sum = self->sum;
    PAWL_END;
}

static const char flow_text[] = "{\"name\":\"waiting\",\"text\":\"{\\\"signals\\\":{\\\"one\\\":{\\\"buffer\\\":true}},"
                                "\\\"steps\\\":{\\\"wait\\\":{\\\"wait\\\":{\\\"signal\\\":\\\"one\\\"},"
                                "\\\"done\\\":true}}}\"}";

/* Paused while it awaits `count` signals, which are kept. */
static void start_paused(struct desk *desk, const char *type, uint32_t count)
{
    static char payload[40000]; /* so that a few hundred are too many for one decision */
    char input[40];

    snprintf(input, sizeof input, "{\"wanted\":%u}", count);
    desk->id = pawl_kit_start(&desk->kit, type, input);
    EXPECT_HAS(pawl_kit_ask(&desk->kit, "instance.pause", desk->id), "paused");
    memset(payload, ' ', count > 1 ? sizeof payload - 1 : 1);
    payload[0] = '1';
    for (uint32_t i = 0; i < count; i++)
        PAWL_EXPECT_OK(&desk->kit, pawl_kit_signal(&desk->kit, desk->id, "one", payload));
}

/* Another program resumes it, and is killed after its `commit`th commit. Did it live that long? */
static bool resume_and_die(struct desk *desk, uint32_t commit)
{
    char point[32];
    int how = 0;
    pid_t pid;

    pawl_kit_close(&desk->kit);
    pid = fork();
    EXPECT(pid >= 0);
    if (pid == 0) {
        snprintf(point, sizeof point, "after-commit:%u", commit);
        setenv("PAWL_CRASH_AT", point, 1);
        pawl_kit_open_again(&desk->kit);
        (void)pawl_kit_ask(&desk->kit, "instance.resume", desk->id);
        pawl_kit_advance(&desk->kit, 0);
        pawl_kit_close(&desk->kit);
        _exit(0);
    }
    EXPECT_EQ(waitpid(pid, &how, 0), pid);
    pawl_kit_open_again(&desk->kit);
    return WIFSIGNALED(how);
}

/* Killed at each commit of resuming it. */
static uint32_t kill_everywhere(struct desk *desk, const char *type, uint32_t count)
{
    uint32_t commit = 0;
    bool died = true;

    while (died) {
        start_paused(desk, type, count);
        died = resume_and_die(desk, ++commit);
        EXPECT(!strstr(pawl_kit_ask(&desk->kit, "instance.get", desk->id), "\"paused\""));
        pawl_kit_advance(&desk->kit, 0);
        PAWL_EXPECT_STATE(&desk->kit, desk->id, "completed");
    }
    return commit - 1;
}

TEST(code_pause, signals_that_were_kept_are_taken_after_a_kill_between_a_resume_and_its_wake)
{
    struct desk desk;
    char *out;

    begin(&desk, "asking");
    pawl_kit_register(&desk.kit, counting());
    PAWL_EXPECT_OK(&desk.kit,
                   pawl_call(desk.kit.p, "definition.put", flow_text, &out, &desk.kit.error));
    pawl_free(desk.kit.p, out);
    EXPECT(kill_everywhere(&desk, "counting", 1) >= 2);
    EXPECT(kill_everywhere(&desk, "waiting", 1) >= 2);
    end(&desk);
}

TEST(code_pause, signals_that_take_several_commits_are_taken_after_a_kill_between_them)
{
    struct desk desk;

    begin(&desk, "asking");
    pawl_kit_register(&desk.kit, counting());
    start_paused(&desk, "counting", 300);
    EXPECT(resume_and_die(&desk, 2));
    PAWL_EXPECT_STATE(&desk.kit, desk.id, "running");
    pawl_kit_advance(&desk.kit, 0);
    PAWL_EXPECT_RESULT(&desk.kit, desk.id, "{\"sum\":300}");
    end(&desk);
}

TEST(code_pause, signals_of_an_instance_that_a_program_without_its_code_resumed_are_taken_by_one_that_has_it)
{
    struct desk desk;
    unsigned types;

    begin(&desk, "asking");
    pawl_kit_register(&desk.kit, counting());
    start_paused(&desk, "counting", 1);
    pawl_kit_close(&desk.kit);
    types = desk.kit.type_count;
    desk.kit.type_count = 0;
    pawl_kit_open_again(&desk.kit);
    (void)pawl_kit_ask(&desk.kit, "instance.resume", desk.id);
    pawl_kit_restart(&desk.kit);
    pawl_kit_advance(&desk.kit, 0); /* looked for, and refused: the code comes later */
    for (unsigned i = 0; i < types; i++)
        PAWL_EXPECT_OK(&desk.kit, pawl_code_register(desk.kit.p, desk.kit.types[i], &desk.kit.error));
    pawl_kit_advance(&desk.kit, 0);
    PAWL_EXPECT_RESULT(&desk.kit, desk.id, "{\"sum\":1}");
    end(&desk);
}
