/* build.c - the picture of a definition, piece by piece. */
#include "base/time.h"
#include "drawing/drawing_int.h"
#include <stdio.h>

static str text_or_none(str text)
{
    return text.data ? text : STR("");
}

uint32_t build_node(struct builder *builder, struct drawing_node node)
{
    struct drawing *drawing = builder->drawing;

    node.name = text_or_none(node.name);
    node.note = text_or_none(node.note);
    return BUILD_ADD(builder, drawing->nodes, drawing->node_count, drawing->node_capacity, node);
}

uint32_t build_edge(struct builder *builder, struct drawing_edge edge)
{
    struct drawing *drawing = builder->drawing;

    edge.label = text_or_none(edge.label);
    edge.note = text_or_none(edge.note);
    if (edge.from == DRAWING_NONE || edge.to == DRAWING_NONE)
        return DRAWING_NONE;
    return BUILD_ADD(builder, drawing->edges, drawing->edge_count, drawing->edge_capacity, edge);
}

str build_text(struct builder *builder, const char *format, ...)
{
    va_list arguments;
    char line[512];
    str kept;

    va_start(arguments, format);
    vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    kept = arena_str(&builder->scope->arena, str_of(line));
    builder->failed = builder->failed || !kept.data;
    return kept;
}

/* ---- A machine, and the life of code ---- */

/* `by_deadline`: out, whether a deadline fires it. */
static str transition_note(struct builder *builder, const struct definition *definition,
                           uint32_t index, bool *by_deadline)
{
    const struct transition *transition = &definition->transitions[index];
    str note = STR("");

    for (uint32_t i = 0; i < definition->deadline_count; i++)
        if (definition->deadlines[i].transition == index) {
            char span[TIME_TEXT_SIZE];

            duration_print(definition->deadlines[i].after_ms, span);
            note = build_text(builder, "after %s", span);
            *by_deadline = true;
        }
    if (transition->guard.data)
        note = build_text(builder, "%.*s%sguard %.*s", STR_ARG(note), note.size ? ", " : "",
                          STR_ARG(transition->guard));
    if (transition->requires_reason)
        note = build_text(builder, "%.*s%sreason", STR_ARG(note), note.size ? ", " : "");
    return note;
}

static void build_machine(struct builder *builder, const struct definition *definition)
{
    struct drawing *drawing = builder->drawing;
    uint32_t first = drawing->node_count; /* of the states */

    drawing->of_transition =
        ARENA_ARRAY(&builder->scope->arena, uint32_t, definition->transition_count + 1);
    builder->failed = builder->failed || !drawing->of_transition;
    for (uint32_t i = 0; i < definition->state_count && !builder->failed; i++)
        build_node(builder, (struct drawing_node){ .shape = SHAPE_STATE,
                                                   .name = definition->states[i].name,
                                                   .terminal = definition->states[i].terminal });
    drawing->start = build_node(builder, (struct drawing_node){ .shape = SHAPE_START });
    build_edge(builder,
               (struct drawing_edge){ .from = drawing->start, .to = first + definition->initial });
    for (uint32_t i = 0; i < definition->transition_count && !builder->failed; i++) {
        const struct transition *transition = &definition->transitions[i];
        bool by_deadline = false;
        str note = transition_note(builder, definition, i, &by_deadline);

        drawing->of_transition[i] = DRAWING_NONE;
        /* Flows and code stay in `running`: a loop for each of their actions would say nothing. */
        if (definition->kind != KIND_MACHINE && transition->from == transition->to)
            continue;
        drawing->of_transition[i] =
            build_edge(builder, (struct drawing_edge){ .from = first + transition->from,
                                                       .to = first + transition->to,
                                                       .label = transition->action,
                                                       .note = note,
                                                       .is_by_fault = by_deadline });
    }
}

/* ---- All kinds ---- */

/* A flow that goes round for ever has no end. */
static void drop_end(struct builder *builder)
{
    struct drawing *drawing = builder->drawing;

    for (uint32_t i = 0; i < drawing->edge_count; i++)
        if (drawing->edges[i].to == drawing->end)
            return;
    if (drawing->end + 1 != drawing->node_count)
        return;
    drawing->node_count--;
    drawing->end = DRAWING_NONE;
}

static pawl_status build_flow(struct builder *builder, const struct definition *definition)
{
    struct drawing *drawing = builder->drawing;
    struct plan *plan = NULL;

    TRY(plan_load(builder->scope, definition->plan_text, &plan));
    drawing->of_step = ARENA_ARRAY(&builder->scope->arena, uint32_t, plan->count + 1);
    TRY_MEMORY(builder->scope, drawing->of_step);
    drawing->step_count = plan->count;
    drawing->scope = builder->scope;
    drawing->plan = plan;
    drawing->start = build_node(builder, (struct drawing_node){ .shape = SHAPE_START });
    for (uint32_t i = 0; i < plan->count && !builder->failed; i++)
        drawing->of_step[i] = plan->steps[i].kind->is_gone || i + 1 == plan->whole
                                  ? DRAWING_NONE
                                  : build_step(builder, &plan->steps[i]);
    drawing->end = build_node(
        builder, (struct drawing_node){ .shape = SHAPE_END, .terminal = TERMINAL_SUCCESS });
    if (plan->is_tree)
        build_tree(builder, plan);
    else
        build_graph(builder, plan);
    build_belongings(builder, plan);
    drop_end(builder);
    return PAWL_OK;
}

pawl_status drawing_of(struct scope *scope, const struct definition *definition, str title,
                       struct drawing *out)
{
    struct builder builder = { .scope = scope, .drawing = out };

    *out = (struct drawing){ .title = title, .start = DRAWING_NONE, .end = DRAWING_NONE };
    if (definition->kind == KIND_FLOW)
        TRY(build_flow(&builder, definition));
    else
        build_machine(&builder, definition);
    TRY_MEMORY(scope, !builder.failed);
    return PAWL_OK;
}

/* ---- Names ---- */

const char *const shape_names[] = {
#define X(name, word) [SHAPE_##name] = word,
    DRAWING_SHAPE_MAP(X)
#undef X
};
const struct mark_look mark_looks[] = {
#define X(name, word, sign) [MARK_##name] = { word, sign },
    DRAWING_MARK_MAP(X)
#undef X
};

bool drawing_find_format(str name, drawing_print_fn *print, const char **content_type)
{
#define X(format, type)                                                                            \
    if (str_is(name, #format)) {                                                                   \
        *print = drawing_##format;                                                                 \
        *content_type = type;                                                                      \
        return true;                                                                               \
    }
    DRAWING_FORMAT_MAP(X)
#undef X
    return false;
}

str edge_words(struct scope *scope, const struct drawing_edge *edge)
{
    size_t size = edge->label.size + edge->note.size + 4;
    char *text = edge->note.size ? arena_alloc(&scope->arena, size) : NULL;

    if (!text)
        return edge->label;
    snprintf(text, size, "%.*s%s[%.*s]", STR_ARG(edge->label), edge->label.size ? " " : "",
             STR_ARG(edge->note));
    return str_of(text);
}

#define CAPTION_LETTERS_MAX 40

static bool is_first_of_letter(char byte)
{
    return ((unsigned char)byte & 0xC0) != 0x80;
}

/* Ends the text before the letter with this number, with an ellipsis; short ones stay. */
static void cut_text(struct buf *text, size_t letters_max)
{
    size_t letters = 0;

    for (size_t i = 0; i < text->size; i++) {
        letters += is_first_of_letter(text->data[i]);
        if (letters <= letters_max)
            continue;
        text->size = i;
        buf_str(text, STR("…"));
        return;
    }
}

str caption(struct scope *scope, str text)
{
    struct buf line;
    bool is_gap = false;

    buf_init(&line, scope->arena.heap, 0);
    for (size_t i = 0; i < text.size; i++) {
        bool is_space = (unsigned char)text.data[i] <= ' ';

        if (!is_space && is_gap && line.size > 0)
            buf_byte(&line, ' ');
        if (!is_space)
            buf_byte(&line, (unsigned char)text.data[i]);
        is_gap = is_space;
    }
    cut_text(&line, CAPTION_LETTERS_MAX);
    return buf_take(&line, &scope->arena);
}

str edge_caption(struct scope *scope, const struct drawing_edge *edge)
{
    return caption(scope, edge_words(scope, edge));
}
