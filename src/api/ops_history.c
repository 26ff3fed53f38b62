/* ops_history.c - instance.history: the entries, oldest first, filtered. */
#include "api/ops_int.h"

static pawl_status read_numbers(const struct op_call *call, struct history_query *query)
{
    bool has_from, has_to;
    pawl_status status = query_count(call, "sequence_from", &has_from, &query->sequence_from);

    if (status == PAWL_OK)
        status = query_count(call, "sequence_to", &has_to, &query->sequence_to);
    if (status != PAWL_OK)
        return status;
    if (has_from && has_to && query->sequence_to < query->sequence_from)
        return scope_fail(call->scope, PAWL_INVALID_QUERY,
                          "'sequence_to' is less than 'sequence_from'");
    if (has_to && query->sequence_to == 0)
        query->sequence_from = UINT64_MAX; /* nothing is numbered 0 or less; 0 would mean open */
    return PAWL_OK;
}

static pawl_status read_times(const struct op_call *call, struct history_query *query)
{
    pawl_status status = query_time(call, "fired_after", &query->has_after, &query->after_ms);

    if (status == PAWL_OK)
        status = query_time(call, "fired_before", &query->has_before, &query->before_ms);
    if (status == PAWL_OK && query->has_after && query->has_before &&
        query->before_ms < query->after_ms)
        return scope_fail(call->scope, PAWL_INVALID_QUERY,
                          "'fired_before' is earlier than 'fired_after'");
    return status;
}

static pawl_status read_query(const struct op_call *call, struct history_query *query)
{
    pawl_status status = query_check(call, false);

    *query = (struct history_query){
        .transition_id = op_text(call, "transition_id"),
        .from_state = op_text(call, "from_state"),
        .to_state = op_text(call, "to_state"),
        .action = op_text(call, "action"),
        .actor = op_text(call, "actor_ref"),
    };
    if (status == PAWL_OK)
        status = read_numbers(call, query);
    if (status == PAWL_OK)
        status = read_times(call, query);
    return status;
}

static void print_optional(str id, const struct entry *entry, struct buf *out)
{
    if (entry->record->flags & RECORD_GUARD) {
        json_key(out, "guard_satisfied");
        json_bool(out, true);
    }
    if (entry->reason.data) {
        json_key(out, "reason");
        json_str(out, entry->reason);
    }
    if (entry->payload.data) {
        json_key(out, "payload");
        json_raw(out, entry->payload);
    }
    if (entry->step.data) {
        json_key(out, "step");
        json_str(out, entry->step);
        json_key(out, "attempt");
        json_u64(out, entry->record->attempt);
        json_key(out, "step_id");
        buf_fmt(out, "\"%.*s.%u\"", STR_ARG(id), entry->record->ordinal);
    }
    if (body_trace(entry->record->body).data) {
        json_key(out, "traceparent");
        json_str(out, body_trace(entry->record->body));
    }
}

static void print_transition_id(str id, uint64_t seq, struct buf *out)
{
    json_key(out, "transition_id");
    buf_fmt(out, "\"%.*s-%llu\"", STR_ARG(id), (unsigned long long)seq);
}

void print_entry(str id, const struct entry *entry, bool with_id, struct buf *out)
{
    char hex[2 * SHA_SIZE + 1];

    sha_hex(entry->record->hash, SHA_SIZE, hex);
    json_open(out, '{');
    if (with_id) {
        json_key(out, "instance_id");
        json_str(out, id);
    }
    print_transition_id(id, entry->record->seq, out);
    json_key(out, "sequence_number");
    json_u64(out, entry->record->seq);
    json_key(out, "from_state");
    json_str(out, entry->from);
    json_key(out, "to_state");
    json_str(out, entry->to);
    json_key(out, "action");
    json_str(out, entry->action);
    if (entry->actor.data) {
        json_key(out, "actor_ref");
        json_str(out, entry->actor);
    }
    json_key(out, "fired_at");
    json_time(out, entry->record->fired_at_ms);
    json_key(out, "recorded_at");
    json_time(out, entry->record->at_ms);
    print_optional(id, entry, out);
    json_key(out, "hash");
    json_text(out, hex);
    json_close(out, '}');
}

/* The order is part of the contract: invalid-request, not-known, invalid-query. */
pawl_status op_instance_history(struct op_call *call, struct buf *out)
{
    struct history_query query;
    struct history history = { 0 };
    str id = op_text(call, "instance_id");
    pawl_status status = require_known(call);

    if (status == PAWL_OK)
        status = read_query(call, &query);
    if (status == PAWL_OK)
        status = engine_history(op_engine(call), call->scope, id, &query, &history);
    if (status != PAWL_OK)
        return status;
    json_open(out, '{');
    json_key(out, "entries");
    json_open(out, '[');
    for (size_t i = 0; i < history.count; i++)
        print_entry(id, &history.entries[i], false, out);
    json_close(out, ']');
    json_close(out, '}');
    return PAWL_OK;
}
