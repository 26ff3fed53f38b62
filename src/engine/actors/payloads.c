/* payloads.c - the payloads of an instance's own entries, read again: a memory does not keep what
 * is large (flow/kept_text.c).
 *
 * An actor finds those of the decision that it makes just now among the drafts, and the others in
 * the store, where its entries up to that decision are. */
#include "engine/parts.h"

static pawl_status read_stored(struct engine *engine, struct scope *scope, uint64_t pos,
                               uint32_t seq, str *out)
{
    struct scope one; /* of one record at a time */
    struct record record = { 0 };
    pawl_status status;

    scope_init(&one, engine->heap, LIMIT_SCOPE);
    status = store_entry(engine->store, &one, pos, seq, &record);
    if (status)
        (void)scope_fail(scope, status, "%.200s; run pawl verify", one.error.message);
    scope_fini(&one);
    if (!status)
        status = value_text(engine, scope, record.payload, out);
    return status && status != PAWL_NO_MEMORY ? PAWL_STORAGE_FAILURE : status;
}

/* ---- Of an actor ----------------------------------------------------------------------------- */

/* The draft of the n-th entry, from 0; NULL: there are fewer, and *n is less by those. */
static const struct draft *find_draft(const struct decision *decision, uint32_t *n)
{
    for (uint32_t i = 0; decision && i < decision->count; i++)
        if (!decision->drafts[i].keep.data && (*n)-- == 0)
            return &decision->drafts[i];
    return NULL;
}

static pawl_status read_of_actor(void *context, struct scope *scope, uint32_t seq, str *out)
{
    struct actor *actor = context;
    const struct draft *draft;
    struct head_row head;
    uint32_t n = seq - actor->decided_seq - 1;
    pawl_status status;

    if (actor->decided[0] && seq > actor->decided_seq) {
        draft = find_draft(actor->decided[0], &n);
        if (!draft)
            draft = find_draft(actor->decided[1], &n);
        if (!draft) /* what asks for it was read from the store */
            return scope_fail(scope, PAWL_STORAGE_FAILURE,
                              "entry %u is not in its instance's chain; run pawl verify", seq);
        *out = draft->payload;
        return PAWL_OK;
    }
    status = head_row_now(actor->engine, scope, actor->instance, &head);
    if (status)
        return status == PAWL_NO_MEMORY ? status : PAWL_STORAGE_FAILURE;
    return read_stored(actor->engine, scope, head.pos, seq, out);
}

void payloads_attach(struct engine *engine, struct actor *actor)
{
    const struct behavior *behavior = behavior_of(actor->definition->kind);

    actor->engine = engine;
    actor->decided[0] = actor->decided[1] = NULL; /* of a memory that has gone */
    actor->payloads = (struct payload_source){ read_of_actor, actor };
    if (behavior->attach)
        behavior->attach(actor->memory, &actor->payloads);
}

void payloads_decide(struct actor *actor, const struct decision *all, const struct decision *more)
{
    actor->decided_seq = actor->seq;
    for (uint32_t i = 0; all && i < all->count; i++)
        actor->decided_seq -= all->drafts[i].keep.data == NULL;
    actor->decided[0] = all;
    actor->decided[1] = more;
}

/* ---- Of a reader ----------------------------------------------------------------------------- */

static pawl_status read_of_reader(void *context, struct scope *scope, uint32_t seq, str *out)
{
    const struct recorded_payloads *payloads = context;

    return read_stored(payloads->engine, scope, payloads->pos, seq, out);
}

pawl_status engine_payloads(struct engine *engine, struct scope *scope, str id,
                            struct recorded_payloads *out)
{
    struct definition_slot *slot;
    struct head head;
    pawl_status status = engine_locate(engine, scope, id, &head, &slot);

    *out = (struct recorded_payloads){ { read_of_reader, out }, engine, head.pos };
    return status;
}
