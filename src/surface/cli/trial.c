/* trial.c - `run --test`: time that does not have to be waited for. The clock is moved to whatever
 * falls due next, but not before everything that was told on the command line (--signal, --fire,
 * --complete, --approve, --reject) has been said to whoever waits for it. */
#include "surface/cli/trial.h"
#include "api/world.h"
#include "base/time.h"
#include "surface/cli/view.h"
#include <unistd.h>

#define FAMILY_DEPTH_MAX 32
#define SPAN_MAX_MS      (INT64_C(10) * 365 * 24 * 3600 * 1000) /* for a flow that never ends */
#define ROWS_WAIT_MS     5
#define TURNS_AT_ONCE    1000

struct decided { /* a gate to which everybody has said what they were named for */
    struct decided *next;
    str step;
};

static pawl_status ask(struct trial *trial, const char *operation, struct buf *input,
                       struct node **out)
{
    json_close(input, '}');
    return target_ask(trial->cli, &trial->scope, operation, input, out, NULL);
}

/* ---- What it waits for, said by us ---- */

/* The attempt that waits under this name. */
static pawl_status find_pending(struct trial *trial, str id, str name, str *out)
{
    struct node *answer;
    const struct node *steps;
    struct buf input;
    pawl_status status;

    *out = STR_NONE;
    input_init(&input);
    json_put_str(&input, "instance_id", id);
    status = ask(trial, "instance.steps", &input, &answer);
    steps = status == PAWL_OK ? node_find(answer, "steps") : NULL;
    for (const struct node *step = steps ? steps->first : NULL; step; step = step->next)
        if (str_eq(member_str(step, "name"), name) && str_is(member_str(step, "status"), "pending"))
            *out = member_str(step, "step_id");
    return status;
}

static void put_json(struct buf *input, const char *member, str json)
{
    if (!json.data)
        return;
    json_put_raw(input, member, json);
}

static pawl_status send_signal(struct trial *trial, str id, struct told *told)
{
    struct node *answer;
    struct buf input;

    input_init(&input);
    json_put_str(&input, "instance_id", id);
    json_put_str(&input, "name", told->name);
    put_json(&input, "payload", told->json);
    told->is_said = true;
    return ask(trial, "signal.send", &input, &answer);
}

/* What the action asks of whoever fires it. */
static pawl_status put_demands(struct trial *trial, str id, str action, struct buf *input)
{
    struct node *instance;
    const struct node *list;
    pawl_status status =
        target_ask_id(trial->cli, &trial->scope, "instance.get", id.data, &instance, NULL);

    list = status == PAWL_OK ? node_find(instance, "actions") : NULL;
    for (const struct node *item = list ? list->first : NULL; item; item = item->next) {
        const struct node *guard = node_find(item, "guard");
        const struct node *reason = node_find(item, "requires_reason");

        if (!str_eq(member_str(item, "action"), action))
            continue;
        if (guard && !str_is(guard->raw, "null"))
            put_json(input, "guard_satisfied", STR("true"));
        if (reason && str_is(reason->raw, "true"))
            json_put_str(input, "reason", STR("told by --fire"));
    }
    return status;
}

static pawl_status fire(struct trial *trial, str id, struct told *told)
{
    const char *actor = args_option(trial->cli, "actor");
    struct node *answer;
    struct buf input;
    pawl_status status;

    input_init(&input);
    status = put_demands(trial, id, told->name, &input);
    if (status != PAWL_OK) {
        buf_fini(&input);
        return status;
    }
    json_put_str(&input, "instance_id", id);
    json_put_str(&input, "action", told->name);
    if (actor)
        json_put_str(&input, "actor_ref", str_of(actor));
    put_json(&input, "payload", told->json);
    told->is_said = true;
    return ask(trial, "instance.fire", &input, &answer);
}

/* Somebody outside ends an external step. One that a tool works on is left to it, and one that
 * waits for its next attempt (lease-lost) is told when that has begun. */
static pawl_status complete(struct trial *trial, str id, struct told *told)
{
    struct node *answer;
    struct buf input;
    str step;
    pawl_status status = find_pending(trial, id, told->name, &step);

    if (status != PAWL_OK || !step.data)
        return status;
    input_init(&input);
    json_put_str(&input, "step_id", step);
    put_json(&input, told->is_failure ? "error" : "result", told->json);
    status = ask(trial, told->is_failure ? "step.fail" : "step.complete", &input, &answer);
    told->is_said = status != PAWL_LEASE_LOST;
    if (status != PAWL_LEASE_LOST)
        return status;
    trial->scope.error = (pawl_error){ .status = PAWL_OK };
    return PAWL_OK;
}

static bool is_awaited(const struct told *told, const struct node *list)
{
    for (const struct node *item = list ? list->first : NULL; item; item = item->next)
        if (str_is(member_str(item, "kind"), told_awaited(told)) &&
            str_eq(member_str(item, "name"), told->name))
            return true;
    return false;
}

/* The first that this instance waits for, in the order given. */
static pawl_status say_told(struct trial *trial, str id, const struct node *list, bool *said)
{
    pawl_status (*const say[])(struct trial *, str, struct told *) = {
        [TOLD_SIGNAL] = send_signal, [TOLD_FIRE] = fire, [TOLD_COMPLETE] = complete
    };
    pawl_status status = PAWL_OK;

    for (uint32_t i = 0; i < trial->told_count && status == PAWL_OK && !*said; i++) {
        struct told *told = &trial->told[i];

        if (told->is_said || told->at_ms > trial->span_ms || !is_awaited(told, list))
            continue;
        status = say[told->kind](trial, id, told);
        *said = told->is_said;
    }
    return status;
}

/* A stranger to this gate is not counted; another may be meant. */
static pawl_status decide_as(struct trial *trial, const struct given *given, str step, bool *said)
{
    bool approves = strcmp(given->option->name, "approve") == 0;
    struct node *answer;
    struct buf input;
    pawl_status status;

    input_init(&input);
    json_put_str(&input, "step_id", step);
    json_put_str(&input, "actor_ref", str_of(given->value));
    status = ask(trial, approves ? "step.approve" : "step.reject", &input, &answer);
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

/* Everybody who was named says so, in the order given, to every gate once. */
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

/* To the instance and to whom it waits for. */
static pawl_status say_to(struct trial *trial, str id, uint32_t depth, bool *said)
{
    struct node *why;
    const struct node *list;
    pawl_status status =
        target_ask_id(trial->cli, &trial->scope, "instance.why", id.data, &why, NULL);

    list = status == PAWL_OK ? node_find(why, "waiting_for") : NULL;
    if (status == PAWL_OK)
        status = say_told(trial, id, list, said);
    for (const struct node *item = list ? list->first : NULL; item && status == PAWL_OK && !*said;
         item = item->next) {
        str kind = member_str(item, "kind");

        if (str_is(kind, "approval"))
            status = decide_gate(trial, id, member_str(item, "name"), said);
        else if (str_is(kind, "child") && depth < FAMILY_DEPTH_MAX)
            status = say_to(trial, member_str(item, "instance_id"), depth + 1, said);
    }
    return status;
}

/* ---- Time ---- */

/* To what falls due next. Due at once are only rows that lag: they are written when nobody moves.
 */
static pawl_status move_clock(struct trial *trial, int64_t *wait_ms)
{
    pawl *p = trial->cli->target.local;
    int64_t next_ms = pawl_next_due(p), told_ms = told_next(trial);

    if (told_ms > 0 && (next_ms < 0 || told_ms < next_ms))
        next_ms = told_ms;
    trial->span_ms += next_ms > 0 ? next_ms : 0;
    if (next_ms < 0 || trial->span_ms > SPAN_MAX_MS)
        *wait_ms = TRIAL_STUCK;
    else
        *wait_ms = next_ms > 0 ? 0 : ROWS_WAIT_MS;
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

    if (next_ms < 0 || trial->span_ms + next_ms > SPAN_MAX_MS)
        *wait_ms = TRIAL_STUCK;
    else
        *wait_ms = next_ms > 0 ? 0 : ROWS_WAIT_MS;
    if (*wait_ms != 0)
        return PAWL_OK;
    status = world_take_turns(trial->cli->target.local, id, TURNS_AT_ONCE,
                              SPAN_MAX_MS - trial->span_ms, &moved_ms, &trial->scope.error);
    trial->span_ms += moved_ms;
    return status;
}

/* Let everything that is under way come to rest; tells how much of its time has passed. */
static pawl_status settle(struct trial *trial, const char *id)
{
    struct node *answer, *instance;
    struct buf input;
    int64_t now_ms, begun_ms;
    pawl_status status;

    input_init(&input);
    json_put_str(&input, "by", STR("0ms"));
    status = ask(trial, "test.advance", &input, &answer);
    if (status == PAWL_OK)
        status = target_ask_id(trial->cli, &trial->scope, "instance.get", id, &instance, NULL);
    if (status == PAWL_OK && time_parse(member_str(answer, "now"), &now_ms) &&
        time_parse(member_str(instance, "instantiated_at"), &begun_ms))
        trial->span_ms = now_ms - begun_ms;
    return status;
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
    struct node *answer;
    const struct node *row;
    struct buf input;
    pawl_status status = target_open(cli, USE_READ, NULL);

    input_init(&input);
    json_put_str(&input, "text", str_of(query));
    json_close(&input, '}');
    if (status == PAWL_OK)
        status = target_ask(cli, &cli->scope, "store.sql", &input, &answer, NULL);
    else
        buf_fini(&input);
    target_close(cli);
    if (status != PAWL_OK)
        return status;
    row = node_find(answer, "rows") ? node_find(answer, "rows")->first : NULL;
    if (row && row->first && str_is(row->first->raw, "1"))
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
