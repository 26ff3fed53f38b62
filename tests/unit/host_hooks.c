/* host_hooks.c - what belongs to the host: its memory, its log, its last words; and that two
 * engines in one process know nothing of each other. */
#include "base/assert.h"
#include "base/heap.h"
#include "env/env.h"
#include "lib/fault.h"
#include "lib/test.h"
#include <pawl.h>
#include <pawl_code.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#define LAMP                                                                                       \
    "name: lamp\nstates: [off, on]\ninitial_state: off\nterminal_states: []\ntransitions:\n"       \
    "  - {from_state: off, action: press, to_state: on}\n"                                         \
    "  - {from_state: on, action: press, to_state: off}\n"
#define FLOW                                                                                       \
    "name: greet\nsteps:\n"                                                                        \
    "  start: {name: say, tool: log, args: {message: \"hello, host\"}, next: end}\n"               \
    "  end: {tool: set, args: {a: 1}, done: true}\n"

static char folder[64];

static void begin_folder(void)
{
    test_folder(folder);
}

static void end_folder(void)
{
    char command[96];

    snprintf(command, sizeof command, "rm -r %s", folder);
    EXPECT_EQ(system(command), 0);
}

static const char *url_of(const char *name)
{
    static char url[4][96];
    static int next;
    char *out = url[next++ % 4];

    snprintf(out, sizeof url[0], "sqlite:%s/%s", folder, name);
    return out;
}

static void drive(pawl *p, uint64_t presses)
{
    pawl_history *history;
    pawl_error error;
    pawl_entry entry;
    pawl_fired fired;
    uint64_t count = 0;
    char *text;
    pawl_id id;

    EXPECT_OK(pawl_define(p, LAMP, sizeof LAMP - 1, NULL, &error));
    EXPECT_OK(pawl_define(p, FLOW, sizeof FLOW - 1, NULL, &error));
    EXPECT_OK(pawl_create(p, &(pawl_create_args){ .definition = "greet" }, &id, &error));
    EXPECT_OK(pawl_create(p, &(pawl_create_args){ .definition = "lamp" }, &id, &error));
    for (uint64_t i = 0; i < presses; i++)
        EXPECT_OK(pawl_fire(p, id.text, &(pawl_fire_args){ .action = "press", .actor_ref = "ann" },
                            &fired, &error));
    EXPECT_OK(pawl_run_due(p, &error));
    EXPECT_OK(pawl_history_open(p, id.text, NULL, &history, &error));
    while (pawl_history_next(history, &entry))
        count++;
    EXPECT_OK(pawl_history_close(history, &error));
    EXPECT_EQ(count, presses);
    EXPECT_OK(pawl_call(p, "store.verify", "{}", &text, &error));
    EXPECT_HAS(text, "\"valid\":true");
    pawl_free(p, text);
}

/* ---- memory ---- */

TEST(host, a_forked_child_draws_other_ids_than_its_parent)
{
    struct env *env = env_os_new(&heap_libc);
    unsigned char first[16], ours[16], theirs[16] = { 0 };
    int ends[2];
    pid_t child;

    EXPECT(env && pipe(ends) == 0);
    env->random(env, first, sizeof first); /* the rest of what was fetched is in memory now */
    child = fork();
    EXPECT(child >= 0);
    env->random(env, ours, sizeof ours);
    if (child == 0)
        _exit(write(ends[1], ours, sizeof ours) == sizeof ours ? 0 : 1);
    EXPECT_EQ(read(ends[0], theirs, sizeof theirs), sizeof theirs);
    EXPECT_EQ(waitpid(child, NULL, 0), child);
    EXPECT(memcmp(ours, theirs, sizeof ours) != 0);
    close(ends[0]);
    close(ends[1]);
    env->close(env);
}

TEST(host, all_memory_comes_from_the_hosts_allocator_and_is_back_at_close)
{
    static const char *const urls[] = { "sqlite", "memory:", "sqlite" };
    struct fault_heap heap;
    pawl *p;

    begin_folder();
    for (int i = 0; i < 3; i++) { /* the third time the store is there already */
        fault_init(&heap, 0, FAULT_ONCE);
        EXPECT_OK(pawl_open(&p, i == 1 ? urls[i] : url_of("a.db"),
                            &(pawl_options){ .own = true,
                                             .resize = heap.heap.resize,
                                             .resize_context = heap.heap.context },
                            NULL));
        EXPECT(heap.live > 0);
        drive(p, 70);
        pawl_close(p);
        EXPECT(heap.count > 50);
        EXPECT_EQ(heap.live, 0);
        EXPECT_EQ(heap.live_size, 0);
    }
    end_folder();
}

TEST(host, a_store_that_cannot_be_opened_gives_all_memory_back)
{
    struct fault_heap heap;
    pawl *p;

    fault_init(&heap, 0, FAULT_ONCE);
    EXPECT_EQ(pawl_open(&p, "sqlite:/nowhere/at/all",
                        &(pawl_options){ .resize = heap.heap.resize,
                                         .resize_context = heap.heap.context },
                        NULL),
              PAWL_STORAGE_FAILURE);
    EXPECT(heap.count > 0);
    EXPECT_EQ(heap.live, 0);
}

/* The most that was live at once since `peak` was set to 0. */
struct peak_heap {
    struct fault_heap heap;
    uint64_t peak;
};

static void *resize_noted(void *context, void *block, size_t old_size, size_t new_size)
{
    struct peak_heap *noted = context;
    void *made = noted->heap.heap.resize(noted->heap.heap.context, block, old_size, new_size);

    if (noted->heap.live_size > noted->peak)
        noted->peak = noted->heap.live_size;
    return made;
}

static void press_to(pawl *p, const pawl_id *id, size_t count)
{
    static pawl_batch_fire fires[1000];
    pawl_error error;

    for (size_t i = 0; i < 1000; i++)
        fires[i] = (pawl_batch_fire){ .id = id->text, .args = { .action = "press" } };
    for (size_t made = 0; made < count; made += 1000)
        EXPECT_OK(pawl_fire_batch(p, fires, 1000, &error));
}

/* How much more memory than before reading takes, of all entries or of those that a filter finds. */
static uint64_t memory_to_read(pawl *p, struct peak_heap *noted, const pawl_id *id,
                               const char *action, uint64_t expected)
{
    uint64_t before = noted->heap.live_size, count = 0;
    pawl_history_query query = { .action = action };
    pawl_history *history;
    pawl_error error;
    pawl_entry entry;

    noted->peak = 0;
    EXPECT_OK(pawl_history_open(p, id->text, &query, &history, &error));
    while (pawl_history_next(history, &entry))
        EXPECT_EQ(entry.sequence_number, ++count);
    EXPECT_OK(pawl_history_close(history, &error));
    EXPECT_EQ(count, expected);
    return noted->peak - before;
}

TEST(host, a_long_history_is_read_with_no_more_memory_than_a_short_one)
{
    struct peak_heap noted = { 0 };
    uint64_t all, found;
    pawl_error error;
    pawl_id id;
    pawl *p;

    fault_init(&noted.heap, 0, FAULT_ONCE);
    begin_folder();
    EXPECT_OK(pawl_open(&p, url_of("long.db"),
                        &(pawl_options){ .own = true,
                                         .resize = resize_noted,
                                         .resize_context = &noted },
                        &error));
    EXPECT_OK(pawl_define(p, LAMP, sizeof LAMP - 1, NULL, &error));
    EXPECT_OK(pawl_create(p, &(pawl_create_args){ .definition = "lamp" }, &id, &error));
    press_to(p, &id, 2000);
    all = memory_to_read(p, &noted, &id, NULL, 2000);
    found = memory_to_read(p, &noted, &id, "no such", 0);
    press_to(p, &id, 18000);
    EXPECT(memory_to_read(p, &noted, &id, NULL, 20000) < all + 65536);
    EXPECT(memory_to_read(p, &noted, &id, "no such", 0) < found + 65536);
    EXPECT(all < 1 << 20 && found < 1 << 20);
    pawl_close(p);
    end_folder();
}

/* Runs a flow that has `width` steps beside each other, each with its whole input as its arguments
 * and its result. Returns how much more memory than before it takes. */
static uint64_t memory_to_run_wide(pawl *p, struct peak_heap *noted, int width, const char *input)
{
    uint64_t before = noted->heap.live_size;
    char text[8192] = "name: wide\ndopar:\n";
    const char *state = "";
    size_t size = strlen(text);
    pawl_error error;
    pawl_id id;

    for (int i = 0; i < width; i++)
        size += (size_t)snprintf(text + size, sizeof text - size,
                                 "  - {action: set, payload: {x: \"{{input.blob}}\"}}\n");
    EXPECT_OK(pawl_define(p, text, size, NULL, &error));
    noted->peak = 0;
    EXPECT_OK(
        pawl_create(p, &(pawl_create_args){ .definition = "wide", .input = input }, &id, &error));
    EXPECT_OK(pawl_run_due(p, &error));
    EXPECT_OK(pawl_current(p, id.text, &state, &error));
    EXPECT_TEXT(state, "completed");
    return noted->peak - before;
}

TEST(host, steps_that_run_here_take_no_more_memory_the_more_of_them_are_ready)
{
    static char input[900000];
    struct peak_heap noted = { 0 };
    uint64_t few, many;
    pawl_error error;
    pawl *p;

    memset(input, 'b', sizeof input - 1);
    memcpy(input, "{\"blob\":\"", 9);
    memcpy(input + sizeof input - 3, "\"}", 2);
    fault_init(&noted.heap, 0, FAULT_ONCE);
    begin_folder();
    EXPECT_OK(pawl_open(
        &p, url_of("wide.db"),
        &(pawl_options){ .own = true, .resize = resize_noted, .resize_context = &noted }, &error));
    few = memory_to_run_wide(p, &noted, 40, input);
    many = memory_to_run_wide(p, &noted, 120, input);
    EXPECT(many < few + few / 4);
    pawl_close(p);
    end_folder();
}

TEST(host, a_declaration_is_read_back_byte_for_byte)
{
    static const char text[] = "{ \"states\":[\"a\" ,\"b\"],\"initial_state\":\"a\",\n"
                               "\"terminal_states\":[], \"transitions\":[]}";
    pawl_error error;
    size_t size = 0;
    char *found;
    pawl_id id;
    pawl *p;

    EXPECT_OK(pawl_open(&p, "memory:", NULL, &error));
    EXPECT_OK(pawl_create(p, &(pawl_create_args){ .declaration = text }, &id, &error));
    EXPECT_OK(pawl_declaration(p, id.text, &found, &size, &error));
    EXPECT_TEXT(found, text);
    EXPECT_EQ(size, sizeof text - 1);
    pawl_free(p, found);
    EXPECT_EQ(pawl_declaration(p, "x", &found, NULL, &error), PAWL_NOT_KNOWN);
    EXPECT(found == NULL);
    EXPECT_EQ(pawl_declaration(p, " ", &found, NULL, &error), PAWL_INVALID_REQUEST);
    pawl_close(p);
}

/* What fifty flows have done in a store without threads, a budget at a time. */
TEST(host, a_budget_bounds_what_one_call_does_and_says_that_more_is_due)
{
    uint32_t calls = 0;
    pawl_error error;
    char *text;
    pawl_id id;
    pawl *p;

    EXPECT_OK(pawl_open(&p, "memory:", &(pawl_options){ .own = true }, &error));
    EXPECT_OK(pawl_define(p, FLOW, sizeof FLOW - 1, NULL, &error));
    for (int i = 0; i < 50; i++)
        EXPECT_OK(pawl_create(p, &(pawl_create_args){ .definition = "greet" }, &id, &error));
    EXPECT_EQ(pawl_next_due(p), 0);
    while (pawl_next_due(p) == 0 && calls < 1000) {
        EXPECT_OK(pawl_run_due_within(p, 5, &error));
        calls++;
    }
    EXPECT(calls >= 10 && calls < 1000); /* a hundred steps, and no call does them all */
    EXPECT_OK(pawl_call(p, "instance.counts", "{}", &text, &error));
    EXPECT_HAS(text, "\"completed\":50");
    pawl_free(p, text);
    pawl_close(p);
}

/* ---- the log ---- */

static void take_line(void *context, pawl_log_level level, const char *event, const char *text)
{
    char *line = context;

    snprintf(line, 200, "%d %s %s", (int)level, event, text);
}

TEST(host, the_log_function_is_given_the_lines)
{
    char line[200] = "";
    pawl *p;

    EXPECT_OK(pawl_open(
        &p, "memory:", &(pawl_options){ .own = true, .log = take_line, .log_context = line },
        NULL));
    drive(p, 1);
    EXPECT_HAS(line, "hello, host");
    pawl_close(p);
}

/* Its reduce is in no program: the turn cannot be taken, and the timer stays armed. */
#define HOPES(has) has(timer, End) has(await, waiting)

PAWL_CODE(hopes, HOPES)
{
    PAWL_BEGIN(HOPES);
    PAWL_TIMER(waiting, End, PAWL_SECS(1));
    PAWL_REDUCE(nowhere, "{}");
    PAWL_END;
}

TEST(host, a_timer_whose_turn_is_refused_is_named_in_the_log)
{
    char line[200] = "";
    pawl_id id;
    pawl *p;

    EXPECT_OK(pawl_open(&p, "memory:",
                        &(pawl_options){ .own = true,
                                         .test_clock = true,
                                         .log = take_line,
                                         .log_context = line },
                        NULL));
    EXPECT_OK(pawl_code_register(p, hopes(), NULL));
    EXPECT_OK(pawl_create(p, &(pawl_create_args){ .definition = "hopes" }, &id, NULL));
    EXPECT_OK(pawl_test_advance(p, 1000, NULL));
    EXPECT_HAS(line, "timer.refused");
    EXPECT_HAS(line, "nowhere");
    pawl_close(p);
}

/* ---- the last words ---- */

static void take_words(void *context, const char *text)
{
    const int *pipe_end = context;

    EXPECT(write(*pipe_end, text, strlen(text)) > 0);
}

/* A tool may call another pawl, whose own hook holds for that call alone. */
static void break_promise(void *context, const pawl_tool_call *call, pawl_tool_answer *answer)
{
    (void)call;
    (void)answer;
    if (context)
        drive(context, 1);
    ASSERT(false && "a promise of ours");
}

static void run_broken(int pipe_end, uint32_t workers)
{
    static const char flow[] =
        "name: broken\nsteps:\n  start: {tool: broken, args: {}, done: true}\n";
    int nowhere = -1;
    pawl *p, *other;
    pawl_id id;

    EXPECT_OK(pawl_open(
        &other, "memory:",
        &(pawl_options){ .own = true, .panic = take_words, .panic_context = &nowhere }, NULL));
    EXPECT_OK(pawl_open(
        &p, "memory:",
        &(pawl_options){
            .own = true, .workers = workers, .panic = take_words, .panic_context = &pipe_end },
        NULL));
    EXPECT_OK(pawl_tool_register(p, "broken", break_promise, other, NULL));
    EXPECT_OK(pawl_define(p, flow, sizeof flow - 1, NULL, NULL));
    EXPECT_OK(pawl_create(p, &(pawl_create_args){ .definition = "broken" }, &id, NULL));
    if (workers)
        for (;;)
            pause();
    pawl_run_due(p, NULL);
    _exit(0);
}

static void expect_last_words(uint32_t workers)
{
    char text[600] = "";
    int ends[2], status;
    pid_t child;

    EXPECT_EQ(pipe(ends), 0);
    child = fork();
    if (child == 0)
        run_broken(ends[1], workers);
    close(ends[1]);
    EXPECT(read(ends[0], text, sizeof text - 1) > 0);
    EXPECT_EQ(waitpid(child, &status, 0), child);
    EXPECT_HAS(text, "host_hooks.c");
    EXPECT_HAS(text, "a promise of ours");
    EXPECT(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
}

TEST(host, a_broken_promise_is_told_to_the_hook_of_the_pawl_it_belongs_to)
{
    expect_last_words(0);
}

TEST(host, a_broken_promise_in_a_thread_of_pawls_is_told_to_its_hook)
{
    expect_last_words(1);
}

/* ---- two at once ---- */

TEST(host, two_engines_in_one_process_know_nothing_of_each_other)
{
    struct fault_heap heaps[2];
    pawl *pawls[2];

    begin_folder();
    for (int i = 0; i < 2; i++) {
        fault_init(&heaps[i], 0, FAULT_ONCE);
        EXPECT_OK(pawl_open(&pawls[i], url_of(i ? "b.db" : "a.db"),
                            &(pawl_options){ .own = true,
                                             .resize = heaps[i].heap.resize,
                                             .resize_context = heaps[i].heap.context },
                            NULL));
    }
    drive(pawls[0], 3);
    drive(pawls[1], 5);
    pawl_close(pawls[0]);
    EXPECT_EQ(heaps[0].live, 0);
    drive(pawls[1], 2);
    pawl_close(pawls[1]);
    EXPECT_EQ(heaps[1].live, 0);
    end_folder();
}

TEST(host, the_same_store_twice_is_shared_or_refused_by_name)
{
    pawl_error error;
    pawl *first, *second;

    begin_folder();
    EXPECT_OK(pawl_open(&first, url_of("a.db"), NULL, &error));
    EXPECT_OK(pawl_open(&second, url_of("a.db"), NULL, &error));
    drive(first, 3);
    drive(second, 2);
    drive(first, 1);
    pawl_close(second);
    EXPECT_OK(pawl_open(&second, url_of("a.db"), &(pawl_options){ .own = true }, &error));
    pawl_close(first);
    EXPECT_EQ(pawl_open(&first, url_of("a.db"), &(pawl_options){ .own = true }, &error),
              PAWL_IN_USE);
    EXPECT_HAS(error.message, "is owned by process");
    EXPECT(first == NULL);
    pawl_close(second);
    end_folder();
}

/* ---- defaults ---- */

TEST(host, options_of_null_and_of_zeros_are_the_same)
{
    pawl_error error;
    pawl *by_null, *by_zero;

    begin_folder();
    EXPECT_EQ(chdir(folder), 0);
    EXPECT_OK(pawl_open(&by_null, NULL, NULL, &error)); /* sqlite:pawl.db, shared */
    EXPECT_OK(pawl_open(&by_zero, url_of("pawl.db"), &(pawl_options){ 0 }, &error));
    drive(by_null, 1);
    drive(by_zero, 1);
    pawl_close(by_zero);
    pawl_close(by_null);
    end_folder();
}
