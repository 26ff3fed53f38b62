/* engine_query.c - what is asked about many instances at once, on every backend. */
#include "engine_fixture.h"
#include <stdio.h>

static const char *ask(struct world *world, const char *operation, const char *input)
{
    static char answer[1 << 16];
    char *given = NULL;

    if (pawl_call(world->p, operation, input, &given, &world->error))
        test_fail(__FILE__, __LINE__, "%s: %s", operation, world->error.message);
    snprintf(answer, sizeof answer, "%s", given ? given : "");
    pawl_free(world->p, given);
    return answer;
}

/* ---- counts (A42) ---- */

static void make_orders(struct world *world)
{
    world_define(world, ORDER);
    for (int i = 0; i < 5; i++) {
        const char *id = world_create(world, "order", NULL);

        if (i > 0)
            EXPECT_OK(world_fire(world, id, i == 4 ? "drop" : "pay"));
    }
}

#define ORDERS_COUNTED                                                                             \
    "{\"by_state\":{\"dropped\":1,\"new\":1,\"paid\":3},"                                          \
    "\"by_status\":{\"suspended\":4,\"cancelled\":1},\"total\":5}"

WORLD_TEST(query, counts_are_by_state_and_by_status_of_all_that_was_acknowledged) /* (6), A42 */
{
    EXPECT_TEXT(ask(world, "instance.counts", "{}"),
                "{\"by_state\":{},\"by_status\":{},\"total\":0}");
    make_orders(world);
    EXPECT_TEXT(ask(world, "instance.counts", "{}"), ORDERS_COUNTED); /* its rows lag */
    EXPECT_OK(pawl_run_due(world->p, &world->error));
    EXPECT_TEXT(ask(world, "instance.counts", "{}"), ORDERS_COUNTED); /* they do not */
    world_close(world);
    world->options.own = false;
    world_open(world);
    EXPECT_TEXT(ask(world, "instance.counts", "{}"), ORDERS_COUNTED);
}

WORLD_TEST(query, counts_take_one_definition_or_one_version_of_it)
{
    make_orders(world);
    world_define(world, ORDER "# another text\n");
    world_create(world, "order", NULL);
    EXPECT_TEXT(ask(world, "instance.counts", "{\"definition\":\"order@2\"}"),
                "{\"by_state\":{\"new\":1},\"by_status\":{\"suspended\":1},\"total\":1}");
    EXPECT_TEXT(ask(world, "instance.counts", "{\"definition\":\"order@1\"}"), ORDERS_COUNTED);
    EXPECT_HAS(ask(world, "instance.counts", "{\"definition\":\"order\"}"), "\"total\":6");
    EXPECT_TEXT(ask(world, "instance.counts", "{\"definition\":\"ord\"}"),
                "{\"by_state\":{},\"by_status\":{},\"total\":0}");
}

WORLD_TEST(query, a_flow_at_work_counts_as_running_and_one_that_waits_as_suspended)
{
    world_define(world,
                 "name: pair\nsteps:\n  start: {name: one, tool: nobody/has-it, done: true}\n");
    world_define(
        world, "name: nap\nsteps:\n  start: {name: z, tool: sleep, args: {for: 1h}, done: true}\n");
    world_create(world, "pair", NULL);
    world_create(world, "nap", NULL);
    EXPECT_TEXT(ask(world, "instance.counts", "{}"),
                "{\"by_state\":{\"running\":2},\"by_status\":{\"running\":1,\"suspended\":1},"
                "\"total\":2}");
}

WORLD_TEST(query, counts_refuse_what_they_do_not_know)
{
    char *answer = NULL;

    EXPECT_EQ(
        pawl_call(world->p, "instance.counts", "{\"colour\":\"red\"}", &answer, &world->error),
        PAWL_INVALID_QUERY);
    EXPECT_EQ(
        pawl_call(world->p, "instance.counts", "{\"definition\":\"a@b\"}", &answer, &world->error),
        PAWL_INVALID_QUERY);
}

/* ---- cancelling what belongs together (E29) ---- */

WORLD_TEST(query, a_correlation_of_thousands_is_cancelled_and_nothing_else)
{
    pawl_create_args args = { .definition = "order", .correlation_id = "many" };
    pawl_id id;

    world_define(world, ORDER);
    world_create(world, "order", NULL);
    for (int i = 0; i < 2100; i++)
        EXPECT_OK(pawl_create(world->p, &args, &id, &world->error));
    EXPECT_OK(world_fire(world, id.text, "pay"));
    EXPECT_TEXT(ask(world, "instance.cancel_many", "{\"correlation_id\":\"many\"}"),
                "{\"cancelled\":2099,\"refused\":1}");
    EXPECT_TEXT(ask(world, "instance.counts", "{}"),
                "{\"by_state\":{\"dropped\":2099,\"new\":1,\"paid\":1},"
                "\"by_status\":{\"suspended\":2,\"cancelled\":2099},\"total\":2101}");
}

/* ---- lists: every filter, a page at a time, while others write ---- */

#define CROWD 120

/* Instance n (from 1): which definition, subject, labels and state it has follows from n. */
static void make_crowd(struct world *world)
{
    world_define(world, ORDER);
    world_define(world, ORDER "# another text\n");
    world_define(world, "name: rare\nstates: [new]\ninitial_state: new\ntransitions: []\n");
    for (int n = 1; n <= CROWD; n++) {
        char subject[16];
        pawl_create_args args = { .definition = n % 10 == 0  ? "rare"
                                                : n % 2 == 0 ? "order@1"
                                                             : "order",
                                  .subject_ref = subject,
                                  .correlation_id = n % 3 == 0 ? "third" : NULL,
                                  .labels =
                                      n % 4 == 0 ? "{\"a\":\"x\",\"b\":\"y\"}" : "{\"a\":\"x\"}" };
        pawl_id id;

        snprintf(subject, sizeof subject, "s%d", n % 5);
        EXPECT_OK(pawl_create(world->p, &args, &id, &world->error));
        if (n % 6 == 1)
            EXPECT_OK(world_fire(world, id.text, "pay"));
    }
}

struct filter {
    const char *members;
    bool (*fits)(int n);
};

static bool fits_all(int n)
{
    return n > 0;
}

static bool fits_order(int n)
{
    return n % 10 != 0;
}

static bool fits_first_version(int n)
{
    return n % 10 != 0 && n % 2 == 0;
}

static bool fits_subject(int n)
{
    return n % 5 == 2;
}

static bool fits_label(int n)
{
    return n % 4 == 0;
}

static bool fits_paid(int n)
{
    return n % 6 == 1;
}

static bool fits_all_of_them(int n)
{
    return n % 6 == 1 && n % 5 == 2 && n % 10 != 0;
}

static bool fits_third_suspended(int n)
{
    return n % 3 == 0;
}

static const struct filter filters[] = {
    { "", fits_all },
    { ",\"definition\":\"order\"", fits_order },
    { ",\"definition\":\"order@1\"", fits_first_version },
    { ",\"kind\":\"machine\"", fits_all },
    { ",\"subject_ref\":\"s2\"", fits_subject },
    { ",\"label.b\":\"y\",\"label.a\":\"x\"", fits_label },
    { ",\"state\":\"paid\"", fits_paid },
    { ",\"state\":\"paid\",\"subject_ref\":\"s2\",\"definition\":\"order\",\"label.a\":\"x\"",
      fits_all_of_them },
    { ",\"correlation_id\":\"third\",\"status\":\"suspended\"", fits_third_suspended },
    { ",\"created_after\":\"2026-05-01T12:00:00Z\",\"label.b\":\"y\"", fits_label },
};

/* The number in an id: ten characters of base32, of which the last two are enough here. */
static int number_of(const char *id)
{
    static const char digits[] = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";

    return (int)(strchr(digits, id[7]) - digits) * 1024 +
           (int)(strchr(digits, id[8]) - digits) * 32 + (int)(strchr(digits, id[9]) - digits);
}

/* All pages of one filter; between them somebody creates more. */
static void expect_pages(struct world *world, const struct filter *filter, bool oldest)
{
    char input[512], cursor[32] = "";
    bool seen[CROWD + 1] = { false };
    int last = oldest ? 0 : 1 << 20, created = 0;

    do {
        const char *answer, *at;

        snprintf(input, sizeof input, "{\"limit\":\"7\",\"order\":\"%s\"%s%s%s%s}",
                 oldest ? "oldest" : "newest", filter->members, cursor[0] ? ",\"after\":\"" : "",
                 cursor, cursor[0] ? "\"" : "");
        answer = ask(world, "instance.list", input);
        for (at = answer; (at = strstr(at, "\"instance_id\":\"")); at++) {
            int n = number_of(at + strlen("\"instance_id\":\""));

            EXPECT(oldest ? n > last : n < last);
            last = n;
            if (n <= CROWD)
                EXPECT(!seen[n]);
            if (n <= CROWD)
                seen[n] = true;
        }
        at = strstr(answer, "\"next\":\"");
        snprintf(cursor, sizeof cursor, "%.26s", at ? at + strlen("\"next\":\"") : "");
        if (cursor[0] && created++ < 2)
            world_create(world, "rare", NULL);
    } while (cursor[0]);
    for (int n = 1; n <= CROWD; n++)
        EXPECT_EQ(seen[n], filter->fits(n));
}

WORLD_TEST(query, pages_give_each_match_once_in_order_whatever_is_created_meanwhile)
{
    make_crowd(world);
    for (size_t i = 0; i < sizeof filters / sizeof *filters; i++) {
        expect_pages(world, &filters[i], false);
        expect_pages(world, &filters[i], true);
    }
}

/* ---- what goes on, and what has ended since (A42) ---- */

static bool fits_ended_early(int n)
{
    return n % 3 == 1;
}

static bool fits_ended_since(int n)
{
    return n % 30 == 2 || n == 60;
}

static bool fits_ended_then(int n)
{
    return n % 30 == 2;
}

static bool fits_ended_last(int n)
{
    return n == 60;
}

static bool fits_ended(int n)
{
    return fits_ended_early(n) || fits_ended_since(n);
}

static bool fits_active(int n)
{
    return !fits_ended(n);
}

static bool fits_none(int n)
{
    return n == 0;
}

static void end_some(struct world *world, char ids[][27], bool (*fits)(int n))
{
    for (int n = 1; n <= CROWD; n++)
        if (fits(n))
            EXPECT_OK(world_fire(world, ids[n], "drop"));
    world_advance(world, 1000);
}

/* In three rounds, a second apart; when the second was is told. */
static void make_ends(struct world *world, char since[25])
{
    static char ids[CROWD + 1][27];
    char input[64];

    world_define(world, ORDER);
    world_define(world, "name: rare\nstates: [new]\ninitial_state: new\ntransitions: []\n");
    for (int n = 1; n <= CROWD; n++)
        snprintf(ids[n], sizeof ids[n], "%s", world_create(world, "order", NULL));
    end_some(world, ids, fits_ended_early);
    end_some(world, ids, fits_ended_then);
    end_some(world, ids, fits_ended_last);
    snprintf(input, sizeof input, "{\"instance_id\":\"%s\"}", ids[2]);
    snprintf(since, 25, "%s", strstr(ask(world, "instance.get", input), "\"updated_at\":\"") + 14);
}

/* `after`, `before`: compared with `since`. */
static void expect_ended(struct world *world, const char *after, const char *before,
                         const char *more, bool (*fits)(int n))
{
    char text[256] = "";
    const struct filter filter = { text, fits };

    if (after)
        snprintf(text, sizeof text, ",\"ended_after\":\"%s\"", after);
    if (before)
        snprintf(text + strlen(text), sizeof text - strlen(text), ",\"ended_before\":\"%s\"",
                 before);
    snprintf(text + strlen(text), sizeof text - strlen(text), "%s", more);
    expect_pages(world, &filter, false);
    expect_pages(world, &filter, true);
}

WORLD_TEST(query, what_goes_on_and_what_has_ended_since_is_listed_page_by_page)
{
    static const char long_ago[] = "2020-01-01T00:00:00Z";
    char since[25];

    make_ends(world, since);
    for (int i = 0; i < 2; i++) {
        expect_ended(world, NULL, NULL, ",\"active\":\"true\"", fits_active);
        expect_ended(world, NULL, NULL, ",\"active\":\"false\"", fits_ended);
        expect_ended(world, since, NULL, "", fits_ended_since);
        expect_ended(world, since, since, "", fits_ended_then);
        expect_ended(world, NULL, long_ago, "", fits_none);
        expect_ended(world, long_ago, NULL, ",\"definition\":\"order\"", fits_ended);
        expect_ended(world, since, NULL, ",\"status\":\"cancelled\"", fits_ended_since);
        expect_ended(world, since, NULL, ",\"status\":\"completed\"", fits_none);
        expect_ended(world, since, NULL, ",\"active\":\"true\"", fits_none);
        world_close(world); /* now the rows tell it, not the tail */
        world_open(world);
    }
}
