/* ops_list.c - instance.list: many instances, filtered, a page at a time. */
#include "api/events.h"
#include "api/ops_int.h"
#include "base/limits.h"

static pawl_status read_cursor(const struct op_call *call, uint64_t *out)
{
    str cursor = op_text(call, "after");

    return cursor.data && !event_cursor_parse(cursor, out)
               ? query_refuse(call, "after", "a cursor that `next` gave")
               : PAWL_OK;
}

static pawl_status read_definition(const struct op_call *call, struct list_query *query)
{
    str reference = op_text(call, "definition");

    if (reference.data && !definition_reference(reference, &query->definition, &query->version))
        return query_refuse(call, "definition", "a name or name@version");
    return PAWL_OK;
}

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

static pawl_status read_created(const struct op_call *call, struct list_query *query)
{
    return query_span(call, "created_after", "created_before", &query->created);
}

static pawl_status read_ended(const struct op_call *call, struct list_query *query)
{
    return query_span(call, "ended_after", "ended_before", &query->ended);
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
    pawl_status (*const readers[])(const struct op_call *, struct list_query *) = {
        read_definition, read_kind,   read_status, read_order,
        read_created,    read_active, read_ended,  read_labels,
    };
    pawl_status status = query_check(call, true);

    for (size_t i = 0; i < sizeof readers / sizeof *readers && status == PAWL_OK; i++)
        status = readers[i](call, query);
    if (status == PAWL_OK)
        status = query_limit(call, &query->limit);
    if (status == PAWL_OK)
        status = read_cursor(call, &query->after);
    query->state = op_text(call, "state");
    query->subject = op_text(call, "subject_ref");
    query->correlation = op_text(call, "correlation_id");
    return status;
}

static pawl_status print_row(const struct op_call *call, uint64_t number, struct buf *out)
{
    struct instance_view view;
    char id[ID_SIZE + 1];
    pawl_status status = engine_id_of(op_engine(call), call->scope, number, id);

    if (status == PAWL_OK)
        status = engine_get(op_engine(call), call->scope, str_of(id), &view);
    if (status == PAWL_OK && op_allows(call, view.definition_name)) /* it may have been amended */
        print_instance(&view, out);
    return status;
}

/* One row more than the page was asked for: only if it is there is there a next one. */
static void print_next(uint64_t last, bool has_more, struct buf *out)
{
    char cursor[ID_SIZE + 1];

    event_cursor_print(last, cursor);
    json_put_text(out, "next", has_more ? cursor : NULL);
}

pawl_status op_instance_list(struct op_call *call, struct buf *out)
{
    struct list_query query = { 0 };
    uint64_t *numbers = NULL;
    uint32_t count = 0, limit;
    bool has_more;
    pawl_status status = read_query(call, &query);

    limit = query.limit++;
    if (status == PAWL_OK)
        status = engine_list(op_engine(call), call->scope, &query, &numbers, &count);
    if (status == PAWL_OK)
        status = store_expect(engine_store(op_engine(call)), call->scope,
                              &(struct expectation){ .instances = numbers,
                                                     .instance_count = count,
                                                     .rows = EXPECT_HEADS | EXPECT_ROWS |
                                                             EXPECT_RECORDS | EXPECT_LIVE });
    has_more = count > limit;
    count = has_more ? limit : count;
    json_open(out, '{');
    json_put_open(out, "instances", '[');
    for (uint32_t i = 0; i < count && status == PAWL_OK; i++)
        status = print_row(call, numbers[i], out);
    TRY(status); /* a number of a damaged row may be too large for a cursor */
    json_close(out, ']');
    print_next(count > 0 ? numbers[count - 1] : 0, has_more, out);
    json_close(out, '}');
    return status;
}
