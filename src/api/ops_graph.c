/* ops_graph.c - definition.graph and instance.graph: a picture in one of several formats. That
 * of an instance shows the way it took and where it is. */
#include "api/ops_int.h"
#include "base/limits.h"
#include "drawing/drawing.h"
#include "flow/flow.h"
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

    TRY(read_format(call, &format));
    TRY(definition_asked(call, &row));
    TRY(definition_load(call->scope, row.compiled, &definition));
    TRY(drawing_of(call->scope, definition, title_of(call->scope, row.name, row.version, ""),
                   &drawing));
    return print_drawing(call, &format, &drawing, out);
}

/* ---- What an instance did ----
 *
 * One pass over the entries, which holds what the definition has room for: for each step its last
 * attempt, however many there were. */

struct last_attempt {
    uint32_t ordinal; /* 0: none */
    enum step_status status;
};

struct graph_sight {
    struct drawing *drawing;
    struct last_attempt *last; /* of each step of a flow */
    uint32_t *taken;           /* else: how often each transition was */
};

/* Of an attempt that ends. Where another one of its step came after it, what it comes to is not
 * shown. It may have been made before the entries that are asked for. */
static struct last_attempt *last_of(const struct graph_sight *sight, const struct record *record,
                                    uint32_t ordinal)
{
    uint32_t plan = record->step - 1;

    if (record->step > 0 && ordinal == record->ordinal && plan < sight->drawing->step_count)
        return sight->last[plan].ordinal <= ordinal ? &sight->last[plan] : NULL;
    for (uint32_t i = 0; i < sight->drawing->step_count; i++)
        if (sight->last[i].ordinal == ordinal)
            return &sight->last[i];
    return NULL;
}

/* The steps that an entry began were begun by the one it is about. */
static void see_made(const struct graph_sight *sight, const struct record *record,
                     const struct effect *effect)
{
    drawing_see_attempt(sight->drawing, effect->plan, effect->attempt);
    if (effect->plan < sight->drawing->step_count)
        sight->last[effect->plan] = (struct last_attempt){ effect->ordinal, effect->status };
    if (effect->attempt == 1)
        drawing_see_way(sight->drawing, record->step > 0 ? record->step - 1 : DRAWING_NONE,
                        flow_end_status((uint32_t)record->what) == STEP_FAILED, effect->plan);
}

static void see_entry(const struct graph_sight *sight, const struct record *record,
                      const struct effect_list *effects)
{
    uint32_t what = (uint32_t)record->what;
    struct last_attempt *last;

    for (uint32_t i = 0; i < effects->count; i++) {
        const struct effect *effect = &effects->items[i];

        if (effect->kind == EFFECT_STEP)
            see_made(sight, record, effect);
        else if (effect->kind == EFFECT_END && (last = last_of(sight, record, effect->ordinal)))
            *last = (struct last_attempt){ effect->ordinal, flow_end_status(what) };
    }
    for (uint32_t i = 0; flow_is_end(what) && i < sight->drawing->step_count; i++)
        if (sight->last[i].status <= STEP_RUNNING)
            sight->last[i].status = STEP_CANCELLED;
}

static pawl_status see_record(struct scope *scratch, const struct graph_sight *sight,
                              const struct record *record)
{
    struct effect_list effects = { 0 };

    if (record->body.data)
        TRY(effects_read(scratch, record->body, &effects));
    see_entry(sight, record, &effects);
    return PAWL_OK;
}

static pawl_status see_entries(struct op_call *call, str id, const struct history_query *query,
                               const struct graph_sight *sight)
{
    struct history_reader *history = NULL;
    struct scope scratch; /* an entry's effects go with it */
    struct entry entry;
    bool is_found = true;
    pawl_status status =
        engine_history_open(op_engine(call), call->scope, id, query, &history);

    scope_init(&scratch, call->scope->arena.heap, LIMIT_SCOPE);
    while (status == PAWL_OK && is_found) {
        scope_clear(&scratch);
        status = engine_history_next(history, call->scope, &entry, &is_found);
        if (status == PAWL_OK && is_found && sight->taken)
            sight->taken[entry.record->what]++;
        else if (status == PAWL_OK && is_found)
            status = see_record(&scratch, sight, entry.record);
    }
    if (scratch.error.status != PAWL_OK)
        call->scope->error = scratch.error;
    scope_fini(&scratch);
    engine_history_close(history);
    return status;
}

static pawl_status begin_flow(struct scope *scope, struct drawing *drawing, struct graph_sight *out)
{
    *out = (struct graph_sight){ .drawing = drawing,
                                 .last = ARENA_ARRAY(&scope->arena, struct last_attempt,
                                                     drawing->step_count + 1) };
    return out->last ? PAWL_OK : scope_no_memory(scope);
}

static pawl_status end_flow(const struct graph_sight *sight, const struct instance_view *view)
{
    for (uint32_t i = 0; i < sight->drawing->step_count; i++)
        if (sight->last[i].ordinal > 0)
            drawing_see_outcome(sight->drawing, i, sight->last[i].status);
    return drawing_see_end(sight->drawing, view->definition->states[view->state].terminal);
}

static pawl_status see_flow(struct op_call *call, const struct instance_view *view,
                            const struct history_query *query, struct drawing *drawing)
{
    struct graph_sight sight;

    TRY(begin_flow(call->scope, drawing, &sight));
    TRY(see_entries(call, str_of(view->id), query, &sight));
    return end_flow(&sight, view);
}

/* Of a long history: what its memory, and its live rows, say of the steps before those entries. */
static void see_before(const struct graph_sight *sight, const struct story *story)
{
    for (uint32_t i = 0; story->is_done && i < sight->drawing->step_count; i++)
        if (story->is_done[i])
            drawing_see_outcome(sight->drawing, i, STEP_DONE);
    for (uint32_t i = 0; story->is_done && i < story->live.step_count; i++)
        drawing_see_outcome(sight->drawing, story->live.steps[i].plan, story->live.steps[i].status);
}

pawl_status print_story_graph(struct op_call *call, const struct story *story, struct buf *out)
{
    const struct instance_view *view = &story->view;
    struct graph_sight sight;
    struct drawing drawing;

    TRY(drawing_of(call->scope, story->now,
                   title_of(call->scope, view->definition_name, view->version, view->id),
                   &drawing));
    TRY(begin_flow(call->scope, &drawing, &sight));
    see_before(&sight, story);
    for (uint32_t i = 0; i < story->entry_count; i++)
        see_entry(&sight, story->entries[i].record, &story->effects[i]);
    TRY(end_flow(&sight, view));
    return drawing_json(call->scope, &drawing, out);
}

/* A machine, or the life of code. */
static pawl_status see_states(struct op_call *call, const struct instance_view *view,
                              const struct history_query *query, struct drawing *drawing)
{
    uint32_t count = view->definition->transition_count;
    struct graph_sight sight = { .taken = ARENA_ARRAY(&call->scope->arena, uint32_t, count + 1) };
    bool is_all = query->sequence_from == 0 && query->sequence_to == UINT64_MAX;

    TRY_MEMORY(call->scope, sight.taken);
    TRY(is_all ? engine_taken(op_engine(call), call->scope, str_of(view->id), sight.taken)
               : see_entries(call, str_of(view->id), query, &sight));
    for (uint32_t i = 0; i < count; i++)
        drawing_see_entries(drawing, i, sight.taken[i]);
    drawing_see_state(drawing, view->definition, view->state);
    return PAWL_OK;
}

/* A picture of the past has the state of the past: the one that entry `seq` led to. */
static pawl_status see_past(struct op_call *call, uint64_t seq, struct instance_view *view)
{
    struct history_query query = { .sequence_from = seq,
                                   .sequence_to = seq,
                                   .without_values = true };
    struct history found = { 0 };

    view->state = view->definition->initial;
    if (seq == 0)
        return PAWL_OK;
    TRY(engine_history(op_engine(call), call->scope, str_of(view->id), &query, &found));
    if (found.count == 1)
        view->state = view->definition->transitions[found.entries[0].record->what].to;
    return PAWL_OK;
}

pawl_status op_instance_graph(struct op_call *call, struct buf *out)
{
    struct history_query query = { .without_values = true };
    struct instance_view view;
    const struct definition *now;
    struct drawing drawing;
    struct format format = { 0 };

    TRY(read_format(call, &format));
    TRY(history_bounds(call, &query));
    TRY(engine_get(op_engine(call), call->scope, op_text(call, "instance_id"), &view));
    if (query.sequence_to < view.seq)
        TRY(see_past(call, query.sequence_to, &view));
    now = view.definition;
    if (view.is_amended)
        TRY(engine_definition_now(op_engine(call), call->scope, str_of(view.id), &now));
    TRY(drawing_of(call->scope, now,
                   title_of(call->scope, view.definition_name, view.version, view.id), &drawing));
    TRY(view.kind == KIND_FLOW ? see_flow(call, &view, &query, &drawing)
                               : see_states(call, &view, &query, &drawing));
    return print_drawing(call, &format, &drawing, out);
}
