/* scenario_machine.c - machines in all they can do: inline declarations, guards, reasons,
 * self-loops, metadata, versions, large payloads, expected numbers, batches, and rows that lag. */
#include "fault/scenario_int.h"

#define LARGE 20000u /* bytes: several pages of the file */

static char large[LARGE + 1]; /* a JSON string */

__attribute__((constructor)) static void fill_large(void)
{
    memset(large, 'x', LARGE);
    large[0] = large[LARGE - 1] = '"';
}

/* ---- Inline: everything that its creation can say, every refusal, a self-loop ---- */

const char machine_inline[] =
    "{ \"states\": [\"draft\",\"held\",\"sent\",\"torn\"], \"initial_state\": \"draft\", \"kept\": "
    "1.50,\n"
    "\"terminal_states\": [\"sent\",\"torn\"], \"terminal_kinds\": "
    "{\"sent\":\"success\",\"torn\":\"cancel\"},"
    "\"transitions\": ["
    "{\"from_state\":\"draft\",\"action\":\"edit\",\"to_state\":\"draft\"},"
    "{\"from_state\":\"draft\",\"action\":\"hold\",\"to_state\":\"held\",\"requires_reason\":true},"
    "{\"from_state\":\"held\",\"action\":\"send\",\"to_state\":\"sent\",\"guard\":\"signed\"},"
    "{\"from_state\":\"draft\",\"action\":\"tear\",\"to_state\":\"torn\"}]}";

static const pawl_create_args inline_create = {
    .declaration = machine_inline,
    .actor_ref = "ann",
    .correlation_id = "c-17",
    .labels = "{\"of\":\"test\",\"region\":\"eu\"}",
    .instance_metadata = "{\"n\": 1.00}",
    .input = "[1,2]",
};
static const pawl_create_args inline_again = { .declaration = machine_inline };

const struct act machine_inline_acts[] = {
    { .kind = ACT_CREATE, .create = &inline_create },
    { .kind = ACT_FIRE, .name = "edit", .payload = "{\"line\":1}" },
    { .kind = ACT_FIRE, .name = "send", .guard = true, .refusal = PAWL_INVALID_TRANSITION },
    { .kind = ACT_FIRE, .name = "hold", .refusal = PAWL_REASON_REQUIRED },
    { .kind = ACT_CREATE, .of = 1, .create = &inline_again },
    { .kind = ACT_FIRE, .name = "hold", .reason = "to be signed" },
    { .kind = ACT_FIRE, .name = "send", .refusal = PAWL_GUARD_NOT_SATISFIED },
    { .kind = ACT_FIRE, .name = "send", .guard = true },
    { .kind = ACT_FIRE, .name = "edit", .refusal = PAWL_TERMINAL },
    { .kind = ACT_CANCEL, .of = 1 },
    { .kind = ACT_CANCEL, .of = 1, .refusal = PAWL_TERMINAL },
    { 0 },
};

/* ---- Two versions, and what was begun with the first goes on by it ---- */

#define ORDER_HEAD                                                                                 \
    "name: order\ninitial_state: new\nterminal_states: [gone]\nterminal_kinds: {gone: cancel}\n"

const char machine_order_1[] = ORDER_HEAD "states: [new, paid, gone]\ntransitions:\n"
                                          "  - {from_state: new, action: pay, to_state: paid}\n"
                                          "  - {from_state: paid, action: note, to_state: paid}\n"
                                          "  - {from_state: '*', action: drop, to_state: gone}\n";
const char machine_order_2[] =
    ORDER_HEAD "states: [new, checked, paid, gone]\ntransitions:\n"
               "  - {from_state: new, action: check, to_state: checked, guard: in-stock}\n"
               "  - {from_state: checked, action: pay, to_state: paid}\n"
               "  - {from_state: paid, action: note, to_state: paid}\n"
               "  - {from_state: '*', action: drop, to_state: gone}\n";

static const pawl_create_args first_version = { .definition = "order@1", .actor_ref = "ann" };

const struct act machine_version_acts[] = {
    { .kind = ACT_DEFINE },
    { .kind = ACT_CREATE },
    { .kind = ACT_DEFINE, .source = machine_order_2, .version = 2 },
    { .kind = ACT_CREATE, .of = 1 },
    { .kind = ACT_CREATE, .of = 2, .create = &first_version },
    { .kind = ACT_FIRE, .name = "pay", .expects = true, .payload = large },
    { .kind = ACT_FIRE, .of = 1, .name = "pay", .refusal = PAWL_INVALID_TRANSITION },
    { .kind = ACT_FIRE, .of = 1, .name = "check", .guard = true, .expects = true },
    { .kind = ACT_FIRE, .of = 2, .name = "pay" },
    { .kind = ACT_SWEEP },
    { .kind = ACT_FIRE, .name = "note", .payload = large, .reason = "again" },
    { .kind = ACT_FIRE, .of = 1, .name = "pay", .expects = true },
    { .kind = ACT_CANCEL, .of = 2 },
    { 0 },
};

/* ---- Batches over several instances, with refusals among them, and a sweep in between ---- */

static const struct act batch_first[] = {
    { .kind = ACT_FIRE, .of = 0, .name = "pay", .payload = "1" },
    { .kind = ACT_FIRE, .of = 0, .name = "pay", .refusal = PAWL_INVALID_TRANSITION },
    { .kind = ACT_FIRE, .of = 1, .name = "pay" },
    { .kind = ACT_FIRE, .of = 0, .name = "note", .payload = "{\"of\":\"the same batch\"}" },
    { .kind = ACT_FIRE, .of = 2, .name = "drop" },
    { .kind = ACT_FIRE, .of = 2, .name = "pay", .refusal = PAWL_TERMINAL },
    { 0 },
};
static const struct act batch_second[] = {
    { .kind = ACT_FIRE, .of = 2, .name = "note", .refusal = PAWL_TERMINAL },
    { .kind = ACT_FIRE, .of = 1, .name = "note" },
    { .kind = ACT_FIRE, .of = 0, .name = "note", .expects = true },
    { 0 },
};
static const struct act batch_refused[] = {
    { .kind = ACT_FIRE, .of = 2, .name = "note", .refusal = PAWL_TERMINAL },
    { 0 },
};

const struct act machine_batch_acts[] = {
    { .kind = ACT_DEFINE },
    { .kind = ACT_CREATE },
    { .kind = ACT_CREATE, .of = 1 },
    { .kind = ACT_CREATE, .of = 2 },
    { .kind = ACT_BATCH, .fires = batch_first },
    { .kind = ACT_SWEEP },
    { .kind = ACT_BATCH, .fires = batch_second },
    { .kind = ACT_BATCH, .fires = batch_refused },
    { .kind = ACT_FIRE, .of = 1, .name = "note" },
    { .kind = ACT_SWEEP },
    { .kind = ACT_FIRE, .of = 0, .name = "drop" },
    { 0 },
};

/* ---- Deadlines: one is disarmed because its state is left, one fires ---- */

const char machine_claim[] = "name: claim\nstates: [open, asked, lapsed, void]\n"
                             "initial_state: open\nterminal_states: [lapsed, void]\n"
                             "terminal_kinds: {lapsed: failure, void: cancel}\ntransitions:\n"
                             "  - {from_state: open, action: ask, to_state: asked}\n"
                             "  - {from_state: open, action: drop, to_state: void}\n"
                             "  - {from_state: asked, action: ask, to_state: asked}\n"
                             "  - {from_state: asked, action: lapse, to_state: lapsed}\n"
                             "deadlines:\n"
                             "  - {state: open, after: 30s, action: drop}\n"
                             "  - {state: asked, after: 60s, action: lapse}\n";

/* However often time has to be moved again: it fires once. */
const struct act machine_deadline_acts[] = {
    { .kind = ACT_DEFINE },
    { .kind = ACT_CREATE },
    { .kind = ACT_FIRE, .name = "ask" },
    { .kind = ACT_CREATE, .of = 1 },
    { .kind = ACT_FIRE, .name = "ask" }, /* counted anew */
    { .kind = ACT_ADVANCE, .by_ms = 30000 },
    { .kind = ACT_ADVANCE, .by_ms = 30000 },
    { .kind = ACT_FIRE, .name = "ask", .refusal = PAWL_TERMINAL },
    { .kind = ACT_FIRE, .of = 1, .name = "ask", .refusal = PAWL_TERMINAL },
    { 0 },
};

/* ---- Held: what falls due waits until it is let go; cancel alone is taken ---- */

const struct act machine_held_acts[] = {
    { .kind = ACT_DEFINE },
    { .kind = ACT_CREATE },
    { .kind = ACT_FIRE, .name = "ask" },
    { .kind = ACT_CREATE, .of = 1 },
    { .kind = ACT_CREATE, .of = 2 },
    { .kind = ACT_RESUME, .of = 2 }, /* it is not held: no mistake */
    { .kind = ACT_PAUSE },
    { .kind = ACT_FIRE, .name = "ask", .refusal = PAWL_PAUSED },
    { .kind = ACT_PAUSE },
    { .kind = ACT_PAUSE, .of = 1 },
    { .kind = ACT_SWEEP },
    { .kind = ACT_CANCEL, .of = 1 },
    { .kind = ACT_PAUSE, .of = 1, .refusal = PAWL_TERMINAL },
    { .kind = ACT_ADVANCE, .by_ms = 60000 },
    { .kind = ACT_FIRE, .of = 2, .name = "ask", .refusal = PAWL_TERMINAL },
    { .kind = ACT_FIRE, .name = "ask", .refusal = PAWL_PAUSED },
    { .kind = ACT_RESUME },
    { .kind = ACT_SWEEP },
    { .kind = ACT_RESUME, .refusal = PAWL_TERMINAL },
    { 0 },
};
