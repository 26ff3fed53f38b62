/* host_runners.c - a step that is recorded as started has a thread that runs it, whatever the tools
 * of the host do. Time is real here, because threads are. */
#include "lib/test.h"
#include <pawl.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>

#define WORKERS   2
#define FLASHES   200 /* enough for the engine to start more steps than it has workers */
#define HOLDS     20
#define PATIENCE  20000 /* milliseconds */
#define FLOW(name) "name: " name "\nsteps: {start: {tool: " name ", args: {}, done: true}}\n"

static struct {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int holding;
    bool is_open;
} gate = { .lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER };
static pawl_error error;

static void flash(void *context, const pawl_tool_call *call, pawl_tool_answer *answer)
{
    (void)context;
    (void)call;
    pawl_answer_result(answer, "1");
}

/* Runs until the gate is opened. */
static void hold(void *context, const pawl_tool_call *call, pawl_tool_answer *answer)
{
    (void)context;
    (void)call;
    pthread_mutex_lock(&gate.lock);
    gate.holding++;
    while (!gate.is_open)
        pthread_cond_wait(&gate.changed, &gate.lock);
    gate.holding--;
    pthread_mutex_unlock(&gate.lock);
    pawl_answer_result(answer, "1");
}

static int holding(void)
{
    int count;

    pthread_mutex_lock(&gate.lock);
    count = gate.holding;
    pthread_mutex_unlock(&gate.lock);
    return count;
}

static void set_gate(bool is_open)
{
    pthread_mutex_lock(&gate.lock);
    gate.is_open = is_open;
    pthread_cond_broadcast(&gate.changed);
    pthread_mutex_unlock(&gate.lock);
}

static pawl *open_host(void)
{
    pawl *p;

    EXPECT_OK(pawl_open(&p, "memory:", &(pawl_options){ .own = true, .workers = WORKERS }, &error));
    EXPECT_OK(pawl_tool_register(p, "flash", flash, NULL, &error));
    EXPECT_OK(pawl_tool_register(p, "hold", hold, NULL, &error));
    EXPECT_OK(pawl_define(p, FLOW("flash"), sizeof FLOW("flash") - 1, NULL, &error));
    EXPECT_OK(pawl_define(p, FLOW("hold"), sizeof FLOW("hold") - 1, NULL, &error));
    return p;
}

static pawl_id create(pawl *p, const char *definition)
{
    pawl_id id;

    EXPECT_OK(pawl_create(p, &(pawl_create_args){ .definition = definition }, &id, &error));
    return id;
}

static void wait_until_over(pawl *p, const pawl_id *id)
{
    const char *state = "";

    for (int i = 0; i < PATIENCE && strcmp(state, "completed") != 0; i++) {
        EXPECT_OK(pawl_current(p, id->text, &state, &error));
        poll(NULL, 0, 1);
    }
    EXPECT_TEXT(state, "completed");
}

static void expect_holding(int wanted)
{
    for (int i = 0; i < PATIENCE && holding() != wanted; i++)
        poll(NULL, 0, 1);
    EXPECT_EQ(holding(), wanted);
}

static int count_started(pawl *p, const pawl_id *ids, int count)
{
    int started = 0;

    for (int i = 0; i < count; i++) {
        char input[80], *answer = NULL;

        snprintf(input, sizeof input, "{\"instance_id\":\"%s\"}", ids[i].text);
        EXPECT_OK(pawl_call(p, "instance.steps", input, &answer, &error));
        started += strstr(answer, "\"status\":\"running\"") != NULL;
        pawl_free(p, answer);
    }
    return started;
}

TEST(runners, as_many_steps_are_started_as_there_are_workers)
{
    pawl *p = open_host();
    pawl_id ids[HOLDS];

    for (int i = 0; i < HOLDS; i++)
        ids[i] = create(p, "hold");
    expect_holding(WORKERS);
    EXPECT_EQ(count_started(p, ids, HOLDS), WORKERS);
    set_gate(true);
    for (int i = 0; i < HOLDS; i++)
        wait_until_over(p, &ids[i]);
    pawl_close(p);
}

TEST(runners, a_slow_tool_behind_many_fast_ones_keeps_no_started_step_waiting)
{
    pawl *p = open_host();
    pawl_id ids[HOLDS], last;

    for (int i = 0; i < FLASHES; i++) {
        last = create(p, "flash");
        wait_until_over(p, &last);
    }
    for (int i = 0; i < HOLDS; i++)
        ids[i] = create(p, "hold");
    expect_holding(HOLDS);
    EXPECT_EQ(count_started(p, ids, HOLDS), HOLDS);
    set_gate(true);
    for (int i = 0; i < HOLDS; i++)
        wait_until_over(p, &ids[i]);
    pawl_close(p);
}

/* ---- The order in which steps run -------------------------------------------------------------- */

/* The host's own thread is the only one there is. */
TEST(runners, the_children_of_a_dopar_run_in_the_order_of_the_document)
{
    static const char text[] = "name: wide\ndopar:\n"
                               "  - {name: a, action: set, payload: {}}\n"
                               "  - {name: b, action: set, payload: {}}\n"
                               "  - {name: c, action: set, payload: {}}\n"
                               "  - {name: d, action: set, payload: {}}\n";
    char ran[8] = "";
    pawl_history *history;
    pawl_entry entry;
    const char *state = "";
    pawl_id id;
    pawl *p;

    EXPECT_OK(pawl_open(&p, "memory:", &(pawl_options){ .own = true }, &error));
    EXPECT_OK(pawl_define(p, text, sizeof text - 1, NULL, &error));
    id = create(p, "wide");
    for (int i = 0; i < 100 && strcmp(state, "completed") != 0; i++) {
        EXPECT_OK(pawl_run_due(p, &error));
        EXPECT_OK(pawl_current(p, id.text, &state, &error));
    }
    EXPECT_OK(pawl_history_open(p, id.text, NULL, &history, &error));
    while (pawl_history_next(history, &entry))
        if (strcmp(entry.action, "step.complete") == 0)
            (void)strncat(ran, entry.step, 1);
    EXPECT_OK(pawl_history_close(history, &error));
    EXPECT_TEXT(ran, "abcd");
    pawl_close(p);
}
