/* witness_act.c - does the acts of a scenario, one by one, and notes what each promises. */
#include "fault/scenario_int.h"
#include <stdio.h>

static const struct act *act_at(const struct witness *w)
{
    return &w->scenario->acts[w->next];
}

/* A machine or code that is held takes nothing; what runs of a flow may end. */
static bool takes_nothing(const struct witness *w, const struct seen *seen)
{
    return w->scenario->is_exact && seen->is_held && !seen->may_turn;
}

static void give_room(struct witness *w)
{
    for (uint32_t i = 0; i < INSTANCES_MAX; i++)
        w->instances[i].room = takes_nothing(w, &w->instances[i]) ? 0 : ENTRIES_MAX;
}

/* Anything may come of it: time was moved, or a flow has begun. */
static void open_all(struct witness *w)
{
    w->is_open = true;
    give_room(w);
}

/* ---- Fires ---- */

static pawl_fire_args args_of(const struct witness *w, const struct act *act, uint32_t before)
{
    const struct seen *seen = &w->instances[act->of];

    return (pawl_fire_args){ .action = act->name,
                             .payload = act->payload,
                             .reason = act->reason,
                             .actor_ref = "ann",
                             .guard_satisfied = act->guard,
                             .expected_sequence =
                                 act->expects ? seen_known(seen) + before + 1 : 0 };
}

static pawl_status fire(struct witness *w, const struct act *act)
{
    struct seen *seen = &w->instances[act->of];
    pawl_fire_args args = args_of(w, act, 0);
    pawl_fired fired = { 0 };
    pawl_status status = act->kind == ACT_CANCEL
                             ? pawl_cancel(w->p, seen->id, "ann", "enough", &fired, &witness_error)
                             : pawl_fire(w->p, seen->id, &args, &fired, &witness_error);

    if (status == PAWL_OK) {
        EXPECT_EQ(fired.sequence_number, seen_known(seen) + 1);
        seen->promised = seen_known(seen) + 1;
        seen->is_held = false; /* it takes cancel alone, and has ended */
    }
    return status;
}

/* How many of the batch's first `count` fires at `instance` are accepted. */
static uint32_t accepted(const struct act *fires, uint32_t count, uint32_t instance)
{
    uint32_t result = 0;

    for (uint32_t i = 0; i < count && fires[i].kind != ACT_END; i++)
        result += fires[i].of == instance && !fires[i].refusal;
    return result;
}

/* A batch that is done has answered each fire as it should. */
static void check_fires(struct witness *w, const struct act *act, const pawl_batch_fire *fires,
                        uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        const struct act *one = &act->fires[i];

        if (fires[i].status != one->refusal)
            test_fail(__FILE__, __LINE__, "%s: fire %u of the batch: answered %s",
                      w->scenario->name, i, pawl_status_name(fires[i].status));
        if (fires[i].status == PAWL_OK)
            EXPECT_EQ(fires[i].fired.sequence_number,
                      seen_known(&w->instances[one->of]) + accepted(act->fires, i, one->of) + 1);
    }
    for (uint32_t i = 0; i < INSTANCES_MAX; i++)
        w->instances[i].promised = seen_known(&w->instances[i]) + accepted(act->fires, count, i);
}

static pawl_status fire_batch(struct witness *w, const struct act *act)
{
    pawl_batch_fire fires[FIRES_MAX] = { 0 };
    uint32_t count = 0;
    pawl_status status;

    for (; act->fires[count].kind != ACT_END; count++) {
        const struct act *one = &act->fires[count];

        EXPECT(count < FIRES_MAX);
        fires[count] =
            (pawl_batch_fire){ .id = w->instances[one->of].id,
                               .args = args_of(w, one, accepted(act->fires, count, one->of)) };
    }
    status = pawl_fire_batch(w->p, fires, count, &witness_error);
    if (status == PAWL_OK)
        check_fires(w, act, fires, count);
    return status;
}

/* ---- The others ---- */

static pawl_status create(struct witness *w, const struct act *act)
{
    pawl_create_args args = { .definition = w->scenario->definition,
                              .input = w->scenario->input,
                              .labels = "{\"of\":\"test\"}" };
    char subject[8];
    pawl_id id;
    pawl_status status;

    if (act->create)
        args = *act->create;
    snprintf(subject, sizeof subject, "S-%u", act->of + 1);
    args.subject_ref = subject;
    status = pawl_create(w->p, &args, &id, &witness_error);
    if (status == PAWL_OK) {
        memcpy(w->instances[act->of].id, id.text, sizeof id.text);
        open_all(w); /* a flow begins at once */
    }
    return status;
}

static uint32_t version_of(const struct act *act)
{
    return act->version ? act->version : 1;
}

static pawl_status define(struct witness *w, const struct act *act)
{
    const char *source = act->source ? act->source : w->scenario->source;
    pawl_defined defined;
    pawl_status status = pawl_define(w->p, source, strlen(source), &defined, &witness_error);

    if (status == PAWL_OK) {
        EXPECT_EQ(defined.version, version_of(act));
        w->version = defined.version;
    }
    return status;
}

static pawl_status signal_it(struct witness *w, const struct act *act)
{
    pawl_status status = pawl_signal(w->p, w->instances[act->of].id, act->name, act->payload,
                                     SIGNALLER, &witness_error);

    if (status == PAWL_OK)
        open_all(w);
    return status;
}

static pawl_status advance(struct witness *w, const struct act *act)
{
    pawl_status status;

    env_sim_advance(w->env, act->by_ms); /* real time passes too: a pause after a failure */
    open_all(w);
    status = pawl_test_advance(w->p, act->by_ms, &witness_error);
    w->is_late = status != PAWL_OK;
    return status;
}

/* What was to be fired by a call that failed is fired by whoever comes by next; and so is what fell
 * due while it was held. */
pawl_status witness_sweep(struct witness *w)
{
    pawl_status status;

    if (w->is_late || !w->scenario->is_exact)
        open_all(w);
    status = pawl_run_due(w->p, &witness_error);
    w->is_late = w->is_late && status != PAWL_OK;
    return status;
}

static pawl_status hold(struct witness *w, const struct act *act)
{
    bool holds = act->kind == ACT_PAUSE;
    struct seen *seen = &w->instances[act->of];
    char input[64], *text = NULL;
    pawl_status status;

    snprintf(input, sizeof input, "{\"instance_id\":\"%s\"}", seen->id);
    status =
        pawl_call(w->p, holds ? "instance.pause" : "instance.resume", input, &text, &witness_error);
    pawl_free(w->p, text);
    w->is_late = w->is_late || !holds;
    if (status == PAWL_OK) {
        seen->is_held = holds;
        if (!holds)
            open_all(w); /* a flow goes on at once */
    }
    return status;
}

pawl_status witness_do(struct witness *w, const struct act *act)
{
    if (!w->scenario->is_exact)
        give_room(w); /* a flow goes on with any call: what was lost is told, and tried again */
    switch (act->kind) {
    case ACT_END:
        break;
    case ACT_DEFINE:
        return define(w, act);
    case ACT_CREATE:
        return create(w, act);
    case ACT_FIRE:
    case ACT_CANCEL:
        return fire(w, act);
    case ACT_BATCH:
        return fire_batch(w, act);
    case ACT_SIGNAL:
        return signal_it(w, act);
    case ACT_ADVANCE:
        return advance(w, act);
    case ACT_PAUSE:
    case ACT_RESUME:
        return hold(w, act);
    case ACT_SWEEP:
        return witness_sweep(w);
    }
    return PAWL_INVALID_REQUEST;
}

/* ---- One act, whatever comes of it ---- */

/* After an unknown outcome: did it happen? Moving time and sweeping twice does no harm. */
static bool has_happened(const struct witness *w, const struct act *act, const uint32_t *before)
{
    const struct seen *seen = &w->instances[act->of];
    bool has_grown = false;

    for (uint32_t i = 0; i < INSTANCES_MAX; i++)
        has_grown = has_grown || w->instances[i].count > before[i];
    switch (act->kind) {
    case ACT_DEFINE:
        return w->version >= version_of(act);
    case ACT_CREATE:
        return seen->id[0] != '\0';
    case ACT_FIRE:
    case ACT_CANCEL:
    case ACT_BATCH:
        return has_grown;
    case ACT_SIGNAL:
        return seen->has_heard;
    case ACT_PAUSE:
    case ACT_RESUME:
        return seen->is_held == (act->kind == ACT_PAUSE);
    case ACT_ADVANCE:
    case ACT_SWEEP:
    case ACT_END:
        break;
    }
    return false;
}

/* What may be there after an unknown outcome. */
static void leave_open(struct witness *w, const struct act *act)
{
    w->is_open = true;
    w->unknowns++;
    w->instances[act->of].may_turn = w->instances[act->of].is_held || act->kind == ACT_PAUSE;
    if (act->kind == ACT_BATCH)
        for (uint32_t i = 0; i < INSTANCES_MAX; i++)
            w->instances[i].room = accepted(act->fires, FIRES_MAX, i);
    else if (act->kind == ACT_FIRE || act->kind == ACT_CANCEL)
        w->instances[act->of].room = !act->refusal;
    else if (act->kind == ACT_CREATE || act->kind == ACT_SIGNAL || act->kind == ACT_RESUME)
        open_all(w);
}

static void note_refusal(struct witness *w, const struct act *act, pawl_status status)
{
    witness_expect_honest(w, "acting", status);
    w->refusals++;
    if (status == PAWL_OUTCOME_UNKNOWN)
        leave_open(w, act);
}

static void note_known(const struct witness *w, uint32_t *out)
{
    for (uint32_t i = 0; i < INSTANCES_MAX; i++)
        out[i] = seen_known(&w->instances[i]);
}

/* Years ahead or back, or to the next millisecond; but not before the creation of an instance that
 * is fired now, which would be rejected. */
static void jump(struct witness *w, const struct act *act)
{
    int64_t wall_ms;

    static const int64_t by_ms[] = {
        0, 1, -1, 60000, -60000, INT64_C(31536000000), -INT64_C(31536000000)
    };

    w->jumps = w->jumps * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    wall_ms = w->env->now_ms(w->env) + by_ms[(w->jumps >> 33) % (sizeof by_ms / sizeof *by_ms)];
    if (act->kind == ACT_CREATE || wall_ms < w->newest_ms)
        w->newest_ms = wall_ms = wall_ms > w->newest_ms ? wall_ms : w->newest_ms;
    env_sim_set_wall(w->env, wall_ms);
}

/* An act whose outcome is not known and can't be looked up ends the round: it is looked up by
 * whoever opens the store next. */
bool witness_act_once(struct witness *w)
{
    const struct act *act = act_at(w);
    uint32_t before[INSTANCES_MAX];
    pawl_status status;
    bool is_done, was_unknown, can_look;

    note_known(w, before);
    if (w->jumps)
        jump(w, act);
    status = witness_do(w, act);
    is_done = act->kind == ACT_BATCH ? status == PAWL_OK : status == act->refusal;
    if (!is_done)
        note_refusal(w, act, status);
    was_unknown = status == PAWL_OUTCOME_UNKNOWN;
    can_look = witness_look(w) || witness_look(w); /* what fails once works the second time */
    if (is_done || (was_unknown && can_look && has_happened(w, act, before)))
        w->next++;
    return can_look || !was_unknown;
}

/* Look up whether the act that the pawl before left open has happened. */
bool witness_catch_up(struct witness *w)
{
    uint32_t before[INSTANCES_MAX];
    bool was_open = w->is_open;

    note_known(w, before);
    if (!witness_look(w) && !witness_look(w))
        return false;
    if (act_at(w)->kind != ACT_END && was_open && has_happened(w, act_at(w), before))
        w->next++;
    return true;
}

void witness_act(struct witness *w, uint32_t refusals_max)
{
    uint32_t limit = w->refusals + refusals_max;

    if (!witness_catch_up(w))
        return;
    while (act_at(w)->kind != ACT_END && w->refusals < limit)
        if (!witness_act_once(w))
            return;
}
