/* afar_int.h - private to afar.c and afar_offer.c: types, sessions, turns. */
#ifndef PAWL_MODULE_AFAR_INT_H
#define PAWL_MODULE_AFAR_INT_H

#include "base/guard.h"
#include "env/env.h"
#include "module/afar.h"
#include "module/module_int.h"

#define THERE_MS 15000 /* a worker that has not asked for so long has left */
#define BUSY_MS  30000 /* a turn waits so long for a worker that is busy */
#define LOOK_MS  500   /* between two looks at who is still there */
#define CLAIM_BYTES (16u << 20) /* of requests in one answer, and then one more */
#define SESSIONS 1024u

/* A type that workers have offered; kept until the store closes. */
struct afar_type {
    struct afar_type *next;
    struct afar *afar;
    struct module_type type; /* of the version in force */
    char build[AFAR_TOKEN * 2 + 1];
};

struct afar_session {
    struct afar_session *next;
    char token[AFAR_TOKEN + 1], build[AFAR_TOKEN * 2 + 1];
    str worker;
    struct offered {
        struct afar_type *type;
        uint32_t version;
    } * offered;
    uint32_t offered_count;
    struct child_process holds; /* its table alone: what the worker may still have */
    int64_t seen_ms;
    struct scope kept;
};

enum turn_stage { TURN_QUEUED, TURN_CLAIMED, TURN_ANSWERED };

/* On the stack of the thread that waits for it. */
struct afar_turn {
    struct afar_turn *next;
    uint64_t number;
    struct afar_type *type;
    const struct turn_request *request;
    enum turn_stage stage;
    struct afar_session *session; /* CLAIMED, ANSWERED */
    char lease[AFAR_TOKEN + 1];
    int64_t until_ms; /* QUEUED: of its patience; CLAIMED: of its lease */
    uint32_t leases;
    uint64_t keep;
    bool is_whole; /* the worker has forgotten the instance */
    struct scope *scope;
    str answer; /* in the scope */
};

struct afar {
    const struct heap *heap;
    struct env *env;
    struct afar_host host;
    struct guard lock;
    pthread_cond_t changed; /* a turn was claimed or answered, or it stops */
    struct guard offering;  /* one offer at a time */
    struct scope kept;      /* types; under `offering` */
    struct afar_type *types;
    struct afar_session *sessions;
    struct afar_turn *turns; /* the oldest first */
    struct afar_claim *claims;
    uint64_t numbers;
    uint32_t waiting, session_count;
    bool is_stopping;
};

void afar_token(const struct afar *afar, char out[AFAR_TOKEN + 1]);
void afar_free_session(struct afar *afar, struct afar_session *session);

/* Under the lock: has it asked of late, does it wait, or hold a turn? */
bool afar_is_there(const struct afar *afar, const struct afar_session *session);
/* One that is there and whose code is in force; NULL: none. */
const struct afar_session *afar_worker_of(const struct afar *afar, const struct afar_type *type);

/* `run` of the bindings. */
pawl_status afar_run_turn(const struct code_binding *binding, const struct turn_request *request,
                          struct scope *scope, struct turn_answer *out);

#endif
