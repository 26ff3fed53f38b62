/* typed_history.c - pawl_history_...: a history that is read while it is stepped through. */
#include "api/api.h"
#include "api/shards.h"
#include "base/limits.h"
#include "base/time.h"
#include <stdio.h>

struct pawl_history {
    struct heap heap;
    pawl *p;
    struct scope scope; /* of one entry */
    struct history_reader *reader;
    pawl_status status; /* of the reading so far */
    char transition_id[ID_SIZE + 22];
    char id[ID_SIZE + 1];
};

static pawl_status bad_query(struct scope *scope, const char *what, const char *expected)
{
    return scope_fail(scope, PAWL_INVALID_QUERY, "%s: expected %s", what, expected);
}

static pawl_status query_text(struct scope *scope, const char *what, const char *text, str *out)
{
    *out = str_of(text);
    if (text && str_is_blank(*out))
        return bad_query(scope, what, "a value, found nothing but white space");
    return PAWL_OK;
}

/* Counts as not supplied. An empty text does not: it is a mistake. */
static bool is_white(const char *text)
{
    return text[0] != '\0' && str_is_blank(str_of(text));
}

static pawl_status query_times(struct scope *scope, const pawl_history_query *from,
                               struct history_query *out)
{
    out->has_after = from->fired_after && !is_white(from->fired_after);
    out->has_before = from->fired_before && !is_white(from->fired_before);
    if (out->has_after && !time_parse(str_of(from->fired_after), &out->after_ms))
        return bad_query(scope, "fired_after", "a time like 2026-05-01T00:00:00Z");
    if (out->has_before && !time_parse(str_of(from->fired_before), &out->before_ms))
        return bad_query(scope, "fired_before", "a time like 2026-05-01T00:00:00Z");
    if (out->has_after && out->has_before && out->before_ms < out->after_ms)
        return bad_query(scope, "fired_before", "a time that is not before fired_after");
    if (from->sequence_from && from->sequence_to && from->sequence_to < from->sequence_from)
        return bad_query(scope, "sequence_to", "a number that is not below sequence_from");
    out->sequence_from = from->sequence_from;
    out->sequence_to = from->sequence_to;
    return PAWL_OK;
}

static pawl_status query_of(struct scope *scope, const pawl_history_query *from,
                            struct history_query *out)
{
    *out = (struct history_query){ 0 };
    if (!from)
        return PAWL_OK;
    TRY(query_text(scope, "transition_id", from->transition_id, &out->transition_id));
    TRY(query_text(scope, "from_state", from->from_state, &out->from_state));
    TRY(query_text(scope, "to_state", from->to_state, &out->to_state));
    TRY(query_text(scope, "action", from->action, &out->action));
    TRY(query_text(scope, "actor_ref", from->actor_ref, &out->actor));
    return query_times(scope, from, out);
}

/* The id is looked at before the query: invalid-request, not-known, invalid-query. */
static pawl_status begin(pawl *p, pawl_history *history, const char *id,
                            const pawl_history_query *query)
{
    const pawl *of = shard_of_id(p, str_of(id));
    struct history_query parsed;
    str state;

    TRY(engine_current(of->engine, &history->scope, str_of(id), &state));
    TRY(query_of(&history->scope, query, &parsed));
    TRY(engine_history_open(of->engine, &history->scope, str_of(id), &parsed, &history->reader));
    memcpy(history->id, id, ID_SIZE);
    return PAWL_OK;
}

pawl_status pawl_history_open(pawl *p, const char *id, const pawl_history_query *query,
                              pawl_history **out, pawl_error *error)
{
    pawl_status status = API_NEED(error, GIVEN(p), GIVEN(id), GIVEN(out));
    const struct panic_hook *outer;
    pawl_history *history;

    if (out)
        *out = NULL;
    if (status)
        return status;
    history = heap_new(&p->heap, sizeof *history);
    if (!history) {
        if (error)
            *error = (pawl_error){ .status = PAWL_NO_MEMORY, .message = "out of memory" };
        return PAWL_NO_MEMORY;
    }
    history->heap = p->heap;
    history->p = p;
    scope_init(&history->scope, &history->heap, LIMIT_SCOPE);
    outer = panic_set(&p->panic);
    status = begin(p, history, id, query);
    panic_set(outer);
    history->status = status;
    if (status)
        return pawl_history_close(history, error);
    *out = history;
    return PAWL_OK;
}

/* Values are stored without a NUL; the arena's copy has one. */
static const char *text_of(struct scope *scope, str text)
{
    return text.data ? arena_text(&scope->arena, text) : NULL;
}

static void fill(pawl_history *history, const struct entry *entry, pawl_entry *out)
{
    snprintf(history->transition_id, sizeof history->transition_id, "%s-%llu", history->id,
             (unsigned long long)entry->record->seq);
    *out = (pawl_entry){
        .sequence_number = entry->record->seq,
        .transition_id = history->transition_id,
        .from_state = text_of(&history->scope, entry->from),
        .to_state = text_of(&history->scope, entry->to),
        .action = text_of(&history->scope, entry->action),
        .actor_ref = text_of(&history->scope, entry->actor),
        .reason = text_of(&history->scope, entry->reason),
        .payload = text_of(&history->scope, entry->payload),
        .step = text_of(&history->scope, entry->step),
        .attempt = entry->record->attempt,
        .fired_at_ms = entry->record->fired_at_ms,
        .recorded_at_ms = entry->record->at_ms,
        .guard_satisfied = (entry->record->flags & RECORD_GUARD) != 0,
    };
    sha_hex(entry->record->hash, SHA_SIZE, out->hash);
    if (history->scope.arena.failed)
        history->status = scope_no_memory(&history->scope);
}

bool pawl_history_next(pawl_history *history, pawl_entry *out)
{
    const struct panic_hook *outer;
    struct entry entry; /* lives until the next call */
    bool is_found = false;

    if (history && api_in_reduce(&history->scope.error, __func__))
        history->status = PAWL_INVALID_REQUEST;
    if (!history || !out || history->status != PAWL_OK)
        return false;
    outer = panic_set(&history->p->panic);
    scope_clear(&history->scope);
    history->status = engine_history_next(history->reader, &history->scope, &entry, &is_found);
    panic_set(outer);
    if (history->status != PAWL_OK || !is_found)
        return false;
    fill(history, &entry, out);
    return history->status == PAWL_OK;
}

pawl_status pawl_history_close(pawl_history *history, pawl_error *error)
{
    struct heap heap;
    pawl_status status;

    if (!history)
        return PAWL_OK;
    status = history->status;
    if (error && status) {
        *error = history->scope.error;
        error->status = status;
    }
    heap = history->heap;
    engine_history_close(history->reader);
    scope_fini(&history->scope);
    heap_free(&heap, history, sizeof *history);
    return status;
}
