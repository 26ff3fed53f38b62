/* expr_view.c - what an expression sees of a flow. */
#include "flow/expr_view.h"
#include "base/json_scan.h"

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

static const struct node *read_once(const struct view *view, const struct node **kept, str json,
                                    pawl_status *status)
{
    if (!*kept)
        *kept = read_value(view, json, status);
    return *kept;
}

static const struct node *read_index(struct view *view, pawl_status *status)
{
    struct buf number;

    buf_init(&number, view->values->arena.heap, 0);
    buf_u64(&number, view->source->item.index);
    return read_once(view, &view->index, buf_take(&number, &view->values->arena), status);
}

static const struct node *find_global(void *context, str name, pawl_status *status)
{
    struct view *view = context;
    const struct template_source *source = view->source;

    if (str_is(name, "result"))
        return read_result(view, status);
    if (str_is(name, "error"))
        return read_value(view, view->error, status);
    if (str_is(name, "state"))
        return read_value(view, view->state, status);
    if (str_is(name, "input"))
        return read_once(view, &view->input, source->memory->input, status);
    if (source->item.name.data && str_eq(name, source->item.name))
        return read_once(view, &view->item, source->item.value, status);
    if (source->item.name.data && str_is(name, "index"))
        return read_index(view, status);
    if (str_is(name, "context"))
        return view->whole ? view->whole : &view->open;
    if (str_is(name, "instance") && source->is_nameless)
        *status = scope_fail(view->scope, PAWL_NOT_AWAITING,
                             "'instance' is not known yet when a flow begins");
    else if (str_is(name, "instance"))
        return read_once(view, &view->instance, source->memory->instance, status);
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
    if (slot == source->fresh_slot && (view->text.data || source->fresh.data)) {
        *out =
            view->text.data ? read_result(view, status) : read_value(view, source->fresh, status);
        return true;
    }
    *status = template_result(source, step, view->values, &text);
    if (*status != PAWL_OK)
        view->scope->error = view->values->error;
    *out = read_value(view, text, status);
    return true;
}

struct expr_world view_world(struct view *view)
{
    return (struct expr_world){ .global = find_global,
                                .step = find_step,
                                .context = view,
                                .open = &view->open,
                                .member = find_member,
                                .whole = read_whole };
}
