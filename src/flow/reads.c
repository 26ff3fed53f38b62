/* reads.c - which members of the results of its steps a plan reads, and a result with those alone.
 *
 * An instance that runs another one again is given results of that one in its first entry. Those
 * that do not fit there whole are given as far as they are read. */
#include "base/json_scan.h"
#include "expr/expr.h"
#include "flow/reads.h"

/* ---- What is read ---------------------------------------------------------------------------- */

static void add_read(struct arena *arena, str path, struct plan_read **reads)
{
    struct plan_read *read = ARENA_NEW(arena, struct plan_read);

    if (!read)
        return;
    *read = (struct plan_read){ .next = *reads, .path = path };
    *reads = read;
}

/* As template.c finds it: each step that the path may mean. */
static void read_path(const struct plan_reads *reads, str path)
{
    uint32_t index;
    str rest;

    for (size_t below = SIZE_MAX;
         path.data && (index = template_step(reads->plan, path, below, &rest)) != STEP_NONE;) {
        add_read(&reads->scope->arena, rest, &reads->of[index]);
        below = reads->plan->steps[index].name.size;
    }
}

/* What an expression makes of a result is not followed: it reads all of it. */
static void read_expression(struct plan_reads *reads, str text)
{
    size_t at = 0;
    str name;

    while (expr_next_step(text, &at, &name)) {
        uint32_t index = plan_find(reads->plan, name);

        if (index != STEP_NONE)
            add_read(&reads->scope->arena, STR_NONE, &reads->of[index]);
    }
}

static void read_node(struct plan_reads *reads, const struct node *node)
{
    struct template_part part;

    for (str rest = node->text;
         node->kind == NODE_STRING && template_next(reads->plan->calculates, &rest, &part);)
        if (part.kind == TEMPLATE_STEP)
            read_path(reads, part.path);
        else if (part.kind == TEMPLATE_VALUE)
            read_expression(reads, part.path);
    for (const struct node *child = node->first; child; child = child->next)
        read_node(reads, child);
}

static void read_condition(struct plan_reads *reads, str condition)
{
    if (condition.data && !condition_is_pattern(condition))
        read_expression(reads, condition);
}

pawl_status reads_find(struct scope *scope, const struct plan *plan, struct plan_reads *out)
{
    *out = (struct plan_reads){ .scope = scope, .plan = plan };
    out->of = ARENA_ARRAY(&scope->arena, struct plan_read *, plan->count + 1);
    for (uint32_t i = 0; out->of && i < plan->count; i++) {
        const struct plan_step *step = &plan->steps[i];

        if (step->has_template)
            read_node(out, step->args_node);
        for (uint32_t j = 0; step->way == WAY_BRANCH && j < step->target_count; j++)
            read_condition(out, step->targets[j].condition);
        for (uint32_t j = 0; j < step->error_count; j++)
            read_condition(out, step->errors[j].condition);
        for (const struct node *arm = node_first(step->args_node, "arms");
             arm && step->kind->leads_by_arm; arm = arm->next)
            if (node_find(arm, "if"))
                read_condition(out, node_find(arm, "if")->text);
    }
    if (out->of && plan->output_node)
        read_node(out, plan->output_node);
    for (const struct node *query = plan->queries ? plan->queries->first : NULL; out->of && query;
         query = query->next)
        read_expression(out, query->text);
    return scope->arena.failed ? scope_no_memory(scope) : PAWL_OK;
}

/* ---- A result with that alone ---------------------------------------------------------------- */

static void print_value(struct arena *arena, str value, const struct plan_read *reads,
                        struct buf *out);

/* The reads that can go through a member with this key, from there on. */
static struct plan_read *through_key(struct arena *arena, const struct plan_read *reads, str key)
{
    struct plan_read *below = NULL;

    for (; reads; reads = reads->next)
        if (str_starts(reads->path, key) &&
            (reads->path.size == key.size || reads->path.data[key.size] == '.'))
            add_read(arena, path_after(reads->path, key.size), &below);
    return below;
}

/* ... through an item, and whether one goes through an item behind it. */
static struct plan_read *through_item(struct arena *arena, const struct plan_read *reads,
                                      uint64_t index, bool *is_more)
{
    struct plan_read *below = NULL;

    for (*is_more = false; reads; reads = reads->next) {
        size_t size = str_before(reads->path, '.').size;
        uint64_t place;

        if (!str_to_u64((str){ reads->path.data, size }, &place))
            continue;
        *is_more = *is_more || place > index;
        if (place == index)
            add_read(arena, path_after(reads->path, size), &below);
    }
    return below;
}

static void print_members(struct arena *arena, str object, const struct plan_read *reads,
                          struct buf *out)
{
    struct json_scan scan;
    str raw, value;

    json_open(out, '{');
    json_scan_begin(&scan, object);
    while (json_scan_next(&scan, &raw, &value)) {
        str key = json_unescape(arena, raw);
        const struct plan_read *below = through_key(arena, reads, key);

        if (!below)
            continue;
        json_key_str(out, key);
        print_value(arena, value, below, out);
    }
    json_close(out, '}');
}

/* Items keep their places: one that is not read is 0. */
static void print_items(struct arena *arena, str array, const struct plan_read *reads,
                        struct buf *out)
{
    struct json_scan scan;
    uint64_t index = 0;
    bool is_more = true;
    str key, value;

    json_open(out, '[');
    json_scan_begin(&scan, array);
    while (is_more && json_scan_next(&scan, &key, &value)) {
        const struct plan_read *below = through_item(arena, reads, index++, &is_more);

        if (below)
            print_value(arena, value, below, out);
        else
            json_u64(out, 0);
    }
    json_close(out, ']');
}

static void print_value(struct arena *arena, str value, const struct plan_read *reads,
                        struct buf *out)
{
    struct node peeked;

    for (const struct plan_read *read = reads; read; read = read->next)
        if (!read->path.data) { /* all of it */
            json_raw(out, value);
            return;
        }
    json_peek(arena, value, &peeked);
    if (peeked.kind == NODE_OBJECT)
        print_members(arena, value, reads, out);
    else if (peeked.kind == NODE_ARRAY)
        print_items(arena, value, reads, out);
    else
        json_u64(out, 0);
}

void reads_print(const struct plan_reads *reads, uint32_t step, str result, struct scope *scratch,
                 struct buf *out)
{
    print_value(&scratch->arena, result, reads->of[step], out);
}
