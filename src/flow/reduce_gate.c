/* reduce_gate.c - steps that somebody has to approve (B37, B38). */
#include "flow/flow_int.h"
#include "model/words.h"
#include <stdio.h>

#define RESULT_APPROVED STR("\"approved\"")
#define ERROR_REJECTED  STR("\"rejected\"")

/* ---- Gates --------------------------------------------------------------------------------------
 */

static void print_rule(const struct plan_step *step, struct buf *out)
{
    json_open(out, '{');
    json_key(out, "by");
    if (step->approver_count == 0)
        json_null(out);
    else
        json_open(out, '[');
    for (uint32_t i = 0; i < step->approver_count; i++)
        json_str(out, step->approvers[i]);
    if (step->approver_count > 0)
        json_close(out, ']');
    json_key(out, "count");
    json_u64(out, step->approval_count);
    json_close(out, '}');
}

void flow_print_approval(const struct definition *definition, uint32_t plan_index, struct buf *out)
{
    print_rule(&plan_of(definition)->steps[plan_index], out);
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

/* data NULL: any actor may decide it, and one is enough. */
static str print_approval(struct turn *turn, const struct plan_step *step)
{
    struct buf buf;
    str kept;

    if (step->approver_count == 0 && step->approval_count <= 1)
        return STR_NONE;
    buf_init(&buf, turn->scope->arena.heap, LIMIT_TEXT);
    print_rule(step, &buf);
    kept = buf_keep(&buf, &turn->scope->arena);
    buf_fini(&buf);
    if (!kept.data)
        turn->status = scope_no_memory(turn->scope);
    return kept;
}

void gate_wait(struct turn *turn, const struct attempt *gate)
{
    str payload;

    if (turn->compiler < GATE_COMPILER)
        return;
    payload = print_approval(turn, &turn->plan->steps[gate->plan]);
    turn_draft(turn, LIFE_T_GATE_WAIT, gate, payload);
}

static const struct attempt *expect_gate(struct turn *turn)
{
    const struct attempt *attempt = memory_find(turn->memory, turn->event->ordinal);

    if (attempt && turn->plan->steps[attempt->plan].kind == STEP_KIND_GATE)
        return attempt;
    if (turn->event->ordinal > turn->memory->ordinal_last) {
        turn->status =
            scope_fail(turn->scope, PAWL_NOT_KNOWN, "there is no step %u", turn->event->ordinal);
        return NULL;
    }
    turn->status = scope_fail(turn->scope, PAWL_NOT_AWAITING,
                              attempt ? "step %u is no gate: nobody has to approve it"
                                      : "step %u has been decided already, or is over",
                              turn->event->ordinal);
    return NULL;
}

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

    if (turn->event->late) /* nobody's name: it is told that, and not that it is a stranger's */
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

void decide_approve(struct turn *turn)
{
    const struct attempt *gate = expect_gate(turn);
    str result = turn->event->payload.data ? turn->event->payload : RESULT_APPROVED;

    if (!gate || !may_decide(turn, &turn->plan->steps[gate->plan]))
        return;
    if (approvals_with(turn, gate->ordinal) < turn->plan->steps[gate->plan].approval_count)
        turn_draft(turn, LIFE_T_GATE_APPROVE, gate, turn->event->payload);
    else
        step_succeed(turn, LIFE_T_GATE_APPROVE, gate, result, 0);
}

void decide_reject(struct turn *turn)
{
    const struct attempt *gate = expect_gate(turn);
    str reason = turn->event->reason;

    if (!gate || !may_decide(turn, &turn->plan->steps[gate->plan]))
        return;
    step_fail(turn, LIFE_T_GATE_REJECT, gate, RETRY_FAILED,
              reason.data ? turn_quoted(turn, reason) : ERROR_REJECTED);
}
