/* verify_code.c - an amend of a code instance may bring another registration: it must be of the
 * same name, and every step that the instance had keeps its index, because entries name steps by
 * index. */
#include "base/node_own.h"
#include "evidence/verify_int.h"

struct steps {
    struct named {
        uint32_t word; /* of plan_step_words */
        str name;
    } *items;
    uint32_t count;
};

/* [[WORD,NAME],...]. STORAGE_FAILURE: the text is not such a list. */
static pawl_status read_list(struct verify *v, str text, struct steps *out)
{
    struct node *list = NULL;
    pawl_status status = text.data ? node_read_own(&v->scope, text, &list) : PAWL_STORAGE_FAILURE;

    if (status != PAWL_OK || list->kind != NODE_ARRAY)
        return status == PAWL_NO_MEMORY ? status : PAWL_STORAGE_FAILURE;
    *out = (struct steps){ ARENA_ARRAY(&v->scope.arena, struct named, list->count + 1u), 0 };
    TRY_MEMORY(&v->scope, out->items);
    for (const struct node *node = list->first; node; node = node->next) {
        struct named *step = &out->items[out->count++];

        if (!plan_step_read(node, &step->word, &step->name))
            return PAWL_STORAGE_FAILURE;
    }
    return PAWL_OK;
}

static bool add_names(struct verify *v, const struct node *names, uint32_t word,
                      struct steps *out)
{
    struct named *items = ARENA_ARRAY(&v->scope.arena, struct named,
                                      out->count + (names ? names->count : 0) + 1u);

    if (!items)
        return false;
    if (out->count > 0)
        memcpy(items, out->items, sizeof *items * out->count);
    out->items = items;
    for (const struct node *name = names ? names->first : NULL; name; name = name->next)
        items[out->count++] = (struct named){ word, name->text };
    return true;
}

/* Of the registration that it was created with. */
static pawl_status declared_steps(struct verify *v, const struct definition *definition,
                                  struct steps *out)
{
    struct node *plan = NULL;

    TRY(node_read_own(&v->scope, definition->plan_text, &plan));
    *out = (struct steps){ 0 };
    return add_names(v, node_find(plan, "calls"), PLAN_CALL, out) &&
                   add_names(v, node_find(plan, "externals"), PLAN_EXTERNAL, out) &&
                   add_names(v, node_find(plan, "children"), PLAN_CHILD, out)
               ? PAWL_OK
               : scope_no_memory(&v->scope);
}

/* What the instance went by before: the plan of the last amend that was noted, which has one. */
static pawl_status steps_before(struct verify *v, const struct chain *chain, struct steps *out)
{
    uint64_t pos = verify_amended_at(v, chain);
    struct effect_list effects = { 0 };
    const struct effect *plan;
    struct record earlier;

    if (!pos)
        return declared_steps(v, chain_definition(v, chain), out);
    TRY(store_record(v->store, &v->scope, pos, &earlier));
    TRY(effects_read(&v->scope, earlier.body, &effects));
    plan = effects_first(&effects, EFFECT_PLAN);
    return plan ? read_list(v, plan->input, out) : PAWL_STORAGE_FAILURE;
}

static bool begins_with(const struct steps *steps, const struct steps *before)
{
    if (steps->count < before->count)
        return false;
    for (uint32_t i = 0; i < before->count; i++)
        if (steps->items[i].word != before->items[i].word ||
            !str_eq(steps->items[i].name, before->items[i].name))
            return false;
    return true;
}

static bool is_of(struct verify *v, str registration, str name)
{
    struct node *root = NULL;

    return node_read_own(&v->scope, registration, &root) == PAWL_OK &&
           str_eq(node_text(root, "code"), name);
}

pawl_status verify_amend_code(struct verify *v, const struct chain *chain,
                              const struct record *record)
{
    struct effect_list effects = { 0 };
    const struct effect *plan;
    struct steps steps = { 0 }, before = { 0 };
    pawl_status status;

    TRY(effects_read(&v->scope, record->body, &effects));
    plan = effects_first(&effects, EFFECT_PLAN);
    if (!plan)
        return PAWL_OK;
    if (!is_of(v, plan->state, v->rules[chain->rules].name))
        return verify_bad(v, "an amend goes on by the registration of another code type");
    status = read_list(v, plan->input, &steps);
    if (status == PAWL_OK)
        status = steps_before(v, chain, &before);
    if (status == PAWL_STORAGE_FAILURE || (status == PAWL_OK && !begins_with(&steps, &before)))
        return verify_bad(v, "an amend's steps do not keep those before it in their places");
    return status == PAWL_OK ? verify_note_amend(v, chain, record) : status;
}
