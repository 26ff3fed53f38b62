/* verify_amend.c - an amend says which definition a flow goes on by, and by which plan: they
 * must be the same, and readers must find the last one by its row. */
#include "base/node_own.h"
#include "evidence/verify_int.h"
#include "model/rights.h"

static str plan_in(const struct effect_list *effects)
{
    for (uint32_t i = 0; i < effects->count; i++)
        if (effects->items[i].kind == EFFECT_PLAN)
            return effects->items[i].state;
    return STR_NONE;
}

/* The definition that the payload names; *rules NULL: the payload was erased, or names none. */
static pawl_status find_named(struct verify *v, const struct record *record,
                              const struct rules **rules)
{
    struct definition_row row;
    struct node *document = NULL, *name, *rights;
    struct value value = { 0 };
    int64_t version = 0;
    uint32_t index;
    pawl_status status = PAWL_OK;

    *rules = NULL;
    if (record->payload != 0)
        status = store_value(v->store, &v->scope, record->payload, &value);
    if (status != PAWL_OK || (record->payload != 0 && !value.bytes.data))
        return status;
    if (!value.bytes.data || node_read_own(&v->scope, value.bytes, &document) != PAWL_OK)
        return verify_bad(v, "an amend does not say which definition it goes on by");
    name = node_find(document, "definition");
    if (!name || name->kind != NODE_STRING ||
        !node_to_i64(node_find(document, "version"), &version) || version < 1 ||
        version > UINT32_MAX)
        return verify_bad(v, "an amend does not say which definition it goes on by");
    rights = node_find(document, "rights");
    if (rights && (rights->kind != NODE_STRING || !rights_are_valid(rights->text)))
        return verify_bad(v, "an amend's rights do not name definitions in order");
    status = store_find_definition(v->store, &v->scope, name->text, (uint32_t)version, NULL, &row);
    if (status == PAWL_NOT_KNOWN)
        return verify_bad(v, "an amend names a definition that is not there");
    if (status == PAWL_OK)
        status = verify_definition(v, row.id, &index);
    if (status == PAWL_OK)
        *rules = &v->rules[index];
    return status;
}

pawl_status verify_amend(struct verify *v, const struct chain *chain, const struct record *record)
{
    const struct rules *rules = NULL;
    struct effect_list effects = { 0 };
    pawl_status status = PAWL_OK;

    if (v->rules[chain->rules].flow)
        status = find_named(v, record, &rules);
    if (status == PAWL_OK && rules)
        status = effects_read(&v->scope, record->body, &effects);
    if (status == PAWL_OK && rules &&
        (!rules->flow || !str_eq(rules->flow->plan_text, plan_in(&effects))))
        return verify_bad(v, "an amend's plan is not that of the definition it names");
    return status == PAWL_OK ? verify_note_amend(v, chain, record) : status;
}
