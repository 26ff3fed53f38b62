/* causes.c - why what an instance waits for has not come: the attempt that failed, the worker that
 * has the step, the tool that no worker has asked for, the signal that was refused. */
#include "engine/parts.h"

struct causes {
    const struct whole_log *whole;
    struct workers_view workers;
    str served; /* the tools that workers have asked for, a JSON array; data NULL: not looked at */
};

/* The newest record of this kind about an attempt; NULL: it is not among those that were read. */
static const struct instance_log_record *find_record(const struct instance_log *log,
                                                     const struct live_step *step, bool is_failure)
{
    for (uint32_t i = 0; i < log->record_count; i++) {
        const struct record *record = &log->records[i].record;

        if (is_failure ? record->what >= 0 && lifecycle_is_failure((uint32_t)record->what) &&
                             record->step == step->plan + 1 && record->attempt + 1 == step->attempt
                       : record->what == LIFE_T_STEP_START && record->ordinal == step->ordinal)
            return &log->records[i];
    }
    return NULL;
}

/* Times are shown by the wall clock. */
static int64_t shown_ms(const struct whole_log *whole, int64_t at_ms)
{
    return at_ms - engine_clock_offset_ms(whole->engine);
}

static void tell_failure(const struct causes *causes, const struct live_step *step,
                         struct waiting *out)
{
    const struct whole_log *whole = causes->whole;
    const struct instance_log_record *failure = find_record(&whole->log, step, true);

    if (!failure)
        return;
    out->failed_attempt = step->attempt - 1;
    out->attempts_max =
        whole->now->kind == KIND_FLOW ? flow_step_attempts(whole->now, step->plan) : 0;
    out->failed_ms = shown_ms(whole, failure->record.at_ms);
    out->error = failure->payload;
}

static void tell_holder(const struct causes *causes, const struct live_step *step,
                        struct waiting *out)
{
    const struct whole_log *whole = causes->whole;
    const struct instance_log_record *start = find_record(&whole->log, step, false);

    out->held_since_ms = start ? shown_ms(whole, start->record.at_ms) : 0;
    if (!step->lease.data) /* it runs in the process that owns the store */
        return;
    out->worker = start ? start->actor : STR_NONE;
    out->lease_until_ms = lease_until_ms(whole->engine, whole->head.instance, step->ordinal);
}

/* ---- Tools that no worker has asked for ---- */

static bool is_listed(const struct workers_view *workers, uint32_t worker, uint32_t tool)
{
    str name = workers->items[worker].tools[tool].name;

    for (uint32_t i = 0; i <= worker; i++)
        for (uint32_t k = 0; k < (i < worker ? workers->items[i].tool_count : tool); k++)
            if (str_eq(workers->items[i].tools[k].name, name))
                return true;
    return false;
}

static pawl_status list_served(struct causes *causes)
{
    struct scope *scope = causes->whole->scope;
    const struct workers_view *workers = &causes->workers;
    uint32_t count = 0;
    struct buf names;

    buf_init(&names, scope->arena.heap, LIMIT_TEXT);
    json_open(&names, '[');
    for (uint32_t i = 0; i < workers->count; i++)
        for (uint32_t k = 0; k < workers->items[i].tool_count && count < SERVED_TOOLS; k++)
            if (!is_listed(workers, i, k)) {
                json_str(&names, workers->items[i].tools[k].name);
                count++;
            }
    json_close(&names, ']');
    causes->served = buf_take(&names, &scope->arena);
    return causes->served.data ? PAWL_OK : scope_no_memory(scope);
}

static pawl_status tell_workers(struct causes *causes, struct waiting *out)
{
    const struct workers_view *workers = &causes->workers;

    if (!causes->served.data) {
        TRY(engine_workers(causes->whole->engine, causes->whole->scope, &causes->workers));
        TRY(list_served(causes));
    }
    if (!workers->is_owner)
        return PAWL_OK;
    out->known_since_ms = workers->since_ms;
    out->served = causes->served;
    for (uint32_t i = 0; i < workers->count; i++)
        for (uint32_t k = 0; k < workers->items[i].tool_count; k++) {
            const struct known_tool *tool = &workers->items[i].tools[k];

            if (str_eq(tool->name, out->tool) && tool->asked_ms > out->asked_ms) {
                out->asked_ms = tool->asked_ms;
                out->asked_by = workers->items[i].name;
            }
        }
    return PAWL_OK;
}

/* ---- Each of them ---- */

static pawl_status tell_signal(struct causes *causes, struct waiting *out)
{
    const struct whole_log *whole = causes->whole;
    struct refused_signal refused;

    if (!refused_signals_find(whole->engine, whole->head.instance, out->name, &refused))
        return PAWL_OK;
    out->refused = arena_str(&whole->scope->arena, str_of(refused.words));
    out->refused_ms = refused.at_ms;
    return out->refused.data ? PAWL_OK : scope_no_memory(whole->scope);
}

static pawl_status tell_cause(struct causes *causes, struct waiting *out)
{
    const struct live_step *step =
        out->ordinal ? live_step_of(&causes->whole->log.live, out->ordinal) : NULL;

    if (strcmp(out->kind, "signal") == 0)
        return tell_signal(causes, out);
    if (!step)
        return PAWL_OK;
    if (step->attempt > 1)
        tell_failure(causes, step, out);
    if (step->status == STEP_RUNNING)
        tell_holder(causes, step, out);
    return step->status == STEP_READY && out->tool.data && !out->is_here ? tell_workers(causes, out)
                                                                         : PAWL_OK;
}

pawl_status why_causes(const struct whole_log *whole, uint32_t max, struct waiting *waiting,
                       uint32_t count)
{
    struct causes causes = { .whole = whole };

    for (uint32_t i = 0; i < count && i < max; i++)
        TRY(tell_cause(&causes, &waiting[i]));
    return PAWL_OK;
}
