/* ops_read.c - reading one instance: its state, what it can do, what it waits for. */
#include "api/ops_int.h"

static void put_action(const struct definition *definition, const struct transition *transition,
                       struct buf *out)
{
    json_put_str(out, "action", transition->action);
    json_put_str(out, "to_state", definition->states[transition->to].name);
    json_opt_str(out, "guard", transition->guard);
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

/* Who paused it, since when and why. */
static void print_pause(const struct pause_view *pause, struct buf *out)
{
    json_put_time(out, "paused_at", pause->at_ms);
    json_put_str(out, "actor_ref", pause->actor);
    json_put_str(out, "reason", pause->reason);
}

/* Who erased what it held, when and why. */
static void print_erased_by(const struct erased_view *erased, struct buf *out)
{
    json_put_open(out, "erased", '{');
    json_put_time(out, "erased_at", erased->at_ms);
    json_put_str(out, "actor_ref", erased->actor);
    json_put_str(out, "reason", erased->reason);
    json_close(out, '}');
}

void print_transitions(const struct definition *definition, struct buf *out)
{
    json_put_open(out, "transitions", '[');
    for (uint32_t i = 0; i < definition->transition_count; i++) {
        const struct transition *transition = &definition->transitions[i];

        json_open(out, '{');
        json_put_str(out, "from_state", definition->states[transition->from].name);
        put_action(definition, transition, out);
        json_put_text(out, "by", transition->by_engine ? "engine" : "caller");
        json_close(out, '}');
    }
    json_close(out, ']');
}

void print_instance(const struct instance_view *view, struct buf *out)
{
    const struct state *state = &view->definition->states[view->state];

    json_put_text(out, "instance_id", view->id);
    json_put_str(out, "definition", view->definition_name);
    json_put_u64_or_null(out, "version", view->version);
    json_put_text(out, "kind", definition_kind_name(view->kind));
    json_put_str(out, "current_state", state->name);
    json_put_text(out, "status", instance_status_name(view->status));
    json_put_text(out, "terminal_kind", terminal_kind_name(state->terminal));
    print_actions(view, out);
    json_put_bool(out, "can_cancel", view->can_cancel);
    json_put_u64(out, "next_sequence_number", view->seq + 1);
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
    /* The contract has the members above always, these only if set. */
    json_opt_str(out, "retry_of", view->retry_of);
    if (view->retried_as[0])
        json_put_text(out, "retried_as", view->retried_as);
    if (view->status == STATUS_PAUSED) {
        json_put_open(out, "pause", '{');
        print_pause(&view->pause, out);
        json_close(out, '}');
    }
    if (view->erased.at_ms)
        print_erased_by(&view->erased, out);
}

pawl_status op_instance_get(struct op_call *call, struct buf *out)
{
    struct instance_view view;
    bool is_expanded;

    TRY(engine_get(op_engine(call), call->scope, op_text(call, "instance_id"), &view));
    TRY(query_flag(call, "expanded", &is_expanded));
    print_instance(&view, out);
    if (is_expanded)
        print_transitions(view.definition, out);
    return PAWL_OK;
}

pawl_status op_instance_current(struct op_call *call, struct buf *out)
{
    str state;

    TRY(engine_current(op_engine(call), call->scope, op_text(call, "instance_id"), &state));
    json_put_str(out, "current_state", state);
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
    json_put_fmt(out, "step_id", "%.*s.%u", STR_ARG(id), gate->ordinal);
    if (gate->since_ms != 0)
        json_put_time(out, "since", gate->since_ms);
    json_put_raw(out, "approval", gate->approval);
    json_opt_raw(out, "ask", gate->ask);
    json_put_raw(out, "approved_by", gate->approved_by);
}

static void print_failed(const struct waiting *waiting, struct buf *out)
{
    json_put_open(out, "failed", '{');
    json_put_u64(out, "attempt", waiting->failed_attempt);
    json_put_u64_or_null(out, "of", waiting->attempts_max);
    json_put_time(out, "at", waiting->failed_ms);
    json_put_raw(out, "error", waiting->error);
    json_close(out, '}');
}

static void print_held(const struct waiting *waiting, struct buf *out)
{
    json_put_open(out, "held", '{');
    json_put_str(out, "worker", waiting->worker);
    json_put_time(out, "since", waiting->held_since_ms);
    json_put_time_or_null(out, "lease_until", waiting->lease_until_ms);
    if (waiting->progress.data) {
        json_put_raw(out, "progress", waiting->progress);
        json_put_time(out, "progress_at", waiting->progress_ms);
    }
    json_close(out, '}');
}

/* Which workers and tools there are is not for a token that is limited to definitions: worker.list
 * is not, either. */
static void print_asked(const struct op_call *call, const struct waiting *waiting, struct buf *out)
{
    json_put_open(out, "workers", '{');
    json_put_time(out, "since", waiting->known_since_ms);
    json_put_time_or_null(out, "asked_at", waiting->asked_ms);
    if (op_allows(call, STR_NONE)) {
        json_put_str(out, "asked_by", waiting->asked_by);
        json_put_raw(out, "tools", waiting->served);
    }
    json_close(out, '}');
}

static void print_causes(const struct op_call *call, const struct waiting *waiting, struct buf *out)
{
    if (waiting->refused_ms)
        json_put_time(out, "refused_at", waiting->refused_ms);
    if (waiting->failed_attempt)
        print_failed(waiting, out);
    if (waiting->held_since_ms)
        print_held(waiting, out);
    if (waiting->known_since_ms)
        print_asked(call, waiting, out);
}

void print_waiting(const struct op_call *call, str id, const struct waiting *waiting,
                   struct buf *out)
{
    json_open(out, '{');
    json_put_text(out, "kind", waiting->kind);
    json_put_str(out, "name", waiting->name);
    if (waiting->has_until)
        json_put_time(out, "until", waiting->until_ms);
    json_opt_str(out, "refused", waiting->refused);
    if (strcmp(waiting->kind, "pause") == 0)
        print_pause(&waiting->pause, out);
    if (waiting->tool.data) {
        json_put_str(out, "tool", waiting->tool);
        json_put_text(out, "status", step_status_name(waiting->step_status));
        json_put_bool(out, "here", waiting->is_here);
    }
    if (waiting->approval.data)
        print_gate(id, waiting, out);
    if (waiting->child)
        json_put_text(out, "instance_id", waiting->child_id);
    json_opt_raw(out, "limit", waiting->limit);
    print_causes(call, waiting, out);
    json_close(out, '}');
}

static void print_ending(const struct instance_end *ending, bool is_retried, struct buf *out)
{
    json_put_open(out, "ended", '{');
    json_put_text(out, "status", instance_status_name(ending->status));
    json_put_time(out, "at", ending->at_ms);
    json_put_raw(out, "error", ending->error);
    json_put_bool(out, "can_redrive", ending->can_redrive && !is_retried);
    json_close(out, '}');
}

static void print_winding_up(const struct instance_end *ending, struct buf *out)
{
    json_put_open(out, ending->is_cancelling ? "cancelling" : "undoing", '{');
    json_put_time(out, "since", ending->winding_up.at_ms);
    json_put_str(out, "actor_ref", ending->winding_up.actor);
    json_put_str(out, "reason", ending->winding_up.reason);
    json_close(out, '}');
}

/* One that failed waits for nothing; another may run it again. */
pawl_status op_instance_why(struct op_call *call, struct buf *out)
{
    str id = op_text(call, "instance_id");
    struct waiting *waiting = NULL;
    struct successor successor = { 0 };
    struct instance_end ending;
    uint32_t count = 0;

    TRY(engine_why(op_engine(call), call->scope, id, &waiting, &count, &ending));
    json_put_open(out, "waiting_for", '[');
    for (uint32_t i = 0; i < count; i++)
        print_waiting(call, id, &waiting[i], out);
    json_close(out, ']');
    if (ending.can_redrive)
        TRY(engine_successor(op_engine(call), call->scope, id, &successor));
    if (successor.pos != 0)
        json_put_text(out, "retried_as", successor.id);
    if (ending.at_ms)
        print_ending(&ending, successor.pos != 0, out);
    if (ending.winding_up.at_ms)
        print_winding_up(&ending, out);
    return PAWL_OK;
}

pawl_status op_instance_variables(struct op_call *call, struct buf *out)
{
    str variables;
    uint64_t seq = 0;
    bool has;

    TRY(query_count(call, "sequence_to", &has, &seq));
    TRY(engine_variables(op_engine(call), call->scope, op_text(call, "instance_id"), seq,
                         &variables));
    json_put_raw(out, "variables", variables);
    return PAWL_OK;
}

pawl_status op_instance_query(struct op_call *call, struct buf *out)
{
    str value;

    TRY(engine_query(op_engine(call), call->scope, op_text(call, "instance_id"),
                     op_text(call, "name"), &value));
    json_put_raw(out, "value", value);
    return PAWL_OK;
}
