/* quota_recover.c - what limits count, read from rows and log when a store is opened.
 *
 * Nothing runs yet. What workers elsewhere have is under way; an instance that has started a step
 * has its own place until it ends; and what began within the longest span of a rate is subject by
 * it, each start as long ago as it was. A store without limits is not subject at. */
#include "base/grow.h"
#include "engine/parts.h"

#define AT_ONCE    100u     /* instances of one page */
#define STARTS_MAX 1000000u /* of before, that rates count: the last ones */

struct found_start {
    uint64_t instance, prev;
    uint32_t plan;
    int64_t at_ms;
};

struct look {
    struct engine *engine;
    struct scope *scope; /* of the whole look */
    struct scope one;    /* of one definition, page or instance */
    bool *is_limited, *counts; /* definitions, by id: has limits; of instances at once */
    bool has_tools, has_flows, counts_flows;
    uint32_t last_definition;
    int64_t span_ms; /* of the longest rate */
    struct found_start *starts;
    uint32_t start_count, start_capacity;
};

/* One instance: what its attempts' limits follow from. */
struct quota_subject {
    uint64_t instance;
    uint32_t definition_id;
    const struct definition *definition; /* in force */
    str name, input;
};

/* ---- Which definitions ------------------------------------------------------------------- */

static bool has_word(str text, const char *word)
{
    return text.data && memmem(text.data, text.size, word, strlen(word)) != NULL;
}

static pawl_status look_at_definition(struct look *look, uint32_t id)
{
    struct engine *engine = look->engine;
    struct definition_slot *slot;
    struct definition_row row;
    pawl_status status;
    int64_t span_ms;

    scope_clear(&look->one);
    status = store_definition(engine->store, &look->one, id, &row);
    if (status == PAWL_NOT_KNOWN)
        return PAWL_OK;
    TRY(status);
    if (!has_word(row.compiled, "\"concurrency\":[") && !has_word(row.compiled, "\"rate\":["))
        return PAWL_OK; /* to load every definition would take too long */
    TRY(definitions_get(engine, &look->one, id, &slot));
    look->is_limited[id] = flow_definition_has_quotas(slot->definition);
    look->counts[id] = flow_counts_instances(slot->definition);
    look->has_flows = look->has_flows || look->is_limited[id];
    look->counts_flows = look->counts_flows || look->counts[id];
    span_ms = flow_rate_span_ms(slot->definition);
    look->span_ms = span_ms > look->span_ms ? span_ms : look->span_ms;
    return PAWL_OK;
}

static pawl_status find_definitions(struct look *look)
{
    look->last_definition = engine_last_definition(look->engine);
    look->is_limited = ARENA_ARRAY(&look->scope->arena, bool, look->last_definition + 1);
    look->counts = ARENA_ARRAY(&look->scope->arena, bool, look->last_definition + 1);
    TRY_MEMORY(look->scope, look->is_limited && look->counts);
    for (uint32_t id = 0; id <= look->last_definition; id++) {
        look->is_limited[id] = look->counts[id] = false;
        if (id > 0)
            TRY(look_at_definition(look, id));
    }
    return PAWL_OK;
}

/* ---- One instance --------------------------------------------------------------------------- */

static pawl_status look_at_instance(struct look *look, struct scope *scope, uint64_t number,
                                    struct quota_subject *out)
{
    struct engine *engine = look->engine;
    struct definition_slot *slot;
    struct instance_row row;
    struct head head = { .instance = number };

    TRY(store_instance(engine->store, scope, number, &row));
    TRY(definitions_get(engine, scope, row.definition, &slot));
    *out = (struct quota_subject){ .instance = number,
                                   .definition_id = row.definition,
                                   .definition = slot->definition,
                                   .name = slot->name };
    memcpy(head.random, row.random, sizeof head.random);
    if (slot->definition->kind == KIND_FLOW)
        TRY(amended_definition(engine, scope, &head, &out->definition));
    if (slot->definition->kind == KIND_FLOW)
        TRY(value_text(engine, scope, row.input, &out->input));
    out->input = out->input.data ? out->input : STR("{}");
    return PAWL_OK;
}

static pawl_status find_set(struct look *look, struct scope *scope,
                            const struct quota_subject *subject, uint32_t plan,
                            struct quota_set *out)
{
    struct flow_quotas quotas;

    *out = (struct quota_set){ 0 };
    TRY(flow_quotas_of(subject->definition, plan, subject->input, scope, &quotas));
    TRY(quotas_add_flow(scope, subject->name, &quotas, out));
    return subject->definition->kind == KIND_MACHINE
               ? PAWL_OK
               : quotas_add_tool(look->engine, scope, work_step_tool(subject->definition, plan),
                                 out);
}

static pawl_status count_under_way(struct look *look, struct scope *scope,
                                   const struct quota_subject *subject, uint32_t ordinal,
                                   uint32_t plan)
{
    struct engine *engine = look->engine;
    enum quota_verdict verdict = QUOTA_TAKEN;
    struct quota_set set;

    TRY(find_set(look, scope, subject, plan, &set));
    if (set.count == 0)
        return PAWL_OK;
    guard_lock(&engine->lock);
    verdict = quotas_take(engine, &(struct quota_step){ .instance = subject->instance,
                                                        .ordinal = ordinal,
                                                        .quotas = &set,
                                                        .is_forced = true });
    quotas_have_begun(engine, subject->instance, ordinal);
    guard_unlock(&engine->lock);
    return verdict == QUOTA_NO_MEMORY ? scope_no_memory(scope) : PAWL_OK;
}

/* ---- What runs ------------------------------------------------------------------------------ */

static bool is_elsewhere(const struct live_step *step)
{
    return step->status == STEP_RUNNING && step->lease.size > 0;
}

static pawl_status count_running(struct look *look, const struct busy_row *row)
{
    struct quota_subject subject = { 0 };

    for (uint32_t i = 0; i < row->live.step_count; i++) {
        if (!is_elsewhere(&row->live.steps[i]))
            continue;
        if (!subject.instance)
            TRY(look_at_instance(look, &look->one, row->instance, &subject));
        TRY(count_under_way(look, &look->one, &subject, row->live.steps[i].ordinal,
                            row->live.steps[i].plan));
    }
    return PAWL_OK;
}

static pawl_status count_all_running(struct look *look)
{
    uint64_t after = 0;
    uint32_t count;
    struct busy_row *rows;
    struct scope page;
    pawl_status status;

    scope_init(&page, look->engine->heap, LIMIT_SCOPE);
    do {
        scope_clear(&page);
        status = store_busy(look->engine->store, &page, after, false, AT_ONCE, &rows, &count);
        for (uint32_t i = 0; i < count && !status; i++) {
            scope_clear(&look->one);
            after = rows[i].instance;
            status = count_running(look, &rows[i]);
        }
    } while (!status && count == AT_ONCE);
    return scope_leave(&page, &look->one, status);
}

/* ---- Instances that have begun -------------------------------------------------------------- */

static bool see_start(void *context, const struct record *record)
{
    bool *has_begun = context;

    *has_begun = *has_begun || record->what == LIFE_T_STEP_START;
    return *has_begun;
}

static pawl_status count_instance(struct look *look, uint64_t number)
{
    struct engine *engine = look->engine;
    struct quota_subject subject;
    struct head_row head;
    bool has_begun = false;

    scope_clear(&look->one);
    TRY(head_row_now(engine, &look->one, number, &head));
    TRY(chain_look_back(engine, &look->one, head.pos, see_start, &has_begun));
    if (!has_begun)
        return PAWL_OK;
    TRY(look_at_instance(look, &look->one, number, &subject));
    return count_under_way(look, &look->one, &subject, 0, 0);
}

static pawl_status count_instances_of(struct look *look, uint32_t id)
{
    struct definition_slot *slot;
    struct list_query query = { .is_active = true, .oldest_first = true, .limit = AT_ONCE };
    struct scope page;
    uint64_t *numbers;
    uint32_t count = 0;
    pawl_status status = definitions_get(look->engine, &look->one, id, &slot);

    scope_init(&page, look->engine->heap, LIMIT_SCOPE);
    do {
        scope_clear(&page);
        if (!status) {
            query.definition = slot->name;
            query.version = slot->version;
            status = store_list(look->engine->store, &page, &query, &numbers, &count);
        }
        for (uint32_t i = 0; i < count && !status; i++)
            status = count_instance(look, query.after = numbers[i]);
    } while (!status && count == AT_ONCE);
    return scope_leave(&page, &look->one, status);
}

/* ---- What began lately ---------------------------------------------------------------------- */

/* The first record that is not older than `from_ms`: times of records never fall. */
static pawl_status find_since(struct look *look, int64_t from_ms, uint64_t *out)
{
    uint64_t low = 1, high = look->engine->writer.tip.pos + 1;
    struct record record;

    while (low < high) {
        uint64_t middle = low + (high - low) / 2;

        scope_clear(&look->one);
        TRY(store_record(look->engine->store, &look->one, middle, &record));
        if (record.at_ms < from_ms)
            low = middle + 1;
        else
            high = middle;
    }
    *out = low;
    return PAWL_OK;
}

static pawl_status note_start(void *context, const struct record *record)
{
    struct look *look = context;

    if (record->what != LIFE_T_STEP_START || record->step == 0)
        return PAWL_OK;
    if (look->start_count == STARTS_MAX)
        look->start_count = 0; /* the last ones are what counts */
    if (!HEAP_GROW(look->engine->heap, look->starts, look->start_capacity, look->start_count + 1))
        return PAWL_NO_MEMORY;
    look->starts[look->start_count++] = (struct found_start){ .instance = record->instance,
                                                              .prev = record->prev,
                                                              .plan = record->step - 1,
                                                              .at_ms = record->at_ms };
    return PAWL_OK;
}

static pawl_status count_start(struct look *look, const struct found_start *start)
{
    struct engine *engine = look->engine;
    int64_t ago_ms = engine_now_ms(engine) - start->at_ms;
    bool has_begun = false, kept = true;
    struct quota_subject subject;
    struct quota_set set;

    scope_clear(&look->one);
    TRY(look_at_instance(look, &look->one, start->instance, &subject));
    TRY(find_set(look, &look->one, &subject, start->plan, &set));
    if (set.count > 0 && start->prev)
        TRY(chain_look_back(engine, &look->one, start->prev, see_start, &has_begun));
    guard_lock(&engine->lock);
    for (uint32_t i = 0; i < set.count && kept; i++)
        if (set.items[i].per_ms > ago_ms && !(set.items[i].is_of_flow && has_begun))
            kept = quotas_count_start(engine, &set.items[i], ago_ms);
    guard_unlock(&engine->lock);
    return kept ? PAWL_OK : scope_no_memory(&look->one);
}

static pawl_status count_starts(struct look *look)
{
    struct engine *engine = look->engine;
    uint64_t from = 0;
    pawl_status status;

    TRY(find_since(look, engine_now_ms(engine) - look->span_ms, &from));
    scope_clear(&look->one);
    status = from <= engine->writer.tip.pos
                 ? store_scan(engine->store, &look->one, from, note_start, look)
                 : PAWL_OK;
    for (uint32_t i = 0; i < look->start_count && !status; i++)
        status = count_start(look, &look->starts[i]);
    heap_free(engine->heap, look->starts, look->start_capacity * sizeof *look->starts);
    return status;
}

/* ---- All of it ------------------------------------------------------------------------------ */

static pawl_status look_at_running(struct look *look)
{
    TRY(find_definitions(look));
    return look->has_flows || look->has_tools ? count_all_running(look) : PAWL_OK;
}

static pawl_status look_at_all(struct look *look)
{
    TRY(look_at_running(look));
    for (uint32_t id = 1; id <= look->last_definition; id++)
        if (look->counts[id])
            TRY(count_instances_of(look, id));
    return look->span_ms > 0 ? count_starts(look) : PAWL_OK;
}

static pawl_status look_with(struct engine *engine, struct scope *scope,
                             pawl_status (*run)(struct look *look))
{
    struct look look = { .engine = engine, .scope = scope };
    pawl_status status;

    look.has_tools = toolbox_has_limits(engine->toolbox, &look.span_ms);
    scope_init(&look.one, engine->heap, LIMIT_SCOPE);
    status = run(&look);
    return scope_leave(&look.one, scope, status);
}

pawl_status quotas_recover(struct engine *engine, struct scope *scope)
{
    return look_with(engine, scope, look_at_all);
}

pawl_status quotas_recover_running(struct engine *engine, struct scope *scope)
{
    return look_with(engine, scope, look_at_running);
}
