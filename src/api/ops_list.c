/* ops_list.c - instance.list: many instances, filtered, a page at a time. */
#include "api/events.h"
#include "api/merge.h"
#include "api/ops_int.h"
#include "base/limits.h"

static pawl_status read_kind(const struct op_call *call, struct list_query *query)
{
    str kind = op_text(call, "kind");

    if (!kind.data)
        return PAWL_OK;
    for (int i = KIND_MACHINE; i <= KIND_CODE; i++)
        if (str_is(kind, definition_kind_name((enum definition_kind)i))) {
            query->kind = i;
            return PAWL_OK;
        }
    return query_refuse(call, "kind", "machine, flow or code");
}

static pawl_status read_status(const struct op_call *call, struct list_query *query)
{
    str status = op_text(call, "status");

    if (!status.data || instance_status_read(status, &query->status))
        return PAWL_OK;
    return query_refuse(call, "status",
                        "running, suspended, paused, completed, failed or cancelled");
}

static pawl_status read_order(const struct op_call *call, struct list_query *query)
{
    str order = op_text(call, "order");

    query->oldest_first = str_is(order, "oldest");
    if (order.data && !query->oldest_first && !str_is(order, "newest"))
        return query_refuse(call, "order", "newest or oldest");
    return PAWL_OK;
}

static pawl_status read_active(const struct op_call *call, struct list_query *query)
{
    str active = op_text(call, "active");

    query->is_active = str_is(active, "true");
    query->has_ended = str_is(active, "false");
    if (active.data && !query->is_active && !query->has_ended)
        return query_refuse(call, "active", "true or false");
    return PAWL_OK;
}

static pawl_status read_labels(const struct op_call *call, struct list_query *query)
{
    const str prefix = STR("label.");
    const uint32_t most = sizeof query->label_key / sizeof *query->label_key;

    for (const struct node *node = call->input->first; node; node = node->next) {
        if (!str_starts(node->key, prefix))
            continue;
        if (query->label_count == most)
            return scope_fail(call->scope, PAWL_INVALID_QUERY, "at most %u labels can be filtered",
                              most);
        query->label_key[query->label_count] = str_from(node->key, prefix.size);
        query->label_value[query->label_count++] = node->text;
    }
    return PAWL_OK;
}

static pawl_status read_query(const struct op_call *call, struct list_query *query)
{
    query->state = op_text(call, "state");
    query->subject = op_text(call, "subject_ref");
    query->correlation = op_text(call, "correlation_id");
    TRY(query_check(call, true));
    TRY(query_definition(call, &query->definition, &query->version));
    TRY(read_kind(call, query));
    TRY(read_status(call, query));
    TRY(read_order(call, query));
    TRY(query_span(call, "created_after", "created_before", &query->created));
    TRY(read_active(call, query));
    TRY(query_span(call, "ended_after", "ended_before", &query->ended));
    TRY(read_labels(call, query));
    return query_limit(call, &query->limit);
}

/* One row more than the page was asked for: only if it is there is there a next one. */
static pawl_status begin(struct op_call *call, struct list_merge *out)
{
    struct list_query query = { 0 };

    TRY(read_query(call, &query));
    out->limit = query.limit++;
    return merge_begin(call, &query, out);
}

static pawl_status print_row_in(const struct op_call *call, struct scope *scope,
                                const struct merge_row *row, struct buf *out)
{
    struct instance_view view;
    char id[ID_SIZE + 1];
    pawl_status status;

    status = engine_id_of(row->engine, scope, row->number, id);
    if (!status)
        status = engine_get(row->engine, scope, str_of(id), &view);
    if (status == PAWL_NOT_KNOWN) /* it was moved into the archive file since it was listed */
        return PAWL_OK;
    TRY(status);
    if (!op_allows(call, view.definition_name)) /* it may have been amended */
        return PAWL_OK;
    json_open(out, '{');
    print_instance(&view, out);
    json_close(out, '}');
    return PAWL_OK;
}

/* In a scope of its own: what a row is made from may be much larger than the row. */
static pawl_status print_row(const struct op_call *call, const struct merge_row *row,
                             struct buf *out)
{
    struct scope scope;

    scope_init(&scope, call->scope->arena.heap, LIMIT_SCOPE);
    return scope_leave(&scope, call->scope, print_row_in(call, &scope, row, out));
}

pawl_status op_instance_list(struct op_call *call, struct buf *out)
{
    struct list_merge *merge = ARENA_NEW(&call->scope->arena, struct list_merge);
    struct merge_row row;
    bool is_there = true;

    TRY_MEMORY(call->scope, merge);
    TRY(begin(call, merge));
    json_put_open(out, "instances", '[');
    for (uint32_t i = 0; i < merge->limit && is_there; i++) {
        TRY(merge_next(merge, &row, &is_there));
        if (is_there) /* also finds numbers too large for a cursor */
            TRY(print_row(call, &row, out));
    }
    json_close(out, ']');
    if (is_there && merge_has_more(merge))
        print_cursor(&merge->at, "next", out);
    else
        json_put_text(out, "next", NULL);
    return PAWL_OK;
}
