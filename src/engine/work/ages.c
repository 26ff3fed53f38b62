/* ages.c - steps that are ready and wait, the oldest first.
 *
 * A step's age is the position of the entry that made it ready. What becomes ready while this
 * process runs comes in that order. What comes back (after a restart, a resume, a failing store)
 * comes in any: its entry is looked for in the history, and so the steps wait in a heap. It is a
 * pairing heap: to put one in costs nothing, to take the oldest log n. */
#include "engine/parts.h"

/* ---- The heap ---- */

static int64_t rank_of(const struct ready_step *step)
{
    return (int64_t)step->since - step->priority * PRIORITY_AGE;
}

bool ready_is_older(const struct ready_step *a, const struct ready_step *b)
{
    int64_t rank_a = rank_of(a), rank_b = rank_of(b);

    return rank_a != rank_b ? rank_a < rank_b : a->order < b->order;
}

/* Neither has a `next`; either may be NULL. */
static struct ready_step *merge(struct ready_step *a, struct ready_step *b)
{
    struct ready_step *older = !b || (a && ready_is_older(a, b)) ? a : b;
    struct ready_step *other = older == a ? b : a;

    if (!other)
        return older;
    other->next = older->child;
    older->child = other;
    return older;
}

struct ready_step *ready_new(struct engine *engine, uint64_t instance, uint32_t ordinal,
                             uint64_t since, int32_t priority)
{
    struct ready_step *step = heap_new(engine->heap, sizeof *step);

    ASSERT_LOCKED(engine);
    if (step)
        *step = (struct ready_step){ .instance = instance,
                                     .ordinal = ordinal,
                                     .since = since,
                                     .priority = priority,
                                     .order = engine->work.ready_count++ };
    return step;
}

void ready_put(struct ready_step **oldest, struct ready_step *steps)
{
    *oldest = merge(*oldest, steps);
}

/* In pairs, and those from the last to the first: that is what makes it log n. */
static struct ready_step *merge_all(struct ready_step *list)
{
    struct ready_step *pairs = NULL, *whole = NULL;

    while (list) {
        struct ready_step *a = list, *b = a->next;

        list = b ? b->next : NULL;
        a->next = NULL;
        if (b)
            b->next = NULL;
        a = merge(a, b);
        a->next = pairs;
        pairs = a;
    }
    while (pairs) {
        struct ready_step *next = pairs->next;

        pairs->next = NULL;
        whole = merge(whole, pairs);
        pairs = next;
    }
    return whole;
}

struct ready_step *ready_take(struct ready_step **oldest)
{
    struct ready_step *step = *oldest;

    if (!step)
        return NULL;
    *oldest = merge_all(step->child);
    step->child = NULL;
    return step;
}

struct ready_step *ready_list(struct ready_step **oldest)
{
    struct ready_step *left = *oldest, *list = NULL;

    *oldest = NULL;
    while (left) {
        struct ready_step *step = left, *last = step->child;

        left = step->next;
        if (last) { /* its children are next */
            while (last->next)
                last = last->next;
            last->next = left;
            left = step->child;
        }
        step->child = NULL;
        step->next = list;
        list = step;
    }
    return list;
}

void ready_free(struct engine *engine, struct ready_step **oldest)
{
    struct ready_step *list = ready_list(oldest);

    while (list) {
        struct ready_step *next = list->next;

        heap_free(engine->heap, list, sizeof *list);
        list = next;
    }
}

/* ---- What the history says ---- */

struct ages {
    struct scope scope; /* for one record */
    const struct live *live;
    uint64_t *since; /* by step */
    uint32_t left;   /* those that have not been found */
    uint64_t seen;   /* the last position that was looked at */
};

/* Steps are in the order of their ordinals. NULL: not one of those that are looked for. */
static uint64_t *find_wanted(const struct ages *ages, uint32_t ordinal)
{
    uint32_t from = 0, to = ages->live->step_count;

    while (from < to) {
        uint32_t middle = from + (to - from) / 2;

        if (ages->live->steps[middle].ordinal < ordinal)
            from = middle + 1;
        else
            to = middle;
    }
    return from < ages->live->step_count && ages->live->steps[from].ordinal == ordinal &&
                   ages->live->steps[from].status == STEP_READY && !ages->since[from]
               ? &ages->since[from]
               : NULL;
}

/* Notes which steps this record made ready; true: that is all. */
static bool note_ready(void *context, const struct record *record)
{
    struct ages *ages = context;
    struct effect_list effects = { 0 };

    ages->seen = record->pos;
    scope_clear(&ages->scope);
    if (record->what < 0 || effects_read(&ages->scope, record->body, &effects))
        return false;
    for (uint32_t i = 0; i < effects.count; i++) {
        const struct effect *effect = &effects.items[i];
        uint64_t *since = effect_makes_ready(effect) ? find_wanted(ages, effect->ordinal) : NULL;

        if (since) {
            *since = record->pos;
            ages->left--;
        }
    }
    return ages->left == 0;
}

/* What has been ready for longer than the history is looked through is as old as that. */
pawl_status ages_look(struct engine *engine, struct scope *scope, uint64_t instance,
                      const struct live *live, uint64_t **out)
{
    struct ages ages = { .live = live };
    struct head_row head;
    pawl_status status = PAWL_OK;

    *out = ages.since = ARENA_ARRAY(&scope->arena, uint64_t, live->step_count + 1);
    TRY_MEMORY(scope, ages.since);
    for (uint32_t i = 0; i < live->step_count; i++) {
        ages.since[i] = 0;
        ages.left += live->steps[i].status == STEP_READY;
    }
    if (ages.left == 0)
        return PAWL_OK;
    scope_init(&ages.scope, engine->heap, LIMIT_SCOPE);
    status = head_row_now(engine, scope, instance, &head);
    if (!status)
        status = records_look_back(engine, scope, head.pos, note_ready, &ages);
    scope_fini(&ages.scope);
    for (uint32_t i = 0; i < live->step_count; i++)
        if (live->steps[i].status == STEP_READY && !ages.since[i])
            ages.since[i] = ages.seen;
    return status;
}
