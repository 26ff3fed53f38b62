/* workers.h - steps for workers elsewhere: claimed, kept alive, answered (claims.c, answers.c). */
#ifndef PAWL_ENGINE_WORKERS_H
#define PAWL_ENGINE_WORKERS_H

#include "engine/engine.h"

#define LEASE_TOKEN_SIZE 32

struct claim_args {
    const str *tools;
    uint32_t tool_count, max;
    str worker;                /* the actor of the entries that start the steps */
    int64_t wait_ms, lease_ms; /* wait: at most five minutes; lease 0: two, at most seven days */
};
struct job;
struct claimed {
    uint64_t instance;
    uint32_t ordinal;
    int64_t lease_ms, expires_at_ms;
    str worker;
    char id[ID_SIZE + 1], token[LEASE_TOKEN_SIZE + 1];
    struct flow_call call; /* lives in the scope */
    str trace;             /* of the request that created the instance; data NULL: none */
    struct job *job;       /* until it is unpacked */
    pawl_status status;
};
/* IN_USE if the store is not owned by this engine. None is no failure. */
pawl_status engine_claim(struct engine *engine, struct scope *scope, const struct claim_args *args,
                         struct claimed **out, uint32_t *count);
/* An event for the step: STEP_DONE, STEP_FAILED, APPROVE, REJECT. LEASE_LOST, NOT_AWAITING. */
pawl_status engine_step_send(struct engine *engine, struct scope *scope, str step_id, str lease,
                             const struct event *event, const uint8_t *key);
/* Answers of a worker's turn, in one commit where nothing else is in the way; each has its own
 * status and words. Fails only if none could be sent. */
struct step_answer {
    str step_id, lease; /* lease data NULL: none */
    struct event event; /* STEP_DONE or STEP_FAILED */
    const uint8_t *key; /* NULL: none. With one it is a decision of its own */
    pawl_status status;
    pawl_error error;
};
pawl_status engine_step_send_all(struct engine *engine, struct scope *scope,
                                 struct step_answer *answers, uint32_t count);
pawl_status engine_step_heartbeat(struct engine *engine, struct scope *scope, str step_id,
                                  str lease, int64_t extend_ms, int64_t *out_expires_at_ms);
/* Instances > after that have a live step, by number. */
pawl_status engine_stepping(struct engine *engine, struct scope *scope, uint64_t after,
                            uint32_t limit, uint64_t **out, uint32_t *count);
/* As the last entry about it left it: cheap right after an answer. With the answer's key, as that
 * answer left it, whatever came after. */
pawl_status engine_step_outcome(struct engine *engine, struct scope *scope, str step_id,
                                const uint8_t *key, enum step_status *out);

#endif
