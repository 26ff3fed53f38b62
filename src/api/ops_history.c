/* ops_history.c - instance.history: the entries, oldest first, filtered; all of them in pieces, or
 * a page. */
#include "api/ops_int.h"
#include "base/time.h"
#include "model/words.h"
#include <stdio.h>

/* ---- Which entries ---- */

/* "A..B", "A.." or "..B" taken apart, or one value that is both ends; data NULL: that end is open.
 * False: neither end is given. */
static bool split_range(str text, str *from, str *to)
{
    const char *dots = text.data ? memmem(text.data, text.size, "..", 2) : NULL;
    size_t size = dots ? (size_t)(dots - text.data) : text.size;

    *from = *to = text;
    if (!dots)
        return true;
    *from = size > 0 ? (str){ text.data, size } : STR_NONE;
    *to = size + 2 < text.size ? str_from(text, size + 2) : STR_NONE;
    return from->data || to->data;
}

/* Entries `from` to `to`; UINT64_MAX is an open end. Nothing is numbered 0. */
static void meet_numbers(struct history_query *query, uint64_t from, uint64_t to)
{
    uint64_t last = query->sequence_to ? query->sequence_to : UINT64_MAX;

    if (from > query->sequence_from)
        query->sequence_from = from;
    query->sequence_to = to < last ? to : last;
    if (query->sequence_to == 0)
        query->sequence_from = UINT64_MAX; /* no entry; 0 would mean open */
}

pawl_status history_bounds(const struct op_call *call, struct history_query *query)
{
    bool has_from, has_to;
    uint64_t from = 0, to = UINT64_MAX;

    TRY(query_count(call, "sequence_from", &has_from, &from));
    TRY(query_count(call, "sequence_to", &has_to, &to));
    if (to < from)
        return scope_fail(call->scope, PAWL_INVALID_QUERY,
                          "'sequence_to' is less than 'sequence_from'");
    meet_numbers(query, from, to);
    return PAWL_OK;
}

static pawl_status read_number_range(const struct op_call *call, struct history_query *query)
{
    const char *name = "sequence_number", *expected = "a number, or a range like 3..7";
    uint64_t from = 0, to = UINT64_MAX;
    str text = op_text(call, name), first, last;

    if (!text.data)
        return PAWL_OK;
    if (!split_range(text, &first, &last) || (first.data && !str_to_u64(first, &from)) ||
        (last.data && !str_to_u64(last, &to)))
        return query_refuse(call, name, expected);
    if (to < from)
        return query_refuse(call, name, "a range whose second number is not the smaller one");
    meet_numbers(query, from, to);
    return PAWL_OK;
}

/* The cursor is the number of the last entry that was read. */
static pawl_status read_after(const struct op_call *call, struct history_query *query)
{
    uint64_t after = 0;
    str text = op_text(call, "after");

    if (text.data && (!str_to_u64(text, &after) || after == UINT64_MAX))
        return query_refuse(call, "after", "`next` of a page");
    if (text.data)
        meet_numbers(query, after + 1, UINT64_MAX);
    return PAWL_OK;
}

static void meet_times(struct history_query *query, const struct time_span *span)
{
    if (span->has_after && (!query->has_after || span->after_ms > query->after_ms))
        query->after_ms = span->after_ms;
    if (span->has_before && (!query->has_before || span->before_ms < query->before_ms))
        query->before_ms = span->before_ms;
    query->has_after |= span->has_after;
    query->has_before |= span->has_before;
}

/* A time, or a date for the whole of that day (UTC): its beginning, or its last moment. */
static bool time_or_day(str text, bool is_end, int64_t *out)
{
    char whole[32];

    if (query_time_of(text, out))
        return true;
    if (text.size != strlen("2026-05-01"))
        return false;
    snprintf(whole, sizeof whole, "%.*sT%sZ", STR_ARG(text), is_end ? "23:59:59.999" : "00:00:00");
    return time_parse(str_of(whole), out);
}

static pawl_status read_time_range(const struct op_call *call, struct history_query *query)
{
    const char *name = "fired_at";
    struct time_span span = { 0 };
    str text = op_text(call, name), first, last;

    if (!text.data || str_is_blank(text))
        return PAWL_OK;
    if (!split_range(text, &first, &last) ||
        (first.data && !time_or_day(first, false, &span.after_ms)) ||
        (last.data && !time_or_day(last, true, &span.before_ms)))
        return query_refuse(
            call, name,
            "a time like 2026-05-01T00:00:00Z, a date like 2026-05-01, or two of them "
            "with .. between them");
    span.has_after = first.data != NULL;
    span.has_before = last.data != NULL;
    if (span.has_after && span.has_before && span.before_ms < span.after_ms)
        return query_refuse(call, name, "a range whose second time is not the earlier one");
    meet_times(query, &span);
    return PAWL_OK;
}

static pawl_status read_query(const struct op_call *call, struct history_query *query)
{
    struct time_span span = { 0 };

    TRY(query_check(call, false));
    *query = (struct history_query){
        .transition_id = op_text(call, "transition_id"),
        .from_state = op_text(call, "from_state"),
        .to_state = op_text(call, "to_state"),
        .action = op_text(call, "action"),
        .actor = op_text(call, "actor_ref"),
    };
    TRY(history_bounds(call, query));
    TRY(read_number_range(call, query));
    TRY(read_after(call, query));
    TRY(query_span(call, "fired_after", "fired_before", &span));
    meet_times(query, &span);
    return read_time_range(call, query);
}

/* ---- An entry ---- */

static void print_optional(str id, const struct entry *entry, struct buf *out)
{
    if (entry->record->flags & RECORD_GUARD)
        json_put_bool(out, "guard_satisfied", true);
    json_opt_str(out, "reason", entry->reason);
    json_opt_raw(out, "payload", entry->payload);
    if (entry->step.data) {
        json_put_str(out, "step", entry->step);
        json_opt_str(out, "tool", entry->tool);
        if (entry->kind)
            json_put_text(out, "kind", entry->kind);
        json_put_u64(out, "attempt", entry->record->attempt);
        json_put_fmt(out, "step_id", "%.*s.%u", STR_ARG(id), entry->record->ordinal);
    }
    json_opt_str(out, "traceparent", body_trace(entry->record->body));
}

/* What it had, and has no longer: its value is there without bytes. */
static void print_missing(const struct entry *entry, struct buf *out)
{
    const struct record *record = entry->record;
    const struct {
        const char *name;
        bool is_missing;
    } members[] = { { "actor_ref", record->actor && !entry->actor.data },
                    { "reason", record->reason && !entry->reason.data },
                    { "payload", record->payload && !entry->payload.data } };
    bool is_open = false;

    for (size_t i = 0; i < sizeof members / sizeof *members; i++) {
        if (!members[i].is_missing)
            continue;
        if (!is_open)
            json_put_open(out, "erased", '[');
        is_open = true;
        json_text(out, members[i].name);
    }
    if (is_open)
        json_close(out, ']');
}

void print_entry(str id, const struct entry *entry, bool with_id, struct buf *out)
{
    uint64_t seq = entry->record->seq;

    json_open(out, '{');
    if (with_id)
        json_put_str(out, "instance_id", id);
    json_put_fmt(out, "transition_id", "%.*s-%llu", STR_ARG(id), (unsigned long long)seq);
    json_put_u64(out, "sequence_number", seq);
    json_put_str(out, "from_state", entry->from);
    json_put_str(out, "to_state", entry->to);
    json_put_str(out, "action", entry->action);
    json_opt_str(out, "actor_ref", entry->actor);
    json_put_time(out, "fired_at", entry->record->fired_at_ms);
    json_put_time(out, "recorded_at", entry->record->at_ms);
    print_optional(id, entry, out);
    json_put_hex(out, "hash", entry->record->hash, SHA_SIZE);
    print_missing(entry, out);
    json_close(out, '}');
}

/* ---- All of them, or a page ---- */

struct history_pieces {
    struct op_pieces base; /* first */
    const struct heap *heap;
    struct history_reader *reader;
    char id[ID_SIZE + 1];
    struct paging page;
    uint64_t last; /* the number of the last entry that was printed */
};

static void close_history(struct op_pieces *base)
{
    struct history_pieces *pieces = (struct history_pieces *)base;

    engine_history_close(pieces->reader);
    heap_free(pieces->heap, pieces, sizeof *pieces);
}

static pawl_status read_history(struct op_pieces *base, struct scope *scope, struct buf *out,
                                bool *is_last)
{
    struct history_pieces *pieces = (struct history_pieces *)base;
    size_t begun = out->size;
    struct entry entry;
    bool is_found = true, is_full = false;
    char cursor[24];

    paging_begin(&pieces->page, "entries", out);
    while (is_found && !is_full && out->size - begun < OP_PIECE) {
        TRY(engine_history_next(pieces->reader, scope, &entry, &is_found));
        is_full = is_found && paging_is_full(&pieces->page);
        if (!is_found || is_full)
            break;
        paging_item(&pieces->page, out);
        print_entry(str_of(pieces->id), &entry, false, out);
        paging_note(&pieces->page, out);
        pieces->last = entry.record->seq;
    }
    *is_last = !is_found || is_full;
    if (!*is_last)
        return PAWL_OK;
    snprintf(cursor, sizeof cursor, "%llu", (unsigned long long)pieces->last);
    paging_end(&pieces->page, is_full ? cursor : NULL, out);
    json_close(out, '}');
    return PAWL_OK;
}

/* The order is part of the contract: invalid-request, not-known, invalid-query. */
pawl_status op_instance_history(struct op_call *call, struct buf *out)
{
    struct engine *engine = op_engine(call);
    struct history_query query;
    struct history_pieces *pieces;
    struct paging page = { 0 };
    str id = op_text(call, "instance_id");
    pawl_status status;

    (void)out;
    TRY(require_known(call));
    TRY(read_query(call, &query));
    TRY(paging_read(call, &page));
    pieces = heap_new(engine_heap(engine), sizeof *pieces);
    TRY_MEMORY(call->scope, pieces);
    *pieces = (struct history_pieces){ .base = { read_history, close_history },
                                       .heap = engine_heap(engine),
                                       .page = page };
    snprintf(pieces->id, sizeof pieces->id, "%.*s", STR_ARG(id));
    status = engine_history_open(engine, call->scope, id, &query, &pieces->reader);
    if (status == PAWL_OK)
        call->pieces = &pieces->base;
    else
        close_history(&pieces->base);
    return status;
}
