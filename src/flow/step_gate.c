/* step_gate.c - a step that people approve or reject: `approval`, or a tool that is null (B37,
 * B38). */
#include "base/json_scan.h"
#include "flow/compile.h"
#include <stdio.h>

#define RESULT_APPROVED STR("\"approved\"")
#define ERROR_REJECTED  STR("\"rejected\"")
#define ASK             "approval.ask"
#define ASK_MAX         ((size_t)65536) /* bytes of what is asked */

/* Keys: a gate. */
static const struct known_key gate_keys[] = {
    { "approval", "{by, count}", "a gate: who may approve, and how many must", "gate" },
    { 0 },
};

/* Keys: `approval`. */
static const struct known_key approval_keys[] = {
    { "by", "[ACTOR, ...]", "who may approve or reject", NULL, "anyone" },
    { "count", "NUMBER", "how many of them must approve", NULL, "1" },
    { "ask", "TEMPLATE", "what they are asked; shown with the gate", NULL, "nothing" },
    { 0 },
};

/* ---- Compiling ------------------------------------------------------------------------------ */

static void read_approvers(struct source_step *step, const struct node *by)
{
    const struct node *first = by->kind == NODE_ARRAY ? by->first : by;
    struct plan_step *plan = &step->plan;

    plan->approvers = ARENA_ARRAY(&step->compiler->scope->arena, str, by->count + 1);
    if (!plan->approvers)
        return;
    for (const struct node *item = first; item; item = item == by ? NULL : item->next) {
        if (item->kind != NODE_STRING || str_is_blank(item->text))
            step_error(step, item, "approval.by lists actor_refs");
        for (uint32_t i = 0; i < plan->approver_count; i++)
            if (str_eq(plan->approvers[i], item->text))
                step_error(step, item, "approval.by names '%.*s' twice",
                           STR_ARG(words_shown(item->text)));
        plan->approvers[plan->approver_count++] = item->text;
    }
    if (plan->approver_count == 0)
        step_error(step, by, "approval.by has no names: the gate would wait for ever");
}

/* Kept as the args of the step, under a name that no author writes there. */
static void read_ask(struct source_step *step, const struct node *ask)
{
    struct compilation *compiler = step->compiler;
    struct buf args;

    if (step->plan.args_node)
        step_error(step, ask, "a gate has either 'args' or 'approval.ask'");
    buf_init(&args, compiler->scope->arena.heap, LIMIT_TEXT);
    json_open(&args, '{');
    json_put_raw(&args, ASK, compile_print(compiler, ask));
    json_close(&args, '}');
    step->plan.args_node = ask;
    step->plan.args = compile_take(compiler, &args);
}

static void read_approval(struct source_step *step, const struct node *approval)
{
    const struct node *by = node_find(approval, "by"), *count = node_find(approval, "count");
    int64_t n = 1;

    if (approval->kind != NODE_OBJECT)
        step_error(step, approval,
                   "'approval' must be {by, count}, found %s; write {} if anyone may approve",
                   approval->is_missing ? "no value" : node_kind_name(approval->kind));
    compile_keys(step->compiler, step, approval, approval_keys, "approval.");
    if (by)
        read_approvers(step, by);
    if (count && (!node_to_i64(count, &n) || n < 1 || n > LIMIT_STEPS))
        step_error(step, count, "approval.count must be 1..%d", LIMIT_STEPS);
    else if (by && n > step->plan.approver_count)
        step_error(step, count ? count : by, "approval.count is %lld, and only %u may approve",
                   (long long)n, step->plan.approver_count);
    step->plan.approval_count = (uint32_t)n;
    if (node_find(approval, "ask"))
        read_ask(step, node_find(approval, "ask"));
}

void gate_compile(struct source_step *step)
{
    const struct node *approval = node_find(step->node, "approval");

    if (approval && step->plan.kind != &step_kind_gate)
        step_error(step, approval, "only a gate has an 'approval'; a gate has no tool");
    else if (approval)
        read_approval(step, approval);
}

/* ---- It has begun -----------------------------------------------------------------------------
 */

/* What people are asked; data NULL: nothing. */
static pawl_status read_question(struct turn *turn, const struct plan_step *step, str *out)
{
    str args;

    *out = STR_NONE;
    if (!node_find(step->args_node, ASK))
        return PAWL_OK;
    TRY(begin_args(turn, step, ARGS_OF_WAITS, &args));
    (void)json_member(&turn->scope->arena, args, STR(ASK), out);
    if (out->size <= ASK_MAX)
        return PAWL_OK;
    return scope_fail(turn->scope, PAWL_TOO_LARGE,
                      "'approval.ask': expected at most %zu bytes, found %zu", ASK_MAX, out->size);
}

static pawl_status gate_begin(struct turn *turn, const struct plan_step *step, uint32_t ordinal)
{
    str ask;

    (void)ordinal;
    return read_question(turn, step, &ask);
}

static void print_rule(const struct plan_step *step, str ask, struct buf *out)
{
    json_open(out, '{');
    json_key(out, "by");
    if (step->approver_count == 0)
        json_null(out);
    else
        plan_print_texts(step->approvers, step->approver_count, out);
    json_put_u64(out, "count", step->approval_count);
    json_opt_raw(out, "ask", ask);
    json_close(out, '}');
}

void flow_print_approval(const struct definition *definition, uint32_t plan_index, struct buf *out)
{
    print_rule(&plan_of(definition)->steps[plan_index], STR_NONE, out);
}

bool flow_gate_asks(const struct definition *definition, uint32_t plan_index)
{
    const struct plan *plan = plan_of(definition);

    return plan_index < plan->count && node_find(plan->steps[plan_index].args_node, ASK);
}

/* The entry has no payload where any actor may decide, one is enough, and nothing is asked. */
static void gate_begun(struct turn *turn, const struct attempt *gate)
{
    const struct plan_step *step = &turn->plan->steps[gate->plan];
    str payload = STR_NONE, ask = STR_NONE;
    struct buf buf;

    if (turn->compiler < GATE_COMPILER)
        return;
    if (turn->status == PAWL_OK)
        turn->status = read_question(turn, step, &ask);
    if (step->approver_count > 0 || step->approval_count > 1 || ask.data) {
        buf_init(&buf, turn->scope->arena.heap, LIMIT_TEXT);
        print_rule(step, ask, &buf);
        payload = turn_take(turn, &buf);
    }
    turn_draft(turn, LIFE_T_GATE_WAIT, gate, payload);
}

/* ---- It is decided ----------------------------------------------------------------------------
 */

#define NAMES_SHOWN 8

static pawl_status fail_stranger(struct turn *turn, const struct plan_step *step)
{
    str actor = turn->event->actor;
    char names[300] = "";
    size_t used = 0;

    for (uint32_t i = 0; i < step->approver_count && i < NAMES_SHOWN && used < sizeof names; i++)
        used += (size_t)snprintf(names + used, sizeof names - used, "%s%.*s", i ? ", " : "",
                                 STR_ARG(words_shown(step->approvers[i])));
    return scope_fail(turn->scope, PAWL_FORBIDDEN, "only %s%s may decide step '%.*s', not %s%.*s%s",
                      names, step->approver_count > NAMES_SHOWN ? ", ..." : "", STR_ARG(step->name),
                      actor.data ? "'" : "",
                      STR_ARG(actor.data ? words_shown(actor) : STR("a caller without a name")),
                      actor.data ? "'" : "");
}

static bool may_decide(struct turn *turn, const struct plan_step *step)
{
    str actor = turn->event->actor;

    if (turn->event
            ->late) /* its name is invalid: that is reported, and not that it may not decide */
        return true;
    for (uint32_t i = 0; i < step->approver_count; i++)
        if (actor.data && str_eq(step->approvers[i], actor))
            return true;
    if (step->approver_count == 0 && (actor.data || step->approval_count == 1))
        return true;
    turn->status = step->approver_count > 0
                       ? fail_stranger(turn, step)
                       : scope_fail(turn->scope, PAWL_INVALID_REQUEST,
                                    "step '%.*s' counts approvers: say who approves with actor_ref",
                                    STR_ARG(step->name));
    return false;
}

static bool is_repeated(const struct flow_memory *memory, uint32_t index)
{
    const struct approval *approval = &memory->approvals[index];

    for (uint32_t i = 0; i < index; i++)
        if (memory->approvals[i].ordinal == approval->ordinal &&
            str_eq(memory->approvals[i].approver, approval->approver))
            return true;
    return false;
}

/* How many have approved, this one included; each counts once. */
static uint32_t approvals_with(const struct turn *turn, uint32_t ordinal)
{
    const struct flow_memory *memory = turn->memory;
    bool is_new = true;
    uint32_t count = 0;

    for (uint32_t i = 0; i < memory->approval_count; i++) {
        if (memory->approvals[i].ordinal != ordinal)
            continue;
        is_new = is_new && !str_eq(memory->approvals[i].approver, turn->event->actor);
        count += !is_repeated(memory, i);
    }
    return count + is_new;
}

static void gate_on_approve(struct turn *turn, const struct attempt *gate)
{
    const struct plan_step *step = &turn->plan->steps[gate->plan];
    str result = turn->event->payload.data ? turn->event->payload : RESULT_APPROVED;

    if (!may_decide(turn, step))
        return;
    if (approvals_with(turn, gate->ordinal) < step->approval_count)
        turn_draft(turn, LIFE_T_GATE_APPROVE, gate, turn->event->payload);
    else
        step_succeed(turn, LIFE_T_GATE_APPROVE, gate, result, 0);
}

static void gate_on_reject(struct turn *turn, const struct attempt *gate)
{
    str reason = turn->event->reason;

    if (may_decide(turn, &turn->plan->steps[gate->plan]))
        step_fail(turn, LIFE_T_GATE_REJECT, gate, RETRY_FAILED,
                  reason.data ? turn_quoted(turn, reason) : ERROR_REJECTED);
}

/* An approval that brings no result of its own says "approved". */
static bool gate_event(const struct entry_view *entry, uint32_t n, struct event *out)
{
    bool is_approval = entry->transition == LIFE_T_GATE_APPROVE;

    out->kind = is_approval ? EVENT_APPROVE : EVENT_REJECT;
    if (is_approval && n == 0)
        out->payload = STR_NONE;
    return n < (is_approval ? 2 : 1);
}

static void gate_note(const struct plan_step *step, struct buf *out)
{
    buf_str(out, STR("approval"));
    if (step->approver_count > 0)
        buf_fmt(out, ", needs %u of %u", step->approval_count, step->approver_count);
}

const struct step_kind step_kind_gate = {
    .word = "gate",
    .about = "waits until people approve or reject it",
    .key = "approval",
    .keys = gate_keys,
    .why = "approval",
    .is_tried_once = true,
    .look = LOOK_GATE,
    .note = gate_note,
    .begin = gate_begin,
    .begun = gate_begun,
    .on = { [EVENT_APPROVE] = gate_on_approve, [EVENT_REJECT] = gate_on_reject },
    .event = gate_event,
};
