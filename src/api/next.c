/* next.c - what follows a step of a graph: pawl_next_steps() (B18).
 *
 * Pure: JSON in, JSON out, no store and no clock. What the caller knows (steps under way, joins
 * that wait, the context, results) becomes the memory of an instance, and the reducer that runs
 * flows decides once. */
#include "api/api.h"
#include "base/limits.h"
#include "base/node_own.h"
#include "flow/flow.h"

#define ORDINAL 1 /* of the step that is over; those under way come behind it */

struct next {
    struct scope *scope;
    const pawl_next_args *args;
    const struct node *document;
    struct definition *definition;
    void *memory;
    uint32_t state, step;
    const struct node *live, *joined, *context, *results;
    str input, result;
    struct buf begun; /* steps */
    str ended;        /* the payload of finish or fail */
};

/* ---- What the caller knows ------------------------------------------------------------------- */

static pawl_status fail_argument(const struct next *next, const char *name, const char *expected,
                                 const struct node *found)
{
    return scope_fail(next->scope, PAWL_INVALID_REQUEST, "%s: expected %s, found %s", name, expected,
                      node_kind_name(found->kind));
}

/* An argument as JSON of one kind; NULL is left as it is. */
static pawl_status read_argument(struct next *next, const char *name, const char *text,
                                 enum node_kind kind, const struct node **out)
{
    struct node *node = NULL;
    pawl_status status = text ? node_read_json(next->scope, str_of(text), &node) : PAWL_OK;

    if (status == PAWL_INVALID_REQUEST)
        return scope_fail(next->scope, status, "%s: expected JSON, found '%.40s'", name, text);
    if (status == PAWL_OK && node && node->kind != kind)
        return fail_argument(next, name, kind == NODE_ARRAY ? "a list of steps" : "an object", node);
    *out = node;
    return status;
}

static pawl_status read_arguments(struct next *next)
{
    const pawl_next_args *args = next->args;
    const struct node *input = NULL;
    struct node *result = NULL;

    TRY(read_argument(next, "live", args->live, NODE_ARRAY, &next->live));
    TRY(read_argument(next, "joined", args->joined, NODE_ARRAY, &next->joined));
    TRY(read_argument(next, "context", args->context, NODE_OBJECT, &next->context));
    TRY(read_argument(next, "results", args->results, NODE_OBJECT, &next->results));
    TRY(read_argument(next, "input", args->input, NODE_OBJECT, &input));
    if (args->result && node_read_json(next->scope, str_of(args->result), &result) != PAWL_OK)
        return scope_fail(next->scope, PAWL_INVALID_REQUEST, "result: expected JSON, found '%.40s'",
                          args->result);
    next->input = input ? input->raw : STR("{}");
    next->result = result ? result->raw : STR("null");
    return PAWL_OK;
}

/* A step by its key in the document, or else by its name. */
static pawl_status find_step(const struct next *next, str text, uint32_t *out)
{
    const struct node *steps = node_find(next->document, "steps");
    const struct node *step = node_find_str(steps ? steps : next->document, text);
    const struct node *name = step ? node_find(step, "name") : NULL;
    str wanted = name && name->kind == NODE_STRING ? name->text : text;

    for (*out = 0; *out < flow_step_count(next->definition); ++*out)
        if (str_eq(flow_step_name(next->definition, *out), wanted))
            return PAWL_OK;
    return scope_fail(next->scope, PAWL_INVALID_REQUEST, "step: the flow has no step '%.*s'",
                      (int)(text.size < 80 ? text.size : 80), text.data);
}

/* ---- The memory that it makes -------------------------------------------------------------------
 * In the form of a snapshot: flow/memory_text.c. */

static void print_live(uint32_t step, uint32_t ordinal, struct buf *out)
{
    json_open(out, '[');
    json_u64(out, step);
    json_u64(out, ordinal);
    json_u64(out, 1);
    json_u64(out, ordinal);
    json_text(out, "running");
    json_bool(out, false);
    json_close(out, ']');
}

/* An item of a list of names. */
static pawl_status find_named_step(const struct next *next, const char *list,
                                   const struct node *item, uint32_t *out)
{
    return item->kind == NODE_STRING ? find_step(next, item->text, out)
                                     : fail_argument(next, list, "names of steps", item);
}

static pawl_status print_all_live(const struct next *next, struct buf *out)
{
    uint32_t ordinal = ORDINAL, step;

    json_put_open(out, "live", '[');
    if (next->args->step)
        print_live(next->step, ordinal, out);
    for (const struct node *item = next->live ? next->live->first : NULL; item; item = item->next) {
        TRY(find_named_step(next, "live", item, &step));
        print_live(step, ++ordinal, out);
    }
    json_close(out, ']');
    json_put_u64(out, "ordinal", ordinal);
    return PAWL_OK;
}

static pawl_status print_joined(const struct next *next, struct buf *out)
{
    const struct node *item = next->joined ? next->joined->first : NULL;
    uint32_t step;

    json_put_open(out, "joins", '[');
    for (; item; item = item->next) {
        TRY(find_named_step(next, "joined", item, &step));
        if (!flow_step_is_joined(next->definition, step))
            return scope_fail(next->scope, PAWL_INVALID_REQUEST,
                              "joined: expected steps that others join, found '%.*s', which no "
                              "step of the flow joins",
                              (int)(item->text.size < 80 ? item->text.size : 80), item->text.data);
        json_u64(out, step);
    }
    json_close(out, ']');
    return PAWL_OK;
}

static pawl_status print_memory(const struct next *next, struct buf *out)
{
    const struct node *item = next->results ? next->results->first : NULL;
    uint32_t step;

    json_open(out, '{');
    TRY(print_all_live(next, out));
    TRY(print_joined(next, out));
    json_put_open(out, "results", '[');
    for (; item; item = item->next) {
        TRY(find_step(next, item->key, &step));
        json_open(out, '[');
        json_u64(out, step);
        json_raw(out, item->raw);
        json_close(out, ']');
    }
    json_close(out, ']');
    if (next->context)
        json_put_raw(out, "context", next->context->raw);
    json_close(out, '}');
    return PAWL_OK;
}

static pawl_status load_memory(struct next *next)
{
    struct buf buf;
    str text;
    pawl_status status;

    buf_init(&buf, &heap_libc, LIMIT_SCOPE);
    status = print_memory(next, &buf);
    text = buf_take(&buf, &next->scope->arena);
    TRY(status);
    TRY_MEMORY(next->scope, text.data);
    next->state = next->args->step ? LIFE_RUNNING : LIFE_CREATED;
    return flow_behavior.memory_load(next->definition, text, next->input, next->scope,
                                     &next->scope->arena, &next->memory);
}

/* ---- Deciding -------------------------------------------------------------------------------- */

/* Steps that begin: {"name":N,"kind":K,"tool":T,"args":{...}} */
static pawl_status fold(struct next *next, const struct draft *draft)
{
    struct entry_view entry = entry_of_draft(draft);

    TRY(flow_behavior.apply(next->definition, next->memory, &entry, next->scope,
                            &next->scope->arena));
    next->state = next->definition->transitions[draft->transition].to;
    if (draft->transition == LIFE_T_FINISH || draft->transition == LIFE_T_FAIL)
        next->ended = draft->payload;
    for (uint32_t i = 0; i < draft->effects.count; i++) {
        const struct effect *effect = &draft->effects.items[i];
        struct flow_call call;

        if (effect->kind != EFFECT_STEP)
            continue;
        TRY(flow_call(next->definition, next->memory, effect->ordinal, next->scope, &call));
        json_open(&next->begun, '{');
        json_put_str(&next->begun, "name", call.step);
        json_put_text(&next->begun, "kind", flow_step_kind(next->definition, effect->plan));
        json_put_str(&next->begun, "tool", call.tool);
        json_put_raw(&next->begun, "args", call.args);
        json_close(&next->begun, '}');
    }
    return PAWL_OK;
}

static pawl_status decide(struct next *next)
{
    struct standing standing = { .state = next->state, .memory = next->memory };
    struct decision decision = { 0 };
    pawl_status status;

    if (next->args->step)
        status = flow_after(next->definition, &standing, ORDINAL, next->result, next->scope, &decision);
    else
        status = flow_behavior.decide(next->definition, &standing,
                                      &(struct event){ .kind = EVENT_START }, next->scope, &decision);
    json_open(&next->begun, '[');
    for (uint32_t i = 0; status == PAWL_OK && i < decision.count; i++)
        status = fold(next, &decision.drafts[i]);
    json_close(&next->begun, ']');
    return status;
}

/* ---- The answer ------------------------------------------------------------------------------ */

/* The steps at which others wait now, by name, from the memory's own text. */
static pawl_status put_joined(const struct next *next, struct buf *out)
{
    struct node *memory = NULL;
    struct buf buf;
    str text;
    int64_t step = 0;

    buf_init(&buf, &heap_libc, LIMIT_SCOPE);
    flow_behavior.memory_print(next->definition, next->memory, &buf);
    text = buf_take(&buf, &next->scope->arena);
    TRY_MEMORY(next->scope, text.data);
    TRY(node_read_own(next->scope, text, &memory));
    json_put_open(out, "joined", '[');
    for (const struct node *item = node_first(memory, "joins"); item; item = item->next)
        if (node_to_i64(item, &step))
            json_str(out, flow_step_name(next->definition, (uint32_t)step));
    json_close(out, ']');
    return PAWL_OK;
}

static pawl_status print_answer(const struct next *next, str *out)
{
    bool is_success = next->state == LIFE_COMPLETED, is_failure = next->state == LIFE_FAILED;
    struct buf buf;
    pawl_status status;

    buf_init(&buf, &heap_libc, LIMIT_SCOPE);
    json_open(&buf, '{');
    json_put_text(&buf, "status", is_success ? "success" : is_failure ? "failure" : "pending");
    json_put_raw(&buf, "steps", next->state == LIFE_RUNNING ? buf_view(&next->begun) : STR("[]"));
    status = put_joined(next, &buf);
    json_key(&buf, "context");
    flow_print_context(next->memory, &buf);
    json_opt_raw(&buf, is_success ? "result" : "error", next->ended);
    json_close(&buf, '}');
    *out = buf_take(&buf, &next->scope->arena);
    TRY(status);
    TRY_MEMORY(next->scope, out->data && !next->begun.failed);
    return PAWL_OK;
}

/* ---- The call -------------------------------------------------------------------------------- */

static pawl_status find_next(struct next *next, const char *flow, str *out)
{
    struct node *document = NULL;

    TRY(node_read(next->scope, str_of(flow), &document));
    TRY(flow_compile(next->scope, document, NULL, &next->definition));
    next->document = document;
    if (flow_step_count(next->definition) > 0 && flow_step_node(next->definition, 0) != UINT32_MAX)
        return scope_fail(next->scope, PAWL_INVALID_DEFINITION,
                          "expected a graph (`steps`), found a tree; use pawl_plan_make()");
    TRY(read_arguments(next));
    if (next->args->step)
        TRY(find_step(next, str_of(next->args->step), &next->step));
    TRY(load_memory(next));
    TRY(decide(next));
    return print_answer(next, out);
}

pawl_status pawl_next_steps(const char *flow, const pawl_next_args *args, char **next,
                            pawl_error *error)
{
    struct scope scope;
    struct next found = { .scope = &scope, .args = args };
    str text = STR_NONE;
    pawl_status status;

    TRY(API_NEED_TEXTS(error, GIVEN(flow), GIVEN(args), GIVEN(next)));
    *next = NULL;
    scope_init(&scope, &heap_libc, LIMIT_SCOPE);
    scope.outer = panic_set(NULL);
    buf_init(&found.begun, &heap_libc, LIMIT_SCOPE);
    status = find_next(&found, flow, &text);
    if (status == PAWL_OK)
        status = api_text(&scope, text, next);
    buf_fini(&found.begun);
    return api_leave(&scope, status, error);
}
