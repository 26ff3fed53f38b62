/* ops_inbox.c - lists for people: worker.list, who does the steps; gate.list, what waits for an
 * approval; timer.list, what falls due next. */
#include "api/ops_int.h"
#include "base/limits.h"
#include "engine/workers.h"
#include <stdio.h>

/* ---- Workers ---- */

static void print_worker(const struct worker_view *worker, struct buf *out)
{
    json_open(out, '{');
    json_put_str(out, "worker", worker->name);
    json_put_open(out, "tools", '[');
    for (uint32_t i = 0; i < worker->tool_count; i++) {
        json_open(out, '{');
        json_put_str(out, "tool", worker->tools[i].name);
        json_put_time(out, "asked_at", worker->tools[i].asked_ms);
        json_close(out, '}');
    }
    json_close(out, ']');
    json_put_bool(out, "waiting", worker->is_waiting);
    json_put_u64(out, "steps_held", worker->held);
    json_put_time(out, "first_seen_at", worker->first_ms);
    json_put_time(out, "last_seen_at", worker->seen_ms);
    json_close(out, '}');
}

pawl_status op_worker_list(struct op_call *call, struct buf *out)
{
    struct workers_view workers;

    TRY(engine_workers(op_engine(call), call->scope, &workers));
    json_put_open(out, "workers", '[');
    for (uint32_t i = 0; i < workers.count; i++)
        print_worker(&workers.items[i], out);
    json_close(out, ']');
    json_put_time(out, "since", workers.since_ms);
    json_put_bool(out, "owner", workers.is_owner);
    json_put_u64(out, "steps_held_by_unknown", workers.held_unknown);
    return PAWL_OK;
}

/* ---- Gates ---- */

#define INSTANCES_AT_ONCE 100u
#define INSTANCES_MAX     10000u /* that one page looks at */

struct gate_listing {
    const struct op_call *call;
    str definition, approver; /* data NULL: any */
    uint32_t version, limit, count, looked;
    uint64_t after;
    struct scope scope; /* of one instance */
};

static bool may_approve(const struct gate_listing *listing, const struct waiting *gate,
                        struct scope *scope)
{
    struct node *rule = NULL;
    const struct node *by;

    if (!gate->approval.data)
        return false;
    if (!listing->approver.data || node_read_json(scope, gate->approval, &rule) != PAWL_OK)
        return true;
    by = node_find(rule, "by");
    if (!by || by->kind != NODE_ARRAY)
        return true;
    for (const struct node *name = by->first; name; name = name->next)
        if (str_eq(name->text, listing->approver))
            return true;
    return false;
}

static void print_waiting_gate(const struct inbox *inbox, const struct waiting *gate,
                               struct buf *out)
{
    json_open(out, '{');
    json_put_fmt(out, "step_id", "%s.%u", inbox->id, gate->ordinal);
    json_put_text(out, "instance_id", inbox->id);
    json_put_str(out, "definition", inbox->definition);
    json_put_u64_or_null(out, "version", inbox->version);
    json_put_str(out, "step", gate->name);
    json_put_str(out, "subject_ref", inbox->subject);
    json_put_raw(out, "approval", gate->approval);
    json_put_raw(out, "approved_by", gate->approved_by);
    json_put_time_or_null(out, "since", gate->since_ms);
    json_put_time_or_null(out, "until", gate->has_until ? gate->until_ms : 0);
    json_close(out, '}');
}

static bool is_wanted(void *context, const struct inbox *inbox)
{
    struct gate_listing *listing = context;

    if (listing->definition.data && !str_eq(inbox->definition, listing->definition))
        return false;
    if (listing->version > 0 && inbox->version != listing->version)
        return false;
    if (!op_allows(listing->call, inbox->definition))
        return false;
    for (uint32_t i = 0; i < inbox->count; i++)
        if (may_approve(listing, &inbox->gates[i], &listing->scope))
            return true;
    return false;
}

static bool has_pending(const struct live *live)
{
    for (uint32_t i = 0; i < live->step_count; i++)
        if (live->steps[i].status == STEP_PENDING)
            return true;
    return false;
}

/* One that has ended meanwhile has none. */
static pawl_status list_gates(struct gate_listing *listing, const struct busy_row *row,
                              struct buf *out)
{
    struct inbox inbox;
    pawl_status status;

    scope_clear(&listing->scope);
    status =
        engine_inbox(op_engine(listing->call), &listing->scope, row, is_wanted, listing, &inbox);
    if (status != PAWL_OK) {
        listing->call->scope->error = listing->scope.error;
        return status == PAWL_NOT_KNOWN ? PAWL_OK : status;
    }
    for (uint32_t i = 0; i < inbox.count; i++)
        if (may_approve(listing, &inbox.gates[i], &listing->scope)) {
            print_waiting_gate(&inbox, &inbox.gates[i], out);
            listing->count++;
        }
    return PAWL_OK;
}

/* All gates of an instance are on one page. */
static bool is_full(const struct gate_listing *listing)
{
    return listing->count >= listing->limit || listing->looked >= INSTANCES_MAX;
}

static pawl_status list_all_gates(struct gate_listing *listing, struct buf *out, bool *is_last)
{
    struct scope page;
    struct busy_row *rows;
    uint32_t count = INSTANCES_AT_ONCE;
    pawl_status status = PAWL_OK;

    scope_init(&page, engine_heap(op_engine(listing->call)), LIMIT_SCOPE);
    while (status == PAWL_OK && count == INSTANCES_AT_ONCE && !is_full(listing)) {
        scope_clear(&page);
        status = store_busy(engine_store(op_engine(listing->call)), &page, listing->after, true,
                            INSTANCES_AT_ONCE, &rows, &count);
        for (uint32_t i = 0; status == PAWL_OK && i < count && !is_full(listing); i++) {
            listing->after = rows[i].instance;
            listing->looked++;
            if (has_pending(&rows[i].live))
                status = list_gates(listing, &rows[i], out);
            *is_last = i + 1 == count && count < INSTANCES_AT_ONCE;
        }
        if (status == PAWL_OK && count == 0)
            *is_last = true;
    }
    return scope_leave(&page, listing->call->scope, status);
}

static pawl_status read_gate_query(struct op_call *call, struct gate_listing *out)
{
    str after = op_text(call, "after");

    TRY(query_check(call, false));
    TRY(query_limit(call, &out->limit));
    TRY(query_definition(call, &out->definition, &out->version));
    out->approver = op_text(call, "approver");
    if (after.data && !str_to_u64(after, &out->after))
        return query_refuse(call, "after", "`next` of a page");
    return PAWL_OK;
}

pawl_status op_gate_list(struct op_call *call, struct buf *out)
{
    struct gate_listing listing = { .call = call };
    char next[24];
    bool is_last = false;
    pawl_status status;

    TRY(read_gate_query(call, &listing));
    scope_init(&listing.scope, engine_heap(op_engine(call)), LIMIT_SCOPE);
    json_put_open(out, "gates", '[');
    status = list_all_gates(&listing, out, &is_last);
    json_close(out, ']');
    scope_fini(&listing.scope);
    snprintf(next, sizeof next, "%llu", (unsigned long long)listing.after);
    json_put_text(out, "next", is_last ? NULL : next);
    return status;
}

/* ---- Timers ---- */

/* Timers by the store's clock and those by the wall clock, to be merged. */
struct timer_listing {
    const struct op_call *call;
    str definition; /* data NULL: any */
    uint32_t version, limit, count;
    struct live_timer *rows[2];
    uint32_t row_count[2], next[2];
    int64_t offset_ms;  /* of the store's clock */
    struct scope scope; /* of one instance */
};

static bool is_listed(const struct timer_listing *listing, const struct instance_view *view)
{
    if (listing->definition.data && !str_eq(view->definition_name, listing->definition))
        return false;
    if (listing->version > 0 && view->version != listing->version)
        return false;
    return op_allows(listing->call, view->definition_name);
}

/* Of an instance that has ended meanwhile nothing is printed. */
static pawl_status print_timer(struct timer_listing *listing, const struct live_timer *timer,
                               int64_t due_ms, struct buf *out)
{
    struct engine *engine = op_engine(listing->call);
    struct instance_view view;
    char id[ID_SIZE + 1];
    pawl_status status = engine_id_of(engine, &listing->scope, timer->instance, id);

    if (status == PAWL_OK)
        status = engine_get(engine, &listing->scope, str_of(id), &view);
    if (status != PAWL_OK || !is_listed(listing, &view))
        return status == PAWL_NOT_KNOWN ? PAWL_OK : status;
    listing->count++;
    json_open(out, '{');
    json_put_text(out, "instance_id", id);
    json_put_str(out, "definition", view.definition_name);
    json_put_u64_or_null(out, "version", view.version);
    json_put_str(out, "subject_ref", view.subject);
    json_put_str(out, "name", timer->name);
    if (timer->ordinal > 0)
        json_put_fmt(out, "step_id", "%s.%u", id, timer->ordinal);
    else
        json_put_text(out, "step_id", NULL);
    json_put_time(out, "due_at", due_ms);
    json_close(out, '}');
    return PAWL_OK;
}

static int64_t due_of(const struct timer_listing *listing, int wall)
{
    if (listing->next[wall] >= listing->row_count[wall])
        return INT64_MAX;
    return listing->rows[wall][listing->next[wall]].due_at_ms - (wall ? 0 : listing->offset_ms);
}

static bool has_more(const struct timer_listing *listing)
{
    return due_of(listing, 0) != INT64_MAX || due_of(listing, 1) != INT64_MAX;
}

static pawl_status print_timers(struct timer_listing *listing, struct buf *out)
{
    pawl_status status = PAWL_OK;

    scope_init(&listing->scope, engine_heap(op_engine(listing->call)), LIMIT_SCOPE);
    while (status == PAWL_OK && listing->count < listing->limit && has_more(listing)) {
        int wall = due_of(listing, 1) < due_of(listing, 0);
        int64_t due_ms = due_of(listing, wall);

        scope_clear(&listing->scope);
        status = print_timer(listing, &listing->rows[wall][listing->next[wall]++], due_ms, out);
    }
    return scope_leave(&listing->scope, listing->call->scope, status);
}

/* With a filter as many are looked at as a page may have; one more tells whether there are more. */
static pawl_status find_timers(struct timer_listing *listing)
{
    struct engine *engine = op_engine(listing->call);
    uint32_t most = listing->definition.data ? LIMIT_LIST : listing->limit + 1;

    for (int wall = 0; wall < 2; wall++)
        TRY(store_due(engine_store(engine), listing->call->scope, wall, DUE_NEVER_MS - 1, most,
                      &listing->rows[wall], &listing->row_count[wall]));
    listing->offset_ms = engine_clock_offset_ms(engine);
    return PAWL_OK;
}

pawl_status op_timer_list(struct op_call *call, struct buf *out)
{
    struct timer_listing listing = { .call = call };
    pawl_status status;

    TRY(query_check(call, false));
    TRY(query_limit(call, &listing.limit));
    TRY(query_definition(call, &listing.definition, &listing.version));
    TRY(find_timers(&listing));
    json_put_open(out, "timers", '[');
    status = print_timers(&listing, out);
    json_close(out, ']');
    json_put_bool(out, "more", has_more(&listing));
    return status;
}
