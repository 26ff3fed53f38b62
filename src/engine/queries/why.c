/* why.c - what an instance waits for: actions, steps, timers, signals, children, a resume. */
#include "base/json_scan.h"
#include "engine/parts.h"
#include "model/interest.h"

static void why_machine(const struct definition *definition, uint32_t state, struct waiting *out,
                        uint32_t *count)
{
    for (uint32_t i = definition->exit_start[state]; i < definition->exit_start[state + 1]; i++) {
        const struct transition *transition = &definition->transitions[definition->exits[i]];

        if (!transition->by_engine)
            out[(*count)++] = (struct waiting){ .kind = "action", .name = transition->action };
    }
}

/* They are in the order of their ordinals. */
const struct live_step *live_step_of(const struct live *live, uint32_t ordinal)
{
    uint32_t low = 0, high = live->step_count;

    while (low < high) {
        uint32_t middle = low + (high - low) / 2;

        if (live->steps[middle].ordinal < ordinal)
            low = middle + 1;
        else
            high = middle;
    }
    return low < live->step_count && live->steps[low].ordinal == ordinal ? &live->steps[low] : NULL;
}

/* A timer by the name people know: its own, or that of the step it belongs to. */
static str timer_name(const struct definition *definition, const struct live *live,
                      const struct live_timer *timer)
{
    const struct live_step *step = timer->ordinal ? live_step_of(live, timer->ordinal) : NULL;

    return step ? work_step_name(definition, step->plan) : timer->name;
}

/* As a rule the children are in the order of their steps: *next is where this one is looked for
 * first. */
static uint64_t child_of(const struct live *live, uint32_t ordinal, uint32_t *next)
{
    for (uint32_t tried = 0; tried < live->child_count; tried++) {
        uint32_t at = (*next + tried) % live->child_count;

        if (live->children[at].ordinal == ordinal) {
            *next = at + 1;
            return live->children[at].child;
        }
    }
    return 0;
}

/* A step that is ready or runs: which tool it is for, and whether that is in this process. */
static void why_tool(struct engine *engine, const struct definition *definition,
                     const struct live_step *step, struct waiting *out)
{
    if (step->status == STEP_PENDING)
        return;
    out->tool = work_step_tool(definition, step->plan);
    out->step_status = step->status;
    out->is_here = out->tool.data && toolbox_has(engine->toolbox, out->tool);
}

/* A step's own timeout; and the turn that a paused instance owes, for which nothing but resume
 * counts. */
static bool is_internal(const struct live *live, const struct live_timer *timer)
{
    return str_is(timer->name, "~timeout") || str_is(timer->name, "~worker") ||
           (live->paused_pos && str_is(timer->name, "~turn"));
}

/* Times are shown by the wall clock. */
static void why_live(struct engine *engine, const struct definition *definition,
                     const struct live *live, struct waiting *out, uint32_t *count)
{
    int64_t ahead_ms = engine_clock_offset_ms(engine);
    struct moment now = clock_now(engine);
    uint32_t next_child = 0;

    for (uint32_t i = 0; i < live->step_count; i++) {
        const char *kind = live->steps[i].status != STEP_PENDING
                               ? "step"
                               : work_why(definition, live->steps[i].plan);

        if (!kind)
            continue;
        out[*count] =
            (struct waiting){ .kind = kind,
                              .name = work_step_name(definition, live->steps[i].plan),
                              .ordinal = live->steps[i].ordinal,
                              .child = strcmp(kind, "child") == 0
                                           ? child_of(live, live->steps[i].ordinal, &next_child)
                                           : 0 };
        why_tool(engine, definition, &live->steps[i], &out[(*count)++]);
    }
    for (uint32_t i = 0; i < live->timer_count; i++)
        if (!is_internal(live, &live->timers[i]))
            out[(*count)++] =
                (struct waiting){ .kind = "timer",
                                  .ordinal = live->timers[i].ordinal,
                                  .has_until = true,
                                  .is_due = live->timers[i].due_at_ms <=
                                            (live->timers[i].wall ? now.wall_ms : now.at_ms),
                                  .name = timer_name(definition, live, &live->timers[i]),
                                  .until_ms = live->timers[i].due_at_ms -
                                              (live->timers[i].wall ? 0 : ahead_ms) };
    for (uint32_t i = 0; i < live->wait_count; i++)
        if (live->waits[i].ordinal > 0 || !interest_is(live->waits[i].name))
            out[(*count)++] = (struct waiting){ .kind = "signal", .name = live->waits[i].name };
}

/* Paused, by whom, and with which reason, if one was given. */
static pawl_status why_paused(const struct whole_log *whole, struct waiting *out, uint32_t *count)
{
    struct waiting *pause = &out[*count];

    TRY(whole_log_pause(whole, &pause->pause));
    pause->kind = "pause";
    pause->name = pause->pause.reason;
    ++*count;
    return PAWL_OK;
}

/* What it waits for has come, and this process could not take it. */
static pawl_status why_refused(const struct whole_log *whole, struct waiting *out, uint32_t count)
{
    struct scope *scope = whole->scope;
    struct refusal refusal;
    str words;

    if (!untaken_of(whole->engine, whole->head.instance, &refusal))
        return PAWL_OK;
    words = arena_str(&scope->arena, str_of(refusal.words));
    for (uint32_t i = 0; i < count; i++)
        if (refusal.kind == EVENT_TIMER ? out[i].is_due : out[i].child != 0)
            out[i].refused = words;
    return words.data ? PAWL_OK : scope_no_memory(scope);
}

/* A limit, where that is what holds up a step that is ready. */
static pawl_status why_limits(const struct whole_log *whole, struct waiting *out, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        if (out[i].tool.data && out[i].step_status == STEP_READY)
            TRY(quotas_explain(whole->engine, whole->scope, whole->head.instance, out[i].ordinal,
                               &out[i].limit));
    return PAWL_OK;
}

/* Their ids are in their own rows. */
static pawl_status why_children(const struct whole_log *whole, uint32_t max, struct waiting *out,
                                uint32_t count)
{
    for (uint32_t i = 0; i < count && i < max; i++)
        if (out[i].child)
            TRY(engine_id_of(whole->engine, whole->scope, out[i].child, out[i].child_id));
    return PAWL_OK;
}

pawl_status why_list(const struct whole_log *whole, uint32_t max, struct waiting **out,
                     uint32_t *count)
{
    const struct definition *definition = whole->slot->definition;
    const struct live *live = &whole->log.live;
    size_t room = (size_t)definition->transition_count + live->step_count + live->timer_count +
                  live->wait_count + 2;

    *out = ARENA_ARRAY(&whole->scope->arena, struct waiting, room);
    *count = 0;
    TRY_MEMORY(whole->scope, *out);
    if (live->paused_pos)
        TRY(why_paused(whole, *out, count));
    if (definition->kind == KIND_MACHINE)
        why_machine(definition, whole->head.state, *out, count);
    why_live(whole->engine, whole->now, live, *out, count);
    TRY(why_refused(whole, *out, *count));
    TRY(gates_rules(whole, *out, *count));
    TRY(gates_progress(whole, *out, *count));
    TRY(why_causes(whole, max, *out, *count));
    TRY(why_limits(whole, *out, *count));
    return why_children(whole, max, *out, *count);
}

/* Of a flow: among the newest records is the one that began to clean up or to undo. */
static struct instance_end winding_up(const struct whole_log *whole)
{
    struct instance_end out = { 0 };
    str because;

    for (uint32_t i = 0; whole->now->kind == KIND_FLOW && i < whole->log.record_count; i++) {
        const struct instance_log_record *log = &whole->log.records[i];
        struct arena *arena = &whole->scope->arena;

        if (log->record.what < 0 || !lifecycle_is_stop((uint32_t)log->record.what))
            continue;
        out.winding_up = (struct pause_view){ log->record.at_ms, log->actor, log->reason };
        out.is_cancelling = log->record.what == LIFE_T_CLEAN_UP ||
                            (json_member(arena, log->payload, STR("because"), &because) &&
                             str_is(because, "\"cancelled\""));
        if (log->record.what == LIFE_T_CLEAN_UP)
            break; /* it came first, and by a caller */
    }
    return out;
}

static struct instance_end ending_of(const struct whole_log *whole)
{
    const struct state *state = &whole->slot->definition->states[whole->head.state];
    enum instance_status status = instance_status_ended(state->terminal);
    bool is_machine = whole->now->kind == KIND_MACHINE;

    if (!status)
        return winding_up(whole);
    return (struct instance_end){
        .at_ms = whole->log.records[0].record.at_ms,
        .status = status,
        .error = status == STATUS_FAILED && !is_machine ? whole->log.records[0].payload : STR_NONE,
        .can_redrive = !is_machine && (status == STATUS_FAILED || status == STATUS_CANCELLED) &&
                       !(whole->log.records[0].record.flags & RECORD_ERASED),
    };
}

pawl_status engine_why(struct engine *engine, struct scope *scope, str id, struct waiting **out,
                       uint32_t *count, struct instance_end *ending)
{
    struct whole_log whole;

    TRY(whole_log_read(engine, scope, id, 0, &whole));
    if (ending)
        *ending = ending_of(&whole);
    return why_list(&whole, UINT32_MAX, out, count);
}
