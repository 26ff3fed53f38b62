/* trial.c - `run --test`: a virtual clock. It is moved to what falls due next, after all that
 * the command line says (--signal, --fire, --complete, --approve, --reject) was sent to the
 * instances that wait for it. */
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

/* ---- The script ---- */

static pawl_status send_signal(struct trial *trial, const char *id, struct scripted *line)
{
    struct node *answer;

    line->is_sent = true;
    return cli_ask(trial->cli, "signal.send",
                   WITH({ "instance_id", str_of(id) }, { "name", line->name },
                        { "payload", .json = line->json }),
                   &answer);
}

/* With the guard and the reason that the action requires. */
static pawl_status fire(struct trial *trial, const char *id, struct scripted *line)
{
    struct node *instance, *answer;
    const struct node *action;

    TRY(cli_ask_id(trial->cli, "instance.get", id, &instance));
    action = node_first(instance, "actions");
    while (action && !str_eq(member_str(action, "action"), line->name))
        action = action->next;
    line->is_sent = true;
    return cli_ask(trial->cli, "instance.fire",
                   WITH({ "instance_id", str_of(id) }, { "action", line->name },
                        { "actor_ref", str_of(args_option(trial->cli, "actor")) },
                        { "payload", .json = line->json },
                        { "guard_satisfied",
                          .json = member_json(action, "guard").data ? STR("true") : STR_NONE },
                        { "reason", member_true(action, "requires_reason") ? STR("given by --fire")
                                                                           : STR_NONE }),
                   &answer);
}

/* Complete an external step. A step that its tool works on is left to the tool. A step that waits
 * for its next attempt (lease-lost) is completed when that has begun. */
static pawl_status complete(struct trial *trial, const char *id, struct scripted *line)
{
    const char *member = line->is_failure ? "error" : "result";
    const struct node *step;
    struct node *answer;
    pawl_status status;

    TRY(step_find(trial->cli, id, line->name, "pending", &step));
    if (!step)
        return PAWL_OK;
    status = cli_ask(
        trial->cli, line->is_failure ? "step.fail" : "step.complete",
        WITH({ "step_id", member_str(step, "step_id") }, { member, .json = line->json }), &answer);
    line->is_sent = status != PAWL_LEASE_LOST;
    return line->is_sent ? status : PAWL_OK;
}

/* The first that this instance waits for, in the order given. */
static pawl_status send_scripted(struct trial *trial, const char *id, const struct node *why,
                                 bool *sent)
{
    pawl_status (*const say[])(struct trial *, const char *, struct scripted *) = {
        [SCRIPT_SIGNAL] = send_signal, [SCRIPT_FIRE] = fire, [SCRIPT_COMPLETE] = complete
    };

    for (uint32_t i = 0; i < trial->script_count && !*sent; i++) {
        struct scripted *line = &trial->script[i];

        if (line->is_sent || line->at_ms > trial->span_ms ||
            !waits_for(why, script_awaited(line), line->name))
            continue;
        TRY(say[line->kind](trial, id, line));
        *sent = line->is_sent;
    }
    return PAWL_OK;
}

/* An actor who may not decide this gate is skipped: another gate may be meant. */
static pawl_status decide_as(struct trial *trial, const struct given *given, str step, bool *sent)
{
    bool approves = strcmp(given->option->name, "approve") == 0;
    struct node *answer;
    pawl_status status =
        cli_ask(trial->cli, approves ? "step.approve" : "step.reject",
                WITH({ "step_id", step }, { "actor_ref", str_of(given->value) }), &answer);

    *sent = *sent || status == PAWL_OK;
    return status == PAWL_FORBIDDEN || status == PAWL_NOT_AWAITING ? PAWL_OK : status;
}

/* All actors of the command line decide every gate once, in the given order. */
static pawl_status decide_gate(struct trial *trial, const char *id, str name, bool *sent)
{
    struct arena *arena = &trial->scope.arena; /* longer than one turn */
    const struct cli *cli = trial->cli;
    const struct node *step;
    struct decided *gate;

    TRY(step_find(trial->cli, id, name, "pending", &step));
    for (gate = trial->gates; step && gate; gate = gate->next)
        if (str_eq(gate->step, member_str(step, "step_id")))
            return PAWL_OK;
    if (!step)
        return PAWL_OK;
    gate = ARENA_NEW(arena, struct decided);
    TRY_MEMORY(&trial->cli->scope, gate);
    *gate = (struct decided){ trial->gates, arena_str(arena, member_str(step, "step_id")) };
    TRY_MEMORY(&trial->cli->scope, gate->step.data);
    trial->gates = gate;
    for (uint32_t i = 0; i < cli->given_count; i++)
        if (option_is_about_gates(cli->given[i].option->name))
            TRY(decide_as(trial, &cli->given[i], gate->step, sent));
    return PAWL_OK;
}

/* To the instance and to the children that it waits for. */
static pawl_status send_to(struct trial *trial, const char *id, uint32_t depth, bool *sent)
{
    struct node *why;

    TRY(cli_ask_id(trial->cli, "instance.why", id, &why));
    TRY(send_scripted(trial, id, why, sent));
    for (const struct node *item = node_first(why, "waiting_for"); item && !*sent;
         item = item->next) {
        str kind = member_str(item, "kind");

        if (str_is(kind, "approval"))
            TRY(decide_gate(trial, id, member_str(item, "name"), sent));
        else if (str_is(kind, "child") && depth < FAMILY_DEPTH_MAX)
            TRY(send_to(trial, member_str(item, "instance_id").data, depth + 1, sent));
    }
    return PAWL_OK;
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
    int64_t next_ms = pawl_next_due(p), script_ms = script_next(trial);

    if (script_ms > 0 && (next_ms < 0 || script_ms < next_ms))
        next_ms = script_ms;
    *wait_ms = wait_before(trial, next_ms);
    trial->span_ms += next_ms > 0 ? next_ms : 0;
    return *wait_ms == 0 ? pawl_test_advance(p, next_ms, &trial->cli->scope.error) : PAWL_OK;
}

/* Nothing will ever be sent to it: many turns at once, since each look costs more than a turn. */
static bool is_silent(const struct trial *trial)
{
    for (uint32_t i = 0; i < trial->script_count; i++)
        if (!trial->script[i].is_sent)
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
                              SPAN_MAX_MS - trial->span_ms, &moved_ms, &trial->cli->scope.error);
    trial->span_ms += moved_ms;
    return status;
}

/* Let everything that is under way come to rest, and set how much of its time has passed. */
static pawl_status settle(struct trial *trial, const char *id)
{
    struct node *answer, *instance;
    int64_t now_ms, begun_ms;

    TRY(cli_ask(trial->cli, "test.advance", WITH({ "by", STR("0ms") }), &answer));
    TRY(cli_ask_id(trial->cli, "instance.get", id, &instance));
    if (time_parse(member_str(answer, "now"), &now_ms) &&
        time_parse(member_str(instance, "instantiated_at"), &begun_ms))
        trial->span_ms = now_ms - begun_ms;
    return PAWL_OK;
}

pawl_status trial_go_on(struct trial *trial, const char *id, int64_t *wait_ms)
{
    bool sent = false;

    *wait_ms = 0;
    if (!trial->is_settled)
        TRY(settle(trial, id));
    if (is_silent(trial)) {
        trial->is_settled = true;
        return move_far(trial, id, wait_ms);
    }
    TRY(send_to(trial, id, 0, &sent));
    trial->is_settled = !sent;
    return sent ? PAWL_OK : move_clock(trial, wait_ms);
}

/* ---- Its store ---- */

/* A store whose instances live by the real clock would have their time moved for good. */
pawl_status trial_store(struct cli *cli)
{
    static const char query[] = "select exists (select 1 from pawl_instance) and not exists "
                                "(select 1 from pawl_meta where key = 'test_now'"
                                " union all select 1 from pawl_kept where what = -11"
                                " and id = 'test')";
    const char *file = store_file(cli->store);
    const struct node *first = NULL;
    pawl_status status;

    if (!file || access(file, F_OK) != 0)
        return PAWL_OK;
    status = target_open(cli, USE_READ, NULL);
    if (status == PAWL_OK)
        status = sql_first(cli, query, &first);
    target_close(cli);
    if (first && str_is(first->raw, "1"))
        return scope_fail(&cli->scope, PAWL_CONFLICT,
                          "%s has run by the real clock, which --test would move for good; name "
                          "another store, or none",
                          cli->store);
    return status;
}

pawl_status trial_init(struct trial *trial, struct cli *cli)
{
    *trial = (struct trial){ .cli = cli };
    scope_init(&trial->scope, &heap_libc, CLI_MEMORY_MAX);
    return script_read(trial);
}

void trial_fini(struct trial *trial)
{
    scope_fini(&trial->scope);
}
