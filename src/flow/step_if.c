/* step_if.c - a condition in a tree: `if`, `then`, `elif`, `else`.
 *
 * It is decided in the decision that begins it, with an entry of its own whose result says which
 * arm was taken: {"arm":N}. The arms are those of a select (plan_tree.c); the last is the `else`,
 * which does nothing where it is not written. */
#include "base/json_scan.h"
#include "flow/compile.h"

/* Keys: a step that decides. */
static const struct known_key if_keys[] = {
    { "if", "CONDITION", "when `then` is done", NULL },
    { "then", "[STEP, ...]", "what is done then", "do", "required" },
    { "elif", "[{if, then}, ...]", "other conditions, asked in their order", "elseif", "none" },
    { "else", "[STEP, ...]", "what is done if none of them holds", "otherwise", "nothing" },
    { 0 },
};

/* Keys: each of `elif`. */
static const struct known_key elif_keys[] = {
    { "if", "CONDITION", "when `then` is done", NULL, "required" },
    { "then", "[STEP, ...]", "what is done then", "do", "required" },
    { 0 },
};

/* ---- Compiling ------------------------------------------------------------------------------ */

/* What a step that is decided at once has no use for. */
static void refuse_others(const struct source_step *step)
{
    static const char *const words[] = { "timeout", "idempotent", "augment", NULL };

    for (const struct node *node = step->node->first; node; node = node->next)
        if (str_is_one_of(node->key, words))
            step_error(step, node, "an 'if' is decided at once and has no result; remove '%.*s'",
                       STR_ARG(node->key));
}

static void print_arm(struct source_step *step, const struct node *arm, struct buf *out)
{
    const struct node *condition = node_find(arm, "if"), *then = node_find(arm, "then");

    if (!then)
        step_error(step, arm, "an 'if' needs 'then: [STEP, ...]'");
    if (!condition || condition->kind != NODE_STRING) {
        step_error(step, condition ? condition : arm, "'if' must be a condition in quotes");
        return;
    }
    compile_condition(step, condition, "has no 'result' here; name the step: steps.NAME.result");
    json_open(out, '{');
    json_put_str(out, "if", condition_text(condition));
    json_close(out, '}');
}

static void print_arms(struct source_step *step, struct buf *out)
{
    const struct node *elif = node_find(step->node, "elif");

    print_arm(step, step->node, out);
    if (elif && !step_expect(step, elif, NODE_ARRAY, "a list of {if, then}"))
        return;
    for (const struct node *arm = elif ? elif->first : NULL; arm; arm = arm->next)
        if (arm->kind == NODE_OBJECT) {
            compile_keys(step->compiler, step, arm, elif_keys, "elif.");
            print_arm(step, arm, out);
        } else {
            step_error(step, arm, "each of 'elif' is {if, then}, found %s",
                       node_kind_name(arm->kind));
        }
    json_open(out, '{');
    json_put_text(out, "else", "");
    json_close(out, '}');
}

static void if_compile(struct source_step *step, const struct node *node)
{
    struct buf buf;

    if (!step->compiler->is_tree)
        step_error(step, node, "'if' belongs to a tree; in 'steps' write 'branch'");
    refuse_others(step);
    buf_init(&buf, step->compiler->scope->arena.heap, 0);
    json_open(&buf, '{');
    json_put_open(&buf, "arms", '[');
    print_arms(step, &buf);
    json_close(&buf, ']');
    json_close(&buf, '}');
    step->plan.args = compile_take(step->compiler, &buf);
}

static const struct node *if_arm(const struct node *step, uint32_t arm)
{
    const struct node *elif = node_find(step, "elif");
    uint32_t count = elif && elif->kind == NODE_ARRAY ? elif->count : 0;

    if (arm == 0)
        return node_find(step, "then");
    return arm <= count ? node_find(node_at(elif, arm - 1), "then") : node_find(step, "else");
}

static uint32_t if_arm_count(const struct node *step)
{
    const struct node *elif = node_find(step, "elif");

    return 2 + (elif && elif->kind == NODE_ARRAY ? elif->count : 0);
}

/* A name that its conditions use must be a step's. */
static void if_check(const struct source_step *step)
{
    const struct node *elif = node_find(step->node, "elif");

    compile_check_named(step, node_find(step->node, "if"));
    for (const struct node *arm = elif ? elif->first : NULL; arm; arm = arm->next)
        compile_check_named(step, node_find(arm, "if"));
}

/* ---- Deciding -------------------------------------------------------------------------------- */

/* The conditions as targets, the last of which always holds. NULL: no memory. */
static struct plan_target *list_arms(const struct plan_step *step, struct arena *arena,
                                     uint32_t *count)
{
    const struct node *arms = plan_arms(step);
    struct plan_target *targets = ARENA_ARRAY(arena, struct plan_target, arms->count + 1);

    *count = 0;
    for (const struct node *arm = arms->first; arm && targets; arm = arm->next) {
        const struct node *condition = node_find(arm, "if");

        targets[(*count)++].condition = condition ? condition->text : STR_NONE;
    }
    return targets;
}

static pawl_status choose_arm(struct turn *turn, const struct plan_step *step, uint32_t *out)
{
    struct template_source source = turn_step_source(turn, step);
    uint32_t count;
    struct plan_target *targets = list_arms(step, &turn->scope->arena, &count);
    str error = STR_NONE;

    TRY_MEMORY(turn->scope, targets);
    if (source.last_error)
        TRY(memory_text(turn->memory, source.last_error, turn->scope, &error));
    return condition_first(turn->scope, &source, step, targets, count, error, out);
}

static void if_begun(struct turn *turn, const struct attempt *attempt)
{
    const struct plan_step *step = &turn->plan->steps[attempt->plan];
    uint32_t arm = 0;
    pawl_status status = choose_arm(turn, step, &arm);
    struct buf buf;

    if (status_is_trouble(status)) {
        turn->status = status;
    } else if (status != PAWL_OK) {
        step_fail(turn, LIFE_T_STEP_FAIL, attempt, RETRY_FAILED, turn_take_error(turn));
    } else {
        buf_init(&buf, turn->scope->arena.heap, 0);
        json_open(&buf, '{');
        json_put_u64(&buf, "arm", arm);
        json_close(&buf, '}');
        step_take_arm(turn, attempt, turn_take(turn, &buf), arm);
    }
}

const struct step_kind step_kind_if = {
    .word = "condition",
    .about = "chooses what is done next, in a tree",
    .key = "if",
    .keys = if_keys,
    .is_alone = true,
    .has_own_args = true,
    .leads_by_arm = true,
    .is_tried_once = true,
    .is_without_result = true,
    .look = LOOK_WAIT,
    .compile = if_compile,
    .check = if_check,
    .arm = if_arm,
    .arm_count = if_arm_count,
    .begun = if_begun,
};
