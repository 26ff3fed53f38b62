/* recover.c - after a death: what lags is read from the tail of the log, what ran is lost. */
#include "engine/parts.h"

/* One record of the tail: its instance's row is older than this. */
static pawl_status note_tail(void *context, const struct record *record)
{
    struct engine *engine = context;
    struct head *cached, head = { .instance = record->instance,
                                  .pos = record->pos,
                                  .seq = (uint32_t)record->seq,
                                  .skip = SKIP_UNKNOWN,
                                  .flags = HEAD_RAW };
    bool ok;

    if (!record->instance || (PLANTED(TAIL_CUT) && record->pos == engine->writer.tip.pos))
        return PAWL_OK;
    guard_lock(&engine->lock);
    cached = heads_find(&engine->writer.heads, record->instance);
    if (!cached && record->what < 0 && record->what != CONTROL_CREATE) {
        guard_unlock(&engine->lock);
        return PAWL_OK; /* a pause: it was written with its row */
    }
    if (cached)
        head = *cached;
    head.pos = record->pos;
    head.seq = (uint32_t)record->seq;
    memcpy(head.hash, record->hash, SHA_SIZE);
    if (record->what >= 0) {
        head.state = (uint16_t)record->what;
        head.flags = (uint8_t)((head.flags & ~HEAD_FRESH) | HEAD_RAW);
    } else if (record->what == CONTROL_CREATE) {
        head.flags |= HEAD_FRESH;
    }
    cached = heads_add(&engine->writer.heads, &head);
    ok = cached && heads_mark_dirty(&engine->writer.heads, cached);
    guard_unlock(&engine->lock);
    return ok ? PAWL_OK : PAWL_NO_MEMORY;
}

pawl_status recover_tail(struct engine *engine, struct scope *scope)
{
    pawl_status status = PAWL_OK;

    if (engine->writer.tip.flushed < engine->writer.tip.pos)
        status = store_scan(engine->store, scope, engine->writer.tip.flushed + 1, note_tail, engine);
    if (status)
        return status == PAWL_NO_MEMORY ? scope_no_memory(scope) : status;
    guard_lock(&engine->lock);
    engine->writer.heads.is_whole = true;
    guard_unlock(&engine->lock);
    return PAWL_OK;
}

/* Others read the clock meanwhile, and it knows the time of the last record. */
void engine_set_tip(struct engine *engine, const struct store_tip *tip)
{
    guard_lock(&engine->lock);
    engine->writer.tip = *tip;
    if (!tip->pos)
        root_first(engine->writer.sha, tip->store_id, engine->writer.tip.root);
    clock_copy_tip(engine);
    guard_unlock(&engine->lock);
}

uint32_t engine_last_definition(struct engine *engine)
{
    uint32_t last;

    guard_lock(&engine->lock);
    last = engine->writer.tip.last_definition;
    guard_unlock(&engine->lock);
    return last;
}

pawl_status recover(struct engine *engine, struct scope *scope)
{
    struct standing_row *amends;
    struct store_tip tip;
    uint32_t count = 0;

    TRY(store_tip(engine->store, scope, &tip));
    engine_set_tip(engine, &tip);
    writer_note_highest(engine);
    guard_lock(&engine->lock);
    if (engine->options.test_clock && engine->clock.test_now_ms < tip.test_now_ms)
        engine->clock.test_now_ms = tip.test_now_ms;
    engine->clock.next_due_ms = engine->clock.next_wall_ms = INT64_MIN; /* unknown: ask the store */
    guard_unlock(&engine->lock);
    TRY(store_standing_list(engine->store, scope, LIFE_T_AMEND, 1, &amends, &count));
    engine->actors.has_amends = engine->actors.has_amends || count > 0 || !engine->options.own;
    return recover_tail(engine, scope);
}

/* Its worker lives on and gets a full period; and what was started by a commit of which we did
 * not know that it happened is watched over, so that it is tried again after its time. */
static void watch_again(struct engine *engine, uint64_t number, const struct live_step *step)
{
    struct lease lease = { .instance = number,
                           .ordinal = step->ordinal,
                           .length_ms = step->lease_ms > 0 ? step->lease_ms : LEASE_DEFAULT_MS };

    if (step->lease.size == LEASE_HASH_SIZE)
        memcpy(lease.hash, step->lease.data, LEASE_HASH_SIZE);
    else if (step->lease.size == LEASE_TOKEN_SIZE) /* written when rows held the token itself */
        lease_hash(engine, step->lease, lease.hash);
    lease_add(engine, &lease);
}

static bool has_timer(const struct live *live, uint32_t ordinal)
{
    for (uint32_t i = 0; i < live->timer_count; i++)
        if (live->timers[i].ordinal == ordinal)
            return true;
    return false;
}

/* A running step: a worker elsewhere has it, or it died with its process, or it runs here. If no
 * worker is known, its lease is watched. */
static bool recover_running(struct engine *engine, uint64_t number, const struct live *live,
                            const struct live_step *step, bool after_death)
{
    bool is_elsewhere =
        step->lease.size == LEASE_HASH_SIZE || step->lease.size == LEASE_TOKEN_SIZE;
    struct event lost = { .kind = EVENT_STEP_LOST, .ordinal = step->ordinal, .is_leased = true };

    ASSERT_LOCKED(engine);
    if (after_death && !is_elsewhere)
        return mail_send(engine, mail_to(engine, number, &lost));
    if (after_death ||
        (!lease_is_watched(engine, number, step->ordinal) && !has_timer(live, step->ordinal)))
        watch_again(engine, number, step);
    return true;
}

/* What the ready steps of an instance wait for. */
struct waiting_room {
    uint64_t *since;                     /* by step; 0: it is not ready */
    const struct definition *definition; /* a flow's, the one in force; NULL: its memory knows */
    str creator, input;
};

static pawl_status find_room(struct engine *engine, struct scope *scope, uint64_t number,
                             const struct live *live, struct waiting_room *out)
{
    struct definition_slot *slot;
    struct instance_row row;
    struct head head = { .instance = number };

    TRY(ages_look(engine, scope, number, live, &out->since));
    TRY(store_instance(engine->store, scope, number, &row));
    TRY(definitions_get(engine, scope, row.definition, &slot));
    if (slot->definition->kind != KIND_FLOW)
        return PAWL_OK;
    out->definition = slot->definition;
    memcpy(head.random, row.random, sizeof head.random);
    if (engine->actors.has_amends)
        TRY(amended_definition(engine, scope, &head, &out->definition));
    TRY(value_text(engine, scope, row.creator, &out->creator));
    return flow_definition_has_quotas(out->definition)
               ? value_text(engine, scope, row.input, &out->input)
               : PAWL_OK;
}

/* To the queue of its tool at once, where a claim finds it; otherwise its start decides. */
static bool recover_waiting(struct engine *engine, struct scope *scope, uint64_t number,
                            const struct live_step *step, uint64_t since,
                            const struct waiting_room *room)
{
    str tool = room->definition ? work_step_tool(room->definition, step->plan) : STR_NONE;
    struct flow_quotas quotas = { 0 };

    if (room->input.data &&
        flow_quotas_of(room->definition, step->plan, room->input, scope, &quotas))
        return false;
    return tool.data ? steps_wait_again(engine, tool, room->creator, number, step->ordinal, since,
                                        quotas.priority)
                     : steps_add_ready(engine, number, step->ordinal, since, 0);
}

static bool has_ready(const struct live *live)
{
    for (uint32_t i = 0; i < live->step_count; i++)
        if (live->steps[i].status == STEP_READY)
            return true;
    return false;
}

/* Attempts of one instance: ready ones wait, running ones have a worker, or lost theirs. */
static pawl_status recover_live(struct engine *engine, struct scope *scope, uint64_t number,
                                const struct live *live, bool after_death)
{
    struct waiting_room room = { 0 };
    bool kept = true;

    if (has_ready(live))
        TRY(find_room(engine, scope, number, live, &room));
    guard_lock(&engine->lock);
    for (uint32_t i = 0; i < live->step_count && kept; i++) {
        const struct live_step *step = &live->steps[i];

        if (step->status == STEP_READY)
            kept = recover_waiting(engine, scope, number, step, room.since[i], &room);
        else if (step->status == STEP_RUNNING)
            kept = recover_running(engine, number, live, step, after_death);
    }
    guard_unlock(&engine->lock);
    return kept ? PAWL_OK : scope_no_memory(scope);
}

pawl_status recover_instance(struct engine *engine, struct scope *scope, uint64_t number)
{
    struct live live;

    TRY(store_live(engine->store, scope, number, &live));
    return recover_live(engine, scope, number, &live, false);
}

#define BUSY_AT_ONCE 100u

static pawl_status recover_all(struct engine *engine, struct scope *scope, bool after_death)
{
    uint64_t after = 0;
    uint32_t count;
    struct busy_row *rows;
    struct scope page, one; /* there may be many, and nothing of one is needed for the next */
    pawl_status status;

    scope_init(&page, engine->heap, LIMIT_SCOPE);
    scope_init(&one, engine->heap, LIMIT_SCOPE);
    do {
        scope_clear(&page);
        status = store_busy(engine->store, &page, after, false, BUSY_AT_ONCE, &rows, &count);
        if (status)
            scope->error = page.error;
        for (uint32_t i = 0; i < count && !status; i++) {
            scope_clear(&one);
            after = rows[i].instance;
            status = recover_live(engine, &one, after, &rows[i].live, after_death);
            if (status)
                scope->error = one.error;
        }
    } while (!status && count == BUSY_AT_ONCE);
    scope_fini(&one);
    scope_fini(&page);
    return status;
}

pawl_status recover_steps(struct engine *engine, struct scope *scope)
{
    engine->actors.ended_lost = true; /* not all ends may have been reported to parents */
    return recover_all(engine, scope, true);
}

/* One that is found twice does no harm: it can be started only once. */
void recover_ready(struct engine *engine)
{
    struct scope scope;
    pawl_status status;

    scope_init(&scope, engine->heap, LIMIT_SCOPE);
    guard_lock(&engine->lock);
    steps_forget_ready(engine);
    engine->work.ready_lost = false; /* what is lost from here on is looked for once more */
    guard_unlock(&engine->lock);
    status = quotas_mend(engine, &scope);
    if (!status)
        status = recover_all(engine, &scope, false);
    guard_lock(&engine->lock);
    /* Not now: a host that asks when there is something to do must not be told "now". */
    if (status || quotas_are_doubted(engine))
        steps_lose_ready(engine);
    shell_changed(engine);
    guard_unlock(&engine->lock);
    scope_fini(&scope);
}

static void say_replaced(struct engine *engine, const struct head_witness *witness)
{
    char words[HEALTH_WORDS];

    witness_words(witness, words, sizeof words);
    engine_log(engine, PAWL_LOG_WARN, "store.replaced", words);
}

/* Compares the log with what FILE-head remembers of it. */
void engine_ask_witness(struct engine *engine, struct scope *scope)
{
    struct head_witness witness;
    char words[HEALTH_WORDS / 2];

    if (store_witness(engine->store, scope, STR_NONE, &witness) != PAWL_OK)
        return;
    if (witness.verdict == WITNESS_SET_ASIDE)
        say_replaced(engine, &witness);
    if (!witness_is_against(&witness))
        return;
    witness_words(&witness, words, sizeof words);
    health_set(engine, HEALTH_WENT_BACK,
               "%s. If an older copy was restored on purpose, run `pawl doctor --accept-head`; "
               "otherwise keep these files, and search for the newer ones",
               words);
}

/* Close, open, replay. Steps under way in this process go on: they have not died. */
pawl_status engine_reopen(struct engine *engine)
{
    struct scope scope;
    pawl_status status;

    scope_init(&scope, engine->heap, LIMIT_SCOPE);
    status = store_reopen(engine->store, &scope);
    if (!status)
        status = recover(engine, &scope);
    if (!status)
        engine_ask_witness(engine, &scope);
    if (!status && engine->options.own) { /* what the commit of an unknown outcome did */
        guard_lock(&engine->lock);
        engine->work.ready_lost = engine->actors.ended_lost = true;
        quotas_doubt(engine);
        guard_unlock(&engine->lock);
    }
    if (status == PAWL_IN_USE)
        engine->writer.is_taken = true;
    engine_log(engine, status ? PAWL_LOG_ERROR : PAWL_LOG_WARN,
               !status                                              ? "store.reopened"
               : engine->store->may_return && status != PAWL_IN_USE ? "store.away"
               : engine->options.member                             ? "shard.lost"
                                                                    : "store.lost",
               status ? scope.error.message : "after an unknown outcome");
    scope_fini(&scope);
    return status;
}
