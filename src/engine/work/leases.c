/* leases.c - which worker has a step, and until when it must send a sign of life.
 *
 * A lease's length and its token's hash are in the entry and in the step's row. Its end lies only
 * here, so that a heartbeat writes nothing. Nor does the progress that it brings: it lies here as
 * long as the lease, and a restart forgets it.
 * After a restart each lease of a remote worker has one full period; what ran inside the
 * process that died is lost (recover.c). A lease whose attempt is over does no harm: its answer
 * and its end are refused by the reducer, so that it need not be looked for when a step ends.
 *
 * They are counted by a clock that no one can set: a wall clock that jumps ahead must not fail all
 * that is under way, one that falls back must not keep what a dead worker held. Only in a store
 * with the test clock it is that one. Answers have times by the wall clock. */
#include "engine/parts.h"
#include "model/words.h"
#include <stdio.h>

int64_t lease_clock(struct engine *engine)
{
    return engine->options.test_clock || PLANTED(LEASE_BY_WALL) ? clock_read(engine).wall_ms
                                                                : engine->env->boot_ms(engine->env);
}

/* What falls due by this clock: leases, and limits that let steps begin. INT64_MAX: nothing. */
int64_t leases_left_ms(struct engine *engine)
{
    int64_t left_ms;

    int64_t next_ms = engine->work.next_lease_ms < engine->work.quotas.next_ms
                          ? engine->work.next_lease_ms
                          : engine->work.quotas.next_ms;

    ASSERT_LOCKED(engine);
    if (next_ms == INT64_MAX)
        return INT64_MAX;
    left_ms = next_ms - lease_clock(engine);
    return left_ms > 0 ? left_ms : 0;
}

/* ---- Found by a map ---- */

/* Different steps may have the same key: those are chained. */
static uint64_t key_of(uint64_t instance, uint32_t ordinal)
{
    uint64_t key = instance ^ ordinal * UINT64_C(0x9E3779B97F4A7C15);

    return key ? key : 1;
}

static struct lease *find(struct engine *engine, uint64_t instance, uint32_t ordinal)
{
    struct lease *leases = engine->work.leases;
    uint32_t at = map_get(&engine->work.lease_places, key_of(instance, ordinal));

    ASSERT_LOCKED(engine);
    while (at != MAP_NONE && (leases[at].instance != instance || leases[at].ordinal != ordinal))
        at = leases[at].next;
    return at == MAP_NONE ? NULL : &leases[at];
}

/* What points to the lease at `at` points to `to` from now on; MAP_NONE: to none. */
static void point(struct work *work, uint32_t at, uint32_t to)
{
    struct lease *leases = work->leases;
    uint64_t key = key_of(leases[at].instance, leases[at].ordinal);
    uint32_t before = map_get(&work->lease_places, key);

    if (before == at && to == MAP_NONE)
        map_remove(&work->lease_places, key);
    else if (before == at)
        (void)map_put(&work->lease_places, key, to); /* it has a place */
    else {
        while (leases[before].next != at)
            before = leases[before].next;
        leases[before].next = to;
    }
}

static void forget_progress(struct engine *engine, struct lease *lease)
{
    ASSERT_LOCKED(engine);
    engine->work.progress_size -= lease->progress.size;
    heap_free(engine->heap, (char *)(uintptr_t)lease->progress.data, lease->progress.size);
    lease->progress = STR_NONE;
}

/* What there is no room for is not kept: the lease is extended all the same. */
static void keep_progress(struct engine *engine, struct lease *lease, str progress)
{
    char *kept;

    ASSERT_LOCKED(engine);
    forget_progress(engine, lease);
    if (progress.size == 0 || engine->work.progress_size + progress.size > LIMIT_PROGRESS_ALL)
        return;
    kept = heap_new(engine->heap, progress.size);
    if (!kept)
        return;
    memcpy(kept, progress.data, progress.size);
    lease->progress = (str){ kept, progress.size };
    lease->progress_ms = clock_read(engine).wall_ms;
    engine->work.progress_size += progress.size;
}

/* The last one takes its place. */
static void remove_lease(struct engine *engine, struct lease *lease)
{
    struct work *work = &engine->work;
    uint32_t at = (uint32_t)(lease - work->leases), last = work->lease_count - 1;

    ASSERT_LOCKED(engine);
    forget_progress(engine, lease);
    point(work, at, lease->next);
    if (at != last)
        point(work, last, at);
    *lease = work->leases[last];
    work->lease_count--;
}

/* Room for what is under way and `more`: asked for before a step is started, so that one that
 * was started is always watched over. */
bool leases_make_room(struct engine *engine, uint32_t more)
{
    struct work *work = &engine->work;
    uint32_t wanted = work->lease_count + work->jobs_under_way + more;

    ASSERT_LOCKED(engine);
    return map_reserve(&work->lease_places, wanted) &&
           HEAP_GROW(engine->heap, work->leases, work->lease_capacity, wanted);
}

/* There is room for it. */
static struct lease *new_lease(struct work *work, uint64_t instance, uint32_t ordinal)
{
    uint64_t key = key_of(instance, ordinal);
    struct lease *lease = &work->leases[work->lease_count];

    lease->next = map_get(&work->lease_places, key);
    (void)map_put(&work->lease_places, key, work->lease_count++);
    return lease;
}

void lease_add(struct engine *engine, const struct lease *lease)
{
    struct work *work = &engine->work;
    struct lease *old = find(engine, lease->instance, lease->ordinal);
    bool has_room = work->lease_count < work->lease_capacity &&
                    map_has_room(&work->lease_places, work->lease_count + 1);
    uint32_t next;

    ASSERT_LOCKED(engine);
    if (!old && !has_room && !leases_make_room(engine, 1)) {
        engine_log(engine, PAWL_LOG_ERROR, "lease.unwatched", "no memory to watch over a step");
        return;
    }
    if (!old)
        old = new_lease(work, lease->instance, lease->ordinal);
    else
        forget_progress(engine, old);
    next = old->next;
    *old = *lease;
    old->next = next;
    old->expires_at_ms = lease_clock(engine) + lease->length_ms;
    old->until_ms = clock_read(engine).wall_ms + lease->length_ms;
    if (old->expires_at_ms < work->next_lease_ms)
        work->next_lease_ms = old->expires_at_ms;
}

bool lease_is_watched(struct engine *engine, uint64_t instance, uint32_t ordinal)
{
    ASSERT_LOCKED(engine);
    return find(engine, instance, ordinal) != NULL;
}

int64_t lease_until_ms(struct engine *engine, uint64_t instance, uint32_t ordinal)
{
    const struct lease *lease;
    int64_t until_ms = 0;

    guard_lock(&engine->lock);
    lease = find(engine, instance, ordinal);
    if (lease)
        until_ms = lease->until_ms;
    guard_unlock(&engine->lock);
    return until_ms;
}

pawl_status lease_progress(struct engine *engine, struct scope *scope, uint64_t instance,
                           uint32_t ordinal, str *out, int64_t *out_ms)
{
    const struct lease *lease;

    *out = STR_NONE;
    *out_ms = 0;
    guard_lock(&engine->lock);
    lease = find(engine, instance, ordinal);
    if (lease && lease->progress.data) {
        *out = arena_str(&scope->arena, lease->progress);
        *out_ms = lease->progress_ms;
    }
    guard_unlock(&engine->lock);
    return scope->arena.failed ? scope_no_memory(scope) : PAWL_OK;
}

bool lease_is_given(struct engine *engine, const struct claimed *claimed)
{
    const struct lease *lease = find(engine, claimed->instance, claimed->ordinal);

    ASSERT_LOCKED(engine);
    return lease && !lease->is_used && memcmp(lease->hash, claimed->lease, sizeof lease->hash) == 0;
}

void lease_drop(struct engine *engine, uint64_t instance, uint32_t ordinal)
{
    struct lease *lease = find(engine, instance, ordinal);

    ASSERT_LOCKED(engine);
    if (lease)
        remove_lease(engine, lease);
    if (engine->work.lease_count == 0)
        engine->work.next_lease_ms = INT64_MAX;
}

void lease_hash(struct engine *engine, str token, char out[LEASE_HASH_SIZE + 1])
{
    uint8_t sha[SHA_SIZE];

    ASSERT_LOCKED(engine);
    sha_once(engine->work.lease_sha, token, sha);
    sha_hex(sha, LEASE_HASH_SIZE / 2, out);
}

/* Compared in constant time: tokens are all that protects an answer. */
static bool is_token(struct engine *engine, const struct lease *lease, str token)
{
    unsigned difference = token.size != LEASE_TOKEN_SIZE || !lease->hash[0];
    char hash[LEASE_HASH_SIZE + 1];

    lease_hash(engine, token, hash);
    for (size_t i = 0; i < LEASE_HASH_SIZE; i++)
        difference |= (unsigned)(unsigned char)(lease->hash[i] ^ hash[i]);
    return difference == 0 || PLANTED(LEASE_UNFENCED);
}

bool lease_is_held(struct engine *engine, uint64_t instance, uint32_t ordinal, str token)
{
    const struct lease *lease;
    bool held;

    guard_lock(&engine->lock);
    lease = find(engine, instance, ordinal);
    held = lease && is_token(engine, lease, token) && lease->expires_at_ms > lease_clock(engine);
    if (held)
        workers_see(engine, lease);
    guard_unlock(&engine->lock);
    return held;
}

bool lease_extend(struct engine *engine, uint64_t instance, uint32_t ordinal, str token,
                  int64_t by_ms, str progress, int64_t *out_expires_at_ms)
{
    struct lease *lease;
    bool held;

    guard_lock(&engine->lock);
    lease = find(engine, instance, ordinal);
    held = lease && is_token(engine, lease, token) && lease->expires_at_ms > lease_clock(engine);
    if (held) {
        lease->is_used = true;
        workers_see(engine, lease);
        if (progress.data)
            keep_progress(engine, lease, progress);
        by_ms = by_ms > 0 ? by_ms : lease->length_ms;
        lease->expires_at_ms = lease_clock(engine) + by_ms;
        *out_expires_at_ms = lease->until_ms = clock_read(engine).wall_ms + by_ms;
    }
    guard_unlock(&engine->lock);
    return held;
}

/* ---- Leases that ran out ---- */

/* STR_NONE: no memory. */
static str name_worker(struct arena *arena, bool is_own, str worker)
{
    char words[WORDS_SIZE_MAX + 64];
    str name = words_shown(worker);

    if (is_own)
        (void)snprintf(words, sizeof words, "the step's own timeout ran out at the worker %.*s",
                       STR_ARG(name));
    else
        (void)snprintf(words, sizeof words, "the lease of the worker %.*s ran out", STR_ARG(name));
    return arena_str(arena, str_of(words));
}

/* The worker is not known after a restart: then the history is asked. A step that is over needs no
 * explanation: deciding refuses its timeout. */
void lease_explain(struct engine *engine, struct scope *scope, const struct actor *actor,
                   struct event *event)
{
    bool is_own = event->kind == EVENT_TIMER && str_is(event->name, "~timeout");
    str worker = STR_NONE, reason = STR_NONE;
    struct scope look; /* a name that cannot be found must not hold up the timeout */
    uint64_t starter;

    if (!is_own && (event->kind != EVENT_STEP_TIMEOUT || !event->is_leased || event->reason.data))
        return;
    if ((is_own || event->is_worker_gone) && actor->memory &&
        work_tool_of(actor->definition, actor->memory, event->ordinal).data) {
        scope_init(&look, engine->heap, LIMIT_SCOPE);
        if (!starter_find(engine, &look, actor->instance, event->ordinal, &starter) &&
            !value_text(engine, &look, starter, &worker) && worker.data)
            reason = name_worker(&scope->arena, is_own, worker);
        scope_fini(&look);
    }
    if (reason.data)
        event->reason = reason;
    if (!event->reason.data)
        event->reason = event->is_worker_gone ? STR("the lease of the worker ran out")
                                              : STR("the step's time in this process ran out");
}

static bool post_timeout(struct engine *engine, const struct lease *lease)
{
    struct event event = { .kind = EVENT_STEP_TIMEOUT,
                           .ordinal = lease->ordinal,
                           .is_leased = true,
                           .is_worker_gone = lease->hash[0] != 0,
                           .actor = STR("pawl/timer") };
    struct mail *mail = mail_to(engine, lease->instance, &event);

    if (mail && lease->worker[0])
        mail->event.reason = name_worker(&mail->own.arena, false, str_of(lease->worker));
    return mail_send(engine, mail);
}

/* One lease that has run out, taken away; else the next end is known. The lock is not released
 * meanwhile: telling an instance does that, and what is here may then be another. */
static bool take_expired(struct engine *engine, int64_t now_ms, struct lease *out)
{
    int64_t next_ms = INT64_MAX;

    ASSERT_LOCKED(engine);
    for (uint32_t i = 0; i < engine->work.lease_count; i++) {
        if (engine->work.leases[i].expires_at_ms <= now_ms) {
            *out = engine->work.leases[i];
            out->progress = STR_NONE;
            remove_lease(engine, &engine->work.leases[i]);
            return true;
        }
        if (engine->work.leases[i].expires_at_ms < next_ms)
            next_ms = engine->work.leases[i].expires_at_ms;
    }
    engine->work.next_lease_ms = next_ms;
    return false;
}

/* An expired lease is an event for its instance; without memory it is tried again. */
void leases_expire(struct engine *engine)
{
    int64_t now_ms = lease_clock(engine);
    struct lease lease;

    ASSERT_LOCKED(engine);
    while (engine->work.next_lease_ms <= now_ms && take_expired(engine, now_ms, &lease))
        if (!post_timeout(engine, &lease)) {
            lease.length_ms = RETRY_STORE_MS;
            lease_add(engine, &lease);
            return;
        }
}

void leases_forget(struct engine *engine)
{
    ASSERT_LOCKED(engine);
    map_clear(&engine->work.lease_places);
    engine->work.lease_count = 0;
    engine->work.next_lease_ms = INT64_MAX;
}

void leases_fini(struct engine *engine)
{
    map_fini(&engine->work.lease_places);
    for (uint32_t i = 0; i < engine->work.lease_count; i++)
        heap_free(engine->heap, (char *)(uintptr_t)engine->work.leases[i].progress.data,
                  engine->work.leases[i].progress.size);
    heap_free(engine->heap, engine->work.leases, engine->work.lease_capacity * sizeof *engine->work.leases);
}
