/* fuzz_query.c - questions: every filter of lists and histories, as URLs bring them, one a line:
 *
 *   /v1/instances?state=new&limit=2
 *   /v1/instances/@1/history?action=pay&sequence_from=2
 *
 * @1, @2, ... stand for instances. The store in memory and the one in SQLite hold the same, and
 * must answer the same, word for word. */
#include "api/api.h"
#include "fuzz.h"
#include "surface/http/http_int.h"
#include <unistd.h>

#define LINES_MAX 20
#define IDS_MAX   6

static const char order[] =
    "name: order\nstates: [new, paid, done, gone]\ninitial_state: new\n"
    "terminal_states: [done, gone]\nterminal_kinds: {done: success, gone: cancel}\ntransitions:\n"
    "  - {from_state: new, action: pay, to_state: paid}\n"
    "  - {from_state: paid, action: back, to_state: new}\n"
    "  - {from_state: paid, action: end, to_state: done}\n"
    "  - {from_state: new, action: drop, to_state: gone}\n";
static const char nap[] = "name: nap\nsteps:\n"
                          "  start: {name: doze, tool: sleep, args: {for: 1m}, next: say}\n"
                          "  say: {tool: set, args: {x: \"{{input.x}}\"}, done: true}\n";

static struct side {
    pawl *p;
    struct buf answer;
} sides[2];
static char ids[IDS_MAX][27], path[256];

/* ---- The two stores ---- */

static const char *create(pawl *p, int i)
{
    static const char *const labels[] = { "{\"a\":\"1\"}", "{\"a\":\"1\",\"b\":\"2\"}", NULL };
    static const char *const subjects[] = { "A-17", "A-18" };
    static pawl_id id;
    pawl_error error;
    pawl_create_args args = { .definition = i == 4   ? "nap"
                                            : i == 5 ? "order@1"
                                                     : "order",
                              .input = "{\"x\":1}",
                              .actor_ref = "ann",
                              .subject_ref = subjects[i % 2],
                              .correlation_id = i % 3 ? "c" : NULL,
                              .labels = labels[i % 3],
                              .instantiated_at = i < 3 ? "2026-02-01T00:00:00Z" : NULL };

    REQUIRE(!pawl_create(p, &args, &id, &error));
    return id.text;
}

static void fire(pawl *p, const char *id, const char *action, const char *actor)
{
    pawl_fire_args args = { .action = action,
                            .actor_ref = actor,
                            .fired_at = actor ? NULL : "2026-02-03T00:00:00Z" };
    pawl_error error;

    REQUIRE(!pawl_fire(p, id, &args, NULL, &error));
}

static void live(pawl *p)
{
    pawl_error error;

    REQUIRE(!pawl_define(p, order, sizeof order - 1, NULL, &error));
    REQUIRE(!pawl_define(p, nap, sizeof nap - 1, NULL, &error));
    for (int i = 0; i < IDS_MAX; i++) {
        if (i == 3)
            REQUIRE(!pawl_define(p, order, sizeof order - 2, NULL, &error)); /* another version */
        memcpy(ids[i], create(p, i), sizeof ids[i]);
    }
    for (int i = 0; i < 70; i++)
        fire(p, ids[0], i % 2 ? "back" : "pay", i % 3 ? "bob" : "ann");
    fire(p, ids[1], "pay", NULL);
    fire(p, ids[1], "end", "ann");
    fire(p, ids[2], "drop", "zoë");
}

static void remove_files(void)
{
    static const char *const endings[] = { "", "-wal", "-shm", "-owner", "-head" };
    char name[272];

    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
        snprintf(name, sizeof name, "%s%s", path, endings[i]);
        unlink(name);
    }
}

static void make_side(struct side *side, const char *url)
{
    pawl_error error;

    REQUIRE(!pawl_open_env(&side->p, url, &(pawl_options){ .own = true, .test_clock = true },
                           env_sim_new(FUZZ_NOW_MS, 7), &error));
    buf_init(&side->answer, &heap_libc, LIMIT_SCOPE);
    live(side->p);
}

static void make_sides(void)
{
    const char *folder = getenv("PAWL_FUZZ_FOLDER"); /* where it is taken away after a crash */
    char url[272];

    snprintf(path, sizeof path, "%s/pawl-query-%ld.db", folder ? folder : "/tmp", (long)getpid());
    snprintf(url, sizeof url, "sqlite:%s", path);
    remove_files();
    (void)atexit(remove_files);
    make_side(&sides[0], "memory:");
    make_side(&sides[1], url);
}

/* ---- A question ---- */

/* Random bits, and what is made from them, are no part of an answer that is compared. */
static void blot(struct buf *text)
{
    static const char *const members[] = { "\"instance_id\":\"", "\"transition_id\":\"",
                                           "\"hash\":\"" };

    for (size_t i = 0; i < sizeof members / sizeof *members; i++)
        for (char *at = text->data; at && (at = strstr(at, members[i]));) {
            at += strlen(members[i]);
            if (i == 2)
                memset(at, '#', 64);
            else
                memset(at + 10, '#', 16);
        }
}

static pawl_status ask(struct side *side, str target)
{
    static struct route route;
    struct op_request request = { 0 };
    struct op_answer answer;
    struct op_call call;
    char allow[ALLOW_SIZE];
    struct scope scope;
    pawl_status status;
    bool waits;

    scope_init(&scope, &heap_libc, LIMIT_SCOPE);
    buf_clear(&side->answer);
    status = route_find(&scope, NULL, STR("GET"), target, &route, allow);
    request.pairs = route.pairs;
    request.pair_count = route.count;
    if (status == PAWL_OK)
        status = op_prepare(side->p, route.op, &request, &scope, &call);
    if (status == PAWL_OK)
        status = op_start(&call, &side->answer, &answer, &waits);
    if (status != PAWL_OK) {
        REQUIRE(scope.error.message[0]);
        buf_clear(&side->answer);
    }
    scope_fini(&scope);
    buf_byte(&side->answer, '\0');
    blot(&side->answer);
    return status;
}

/* The line with @N replaced. Its id is that of the first side: the second draws the same. */
static str replace_ids(str line, struct buf *out)
{
    for (size_t i = 0; i < line.size; i++) {
        uint32_t which = i + 1 < line.size ? (uint32_t)(line.data[i + 1] - '1') : IDS_MAX;

        if (line.data[i] == '@' && which < IDS_MAX) {
            buf_str(out, str_of(ids[which]));
            i++;
        } else
            buf_byte(out, (unsigned char)line.data[i]);
    }
    return buf_view(out);
}

static void ask_both(str line)
{
    struct buf text;
    str target;
    pawl_status first, second;

    if (memchr(line.data, '\0', line.size)) /* a target ends there */
        return;
    buf_init(&text, &heap_libc, LIMIT_TEXT);
    target = replace_ids(line, &text);
    first = ask(&sides[0], target);
    second = ask(&sides[1], target);
    if (first != second || !str_eq(buf_view(&sides[0].answer), buf_view(&sides[1].answer)))
        fprintf(stderr, "%.*s\n%s %s\n%s %s\n", STR_ARG(target), pawl_status_name(first),
                sides[0].answer.data, pawl_status_name(second), sides[1].answer.data);
    REQUIRE(first == second);
    REQUIRE(str_eq(buf_view(&sides[0].answer), buf_view(&sides[1].answer)));
    buf_fini(&text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    str rest = { (const char *)data, size };

    if (!sides[0].p)
        make_sides();
    for (int i = 0; i < LINES_MAX && rest.size > 0; i++) {
        const char *end = memchr(rest.data, '\n', rest.size);
        size_t length = end ? (size_t)(end - rest.data) : rest.size;

        if (length > 0)
            ask_both((str){ rest.data, length });
        rest = str_from(rest, length + (end ? 1 : 0));
    }
    return 0;
}
