/* story.c - all that is shown of one instance: its row, its head, its live rows and its newest
 * entries, read at one go and so of one moment. */
#include "engine/parts.h"
#include "model/rights.h"

#define BRIEF_RECORDS 256u /* that explain what an instance waits for */
#define TRIES         10   /* while the instance moves on between two reads */

/* ---- Reading ---- */

/* Of a machine no more is read than is shown; of one at rest, if it is only explained, its end. */
static pawl_status read_log(struct engine *engine, struct scope *scope, uint64_t number,
                            uint32_t entries_max, struct instance_log *out)
{
    pawl_status status = PAWL_OK;

    for (int tries = 0; !status && tries < TRIES; tries++) {
        struct instance_log_query query;
        struct head_row after;

        instance_log_ask(engine, number, out, &query);
        query.is_whole = true;
        query.records_max = entries_max ? INSTANCE_LOG_RECORDS : BRIEF_RECORDS;
        query.idle_max = entries_max ? INSTANCE_LOG_RECORDS : 1;
        query.machine_max = entries_max ? entries_max : 1;
        status = store_instance_logs(engine->store, scope, &query, 1);
        if (status || !query.is_known)
            break;
        status = head_row_now(engine, scope, number, &after);
        if (!status && after.pos == out->head.pos)
            break;
    }
    return status;
}

/* Does a record say that it goes by another plan? Those that were not read may. */
static bool may_be_amended(const struct whole_log *whole)
{
    for (uint32_t i = 0; i < whole->log.record_count; i++)
        if (whole->log.records[i].record.what == LIFE_T_AMEND)
            return true;
    return !whole->is_whole;
}

static pawl_status find_definition(struct whole_log *whole)
{
    TRY(definitions_of(whole->engine, whole->scope, &whole->head, &whole->slot));
    whole->now = whole->slot->definition;
    if (whole->now->kind == KIND_MACHINE || !may_be_amended(whole))
        return PAWL_OK;
    return amended_definition(whole->engine, whole->scope, &whole->head, &whole->now);
}

static bool has_first(const struct instance_log *log)
{
    const struct record *oldest =
        log->record_count ? &log->records[log->record_count - 1].record : NULL;

    return oldest && (oldest->prev == 0 || (oldest->what >= 0 && oldest->seq <= 1));
}

pawl_status whole_log_read(struct engine *engine, struct scope *scope, str id, uint32_t entries_max,
                           struct whole_log *out)
{
    uint8_t random[ID_RANDOM_SIZE];
    uint64_t number;
    pawl_status status;

    *out = (struct whole_log){ .engine = engine, .scope = scope };
    TRY(id_check(scope, id, &number, random));
    status = read_log(engine, scope, number, entries_max, &out->log);
    if (status == PAWL_NOT_KNOWN ||
        (!status && memcmp(random, out->log.instance.random, sizeof random) != 0))
        return scope_fail(scope, PAWL_NOT_KNOWN, "no instance '%.*s'", STR_ARG(id));
    TRY(status);
    if (!out->log.record_count)
        return scope_fail(scope, PAWL_STORAGE_FAILURE,
                          "instance '%.*s' has no record: run pawl verify", STR_ARG(id));
    out->head = head_of_rows(&out->log.head, &out->log.instance);
    out->is_whole = has_first(&out->log);
    return find_definition(out);
}

/* ---- The instance ---- */

pawl_status whole_log_pause(const struct whole_log *whole, struct pause_view *out)
{
    const struct instance_log *log = &whole->log;
    struct record record = { 0 };

    for (uint32_t i = 0; i < log->record_count; i++)
        if (log->records[i].record.pos == log->live.paused_pos) {
            *out = (struct pause_view){ log->records[i].record.at_ms, log->records[i].actor,
                                        log->records[i].reason };
            return PAWL_OK;
        }
    TRY(store_record(whole->engine->store, whole->scope, log->live.paused_pos, &record));
    out->at_ms = record.at_ms;
    TRY(value_text(whole->engine, whole->scope, record.actor, &out->actor));
    return value_text(whole->engine, whole->scope, record.reason, &out->reason);
}

static void fill_end(const struct whole_log *whole, struct instance_view *out)
{
    const struct state *state = &out->definition->states[out->state];
    const struct instance_log_record *last = &whole->log.records[0];

    out->updated_at_ms = last->record.at_ms;
    if (out->kind != KIND_MACHINE && state->terminal == TERMINAL_SUCCESS)
        out->result = last->payload;
    else if (out->kind != KIND_MACHINE && state->terminal == TERMINAL_FAILURE)
        out->error = last->payload;
}

static pawl_status fill_family(const struct whole_log *whole, struct instance_view *out)
{
    const struct instance_log *log = &whole->log;
    const struct instance_log_record *first = &log->records[log->record_count - 1];

    if (log->instance.parent)
        TRY(engine_id_of(whole->engine, whole->scope, log->instance.parent, out->parent_id));
    if (out->kind == KIND_MACHINE)
        return PAWL_OK;
    if (!whole->is_whole)
        TRY(find_retry_of(whole->engine, whole->scope, &log->instance, out));
    else if (first->record.what == LIFE_T_START)
        TRY(read_retry_of(whole->scope, first->payload, out));
    if (out->status == STATUS_FAILED || out->status == STATUS_CANCELLED)
        TRY(read_successor(whole->engine, whole->scope, out));
    return out->kind == KIND_FLOW && whole->now != out->definition
               ? amended_name(whole->engine, whole->scope, &whole->head, &out->definition_name,
                              &out->version, &out->is_amended)
               : PAWL_OK;
}

static bool can_cancel(const struct whole_log *whole, const struct instance_view *view)
{
    const struct definition *definition = whole->slot->definition;

    if (definition->states[view->state].terminal != TERMINAL_NOT ||
        !definition_find_cancel(definition, view->state))
        return false;
    return !bars_cancel(whole->now, &whole->log.live) || actor_is_reserved(view->pause.actor);
}

static pawl_status fill_view(const struct whole_log *whole, struct instance_view *out)
{
    const struct instance_log *log = &whole->log;
    const struct definition *definition = whole->slot->definition;

    *out = (struct instance_view){ .definition_name = whole->slot->name,
                                   .version = whole->slot->version,
                                   .kind = definition->kind,
                                   .definition = definition,
                                   .state = whole->head.state,
                                   .seq = whole->head.seq,
                                   .subject = log->subject,
                                   .created_by = log->creator,
                                   .input = log->input,
                                   .metadata = log->metadata,
                                   .correlation = log->instance.correlation,
                                   .labels = log->instance.labels,
                                   .instantiated_at_ms = log->instance.instantiated_at_ms,
                                   .test = log->instance.test };
    id_print(whole->head.instance, whole->head.random, out->id);
    out->status = status_of(definition, out->state, log->live.paused_pos != 0, &log->live);
    if (out->status == STATUS_PAUSED)
        TRY(whole_log_pause(whole, &out->pause));
    out->can_cancel = can_cancel(whole, out);
    fill_end(whole, out);
    TRY(read_erased(whole->engine, whole->scope, &log->records[0].record, out));
    return fill_family(whole, out);
}

/* ---- Its entries ---- */

static pawl_status fill_entry(const struct whole_log *whole, const struct instance_log_record *log,
                              struct entry *out, struct effect_list *effects)
{
    struct value_texts texts = { { log->record.actor }, { log->actor } };

    TRY(entry_open(whole->engine, whole->scope, whole->now, &log->record, &texts, out));
    out->payload = log->payload;
    out->reason = log->reason;
    if (log->is_left)
        TRY(value_text(whole->engine, whole->scope, log->record.payload, &out->payload));
    return log->record.body.data ? effects_read(whole->scope, log->record.body, effects) : PAWL_OK;
}

static pawl_status fill_entries(const struct whole_log *whole, struct story *out)
{
    const struct instance_log *log = &whole->log;

    out->entries = ARENA_ARRAY(&whole->scope->arena, struct entry, log->record_count);
    out->effects = ARENA_ARRAY(&whole->scope->arena, struct effect_list, log->record_count);
    TRY_MEMORY(whole->scope, out->entries && out->effects);
    for (uint32_t i = log->record_count; i > 0; i--)
        if (log->records[i - 1].record.what >= 0) {
            TRY(fill_entry(whole, &log->records[i - 1], &out->entries[out->entry_count],
                           &out->effects[out->entry_count]));
            out->entry_count++;
        }
    return PAWL_OK;
}

/* ---- What it knows ---- */

/* The last state of code. */
static pawl_status find_variables(const struct whole_log *whole, struct story *out)
{
    for (uint32_t i = out->entry_count; i > 0; i--)
        for (uint32_t k = out->effects[i - 1].count; k > 0; k--)
            if (out->effects[i - 1].items[k - 1].kind == EFFECT_STATE) {
                out->variables = out->effects[i - 1].items[k - 1].state;
                return PAWL_OK;
            }
    return whole->is_whole ? PAWL_OK
                           : engine_variables(whole->engine, whole->scope, str_of(out->view.id), 0,
                                              &out->variables);
}

static pawl_status fill_known(const struct whole_log *whole, struct story *out)
{
    bool *is_done = NULL;
    uint32_t steps; /* of the definition in force */

    if (out->view.kind == KIND_CODE)
        return find_variables(whole, out);
    if (out->view.kind != KIND_FLOW)
        return PAWL_OK;
    steps = work_step_count(whole->now);
    if (!whole->is_whole) {
        is_done = ARENA_ARRAY(&whole->scope->arena, bool, steps + 1);
        TRY_MEMORY(whole->scope, is_done);
    }
    out->is_done = is_done;
    return restore_known(whole->engine, whole->scope, &whole->log, is_done, steps, &out->variables);
}

pawl_status engine_story(struct engine *engine, struct scope *scope, str id, uint32_t entries_max,
                         struct story *out)
{
    struct whole_log whole;

    *out = (struct story){ 0 };
    ASSERT(entries_max < INSTANCE_LOG_RECORDS);
    TRY(whole_log_read(engine, scope, id, entries_max + 1, &whole));
    out->now = whole.now;
    out->live = whole.log.live;
    out->is_whole = whole.is_whole;
    TRY(fill_view(&whole, &out->view));
    TRY(fill_entries(&whole, out));
    TRY(fill_known(&whole, out));
    return why_list(&whole, STORY_WAITS, &out->waiting, &out->waiting_count);
}
