/* arm_match.c - which arm of another version of a select waits for the same thing.
 *
 * An amend, a redrive and `check --against` find the way on of an arm by what it waits for, and
 * never by its place. An arm matches, in this order: the same text; the same signal, whatever its
 * value; of timers, the only one that is left on both sides. */
#include "base/node.h"
#include "flow/flow_int.h"
#include "model/words.h"

struct matching {
    struct awaited_arm *awaited;
    uint32_t awaited_count;
    const struct node **arms; /* of the other version */
    bool *is_taken;           /* likewise */
    uint32_t count;
};

typedef bool arm_test(const struct awaited_arm *awaited, const struct node *arm);

/* ---- Matching ------------------------------------------------------------------------------- */

static bool is_same(const struct awaited_arm *awaited, const struct node *arm)
{
    return awaited->written && str_eq(awaited->written->raw, arm->raw);
}

static bool has_signal(const struct awaited_arm *awaited, const struct node *arm)
{
    const struct node *signal = node_find(arm, "signal");
    const struct node *written = awaited->written ? node_find(awaited->written, "signal") : NULL;

    return signal && !awaited->is_timer &&
           (str_eq(signal->text, awaited->name) || (written && str_eq(signal->text, written->text)));
}

static uint32_t find_free(const struct matching *matching, const struct awaited_arm *awaited,
                          uint32_t place, arm_test *test)
{
    if (place < matching->count && !matching->is_taken[place] &&
        test(awaited, matching->arms[place]))
        return place;
    for (uint32_t i = 0; i < matching->count; i++)
        if (!matching->is_taken[i] && test(awaited, matching->arms[i]))
            return i;
    return ARM_NONE;
}

static void take(struct matching *matching, struct awaited_arm *awaited, uint32_t arm)
{
    awaited->match = arm;
    if (arm != ARM_NONE)
        matching->is_taken[arm] = true;
}

static void match_by(struct matching *matching, arm_test *test)
{
    for (uint32_t i = 0; i < matching->awaited_count; i++)
        if (matching->awaited[i].match == ARM_NONE)
            take(matching, &matching->awaited[i],
                 find_free(matching, &matching->awaited[i], i, test));
}

static void match_last_timer(struct matching *matching)
{
    uint32_t awaited_left = 0, left = 0, last = 0, arm = 0;

    for (uint32_t i = 0; i < matching->awaited_count; i++)
        if (matching->awaited[i].is_timer && matching->awaited[i].match == ARM_NONE) {
            last = i;
            awaited_left++;
        }
    for (uint32_t i = 0; i < matching->count; i++)
        if (!matching->is_taken[i] && !node_find(matching->arms[i], "signal")) {
            arm = i;
            left++;
        }
    if (awaited_left == 1 && left == 1)
        take(matching, &matching->awaited[last], arm);
}

static pawl_status match(struct scope *scope, struct awaited_arm *awaited, uint32_t count,
                         const struct plan_step *step)
{
    const struct node *arms = plan_arms(step);
    struct matching matching = { .awaited = awaited, .awaited_count = count };

    matching.arms = ARENA_ARRAY(&scope->arena, const struct node *, arms ? arms->count + 1 : 1);
    matching.is_taken = ARENA_ARRAY(&scope->arena, bool, arms ? arms->count + 1 : 1);
    TRY_MEMORY(scope, matching.arms && matching.is_taken);
    for (const struct node *arm = arms ? arms->first : NULL; arm; arm = arm->next)
        matching.arms[matching.count++] = arm;
    match_by(&matching, is_same);
    match_by(&matching, has_signal);
    match_last_timer(&matching);
    return PAWL_OK;
}

pawl_status arms_match(struct scope *scope, const struct plan_step *from,
                       const struct plan_step *to, struct awaited_arm **out, uint32_t *count)
{
    const struct node *arms = plan_arms(from);
    struct awaited_arm *awaited =
        ARENA_ARRAY(&scope->arena, struct awaited_arm, arms ? arms->count + 1 : 1);

    *out = awaited;
    *count = 0;
    TRY_MEMORY(scope, awaited);
    for (const struct node *arm = arms ? arms->first : NULL; arm; arm = arm->next)
        awaited[(*count)++] = (struct awaited_arm){ .written = arm,
                                                    .is_timer = !node_find(arm, "signal"),
                                                    .match = ARM_NONE };
    return match(scope, awaited, *count, to);
}

/* ---- Arms of a live select, for an amend ----------------------------------------------------- */

/* The arm as its plan has it. NULL: an older program took that plan without a match. */
static const struct node *written_of(const struct plan_step *step, const struct live_arm *arm)
{
    const struct node *written = node_at(plan_arms(step), arm->index);
    const struct node *signal = written ? node_find(written, "signal") : NULL;

    if (!written || arm->is_timer == (signal != NULL))
        return NULL;
    return !signal || template_has(signal->text) || str_eq(signal->text, arm->name) ? written
                                                                                    : NULL;
}

static struct awaited_arm *awaited_by(struct turn *turn, const struct attempt *attempt,
                                      uint32_t *count)
{
    const struct flow_memory *memory = turn->memory;
    struct awaited_arm *awaited =
        ARENA_ARRAY(&turn->scope->arena, struct awaited_arm, memory->arm_count + 1);

    *count = 0;
    for (uint32_t i = 0; awaited && i < memory->arm_count; i++)
        if (memory->arms[i].ordinal == attempt->ordinal)
            awaited[(*count)++] = (struct awaited_arm){
                .written = written_of(&turn->plan->steps[attempt->plan], &memory->arms[i]),
                .is_timer = memory->arms[i].is_timer,
                .name = memory->arms[i].name,
                .index = memory->arms[i].index,
                .match = ARM_NONE,
            };
    return awaited;
}

static void refuse(struct turn *turn, const struct attempt *attempt,
                   const struct awaited_arm *awaited)
{
    struct buf words;

    buf_init(&words, turn->scope->arena.heap, LIMIT_TEXT);
    if (awaited->written)
        arm_print(awaited->written, &words);
    else
        buf_fmt(&words, "%s %.*s", awaited->is_timer ? "timer" : "signal",
                STR_ARG(words_shown(awaited->name)));
    turn_fail(turn, PAWL_CONFLICT,
              "the live step '%.*s' waits for %.*s, and no arm of it does in the other "
              "definition",
              STR_ARG(words_shown(turn->plan->steps[attempt->plan].name)),
              STR_ARG(words_shown(buf_view(&words))));
    buf_fini(&words);
}

/* [ORDINAL,ARM,...]: where each arm of a live attempt is now. Nothing if all of them stay. */
static void move_attempt(struct turn *turn, const struct plan *merged,
                         const struct attempt *attempt, struct buf *out)
{
    uint32_t count;
    struct awaited_arm *awaited = awaited_by(turn, attempt, &count);
    bool is_moved = false;

    turn->status = awaited ? match(turn->scope, awaited, count, &merged->steps[attempt->plan])
                           : scope_no_memory(turn->scope);
    for (uint32_t i = 0; turn->status == PAWL_OK && i < count; i++) {
        is_moved = is_moved || awaited[i].match != awaited[i].index;
        if (awaited[i].match == ARM_NONE)
            refuse(turn, attempt, &awaited[i]);
    }
    if (turn->status != PAWL_OK || !is_moved)
        return;
    json_open(out, '[');
    json_u64(out, attempt->ordinal);
    for (uint32_t i = 0; i < count; i++)
        json_u64(out, awaited[i].match);
    json_close(out, ']');
}

str arms_move(struct turn *turn, const struct plan *merged)
{
    const struct flow_memory *memory = turn->memory;
    struct buf buf;

    buf_init(&buf, turn->scope->arena.heap, LIMIT_SCOPE);
    json_open(&buf, '[');
    for (uint32_t i = 0; i < memory->live_count && turn->status == PAWL_OK; i++)
        if (turn->plan->steps[memory->live[i].plan].kind->leads_by_arm)
            move_attempt(turn, merged, &memory->live[i], &buf);
    json_close(&buf, ']');
    return turn_take(turn, &buf);
}

/* One row of arms_move(), read back. */
static bool take_row(const struct flow_memory *memory, const struct node *row)
{
    const struct node *next = row->kind == NODE_ARRAY ? row->first : NULL;
    int64_t ordinal = 0, arm = 0;

    if (!node_to_i64(next, &ordinal))
        return false;
    for (uint32_t i = 0; i < memory->arm_count; i++) {
        if (memory->arms[i].ordinal != ordinal)
            continue;
        next = next ? next->next : NULL;
        if (!node_to_i64(next, &arm) || arm < 0 || arm >= ARM_NONE)
            return false;
        memory->arms[i].index = (uint32_t)arm;
    }
    return next && !next->next;
}

bool arms_take(const struct flow_memory *memory, const struct node *rows)
{
    for (const struct node *row = rows ? rows->first : NULL; row; row = row->next)
        if (!take_row(memory, row))
            return false;
    return !rows || rows->kind == NODE_ARRAY;
}

/* ---- For `check --against` ------------------------------------------------------------------- */

static bool lose(struct scope *scope, const struct node *arm, struct flow_lost_arms *out)
{
    struct buf words;
    str text;

    buf_init(&words, scope->arena.heap, LIMIT_TEXT);
    arm_print(arm, &words);
    text = buf_take(&words, &scope->arena);
    out->texts[out->count++] = text;
    return text.data != NULL;
}

pawl_status flow_lost_arms(struct scope *scope, const struct definition *from,
                           const struct definition *to, str name, struct flow_lost_arms *out)
{
    uint32_t old = plan_find(plan_of(from), name), new = plan_find(plan_of(to), name), count = 0;
    const struct plan_step *steps[2];
    struct awaited_arm *awaited = NULL;
    pawl_status status;

    *out = (struct flow_lost_arms){ 0 };
    if (old == STEP_NONE || new == STEP_NONE)
        return PAWL_OK;
    steps[0] = &plan_of(from)->steps[old];
    steps[1] = &plan_of(to)->steps[new];
    if (!steps[0]->kind->leads_by_arm || !steps[1]->kind->leads_by_arm)
        return PAWL_OK;
    status = arms_match(scope, steps[0], steps[1], &awaited, &count);
    out->texts = ARENA_ARRAY(&scope->arena, str, count + 1);
    if (status != PAWL_OK || !out->texts)
        return scope_no_memory(scope);
    for (uint32_t i = 0; i < count; i++)
        if (awaited[i].match == ARM_NONE && !lose(scope, awaited[i].written, out))
            return scope_no_memory(scope);
    return PAWL_OK;
}
