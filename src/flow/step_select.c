/* step_select.c - a step that waits for the first of several things: `select`. Each arm has its
 * own way on, and the result says which arm it was: {"arm":N,"payload":X}. */
#include "flow/compile.h"

/* Keys: a step that selects. */
static const struct known_key select_keys[] = {
    { "select", "[ARM, ...]", "waits for the first of several things", NULL },
    { 0 },
};

/* Keys: an arm in a graph, beside those of `wait`. */
static const struct known_key arm_keys[] = {
    { "then", "STEP", "the step that follows", "do", "required" },
    { 0 },
};

/* Keys: an arm in a tree, beside those of `wait`. */
static const struct known_key tree_arm_keys[] = {
    { "do", "[STEP, ...]", "what follows", "then", "nothing" },
    { 0 },
};

static void select_compile(struct source_step *step, const struct node *select)
{
    if (select->kind != NODE_ARRAY || select->count == 0)
        step_error(step, select, "'select' must be a list of arms");
    else
        arms_compile(step, select->first, step->compiler->is_tree ? tree_arm_keys : arm_keys,
                     false);
    step->plan.args_node = select;
}

static uint32_t select_arm_count(const struct node *step)
{
    const struct node *arms = node_find(step, "select");

    return arms->kind == NODE_ARRAY ? arms->count : 0;
}

static const struct node *select_arm(const struct node *step, uint32_t arm)
{
    return node_find(node_at(node_find(step, "select"), arm), "do");
}

static pawl_status select_result(struct turn *turn, const struct attempt *attempt, uint32_t arm,
                                 str payload, str *out)
{
    struct buf buf;

    (void)attempt;
    buf_init(&buf, turn->scope->arena.heap, 2 * (size_t)LIMIT_TEXT);
    json_open(&buf, '{');
    json_put_u64(&buf, "arm", arm);
    json_put_raw(&buf, "payload", payload);
    json_close(&buf, '}');
    *out = turn_take(turn, &buf);
    return turn->status;
}

/* Exactly as select_result() prints it. */
static bool select_read(str result, uint32_t *arm, str *payload)
{
    static const str middle = STR_INIT(",\"payload\":");
    uint64_t n;

    if (!str_starts(result, STR("{\"arm\":")) || result.data[result.size - 1] != '}')
        return false;
    result = str_from(result, sizeof "{\"arm\":" - 1);
    for (size_t size = 1; size < result.size; size++)
        if (str_starts(str_from(result, size), middle) &&
            str_to_u64((str){ result.data, size }, &n)) {
            *arm = (uint32_t)n;
            *payload = str_from(result, size + middle.size);
            payload->size--;
            return true;
        }
    return false;
}

const struct step_kind step_kind_select = {
    .word = "select",
    .about = "waits for the first of several times and signals",
    .key = "select",
    .keys = select_keys,
    .is_alone = true,
    .has_own_args = true,
    .has_arms = true,
    .leads_by_arm = true,
    .look = LOOK_WAIT,
    .compile = select_compile,
    .arm_count = select_arm_count,
    .arm = select_arm,
    .begin = arms_begin,
    .arm_result = select_result,
    .read_arm = select_read,
};
