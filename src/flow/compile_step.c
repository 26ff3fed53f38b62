/* compile_step.c - one step of a document: its tool, its args, how often and how long. */
#include "base/time.h"
#include "flow/flow_int.h"
#include "model/grow.h"
#include "model/words.h"
#include <stdio.h>

#define TIMEOUT_DEFAULT_MS 120000 /* B33 */
#define DURATION_MAX_MS    (INT64_C(100) * 366 * 86400 * 1000)
#define FACTOR_MAX         1000 /* so that a delay times its factor fits */

static const int64_t backoff_default_ms[] = { 30000, 120000, 300000 }; /* B30 */
#define BACKOFF_DEFAULT_COUNT (sizeof backoff_default_ms / sizeof backoff_default_ms[0])
#define GRAPH_ATTEMPTS        3 /* X8 */
#define TREE_ATTEMPTS         1

/* Everything of DESIGN section 4 that a later version will know. */
static const char *const reserved_words[] = {
    "branch", "parallel", "join",    "gate",       "wait",    "select",  "spawn",
    "do",     "dopar",    "try",     "rescue",     "finally", "augment", "external",
    "output", "approval", "signals", "compensate", "saga",    "map",     "schedule",
};

bool compile_is_reserved(str key)
{
    for (size_t i = 0; i < sizeof reserved_words / sizeof reserved_words[0]; i++)
        if (str_is(key, reserved_words[i]))
            return true;
    return false;
}

static const char *const step_words[] = { "name",       "description", "tool",  "args",
                                          "action",     "payload",     "retry", "timeout",
                                          "idempotent", NULL };
static const char *const retry_words[] = { "max", "backoff", NULL };
static const char *const backoff_words[] = { "initial", "factor", "max", NULL };

static bool is_one_of(str key, const char *const *words)
{
    for (; *words; words++)
        if (str_is(key, *words))
            return true;
    return false;
}

static void warn_about_key(struct compilation *compiler, const struct source_step *step,
                           const struct node *node, const char *path, const char *const *known)
{
    char before[WORDS_SIZE_MAX + 64];

    (void)snprintf(before, sizeof before, "step '%.*s': unknown key '%s",
                   STR_ARG(words_shown(step->plan.name)), path);
    compile_unknown_key(compiler, node, before, known);
}

static bool is_way_on(str key)
{
    return str_is(key, "next") || str_is(key, "done");
}

/* ---- Keys and name -------------------------------------------------------------------- */

static void check_keys(struct compilation *compiler, struct source_step *step)
{
    str name = words_shown(step->plan.name);

    for (const struct node *node = step->node->first; node; node = node->next) {
        if (is_one_of(node->key, step_words) || (is_way_on(node->key) && !compiler->is_tree))
            continue;
        step->is_refused = step->is_refused || compile_is_reserved(node->key);
        if (compile_is_reserved(node->key))
            compile_error(compiler, node,
                          "step '%.*s': '%.*s' is not supported by this version yet", STR_ARG(name),
                          STR_ARG(node->key));
        else if (is_way_on(node->key))
            compile_error(compiler, node, "step '%.*s': '%.*s' belongs to 'steps', not to 'do'",
                          STR_ARG(name), STR_ARG(node->key));
        else
            warn_about_key(compiler, step, node, "", step_words);
    }
}

static void read_name(struct compilation *compiler, struct source_step *step)
{
    const struct node *node = node_find(step->node, "name");
    str name = node ? node->text : step->plan.name;

    if (node && node->kind != NODE_STRING) {
        compile_error(compiler, node, "step '%.*s': 'name' must be a string, found %s",
                      STR_ARG(words_shown(step->plan.name)), node_kind_name(node->kind));
        return;
    }
    /* Timers of the engine's own begin with '~': "~timeout", "~retry". */
    if (str_is_blank(name) || name.size > LIMIT_NAME || name.data[0] == '~')
        compile_error(compiler, node ? node : step->node,
                      "step '%.*s': a name is 1..%d bytes, not blank, and begins without '~'",
                      STR_ARG(words_shown(name)), LIMIT_NAME);
    step->plan.name = name;
}

/* ---- Tool and args -------------------------------------------------------------------- */

/* The same thing under both seeds' names; giving both is an error. */
static const struct node *find_either(struct compilation *compiler, const struct source_step *step,
                                      const char *one, const char *other)
{
    const struct node *first = node_find(step->node, one), *second = node_find(step->node, other);

    if (first && second)
        compile_error(compiler, second, "step '%.*s': '%s' and '%s' are the same thing; keep one",
                      STR_ARG(words_shown(step->plan.name)), one, other);
    return first ? first : second;
}

static void read_tool(struct compilation *compiler, struct source_step *step)
{
    const struct node *tool = find_either(compiler, step, "tool", "action");
    str name = words_shown(step->plan.name);

    if (!tool) {
        if (!step->is_refused)
            compile_error(compiler, step->node, "step '%.*s': no 'tool'", STR_ARG(name));
    } else if (tool->kind == NODE_NULL) {
        compile_error(compiler, tool,
                      "step '%.*s': a gate (tool null) is not supported by this version yet",
                      STR_ARG(name));
    } else if (tool->kind != NODE_STRING || !definition_name_is_valid(tool->text)) {
        compile_error(compiler, tool,
                      "step '%.*s': '%.*s' must name a tool: 1..%d of A-Z a-z 0-9 . _ / -",
                      STR_ARG(name), STR_ARG(tool->key), LIMIT_NAME);
    } else {
        step->plan.tool = tool->text;
    }
}

static str print_args(struct compilation *compiler, const struct node *args)
{
    struct buf buf;
    str text;

    buf_init(&buf, compiler->scope->arena.heap, 0);
    node_print(args, &buf);
    text = buf_keep(&buf, &compiler->scope->arena);
    buf_fini(&buf);
    if (!text.data)
        compile_no_memory(compiler);
    return text;
}

static void read_args(struct compilation *compiler, struct source_step *step)
{
    const struct node *args = find_either(compiler, step, "args", "payload");
    str name = words_shown(step->plan.name);

    step->plan.args = STR("{}");
    step->plan.args_node = args;
    if (!args) {
        if (compiler->is_tree && node_find(step->node, "action")) /* C2 */
            compile_error(compiler, step->node, "step '%.*s': an 'action' needs its 'payload'",
                          STR_ARG(name));
        return;
    }
    if (args->kind != NODE_OBJECT) {
        compile_error(compiler, args, "step '%.*s': '%.*s' must be an object, found %s",
                      STR_ARG(name), STR_ARG(args->key), node_kind_name(args->kind));
        step->plan.args_node = NULL;
        return;
    }
    step->plan.args = print_args(compiler, args);
}

/* ---- How long, how often ---------------------------------------------------------------- */

static bool read_duration(struct compilation *compiler, const struct source_step *step,
                          const struct node *node, const char *what, int64_t *out_ms)
{
    if (node && node->kind == NODE_STRING && duration_parse(node->text, out_ms))
        return true;
    compile_error(compiler, node ? node : step->node,
                  "step '%.*s': %s must be a duration like \"500ms\", \"30s\" or \"5m\"",
                  STR_ARG(words_shown(step->plan.name)), what);
    return false;
}

static bool read_bool(struct compilation *compiler, const struct source_step *step, const char *key,
                      bool *out)
{
    const struct node *node = node_find(step->node, key);

    if (node && node->kind == NODE_BOOL)
        *out = node->truth;
    else if (node)
        compile_error(compiler, node, "step '%.*s': '%s' must be true or false, found %s",
                      STR_ARG(words_shown(step->plan.name)), key, node_kind_name(node->kind));
    return node != NULL;
}

static void read_attempts(struct compilation *compiler, struct source_step *step,
                          const struct node *max)
{
    int64_t count;

    if (!max)
        return;
    if (node_to_i64(max, &count) && count >= 1 && count <= LIMIT_ATTEMPTS)
        step->plan.attempt_count_max = (uint32_t)count;
    else
        compile_error(compiler, max, "step '%.*s': retry.max counts all attempts: 1..%d",
                      STR_ARG(words_shown(step->plan.name)), LIMIT_ATTEMPTS);
}

static void read_backoff_list(struct compilation *compiler, struct source_step *step,
                              const struct node *list)
{
    struct plan_step *plan = &step->plan;

    if (list->count == 0 || list->count > LIMIT_ATTEMPTS) {
        compile_error(compiler, list, "step '%.*s': retry.backoff must have 1..%d durations",
                      STR_ARG(words_shown(plan->name)), LIMIT_ATTEMPTS);
        return;
    }
    plan->backoff_count = 0;
    plan->backoff_ms = ARENA_ARRAY(&compiler->scope->arena, int64_t, list->count);
    if (!plan->backoff_ms) {
        compile_no_memory(compiler);
        return;
    }
    for (const struct node *item = list->first; item; item = item->next)
        if (read_duration(compiler, step, item, "each of retry.backoff",
                          &plan->backoff_ms[plan->backoff_count]))
            plan->backoff_count++;
}

/* "2" or "1.5" in thousandths: read as digits, because no locale may change what it means. */
static bool read_factor(const struct node *node, int64_t *out_permille)
{
    str text = node->kind == NODE_NUMBER ? node->text : STR("");
    const char *dot = memchr(text.data, '.', text.size);
    size_t whole_size = dot ? (size_t)(dot - text.data) : text.size;
    str digits = dot ? str_from(text, whole_size + 1) : STR_NONE;
    uint64_t whole, part = 0;

    if (digits.size > 3 || !str_to_u64((str){ text.data, whole_size }, &whole) ||
        whole > FACTOR_MAX || (dot && !str_to_u64(digits, &part)))
        return false;
    for (size_t i = digits.size; i < 3; i++)
        part *= 10;
    *out_permille = (int64_t)(whole * 1000 + part);
    return *out_permille >= 1000 && *out_permille <= FACTOR_MAX * INT64_C(1000);
}

static void read_backoff_growth(struct compilation *compiler, struct source_step *step,
                                const struct node *growth)
{
    const struct node *factor = node_find(growth, "factor"), *max = node_find(growth, "max");
    int64_t initial_ms, max_ms = DURATION_MAX_MS, factor_permille = 2000;

    for (const struct node *node = growth->first; node; node = node->next)
        if (!is_one_of(node->key, backoff_words))
            warn_about_key(compiler, step, node, "retry.backoff.", backoff_words);
    if (factor && !read_factor(factor, &factor_permille))
        compile_error(compiler, factor,
                      "step '%.*s': retry.backoff.factor must be 1..%d with at most three decimals",
                      STR_ARG(words_shown(step->plan.name)), FACTOR_MAX);
    if (!read_duration(compiler, step, node_find(growth, "initial"), "retry.backoff.initial",
                       &initial_ms) ||
        (max && !read_duration(compiler, step, max, "retry.backoff.max", &max_ms)))
        return;
    step->plan.backoff_ms =
        retry_expand(&compiler->scope->arena, initial_ms, factor_permille, max_ms,
                     step->plan.attempt_count_max, &step->plan.backoff_count);
    if (!step->plan.backoff_ms)
        compile_no_memory(compiler);
}

static bool set_default_backoff(struct compilation *compiler, struct plan_step *plan)
{
    plan->backoff_count = BACKOFF_DEFAULT_COUNT;
    plan->backoff_ms =
        arena_copy(&compiler->scope->arena, backoff_default_ms, sizeof backoff_default_ms);
    if (!plan->backoff_ms)
        compile_no_memory(compiler);
    return plan->backoff_ms != NULL;
}

static void read_retry(struct compilation *compiler, struct source_step *step)
{
    const struct node *retry = node_find(step->node, "retry");
    const struct node *max = node_find(retry, "max"), *backoff = node_find(retry, "backoff");
    str name = words_shown(step->plan.name);

    if (!set_default_backoff(compiler, &step->plan) || !retry)
        return;
    if (retry->kind != NODE_OBJECT) {
        compile_error(compiler, retry, "step '%.*s': 'retry' must be {max, backoff}, found %s",
                      STR_ARG(name), node_kind_name(retry->kind));
        return;
    }
    for (const struct node *node = retry->first; node; node = node->next)
        if (!is_one_of(node->key, retry_words))
            warn_about_key(compiler, step, node, "retry.", retry_words);
    read_attempts(compiler, step, max);
    if (backoff && backoff->kind == NODE_ARRAY)
        read_backoff_list(compiler, step, backoff);
    else if (backoff && backoff->kind == NODE_OBJECT)
        read_backoff_growth(compiler, step, backoff);
    else if (backoff)
        compile_error(compiler, backoff,
                      "step '%.*s': retry.backoff must be a list of durations or {initial, factor, "
                      "max}, found %s",
                      STR_ARG(name), node_kind_name(backoff->kind));
}

/* ---- The way on --------------------------------------------------------------------------- */

static void read_way_on(struct compilation *compiler, struct source_step *step)
{
    str name = words_shown(step->plan.name);
    bool is_done = false;

    read_bool(compiler, step, "done", &is_done);
    step->next = node_find(step->node, "next");
    if (step->next && is_done)
        compile_error(compiler, step->next, "step '%.*s': 'next' and 'done': it needs one way on",
                      STR_ARG(name));
    else if (step->next && step->next->kind != NODE_STRING)
        compile_error(compiler, step->next, "step '%.*s': 'next' must name a step, found %s",
                      STR_ARG(name), node_kind_name(step->next->kind));
    else if (!step->next && !is_done && !step->is_refused)
        compile_error(compiler, step->node, "step '%.*s': no way on; say 'next' or 'done: true'",
                      STR_ARG(name));
}

/* ---- The step ----------------------------------------------------------------------------- */

static struct source_step *add_step(struct compilation *compiler, const struct node *node)
{
    struct source_step *steps;

    if (compiler->count == LIMIT_STEPS) {
        compile_error(compiler, node, "more than %d steps", LIMIT_STEPS);
        return NULL;
    }
    steps = grow_array(&compiler->scope->arena, compiler->steps, compiler->count,
                       &compiler->capacity, sizeof *steps);
    if (!steps) {
        compile_no_memory(compiler);
        return NULL;
    }
    compiler->steps = steps;
    return &steps[compiler->count++];
}

void compile_step(struct compilation *compiler, const struct node *node, str key, str name)
{
    struct source_step *step = add_step(compiler, node);

    if (!step)
        return;
    *step = (struct source_step){ .node = node, .key = key };
    step->plan = (struct plan_step){
        .name = name,
        .next = STEP_NONE,
        .attempt_count_max = compiler->is_tree ? TREE_ATTEMPTS : GRAPH_ATTEMPTS,
        .timeout_ms = TIMEOUT_DEFAULT_MS,
        .is_idempotent = !compiler->is_tree,
        .result_slot = STEP_NONE,
    };
    if (node->kind != NODE_OBJECT) {
        compile_error(compiler, node, "step '%.*s': a step must be an object, found %s",
                      STR_ARG(words_shown(name)), node_kind_name(node->kind));
        return;
    }
    read_name(compiler, step);
    check_keys(compiler, step);
    read_tool(compiler, step);
    read_args(compiler, step);
    read_retry(compiler, step);
    if (step->plan.attempt_count_max == 1)
        step->plan.backoff_count = 0; /* nothing follows it */
    read_bool(compiler, step, "idempotent", &step->plan.is_idempotent);
    if (node_find(node, "timeout") && str_is(step->plan.tool, "sleep"))
        compile_error(compiler, node_find(node, "timeout"),
                      "step '%.*s': 'timeout' of a sleep is not supported by this version yet",
                      STR_ARG(words_shown(name)));
    if (node_find(node, "timeout"))
        read_duration(compiler, step, node_find(node, "timeout"), "'timeout'",
                      &step->plan.timeout_ms);
    if (!compiler->is_tree)
        read_way_on(compiler, step);
}
