/* memory_load.c - a snapshot becomes a memory again, by way of the same effects. */
#include "base/grow.h"
#include "base/node.h"
#include "code/code_int.h"

struct code_loading {
    struct effect_list effects;
    uint32_t ordinal; /* of the call, in a snapshot that has one at most */
};

static pawl_status fail_damaged(struct scope *scope)
{
    return scope_fail(scope, PAWL_STORAGE_FAILURE,
                      "the snapshot of a code instance is damaged; it can be thrown away and is "
                      "then made again from the entries");
}

/* A snapshot holds what effects once set, so it is read as a list of effects. */
static pawl_status add_state(struct scope *scope, const struct node *state,
                             struct effect_list *effects)
{
    if (!state || state->kind == NODE_NULL)
        return PAWL_OK;
    if (state->kind != NODE_OBJECT)
        return fail_damaged(scope);
    return effect_add(scope, effects, (struct effect){ .kind = EFFECT_STATE, .state = state->raw });
}

static pawl_status add_timer(struct scope *scope, const struct node *timer,
                             struct code_loading *loading)
{
    const struct node *name = node_at(timer, 0), *ordinal = node_at(timer, 2);
    struct effect effect = { .kind = EFFECT_ARM };

    if (timer->kind != NODE_ARRAY || timer->count < 2 || timer->count > 3 ||
        name->kind != NODE_STRING || !node_to_i64(name->next, &effect.due_at_ms) ||
        (ordinal &&
         (!str_eq(name->text, TIMER_AGAIN) || !node_to_u32(ordinal, UINT32_MAX, &effect.ordinal))))
        return fail_damaged(scope);
    effect.name = name->text;
    if (!ordinal && str_eq(effect.name, TIMER_AGAIN))
        effect.ordinal = loading->ordinal;
    return effect_add(scope, &loading->effects, effect);
}

static pawl_status add_signal(struct scope *scope, const struct node *signal,
                              struct effect_list *effects)
{
    const struct node *name = signal->kind == NODE_ARRAY ? node_at(signal, 0) : signal;
    const struct node *value = signal->kind == NODE_ARRAY ? node_at(signal, 1) : NULL;

    if (!name || name->kind != NODE_STRING || (signal->kind == NODE_ARRAY && !value))
        return fail_damaged(scope);
    return effect_add(scope, effects,
                      (struct effect){ .kind = EFFECT_AWAIT,
                                       .name = name->text,
                                       .state = value ? value->raw : STR_NONE });
}

/* ---- Calls ---- */

static bool read_numbers(const struct node *first, uint32_t *out, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++, first = first->next)
        if (!first || !node_to_u32(first, UINT32_MAX, &out[i]))
            return false;
    return true;
}

static pawl_status add_call(struct scope *scope, struct arena *arena, struct code_memory *memory,
                            const uint32_t numbers[5], str args)
{
    struct code_attempt *call;

    if (numbers[4] > STEP_RUNNING)
        return fail_damaged(scope);
    TRY_MEMORY(scope, GROW(arena, memory->calls, memory->call_count, memory->call_capacity));
    call = &memory->calls[memory->call_count++];
    *call = (struct code_attempt){ .ordinal = numbers[0],
                                   .plan = numbers[1],
                                   .attempt = numbers[2],
                                   .first_ordinal = numbers[3],
                                   .status = (enum step_status)numbers[4] };
    TRY_MEMORY(scope, code_set_text(&call->args, args, arena));
    return PAWL_OK;
}

static pawl_status set_names(struct scope *scope, struct arena *arena, struct code_attempt *call,
                             const struct node *key, const struct node *child)
{
    if (key)
        TRY_MEMORY(scope, code_set_text(&call->key, key->text, arena));
    if (child && child->text.size == ID_SIZE)
        memcpy(call->child, child->text.data, ID_SIZE); /* a new one is all zeros */
    return PAWL_OK;
}

/* "call":[ORDINALS,ORD,PLAN,ATTEMPT,FIRST,STATUS,ARGS] and CHILD, and "key", as programs wrote them
 * that called one thing at a time. Which number the call had is not known, and was not asked. */
static pawl_status load_one_call(struct scope *scope, const struct node *root, struct arena *arena,
                                 struct code_memory *memory)
{
    const struct node *list = node_find(root, "call"), *args = node_at(list, 6);
    uint32_t numbers[6] = { 0 };

    if (!list)
        return PAWL_OK;
    if (list->kind != NODE_ARRAY || (list->count != 7 && list->count != 8) ||
        !read_numbers(list->first, numbers, 6))
        return fail_damaged(scope);
    memory->ordinals = numbers[0];
    if (numbers[1] == 0)
        return PAWL_OK;
    memory->numbers = memory->first_call = 1;
    TRY(add_call(scope, arena, memory, numbers + 1, args->raw));
    memory->calls[0].number = 1;
    return set_names(scope, arena, &memory->calls[0], node_find(root, "key"), args->next);
}

/* As print_calls() wrote them. */
static pawl_status load_calls(struct scope *scope, const struct node *root, struct arena *arena,
                              struct code_memory *memory)
{
    const struct node *list = node_find(root, "calls");
    uint32_t so_far[3];

    if (!list)
        return load_one_call(scope, root, arena, memory);
    if (list->kind != NODE_ARRAY || list->count < 3 || !read_numbers(list->first, so_far, 3))
        return fail_damaged(scope);
    memory->ordinals = so_far[0];
    memory->numbers = so_far[1];
    memory->first_call = so_far[2];
    for (const struct node *node = node_at(list, 3); node; node = node->next) {
        uint32_t numbers[5], number = 0;

        if (node->kind != NODE_ARRAY || node->count != 9 ||
            !read_numbers(node->first, numbers, 5) ||
            !node_to_u32(node_at(node, 6), UINT32_MAX, &number))
            return fail_damaged(scope);
        TRY(add_call(scope, arena, memory, numbers, node_at(node, 5)->raw));
        memory->calls[memory->call_count - 1].number = number;
        TRY(set_names(scope, arena, &memory->calls[memory->call_count - 1], node_at(node, 7),
                      node_at(node, 8)));
    }
    return PAWL_OK;
}

static pawl_status add_version(struct scope *scope, const struct node *node,
                               struct effect_list *effects)
{
    struct effect effect = { .kind = EFFECT_VERSION };

    if (!node)
        return PAWL_OK;
    return node_to_u32(node, UINT32_MAX, &effect.attempt) ? effect_add(scope, effects, effect)
                                                          : fail_damaged(scope);
}

/* As print_plan() wrote it; before what goes by it. */
static pawl_status add_plan(struct scope *scope, const struct node *list,
                            struct effect_list *effects)
{
    if (!list)
        return PAWL_OK;
    if (list->kind != NODE_ARRAY || list->count != 2)
        return fail_damaged(scope);
    return effect_add(scope, effects,
                      (struct effect){ .kind = EFFECT_PLAN,
                                       .state = list->first->raw,
                                       .input = list->first->next->raw });
}

static pawl_status read_snapshot(struct scope *scope, const struct node *root,
                                 struct code_loading *loading)
{
    struct effect_list *effects = &loading->effects;
    const struct node *timers = node_find(root, "timers"), *signals = node_find(root, "signals");

    if (!timers || timers->kind != NODE_ARRAY || !signals || signals->kind != NODE_ARRAY)
        return fail_damaged(scope);
    TRY(add_state(scope, node_find(root, "state"), effects));
    TRY(add_plan(scope, node_find(root, "plan"), effects));
    for (const struct node *node = timers->first; node; node = node->next)
        TRY(add_timer(scope, node, loading));
    for (const struct node *node = signals->first; node; node = node->next)
        TRY(add_signal(scope, node, effects));
    return add_version(scope, node_find(root, "version"), effects);
}

static pawl_status load_kept(struct scope *scope, const struct node *root, struct arena *arena,
                             struct code_memory *memory)
{
    const struct node *list = node_find(root, "kept");

    for (const struct node *kept = list ? list->first : NULL; kept; kept = kept->next) {
        const struct node *name = node_at(kept, 0), *payload = node_at(kept, 1);

        if (kept->kind != NODE_ARRAY || !name || name->kind != NODE_STRING || !payload)
            return fail_damaged(scope);
        TRY(code_memory_keep(memory, name->text, payload->raw, scope, arena));
    }
    return PAWL_OK;
}

/* [PLAN,FAILED,PAYLOAD], as programs wrote it that only ever owed a turn for an answer. */
static bool read_old_owed(const struct code_plan *steps, const struct node *list,
                          pawl_event_kind *kind, str *name)
{
    uint32_t plan = 0, has_failed = 0;

    if (!node_to_u32(list->first, UINT32_MAX, &plan) ||
        !node_to_u32(list->first->next, UINT32_MAX, &has_failed) || plan >= steps->step_count)
        return false;
    *kind = has_failed ? PAWL_EVENT_CALL_FAILED : PAWL_EVENT_CALL;
    *name = steps->steps[plan].name;
    return true;
}

/* [KIND,NAME,PAYLOAD], as print_owed() wrote it. */
static bool read_owed(const struct code_plan *steps, const struct node *list,
                      pawl_event_kind *kind, str *name)
{
    uint32_t number = 0;

    if (list->kind != NODE_ARRAY || (list->count != 3 && list->count != 5))
        return false;
    if (list->first->next->kind != NODE_STRING)
        return read_old_owed(steps, list, kind, name);
    *name = list->first->next->text;
    if (!node_to_u32(list->first, UINT32_MAX, &number) || number < PAWL_EVENT_START ||
        number > PAWL_EVENT_CHILD_FAILED)
        return false;
    *kind = (pawl_event_kind)number;
    return true;
}

static pawl_status load_one_owed(const struct definition *definition, const struct node *list,
                                 struct scope *scope, struct arena *arena,
                                 struct code_memory *memory)
{
    pawl_event_kind kind;
    struct code_owed *owed;
    str name;

    if (!read_owed(plan_in_force(definition, memory), list, &kind, &name))
        return fail_damaged(scope);
    owed = code_memory_owe(memory, kind, name, node_at(list, 2)->raw, arena);
    TRY_MEMORY(scope, owed);
    if (list->count == 5 && !node_to_u32(node_at(list, 3), UINT32_MAX, &owed->call))
        return fail_damaged(scope);
    if (list->count == 5 && node_at(list, 4)->text.size == ID_SIZE)
        memcpy(owed->child, node_at(list, 4)->text.data, ID_SIZE);
    return PAWL_OK;
}

/* A memory that owes a turn knows for what. */
static pawl_status load_owed(const struct definition *definition, const struct node *root,
                             struct scope *scope, struct arena *arena, struct code_memory *memory)
{
    const struct node *list = node_find(root, "owed"), *more = node_find(root, "owed_more");

    memory->owed_count = 0; /* what the fold of its timers made of them */
    if (!list)
        return code_memory_has_timer(memory, TIMER_TURN) ? fail_damaged(scope) : PAWL_OK;
    if (more && more->kind != NODE_ARRAY)
        return fail_damaged(scope);
    TRY(load_one_owed(definition, list, scope, arena, memory));
    for (const struct node *one = more ? more->first : NULL; one; one = one->next)
        TRY(load_one_owed(definition, one, scope, arena, memory));
    return PAWL_OK;
}

pawl_status code_memory_load(const struct definition *definition, str text, str input,
                             struct scope *scope, struct arena *arena, void **out)
{
    struct code_memory *memory = code_memory_new(definition, input, arena);
    struct code_loading loading = { 0 };
    struct entry_view view = { .transition = LIFE_T_START, .effects = &loading.effects };
    struct node *root;
    pawl_status status;

    TRY_MEMORY(scope, memory);
    status = node_read_json(scope, text, &root);
    if (status != PAWL_OK)
        return status == PAWL_NO_MEMORY ? status : fail_damaged(scope);
    TRY(load_calls(scope, root, arena, memory));
    loading.ordinal = memory->call_count > 0 ? memory->calls[0].ordinal : 0;
    TRY(read_snapshot(scope, root, &loading));
    TRY(load_kept(scope, root, arena, memory));
    TRY(code_memory_fold(definition, memory, &view, scope, arena));
    TRY(load_owed(definition, root, scope, arena, memory));
    TRY(journal_load(scope, root, memory, arena));
    *out = memory;
    return PAWL_OK;
}
