/* processes.c - what runs in the simulated world: a machine, graphs and trees, and the rules by which
 * fold.c reads their histories. Code is in code.c. */
#include "sim/sim.h"

const char *const process_names[PROCESS_COUNT] = { "door",   "order", "tree",
                                                   "keeper", "clerk", "pair" };

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

/* Two versions of a graph: by the second one there is a step more between the rest and the payment. */
#define ORDER(next, more)                                                                          \
    "name: order\n"                                                                                \
    "signals: {paid: {buffer: true}}\n"                                                            \
    "steps:\n"                                                                                     \
    "  start: {name: pick, tool: pick, " TRIED                                                     \
    ", args: {n: \"{{input.n}}\"}, parallel: [pack, label]}\n"                                     \
    "  pack: {tool: pack, " TRIED ", args: {of: \"{{steps.pick.result.nonce}}\"}, join: ship}\n"   \
    "  label: {tool: label, " TRIED ", join: ship}\n"                                              \
    "  ship: {tool: press, " TRIED ", branch: [{if: \"input.n % 2 == 0\", then: rest},"            \
    " {if: \"true\", then: brief}]}\n"                                                             \
    "  rest: {tool: sleep, args: {for: 20s}, next: " next "}\n"                                    \
    "  brief: {tool: set, args: {brief: true}, next: " next "}\n" more                             \
    "  paid: {select: [{signal: paid, then: sign}, {timer: 2m, then: sign}]}\n"                    \
    "  sign: {approval: {count: 2}, next: mind}\n"                                                 \
    "  mind: {spawn: {definition: keeper, input: {count: 2}}, next: end}\n"                        \
    "  end: {tool: set, args: {picked: \"{{steps.pick.result.nonce}}\"}, done: true}\n"

static const char tree_source[] =
    "name: tree\n"
    "do:\n"
    "  - dopar:\n"
    "      - {name: left, tool: left, " TRIED "}\n"
    "      - {name: right, tool: right, " TRIED "}\n"
    "  - try:\n"
    "      - {name: risky, tool: risky, retry: {max: 2, backoff: [1s]}}\n"
    "    rescue:\n"
    "      - {name: note, tool: set, args: {why: \"{{context.exec/last-error}}\"}}\n"
    "      - {name: mop, tool: press, " TRIED "}\n"
    "    finally:\n"
    "      - {name: tidy, tool: press, " TRIED "}\n"
    "  - {name: last, tool: press, " TRIED "}\n";

static const char pair_source[] = "name: pair\n"
                                  "do:\n"
                                  "  - dopar:\n"
                                  "      - {name: one, spawn: {definition: keeper, input: {count: "
                                  "1}}}\n"
                                  "      - {name: two, spawn: {definition: tree, input: {}}}\n"
                                  "  - {name: both, tool: pick, " TRIED "}\n";

const char *const process_sources[] = {
    door_source,
    ORDER("paid", ""),
    ORDER("extra", "  extra: {tool: press, " TRIED ", next: paid}\n"),
    tree_source,
    pair_source,
    NULL,
};

const struct order_rule order_rules[] = {
    { PROCESS_ORDER, "pick", "pack" },  { PROCESS_ORDER, "pick", "label" },
    { PROCESS_ORDER, "pack", "ship" },  { PROCESS_ORDER, "label", "ship" },
    { PROCESS_ORDER, "ship", "rest" },  { PROCESS_ORDER, "ship", "brief" },
    { PROCESS_ORDER, "paid", "sign" },  { PROCESS_ORDER, "sign", "mind" },
    { PROCESS_ORDER, "mind", "end" },   { PROCESS_TREE, "left", "risky" },
    { PROCESS_TREE, "right", "risky" }, { PROCESS_TREE, "tidy", "last" },
    { PROCESS_PAIR, "one", "both" },    { PROCESS_PAIR, "two", "both" },
    { PROCESS_COUNT, NULL, NULL },
};
