/* limits.h - every bound, named once. Crossing one is a status, never a crash. */
#ifndef PAWL_BASE_LIMITS_H
#define PAWL_BASE_LIMITS_H

#define LIMIT_TEXT (1u << 20)            /* a definition, a request body, one JSON value */
#define LIMIT_SCOPE ((size_t)64 << 20)   /* memory of one unit of work */
#define LIMIT_NAME 128                   /* definition, tool, store and key names */
#define LIMIT_SPAWNS        2500u /* spawning steps of one flow: what one commit can hold */
#define LIMIT_SPAWN_INPUT  ((size_t)8 << 20) /* of the children that begin together: bytes */
#define LIMIT_WAIT_VALUES  ((size_t)8 << 20) /* of the waits that begin together: bytes */
#define LIMIT_KEPT_SIGNALS 1000u         /* of one instance, that nothing has taken yet */
#define LIMIT_KEPT_TEXT    (16u << 20)   /* payloads of those together */
#define LIMIT_SUBSCRIPTIONS 256u         /* values of one signal, of one instance */
#define LIMIT_ACTION 1024                /* state names, actions, refs: bytes */
#define LIMIT_STATES 4096
#define LIMIT_TRANSITIONS 65536
#define LIMIT_DEADLINES 1024             /* of one machine */
#define LIMIT_STEPS 10000                /* of one flow's plan */
#define LIMIT_STEP_EXPRESSIONS 64u                  /* {{= ... }} in the arguments of one step */
#define LIMIT_PROGRESS         2048u                /* what a heartbeat says of how far it is */
#define LIMIT_PROGRESS_ALL     (64u << 20)          /* of all steps that are under way */
#define LIMIT_QUERIES          64u                  /* of one flow */
#define LIMIT_MAP_ITEMS     100000u              /* of the list of one map */
#define LIMIT_ENTRIES 10000000u          /* of one instance, by default */
#define LIMIT_LIVE_STEPS 100000u         /* of one instance at once, by default */
#define LIMIT_ATTEMPTS 1000              /* retry.max */
#define LIMIT_AT_ONCE          1000000           /* the most that `concurrency` may allow */
#define LIMIT_RATE             100000   /* ... and `rate`: each start is remembered, by key */
#define LIMIT_PRIORITY         100      /* -100 to 100 */
#define LIMIT_RATE_MS          86400000 /* of `rate.per`: so much is read after a restart */
#define LIMIT_CALL_KEY 80                /* of a call of code that has a key of its own */
#define LIMIT_BATCH 10000                /* fires in one batch call, lines of a batch */
#define LIMIT_BATCH_TEXT (16u << 20)     /* the body of a batch; each of its lines LIMIT_TEXT */
#define LIMIT_DRAIN 4096                 /* decisions in one commit */
#define LIMIT_LAG 65536                  /* rows that may lag behind the log */
#define LIMIT_SLICE 2048                 /* lagging rows written with one commit */
#define LIMIT_HEADS (1u << 20)           /* heads kept in memory */
#define LIMIT_ACTORS 4096                /* interned actors kept in memory */
#define LIMIT_EXEC_OUTPUT (1u << 20)     /* what an exec tool may print */
#define LIMIT_LIST 1000                  /* rows of one page */
#define LIMIT_CLAIM_TEXT (16u << 20)     /* arguments of the steps that one claim takes together */

#endif
