/* work.h - steps that run: here in threads, or by workers that claim them. Private to src/engine.
 *
 * Rules:
 *  (1) Everything here is under the lock, but for `starters`, which has its own.
 *  (2) A step is started when a thread or a claim takes it, the oldest first.
 *  (3) A job belongs to the thread that runs it. A step that is over stops its job, and the answer
 *      of that job is for no one.
 *  (4) A waiting claim is called once, and taken by its owner; never while a step of it is being
 *      committed. Its memory is its owner's.
 *  (5) A lease is watched from the commit that started its step until the step ends.
 *  (6) What runs here is started only while arguments and answers under way leave room. */
#ifndef PAWL_ENGINE_WORK_H
#define PAWL_ENGINE_WORK_H

#include "base/guard.h"
#include "base/map.h"
#include "engine/quotas.h"
#include "engine/workers.h"
#include "flow/flow.h"
#include "model/words.h"
#include "tool/tool.h"

struct actor;
struct batch;
struct mail;

#define TOOL_GRACE_MS    1000   /* a program is ended this long after its step has timed out */
#define LEASE_DEFAULT_MS 120000 /* B33 */
#define JOBS_QUICK       1024u /* log, set and fail: under way at once */
#define JOBS_WHEN_BRISK  16u   /* of other tools, for each worker, while each is very quick */
#define PLACES_MAX       256u  /* of them in all, unless there are more workers */
#define WORK_BYTES       (LIMIT_SCOPE / 2) /* under way at once, and LIMIT_TEXT for each worker */
#define BRISK_STREAK     64u /* so many tools that took BRISK_MS at most, or as long as a commit */
#define BRISK_MS         1
#define BRISK_MS_MOST    5 /* however long a commit takes */
#define PARTIES_MAX      2u /* of them at once: one is called while another is recorded */

/* A tool call under way or queued (steps.c). */
struct job {
    struct job *next;
    uint64_t instance;
    uint32_t ordinal;
    bool holds_place; /* counted in jobs_under_way */
    size_t bytes;     /* counted in bytes_under_way */
    bool is_counted;  /* if the process dies of it, that is counted (deaths.c) ... */
    bool is_alone;    /* ... and it has died so often that it is made alone */
    struct claimed *claim; /* it is started for a worker elsewhere; until that is committed */
    struct scope scope;
    struct flow_call call;
    const char *creator; /* NULL: not known */
    const char *trace;   /* NULL: none */
    char id[ID_SIZE + 1];
    bool is_quick;         /* of a tool that takes no time */
    const void *place;     /* where it is called together with others; NULL: by itself */
    int64_t queued_at_ms;  /* by the tick */
    struct tool_stop stop; /* to end it early */
    bool is_over;          /* its step has ended: its answer is for no one */
    bool is_held;          /* its instance was paused: if it did not begin, or was ended early, its
                              attempt is given back */
};

struct job_list {
    struct job *first, *last;
    uint32_t count;
};

struct lease {
    uint64_t instance;
    uint32_t ordinal;
    int64_t length_ms, expires_at_ms; /* by the leases' clock */
    int64_t
        until_ms; /* the same by the wall clock, as it was when the lease was given or extended */
    char hash[LEASE_HASH_SIZE + 1]; /* of its token; empty: it runs in this process */
    bool is_used; /* its worker has sent its token: the answer to the claim was read */
    char worker[WORDS_SIZE_MAX + 1]; /* whose it is, as a message shows it; empty: not known */
    str progress;        /* what its worker said last of how far it is, JSON; data NULL: nothing */
    int64_t progress_ms; /* when, by the wall clock */
    uint32_t next;                   /* with the same key in the map; MAP_NONE: none */
};

/* Who started the steps of one instance (starters.c). */
struct starters {
    struct guard lock; /* the engine's is not held; the store is read under it */
    uint64_t instance;    /* 0: none */
    int64_t looked_ms;    /* by the tick */
    struct map places;    /* of an attempt, by its ordinal, in: */
    uint64_t *actors;     /* values */
    uint32_t count, capacity;
};

/* Workers that have asked for steps since this engine was opened (known_workers.c). */
struct known_worker {
    str name;
    struct known_tool *tools;
    uint32_t tool_count, tool_capacity;
    int64_t first_ms, seen_ms; /* by the wall clock */
};
struct known_workers {
    struct known_worker *items;
    uint32_t count, capacity;
    int64_t since_ms; /* all that asked since then are here */
};

/* Ready steps whose tool is not here (claims.c). */
struct tool_queue {
    str tool;
    struct ready_step *oldest;
    uint32_t passed_over; /* by turns of workers that were given what they had made ready */
};

/* A step that waits among others, the oldest first (ages.c). */
struct ready_step {
    struct ready_step *next, *child; /* in the heap */
    uint64_t instance;
    uint32_t ordinal;
    uint32_t queue; /* for workers: of engine->queues */
    uint64_t since; /* a position: it became ready there, or before and in this process ... */
    uint64_t order; /* ... and of those with the same, the one that was put first is the oldest */
    int32_t priority;
};

struct work {
    struct job_list jobs, quick; /* started, and not yet taken by a thread */
    struct job *running;         /* in threads now */
    uint32_t jobs_under_way;
    _Atomic size_t bytes_under_way; /* of jobs, and of answers until they are recorded */
    uint32_t brisk_jobs;            /* that took next to no time lately */
    uint32_t parties;               /* of jobs that are called together now */
    struct ready_step *ready;  /* the oldest of those that are run here */
    struct tool_queue *queues; /* ready, but no tool of that name is here */
    uint32_t queue_count;
    uint64_t ready_count;          /* so many steps were put into these and into `ready` */
    _Atomic bool ready_lost;       /* a ready step could not be remembered: look for it, */
    int64_t ready_look_ms;         /* by the tick, not before this */
    struct waiting_claim *waiting,
        **waiting_end; /* claims that wait, the longest first (waiting_claims.c) */
    _Atomic bool claims_ended;             /* none waits any more */
    void (*unclaimed)(void *context);      /* a step is ready, and no claim waits; may be NULL */
    void *unclaimed_context;
    uint32_t sleeper_count;                /* of them, with a thread each */
    struct lease *leases;
    uint32_t lease_count, lease_capacity;
    size_t progress_size;    /* of what is kept of all leases */
    struct map lease_places; /* which of them is a step's (leases.c) */
    int64_t next_lease_ms; /* none ends before, by the leases' clock; INT64_MAX: none */
    struct sha *lease_sha;
    struct starters starters;
    struct known_workers workers;
    struct quotas quotas; /* quotas.h */
};

/* answers.c: what an entry of this transition and effects makes of the step it is about. */
enum step_status step_outcome(int32_t transition, const struct effect_list *effects,
                              uint32_t ordinal);

/* steps.c */
pawl_status steps_chain(struct engine *engine, struct actor *actor, struct scope *scope,
                        const struct event *event, struct decision *decision, uint32_t *seen,
                        struct job **jobs); /* of the drafts from *seen on */
void steps_act(struct engine *engine, uint64_t instance, struct job *jobs);
void steps_drop(struct engine *engine, struct job *jobs);
void steps_start_ready(struct engine *engine); /* the first of the list */
bool steps_add_ready(struct engine *engine, uint64_t instance, uint32_t ordinal, uint64_t since,
                     int32_t priority);
/* One that waited before: here, or in its tool's queue, at its age. */
bool steps_wait_again(struct engine *engine, str tool, str creator, uint64_t instance,
                      uint32_t ordinal, uint64_t since, int32_t priority);
void steps_note_ready(struct engine *engine, const struct actor *actor,
                      const struct decision *decision);
/* The job of a step that is to be started, in front of the others; *out is left alone if its
 * arguments are too large. NOT_AWAITING: its tool is not here, or not what was claimed; as
 * waiting_charge(). Then it is decided, and the job is the mail's. */
pawl_status steps_prepare(struct engine *engine, struct actor *actor, const struct mail *mail,
                          struct scope *scope, struct job **jobs, struct job **out);
void steps_hand_over(struct mail *mail, struct job *job, const struct decision *decision,
                     uint32_t from);
pawl_status steps_fail_started(struct actor *actor, struct scope *scope, const struct event *start,
                               struct decision *decision);
void steps_lose_ready(struct engine *engine);
bool steps_are_lost(const struct engine *engine);    /* it is time to look */
bool steps_can_start(const struct engine *engine);   /* some are ready */
void steps_leave_unserved(struct engine *engine, const struct actor *actor,
                          const struct mail *mail);
void steps_forget_ready(struct engine *engine); /* all of it is looked up again */

/* ages.c `oldest` is a heap; NULL: it is empty. */
struct ready_step *ready_new(struct engine *engine, uint64_t instance, uint32_t ordinal,
                             uint64_t since, int32_t priority); /* NULL: no memory */
/* Is `a` before `b`? A point of priority is worth PRIORITY_AGE records of age, so that a step of a
 * low one is not passed over for ever. */
#define PRIORITY_AGE (INT64_C(1) << 20)
bool ready_is_older(const struct ready_step *a, const struct ready_step *b);
void ready_put(struct ready_step **oldest, struct ready_step *steps); /* one, or another heap */
struct ready_step *ready_take(struct ready_step **oldest);            /* NULL: none */
struct ready_step *ready_list(struct ready_step **oldest); /* all, by `next`, in no order */
void ready_free(struct engine *engine, struct ready_step **oldest);
/* Since which position each step of `live` is ready; 0: it is not. In the scope. */
pawl_status ages_look(struct engine *engine, struct scope *scope, uint64_t instance,
                      const struct live *live, uint64_t **out);

/* runners.c */
bool runner_reserve(struct engine *engine, struct job *job); /* takes the lock: a place for it */
bool runners_have_room(const struct engine *engine);         /* for arguments and answers */
/* What a job or an answer takes of that room from now on. */
void runners_count(struct engine *engine, size_t *counted, size_t bytes);
void runner_add(struct engine *engine, struct job *job); /* it was started: run it */
bool runner_run_one(struct engine *engine);              /* one unit of work, by the caller */
bool runner_run_quick(struct engine *engine);            /* a tool that takes no time */
/* Steps that may be under way at once while tools take next to no time. */
uint32_t runners_places(const struct engine *engine);
void runners_withdraw(struct engine *engine, const struct batch *batch); /* steps that are over */
void runners_forget(struct engine *engine); /* what was started and has not begun */
void runners_fini(struct engine *engine);
void job_free(struct engine *engine, struct job *job);

/* leases.c */
int64_t lease_clock(struct engine *engine);
bool leases_make_room(struct engine *engine, uint32_t more);
void lease_add(struct engine *engine, const struct lease *lease);
bool lease_is_watched(struct engine *engine, uint64_t instance, uint32_t ordinal);
/* When it ends, by the wall clock; 0: there is none. Takes the lock. */
int64_t lease_until_ms(struct engine *engine, uint64_t instance, uint32_t ordinal);
/* Is the step still held by the lease that the claim gave? */
bool lease_is_given(struct engine *engine, const struct claimed *claimed);
void lease_drop(struct engine *engine, uint64_t instance, uint32_t ordinal);
bool lease_is_held(struct engine *engine, uint64_t instance, uint32_t ordinal, str token);
bool lease_extend(struct engine *engine, uint64_t instance, uint32_t ordinal, str token,
                  int64_t by_ms, str progress, int64_t *out_expires_at_ms);
/* Give a timeout its reason: whose lease ran out, or at which worker the step's own. Other events
 * are left alone. Lock not held. */
void lease_explain(struct engine *engine, struct scope *scope, const struct actor *actor,
                   struct event *event);
int64_t leases_left_ms(struct engine *engine); /* or until a limit lets steps begin */
void leases_expire(struct engine *engine);
void leases_forget(struct engine *engine);
void leases_fini(struct engine *engine);
void lease_hash(struct engine *engine, str token, char out[LEASE_HASH_SIZE + 1]);

/* starters.c: the actor of the entry that started an attempt; 0: not found. Lock not held. */
void starters_init(struct engine *engine);
void starters_fini(struct engine *engine);
pawl_status starter_find(struct engine *engine, struct scope *scope, uint64_t instance,
                         uint32_t ordinal, uint64_t *out_actor);

/* known_workers.c */
void workers_init(struct engine *engine);
void workers_fini(struct engine *engine);
void workers_ask(struct engine *engine, const struct claim_args *args); /* takes the lock */
void workers_see(struct engine *engine, const struct lease *lease);     /* a sign of life */

/* claims.c */
bool claims_add(struct engine *engine, str tool, uint64_t instance, uint32_t ordinal,
                uint64_t since, int32_t priority);
/* To a queue that is known, or, if its tool is here now, to what is run here. */
bool claims_add_to(struct engine *engine, uint32_t queue, uint64_t instance, uint32_t ordinal,
                   uint64_t since, int32_t priority);
void claims_forget(struct engine *engine);
void claims_release(struct engine *engine);
void claims_amended(struct engine *engine, const struct actor *actor); /* tools may be others now */
void claims_fini(struct engine *engine);
bool claims_wait(const struct engine *engine, const struct claim_args *args); /* steps, for these */
/* Is it their turn, before what a worker's answers make ready? Asked once for each turn. */
bool claims_insist(struct engine *engine, const struct claim_args *args);
/* Steps that are left are offered to other claims that wait for them. */
void claims_pass_on(struct engine *engine, const struct claim_args *args);
/* The lease goes into the entry and the row that the commit writes; after it the step is the
 * worker's. */
void claim_tell(const struct claimed *claim, const struct decision *decision, uint32_t from);
void claim_hand_out(struct engine *engine, uint64_t instance, struct claimed *claim,
                    struct job *job);
/* Lock not held. */
void claim_token(struct engine *engine, struct claimed *claimed);
pawl_status claim_now(struct engine *engine, struct scope *scope, const struct claim_args *args,
                      struct waiting_claim *waiting, struct claimed *out,
                      uint32_t *count); /* appends to those that are there */
uint32_t claims_unpack(struct engine *engine, struct claimed *claimed,
                       uint32_t count); /* those that were started move to the front */

/* waiting_claims.c: a place for a step of this tool, or NULL; settled by the thread
 * that reserved it, when its commit is over. */
struct claimed *waiting_reserve(struct engine *engine, const struct flow_call *step,
                                uint32_t ordinal);
void waiting_settle(struct engine *engine, struct claimed *claimed, bool is_granted);
/* Before a step that was taken from its queue is started: is the client there, and has the answer
 * room? OVERLOADED: it stays ready. The check is made before its instance is loaded, and again with
 * the size of its arguments. Lock not held. */
pawl_status waiting_check(struct engine *engine, struct scope *scope, struct claimed *claimed);
pawl_status waiting_charge(struct engine *engine, struct scope *scope, struct claimed *claimed,
                           size_t size);
void waiting_give_back(struct claimed *claimed); /* it was not started */
bool waiting_may_have(struct waiting_claim *waiting); /* one step more; counted from now on ... */
void waiting_has_not(struct waiting_claim *waiting);  /* ... unless it was not started */
bool waiting_serves(const struct claimed *claimed, str tool);
/* One of them: a step waits. False: none waits for this tool. */
bool waiting_call(struct engine *engine, str tool);
void waiting_call_all(struct engine *engine);
void waiting_answering(struct waiting_claim *waiting); /* before it is offered: call it later ... */
void waiting_answered(struct engine *engine, struct waiting_claim *waiting); /* ... and now */
uint32_t waiting_count(const struct engine *engine); /* that wait */
bool waiting_has(const struct engine *engine, str worker); /* ... one of this worker */
void steps_forget_all(struct engine *engine); /* jobs, leases, what is ready: for another owner */
void steps_fini(struct engine *engine);

#endif
