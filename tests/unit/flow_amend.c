/* flow_amend.c - a flow under way goes on by another plan (B42, X2). The rig prints and loads the
 * memory after every event, so each of these is also a restart from a snapshot. */
#include "flow_rig.h"

static pawl_status amend(struct rig *rig, const char *text)
{
    struct definition *next = rig_compile(rig->scope, text, NULL);

    return rig_do(rig, (struct event){ .kind = EVENT_AMEND,
                                       .payload = STR("{\"definition\":\"d\",\"version\":2}"),
                                       .given = next->plan_text });
}

static void expect_call(struct rig *rig, uint32_t ordinal, const char *step, const char *args)
{
    struct flow_call call;

    EXPECT_OK(flow_call(rig->definition, rig->memory, ordinal, rig->scope, &call));
    EXPECT_STR(call.step, step);
    EXPECT_STR(call.args, args);
}

#define OLD "steps: {a: {tool: x, next: b}, b: {tool: x, next: c}, c: {tool: x, done: true}}"

TEST(flow_amend, b42_the_next_step_is_that_of_the_new_plan)
{
    struct rig rig;

    rig_init(&rig, &t->scope, OLD, NULL);
    rig_begin(&rig);
    EXPECT_OK(amend(&rig, "steps: {z: {tool: x, next: a}, a: {tool: x, args: {n: 1}, next: d}, d: "
                          "{tool: x, args: {r: '{{steps.a.result}}'}, done: true}}"));
    expect_call(&rig, 1, "a", "{\"n\":1}");
    rig_run(&rig, 1, "7");
    expect_call(&rig, 2, "d", "{\"r\":7}");
    rig_run(&rig, 2, "8");
    EXPECT_EQ(rig.state, LIFE_COMPLETED);
    EXPECT_STR(rig.last_payload, "8");
    rig_fini(&rig);
}

/* Steps keep their index for ever: what was recorded means what it meant. */
TEST(flow_amend, a_step_that_goes_and_comes_back_is_the_same)
{
    struct rig rig;

    rig_init(&rig, &t->scope, OLD, NULL);
    rig_begin(&rig);
    EXPECT_OK(amend(&rig, "steps: {a: {tool: x, next: e}, e: {tool: x, done: true}}"));
    EXPECT_OK(amend(&rig, OLD));
    rig_run(&rig, 1, "1");
    EXPECT_STORY(&rig, "step.complete a.1#1 1 [[\"end\",1],[\"step\",2,1]]\n");
    rig_fini(&rig);
}

TEST(flow_amend, live_steps_that_have_no_place_are_named)
{
    struct rig rig;

    rig_init(&rig, &t->scope, OLD, NULL);
    rig_begin(&rig);
    EXPECT_EQ(amend(&rig, "steps: {b: {tool: x, done: true}}"), PAWL_CONFLICT);
    EXPECT_HAS(rig.scope->error.message, "the live step 'a' does not exist");
    EXPECT_EQ(amend(&rig, "steps: {a: {wait: {signal: s}, done: true}}"), PAWL_CONFLICT);
    EXPECT_HAS(rig.scope->error.message, "'a' is of another kind");
    EXPECT_EQ(amend(&rig, "steps: {a: {tool: sleep, args: {for: 1s}, done: true}}"), PAWL_CONFLICT);
    EXPECT_EQ(amend(&rig, "do: [{name: a, action: x, payload: {}}]"), PAWL_CONFLICT);
    EXPECT_HAS(rig.scope->error.message, "a graph cannot be moved to a tree");
    EXPECT_EQ(rig.seq, 1);
    rig_fini(&rig);
}

#define FAN(end)                                                                                   \
    "steps: {s: {tool: x, parallel: [a, b]}, a: {tool: x, join: " end "}, b: {tool: x, join: " end \
    "}, " end ": {tool: x, done: true}}"

TEST(flow_amend, a_join_that_waits_goes_on_waiting)
{
    struct rig rig;

    rig_init(&rig, &t->scope, FAN("end"), NULL);
    rig_begin(&rig);
    rig_run(&rig, 1, "1");
    rig_run(&rig, 2, "1");
    EXPECT_EQ(amend(&rig, FAN("other")), PAWL_CONFLICT);
    EXPECT_HAS(rig.scope->error.message, "'end' is being joined at");
    EXPECT_OK(amend(&rig,
                    "steps: {n: {tool: x, next: s}, s: {tool: x, parallel: [a, b]}, b: {tool: "
                    "x, join: end}, a: {tool: x, join: end}, end: {tool: y, done: true}}"));
    rig_run(&rig, 3, "1");
    EXPECT_STORY(&rig, "step.complete b.3#1 1 [[\"end\",3],[\"step\",4,3]]\n");
    rig_fini(&rig);
}

#define TREE(more)                                                                                 \
    "do: [{try: [{dopar: [{name: a, action: x, payload: {}}, {do: [{name: b, action: x, payload: " \
    "{}}" more                                                                                     \
    "]}]}], rescue: [{name: r, action: x, payload: {}}], finally: [{name: f, action: x, "          \
    "payload: {}}]}]"

TEST(flow_amend, a_tree_stands_where_it_stood_and_knows_what_failed)
{
    struct rig rig;

    rig_init(&rig, &t->scope, TREE(""), NULL);
    rig_begin(&rig);
    EXPECT_OK(rig_step(&rig, EVENT_STEP_START, 1, NULL));
    EXPECT_OK(rig_step(&rig, EVENT_STEP_FAILED, 1, "\"no\"")); /* the dopar will have failed */
    EXPECT_OK(amend(&rig, TREE(", {name: c, action: x, payload: {}}")));
    rig_run(&rig, 2, "1");
    EXPECT_STORY(&rig, "step.complete b.2#1 1 [[\"end\",2],[\"step\",3,4]]\n");
    rig_run(&rig, 3, "1"); /* c, which is new; then the rescue, for a failed */
    EXPECT_STORY(&rig, "step.complete ?.3#1 1 [[\"end\",3],[\"step\",4,2]]\n");
    rig_run(&rig, 4, "1");
    EXPECT_STORY(&rig, "step.complete r.4#1 1 [[\"end\",4],[\"step\",5,3]]\n");
    rig_run(&rig, 5, "1");
    EXPECT_EQ(rig.state, LIFE_COMPLETED);
    rig_fini(&rig);
}

TEST(flow_amend, a_tree_under_other_groups_is_refused)
{
    static const char *const texts[] = {
        "do: [{name: a, action: x, payload: {}}, {name: b, action: x, payload: {}}]",
        "do: [{try: [], finally: [{dopar: [{name: a, action: x, payload: {}}, {do: [{name: b, "
        "action: x, payload: {}}]}]}]}]",
        "do: [{do: [{dopar: [{name: a, action: x, payload: {}}, {do: [{name: b, action: x, "
        "payload: {}}]}]}]}]",
        "dopar: [{name: a, action: x, payload: {}}, {do: [{name: b, action: x, payload: {}}]}]",
    };
    struct rig rig;

    rig_init(&rig, &t->scope, TREE(""), NULL);
    rig_begin(&rig);
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        EXPECT_EQ(amend(&rig, texts[i]), PAWL_CONFLICT);
        EXPECT_HAS(rig.scope->error.message, "is in other groups");
    }
    rig_fini(&rig);
}

/* Two live steps below one branch of a dopar: the branch is open once. */
TEST(flow_amend, a_dopar_counts_its_open_branches_and_not_its_live_steps)
{
    static const char tree[] =
        "dopar: [{dopar: [{name: a, action: x, payload: {}}, {name: b, action: x, payload: {}}]}, "
        "{name: c, action: x, payload: {}}]";
    struct rig rig;

    rig_init(&rig, &t->scope, tree, NULL);
    rig_begin(&rig);
    EXPECT_OK(amend(&rig, tree));
    rig_run(&rig, 1, "1");
    rig_run(&rig, 2, "1");
    EXPECT_EQ(rig.state, LIFE_RUNNING);
    rig_run(&rig, 3, "1");
    EXPECT_EQ(rig.state, LIFE_COMPLETED);
    rig_fini(&rig);
}

TEST(flow_amend, results_that_were_kept_stay_and_those_that_were_not_come_with_the_entry)
{
    static const char old[] =
        "steps: {a: {tool: x, next: b}, b: {tool: x, next: c}, c: {tool: x, args: {r: "
        "'{{steps.a.result}}'}, done: true}}";
    static const char next[] =
        "steps: {z: {tool: x, next: a}, a: {tool: x, next: b}, b: {tool: x, next: c}, c: {tool: x, "
        "args: {r: '{{steps.a.result}}', z: '{{steps.z.result}}'}, done: true}}";
    struct definition *definition;
    struct rig rig;

    rig_init(&rig, &t->scope, old, NULL);
    rig_begin(&rig);
    rig_run(&rig, 1, "41");
    definition = rig_compile(rig.scope, next, NULL);
    EXPECT_OK(rig_do(&rig, (struct event){ .kind = EVENT_AMEND,
                                           .payload = STR("{\"definition\":\"d\",\"version\":2,"
                                                          "\"results\":{\"a\":0,\"z\":42}}"),
                                           .given = definition->plan_text }));
    rig_run(&rig, 2, "1");
    expect_call(&rig, 3, "c", "{\"r\":41,\"z\":42}");
    rig_fini(&rig);
}

TEST(flow_amend, whether_it_may_be_cancelled_is_what_the_new_plan_says)
{
    struct rig rig;

    rig_init(&rig, &t->scope, OLD, NULL);
    rig_begin(&rig);
    EXPECT_OK(amend(&rig, "cancel: {not_from: [e, a]}\n"
                          "steps: {e: {tool: x, next: a}, a: {tool: x, next: c}, c: {tool: x, done: "
                          "true}}"));
    EXPECT(rig_do(&rig, (struct event){ .kind = EVENT_CANCEL }) == PAWL_NO_CANCEL_TRANSITION);
    EXPECT_HAS(rig.scope->error.message, "step 'a' is ready");
    EXPECT_OK(amend(&rig, "cancel: false\n" OLD));
    EXPECT(rig_do(&rig, (struct event){ .kind = EVENT_CANCEL }) == PAWL_NO_CANCEL_TRANSITION);
    EXPECT_OK(amend(&rig, "cancel: {not_from: [c]}\n" OLD));
    EXPECT_OK(amend(&rig, "cancel: true\n" OLD));
    rig_run(&rig, 1, "1");
    EXPECT_OK(rig_do(&rig, (struct event){ .kind = EVENT_CANCEL }));
    rig_fini(&rig);
}

TEST(flow_amend, a_branch_that_waited_at_a_join_is_over_if_no_step_joins_there_any_more)
{
    struct rig rig;

    rig_init(&rig, &t->scope,
             "steps: {s: {tool: x, parallel: [a, b]}, a: {tool: x, join: end}, b: {tool: x, join: "
             "end}, end: {tool: x, done: true}}",
             NULL);
    rig_begin(&rig);
    rig_run(&rig, 1, "1");
    rig_run(&rig, 2, "1");
    EXPECT_OK(amend(&rig, "steps: {s: {tool: x, parallel: [a, b]}, a: {tool: x, done: true}, b: "
                          "{tool: x, next: end}, end: {tool: x, done: true}}"));
    rig_run(&rig, 3, "1");
    rig_run(&rig, 4, "1");
    EXPECT_EQ(rig.attempts.count, 4);
    EXPECT_EQ(rig.state, LIFE_COMPLETED);
    rig_fini(&rig);
}

/* ---- Arms of a select ------------------------------------------------------------------------- */

#define SELECT(arms) "steps: {p: {tool: x, next: w}, w: {select: [" arms "]}"
#define WAYS         ", b: {tool: x, done: true}, c: {tool: x, done: true}, d: {tool: x, done: true}}"
#define S0           "{signal: s0, then: b}"
#define S1           "{signal: s1, then: c}"
#define FIVE         "{timer: 5s, then: d}"

static pawl_status signal(struct rig *rig, const char *name)
{
    return rig_do(rig, (struct event){ .kind = EVENT_SIGNAL, .name = str_of(name) });
}

/* In step `w`, which waits by these arms. */
static void begin_select(struct rig *rig, struct scope *scope, const char *text)
{
    rig_init(rig, scope, text, NULL);
    rig_begin(rig);
    rig_run(rig, 1, "1");
}

TEST(flow_amend, an_arm_is_known_by_what_it_waits_for_and_not_by_its_place)
{
    struct rig rig;

    begin_select(&rig, &t->scope, SELECT(S0 ", " S1 ", " FIVE) WAYS);
    EXPECT_OK(amend(&rig, SELECT(FIVE ", {signal: s2, then: b}, " S1 ", " S0) WAYS));
    EXPECT_STORY_HAS(&rig, "\"arms\":[[2,3,2,0]]");
    EXPECT_OK(signal(&rig, "s1"));
    EXPECT_STORY(&rig, "signal w.2#1 {\"arm\":2,\"payload\":null} [[\"end\",2],[\"step\",3,3]]\n");
    rig_fini(&rig);
    begin_select(&rig, &t->scope, SELECT(S0 ", " S1 ", " FIVE) WAYS);
    EXPECT_OK(amend(&rig, SELECT("{timer: 9s, then: d}, " S1 ", " S0) WAYS)); /* the only timer */
    EXPECT_OK(amend(&rig, SELECT(S0 ", {timer: 9s, then: d}, " S1) WAYS));
    EXPECT_OK(rig_timer(&rig, "w", 2));
    EXPECT_STORY(&rig, "timer w.2#1 {\"arm\":1,\"payload\":null} [[\"end\",2],[\"step\",3,4]]\n");
    rig_fini(&rig);
}

TEST(flow_amend, arms_that_stay_where_they_are_are_not_written_down)
{
    struct rig rig;

    begin_select(&rig, &t->scope, SELECT(S0 ", " S1) WAYS);
    EXPECT_OK(amend(&rig, SELECT(S0 ", " S1 ", " FIVE) WAYS)); /* the new one is not awaited */
    EXPECT_EQ(strstr(buf_text(&rig.story), "\"arms\":[["), NULL);
    EXPECT_OK(amend(&rig, SELECT(S1 ", " S0) WAYS)); /* and may go */
    EXPECT_OK(signal(&rig, "s0"));
    EXPECT_STORY(&rig, "signal w.2#1 {\"arm\":1,\"payload\":null} [[\"end\",2],[\"step\",3,2]]\n");
    rig_fini(&rig);
}

TEST(flow_amend, an_arm_that_is_awaited_and_has_no_match_is_named)
{
    struct rig rig;

    begin_select(&rig, &t->scope, SELECT(S0 ", " S1 ", " FIVE ", {timer: 7s, then: c}") WAYS);
    EXPECT_EQ(amend(&rig, SELECT(S0) WAYS), PAWL_CONFLICT);
    EXPECT_HAS(rig.scope->error.message,
               "the live step 'w' waits for signal s1, and no arm of it does in the other");
    EXPECT_EQ(amend(&rig, SELECT(S0 ", " S1 ", {timer: 7s, then: c}") WAYS), PAWL_CONFLICT);
    EXPECT_HAS(rig.scope->error.message, "waits for timer 5s");
    EXPECT_EQ(amend(&rig, SELECT(S0 ", " S1 ", {timer: 1s, then: c}, {timer: 2s, then: d}") WAYS),
              PAWL_CONFLICT); /* which is which? */
    EXPECT_OK(amend(&rig, SELECT(S0 ", " S1 ", {timer: 1s, then: c}, " FIVE) WAYS));
    rig_fini(&rig);
}

#define TREE_SELECT(arms) "do: [{name: w, select: [" arms "]}, {name: z, action: x, payload: {}}]"
#define TREE_ARM(signal, name)                                                                     \
    "{signal: " signal ", do: [{name: " name ", action: x, payload: {}}]}"

TEST(flow_amend, the_arms_of_a_tree_are_known_likewise)
{
    struct rig rig;

    rig_init(&rig, &t->scope, TREE_SELECT(TREE_ARM("s0", "b") ", " TREE_ARM("s1", "c")), NULL);
    rig_begin(&rig);
    EXPECT_EQ(amend(&rig, TREE_SELECT(TREE_ARM("s0", "b"))), PAWL_CONFLICT);
    EXPECT_OK(amend(&rig, TREE_SELECT(TREE_ARM("s1", "c") ", " TREE_ARM("s0", "b"))));
    EXPECT_OK(signal(&rig, "s1"));
    EXPECT_STORY(&rig, "signal w.1#1 {\"arm\":0,\"payload\":null} [[\"end\",1],[\"step\",2,2]]\n");
    rig_fini(&rig);
}

/* As older programs amended: nothing is compared, and the entry says nothing of arms. */
static void amend_as_before(struct rig *rig, const char *text)
{
    struct definition *next = rig_compile(rig->scope, text, NULL);
    struct effect effect = { .kind = EFFECT_PLAN, .state = next->plan_text };
    struct draft draft = { .transition = LIFE_T_AMEND,
                           .payload = STR("{\"definition\":\"d\",\"version\":2}"),
                           .effects = { &effect, 1, 1 } };
    struct standing standing = { rig->state, rig->seq, rig->memory };
    struct decision decision = { .drafts = &draft, .count = 1 };

    rig_expect_found(rig, &standing, &decision);
    rig_fold(rig, &draft);
    rig_reload(rig);
}

TEST(flow_amend, an_arm_that_an_older_program_let_go_is_an_error_of_its_event)
{
    static const char *const texts[][2] = {
        { SELECT(S0 ", " S1 ", " FIVE) WAYS, SELECT(S0) WAYS },
        { TREE_SELECT(TREE_ARM("s0", "b") ", " TREE_ARM("s1", "c")),
          TREE_SELECT(TREE_ARM("s0", "b")) },
    };
    struct rig rig;

    for (size_t i = 0; i < 2; i++) {
        rig_init(&rig, &t->scope, texts[i][0], NULL);
        rig_begin(&rig);
        if (i == 0)
            rig_run(&rig, 1, "1");
        amend_as_before(&rig, texts[i][1]);
        EXPECT_EQ(signal(&rig, "s1"), PAWL_CONFLICT);
        EXPECT_HAS(rig.scope->error.message, "'w' has no arm 1 any more");
        EXPECT_EQ(amend(&rig, texts[i][1]), PAWL_CONFLICT);
        EXPECT_OK(amend(&rig, texts[i][0])); /* the way out */
        EXPECT_OK(signal(&rig, "s1"));
        EXPECT_STORY_HAS(&rig, "{\"arm\":1,\"payload\":null}");
        rig_fini(&rig);
    }
    begin_select(&rig, &t->scope, texts[0][0]);
    amend_as_before(&rig, texts[0][1]);
    EXPECT_EQ(rig_timer(&rig, "w", 2), PAWL_CONFLICT);
    EXPECT_OK(signal(&rig, "s0"));
    rig_fini(&rig);
}

/* ---- ... when it is run again ---- */

static pawl_status redrive(struct rig *rig, const char *text, const char *from, str *given)
{
    struct flow_redrive args = { .definition = rig_compile(rig->scope, text, NULL),
                                 .memory = rig->memory,
                                 .attempts = &rig->attempts,
                                 .retry_of = STR("x"),
                                 .from = str_of(from),
                                 .is_other = true };

    return flow_redrive(rig->scope, &args, given);
}

static void fail_step(struct rig *rig, uint32_t ordinal)
{
    EXPECT_OK(rig_step(rig, EVENT_STEP_START, ordinal, NULL));
    EXPECT_OK(rig_step(rig, EVENT_STEP_FAILED, ordinal, "\"no\""));
}

TEST(flow_amend, a_tree_that_is_run_again_finds_its_arm_by_what_it_waited_for)
{
    struct rig rig;
    str given = STR_NONE;

    rig_init(&rig, &t->scope, TREE_SELECT(TREE_ARM("s0", "b") ", " TREE_ARM("s1", "c")), NULL);
    rig_begin(&rig);
    EXPECT_OK(signal(&rig, "s1"));
    fail_step(&rig, 2);
    EXPECT_OK(redrive(&rig, TREE_SELECT(TREE_ARM("s1", "c") ", " TREE_ARM("s0", "b")), NULL, &given));
    EXPECT_HAS(given.data, "\"arms\":{\"w\":0}");
    EXPECT_EQ(redrive(&rig, TREE_SELECT(TREE_ARM("s0", "b")), NULL, &given), PAWL_CONFLICT);
    EXPECT_HAS(rig.scope->error.message, "it took an arm of the select 'w' that the definition");
    EXPECT_OK(redrive(&rig, TREE_SELECT(TREE_ARM("s0", "b")), "z", &given));
    EXPECT_HAS(given.data, "\"done\":[\"w\"");
    EXPECT_HAS(given.data, "\"arms\":{}");
    rig_fini(&rig);
}

TEST(flow_amend, an_arm_that_was_taken_before_an_amend_moved_it_is_found_by_its_steps)
{
    static const char swapped[] = TREE_SELECT(TREE_ARM("s1", "c") ", " TREE_ARM("s0", "b"));
    struct rig rig;
    str given = STR_NONE;

    rig_init(&rig, &t->scope, TREE_SELECT(TREE_ARM("s0", "b") ", " TREE_ARM("s1", "c")), NULL);
    rig_begin(&rig);
    EXPECT_OK(signal(&rig, "s1"));
    rig_run(&rig, 2, "1");
    EXPECT_OK(amend(&rig, swapped));
    fail_step(&rig, 3);
    EXPECT_OK(redrive(&rig, swapped, NULL, &given));
    EXPECT_HAS(given.data, "\"arms\":{\"w\":0}");
    rig_fini(&rig);
}

/* ---- Long histories ---------------------------------------------------------------------------- */

#define ROUNDS 200000u

/* One more round of a loop of two steps: the attempt before is done, the next one is begun. */
static void feed_round(struct test *t, struct flow_attempts *attempts, struct rig *rig, uint32_t n)
{
    struct effect effects[] = { { .kind = EFFECT_END, .ordinal = n - 1 },
                                { .kind = EFFECT_STEP,
                                  .ordinal = n,
                                  .plan = (n - 1) % 2,
                                  .attempt = 1,
                                  .status = STEP_READY } };
    struct effect run = { .kind = EFFECT_RUN, .ordinal = n };
    struct effect_list made = { n > 1 ? effects : effects + 1, n > 1 ? 2 : 1, 2 };
    struct effect_list begun = { &run, 1, 1 };
    struct entry_view entries[] = {
        { .transition = n > 1 ? LIFE_T_STEP_COMPLETE : LIFE_T_START, .effects = &made },
        { .transition = LIFE_T_STEP_START, .effects = &begun }
    };

    for (uint32_t i = 0; i < 2; i++) {
        entries[i].seq = 2 * n - 1 + i;
        entries[i].ordinal = n - 1 + i;
        entries[i].step = entries[i].ordinal ? 2 - entries[i].ordinal % 2 : 0;
        entries[i].attempt = entries[i].ordinal ? 1 : 0;
        entries[i].payload = i == 0 && n > 1 ? STR("7") : STR_NONE;
        EXPECT_OK(flow_attempts_apply(&t->scope, attempts, &entries[i]));
        EXPECT_OK(flow_behavior.apply(rig->definition, rig->memory, &entries[i], &t->scope,
                                      &rig->arena));
    }
}

TEST(flow_amend, what_an_amend_asks_of_a_history_does_not_grow_with_it)
{
    struct flow_attempts attempts = { .is_sparse = true };
    struct rig rig;

    rig_init(&rig, &t->scope, "steps: {a: {tool: x, next: b}, b: {tool: x, next: a}}", NULL);
    for (uint32_t n = 1; n <= ROUNDS; n++)
        feed_round(t, &attempts, &rig, n);
    EXPECT(attempts.capacity <= 4096);
    EXPECT_EQ(flow_last_result(&attempts, 0)->ordinal, ROUNDS - 1);
    EXPECT_EQ(flow_last_result(&attempts, 0)->ended_seq, 2 * ROUNDS - 1);
    EXPECT_EQ(flow_last_result(&attempts, 1)->ordinal, ROUNDS - 2);
    EXPECT_EQ(attempts.steps[0].rounds, ROUNDS / 2);
    rig_fini(&rig);
}
