/* trial.c - `run --test`: a virtual clock. It is moved to what falls due next, after all that
 * the command line says (--signal, --fire, --complete, --approve, --reject) was sent to the instances
 * that wait for it. */
#include "surface/cli/trial.h"
#include "api/world.h"
#include "base/time.h"
#include "surface/cli/view.h"
#include <unistd.h>

#define FAMILY_DEPTH_MAX 32
#define SPAN_MAX_MS      (INT64_C(10) * 365 * 24 * 3600 * 1000) /* for a flow that never ends */
#define ROWS_WAIT_MS     5
#define TURNS_AT_ONCE    1000

struct decided { /* a gate that all actors of the command line have decided */
    struct decided *next;
    str step;
};

static pawl_status ask(struct trial *trial, const char *operation, const struct ask_member *members,
                       struct node **out)
{
    return target_ask_with(trial->cli, &trial->scope, operation, members, out, NULL);
}

/* ---- What it waits for, said by us ---- */

/* The attempt that waits under this name. */
static pawl_status find_pending(struct trial *trial, str id, str name, str *out)
{
    struct node *answer;

    *out = STR_NONE;
    TRY(ask(trial, "instance.steps", WITH({ "instance_id", id }), &answer));
    for (const struct node *step = node_first(answer, "steps"); step; step = step->next)
        if (str_eq(member_str(step, "name"), name) && str_is(member_str(step, "status"), "pending"))
            *out = member_str(step, "step_id");
    return PAWL_OK;
}

static pawl_status send_signal(struct trial *trial, str id, struct told *told)
{
    struct node *answer;

    told->is_said = true;
    return ask(
        trial, "signal.send",
        WITH({ "instance_id", id }, { "name", told->name }, { "payload", .json = told->json }),
        &answer);
}

/* With the guard and the reason that the action requires. */
static pawl_status fire(struct trial *trial, str id, struct told *told)
{
    struct node *instance, *answer;
    const struct node *action;

    TRY(ask(trial, "instance.get", WITH({ "instance_id", id }), &instance));
    action = node_first(instance, "actions");
    while (action && !str_eq(member_str(action, "action"), told->name))
        action = action->next;
    told->is_said = true;
    return ask(trial, "instance.fire",
               WITH({ "instance_id", id }, { "action", told->name },
                    { "actor_ref", str_of(args_option(trial->cli, "actor")) },
                    { "payload", .json = told->json },
                    { "guard_satisfied",
                      .json = member_json(action, "guard").data ? STR("true") : STR_NONE },
                    { "reason",
                      member_true(action, "requires_reason") ? STR("given by --fire") : STR_NONE }),
               &answer);
}

/* Complete an external step. A step that its tool works on is left to the tool. A step that waits
 * for its next attempt (lease-lost) is completed when that has begun. */
static pawl_status complete(struct trial *trial, str id, struct told *told)
{
    struct node *answer;
    str step;
    pawl_status status = find_pending(trial, id, told->name, &step);

    if (status != PAWL_OK || !step.data)
        return status;
    status = ask(
        trial, told->is_failure ? "step.fail" : "step.complete",
        WITH({ "step_id", step }, { told->is_failure ? "error" : "result", .json = told->json }),
        &answer);
    told->is_said = status != PAWL_LEASE_LOST;
    if (status != PAWL_LEASE_LOST)
        return status;
    trial->scope.error = (pawl_error){ .status = PAWL_OK };
    return PAWL_OK;
}

static bool is_awaited(const struct told *told, const struct node *item)
{
    for (; item; item = item->next)
        if (str_is(member_str(item, "kind"), told_awaited(told)) &&
            str_eq(member_str(item, "name"), told->name))
            return true;
    return false;
}

/* The first that this instance waits for, in the order given. */
static pawl_status say_told(struct trial *trial, str id, const struct node *first, bool *said)
{
    pawl_status (*const say[])(struct trial *, str, struct told *) = {
        [TOLD_SIGNAL] = send_signal, [TOLD_FIRE] = fire, [TOLD_COMPLETE] = complete
    };
    pawl_status status = PAWL_OK;

    for (uint32_t i = 0; i < trial->told_count && status == PAWL_OK && !*said; i++) {
        struct told *told = &trial->told[i];

        if (told->is_said || told->at_ms > trial->span_ms || !is_awaited(told, first))
            continue;
        status = say[told->kind](trial, id, told);
        *said = told->is_said;
    }
    return status;
}

/* An actor who may not decide this gate is skipped: another gate may be meant. */
static pawl_status decide_as(struct trial *trial, const struct given *given, str step, bool *said)
{
    bool approves = strcmp(given->option->name, "approve") == 0;
    struct node *answer;
    pawl_status status =
        ask(trial, approves ? "step.approve" : "step.reject",
            WITH({ "step_id", step }, { "actor_ref", str_of(given->value) }), &answer);

    if (status == PAWL_FORBIDDEN || status == PAWL_NOT_AWAITING) {
        trial->scope.error = (pawl_error){ .status = PAWL_OK };
        return PAWL_OK;
    }
    *said = *said || status == PAWL_OK;
    return status;
}

static bool has_decided(const struct trial *trial, str step)
{
    for (const struct decided *gate = trial->gates; gate; gate = gate->next)
        if (str_eq(gate->step, step))
            return true;
    return false;
}

static pawl_status note_decided(struct trial *trial, str step)
{
    struct scope *scope = &trial->cli->scope; /* longer than one turn */
    struct decided *gate = ARENA_NEW(&scope->arena, struct decided);

    TRY_MEMORY(&trial->scope, gate);
    *gate = (struct decided){ .next = trial->gates, .step = arena_str(&scope->arena, step) };
    trial->gates = gate;
    return gate->step.data ? PAWL_OK : scope_no_memory(&trial->scope);
}

/* All actors of the command line decide every gate once, in the given order. */
static pawl_status decide_gate(struct trial *trial, str id, str name, bool *said)
{
    struct cli *cli = trial->cli;
    str step;
    pawl_status status = find_pending(trial, id, name, &step);

    if (status != PAWL_OK || !step.data || has_decided(trial, step))
        return status;
    status = note_decided(trial, step);
    for (uint32_t i = 0; i < cli->given_count && status == PAWL_OK; i++)
        if (strcmp(cli->given[i].option->name, "approve") == 0 ||
            strcmp(cli->given[i].option->name, "reject") == 0)
            status = decide_as(trial, &cli->given[i], step, said);
    return status;
}

/* To the instance and to the children that it waits for. */
static pawl_status say_to(struct trial *trial, str id, uint32_t depth, bool *said)
{
    const struct node *first;
    struct node *why;
    pawl_status status;

    TRY(ask(trial, "instance.why", WITH({ "instance_id", id }), &why));
    first = node_first(why, "waiting_for");
    status = say_told(trial, id, first, said);
    for (const struct node *item = first; item && status == PAWL_OK && !*said; item = item->next) {
        str kind = member_str(item, "kind");

        if (str_is(kind, "approval"))
            status = decide_gate(trial, id, member_str(item, "name"), said);
        else if (str_is(kind, "child") && depth < FAMILY_DEPTH_MAX)
            status = say_to(trial, member_str(item, "instance_id"), depth + 1, said);
    }
    return status;
}

/* ---- Time ---- */

/* How long to wait before the clock moves by next_ms. Only rows that lag are due at once: they are
 * written while the clock rests. */
static int64_t wait_before(const struct trial *trial, int64_t next_ms)
{
    if (next_ms < 0 || trial->span_ms + next_ms > SPAN_MAX_MS)
        return TRIAL_STUCK;
    return next_ms > 0 ? 0 : ROWS_WAIT_MS;
}

/* To what falls due next. */
static pawl_status move_clock(struct trial *trial, int64_t *wait_ms)
{
    pawl *p = trial->cli->target.local;
    int64_t next_ms = pawl_next_due(p), told_ms = told_next(trial);

    if (told_ms > 0 && (next_ms < 0 || told_ms < next_ms))
        next_ms = told_ms;
    *wait_ms = wait_before(trial, next_ms);
    trial->span_ms += next_ms > 0 ? next_ms : 0;
    return *wait_ms == 0 ? pawl_test_advance(p, next_ms, &trial->scope.error) : PAWL_OK;
}

/* Nothing will ever be said to it: many turns at once, since each look costs more than a turn. */
static bool is_silent(const struct trial *trial)
{
    for (uint32_t i = 0; i < trial->told_count; i++)
        if (!trial->told[i].is_said)
            return false;
    return !args_flag(trial->cli, "approve") && !args_flag(trial->cli, "reject");
}

static pawl_status move_far(struct trial *trial, const char *id, int64_t *wait_ms)
{
    int64_t next_ms = pawl_next_due(trial->cli->target.local), moved_ms = 0;
    pawl_status status;

    *wait_ms = wait_before(trial, next_ms);
    if (*wait_ms != 0)
        return PAWL_OK;
    status = world_take_turns(trial->cli->target.local, id, TURNS_AT_ONCE,
                              SPAN_MAX_MS - trial->span_ms, &moved_ms, &trial->scope.error);
    trial->span_ms += moved_ms;
    return status;
}

/* Let everything that is under way come to rest, and set how much of its time has passed. */
static pawl_status settle(struct trial *trial, const char *id)
{
    struct node *answer, *instance;
    int64_t now_ms, begun_ms;

    TRY(ask(trial, "test.advance", WITH({ "by", STR("0ms") }), &answer));
    TRY(ask(trial, "instance.get", WITH({ "instance_id", str_of(id) }), &instance));
    if (time_parse(member_str(answer, "now"), &now_ms) &&
        time_parse(member_str(instance, "instantiated_at"), &begun_ms))
        trial->span_ms = now_ms - begun_ms;
    return PAWL_OK;
}

pawl_status trial_go_on(struct trial *trial, const char *id, int64_t *wait_ms)
{
    bool said = false;
    pawl_status status = PAWL_OK;

    *wait_ms = 0;
    scope_clear(&trial->scope);
    if (!trial->is_settled)
        status = settle(trial, id);
    if (status == PAWL_OK && is_silent(trial)) {
        trial->is_settled = true;
        return move_far(trial, id, wait_ms);
    }
    if (status == PAWL_OK)
        status = say_to(trial, str_of(id), 0, &said);
    trial->is_settled = !said;
    return status == PAWL_OK && !said ? move_clock(trial, wait_ms) : status;
}

/* ---- Its store ---- */

/* A store whose instances live by the real clock would have their time moved for good. */
static pawl_status check_past(struct cli *cli)
{
    static const char query[] = "select exists (select 1 from pawl_instance) and not exists "
                                "(select 1 from pawl_meta where key = 'test_now'"
                                " union all select 1 from pawl_kept where what = -11 and id = 'test')";
    struct node *answer = NULL;
    const struct node *first;
    pawl_status status = target_open(cli, USE_READ, NULL);

    if (status == PAWL_OK)
        status = target_ask_with(cli, &cli->scope, "store.sql", WITH({ "text", str_of(query) }),
                                 &answer, NULL);
    target_close(cli);
    if (status != PAWL_OK)
        return status;
    first = node_at(node_first(answer, "rows"), 0);
    if (first && str_is(first->raw, "1"))
        return scope_fail(&cli->scope, PAWL_CONFLICT,
                          "%s has run by the real clock, which --test would move for good; name "
                          "another store, or none",
                          cli->store);
    return PAWL_OK;
}

pawl_status trial_store(struct cli *cli)
{
    const char *file = store_file(cli->store);

    return file && access(file, F_OK) == 0 ? check_past(cli) : PAWL_OK;
}

pawl_status trial_init(struct trial *trial, struct cli *cli)
{
    *trial = (struct trial){ .cli = cli };
    scope_init(&trial->scope, &heap_libc, CLI_MEMORY_MAX);
    return told_read(trial);
}

void trial_fini(struct trial *trial)
{
    scope_fini(&trial->scope);
}
