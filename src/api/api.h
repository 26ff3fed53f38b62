/* api.h - what is inside a pawl: pawl.h's functions and the operations' handlers share it. */
#ifndef PAWL_API_API_H
#define PAWL_API_API_H

#include "engine/engine.h"
#include <pawl.h>

struct pawl {
    struct heap heap;
    struct engine *engine;
};

/* pawl_open() with a world of the caller's choice (tests: env_sim). `env` is the engine's from
 * now on, also on failure; NULL counts as no memory. */
pawl_status pawl_open_env(pawl **out, const char *url, const pawl_options *options, struct env *env,
                          pawl_error *error);

/* An alarm falls due: ops_alarm.c, called by the engine. */
pawl_status alarm_fire(void *context, struct engine *engine, struct scope *scope,
                       const struct kept *alarm);

#endif
