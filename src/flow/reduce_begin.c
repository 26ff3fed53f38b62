/* reduce_begin.c - a step begins: its row, its timeout, and what its kind adds.
 *
 * A tool's row is ready and a runner takes it; everything else is pending, and its timers,
 * signals, approvals or children end it. */
#include "base/grow.h"
#include "flow/map_items.h"
#include "model/words.h"

#define BOUND_COMPILER 3 /* from it on, children and waits that begin together have bounds */

pawl_status begin_refuse(const struct turn *turn, const char *key, const char *expected,
                         const struct node *found)
{
    str shown = found && found->raw.data ? words_shown(found->raw) : STR("nothing");

    return scope_fail(turn->scope, PAWL_INVALID_REQUEST, "'%s': expected %s, found %.*s", key,
                      expected, STR_ARG(shown));
}

/* ---- Its arguments ------------------------------------------------------------------------ */

/* What steps that begin together ask for is one commit's to hold. Asked before the arguments of a
 * step are there and again with them, so that many that are too many need no memory. */
static pawl_status check_size(struct turn *turn, enum args_sum sum, size_t size)
{
    static const struct {
        size_t max;
        const char *words;
    } bounds[ARGS_SUM_COUNT] = { [ARGS_OF_WAITS] = { LIMIT_WAIT_VALUES, "values of waits" },
                                 [ARGS_OF_CHILDREN] = { LIMIT_SPAWN_INPUT, "inputs of children" } };

    if (turn->compiler < BOUND_COMPILER)
        return PAWL_OK;
    turn->args_sizes[sum] += size;
    if (turn->args_sizes[sum] <= bounds[sum].max)
        return PAWL_OK;
    return scope_fail(turn->scope, PAWL_TOO_LARGE,
                      "the %s that begin together: expected at most %zu bytes, "
                      "found %zu with this one",
                      bounds[sum].words, bounds[sum].max, turn->args_sizes[sum]);
}

pawl_status begin_args(struct turn *turn, const struct plan_step *step, enum args_sum sum, str *out)
{
    struct template_source source = turn_step_source(turn, step);

    TRY(check_size(turn, sum, 0));
    TRY(template_expand(&source, step, turn->scope, out));
    return check_size(turn, sum, out->size);
}

pawl_status begin_args_node(struct turn *turn, const struct plan_step *step, struct node **out)
{
    str text;

    TRY(begin_args(turn, step, ARGS_OF_WAITS, &text));
    return node_read_own(turn->scope, text, out);
}

/* What an attempt that no runner takes needs besides its row; or why it cannot begin. */
static void wait_for(struct turn *turn, struct begun *begun)
{
    const struct attempt *attempt = &begun->attempt;
    const struct plan_step *step = &turn->plan->steps[attempt->plan];
    pawl_status status = PAWL_OK;

    if (turn->status != PAWL_OK)
        return;
    if (step->timeout_ms > 0)
        turn_arm(turn, attempt->ordinal, TIMER_TIMEOUT, turn->event->at_ms + step->timeout_ms);
    if (step->kind->begin)
        status = step->kind->begin(turn, step, attempt->ordinal);
    if (status_is_trouble(status))
        turn->status = status;
    if (status != PAWL_OK && turn->status == PAWL_OK)
        begun->error = turn_take_error(turn);
}

/* ---- The step ------------------------------------------------------------------------------ */

static void note_begun(struct turn *turn, const struct attempt *attempt, bool is_ready)
{
    struct begun noted = { .attempt = *attempt };

    if (!GROW(&turn->scope->arena, turn->begun, turn->begun_count, turn->begun_capacity)) {
        turn->status = scope_no_memory(turn->scope);
        return;
    }
    if (!is_ready)
        wait_for(turn, &noted);
    turn->begun[turn->begun_count++] = noted;
}

void begin_step(struct turn *turn, uint32_t index)
{
    bool is_ready = step_is_taken(&turn->plan->steps[index]);
    struct attempt attempt = turn_create(turn, index, 1, is_ready ? STEP_READY : STEP_PENDING);

    note_begun(turn, &attempt, is_ready);
}

void begin_again(struct turn *turn, const struct attempt *attempt)
{
    bool is_ready = step_is_taken(&turn->plan->steps[attempt->plan]);

    turn_cause(turn, (struct effect){
                         .kind = EFFECT_DISARM, .ordinal = attempt->ordinal, .name = TIMER_RETRY });
    if (is_ready)
        turn_cause(turn, (struct effect){ .kind = EFFECT_READY, .ordinal = attempt->ordinal });
    if (is_ready)
        turn_await_worker(turn, attempt);
    turn->item = map_item_of(turn->plan, memory_find_map(turn->memory, attempt->map), attempt->plan,
                             attempt->item);
    note_begun(turn, attempt, is_ready);
    turn->item = (struct template_item){ .name = STR_NONE };
}
