/* verify_deadline.c - timers of machines follow from the definition: those an instance begins
 * with, which no record lists, and what each entry must say about them. */
#include "evidence/verify_int.h"
#include "model/deadline.h"

static pawl_status expected_effects(struct verify *v, const struct chain *chain,
                                    const struct record *record, struct effect_list *out)
{
    const struct definition *definition = chain_definition(v, chain);
    bool is_entry = record->what >= 0;
    uint32_t to = is_entry ? definition->transitions[record->what].to : chain->state;

    return deadline_effects(&v->scope, definition->deadlines, definition->deadline_count,
                            is_entry ? chain->state : DEADLINE_NO_STATE, to,
                            definition->states[to].terminal != TERMINAL_NOT, record->at_ms, out);
}

pawl_status verify_first_timers(struct verify *v, struct chain *chain, const struct record *record)
{
    struct effect_list effects = { 0 };
    pawl_status status = expected_effects(v, chain, record, &effects);

    return status == PAWL_OK ? verify_fold_effects(v, chain, &effects, record->at_ms) : status;
}

pawl_status verify_machine_body(struct verify *v, const struct chain *chain,
                                const struct record *record)
{
    struct effect_list effects = { 0 };
    str trace;

    if (chain_definition(v, chain)->kind != KIND_MACHINE)
        return PAWL_OK;
    TRY(expected_effects(v, chain, record, &effects));
    trace = body_trace(record->body);
    buf_clear(&v->body);
    if (effects.count > 0 || trace.data)
        body_print(trace, &effects, &v->body);
    TRY_MEMORY(&v->scope, !v->body.failed);
    if (!str_eq(buf_view(&v->body), record->body))
        return verify_bad(v, "its effects are not those of its definition's deadlines");
    return PAWL_OK;
}
