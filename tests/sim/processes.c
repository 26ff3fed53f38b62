/* processes.c - what runs in the simulated world: a machine, a graph, a tree and code, and the rules
 * by which check.c reads their histories. */
#include "sim/sim.h"
#include <stdio.h>
#include <stdlib.h>

const char *const process_names[PROCESS_COUNT] = { "door", "order", "tree", "keeper" };

/* ---- The machine ---- */

static const char door_source[] =
    "name: door\n"
    "states: [shut, open, locked, gone, broken]\n"
    "initial_state: shut\n"
    "terminal_states: [gone, broken]\n"
    "terminal_kinds: {gone: cancel, broken: failure}\n"
    "transitions:\n"
    "  - {from_state: shut, action: open, to_state: open}\n"
    "  - {from_state: open, action: shut, to_state: shut}\n"
    "  - {from_state: shut, action: lock, to_state: locked, guard: has-key}\n"
    "  - {from_state: locked, action: unlock, to_state: shut, requires_reason: true}\n"
    "  - {from_state: locked, action: paint, to_state: locked}\n"
    "  - {from_state: shut, action: remove, to_state: gone}\n"
    "  - {from_state: locked, action: break, to_state: broken}\n"
    "deadlines:\n"
    "  - {state: open, after: 30s, action: shut}\n";

/* The same, read by hand: the checker does not ask the engine what is right. */
static const struct door_way door_ways[] = {
    { "shut", "open", "open", false, false, false },
    { "open", "shut", "shut", false, false, false },
    { "shut", "lock", "locked", true, false, false },
    { "locked", "unlock", "shut", false, true, false },
    { "locked", "paint", "locked", false, false, false },
    { "shut", "remove", "gone", false, false, true },
    { "locked", "break", "broken", false, false, false },
};
#define DOOR_WAYS (sizeof door_ways / sizeof *door_ways)

const struct door_way *door_way_at(uint32_t index)
{
    return index < DOOR_WAYS ? &door_ways[index] : NULL;
}

const struct door_way *door_way(const char *from, const char *action)
{
    for (size_t i = 0; i < DOOR_WAYS; i++)
        if (strcmp(door_ways[i].from, from) == 0 && strcmp(door_ways[i].action, action) == 0)
            return &door_ways[i];
    return NULL;
}

bool door_is_end(const char *state)
{
    return strcmp(state, "gone") == 0 || strcmp(state, "broken") == 0;
}

/* ---- Flows ---- */

#define TRIED "idempotent: true, retry: {max: 5, backoff: [1s]}"

static const char order_source[] =
    "name: order\n"
    "steps:\n"
    "  start: {name: pick, tool: pick, " TRIED
    ", args: {n: \"{{input.n}}\"}, parallel: [pack, label]}\n"
    "  pack: {tool: pack, " TRIED ", args: {of: \"{{steps.pick.result.nonce}}\"}, join: ship}\n"
    "  label: {tool: label, " TRIED ", join: ship}\n"
    "  ship: {tool: press, " TRIED ", next: rest}\n"
    "  rest: {tool: sleep, args: {for: 20s}, next: paid}\n"
    "  paid: {select: [{signal: paid, then: sign}, {timer: 2m, then: sign}]}\n"
    "  sign: {approval: {by: [ann, bob], count: 1}, next: mind}\n"
    "  mind: {spawn: {definition: keeper, input: {count: 2}}, next: end}\n"
    "  end: {tool: set, args: {picked: \"{{steps.pick.result.nonce}}\"}, done: true}\n";

static const char tree_source[] =
    "name: tree\n"
    "do:\n"
    "  - dopar:\n"
    "      - {name: left, tool: left, " TRIED "}\n"
    "      - {name: right, tool: right, " TRIED "}\n"
    "  - try:\n"
    "      - {name: risky, tool: risky, retry: {max: 2, backoff: [1s]}}\n"
    "    rescue:\n"
    "      - {name: mop, tool: press, " TRIED "}\n"
    "    finally:\n"
    "      - {name: tidy, tool: press, " TRIED "}\n"
    "  - {name: last, tool: press, " TRIED "}\n";

const struct order_rule order_rules[] = {
    { PROCESS_ORDER, "pick", "pack" },  { PROCESS_ORDER, "pick", "label" },
    { PROCESS_ORDER, "pack", "ship" },  { PROCESS_ORDER, "label", "ship" },
    { PROCESS_ORDER, "ship", "rest" },  { PROCESS_ORDER, "rest", "paid" },
    { PROCESS_ORDER, "paid", "sign" },  { PROCESS_ORDER, "sign", "mind" },
    { PROCESS_ORDER, "mind", "end" },   { PROCESS_TREE, "left", "risky" },
    { PROCESS_TREE, "right", "risky" }, { PROCESS_TREE, "tidy", "last" },
    { PROCESS_COUNT, NULL, NULL },
};

const char *process_source(enum process process)
{
    switch (process) {
    case PROCESS_DOOR:
        return door_source;
    case PROCESS_ORDER:
        return order_source;
    case PROCESS_TREE:
        return tree_source;
    case PROCESS_KEEPER:
    case PROCESS_COUNT:
        break;
    }
    return NULL;
}

/* ---- Code: it counts ticks down, a signal adds one, and it ends with a call ---- */

struct keeper {
    int64_t left, ticks, heard;
    bool is_calling;
};

static const pawl_var keeper_vars[] = {
    PAWL_VAR(struct keeper, left, PAWL_VAR_INT64),
    PAWL_VAR(struct keeper, ticks, PAWL_VAR_INT64),
    PAWL_VAR(struct keeper, heard, PAWL_VAR_INT64),
    PAWL_VAR(struct keeper, is_calling, PAWL_VAR_BOOL),
    { 0 },
};
static const char *const keeper_timers[] = { "tick", NULL };
static const char *const keeper_signals[] = { "more", NULL };
static const char *const keeper_calls[] = { "press", NULL };
static const pawl_retry keeper_retries[] = { { "press", 100, 1000, 1000 }, { 0 } };

static int64_t read_count(const char *json)
{
    const char *at = strstr(json, "\"count\":");

    return at ? strtoll(at + 8, NULL, 10) : 1;
}

static void keeper_handle(void *context, pawl_turn *turn, void *memory, const pawl_event *event)
{
    struct keeper *keeper = memory;

    (void)context;
    if (event->kind == PAWL_EVENT_START)
        keeper->left = read_count(event->payload);
    else if (event->kind == PAWL_EVENT_TIMER) {
        keeper->ticks++;
        keeper->left--;
    } else if (event->kind == PAWL_EVENT_SIGNAL) {
        keeper->heard++;
        keeper->left++;
    } else {
        pawl_turn_complete(turn,
                           pawl_turn_text(turn, "{\"ticks\":%lld,\"heard\":%lld}",
                                          (long long)keeper->ticks, (long long)keeper->heard));
        return;
    }
    if (keeper->left == 0) {
        keeper->is_calling = true;
        pawl_turn_call(turn, "press", "{}");
        return;
    }
    pawl_turn_timer(turn, "tick", TICK_MS);
    if (keeper->heard < 3)
        pawl_turn_signal(turn, "more");
}

static const pawl_code_type keeper_type = {
    .name = "keeper",
    .timers = keeper_timers,
    .signals = keeper_signals,
    .calls = keeper_calls,
    .retries = keeper_retries,
    .vars = keeper_vars,
    .state_size = sizeof(struct keeper),
    .handle = keeper_handle,
};

/* ---- The tool that runs in the process ---- */

static void press(void *context, const pawl_tool_call *call, pawl_tool_answer *answer)
{
    struct sim *sim = context;

    (void)call;
    if (!sim->is_healing && dice_chance(&sim->dice, 100))
        pawl_answer_error(answer, "\"jammed\"");
    else
        pawl_answer_result(answer, "{\"pressed\":true}");
}

pawl_status processes_register(struct sim *sim, pawl *p)
{
    pawl_status status = pawl_tool_register(p, "press", press, sim, &sim->error);

    return status == PAWL_OK ? pawl_code_register(p, &keeper_type, &sim->error) : status;
}
