/* ops_inbox.c - lists for people: worker.list, who does the steps; gate.list, what waits for an
 * approval; timer.list, what falls due next. */
#include "api/events.h"
#include "api/merge.h"
#include "api/ops_int.h"
#include "api/shards.h"
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

/* A claim asks every shard, so each knows the same workers. */
static pawl_status add_workers(struct engine *engine, struct scope *scope, struct workers_view *sum)
{
    struct workers_view one;

    TRY(engine_workers(engine, scope, &one));
    sum->held_unknown += one.held_unknown;
    for (uint32_t i = 0; i < one.count; i++)
        for (uint32_t k = 0; k < sum->count; k++) {
            struct worker_view *into = &sum->items[k];

            if (!str_eq(into->name, one.items[i].name))
                continue;
            into->held += one.items[i].held;
            into->is_waiting |= one.items[i].is_waiting;
            if (one.items[i].seen_ms > into->seen_ms)
                into->seen_ms = one.items[i].seen_ms;
        }
    return PAWL_OK;
}

pawl_status op_worker_list(struct op_call *call, struct buf *out)
{
    struct workers_view workers;

    TRY(engine_workers(op_engine(call), call->scope, &workers));
    for (uint32_t i = 0; i < shards_count(call->p); i++)
        if (shard_at(call->p, i) != call->p)
            TRY(add_workers(shard_at(call->p, i)->engine, call->scope, &workers));
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
    struct merge_busy busy;
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
    json_opt_raw(out, "ask", gate->ask);
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
static pawl_status list_gates(struct gate_listing *listing, struct engine *engine,
                              const struct busy_row *row, struct buf *out)
{
    struct inbox inbox;
    pawl_status status;

    scope_clear(&listing->scope);
    status = engine_inbox(engine, &listing->scope, row, is_wanted, listing, &inbox);
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
    const struct busy_row *row;
    struct merge_row at;

    for (*is_last = false; !is_full(listing);) {
        TRY(busy_next(&listing->busy, &at, &row));
        *is_last = row == NULL;
        if (!row)
            return PAWL_OK;
        listing->looked++;
        if (has_pending(&row->live))
            TRY(list_gates(listing, at.engine, row, out));
    }
    return busy_peek(&listing->busy, is_last);
}

/* Of a store that is alone, a number. */
static pawl_status read_after(const struct op_call *call, struct shard_vector *out)
{
    str after = op_text(call, "after");
    bool is_good = true;

    out->count = shards_count(call->p);
    if (after.data && out->count > 1)
        is_good = event_cursor_parse(after, out->count, out);
    else if (after.data)
        is_good = str_to_u64(after, &out->at[0]);
    return is_good ? PAWL_OK : query_refuse(call, "after", "`next` of a page");
}

static pawl_status read_gate_query(struct op_call *call, struct gate_listing *out)
{
    TRY(query_check(call, false));
    TRY(query_limit(call, &out->limit));
    TRY(query_definition(call, &out->definition, &out->version));
    out->approver = op_text(call, "approver");
    TRY(read_after(call, &out->busy.at));
    out->busy.at_once = INSTANCES_AT_ONCE;
    return busy_begin(call, &out->busy);
}

static void print_next(const struct shard_vector *at, bool is_last, struct buf *out)
{
    char next[24];

    snprintf(next, sizeof next, "%llu", (unsigned long long)at->at[0]);
    if (is_last || at->count == 1)
        json_put_text(out, "next", is_last ? NULL : next);
    else
        print_cursor(at, "next", out);
}

pawl_status op_gate_list(struct op_call *call, struct buf *out)
{
    struct gate_listing *listing = ARENA_NEW(&call->scope->arena, struct gate_listing);
    bool is_last = false;
    pawl_status status;

    TRY_MEMORY(call->scope, listing);
    listing->call = call;
    TRY(read_gate_query(call, listing));
    scope_init(&listing->scope, engine_heap(op_engine(call)), LIMIT_SCOPE);
    json_put_open(out, "gates", '[');
    status = list_all_gates(listing, out, &is_last);
    json_close(out, ']');
    scope_fini(&listing->scope);
    print_next(&listing->busy.at, is_last, out);
    return status;
}

/* ---- Timers ---- */

/* Timers of one shard by its store's clock, or by the wall clock, in order of due time. */
struct timers_of {
    struct engine *engine;
    int64_t offset_ms; /* of that clock */
    struct live_timer *rows;
    uint32_t count, next;
};

struct timer_listing {
    const struct op_call *call;
    str definition; /* data NULL: any */
    uint32_t version, limit, count;
    struct timers_of *sources; /* two of each shard, to be merged */
    uint32_t source_count;
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
static pawl_status print_timer(struct timer_listing *listing, struct engine *engine,
                               const struct live_timer *timer, int64_t due_ms, struct buf *out)
{
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

static int64_t due_of(const struct timers_of *of)
{
    return of->next < of->count ? of->rows[of->next].due_at_ms - of->offset_ms : INT64_MAX;
}

/* NULL: there are no more. */
static struct timers_of *next_timers(const struct timer_listing *listing)
{
    struct timers_of *first = NULL;

    for (uint32_t i = 0; i < listing->source_count; i++) {
        struct timers_of *of = &listing->sources[i];

        if (due_of(of) != INT64_MAX && (!first || due_of(of) < due_of(first)))
            first = of;
    }
    return first;
}

static pawl_status print_timers(struct timer_listing *listing, struct buf *out)
{
    struct timers_of *of;
    pawl_status status = PAWL_OK;

    scope_init(&listing->scope, engine_heap(op_engine(listing->call)), LIMIT_SCOPE);
    while (status == PAWL_OK && listing->count < listing->limit && (of = next_timers(listing))) {
        int64_t due_ms = due_of(of);

        scope_clear(&listing->scope);
        status = print_timer(listing, of->engine, &of->rows[of->next++], due_ms, out);
    }
    return scope_leave(&listing->scope, listing->call->scope, status);
}

/* With a filter as many are looked at as a page may have; one more tells whether there are more. */
static pawl_status find_timers(struct timer_listing *listing)
{
    uint32_t most = listing->definition.data ? LIMIT_LIST : listing->limit + 1;
    struct scope *scope = listing->call->scope;

    listing->source_count = 2 * shards_count(listing->call->p);
    listing->sources = ARENA_ARRAY(&scope->arena, struct timers_of, listing->source_count);
    TRY_MEMORY(scope, listing->sources);
    for (uint32_t i = 0; i < listing->source_count; i++) {
        struct timers_of *of = &listing->sources[i];
        bool wall = i % 2 != 0;

        *of = (struct timers_of){ .engine = shard_at(listing->call->p, i / 2)->engine };
        of->offset_ms = wall ? 0 : engine_clock_offset_ms(of->engine);
        TRY(store_due(engine_store(of->engine), scope, wall, DUE_NEVER_MS - 1, most, &of->rows,
                      &of->count));
    }
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
    json_put_bool(out, "more", next_timers(&listing) != NULL);
    return status;
}
