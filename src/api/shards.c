/* shards.c - the shards of a store: opened together, found by what a call names. */
#include "api/shards.h"
#include "api/archiving.h"
#include "api/ops_int.h"
#include "base/assert.h"
#include "engine/workers.h"
#include "env/env.h"
#include <stdio.h>
#include <sys/epoll.h>
#include <unistd.h>

/* ---- Which? ---- */

uint32_t shards_count(const pawl *p)
{
    return p->shards ? p->shards->count : 1;
}

pawl *shard_at(pawl *p, uint32_t shard)
{
    ASSERT(shard < shards_count(p));
    return p->shards ? p->shards->of[shard] : p;
}

pawl *shard_home(pawl *p)
{
    return shard_at(p, SHARD_HOME);
}

pawl *shard_of_instance(pawl *p, uint64_t number)
{
    return shard_at(p, shard_of_number(number, shards_count(p)));
}

pawl *shard_of_id(pawl *p, str id)
{
    uint64_t number;

    if (!p->shards || id.size < ID_SIZE || !id_parse((str){ id.data, ID_SIZE }, &number, NULL))
        return shard_home(p);
    return shard_of_instance(p, number);
}

pawl *shard_for_new(pawl *p, const uint8_t *key)
{
    if (!p->shards)
        return p;
    if (key)
        return shard_at(p, shard_of_key(key, p->shards->count));
    for (uint32_t i = 0; i < p->shards->count; i++) { /* one that this process owns, if it can be */
        pawl *shard = shard_at(p, atomic_fetch_add(&p->shards->turn, 1) % p->shards->count);

        if (!shard_home(p)->station || engine_owns(shard->engine))
            return shard;
    }
    return shard_at(p, atomic_fetch_add(&p->shards->turn, 1) % p->shards->count);
}

/* What may be there only once is found in one place, whichever key the call has. */
static uint32_t shard_of_subject(str subject, uint32_t count)
{
    uint32_t hash = 2166136261u; /* FNV-1a */

    for (size_t i = 0; i < subject.size; i++)
        hash = (hash ^ (unsigned char)subject.data[i]) * 16777619u;
    return hash % count;
}

static pawl *shard_for_creation(pawl *p, const struct op *op, const struct node *input,
                                const uint8_t *key)
{
    const struct node *singleton = node_find(input, "singleton");
    str subject = node_text(input, "subject_ref");
    bool is_singleton = op->handle == op_signal_start || (singleton && singleton->truth);

    return is_singleton && subject.data ? shard_at(p, shard_of_subject(subject, shards_count(p)))
                                        : shard_for_new(p, key);
}

pawl *shard_for_create(pawl *p, const struct create_args *args)
{
    return p->shards && args->is_singleton
               ? shard_at(p, shard_of_subject(args->subject, shards_count(p)))
               : shard_for_new(p, args->key);
}

static pawl *shard_of_alarm_id(pawl *p, str id)
{
    uint32_t shard;

    return shard_of_alarm(id, shards_count(p), &shard) ? shard_at(p, shard) : shard_home(p);
}

/* An alarm lies where its operation will run, so that both end in one commit; one over many
 * instances may lie anywhere. An alarm may set another. */
static pawl *shard_of_later(pawl *p, const struct node *input, const uint8_t *key)
{
    const struct op *op = op_find(node_text(input, "operation"));

    input = node_find(input, "input");
    while (op && op->handle == op_alarm_set && input && input->kind == NODE_OBJECT) {
        op = op_find(node_text(input, "operation"));
        input = node_find(input, "input");
    }
    if (!op || !input || input->kind != NODE_OBJECT || op->where == AT_ALL)
        return shard_for_new(p, key);
    if (op->where == AT_KEYED)
        return shard_for_creation(p, op, input, key);
    return shard_route(p, op, input, key);
}

pawl *shard_route(pawl *p, const struct op *op, const struct node *input, const uint8_t *key)
{
    str id = node_text(input, "instance_id");

    if (!p || !p->shards) /* NULL: only the input is checked */
        return p;
    switch (op->where) {
    case AT_INSTANCE:
        return shard_of_id(p, id.data ? id : node_text(input, "step_id"));
    case AT_KEYED:
        return op->handle == op_alarm_set ? shard_of_later(p, input, key)
                                          : shard_for_creation(p, op, input, key);
    case AT_ALARM:
        return shard_of_alarm_id(p, node_text(input, "alarm_id"));
    case AT_ALL: /* its key is kept in one of them; or it names an instance after all */
        if (id.data)
            return shard_of_id(p, id);
        return key ? shard_for_new(p, key) : shard_home(p);
    case AT_HOME:
    case AT_HERE:
        break;
    }
    return shard_home(p);
}

/* ---- Opening ---- */

static uint32_t workers_of(uint32_t workers, uint32_t shards)
{
    return workers > shards ? workers / shards : workers > 0;
}

static pawl_status open_one(pawl *home, const char *url, uint32_t shard,
                            const struct store_tip *tip, struct engine_options from,
                            struct scope *scope)
{
    struct env *env = engine_env(home->engine);
    pawl *p = heap_new(&home->heap, sizeof *p);
    const char *at;
    pawl_status status;

    TRY_MEMORY(scope, p);
    *p = (pawl){ .heap = home->heap, .panic = home->panic, .first = home->first };
    p->shards = home->shards;
    pthread_mutex_init(&p->modules_lock, NULL);
    home->shards->of[shard] = p;
    from.heap = &p->heap;
    from.panic = &p->panic;
    from.alarm_context = p;
    from.archive = archive_numbers;
    from.home = home->engine;
    from.address = from.secret = NULL;
    from.clock = (struct clock_mark){ 0 };
    from.shard = (struct store_shard){ shard, tip->stride, tip->whole_id };
    from.workers = workers_of(from.workers, tip->stride);
    /* A file that is missing is made only while the store is new: else it is lost, with its log. */
    from.must_exist = from.must_exist || tip->pos > 0;
    status = store_shard_url(scope, str_of(url), shard, !from.must_exist, &at);
    from.env = status == PAWL_OK ? env->share(env) : NULL;
    if (status == PAWL_OK && !from.env)
        status = scope_no_memory(scope);
    return status == PAWL_OK ? engine_open(at, &from, scope, &p->engine) : status;
}

static struct shards *list_new(pawl *p, uint32_t count)
{
    struct shards *shards = heap_new(&p->heap, sizeof *shards + count * sizeof(pawl *));

    if (!shards)
        return NULL;
    shards->count = count;
    shards->fd = -1;
    shards->of[SHARD_HOME] = p;
    pthread_mutex_init(&shards->advance, NULL);
    return shards;
}

pawl_status shards_open(pawl *p, const char *url, const pawl_options *options,
                        const struct engine_options *from, struct scope *scope)
{
    struct store_tip tip;
    pawl_status status = PAWL_OK;

    TRY(store_tip(engine_store(p->engine), scope, &tip));
    if (options->shards > 0 && tip.stride != options->shards)
        return scope_fail(
            scope, PAWL_INVALID_REQUEST,
            "shards: expected %u, as this store was made with, found %u; their number "
            "is fixed when a store is made",
            tip.stride, options->shards);
    if (tip.stride == 1)
        return PAWL_OK;
    if (!url)
        return scope_fail(scope, PAWL_INVALID_REQUEST,
                          "attaching: expected a store of one shard, found one of %u", tip.stride);
    TRY(store_check_home(&tip, scope));
    p->shards = list_new(p, tip.stride);
    TRY_MEMORY(scope, p->shards);
    for (uint32_t i = 1; i < tip.stride && status == PAWL_OK; i++) {
        status = open_one(p, url, i, &tip, *from, scope);
        if (status == PAWL_OK)
            status = store_check_shard(engine_store(p->shards->of[i]->engine), scope, i, &tip);
    }
    p->shards->is_open = status == PAWL_OK;
    return status;
}

/* Threads of each may call the others: all of them end before any is closed. */
void shards_close(pawl *p)
{
    struct shards *shards = p->shards;

    if (!shards)
        return;
    for (uint32_t i = shards->count; i > 0; i--)
        if (shards->of[i - 1] && shards->of[i - 1]->engine)
            engine_stop(shards->of[i - 1]->engine);
    for (uint32_t i = shards->count - 1; i > 0; i--) {
        pawl *one = shards->of[i];

        if (one && one->engine)
            engine_close(one->engine);
        if (one)
            pthread_mutex_destroy(&one->modules_lock);
        heap_free(&p->heap, one, sizeof *one);
    }
    if (shards->fd >= 0)
        close(shards->fd);
    pthread_mutex_destroy(&shards->advance);
    heap_free(&p->heap, shards, sizeof *shards + shards->count * sizeof(pawl *));
    p->shards = NULL;
}

/* ---- The test clock ---- */

/* Until something is due in one of them, and no longer than `left_ms`. */
static int64_t next_stop(pawl *p, int64_t left_ms)
{
    for (uint32_t i = 0; i < shards_count(p); i++) {
        int64_t due_ms = engine_next_due_ms(shard_at(p, i)->engine);

        if (due_ms > 0 && due_ms < left_ms)
            left_ms = due_ms;
    }
    return left_ms;
}

pawl_status shards_advance(pawl *p, struct scope *scope, int64_t by_ms)
{
    pawl_status status = PAWL_OK;

    if (!p->shards)
        return engine_advance(p->engine, scope, by_ms);
    pthread_mutex_lock(&p->shards->advance);
    do {
        int64_t step_ms = next_stop(p, by_ms);

        for (uint32_t i = 0; i < shards_count(p) && status == PAWL_OK; i++)
            status = engine_advance(shard_at(p, i)->engine, scope, step_ms);
        by_ms -= step_ms;
    } while (by_ms > 0 && status == PAWL_OK);
    pthread_mutex_unlock(&p->shards->advance);
    return status;
}

pawl_status shards_advance_turns(pawl *p, struct scope *scope, str id, uint32_t turns,
                                 int64_t most_ms, int64_t *out_moved_ms)
{
    pawl *of = shard_of_id(p, id);
    pawl_status status = engine_advance_turns(of->engine, scope, id, turns, most_ms, out_moved_ms);

    for (uint32_t i = 0; i < shards_count(p) && status == PAWL_OK && *out_moved_ms > 0; i++)
        if (shard_at(p, i) != of)
            status = engine_advance(shard_at(p, i)->engine, scope, *out_moved_ms);
    return status;
}

int64_t shards_next_due_ms(pawl *p)
{
    int64_t next_ms = -1;

    for (uint32_t i = 0; i < shards_count(p); i++) {
        int64_t due_ms = engine_next_due_ms(shard_at(p, i)->engine);

        if (due_ms >= 0 && (next_ms < 0 || due_ms < next_ms))
            next_ms = due_ms;
    }
    return next_ms;
}

bool shards_are_at_rest(pawl *p, int64_t *due_in_ms)
{
    bool are = true;

    *due_in_ms = -1;
    for (uint32_t i = 0; i < shards_count(p) && are; i++) {
        int64_t due_ms = -1;

        are = engine_is_at_rest(shard_at(p, i)->engine, &due_ms);
        if (due_ms >= 0 && (*due_in_ms < 0 || due_ms < *due_in_ms))
            *due_in_ms = due_ms;
    }
    return are;
}

void shards_end_claims(pawl *p)
{
    for (uint32_t i = 0; i < shards_count(p); i++)
        engine_claims_end(shard_at(p, i)->engine);
}

/* ---- A host with its own loop ---- */

static int gather(pawl *p)
{
    int fd = epoll_create1(EPOLL_CLOEXEC);

    for (uint32_t i = 0; i < shards_count(p) && fd >= 0; i++) {
        struct epoll_event event = { .events = EPOLLIN };
        int one = engine_wakeup_fd(shard_at(p, i)->engine);

        if (one >= 0 && epoll_ctl(fd, EPOLL_CTL_ADD, one, &event) == 0)
            continue;
        close(fd);
        return -1;
    }
    return fd;
}

int shards_fd(pawl *p)
{
    if (!p->shards)
        return engine_wakeup_fd(p->engine);
    if (p->shards->fd < 0)
        p->shards->fd = gather(p);
    return p->shards->fd;
}

/* ---- Many at once ---- */

static const char *keep_words(struct scope *scope)
{
    const char *words = arena_text(&scope->arena, str_of(scope->error.message));

    return words ? words : "no memory for the words of this rejection";
}

/* Those of one shard together, so that they share its commit. `of` has each one's shard. */
static void fire_some(pawl *p, struct scope *scope, uint32_t shard, const uint32_t *of,
                      struct batch_fire *fires, size_t count, struct batch_fire *some)
{
    size_t taken = 0, next = 0;
    pawl_status status;

    for (size_t i = 0; i < count; i++)
        if (of[i] == shard)
            some[taken++] = fires[i];
    if (taken == 0)
        return;
    status = engine_fire_batch(shard_at(p, shard)->engine, scope, some, taken);
    for (size_t i = 0; i < count; i++) {
        if (of[i] != shard)
            continue;
        fires[i] = some[next++];
        if (status != PAWL_OK && fires[i].status == PAWL_OK) {
            fires[i].status = status;
            fires[i].words = keep_words(scope);
        }
    }
}

static uint32_t place_of(pawl *p, const pawl *one)
{
    uint32_t shard = 0;

    while (shard_at(p, shard) != one)
        shard++;
    return shard;
}

pawl_status shards_fire(pawl *p, struct scope *scope, struct batch_fire *fires, size_t count)
{
    struct batch_fire *some;
    uint32_t *of;

    if (!p->shards)
        return engine_fire_batch(p->engine, scope, fires, count);
    some = ARENA_ARRAY(&scope->arena, struct batch_fire, count + 1);
    of = ARENA_ARRAY(&scope->arena, uint32_t, count + 1);
    TRY_MEMORY(scope, some && of);
    for (size_t i = 0; i < count; i++)
        of[i] = place_of(p, shard_of_id(p, fires[i].args.id));
    for (uint32_t i = 0; i < shards_count(p); i++)
        fire_some(p, scope, i, of, fires, count, some);
    return PAWL_OK;
}

static void create_some(pawl *p, struct scope *scope, uint32_t shard, const uint32_t *of,
                        struct batch_create *creates, size_t count, struct batch_create *some)
{
    size_t taken = 0, next = 0;
    pawl_status status;

    for (size_t i = 0; i < count; i++)
        if (of[i] == shard)
            some[taken++] = creates[i];
    if (taken == 0)
        return;
    status = engine_create_batch(shard_at(p, shard)->engine, scope, some, taken);
    for (size_t i = 0; i < count; i++) {
        if (of[i] != shard)
            continue;
        creates[i] = some[next++];
        if (status != PAWL_OK && creates[i].status == PAWL_OK) {
            creates[i].status = status;
            creates[i].words = keep_words(scope);
        }
    }
}

pawl_status shards_create(pawl *p, struct scope *scope, struct batch_create *creates, size_t count)
{
    struct batch_create *some;
    uint32_t *of, keyless;

    if (!p->shards)
        return engine_create_batch(p->engine, scope, creates, count);
    some = ARENA_ARRAY(&scope->arena, struct batch_create, count + 1);
    of = ARENA_ARRAY(&scope->arena, uint32_t, count + 1);
    TRY_MEMORY(scope, some && of);
    keyless = place_of(p, shard_for_new(p, NULL));
    for (size_t i = 0; i < count; i++)
        of[i] = creates[i].args.key || creates[i].args.is_singleton
                    ? place_of(p, shard_for_create(p, &creates[i].args))
                    : keyless;
    for (uint32_t i = 0; i < shards_count(p); i++)
        create_some(p, scope, i, of, creates, count, some);
    return PAWL_OK;
}

/* ---- Sums ---- */

static pawl_status add_counts(struct scope *scope, const struct counts *one, struct counts *sum)
{
    uint32_t count = sum->state_count + one->state_count;
    struct state_count *states = ARENA_ARRAY(&scope->arena, struct state_count, count + 1);

    TRY_MEMORY(scope, states);
    if (sum->state_count > 0)
        memcpy(states, sum->states, sum->state_count * sizeof *states);
    if (one->state_count > 0)
        memcpy(states + sum->state_count, one->states, one->state_count * sizeof *states);
    sum->states = states;
    sum->state_count = count;
    for (int i = 0; i < STATUS_COUNT; i++)
        sum->by_status[i] += one->by_status[i];
    sum->without_kind += one->without_kind;
    sum->total += one->total;
    return PAWL_OK;
}

pawl_status shards_counts(pawl *p, struct scope *scope, str definition, uint32_t version,
                          struct counts *out)
{
    struct counts one;

    *out = (struct counts){ 0 };
    for (uint32_t i = 0; i < shards_count(p); i++) {
        TRY(engine_counts(shard_at(p, i)->engine, scope, definition, version, &one));
        TRY(add_counts(scope, &one, out));
    }
    return PAWL_OK;
}
