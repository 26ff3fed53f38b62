/* condition_expr.c - conditions beyond the six: Lua expressions (src/expr), and what they see. */
#include "base/json_scan.h"
#include "base/planted.h"
#include "expr/expr.h"
#include "flow/flow_int.h"
#include "model/words.h"

struct read_member {
    struct node *node;
    struct read_member *next;
};

/* Values are read into a scope that lasts as long as one branch is chosen. */
struct view {
    struct scope *scope, *values;
    const struct template_source *source;
    str text;                  /* the result of the step that branches, ... */
    const struct node *result; /* ... read when an expression first asks for it */
    str error;                 /* of a step that failed; data NULL: it did not */
    struct node open;            /* the context, whose members are read when they are asked for: */
    struct read_member *members; /* these were */
    const struct node *whole;    /* all of it; NULL: it was not asked for */
};

/* A value takes fifty times its size when it consists of many small ones: then the condition
 * cannot be told, and that is the step's failure. */
static pawl_status check_room(const struct view *view, pawl_status status)
{
    if (status != PAWL_NO_MEMORY || !view->values->arena.is_full)
        return status;
    return scope_fail(view->scope, PAWL_INVALID_REQUEST,
                      "the values that it reads need more than %zu MiB of memory",
                      LIMIT_SCOPE >> 20);
}

static struct node *read_value(const struct view *view, str json, pawl_status *status)
{
    struct node *node = NULL;

    if (json.data && *status == PAWL_OK)
        *status = node_read_own(view->values, json, &node);
    *status = check_room(view, *status);
    return node;
}

static const struct node *read_result(struct view *view, pawl_status *status)
{
    if (!view->result)
        view->result = read_value(view, view->text, status);
    return view->result;
}

static const struct flow_context *context_of(const struct view *view)
{
    return view->source->context ? view->source->context : view->source->memory->context;
}

static struct node *member_read(const struct view *view, str key)
{
    const struct read_member *read = view->members;

    while (read && !str_eq(read->node->key, key))
        read = read->next;
    return read ? read->node : NULL;
}

static struct node *read_member(struct view *view, str key, str text, pawl_status *status)
{
    struct arena *arena = &view->values->arena;
    struct read_member *read = ARENA_NEW(arena, struct read_member);

    key = arena_str(arena, key);
    if (arena->failed)
        *status = check_room(view, PAWL_NO_MEMORY);
    if (*status != PAWL_OK || !(read->node = read_value(view, text, status)))
        return NULL;
    read->node->key = key;
    read->next = view->members;
    view->members = read;
    return read->node;
}

/* One member of the context: the same node each time. */
static const struct node *find_member(void *context, str key, uint32_t *before, pawl_status *status)
{
    struct view *view = context;
    str text = context_member(context_of(view), &view->values->arena, key, before);
    struct node *node = text.data ? member_read(view, key) : NULL;

    if (view->values->arena.failed)
        *status = check_room(view, PAWL_NO_MEMORY);
    return node || !text.data ? node : read_member(view, key, text, status);
}

static const struct node *read_whole(void *context, pawl_status *status)
{
    struct view *view = context;
    struct node *object;
    str text = STR_NONE;

    if (view->whole)
        return view->whole;
    *status = check_room(view, context_text(context_of(view), view->values, &text));
    object = read_value(view, text, status);
    /* What was read by itself takes the place of what was read with all. */
    for (struct node **at = object ? &object->first : NULL; at && *at; at = &(*at)->next) {
        struct node *read = member_read(view, (*at)->key);

        if (read) {
            read->next = (*at)->next;
            *at = read;
        }
    }
    view->whole = object;
    return object;
}

static const struct node *find_global(void *context, str name, pawl_status *status)
{
    struct view *view = context;
    const struct template_source *source = view->source;

    if (str_is(name, "result"))
        return read_result(view, status);
    if (str_is(name, "error"))
        return read_value(view, view->error, status);
    if (str_is(name, "input"))
        return read_value(view, source->memory->input, status);
    if (str_is(name, "context"))
        return view->whole ? view->whole : &view->open;
    if (str_is(name, "instance") && source->is_nameless)
        *status = scope_fail(view->scope, PAWL_NOT_AWAITING,
                             "'instance' is not known yet when a flow begins");
    else if (str_is(name, "instance"))
        return read_value(view, source->memory->instance, status);
    return NULL;
}

static bool find_step(void *context, str name, const struct node **out, pawl_status *status)
{
    struct view *view = context;
    const struct template_source *source = view->source;
    uint32_t step = plan_find(source->plan, name);
    uint32_t slot = step == STEP_NONE ? STEP_NONE : source->plan->steps[step].result_slot;
    str text = STR_NONE;

    if (slot == STEP_NONE)
        return false;
    if (slot == source->fresh_slot) {
        *out =
            view->text.data ? read_result(view, status) : read_value(view, source->fresh, status);
        return true;
    }
    *status = template_result(source, slot, view->values, &text);
    if (*status != PAWL_OK)
        view->scope->error = view->values->error;
    *out = read_value(view, text, status);
    return true;
}

static pawl_status holds(struct view *view, const struct plan_target *target, bool *out)
{
    struct expr_world world = { .global = find_global,
                                .step = find_step,
                                .context = view,
                                .open = &view->open,
                                .member = find_member,
                                .whole = read_whole };
    struct node result;

    if (!condition_is_pattern(target->condition))
        return expr_holds(view->scope, target->condition, &world, out);
    json_peek(&view->values->arena, view->text, &result);
    TRY_MEMORY(view->scope, !view->values->arena.failed);
    *out = condition_matches(target, &result);
    return PAWL_OK;
}

/* Which condition of which step cannot be told: "step 'check': condition 2, 'result > 3':
 * attempt to ...". Older versions record the words alone (compiler 3). */
static pawl_status name_condition(struct scope *scope, const struct plan_step *step,
                                  const struct plan_target *targets, uint32_t index,
                                  pawl_status status)
{
    static const char line[] = "condition:1: ", plain[] = "condition: ";
    char words[sizeof scope->error.message];
    const char *shown = words;

    memcpy(words, scope->error.message, sizeof words);
    if (strncmp(words, line, sizeof line - 1) == 0)
        shown += sizeof line - 1;
    else if (strncmp(words, plain, sizeof plain - 1) == 0)
        shown += sizeof plain - 1;
    return scope_fail(scope, status, "step '%.*s': condition %u, '%.*s': %s",
                      STR_ARG(words_shown(step->name)), index + 1,
                      STR_ARG(words_shown(targets[index].condition)), shown);
}

static pawl_status choose(struct view *view, const struct plan_step *step,
                          const struct plan_target *targets, uint32_t count, uint32_t *out)
{
    pawl_status status = PAWL_OK;
    bool does = false;

    for (uint32_t i = 0; i < count && status == PAWL_OK && (!does || PLANTED(BRANCH_LAST)); i++) {
        does = !targets[i].condition.data;
        if (!does)
            status = holds(view, &targets[i], &does);
        if (status == PAWL_OK && does)
            *out = i;
        if (status != PAWL_OK && !status_is_trouble(status) && view->source->names_conditions)
            status = name_condition(view->scope, step, targets, i, status);
    }
    return status;
}

pawl_status condition_choose(struct scope *scope, const struct template_source *source,
                             const struct plan_step *step, str result, uint32_t *out)
{
    struct scope values;
    struct view view = { .scope = scope,
                         .values = &values,
                         .source = source,
                         .text = result,
                         .open = { .kind = NODE_OBJECT } };
    pawl_status status;

    *out = STEP_NONE;
    if (step->way != WAY_BRANCH)
        return PAWL_OK;
    scope_init(&values, scope->arena.heap, LIMIT_SCOPE);
    status = choose(&view, step, step->targets, step->target_count, out);
    scope_fini(&values);
    return status;
}

pawl_status condition_first(struct scope *scope, const struct template_source *source,
                            const struct plan_step *step, const struct plan_target *targets,
                            uint32_t count, str error, uint32_t *out)
{
    struct scope values;
    struct view view = { .scope = scope,
                         .values = &values,
                         .source = source,
                         .error = error,
                         .open = { .kind = NODE_OBJECT } };
    pawl_status status;

    *out = STEP_NONE;
    scope_init(&values, scope->arena.heap, LIMIT_SCOPE);
    status = choose(&view, step, targets, count, out);
    scope_fini(&values);
    return status;
}

pawl_status condition_choose_error(struct scope *scope, const struct template_source *source,
                                   const struct plan_step *step, str error, uint32_t *out)
{
    return condition_first(scope, source, step, step->errors, step->error_count, error, out);
}
