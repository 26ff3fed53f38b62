/* verify_fold.c - the memory of a flow under check. It is folded from the flow's entries as the
 * engine does it, and folded again if it was evicted. */
#include "base/limits.h"
#include "base/node.h"
#include "evidence/verify_int.h"

#define FOLD_BYTES ((size_t)1 << 20) /* of a memory's arena, before it is made small again */

/* The bytes of a value; *is_erased if they are gone. */
static pawl_status read_text(struct verify *v, struct scope *scope, uint64_t id, str *out,
                             bool *is_erased)
{
    struct value value;

    *out = STR_NONE;
    if (id == 0)
        return PAWL_OK;
    TRY_FOUND(v, store_value(v->store, scope, id, &value), "a value has gone");
    *out = value.bytes;
    *is_erased = *is_erased || !value.bytes.data;
    return PAWL_OK;
}

/* An entry as the behavior sees it; `effects` is filled and pointed to. */
pawl_status verify_view_entry(struct verify *v, struct scope *scope, const struct record *record,
                              struct effect_list *effects, struct entry_view *out, bool *is_erased)
{
    bool is_reason_erased = false; /* nothing is decided by it */
    pawl_status status = PAWL_OK;

    *effects = (struct effect_list){ 0 };
    *out = entry_of_record(record, effects);
    TRY(read_text(v, scope, record->payload, &out->payload, is_erased));
    TRY(read_text(v, scope, record->reason, &out->reason, &is_reason_erased));
    if (out->transition == LIFE_T_GATE_APPROVE || /* each approver counts once */
        out->transition == LIFE_T_GATE_REJECT ||
        lifecycle_is_stop(out->transition) || /* who cancelled also ends it */
        out->transition == LIFE_T_CANCEL)
        TRY(read_text(v, scope, record->actor, &out->actor, is_erased));
    if (record->body.size > 0)
        status = effects_read(scope, record->body, effects);
    if (status == PAWL_STORAGE_FAILURE && v->report->valid)
        return verify_bad(v, "its effects can't be read: %.180s", scope->error.message);
    return status;
}

pawl_status verify_fold_entry(struct verify *v, const struct chain *chain, struct scope *scope,
                              const struct entry_view *entry)
{
    const struct definition *definition = v->rules[chain->rules].flow;
    pawl_status status = v->request->flows->apply(definition, chain->replay->memory, entry, scope,
                                                  &chain->replay->arena);

    if (status == PAWL_STORAGE_FAILURE && !chain->replay->is_unreadable)
        return verify_bad(v, "%.200s", scope->error.message);
    return status == PAWL_NO_MEMORY ? scope_no_memory(&v->scope) : status;
}

/* Whose memory it is; what was erased of that may have been decided by. */
static pawl_status introduce(struct verify *v, struct chain *chain, struct scope *scope,
                             const struct instance_row *row, struct arena *arena)
{
    const struct rules *rules = &v->rules[chain->rules];
    struct identity identity = { .definition = rules->name,
                                 .version = rules->version,
                                 .correlation = row->correlation,
                                 .labels = row->labels };
    char id[ID_SIZE + 1];
    TRY(read_text(v, scope, row->subject, &identity.subject, &chain->is_blind));
    TRY(read_text(v, scope, row->creator, &identity.creator, &chain->is_blind));
    id_print(chain->number, row->random, id);
    identity.id = str_of(id);
    v->request->flows->attach(chain->replay->memory, &chain->replay->payloads);
    return v->request->flows->introduce(chain->replay->memory, &identity, arena)
               ? PAWL_OK
               : scope_no_memory(&v->scope);
}

/* ---- what a memory does not keep ---- */

static pawl_status read_payload(void *context, struct scope *scope, uint32_t seq, str *out)
{
    struct replay *replay = context;
    struct record record;
    struct value value = { 0 };
    struct scope one;
    pawl_status status;

    scope_init(&one, replay->v->heap, LIMIT_SCOPE);
    status = store_entry(replay->v->store, &one, replay->pos, seq, &record);
    if (status == PAWL_NOT_KNOWN)
        (void)verify_bad(replay->v, "its memory asks for entry %u, which is not in its chain", seq);
    if (status != PAWL_OK)
        scope->error = one.error;
    scope_fini(&one);
    if (status == PAWL_OK && record.payload != 0)
        status = store_value(replay->v->store, scope, record.payload, &value);
    *out = value.bytes;
    replay->is_unreadable = replay->is_unreadable || status != PAWL_OK;
    return status == PAWL_OK || status == PAWL_NO_MEMORY ? status : PAWL_STORAGE_FAILURE;
}

static pawl_status begin_memory(struct verify *v, struct chain *chain, struct scope *scope)
{
    struct replay *replay = chain->replay;
    struct instance_row row;
    str input;

    TRY_FOUND(v, store_instance(v->store, scope, chain->number, &row),
              "the row of the instance has gone");
    TRY(read_text(v, scope, row.input, &input, &chain->is_blind));
    if (chain->is_blind)
        return PAWL_OK;
    replay->input = arena_str(&replay->arena, input.data ? input : STR("{}"));
    replay->payloads = (struct payload_source){ read_payload, replay };
    replay->v = v;
    replay->pos = chain->pos;
    replay->memory =
        v->request->flows->memory_new(v->rules[chain->rules].flow, replay->input, &replay->arena);
    return replay->memory ? introduce(v, chain, scope, &row, &replay->arena)
                          : scope_no_memory(&v->scope);
}

/* The arena also holds what was folded away: the memory is printed, and loaded into another. */
static pawl_status load_again(struct verify *v, struct chain *chain, struct arena *arena)
{
    const struct behavior *flows = v->request->flows;
    const struct definition *definition = v->rules[chain->rules].flow;
    struct replay *replay = chain->replay;
    struct instance_row row;
    struct scope scope;
    struct buf text;
    pawl_status status;

    scope_init(&scope, v->heap, LIMIT_SCOPE);
    buf_init(&text, v->heap, LIMIT_SCOPE);
    flows->memory_print(definition, replay->memory, &text);
    status = text.failed ? scope_no_memory(&scope)
                         : store_instance(v->store, &scope, chain->number, &row);
    if (status == PAWL_OK)
        status = flows->memory_load(definition, buf_view(&text), replay->input, &scope, arena,
                                    &replay->memory);
    replay->input = arena_str(arena, replay->input);
    if (status == PAWL_OK)
        status = introduce(v, chain, &scope, &row, arena);
    if (status != PAWL_OK)
        v->scope.error = scope.error;
    buf_fini(&text);
    scope_fini(&scope);
    return status;
}

pawl_status verify_make_small(struct verify *v, struct chain *chain)
{
    struct replay *replay = chain->replay;
    struct arena arena, old = replay->arena;
    pawl_status status;

    if (old.used < FOLD_BYTES || old.used < 2 * replay->loaded_size || chain->is_blind)
        return PAWL_OK;
    arena_init(&arena, v->heap, LIMIT_SCOPE);
    status = load_again(v, chain, &arena);
    arena_fini(&old);
    replay->arena = arena;
    replay->loaded_size = arena.used;
    return status;
}

/* ---- a memory that was let go, or of a check that went on ---- */

/* A kept signal, folded as the engine folds it. */
static pawl_status fold_kept(struct verify *v, struct chain *chain, struct scope *scope,
                             const struct record *record)
{
    struct node *body = NULL;
    str name, payload;

    TRY(read_text(v, scope, record->payload, &payload, &chain->is_blind));
    name =
        node_read_json(scope, record->body, &body) == PAWL_OK ? node_text(body, "name") : STR_NONE;
    if (!name.data)
        return scope->arena.failed ? scope_no_memory(&v->scope)
                                   : verify_bad(v, "a kept signal without a name");
    if (chain->is_blind)
        return PAWL_OK;
    return v->request->flows->keep(chain->replay->memory, name, payload, scope,
                                   &chain->replay->arena);
}

static pawl_status fold_path(struct verify *v, struct chain *chain, struct scope *scope,
                             const struct path *path)
{
    struct effect_list effects;
    struct entry_view entry;
    struct record record;

    for (uint32_t i = path->count; !chain->is_blind && i > 0; i--) {
        scope_clear(scope);
        TRY_FOUND(v, store_record(v->store, scope, path->positions[i - 1], &record),
                  "an earlier record has gone");
        TRY(verify_make_small(v, chain));
        if (record.what == CONTROL_KEEP_SIGNAL)
            TRY(fold_kept(v, chain, scope, &record));
        if (record.what < 0)
            continue;
        TRY(verify_view_entry(v, scope, &record, &effects, &entry, &chain->is_blind));
        if (entry.transition >= chain_definition(v, chain)->transition_count)
            return verify_bad(v, "an earlier record has changed");
        if (!chain->is_blind)
            TRY(verify_fold_entry(v, chain, scope, &entry));
    }
    return PAWL_OK;
}

pawl_status verify_restore(struct verify *v, struct chain *chain)
{
    uint64_t pos = v->where_pos, instance = v->where_instance, seq = v->where_seq;
    struct path path = { 0 };
    struct scope scope;
    pawl_status status;

    scope_init(&scope, v->heap, LIMIT_SCOPE);
    status = begin_memory(v, chain, &scope);
    if (status == PAWL_OK && chain->seq > 0)
        status = verify_walk_back(v, &scope, chain->number, chain->pos, &path);
    if (status == PAWL_OK) {
        verify_at(v, pos, instance, seq);
        status = fold_path(v, chain, &scope, &path);
    }
    if (status != PAWL_OK && v->scope.error.status == PAWL_OK)
        v->scope.error = scope.error;
    heap_free(v->heap, path.positions, path.capacity * sizeof *path.positions);
    scope_fini(&scope);
    return status;
}

pawl_status verify_replay_signal(struct verify *v, struct chain *chain, const struct record *record)
{
    pawl_status status;

    if (!chain->replay) /* read with the rest when it is restored */
        return PAWL_OK;
    status = fold_kept(v, chain, &v->scope, record);
    if (chain->is_blind)
        verify_drop_replay(v, chain);
    return status;
}
