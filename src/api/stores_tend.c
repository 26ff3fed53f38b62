/* stores_tend.c - stores are closed when they rest, and opened before something falls due. */
#include "api/shards.h"
#include "api/stores_int.h"
#include "base/limits.h"
#include "engine/workers.h"
#include "env/trim.h"

#define NEAR_MS  60000              /* due within that: not worth closing */
#define LOOK_MS  ((int64_t)3600000) /* the wall clock drifts: check at least this often */
#define RETRY_MS 60000              /* after it could not be opened */

pawl_status stores_wake(pawl *p, struct scope *scope)
{
    struct stores *stores = p->stores;
    str *names;
    uint32_t count;
    pawl_status status = PAWL_OK;

    if (!stores)
        return PAWL_OK;
    TRY(store_names_beside(scope, stores_url(stores), &names, &count));
    guard_lock(&stores->lock);
    for (uint32_t i = 0; i < count && status == PAWL_OK; i++) {
        struct member *member = member_find(stores, names[i]);

        if (!member && !(member = member_add(p, names[i])))
            status = scope_no_memory(scope);
        else
            member->due_at_ms = 0;
    }
    guard_unlock(&stores->lock);
    return status;
}

static bool may_rest(const struct member *member, int64_t now_ms, int64_t rest_ms,
                     int64_t *due_in_ms)
{
    return member->p && !member->is_busy && !member->is_pinned && !member->users &&
           now_ms - member->left_at_ms >= rest_ms && shards_are_at_rest(member->p, due_in_ms) &&
           (*due_in_ms < 0 || *due_in_ms >= NEAR_MS);
}

/* It has no users, and gets none while it is busy. */
static void close_member(pawl *p, struct member *member, int64_t now_ms, int64_t due_in_ms)
{
    struct stores *stores = p->stores;

    member->is_busy = true;
    guard_unlock(&stores->lock);
    if (stores->hooks.closing)
        stores->hooks.closing(stores->hooks.context, member->p);
    member->clock = engine_clock_mark(member->p->engine);
    api_close(member->p);
    guard_lock(&stores->lock);
    member->p = NULL;
    stores->open_count--;
    member->due_at_ms =
        due_in_ms < 0 ? STORE_NEVER : now_ms + (due_in_ms < LOOK_MS ? due_in_ms : LOOK_MS);
    member_set_free(stores, member);
}

void stores_close_resting(pawl *p, int64_t now_ms, int64_t rest_ms)
{
    int64_t due_in_ms;
    bool has_closed = false;

    if (!p->stores->options.own || p->stores->options.test_clock)
        return; /* a test clock moves when the test says so: its timers are not known ahead */
    for (struct member *member = p->stores->first; member; member = member->next)
        if (may_rest(member, now_ms, rest_ms, &due_in_ms)) {
            close_member(p, member, now_ms, due_in_ms);
            has_closed = true;
        }
    if (!has_closed)
        return;
    guard_unlock(&p->stores->lock); /* it takes milliseconds */
    memory_give_back();
    guard_lock(&p->stores->lock);
}

static void open_due(pawl *p, struct scope *scope, struct member *member, int64_t now_ms)
{
    const pawl_options *options = &p->stores->options;
    pawl_status status;

    member->due_at_ms = STORE_NEVER;
    status = member_use(p, scope, member, true);
    if (status == PAWL_OK) {
        member->users--;
        member->left_at_ms = now_ms - STORE_REST_MS; /* it may go as soon as nothing is due */
        return;
    }
    if (status != PAWL_NOT_KNOWN) /* else its file was removed */
        member->due_at_ms = now_ms + RETRY_MS;
    if (options->log && status != PAWL_STORAGE_FAILURE) /* member_use() has logged that */
        member_log(member, PAWL_LOG_WARN, "store.closed", scope->error.message);
    scope_clear(scope);
}

/* If the wall clock has jumped, what waits for a time of day may be due: check every store. */
static void look_at_clock(pawl *p)
{
    struct stores *stores = p->stores;
    int64_t offset_ms = engine_clock_offset_ms(p->engine);

    if (offset_ms == stores->clock_offset_ms)
        return;
    stores->clock_offset_ms = offset_ms;
    for (struct member *member = stores->first; member; member = member->next)
        if (member->due_at_ms != STORE_NEVER)
            member->due_at_ms = 0;
}

/* Members are never taken off the list: it may be walked though the lock is given up in between. */
void stores_tend(pawl *p)
{
    struct stores *stores = p->stores;
    int64_t now_ms = stores_tick_ms(p);
    struct scope scope;

    if (!stores)
        return;
    scope_init(&scope, &p->heap, LIMIT_SCOPE);
    guard_lock(&stores->lock);
    look_at_clock(p);
    for (struct member *member = stores->first; member; member = member->next)
        if (!member->p && !member->is_busy && member->due_at_ms <= now_ms)
            open_due(p, &scope, member, now_ms);
    stores_close_resting(p, now_ms, STORE_REST_MS);
    guard_unlock(&stores->lock);
    scope_fini(&scope);
}

uint32_t stores_open_count(pawl *p)
{
    uint32_t count;

    if (!p->stores)
        return 0;
    guard_lock(&p->stores->lock);
    count = p->stores->open_count;
    guard_unlock(&p->stores->lock);
    return count;
}

void stores_end_claims(pawl *p)
{
    shards_end_claims(p);
    if (!p->stores)
        return;
    guard_lock(&p->stores->lock);
    for (const struct member *member = p->stores->first; member; member = member->next)
        if (member->p && !member->is_busy)
            shards_end_claims(member->p);
    guard_unlock(&p->stores->lock);
}
