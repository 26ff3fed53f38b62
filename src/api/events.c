/* events.c - where a stream of entries begins, and how it is read. */
#include "api/events.h"
#include "api/ops_int.h"
#include "api/shards.h"
#include "base/limits.h"

/* ---- Cursors ---- */

static const uint8_t no_random[ID_RANDOM_SIZE];

void event_cursor_print(const struct shard_vector *at, struct buf *out)
{
    char text[ID_SIZE + 1];

    if (at->count > 1) {
        shard_vector_print(at, out);
        return;
    }
    id_print(at->at[0], no_random, text);
    buf_str(out, str_of(text));
}

bool event_cursor_parse(str text, uint32_t shards, struct shard_vector *out)
{
    uint8_t random[ID_RANDOM_SIZE];

    if (shards > 1)
        return shard_vector_parse(text, out) && out->count == shards;
    out->count = 1;
    return id_parse(text, &out->at[0], random) && memcmp(random, no_random, sizeof random) == 0;
}

bool vector_reaches(const struct shard_vector *at, const struct shard_vector *until)
{
    for (uint32_t i = 0; i < until->count; i++)
        if (at->at[i] < until->at[i])
            return false;
    return true;
}

size_t vector_size(uint32_t shards)
{
    return offsetof(struct shard_vector, at) + shards * sizeof(uint64_t);
}

void vector_copy(struct shard_vector *to, const struct shard_vector *from)
{
    memcpy(to, from, vector_size(from->count));
}

/* ---- Where it begins ---- */

/* A cursor from beyond the end was given by another store, or by this one before it was put
 * back from a copy: to wait for its position would leave out what comes before. */
static pawl_status read_start(const struct op_call *call, struct shard_vector *out)
{
    struct shard_vector *end = ARENA_NEW(&call->scope->arena, struct shard_vector);
    str from = op_text(call, "from"), after = op_text(call, "after");

    TRY_MEMORY(call->scope, end);
    events_end(call->p, end);
    vector_copy(out, end);
    if (from.data && !str_is(from, "start"))
        return query_refuse(call, "from", "start");
    if (from.data)
        memset(out->at, 0, end->count * sizeof *out->at);
    if (!after.data)
        return PAWL_OK;
    if (!event_cursor_parse(after, end->count, out) || !vector_reaches(end, out))
        return query_refuse(call, "after", "the id of an event of this store");
    return PAWL_OK;
}

/* The order is that of instance.history: invalid-request, not-known, invalid-query. */
pawl_status op_events(struct op_call *call, struct buf *out)
{
    struct shard_vector *after = ARENA_NEW(&call->scope->arena, struct shard_vector);
    str id = op_text(call, "instance_id");

    TRY_MEMORY(call->scope, after);
    TRY(id.data ? require_known(call) : PAWL_OK);
    TRY(query_check(call, false));
    TRY(read_start(call, after));
    call->stream.after = after;
    if (id.data)
        memcpy(call->stream.instance, id.data, ID_SIZE);
    print_cursor(after, "after", out);
    return PAWL_OK;
}

/* ---- Reading ---- */

bool events_watch(pawl *p, void (*committed)(void *context, uint64_t position), void *context)
{
    bool is_watched = true;

    for (uint32_t i = 0; i < shards_count(p) && is_watched; i++)
        is_watched = engine_watch(shard_at(p, i)->engine, committed, context);
    if (!is_watched && committed)
        (void)events_watch(p, NULL, context);
    return is_watched;
}

void events_end(pawl *p, struct shard_vector *out)
{
    out->count = shards_count(p);
    for (uint32_t i = 0; i < out->count; i++)
        out->at[i] = engine_position(shard_at(p, i)->engine);
}

struct event_telling {
    struct scope *scope;
    struct buf text;
    event_fn fn;
    void *context;
    struct shard_vector *at;
    uint32_t shard;
    uint64_t until;
    bool is_over; /* it came to one behind `until` */
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
    uint64_t *at = &telling->at->at[telling->shard], before = *at;
    struct log_event event = { .kind = entry->creation ? EVENT_CREATED : EVENT_ENTRY,
                               .shard = telling->shard,
                               .position = entry->record->pos,
                               .instance = entry->record->instance,
                               .after = telling->at };
    pawl_status status;

    telling->is_over = entry->record->pos > telling->until;
    if (telling->is_over)
        return PAWL_TOO_LARGE; /* never leaves this file */
    buf_clear(&telling->text);
    if (entry->creation)
        print_creation(id, entry, &telling->text);
    else
        print_entry(id, entry, true, &telling->text);
    TRY_MEMORY(telling->scope, !telling->text.failed);
    event.json = buf_view(&telling->text);
    *at = entry->record->pos;
    status = telling->fn(telling->context, &event);
    if (status != PAWL_OK)
        *at = before;
    return status;
}

static pawl_status read_shard(pawl *p, const char *instance, uint32_t limit,
                              struct event_telling *telling)
{
    struct engine *engine = shard_at(p, telling->shard)->engine;
    uint64_t *at = &telling->at->at[telling->shard], reached = *at;
    pawl_status status;

    if (*at >= telling->until)
        return PAWL_OK;
    if (instance[0])
        status = engine_entries_of(engine, telling->scope, str_of(instance), *at, limit, tell,
                                   telling, &reached);
    else
        status = engine_entries(engine, telling->scope, *at, limit, tell, telling, &reached);
    if (telling->is_over)
        status = PAWL_OK;
    if (status == PAWL_OK)
        *at = telling->is_over || reached > telling->until ? telling->until : reached;
    return status;
}

pawl_status events_read(pawl *p, struct scope *scope, const char *instance, struct shard_vector *at,
                        const struct shard_vector *until, uint32_t limit, event_fn fn,
                        void *context)
{
    struct event_telling telling = { .scope = scope, .fn = fn, .context = context, .at = at };
    const pawl *of = instance[0] ? shard_of_id(p, str_of(instance)) : NULL;
    pawl_status status = PAWL_OK;

    buf_init(&telling.text, &p->heap, LIMIT_SCOPE);
    for (uint32_t i = 0; i < at->count && status == PAWL_OK; i++) {
        telling.shard = i;
        telling.until = until ? until->at[i] : UINT64_MAX;
        telling.is_over = false;
        if (!of || of == shard_at(p, i))
            status = read_shard(p, instance, limit, &telling);
        else if (until)
            at->at[i] = until->at[i]; /* nothing of it is there */
    }
    buf_fini(&telling.text);
    return status;
}
