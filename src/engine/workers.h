/* workers.h - steps for workers elsewhere: claimed, kept alive, answered (claims.c,
 * waiting_claims.c, answers.c).
 */
#ifndef PAWL_ENGINE_WORKERS_H
#define PAWL_ENGINE_WORKERS_H

#include "base/waiter.h"
#include "engine/engine.h"

struct claim_args {
    const str *tools;
    uint32_t tool_count, max;
    str worker;                /* the actor of the entries that start the steps */
    int64_t wait_ms, lease_ms; /* wait: at most five minutes; lease 0: two, at most seven days */
};

/* Workers that have asked for steps since `since_ms`, when the engine was opened or one was
 * forgotten because there were so many. Times are by the wall clock. */
struct known_tool {
    str name;
    int64_t asked_ms; /* last */
};
struct worker_view {
    str name;
    const struct known_tool *tools;
    uint32_t tool_count;
    uint32_t held; /* steps that it has, by leases of this process */
    int64_t first_ms, seen_ms;
    bool is_waiting; /* a claim of it waits now */
};
struct workers_view {
    struct worker_view *items;
    uint32_t count;
    uint32_t held_unknown; /* steps whose worker is not known: claimed before this process began */
    int64_t since_ms;
    bool is_owner; /* else no worker asks here */
};
pawl_status engine_workers(struct engine *engine, struct scope *scope, struct workers_view *out);

struct job;
struct ready_step;
struct waiting_claim;
struct claimed {
    uint64_t instance;
    uint32_t ordinal;
    int64_t lease_ms, expires_at_ms;
    str worker;
    char id[ID_SIZE + 1], token[LEASE_TOKEN_SIZE + 1];
    char lease[LEASE_HASH_SIZE + 1]; /* the token's hash */
    struct flow_call call; /* lives in the job */
    str trace;             /* of the request that created the instance; data NULL: none */
    struct job *job;       /* until engine_claim_told() */
    struct waiting_claim *waiting;
    struct ready_step *ready; /* as it was in its queue, until it starts; NULL: it was in none */
    size_t size;              /* of what it takes of the answer's room */
    bool stays_ready;         /* the answer is full, or its client has gone */
    pawl_status status;
};

/* What claims on several shards, of one worker's one call, may be given together. */
struct claim_budget {
    _Atomic uint32_t left; /* steps */
    _Atomic size_t size;   /* of the arguments of what they have */
};

/* A claim under way: a waiting claim. Everything of it lives in the scope. The waiter is woken
 * under locks, and then takes again. `budget` lives as long; NULL: it is the only one. IN_USE if
 * the store is not owned by this engine. */
pawl_status engine_claim_open(struct engine *engine, struct scope *scope,
                              const struct claim_args *args, const struct waiter *waiter,
                              struct claim_budget *budget, struct waiting_claim **out);
/* From now on steps that become ready may be started for it, in the commit that makes them so. Not
 * every time while others wait: each comes to its turn. */
void engine_claim_offer(struct engine *engine, struct waiting_claim *waiting);
/* Is it the turn of steps that wait here, before what the answers to another shard make ready?
 * Asked once for each turn. */
bool engine_claim_insists(struct engine *engine, const struct waiting_claim *waiting);
/* In `wake`: does it take a commit to go on, which would hold up the thread? */
bool engine_claim_is_slow(const struct waiting_claim *waiting);
/* What there is for it; none is no failure. *is_parked: not yet. Then `wake` is called once, and it
 * has to be taken again; also, with may_wait false, when its time is over (it may still be parked
 * then, for the moment that a commit takes). Not parked: it is over. */
pawl_status engine_claim_take(struct engine *engine, struct scope *scope,
                              struct waiting_claim *waiting, bool may_wait, struct claimed **out,
                              uint32_t *count, bool *is_parked);
/* The answer is written: frees what was kept of the steps. */
void engine_claim_told(struct engine *engine, struct claimed *claimed, uint32_t count);
/* The answer could not be sent: those that are still the claim's are ready again, and no attempt of
 * theirs is spent. */
void engine_claim_return(struct engine *engine, const struct claimed *claimed, uint32_t count);
/* From now on no claim waits: those that do are called, and take what there is. */
void engine_claims_end(struct engine *engine);
/* `unclaimed` is called, with the engine's lock, for each step that becomes ready while no claim
 * here waits for its tool. */
void engine_watch_unclaimed(struct engine *engine, void (*unclaimed)(void *context), void *context);
bool engine_claims_are_ended(struct engine *engine);
int64_t engine_claim_left_ms(struct engine *engine, const struct waiting_claim *waiting);
/* The same by a thread that has nothing else to do: the waiter is not asked. */
pawl_status engine_claim_wait(struct engine *engine, struct scope *scope,
                              struct waiting_claim *waiting, struct claimed **out, uint32_t *count);
/* Answers about steps, a worker's turn for example, in one commit where nothing else is in the way;
 * each has its own status and words. Fails only if none could be sent. `waiting claim` is offered
 * before they are sent; NULL: none. */
struct step_answer {
    str step_id, lease; /* lease data NULL: none */
    struct event event; /* STEP_DONE, STEP_FAILED, APPROVE or REJECT */
    const uint8_t *key; /* NULL: none. With one it is a decision of its own */
    enum step_status outcome; /* of one that was accepted: what became of its step */
    pawl_status status;
    pawl_error error;
};
pawl_status engine_step_answer_all(struct engine *engine, struct scope *scope,
                                   struct step_answer *answers, uint32_t count,
                                   struct waiting_claim *waiting);
/* The same without a waiting caller. `wake` is called once: without a claim when all of them are
 * answered, with a claim when it can be taken as well. Then engine_step_answers_end() says how they
 * ended. Where *needs_thread is set, nothing was sent, because it may take long to decide:
 * engine_step_answer_all() does it. NO_MEMORY: nothing was sent. */
struct answering;
pawl_status engine_step_answers_start(struct engine *engine, struct scope *scope,
                                      struct step_answer *answers, uint32_t count,
                                      struct waiting_claim *waiting, const struct waiter *waiter,
                                      struct answering **out, bool *needs_thread);
void engine_step_answers_end(struct engine *engine, struct answering *answering);
/* One of them; its status is returned as well. LEASE_LOST, NOT_AWAITING. */
pawl_status engine_step_answer(struct engine *engine, struct scope *scope,
                               struct step_answer *answer);
/* `progress` is JSON, at most LIMIT_PROGRESS; data NULL: what was said last stays. */
pawl_status engine_step_heartbeat(struct engine *engine, struct scope *scope, str step_id,
                                  str lease, int64_t extend_ms, str progress,
                                  int64_t *out_expires_at_ms);
/* What was said last of a step that is under way; data NULL: nothing. NO_MEMORY. */
pawl_status lease_progress(struct engine *engine, struct scope *scope, uint64_t instance,
                           uint32_t ordinal, str *out, int64_t *out_ms);

#endif
