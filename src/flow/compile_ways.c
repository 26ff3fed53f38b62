/* compile_ways.c - the ways through a graph: steps that none leads to, joins for one, cycles
 * that never wait. */
#include "flow/compile.h"

struct ways {
    struct compilation *compiler;
    bool *is_reached;
    uint32_t *degree, *stack; /* ways that lead into a step, from steps that do not wait */
};

static void find_reached(struct ways *ways)
{
    const struct compilation *compiler = ways->compiler;
    uint32_t depth = 0;

    ways->stack[depth++] = compiler->first;
    ways->is_reached[compiler->first] = true;
    while (depth > 0) {
        const struct plan_step *step = &compiler->steps[ways->stack[--depth]].plan;

        for (uint32_t i = 0; i < step_lead_count(step); i++)
            if (!ways->is_reached[step_lead(step, i)]) {
                ways->is_reached[step_lead(step, i)] = true;
                ways->stack[depth++] = step_lead(step, i);
            }
    }
}

static bool is_hasty(const struct ways *ways, uint32_t step)
{
    return ways->is_reached[step] && step_is_taken(&ways->compiler->steps[step].plan);
}

static const struct plan_step *step_at(const struct ways *ways, uint32_t step)
{
    return &ways->compiler->steps[step].plan;
}

/* Steps are taken away that no step leads to any more; what is left goes round, or comes behind
 * what does. A step that waits is no part of it: it leads nowhere here. */
static void take_away(struct ways *ways)
{
    struct compilation *compiler = ways->compiler;
    uint32_t depth = 0;

    for (uint32_t i = 0; i < compiler->count; i++)
        for (uint32_t t = 0; is_hasty(ways, i) && t < step_lead_count(step_at(ways, i)); t++)
            ways->degree[step_lead(step_at(ways, i), t)]++;
    for (uint32_t i = 0; i < compiler->count; i++)
        if (ways->is_reached[i] && ways->degree[i] == 0)
            ways->stack[depth++] = i;
    while (depth > 0) {
        uint32_t at = ways->stack[--depth];
        const struct plan_step *step = step_at(ways, at);

        for (uint32_t t = 0; is_hasty(ways, at) && t < step_lead_count(step); t++)
            if (--ways->degree[step_lead(step, t)] == 0)
                ways->stack[depth++] = step_lead(step, t);
    }
}

/* Each step that is left has one before it that is left: so many steps back as there are is on a
 * cycle. */
static void find_cycle(struct ways *ways)
{
    struct compilation *compiler = ways->compiler;
    uint32_t left = 0, *origin = ways->stack;

    take_away(ways);
    while (left < compiler->count && !(is_hasty(ways, left) && ways->degree[left] > 0))
        left++;
    if (left == compiler->count)
        return;
    for (uint32_t i = 0; i < compiler->count; i++)
        for (uint32_t t = 0;
             is_hasty(ways, i) && ways->degree[i] > 0 && t < step_lead_count(step_at(ways, i)); t++)
            origin[step_lead(step_at(ways, i), t)] = i;
    for (uint32_t i = 0; i < compiler->count; i++)
        left = origin[left];
    step_warning(&compiler->steps[left], NULL,
                 "a cycle without a wait leads through it; add a sleep");
}

static void check_join(struct ways *ways, uint32_t index)
{
    struct compilation *compiler = ways->compiler;
    const struct source_step *step = &compiler->steps[index];
    uint32_t count = 0;

    for (uint32_t i = 0; i < compiler->count; i++)
        count += ways->is_reached[i] && compiler->steps[i].plan.way == WAY_JOIN &&
                 compiler->steps[i].plan.targets[0].step == step->plan.targets[0].step;
    if (count == 1)
        step_warning(step, step->way, "no other step joins at '%.*s'; use 'next' instead",
                     STR_ARG(words_shown(step->way->text)));
}

void compile_check_ways(struct compilation *compiler)
{
    struct arena *arena = &compiler->scope->arena;
    struct ways ways = { .compiler = compiler,
                         .is_reached = ARENA_ARRAY(arena, bool, compiler->count),
                         .degree = ARENA_ARRAY(arena, uint32_t, compiler->count),
                         .stack = ARENA_ARRAY(arena, uint32_t, compiler->count) };

    if (!ways.is_reached || !ways.degree || !ways.stack)
        return;
    find_reached(&ways);
    for (uint32_t i = 0; i < compiler->count; i++)
        if (compiler->steps[i].plan.of != STEP_NONE ||
            compiler->steps[i].plan.undoes != STEP_NONE || i + 1 == compiler->whole)
            continue;
        else if (!ways.is_reached[i])
            step_warning(&compiler->steps[i], NULL,
                         "no way leads here; name it in another step, or remove it");
        else if (compiler->steps[i].plan.way == WAY_JOIN && compiler->report.warning_count < 100)
            check_join(&ways, i);
    find_cycle(&ways);
}
