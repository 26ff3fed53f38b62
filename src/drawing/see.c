/* see.c - what an instance did, marked in the picture of its definition. */
#include "drawing/drawing_int.h"

static struct drawing_node *node_at_index(struct drawing *drawing, uint32_t index)
{
    return index < drawing->node_count ? &drawing->nodes[index] : NULL;
}

/* ---- Machines, and the life of code ---- */

void drawing_see_entries(struct drawing *drawing, uint32_t transition, uint32_t count)
{
    uint32_t edge = drawing->of_transition ? drawing->of_transition[transition] : DRAWING_NONE;
    struct drawing_node *to;

    drawing->is_marked = true;
    if (edge == DRAWING_NONE || count == 0)
        return;
    drawing->edges[edge].taken += count;
    to = &drawing->nodes[drawing->edges[edge].to];
    drawing->nodes[drawing->edges[edge].from].mark = to->mark = MARK_PASSED;
    to->count += count;
}

static const enum drawing_mark marks_of_terminals[] = {
    [TERMINAL_NOT] = MARK_PRESENT,    [TERMINAL_SUCCESS] = MARK_DONE,
    [TERMINAL_FAILURE] = MARK_FAILED, [TERMINAL_CANCEL] = MARK_CANCELLED,
    [TERMINAL_PLAIN] = MARK_ENDED,
};

void drawing_see_state(struct drawing *drawing, const struct definition *definition, uint32_t state)
{
    struct drawing_node *node = node_at_index(drawing, state); /* states come first */

    drawing->is_marked = true;
    if (node)
        node->mark = marks_of_terminals[definition->states[state].terminal];
    if (definition->initial < drawing->node_count)
        drawing->nodes[definition->initial].count++; /* it was created there */
    for (uint32_t i = 0; i < drawing->edge_count; i++)
        if (drawing->edges[i].from == drawing->start)
            drawing->edges[i].taken = 1;
}

/* ---- Flows ---- */

static const enum drawing_mark marks_of_steps[] = {
    [STEP_PENDING] = MARK_PRESENT, [STEP_READY] = MARK_PRESENT, [STEP_RUNNING] = MARK_PRESENT,
    [STEP_DONE] = MARK_DONE,       [STEP_FAILED] = MARK_FAILED, [STEP_CANCELLED] = MARK_CANCELLED,
};

static bool is_removed(const struct drawing *drawing, uint32_t plan)
{
    return plan < drawing->step_count && drawing->plan->steps[plan].kind->is_gone;
}

/* A step that an amend has removed, and that was begun before. A tree has it behind its forms. */
static void add_removed(struct drawing *drawing, uint32_t plan)
{
    struct builder builder = { .scope = drawing->scope, .drawing = drawing };
    uint32_t node = build_step(&builder, &drawing->plan->steps[plan]);
    struct drawing_line line = { .node = node, .word = STR("") };

    drawing->of_step[plan] = node;
    if (drawing->line_count > 0 && !builder.failed)
        BUILD_ADD(&builder, drawing->lines, drawing->line_count, drawing->line_capacity, line);
    drawing->has_failed = drawing->has_failed || builder.failed;
}

static struct drawing_node *node_of_step(struct drawing *drawing, uint32_t plan)
{
    drawing->is_marked = true;
    if (is_removed(drawing, plan) && drawing->of_step[plan] == DRAWING_NONE)
        add_removed(drawing, plan);
    return plan < drawing->step_count ? node_at_index(drawing, drawing->of_step[plan]) : NULL;
}

void drawing_see_attempt(struct drawing *drawing, uint32_t plan, uint32_t attempt)
{
    struct drawing_node *node = node_of_step(drawing, plan);

    if (node)
        node->count = attempt > node->count ? attempt : node->count + 1;
}

void drawing_see_outcome(struct drawing *drawing, uint32_t plan, enum step_status status)
{
    struct drawing_node *node = node_of_step(drawing, plan);

    if (node)
        node->mark = marks_of_steps[status];
}

/* A way that the definition in force does not have. In a tree the ways between its steps follow
 * from its forms, and may pass forks. */
static bool is_former(const struct drawing *drawing, uint32_t cause, uint32_t plan)
{
    if (is_removed(drawing, cause) || is_removed(drawing, plan))
        return true;
    return cause != DRAWING_NONE && drawing->line_count == 0;
}

static void add_former_way(struct drawing *drawing, uint32_t from, uint32_t to)
{
    struct builder builder = { .scope = drawing->scope, .drawing = drawing };

    build_edge(&builder, (struct drawing_edge){
                             .from = from, .to = to, .note = STR("before the amend"), .taken = 1 });
    drawing->has_failed = drawing->has_failed || builder.failed;
}

/* The way between two nodes; of several the one of a failure, or the one that is of none. */
static struct drawing_edge *find_way(struct drawing *drawing, uint32_t from, uint32_t to,
                                     bool by_fault)
{
    struct drawing_edge *found = NULL;

    for (uint32_t i = 0; i < drawing->edge_count; i++) {
        struct drawing_edge *edge = &drawing->edges[i];

        if (edge->from != from || edge->to != to)
            continue;
        if (edge->is_by_fault == by_fault)
            return edge;
        found = found ? found : edge;
    }
    return found;
}

void drawing_see_way(struct drawing *drawing, uint32_t cause, bool by_fault, uint32_t plan)
{
    uint32_t owner =
        plan < drawing->step_count ? plan_owner(&drawing->plan->steps[plan]) : STEP_NONE;
    uint32_t begun_by = owner == STEP_NONE ? cause : owner;
    bool is_start = begun_by == DRAWING_NONE;
    struct drawing_edge *way;
    uint32_t from;

    if (plan >= drawing->step_count || (!is_start && begun_by >= drawing->step_count) ||
        (is_start && !is_removed(drawing, plan)))
        return;
    from = is_start ? drawing->start : drawing->of_step[begun_by];
    way = find_way(drawing, from, drawing->of_step[plan], by_fault);
    if (way)
        way->taken++;
    else if (is_former(drawing, begun_by, plan))
        add_former_way(drawing, from, drawing->of_step[plan]);
}

/* Forks are no steps: one was passed if what leads to it was left and what it leads to begun. */
static bool pass_forks(struct drawing *drawing)
{
    bool has_changed = false;

    for (uint32_t i = 0; i < drawing->edge_count; i++) {
        const struct drawing_edge *edge = &drawing->edges[i];
        struct drawing_node *from = &drawing->nodes[edge->from];

        if (from->shape == SHAPE_FORK && from->mark == MARK_NONE &&
            drawing->nodes[edge->to].mark != MARK_NONE) {
            from->mark = MARK_PASSED;
            has_changed = true;
        }
    }
    return has_changed;
}

/* In a tree every step that was begun was begun by those before it; in a graph a join is begun by
 * the last that arrives, and the others led there too. Where a branch was not taken nothing is
 * marked: its way would be among those seen. A failure goes on only where there is a way for it. */
static bool is_implied(const struct drawing *drawing, const struct drawing_edge *edge)
{
    const struct drawing_node *from = &drawing->nodes[edge->from];
    bool was_left =
        from->shape == SHAPE_START || from->mark == MARK_DONE || from->mark == MARK_PASSED;

    if (edge->taken > 0 || !was_left || drawing->nodes[edge->to].mark == MARK_NONE)
        return false;
    return drawing->line_count > 0 || edge->from == drawing->start || edge->to == drawing->end ||
           str_is(edge->label, "join");
}

pawl_status drawing_see_end(struct drawing *drawing, enum terminal_kind terminal)
{
    struct drawing_node *end = node_at_index(drawing, drawing->end);

    drawing->is_marked = true;
    if (end && terminal == TERMINAL_SUCCESS)
        end->mark = MARK_DONE;
    while (pass_forks(drawing))
        ;
    for (uint32_t i = 0; i < drawing->edge_count; i++)
        if (is_implied(drawing, &drawing->edges[i]))
            drawing->edges[i].taken = 1;
    return drawing->has_failed ? scope_no_memory(drawing->scope) : PAWL_OK;
}
