/* deaths.c - what ends the program that runs it is not tried for ever: turns, calls, steps and reduces. */
#include "lib/test.h"
#include <pawl_code.h>
#include <pawl_test.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <sqlite3.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

/* Ends its process, as a null pointer would. */
#define DEADLY(has)                                                                                \
    has(input, bool, at_once)                                                                      \
    has(input, bool, by_timer)                                                                     \
    has(input, bool, by_reduce)                                                                    \
    has(var, uint32_t, ticks)                                                                      \
    has(timer, Tick)                                                                               \
    has(result, uint32_t, ticks)                                                                   \
    has(await, ticking)

static bool is_deadly;

static void die_if_deadly(void)
{
    if (is_deadly)
        kill(getpid(), SIGKILL);
}

PAWL_CODE(deadly, DEADLY)
{
    PAWL_BEGIN(DEADLY);
    if (self->at_once)
        die_if_deadly();
    PAWL_TIMER(ticking, Tick, PAWL_SECS(10));
    if (self->by_timer)
        die_if_deadly();
    if (self->by_reduce)
        PAWL_REDUCE(note, "{}");
    self->ticks++;
    result->ticks = self->ticks;
    PAWL_END;
}

/* Does not. */
#define RESTING(has) has(timer, Tick) has(await, ticking)

PAWL_CODE(resting, RESTING)
{
    PAWL_BEGIN(RESTING);
    PAWL_TIMER(ticking, Tick, PAWL_SECS(10));
    PAWL_END;
}

/* The tool does it. */
#define PAYING(has)                                                                                \
    has(input, bool, stubborn)                                                                     \
    has(call, charge, uint32_t)                                                                    \
    has(call, insist, uint32_t)                                                                    \
    has(retry, insist, 100)                                                                        \
    has(call, hold, uint32_t)                                                                      \
    has(input, bool, calm)                                                                         \
    has(result, uint32_t, receipt)                                                                 \
    has(await, charging)                                                                           \
    has(await, insisting)                                                                          \
    has(await, holding)

PAWL_CODE(paying, PAYING)
{
    PAWL_BEGIN(PAYING);
    if (self->calm) {
        PAWL_CALL(holding, hold, "{}");
        result->receipt = got->hold;
    } else if (self->stubborn) {
        PAWL_CALL(insisting, insist, "{}");
        result->receipt = got->insist;
    } else {
        PAWL_CALL(charging, charge, "{}");
        result->receipt = got->charge;
    }
    PAWL_END;
}

struct desk {
    pawl_kit kit;
    char folder[TEST_FOLDER_SIZE], url[96];
};

static void charge(void *context, const pawl_tool_call *call, pawl_tool_answer *answer)
{
    (void)context, (void)call;
    die_if_deadly();
    pawl_answer_result(answer, "7");
}

static bool note(void *context, sqlite3 *db, const char *args, char *words, size_t size)
{
    (void)context, (void)db, (void)args, (void)words, (void)size;
    die_if_deadly();
    return true;
}

static void open_desk(struct desk *desk)
{
    static const char *const names[] = { "charge", "insist", "hold" };

    pawl_kit_open_again(&desk->kit);
    for (int i = 0; i < 3; i++)
        PAWL_EXPECT_OK(&desk->kit,
                       pawl_tool_register(desk->kit.p, names[i], charge, desk, &desk->kit.error));
    PAWL_EXPECT_OK(&desk->kit,
                   pawl_reduce_register(desk->kit.p, "note", note, desk, &desk->kit.error));
}

static void begin(struct desk *desk)
{
    memset(desk, 0, sizeof *desk);
    test_folder(desk->folder);
    snprintf(desk->url, sizeof desk->url, "sqlite:%s/desk.db", desk->folder);
    desk->kit.url = desk->url;
    open_desk(desk);
    pawl_kit_register(&desk->kit, deadly());
    pawl_kit_register(&desk->kit, paying());
    pawl_kit_register(&desk->kit, resting());
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

static void expect_paused(struct desk *desk, const char *id, const char *words)
{
    EXPECT_HAS(pawl_kit_member(&desk->kit, "instance.get", id, "status"), "paused");
    EXPECT_HAS(pawl_kit_ask(&desk->kit, "instance.why", id), words);
    EXPECT_HAS(pawl_kit_ask(&desk->kit, "instance.why", id), "correct it, then resume");
}

static void resume_it(struct desk *desk, const char *id)
{
    EXPECT_HAS(pawl_kit_ask(&desk->kit, "instance.resume", id), "status");
    pawl_kit_advance(&desk->kit, 0);
}

/* A program of its own, which opens the store, works, and closes it. The signal that ended it; 0: none. */
static int run_program(struct desk *desk, void (*work)(pawl_kit *kit))
{
    int how = 0;
    pid_t pid = fork();

    EXPECT(pid >= 0);
    if (pid == 0) {
        open_desk(desk);
        work(&desk->kit);
        pawl_kit_close(&desk->kit);
        _exit(0);
    }
    EXPECT_EQ(waitpid(pid, &how, 0), pid);
    return WIFSIGNALED(how) ? WTERMSIG(how) : 0;
}

static void let_it_tick(pawl_kit *kit)
{
    pawl_kit_advance(kit, PAWL_SECS(10));
}

static void resume_that(pawl_kit *kit)
{
    (void)pawl_kit_ask(kit, "instance.resume", kit->ids[0].text);
    pawl_kit_advance(kit, 0);
}

static void create_one(pawl_kit *kit)
{
    pawl_kit_start(kit, "deadly", "{\"at_once\":true}");
}

static bool has_turns(const struct desk *desk)
{
    char command[96];

    snprintf(command, sizeof command, "ls %s | grep -q turns", desk->folder);
    return system(command) == 0;
}

/* Three programs die of the instance; the fourth lives, and has paused it. */
static void expect_three_deaths(struct desk *desk, const char *id, const char *words)
{
    pawl_kit_close(&desk->kit);
    is_deadly = true;
    for (int i = 0; i < 3; i++)
        EXPECT_EQ(run_program(desk, let_it_tick), SIGKILL);
    EXPECT_EQ(run_program(desk, let_it_tick), 0);
    open_desk(desk);
    expect_paused(desk, id, words);
}

static void expect_one_death_more(struct desk *desk, const char *id, const char *words)
{
    pawl_kit_close(&desk->kit);
    EXPECT_EQ(run_program(desk, resume_that), SIGKILL);
    EXPECT_EQ(run_program(desk, let_it_tick), 0);
    open_desk(desk);
    expect_paused(desk, id, words);
}

static void expect_corrected(struct desk *desk, const char *id)
{
    is_deadly = false;
    resume_it(desk, id);
    PAWL_EXPECT_STATE(&desk->kit, id, "completed");
}

TEST(deaths, a_timer_whose_turn_ends_the_program_three_times_pauses_its_instance_and_nothing_else)
{
    struct desk desk;
    const char *id, *calm;

    begin(&desk);
    id = pawl_kit_start(&desk.kit, "deadly", "{\"by_timer\":true}");
    calm = pawl_kit_start(&desk.kit, "deadly", NULL);
    pawl_kit_close(&desk.kit);
    EXPECT(!has_turns(&desk));
    open_desk(&desk);
    expect_three_deaths(&desk, id, "its turn ended the process 3 times in a row");
    expect_one_death_more(&desk, id, "its turn ended the process 3 times in a row");
    expect_corrected(&desk, id);
    PAWL_EXPECT_HISTORY(&desk.kit, id, "start timer:tick timer:~turn finish");
    PAWL_EXPECT_RESULT(&desk.kit, calm, "{\"ticks\":1}");
    pawl_kit_close(&desk.kit);
    EXPECT(!has_turns(&desk));
    open_desk(&desk);
    end(&desk);
}

#define POISONED 6

/* Some are paused, the others wait, and why says so. */
static void tick_and_ask(pawl_kit *kit)
{
    unsigned paused = 0, held = 0;

    let_it_tick(kit);
    for (int i = 0; i < POISONED; i++) {
        const char *why = pawl_kit_ask(kit, "instance.why", kit->ids[i].text);

        paused += strstr(why, "its turn ended the process") != NULL;
        held += strstr(why, "code type 'deadly' is held in this program") != NULL;
    }
    if (paused < 2 || paused > 3 || held != POISONED - paused)
        abort();
}

/* How many programs die before one lives. */
static int count_deaths(struct desk *desk, void (*work)(pawl_kit *kit))
{
    int how, count = 0;

    is_deadly = true;
    while ((how = run_program(desk, work)) == SIGKILL)
        count++;
    EXPECT_EQ(how, 0);
    is_deadly = false;
    return count;
}

TEST(deaths, many_poisoned_instances_of_one_type_cost_at_most_five_deaths_and_nothing_else_is_held)
{
    struct desk desk;
    const char *calm;

    begin(&desk);
    for (int i = 0; i < POISONED; i++)
        pawl_kit_start(&desk.kit, "deadly", "{\"by_timer\":true}");
    calm = pawl_kit_start(&desk.kit, "resting", NULL);
    pawl_kit_close(&desk.kit);
    EXPECT(count_deaths(&desk, tick_and_ask) <= 5);
    open_desk(&desk); /* it was stopped in order: the type is tried again */
    PAWL_EXPECT_STATE(&desk.kit, calm, "completed");
    pawl_kit_advance(&desk.kit, 0);
    for (int i = 0; i < POISONED; i++) {
        if (strstr(pawl_kit_ask(&desk.kit, "instance.get", desk.kit.ids[i].text), "\"paused\""))
            resume_it(&desk, desk.kit.ids[i].text);
        PAWL_EXPECT_STATE(&desk.kit, desk.kit.ids[i].text, "completed");
    }
    end(&desk);
}

static void tick_resume_tick(pawl_kit *kit)
{
    tick_and_ask(kit);
    is_deadly = false;
    for (int i = 0; i < POISONED; i++)
        if (strstr(pawl_kit_ask(kit, "instance.get", kit->ids[i].text), "\"paused\""))
            (void)pawl_kit_ask(kit, "instance.resume", kit->ids[i].text);
    pawl_kit_advance(kit, 0);
    for (int i = 0; i < POISONED; i++)
        if (!strstr(pawl_kit_ask(kit, "instance.get", kit->ids[i].text), "\"completed\""))
            abort();
}

TEST(deaths, a_type_that_is_held_is_tried_again_when_one_of_its_instances_is_resumed)
{
    struct desk desk;

    begin(&desk);
    for (int i = 0; i < POISONED; i++)
        pawl_kit_start(&desk.kit, "deadly", "{\"by_timer\":true}");
    pawl_kit_close(&desk.kit);
    EXPECT(count_deaths(&desk, tick_resume_tick) <= 5);
    open_desk(&desk);
    end(&desk);
}

TEST(deaths, a_start_that_ends_the_program_three_times_is_created_paused)
{
    struct desk desk;
    char *out;

    begin(&desk);
    pawl_kit_close(&desk.kit);
    is_deadly = true;
    for (int i = 0; i < 3; i++)
        EXPECT_EQ(run_program(&desk, create_one), SIGKILL);
    EXPECT_EQ(run_program(&desk, create_one), 0);
    open_desk(&desk);
    PAWL_EXPECT_OK(&desk.kit, pawl_call(desk.kit.p, "instance.list", "{\"status\":\"paused\"}", &out,
                                        &desk.kit.error));
    EXPECT_HAS(out, "3 times in a row");
    pawl_free(desk.kit.p, out);
    is_deadly = false;
    end(&desk);
}

TEST(deaths, a_reduce_that_ends_the_program_three_times_pauses_the_instance_of_its_turn)
{
    struct desk desk;
    const char *id;

    begin(&desk);
    id = pawl_kit_start(&desk.kit, "deadly", "{\"by_reduce\":true}");
    expect_three_deaths(&desk, id, "its turn ended the process 3 times in a row");
    expect_corrected(&desk, id);
    end(&desk);
}

TEST(deaths, a_tool_that_ends_the_program_three_times_pauses_the_instance_that_called_it)
{
    struct desk desk;
    const char *id;

    begin(&desk);
    id = pawl_kit_start(&desk.kit, "paying", NULL);
    expect_three_deaths(&desk, id, "step 'charge' ended the process 3 times in a row");
    expect_one_death_more(&desk, id, "step 'charge' ended the process 3 times in a row");
    expect_corrected(&desk, id);
    PAWL_EXPECT_HISTORY(&desk.kit, id,
                        "start step.start:charge step.fail:charge step.start:charge step.fail:charge "
                        "step.start:charge step.fail:charge step.start:charge step.fail:charge "
                        "step.start:charge step.fail:charge step.start:charge step.complete:charge "
                        "finish");
    end(&desk);
}

TEST(deaths, a_call_that_may_be_tried_a_hundred_times_is_paused_at_three_deaths)
{
    struct desk desk;
    const char *id;

    begin(&desk);
    id = pawl_kit_start(&desk.kit, "paying", "{\"stubborn\":true}");
    expect_three_deaths(&desk, id, "step 'insist' ended the process 3 times in a row");
    expect_corrected(&desk, id);
    end(&desk);
}

static const char *start_flow(struct desk *desk, const char *retry)
{
    char text[300];
    char *out;

    snprintf(text, sizeof text,
             "{\"name\":\"bill\",\"text\":\"{\\\"steps\\\":{\\\"pay\\\":{\\\"tool\\\":\\\"charge\\\",\\\"done\\\":true%s}}}\"}",
             retry);
    PAWL_EXPECT_OK(&desk->kit,
                   pawl_call(desk->kit.p, "definition.put", text, &out, &desk->kit.error));
    pawl_free(desk->kit.p, out);
    return pawl_kit_start(&desk->kit, "bill", NULL);
}

TEST(deaths, a_flows_step_whose_function_ends_the_program_three_times_pauses_the_flow)
{
    struct desk desk;
    const char *id;

    begin(&desk);
    id = start_flow(&desk, ",\\\"retry\\\":{\\\"max\\\":100}");
    expect_three_deaths(&desk, id, "step 'pay' ended the process 3 times in a row");
    expect_corrected(&desk, id);
    end(&desk);
}

TEST(deaths, a_flows_step_that_has_no_attempt_left_fails_as_declared)
{
    struct desk desk;
    const char *id;

    begin(&desk);
    id = start_flow(&desk, ",\\\"retry\\\":{\\\"max\\\":3}");
    pawl_kit_close(&desk.kit); /* before it is run: that is an attempt, too */
    is_deadly = true;
    for (int i = 0; i < 2; i++)
        EXPECT_EQ(run_program(&desk, let_it_tick), SIGKILL);
    EXPECT_EQ(run_program(&desk, let_it_tick), 0);
    is_deadly = false;
    open_desk(&desk);
    PAWL_EXPECT_STATE(&desk.kit, id, "failed");
    end(&desk);
}

/* A call that an orderly end interrupts has not killed anything. */
TEST(deaths, a_call_that_succeeds_after_a_death_begins_to_count_again)
{
    struct desk desk;

    begin(&desk);
    for (int i = 0; i < 2; i++) {
        const char *id = pawl_kit_start(&desk.kit, "paying", NULL);

        pawl_kit_close(&desk.kit);
        is_deadly = true;
        for (int death = 0; death < 2; death++)
            EXPECT_EQ(run_program(&desk, let_it_tick), SIGKILL);
        is_deadly = false;
        EXPECT_EQ(run_program(&desk, let_it_tick), 0);
        EXPECT(!has_turns(&desk));
        open_desk(&desk);
        PAWL_EXPECT_STATE(&desk.kit, id, "completed");
    }
    end(&desk);
}

/* ---- Calls that run at the same time ---- */

#define CALM 4

/* What the programs of one test share. */
static struct {
    sem_t held; /* a calm call is under way */
    int lives;
    _Atomic int now, most; /* calls under way in the present life, and the most since the third */
} *shared;

/* From the third life on: does another call run beside this one? */
static void note_company(void)
{
    int now = ++shared->now;

    for (int i = 0; i < 30 && now < 2; i++) {
        sched_yield();
        now = shared->now;
    }
    shared->most = now > shared->most ? now : shared->most;
}

/* In the first two lives all calm calls are under way when it kills. */
static void kill_together(void *context, const pawl_tool_call *call, pawl_tool_answer *answer)
{
    (void)context, (void)call, (void)answer;
    for (int i = 0; i < CALM && shared->lives < 3; i++)
        sem_wait(&shared->held);
    if (shared->lives >= 3)
        note_company();
    kill(getpid(), SIGKILL);
}

static void hold_together(void *context, const pawl_tool_call *call, pawl_tool_answer *answer)
{
    (void)context, (void)call;
    if (shared->lives < 3) {
        sem_post(&shared->held);
        pause();
    }
    note_company();
    shared->now--;
    pawl_answer_result(answer, "7");
}

static bool has_status(pawl_kit *kit, const char *id, const char *status)
{
    return strstr(pawl_kit_member(kit, "instance.get", id, "status"), status) != NULL;
}

/* It ends by itself when nothing is left to do. */
static void work_together(struct desk *desk)
{
    pawl_options options = { .own = true, .workers = 2 * CALM };
    pawl_kit *kit = &desk->kit;
    bool is_done = false;

    alarm(60); /* and with its parent, if that gives up */
    shared->lives++;
    shared->now = 0;
    sem_init(&shared->held, 1, 0);
    PAWL_EXPECT_OK(kit, pawl_open(&kit->p, desk->url, &options, &kit->error));
    PAWL_EXPECT_OK(kit, pawl_code_register(kit->p, paying(), &kit->error));
    PAWL_EXPECT_OK(kit, pawl_tool_register(kit->p, "charge", kill_together, desk, &kit->error));
    PAWL_EXPECT_OK(kit, pawl_tool_register(kit->p, "hold", hold_together, desk, &kit->error));
    while (!is_done) {
        is_done = has_status(kit, kit->ids[0].text, "paused");
        for (int i = 1; i <= CALM; i++)
            is_done = is_done && has_status(kit, kit->ids[i].text, "completed");
        sched_yield();
    }
    pawl_kit_close(kit);
    _exit(0);
}

static int run_together(struct desk *desk)
{
    int how = 0;
    pid_t pid = fork();

    if (pid == 0)
        work_together(desk);
    EXPECT_EQ(waitpid(pid, &how, 0), pid);
    return WIFSIGNALED(how) ? WTERMSIG(how) : 0;
}

TEST(deaths, of_calls_that_were_under_way_together_only_the_one_that_killed_is_paused)
{
    struct desk desk;

    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    EXPECT(shared != MAP_FAILED);
    begin(&desk);
    pawl_kit_start(&desk.kit, "paying", NULL);
    for (int i = 0; i < CALM; i++)
        pawl_kit_start(&desk.kit, "paying", "{\"calm\":true}");
    pawl_kit_close(&desk.kit);
    for (int i = 0; i < 3; i++)
        EXPECT_EQ(run_together(&desk), SIGKILL);
    EXPECT_EQ(run_together(&desk), 0);
    EXPECT_EQ(shared->most, 1);
    open_desk(&desk);
    expect_paused(&desk, desk.kit.ids[0].text, "step 'charge' ended the process 3 times in a row");
    end(&desk);
}

/* ---- Programs that share the store ---- */

/* Opens the store as one of several programs, or joins it by a connection of its own. */
static pawl *open_sharing(struct desk *desk, sqlite3 *db)
{
    pawl_options options = { .test_clock = true };
    pawl *p = NULL;
    pawl_error error;

    if ((db ? pawl_attach(&p, db, &options, &error) : pawl_open(&p, desk->url, &options, &error)) ||
        pawl_code_register(p, deadly(), &error) != PAWL_OK)
        return NULL;
    return p;
}

static sqlite3 *connect_to(struct desk *desk)
{
    sqlite3 *db;

    return sqlite3_open(desk->url + strlen("sqlite:"), &db) == SQLITE_OK ? db : NULL;
}

/* As run_program(), for one that does not own it. */
static int run_sharing(struct desk *desk, bool attaches)
{
    int how = 0;
    pid_t pid = fork();

    EXPECT(pid >= 0);
    if (pid == 0) {
        pawl *p = open_sharing(desk, attaches ? connect_to(desk) : NULL);
        pawl_error error;

        if (!p || pawl_test_advance(p, 10000, &error) != PAWL_OK)
            _exit(1);
        pawl_close(p);
        _exit(0);
    }
    EXPECT_EQ(waitpid(pid, &how, 0), pid);
    return WIFSIGNALED(how) ? WTERMSIG(how) : WEXITSTATUS(how);
}

static const char *begin_sharing(struct desk *desk)
{
    const char *id;

    begin(desk);
    id = pawl_kit_start(&desk->kit, "deadly", "{\"by_timer\":true}");
    pawl_kit_close(&desk->kit);
    is_deadly = true;
    return id;
}

static void end_sharing(struct desk *desk, const char *id)
{
    EXPECT_EQ(run_sharing(desk, false), 0);
    open_desk(desk);
    expect_paused(desk, id, "3 times");
    expect_corrected(desk, id);
    pawl_kit_close(&desk->kit);
    EXPECT(!has_turns(desk));
    open_desk(desk);
    end(desk);
}

TEST(deaths, a_timer_that_ends_a_program_which_shares_its_store_is_not_tried_for_ever)
{
    struct desk desk;
    const char *id = begin_sharing(&desk);

    for (int i = 0; i < 3; i++)
        EXPECT_EQ(run_sharing(&desk, false), SIGKILL);
    end_sharing(&desk, id);
}

TEST(deaths, nor_is_one_that_ends_a_program_which_attached_its_own_connection)
{
    struct desk desk;
    const char *id = begin_sharing(&desk);

    for (int i = 0; i < 3; i++)
        EXPECT_EQ(run_sharing(&desk, true), SIGKILL);
    EXPECT_EQ(run_sharing(&desk, true), 0);
    end_sharing(&desk, id);
}

TEST(deaths, of_several_programs_that_share_a_store_each_counts_its_own)
{
    struct desk desk;
    const char *id = begin_sharing(&desk);
    pawl *others[2] = { open_sharing(&desk, NULL), open_sharing(&desk, NULL) };

    EXPECT(others[0] && others[1]);
    for (int i = 0; i < 3; i++)
        EXPECT_EQ(run_sharing(&desk, false), SIGKILL);
    EXPECT_EQ(run_sharing(&desk, false), 0);
    pawl_close(others[1]);
    pawl_close(others[0]);
    end_sharing(&desk, id);
}

/* It finds them where the program before it counted, whichever programs have ended since. */
TEST(deaths, a_program_that_is_started_again_finds_its_deaths_also_when_the_others_have_gone)
{
    struct desk desk;
    const char *id = begin_sharing(&desk);
    pawl *other = open_sharing(&desk, NULL);

    EXPECT(other);
    for (int i = 0; i < 2; i++)
        EXPECT_EQ(run_sharing(&desk, false), SIGKILL);
    pawl_close(other);
    EXPECT_EQ(run_sharing(&desk, false), SIGKILL);
    end_sharing(&desk, id);
}
