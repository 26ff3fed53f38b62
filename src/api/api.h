/* api.h - what is inside a pawl: pawl.h's functions and the operations' handlers share it. */
#ifndef PAWL_API_API_H
#define PAWL_API_API_H

#include "engine/explain.h"
#include <pawl.h>
#include <pthread.h>

struct station;
struct shards;
struct stores;

/* A store that is alone, or one shard of several. */
struct pawl {
    struct heap heap;
    struct engine *engine;
    struct shards *shards;     /* all of them, the home shard first; NULL: it is alone */
    struct station *station; /* of the home shard: one of several nodes (station.h); NULL: alone */
    struct engine_group group; /* of the home shard: what their engines share */
    struct panic_hook panic;
    struct stores *stores;   /* those beside it; NULL: it is one of them itself, or attached */
    struct pawl *first;      /* the store that it lies beside; NULL: it is the first */
    pthread_mutex_t modules_lock; /* of the two below */
    struct module **modules;      /* loaded by the command line, until it closes */
    uint32_t module_count;
    struct module_tool *module_tools; /* that they brought; under modules_lock */
    struct afar *afar; /* turns of workers elsewhere; NULL: none has come; under modules_lock */
};

/* pawl_open() with a world of the caller's choice (tests: env_sim). `env` is the engine's from
 * now on, also on failure; NULL counts as no memory. */
pawl_status pawl_open_env(pawl **out, const char *url, const pawl_options *options, struct env *env,
                          pawl_error *error);

/* Open what `from` says, with the host's choices; `first` NULL: it lies beside no other. `from.env`
 * is the engine's, also on failure. */
pawl_status api_open(pawl **out, pawl *first, const char *url, const pawl_options *options,
                     struct engine_options from, pawl_error *error);
void api_close(pawl *p);

/* The stores beside `p`, none of them open yet; and their end, before that of `p`. */
pawl_status stores_begin(pawl *p, const char *url, const pawl_options *options);
void stores_end(pawl *p);

void api_modules_close(pawl *p);
pawl_status api_modules_print(pawl *p, struct scope *scope, struct buf *out); /* a member */

/* An alarm falls due: ops_alarm.c, called by the engine. */
pawl_status alarm_fire(void *context, struct engine *engine, struct scope *scope,
                       struct standing_fact *alarm);

/* A copy for a caller without a pawl, to pawl_plan_free(). */
pawl_status api_text(struct scope *scope, str text, char **out);

/* A call of pawl.h begins and ends: its scope, the host's panic hook, its error. */
void api_enter(pawl *p, struct scope *scope);
pawl_status api_leave(struct scope *scope, pawl_status status, pawl_error *error);

/* Arguments that pawl.h does not call optional: API_NEED_TEXTS(error, GIVEN(ast)) is PAWL_OK, or
 * INVALID_REQUEST and a sentence that names the call and the first of them that is NULL. */
struct given_argument {
    const char *name;
    bool is_there;
};

/* clang-format off */
#define GIVEN(argument) { #argument, (argument) != NULL }
/* clang-format on */
#define API_NEED_TEXTS(error, ...)                                                                 \
    api_need((error), __func__, (const struct given_argument[]){ __VA_ARGS__, { NULL, false } })

pawl_status api_need(pawl_error *error, const char *call, const struct given_argument *given);

/* The same for a call that needs a store. A reduce must not make it: it would wait for itself. */
#define API_NEED(error, ...)                                                                       \
    (api_in_reduce((error), __func__) ? PAWL_INVALID_REQUEST : API_NEED_TEXTS(error, __VA_ARGS__))

bool api_in_reduce(pawl_error *error, const char *call);

#endif
