/* events.c - where a stream of entries begins, and how it is read. */
#include "api/events.h"
#include "api/ops_int.h"
#include "base/limits.h"

static const uint8_t no_random[ID_RANDOM_SIZE];

void event_cursor_print(uint64_t position, char out[ID_SIZE + 1])
{
    id_print(position, no_random, out);
}

bool event_cursor_parse(str text, uint64_t *position)
{
    uint8_t random[ID_RANDOM_SIZE];

    return id_parse(text, position, random) && memcmp(random, no_random, sizeof random) == 0;
}

/* ---- Where it begins ---- */

/* A cursor from beyond the end was given by another store, or by this one before it was put
 * back from a copy: to wait for its position would leave out what comes before. */
static pawl_status read_start(const struct op_call *call, uint64_t *out)
{
    uint64_t end = engine_position(op_engine(call));
    str from = op_text(call, "from"), after = op_text(call, "after");

    *out = end;
    if (from.data && !str_is(from, "start"))
        return query_refuse(call, "from", "start");
    if (from.data)
        *out = 0;
    if (!after.data)
        return PAWL_OK;
    if (!event_cursor_parse(after, out) || *out > end)
        return query_refuse(call, "after", "the id of an event of this store");
    return PAWL_OK;
}

/* The order is that of instance.history: invalid-request, not-known, invalid-query. */
pawl_status op_events(struct op_call *call, struct buf *out)
{
    str id = op_text(call, "instance_id");
    char cursor[ID_SIZE + 1];

    TRY(id.data ? require_known(call) : PAWL_OK);
    TRY(query_check(call, false));
    TRY(read_start(call, &call->stream.after));
    if (id.data)
        memcpy(call->stream.instance, id.data, ID_SIZE);
    event_cursor_print(call->stream.after, cursor);
    json_put_text(out, "after", cursor);
    return PAWL_OK;
}

/* ---- Reading ---- */

bool events_watch(pawl *p, void (*committed)(void *context, uint64_t position), void *context)
{
    return engine_watch(p->engine, committed, context);
}

uint64_t events_position(pawl *p)
{
    return engine_position(p->engine);
}

struct event_telling {
    struct scope *scope;
    struct buf text;
    event_fn fn;
    void *context;
};

/* A creation, as instance.get names what it has. */
static void print_creation(str id, const struct entry *entry, struct buf *out)
{
    const struct creation *creation = entry->creation;

    json_open(out, '{');
    json_put_str(out, "instance_id", id);
    json_put_str(out, "definition", creation->definition);
    json_put_u64_or_null(out, "version", creation->version);
    json_put_text(out, "kind", definition_kind_name(creation->kind));
    json_put_str(out, "initial_state", creation->state);
    json_put_str(out, "subject_ref", creation->subject);
    json_put_str(out, "correlation_id", creation->correlation);
    json_put_str(out, "parent_id", creation->parent_id);
    json_put_str(out, "created_by", entry->actor);
    json_put_time(out, "instantiated_at", entry->record->fired_at_ms);
    json_put_time(out, "recorded_at", entry->record->at_ms);
    json_put_hex(out, "hash", entry->record->hash, SHA_SIZE);
    json_close(out, '}');
}

static pawl_status tell(void *context, str id, const struct entry *entry)
{
    struct event_telling *telling = context;
    struct log_event event = { .kind = entry->creation ? EVENT_CREATED : EVENT_ENTRY,
                               .position = entry->record->pos,
                               .instance = entry->record->instance };

    buf_clear(&telling->text);
    if (entry->creation)
        print_creation(id, entry, &telling->text);
    else
        print_entry(id, entry, true, &telling->text);
    TRY_MEMORY(telling->scope, !telling->text.failed);
    event.json = buf_view(&telling->text);
    return telling->fn(telling->context, &event);
}

pawl_status events_read(pawl *p, struct scope *scope, const char *instance, uint64_t after,
                        uint32_t limit, event_fn fn, void *context, uint64_t *reached)
{
    struct event_telling telling = { .scope = scope, .fn = fn, .context = context };
    pawl_status status;

    buf_init(&telling.text, &p->heap, LIMIT_SCOPE);
    if (instance[0])
        status = engine_entries_of(p->engine, scope, str_of(instance), after, limit, tell, &telling,
                                   reached);
    else
        status = engine_entries(p->engine, scope, after, limit, tell, &telling, reached);
    buf_fini(&telling.text);
    return status;
}
