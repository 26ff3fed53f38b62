/* causes.c - why what an instance waits for has not come: the attempt that failed, the worker that
 * has the step, the tool that no worker has asked for, the signal that was refused. */
#include "engine/parts.h"

/* A record that is looked for: the start of a step that runs, or the failure before an attempt. */
struct sought {
    struct sought *next;
    const struct live_step *step;
    struct waiting *out;
    bool is_failure;
};

struct causes {
    const struct whole_log *whole;
    struct workers_view workers;
    str served; /* the tools that workers have asked for, a JSON array; data NULL: not looked at */
    struct sought *sought; /* that are not among the records that were read */
    pawl_status status;    /* of the look back for them */
};

/* Times are shown by the wall clock. */
static int64_t shown_ms(const struct whole_log *whole, int64_t at_ms)
{
    return at_ms - engine_clock_offset_ms(whole->engine);
}

/* Is it a record of the wanted kind, about the wanted step? */
static bool is_about(const struct sought *sought, const struct record *record)
{
    if (record->what < 0 || record->step != sought->step->plan + 1)
        return false;
    return sought->is_failure ? lifecycle_is_failure((uint32_t)record->what)
                              : record->what == LIFE_T_STEP_START;
}

static bool is_of_attempt(const struct sought *sought, const struct record *record)
{
    return sought->is_failure ? record->attempt + 1 == sought->step->attempt
                              : record->ordinal == sought->step->ordinal;
}

static void tell_found(const struct causes *causes, const struct sought *sought, int64_t at_ms,
                       str text)
{
    const struct whole_log *whole = causes->whole;
    struct waiting *out = sought->out;

    if (!sought->is_failure) {
        out->held_since_ms = shown_ms(whole, at_ms);
        out->worker = sought->step->lease.data ? text : STR_NONE;
        return;
    }
    out->failed_attempt = sought->step->attempt - 1;
    out->attempts_max =
        whole->now->kind == KIND_FLOW ? flow_step_attempts(whole->now, sought->step->plan) : 0;
    out->failed_ms = shown_ms(whole, at_ms);
    out->error = text;
}

/* The newest record that fits. */
static pawl_status find_read(struct causes *causes, const struct sought *sought, bool *is_found)
{
    const struct instance_log *log = &causes->whole->log;

    *is_found = false;
    for (uint32_t i = 0; i < log->record_count && !*is_found; i++) {
        const struct instance_log_record *item = &log->records[i];
        str text = sought->is_failure ? item->payload : item->actor;

        *is_found = is_about(sought, &item->record) && is_of_attempt(sought, &item->record);
        if (*is_found && sought->is_failure && item->is_left)
            TRY(value_text(causes->whole->engine, causes->whole->scope, item->record.payload,
                           &text));
        if (*is_found)
            tell_found(causes, sought, item->record.at_ms, text);
    }
    return PAWL_OK;
}

static pawl_status seek(struct causes *causes, const struct live_step *step, bool is_failure,
                        struct waiting *out)
{
    struct sought wanted = { .step = step, .out = out, .is_failure = is_failure };
    struct sought *kept;
    bool is_found;

    TRY(find_read(causes, &wanted, &is_found));
    if (is_found || causes->whole->is_whole)
        return PAWL_OK;
    kept = ARENA_NEW(&causes->whole->scope->arena, struct sought);
    TRY_MEMORY(causes->whole->scope, kept);
    wanted.next = causes->sought;
    *kept = wanted;
    causes->sought = kept;
    return PAWL_OK;
}

/* ---- Further back ---- */

/* `slim` has no texts: a record that may fit is read whole. */
static pawl_status compare_whole(struct causes *causes, const struct sought *sought,
                                 const struct record *slim, bool *is_found)
{
    const struct whole_log *whole = causes->whole;
    struct record record;
    str text;

    TRY(store_record(whole->engine->store, whole->scope, slim->pos, &record));
    *is_found = is_of_attempt(sought, &record);
    if (!*is_found)
        return PAWL_OK;
    TRY(value_text(whole->engine, whole->scope, sought->is_failure ? record.payload : record.actor,
                   &text));
    tell_found(causes, sought, record.at_ms, text);
    return PAWL_OK;
}

/* True: all are found, or a read has failed. */
static bool look_for_sought(void *context, const struct record *record)
{
    struct causes *causes = context;

    for (struct sought **link = &causes->sought; *link && !causes->status;) {
        bool is_found = false;

        if (is_about(*link, record))
            causes->status = compare_whole(causes, *link, record, &is_found);
        if (is_found)
            *link = (*link)->next;
        else
            link = &(*link)->next;
    }
    return !causes->sought || causes->status;
}

static pawl_status look_further(struct causes *causes)
{
    const struct instance_log *log = &causes->whole->log;

    if (!causes->sought)
        return PAWL_OK;
    TRY(chain_look_back(causes->whole->engine, causes->whole->scope,
                        log->records[log->record_count - 1].record.prev, look_for_sought, causes));
    return causes->status;
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

static pawl_status tell_lease(const struct causes *causes, uint32_t ordinal, struct waiting *out)
{
    struct engine *engine = causes->whole->engine;
    uint64_t instance = causes->whole->head.instance;

    out->lease_until_ms = lease_until_ms(engine, instance, ordinal);
    return lease_progress(engine, causes->whole->scope, instance, ordinal, &out->progress,
                          &out->progress_ms);
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
        TRY(seek(causes, step, true, out));
    if (step->status == STEP_RUNNING)
        TRY(seek(causes, step, false, out));
    if (step->status == STEP_RUNNING && step->lease.data) /* else the store's owner runs it */
        TRY(tell_lease(causes, step->ordinal, out));
    return step->status == STEP_READY && out->tool.data && !out->is_here ? tell_workers(causes, out)
                                                                         : PAWL_OK;
}

pawl_status why_causes(const struct whole_log *whole, uint32_t max, struct waiting *waiting,
                       uint32_t count)
{
    struct causes causes = { .whole = whole };

    for (uint32_t i = 0; i < count && i < max; i++)
        TRY(tell_cause(&causes, &waiting[i]));
    return look_further(&causes);
}
