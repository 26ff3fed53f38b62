/* erase.c - what an instance holds leaves the store, and a record says who did that and why.
 *
 * Values go with their salts, and their commitments stay, so every hash can still be proved. Bodies
 * lose what could be private, and keep the hash that they had. The record stands in the store's
 * chain and names all of it (docs/format.md, "Values" and "Erased bodies"); the row of each
 * instance names the record. What is written here was gathered before (erase_plan.c). */
#include "engine/parts.h"
#include "engine/writer/erasing.h"

/* ---- recording ---- */

static void print_hashes(const struct erase_slice *slice, struct buf *body)
{
    if (slice->value_count) {
        json_put_open(body, "values", '[');
        for (uint32_t i = 0; i < slice->value_count; i++)
            json_hex(body, slice->values[i].commitment, SHA_SIZE);
        json_close(body, ']');
    }
    if (!slice->body_count)
        return;
    json_put_open(body, "bodies", '[');
    for (uint32_t i = 0; i < slice->body_count; i++) {
        json_open(body, '[');
        json_hex(body, slice->hashes[i][0], SHA_SIZE);
        json_hex(body, slice->hashes[i][1], SHA_SIZE);
        json_close(body, ']');
    }
    json_close(body, ']');
}

static bool any_is_done(const struct erase_slice *slice)
{
    for (uint32_t i = 0; i < slice->target_count; i++)
        if (slice->targets[i].is_done)
            return true;
    return false;
}

static str print_body(struct engine *engine, struct scope *scope, const struct erase_slice *slice)
{
    struct buf body;

    buf_init(&body, engine->heap, LIMIT_SCOPE);
    json_open(&body, '{');
    if (any_is_done(slice)) {
        json_put_open(&body, "instances", '[');
        for (uint32_t i = 0; i < slice->target_count; i++)
            if (slice->targets[i].is_done)
                json_str(&body, slice->targets[i].id);
        json_close(&body, ']');
    }
    print_hashes(slice, &body);
    json_close(&body, '}');
    return buf_take(&body, &scope->arena);
}

/* It was so when it was read, and nothing but a hold can have come since. */
static pawl_status check_targets(struct engine *engine, struct scope *scope,
                                 const struct erase_slice *slice)
{
    for (uint32_t i = 0; i < slice->target_count; i++) {
        if (batch_changes_standing(engine, CONTROL_HOLD, slice->targets[i].id))
            return scope_fail(scope, PAWL_OVERLOADED, "instance '%.*s' is put on hold just now",
                              STR_ARG(slice->targets[i].id));
        TRY(hold_check(engine, scope, slice->targets[i].id));
    }
    return PAWL_OK;
}

static pawl_status make_room(struct engine *engine, struct scope *scope,
                             const struct erase_slice *slice)
{
    struct batch *batch = &engine->writer.batch;

    TRY(batch_reserve(engine, scope, 2, 1));
    TRY_MEMORY(scope, HEAP_GROW(batch->heap, batch->erasures, batch->erasure_capacity,
                                batch->erasure_count + slice->value_count));
    TRY_MEMORY(scope, HEAP_GROW(batch->heap, batch->redactions, batch->redaction_capacity,
                                batch->redaction_count + slice->body_count));
    TRY_MEMORY(scope, HEAP_GROW(batch->heap, batch->cleared, batch->cleared_capacity,
                                batch->cleared_count + slice->cleared_count));
    TRY_MEMORY(scope, HEAP_GROW(batch->heap, batch->standing, batch->standing_capacity,
                                batch->standing_count + slice->target_count));
    return PAWL_OK;
}

static void append(struct engine *engine, const struct erase_slice *slice, uint64_t pos)
{
    struct batch *batch = &engine->writer.batch;

    for (uint32_t i = 0; i < slice->value_count; i++)
        batch->erasures[batch->erasure_count++] = slice->values[i];
    for (uint32_t i = 0; i < slice->body_count; i++)
        batch->redactions[batch->redaction_count++] = slice->bodies[i];
    for (uint32_t i = 0; i < slice->cleared_count; i++)
        batch->cleared[batch->cleared_count++] = slice->cleared[i];
    for (uint32_t i = 0; i < slice->target_count; i++)
        if (slice->targets[i].is_done)
            batch->standing[batch->standing_count++] = (struct standing_change){
                .row = { .what = CONTROL_ERASE, .id = slice->targets[i].id, .pos = pos },
                .is_put = true
            };
}

/* An actor of the same name is a new value from here on, also in this very commit. */
static void forget_interned(struct engine *engine, const struct erase_slice *slice)
{
    for (uint32_t i = 0; i < slice->value_count; i++)
        if (slice->values[i].interned) {
            intern_clear(&engine->writer.interned);
            return;
        }
}

static pawl_status drain_erase(struct engine *engine, struct request *request, int64_t at_ms)
{
    struct erasing *erasing = request->context;
    const struct erase_slice *slice = &erasing->slice;
    struct scope *scope = request->scope;
    str body = print_body(engine, scope, slice);
    uint64_t pos;

    ASSERT_DRAINING(engine);
    TRY_MEMORY(scope, body.data);
    TRY(check_targets(engine, scope, slice));
    TRY(make_room(engine, scope, slice));
    pos = engine->writer.tip.pos + engine->writer.batch.record_count + 1;
    append(engine, slice, pos); /* before its actor is looked up: that may be erased */
    forget_interned(engine, slice);
    request->accepted = true;
    return batch_store_record_by(engine, scope,
                                 &(struct store_record){ .what = CONTROL_ERASE,
                                                         .body = body,
                                                         .actor = erasing->args->actor,
                                                         .reason = erasing->args->reason },
                                 at_ms);
}

static void slice_clear(struct erase_slice *slice)
{
    scope_clear(&slice->scope);
    map_clear(&slice->value_ids);
    slice->value_count = slice->body_count = slice->cleared_count = slice->target_count = 0;
    slice->bytes = 0;
}

static bool is_empty(const struct erase_slice *slice)
{
    return !slice->value_count && !slice->body_count && !any_is_done(slice);
}

pawl_status erase_flush(struct erasing *erasing)
{
    struct erase_slice *slice = &erasing->slice;
    struct request request = { .drain = drain_erase, .scope = &slice->scope, .context = erasing };
    pawl_status status = is_empty(slice) ? PAWL_OK : shell_submit(erasing->engine, &request);

    if (status)
        erasing->reading.error = slice->scope.error;
    TRY(status);
    erasing->out->values += slice->value_count;
    for (uint32_t i = 0; i < slice->target_count; i++)
        erasing->out->instances += slice->targets[i].is_done;
    slice_clear(slice);
    return PAWL_OK;
}

/* ---- and its file ---- */

static pawl_status drain_scrub(struct engine *engine, struct request *request, int64_t at_ms)
{
    (void)request;
    (void)at_ms;
    ASSERT_DRAINING(engine);
    engine->writer.scrub_asked = true;
    return PAWL_OK;
}

#define SCRUB_TRIES 3

/* A reader may stand in the way for a moment: it ends. */
bool engine_scrub(struct engine *engine, struct scope *scope)
{
    struct request request = { .drain = drain_scrub, .scope = scope };

    for (int i = 0; i < SCRUB_TRIES; i++) {
        if (shell_submit(engine, &request) != PAWL_OK ||
            !atomic_load(&engine->writer.is_unscrubbed))
            break;
    }
    return !atomic_load(&engine->writer.is_unscrubbed);
}

/* ---- all of them ---- */

static pawl_status take_up(struct erasing *erasing, uint64_t number)
{
    TRY_MEMORY(&erasing->reading, map_put(&erasing->seen, number, 0));
    return erase_gather(erasing, number);
}

/* Children that have not ended stay as they are, and are counted. */
static pawl_status take_children(struct erasing *erasing)
{
    while (erasing->waiting_count) {
        uint64_t number = erasing->waiting[--erasing->waiting_count];
        pawl_status status;

        if (map_get(&erasing->seen, number) != MAP_NONE)
            continue;
        status = take_up(erasing, number);
        if (status != PAWL_CONFLICT && status != PAWL_NOT_KNOWN)
            TRY(status);
        erasing->out->left += status == PAWL_CONFLICT;
    }
    return PAWL_OK;
}

static pawl_status erase_one(struct erasing *erasing)
{
    uint8_t random[ID_RANDOM_SIZE];
    struct instance_row row;
    uint64_t number;
    pawl_status status;
    str id = erasing->args->id;

    TRY(id_check(&erasing->reading, id, &number, random));
    status = store_instance(erasing->engine->store, &erasing->reading, number, &row);
    if (status == PAWL_NOT_KNOWN || (!status && memcmp(row.random, random, sizeof random) != 0))
        return scope_fail(&erasing->reading, PAWL_NOT_KNOWN, "no instance '%.*s'", STR_ARG(id));
    TRY(status);
    return take_up(erasing, number);
}

/* Those of one subject, oldest first. Those that have not ended, or are on hold, are counted. */
static pawl_status erase_page(struct erasing *erasing, const uint64_t *numbers, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        pawl_status status;

        if (map_get(&erasing->seen, numbers[i]) != MAP_NONE)
            continue;
        status = take_up(erasing, numbers[i]);
        if (status != PAWL_CONFLICT)
            TRY(status);
        erasing->out->left += status == PAWL_CONFLICT;
        TRY(take_children(erasing));
    }
    return PAWL_OK;
}

static pawl_status erase_listed(struct erasing *erasing, str subject, struct scope *page)
{
    struct list_query query = { .subject = subject, .oldest_first = true, .limit = LIMIT_LIST };
    uint64_t *numbers;
    uint32_t count;
    pawl_status status;

    do {
        scope_clear(page);
        status = store_list(erasing->engine->store, page, &query, &numbers, &count);
        if (status)
            erasing->reading.error = page->error;
        TRY(status);
        TRY(erase_page(erasing, numbers, count));
        query.after = count ? numbers[count - 1] : 0;
    } while (count == LIMIT_LIST);
    return PAWL_OK;
}

/* Its name goes last, and stays for as long as an instance that is left is about it. Behind an
 * import another value may have the same bytes: it is found by them once the first is erased. */
static pawl_status erase_subject(struct erasing *erasing, struct scope *page)
{
    str subject = erasing->args->subject;
    struct value value;
    pawl_status status;

    for (;;) {
        scope_clear(&erasing->reading);
        status = store_find_value(erasing->engine->store, &erasing->reading, subject, &value);
        if (status == PAWL_NOT_KNOWN)
            return PAWL_OK;
        TRY(status);
        TRY(erase_listed(erasing, subject, page));
        TRY(erase_flush(erasing));
        if (erasing->out->left)
            return PAWL_OK;
        TRY(erase_add_value(erasing, value.id));
        TRY(erase_flush(erasing));
        erasing->out->is_name_erased = true;
    }
}

static pawl_status erase_all(struct erasing *erasing)
{
    struct scope page;
    pawl_status status;

    if (erasing->args->numbers) {
        status = erase_page(erasing, erasing->args->numbers, erasing->args->count);
    } else if (erasing->args->subject.data) {
        scope_init(&page, erasing->engine->heap, LIMIT_SCOPE);
        status = erase_subject(erasing, &page);
        scope_fini(&page);
    } else {
        status = erase_one(erasing);
    }
    TRY(status);
    TRY(take_children(erasing));
    TRY(erase_flush(erasing));
    TRY(erase_gather_beside(erasing));
    return erase_flush(erasing);
}

static void erasing_fini(struct erasing *erasing)
{
    const struct heap *heap = erasing->engine->heap;
    struct erase_slice *slice = &erasing->slice;

    heap_free(heap, slice->values, sizeof *slice->values * slice->value_capacity);
    heap_free(heap, slice->bodies, sizeof *slice->bodies * slice->body_capacity);
    heap_free(heap, slice->hashes, sizeof *slice->hashes * slice->hash_capacity);
    heap_free(heap, slice->cleared, sizeof *slice->cleared * slice->cleared_capacity);
    heap_free(heap, slice->targets, sizeof *slice->targets * slice->target_capacity);
    heap_free(heap, erasing->waiting, sizeof *erasing->waiting * erasing->waiting_capacity);
    map_fini(&slice->value_ids);
    map_fini(&erasing->seen);
    map_fini(&erasing->gone);
    sha_free(erasing->sha);
    scope_fini(&slice->scope);
}

/* It is many commits: after one of them a failure of the store has not left all as it was. */
static pawl_status half_done(struct scope *scope, pawl_status status)
{
    char words[sizeof scope->error.message];

    if (status != PAWL_STORAGE_FAILURE && status != PAWL_NO_MEMORY)
        return status;
    memcpy(words, scope->error.message, sizeof words);
    return scope_fail(scope, PAWL_OUTCOME_UNKNOWN,
                      "a part of it is erased, and then this failed; erase it again: %.400s",
                      words);
}

pawl_status engine_erase(struct engine *engine, struct scope *scope, const struct erase_args *args,
                         struct erased *out)
{
    struct erasing erasing = { .engine = engine, .args = args, .out = out };
    pawl_status status;

    *out = (struct erased){ 0 };
    TRY(ref_check(scope, "actor_ref", args->actor));
    if (args->late)
        return scope_fail(scope, PAWL_INVALID_REQUEST, "%s", args->late);
    erasing.sha = sha_new(engine->heap);
    TRY_MEMORY(scope, erasing.sha);
    map_init(&erasing.seen, engine->heap);
    map_init(&erasing.gone, engine->heap);
    map_init(&erasing.slice.value_ids, engine->heap);
    scope_init(&erasing.reading, engine->heap, LIMIT_SCOPE);
    scope_init(&erasing.slice.scope, engine->heap, LIMIT_SCOPE);
    engine_keeping(engine, true);
    status = erase_all(&erasing);
    engine_keeping(engine, false);
    if (status)
        scope->error = erasing.reading.error;
    if (out->values || out->instances)
        status = half_done(scope, status);
    if (out->values || out->instances || out->repeated)
        out->is_left_in_log = !engine_scrub(engine, &erasing.reading);
    erasing_fini(&erasing);
    scope_fini(&erasing.reading);
    return status;
}
