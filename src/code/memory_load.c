/* memory_load.c - a snapshot becomes a memory again, by way of the same effects. */
#include "base/node.h"
#include "code/code_int.h"

/* A snapshot holds what effects once set, so it is read as a list of effects. */
static pawl_status add_state(struct scope *scope, const struct node *state,
                             struct effect_list *effects, bool *ok)
{
    if (!state || state->kind == NODE_NULL)
        return PAWL_OK;
    *ok = *ok && state->kind == NODE_OBJECT;
    return effect_add(scope, effects, (struct effect){ .kind = EFFECT_STATE, .state = state->raw });
}

static pawl_status add_timer(struct scope *scope, const struct node *timer,
                             struct effect_list *effects, bool *ok)
{
    const struct node *name = node_at(timer, 0);
    struct effect effect = { .kind = EFFECT_ARM };

    if (timer->kind != NODE_ARRAY || timer->count != 2 || name->kind != NODE_STRING ||
        !node_to_i64(name->next, &effect.due_at_ms)) {
        *ok = false;
        return PAWL_OK;
    }
    effect.name = name->text;
    return effect_add(scope, effects, effect);
}

static pawl_status add_signal(struct scope *scope, const struct node *signal,
                              struct effect_list *effects, bool *ok)
{
    *ok = *ok && signal->kind == NODE_STRING;
    return effect_add(scope, effects,
                      (struct effect){ .kind = EFFECT_AWAIT, .name = signal->text });
}

static pawl_status read_snapshot(struct scope *scope, const struct node *root,
                                 struct effect_list *effects, bool *ok)
{
    const struct node *timers = node_find(root, "timers"), *signals = node_find(root, "signals");
    pawl_status status = add_state(scope, node_find(root, "state"), effects, ok);

    if (!timers || timers->kind != NODE_ARRAY || !signals || signals->kind != NODE_ARRAY) {
        *ok = false;
        return status;
    }
    for (const struct node *node = timers->first; node && status == PAWL_OK; node = node->next)
        status = add_timer(scope, node, effects, ok);
    for (const struct node *node = signals->first; node && status == PAWL_OK; node = node->next)
        status = add_signal(scope, node, effects, ok);
    return status;
}

static pawl_status fail_damaged(struct scope *scope)
{
    return scope_fail(scope, PAWL_STORAGE_FAILURE,
                      "the snapshot of a code instance is damaged; it can be thrown away and is "
                      "then made again from the entries");
}

pawl_status code_memory_load(const struct definition *definition, str text, str input,
                             struct scope *scope, struct arena *arena, void **out)
{
    void *memory = code_memory_new(definition, input, arena);
    struct effect_list effects = { 0 };
    struct entry_view view = { .transition = LIFE_T_START, .effects = &effects };
    struct node *root;
    bool ok = true;
    pawl_status status;

    if (!memory)
        return scope_no_memory(scope);
    status = node_read_json(scope, text, &root);
    if (status != PAWL_OK)
        return status == PAWL_NO_MEMORY ? status : fail_damaged(scope);
    status = read_snapshot(scope, root, &effects, &ok);
    if (status == PAWL_OK && !ok)
        status = fail_damaged(scope);
    if (status == PAWL_OK)
        status = code_memory_apply(definition, memory, &view, scope, arena);
    if (status == PAWL_OK)
        *out = memory;
    return status;
}
