/* query.c - what may be asked of an instance: expressions over its state, input, context and
 * results that its definition has under `queries`. They only read. */
#include "flow/expr_view.h"
#include "model/words.h"

#define NAMES_SHOWN 8

static pawl_status fail_unknown(const struct plan *plan, str name, struct scope *scope)
{
    struct buf names;
    uint32_t count = 0;

    if (!plan->queries)
        return scope_fail(scope, PAWL_NOT_KNOWN, "the definition has no queries");
    buf_init(&names, scope->arena.heap, 0);
    for (const struct node *query = plan->queries->first; query && count < NAMES_SHOWN;
         query = query->next, count++)
        buf_fmt(&names, "%s%.*s", count > 0 ? ", " : "", STR_ARG(query->key));
    (void)scope_fail(scope, PAWL_NOT_KNOWN, "no query '%.*s'; there are: %s%s",
                     STR_ARG(words_shown(name)), buf_text(&names),
                     plan->queries->count > NAMES_SHOWN ? ", ..." : "");
    buf_fini(&names);
    return PAWL_NOT_KNOWN;
}

static pawl_status name_query(struct scope *scope, str name, pawl_status status)
{
    static const char plain[] = "query: ", line[] = "query:1: ";
    char words[sizeof scope->error.message];
    const char *shown = words;

    memcpy(words, scope->error.message, sizeof words);
    if (strncmp(words, plain, sizeof plain - 1) == 0)
        shown += sizeof plain - 1;
    else if (strncmp(words, line, sizeof line - 1) == 0)
        shown += sizeof line - 1;
    return scope_fail(scope, status, "query '%.*s': %s", STR_ARG(name), shown);
}

pawl_status flow_query(const void *state, str name, str current, struct scope *scope, str *out)
{
    const struct flow_memory *memory = state;
    const struct plan *plan = memory->plan;
    const struct node *query = plan->queries ? node_find_str(plan->queries, name) : NULL;
    struct template_source source = { .plan = plan, .memory = memory, .fresh_slot = STEP_NONE };
    struct scope values;
    struct view view = {
        .scope = scope, .values = &values, .source = &source, .open = { .kind = NODE_OBJECT }
    };
    struct expr_world world = view_world(&view);
    struct buf quoted;
    pawl_status status;

    if (!query)
        return fail_unknown(plan, name, scope);
    buf_init(&quoted, scope->arena.heap, 0);
    json_str(&quoted, current);
    view.state = buf_take(&quoted, &scope->arena);
    TRY_MEMORY(scope, view.state.data);
    scope_init(&values, scope->arena.heap, LIMIT_SCOPE);
    status = expr_value(scope, EXPR_QUERY, query->text, &world, out);
    scope_fini(&values);
    return status == PAWL_INVALID_REQUEST ? name_query(scope, name, status) : status;
}
