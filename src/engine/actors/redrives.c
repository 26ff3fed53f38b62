/* redrives.c - which instance runs another one again.
 *
 * The new one's `start` says whom it follows; a row in `kept`, under the id of the first, tells
 * readers where the last such start is. So one instance is run again once at a time: a redrive says
 * which rows it saw, and the drain compares. */
#include "engine/parts.h"

/* ---- in the drain ---- */

static const struct effect *redrive_in(const struct draft *draft)
{
    for (uint32_t i = 0; i < draft->effects.count; i++)
        if (draft->effects.items[i].kind == EFFECT_REDRIVE)
            return &draft->effects.items[i];
    return NULL;
}

pawl_status redrive_note(struct engine *engine, struct scope *scope, const struct head *head,
                         const struct draft *draft)
{
    struct batch *batch = &engine->writer.batch;
    const struct effect *effect = redrive_in(draft);
    str id;

    ASSERT_DRAINING(engine);
    if (!effect)
        return PAWL_OK;
    id = arena_str(&engine->writer.scope.arena, effect->name);
    if (!id.data || (batch->kept_count == batch->kept_capacity && !batch_kept_room(batch)))
        return scope_no_memory(scope);
    batch->kept[batch->kept_count++] = (struct kept_change){
        .row = { .what = LIFE_T_START, .id = id, .pos = head->pos }, .is_put = true
    };
    return PAWL_OK;
}

static pawl_status last_start(struct engine *engine, struct scope *scope, str id, uint64_t *pos)
{
    struct kept_row row;
    pawl_status status = store_kept(engine->store, scope, LIFE_T_START, id, &row);

    *pos = status ? 0 : row.pos;
    return status == PAWL_NOT_KNOWN ? PAWL_OK : status;
}

pawl_status redrive_check(struct engine *engine, struct scope *scope,
                          const struct create_args *args)
{
    pawl_status status = PAWL_OK;

    ASSERT_DRAINING(engine);
    for (uint32_t i = 0; i < args->seen_count && !status; i++) {
        uint64_t pos;

        status = last_start(engine, scope, args->seen[i].id, &pos);
        if (!status && (pos != args->seen[i].pos ||
                        kept_changes_here(&engine->writer.batch, LIFE_T_START, args->seen[i].id)))
            return scope_fail(scope, PAWL_CONFLICT,
                              "%.*s was run again by another call meanwhile; `pawl show` names its "
                              "successor",
                              STR_ARG(args->seen[i].id));
    }
    return status;
}

/* ---- reading ---- */

pawl_status engine_successor(struct engine *engine, struct scope *scope, str id,
                             struct successor *out)
{
    struct record record;
    pawl_status status = last_start(engine, scope, id, &out->pos);

    out->id[0] = '\0';
    if (status || !out->pos)
        return status;
    status = store_record(engine->store, scope, out->pos, &record);
    return status ? status : engine_id_of(engine, scope, record.instance, out->id);
}
