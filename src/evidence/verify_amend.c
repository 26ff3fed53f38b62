/* verify_amend.c - an amend says which definition a flow goes on by, and by which plan: they
 * must be the same, and readers must find the last one by its row. */
#include "base/limits.h"
#include "base/node_own.h"
#include "evidence/verify_int.h"
#include "model/rights.h"

/* ---- The results that it takes over ---------------------------------------------------------- */

static bool ends_own_row(const struct record *record, const struct effect_list *effects)
{
    for (uint32_t i = 0; i < effects->count; i++)
        if (effects->items[i].kind == EFFECT_END && effects->items[i].ordinal == record->ordinal)
            return true;
    return false;
}

/* Has entry `seq` ended this step with a result? Which step it was is known by the memory, which is
 * none where values were erased. */
static pawl_status check_result(struct verify *v, const struct chain *chain,
                                const struct record *amend, str step, uint64_t seq,
                                struct scope *one)
{
    struct effect_list effects = { 0 };
    struct record record;
    pawl_status status = store_entry(v->store, one, amend->prev, seq, &record);

    if (status == PAWL_OK && record.body.data)
        status = effects_read(one, record.body, &effects);
    if (status != PAWL_OK && status != PAWL_NOT_KNOWN)
        return status;
    if (status == PAWL_NOT_KNOWN || lifecycle_is_failure((uint32_t)record.what) ||
        !ends_own_row(&record, &effects) ||
        (chain->replay && !str_eq(v->request->flows->step_name(chain->replay->memory, record.step - 1),
                                  step)))
        return verify_bad(v, "an amend takes the result of '%.*s' from entry %llu, which has none",
                          STR_ARG(step), (unsigned long long)seq);
    return PAWL_OK;
}

static pawl_status check_results(struct verify *v, const struct chain *chain,
                                 const struct record *record, const struct node *entries)
{
    struct scope one; /* of one record at a time */
    pawl_status status = PAWL_OK;

    if (entries && entries->kind != NODE_OBJECT)
        return verify_bad(v, "an amend's entries are not by steps");
    scope_init(&one, v->heap, LIMIT_SCOPE);
    for (const struct node *item = entries ? entries->first : NULL; item && status == PAWL_OK;
         item = item->next) {
        int64_t seq;

        if (!node_to_i64(item, &seq) || seq < 1 || (uint64_t)seq >= record->seq)
            status = verify_bad(v, "an amend takes the result of '%.*s' from an entry that is not "
                                   "before it",
                                STR_ARG(item->key));
        else
            status = check_result(v, chain, record, item->key, (uint64_t)seq, &one);
    }
    if (status != PAWL_OK && v->scope.error.status == PAWL_OK)
        v->scope.error = one.error;
    scope_fini(&one);
    return status;
}

/* ---- The definition -------------------------------------------------------------------------- */

/* The definition that the payload names; *rules NULL: the payload was erased, or names none. */
static pawl_status find_named(struct verify *v, const struct chain *chain,
                              const struct record *record, const struct rules **rules)
{
    struct definition_row row;
    struct node *document = NULL, *rights;
    struct value value = { 0 };
    int64_t version = 0;
    uint32_t index;
    str name;

    *rules = NULL;
    if (record->payload != 0) {
        TRY(store_value(v->store, &v->scope, record->payload, &value));
        if (!value.bytes.data)
            return PAWL_OK;
    }
    if (value.bytes.data && node_read_own(&v->scope, value.bytes, &document) != PAWL_OK)
        document = NULL;
    name = node_text(document, "definition");
    if (!name.data || !node_to_i64(node_find(document, "version"), &version) || version < 1 ||
        version > UINT32_MAX)
        return verify_bad(v, "an amend does not say which definition it goes on by");
    rights = node_find(document, "rights");
    if (rights && (rights->kind != NODE_STRING || !rights_are_valid(rights->text)))
        return verify_bad(v, "an amend's rights do not name definitions in order");
    TRY(check_results(v, chain, record, node_find(document, "entries")));
    TRY_FOUND(v, store_find_definition(v->store, &v->scope, name, (uint32_t)version, NULL, &row),
              "an amend names a definition that is not there");
    TRY(verify_definition(v, row.id, &index));
    *rules = &v->rules[index];
    return PAWL_OK;
}

pawl_status verify_amend(struct verify *v, const struct chain *chain, const struct record *record)
{
    const struct rules *rules = NULL;
    struct effect_list effects = { 0 };
    const struct effect *plan;

    if (v->rules[chain->rules].flow)
        TRY(find_named(v, chain, record, &rules));
    if (rules) {
        TRY(effects_read(&v->scope, record->body, &effects));
        plan = effects_first(&effects, EFFECT_PLAN);
        if (!rules->flow || !plan || !str_eq(rules->flow->plan_text, plan->state))
            return verify_bad(v, "an amend's plan is not that of the definition it names");
    }
    return verify_note_amend(v, chain, record);
}
