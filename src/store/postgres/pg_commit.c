/* pg_commit.c - a turn to write, and the one round trip that ends it.
 *
 * The first statement moves the shard's tip and checks its epoch and position: where it finds no
 * row it divides by zero, which ends the transaction on every relative of PostgreSQL. So a stale
 * owner writes nothing, whatever its clock says. An error before COMMIT was answered is definite:
 * the server skips the rest of a pipeline, COMMIT too. No answer, or a COMMIT that warns that its
 * standby was not waited for, is an unknown outcome: the store is then broken until reopen() has
 * claimed the shard again. */
#include "base/assert.h"
#include "base/grow.h"
#include "base/planted.h"
#include "postgres_int.h"

const char pg_begin[] = "BEGIN", pg_end_commit[] = "COMMIT";

#define MOVE_TIP                                                                                   \
    "UPDATE pawl_shard SET pos = $4, flushed = $5, at = $6, last_instance = $7, last_value = $8,"  \
    " last_definition = $9, test_now = $10, root = $11"                                            \
    " WHERE shard = $1 AND epoch = $2 AND pos = $3"
/* A planted defect: whose shard it is is not looked at. */
#define MOVE_ANY_TIP                                                                               \
    "UPDATE pawl_shard SET pos = $4, flushed = $5, at = $6, last_instance = $7, last_value = $8,"  \
    " last_definition = $9, test_now = $10, root = $11"                                            \
    " WHERE shard = $1 AND $2::bigint IS NOT NULL AND $3::bigint IS NOT NULL"
static const char no_fence[] =
    "WITH f AS (" MOVE_ANY_TIP " RETURNING 1) SELECT 1 / count(*) FROM f";
static const char fence[] = "WITH f AS (" MOVE_TIP " RETURNING 1) SELECT 1 / count(*) FROM f";
/* A commit of records alone: one statement, its own transaction. No row: another has the shard. */
static const char fence_and_log[] =
    "WITH f AS (" MOVE_TIP " RETURNING shard) INSERT INTO pawl_log (shard, pos, n, at, inst,"
    " seq, prev, what, hash, skip, flags, ats, fired, step, ord, attempt, actor, payload, reason,"
    " body, keys, root) SELECT f.shard, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22,"
    " $23, $24, $25, $26, $27, $28, $29, $30, $31, $32 FROM f RETURNING 1";

/* Not with the planted defects. */
bool pg_has_fence(void)
{
    return !PLANTED(NO_FENCE) && !PLANTED(FENCE_EARLY);
}

/* ---- The turn ---- */

static pawl_status begin_shared(struct postgres_store *store, struct scope *scope)
{
    struct shard_row row;

    TRY(link_connect(store->writer, scope));
    TRY(shard_lock(store->writer, scope, store->shard, &row));
    if (row.is_there && row.node.data)
        TRY(shard_take_from_dead(store->writer, scope, &row, store->shard));
    if (!row.is_there)
        return postgres_fail_no_row(scope, store->shard);
    if (row.node.data)
        return postgres_fail_owned(scope, &row);
    store->epoch = row.epoch;
    store->tip = row.tip;
    atomic_fetch_add(&store->changes, 1);
    return PAWL_OK;
}

static void roll_back(struct postgres_store *store)
{
    if (store->writer->conn && link_script(store->writer, "ROLLBACK") != LINK_OK)
        link_close(store->writer);
}

static pawl_status fail_taken(struct postgres_store *store, struct scope *scope)
{
    return scope_fail(scope, PAWL_IN_USE,
                      "another node has claimed shard %u since epoch %lld: nothing was written",
                      store->shard, (long long)store->epoch);
}

/* The planted defect FENCE_EARLY. */
static pawl_status look_early(struct postgres_store *store, struct scope *scope)
{
    struct shard_row row;
    pawl_status status;

    pthread_mutex_lock(&store->lane->lock);
    status = link_connect(store->writer, scope);
    if (status == PAWL_OK)
        status = shard_read(store->writer, scope, store->shard, &row);
    pthread_mutex_unlock(&store->lane->lock);
    TRY(status);
    return row.epoch == store->epoch ? PAWL_OK : fail_taken(store, scope);
}

/* An owner's turn costs nothing: the tip is its own. */
pawl_status postgres_begin(struct store *base, struct scope *scope, struct store_tip *out)
{
    struct postgres_store *store = postgres_of(base);
    pawl_status status = PAWL_OK;

    ASSERT(!store->in_turn);
    TRY(postgres_check(store, scope));
    if (store->own && atomic_load(&store->node->is_over)) {
        base->trouble = TROUBLE_TAKEN;
        return scope_fail(scope, PAWL_IN_USE,
                          "this node was declared dead, since it did not answer for longer than"
                          " its "
                          "lease: another may have the store");
    }
    if (!store->own && store->is_member)
        return scope_fail(scope, PAWL_IN_USE, "shard %u is not this node's", store->shard);
    if (PLANTED(FENCE_EARLY) && store->own)
        status = look_early(store, scope);
    if (!store->own)
        status = begin_shared(store, scope);
    if (status != PAWL_OK) {
        pawl_error kept = scope->error;

        roll_back(store);
        scope->error = kept;
        return status;
    }
    store->in_turn = true;
    store->tip.changes = atomic_load(&store->changes);
    *out = store->tip;
    return PAWL_OK;
}

static void end_turn(struct postgres_store *store)
{
    ASSERT(store->in_turn);
    store->in_turn = false;
    scope_clear(&store->work);
    atomic_fetch_add(&store->changes, 1); /* what was expected in the turn holds no more */
}

void postgres_rollback(struct store *base)
{
    struct postgres_store *store = postgres_of(base);

    if (!store->own)
        roll_back(store);
    end_turn(store);
}

/* ---- The statements ---- */

struct params *sending_add(struct sending *sending, const char *text)
{
    struct arena *arena = &sending->scope->arena;
    struct params *params = ARENA_NEW(arena, struct params);

    if (!params || !GROW(arena, sending->statements, sending->count, sending->capacity))
        return NULL;
    params->arena = arena;
    params_int4(params, sending->store->shard);
    sending->statements[sending->count++] = (struct statement){ text, params, NULL, false };
    return params;
}

static bool add_bare(struct sending *sending, const char *text)
{
    struct arena *arena = &sending->scope->arena;

    if (!GROW(arena, sending->statements, sending->count, sending->capacity))
        return false;
    sending->statements[sending->count++] = (struct statement){ text, NULL, NULL, false };
    return true;
}

static void add_tip(struct params *params, int64_t epoch, const struct store_tip *before,
                    const struct store_tip *after)
{
    params_int(params, epoch);
    params_int(params, (int64_t)before->pos);
    params_int(params, (int64_t)after->pos);
    params_int(params, (int64_t)after->flushed);
    params_int(params, after->at_ms);
    params_int(params, (int64_t)after->last_instance);
    params_int(params, (int64_t)after->last_value);
    params_int4(params, after->last_definition);
    params_int(params, after->test_now_ms);
    params_bytes(params, (str){ (const char *)after->root, SHA_SIZE });
}

static bool is_records_alone(const struct commit *commit)
{
    return commit->record_count > 0 && !commit->value_count && !commit->definition_count &&
           !commit->instance_count && !commit->head_count && !commit->live_count &&
           !commit->snapshot_count && !commit->key_count && !commit->standing_count &&
           !commit->shift_ms && !commit_erases(commit) && log_is_one_row(commit);
}

/* An owner's, of records alone. */
static pawl_status gather_one(struct sending *sending, const struct commit *commit,
                              const struct store_tip *after)
{
    struct params *params = sending_add(sending, fence_and_log);

    TRY_MEMORY(sending->scope, params);
    add_tip(params, sending->store->epoch, &sending->store->tip, after);
    log_params(params, commit->records, commit->record_count);
    return PAWL_OK;
}

static pawl_status gather_all(struct sending *sending, const struct commit *commit,
                              const struct store_tip *after)
{
    struct postgres_store *store = sending->store;
    struct params *params;

    if (store->own && !store->is_held) /* a shared writer's transaction has begun with its turn */
        TRY_MEMORY(sending->scope, add_bare(sending, pg_begin));
    params = sending_add(sending, pg_has_fence() ? fence : no_fence);
    TRY_MEMORY(sending->scope, params);
    add_tip(params, store->epoch, &store->tip, after);
    TRY(send_erased(sending, commit));
    TRY(send_rows(sending, commit));
    TRY(send_definitions(sending, commit));
    TRY(send_labels(sending, commit));
    TRY(send_log(sending, commit));
    TRY(send_live(sending, commit));
    store->is_held = PLANTED(ACK_BEFORE_COMMIT) && store->own && !store->is_held &&
                     !commit->instance_count && !commit->definition_count;
    if (!store->is_held) /* else the next one ends it */
        TRY_MEMORY(sending->scope, add_bare(sending, pg_end_commit));
    return sending->scope->arena.failed ? scope_no_memory(sending->scope) : PAWL_OK;
}

/* ---- What came out of it ---- */

pawl_status pg_fail_unknown(struct postgres_store *store, struct scope *scope)
{
    atomic_store(&store->broken, true);
    if (!*store->writer->words)
        return scope_fail(scope, PAWL_OUTCOME_UNKNOWN,
                          "PostgreSQL committed and did not wait for its synchronous standby:"
                          " the "
                          "commit may be lost with this server");
    return scope_fail(scope, PAWL_OUTCOME_UNKNOWN,
                      "the commit was sent and not answered (%s): it may have happened or not",
                      store->writer->words);
}

static bool is_state(const struct postgres_store *store, const char *state)
{
    return strcmp(store->writer->state, state) == 0;
}

/* An error that the server named: nothing was written. 40003 is its word for not knowing. */
static pawl_status fail_refused(struct postgres_store *store, struct scope *scope)
{
    pawl_status status;

    if (is_state(store, "40003"))
        return pg_fail_unknown(store, scope);
    if (is_state(store, "22012"))
        status = fail_taken(store, scope);
    else
        status = link_fail(store->writer, scope, "committing");
    if (link_is_full(store->writer))
        store->base.trouble = TROUBLE_FULL;
    roll_back(store);
    return status;
}

static bool is_committed(struct postgres_store *store, const struct sending *sending)
{
    const struct statement *last = &sending->statements[sending->count - 1];

    if (store->is_held)
        return true;
    if (last->text == fence_and_log)
        return rows_count(&(struct pg_rows){ store->writer->pq, last->result, 0 }) == 1;
    return strcmp(store->writer->pq->cmdStatus(last->result), "COMMIT") == 0;
}

pawl_status pg_judge_part(struct postgres_store *store, struct scope *scope,
                          const struct statement *last)
{
    if (last->text != fence_and_log ||
        rows_count(&(struct pg_rows){ store->writer->pq, last->result, 0 }) == 1)
        return PAWL_OK;
    return fail_taken(store, scope);
}

static pawl_status judge(struct postgres_store *store, struct scope *scope,
                         const struct sending *sending, enum link_end end)
{
    const struct statement *last = &sending->statements[sending->count - 1];

    if (end == LINK_LOST)
        return pg_fail_unknown(store, scope);
    if (end == LINK_REFUSED)
        return fail_refused(store, scope);
    if (!is_committed(store, sending))
        return last->text == fence_and_log
                   ? fail_taken(store, scope)
                   : scope_fail(scope, PAWL_STORAGE_FAILURE,
                                "PostgreSQL rolled the commit back: nothing was written");
    return store->writer->has_warned ? pg_fail_unknown(store, scope) : PAWL_OK;
}

/* In one round trip, but for a commit of very many statements. */
static enum link_end send_all(struct postgres_store *store, struct sending *sending)
{
    enum link_end end = LINK_OK;

    for (uint32_t sent = 0, next; end == LINK_OK && sent < sending->count; sent = next) {
        next =
            sending->count - sent > LINK_EXCHANGE_MAX ? sent + LINK_EXCHANGE_MAX : sending->count;
        end = link_exchange(store->writer, sending->statements + sent, next - sent);
    }
    return end;
}

#define SEND_TRIES 4

/* What the server gave up because of others is sent again: an owner's transaction begins again. */
static enum link_end send_again(struct postgres_store *store, struct sending *sending)
{
    enum link_end end = LINK_REFUSED;

    for (int i = 0; i < SEND_TRIES; i++) {
        end = send_all(store, sending);
        if (end != LINK_REFUSED || !store->own ||
            (!is_state(store, "40001") && !is_state(store, "40P01")))
            break;
        store->deadlocks++;
        link_clear(store->writer, sending->statements, sending->count);
        if (i + 1 < SEND_TRIES)
            roll_back(store);
    }
    return end;
}

pawl_status pg_send_alone(struct postgres_store *store, struct scope *scope,
                          struct sending *sending)
{
    pawl_status status;

    TRY(link_connect(store->writer, scope));
    status = judge(store, scope, sending, send_again(store, sending));
    link_clear(store->writer, sending->statements, sending->count);
    return status;
}

static pawl_status send(struct postgres_store *store, struct scope *scope,
                        const struct commit *commit)
{
    struct sending sending = { .store = store, .scope = &store->work };
    struct store_tip after = store->tip;
    pawl_status status;

    tip_advance(&after, commit);
    status = store->own && is_records_alone(commit) && pg_has_fence() && !PLANTED(ACK_BEFORE_COMMIT)
                 ? gather_one(&sending, commit, &after)
                 : gather_all(&sending, commit, &after);
    if (status != PAWL_OK) {
        if (!store->own)
            roll_back(store);
        return scope_fail(scope, status, "%s", store->work.error.message);
    }
    status = pg_ride(store, scope, &sending);
    if (status == PAWL_OK) {
        store->tip = after;
        store->base.trouble = TROUBLE_NONE;
    }
    return status;
}

/* Contract (5): positions go on where the log ends. */
static pawl_status check(struct postgres_store *store, struct scope *scope,
                         const struct commit *commit)
{
    uint64_t next = store->tip.pos + 1;

    if (commit->record_count > 0 && commit->records[0].pos != next)
        return scope_fail(scope, PAWL_CONFLICT,
                          "the next position is %llu, the commit begins with %llu",
                          (unsigned long long)next, (unsigned long long)commit->records[0].pos);
    if (commit->reduce_count > 0)
        return scope_fail(scope, PAWL_INVALID_REQUEST,
                          "a reduce joins a host's SQLite transaction: a store in PostgreSQL"
                          " has none");
    return PAWL_OK;
}

pawl_status postgres_commit(struct store *base, struct scope *scope, const struct commit *commit)
{
    struct postgres_store *store = postgres_of(base);
    pawl_status status;

    ASSERT(store->in_turn);
    status = check(store, scope, commit);
    if (status == PAWL_OK)
        status = send(store, scope, commit);
    else if (!store->own)
        roll_back(store);
    end_turn(store);
    return status;
}
