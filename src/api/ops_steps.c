/* ops_steps.c - instance.steps: every attempt of every step, in creation order, in pieces or by
 * pages; step.list: live steps of all instances, or all of one. */
#include "api/step_reader.h"
#include "base/limits.h"
#include "engine/workers.h"
#include "model/words.h"
#include <stdio.h>

/* Of a gate that waits: since when, until when, and for whom. */
static void print_gate(const struct step_view *step, struct buf *out)
{
    const struct waiting *gate = step->gate;

    if (!gate)
        return;
    json_put_time_or_null(out, "waiting_since", step->attempt->created_at_ms);
    json_put_time_or_null(out, "waiting_until", gate->has_until ? gate->until_ms : 0);
    json_put_raw(out, "approval", gate->approval);
    json_put_raw(out, "approved_by", step->approved_by);
}

static void print_step(str id, const struct step_view *step, struct buf *out)
{
    const struct flow_attempt *attempt = step->attempt;

    json_open(out, '{');
    json_key(out, "step_id");
    buf_fmt(out, "\"%.*s.%u\"", STR_ARG(id), attempt->ordinal);
    json_put_str(out, "instance_id", id);
    json_put_str(out, "name", step->name);
    json_put_str(out, "tool", step->tool);
    json_put_text(out, "status", step_status_name(attempt->status));
    json_put_u64(out, "attempt", attempt->attempt);
    json_put_raw(out, "args", step->args);
    json_put_raw(out, "result", step->result);
    json_put_raw(out, "error", step->error);
    json_put_time_or_null(out, "ready_at", attempt->ready_at_ms);
    json_put_time_or_null(out, "started_at", attempt->started_at_ms);
    json_put_time_or_null(out, "completed_at", attempt->completed_at_ms);
    print_gate(step, out);
    json_close(out, '}');
}

/* ---- Cursors: the instance's number and the step's ordinal ---- */

struct step_cursor {
    uint64_t instance;
    uint32_t ordinal;
};

/* "7-12" */
static bool split_cursor(str text, uint64_t *instance, uint64_t *ordinal)
{
    return str_to_u64(str_before(text, '-'), instance) && str_to_u64(str_after(text, '-'), ordinal);
}

/* The id of a step names a place as well. */
static bool split_step(str text, uint64_t *instance, uint64_t *ordinal)
{
    uint8_t random[ID_RANDOM_SIZE];
    str id;

    return id_split(text, '.', &id, ordinal) && id_parse(id, instance, random);
}

static pawl_status read_cursor(const struct op_call *call, struct step_cursor *out)
{
    str text = op_text(call, "after");
    uint64_t ordinal = 0;

    if (!text.data)
        return PAWL_OK;
    if ((!split_cursor(text, &out->instance, &ordinal) &&
         !split_step(text, &out->instance, &ordinal)) ||
        ordinal > UINT32_MAX)
        return query_refuse(call, "after", "`next` of a page or the id of a step");
    out->ordinal = (uint32_t)ordinal;
    return PAWL_OK;
}

static void print_cursor(const struct step_cursor *cursor, char out[48])
{
    snprintf(out, 48, "%llu-%u", (unsigned long long)cursor->instance, cursor->ordinal);
}

/* ---- Which of them ---- */

#define LIVE_STATUSES (1u << STEP_PENDING | 1u << STEP_READY | 1u << STEP_RUNNING)

struct wanted {
    struct step_filter filter;
    str tool; /* data NULL: any */
};

static bool fits(const struct wanted *wanted, const struct step_view *step)
{
    return !wanted->tool.data || str_eq(wanted->tool, step->tool);
}

/* 0: there is no such status. */
static unsigned status_bit(str text)
{
    for (enum step_status status = STEP_PENDING; status <= STEP_CANCELLED; status++)
        if (str_is(text, step_status_name(status)))
            return 1u << status;
    return 0;
}

static pawl_status read_wanted(const struct op_call *call, struct wanted *out)
{
    str status = op_text(call, "status");

    *out = (struct wanted){ .tool = op_text(call, "tool") };
    out->filter.statuses = status.data ? status_bit(status) : 0;
    if (status.data && !out->filter.statuses)
        return query_refuse(call, "status", "pending, ready, running, done, failed or cancelled");
    return PAWL_OK;
}

/* ---- Attempts, one after the other ----
 *
 * Those that are live have a row: only they are looked for, and not in the whole history. */

struct attempts {
    struct step_reader *reader;
    bool is_live;       /* only those of `ordinals` */
    uint32_t *ordinals; /* ascending */
    uint32_t count, next;
};

static pawl_status list_ordinals(struct scope *scope, const struct live *live, unsigned statuses,
                                 uint32_t after, struct attempts *out)
{
    out->is_live = true;
    out->ordinals = ARENA_ARRAY(&scope->arena, uint32_t, (size_t)live->step_count + 1);
    TRY_MEMORY(scope, out->ordinals);
    for (uint32_t i = 0; i < live->step_count; i++)
        if (live->steps[i].ordinal > after && (statuses & 1u << live->steps[i].status))
            out->ordinals[out->count++] = live->steps[i].ordinal;
    return PAWL_OK;
}

/* `scope` lasts as long as the reading; `live` may be NULL. Without any that fits there is no
 * reader. */
static pawl_status attempts_open(struct engine *engine, struct scope *scope, str id,
                                 uint64_t number, const struct live *live, uint32_t after,
                                 const struct step_filter *filter, struct attempts *out)
{
    bool is_live = filter->statuses && (filter->statuses & ~LIVE_STATUSES) == 0;
    struct live found;
    pawl_status status = PAWL_OK;

    *out = (struct attempts){ 0 };
    if (is_live && !live)
        status = store_live(engine_store(engine), scope, number, &found);
    if (is_live && status == PAWL_OK)
        status = list_ordinals(scope, live ? live : &found, filter->statuses, after, out);
    if (status != PAWL_OK || (out->is_live && out->count == 0))
        return status;
    return step_reader_open(engine, scope, id, out->is_live ? out->ordinals[0] - 1 : after, filter,
                            &out->reader);
}

/* What has ended since the rows were read is passed over by the reader. */
static pawl_status attempts_next(struct attempts *attempts, struct scope *scope,
                                 struct step_view *out, bool *is_found)
{
    pawl_status status = PAWL_OK;

    *is_found = false;
    if (!attempts->reader || (attempts->is_live && attempts->next == attempts->count))
        return PAWL_OK;
    if (attempts->is_live)
        status = step_reader_seek(attempts->reader, scope, attempts->ordinals[attempts->next++]);
    if (status == PAWL_OK)
        status = step_reader_next(attempts->reader, scope, out, is_found);
    while (status == PAWL_OK && *is_found && attempts->next < attempts->count &&
           attempts->ordinals[attempts->next] <= out->attempt->ordinal)
        attempts->next++;
    return status;
}

/* ---- Those of one instance, in pieces ---- */

struct step_pieces {
    struct op_pieces base; /* first */
    struct heap heap;
    struct scope kept; /* the filters */
    struct attempts attempts;
    char id[ID_SIZE + 1];
    struct wanted wanted;
    struct paging paging;
    struct step_cursor last;
};

static void close_steps(struct op_pieces *base)
{
    struct step_pieces *pieces = (struct step_pieces *)base;
    struct heap heap = pieces->heap;

    step_reader_close(pieces->attempts.reader);
    scope_fini(&pieces->kept);
    heap_free(&heap, pieces, sizeof *pieces);
}

static pawl_status read_steps(struct op_pieces *base, struct scope *scope, struct buf *out,
                              bool *is_last)
{
    struct step_pieces *pieces = (struct step_pieces *)base;
    size_t begun = out->size;
    struct step_view step;
    bool is_found = true, is_full = false;
    char cursor[48];
    pawl_status status = PAWL_OK;

    paging_begin(&pieces->paging, "steps", out);
    while (status == PAWL_OK && is_found && !is_full && out->size - begun < OP_PIECE) {
        status = attempts_next(&pieces->attempts, scope, &step, &is_found);
        if (status != PAWL_OK || !is_found || !fits(&pieces->wanted, &step))
            continue;
        is_full = paging_is_full(&pieces->paging);
        if (is_full)
            continue;
        paging_item(&pieces->paging, out);
        print_step(str_of(pieces->id), &step, out);
        paging_note(&pieces->paging, out);
        pieces->last.ordinal = step.attempt->ordinal;
    }
    *is_last = !is_found || is_full;
    print_cursor(&pieces->last, cursor);
    if (status == PAWL_OK && *is_last)
        paging_end(&pieces->paging, is_full ? cursor : NULL, out);
    return status;
}

static pawl_status begin_steps(struct op_call *call, struct step_pieces *pieces,
                               const struct wanted *wanted, const struct step_cursor *after)
{
    uint8_t random[ID_RANDOM_SIZE];
    str id = op_text(call, "instance_id"), state;
    struct step_filter filter = wanted->filter;
    uint32_t from;
    pawl_status status;

    if (pieces->paging.has_limit && !filter.statuses && !wanted->tool.data)
        /* one more says whether there is a next page */
        filter.count = pieces->paging.limit + 1;
    (void)id_parse(id, &pieces->last.instance, random); /* what is no id is not known either */
    from = after->instance == pieces->last.instance ? after->ordinal : 0;
    pieces->wanted.tool = arena_str(&pieces->kept.arena, wanted->tool);
    pieces->paging.reused = arena_str(&pieces->kept.arena, pieces->paging.reused);
    TRY_MEMORY(call->scope, !pieces->kept.arena.failed);
    status = engine_current(op_engine(call), &pieces->kept, id, &state);
    if (status == PAWL_OK)
        status = attempts_open(op_engine(call), &pieces->kept, id, pieces->last.instance, NULL,
                               from, &filter, &pieces->attempts);
    if (status != PAWL_OK)
        call->scope->error = pieces->kept.error;
    if (status == PAWL_OK)
        snprintf(pieces->id, sizeof pieces->id, "%.*s", STR_ARG(id));
    return status;
}

static pawl_status open_steps(struct op_call *call, const struct wanted *wanted,
                              const struct paging *paging, const struct step_cursor *after)
{
    const struct heap *heap = engine_heap(op_engine(call));
    struct step_pieces *pieces = heap_new(heap, sizeof *pieces);
    pawl_status status;

    TRY_MEMORY(call->scope, pieces);
    *pieces = (struct step_pieces){ .base = { read_steps, close_steps },
                                    .heap = *heap,
                                    .paging = *paging };
    scope_init(&pieces->kept, &pieces->heap, LIMIT_SCOPE);
    status = begin_steps(call, pieces, wanted, after);
    if (status == PAWL_OK)
        call->pieces = &pieces->base;
    else
        close_steps(&pieces->base);
    return status;
}

/* The order is that of instance.history: invalid-request, not-known, invalid-query. */
pawl_status op_instance_steps(struct op_call *call, struct buf *out)
{
    struct wanted all = { 0 };
    struct step_cursor after = { 0 };
    struct paging paging = { 0 };

    TRY(require_known(call));
    (void)out;
    TRY(query_check(call, false));
    TRY(paging_read(call, &paging));
    TRY(read_cursor(call, &after));
    TRY(query_flag(call, "without_args", &all.filter.without_args));
    TRY(read_reused(call, op_text(call, "instance_id"), &paging.reused));
    return open_steps(call, &all, &paging, &after);
}

/* ---- Live ones of all instances ---- */

struct step_listing {
    const struct op_call *call;
    struct wanted wanted;
    struct paging paging;
    struct step_cursor last;
    bool is_full;
};

static pawl_status list_instance(struct step_listing *listing, str id, const struct busy_row *row,
                                 struct buf *out)
{
    uint64_t number = row->instance;
    struct scope *scope = listing->call->scope;
    uint32_t after = number == listing->last.instance ? listing->last.ordinal : 0;
    struct attempts attempts;
    struct step_view step;
    bool is_found = true;
    pawl_status status = attempts_open(op_engine(listing->call), scope, id, number, &row->live,
                                       after, &listing->wanted.filter, &attempts);

    while (status == PAWL_OK && is_found && !listing->is_full) {
        status = attempts_next(&attempts, scope, &step, &is_found);
        if (status != PAWL_OK || !is_found || !fits(&listing->wanted, &step))
            continue;
        listing->is_full = paging_is_full(&listing->paging);
        if (listing->is_full)
            continue;
        paging_item(&listing->paging, out);
        print_step(id, &step, out);
        paging_note(&listing->paging, out);
        listing->last = (struct step_cursor){ number, step.attempt->ordinal };
    }
    step_reader_close(attempts.reader);
    return status;
}

#define BUSY_AT_ONCE 100u

/* Each instance has a live step, so a page needs no more of them than steps, and one to know of a next
 * page. Where the steps are filtered, more are asked for. */
static uint32_t page_needs(const struct paging *paging)
{
    return paging->has_limit && paging->limit < BUSY_AT_ONCE ? paging->limit + 1 : BUSY_AT_ONCE;
}

static pawl_status list_all(struct step_listing *listing, struct buf *out)
{
    struct engine *engine = op_engine(listing->call);
    struct scope *scope = listing->call->scope;
    uint64_t after = listing->last.instance > 0 ? listing->last.instance - 1 : 0;
    uint32_t at_once = page_needs(&listing->paging), count;
    struct busy_row *rows;
    pawl_status status;

    do {
        status = store_busy(engine_store(engine), scope, after, true, at_once, &rows, &count);
        for (uint32_t i = 0; i < count && status == PAWL_OK && !listing->is_full; i++) {
            char id[ID_SIZE + 1];

            after = rows[i].instance;
            status = engine_id_of(engine, scope, after, id);
            if (status == PAWL_OK)
                status = list_instance(listing, str_of(id), &rows[i], out);
        }
    } while (status == PAWL_OK && !listing->is_full && count == at_once);
    return status;
}

static pawl_status list_live(struct step_listing *listing, struct buf *out)
{
    char cursor[48];
    pawl_status status = PAWL_OK;

    if (!listing->wanted.filter.statuses)
        listing->wanted.filter.statuses = LIVE_STATUSES;
    listing->wanted.filter.statuses &= LIVE_STATUSES;
    paging_begin(&listing->paging, "steps", out);
    if (listing->wanted.filter.statuses)
        status = list_all(listing, out);
    print_cursor(&listing->last, cursor);
    paging_end(&listing->paging, listing->is_full ? cursor : NULL, out);
    return status;
}

pawl_status op_step_list(struct op_call *call, struct buf *out)
{
    struct step_listing listing = { .call = call, .paging = { .has_limit = true } };

    TRY(query_check(call, false));
    TRY(query_limit(call, &listing.paging.limit));
    TRY(read_wanted(call, &listing.wanted));
    TRY(read_cursor(call, &listing.last));
    if (op_text(call, "instance_id").data)
        return open_steps(call, &listing.wanted, &listing.paging, &listing.last);
    return list_live(&listing, out);
}
