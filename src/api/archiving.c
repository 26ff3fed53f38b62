/* archiving.c - instances that have ended move from a store's file into its archive file.
 *
 * The archive is a store of its own, so it is listed, shown, verified and exported as any other.
 * A batch is imported there first, with the checks of every import, and when that is durable the
 * instances leave this store with one commit. A death in between leaves them in both: the next
 * attempt finds them in the archive already, and lets them leave. */
#include "api/archiving.h"
#include "api/export.h"
#include "repair/import.h"
#include <stdio.h>

#define BATCH_FAMILIES 64u
#define BATCH_RECORDS  4096u /* a batch is written when it has as many */

struct archiving {
    struct engine *engine;
    struct scope *scope;  /* has the words of a failure */
    struct scope kept;    /* what leaves; emptied after each batch */
    struct scope carried; /* what the import reads; likewise */
    str actor, reason;
    struct archive_sum *out;
    struct leaving leaving[BATCH_FAMILIES];
    uint32_t count;
    uint64_t records;
};

/* ---- into the archive ---- */

/* Whole lines; what is left of the last one stays in `text`. */
static pawl_status put_lines(struct import *import, struct buf *text, bool is_last)
{
    str rest = buf_view(text);
    const char *end;

    while ((end = memchr(rest.data, '\n', rest.size))) {
        size_t size = (size_t)(end - rest.data);

        TRY(import_line(import, (str){ rest.data, size }));
        rest = str_from(rest, size + 1);
    }
    memmove(text->data, rest.data, rest.size);
    text->size = rest.size;
    return is_last && rest.size ? PAWL_STORAGE_FAILURE : PAWL_OK;
}

static pawl_status carry(struct archiving *work, struct import *import, const char *id)
{
    struct op_pieces *pieces;
    struct buf text;
    bool is_last = false;
    pawl_status status;

    TRY(export_open(work->engine, work->scope, str_of(id), &pieces));
    buf_init(&text, engine_heap(work->engine), LIMIT_SCOPE);
    do {
        status = pieces->read(pieces, work->scope, &text, &is_last);
        if (!status && text.failed)
            status = scope_no_memory(work->scope);
        if (!status && text.size)
            status = put_lines(import, &text, is_last);
        if (status && !work->scope->error.status)
            work->scope->error = work->carried.error;
    } while (!status && !is_last);
    buf_fini(&text);
    pieces->close(pieces);
    return status;
}

static pawl_status carry_all(struct archiving *work, struct import *import)
{
    pawl_status status = import_line(import, STR(EXPORT_HEADER));

    for (uint32_t f = 0; f < work->count && !status; f++)
        for (uint32_t i = 0; i < work->leaving[f].member_count && !status; i++)
            status = carry(work, import, work->leaving[f].members[i].id);
    return status;
}

static pawl_status fill_archive(struct archiving *work, uint8_t store_id[STORE_ID_SIZE])
{
    const char *file = engine_store(work->engine)->file;
    struct import *import = NULL;
    struct buf url, answer;
    pawl_status status;

    buf_init(&url, engine_heap(work->engine), 0);
    buf_init(&answer, engine_heap(work->engine), LIMIT_SCOPE);
    buf_fmt(&url, "sqlite:%s" ARCHIVE_SUFFIX "%c", file, '\0');
    status = url.failed ? scope_no_memory(&work->carried)
                        : import_open(url.data, &work->carried, &import);
    if (!status) {
        import_not_before(import, engine_now_ms(work->engine));
        status = carry_all(work, import);
    }
    if (!status)
        status = import_finish(import, &answer);
    if (!status)
        import_store_id(import, store_id);
    import_close(import);
    if (status && !work->scope->error.status)
        work->scope->error = work->carried.error;
    buf_fini(&answer);
    buf_fini(&url);
    return status;
}

/* ---- a batch ---- */

static pawl_status flush(struct archiving *work)
{
    struct archive_args args = { .actor = work->actor, .reason = work->reason };
    uint64_t members = 0;

    if (!work->count)
        return PAWL_OK;
    TRY(fill_archive(work, args.store_id));
    TRY(engine_depart(work->engine, work->scope, work->leaving, work->count, &args));
    for (uint32_t i = 0; i < work->count; i++)
        members += work->leaving[i].member_count;
    work->out->instances += members;
    work->out->records += work->records;
    work->count = 0;
    work->records = 0;
    scope_clear(&work->kept);
    scope_clear(&work->carried);
    return PAWL_OK;
}

static pawl_status take(struct archiving *work, str id, bool is_strict)
{
    struct leaving *leaving = &work->leaving[work->count];
    pawl_status status = engine_leaving(work->engine, &work->kept, id, leaving);

    if (status == PAWL_CONFLICT && !is_strict) {
        work->out->left++;
        return PAWL_OK;
    }
    if (status)
        work->scope->error = work->kept.error;
    TRY(status);
    work->count++;
    work->records += leaving->departure_count;
    return work->count == BATCH_FAMILIES || work->records >= BATCH_RECORDS ? flush(work) : PAWL_OK;
}

/* Others may erase between two batches. */
static pawl_status take_all(struct archiving *work, const str *ids, uint32_t count, bool is_strict)
{
    pawl_status status = PAWL_OK;

    for (uint32_t i = 0; i < count && !status; i++)
        status = take(work, ids[i], is_strict);
    return status ? status : flush(work);
}

pawl_status archive_move(struct engine *engine, struct scope *scope, const str *ids, uint32_t count,
                         str actor, str reason, bool is_strict, struct archive_sum *out)
{
    struct archiving *work = heap_new(engine_heap(engine), sizeof *work);
    pawl_status status;

    *out = (struct archive_sum){ 0 };
    TRY_MEMORY(scope, work);
    *work = (struct archiving){
        .engine = engine, .scope = scope, .actor = actor, .reason = reason, .out = out
    };
    scope_init(&work->kept, engine_heap(engine), LIMIT_SCOPE);
    scope_init(&work->carried, engine_heap(engine), SIZE_MAX);
    engine_keeping(engine, true);
    status = take_all(work, ids, count, is_strict);
    engine_keeping(engine, false);
    scope_fini(&work->carried);
    scope_fini(&work->kept);
    heap_free(engine_heap(engine), work, sizeof *work);
    if (out->instances)
        (void)engine_scrub(engine, scope);
    return status;
}

pawl_status archive_numbers(void *context, struct engine *engine, struct scope *scope,
                            const uint64_t *numbers, uint32_t count, str actor, str reason,
                            uint64_t *moved)
{
    struct archive_sum sum;
    str *ids = ARENA_ARRAY(&scope->arena, str, count + 1u);
    char *text = ARENA_ARRAY(&scope->arena, char, (count + 1u) * (ID_SIZE + 1));
    pawl_status status;

    (void)context;
    TRY_MEMORY(scope, ids && text);
    for (uint32_t i = 0; i < count; i++, text += ID_SIZE + 1) {
        TRY(engine_id_of(engine, scope, numbers[i], text));
        ids[i] = str_of(text);
    }
    status = archive_move(engine, scope, ids, count, actor, reason, false, &sum);
    *moved = sum.instances;
    return status;
}
