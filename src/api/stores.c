/* stores.c - the stores beside the first: found, opened once, and shared by their users. */
#include "api/shards.h"
#include "api/stores_int.h"
#include "base/assert.h"
#include "env/env.h"
#include <stdio.h>

#define WORKERS 2u /* threads for tools, of each */

int64_t stores_tick_ms(pawl *p)
{
    struct env *env = engine_env(p->engine);

    return env->boot_ms(env);
}

/* ---- The list ---- */

struct member *member_find(const struct stores *stores, str name)
{
    struct member *member = stores->first;

    ASSERT_HOLDS(&stores->lock);
    while (member && !str_is(name, member->name))
        member = member->next;
    return member;
}

struct member *member_add(pawl *p, str name)
{
    struct stores *stores = p->stores;
    struct member *member = heap_new(&p->heap, sizeof *member);

    ASSERT_HOLDS(&p->stores->lock);
    if (!member)
        return NULL;
    member->due_at_ms = STORE_NEVER;
    member->options = &stores->options;
    snprintf(member->name, sizeof member->name, "%.*s", STR_ARG(name));
    if (stores->address[0])
        snprintf(member->address, sizeof member->address, "%.*s/v1/stores/%s", 300, stores->address,
                 member->name);
    member->next = stores->first;
    stores->first = member;
    return member;
}

/* Wait while another thread opens or closes it. */
void member_wait(struct stores *stores, const struct member *member)
{
    while (member->is_busy)
        guard_wait(&stores->lock, &stores->changed);
}

void member_set_free(struct stores *stores, struct member *member)
{
    ASSERT_HOLDS(&stores->lock);
    member->is_busy = false;
    pthread_cond_broadcast(&stores->changed);
}

/* ---- Opening and closing: the member is busy, without the lock ---- */

/* A lost store does not affect the others: its users get storage-failure, and it is opened again
 * when they have left. */
void member_log(void *context, pawl_log_level level, const char *event, const char *text)
{
    const struct member *member = context;
    char line[700];

    if (strcmp(event, "store.lost") == 0)
        event = "store.failed";
    snprintf(line, sizeof line, "store %s: %s", member->name, text);
    member->options->log(member->options->log_context, level, event, line);
}

static pawl_status open_member(pawl *p, struct scope *scope, struct member *member, bool must_exist,
                               pawl **out)
{
    struct store_hooks *hooks = &p->stores->hooks;
    pawl_options options = p->stores->options;
    struct env *env = engine_env(p->engine);
    const char *url;
    pawl_status status;

    TRY(store_beside(scope, stores_url(p->stores), str_of(member->name), &url));
    options.shards =
        must_exist || store_is_beside(scope, stores_url(p->stores), str_of(member->name))
            ? 0
            : shards_count(p);
    if (options.log) {
        options.log = member_log;
        options.log_context = member;
    }
    TRY(api_open(
        out, p, url, &options,
        (struct engine_options){ .env = env->share(env),
                                 .own = options.own,
                                 .must_exist = must_exist,
                                 .clock = member->clock,
                                 .address = member->address[0] ? member->address : NULL,
                                 .secret = p->stores->secret[0] ? p->stores->secret : NULL,
                                 .workers = options.workers > WORKERS ? WORKERS : options.workers },
        &scope->error));
    status = hooks->opened ? hooks->opened(hooks->context, *out, &scope->error) : PAWL_OK;
    if (status != PAWL_OK) {
        api_close(*out);
        *out = NULL;
    }
    return status;
}

/* ---- Beginning and ending ---- */

pawl_status stores_begin(pawl *p, const char *url, const pawl_options *options)
{
    size_t size = strlen(url);
    struct stores *stores = heap_new(&p->heap, sizeof *stores + size + 1);

    if (!stores)
        return PAWL_NO_MEMORY;
    guard_init(&stores->lock);
    pthread_cond_init(&stores->changed, NULL);
    stores->options = *options;
    stores->options.address = stores->options.secret = NULL; /* they may not live so long */
    if (options->address)
        snprintf(stores->address, sizeof stores->address, "%s", options->address);
    if (options->secret)
        snprintf(stores->secret, sizeof stores->secret, "%s", options->secret);
    stores->url_size = size;
    memcpy(stores->url, url, size);
    p->stores = stores;
    return PAWL_OK;
}

void stores_end(pawl *p)
{
    struct stores *stores = p->stores;
    struct member *next;

    if (!stores)
        return;
    for (struct member *member = stores->first; member; member = next) {
        next = member->next;
        ASSERT(!member->is_busy);
        if (member->p)
            api_close(member->p);
        heap_free(&p->heap, member, sizeof *member);
    }
    pthread_cond_destroy(&stores->changed);
    guard_fini(&stores->lock);
    heap_free(&p->heap, stores, sizeof *stores + stores->url_size + 1);
    p->stores = NULL;
}

void stores_set_hooks(pawl *p, const struct store_hooks *hooks)
{
    if (p->stores)
        p->stores->hooks = hooks ? *hooks : (struct store_hooks){ 0 };
}

/* ---- Using ---- */

pawl_status member_use(pawl *p, struct scope *scope, struct member *member, bool must_exist)
{
    struct stores *stores = p->stores;
    pawl_status status = PAWL_OK;
    pawl *opened = NULL;

    member_wait(stores, member);
    if (!member->p) {
        member->is_busy = true;
        if (stores->open_count >= STORES_OPEN_MAX) /* close whatever rests, however short */
            stores_close_resting(p, stores_tick_ms(p), 0);
        if (stores->open_count >= STORES_OPEN_MAX)
            status = scope_fail(scope, PAWL_OVERLOADED, "%u stores are in use; try later",
                                STORES_OPEN_MAX);
        guard_unlock(&stores->lock);
        if (status == PAWL_OK)
            status = open_member(p, scope, member, must_exist, &opened);
        if (status == PAWL_STORAGE_FAILURE && member->options->log)
            member_log(member, PAWL_LOG_WARN, "store.closed", scope->error.message);
        guard_lock(&stores->lock);
        member->p = opened;
        stores->open_count += member->p != NULL;
        member_set_free(stores, member);
    }
    member->users += status == PAWL_OK;
    return status;
}

static pawl_status fail_not_known(struct scope *scope, str name)
{
    if (!store_name_is_valid(name)) /* do not repeat what may be anything */
        return scope_fail(scope, PAWL_NOT_KNOWN, "no such store");
    return scope_fail(scope, PAWL_NOT_KNOWN, "no store '%.*s'; make it: PUT /v1/stores/%.*s",
                      STR_ARG(name), STR_ARG(name));
}

pawl_status store_enter(pawl *p, struct scope *scope, str name, pawl **out)
{
    struct stores *stores = p->stores;
    struct member *member;
    pawl_status status;

    *out = p;
    if (str_is(name, STORE_DEFAULT))
        return PAWL_OK;
    if (!stores || !store_name_is_valid(name))
        return fail_not_known(scope, name);
    guard_lock(&stores->lock);
    member = member_find(stores, name);
    if (!member && store_is_beside(scope, stores_url(stores), name) &&
        !(member = member_add(p, name)))
        status = scope_no_memory(scope);
    else
        status = member ? member_use(p, scope, member, true) : PAWL_NOT_KNOWN;
    if (status == PAWL_NOT_KNOWN) /* the file may be gone; callers do not learn its path */
        status = fail_not_known(scope, name);
    if (status == PAWL_OK)
        *out = member->p;
    guard_unlock(&stores->lock);
    return status;
}

pawl *store_enter_open(pawl *p, str name)
{
    struct stores *stores = p->stores;
    struct member *member;
    pawl *found = NULL;

    if (str_is(name, STORE_DEFAULT) || !stores)
        return p;
    guard_lock(&stores->lock);
    member = member_find(stores, name);
    if (member && member->p && !member->is_busy) {
        member->users++;
        found = member->p;
    }
    guard_unlock(&stores->lock);
    return found;
}

/* Members are never taken off the list: it may be walked though the lock is given up in between. */
void stores_each_open(pawl *p, void (*visit)(void *context, pawl *p), void *context)
{
    struct stores *stores = p->stores;

    if (!stores)
        return;
    guard_lock(&stores->lock);
    for (struct member *member = stores->first; member; member = member->next) {
        member_wait(stores, member);
        if (!member->p)
            continue;
        member->users++;
        guard_unlock(&stores->lock);
        visit(context, member->p);
        guard_lock(&stores->lock);
        member->users--;
    }
    guard_unlock(&stores->lock);
}

void store_leave(pawl *p)
{
    struct stores *stores = p && p->first ? p->first->stores : NULL;

    if (!stores)
        return;
    guard_lock(&stores->lock);
    for (struct member *member = stores->first; member; member = member->next) {
        if (member->p != p)
            continue;
        ASSERT(member->users > 0);
        member->users--;
        member->left_at_ms = stores_tick_ms(p->first);
    }
    guard_unlock(&stores->lock);
}
