/* ops_list.c - instance.list: many instances, filtered, a page at a time. */
#include "api/events.h"
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
    str cursor = op_text(call, "after");

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
    TRY(query_limit(call, &query->limit));
    return cursor.data && !event_cursor_parse(cursor, &query->after)
               ? query_refuse(call, "after", "a cursor that `next` gave")
               : PAWL_OK;
}

static pawl_status print_row(const struct op_call *call, uint64_t number, struct buf *out)
{
    struct instance_view view;
    char id[ID_SIZE + 1];

    TRY(engine_id_of(op_engine(call), call->scope, number, id));
    TRY(engine_get(op_engine(call), call->scope, str_of(id), &view));
    if (!op_allows(call, view.definition_name)) /* it may have been amended */
        return PAWL_OK;
    json_open(out, '{');
    print_instance(&view, out);
    json_close(out, '}');
    return PAWL_OK;
}

/* One row more than the page was asked for: only if it is there is there a next one. */
pawl_status op_instance_list(struct op_call *call, struct buf *out)
{
    struct list_query query = { 0 };
    char cursor[ID_SIZE + 1];
    uint64_t *numbers = NULL;
    uint32_t count = 0, limit;

    TRY(read_query(call, &query));
    limit = query.limit++;
    TRY(engine_list(op_engine(call), call->scope, &query, &numbers, &count));
    TRY(store_expect(engine_store(op_engine(call)), call->scope,
                     &(struct expectation){ .instances = numbers,
                                            .instance_count = count,
                                            .rows = EXPECT_HEADS | EXPECT_ROWS | EXPECT_RECORDS |
                                                    EXPECT_LIVE }));
    json_put_open(out, "instances", '[');
    for (uint32_t i = 0; i < count && i < limit;
         i++) /* also finds numbers too large for a cursor */
        TRY(print_row(call, numbers[i], out));
    json_close(out, ']');
    if (count > limit)
        event_cursor_print(numbers[limit - 1], cursor);
    json_put_text(out, "next", count > limit ? cursor : NULL);
    return PAWL_OK;
}
