/* memory.c - what a flow instance remembers: folded from entries, printed, loaded.
 *
 * Its size depends on the plan alone: a loop writes over what its last round left. */
#include "base/assert.h"
#include "flow/flow_int.h"

#define RESULT_CAPACITY_MIN 64

static const char *const timer_words[] = {
    [TIMER_NONE] = "none",
    [TIMER_TIMEOUT] = "timeout",
    [TIMER_RETRY] = "retry",
    [TIMER_SLEEP] = "sleep",
};

#define TIMER_KIND_COUNT (sizeof timer_words / sizeof timer_words[0])

/* Steps cannot be called so: the compiler refuses names that begin with '~'. */
str timer_name(enum timer_kind kind, const struct plan_step *step)
{
    switch (kind) {
    case TIMER_TIMEOUT:
        return STR("~timeout");
    case TIMER_RETRY:
        return STR("~retry");
    case TIMER_SLEEP:
        return step->name;
    case TIMER_NONE:
        break;
    }
    return STR_NONE;
}

void *flow_memory_new(const struct definition *definition, str input, struct arena *arena)
{
    struct flow_memory *memory = ARENA_NEW(arena, struct flow_memory);
    uint32_t slot_count = plan_of(definition)->slot_count;

    if (!memory)
        return NULL;
    memory->results = ARENA_ARRAY(arena, struct kept_result, slot_count);
    memory->input = arena_str(arena, input);
    return arena->failed ? NULL : memory;
}

const struct attempt *memory_find(const struct flow_memory *memory, uint32_t ordinal)
{
    return memory->has_live && memory->live.ordinal == ordinal ? &memory->live : NULL;
}

/* ---- Folding --------------------------------------------------------------------- */

static pawl_status fail_damaged(struct scope *scope, const char *what)
{
    return scope_fail(scope, PAWL_STORAGE_FAILURE,
                      "the history of a flow does not follow its plan (%s); verify the store",
                      what);
}

static pawl_status fold_step(const struct plan *plan, struct flow_memory *memory,
                             const struct effect *effect, struct scope *scope)
{
    uint32_t first_ordinal = effect->ordinal;

    if (effect->plan >= plan->count || effect->ordinal != memory->ordinal_last + 1 ||
        memory->has_live)
        return fail_damaged(scope, "an attempt that cannot be");
    /* A retry keeps its step's first ordinal: the idempotency key is stable (section 3.5). */
    if (effect->attempt > 1 && memory->live.plan == effect->plan)
        first_ordinal = memory->live.first_ordinal;
    memory->ordinal_last = effect->ordinal;
    memory->has_live = true;
    memory->live = (struct attempt){ .plan = effect->plan,
                                     .ordinal = effect->ordinal,
                                     .attempt = effect->attempt,
                                     .first_ordinal = first_ordinal,
                                     .status = effect->status };
    return PAWL_OK;
}

static enum timer_kind timer_kind_of(const struct plan_step *step, str name)
{
    for (enum timer_kind kind = TIMER_TIMEOUT; kind <= TIMER_SLEEP; kind++)
        if (str_eq(timer_name(kind, step), name))
            return kind;
    return TIMER_NONE;
}

static pawl_status fold_live(const struct plan *plan, struct flow_memory *memory,
                             const struct effect *effect, struct scope *scope)
{
    struct attempt *live = &memory->live;

    if (!memory_find(memory, effect->ordinal))
        return fail_damaged(scope, "an attempt that is not live");
    switch (effect->kind) {
    case EFFECT_READY:
        live->status = STEP_READY;
        return PAWL_OK;
    case EFFECT_RUN:
        live->status = STEP_RUNNING;
        return PAWL_OK;
    case EFFECT_END:
        memory->has_live = false;
        return PAWL_OK;
    case EFFECT_ARM:
        live->timer = timer_kind_of(&plan->steps[live->plan], effect->name);
        return live->timer != TIMER_NONE ? PAWL_OK : fail_damaged(scope, "an unknown timer");
    case EFFECT_DISARM:
        live->timer = TIMER_NONE;
        return PAWL_OK;
    case EFFECT_STEP:
    case EFFECT_AWAIT:
    case EFFECT_LEAVE:
    case EFFECT_STATE:
    case EFFECT_SNAPSHOT:
        break;
    }
    return fail_damaged(scope, "an effect that flows do not have");
}

static bool keep_result(struct kept_result *kept, str json, struct arena *arena)
{
    size_t capacity = kept->capacity > 0 ? kept->capacity : RESULT_CAPACITY_MIN;

    /* Doubling: all the blocks a slot has outgrown are together no larger than its last. */
    while (capacity < json.size)
        capacity *= 2;
    if (capacity > kept->capacity) {
        char *data = arena_alloc(arena, capacity);

        if (!data)
            return false;
        kept->data = data;
        kept->capacity = capacity;
    }
    memcpy(kept->data, json.data, json.size);
    kept->size = json.size;
    return true;
}

static pawl_status fold_result(const struct plan *plan, struct flow_memory *memory,
                               const struct entry_view *entry, struct scope *scope,
                               struct arena *arena)
{
    uint32_t slot;

    if (entry->step == 0 || entry->step > plan->count)
        return fail_damaged(scope, "a result without a step");
    slot = plan->steps[entry->step - 1].result_slot;
    if (slot == STEP_NONE)
        return PAWL_OK;
    if (!keep_result(&memory->results[slot], entry->payload.data ? entry->payload : STR("null"),
                     arena))
        return scope_no_memory(scope);
    return PAWL_OK;
}

static bool brings_result(uint32_t transition)
{
    return transition == LIFE_T_STEP_COMPLETE || transition == LIFE_T_TIMER;
}

pawl_status flow_apply(const struct definition *definition, void *state,
                       const struct entry_view *entry, struct scope *scope, struct arena *arena)
{
    const struct plan *plan = plan_of(definition);
    struct flow_memory *memory = state;
    uint32_t count = entry->effects ? entry->effects->count : 0;
    pawl_status status = PAWL_OK;

    ASSERT(entry->transition < definition->transition_count);
    if (brings_result(entry->transition))
        status = fold_result(plan, memory, entry, scope, arena);
    for (uint32_t i = 0; i < count && status == PAWL_OK; i++) {
        const struct effect *effect = &entry->effects->items[i];

        if (effect->kind == EFFECT_SNAPSHOT)
            continue; /* says what was kept, changes nothing */
        else if (effect->kind == EFFECT_STEP)
            status = fold_step(plan, memory, effect, scope);
        else if (effect->kind == EFFECT_DISARM && !memory->has_live)
            continue; /* it went with its row */
        else
            status = fold_live(plan, memory, effect, scope);
    }
    /* An entry into a terminal state ends every row and timer (model/effect.h). */
    if (definition->states[definition->transitions[entry->transition].to].terminal != TERMINAL_NOT)
        memory->has_live = false;
    return status;
}

/* ---- Printing -------------------------------------------------------------------- */

static void print_live(const struct attempt *live, struct buf *out)
{
    json_key(out, "live");
    json_open(out, '{');
    json_key(out, "step");
    json_u64(out, live->plan);
    json_key(out, "ordinal");
    json_u64(out, live->ordinal);
    json_key(out, "attempt");
    json_u64(out, live->attempt);
    json_key(out, "first");
    json_u64(out, live->first_ordinal);
    json_key(out, "status");
    json_text(out, step_status_name(live->status));
    json_key(out, "timer");
    json_text(out, timer_words[live->timer]);
    json_close(out, '}');
}

void flow_memory_print(const struct definition *definition, const void *state, struct buf *out)
{
    const struct plan *plan = plan_of(definition);
    const struct flow_memory *memory = state;

    json_open(out, '{');
    json_key(out, "ordinal");
    json_u64(out, memory->ordinal_last);
    if (memory->has_live)
        print_live(&memory->live, out);
    json_key(out, "results");
    json_open(out, '[');
    for (uint32_t i = 0; i < plan->count && plan->slot_count > 0; i++) {
        uint32_t slot = plan->steps[i].result_slot;

        if (slot == STEP_NONE || !memory->results[slot].data)
            continue;
        json_open(out, '[');
        json_u64(out, i);
        json_raw(out, (str){ memory->results[slot].data, memory->results[slot].size });
        json_close(out, ']');
    }
    json_close(out, ']');
    json_close(out, '}');
}

/* ---- Loading --------------------------------------------------------------------- */

static bool load_u32(const struct node *object, const char *key, uint32_t *out)
{
    int64_t n;

    if (!node_to_i64(node_find(object, key), &n) || n < 0 || n > UINT32_MAX)
        return false;
    *out = (uint32_t)n;
    return true;
}

static bool load_status(const struct node *node, enum step_status *out)
{
    for (enum step_status status = STEP_PENDING; node && status <= STEP_RUNNING; status++)
        if (str_is(node->text, step_status_name(status))) {
            *out = status;
            return true;
        }
    return false;
}

static bool load_timer(const struct node *node, enum timer_kind *out)
{
    for (size_t kind = 0; node && kind < TIMER_KIND_COUNT; kind++)
        if (str_is(node->text, timer_words[kind])) {
            *out = (enum timer_kind)kind;
            return true;
        }
    return false;
}

static bool load_live(const struct plan *plan, const struct node *node, struct flow_memory *memory)
{
    struct attempt *live = &memory->live;

    memory->has_live = node != NULL;
    if (!node)
        return true;
    return load_u32(node, "step", &live->plan) && live->plan < plan->count &&
           load_u32(node, "ordinal", &live->ordinal) && load_u32(node, "attempt", &live->attempt) &&
           load_u32(node, "first", &live->first_ordinal) &&
           load_status(node_find(node, "status"), &live->status) &&
           load_timer(node_find(node, "timer"), &live->timer);
}

static bool load_result(const struct plan *plan, const struct node *pair,
                        struct flow_memory *memory, struct arena *arena)
{
    int64_t index;
    uint32_t slot;

    if (pair->count != 2 || !node_to_i64(pair->first, &index) || index < 0 || index >= plan->count)
        return false;
    slot = plan->steps[index].result_slot;
    return slot == STEP_NONE || keep_result(&memory->results[slot], pair->first->next->raw, arena);
}

static bool load_all(const struct plan *plan, const struct node *document,
                     struct flow_memory *memory, struct arena *arena)
{
    const struct node *results = node_find(document, "results");

    if (!results || !load_u32(document, "ordinal", &memory->ordinal_last) ||
        !load_live(plan, node_find(document, "live"), memory))
        return false;
    for (const struct node *pair = results->first; pair; pair = pair->next)
        if (!load_result(plan, pair, memory, arena))
            return false;
    return true;
}

pawl_status flow_memory_load(const struct definition *definition, str text, str input,
                             struct scope *scope, struct arena *arena, void **out)
{
    struct flow_memory *memory = flow_memory_new(definition, input, arena);
    struct node *document = NULL;
    pawl_status status = memory ? node_read_json(scope, text, &document) : PAWL_NO_MEMORY;
    bool is_loaded = status == PAWL_OK && load_all(plan_of(definition), document, memory, arena);

    if (status == PAWL_NO_MEMORY || arena->failed)
        return scope_no_memory(scope);
    if (!is_loaded)
        return scope_fail(scope, PAWL_STORAGE_FAILURE,
                          "the snapshot of a flow cannot be read; delete it, it is rebuilt");
    *out = memory;
    return PAWL_OK;
}
