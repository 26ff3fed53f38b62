/* scenario.c - the processes themselves: a machine, a flow with a retry, code with a timer; and the
 * table of all of them. */
#include "fault/scenario_int.h"
#include <stdlib.h>

/* ---- A machine: define, create, five fires, cancel ---- */

static const char door_source[] =
    "name: door\n"
    "states: [shut, open, locked, gone]\n"
    "initial_state: shut\n"
    "terminal_states: [gone]\n"
    "terminal_kinds: {gone: cancel}\n"
    "transitions:\n"
    "  - {from_state: shut, action: open, to_state: open}\n"
    "  - {from_state: open, action: shut, to_state: shut}\n"
    "  - {from_state: shut, action: lock, to_state: locked, guard: has-key}\n"
    "  - {from_state: locked, action: unlock, to_state: shut, requires_reason: true}\n"
    "  - {from_state: shut, action: remove, to_state: gone}\n";

static const struct act door_acts[] = {
    { .kind = ACT_DEFINE },
    { .kind = ACT_CREATE },
    { .kind = ACT_FIRE, .name = "open", .payload = "{\"hand\":\"left\"}" },
    { .kind = ACT_FIRE, .name = "shut" },
    { .kind = ACT_FIRE, .name = "lock", .payload = "[1,2,3]", .guard = true },
    { .kind = ACT_FIRE, .name = "unlock", .reason = "she came back" },
    { .kind = ACT_FIRE, .name = "open" },
    { .kind = ACT_FIRE, .name = "shut" },
    { .kind = ACT_CANCEL },
    { 0 },
};

/* ---- A flow: three steps, the second fails at first ---- */

static const char parcel_source[] = "name: parcel\n"
                                    "steps:\n"
                                    "  start:\n"
                                    "    name: wrap\n"
                                    "    tool: set\n"
                                    "    idempotent: true\n"
                                    "    retry: {max: 9}\n"
                                    "    args: {what: \"{{input.what}}\"}\n"
                                    "    next: carry\n"
                                    "  carry:\n"
                                    "    tool: weak-arms\n"
                                    "    idempotent: true\n"
                                    "    timeout: 1m\n"
                                    "    retry: {max: 9, backoff: [1s]}\n"
                                    "    args: {what: \"{{steps.wrap.result.what}}\"}\n"
                                    "    next: hand-over\n"
                                    "  hand-over:\n"
                                    "    tool: set\n"
                                    "    idempotent: true\n"
                                    "    retry: {max: 9}\n"
                                    "    args: {carried: \"{{steps.carry.result.what}}\"}\n"
                                    "    done: true\n";

static const struct act parcel_acts[] = {
    { .kind = ACT_DEFINE },
    { .kind = ACT_CREATE },
    { .kind = ACT_ADVANCE, .by_ms = 500 },
    { .kind = ACT_ADVANCE, .by_ms = 500 },
    { 0 },
};

/* Drops it the first time. */
static void weak_arms(void *context, const pawl_tool_call *call, pawl_tool_answer *answer)
{
    (void)context;
    if (call->attempt == 1)
        pawl_answer_error(answer, "\"dropped\"");
    else
        pawl_answer_result(answer, "{\"what\":\"a vase\"}");
}

/* ---- Code: a count that a timer lowers and a signal raises ---- */

struct kettle {
    int64_t minutes, heard;
};

static const pawl_var kettle_vars[] = {
    PAWL_VAR(struct kettle, minutes, PAWL_VAR_INT64),
    PAWL_VAR(struct kettle, heard, PAWL_VAR_INT64),
    { 0 },
};
static const char *const kettle_timers[] = { "minute", NULL };
static const char *const kettle_signals[] = { "refill", NULL };

static void kettle_handle(void *context, pawl_turn *turn, void *memory, const pawl_event *event)
{
    struct kettle *kettle = memory;

    (void)context;
    if (event->kind == PAWL_EVENT_START)
        kettle->minutes = strtoll(event->payload, NULL, 10);
    else if (event->kind == PAWL_EVENT_TIMER)
        kettle->minutes--;
    else {
        kettle->minutes += strtoll(event->payload, NULL, 10);
        kettle->heard++;
    }
    if (kettle->minutes == 0) {
        pawl_turn_complete(turn, kettle->heard == 1 ? "\"boils\"" : "\"boils dry\"");
        return;
    }
    pawl_turn_timer(turn, "minute", 60000);
    if (kettle->heard == 0)
        pawl_turn_signal(turn, "refill");
}

static const pawl_code_type kettle_type = {
    .name = "kettle",
    .timers = kettle_timers,
    .signals = kettle_signals,
    .vars = kettle_vars,
    .state_size = sizeof(struct kettle),
    .handle = kettle_handle,
};

/* Enough water: however often a failed act has to be done again, it does not
 * boil before it is refilled. */
static const struct act kettle_acts[] = {
    { .kind = ACT_CREATE },
    { .kind = ACT_ADVANCE, .by_ms = 60000 },
    { .kind = ACT_SIGNAL, .name = "refill", .payload = "1" },
    { .kind = ACT_ADVANCE, .by_ms = 120000 },
    { 0 },
};

/* ---- Both of them held on their way ---- */

static const struct act parcel_held_acts[] = {
    { .kind = ACT_DEFINE },
    { .kind = ACT_CREATE },
    { .kind = ACT_PAUSE },
    { .kind = ACT_ADVANCE, .by_ms = 2000 }, /* what runs may end */
    { .kind = ACT_SIGNAL, .name = "hurry", .refusal = PAWL_PAUSED },
    { .kind = ACT_RESUME },
    { .kind = ACT_ADVANCE, .by_ms = 500 },
    { 0 },
};

static const struct act kettle_held_acts[] = {
    { .kind = ACT_CREATE },
    { .kind = ACT_PAUSE },
    { .kind = ACT_SIGNAL, .name = "refill", .payload = "9", .refusal = PAWL_PAUSED },
    { .kind = ACT_ADVANCE, .by_ms = 120000 },
    { .kind = ACT_RESUME },
    { .kind = ACT_SIGNAL, .name = "refill", .payload = "1" },
    { .kind = ACT_PAUSE },
    { .kind = ACT_ADVANCE, .by_ms = 120000 },
    { .kind = ACT_RESUME },
    { 0 },
};

/* ---- All of them ---- */

/* clang-format off */
#define DOOR                                                                                       \
    .definition = "door", .source = door_source, .acts = door_acts, .ends = { "gone" },            \
    .entries = { 7 }, .is_exact = true

#define INLINE                                                                                     \
    .acts = machine_inline_acts, .ends = { "sent", "torn" }, .entries = { 3, 1 },                  \
    .is_exact = true, .declaration = machine_inline,                                               \
    .shows = { "\"correlation_id\":\"c-17\"", "\"region\":\"eu\"", "{\"n\": 1.00}",                \
               "\"input\":[1,2]", "\"subject_ref\":\"S-1\"" }

#define VERSIONS                                                                                   \
    .definition = "order", .source = machine_order_1, .acts = machine_version_acts,                \
    .ends = { "paid", "paid", "gone" }, .entries = { 2, 2, 2 }, .is_exact = true

#define BATCHES                                                                                    \
    .definition = "order", .source = machine_order_1, .acts = machine_batch_acts,                  \
    .ends = { "gone", "paid", "gone" }, .entries = { 4, 3, 1 }, .is_exact = true

#define CLAIM                                                                                      \
    .definition = "claim", .source = machine_claim, .is_exact = true, .held_ms = 30000

#define DEADLINE                                                                                   \
    CLAIM, .acts = machine_deadline_acts, .ends = { "lapsed", "void" }, .entries = { 3, 1 }

#define HELD                                                                                       \
    CLAIM, .acts = machine_held_acts, .ends = { "lapsed", "void", "void" }, .entries = { 2, 1, 1 }

#define PARCEL                                                                                     \
    .definition = "parcel", .source = parcel_source, .input = "{\"what\":\"a vase\"}",             \
    .ends = { "completed" }, .entries = { 9 },                                                     \
    .shows = { "\"result\":{\"carried\":\"a vase\"}" }

#define KETTLE                                                                                     \
    .definition = "kettle", .input = "6", .ends = { "completed" }, .entries = { 10 },              \
    .is_exact = true, .shows = { "\"result\":\"boils\"" }

const struct scenario scenarios[] = {
    { .name = "machine", .own = true, DOOR },
    { .name = "shared", .own = false, DOOR },
    { .name = "inline", .own = true, INLINE },
    { .name = "inline_shared", .own = false, INLINE },
    { .name = "versions", .own = true, VERSIONS },
    { .name = "versions_shared", .own = false, VERSIONS },
    { .name = "batch", .own = true, BATCHES },
    { .name = "batch_shared", .own = false, BATCHES },
    { .name = "deadline", .own = true, DEADLINE },
    { .name = "deadline_shared", .own = false, DEADLINE },
    { .name = "held", .own = true, HELD },
    { .name = "held_shared", .own = false, HELD },
    { .name = "flow", .own = true, PARCEL, .acts = parcel_acts },
    { .name = "held_flow", .own = true, PARCEL, .acts = parcel_held_acts },
    { .name = "code", .own = true, KETTLE, .acts = kettle_acts },
    { .name = "held_code", .own = true, KETTLE, .acts = kettle_held_acts },
    { 0 },
};
/* clang-format on */

const struct scenario *scenario_find(const char *name)
{
    for (const struct scenario *s = scenarios; s->name; s++)
        if (strcmp(s->name, name) == 0)
            return s;
    test_fail(__FILE__, __LINE__, "no scenario '%s'", name);
}

pawl_status scenario_register(pawl *p, pawl_error *error)
{
    pawl_status status = pawl_tool_register(p, "weak-arms", weak_arms, NULL, error);

    return status ? status : pawl_code_register(p, &kettle_type, error);
}
