/* rebuild.c - the rows that follow from the log, made from the log.
 *
 * A check has read the log to its end and found nothing wrong with it: what it has folded for each
 * instance is what the rows should be. They are compared, so that it can be told what differed,
 * and then all of them are written again. */
#include "base/assert.h"
#include "base/sort.h"
#include "evidence/verify_int.h"
#include <stdio.h>
#include <stdlib.h>

struct rebuilding {
    struct verify *v;
    struct arena arena; /* all rows until they are written */
    struct rebuild_report *report;
    struct head_row *heads;
    struct live_change *live;
    struct snapshot_row *snapshots;
    struct standing_change *standing;
    struct key_row *keys;
    uint32_t head_count, head_capacity, live_count, live_capacity, snapshot_count,
        snapshot_capacity, key_count, standing_count;
};

/* ---- What differs ---- */

/* A finding of the check becomes a difference, and the check goes on. */
static pawl_status take_finding(struct rebuilding *work, pawl_status status, const char *where)
{
    struct verify *v = work->v;

    if (status != PAWL_STORAGE_FAILURE || v->report->valid)
        return status;
    work->report->differences++;
    if (work->report->told < REBUILD_TOLD_MAX)
        snprintf(work->report->what[work->report->told++], REBUILD_WORDS_SIZE, "%s: %s", where,
                 v->report->what);
    v->report->valid = true;
    return PAWL_OK;
}

/* The check stops at the first thing that is wrong with an instance: its head. */
static pawl_status compare_live(struct rebuilding *work, const struct chain *chain, const char *id)
{
    struct verify *v = work->v;
    char head_words[sizeof v->report->what];
    pawl_status status;

    memcpy(head_words, v->report->what, sizeof head_words);
    scope_clear(&v->scope);
    status = verify_live(v, chain);
    if (status == PAWL_STORAGE_FAILURE && !v->report->valid &&
        strcmp(head_words, v->report->what) == 0) {
        v->report->valid = true; /* it was that already */
        return PAWL_OK;
    }
    return take_finding(work, status, id);
}

static pawl_status compare_chain(struct rebuilding *work, uint32_t index)
{
    const struct chain *chain = &work->v->chains[index];
    uint64_t before = work->report->differences;
    char id[ID_SIZE + 1] = "the store";

    if (chain->number != 0)
        id_print(chain->number, chain->random, id);
    TRY(take_finding(work, verify_rows_of(work->v, index), id));
    if (chain->number != 0 && work->report->differences > before)
        TRY(compare_live(work, chain, id));
    return PAWL_OK;
}

/* ---- The rows ---- */

static pawl_status add_live(struct rebuilding *work, struct live_change change)
{
    TRY_MEMORY(&work->v->scope,
               HEAP_GROW(work->v->heap, work->live, work->live_capacity, work->live_count + 1));
    work->live[work->live_count++] = change;
    return PAWL_OK;
}

/* A lease that no entry covers (before compiler 2) is kept as it is. */
static bool keep_old_lease(struct rebuilding *work, const struct chain *chain,
                           struct live_change *row, const struct live *there)
{
    uint32_t compiler = chain_definition(work->v, chain)->compiler;
    const struct live_step *step = NULL;

    for (uint32_t i = 0; i < there->step_count; i++)
        if (there->steps[i].ordinal == row->ordinal)
            step = &there->steps[i];

    if (step && !row->step.lease.data && step->lease.size == LEASE_TOKEN_SIZE &&
        row->step.status == STEP_RUNNING && compiler < LEASE_COMPILER) {
        row->step.lease = arena_str(&work->arena, step->lease);
        row->step.lease_ms = step->lease_ms;
    }
    return !work->arena.failed;
}

static pawl_status add_row(struct rebuilding *work, const struct chain *chain,
                           struct live_change row, const struct live *there, bool is_test)
{
    const struct chain *child;

    row.instance = chain->number;
    if (row.kind == LIVE_STEP_PUT && !keep_old_lease(work, chain, &row, there))
        return scope_no_memory(&work->v->scope);
    if (row.kind == LIVE_TIMER_PUT) {
        row.timer.due_at_ms += row.timer.shift_ms;
        row.timer.test = is_test;
    }
    TRY(add_live(work, row));
    child = row.kind == LIVE_CHILD_PUT ? verify_find_chain(work->v, row.child.number) : NULL;
    if (!child || !chain_has_ended(work->v, child))
        return PAWL_OK;
    return add_live(work,
                    (struct live_change){ .kind = LIVE_CHILD_ENDED, .instance = child->number });
}

static pawl_status add_live_rows(struct rebuilding *work, const struct chain *chain)
{
    struct verify *v = work->v;
    struct instance_row row = { 0 };
    struct live there = { 0 };

    if (chain->fold) {
        scope_clear(&v->scope);
        TRY(store_instance(v->store, &v->scope, chain->number, &row));
        TRY(store_live(v->store, &v->scope, chain->number, &there));
        for (uint32_t i = 0; i < chain->fold->count; i++)
            TRY(add_row(work, chain, chain->fold->rows[i], &there, row.test));
    }
    if (chain->paused_pos > 0)
        TRY(add_live(work, (struct live_change){ .kind = LIVE_PAUSE_PUT,
                                                 .instance = chain->number,
                                                 .pause.pos = chain->paused_pos }));
    return PAWL_OK;
}

static pawl_status add_head(struct rebuilding *work, const struct chain *chain)
{
    if (chain->pos == 0)
        return PAWL_OK;
    TRY_MEMORY(&work->v->scope,
               HEAP_GROW(work->v->heap, work->heads, work->head_capacity, work->head_count + 1));
    work->heads[work->head_count++] = (struct head_row){
        .instance = chain->number, .seq = chain->seq, .pos = chain->pos, .state = chain->state
    };
    return PAWL_OK;
}

/* One that no entry tells of would not be used; it can be thrown away. */
static pawl_status drop_snapshot(struct rebuilding *work, const struct chain *chain)
{
    struct verify *v = work->v;
    struct snapshot_row row;
    bool is_right;

    scope_clear(&v->scope);
    TRY(verify_snapshot(v, chain, &row, &is_right));
    if (is_right)
        return PAWL_OK;
    TRY_MEMORY(&v->scope, HEAP_GROW(v->heap, work->snapshots, work->snapshot_capacity,
                                    work->snapshot_count + 1));
    work->snapshots[work->snapshot_count++] = (struct snapshot_row){ .instance = chain->number };
    return PAWL_OK;
}

static pawl_status collect_chains(struct rebuilding *work)
{
    struct verify *v = work->v;

    for (uint32_t i = 0; i < v->chain_count; i++) {
        TRY(compare_chain(work, i));
        TRY(add_head(work, &v->chains[i]));
        if (v->chains[i].number != 0) {
            TRY(add_live_rows(work, &v->chains[i]));
            TRY(drop_snapshot(work, &v->chains[i]));
        }
        if (i % BATCH_SIZE == 0)
            TRY(verify_tell(v, VERIFY_INSTANCES, i, v->chain_count - 1));
    }
    if (work->head_count > 1)
        qsort(work->heads, work->head_count, sizeof *work->heads, compare_numbers_first);
    return PAWL_OK;
}

static pawl_status add_erased(struct rebuilding *work, const struct chain *chain)
{
    char id[ID_SIZE + 1];

    if (!chain->erased_pos)
        return PAWL_OK;
    id_print(chain->number, chain->random, id);
    work->standing[work->standing_count++] =
        (struct standing_change){ .row = { .what = CONTROL_ERASE,
                                           .id = arena_str(&work->arena, str_of(id)),
                                           .pos = chain->erased_pos },
                                  .is_put = true };
    return work->arena.failed ? scope_no_memory(&work->v->scope) : PAWL_OK;
}

static pawl_status add_departed(struct rebuilding *work, const struct departed *departed)
{
    char id[ID_SIZE + 1];

    id_print(departed->number, departed->random, id);
    work->standing[work->standing_count++] =
        (struct standing_change){ .row = { .what = CONTROL_ARCHIVE,
                                           .id = arena_str(&work->arena, str_of(id)),
                                           .pos = departed->pos },
                                  .is_put = true };
    return work->arena.failed ? scope_no_memory(&work->v->scope) : PAWL_OK;
}

/* verify_all_keys() sorts them by id and position: the last of each counts. */
static pawl_status collect_standing(struct rebuilding *work)
{
    struct verify *v = work->v;

    verify_at(v, 0, 0, 0);
    TRY(take_finding(work, verify_all_keys(v), "the store"));
    TRY(take_finding(work, verify_all_standing(v), "the store"));
    TRY(take_finding(work, verify_tables(v), "the store"));

    work->standing =
        ARENA_ARRAY(&work->arena, struct standing_change,
                    (size_t)v->standing_count + v->chain_count + v->departed_count + 1);
    work->keys = ARENA_ARRAY(&work->arena, struct key_row, v->key_count + 1);
    TRY_MEMORY(&v->scope, work->standing && work->keys);
    for (uint32_t i = 0; i < v->standing_count; i++)
        work->standing[i] = (struct standing_change){ .row = v->standing[i], .is_put = true };
    work->standing_count = v->standing_count;
    for (uint32_t i = 1; i < v->chain_count; i++)
        TRY(add_erased(work, &v->chains[i]));
    for (uint32_t i = 0; i < v->departed_count; i++)
        if (map_get(&v->departed_map, v->departed[i].number) == i)
            TRY(add_departed(work, &v->departed[i]));
    for (uint32_t i = 0; i < v->key_count; i++)
        if (i + 1 == v->key_count || memcmp(v->keys[i].id, v->keys[i + 1].id, KEY_ID_SIZE) != 0)
            work->keys[work->key_count++] = v->keys[i];
    return PAWL_OK;
}

static void count_rows(struct rebuilding *work)
{
    struct rebuild_report *report = work->report;

    report->heads = work->head_count;
    report->keys = work->key_count;
    report->kept = work->standing_count;
    for (uint32_t i = 0; i < work->live_count; i++) {
        enum live_change_kind kind = work->live[i].kind;

        report->steps += kind == LIVE_STEP_PUT;
        report->timers += kind == LIVE_TIMER_PUT;
        report->waits += kind == LIVE_WAIT_PUT;
        report->pauses += kind == LIVE_PAUSE_PUT;
    }
}

/* An owner's store has no other writer; its write turn shows whether that is true. */
static pawl_status write_rows(struct rebuilding *work)
{
    struct verify *v = work->v;
    struct store_tip tip;
    struct commit commit = {
        .heads = work->heads,
        .head_count = work->head_count,
        .live = work->live,
        .live_count = work->live_count,
        .snapshots = work->snapshots,
        .snapshot_count = work->snapshot_count,
        .keys = work->keys,
        .key_count = work->key_count,
        .standing = work->standing,
        .standing_count = work->standing_count,
        .flushed = v->pos,
        .is_rebuild = true,
    };

    TRY(store_begin(v->store, &v->scope, &tip));
    if (tip.pos != v->pos) {
        store_rollback(v->store);
        return scope_fail(&v->scope, PAWL_CONFLICT,
                          "another process wrote to the store meanwhile: try again");
    }
    return store_commit(v->store, &v->scope, &commit);
}

pawl_status verify_rebuild(struct verify *v)
{
    struct rebuilding work = { .v = v, .report = v->request->rebuild };
    pawl_status status;

    arena_init(&work.arena, v->heap, SIZE_MAX);
    status = collect_chains(&work);
    if (status == PAWL_OK)
        status = collect_standing(&work);
    v->report->what[0] = '\0'; /* a difference is no finding */
    if (status == PAWL_OK) {
        count_rows(&work);
        scope_clear(&v->scope);
        status = write_rows(&work);
    }
    heap_free(v->heap, work.heads, work.head_capacity * sizeof *work.heads);
    heap_free(v->heap, work.live, work.live_capacity * sizeof *work.live);
    heap_free(v->heap, work.snapshots, work.snapshot_capacity * sizeof *work.snapshots);
    arena_fini(&work.arena);
    return status;
}
