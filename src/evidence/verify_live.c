/* verify_live.c - the live rows of an instance: folded from the effects of its entries, and
 * compared with what the store holds. An end that finds nothing to end is no fault: taking
 * back a timer that has fired is how behaviors are written. */
#include "base/assert.h"
#include "evidence/verify_int.h"
#include <stdlib.h>

static const char *const kind_names[] = {
    [LIVE_STEP] = "step", [LIVE_TIMER] = "timer", [LIVE_WAIT] = "wait", [LIVE_CHILD] = "child"
};

/* Order of kind, ordinal, name: what a row is found by. */
static int compare_keys(const void *left, const void *right)
{
    const struct live_fact *a = left, *b = right;

    if (a->kind != b->kind)
        return a->kind < b->kind ? -1 : 1;
    if (a->ordinal != b->ordinal)
        return a->ordinal < b->ordinal ? -1 : 1;
    return str_compare(a->name, b->name);
}

/* ---- folding ---- */

static struct live_fact *find_fact(struct fold *fold, const struct live_fact *key)
{
    for (uint32_t i = 0; fold && i < fold->count; i++)
        if (compare_keys(&fold->facts[i], key) == 0)
            return &fold->facts[i];
    return NULL;
}

struct live_fact *verify_find_timer(struct chain *chain, uint32_t ordinal, str name)
{
    struct live_fact key = { .kind = LIVE_TIMER, .ordinal = ordinal, .name = name };

    return find_fact(chain->fold, &key);
}

/* The text that a fact has beside its name; NULL: its kind has none. */
static str *text_of(struct live_fact *fact)
{
    return fact->kind == LIVE_STEP   ? &fact->step.lease
           : fact->kind == LIVE_WAIT ? &fact->wait.value
                                     : NULL;
}

static void free_text(struct verify *v, str *text)
{
    union {
        const char *kept;
        char *ours;
    } data = { text->data };

    heap_free(v->heap, data.ours, text->size);
    *text = STR_NONE;
}

static void free_texts(struct verify *v, struct live_fact *fact)
{
    free_text(v, &fact->name);
    if (text_of(fact))
        free_text(v, text_of(fact));
}

/* An empty text is stored as none: leases and JSON are never empty, and an empty name and a missing
 * one need not be distinguished. */
static bool copy_text(struct verify *v, str *text)
{
    char *copy = text->size > 0 ? heap_new(v->heap, text->size) : NULL;
    bool ok = copy || text->size == 0;

    if (copy)
        memcpy(copy, text->data, text->size);
    *text = ok ? (str){ copy, text->size } : STR_NONE;
    return ok;
}

static bool copy_texts(struct verify *v, struct live_fact *fact)
{
    str none = STR_NONE, *text = text_of(fact) ? text_of(fact) : &none;
    bool has_name = copy_text(v, &fact->name), has_text = copy_text(v, text);

    if (!has_name || !has_text)
        free_texts(v, fact);
    return has_name && has_text;
}

pawl_status verify_put_fact(struct verify *v, struct chain *chain, struct live_fact fact)
{
    struct live_fact *found = find_fact(chain->fold, &fact);
    struct fold *fold;

    if (!copy_texts(v, &fact))
        return scope_no_memory(&v->scope);
    if (found) {
        free_texts(v, found);
        *found = fact;
        return PAWL_OK;
    }
    if (!chain->fold)
        chain->fold = heap_new(v->heap, sizeof *chain->fold);
    fold = chain->fold;
    if (!fold ||
        !verify_grow(v->heap, &fold->facts, fold->count, &fold->capacity, sizeof *fold->facts)) {
        free_texts(v, &fact);
        return scope_no_memory(&v->scope);
    }
    fold->facts[fold->count++] = fact;
    return PAWL_OK;
}

static void remove_fact(struct verify *v, struct chain *chain, struct live_fact key)
{
    struct live_fact *found = find_fact(chain->fold, &key);

    if (!found)
        return;
    free_texts(v, found);
    *found = chain->fold->facts[--chain->fold->count];
    if (chain->fold->count == 0)
        verify_drop_fold(v, chain);
}

/* A step row goes with its timers, waits and child. */
static void remove_step(struct verify *v, struct chain *chain, uint32_t ordinal)
{
    for (uint32_t i = chain->fold ? chain->fold->count : 0; i-- > 0;)
        if (chain->fold && chain->fold->facts[i].ordinal == ordinal)
            remove_fact(v, chain, chain->fold->facts[i]);
}

void verify_drop_fold(struct verify *v, struct chain *chain)
{
    struct fold *fold = chain->fold;

    if (!fold)
        return;
    for (uint32_t i = 0; i < fold->count; i++)
        free_texts(v, &fold->facts[i]);
    heap_free(v->heap, fold->facts, fold->capacity * sizeof *fold->facts);
    heap_free(v->heap, fold, sizeof *fold);
    chain->fold = NULL;
}

static pawl_status find_step(struct verify *v, struct chain *chain, uint32_t ordinal,
                             struct live_fact **out)
{
    *out = find_fact(chain->fold, &(struct live_fact){ .kind = LIVE_STEP, .ordinal = ordinal });
    if (*out)
        return PAWL_OK;
    return verify_bad(v, "the entry moves step row %u, which is not there", ordinal);
}

static pawl_status fold_ready(struct verify *v, struct chain *chain, uint32_t ordinal,
                              int64_t at_ms)
{
    struct live_fact *found;
    pawl_status status = find_step(v, chain, ordinal, &found);

    if (status != PAWL_OK)
        return status;
    free_text(v, &found->step.lease); /* of a worker that could not be sent it */
    found->step.status = STEP_READY;
    found->step.lease_ms = 0;
    found->step.ready_at_ms = at_ms;
    return PAWL_OK;
}

static pawl_status fold_run(struct verify *v, struct chain *chain, const struct effect *effect)
{
    struct live_fact *found;
    str lease = effect->lease;
    pawl_status status = find_step(v, chain, effect->ordinal, &found);

    if (status != PAWL_OK)
        return status;
    if (!copy_text(v, &lease))
        return scope_no_memory(&v->scope);
    free_text(v, &found->step.lease);
    found->step.status = STEP_RUNNING;
    found->step.lease = lease;
    found->step.lease_ms = effect->lease_ms;
    found->step.ready_at_ms = 0;
    return PAWL_OK;
}

static pawl_status note_snapshot(struct verify *v, struct chain *chain, str hex)
{
    chain->snapshot_seq = chain->seq;
    return sha_unhex(hex, chain->snapshot_sha, SHA_SIZE)
               ? PAWL_OK
               : verify_bad(v, "the entry names a snapshot without its hash");
}

/* Of one that could not be created there is no id, and nothing is left behind. */
static pawl_status fold_child(struct verify *v, struct chain *chain, const struct effect *effect)
{
    struct live_fact fact = { .kind = LIVE_CHILD,
                              .ordinal = effect->ordinal,
                              .child.is_abandoned = effect->is_abandoned };

    if (effect->name.size == 0)
        return PAWL_OK;
    if (!id_parse(effect->name, &fact.child.number, NULL))
        return verify_bad(v, "the entry tells of a child whose id is none");
    return verify_put_fact(v, chain, fact);
}

static pawl_status fold_effect(struct verify *v, struct chain *chain, const struct effect *effect,
                               int64_t at_ms)
{
    struct live_fact fact = { .kind = LIVE_STEP, .ordinal = effect->ordinal };

    if (effect->kind == EFFECT_ARM || effect->kind == EFFECT_DISARM)
        fact = (struct live_fact){ .kind = LIVE_TIMER,
                                   .ordinal = effect->ordinal,
                                   .name = effect->name,
                                   .timer.due_at_ms = effect->due_at_ms,
                                   .timer.wall = effect->wall };
    if (effect->kind == EFFECT_AWAIT || effect->kind == EFFECT_LEAVE)
        fact = (struct live_fact){ .kind = LIVE_WAIT,
                                   .ordinal = effect->ordinal,
                                   .name = effect->name,
                                   .wait.value = effect->state };
    switch (effect->kind) {
    case EFFECT_STEP:
        fact.step.plan = effect->plan;
        fact.step.attempt = effect->attempt;
        fact.step.status = effect->status;
        fact.step.ready_at_ms = effect->status == STEP_READY ? at_ms : 0;
        return verify_put_fact(v, chain, fact);
    case EFFECT_READY:
        return fold_ready(v, chain, effect->ordinal, at_ms);
    case EFFECT_RUN:
        return fold_run(v, chain, effect);
    case EFFECT_ARM:
    case EFFECT_AWAIT:
        return verify_put_fact(v, chain, fact);
    case EFFECT_SPAWN:
        return fold_child(v, chain, effect);
    case EFFECT_END:
        remove_step(v, chain, effect->ordinal);
        return PAWL_OK;
    case EFFECT_DISARM:
    case EFFECT_LEAVE:
        remove_fact(v, chain, fact);
        return PAWL_OK;
    case EFFECT_SNAPSHOT:
        return note_snapshot(v, chain, effect->name);
    case EFFECT_STATE:
    case EFFECT_TAKE:
    case EFFECT_PLAN:
    case EFFECT_REDRIVE:
    case EFFECT_CALL:
    case EFFECT_VERSION:
    case EFFECT_REDUCE:
        return PAWL_OK;
    }
    return PAWL_OK;
}

pawl_status verify_fold_effects(struct verify *v, struct chain *chain,
                                const struct effect_list *effects, int64_t at_ms)
{
    pawl_status status = PAWL_OK;

    for (uint32_t i = 0; status == PAWL_OK && i < effects->count; i++)
        status = fold_effect(v, chain, &effects->items[i], at_ms);
    return status;
}

pawl_status verify_fold(struct verify *v, struct chain *chain, const struct record *record)
{
    struct effect_list effects = { 0 };
    pawl_status status = effects_read(&v->scope, record->body, &effects);

    if (status == PAWL_STORAGE_FAILURE)
        return verify_bad(v, "its effects can't be read: %.180s", v->scope.error.message);
    return status == PAWL_OK ? verify_fold_effects(v, chain, &effects, record->at_ms) : status;
}

/* ---- comparing ---- */

static size_t count_facts(const struct live *live)
{
    return (size_t)live->step_count + live->timer_count + live->wait_count + live->child_count;
}

static struct live_fact *list_facts(struct arena *arena, const struct live *live)
{
    struct live_fact *facts = ARENA_ARRAY(arena, struct live_fact, count_facts(live) + 1);
    struct live_fact *next = facts;

    for (uint32_t i = 0; facts && i < live->step_count; i++)
        *next++ = (struct live_fact){
            .kind = LIVE_STEP,
            .ordinal = live->steps[i].ordinal,
            .step = { live->steps[i].plan, live->steps[i].attempt, live->steps[i].status,
                      live->steps[i].lease, live->steps[i].lease_ms, live->steps[i].ready_at_ms },
        };
    for (uint32_t i = 0; facts && i < live->timer_count; i++)
        *next++ = (struct live_fact){
            .kind = LIVE_TIMER,
            .ordinal = live->timers[i].ordinal,
            .name = live->timers[i].name,
            .timer.due_at_ms = live->timers[i].due_at_ms - live->timers[i].shift_ms,
            .timer.shift_ms = live->timers[i].shift_ms,
            .timer.wall = live->timers[i].wall,
        };
    for (uint32_t i = 0; facts && i < live->wait_count; i++)
        *next++ = (struct live_fact){ .kind = LIVE_WAIT,
                                      .ordinal = live->waits[i].ordinal,
                                      .name = live->waits[i].name,
                                      .wait.value = live->waits[i].value };
    for (uint32_t i = 0; facts && i < live->child_count; i++)
        *next++ = (struct live_fact){
            .kind = LIVE_CHILD,
            .ordinal = live->children[i].ordinal,
            .child = { live->children[i].child, live->children[i].abandon },
        };
    return facts;
}

static pawl_status bad_fact(struct verify *v, const struct live_fact *fact, const char *what)
{
    return verify_bad(v, "%s row %u%s%.*s %s", kind_names[fact->kind], fact->ordinal,
                      fact->name.size > 0 ? " " : "", STR_ARG(fact->name), what);
}

/* Before compiler 2 no entry covered a lease: a running step's row may then hold one, as its
 * token. */
static bool is_same_lease(const struct live_fact *expected, const struct live_fact *found,
                          uint32_t compiler)
{
    if (compiler < LEASE_COMPILER && expected->step.lease.size == 0 &&
        expected->step.status == STEP_RUNNING && found->step.lease.size > 0)
        return found->step.lease.size == LEASE_TOKEN_SIZE && found->step.lease_ms > 0;
    return str_eq(expected->step.lease, found->step.lease) &&
           expected->step.lease_ms == found->step.lease_ms;
}

static bool is_same(const struct live_fact *expected, const struct live_fact *found,
                    uint32_t compiler)
{
    switch (expected->kind) {
    case LIVE_STEP:
        return expected->step.plan == found->step.plan &&
               expected->step.attempt == found->step.attempt &&
               expected->step.status == found->step.status &&
               expected->step.ready_at_ms == found->step.ready_at_ms &&
               is_same_lease(expected, found, compiler);
    case LIVE_TIMER:
        return expected->timer.due_at_ms == found->timer.due_at_ms &&
               expected->timer.wall == found->timer.wall;
    case LIVE_WAIT:
        return str_eq(expected->wait.value, found->wait.value);
    case LIVE_CHILD:
        return expected->child.number == found->child.number &&
               expected->child.is_abandoned == found->child.is_abandoned;
    }
    return false;
}

static pawl_status compare_facts(struct verify *v, uint32_t compiler,
                                 const struct live_fact *expected,
                                 size_t expected_count, const struct live_fact *found,
                                 size_t found_count)
{
    for (size_t i = 0; i < expected_count || i < found_count; i++) {
        int order = i == expected_count ? 1
                    : i == found_count  ? -1
                                        : compare_keys(&expected[i], &found[i]);

        if (order < 0)
            return bad_fact(v, &expected[i], "is missing");
        if (order > 0)
            return bad_fact(v, &found[i], "does not follow from the entries");
        if (!is_same(&expected[i], &found[i], compiler) ||
            (v->whole && expected[i].kind == LIVE_TIMER &&
             expected[i].timer.shift_ms != found[i].timer.shift_ms))
            return bad_fact(v, &expected[i], "is not as the entries left it");
    }
    return PAWL_OK;
}

/* A child that is marked has ended, and one that is not has not. */
static pawl_status check_ended(struct verify *v, const struct live *live)
{
    for (uint32_t i = 0; i < live->child_count; i++) {
        const struct chain *child = verify_find_chain(v, live->children[i].child);

        if (child && live->children[i].ended !=
                         (v->rules[child->rules].terminal[child->state] != TERMINAL_NOT))
            return verify_bad(v, "the row of child %llu says that it has %sended",
                              (unsigned long long)live->children[i].child,
                              live->children[i].ended ? "" : "not ");
    }
    return PAWL_OK;
}

pawl_status verify_live(struct verify *v, const struct chain *chain)
{
    struct live live = { 0 };
    struct live_fact *found;
    size_t found_count, expected_count = chain->fold ? chain->fold->count : 0;
    pawl_status status = store_live(v->store, &v->scope, chain->number, &live);

    if (status != PAWL_OK)
        return status;
    if (live.paused_pos != chain->paused_pos)
        return verify_bad(v, "its pause row names position %llu; the log says %llu",
                          (unsigned long long)live.paused_pos,
                          (unsigned long long)chain->paused_pos);
    status = check_ended(v, &live);
    if (status != PAWL_OK)
        return status;
    found_count = count_facts(&live);
    if (found_count == 0 && expected_count == 0)
        return PAWL_OK;
    found = list_facts(&v->scope.arena, &live);
    if (!found)
        return scope_no_memory(&v->scope);
    qsort(found, found_count, sizeof *found, compare_keys);
    if (chain->fold)
        qsort(chain->fold->facts, expected_count, sizeof *found, compare_keys);
    return compare_facts(v, v->rules[chain->rules].compiler, chain->fold ? chain->fold->facts : NULL, expected_count, found,
                         found_count);
}
