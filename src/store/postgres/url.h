/* url.h - postgres://USER:PASSWORD@HOST:PORT/DATABASE?schema=NAME&...#SHARD, taken apart: what is
 * ours and what is libpq's. */
#ifndef PAWL_STORE_POSTGRES_URL_H
#define PAWL_STORE_POSTGRES_URL_H

#include "base/scope.h"

#define SCHEMA_DEFAULT "pawl"
#define SCHEMA_MAX     48

struct pg_url {
    char schema[SCHEMA_MAX + 1];
    uint32_t shard;
    int32_t ttl_ms;    /* `lease`: of an owner */
    const char *libpq; /* what libpq is given: without what is ours */
    const char *shown; /* for people: without a password */
};

/* `rest` is the URL behind its scheme's colon. INVALID_REQUEST names what is wrong with it. */
pawl_status pg_url_read(struct scope *scope, struct arena *arena, str rest, struct pg_url *out);

#endif
