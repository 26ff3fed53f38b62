/* step_given.c - what an attempt was given, without folding the history before it.
 *
 * The arguments of a flow's step are made from the input and from the last results of some steps. A
 * later memory tells which entries have those that did not run again since. For the others the
 * chain is read back from the entry that made the attempt: in a loop that is a round. A call of
 * code is in the entry that made its first attempt. */
#include "api/step_given.h"
#include "base/limits.h"
#include <stdlib.h>

struct last_result {
    uint64_t seq, pos; /* of the entry that has it; 0: none */
    uint64_t until;    /* it is the last one up to this entry */
    bool is_sought;
};

/* ---- Which entries have the results ---- */

static pawl_status read_effects(struct step_given *given, struct scope *scope, uint64_t pos,
                                struct record *record, struct effect_list *effects)
{
    pawl_status status = store_record(engine_store(given->engine), scope, pos, record);

    *effects = (struct effect_list){ 0 };
    return status == PAWL_OK && record->body.data ? effects_read(scope, record->body, effects)
                                                  : status;
}

/* The entry up to which all that are sought are known. */
static uint64_t known_until(const struct step_given *given)
{
    uint64_t known = UINT64_MAX;

    for (uint32_t i = 0; i < given->sources->count; i++) {
        const struct last_result *last = &given->results[given->sources->steps[i]];

        if (last->is_sought && last->until < known)
            known = last->until;
    }
    return known;
}

/* Is its result sought, and may the record have it? */
static bool may_have_result(const struct step_given *given, const struct record *row)
{
    const struct last_result *last;

    if (row->what < 0 || row->step == 0 || row->step > work_step_count(given->view->definition))
        return false;
    last = &given->results[row->step - 1];
    return last->is_sought && row->seq > last->until && row->what != LIFE_T_STEP_START;
}

/* Going back: the first entry that is met is the last one. */
static bool see_record(void *context, const struct record *row)
{
    struct step_given *given = context;
    struct record record = { 0 };
    struct effect_list effects;
    struct entry_view entry;

    if (may_have_result(given, row)) {
        scope_clear(&given->record);
        given->seen = read_effects(given, &given->record, row->pos, &record, &effects);
        entry = entry_of_record(&record, &effects);
        if (given->seen == PAWL_OK && flow_has_result(&entry)) {
            given->results[row->step - 1] =
                (struct last_result){ .seq = row->seq, .pos = row->pos };
            given->known = known_until(given);
        }
    }
    return given->seen != PAWL_OK || row->seq <= given->known;
}

static pawl_status look_back(struct step_given *given, const struct flow_attempt *attempt,
                             struct scope *scope)
{
    const struct chain_query query = { .pos = attempt->made_pos,
                                       .first = given->known + 1,
                                       .skip_from = UINT64_MAX };
    pawl_status status;

    given->seen = PAWL_OK;
    scope_init(&given->record, engine_heap(given->engine), LIMIT_SCOPE);
    status = store_walk(engine_store(given->engine), scope, &query, see_record, given);
    if (given->seen != PAWL_OK)
        scope->error = given->record.error;
    scope_fini(&given->record);
    return status != PAWL_OK ? status : given->seen;
}

/* The later memory says which entry has a result, unless the step has run again since. */
static pawl_status find_results(struct step_given *given, const struct flow_attempt *attempt,
                                const struct flow_sources *sources, struct scope *scope)
{
    pawl_status status = PAWL_OK;

    for (uint32_t i = 0; i < sources->count; i++) {
        uint32_t step = sources->steps[i];
        uint32_t done = given->later ? flow_done(given->later, step) : FLOW_DONE_UNKNOWN;
        struct last_result *last = &given->results[step];

        last->is_sought = done > attempt->made_seq; /* unknown as well */
        if (last->is_sought)
            continue;
        if (last->seq != done)
            *last = (struct last_result){ .seq = done };
        last->until = attempt->made_seq;
    }
    given->sources = sources;
    given->known = known_until(given);
    if (given->known < attempt->made_seq)
        status = look_back(given, attempt, scope);
    for (uint32_t i = 0; i < sources->count; i++) {
        given->results[sources->steps[i]].is_sought = false;
        given->results[sources->steps[i]].until = attempt->made_seq;
    }
    return status;
}

/* ---- A memory of these ---- */

static pawl_status read_result(struct step_given *given, const struct flow_attempt *attempt,
                               struct last_result *last, struct scope *scope, str *out)
{
    struct store *store = engine_store(given->engine);
    struct value value = { 0 };
    struct record record = { 0 };
    pawl_status status = last->pos
                             ? store_record(store, scope, last->pos, &record)
                             : store_entry(store, scope, attempt->made_pos, last->seq, &record);

    if (status == PAWL_OK && record.payload)
        status = store_value(store, scope, record.payload, &value);
    last->pos = record.pos;
    *out = value.bytes.data ? value.bytes : STR("null"); /* it was erased */
    return status;
}

struct recalled {
    uint32_t step;
    struct last_result *last;
};

static int compare_recalled(const void *a, const void *b)
{
    const struct recalled *one = a, *other = b;

    return one->last->seq < other->last->seq ? -1 : one->last->seq > other->last->seq;
}

/* In the order of their entries: a later one overwrites what an earlier one set. */
static pawl_status recall(struct step_given *given, const struct flow_attempt *attempt,
                          const struct flow_sources *sources, struct scope *scope, void *memory)
{
    struct recalled *order = ARENA_ARRAY(&scope->arena, struct recalled, sources->count + 1);

    TRY_MEMORY(scope, order);
    for (uint32_t i = 0; i < sources->count; i++)
        order[i] = (struct recalled){ sources->steps[i], &given->results[sources->steps[i]] };
    qsort(order, sources->count, sizeof *order, compare_recalled);
    for (uint32_t i = 0; i < sources->count; i++) {
        struct last_result *last = order[i].last;
        str result;

        if (last->seq == 0)
            continue;
        TRY(read_result(given, attempt, last, scope, &result));
        TRY(flow_recall(memory, order[i].step, result, (uint32_t)last->seq, scope, &scope->arena));
    }
    return PAWL_OK;
}

static pawl_status read_flow(struct step_given *given, const struct flow_attempt *attempt,
                             const struct flow_sources *sources, struct scope *scope,
                             struct flow_call *out)
{
    const struct definition *definition = given->view->definition;
    void *memory;

    if (!given->results)
        given->results =
            ARENA_ARRAY(&given->kept->arena, struct last_result, work_step_count(definition));
    memory = engine_memory_of(definition, given->view, &scope->arena);
    TRY_MEMORY(scope, given->results && memory);
    TRY(find_results(given, attempt, sources, scope));
    TRY(recall(given, attempt, sources, scope, memory));
    TRY(flow_recall_live(memory, attempt, scope, &scope->arena));
    return work_call(definition, memory, attempt->ordinal, scope, out);
}

/* ---- Calls of code ---- */

static pawl_status read_code(struct step_given *given, const struct flow_attempt *attempt,
                             struct scope *scope, struct flow_call *out)
{
    const struct definition *definition = given->view->definition;
    void *memory = engine_memory_of(definition, given->view, &scope->arena);
    struct effect_list effects, call = { 0 };
    struct record record;
    struct entry_view entry;

    TRY_MEMORY(scope, memory);
    TRY(read_effects(given, scope, attempt->made_pos, &record, &effects));
    entry = entry_of_record(&record, &call);
    for (uint32_t i = 0; i < effects.count; i++)
        if (effects.items[i].kind == EFFECT_STEP || effects.items[i].kind == EFFECT_CALL)
            TRY(effect_add(scope, &call, effects.items[i]));
    TRY(behavior_of(definition->kind)->apply(definition, memory, &entry, scope, &scope->arena));
    return work_call(definition, memory, attempt->ordinal, scope, out);
}

/* Neither an amend nor a redrive, which gives an instance the work of another, is known here. */
pawl_status step_given_read(struct step_given *given, const struct flow_attempt *attempt,
                            struct scope *scope, struct flow_call *out, bool *is_known)
{
    const struct instance_view *view = given->view;
    struct flow_sources sources = { 0 };
    bool is_flow = view->definition->kind == KIND_FLOW;

    *is_known = false;
    if (view->is_amended || view->retry_of.data || (!is_flow && attempt->attempt > 1))
        return PAWL_OK;
    if (is_flow)
        TRY(flow_sources(view->definition, attempt->plan, scope, &sources));
    *is_known = !sources.is_whole;
    if (sources.is_whole)
        return PAWL_OK;
    return is_flow ? read_flow(given, attempt, &sources, scope, out)
                   : read_code(given, attempt, scope, out);
}
