/* verify_record.c - one record against everything before it: its place in its chain, what it
 * says, and its hash. The same for a whole log and for the records of one instance. */
#include "base/assert.h"
#include "base/limits.h"
#include "base/node.h"
#include "evidence/verify_int.h"
#include "model/rights.h"

struct chain *verify_find_chain(struct verify *v, uint64_t number)
{
    uint32_t index = number == 0 ? 0 : map_get(&v->chain_map, number);

    return index < v->chain_count ? &v->chains[index] : NULL;
}

/* ---- creation ---- */

static pawl_status check_instance_row(struct verify *v, const struct record *record,
                                      const struct instance_row *row)
{
    if (row->created_pos != record->pos)
        return verify_bad(v, "the instance's row says it was created at position %llu",
                          (unsigned long long)row->created_pos);
    if (row->creator != record->actor)
        return verify_bad(v, "the instance's row names another creator");
    if (row->instantiated_at_ms != record->fired_at_ms)
        return verify_bad(v, "the instance's row says another time of creation");
    return PAWL_OK;
}

static pawl_status parent_id(struct verify *v, uint64_t parent, char out[ID_SIZE + 1])
{
    const struct chain *chain = verify_find_chain(v, parent);
    struct instance_row row;

    if (chain) {
        id_print(parent, chain->random, out);
        return PAWL_OK;
    }
    TRY_FOUND(v,
              parent <= ID_NUMBER_MAX ? store_instance(v->store, &v->scope, parent, &row)
                                      : PAWL_NOT_KNOWN,
              "its parent, instance %llu, is missing", (unsigned long long)parent);
    id_print(parent, row.random, out);
    return PAWL_OK;
}

/* Three commitments of values that may be absent. */
struct three {
    uint8_t bytes[3][SHA_SIZE];
    const uint8_t *of[3]; /* NULL: absent */
};

static pawl_status commitments_of(struct verify *v, uint64_t first, uint64_t second, uint64_t third,
                                  struct three *out)
{
    const uint64_t ids[3] = { first, second, third };

    *out = (struct three){ .of = { NULL, NULL, NULL } };
    for (size_t i = 0; i < 3; i++)
        if (ids[i]) {
            TRY(verify_value(v, ids[i], out->bytes[i]));
            out->of[i] = out->bytes[i];
        }
    return PAWL_OK;
}

/* What the creation's hash covers beside the record, into v->body. */
static pawl_status creation_of(struct verify *v, const struct instance_row *row,
                               const struct rules *rules)
{
    struct three values;
    char parent[ID_SIZE + 1] = "";

    if (row->parent)
        TRY(parent_id(v, row->parent, parent));
    TRY(commitments_of(v, row->subject, row->input, row->metadata, &values));
    buf_clear(&v->body);
    creation_body(&(struct creation_facts){ .source_sha = rules->source_sha,
                                            .compiled_sha = rules->compiled_sha,
                                            .name = rules->name,
                                            .version = rules->version,
                                            .subject = values.of[0],
                                            .input = values.of[1],
                                            .metadata = values.of[2],
                                            .correlation = row->correlation,
                                            .labels = row->labels,
                                            .parent_id = str_of(parent),
                                            .test = row->test },
                  &v->body);
    return v->body.failed ? scope_no_memory(&v->scope) : PAWL_OK;
}

static pawl_status add_chain(struct verify *v, const struct instance_row *row, uint32_t rules)
{
    TRY_MEMORY(&v->scope, HEAP_GROW(v->heap, v->chains, v->chain_capacity, v->chain_count + 1) &&
                              map_put(&v->chain_map, row->number, v->chain_count));
    v->chains[v->chain_count] = (struct chain){
        .number = row->number,
        .rules = rules,
        .state = v->rules[rules].definition->initial,
    };
    memcpy(v->chains[v->chain_count].random, row->random, ID_RANDOM_SIZE);
    v->chain_count++;
    return PAWL_OK;
}

/* Begin the chain of a new instance; leaves the body of its hash in v->body. */
static pawl_status begin_chain(struct verify *v, const struct record *record)
{
    struct instance_row row;
    uint32_t rules;

    if (record->instance == 0 || record->instance > ID_NUMBER_MAX)
        return verify_bad(v, "there can be no instance %llu", (unsigned long long)record->instance);
    if (verify_find_chain(v, record->instance))
        return verify_bad(v, "the instance is created a second time");
    TRY_FOUND(v, store_instance(v->store, &v->scope, record->instance, &row),
              "the row of instance %llu is missing", (unsigned long long)record->instance);
    row.number = record->instance;
    TRY(check_instance_row(v, record, &row));
    TRY(verify_definition(v, row.definition, &rules));
    TRY(verify_inline(v, rules, record));
    TRY(creation_of(v, &row, &v->rules[rules]));
    return add_chain(v, &row, rules);
}

/* ---- its place ---- */

static pawl_status check_place(struct verify *v, const struct chain *chain,
                               const struct record *record)
{
    bool is_entry = record->what >= 0;
    uint64_t seq = is_entry ? chain->seq + 1 : chain->seq;
    uint64_t skip = is_entry && seq % SKIP_EVERY == 0 ? chain->skip_pos : 0;

    if (record->prev != chain->pos)
        return verify_bad(v, "prev is %llu; the record before it in its chain is at %llu",
                          (unsigned long long)record->prev, (unsigned long long)chain->pos);
    if (record->seq != seq)
        return verify_bad(v, "seq is %llu; it must be %llu", (unsigned long long)record->seq,
                          (unsigned long long)seq);
    if (record->skip != skip)
        return verify_bad(v, "skip is %llu; it must be %llu", (unsigned long long)record->skip,
                          (unsigned long long)skip);
    return PAWL_OK;
}

/* ---- what it says ---- */

static pawl_status check_transition(struct verify *v, const struct chain *chain,
                                    const struct record *record)
{
    const struct definition *definition = chain_definition(v, chain);
    const struct transition *transition;

    ASSERT(chain->state < definition->state_count);
    if (chain_has_ended(v, chain))
        return verify_bad(v, "an entry after the instance has ended");
    if ((uint32_t)record->what >= definition->transition_count)
        return verify_bad(v, "transition %d is not declared", record->what);
    transition = &definition->transitions[record->what];
    if (transition->from != chain->state)
        return verify_bad(v, "transition %d leaves state %u, but the instance was in state %u",
                          record->what, transition->from, chain->state);
    if (!transition->guard.data != !(record->flags & RECORD_GUARD))
        return verify_bad(v, transition->guard.data
                                 ? "the transition has a guard that was not asserted"
                                 : "a guard was asserted that is not declared");
    if (transition->requires_reason && record->reason == 0)
        return verify_bad(v, "the transition requires a reason, and the entry has none");
    return PAWL_OK;
}

static bool is_control(int32_t what)
{
    switch (what) {
#define X(name, number, text) case CONTROL_##name:
        CONTROL_MAP(X)
#undef X
        return true;
    default:
        return false;
    }
}

static pawl_status check_pause(struct verify *v, const struct chain *chain,
                               const struct record *record)
{
    if (record->instance == 0)
        return verify_bad(v, "the store itself is paused or resumed");
    if (chain_has_ended(v, chain))
        return verify_bad(v, "a pause or resumption after the instance has ended");
    if ((record->what == CONTROL_PAUSE) == (chain->paused_pos != 0))
        return verify_bad(v, chain->paused_pos ? "it is paused a second time"
                                               : "it is resumed, but was not paused");
    return PAWL_OK;
}

/* The starter's rights stand right behind the create record, in the chain and in the log, so that
 * they are found. */
static pawl_status check_rights(struct verify *v, const struct record *record)
{
    struct node *body = NULL;
    struct instance_row row;
    struct starter starter;
    struct buf on_end;

    if (record->instance == 0)
        return verify_bad(v, "rights in the store's own chain");
    TRY(store_instance(v->store, &v->scope, record->instance, &row));
    if (record->prev != row.created_pos || record->pos != row.created_pos + 1)
        return verify_bad(v, "rights that do not stand right behind the creation");
    if (node_read_json(&v->scope, record->body, &body) == PAWL_NO_MEMORY)
        return PAWL_NO_MEMORY;
    if (!body || !starter_read(body, &starter))
        return verify_bad(v, "rights that do not name definitions in order, or an end that is "
                             "reported to no machine");
    buf_init(&on_end, v->scope.arena.heap, LIMIT_SCOPE);
    if (starter.on_end.data) {
        node_print(node_find(body, "on_end"), &on_end);
        starter.on_end = buf_take(&on_end, &v->scope.arena);
        TRY_MEMORY(&v->scope, starter.on_end.data);
    }
    buf_clear(&v->body);
    starter_print(&v->body, &starter);
    TRY_MEMORY(&v->scope, !v->body.failed);
    if (!str_eq(buf_view(&v->body), record->body) || record->actor || record->payload ||
        record->reason)
        return verify_bad(v, "a rights record holds more than rights");
    return PAWL_OK;
}

static pawl_status check_control(struct verify *v, const struct chain *chain,
                                 const struct record *record)
{
    if (record->what == CONTROL_PAUSE || record->what == CONTROL_RESUME)
        return check_pause(v, chain, record);
    if (record->what == CONTROL_RIGHTS)
        return check_rights(v, record);
    if (record->what == CONTROL_TOKEN || record->what == CONTROL_ALARM ||
        record->what == CONTROL_HOLD)
        return verify_note_standing(v, record);
    if (record->what == CONTROL_ERASE)
        return verify_erase(v, record);
    if (record->what == CONTROL_ARCHIVE)
        return verify_archive(v, record);
    if (record->what == CONTROL_CLOCK)
        return verify_note_clock(v, record);
    if (record->what == CONTROL_KEEP_SIGNAL && (record->instance == 0 || chain_has_ended(v, chain)))
        return verify_bad(v, "a signal is kept where nothing can take it");
    if (!is_control(record->what))
        return verify_bad(v, "there is no control record %d", record->what);
    if (record->what == CONTROL_DEFINE && record->instance != 0)
        return verify_bad(v, "a definition is put in an instance's chain");
    return record->what == CONTROL_DEFINE ? verify_define(v, record) : PAWL_OK;
}

static pawl_status check_meaning(struct verify *v, const struct chain *chain,
                                 const struct record *record)
{
    if (record->what < 0)
        return check_control(v, chain, record);
    if (record->instance == 0)
        return verify_bad(v, "the store itself has no transitions");
    TRY(check_transition(v, chain, record));
    return verify_machine_body(v, chain, record);
}

/* ---- its hash ---- */

pawl_status verify_hash(struct verify *v, const uint8_t before[SHA_SIZE], const char id[ID_SIZE],
                        const struct record *record, str body, const char *what)
{
    uint8_t hash[SHA_SIZE];
    struct three values;

    TRY(commitments_of(v, record->actor, record->payload, record->reason, &values));
    record_hash(v->sha, before, id, record, body,
                &(struct commitments){ values.of[0], values.of[1], values.of[2] }, hash);
    if ((record->flags & RECORD_ERASED) && memcmp(hash, record->hash, SHA_SIZE) != 0)
        return verify_use_erased_body(v, record, hash);
    if ((record->flags & RECORD_ERASED) || memcmp(hash, record->hash, SHA_SIZE) != 0)
        return verify_bad(v, "the %s does not match its hash", what);
    return PAWL_OK;
}

static pawl_status check_hash(struct verify *v, const struct chain *chain,
                              const struct record *record)
{
    static const uint8_t no_hash[SHA_SIZE];
    char id[ID_SIZE + 1] = STORE_CHAIN_ID;

    if (record->instance != 0)
        id_print(record->instance, chain->random, id);
    return verify_hash(v, chain->pos ? chain->hash : no_hash, id, record,
                       record->what == CONTROL_CREATE ? buf_view(&v->body) : record->body,
                       "record");
}

/* ---- all of it ---- */

/* From the first body on that was erased, nothing that follows from effects is known. The instance
 * has ended, or will have by its last record: verify_opaque(). */
static void note_opaque(struct verify *v, struct chain *chain, const struct record *record)
{
    if (!(record->flags & RECORD_ERASED) || record->instance == 0)
        return;
    chain->is_blind = true;
    verify_drop_replay(v, chain);
    if (record->what == CONTROL_CREATE)
        return;
    chain->is_opaque = true;
    verify_drop_fold(v, chain);
}

static pawl_status apply(struct verify *v, struct chain *chain, const struct record *record)
{
    pawl_status status = PAWL_OK;

    chain->pos = record->pos;
    chain->seq = record->seq;
    memcpy(chain->hash, record->hash, SHA_SIZE);
    if (record->pos <= v->tip.flushed)
        chain->flushed_pos = record->pos;
    if (record->what == CONTROL_PAUSE || record->what == CONTROL_RESUME)
        chain->paused_pos = record->what == CONTROL_PAUSE ? record->pos : 0;
    if (record->what < 0)
        return record->what == CONTROL_CREATE ? verify_first_timers(v, chain, record) : PAWL_OK;
    v->report->entries++;
    if (record->seq % SKIP_EVERY == 0)
        chain->skip_pos = record->pos;
    if (record->body.size > 0 && !chain->is_opaque)
        status = verify_fold(v, chain, record);
    chain->state = chain_definition(v, chain)->transitions[record->what].to;
    if (chain_has_ended(v, chain)) {
        verify_drop_fold(v, chain);
        chain->paused_pos = 0;
        if (status == PAWL_OK)
            status = verify_replay_over(v, chain);
        verify_drop_replay(v, chain);
    }
    return status;
}

pawl_status verify_record(struct verify *v, const struct record *record)
{
    enum definition_kind kind;
    struct chain *chain;

    if (record->what == CONTROL_CREATE)
        TRY(begin_chain(v, record));
    if (record->what == CONTROL_CREATE && record->body.size > 0)
        return verify_bad(v, "a creation has no body of its own");
    chain = verify_find_chain(v, record->instance);
    if (!chain)
        return verify_bad(v, "instance %llu has a record before it is created",
                          (unsigned long long)record->instance);
    TRY(check_place(v, chain, record));
    TRY(check_hash(v, chain, record));
    TRY(verify_note_key(v, record));
    TRY(check_meaning(v, chain, record));
    note_opaque(v, chain, record);
    if (record->what >= 0)
        TRY(verify_replay(v, chain, record));
    if (record->what == CONTROL_KEEP_SIGNAL)
        TRY(verify_replay_signal(v, chain, record));
    kind = record->what >= 0 ? chain_definition(v, chain)->kind : KIND_UNKNOWN;
    if (record->what == LIFE_T_AMEND && kind == KIND_FLOW)
        TRY(verify_amend(v, chain, record));
    if (record->what == LIFE_T_AMEND && kind == KIND_CODE)
        TRY(verify_amend_code(v, chain, record));
    if (record->what == LIFE_T_START && kind != KIND_MACHINE)
        TRY(verify_note_redrive(v, record));
    TRY(apply(v, chain, record));
    v->report->records++;
    return PAWL_OK;
}
