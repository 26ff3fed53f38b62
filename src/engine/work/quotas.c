/* quotas.c - limits: how many instances or calls work at once, and how many begin in a time.
 *
 * What is counted together has a bucket: by what the limit is of and its key. A step takes a
 * place in each of its buckets before it is started; those of what works at once first and then
 * the rates, always in the same order, so that steps that hold one place and wait for another
 * never wait for each other. A step that finds a bucket full waits there, the highest priority
 * and then the oldest first, and is in no other queue meanwhile: so one key's backlog is not in
 * the way of the others. A place that falls free is given to the first that waits, which returns
 * to its queue with it.
 *
 * Nothing of this is recorded. What is counted follows from the rows of steps, and what began
 * lately from the log (quota_look.c), so that a restart forgets none of it. A hold is what one
 * attempt has taken; the one with ordinal 0 is the instance's, and lists the others. It ends
 * with its row. */
#include "engine/parts.h"

#define BUCKETS_KEPT 1024u /* before those that say nothing are looked for */

/* ---- Buckets --------------------------------------------------------------------------- */

static uint64_t hash_of(str name)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325); /* FNV-1a */

    for (size_t i = 0; i < name.size; i++)
        hash = (hash ^ (unsigned char)name.data[i]) * UINT64_C(0x100000001b3);
    return hash ? hash : 1;
}

static uint32_t find_bucket(const struct quotas *quotas, str name, uint64_t hash)
{
    uint32_t at = map_get(&quotas->bucket_places, hash);

    while (at != QUOTA_NONE && !str_eq(quotas->buckets[at].name, name))
        at = quotas->buckets[at].next;
    return at;
}

static uint32_t new_bucket(struct engine *engine, str name, uint64_t hash)
{
    struct quotas *quotas = &engine->work.quotas;
    char *text = heap_new(engine->heap, name.size);
    uint32_t at = quotas->free_bucket, next = map_get(&quotas->bucket_places, hash);

    if (at == QUOTA_NONE &&
        HEAP_GROW(engine->heap, quotas->buckets, quotas->bucket_capacity, quotas->bucket_count + 1))
        at = quotas->bucket_count;
    if (!text || at == QUOTA_NONE || !map_put(&quotas->bucket_places, hash, at)) {
        heap_free(engine->heap, text, name.size);
        return QUOTA_NONE;
    }
    if (at == quotas->bucket_count)
        quotas->bucket_count++;
    else
        quotas->free_bucket = quotas->buckets[at].next;
    memcpy(text, name.data, name.size);
    quotas->buckets[at] = (struct quota_bucket){ .name = { text, name.size }, .hash = hash, .next = next };
    return at;
}

/* QUOTA_NONE: no memory. */
static uint32_t get_bucket(struct engine *engine, const struct quota *quota)
{
    struct quotas *quotas = &engine->work.quotas;
    uint64_t hash = hash_of(quota->name);
    uint32_t at = find_bucket(quotas, quota->name, hash);

    at = at == QUOTA_NONE ? new_bucket(engine, quota->name, hash) : at;
    if (at != QUOTA_NONE) { /* a newer version may have another limit */
        quotas->buckets[at].max = quota->max;
        quotas->buckets[at].per_ms = quota->per_ms;
    }
    return at;
}

static void unlink_bucket(struct quotas *quotas, uint32_t at)
{
    uint64_t hash = quotas->buckets[at].hash;
    uint32_t before = map_get(&quotas->bucket_places, hash);

    if (before == at && quotas->buckets[at].next == QUOTA_NONE)
        map_remove(&quotas->bucket_places, hash);
    else if (before == at)
        (void)map_put(&quotas->bucket_places, hash, quotas->buckets[at].next); /* it has a place */
    else {
        while (quotas->buckets[before].next != at)
            before = quotas->buckets[before].next;
        quotas->buckets[before].next = quotas->buckets[at].next;
    }
}

/* There may be one for each customer: those that say nothing go. */
static void drop_if_idle(struct engine *engine, uint32_t at)
{
    struct quotas *quotas = &engine->work.quotas;
    struct quota_bucket *bucket = &quotas->buckets[at];

    if (!bucket->name.data || bucket->held || bucket->let_in || bucket->waiting || bucket->start_count)
        return;
    unlink_bucket(quotas, at);
    heap_free(engine->heap, (char *)(uintptr_t)bucket->name.data, bucket->name.size);
    heap_free(engine->heap, bucket->starts, bucket->start_capacity * sizeof *bucket->starts);
    *bucket = (struct quota_bucket){ .next = quotas->free_bucket };
    quotas->free_bucket = at;
}

/* By the clock of leases: no one can set it, but where tests move it. */
static int64_t now_ms(struct engine *engine)
{
    return lease_clock(engine);
}

/* ---- Holds ------------------------------------------------------------------------------- */

static uint64_t key_of(uint64_t instance, uint32_t ordinal)
{
    uint64_t key = (instance ^ ordinal * UINT64_C(0x9E3779B97F4A7C15)) * UINT64_C(0xff51afd7ed558ccd);

    return key ? key : 1;
}

static uint32_t find_hold(const struct quotas *quotas, uint64_t instance, uint32_t ordinal)
{
    uint32_t at = map_get(&quotas->hold_places, key_of(instance, ordinal));

    while (at != QUOTA_NONE && (quotas->holds[at].instance != instance || quotas->holds[at].ordinal != ordinal))
        at = quotas->holds[at].next;
    return at;
}

static uint32_t new_hold(struct engine *engine, uint64_t instance, uint32_t ordinal)
{
    struct quotas *quotas = &engine->work.quotas;
    uint64_t key = key_of(instance, ordinal);
    uint32_t at = quotas->free_hold, next = map_get(&quotas->hold_places, key);

    if (at == QUOTA_NONE &&
        HEAP_GROW(engine->heap, quotas->holds, quotas->hold_capacity, quotas->hold_count + 1))
        at = quotas->hold_count;
    if (at == QUOTA_NONE || !map_put(&quotas->hold_places, key, at))
        return QUOTA_NONE;
    if (at == quotas->hold_count)
        quotas->hold_count++;
    else
        quotas->free_hold = quotas->holds[at].next;
    quotas->holds[at] = (struct quota_hold){ .instance = instance,
                                             .ordinal = ordinal,
                                             .next = next,
                                             .waits_in = QUOTA_NONE,
                                             .first = QUOTA_NONE,
                                             .before = QUOTA_NONE,
                                             .after = QUOTA_NONE };
    return at;
}

/* The instance's hold is there as long as one of its attempts'. QUOTA_NONE: no memory. */
static uint32_t get_hold(struct engine *engine, uint64_t instance, uint32_t ordinal, uint32_t *anchor)
{
    struct quotas *quotas = &engine->work.quotas;
    uint32_t at;

    *anchor = find_hold(quotas, instance, 0);
    if (*anchor == QUOTA_NONE)
        *anchor = new_hold(engine, instance, 0);
    if (*anchor == QUOTA_NONE || ordinal == 0)
        return *anchor;
    at = find_hold(quotas, instance, ordinal);
    if (at != QUOTA_NONE)
        return at;
    at = new_hold(engine, instance, ordinal);
    if (at == QUOTA_NONE)
        return QUOTA_NONE;
    quotas->holds[at].after = quotas->holds[*anchor].first;
    if (quotas->holds[at].after != QUOTA_NONE)
        quotas->holds[quotas->holds[at].after].before = at;
    quotas->holds[*anchor].first = at;
    return at;
}

static void unlink_hold(struct quotas *quotas, uint32_t at)
{
    struct quota_hold *hold = &quotas->holds[at];
    uint64_t key = key_of(hold->instance, hold->ordinal);
    uint32_t before = map_get(&quotas->hold_places, key);

    if (before == at && hold->next == QUOTA_NONE)
        map_remove(&quotas->hold_places, key);
    else if (before == at)
        (void)map_put(&quotas->hold_places, key, hold->next); /* it has a place */
    else {
        while (quotas->holds[before].next != at)
            before = quotas->holds[before].next;
        quotas->holds[before].next = hold->next;
    }
}

static bool has_bucket(const struct quota_hold *hold, uint32_t bucket)
{
    for (uint32_t i = 0; i < hold->bucket_count; i++)
        if (hold->buckets[i] == bucket)
            return true;
    return false;
}

/* ---- Letting in ---------------------------------------------------------------------------- */

/* Back to where it waited for a runner. */
static void return_step(struct engine *engine, struct quota_hold *hold)
{
    hold->waits_in = QUOTA_NONE;
    if (hold->queue == QUOTA_HERE
            ? !steps_add_ready(engine, hold->instance, hold->ordinal, hold->since, hold->priority)
            : !claims_add_to(engine, hold->queue, hold->instance, hold->ordinal, hold->since, hold->priority))
        engine->work.ready_lost = true;
    shell_changed(engine);
}

/* All attempts that waited because their instance did. */
static void return_instance(struct engine *engine, const struct quota_hold *anchor)
{
    struct quotas *quotas = &engine->work.quotas;

    for (uint32_t at = anchor->first; at != QUOTA_NONE; at = quotas->holds[at].after)
        if (quotas->holds[at].waits_in == QUOTA_WITH_INSTANCE)
            return_step(engine, &quotas->holds[at]);
}

static void let_in_one(struct engine *engine, uint32_t at, uint32_t hold_at)
{
    struct quota_bucket *bucket = &engine->work.quotas.buckets[at];
    struct quota_hold *hold = &engine->work.quotas.holds[hold_at];

    hold->waits_in = QUOTA_NONE;
    if (bucket->per_ms > 0) {
        bucket->let_in++;
        hold->let_into = at + 1;
    } else {
        bucket->held++;
        hold->buckets[hold->bucket_count++] = at;
    }
    if (hold->ordinal == 0)
        return_instance(engine, hold);
    else
        return_step(engine, hold);
}

/* Those that wait in a bucket, as far as it has room. One that has ended meanwhile is passed
 * over. */
static void let_in(struct engine *engine, uint32_t at)
{
    struct quotas *quotas = &engine->work.quotas;
    int64_t time_ms = now_ms(engine);

    ASSERT_LOCKED(engine);
    while (quotas->buckets[at].waiting && bucket_room(&quotas->buckets[at], time_ms) > 0) {
        struct ready_step *step = ready_take(&quotas->buckets[at].waiting);
        uint32_t hold = find_hold(quotas, step->instance, step->ordinal);

        if (hold != QUOTA_NONE && quotas->holds[hold].waits_in == at)
            let_in_one(engine, at, hold);
        heap_free(engine->heap, step, sizeof *step);
    }
}

static void note_opening(struct engine *engine, uint32_t at)
{
    int64_t opens_ms = bucket_opens_ms(&engine->work.quotas.buckets[at]);

    if (opens_ms < engine->work.quotas.next_ms)
        engine->work.quotas.next_ms = opens_ms;
}

/* ---- Giving back ----------------------------------------------------------------------------- */

/* It was let into a bucket of a rate: it begins, or does not. */
static void leave_let_in(struct engine *engine, struct quota_hold *hold)
{
    uint32_t at = hold->let_into - 1;

    if (!hold->let_into)
        return;
    hold->let_into = 0;
    engine->work.quotas.buckets[at].let_in--;
    let_in(engine, at);
    note_opening(engine, at);
}

/* Into the free list. It waits nowhere any more: what a bucket has of it is passed over. */
static void free_hold(struct engine *engine, uint32_t at)
{
    struct quotas *quotas = &engine->work.quotas;
    struct quota_hold hold = quotas->holds[at];

    unlink_hold(quotas, at);
    if (hold.before != QUOTA_NONE)
        quotas->holds[hold.before].after = hold.after;
    if (hold.after != QUOTA_NONE)
        quotas->holds[hold.after].before = hold.before;
    quotas->holds[at] = (struct quota_hold){ .next = quotas->free_hold };
    quotas->free_hold = at;
    leave_let_in(engine, &hold);
    for (uint32_t i = 0; i < hold.bucket_count; i++) {
        quotas->buckets[hold.buckets[i]].held--;
        let_in(engine, hold.buckets[i]);
        drop_if_idle(engine, hold.buckets[i]);
    }
}

static void give_back_step(struct engine *engine, uint64_t instance, uint32_t ordinal)
{
    struct quotas *quotas = &engine->work.quotas;
    uint32_t at = find_hold(quotas, instance, ordinal), anchor = find_hold(quotas, instance, 0);

    if (at == QUOTA_NONE)
        return;
    if (quotas->holds[anchor].first == at)
        quotas->holds[anchor].first = quotas->holds[at].after;
    free_hold(engine, at);
    if (quotas->holds[anchor].first == QUOTA_NONE && !quotas->holds[anchor].has_begun)
        free_hold(engine, anchor); /* its place was for this attempt, which never began */
}

static void give_back_instance(struct engine *engine, uint64_t instance)
{
    struct quotas *quotas = &engine->work.quotas;
    uint32_t anchor = find_hold(quotas, instance, 0), at;

    if (anchor == QUOTA_NONE)
        return;
    while ((at = quotas->holds[anchor].first) != QUOTA_NONE) {
        quotas->holds[anchor].first = quotas->holds[at].after;
        free_hold(engine, at);
    }
    free_hold(engine, anchor);
}

/* Not while a step takes places: it may have found one that says nothing yet. */
static void sweep(struct engine *engine)
{
    struct quotas *quotas = &engine->work.quotas;
    uint32_t used = 0;

    if (quotas->bucket_count < quotas->sweep_at || quotas->free_bucket != QUOTA_NONE)
        return;
    for (uint32_t at = 0; at < quotas->bucket_count; at++) {
        if (quotas->buckets[at].per_ms > 0)
            bucket_forget_starts(&quotas->buckets[at], now_ms(engine));
        drop_if_idle(engine, at);
        used += quotas->buckets[at].name.data != NULL;
    }
    quotas->sweep_at = used < BUCKETS_KEPT / 2 ? BUCKETS_KEPT : 2 * used;
}

void quotas_leave(struct engine *engine, uint64_t instance, uint32_t ordinal)
{
    guard_lock(&engine->lock);
    give_back_step(engine, instance, ordinal);
    guard_unlock(&engine->lock);
}

/* What has begun keeps its places. The others are looked at by the limits that they have now; the
 * instance's hold goes last, with the last of them, unless it has begun. */
void quotas_amended(struct engine *engine, uint64_t instance)
{
    struct quotas *quotas = &engine->work.quotas;
    uint32_t anchor = find_hold(quotas, instance, 0);
    uint32_t at = anchor == QUOTA_NONE ? QUOTA_NONE : quotas->holds[anchor].first;

    ASSERT_LOCKED(engine);
    while (at != QUOTA_NONE) {
        struct quota_hold hold = quotas->holds[at];

        at = hold.after;
        if (hold.has_begun)
            continue;
        give_back_step(engine, instance, hold.ordinal);
        if (hold.waits_in != QUOTA_NONE)
            return_step(engine, &hold);
    }
    anchor = find_hold(quotas, instance, 0);
    if (anchor != QUOTA_NONE)
        quotas->holds[anchor].waits_in = QUOTA_NONE;
}

void quotas_give_back(struct engine *engine, uint64_t instance, uint32_t ordinal)
{
    ASSERT_LOCKED(engine);
    if (ordinal == 0)
        give_back_instance(engine, instance);
    else
        give_back_step(engine, instance, ordinal);
}

void quotas_committed(struct engine *engine, const struct batch *batch)
{
    ASSERT_LOCKED(engine);
    if (engine->work.quotas.hold_places.count == 0)
        return;
    sweep(engine);
    for (uint32_t i = 0; i < batch->live_count; i++)
        if (batch->live[i].kind == LIVE_STEP_DELETE)
            give_back_step(engine, batch->live[i].instance, batch->live[i].ordinal);
        else if (batch->live[i].kind == LIVE_CLEAR)
            give_back_instance(engine, batch->live[i].instance);
}

/* ---- Taking --------------------------------------------------------------------------------- */

/* In the queue of a bucket; an instance once. It returns with a place. */
static bool wait_in(struct engine *engine, uint32_t bucket, uint32_t hold_at, const struct quota_step *step)
{
    struct quota_hold *hold = &engine->work.quotas.holds[hold_at];
    struct ready_step *ready;

    if (hold->waits_in == bucket)
        return true;
    ready = ready_new(engine, hold->instance, hold->ordinal, step->since, step->quotas->priority);
    if (!ready)
        return false;
    hold->waits_in = bucket;
    ready_put(&engine->work.quotas.buckets[bucket].waiting, ready);
    note_opening(engine, bucket);
    return true;
}

/* What may not begin yet waits in `bucket`: the attempt, or with it its instance. */
static enum quota_verdict make_wait(struct engine *engine, const struct quota *quota, uint32_t bucket,
                                    uint32_t hold, uint32_t anchor, const struct quota_step *step)
{
    struct quota_hold *own = &engine->work.quotas.holds[hold];

    if (!step->may_wait)
        return QUOTA_LATER;
    own->queue = step->queue;
    own->since = step->since;
    own->priority = step->quotas->priority;
    leave_let_in(engine, own);
    if (!wait_in(engine, bucket, quota->is_of_flow ? anchor : hold, step))
        return QUOTA_NO_MEMORY;
    if (quota->is_of_flow)
        own->waits_in = QUOTA_WITH_INSTANCE;
    let_in(engine, bucket); /* a newer version may have made it wider */
    return QUOTA_WAITS;
}

/* Those that wait are before one that comes, unless that one was let in. */
static bool has_place(struct quota_bucket *bucket, const struct quota_hold *hold, uint32_t at, int64_t time_ms)
{
    if (hold->let_into == at + 1)
        return bucket->start_count < bucket->max ||
               (bucket_forget_starts(bucket, time_ms), bucket->start_count < bucket->max);
    return !bucket->waiting && bucket_room(bucket, time_ms) > 0;
}

static void leave_places(struct engine *engine, struct quota_hold *hold)
{
    while (hold->bucket_count > 0) {
        uint32_t at = hold->buckets[--hold->bucket_count];

        engine->work.quotas.buckets[at].held--;
        let_in(engine, at);
    }
}

/* A flow has one limit of instances at once. One that has a place already was amended, and moves to
 * the new limit's, also if that is full: as it does when the store is opened again. */
static bool moves_place(struct engine *engine, const struct quota *quota, struct quota_hold *target)
{
    bool moves = quota->is_of_flow && target->bucket_count > 0;

    if (moves)
        leave_places(engine, target);
    return moves;
}

static enum quota_verdict take_at_once(struct engine *engine, const struct quota *quota, uint32_t hold,
                                       uint32_t anchor, const struct quota_step *step)
{
    struct quotas *quotas = &engine->work.quotas;
    uint32_t at = get_bucket(engine, quota), target = quota->is_of_flow ? anchor : hold;

    if (at == QUOTA_NONE)
        return QUOTA_NO_MEMORY;
    if (has_bucket(&quotas->holds[target], at))
        return QUOTA_TAKEN;
    if (!moves_place(engine, quota, &quotas->holds[target]) && !step->is_forced &&
        !has_place(&quotas->buckets[at], &quotas->holds[target], at, 0))
        return make_wait(engine, quota, at, hold, anchor, step);
    quotas->buckets[at].held++;
    quotas->holds[target].buckets[quotas->holds[target].bucket_count++] = at;
    return QUOTA_TAKEN;
}

static bool is_counted(const struct quotas *quotas, const struct quota *quota, uint32_t hold, uint32_t anchor)
{
    return quotas->holds[quota->is_of_flow ? anchor : hold].has_begun;
}

/* All rates together, so that a start is counted in all of them, at the same time, or in none. */
static enum quota_verdict take_rates(struct engine *engine, uint32_t hold, uint32_t anchor,
                                     const struct quota_step *step)
{
    struct quotas *quotas = &engine->work.quotas;
    int64_t time_ms = now_ms(engine);
    uint32_t at[QUOTAS_MAX];

    for (uint32_t i = 0; i < step->quotas->count; i++) {
        const struct quota *quota = &step->quotas->items[i];
        uint32_t target = quota->is_of_flow ? anchor : hold;

        at[i] = quota->per_ms > 0 && !is_counted(quotas, quota, hold, anchor) ? get_bucket(engine, quota) : QUOTA_NONE;
        if (quota->per_ms == 0 || is_counted(quotas, quota, hold, anchor))
            continue;
        if (at[i] == QUOTA_NONE)
            return QUOTA_NO_MEMORY;
        if (!has_place(&quotas->buckets[at[i]], &quotas->holds[target], at[i], time_ms))
            return make_wait(engine, quota, at[i], hold, anchor, step);
    }
    for (uint32_t i = 0; i < step->quotas->count; i++)
        if (at[i] != QUOTA_NONE && !bucket_note_start(engine, &quotas->buckets[at[i]], time_ms))
            return QUOTA_NO_MEMORY;
    leave_let_in(engine, &quotas->holds[hold]);
    leave_let_in(engine, &quotas->holds[anchor]);
    quotas->holds[hold].has_begun = quotas->holds[anchor].has_begun = true;
    return QUOTA_TAKEN;
}

enum quota_verdict quotas_take(struct engine *engine, const struct quota_step *step)
{
    enum quota_verdict verdict = QUOTA_TAKEN;
    uint32_t hold, anchor;

    ASSERT_LOCKED(engine);
    hold = get_hold(engine, step->instance, step->ordinal, &anchor);
    if (hold == QUOTA_NONE)
        return QUOTA_NO_MEMORY;
    for (uint32_t i = 0; i < step->quotas->count && verdict == QUOTA_TAKEN; i++)
        if (step->quotas->items[i].per_ms == 0)
            verdict = take_at_once(engine, &step->quotas->items[i], hold, anchor, step);
    if (verdict == QUOTA_TAKEN && !step->is_forced)
        verdict = take_rates(engine, hold, anchor, step);
    return verdict;
}

bool quotas_count_start(struct engine *engine, const struct quota *quota, int64_t ago_ms)
{
    uint32_t at = get_bucket(engine, quota);

    ASSERT_LOCKED(engine);
    return at != QUOTA_NONE &&
           bucket_note_start(engine, &engine->work.quotas.buckets[at], now_ms(engine) - ago_ms);
}

void quotas_have_begun(struct engine *engine, uint64_t instance, uint32_t ordinal)
{
    uint32_t anchor, hold = get_hold(engine, instance, ordinal, &anchor);

    ASSERT_LOCKED(engine);
    if (hold != QUOTA_NONE)
        engine->work.quotas.holds[hold].has_begun = engine->work.quotas.holds[anchor].has_begun = true;
}

/* ---- Time ----------------------------------------------------------------------------------- */

/* Buckets of rates whose time has come; and those that say nothing any more. */
void quotas_open(struct engine *engine)
{
    struct quotas *quotas = &engine->work.quotas;
    int64_t time_ms = now_ms(engine);

    ASSERT_LOCKED(engine);
    if (quotas->next_ms > time_ms)
        return;
    quotas->next_ms = INT64_MAX;
    for (uint32_t at = 0; at < quotas->bucket_count; at++) {
        struct quota_bucket *bucket = &quotas->buckets[at];

        if (!bucket->name.data || bucket->per_ms == 0)
            continue;
        bucket_forget_starts(bucket, time_ms);
        let_in(engine, at);
        note_opening(engine, at);
        drop_if_idle(engine, at);
    }
    engine_set_wakeup(engine);
}

void quotas_init(struct engine *engine)
{
    struct quotas *quotas = &engine->work.quotas;

    map_init(&quotas->bucket_places, engine->heap);
    map_init(&quotas->hold_places, engine->heap);
    quotas->free_bucket = quotas->free_hold = QUOTA_NONE;
    quotas->next_ms = INT64_MAX;
    quotas->sweep_at = BUCKETS_KEPT;
}

const struct quota_bucket *quotas_blocking(struct engine *engine, uint64_t instance, uint32_t ordinal)
{
    const struct quotas *quotas = &engine->work.quotas;
    uint32_t hold = find_hold(quotas, instance, ordinal), at;

    ASSERT_LOCKED(engine);
    if (hold == QUOTA_NONE)
        return NULL;
    at = quotas->holds[hold].waits_in;
    if (at == QUOTA_WITH_INSTANCE) {
        hold = find_hold(quotas, instance, 0);
        at = hold == QUOTA_NONE ? QUOTA_NONE : quotas->holds[hold].waits_in;
    }
    return at == QUOTA_NONE ? NULL : &quotas->buckets[at];
}

void quotas_fini(struct engine *engine)
{
    struct quotas *quotas = &engine->work.quotas;

    for (uint32_t at = 0; at < quotas->bucket_count; at++) {
        struct quota_bucket *bucket = &quotas->buckets[at];

        ready_free(engine, &bucket->waiting);
        heap_free(engine->heap, (char *)(uintptr_t)bucket->name.data, bucket->name.size);
        heap_free(engine->heap, bucket->starts, bucket->start_capacity * sizeof *bucket->starts);
    }
    heap_free(engine->heap, quotas->buckets, quotas->bucket_capacity * sizeof *quotas->buckets);
    heap_free(engine->heap, quotas->holds, quotas->hold_capacity * sizeof *quotas->holds);
    map_fini(&quotas->bucket_places);
    map_fini(&quotas->hold_places);
}

void quotas_forget(struct engine *engine)
{
    ASSERT_LOCKED(engine);
    quotas_fini(engine);
    engine->work.quotas = (struct quotas){ 0 };
    quotas_init(engine);
}
