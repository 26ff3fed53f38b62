/* build_flow.c - the steps of a flow, and the ways between them: of a graph as they are written,
 * of a tree as its forms imply. */
#include "drawing/drawing_int.h"

/* ---- Steps ---- */

static str take_text(struct builder *builder, struct buf *text)
{
    str taken = buf_take(text, &builder->scope->arena);

    builder->failed = builder->failed || !taken.data;
    return taken;
}

static str arm_label(struct builder *builder, const struct plan_step *step, uint32_t arm)
{
    struct buf text;

    buf_init(&text, builder->scope->arena.heap, 0);
    arm_print(node_at(plan_arms(step), arm), &text);
    return take_text(builder, &text);
}

static str step_note(struct builder *builder, const struct plan_step *step)
{
    struct buf text;

    if (step->kind->is_gone)
        return build_text(builder, "%.*s%sremoved from the definition", STR_ARG(step->tool),
                          step->tool.size > 0 ? ", " : "");
    if (!step->kind->note)
        return step->tool.data ? step->tool : str_of(step->kind->word);
    buf_init(&text, builder->scope->arena.heap, 0);
    step->kind->note(step, &text);
    return take_text(builder, &text);
}

uint32_t build_step(struct builder *builder, const struct plan_step *step)
{
    static const enum drawing_shape shapes[] = {
        [LOOK_STEP] = SHAPE_STEP, [LOOK_GATE] = SHAPE_GATE, [LOOK_WAIT] = SHAPE_WAIT
    };

    return build_node(builder, (struct drawing_node){ .shape = shapes[step->kind->look],
                                                      .name = step->name,
                                                      .note = step_note(builder, step) });
}

/* ---- A graph ---- */

/* The last of several conditions is most often `true`, because all others have been tried. */
static bool is_else(const struct plan_target *targets, uint32_t index)
{
    return index > 0 && str_is(targets[index].condition, "true");
}

static str way_label(struct builder *builder, const struct plan_step *step, uint32_t target)
{
    if (step->way == WAY_BRANCH && is_else(step->targets, target))
        return STR("else");
    if (step->way == WAY_BRANCH)
        return step->targets[target].condition;
    if (step->way == WAY_ARMS)
        return arm_label(builder, step, target);
    return step->way == WAY_JOIN ? STR("join") : STR_NONE;
}

static str error_label(struct builder *builder, const struct plan_step *step, uint32_t index)
{
    str condition = step->errors[index].condition;
    struct buf text;

    if (!condition.data || str_is(condition, "true"))
        return index > 0 ? STR("on any other error") : STR("on error");
    buf_init(&text, builder->scope->arena.heap, 0);
    buf_fmt(&text, "on error, %.*s", STR_ARG(condition));
    return take_text(builder, &text);
}

/* Where it leads if it fails for good. */
static void build_errors(struct builder *builder, const struct plan_step *step, uint32_t from)
{
    for (uint32_t i = 0; i < step->error_count && !builder->failed; i++)
        build_edge(builder,
                   (struct drawing_edge){ .from = from,
                                          .to = builder->drawing->of_step[step->errors[i].step],
                                          .label = error_label(builder, step, i),
                                          .is_by_fault = true });
}

void build_graph(struct builder *builder, const struct plan *plan)
{
    struct drawing *drawing = builder->drawing;
    const uint32_t *nodes = drawing->of_step;

    build_edge(builder, (struct drawing_edge){ .from = drawing->start, .to = nodes[plan->first] });
    for (uint32_t i = 0; i < plan->count && !builder->failed; i++) {
        const struct plan_step *step = &plan->steps[i];

        for (uint32_t j = 0; j < step->target_count && !builder->failed; j++)
            build_edge(builder, (struct drawing_edge){ .from = nodes[i],
                                                       .to = nodes[step->targets[j].step],
                                                       .label = way_label(builder, step, j) });
        build_errors(builder, step, nodes[i]);
        if (step->way == WAY_DONE && plan_owner(step) == STEP_NONE && i + 1 != plan->whole)
            build_edge(builder, (struct drawing_edge){ .from = nodes[i], .to = drawing->end });
    }
}

/* ---- Steps that belong to another one ---- */

/* What a map does for each item hangs below it, and a compensation below what it undoes. */
void build_belongings(struct builder *builder, const struct plan *plan)
{
    const uint32_t *nodes = builder->drawing->of_step;

    for (uint32_t i = 0; i < plan->count && !builder->failed; i++) {
        uint32_t owner = plan_owner(&plan->steps[i]);
        bool is_undo = plan->steps[i].undoes != STEP_NONE;

        if (owner != STEP_NONE)
            build_edge(builder,
                       (struct drawing_edge){ .from = nodes[owner],
                                              .to = nodes[i],
                                              .label = is_undo ? STR("undo") : STR("each item"),
                                              .is_by_fault = true });
    }
}

/* ---- A tree ---- */

/* Ways that lead out of what was drawn so far, into whatever comes next. */
struct loose_end {
    uint32_t from;
    str label;
    bool is_by_fault;
};
struct ends {
    struct loose_end *items;
    uint32_t count, capacity;
};

static void tie(struct builder *builder, const struct ends *in, uint32_t node)
{
    for (uint32_t i = 0; i < in->count && !builder->failed; i++)
        build_edge(builder, (struct drawing_edge){ .from = in->items[i].from,
                                                   .to = node,
                                                   .label = in->items[i].label,
                                                   .is_by_fault = in->items[i].is_by_fault });
}

static struct ends one_end(struct builder *builder, uint32_t from, str label, bool is_by_fault)
{
    struct loose_end end = { .from = from, .label = label, .is_by_fault = is_by_fault };
    struct ends ends = { 0 };

    BUILD_ADD(builder, ends.items, ends.count, ends.capacity, end);
    return ends;
}

static void join_ends(struct builder *builder, struct ends *ends, const struct ends *more)
{
    for (uint32_t i = 0; i < more->count; i++)
        BUILD_ADD(builder, ends->items, ends->count, ends->capacity, more->items[i]);
}

struct walk { /* through a tree, at one node */
    const struct plan *plan;
    uint32_t depth;
    const char *word; /* of the line; NULL: the form's own */
};

static struct ends build_form(struct builder *builder, struct walk walk, uint32_t index,
                              struct ends in);

static struct walk inner(struct walk walk, const char *word)
{
    walk.depth++;
    walk.word = word;
    return walk;
}

static uint32_t build_fork(struct builder *builder, const struct ends *in, const char *word)
{
    uint32_t fork =
        build_node(builder, (struct drawing_node){ .shape = SHAPE_FORK, .name = str_of(word) });

    tie(builder, in, fork);
    return fork;
}

/* Edges from many to many would cover the picture: they go through one node. */
static struct ends build_dopar(struct builder *builder, struct walk walk,
                               const struct plan_node *node, struct ends in)
{
    struct ends out = { 0 };

    if (in.count > 1 && node->child_count > 1)
        in = one_end(builder, build_fork(builder, &in, "all"), STR_NONE, false);
    for (uint32_t i = 0; i < node->child_count && !builder->failed; i++) {
        struct ends ends = build_form(builder, inner(walk, NULL), node->children[i], in);

        join_ends(builder, &out, &ends);
    }
    return out;
}

/* Its parts are lines side by side. */
static struct ends build_try(struct builder *builder, struct walk walk,
                             const struct plan_node *node, struct ends in)
{
    static const char *const words[TRY_PART_COUNT] = { "try", "rescue", "finally" };
    uint32_t fork = build_fork(builder, &in, "try");
    struct ends out = { 0 };

    for (uint32_t i = 0; i < node->child_count && i < TRY_PART_COUNT && !builder->failed; i++) {
        bool is_rescue = i == TRY_RESCUE;
        struct ends from =
            one_end(builder, fork, is_rescue ? STR("on failure") : STR_NONE, is_rescue);
        struct ends ends;

        if (walk.plan->nodes[node->children[i]].is_empty)
            continue;
        walk.word = words[i];
        ends = build_form(builder, walk, node->children[i], i == TRY_FINALLY ? out : from);
        if (i == TRY_FINALLY)
            out = ends;
        else
            join_ends(builder, &out, &ends);
    }
    return out;
}

static struct ends build_select(struct builder *builder, struct walk walk,
                                const struct plan_node *node)
{
    const struct plan_step *step = &walk.plan->steps[node->step];
    uint32_t select = builder->drawing->of_step[node->step];
    struct ends out = { 0 };

    for (uint32_t i = 0; i < node->child_count && !builder->failed; i++) {
        str label = arm_label(builder, step, i);
        struct ends ends = build_form(builder, inner(walk, label.data), node->children[i],
                                      one_end(builder, select, label, false));

        join_ends(builder, &out, &ends);
    }
    return out;
}

/* A part of a try, or an arm, is most often a `do`: its own word says enough. */
static str line_word(struct builder *builder, struct walk walk, const struct plan_node *node)
{
    const char *kind = plan_node_kind_name(node->kind);

    if (!walk.word)
        return str_of(kind);
    if (node->kind == PLAN_DO || node->kind == PLAN_LEAF)
        return str_of(walk.word);
    return build_text(builder, "%s: %s", walk.word, kind);
}

static struct ends build_form(struct builder *builder, struct walk walk, uint32_t index,
                              struct ends in)
{
    const struct plan_node *node = &walk.plan->nodes[index];
    struct drawing *drawing = builder->drawing;
    uint32_t step = node->step == STEP_NONE ? DRAWING_NONE : drawing->of_step[node->step];
    struct drawing_line line = { walk.depth, step, line_word(builder, walk, node) };

    if (node->kind != PLAN_TRY)
        BUILD_ADD(builder, drawing->lines, drawing->line_count, drawing->line_capacity, line);
    if (step != DRAWING_NONE) {
        tie(builder, &in, step);
        in = one_end(builder, step, STR_NONE, false);
    }
    if (builder->failed || node->kind == PLAN_LEAF)
        return in;
    if (node->kind == PLAN_ARMS)
        return build_select(builder, walk, node);
    if (node->kind == PLAN_TRY)
        return build_try(builder, walk, node, in);
    if (node->kind == PLAN_DOPAR)
        return build_dopar(builder, walk, node, in);
    for (uint32_t i = 0; i < node->child_count && !builder->failed; i++)
        in = build_form(builder, inner(walk, NULL), node->children[i], in);
    return in;
}

void build_tree(struct builder *builder, const struct plan *plan)
{
    struct ends in = one_end(builder, builder->drawing->start, STR_NONE, false), out = { 0 };

    if (plan->node_count > 0)
        out = build_form(builder, (struct walk){ .plan = plan }, 0, in);
    tie(builder, &out, builder->drawing->end);
}
