/* priority.c - which rejection comes first (D18, D14, D29; DESIGN.md, "Priority of fire").
 *
 * Each table begins with a call that is right, and lists what can be wrong with it, earliest
 * first: a cause spoils one part of the call. Causes that spoil different parts can occur
 * together; every such combination is tried (all pairs are among them), and the answer must be
 * the token of the first. Nothing that was refused may have changed anything (D23, D17). The
 * disk of these tests takes no writes: that fails out of COMMIT, so the last word of D18 and D14,
 * storage-failure, is outcome-unknown here. */
#include "api/api.h"
#include "fault/stage.h"
#include "fault/vfs.h"
#include "lib/test.h"
#include <stdio.h>
#include <string.h>

#define NOON    INT64_C(1777636800000) /* 2026-05-01T12:00:00Z */
#define FUTURE  "2999-01-01T00:00:00Z"
#define PAST    "2001-01-01T00:00:00Z"
#define UNKNOWN "00000000ZZ0123456789ABCDEF"

static const char machine[] =
    "name: priority\nstates: [open, busy, ended, dropped]\ninitial_state: open\n"
    "terminal_states: [ended, dropped]\nterminal_kinds: {ended: success, dropped: cancel}\n"
    "transitions:\n"
    "  - {from_state: open, action: note, to_state: open, guard: checked, requires_reason: true}\n"
    "  - {from_state: open, action: end, to_state: ended}\n"
    "  - {from_state: open, action: work, to_state: busy}\n"
    "  - {from_state: open, action: drop, to_state: dropped}\n";

/* The parts of a call; a cause spoils one. */
enum part {
    ID = 1,
    ACTION = 2,
    REASON = 4,
    GUARD = 8,
    EXPECTED = 16,
    ACTOR = 32,
    TIME = 64,
    DISK = 128,
    DEFINITION = 256,
    DECLARATION = 512,
    SUBJECT = 1024,
    METADATA = 2048,
    LABELS = 4096,
    FROM = 8192,
    NUMBERS = 16384,
    TRANSITION = 32768,
};

struct call {
    const char *id, *action, *reason, *actor, *time, *until;
    bool guard, disk_fails;
    uint64_t expected, from_number, to_number;
    const char *definition, *declaration, *subject, *metadata, *labels, *from, *transition;
};

struct cause {
    enum part part;
    pawl_status token;
    struct call with; /* what its part is then */
};

/* ---- every combination of causes ---- */

struct table {
    const struct cause *causes;
    size_t count;
    struct call right;
    pawl_status (*ask)(const struct call *call);
    uint64_t accepted, refused;
};

static void spoil(struct call *call, const struct cause *cause)
{
#define COPY(what, field)                                                                          \
    if (cause->part == (what))                                                                     \
        call->field = cause->with.field;
    COPY(ID, id)
    COPY(ACTION, action)
    COPY(REASON, reason)
    COPY(GUARD, guard)
    COPY(EXPECTED, expected)
    COPY(ACTOR, actor)
    COPY(TIME, time)
    COPY(TIME, until)
    COPY(DISK, disk_fails)
    COPY(DEFINITION, definition)
    COPY(DECLARATION, declaration)
    COPY(SUBJECT, subject)
    COPY(METADATA, metadata)
    COPY(LABELS, labels)
    COPY(FROM, from)
    COPY(NUMBERS, from_number)
    COPY(NUMBERS, to_number)
    COPY(TRANSITION, transition)
#undef COPY
}

static void try_one(struct table *table, const struct call *call, pawl_status wanted,
                    const char *causes)
{
    pawl_status found;

    if (call->disk_fails)
        disk_arm((struct disk_plan){ .ops = DISK_CHANGES, .fault = FAULT_EIO, .at = 1 });
    found = table->ask(call);
    disk_disarm();
    if (found != wanted)
        test_fail(__FILE__, __LINE__, "expected %s for causes%s, found %s",
                  pawl_status_name(wanted), causes, pawl_status_name(found));
    if (found == PAWL_OK)
        table->accepted++;
    else
        table->refused++;
}

/* Causes `next` and later may be added to those that are in `call` already. */
static void try_from(struct table *table, struct call call, size_t next, unsigned parts,
                     pawl_status wanted, const char *causes)
{
    if (next == table->count) {
        try_one(table, &call, wanted, causes);
        return;
    }
    try_from(table, call, next + 1, parts, wanted, causes);
    if (!(parts & table->causes[next].part)) {
        const struct cause *cause = &table->causes[next];
        char more[128];

        snprintf(more, sizeof more, "%s %zu", causes, next);
        spoil(&call, cause);
        try_from(table, call, next + 1, parts | cause->part, wanted ? wanted : cause->token, more);
    }
}

#define TABLE(list, ...)                                                                           \
    {                                                                                              \
        .causes = (list), .count = sizeof(list) / sizeof *(list), __VA_ARGS__                      \
    }

static void try_all(struct table *table)
{
    try_from(table, table->right, 0, 0, PAWL_OK, "");
    printf("# %" PRIu64 " combinations refused, %" PRIu64 " call accepted\n", table->refused,
           table->accepted);
    EXPECT_EQ(table->accepted, 1);
}

/* ---- the world ---- */

static pawl *p;
static pawl_error error;
static pawl_id open_id, ended_id, busy_id, paused_id;

static void make(pawl_id *id, const char *action)
{
    EXPECT_OK(pawl_create(p, &(pawl_create_args){ .definition = "priority" }, id, &error));
    if (action)
        EXPECT_OK(pawl_fire(p, id->text, &(pawl_fire_args){ .action = action }, NULL, &error));
}

static void hold(const pawl_id *id)
{
    char input[64], *answer;

    snprintf(input, sizeof input, "{\"instance_id\":\"%s\"}", id->text);
    EXPECT_OK(pawl_call(p, "instance.pause", input, &answer, &error));
    pawl_free(p, answer);
}

static void begin(bool own)
{
    stage_begin();
    disk_load(stage_path);
    EXPECT_OK(
        pawl_open_env(&p, stage_url, &(pawl_options){ .own = own }, env_sim_new(NOON, 5), &error));
    EXPECT_OK(pawl_define(p, machine, sizeof machine - 1, NULL, &error));
    make(&open_id, NULL);
    make(&ended_id, "end");
    make(&busy_id, "work");
    make(&paused_id, NULL);
    hold(&paused_id);
}

static void end(uint64_t entries, uint64_t instances)
{
    struct verify_report report;

    EXPECT_OK(verify_run(engine_store(p->engine), &heap_libc, &(struct verify_request){ 0 },
                         &report, &error));
    EXPECT_TEXT(report.what, "");
    EXPECT_EQ(report.entries, entries);
    EXPECT_EQ(report.instances, instances);
    pawl_close(p);
}

/* ---- fire ---- */

static const struct cause fire_causes[] = {
    { ID, PAWL_INVALID_REQUEST, { .id = "" } },
    { ID, PAWL_INVALID_REQUEST, { .id = " \t" } },
    { ACTION, PAWL_INVALID_REQUEST, { .action = "" } },
    { ACTION, PAWL_INVALID_REQUEST, { .action = " " } },
    { ID, PAWL_NOT_KNOWN, { .id = UNKNOWN } },
    { ID, PAWL_TERMINAL, { .id = ended_id.text } },
    { ACTION, PAWL_INVALID_TRANSITION, { .action = "nonsense" } },
    { REASON, PAWL_REASON_REQUIRED, { .reason = NULL } },
    { GUARD, PAWL_GUARD_NOT_SATISFIED, { .guard = false } },
    { ID, PAWL_PAUSED, { .id = paused_id.text } },
    { EXPECTED, PAWL_CONFLICT, { .expected = 9 } },
    { ACTOR, PAWL_INVALID_REQUEST, { .actor = " " } },
    { TIME, PAWL_INVALID_REQUEST, { .time = FUTURE } },
    { TIME, PAWL_INVALID_REQUEST, { .time = PAST } },
    { TIME, PAWL_INVALID_REQUEST, { .time = "soon" } },
    { DISK, PAWL_OUTCOME_UNKNOWN, { .disk_fails = true } },
};

static pawl_status ask_fire(const struct call *call)
{
    return pawl_fire(p, call->id,
                     &(pawl_fire_args){ .action = call->action,
                                        .reason = call->reason,
                                        .actor_ref = call->actor,
                                        .fired_at = call->time,
                                        .guard_satisfied = call->guard,
                                        .expected_sequence = call->expected },
                     NULL, &error);
}

/* D18, D40, D23 */
TEST(priority, the_first_of_all_causes_of_a_refused_fire_is_its_token)
{
    struct table table = TABLE(fire_causes, .ask = ask_fire,
                               .right = { open_id.text, "note", "due", "ann", .guard = true });

    begin(true);
    try_all(&table);
    end(3, 4);
}

/* A store whose folder is away for a moment: a writer that shares it cannot even take its turn. */
static pawl_status ask_without_store(const struct call *call)
{
    char folder[96], away[112];
    pawl_status status;

    snprintf(folder, sizeof folder, "%.*s", (int)(strrchr(stage_path, '/') - stage_path),
             stage_path);
    snprintf(away, sizeof away, "%s-away", folder);
    EXPECT(rename(folder, away) == 0);
    status = ask_fire(call);
    EXPECT(rename(away, folder) == 0);
    return status;
}

/* D18: malformed before all, even where the store is looked at first; D24: then all is as it was.
 */
TEST(priority, what_is_malformed_is_told_even_by_a_store_that_is_not_there)
{
    struct call call = { open_id.text, "note", "due", "ann", .guard = true };
    struct table table = { .ask = ask_without_store };

    begin(false);
    try_one(&table, &call, PAWL_STORAGE_FAILURE, " no store");
    call.action = " ";
    try_one(&table, &call, PAWL_INVALID_REQUEST, " a blank action, no store");
    call.id = "";
    try_one(&table, &call, PAWL_INVALID_REQUEST, " a blank id, no store");
    call = (struct call){ open_id.text, "note", "due", "ann", .guard = true, .expected = 1 };
    EXPECT_OK(ask_fire(&call));
    end(3, 4);
}

/* ---- cancel ---- */

static const struct cause cancel_causes[] = {
    { ID, PAWL_INVALID_REQUEST, { .id = "" } },
    { ID, PAWL_NOT_KNOWN, { .id = UNKNOWN } },
    { ID, PAWL_TERMINAL, { .id = ended_id.text } },
    { ID, PAWL_NO_CANCEL_TRANSITION, { .id = busy_id.text } },
    { ACTOR, PAWL_INVALID_REQUEST, { .actor = " " } },
    { REASON, PAWL_INVALID_REQUEST, { .reason = "\xff" } },
    { DISK, PAWL_OUTCOME_UNKNOWN, { .disk_fails = true } },
};

static pawl_status ask_cancel(const struct call *call)
{
    return pawl_cancel(p, call->id, call->actor, call->reason, NULL, &error);
}

/* A17, A18, A22: as fire, with its own word for what is not declared. The right one is tried
 * last, because it ends the instance. */
TEST(priority, the_first_of_all_causes_of_a_refused_cancel_is_its_token)
{
    struct table table =
        TABLE(cancel_causes, .ask = ask_cancel, .right = { open_id.text, .actor = "ann" });

    begin(true);
    for (size_t i = 0; i < table.count; i++) {
        struct call call = table.right;

        spoil(&call, &cancel_causes[i]);
        try_from(&table, call, i + 1, cancel_causes[i].part, cancel_causes[i].token, "");
    }
    try_one(&table, &table.right, PAWL_OK, "");
    EXPECT_EQ(table.accepted, 1);
    end(3, 4);
}

/* ---- create ---- */

#define GOOD                                                                                       \
    "{\"states\":[\"a\"],\"initial_state\":\"a\",\"terminal_states\":[],\"transitions\":[]}"
#define ODD "{\"states\":[\"a\"],\"initial_state\":\"b\",\"terminal_states\":[],\"transitions\":[]}"

static const struct cause create_causes[] = {
    { DEFINITION, PAWL_INVALID_REQUEST, { .definition = "priority" } }, /* both */
    { DECLARATION, PAWL_INVALID_DECLARATION, { .declaration = ODD } },
    { DECLARATION, PAWL_INVALID_DECLARATION, { .declaration = "{" } },
    { DECLARATION, PAWL_INVALID_DECLARATION, { .declaration = "[]" } },
    { DECLARATION, PAWL_INVALID_DECLARATION, { .declaration = "{}" } },
    { ACTOR, PAWL_INVALID_REQUEST, { .actor = " " } },
    { SUBJECT, PAWL_INVALID_REQUEST, { .subject = "\t" } },
    { METADATA, PAWL_INVALID_REQUEST, { .metadata = "{}" } },
    { METADATA, PAWL_INVALID_REQUEST, { .metadata = "\"\"" } },
    { METADATA, PAWL_INVALID_REQUEST, { .metadata = "nonsense" } },
    { LABELS, PAWL_INVALID_REQUEST, { .labels = "{\"a\":1}" } },
    { TIME, PAWL_INVALID_REQUEST, { .time = FUTURE } },
    { TIME, PAWL_INVALID_REQUEST, { .time = "soon" } },
    { DISK, PAWL_OUTCOME_UNKNOWN, { .disk_fails = true } },
};

static pawl_status ask_create(const struct call *call)
{
    pawl_id id;

    return pawl_create(p,
                       &(pawl_create_args){ .definition = call->definition,
                                            .declaration = call->declaration,
                                            .actor_ref = call->actor,
                                            .subject_ref = call->subject,
                                            .instance_metadata = call->metadata,
                                            .labels = call->labels,
                                            .instantiated_at = call->time },
                       &id, &error);
}

/* D14, D17 */
TEST(priority, the_first_of_all_causes_of_a_refused_creation_is_its_token)
{
    struct table table =
        TABLE(create_causes, .ask = ask_create, .right = { .declaration = GOOD, .actor = "ann" });

    begin(true);
    try_all(&table);
    end(2, 5);
}

static const struct cause named_causes[] = {
    { DEFINITION, PAWL_NOT_KNOWN, { .definition = "nobody" } },
    { DEFINITION, PAWL_NOT_KNOWN, { .definition = "priority@7" } },
    { ACTOR, PAWL_INVALID_REQUEST, { .actor = " " } },
    { METADATA, PAWL_INVALID_REQUEST, { .metadata = "{}" } },
    { TIME, PAWL_INVALID_REQUEST, { .time = FUTURE } },
    { DISK, PAWL_OUTCOME_UNKNOWN, { .disk_fails = true } },
};

/* D14 in the other shape: which definition is meant has to be read before all else. */
TEST(priority, an_unknown_definition_is_told_before_a_bad_value)
{
    struct table table =
        TABLE(named_causes, .ask = ask_create, .right = { .definition = "priority" });

    begin(true);
    try_all(&table);
    end(2, 5);
}

/* ---- history ---- */

static const struct cause history_causes[] = {
    { ID, PAWL_INVALID_REQUEST, { .id = "" } },
    { ID, PAWL_INVALID_REQUEST, { .id = " " } },
    { ID, PAWL_NOT_KNOWN, { .id = UNKNOWN } },
    { ACTION, PAWL_INVALID_QUERY, { .action = "" } },
    { ACTOR, PAWL_INVALID_QUERY, { .actor = " " } },
    { FROM, PAWL_INVALID_QUERY, { .from = "\n" } },
    { TRANSITION, PAWL_INVALID_QUERY, { .transition = "" } },
    { NUMBERS, PAWL_INVALID_QUERY, { .from_number = 3, .to_number = 2 } },
    { TIME, PAWL_INVALID_QUERY, { .time = FUTURE, .until = PAST } },
    { TIME, PAWL_INVALID_QUERY, { .time = "soon" } },
};

static pawl_status ask_history(const struct call *call)
{
    pawl_history *history;
    pawl_status status =
        pawl_history_open(p, call->id,
                          &(pawl_history_query){ .action = call->action,
                                                 .actor_ref = call->actor,
                                                 .from_state = call->from,
                                                 .transition_id = call->transition,
                                                 .sequence_from = call->from_number,
                                                 .sequence_to = call->to_number,
                                                 .fired_after = call->time,
                                                 .fired_before = call->until },
                          &history, &error);

    EXPECT((status == PAWL_OK) == (history != NULL));
    pawl_history_close(history, NULL);
    return status;
}

/* D29, D31 */
TEST(priority, the_first_of_all_causes_of_a_refused_history_is_its_token)
{
    struct table table = TABLE(history_causes, .ask = ask_history, .right = { open_id.text });

    begin(true);
    try_all(&table);
    end(2, 4);
}
