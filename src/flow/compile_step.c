/* compile_step.c - one step of a document: its keys, its name, its kind, how long, how often. */
#include "base/grow.h"
#include "base/time.h"
#include "flow/compile.h"

#define GRAPH_ATTEMPTS    3 /* X8 */
#define TREE_ATTEMPTS     1
#define AUGMENT_DEPTH_MAX 16 /* keys in a path: a context stays readable, and bounded */

/* ---- Keys and name -------------------------------------------------------------------- */

static void refuse_key(struct source_step *step, const struct node *node,
                       const struct known_key *const *tables)
{
    if (keys_have(way_keys, node->key))
        step_error(step, node, "'%.*s' belongs to 'steps', not to %s", STR_ARG(node->key),
                   step->plan.undoes != STEP_NONE ? "a compensation"
                   : step->plan.of == STEP_NONE   ? "a tree"
                                                  : "a step of a map");
    else
        compile_refuse_key(step->compiler, step, node, tables, "", "");
}

/* The tables of the keys that a step may have: of every step, of each kind, of its way on in a
 * graph, and of the flow if the document is this one step. */
static void check_keys(struct source_step *step)
{
    const struct known_key *tables[STEP_KIND_COUNT + 4] = { step_keys };
    uint32_t count = 1;

    for (uint32_t i = 0; i < STEP_KIND_COUNT; i++)
        if (step_kinds[i]->keys)
            tables[count++] = step_kinds[i]->keys;
    if (!step->compiler->is_tree && step->plan.of == STEP_NONE && step->plan.undoes == STEP_NONE)
        tables[count++] = way_keys;
    if (step->node == step->compiler->leaf)
        tables[count] = flow_keys;
    for (const struct node *node = step->node->first; node; node = node->next)
        if (!compile_has_key(tables, node->key))
            refuse_key(step, node, tables);
}

/* The keys of a kind that stands alone belong to steps that have its own key. */
static void check_kind_keys(const struct source_step *step)
{
    for (uint32_t i = 0; i < STEP_KIND_COUNT; i++) {
        const struct step_kind *kind = step_kinds[i];

        if (!kind->is_alone || node_find(step->node, kind->key))
            continue;
        for (const struct known_key *key = kind->keys; key->word; key++)
            if (node_find(step->node, key->word))
                step_error(step, node_find(step->node, key->word),
                           "'%s' belongs to a step with '%s'", key->word, kind->key);
    }
}

static void read_name(struct source_step *step)
{
    const struct node *node = node_find(step->node, "name");
    str name = node ? node->text : step->plan.name;

    if (node && !step_expect(step, node, NODE_STRING, "a string"))
        return;
    /* Timers of the engine's own begin with '~': "~timeout", "~retry". A leaf's path is as long as
     * its tree is deep. */
    if (str_is_blank(name) || (name.size > LIMIT_NAME && (node || !step->compiler->is_tree)) ||
        name.data[0] == '~')
        compile_error(step->compiler, node ? node : step->node,
                      "step '%.*s': a name is 1..%d bytes, not blank, and begins without '~'",
                      STR_ARG(words_shown(name)), LIMIT_NAME);
    step->plan.name = name;
}

/* ---- How long, and whether again ------------------------------------------------------- */

bool compile_duration(const struct source_step *step, const struct node *node, const char *what,
                      int64_t *out_ms)
{
    if (node && node->kind == NODE_STRING && duration_parse(node->text, out_ms))
        return true;
    step_error(step, node, "%s must be a duration like \"500ms\", \"30s\" or \"5m\"", what);
    return false;
}

/* ---- What it puts into the context -------------------------------------------------------- */

static bool is_path(str path)
{
    uint32_t depth = 1;

    if (path.size == 0 || path.size > LIMIT_ACTION || path.data[0] == '.' ||
        path.data[path.size - 1] == '.')
        return false;
    for (size_t i = 1; i < path.size; i++) {
        depth += path.data[i] == '.';
        if (path.data[i] == '.' && path.data[i - 1] == '.')
            return false;
    }
    return depth <= AUGMENT_DEPTH_MAX;
}

static void read_augment(struct source_step *step)
{
    const struct node *augment = node_find(step->node, "augment");
    struct plan_step *plan = &step->plan;

    if (!augment)
        return;
    plan->augments =
        ARENA_ARRAY(&step->compiler->scope->arena, struct plan_augment, augment->count + 1);
    if (!plan->augments)
        return;
    (void)step_expect(step, augment, NODE_OBJECT, "{DEST: SOURCE}");
    for (const struct node *node = augment->first; node; node = node->next) {
        if (!is_path(node->key) || node->kind != NODE_STRING || !is_path(node->text))
            step_error(step, node,
                       "'augment' takes dotted paths of 1..%d keys: DEST of the "
                       "context, SOURCE of the result, or 'identity' for all of it",
                       AUGMENT_DEPTH_MAX);
        plan->augments[plan->augment_count++] = (struct plan_augment){ node->key, node->text };
    }
}

/* ---- The step ----------------------------------------------------------------------------- */

static struct source_step *add_step(struct compilation *compiler, const struct node *node)
{
    bool has_room = compiler->count < LIMIT_STEPS;

    if (!has_room)
        compile_error(compiler, node, "more than %d steps", LIMIT_STEPS);
    return has_room && GROW(&compiler->scope->arena, compiler->steps, compiler->count,
                            compiler->capacity)
               ? &compiler->steps[compiler->count++]
               : NULL;
}

/* The kind whose key stands alone, or else what step_tool.c makes of it. NULL, and reported:
 * several. */
static const struct step_kind *choose_kind(const struct source_step *step)
{
    static const char *const others[] = { "tool", "action", "external", NULL };
    const struct step_kind *found = NULL;
    const struct node *first = NULL, *second = NULL;

    for (uint32_t i = 0; i < STEP_KIND_COUNT; i++) {
        const struct step_kind *kind = step_kinds[i];
        const struct node *node = kind->is_alone ? node_find(step->node, kind->key) : NULL;

        if (node && found)
            second = node;
        if (node && !found) {
            first = node;
            found = kind;
        }
    }
    for (const char *const *other = others; found && !second && *other; other++)
        second = node_find(step->node, *other);
    if (second)
        step_error(step, NULL, "'%.*s' and '%.*s' do not go together; keep one",
                   STR_ARG(first->key), STR_ARG(second->key));
    return second ? NULL : found ? found : step->plan.kind;
}

static void read_kind(struct source_step *step)
{
    const struct step_kind *kind = choose_kind(step);
    const struct node *retry = node_find(step->node, "retry");

    if (kind) {
        step->plan.kind = kind;
        kind->compile(step, node_find(step->node, kind->key));
    }
    kind = step->plan.kind;
    if (!kind->is_tool) /* only what is taken to a tool is tried again unasked */
        step->plan.attempt_count_max = 1;
    if (retry && kind->is_tried_once)
        step_error(step, retry, "a %s is not tried again", kind->word);
    gate_compile(step);
}

/* An item's step leads nowhere, and what it brings is in its map's result. */
static void check_body(const struct source_step *step)
{
    if (step->plan.kind->leads_by_arm)
        step_error(step, NULL, "a %s cannot be a step of a map; let it spawn a child",
                   step->plan.kind->word);
    if (step->plan.augment_count > 0)
        step_error(step, node_find(step->node, "augment"),
                   "a step of a map puts nothing into the context; write 'augment' beside 'map'");
}

/* Only what is called waits for someone to take it. */
static void read_worker(struct source_step *step)
{
    const struct node *wait = node_find(step->node, "wait_for_worker");

    if (wait && !step->plan.kind->is_taken)
        step_error(step, wait, "'wait_for_worker' belongs to a step that calls a tool");
    else if (wait && compile_duration(step, wait, "'wait_for_worker'", &step->plan.worker_ms) &&
             step->plan.worker_ms == 0)
        step_error(step, wait, "'wait_for_worker' must be more than 0");
}

static void read_step(struct source_step *step)
{
    const struct node *timeout = node_find(step->node, "timeout");
    const struct node *idempotent = node_find(step->node, "idempotent");

    read_name(step);
    check_keys(step);
    check_kind_keys(step);
    read_kind(step);
    compile_retry(step);
    if (step->plan.attempt_count_max == 1)
        step->plan.backoff_count = 0; /* nothing follows it */
    if (timeout && compile_duration(step, timeout, "'timeout'", &step->plan.timeout_ms) &&
        step->plan.timeout_ms == 0)
        step_error(step, timeout, "'timeout' must be more than 0");
    read_worker(step);
    if (idempotent && step_expect(step, idempotent, NODE_BOOL, "true or false")) {
        step->plan.is_idempotent = idempotent->truth;
        step->plan.is_once = !idempotent->truth;
    }
    read_augment(step);
    compile_quotas(step);
    compile_compensate(step);
    if (step->plan.undoes != STEP_NONE)
        compile_check_undo(step);
    else if (step->plan.of != STEP_NONE)
        check_body(step);
    else if (!step->compiler->is_tree)
        compile_way(step);
}

/* One step for each item is a step of its own, named after its map unless it has a name. Steps may
 * move while they grow: the index is what lasts. */
static uint32_t compile_item(struct compilation *compiler, uint32_t map, const struct node *node,
                             uint32_t place)
{
    uint32_t index;
    struct buf name;

    buf_init(&name, compiler->scope->arena.heap, 0);
    buf_fmt(&name, "%.*s.map.%u", STR_ARG(compiler->steps[map].plan.name), place);
    compiler->of = map;
    index = compile_step(compiler, node, STR_NONE, compile_take(compiler, &name));
    compiler->of = STEP_NONE;
    return index;
}

/* The steps for each item: one, or a list of them. */
static void compile_body(struct compilation *compiler, uint32_t index)
{
    const struct source_step *step = &compiler->steps[index];
    const struct step_kind *kind = step->plan.kind;
    const struct node *map = kind->body ? node_find(step->node, kind->key) : NULL;
    const struct node *body = map ? kind->body(map) : NULL;
    uint32_t before = STEP_NONE, place = 0;

    if (!map || map->kind != NODE_OBJECT || !body)
        return;
    if (step->plan.of != STEP_NONE) {
        step_error(step, map, "a %s cannot be the step of another one; let it spawn a child",
                   kind->word);
        return;
    }
    if (body->kind != NODE_ARRAY)
        compile_item(compiler, index, body, 0);
    for (const struct node *node = body->kind == NODE_ARRAY ? body->first : NULL; node;
         node = node->next) {
        uint32_t next = compile_item(compiler, index, node, place++);

        if (before != STEP_NONE && next != STEP_NONE)
            compiler->steps[before].plan.after = next;
        before = next;
    }
}

/* What its document does not say. */
static struct plan_step new_step(const struct compilation *compiler, str name, const char *kind)
{
    return (struct plan_step){
        .name = name,
        .kind = step_kind_find(str_of(kind), STR_NONE),
        .args = STR("{}"),
        .way = compiler->is_tree ? WAY_TREE : WAY_DONE,
        .attempt_count_max =
            compiler->is_tree && compiler->undoes == STEP_NONE ? TREE_ATTEMPTS : GRAPH_ATTEMPTS,
        .approval_count = 1,
        .is_idempotent = !compiler->is_tree || compiler->undoes != STEP_NONE,
        .result_slot = STEP_NONE,
        .of = compiler->of,
        .after = STEP_NONE,
        .undoes = compiler->undoes,
    };
}

uint32_t compile_step(struct compilation *compiler, const struct node *node, str key, str name)
{
    struct source_step *step = add_step(compiler, node);
    uint32_t index;

    if (!step)
        return STEP_NONE;
    *step = (struct source_step){ .compiler = compiler, .node = node, .key = key };
    step->plan = new_step(compiler, name, "tool");
    index = compiler->count - 1;
    if (node->kind == NODE_OBJECT)
        read_step(step);
    else
        step_error(step, NULL, "a step must be an object, found %s", node_kind_name(node->kind));
    compile_body(compiler, index);
    compile_undo(compiler, index);
    return index;
}

/* The step of a group with a limit in time or attempts of its own (group.c). */
uint32_t compile_limits(struct compilation *compiler, const struct node *group, str name)
{
    const struct node *timeout = node_find(group, "timeout");
    struct source_step *step = add_step(compiler, group);

    if (!step)
        return STEP_NONE;
    *step = (struct source_step){ .compiler = compiler, .node = group, .key = STR_NONE };
    step->plan = new_step(compiler, name, "group");
    step->plan.attempt_count_max = 1;
    step->plan.is_idempotent = true;
    compile_retry(step);
    if (step->plan.attempt_count_max == 1)
        step->plan.backoff_count = 0; /* nothing follows it */
    if (timeout && compile_duration(step, timeout, "'timeout'", &step->plan.timeout_ms) &&
        step->plan.timeout_ms == 0)
        step_error(step, timeout, "'timeout' must be more than 0");
    return compiler->count - 1;
}
