/* gates.c - what is known of a gate that waits: since when, until when, for whom, and who has
 * approved it. */
#include "base/json_scan.h"
#include "engine/parts.h"

static const struct live_step *gate_of(const struct live *live, const struct waiting *waiting)
{
    bool is_gate = strcmp(waiting->kind, WHY_APPROVAL) == 0;

    for (uint32_t i = 0; is_gate && i < live->step_count; i++)
        if (live->steps[i].ordinal == waiting->ordinal)
            return &live->steps[i];
    return NULL;
}

/* Times are shown by the wall clock. */
static void read_until(struct engine *engine, const struct live *live, struct waiting *waiting)
{
    for (uint32_t i = 0; i < live->timer_count; i++)
        if (live->timers[i].ordinal == waiting->ordinal &&
            str_is(live->timers[i].name, "~timeout")) {
            waiting->has_until = true;
            waiting->until_ms = live->timers[i].due_at_ms - engine_clock_offset_ms(engine);
        }
}

/* ---- Since when, and who has approved ---- */

struct approver {
    struct approver *next;
    uint32_t ordinal;
    str name;
};

struct gates {
    const struct whole_log *whole;
    struct waiting *waiting;
    uint32_t count, left; /* so many gates are not found yet */
    struct approver *approvers; /* the first one first, each once for a gate */
    pawl_status status;
};

static struct waiting *find_gate(const struct gates *gates, uint32_t ordinal)
{
    for (uint32_t i = 0; i < gates->count; i++)
        if (gates->waiting[i].approval.data && gates->waiting[i].ordinal == ordinal)
            return &gates->waiting[i];
    return NULL;
}

/* Records come the last one first, and the first approval of an actor counts. */
static pawl_status note_approver(struct gates *gates, uint32_t ordinal, str name)
{
    struct scope *scope = gates->whole->scope;
    struct approver *approver = ARENA_NEW(&scope->arena, struct approver);

    TRY_MEMORY(scope, approver);
    for (struct approver **link = &gates->approvers; *link; link = &(*link)->next)
        if ((*link)->ordinal == ordinal && str_eq((*link)->name, name)) {
            *link = (*link)->next;
            break;
        }
    *approver = (struct approver){ gates->approvers, ordinal, name };
    gates->approvers = approver;
    return PAWL_OK;
}

/* What is asked is in the payload of the entry that says that the gate waits. */
static pawl_status read_ask(struct gates *gates, const struct record *record, struct waiting *gate)
{
    struct scope *scope = gates->whole->scope;
    str payload = STR_NONE;

    if (!record->payload || record->step == 0 ||
        !flow_gate_asks(gates->whole->now, record->step - 1))
        return PAWL_OK; /* the payload is read for nothing else */
    TRY(value_text(gates->whole->engine, scope, record->payload, &payload));
    if (payload.data && !json_member(&scope->arena, payload, STR("ask"), &gate->ask))
        gate->ask = STR_NONE;
    return PAWL_OK;
}

/* True: all is known. `actor` data NULL: it was not read. */
static bool note_record(struct gates *gates, const struct record *record, str actor)
{
    struct waiting *gate = NULL;

    if (record->what == LIFE_T_GATE_WAIT || record->what == LIFE_T_GATE_APPROVE)
        gate = find_gate(gates, record->ordinal);
    if (!gate)
        return false;
    if (record->what == LIFE_T_GATE_WAIT) {
        gate->since_ms = record->at_ms;
        gates->status = read_ask(gates, record, gate);
        return --gates->left == 0 || gates->status != PAWL_OK;
    }
    if (!actor.data)
        gates->status =
            value_text(gates->whole->engine, gates->whole->scope, record->actor, &actor);
    if (!gates->status && actor.data)
        gates->status = note_approver(gates, record->ordinal, actor);
    return gates->status != PAWL_OK;
}

/* The walk back reads no texts: a record of the right kind is read whole. */
static bool note_earlier(void *context, const struct record *slim)
{
    struct gates *gates = context;
    struct record record;

    if (slim->what != LIFE_T_GATE_WAIT && slim->what != LIFE_T_GATE_APPROVE)
        return false;
    gates->status =
        store_record(gates->whole->engine->store, gates->whole->scope, slim->pos, &record);
    return gates->status || note_record(gates, &record, STR_NONE);
}

/* What was read, and then back from there. */
static pawl_status look_for_gates(struct gates *gates)
{
    const struct whole_log *whole = gates->whole;
    const struct instance_log *log = &whole->log;
    bool is_over = gates->left == 0;

    for (uint32_t i = 0; i < log->record_count && !is_over; i++)
        is_over = note_record(gates, &log->records[i].record, log->records[i].actor);
    TRY(gates->status);
    if (is_over || whole->is_whole)
        return PAWL_OK;
    TRY(chain_look_back(whole->engine, whole->scope,
                        log->record_count ? log->records[log->record_count - 1].record.prev
                                          : whole->head.pos,
                        note_earlier, gates));
    return gates->status;
}

/* ---- All of it ---- */

static pawl_status print_approved(const struct gates *gates, struct waiting *gate)
{
    struct scope *scope = gates->whole->scope;
    struct buf names;

    buf_init(&names, scope->arena.heap, LIMIT_TEXT);
    json_open(&names, '[');
    for (const struct approver *item = gates->approvers; item; item = item->next)
        if (item->ordinal == gate->ordinal)
            json_str(&names, item->name);
    json_close(&names, ']');
    gate->approved_by = buf_take(&names, &scope->arena);
    return gate->approved_by.data ? PAWL_OK : scope_no_memory(scope);
}

static pawl_status print_rule(const struct whole_log *whole, uint32_t plan, struct waiting *gate)
{
    struct scope *scope = whole->scope;
    struct buf buf;

    buf_init(&buf, scope->arena.heap, 0);
    flow_print_approval(whole->now, plan, &buf);
    gate->approval = buf_take(&buf, &scope->arena);
    return gate->approval.data ? PAWL_OK : scope_no_memory(scope);
}

pawl_status gates_rules(const struct whole_log *whole, struct waiting *waiting, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        const struct live_step *gate = gate_of(&whole->log.live, &waiting[i]);

        if (!gate)
            continue;
        TRY(print_rule(whole, gate->plan, &waiting[i]));
        read_until(whole->engine, &whole->log.live, &waiting[i]);
    }
    return PAWL_OK;
}

pawl_status gates_progress(const struct whole_log *whole, struct waiting *waiting, uint32_t count)
{
    struct gates gates = { .whole = whole, .waiting = waiting, .count = count };

    for (uint32_t i = 0; i < count; i++)
        gates.left += waiting[i].approval.data != NULL;
    TRY(look_for_gates(&gates));
    for (uint32_t i = 0; i < count; i++)
        if (waiting[i].approval.data)
            TRY(print_approved(&gates, &waiting[i]));
    return PAWL_OK;
}
