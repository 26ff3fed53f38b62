/* ops_steps.c - instance.steps: every attempt of every step, in creation order, in pieces or by
 * pages; step.list: live steps of all instances, or all of one. */
#include "api/step_reader.h"
#include "base/limits.h"
#include "engine/workers.h"
#include "model/words.h"
#include <stdio.h>

void *memory_of(const struct definition *definition, const struct instance_view *view,
                struct arena *arena)
{
    struct identity identity = { .id = str_of(view->id),
                                 .definition = view->definition_name,
                                 .version = view->version,
                                 .subject = view->subject,
                                 .correlation = view->correlation,
                                 .creator = view->created_by,
                                 .labels = view->labels };
    const struct behavior *behavior = behavior_of(definition->kind);
    void *memory =
        behavior->memory_new(definition, view->input.data ? view->input : STR("{}"), arena);

    if (memory && behavior->introduce && !behavior->introduce(memory, &identity, arena))
        return NULL;
    return memory;
}

static void print_instant(struct buf *out, const char *key, int64_t at_ms)
{
    json_key(out, key);
    if (at_ms != 0)
        json_time(out, at_ms);
    else
        json_null(out);
}

/* Of a gate that waits: since when, until when, and for whom. */
static void print_gate(const struct step_view *step, struct buf *out)
{
    const struct waiting *gate = step->gate;

    if (!gate)
        return;
    print_instant(out, "waiting_since", step->attempt->created_at_ms);
    print_instant(out, "waiting_until", gate->has_until ? gate->until_ms : 0);
    json_key(out, "approval");
    json_raw(out, gate->approval);
    json_key(out, "approved_by");
    json_raw(out, step->approved_by);
}

static void print_step(str id, const struct step_view *step, struct buf *out)
{
    const struct flow_attempt *attempt = step->attempt;

    json_open(out, '{');
    json_key(out, "step_id");
    buf_fmt(out, "\"%.*s.%u\"", STR_ARG(id), attempt->ordinal);
    json_key(out, "instance_id");
    json_str(out, id);
    json_key(out, "name");
    json_str(out, step->name);
    json_key(out, "tool");
    json_str(out, step->tool);
    json_key(out, "status");
    json_text(out, step_status_name(attempt->status));
    json_key(out, "attempt");
    json_u64(out, attempt->attempt);
    json_key(out, "args");
    json_raw(out, step->args);
    json_key(out, "result");
    json_raw(out, step->result);
    json_key(out, "error");
    json_raw(out, step->error);
    print_instant(out, "ready_at", attempt->ready_at_ms);
    print_instant(out, "started_at", attempt->started_at_ms);
    print_instant(out, "completed_at", attempt->completed_at_ms);
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
    const char *dash = memchr(text.data, '-', text.size);
    size_t size = dash ? (size_t)(dash - text.data) : 0;

    return dash && str_to_u64((str){ text.data, size }, instance) &&
           str_to_u64(str_from(text, size + 1), ordinal);
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
        return scope_fail(call->scope, PAWL_INVALID_QUERY,
                          "the filter 'after': expected `next` of a page or the id of a step, found "
                          "'%.*s'",
                          STR_ARG(words_shown(text)));
    out->ordinal = (uint32_t)ordinal;
    return PAWL_OK;
}

static void print_cursor(const struct step_cursor *cursor, char out[48])
{
    snprintf(out, 48, "%llu-%u", (unsigned long long)cursor->instance, cursor->ordinal);
}

/* ---- Which of them ---- */

struct wanted {
    str status, tool;
    bool live_only;
};

static bool fits(const struct wanted *wanted, const struct step_view *step)
{
    if (wanted->live_only && step->attempt->status > STEP_RUNNING)
        return false;
    if (wanted->tool.data && !str_eq(wanted->tool, step->tool))
        return false;
    return !wanted->status.data ||
           str_is(wanted->status, step_status_name(step->attempt->status));
}

static bool is_status(str text)
{
    for (enum step_status status = STEP_PENDING; status <= STEP_CANCELLED; status++)
        if (str_is(text, step_status_name(status)))
            return true;
    return false;
}

static pawl_status read_wanted(const struct op_call *call, struct wanted *out)
{
    *out = (struct wanted){ .status = op_text(call, "status"), .tool = op_text(call, "tool") };
    if (out->status.data && !is_status(out->status))
        return scope_fail(call->scope, PAWL_INVALID_QUERY,
                          "the filter 'status': expected pending, ready, running, done, failed or "
                          "cancelled, found '%.*s'",
                          STR_ARG(out->status));
    return PAWL_OK;
}

/* ---- Those of one instance, in pieces ---- */

struct step_pieces {
    struct op_pieces base; /* first */
    struct heap heap;
    struct scope kept; /* the filters */
    struct step_reader *reader;
    char id[ID_SIZE + 1];
    struct wanted wanted;
    struct paging paging;
    struct step_cursor last;
};

static void close_steps(struct op_pieces *base)
{
    struct step_pieces *pieces = (struct step_pieces *)base;
    struct heap heap = pieces->heap;

    step_reader_close(pieces->reader);
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
        status = step_reader_next(pieces->reader, scope, &step, &is_found);
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
    str id = op_text(call, "instance_id");
    uint32_t from;
    pawl_status status;

    (void)id_parse(id, &pieces->last.instance, random); /* what is no id is not known either */
    from = after->instance == pieces->last.instance ? after->ordinal : 0;
    pieces->wanted.status = arena_str(&pieces->kept.arena, wanted->status);
    pieces->wanted.tool = arena_str(&pieces->kept.arena, wanted->tool);
    pieces->paging.reused = arena_str(&pieces->kept.arena, pieces->paging.reused);
    if (pieces->kept.arena.failed)
        return scope_no_memory(call->scope);
    status = step_reader_open(op_engine(call), call->scope, id, from, false, &pieces->reader);
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

    if (!pieces)
        return scope_no_memory(call->scope);
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
    pawl_status status = require_known(call);

    (void)out;
    if (status == PAWL_OK)
        status = query_check(call, false);
    if (status == PAWL_OK)
        status = paging_read(call, &paging);
    if (status == PAWL_OK)
        status = read_cursor(call, &after);
    if (status == PAWL_OK)
        status = read_reused(call, op_text(call, "instance_id"), &paging.reused);
    return status == PAWL_OK ? open_steps(call, &all, &paging, &after) : status;
}

/* ---- Live ones of all instances ---- */

struct listing {
    const struct op_call *call;
    struct wanted wanted;
    struct paging paging;
    struct step_cursor last;
    bool is_full;
};

/* The first that is live: all before it have ended. 0: none is. */
static pawl_status first_live(const struct op_call *call, uint64_t number, uint32_t *out)
{
    struct live live = { 0 };
    pawl_status status =
        store_live(engine_store(op_engine(call)), call->scope, number, &live);

    *out = 0;
    for (uint32_t i = 0; i < live.step_count && status == PAWL_OK; i++)
        if (*out == 0 || live.steps[i].ordinal < *out)
            *out = live.steps[i].ordinal;
    return status;
}

static pawl_status list_instance(struct listing *listing, str id, uint64_t number, struct buf *out)
{
    struct scope *scope = listing->call->scope;
    uint32_t from = number == listing->last.instance ? listing->last.ordinal : 0, first;
    struct step_reader *reader = NULL;
    struct step_view step;
    bool is_found = true;
    pawl_status status = first_live(listing->call, number, &first);

    if (status != PAWL_OK || first == 0)
        return status;
    status = step_reader_open(op_engine(listing->call), scope, id,
                              from >= first ? from : first - 1, false, &reader);
    while (status == PAWL_OK && is_found && !listing->is_full) {
        status = step_reader_next(reader, scope, &step, &is_found);
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
    step_reader_close(reader);
    return status;
}

static pawl_status list_all(struct listing *listing, struct buf *out)
{
    struct engine *engine = op_engine(listing->call);
    struct scope *scope = listing->call->scope;
    uint64_t after = listing->last.instance > 0 ? listing->last.instance - 1 : 0, *numbers;
    uint32_t count;
    pawl_status status;

    do {
        status = engine_stepping(engine, scope, after, LIMIT_LIST, &numbers, &count);
        for (uint32_t i = 0; i < count && status == PAWL_OK && !listing->is_full; i++) {
            char id[ID_SIZE + 1];

            after = numbers[i];
            status = engine_id_of(engine, scope, after, id);
            if (status == PAWL_OK)
                status = list_instance(listing, str_of(id), after, out);
        }
    } while (status == PAWL_OK && !listing->is_full && count == LIMIT_LIST);
    return status;
}

static pawl_status list_live(struct listing *listing, struct buf *out)
{
    char cursor[48];
    pawl_status status;

    listing->wanted.live_only = true;
    paging_begin(&listing->paging, "steps", out);
    status = list_all(listing, out);
    print_cursor(&listing->last, cursor);
    paging_end(&listing->paging, listing->is_full ? cursor : NULL, out);
    return status;
}

pawl_status op_step_list(struct op_call *call, struct buf *out)
{
    struct listing listing = { .call = call, .paging = { .has_limit = true } };
    pawl_status status = query_check(call, false);

    if (status == PAWL_OK)
        status = query_limit(call, &listing.paging.limit);
    if (status == PAWL_OK)
        status = read_wanted(call, &listing.wanted);
    if (status == PAWL_OK)
        status = read_cursor(call, &listing.last);
    if (status != PAWL_OK)
        return status;
    if (op_text(call, "instance_id").data)
        return open_steps(call, &listing.wanted, &listing.paging, &listing.last);
    return list_live(&listing, out);
}
