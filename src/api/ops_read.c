/* ops_read.c - reading one instance: where it stands, what it can do, what it waits for. */
#include "api/ops_int.h"

static void put_action(const struct definition *definition, const struct transition *transition,
                       struct buf *out)
{
    json_put_str(out, "action", transition->action);
    json_put_str(out, "to_state", definition->states[transition->to].name);
    if (transition->guard.data)
        json_put_str(out, "guard", transition->guard);
    if (transition->requires_reason)
        json_put_bool(out, "requires_reason", true);
}

/* What a caller may fire now, in the order of declaration. For a flow that is only `cancel`. */
static void print_actions(const struct instance_view *view, struct buf *out)
{
    const struct definition *definition = view->definition;
    uint32_t state = view->state;

    json_put_open(out, "actions", '[');
    for (uint32_t i = definition->exit_start[state]; i < definition->exit_start[state + 1]; i++) {
        const struct transition *transition = &definition->transitions[definition->exits[i]];

        if (transition->by_engine || (view->kind == KIND_FLOW && !view->can_cancel))
            continue;
        json_open(out, '{');
        put_action(definition, transition, out);
        json_close(out, '}');
    }
    json_close(out, ']');
}

static void print_definition(const struct instance_view *view, struct buf *out)
{
    json_put_str(out, "definition", view->definition_name);
    json_put_u64_or_null(out, "version", view->version);
    json_put_text(out, "kind", definition_kind_name(view->kind));
}

static void print_standing(const struct instance_view *view, struct buf *out)
{
    const struct definition *definition = view->definition;
    const struct state *state = &definition->states[view->state];

    json_put_str(out, "current_state", state->name);
    json_put_text(out, "status", instance_status_name(view->status));
    json_put_text(out, "terminal_kind", terminal_kind_name(state->terminal));
    print_actions(view, out);
    json_put_bool(out, "can_cancel", view->can_cancel);
    json_put_u64(out, "next_sequence_number", view->seq + 1);
}

/* Who paused it, since when and why. */
static void print_pause(const struct pause_view *pause, struct buf *out)
{
    json_put_time(out, "paused_at", pause->at_ms);
    json_put_str(out, "actor_ref", pause->actor);
    json_put_str(out, "reason", pause->reason);
}

static void print_transition(const struct definition *definition,
                             const struct transition *transition, struct buf *out)
{
    json_open(out, '{');
    json_put_str(out, "from_state", definition->states[transition->from].name);
    put_action(definition, transition, out);
    json_put_str(out, "by", transition->by_engine ? STR("engine") : STR("caller"));
    json_close(out, '}');
}

void print_transitions(const struct definition *definition, struct buf *out)
{
    json_put_open(out, "transitions", '[');
    for (uint32_t i = 0; i < definition->transition_count; i++)
        print_transition(definition, &definition->transitions[i], out);
    json_close(out, ']');
}

static void print_members(const struct instance_view *view, struct buf *out)
{
    json_put_str(out, "instance_id", str_of(view->id));
    print_definition(view, out);
    print_standing(view, out);
    json_put_str(out, "subject_ref", view->subject);
    json_put_str(out, "correlation_id", view->correlation);
    json_put_raw(out, "labels", view->labels);
    json_put_str(out, "parent_id", view->parent_id[0] ? str_of(view->parent_id) : STR_NONE);
    json_put_str(out, "created_by", view->created_by);
    json_put_time(out, "instantiated_at", view->instantiated_at_ms);
    json_put_time(out, "updated_at", view->updated_at_ms);
    json_put_raw(out, "input", view->input);
    json_put_raw(out, "instance_metadata", view->metadata);
    json_put_raw(out, "result", view->result);
    json_put_raw(out, "error", view->error);
    if (view->retry_of.data) /* the contract has the members above always, these only if set */
        json_put_str(out, "retry_of", view->retry_of);
    if (view->retried_as[0])
        json_put_str(out, "retried_as", str_of(view->retried_as));
    if (view->status == STATUS_PAUSED) {
        json_put_open(out, "pause", '{');
        print_pause(&view->pause, out);
        json_close(out, '}');
    }
}

void print_instance(const struct instance_view *view, struct buf *out)
{
    json_open(out, '{');
    print_members(view, out);
    json_close(out, '}');
}

pawl_status op_instance_get(struct op_call *call, struct buf *out)
{
    struct instance_view view;
    bool is_expanded;

    TRY(engine_get(op_engine(call), call->scope, op_text(call, "instance_id"), &view));
    TRY(query_flag(call, "expanded", &is_expanded));
    json_open(out, '{');
    print_members(&view, out);
    if (is_expanded)
        print_transitions(view.definition, out);
    json_close(out, '}');
    return PAWL_OK;
}

pawl_status op_instance_current(struct op_call *call, struct buf *out)
{
    str state;

    TRY(engine_current(op_engine(call), call->scope, op_text(call, "instance_id"), &state));
    json_open(out, '{');
    json_put_str(out, "current_state", state);
    json_close(out, '}');
    return PAWL_OK;
}

pawl_status op_instance_declaration(struct op_call *call, struct buf *out)
{
    str text;

    TRY(engine_declaration(op_engine(call), call->scope, op_text(call, "instance_id"), &text));
    if (!text_looks_like_json(text))
        call->content_type = "application/yaml";
    buf_str(out, text);
    return PAWL_OK;
}

/* Which step to approve, since when it waits, and for whom. */
static void print_gate(str id, const struct waiting *gate, struct buf *out)
{
    json_key(out, "step_id");
    buf_fmt(out, "\"%.*s.%u\"", STR_ARG(id), gate->ordinal);
    if (gate->since_ms != 0)
        json_put_time(out, "since", gate->since_ms);
    json_put_raw(out, "approval", gate->approval);
}

static void print_tool(const struct waiting *step, struct buf *out)
{
    json_put_str(out, "tool", step->tool);
    json_put_str(out, "status", str_of(step_status_name(step->step_status)));
    json_put_bool(out, "here", step->is_here);
}

/* One that failed waits for nothing; another may run it again. */
static pawl_status print_successor(const struct op_call *call, struct buf *out)
{
    struct successor successor;
    pawl_status status = engine_successor(op_engine(call), call->scope,
                                          op_text(call, "instance_id"), &successor);

    if (status == PAWL_OK && successor.pos != 0)
        json_put_str(out, "retried_as", str_of(successor.id));
    return status;
}

pawl_status op_instance_why(struct op_call *call, struct buf *out)
{
    struct waiting *waiting = NULL;
    uint32_t count = 0;
    pawl_status status;

    TRY(engine_why(op_engine(call), call->scope, op_text(call, "instance_id"), &waiting, &count));
    json_open(out, '{');
    json_put_open(out, "waiting_for", '[');
    for (uint32_t i = 0; i < count; i++) {
        json_open(out, '{');
        json_put_str(out, "kind", str_of(waiting[i].kind));
        json_put_str(out, "name", waiting[i].name);
        if (waiting[i].has_until)
            json_put_time(out, "until", waiting[i].until_ms);
        if (waiting[i].refused.data)
            json_put_str(out, "refused", waiting[i].refused);
        if (str_is(str_of(waiting[i].kind), "pause"))
            print_pause(&waiting[i].pause, out);
        if (waiting[i].tool.data)
            print_tool(&waiting[i], out);
        if (waiting[i].approval.data)
            print_gate(op_text(call, "instance_id"), &waiting[i], out);
        if (waiting[i].child)
            json_put_str(out, "instance_id", str_of(waiting[i].child_id));
        json_close(out, '}');
    }
    json_close(out, ']');
    status = print_successor(call, out);
    json_close(out, '}');
    return status;
}

pawl_status op_instance_variables(struct op_call *call, struct buf *out)
{
    str variables;

    TRY(engine_variables(op_engine(call), call->scope, op_text(call, "instance_id"), &variables));
    json_open(out, '{');
    json_put_raw(out, "variables", variables);
    json_close(out, '}');
    return PAWL_OK;
}
