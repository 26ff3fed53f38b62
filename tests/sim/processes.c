/* processes.c - what runs in the simulated world: a machine, graphs and trees, and the rules by which
 * fold.c reads their histories. Code is in code.c. */
#include "sim/sim.h"

const char *const process_names[PROCESS_COUNT] = { "door", "order", "tree", "keeper", "clerk",
                                                   "pair", "trip",  "load", "desk",   "notice" };

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

#define TRIED  "idempotent: true, retry: {max: 5, backoff: [1s]}"
#define UNDONE "{tool: press, retry: {max: 20, backoff: [1s]}}"

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

/* What was done is undone, the last one first. Limits, an error that is never tried again, ways on
 * after one; its end is told. */
static const char trip_source[] =
    "name: trip\n"
    "notify: {definition: notice, on: [completed, failed]}\n"
    "steps:\n"
    "  start: {name: book, tool: left, " TRIED ", rate: {max: 2, per: 1m}, compensate: " UNDONE
    ", next: hire}\n"
    "  hire: {tool: right, " TRIED ", concurrency: {max: 1}, compensate: " UNDONE ", next: bill}\n"
    "  bill: {tool: risky, idempotent: true, retry: {max: 3, backoff: [1s], never: [clumsy]},"
    " wait_for_worker: 40s, on_error: [{if: 'error == \"no-worker\"', then: late},"
    " {if: \"true\", then: mend}], next: pay}\n"
    "  late: {tool: set, args: {late: true}, next: pay}\n"
    "  mend: {tool: press, " TRIED ", next: pay}\n"
    "  pay: {tool: fetch, idempotent: true, retry: {max: 2, backoff: [1s]}, next: end}\n"
    "  end: {tool: set, args: {done: true}, done: true}\n";

static const char load_source[] = "name: load\n"
                                  "retention: {after_end: 2m, then: erase}\n"
                                  "do:\n"
                                  "  - {name: rows, map: {over: \"{{input.items}}\", tolerate: 1, "
                                  "max_parallel: 2, step: {tool: row,"
                                  " args: {n: \"{{index}}\"}, " TRIED "}}}\n"
                                  "  - try:\n"
                                  "      - do:\n"
                                  "          - {name: knock, tool: label, " TRIED "}\n"
                                  "          - {name: open, wait: {signal: paid}}\n"
                                  "        timeout: 50s\n"
                                  "    rescue:\n"
                                  "      - {name: leave, tool: press, " TRIED "}\n"
                                  "    finally:\n"
                                  "      - {name: shut, tool: press, " TRIED "}\n";

static const char desk_source[] =
    "name: desk\n"
    "states: [fresh, busy, sad, closed]\n"
    "initial_state: fresh\n"
    "terminal_states: [closed]\n"
    "terminal_kinds: {closed: success}\n"
    "transitions:\n"
    "  - {from_state: fresh, action: send, to_state: busy, starts: {definition: notice, input: {n: "
    "1},"
    " on_end: {completed: cheer, failed: sadden, cancelled: sadden}}}\n"
    "  - {from_state: busy, action: cheer, to_state: closed, by: engine}\n"
    "  - {from_state: busy, action: sadden, to_state: sad, by: engine}\n"
    "  - {from_state: sad, action: leave, to_state: closed}\n";

static const char notice_source[] =
    "name: notice\n"
    "steps:\n"
    "  tell: {tool: tell, idempotent: true, retry: {max: 2, backoff: [1s]}, done: true}\n";

const char *const process_sources[] = {
    notice_source,     door_source,
    ORDER("paid", ""), ORDER("extra", "  extra: {tool: press, " TRIED ", next: paid}\n"),
    tree_source,       pair_source,
    trip_source,       load_source,
    desk_source,       NULL,
};

const struct order_rule order_rules[] = {
    { PROCESS_ORDER, "pick", "pack" },  { PROCESS_ORDER, "pick", "label" },
    { PROCESS_ORDER, "pack", "ship" },  { PROCESS_ORDER, "label", "ship" },
    { PROCESS_ORDER, "ship", "rest" },  { PROCESS_ORDER, "ship", "brief" },
    { PROCESS_ORDER, "paid", "sign" },  { PROCESS_ORDER, "sign", "mind" },
    { PROCESS_ORDER, "mind", "end" },   { PROCESS_TREE, "left", "risky" },
    { PROCESS_TREE, "right", "risky" }, { PROCESS_TREE, "tidy", "last" },
    { PROCESS_PAIR, "one", "both" },    { PROCESS_PAIR, "two", "both" },
    { PROCESS_TRIP, "book", "hire" },   { PROCESS_TRIP, "hire", "bill" },
    { PROCESS_TRIP, "pay", "end" },     { PROCESS_LOAD, "rows", "knock" },
    { PROCESS_LOAD, "knock", "open" },  { PROCESS_COUNT, NULL, NULL },
};
