/* verify_live.c - the live rows of an instance: folded from the effects of its entries, and
 * compared with what the store holds. An end that finds nothing to end is no fault: taking
 * back a timer that has fired is how behaviors are written. */
#include "base/assert.h"
#include "evidence/verify_int.h"
#include <stdlib.h>

static const char *const kind_names[] = { [LIVE_STEP_PUT] = "step",
                                          [LIVE_TIMER_PUT] = "timer",
                                          [LIVE_WAIT_PUT] = "wait",
                                          [LIVE_CHILD_PUT] = "child" };

/* Order of kind, ordinal, name: what a row is found by. */
static int compare_keys(const void *left, const void *right)
{
    const struct live_change *a = left, *b = right;

    if (a->kind != b->kind)
        return a->kind < b->kind ? -1 : 1;
    if (a->ordinal != b->ordinal)
        return a->ordinal < b->ordinal ? -1 : 1;
    return str_compare(a->name, b->name);
}

/* ---- folding ---- */

static struct live_change *find_row(struct fold *fold, const struct live_change *key)
{
    for (uint32_t i = 0; fold && i < fold->count; i++)
        if (compare_keys(&fold->rows[i], key) == 0)
            return &fold->rows[i];
    return NULL;
}

struct live_change *verify_find_timer(struct chain *chain, uint32_t ordinal, str name)
{
    struct live_change key = { .kind = LIVE_TIMER_PUT, .ordinal = ordinal, .name = name };

    return find_row(chain->fold, &key);
}

/* The text that a row has beside its name; NULL: its kind has none. */
static str *text_of(struct live_change *row)
{
    return row->kind == LIVE_STEP_PUT   ? &row->step.lease
           : row->kind == LIVE_WAIT_PUT ? &row->wait.value
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

static void free_texts(struct verify *v, struct live_change *row)
{
    free_text(v, &row->name);
    if (text_of(row))
        free_text(v, text_of(row));
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

static bool copy_texts(struct verify *v, struct live_change *row)
{
    str none = STR_NONE, *text = text_of(row) ? text_of(row) : &none;
    bool has_name = copy_text(v, &row->name), has_text = copy_text(v, text);

    if (!has_name || !has_text)
        free_texts(v, row);
    return has_name && has_text;
}

pawl_status verify_put_row(struct verify *v, struct chain *chain, struct live_change row)
{
    struct live_change *found = find_row(chain->fold, &row);
    struct fold *fold;

    TRY_MEMORY(&v->scope, copy_texts(v, &row));
    if (found) {
        free_texts(v, found);
        *found = row;
        return PAWL_OK;
    }
    if (!chain->fold)
        chain->fold = heap_new(v->heap, sizeof *chain->fold);
    fold = chain->fold;
    if (!fold || !HEAP_GROW(v->heap, fold->rows, fold->capacity, fold->count + 1)) {
        free_texts(v, &row);
        return scope_no_memory(&v->scope);
    }
    fold->rows[fold->count++] = row;
    return PAWL_OK;
}

static void remove_row(struct verify *v, struct chain *chain, struct live_change key)
{
    struct live_change *found = find_row(chain->fold, &key);

    if (!found)
        return;
    free_texts(v, found);
    *found = chain->fold->rows[--chain->fold->count];
    if (chain->fold->count == 0)
        verify_drop_fold(v, chain);
}

void verify_drop_fold(struct verify *v, struct chain *chain)
{
    struct fold *fold = chain->fold;

    if (!fold)
        return;
    for (uint32_t i = 0; i < fold->count; i++)
        free_texts(v, &fold->rows[i]);
    heap_free(v->heap, fold->rows, fold->capacity * sizeof *fold->rows);
    heap_free(v->heap, fold, sizeof *fold);
    chain->fold = NULL;
}

/* A step that an entry moves has a row, which keeps its plan and attempt. */
static pawl_status fold_step(struct verify *v, struct chain *chain, const struct live_change *moved)
{
    const struct live_change key = { .kind = LIVE_STEP_PUT, .ordinal = moved->ordinal };
    struct live_change *found = find_row(chain->fold, &key);
    str lease = moved->step.lease;

    if (!found)
        return verify_bad(v, "the entry moves step row %u, which is not there", moved->ordinal);
    TRY_MEMORY(&v->scope, copy_text(v, &lease));
    free_text(v, &found->step.lease);
    found->step.status = moved->step.status;
    found->step.lease = lease;
    found->step.lease_ms = moved->step.lease_ms;
    found->step.ready_at_ms = moved->step.ready_at_ms;
    return PAWL_OK;
}

static pawl_status fold_change(struct verify *v, struct chain *chain, struct live_change *change)
{
    enum live_change_kind kind = change->kind;

    if (kind == LIVE_STEP_DELETE) { /* with its timers, waits and child */
        for (uint32_t i = chain->fold ? chain->fold->count : 0; i-- > 0;)
            if (chain->fold && chain->fold->rows[i].ordinal == change->ordinal)
                remove_row(v, chain, chain->fold->rows[i]);
        return PAWL_OK;
    }
    if (kind != LIVE_TIMER_DELETE && kind != LIVE_WAIT_DELETE)
        return verify_put_row(v, chain, *change);
    change->kind = kind == LIVE_TIMER_DELETE ? LIVE_TIMER_PUT : LIVE_WAIT_PUT; /* what goes */
    remove_row(v, chain, *change);
    return PAWL_OK;
}

static pawl_status fold_effect(struct verify *v, struct chain *chain, const struct effect *effect,
                               int64_t at_ms)
{
    struct live_change change = { 0 };
    bool is_live = live_change_of(effect, 0, 0, at_ms, &change);

    if (effect->kind == EFFECT_SPAWN && !is_live && effect->name.size > 0)
        return verify_bad(v, "the entry names a child with an invalid id");
    if (effect->kind == EFFECT_SNAPSHOT) {
        chain->snapshot_seq = chain->seq;
        return sha_unhex(effect->name, chain->snapshot_sha, SHA_SIZE)
                   ? PAWL_OK
                   : verify_bad(v, "the entry names a snapshot without its hash");
    }
    if (effect->kind == EFFECT_READY || effect->kind == EFFECT_RUN)
        return fold_step(v, chain, &change);
    return is_live ? fold_change(v, chain, &change) : PAWL_OK;
}

pawl_status verify_fold_effects(struct verify *v, struct chain *chain,
                                const struct effect_list *effects, int64_t at_ms)
{
    for (uint32_t i = 0; i < effects->count; i++)
        TRY(fold_effect(v, chain, &effects->items[i], at_ms));
    return PAWL_OK;
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

static size_t count_rows(const struct live *live)
{
    return (size_t)live->step_count + live->timer_count + live->wait_count + live->child_count;
}

static struct live_change *list_rows(struct arena *arena, const struct live *live)
{
    struct live_change *rows = ARENA_ARRAY(arena, struct live_change, count_rows(live) + 1);
    struct live_change *next = rows;

    for (uint32_t i = 0; rows && i < live->step_count; i++)
        *next++ = (struct live_change){
            .kind = LIVE_STEP_PUT,
            .ordinal = live->steps[i].ordinal,
            .step = { .plan = live->steps[i].plan,
                      .attempt = live->steps[i].attempt,
                      .status = live->steps[i].status,
                      .lease = live->steps[i].lease,
                      .lease_ms = live->steps[i].lease_ms,
                      .ready_at_ms = live->steps[i].ready_at_ms },
        };
    for (uint32_t i = 0; rows && i < live->timer_count; i++)
        *next++ = (struct live_change){
            .kind = LIVE_TIMER_PUT,
            .ordinal = live->timers[i].ordinal,
            .name = live->timers[i].name,
            .timer.due_at_ms = live->timers[i].due_at_ms - live->timers[i].shift_ms,
            .timer.shift_ms = live->timers[i].shift_ms,
            .timer.wall = live->timers[i].wall,
        };
    for (uint32_t i = 0; rows && i < live->wait_count; i++)
        *next++ = (struct live_change){ .kind = LIVE_WAIT_PUT,
                                      .ordinal = live->waits[i].ordinal,
                                      .name = live->waits[i].name,
                                      .wait.value = live->waits[i].value };
    for (uint32_t i = 0; rows && i < live->child_count; i++)
        *next++ = (struct live_change){
            .kind = LIVE_CHILD_PUT,
            .ordinal = live->children[i].ordinal,
            .child = { live->children[i].child, live->children[i].abandon },
        };
    return rows;
}

static pawl_status bad_row(struct verify *v, const struct live_change *row, const char *what)
{
    return verify_bad(v, "%s row %u%s%.*s %s", kind_names[row->kind], row->ordinal,
                      row->name.size > 0 ? " " : "", STR_ARG(row->name), what);
}

/* Before compiler 2 no entry covered a lease: a running step's row may then hold one, as its
 * token. */
static bool is_same_lease(const struct live_change *expected, const struct live_change *found,
                          uint32_t compiler)
{
    if (compiler < LEASE_COMPILER && expected->step.lease.size == 0 &&
        expected->step.status == STEP_RUNNING && found->step.lease.size > 0)
        return found->step.lease.size == LEASE_TOKEN_SIZE && found->step.lease_ms > 0;
    return str_eq(expected->step.lease, found->step.lease) &&
           expected->step.lease_ms == found->step.lease_ms;
}

static bool is_same_step(const struct live_change *expected, const struct live_change *found,
                         uint32_t compiler)
{
    return expected->step.plan == found->step.plan &&
           expected->step.attempt == found->step.attempt &&
           expected->step.status == found->step.status &&
           expected->step.ready_at_ms == found->step.ready_at_ms &&
           is_same_lease(expected, found, compiler);
}

/* Two rows of the same kind, ordinal and name. */
static bool is_same(const struct live_change *expected, const struct live_change *found,
                    uint32_t compiler)
{
    if (expected->kind == LIVE_STEP_PUT)
        return is_same_step(expected, found, compiler);
    if (expected->kind == LIVE_TIMER_PUT)
        return expected->timer.due_at_ms == found->timer.due_at_ms &&
               expected->timer.wall == found->timer.wall;
    if (expected->kind == LIVE_WAIT_PUT)
        return str_eq(expected->wait.value, found->wait.value);
    ASSERT(expected->kind == LIVE_CHILD_PUT);
    return expected->child.number == found->child.number &&
           expected->child.is_abandoned == found->child.is_abandoned;
}

static pawl_status compare_rows(struct verify *v, uint32_t compiler,
                                 const struct live_change *expected,
                                 size_t expected_count, const struct live_change *found,
                                 size_t found_count)
{
    for (size_t i = 0; i < expected_count || i < found_count; i++) {
        int order = i == expected_count ? 1
                    : i == found_count  ? -1
                                        : compare_keys(&expected[i], &found[i]);

        if (order < 0)
            return bad_row(v, &expected[i], "is missing");
        if (order > 0)
            return bad_row(v, &found[i], "does not follow from the entries");
        if (!is_same(&expected[i], &found[i], compiler) ||
            (v->whole && expected[i].kind == LIVE_TIMER_PUT &&
             expected[i].timer.shift_ms != found[i].timer.shift_ms))
            return bad_row(v, &expected[i], "is not as the entries left it");
    }
    return PAWL_OK;
}

/* A child that is marked has ended, and one that is not has not. */
static pawl_status check_ended(struct verify *v, const struct live *live)
{
    for (uint32_t i = 0; i < live->child_count; i++) {
        const struct chain *child = verify_find_chain(v, live->children[i].child);

        if (child && live->children[i].ended != chain_has_ended(v, child))
            return verify_bad(v, "the row of child %llu says that it has %sended",
                              (unsigned long long)live->children[i].child,
                              live->children[i].ended ? "" : "not ");
    }
    return PAWL_OK;
}

pawl_status verify_live(struct verify *v, const struct chain *chain)
{
    struct live live = { 0 };
    struct live_change *found;
    size_t found_count, expected_count = chain->fold ? chain->fold->count : 0;

    TRY(store_live(v->store, &v->scope, chain->number, &live));
    if (live.paused_pos != chain->paused_pos)
        return verify_bad(v, "its pause row names position %llu; the log says %llu",
                          (unsigned long long)live.paused_pos,
                          (unsigned long long)chain->paused_pos);
    TRY(check_ended(v, &live));
    found_count = count_rows(&live);
    if (found_count == 0 && expected_count == 0)
        return PAWL_OK;
    found = list_rows(&v->scope.arena, &live);
    TRY_MEMORY(&v->scope, found);
    qsort(found, found_count, sizeof *found, compare_keys);
    if (chain->fold)
        qsort(chain->fold->rows, expected_count, sizeof *found, compare_keys);
    return compare_rows(v, chain_definition(v, chain)->compiler,
                        chain->fold ? chain->fold->rows : NULL, expected_count, found, found_count);
}
