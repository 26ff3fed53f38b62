/* ops_graph.c - definition.graph and instance.graph: a picture in one of several formats; of an
 * instance with the way it took and where it stands. */
#include "api/step_reader.h"
#include "base/limits.h"
#include "drawing/drawing.h"
#include <stdio.h>

struct format {
    drawing_print_fn print;
    const char *content_type;
};

static pawl_status read_format(const struct op_call *call, struct format *out)
{
    str name = op_ref(call, "format");

    if (drawing_find_format(name.data ? name : STR("text"), &out->print, &out->content_type))
        return PAWL_OK;
    return scope_fail(call->scope, PAWL_INVALID_REQUEST,
                      "'format': expected " DRAWING_FORMATS ", found '%.*s'", STR_ARG(name));
}

static str title_of(struct scope *scope, str name, uint32_t version, const char *id)
{
    size_t size = name.size + 64;
    char *text = arena_alloc(&scope->arena, size);

    if (!text)
        return name;
    snprintf(text, size, "%.*s", STR_ARG(name.data ? name : STR("(inline)")));
    if (version > 0)
        snprintf(text + strlen(text), size - strlen(text), "@%u", version);
    if (*id)
        snprintf(text + strlen(text), size - strlen(text), "  %s", id);
    return str_of(text);
}

static pawl_status print_drawing(struct op_call *call, const struct format *format,
                                 const struct drawing *drawing, struct buf *out)
{
    call->content_type = format->content_type;
    return format->print(call->scope, drawing, out);
}

pawl_status op_definition_graph(struct op_call *call, struct buf *out)
{
    struct definition_row row;
    struct definition *definition;
    struct drawing drawing;
    struct format format = { 0 };
    pawl_status status = read_format(call, &format);

    if (status == PAWL_OK)
        status = definition_asked(call, &row);
    if (status == PAWL_OK)
        status = definition_load(call->scope, row.compiled, &definition);
    if (status == PAWL_OK)
        status = drawing_of(call->scope, definition,
                            title_of(call->scope, row.name, row.version, ""), &drawing);
    return status == PAWL_OK ? print_drawing(call, &format, &drawing, out) : status;
}

/* ---- What an instance did ---- */

/* The steps that an entry began were begun by the one it is about. */
static pawl_status see_ways(struct op_call *call, const struct record *record,
                            struct drawing *drawing)
{
    struct effect_list effects = { 0 };
    struct scope scope; /* an entry's effects go with it */
    pawl_status status;

    if (!record->body.data || record->step == 0)
        return PAWL_OK;
    scope_init(&scope, call->scope->arena.heap, LIMIT_SCOPE);
    status = effects_read(&scope, record->body, &effects);
    if (status != PAWL_OK)
        call->scope->error = scope.error;
    for (uint32_t i = 0; i < effects.count && status == PAWL_OK; i++)
        if (effects.items[i].kind == EFFECT_STEP && effects.items[i].attempt == 1)
            drawing_see_way(drawing, record->step - 1, effects.items[i].plan);
    scope_fini(&scope);
    return status;
}

static pawl_status see_steps(struct op_call *call, str id, struct drawing *drawing)
{
    struct step_reader *reader = NULL;
    struct step_view step;
    bool is_found = true;
    pawl_status status = step_reader_open(op_engine(call), call->scope, id, 0, true, &reader);

    while (status == PAWL_OK && is_found) {
        status = step_reader_next(reader, call->scope, &step, &is_found);
        if (status == PAWL_OK && is_found)
            drawing_see_step(drawing, step.attempt->plan, step.attempt->attempt,
                             step.attempt->status);
    }
    step_reader_close(reader);
    return status;
}

static pawl_status see_entries(struct op_call *call, str id, bool is_flow, struct drawing *drawing)
{
    struct history_query query = { .without_values = true };
    struct history_reader *history = NULL;
    struct entry entry;
    bool is_found = true;
    pawl_status status =
        engine_history_open(op_engine(call), call->scope, id, &query, &history);

    while (status == PAWL_OK && is_found) {
        status = engine_history_next(history, call->scope, &entry, &is_found);
        if (status != PAWL_OK || !is_found)
            continue;
        if (is_flow)
            status = see_ways(call, entry.record, drawing);
        else
            drawing_see_entry(drawing, (uint32_t)entry.record->what);
    }
    engine_history_close(history);
    return status;
}

static pawl_status see_instance(struct op_call *call, const struct instance_view *view,
                                struct drawing *drawing)
{
    bool is_flow = view->kind == KIND_FLOW;
    str id = str_of(view->id);
    pawl_status status = is_flow ? see_steps(call, id, drawing) : PAWL_OK;

    if (status == PAWL_OK)
        status = see_entries(call, id, is_flow, drawing);
    if (status == PAWL_OK && is_flow)
        drawing_see_end(drawing, view->definition->states[view->state].terminal);
    else if (status == PAWL_OK)
        drawing_see_state(drawing, view->definition, view->state);
    return status;
}

pawl_status op_instance_graph(struct op_call *call, struct buf *out)
{
    struct instance_view view;
    struct drawing drawing;
    struct format format = { 0 };
    pawl_status status = read_format(call, &format);

    if (status == PAWL_OK)
        status = engine_get(op_engine(call), call->scope, op_text(call, "instance_id"), &view);
    if (status == PAWL_OK)
        status = drawing_of(call->scope, view.definition,
                            title_of(call->scope, view.definition_name, view.version, view.id),
                            &drawing);
    if (status == PAWL_OK)
        status = see_instance(call, &view, &drawing);
    return status == PAWL_OK ? print_drawing(call, &format, &drawing, out) : status;
}
