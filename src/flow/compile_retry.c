/* compile_retry.c - how often a step is tried, and after how long (B29, B30, X8). */
#include "flow/compile.h"

#define DURATION_MAX_MS (INT64_C(100) * 366 * 86400 * 1000)
#define FACTOR_MAX      1000 /* so that a delay times its factor fits */
#define FACTOR_PRESET   2

static const int64_t backoff_default_ms[] = { 30000, 120000, 300000 }; /* B30 */
#define BACKOFF_DEFAULT_COUNT (sizeof backoff_default_ms / sizeof backoff_default_ms[0])

static void read_attempts(struct source_step *step, const struct node *max)
{
    int64_t count;

    if (!max)
        return;
    if (node_to_i64(max, &count) && count >= 1 && count <= LIMIT_ATTEMPTS)
        step->plan.attempt_count_max = (uint32_t)count;
    else
        step_error(step, max, "retry.max counts all attempts: 1..%d", LIMIT_ATTEMPTS);
}

static void read_backoff_list(struct source_step *step, const struct node *list)
{
    struct plan_step *plan = &step->plan;

    if (list->count == 0 || list->count > LIMIT_ATTEMPTS) {
        step_error(step, list, "retry.backoff must have 1..%d durations", LIMIT_ATTEMPTS);
        return;
    }
    plan->backoff_count = 0;
    plan->backoff_ms = ARENA_ARRAY(&step->compiler->scope->arena, int64_t, list->count);
    for (const struct node *item = list->first; item && plan->backoff_ms; item = item->next)
        if (compile_duration(step, item, "each of retry.backoff",
                             &plan->backoff_ms[plan->backoff_count]))
            plan->backoff_count++;
}

/* "2" or "1.5" in thousandths: read as digits, because no locale may change what it means. */
static bool read_permille(const struct node *node, int64_t most, int64_t *out)
{
    str text = node->kind == NODE_NUMBER ? node->text : STR("");
    str digits = str_after(text, '.');
    uint64_t whole, part = 0;

    if (digits.size > 3 || !str_to_u64(str_before(text, '.'), &whole) || whole > (uint64_t)most ||
        (digits.data && !str_to_u64(digits, &part)))
        return false;
    for (size_t i = digits.size; i < 3; i++)
        part *= 10;
    *out = (int64_t)(whole * 1000 + part);
    return *out <= most * 1000;
}

static void read_backoff_growth(struct source_step *step, const struct node *growth)
{
    const struct node *factor = node_find(growth, "factor"), *max = node_find(growth, "max");
    const struct node *jitter = node_find(growth, "jitter");
    int64_t initial_ms, max_ms = DURATION_MAX_MS, factor_permille = FACTOR_PRESET * 1000,
                        jitter_permille = 0;

    compile_keys(step->compiler, step, growth, backoff_keys, "retry.backoff.");
    if (factor && (!read_permille(factor, FACTOR_MAX, &factor_permille) || factor_permille < 1000))
        step_error(step, factor, "retry.backoff.factor must be 1..%d with at most three decimals",
                   FACTOR_MAX);
    if (jitter && !read_permille(jitter, 1, &jitter_permille))
        step_error(step, jitter, "retry.backoff.jitter must be 0..1 with at most three decimals");
    if (!compile_duration(step, node_find(growth, "initial"), "retry.backoff.initial",
                          &initial_ms) ||
        (max && !compile_duration(step, max, "retry.backoff.max", &max_ms)))
        return;
    step->plan.jitter_permille = (uint32_t)jitter_permille;
    step->plan.backoff_ms =
        retry_expand(&step->compiler->scope->arena, initial_ms, factor_permille, max_ms,
                     step->plan.attempt_count_max, &step->plan.backoff_count);
}

/* `on` and `never`: kinds are texts; a number is its text. */
static str *read_kinds(struct source_step *step, const struct node *list, const char *key,
                       uint32_t *count)
{
    str *kinds;

    if (!list)
        return NULL;
    if (list->kind != NODE_ARRAY || list->count == 0 || list->count > LIMIT_ATTEMPTS) {
        step_error(step, list, "retry.%s must list 1..%d kinds of errors, like [timeout, busy]",
                   key, LIMIT_ATTEMPTS);
        return NULL;
    }
    kinds = ARENA_ARRAY(&step->compiler->scope->arena, str, list->count);
    for (const struct node *item = list->first; item && kinds; item = item->next)
        if ((item->kind == NODE_STRING && !str_is_blank(item->text)) || item->kind == NODE_NUMBER)
            kinds[(*count)++] = item->text;
        else
            step_error(step, item, "a kind of errors is a text or a number, found %s",
                       node_kind_name(item->kind));
    return kinds;
}

void compile_retry(struct source_step *step)
{
    const struct node *retry = node_find(step->node, "retry");
    const struct node *max = node_find(retry, "max"), *backoff = node_find(retry, "backoff");

    step->plan.backoff_count = BACKOFF_DEFAULT_COUNT;
    step->plan.backoff_ms =
        arena_copy(&step->compiler->scope->arena, backoff_default_ms, sizeof backoff_default_ms);
    if (!step->plan.backoff_ms || !retry ||
        !step_expect(step, retry, NODE_OBJECT, "{max, backoff, on, never}"))
        return;
    compile_keys(step->compiler, step, retry, retry_keys, "retry.");
    read_attempts(step, max);
    step->plan.retry_on =
        read_kinds(step, node_find(retry, "on"), "on", &step->plan.retry_on_count);
    step->plan.retry_never =
        read_kinds(step, node_find(retry, "never"), "never", &step->plan.retry_never_count);
    if (backoff && backoff->kind == NODE_ARRAY)
        read_backoff_list(step, backoff);
    else if (backoff && backoff->kind == NODE_OBJECT)
        read_backoff_growth(step, backoff);
    else if (backoff)
        step_error(step, backoff,
                   "retry.backoff must be a list of durations or {initial, factor, "
                   "max}, found %s",
                   node_kind_name(backoff->kind));
}
