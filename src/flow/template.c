/* template.c - {{input.a.b}}, {{context.x}}, {{steps.NAME.result.x}} and {{instance.id}} in the
 * args of a step, and expressions: {{= input.n + 1}}.
 *
 * Replaced once, at any depth, when the step begins or is taken to its tool; what a template brings
 * in is never looked at again. A string that is exactly one template keeps the JSON type
 * of the value (B21). */
#include "base/json_scan.h"
#include "flow/expr_view.h"
#include "model/words.h"

#define PATH_SIZE_MAX LIMIT_ACTION
#define VALUES_SIZE_MAX ((size_t)16 << 20) /* of results that were read: then they are let go */
/* One value printed with every byte escaped: what a single replacement may add. */
#define PIECE_SIZE_MAX ((size_t)6 * LIMIT_TEXT + 64)

/* ---- Reading the notation -------------------------------------------------------- */

static size_t find_pair(str text, size_t from, char byte)
{
    for (size_t at = from; at + 1 < text.size; at++)
        if (text.data[at] == byte && text.data[at + 1] == byte)
            return at;
    return SIZE_MAX;
}

/* Which value a path is of; the rest of it is left in *rest. */
static enum template_kind root_of(str path, str *rest)
{
    static const struct {
        str root;
        enum template_kind kind;
    } roots[] = { { STR_INIT("input"), TEMPLATE_INPUT },
                  { STR_INIT("steps"), TEMPLATE_STEP },
                  { STR_INIT("context"), TEMPLATE_CONTEXT },
                  { STR_INIT("instance"), TEMPLATE_INSTANCE } };

    for (size_t i = 0; i < sizeof roots / sizeof roots[0]; i++) {
        size_t size = roots[i].root.size;

        *rest = path_after(path, size);
        if (str_starts(path, roots[i].root) && (path.size == size || path.data[size] == '.'))
            return roots[i].kind;
    }
    return TEMPLATE_UNKNOWN;
}

static struct template_part classify(str text)
{
    struct template_part part = { .kind = TEMPLATE_UNKNOWN, .text = text };
    str inner = str_trim((str){ text.data + 2, text.size - 4 }, " \t");

    if (inner.size <= PATH_SIZE_MAX)
        part.kind = root_of(inner, &part.path);
    return part;
}

str template_unclosed(str text)
{
    size_t open = find_pair(text, 0, '{');
    str path;

    if (open == SIZE_MAX)
        return STR_NONE;
    text = str_from(text, open);
    if (str_starts(text, EXPRESSION_OPEN))
        return text;
    return root_of(str_trim(str_from(text, 2), " \t"), &path) != TEMPLATE_UNKNOWN ? text : STR_NONE;
}

/* {{= ... }}, which begins `rest`, with its end; false: it has none. */
static bool take_expression(str *rest, struct template_part *out)
{
    str inner = str_from(*rest, EXPRESSION_OPEN.size);
    size_t end = expr_end(inner), size = end + EXPRESSION_OPEN.size + 2;

    if (end == SIZE_MAX)
        return false;
    *out = (struct template_part){ .kind = TEMPLATE_VALUE,
                                   .text = { rest->data, size },
                                   .path = str_trim((str){ inner.data, end }, " \t\r\n") };
    *rest = str_from(*rest, size);
    return true;
}

bool template_next(bool calculates, str *rest, struct template_part *out)
{
    size_t open = find_pair(*rest, 0, '{'), close = SIZE_MAX, size = rest->size;

    if (rest->size == 0)
        return false;
    if (calculates && open == 0 && str_starts(*rest, EXPRESSION_OPEN) && take_expression(rest, out))
        return true;
    if (open != SIZE_MAX)
        close = find_pair(*rest, open + 2, '}');
    if (close != SIZE_MAX) {
        for (size_t at = open + 1; at + 1 < close; at++) /* the innermost braces count */
            if (rest->data[at] == '{' && rest->data[at + 1] == '{')
                open = at;
        size = open > 0 ? open : close + 2;
    }
    if (close != SIZE_MAX && open == 0)
        *out = classify((str){ rest->data, size });
    else
        *out = (struct template_part){ TEMPLATE_TEXT, { rest->data, size }, STR_NONE };
    *rest = str_from(*rest, size);
    return true;
}

uint32_t template_step(const struct plan *plan, str path, size_t below, str *rest)
{
    static const size_t word_size = sizeof ".result" - 1;

    for (size_t at = path.size; at-- > 0;) {
        str tail = str_from(path, at);
        uint32_t step;

        if (at >= below || !str_starts(tail, STR(".result")) ||
            (tail.size > word_size && tail.data[word_size] != '.'))
            continue;
        step = plan_find(plan, (str){ path.data, at });
        if (step == STEP_NONE)
            continue;
        *rest = path_after(tail, word_size);
        return step;
    }
    return STEP_NONE;
}

/* ---- Looking up ------------------------------------------------------------------ */

/* The member with the longest key that `path` can begin with and that is shorter than `below`;
 * False: it has none. */
static bool longest_key(struct arena *arena, str object, str path, size_t *below, str *out)
{
    struct json_scan scan;
    size_t best = SIZE_MAX;
    str raw, value;

    json_scan_begin(&scan, object);
    while (json_scan_next(&scan, &raw, &value)) {
        str key = json_unescape(arena, raw);

        if (key.size >= *below || !str_starts(path, key) ||
            (path.size > key.size && path.data[key.size] != '.'))
            continue;
        if (best == SIZE_MAX || key.size > best) {
            best = key.size;
            *out = value;
        }
    }
    *below = best;
    return best != SIZE_MAX;
}

static str walk_array(struct arena *arena, str array, str path)
{
    size_t size = str_before(path, '.').size;
    struct json_scan scan;
    uint64_t index;
    str key, item;

    if (!str_to_u64((str){ path.data, size }, &index))
        return STR_NONE;
    json_scan_begin(&scan, array);
    while (json_scan_next(&scan, &key, &item))
        if (index-- == 0)
            return template_walk(arena, item, path_after(path, size));
    return STR_NONE;
}

/* Each value below is reached by one spelling of its keys, so none is looked at twice; the depth is
 * that of the document. */
str template_walk(struct arena *arena, str value, str path)
{
    str child, found = STR_NONE;
    struct json_scan kind;

    if (!path.data)
        return value;
    json_scan_begin(&kind, value);
    if (!kind.is_object)
        return walk_array(arena, value, path);
    for (size_t below = SIZE_MAX; !found.data && longest_key(arena, value, path, &below, &child);)
        found = template_walk(arena, child, path_after(path, below));
    return found;
}

/* ---- Replacing ------------------------------------------------------------------- */

struct expansion {
    const struct template_source *source;
    const struct plan *plan;
    const struct flow_memory *memory;
    struct scope *scope;
    const struct flow_context *context; /* opened when first asked for */
    struct scope values; /* results that the memory does not keep: the last few */
    str *results;        /* ... by slot; NULL: none was read */
    struct view view;    /* of expressions; its scope NULL: none was met */
    struct template_source seen;
    struct scope viewed;
    struct buf out, text;
    pawl_status status;
};

/* What lies at `path` in a value that there may be; data NULL: nothing. */
static str find_in(struct expansion *expansion, str json, str path)
{
    struct arena *arena = &expansion->scope->arena;
    str found = json.data ? template_walk(arena, json, path) : STR_NONE;

    if (arena->failed && expansion->status == PAWL_OK)
        expansion->status = scope_no_memory(expansion->scope);
    return found;
}

/* With the error of the try around the step; if that did not fail, as without an error. */
static pawl_status open_context(struct expansion *expansion)
{
    const struct template_source *source = expansion->source;
    struct arena *arena = &expansion->scope->arena;
    struct flow_context *noted;
    str error;

    expansion->context = source->context ? source->context : expansion->memory->context;
    if (!source->last_error)
        return PAWL_OK;
    TRY(memory_text(expansion->memory, source->last_error, expansion->scope, &error));
    if (!error.data && !context_find(expansion->context, arena, CONTEXT_LAST_ERROR).data)
        return PAWL_OK;
    if (!error.data)
        error = STR("\"\"");
    expansion->context = noted = context_over(expansion->context, arena);
    return noted ? context_note_error(expansion->scope, noted, error, arena)
                 : scope_no_memory(expansion->scope);
}

static str find_context(struct expansion *expansion, str path)
{
    struct arena *arena = &expansion->scope->arena;
    str found = STR_NONE;

    if (!expansion->context)
        expansion->status = open_context(expansion);
    if (expansion->status == PAWL_OK)
        found = context_find(expansion->context, arena, path);
    if (arena->failed && expansion->status == PAWL_OK)
        expansion->status = scope_no_memory(expansion->scope);
    return found;
}

static str read_result(struct expansion *expansion, uint32_t step)
{
    uint32_t slot = expansion->plan->steps[step].result_slot;
    struct scope *values = &expansion->values;
    str *kept;

    if (values->arena.used >= VALUES_SIZE_MAX) { /* more than one scope can hold */
        scope_clear(values);
        expansion->results = NULL;
    }
    if (!expansion->results)
        expansion->results = ARENA_ARRAY(&values->arena, str, expansion->plan->slot_count);
    kept = expansion->results ? &expansion->results[slot] : NULL;
    if (!kept)
        expansion->status = scope_no_memory(expansion->scope);
    else if (!kept->data)
        expansion->status = template_result(expansion->source, step, values, kept);
    if (values->error.status != PAWL_OK)
        expansion->scope->error = values->error;
    return expansion->status == PAWL_OK ? *kept : STR_NONE;
}

static str find_result(struct expansion *expansion, str path)
{
    str found = STR_NONE, rest, result;
    uint32_t index;

    for (size_t below = SIZE_MAX;
         path.data && !found.data && expansion->status == PAWL_OK &&
         (index = template_step(expansion->plan, path, below, &rest)) != STEP_NONE;) {
        const struct plan_step *step = &expansion->plan->steps[index];

        result = read_result(expansion, index);
        if (expansion->status == PAWL_OK)
            found = find_in(expansion, result, rest);
        below = step->name.size;
    }
    return found;
}

/* Its number is given to an instance when its creation is recorded, and that comes after `start`
 * was decided: whatever asks before then fails, live and in a check alike. */
static str find_instance(struct expansion *expansion, str path)
{
    str text = expansion->source->is_nameless ? STR_NONE : expansion->memory->instance;

    if (!text.data) {
        expansion->status = scope_fail(expansion->scope, PAWL_NOT_AWAITING,
                                       "'instance' is not known yet when a flow begins");
        return STR_NONE;
    }
    return find_in(expansion, text, path);
}

/* The path below a root of its own that the step of a map's item has. */
static bool is_rooted(const struct template_part *part, str root, str *path)
{
    str inner = str_trim((str){ part->text.data + 2, part->text.size - 4 }, " \t");

    *path = path_after(inner, root.size);
    return str_starts(inner, root) && (inner.size == root.size || inner.data[root.size] == '.');
}

/* Is it replaced here? A text {{...}} with another root stays as it is, unless it is the item's. */
static bool is_replaced(const struct expansion *expansion, const struct template_part *part)
{
    str name = expansion->source->item.name, path;

    return template_is_replaced(part) ||
           (part->kind == TEMPLATE_UNKNOWN && name.data &&
            (is_rooted(part, name, &path) || is_rooted(part, STR("index"), &path)));
}

static str find_item(struct expansion *expansion, const struct template_part *part)
{
    const struct template_item *item = &expansion->source->item;
    struct buf number;
    str path, found;

    if (is_rooted(part, item->name, &path))
        return find_in(expansion, item->value, path);
    buf_init(&number, expansion->scope->arena.heap, 0);
    buf_u64(&number, item->index);
    found = buf_take(&number, &expansion->scope->arena);
    if (!found.data && expansion->status == PAWL_OK)
        expansion->status = scope_no_memory(expansion->scope);
    return found;
}

/* Made when the first expression is met: the others see the same values. */
static struct view *open_view(struct expansion *expansion)
{
    struct view *view = &expansion->view;

    if (!view->scope) {
        scope_init(&expansion->viewed, expansion->scope->arena.heap, LIMIT_SCOPE);
        expansion->seen = *expansion->source;
        *view = (struct view){ .scope = expansion->scope,
                               .values = &expansion->viewed,
                               .source = &expansion->seen,
                               .open = { .kind = NODE_OBJECT } };
    }
    return view;
}

/* The error names the expression. */
static pawl_status name_expression(struct scope *scope, str text, pawl_status status)
{
    static const char line[] = "expression:1: ", plain[] = "expression: ";
    char words[sizeof scope->error.message];
    const char *shown = words;

    memcpy(words, scope->error.message, sizeof words);
    if (strncmp(words, line, sizeof line - 1) == 0)
        shown += sizeof line - 1;
    else if (strncmp(words, plain, sizeof plain - 1) == 0)
        shown += sizeof plain - 1;
    return scope_fail(scope, status, "expression '%.*s': %s", STR_ARG(words_shown(text)), shown);
}

static str find_expression(struct expansion *expansion, str text)
{
    struct view *view = open_view(expansion);
    struct expr_world world = view_world(view);
    str value = STR_NONE;
    pawl_status status = PAWL_OK;

    if (!expansion->context && memmem(text.data, text.size, "context", 7))
        status = open_context(expansion);
    if (status == PAWL_OK && expansion->context)
        expansion->seen.context = expansion->context;
    if (status == PAWL_OK)
        status = expr_value(expansion->scope, EXPR_VALUE, text, &world, &value);
    if (status != PAWL_OK && !status_is_trouble(status) && status != PAWL_NOT_AWAITING)
        status = name_expression(expansion->scope, text, status);
    if (expansion->status == PAWL_OK)
        expansion->status = status;
    return status == PAWL_OK ? value : STR_NONE;
}

static str find_value(struct expansion *expansion, const struct template_part *part)
{
    if (part->kind == TEMPLATE_VALUE)
        return find_expression(expansion, part->path);
    if (part->kind == TEMPLATE_UNKNOWN)
        return find_item(expansion, part);
    if (part->kind == TEMPLATE_INSTANCE)
        return find_instance(expansion, part->path);
    if (part->kind == TEMPLATE_INPUT)
        return find_in(expansion, expansion->memory->input, part->path);
    if (part->kind == TEMPLATE_CONTEXT)
        return find_context(expansion, part->path);
    return find_result(expansion, part->path);
}

bool template_is_replaced(const struct template_part *part)
{
    return part->kind != TEMPLATE_TEXT && part->kind != TEMPLATE_UNKNOWN;
}

bool template_has(str text)
{
    struct template_part part;

    while (template_next(true, &text, &part))
        if (template_is_replaced(&part))
            return true;
    return false;
}

/* Over the limit, or a buf without memory? Asked after every piece, so that a piece is all
 * that can be written in vain. */
static void check_size(struct expansion *expansion, const struct buf *buf)
{
    if (expansion->status != PAWL_OK)
        return;
    if (buf->size > LIMIT_TEXT)
        expansion->status = scope_fail(expansion->scope, PAWL_TOO_LARGE,
                                       "over %u bytes with its templates replaced", LIMIT_TEXT);
    else if (buf->failed)
        expansion->status = scope_no_memory(expansion->scope);
}

static void add_piece(struct expansion *expansion, const struct template_part *part)
{
    struct node value;
    str found;

    if (!is_replaced(expansion, part)) {
        buf_str(&expansion->text, part->text);
        return;
    }
    found = find_value(expansion, part);
    if (!found.data)
        return;
    json_peek(&expansion->scope->arena, found, &value);
    if (value.kind == NODE_NULL && part->kind == TEMPLATE_VALUE)
        return; /* as what is missing */
    if (value.kind == NODE_STRING)
        buf_str(&expansion->text, value.text);
    else
        json_compact(&expansion->text, found);
}

static void expand_string(struct expansion *expansion, const struct node *node)
{
    struct template_part part = { .kind = TEMPLATE_TEXT };
    bool calculates = expansion->plan->calculates;
    str rest = node->text, value;

    if (template_next(calculates, &rest, &part) && rest.size == 0 &&
        is_replaced(expansion, &part)) {
        value = find_value(expansion, &part);
        if (value.data)
            json_compact(&expansion->out, value);
        else
            buf_str(&expansion->out, STR("\"\""));
        return;
    }
    rest = node->text;
    buf_clear(&expansion->text);
    while (expansion->status == PAWL_OK && template_next(calculates, &rest, &part)) {
        add_piece(expansion, &part);
        check_size(expansion, &expansion->text);
    }
    value = buf_view(&expansion->text);
    json_str(&expansion->out, value.data ? value : STR(""));
}

static void expand(struct expansion *expansion, const struct node *node)
{
    bool is_object = node->kind == NODE_OBJECT;

    check_size(expansion, &expansion->out);
    if (expansion->status != PAWL_OK)
        return;
    if (node->kind == NODE_STRING) {
        expand_string(expansion, node);
        return;
    }
    if (node->kind != NODE_ARRAY && !is_object) {
        node_print(node, &expansion->out);
        return;
    }
    buf_byte(&expansion->out, is_object ? '{' : '[');
    for (const struct node *child = node->first; child; child = child->next) {
        if (child != node->first)
            buf_byte(&expansion->out, ',');
        if (is_object)
            json_key_str(&expansion->out, child->key);
        expand(expansion, child);
    }
    buf_byte(&expansion->out, is_object ? '}' : ']');
}

pawl_status template_expand_node(const struct template_source *source, const struct node *node,
                                 struct scope *scope, str *out)
{
    struct expansion expansion = {
        .source = source, .plan = source->plan, .memory = source->memory, .scope = scope
    };

    buf_init(&expansion.out, scope->arena.heap, LIMIT_TEXT + PIECE_SIZE_MAX);
    buf_init(&expansion.text, scope->arena.heap, LIMIT_TEXT + PIECE_SIZE_MAX);
    scope_init(&expansion.values, scope->arena.heap, LIMIT_SCOPE);
    expand(&expansion, node);
    check_size(&expansion, &expansion.out);
    if (expansion.status == PAWL_OK) {
        *out = buf_keep(&expansion.out, &scope->arena);
        expansion.status = out->data ? PAWL_OK : scope_no_memory(scope);
    }
    scope_fini(&expansion.values);
    if (expansion.view.scope)
        scope_fini(&expansion.viewed);
    buf_fini(&expansion.text);
    buf_fini(&expansion.out);
    return expansion.status;
}

bool template_is_of_input(const struct node *node)
{
    struct template_part part;

    if (node->kind == NODE_STRING)
        for (str rest = node->text; template_next(true, &rest, &part);)
            if (template_is_replaced(&part) && part.kind != TEMPLATE_INPUT)
                return false;
    for (const struct node *child = node->first; child; child = child->next)
        if (!template_is_of_input(child))
            return false;
    return true;
}

pawl_status template_expand(const struct template_source *source, const struct plan_step *step,
                            struct scope *scope, str *out)
{
    if (step->has_template)
        return template_expand_node(source, step->args_node, scope, out);
    *out = step->args;
    return PAWL_OK;
}

pawl_status template_expand_output(const struct template_source *source, struct scope *scope,
                                   str *out)
{
    if (source->plan->output_has_template)
        return template_expand_node(source, source->plan->output_node, scope, out);
    *out = source->plan->output;
    return PAWL_OK;
}
