/* references.c - the definitions that a text names: `spawn` of flows, `starts` of machines.
 *
 * One that is not stored is a warning, not an error: two definitions may name each other, and one
 * of them has to be put first. */
#include "base/grow.h"
#include "engine/parts.h"
#include "model/words.h"
#include <stdio.h>

#define NAMES_MAX 1000 /* that a suggestion is looked for among */

void finding_add(struct scope *scope, struct findings *findings, struct finding finding,
                 const char *message)
{
    if (!GROW(&scope->arena, findings->items, findings->count, findings->capacity))
        return;
    (void)snprintf(finding.message, sizeof finding.message, "%s", message);
    findings->items[findings->count++] = finding;
}

/* The stored name that `name` is a slip of the hand for; NULL: none. */
static const char *nearest_name(struct engine *engine, struct scope *scope, str name)
{
    struct definition_row *rows = NULL;
    const char **words;
    uint32_t count = 0;

    if (store_definitions(engine->store, scope, STR_NONE, NAMES_MAX, &rows, &count) != PAWL_OK)
        return NULL;
    words = ARENA_ARRAY(&scope->arena, const char *, (size_t)count + 1);
    for (uint32_t i = 0; words && i < count; i++)
        words[i] = arena_str(&scope->arena, rows[i].name).data;
    return words && !scope->arena.failed ? words_nearest(name, words) : NULL;
}

static void warn(struct engine *engine, struct scope *scope, const struct reference *reference,
                 struct findings *findings)
{
    const char *nearest = nearest_name(engine, scope, reference->name);
    char message[sizeof((struct finding *)0)->message];
    int used = snprintf(message, sizeof message,
                        "%s '%.*s': '%s' names the definition '%.*s', which is not stored; ",
                        reference->owner, STR_ARG(words_shown(reference->of)), reference->key,
                        STR_ARG(words_shown(reference->name)));

    if (nearest)
        (void)snprintf(message + used, sizeof message - (size_t)used, "did you mean '%.*s'?",
                       STR_ARG(words_shown(str_of(nearest))));
    else
        (void)snprintf(message + used, sizeof message - (size_t)used,
                       "define it before an instance comes here");
    finding_add(scope, findings,
                (struct finding){
                    .line = reference->line, .column = reference->column, .is_warning = true },
                message);
}

pawl_status references_check(struct engine *engine, struct scope *scope, str name,
                             struct findings *findings)
{
    const pawl_error before = scope->error;

    for (uint32_t i = 0; i < findings->reference_count; i++) {
        const struct reference *reference = &findings->references[i];
        struct definition_row row;
        pawl_status status;

        if ((name.data && str_eq(reference_name(reference->name), name)) || /* itself */
            own_texts_have(reference->name) || code_is_put_when_used(engine, reference->name))
            continue;
        status = definition_find_registered(engine, scope, reference->name, &row);
        if (status == PAWL_NOT_KNOWN || status == PAWL_INVALID_REQUEST)
            warn(engine, scope, reference, findings);
        else if (status)
            return status;
        scope->error = before;
    }
    return scope->arena.failed ? scope_no_memory(scope) : PAWL_OK;
}

/* Does the store hold anything that was put? If not, a check cannot know what will be. */
bool references_are_known(struct engine *engine, struct scope *scope)
{
    struct definition_row *rows = NULL;
    uint32_t count = 0;

    if (store_definitions(engine->store, scope, STR_NONE, NAMES_MAX, &rows, &count) != PAWL_OK)
        return false;
    for (uint32_t i = 0; i < count; i++)
        if (rows[i].kind != KIND_CODE)
            return true;
    return false;
}
