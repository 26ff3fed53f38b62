/* pg_train.c - commits of several shards that wait for the same connection go as one
 * transaction: one sync of the server's log for all of them, as a shard's batch is for its
 * requests.
 *
 * The thread that gets the connection takes along what waits. A commit of records alone says by
 * its rows whether it still owned its shard; the fence of any other ends the whole transaction,
 * which then has written nothing: each goes again, alone. So commits in a train are strangers,
 * and none relies on another. */
#include "postgres_int.h"

#define TRAIN_MOST 32u /* commits */

/* What a commit sends between BEGIN and COMMIT. */
static struct statement *part_of(const struct waiting_commit *one, uint32_t *count)
{
    const struct sending *sending = one->sending;
    bool has_begin = sending->statements[0].text == pg_begin;
    bool has_end = sending->statements[sending->count - 1].text == pg_end_commit;

    *count = sending->count - has_begin - has_end;
    return sending->statements + has_begin;
}

/* Off the queue: the oldest, as many as one exchange holds. */
static struct waiting_commit *take(struct shared_link *lane)
{
    struct waiting_commit *first, **next = &lane->queue;
    uint32_t commits = 0, statements = 2, count;

    pthread_mutex_lock(&lane->queue_lock);
    for (first = lane->queue; *next && commits < TRAIN_MOST; next = &(*next)->next, commits++) {
        (void)part_of(*next, &count);
        if (commits > 0 && statements + count > LINK_EXCHANGE_MAX)
            break;
        statements += count;
    }
    lane->queue = *next;
    *next = NULL;
    pthread_mutex_unlock(&lane->queue_lock);
    return first;
}

static struct statement *couple(const struct waiting_commit *train, struct scope *scope,
                                uint32_t *total)
{
    struct statement *all = ARENA_ARRAY(&scope->arena, struct statement, LINK_EXCHANGE_MAX);
    uint32_t at = 0, count;

    if (!all)
        return NULL;
    all[at++] = (struct statement){ pg_begin, NULL, NULL, false };
    for (const struct waiting_commit *one = train; one; one = one->next) {
        const struct statement *part = part_of(one, &count);

        memcpy(all + at, part, count * sizeof *all);
        at += count;
    }
    all[at++] = (struct statement){ pg_end_commit, NULL, NULL, false };
    *total = at;
    return all;
}

static void judge_all(struct waiting_commit *train, const struct statement *all, bool is_lost)
{
    uint32_t at = 1, count;

    for (struct waiting_commit *one = train; one; one = one->next, at += count) {
        (void)part_of(one, &count);
        one->status = is_lost ? pg_fail_unknown(one->store, one->scope)
                              : pg_judge_part(one->store, one->scope, &all[at + count - 1]);
    }
}

static void send_each(struct waiting_commit *train)
{
    for (struct waiting_commit *one = train; one; one = one->next)
        one->status = pg_send_alone(one->store, one->scope, one->sending);
}

/* False: nothing was written. */
static bool send_together(struct waiting_commit *train)
{
    struct postgres_store *store = train->store;
    struct scope scope;
    struct statement *all;
    enum link_end end = LINK_REFUSED;
    uint32_t total = 0;
    bool is_lost = false;

    scope_init(&scope, store->heap, 0);
    all = couple(train, &scope, &total);
    if (all && link_connect(store->writer, &scope) == PAWL_OK) {
        end = link_exchange(store->writer, all, total);
        is_lost = end == LINK_LOST || (end == LINK_OK && store->writer->has_warned) ||
                  strcmp(store->writer->state, "40003") == 0;
        if (end == LINK_OK && !is_lost &&
            strcmp(store->writer->pq->cmdStatus(all[total - 1].result), "COMMIT") != 0)
            end = LINK_REFUSED;
        if (end == LINK_OK || is_lost)
            judge_all(train, all, is_lost);
        link_clear(store->writer, all, total);
        if (end == LINK_REFUSED && !is_lost && link_script(store->writer, "ROLLBACK") != LINK_OK)
            link_close(store->writer);
    }
    scope_fini(&scope);
    return end == LINK_OK || is_lost;
}

static void put(struct shared_link *lane, struct waiting_commit *one)
{
    struct waiting_commit **at = &lane->queue;

    pthread_mutex_lock(&lane->queue_lock);
    while (*at)
        at = &(*at)->next;
    *at = one;
    pthread_mutex_unlock(&lane->queue_lock);
}

/* Sends what waits. Those that were taken along go on at once: they do not wait for the next. */
static void run_train(struct shared_link *lane)
{
    struct waiting_commit *train;

    pthread_mutex_lock(&lane->lock);
    train = take(lane);
    if (!train->next || !send_together(train))
        send_each(train);
    pthread_mutex_unlock(&lane->lock);
    pthread_mutex_lock(&lane->queue_lock);
    for (struct waiting_commit *one = train; one; one = one->next)
        one->is_done = true;
    lane->is_running = false;
    pthread_cond_broadcast(&lane->has_run);
    pthread_mutex_unlock(&lane->queue_lock);
}

pawl_status pg_ride(struct postgres_store *store, struct scope *scope, struct sending *sending)
{
    struct waiting_commit one = { .store = store, .scope = scope, .sending = sending };
    struct shared_link *lane = store->lane;

    put(lane, &one);
    pthread_mutex_lock(&lane->queue_lock);
    while (!one.is_done) {
        if (lane->is_running) {
            pthread_cond_wait(&lane->has_run, &lane->queue_lock);
            continue;
        }
        lane->is_running = true; /* no other thread has taken it along */
        pthread_mutex_unlock(&lane->queue_lock);
        run_train(lane);
        pthread_mutex_lock(&lane->queue_lock);
    }
    pthread_mutex_unlock(&lane->queue_lock);
    return one.status;
}
