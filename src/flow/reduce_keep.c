/* reduce_keep.c - signals that nothing awaits yet: kept, if the plan says so, until a wait takes
 * them.
 *
 * A broadcast with a filter is kept if one of the plan's waits has its filter for a value, as far
 * as the input alone tells (what other steps bring is not known yet), or a wait that has begun. It
 * is kept under a name of model/interest.h, so that no other wait takes it. */
#include "base/node.h"
#include "flow/flow_int.h"
#include "model/canonical.h"
#include "model/interest.h"
#include "model/words.h"

#define ORDER_COMPILER     3 /* from this compiler on, no signal is taken before one that is kept */
#define BROADCAST_COMPILER 3 /* from this compiler on, a flow keeps broadcasts */

/* ---- Values of waits ------------------------------------------------------------------------- */

struct values {
    struct turn *turn;
    const struct plan *plan;
    void (*visit)(struct values *values, str signal, str value);
    enum effect_kind kind; /* note_value: of the effect */
    str found;             /* match_value: out; data NULL: none */
};

/* Data NULL: no memory, or it is too large to be compared. */
static str expand(struct values *values, const struct node *node)
{
    struct turn *turn = values->turn;
    struct template_source source = turn_source(turn);
    struct node *value = NULL;
    str text = STR_NONE;
    pawl_status status;

    source.plan = values->plan;
    if (turn->status != PAWL_OK)
        return STR_NONE;
    status = template_expand_node(&source, node, turn->scope, &text);
    if (status == PAWL_OK)
        status = node_read_json(turn->scope, text, &value);
    if (status == PAWL_OK)
        status = canonical_print(turn->scope, value, &text);
    if (status_is_trouble(status))
        turn->status = status;
    else
        turn->scope->error = (pawl_error){ .status = PAWL_OK };
    return status == PAWL_OK ? text : STR_NONE;
}

/* Only values that are known from the start, of signals that are kept. */
static void visit_values(struct values *values)
{
    for (uint32_t i = 0; i < values->plan->count && values->plan->buffered_count > 0; i++) {
        const struct plan_step *step = &values->plan->steps[i];
        const struct node *arm = step->kind->has_arms ? node_first(step->args_node, "arms") : NULL;

        for (; arm; arm = arm->next) {
            const struct node *signal = node_find(arm, "signal"), *value = node_find(arm, "value");
            str text = STR_NONE;

            if (signal && value && plan_keeps(values->plan, signal->text) &&
                template_is_of_input(value))
                text = expand(values, value);
            if (text.data && text.size <= LIMIT_ACTION)
                values->visit(values, signal->text, text);
        }
    }
}

static void match_value(struct values *values, str signal, str value)
{
    const struct event *event = values->turn->event;

    if (!values->found.data && str_eq(signal, event->name) && event_is_for(event, value))
        values->found = value;
}

/* ---- Rows by which broadcasts find the flow -------------------------------------------------- */

static void note_row(struct turn *turn, enum effect_kind kind, str signal, str value)
{
    str name = interest_name(&turn->scope->arena, signal, value);

    if (!name.data)
        turn->status = scope_no_memory(turn->scope);
    turn_cause(turn, (struct effect){ .kind = kind, .name = name });
}

static void note_value(struct values *values, str signal, str value)
{
    note_row(values->turn, values->kind, signal, value);
}

static void note_rows(struct turn *turn, const struct plan *plan, enum effect_kind kind)
{
    struct values values = { .turn = turn, .plan = plan, .visit = note_value, .kind = kind };

    for (uint32_t i = 0; i < plan->buffered_count; i++)
        note_row(turn, kind, plan->buffered[i], STR_NONE);
    visit_values(&values);
}

void turn_keep_signals(struct turn *turn, const struct plan *before, const struct plan *plan)
{
    if (turn->compiler < BROADCAST_COMPILER)
        return;
    if (before)
        note_rows(turn, before, EFFECT_LEAVE);
    note_rows(turn, plan, EFFECT_AWAIT);
}

/* ---- Keeping --------------------------------------------------------------------------------- */

/* The value of a wait that has begun, which stays while the instance is paused; data NULL: none. */
static str awaited_value(const struct turn *turn)
{
    const struct event *event = turn->event;

    for (uint32_t i = 0; i < turn->memory->arm_count && event->filter.size <= LIMIT_ACTION; i++)
        if (!turn->memory->arms[i].is_timer && str_eq(turn->memory->arms[i].name, event->name) &&
            event_is_for(event, turn->memory->arms[i].value))
            return turn->memory->arms[i].value;
    return STR_NONE;
}

/* The name that it is kept under; data NULL: it is not. */
static str kept_name(struct turn *turn)
{
    const struct event *event = turn->event;
    struct values values = { .turn = turn, .plan = turn->plan, .visit = match_value };
    str name;

    if (!plan_keeps(turn->plan, event->name))
        return STR_NONE;
    if (!event->filter.data)
        return event->name;
    values.found = awaited_value(turn);
    if (!values.found.data && turn->compiler >= BROADCAST_COMPILER)
        visit_values(&values);
    if (!values.found.data)
        return STR_NONE;
    name = interest_name(&turn->scope->arena, event->name, values.found);
    if (!name.data)
        turn->status = scope_no_memory(turn->scope);
    return name;
}

bool is_behind_kept(const struct turn *turn)
{
    const struct flow_memory *memory = turn->memory;

    if (turn->compiler < ORDER_COMPILER || turn->event->filter.data ||
        !plan_keeps(turn->plan, turn->event->name))
        return false;
    for (uint32_t i = 0; i < memory->signal_count; i++)
        if (str_eq(memory->signals[i].name, turn->event->name))
            return true;
    return false;
}

/* Nothing awaits it yet, or others are before it, or the instance is paused. */
void keep_signal(struct turn *turn, str payload)
{
    const struct event *event = turn->event;
    str name = kept_name(turn);

    if (turn->status != PAWL_OK)
        return;
    if (!name.data && event->is_held)
        turn_fail(turn, PAWL_PAUSED, PAUSED_WORDS);
    else if (!name.data)
        turn_fail(turn, PAWL_NOT_AWAITING, "nothing waits for the signal '%.*s'",
                  STR_ARG(words_shown(event->name)));
    else
        turn->status = kept_check_room(turn->scope, turn->memory->signals,
                                       turn->memory->signal_count, payload);
    if (turn->status == PAWL_OK)
        turn_draft(turn, LIFE_T_SIGNAL, NULL, payload);
    if (turn->status == PAWL_OK)
        turn->decision.drafts[0].keep = name;
}

/* ---- Taking ---------------------------------------------------------------------------------- */

static bool takes(const struct live_arm *arm, str kept)
{
    return !arm->is_timer &&
           (str_eq(kept, arm->name) ||
            (arm->value.data && interest_fits(kept, arm->name, arm->value)));
}

/* The first wait, by age, whose signal was kept, and the oldest such signal. */
static const struct live_arm *find_kept(const struct flow_memory *memory,
                                        const struct kept_signal **out)
{
    for (uint32_t a = 0; a < memory->arm_count; a++)
        for (uint32_t s = 0; s < memory->signal_count; s++)
            if (takes(&memory->arms[a], memory->signals[s].name)) {
                *out = &memory->signals[s];
                return &memory->arms[a];
            }
    return NULL;
}

bool flow_wakes(const void *memory)
{
    const struct kept_signal *signal;

    return ((const struct flow_memory *)memory)->signal_count > 0 && find_kept(memory, &signal);
}

void decide_wake(struct turn *turn)
{
    const struct kept_signal *signal = NULL;
    const struct live_arm *arm = find_kept(turn->memory, &signal);

    if (!arm) {
        turn_fail(turn, PAWL_NOT_AWAITING, "no kept signal is awaited");
        return;
    }
    take_arm(turn, LIFE_T_SIGNAL, memory_find(turn->memory, arm->ordinal),
             memory_find_arm(turn->memory, arm->ordinal, false, arm->name), signal->payload);
    if (turn->status == PAWL_OK)
        turn->status = effect_add(turn->scope, &turn->decision.drafts[0].effects,
                                  (struct effect){ .kind = EFFECT_TAKE, .name = signal->name });
}
