/* step_map.c - steps for each item of a list: `map`.
 *
 * Each step that is done for an item is a step of the plan of its own, whose `of` names the map and
 * whose `after` the step that follows it for the same item. The map begins with an entry that has
 * the list, and ends when its items have (map_items.c). */
#include "base/json_scan.h"
#include "flow/compile.h"
#include "flow/map_items.h"

/* Keys: steps for each item of a list. */
static const struct known_key map_step_keys[] = {
    { "map", "{over, step | do}", "does steps for each item of a list", "foreach" },
    { 0 },
};

/* Keys: `map`. */
static const struct known_key map_keys[] = {
    { "over", "TEMPLATE", "the list; at most @LIMIT_MAP_ITEMS@ items", "items", "required" },
    { "step", "STEP", "what is done for each item", NULL, "this or `do`" },
    { "do", "[STEP, ...]", "what is done for each item, one after the other", "steps",
      "this or `step`" },
    { "as", "NAME", "the root by which templates of the step see the item", NULL, "item" },
    { "max_parallel", "NUMBER", "how many items are under way at once", "parallel", "no limit" },
    { "tolerate", "NUMBER or all", "how many items may fail", NULL, "0" },
    { "collect", "true | false", "whether the result lists those of the items", NULL, "true" },
    { 0 },
};

/* ---- Compiling ------------------------------------------------------------------------------ */

static void check_as(const struct source_step *step, const struct node *as)
{
    static const char *const taken[] = { "input",    "context", "steps", "result",
                                         "instance", "index",   "error", NULL };
    bool is_name = as->kind == NODE_STRING && as->text.size > 0 && as->text.size <= LIMIT_NAME &&
                   !str_is_one_of(as->text, taken);

    for (size_t i = 0; i < as->text.size && is_name; i++)
        is_name = as->text.data[i] == '_' || (as->text.data[i] >= 'a' && as->text.data[i] <= 'z') ||
                  (as->text.data[i] >= 'A' && as->text.data[i] <= 'Z') ||
                  (i > 0 && as->text.data[i] >= '0' && as->text.data[i] <= '9');
    if (!is_name)
        step_error(step, as,
                   "map.as must be a name of letters, digits and _ that is no other root");
}

static void check_number(const struct source_step *step, const struct node *node, int64_t least,
                         const char *expected)
{
    int64_t n;

    if (node && (!node_to_i64(node, &n) || n < least || n > (int64_t)LIMIT_MAP_ITEMS))
        step_error(step, node, "map.%.*s must be %s", STR_ARG(node->key), expected);
}

static void check_over(const struct source_step *step, const struct node *over)
{
    if (!over)
        step_error(step, NULL, "a map needs 'over: LIST'");
    else if (over->kind == NODE_ARRAY && over->count > LIMIT_MAP_ITEMS)
        step_error(step, over, "map.over has %u items, at most %u are possible", over->count,
                   LIMIT_MAP_ITEMS);
    else if (over->kind != NODE_ARRAY && (over->kind != NODE_STRING || !template_has(over->text)))
        step_error(step, over, "map.over must be a list or a template like \"{{input.items}}\"");
}

/* What the step has no use for: its attempts, its time and its way are those of the items. */
static void refuse_others(const struct source_step *step)
{
    const struct node *idempotent = node_find(step->node, "idempotent");

    if (idempotent)
        step_error(step, idempotent, "'idempotent' belongs to map.step");
}

/* One step, or a list of them. */
static void check_body(const struct source_step *step, const struct node *map)
{
    const struct node *one = node_find(map, "step"), *list = node_find(map, "do");

    if (one && list)
        step_error(step, list, "a map has 'step' or 'do', not both");
    else if (!one && !list)
        step_error(step, map, "a map needs 'step: STEP' or 'do: [STEP, ...]'");
    else if (one && one->kind == NODE_ARRAY)
        step_error(step, one, "map.step must be one step; a list of them is written as 'do'");
    else if (list && (list->kind != NODE_ARRAY || list->count == 0))
        step_error(step, list, "map.do must be a list of steps");
}

static void map_compile(struct source_step *step, const struct node *map)
{
    const struct node *tolerate = node_find(map, "tolerate"), *as = node_find(map, "as");
    const struct node *collect = node_find(map, "collect");
    struct buf buf;

    if (!step_expect(step, map, NODE_OBJECT, "{over, step} or {over, do}"))
        return;
    compile_keys(step->compiler, step, map, map_keys, "map.");
    refuse_others(step);
    check_body(step, map);
    check_over(step, node_find(map, "over"));
    if (as)
        check_as(step, as);
    check_number(step, node_find(map, "max_parallel"), 1, "a number from 1");
    if (!tolerate || tolerate->kind != NODE_STRING || !str_is(tolerate->text, "all"))
        check_number(step, tolerate, 0, "a number from 0, or 'all'");
    if (collect && collect->kind != NODE_BOOL)
        step_error(step, collect, "map.collect must be true or false");
    step->plan.args_node = node_find(map, "over");
    buf_init(&buf, step->compiler->scope->arena.heap, 0);
    json_open(&buf, '{');
    for (const struct node *node = map->first; node; node = node->next)
        if (!key_is_free(node->key) && !str_is(node->key, "step") && !str_is(node->key, "do")) {
            json_key_str(&buf, node->key);
            node_print(node, &buf);
        }
    json_close(&buf, '}');
    step->plan.args = compile_take(step->compiler, &buf);
}

static const struct node *map_body(const struct node *map)
{
    const struct node *one = node_find(map, "step"), *list = node_find(map, "do");

    if (one)
        return one->kind == NODE_ARRAY ? NULL : one;
    return list && list->kind == NODE_ARRAY ? list : NULL;
}

/* ---- Deciding -------------------------------------------------------------------------------- */

static pawl_status expand_list(struct turn *turn, const struct plan_step *step, str *out)
{
    struct template_source source = turn_step_source(turn, step);
    const struct node *over = node_find(step->args_node, "over");
    struct node list;

    if (!over)
        return begin_refuse(turn, "over", "a list", NULL);
    TRY(template_expand_node(&source, over, turn->scope, out));
    json_peek(&turn->scope->arena, *out, &list);
    TRY_MEMORY(turn->scope, !turn->scope->arena.failed);
    if (list.kind != NODE_ARRAY)
        return begin_refuse(turn, "over", "a list", &(struct node){ .raw = *out });
    return PAWL_OK;
}

/* The entry that begins it has the list, so that its items are these for ever. */
static void map_begun(struct turn *turn, const struct attempt *attempt)
{
    const struct plan_step *step = &turn->plan->steps[attempt->plan];
    str list = STR_NONE;
    pawl_status status = expand_list(turn, step, &list);

    if (status == PAWL_OK)
        status = map_open(turn, attempt, list);
    if (status_is_trouble(status))
        turn->status = status;
    else if (status != PAWL_OK)
        step_fail(turn, LIFE_T_STEP_FAIL, attempt, RETRY_FAILED, turn_take_error(turn));
}

static void map_note(const struct plan_step *step, struct buf *out)
{
    const struct node *over = node_find(step->args_node, "over");

    buf_str(out, STR("for each of "));
    buf_str(out, over && over->kind == NODE_STRING ? over->text : STR("a list"));
}

const struct step_kind step_kind_map = {
    .word = "map",
    .about = "does steps for each item of a list",
    .key = "map",
    .keys = map_step_keys,
    .is_alone = true,
    .has_own_args = true,
    .is_tried_once = true,
    .look = LOOK_STEP,
    .note = map_note,
    .compile = map_compile,
    .body = map_body,
    .begun = map_begun,
};
