/* inbox.c - the gates of one instance, for a list of many: most of what waits is no gate, or is not
 * asked for, so rows and plans are read first, and the log only of what is listed. */
#include "engine/parts.h"

/* What the rows say, and the definition in force. */
static pawl_status find_instance(struct whole_log *whole, const struct busy_row *row)
{
    struct engine *engine = whole->engine;

    whole->log.live = row->live;
    TRY(store_instance(engine->store, whole->scope, row->instance, &whole->log.instance));
    whole->head.instance = row->instance;
    whole->head.definition = whole->log.instance.definition;
    memcpy(whole->head.random, whole->log.instance.random, sizeof whole->head.random);
    TRY(definitions_get(engine, whole->scope, whole->log.instance.definition, &whole->slot));
    whole->now = whole->slot->definition;
    return amended_definition(engine, whole->scope, &whole->head, &whole->now);
}

static pawl_status find_gates(const struct whole_log *whole, struct inbox *out)
{
    const struct live *live = &whole->log.live;

    out->gates = ARENA_ARRAY(&whole->scope->arena, struct waiting, live->step_count + 1);
    TRY_MEMORY(whole->scope, out->gates);
    for (uint32_t i = 0; i < live->step_count; i++) {
        const struct live_step *step = &live->steps[i];
        const char *kind = step->status == STEP_PENDING ? work_why(whole->now, step->plan) : NULL;

        if (kind && strcmp(kind, WHY_APPROVAL) == 0)
            out->gates[out->count++] =
                (struct waiting){ .kind = WHY_APPROVAL,
                                  .name = work_step_name(whole->now, step->plan),
                                  .ordinal = step->ordinal };
    }
    return gates_rules(whole, out->gates, out->count);
}

static pawl_status name_instance(const struct whole_log *whole, struct inbox *out)
{
    bool is_amended;

    id_print(whole->head.instance, whole->head.random, out->id);
    out->definition = whole->slot->name;
    out->version = whole->slot->version;
    return whole->now != whole->slot->definition && whole->now->kind == KIND_FLOW
               ? amended_name(whole->engine, whole->scope, &whole->head, &out->definition,
                              &out->version, &is_amended)
               : PAWL_OK;
}

static pawl_status read_log(struct whole_log *whole, struct inbox *out)
{
    TRY(head_row_now(whole->engine, whole->scope, whole->head.instance, &whole->log.head));
    whole->head.pos = whole->log.head.pos;
    TRY(value_text(whole->engine, whole->scope, whole->log.instance.subject, &out->subject));
    return gates_progress(whole, out->gates, out->count);
}

pawl_status engine_inbox(struct engine *engine, struct scope *scope, const struct busy_row *row,
                         inbox_sight is_wanted, void *context, struct inbox *out)
{
    struct whole_log whole = { .engine = engine, .scope = scope };

    *out = (struct inbox){ 0 };
    TRY(find_instance(&whole, row));
    if (whole.now->kind != KIND_MACHINE)
        TRY(find_gates(&whole, out));
    if (out->count > 0)
        TRY(name_instance(&whole, out));
    if (out->count == 0 || !is_wanted(context, out)) {
        out->count = 0;
        return PAWL_OK;
    }
    return read_log(&whole, out);
}
