/* plan_job.c - pawl_plan_make() and pawl_plan_restart(): seed 002's make_job and restart_job. */
#include "lib/test.h"
#include "base/buf.h"
#include <stdio.h>
#include <time.h>

#define L(name) "{\"action\":\"" name "\",\"payload\":{\"n\":1}}"

struct play {
    char *job;
    char *actions; /* of the last restart */
};

static void make(struct play *play, const char *tree)
{
    pawl_error error;

    *play = (struct play){ 0 };
    if (pawl_plan_make(tree, &play->job, &error) != PAWL_OK)
        test_fail(__FILE__, __LINE__, "%s: %s", tree, error.message);
}

static void restart(struct play *play, const char *results)
{
    char *next = NULL;
    pawl_error error;

    pawl_plan_free(play->actions);
    if (pawl_plan_restart(play->job, results, &next, &play->actions, &error) != PAWL_OK)
        test_fail(__FILE__, __LINE__, "%s", error.message);
    pawl_plan_free(play->job);
    play->job = next;
}

static void end(struct play *play)
{
    pawl_plan_free(play->actions);
    pawl_plan_free(play->job);
}

static void expect_refused(const struct play *play, const char *results, const char *words)
{
    char *next = NULL, *actions = NULL;
    pawl_error error;

    EXPECT_EQ(pawl_plan_restart(play->job, results, &next, &actions, &error), PAWL_INVALID_REQUEST);
    EXPECT(!next && !actions);
    EXPECT_HAS(error.message, words);
}

TEST(plan_job, c8_c9_c10_actions_are_handed_out_once_and_nodes_are_numbered_depth_first)
{
    struct play play;

    make(&play, "{\"do\":[" L("a") ",{\"dopar\":[" L("b") "," L("c") "]}," L("d") "]}");
    restart(&play, NULL);
    EXPECT_TEXT(play.actions, "[{\"node\":1,\"action\":\"a\",\"payload\":{\"n\":1}}]");
    EXPECT_HAS(play.job, "{\"status\":\"pending\",\"settled\":false,\"context\":{},\"leaves\":[{\"node\":1,"
                         "\"status\":\"pending\"}]");
    restart(&play, NULL);
    EXPECT_TEXT(play.actions, "[]"); /* C10: pending, so not again */
    restart(&play, "[{\"node\":1,\"status\":\"success\",\"output\":{\"x\":1.50}}]");
    EXPECT_TEXT(play.actions, "[{\"node\":3,\"action\":\"b\",\"payload\":{\"n\":1}},{\"node\":4,"
                              "\"action\":\"c\",\"payload\":{\"n\":1}}]");
    EXPECT_HAS(play.job, "{\"node\":1,\"status\":\"success\",\"output\":{\"x\":1.50}}");
    restart(&play, "[{\"node\":4,\"status\":\"success\"},{\"node\":3,\"status\":\"success\"}]");
    EXPECT_HAS(play.actions, "\"node\":5");
    restart(&play, "[{\"node\":5,\"status\":\"success\"}]");
    EXPECT_TEXT(play.actions, "[]");
    EXPECT_HAS(play.job, "{\"status\":\"success\"");
    end(&play);
}

TEST(plan_job, c21_results_come_in_any_order_and_unknown_nodes_are_named)
{
    struct play play;

    make(&play, "{\"dopar\":[" L("a") "," L("b") "]}");
    expect_refused(&play, "[{\"node\":9,\"status\":\"success\"}]", "node 9 is an unknown job node");
    restart(&play, NULL);
    expect_refused(&play, "[{\"node\":0,\"status\":\"success\"}]",
                   "unknown job node"); /* a group */
    expect_refused(&play, "[{\"node\":-1,\"status\":\"success\"}]", "unknown job node");
    expect_refused(&play, "[{\"status\":\"success\"}]", "unknown job node");
    expect_refused(&play, "[{\"node\":1}]", "has no status");
    expect_refused(&play, "[{\"node\":1,\"status\":\"perhaps\"}]", "another status");
    expect_refused(&play, "{}", "expected a list");
    restart(&play, "[{\"node\":2,\"status\":\"failure\",\"output\":\"no\"},{\"node\":1,\"status\":"
                   "\"success\"}]");
    EXPECT_HAS(play.job, "{\"status\":\"failure\"");
    EXPECT_HAS(play.job, "\"exec/last-error\":\"no\"");
    expect_refused(&play, "[{\"node\":1,\"status\":\"success\"}]", "is not pending");
    end(&play);
}

/* C13, X17: what it comes to is told as soon as it is certain, that it is over when it is. */
TEST(plan_job, x17_a_failure_is_told_at_once_and_settled_when_all_branches_have_ended)
{
    struct play play;

    make(&play, "{\"do\":[{\"dopar\":[" L("a") "," L("b") "]}," L("c") "]}");
    restart(&play, NULL);
    EXPECT_HAS(play.job, "{\"status\":\"pending\",\"settled\":false,");
    restart(&play, "[{\"node\":2,\"status\":\"failure\"}]");
    EXPECT_HAS(play.job, "{\"status\":\"failure\",\"settled\":false,");
    EXPECT_TEXT(play.actions, "[]");
    restart(&play, "[{\"node\":3,\"status\":\"success\"}]");
    EXPECT_HAS(play.job, "{\"status\":\"failure\",\"settled\":true,");
    EXPECT_TEXT(play.actions, "[]");
    end(&play);
}

TEST(plan_job,
     x17_what_a_rescue_may_still_mend_is_pending_and_a_finally_mends_nothing) /* C4, C13 */
{
    struct play play;

    make(&play, "{\"try\":[{\"dopar\":[" L("a") "," L("b") "]}],\"rescue\":[" L(
                    "c") "],\"finally\":[" L("d") "]}");
    restart(&play, NULL);
    restart(&play, "[{\"node\":3,\"status\":\"failure\"}]");
    EXPECT_HAS(play.job, "{\"status\":\"pending\",\"settled\":false,");
    restart(&play, "[{\"node\":4,\"status\":\"success\"}]");
    EXPECT_HAS(play.actions, "\"action\":\"c\"");
    restart(&play, "[{\"node\":6,\"status\":\"failure\"}]");
    EXPECT_HAS(play.actions, "\"action\":\"d\"");
    EXPECT_HAS(play.job, "{\"status\":\"failure\",\"settled\":false,");
    restart(&play, "[{\"node\":8,\"status\":\"success\"}]");
    EXPECT_HAS(play.job, "{\"status\":\"failure\",\"settled\":true,");
    end(&play);
}

/* The rescue begins when both branches are over, whoever failed first (C18, C19). */
TEST(plan_job, c22_a_job_that_was_written_down_goes_on_the_same)
{
    static const char tree[] = "{\"try\":[{\"dopar\":[" L("a") "," L("b") "]}],\"rescue\":[" L(
        "r") "],\"finally\":[" L("f") "]}";
    static const char *const steps[] = { NULL, "[{\"node\":3,\"status\":\"timeout\"}]",
                                         "[{\"node\":4,\"status\":\"success\",\"output\":[1]}]",
                                         "[{\"node\":6,\"status\":\"success\"}]",
                                         "[{\"node\":8,\"status\":\"success\"}]" };
    struct play one, two;

    make(&one, tree);
    make(&two, tree);
    EXPECT_TEXT(one.job, two.job);
    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
        char *copy;

        restart(&one, steps[i]);
        restart(&two, steps[i]);
        EXPECT_TEXT(one.job, two.job);
        EXPECT_TEXT(one.actions, two.actions);
        copy = strdup(two.job); /* reloaded from what was written */
        pawl_plan_free(two.job);
        two.job = copy;
    }
    EXPECT_HAS(one.job, "{\"status\":\"success\"");
    end(&one);
    end(&two);
}

TEST(plan_job, what_is_no_tree_of_actions_is_refused)
{
    static const char *const trees[] = {
        "{}",
        "{\"do\":[{\"action\":\"a\"}]}",
        "[]",
        "{\"do\":",
        "{\"do\":[{\"wait\":{\"timer\":\"1s\"}}]}",
        "{\"do\":[{\"action\":\"sleep\",\"payload\":{\"for\":\"1s\"}}]}",
        "{\"steps\":{\"a\":{\"tool\":\"x\",\"done\":true}}}"
    };
    char *job = NULL, *next = NULL, *actions = NULL;
    pawl_error error;

    for (size_t i = 0; i < sizeof trees / sizeof trees[0]; i++) {
        EXPECT(pawl_plan_make(trees[i], &job, &error) != PAWL_OK);
        EXPECT(!job && error.message[0]);
    }
    EXPECT_EQ(pawl_plan_restart("{}", NULL, &next, &actions, &error), PAWL_INVALID_REQUEST);
    EXPECT_EQ(pawl_plan_restart("{\"compiled\":{},\"memory\":{},\"state\":0}", NULL, &next,
                                &actions, &error),
              PAWL_INVALID_REQUEST);
    EXPECT_EQ(pawl_plan_make(NULL, &job, &error), PAWL_INVALID_REQUEST);
}

TEST(plan_job, an_empty_tree_succeeds_at_once)
{
    struct play play;

    make(&play, "{\"do\":[]}");
    restart(&play, NULL);
    EXPECT_TEXT(play.actions, "[]");
    EXPECT_HAS(play.job, "{\"status\":\"success\"");
    end(&play);
}

/* CPU seconds of the restarts of `times` jobs that are `width` wide: one that hands out all, one
 * result, and the others at once. */
static double restart_wide(int times, int width)
{
    struct buf text;
    struct play play;
    clock_t spent = 0, begun;

    buf_init(&text, &heap_libc, 0);
    for (int n = 0; n < times; n++) {
        buf_clear(&text);
        buf_fmt(&text, "{\"dopar\":[");
        for (int i = 0; i < width; i++)
            buf_fmt(&text,
                    "%s{\"action\":\"a\",\"payload\":{\"n\":1},\"augment\":{\"k%d\":\"identity\"}}",
                    i ? "," : "", i);
        buf_fmt(&text, "]}");
        make(&play, buf_text(&text));
        buf_clear(&text);
        for (int i = 2; i <= width; i++)
            buf_fmt(&text, "%c{\"node\":%d,\"status\":\"success\"}", i > 2 ? ',' : '[', i);
        buf_byte(&text, ']');
        begun = clock();
        restart(&play, NULL);
        restart(&play, "[{\"node\":1,\"status\":\"success\"}]");
        restart(&play, buf_text(&text));
        spent += clock() - begun;
        EXPECT_HAS(play.job, "\"status\":\"success\"");
        end(&play);
    }
    buf_fini(&text);
    return (double)spent / CLOCKS_PER_SEC;
}

TEST(plan_job, a_job_of_10000_actions_that_augment_costs_no_more_than_three_times_ten_of_1000)
{
    double ten = restart_wide(10, 1000), one = restart_wide(1, 10000);

    printf("# ten of 1,000: %.2f s, one of 10,000: %.2f s\n", ten, one);
    EXPECT(one < 3 * ten + 0.2);
}

/* Each is nearly as large as one value may be. */
TEST(plan_job, results_of_many_small_values_are_taken_until_the_job_has_16_mib)
{
    static char result[1000000], head[64];
    struct play play;
    size_t size;

    make(&play, "{\"dopar\":[" L("a") "," L("a") "," L("a") "]}");
    restart(&play, NULL);
    for (int node = 1; node <= 3; node++) {
        memset(result, '1', sizeof result);
        size = (size_t)snprintf(head, sizeof head,
                                "[{\"node\":%d,\"status\":\"success\",\"output\":[", node);
        memcpy(result, head, size);
        for (size_t i = size + 1; i < sizeof result - 5; i += 2)
            result[i] = ',';
        snprintf(result + sizeof result - 5 - size % 2, 6, "1]}]");
        restart(&play, result);
    }
    EXPECT_HAS(play.job, "{\"status\":\"success\"");
    end(&play);
}

TEST(plan_job, c2_a_leaf_alone_is_a_program)
{
    struct play play;

    make(&play, L("a"));
    restart(&play, NULL);
    EXPECT_TEXT(play.actions, "[{\"node\":0,\"action\":\"a\",\"payload\":{\"n\":1}}]");
    restart(&play, "[{\"node\":0,\"status\":\"success\",\"output\":1}]");
    EXPECT_TEXT(play.actions, "[]");
    EXPECT_HAS(play.job, "{\"status\":\"success\",\"settled\":true");
    end(&play);
}
