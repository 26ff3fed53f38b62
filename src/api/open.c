/* open.c - a store is opened, attached and closed; and what every call of pawl.h begins and ends
 * with: a scope, the host's memory and its panic hook. */
#include "api/archiving.h"
#include "api/modules.h"
#include "api/shards.h"
#include "api/station.h"
#include "api/world.h"
#include "base/limits.h"
#include "module/afar.h"
#include "store/sqlite.h"
#include <stdio.h>

/* ---- Scopes ---- */

pawl_status api_leave(struct scope *scope, pawl_status status, pawl_error *error)
{
    if (error) {
        *error = status ? scope->error : (pawl_error){ 0 };
        error->status = status;
    }
    scope_fini(scope);
    panic_set(scope->outer);
    return status;
}

void api_enter(pawl *p, struct scope *scope)
{
    scope_init(scope, &p->heap, LIMIT_SCOPE);
    scope->outer = panic_set(&p->panic);
}

/* There may be no pawl, and so no scope, to tell it in. */
pawl_status api_need(pawl_error *error, const char *call, const struct given_argument *given)
{
    while (given->name && given->is_there)
        given++;
    if (!given->name)
        return PAWL_OK;
    if (error) {
        error->status = PAWL_INVALID_REQUEST;
        (void)snprintf(error->message, sizeof error->message, "%s: expected %s, found NULL", call,
                       given->name);
    }
    return PAWL_INVALID_REQUEST;
}

bool api_in_reduce(pawl_error *error, const char *call)
{
    if (!reduce_is_under_way())
        return false;
    if (error) {
        error->status = PAWL_INVALID_REQUEST;
        (void)snprintf(error->message, sizeof error->message,
                       "%s: not from a reduce: it runs inside a commit, and the call would wait "
                       "for that to end; call pawl after it has returned, or let the code do it "
                       "with PAWL_CALL",
                       call);
    }
    return true;
}

/* ---- Opening ---- */

static struct heap heap_of(const pawl_options *options)
{
    if (options->resize)
        return (struct heap){ options->resize, options->resize_context };
    return heap_libc;
}

pawl_status api_open(pawl **out, pawl *first, const char *url, const pawl_options *o,
                     struct engine_options from, pawl_error *error)
{
    struct heap heap = heap_of(o);
    struct scope scope;
    pawl *p = from.env ? heap_new(&heap, sizeof *p) : NULL;
    pawl_status status;

    scope_init(&scope, p ? &p->heap : &heap, LIMIT_SCOPE);
    scope.outer = panic_set(p ? &p->panic : NULL);
    if (!p) {
        if (from.env)
            from.env->close(from.env);
        return api_leave(&scope, scope_no_memory(&scope), error);
    }
    p->heap = heap;
    pthread_mutex_init(&p->modules_lock, NULL);
    p->first = first; /* before threads of the engine look at it */
    p->panic = (struct panic_hook){ o->panic, o->panic_context };
    from.heap = &p->heap;
    from.panic = &p->panic;
    from.test_clock = o->test_clock;
    from.allow_exec = o->allow_exec;
    from.tools = o->tools;
    from.retention = o->retention;
    from.max_entries = o->max_entries;
    from.max_live_steps = o->max_live_steps;
    from.log = o->log;
    from.log_context = o->log_context;
    from.alarm = alarm_fire;
    from.archive = archive_numbers;
    from.alarms_wait = api_modules_are_expected();
    from.alarm_context = p;
    from.group = &p->group;
    from.shard = (struct store_shard){ .shards = url ? o->shards : 0 };
    status = engine_open(url, &from, &scope, &p->engine);
    if (status == PAWL_OK)
        status = shards_open(p, url, o, &from, &scope);
    status = api_leave(&scope, status, error);
    if (status == PAWL_OK)
        *out = p;
    else
        api_close(p);
    return status;
}

void api_close(pawl *p)
{
    const struct panic_hook *outer = panic_set(&p->panic);
    struct heap heap = p->heap;

    station_stop(p);
    afar_stop(p->afar); /* or the engine's threads wait for workers */
    shards_close(p);
    if (p->engine)
        engine_close(p->engine);
    api_modules_close(p);
    afar_free(p->afar);
    pthread_mutex_destroy(&p->modules_lock);
    panic_set(outer);
    heap_free(&heap, p, sizeof *p);
}

/* ---- A store of its own ---- */

static const pawl_options defaults = { 0 };

static bool is_member; /* the next store is opened as one of several nodes */

void world_expect_nodes(void)
{
    is_member = true;
}

pawl_status world_join(pawl *p, const char *address, const char *secret, pawl_error *error)
{
    struct scope scope;
    pawl_status status;

    api_enter(p, &scope);
    status = station_start(p, &(struct cluster_me){ .address = address, .secret = secret }, &scope);
    return api_leave(&scope, status, error);
}

void world_retire(pawl *p)
{
    station_retire(p);
}

static pawl_status check_shards(const pawl_options *options, struct env *env, pawl_error *error)
{
    if (options->shards == 0 || shards_are_valid(options->shards))
        return PAWL_OK;
    if (env)
        env->close(env);
    if (error) {
        error->status = PAWL_INVALID_REQUEST;
        (void)snprintf(error->message, sizeof error->message,
                       "shards: expected 1, 2, 4, ... or %u, found %u", SHARDS_MAX,
                       options->shards);
    }
    return PAWL_INVALID_REQUEST;
}

pawl_status pawl_open_env(pawl **out, const char *url, const pawl_options *options, struct env *env,
                          pawl_error *error)
{
    const pawl_options *o = options ? options : &defaults;

    *out = NULL;
    url = url ? url : "sqlite:pawl.db";
    TRY(check_shards(o, env, error));
    TRY(api_open(out, NULL, url, o,
                 (struct engine_options){ .env = env,
                                          .own = o->own && !is_member,
                                          .member = o->own && is_member,
                                          .address = o->address,
                                          .secret = o->secret,
                                          .workers = o->workers },
                 error));
    if (stores_begin(*out, url, o) == PAWL_OK)
        return PAWL_OK;
    api_close(*out);
    *out = NULL;
    if (error)
        *error = (pawl_error){ PAWL_NO_MEMORY, "there is no memory for the stores beside it" };
    return PAWL_NO_MEMORY;
}

pawl_status pawl_open(pawl **out, const char *url, const pawl_options *options, pawl_error *error)
{
    struct heap heap = heap_of(options ? options : &defaults);

    TRY(API_NEED(error, GIVEN(out)));
    return pawl_open_env(out, url, options, env_os_new(&heap), error);
}

pawl_status pawl_attach(pawl **out, struct sqlite3 *connection, const pawl_options *options,
                        pawl_error *error)
{
    const pawl_options *o = options ? options : &defaults;
    struct heap heap = heap_of(o);
    struct scope scope;

    TRY(API_NEED(error, GIVEN(out)));
    *out = NULL;
    if (connection && !o->own && !o->workers && !o->address)
        return api_open(
            out, NULL, NULL, o,
            (struct engine_options){ .env = env_os_new(&heap), .connection = connection }, error);
    scope_init(&scope, &heap, LIMIT_SCOPE);
    scope.outer = panic_set(NULL);
    scope_fail(&scope, PAWL_INVALID_REQUEST, "attaching: expected %s",
               connection ? "no own, workers or address: an attachment is shared"
                          : "a connection, found NULL");
    return api_leave(&scope, PAWL_INVALID_REQUEST, error);
}

/* A store beside another is the other's to close. */
void pawl_close(pawl *p)
{
    if (!p || p->first)
        return;
    stores_end(p);
    api_close(p);
}
