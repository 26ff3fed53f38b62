/* ops_steps.c - instance.steps: every attempt of every step, in creation order, in pieces or by
 * pages; step.list: live steps of all instances, or all of one. */
#include "api/events.h"
#include "api/merge.h"
#include "api/ops_int.h"
#include "api/shards.h"
#include "api/step_reader.h"
#include "base/limits.h"
#include "engine/workers.h"
#include "model/words.h"
#include <stdio.h>

void print_step(str id, const struct step_view *step, struct buf *out)
{
    const struct flow_attempt *attempt = step->attempt;
    const struct waiting *gate = step->gate;

    json_open(out, '{');
    json_put_fmt(out, "step_id", "%.*s.%u", STR_ARG(id), attempt->ordinal);
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
    if (step->progress.data) {
        json_put_raw(out, "progress", step->progress);
        json_put_time(out, "progress_at", step->progress_ms);
    }
    if (gate || !attempt->ready_at_ms) /* no worker was asked to do it: it waits, or waited */
        json_put_time_or_null(out, "waiting_since", attempt->created_at_ms);
    if (gate) { /* that waits: until when, and for whom */
        json_put_time_or_null(out, "waiting_until", gate->has_until ? gate->until_ms : 0);
        json_put_raw(out, "approval", gate->approval);
        json_opt_raw(out, "ask", gate->ask);
        json_put_raw(out, "approved_by", gate->approved_by);
    }
    json_close(out, '}');
}

/* ---- Which of them ---- */

#define LIVE_STATUSES (1u << STEP_PENDING | 1u << STEP_READY | 1u << STEP_RUNNING)

struct step_cursor {
    uint64_t instance; /* its number */
    uint32_t ordinal;
};

struct step_listing {
    struct step_filter filter;
    str tool; /* data NULL: any */
    struct paging paging;
    struct step_cursor last; /* where the page begins; then the last that was printed */
    bool is_full;
    const struct shard_vector *over; /* how far each shard was read; NULL: of one instance */
};

/* "7-12"; the id of a step names a place as well. Of several shards, "VECTOR.7-12". */
static pawl_status read_cursor(const struct op_call *call, struct step_cursor *out)
{
    str text = op_text(call, "after"), id;
    uint8_t random[ID_RANDOM_SIZE];
    uint64_t ordinal = 0;

    if (!text.data)
        return PAWL_OK;
    if (text.size > 0 && text.data[0] == 'v' && str_has(text, '.'))
        text = str_after(text, '.');
    if ((!str_to_u64(str_before(text, '-'), &out->instance) ||
         !str_to_u64(str_after(text, '-'), &ordinal)) &&
        (!id_split(text, '.', &id, &ordinal) || !id_parse(id, &out->instance, random)))
        ordinal = UINT64_MAX;
    if (ordinal > UINT32_MAX)
        return query_refuse(call, "after", "`next` of a page or the id of a step");
    out->ordinal = (uint32_t)ordinal;
    return PAWL_OK;
}

static pawl_status read_wanted(const struct op_call *call, struct step_listing *out)
{
    str name = op_text(call, "status");

    out->tool = op_text(call, "tool");
    for (enum step_status status = STEP_PENDING; status <= STEP_CANCELLED; status++)
        if (str_is(name, step_status_name(status)))
            out->filter.statuses = 1u << status;
    if (name.data && !out->filter.statuses)
        return query_refuse(call, "status", "pending, ready, running, done, failed or cancelled");
    return PAWL_OK;
}

/* ---- Attempts, one after the other ----
 *
 * Those that are live have a row: only they are looked for, and not in the whole history. */

struct attempts {
    str id;
    uint64_t instance;
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
static pawl_status attempts_open(struct engine *engine, struct scope *scope,
                                 const struct live *live, uint32_t after,
                                 const struct step_filter *filter, struct attempts *out)
{
    bool is_live = filter->statuses && (filter->statuses & ~LIVE_STATUSES) == 0;
    struct live found;

    if (is_live && !live) {
        TRY(store_live(engine_store(engine), scope, out->instance, &found));
        live = &found;
    }
    if (is_live)
        TRY(list_ordinals(scope, live, filter->statuses, after, out));
    if (is_live && out->count == 0)
        return PAWL_OK;
    return step_reader_open(engine, scope, out->id, is_live ? out->ordinals[0] - 1 : after, filter,
                            &out->reader);
}

/* What has ended since the rows were read is passed over by the reader. */
static pawl_status attempts_next(struct attempts *attempts, struct scope *scope,
                                 struct step_view *out, bool *is_found)
{
    *is_found = false;
    if (!attempts->reader || (attempts->is_live && attempts->next == attempts->count))
        return PAWL_OK;
    if (attempts->is_live)
        TRY(step_reader_seek(attempts->reader, scope, attempts->ordinals[attempts->next++]));
    TRY(step_reader_next(attempts->reader, scope, out, is_found));
    while (*is_found && attempts->next < attempts->count &&
           attempts->ordinals[attempts->next] <= out->attempt->ordinal)
        attempts->next++;
    return PAWL_OK;
}

/* Prints those that fit, about `most` bytes of them. *is_found: there may be more. */
static pawl_status list_attempts(struct step_listing *listing, struct attempts *attempts,
                                 struct scope *scope, size_t most, struct buf *out, bool *is_found)
{
    size_t begun = out->size;
    struct step_view step;

    for (*is_found = true; *is_found && !listing->is_full && out->size - begun < most;) {
        TRY(attempts_next(attempts, scope, &step, is_found));
        if (!*is_found || (listing->tool.data && !str_eq(listing->tool, step.tool)))
            continue;
        listing->is_full = paging_is_full(&listing->paging);
        if (listing->is_full)
            break;
        paging_item(&listing->paging, out);
        print_step(attempts->id, &step, out);
        paging_note(&listing->paging, out);
        listing->last = (struct step_cursor){ attempts->instance, step.attempt->ordinal };
    }
    return PAWL_OK;
}

static pawl_status end_steps(const struct step_listing *listing, struct scope *scope,
                             struct buf *out)
{
    struct buf cursor;
    bool has_memory;

    buf_init(&cursor, scope->arena.heap, SHARD_VECTOR_TEXT + 48);
    if (listing->over && listing->over->count > 1) {
        event_cursor_print(listing->over, &cursor);
        buf_byte(&cursor, '.');
    }
    buf_fmt(&cursor, "%llu-%u", (unsigned long long)listing->last.instance, listing->last.ordinal);
    paging_end(&listing->paging, listing->is_full ? buf_text(&cursor) : NULL, out);
    has_memory = !cursor.failed;
    buf_fini(&cursor);
    return has_memory ? PAWL_OK : scope_no_memory(scope);
}

/* ---- Those of one instance, in pieces ---- */

struct step_pieces {
    struct op_pieces base; /* first */
    struct heap heap;
    struct scope kept; /* the filters */
    struct attempts attempts;
    struct step_listing listing;
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
    struct step_listing *listing = &pieces->listing;
    bool is_found;

    paging_begin(&listing->paging, "steps", out);
    TRY(list_attempts(listing, &pieces->attempts, scope, OP_PIECE, out, &is_found));
    *is_last = !is_found || listing->is_full;
    if (*is_last) {
        TRY(end_steps(listing, scope, out));
        json_close(out, '}');
    }
    return PAWL_OK;
}

static pawl_status begin_steps(struct op_call *call, struct step_pieces *pieces)
{
    struct step_listing *listing = &pieces->listing;
    struct step_filter filter = listing->filter;
    struct attempts *attempts = &pieces->attempts;
    struct scope *kept = &pieces->kept;
    uint8_t random[ID_RANDOM_SIZE];
    str state;

    if (listing->paging.has_limit && !filter.statuses && !listing->tool.data)
        /* one more says whether there is a next page */
        filter.count = listing->paging.limit + 1;
    attempts->id = arena_str(&kept->arena, op_text(call, "instance_id"));
    listing->tool = arena_str(&kept->arena, listing->tool);
    listing->paging.reused = arena_str(&kept->arena, listing->paging.reused);
    TRY_MEMORY(kept, !kept->arena.failed);
    (void)id_parse(attempts->id, &attempts->instance, random); /* what is no id is not known */
    TRY(engine_current(op_engine(call), kept, attempts->id, &state));
    return attempts_open(op_engine(call), kept, NULL,
                         listing->last.instance == attempts->instance ? listing->last.ordinal : 0,
                         &filter, attempts);
}

static pawl_status open_steps(struct op_call *call, const struct step_listing *listing)
{
    const struct heap *heap = engine_heap(op_engine(call));
    struct step_pieces *pieces = heap_new(heap, sizeof *pieces);
    pawl_status status;

    TRY_MEMORY(call->scope, pieces);
    *pieces = (struct step_pieces){ .base = { read_steps, close_steps },
                                    .heap = *heap,
                                    .listing = *listing };
    scope_init(&pieces->kept, &pieces->heap, LIMIT_SCOPE);
    status = begin_steps(call, pieces);
    if (status == PAWL_OK) {
        call->pieces = &pieces->base;
        return PAWL_OK;
    }
    call->scope->error = pieces->kept.error;
    close_steps(&pieces->base);
    return status;
}

/* The order is that of instance.history: invalid-request, not-known, invalid-query. */
pawl_status op_instance_steps(struct op_call *call, struct buf *out)
{
    struct step_listing all = { 0 };

    TRY(require_known(call));
    (void)out;
    TRY(query_check(call, false));
    TRY(paging_read(call, &all.paging));
    TRY(read_cursor(call, &all.last));
    TRY(query_flag(call, "without_args", &all.filter.without_args));
    TRY(read_reused(call, op_text(call, "instance_id"), &all.paging.reused));
    return open_steps(call, &all);
}

/* ---- Live ones of all instances ---- */

static pawl_status list_instance(const struct op_call *call, struct step_listing *listing,
                                 const struct merge_row *at, const struct busy_row *row,
                                 struct buf *out)
{
    char id[ID_SIZE + 1];
    struct attempts attempts = { .id = { id, ID_SIZE }, .instance = at->number };
    bool is_found;
    pawl_status status = engine_id_of(at->engine, call->scope, at->number, id);

    if (status == PAWL_OK)
        status = attempts_open(at->engine, call->scope, &row->live,
                               at->number == listing->last.instance ? listing->last.ordinal : 0,
                               &listing->filter, &attempts);
    if (status == PAWL_OK)
        status = list_attempts(listing, &attempts, call->scope, SIZE_MAX, out, &is_found);
    step_reader_close(attempts.reader);
    return status;
}

#define BUSY_AT_ONCE 100u
#define LOOKED_MAX   10000u /* that one page looks at */

/* The instance of the last step is looked at again: it may have others. Each instance has a live
 * step, so a page needs no more of them than steps, and one to know of a next page. Where the steps
 * are filtered, more are asked for. */
static pawl_status begin_all(struct op_call *call, const struct step_listing *listing,
                             struct merge_busy *busy)
{
    str text = op_text(call, "after");
    uint32_t shards = busy->at.count = shards_count(call->p), limit = listing->paging.limit;

    for (uint32_t i = 0; i < shards; i++)
        busy->at.at[i] = listing->last.instance;
    if (text.size > 0 && text.data[0] == 'v' &&
        !event_cursor_parse(str_before(text, '.'), shards, &busy->at))
        return query_refuse(call, "after", "`next` of a page or the id of a step");
    if (listing->last.instance > 0)
        busy->at.at[shard_of_number(listing->last.instance, shards)] = listing->last.instance - 1;
    busy->at_once = limit < BUSY_AT_ONCE ? limit + 1 : BUSY_AT_ONCE;
    return busy_begin(call, busy);
}

/* The page ends here, behind the last instance that was looked at, unless that was the last one. */
static pawl_status stop_looking(struct step_listing *listing, struct merge_busy *busy,
                                uint64_t instance)
{
    bool is_last;

    TRY(busy_peek(busy, &is_last));
    listing->is_full = !is_last;
    listing->last = (struct step_cursor){ instance, UINT32_MAX };
    return PAWL_OK;
}

/* One of which nothing fitted is left to the next page. */
static pawl_status list_all(const struct op_call *call, struct step_listing *listing,
                            struct merge_busy *busy, struct buf *out)
{
    const struct busy_row *row;
    struct merge_row at;

    for (uint32_t looked = 1; !listing->is_full; looked++) {
        TRY(busy_next(busy, &at, &row));
        if (!row)
            return PAWL_OK;
        TRY(list_instance(call, listing, &at, row, out));
        if (listing->is_full && listing->last.instance != at.number)
            busy->at.at[shard_of_number(at.number, busy->at.count)] = at.number - 1;
        else if (!listing->is_full && looked == LOOKED_MAX)
            return stop_looking(listing, busy, at.number);
    }
    return PAWL_OK;
}

pawl_status op_step_list(struct op_call *call, struct buf *out)
{
    struct merge_busy *busy = ARENA_NEW(&call->scope->arena, struct merge_busy);
    struct step_listing listing = { .paging = { .has_limit = true } };
    unsigned *statuses = &listing.filter.statuses;

    TRY_MEMORY(call->scope, busy);
    TRY(query_check(call, false));
    TRY(query_limit(call, &listing.paging.limit));
    TRY(read_wanted(call, &listing));
    TRY(read_cursor(call, &listing.last));
    if (op_text(call, "instance_id").data)
        return open_steps(call, &listing);
    *statuses = *statuses ? *statuses & LIVE_STATUSES : LIVE_STATUSES;
    TRY(begin_all(call, &listing, busy));
    paging_begin(&listing.paging, "steps", out);
    if (*statuses)
        TRY(list_all(call, &listing, busy, out));
    listing.over = &busy->at;
    return end_steps(&listing, call->scope, out);
}
