/* actors.h - flows and code: what is remembered of them, and one decision in flight each. Private
 * to src/engine.
 *
 * Rules:
 *  (1) Everything here is under the lock, but for an actor's memory: that belongs to the thread
 *      that has its turn (`busy`).
 *  (2) A decision is folded into the actor's memory before its commit. If the commit fails,
 *      `generation` grows, and the memory is loaded again.
 *  (3) The head of an instance that has an actor stays in memory (but for want of room): one that
 *      is not there has not changed while its actor was restored.
 *  (4) In a shared engine nothing is remembered between turns.
 *  (5) A parent gets to know the end of a child after the commit of that end, and once. */
#ifndef PAWL_ENGINE_ACTORS_H
#define PAWL_ENGINE_ACTORS_H

#include "base/guard.h"
#include "base/limits.h"
#include "base/map.h"
#include "engine/engine.h"
#include "engine/heads.h"
#include "flow/flow.h"
#include "model/words.h"
#include "store/turn_marks.h"

struct batch;
struct child_plan;
struct job;
struct request;

#define MAILS_SPARED     512u       /* no more than four megabytes of them */
#define SPARE_BYTES      (8u << 10) /* a mail that took more gives it back */
#define ACTORS_KEPT      4096u /* remembered; more only while busy, or restored ahead of a timer */
#define ACTORS_AT_ONCE   64u          /* restored with one look at the store */
#define ACTORS_LET_GO    64u          /* at once, past that */
#define ACTOR_BYTES      (256u << 10) /* an actor's arena is rebuilt when it has grown past this */
#define SNAPSHOT_BYTES   4096u  /* history since the last snapshot before the next is worth it */
#define POISON_AT        2u     /* an event that cannot be decided so often holds its instance */
#define RETRY_STORE_MS   1000   /* an event that met a failing store is tried again after this */
#define WAKES_AT_ONCE    256u  /* instances that are woken because nothing else does */
#define WAKE_DRAFTS      4096u /* kept signals are taken in the decision that waits, likewise */
#define CHAIN_DRAFTS     64u   /* pure steps end in the decision that begins them, so many ... */
#define CHAIN_BYTES      (LIMIT_SCOPE / 4) /* ... and until so much of its scope is used */

struct mail {
    struct mail *next;
    uint64_t instance;
    struct event event;
    struct scope *scope; /* the waiting caller's; results and messages go there */
    struct scope own;    /* where no caller waits */
    struct fired *out;
    const struct fire_args *fire; /* a fired action's other checks, made after it was decided */
    const uint8_t *key;           /* NULL: none */
    pawl_status status;
    bool is_done;
    bool is_owned;       /* no caller waits: freed when done */
    bool is_poison;      /* it held its instance: tried again when that is resumed */
    bool holds_place;    /* STEP_START: counted in jobs_under_way until a job takes it over */
    size_t bytes;        /* of a tool's answer: counted in bytes_under_way */
    int64_t retry_at_ms; /* by the monotonic clock: the store failed, try again then */
    bool may_ride;       /* a step begins or ends, or a timer is due: decided with others of its
                            instance */
    enum step_status outcome; /* of an answer: what the decision makes of its step */
    bool is_kept;             /* SIGNAL: nothing takes it yet */
    bool is_repeat;           /* its key was used for this very call: nothing was recorded */
    struct mail_group *group; /* of mails that one caller waits for; may be NULL */
    struct claimed *claim;    /* STEP_START: for a worker elsewhere */
    uint64_t ready_since;     /* STEP_START: as the step that waited had it */
};

/* Instances that a broadcast does not fit, the first ones with the reason. */
#define REFUSALS_NAMED 8u
struct refusals {
    uint64_t count;
    uint64_t instances[REFUSALS_NAMED];
    pawl_error reasons[REFUSALS_NAMED];
};

struct mail_group {
    uint32_t left, refused;
    uint32_t kept;    /* signals: of those that were not refused */
    uint32_t full;    /* signals: of the refused, because the instance keeps no more */
    uint32_t late;    /* of the refused: what was awaited has come already */
    pawl_error error; /* the store's first failure, if there was one */
    pawl_error refusal; /* the first of them; status OK: none */
    struct refusals *refusals; /* signals: those that it does not fit; NULL: they are not noted */
    /* The last of them is done; NULL: a caller looks at `left`. */
    void (*done)(struct engine *engine, struct mail_group *group);
};

/* Why an event that the engine itself sent was refused (untaken.c). */
struct refusal {
    uint64_t instance;
    enum event_kind kind;
    char words[sizeof((pawl_error *)0)->message];
};

struct actor {
    uint64_t instance;
    struct definition *definition;
    struct arena arena; /* of its memory */
    void *memory;
    struct engine *engine;
    struct payload_source payloads;     /* what its memory does not keep (payloads.c) ... */
    const struct decision *decided[2];  /* ... of entries that are drafts, in order; may be NULL */
    uint32_t decided_seq;               /* of the entry before them */
    str input;
    str name; /* of its definition, once its limits were asked for (quota_look.c); data NULL else */
    str creator, correlation; /* steps run in its name, children inherit both; data NULL: none */
    str trace;                /* of the request that created it: tools get it; data NULL: none */
    uint64_t pos;             /* shared: of the last record when it was loaded */
    uint32_t state, seq, snapshot_seq;
    uint32_t generation; /* the engine's, when this was loaded */
    size_t bytes_since_snapshot, snapshot_size;
    size_t loaded_size; /* of its arena when it was loaded; 0: it never was */
    uint32_t death; /* of its start: the mark in FILE-turns, until its reduces have run; 0: none */
    uint32_t failures; /* events in a row without a waiting caller that could not be decided */
    bool is_loaded, busy, is_test;
    bool is_recent;    /* asked for since the hand came by (actors.c) */
    bool is_too_large; /* it could not be loaded: more than one decision may hold */
    bool is_paused;   /* when its present event was decided */
    bool is_at_bound; /* its present event would exceed a bound (bounds.c) */
    struct mail *first, *last;
    struct actor *next_runnable;
};

/* Turns and calls that a process did not survive (deaths.c). */
struct deaths {
    struct guard lock; /* of all that follows; the engine's may be held */
    bool is_tried;     /* to open a FILE-turns */
    /* It is kept: this process runs code or its calls. A turn reads it without the lock: while none
     * is kept there is nothing to look up, and code is registered while other instances run. */
    _Atomic bool is_open;
    bool is_alone;     /* a call is under way that has to be the only one of its like ... */
    bool has_waiting;  /* ... and others like it are ready */
    struct turn_file file; /* is_open */
    struct turn_mark marks[MARKS];
};

/* Instances that await signals, looked at page by page (wakes.c). */
struct wakes {
    uint64_t after;           /* the last instance that was looked at */
    _Atomic int64_t retry_ms; /* the store failed: not before, by the tick */
    _Atomic bool is_due;      /* not all have been looked at */
    _Atomic bool is_again;    /* look at all of them once more */
    _Atomic bool is_busy;     /* a thread is at it */
    _Atomic bool was_refused; /* one could not be woken: its code is not here */
};

/* A signal to one instance that was refused (refused_signals.c). */
struct refused_signal {
    uint64_t instance;
    int64_t at_ms; /* by the wall clock */
    char name[WORDS_SIZE_MAX + 1], words[sizeof((pawl_error *)0)->message];
};
struct refused_signals {
    struct refused_signal *items; /* a ring; NULL: none */
    uint32_t next;
};

struct untaken {
    struct map map; /* from instances to items */
    struct refusal *items;
    uint32_t count, capacity;
};

struct actors {
    struct map map; /* from instances to items */
    struct actor **items;
    uint32_t count, capacity, hand;
    uint32_t ahead;              /* so many more are remembered: their timers fall due soon */
    _Atomic uint32_t generation; /* grows when what actors remember may be wrong */
    struct actor *runnable, *runnable_last;
    struct mail *spare_mails; /* freed, with the first block of their scope, to be used again */
    uint32_t spare_count;
    struct mail *later;      /* events that met a failing store */
    uint32_t mail_under_way;
    uint64_t *ended;         /* children that have ended and whose parents do not know it yet */
    uint32_t ended_count, ended_capacity, ended_told; /* the first of them: their parents know */
    bool ended_lost;         /* some of them are in the store only: look */
    bool ended_refused;      /* a parent has no handler here: look when code comes */
    _Atomic bool has_amends; /* some flow may have been amended; shared: always */
    struct untaken untaken;
    struct refused_signals refused_signals;
    struct deaths deaths;
    struct wakes wakes;
};

/* signals.c */
pawl_status signal_kept_name(struct scope *scope, const struct record *record, str *out);

/* family.c, family_end.c. Before the drain: resolve and start what the decision wants to spawn, on
 * top of it where that fails. `rights`: what the actor may create; NULL: read them. The caller
 * always passes `child_plans` to family_over(), also after a failure. */
pawl_status family_plan(struct engine *engine, struct scope *scope, struct actor *actor,
                        const str *rights, int64_t at_ms, struct decision *decision,
                        struct child_plan **child_plans);
/* Give them numbers, so that the decision's entries can tell their ids; record them;
 * and cancel those whom the decision has left behind. */
void family_number(struct engine *engine, struct child_plan *child_plans, uint64_t parent,
                   const uint8_t random[ID_RANDOM_SIZE]);
/* What a planned child decided, and the next one. */
const struct decision *family_decision(const struct child_plan *child_plan,
                                       const struct child_plan **next);
pawl_status family_check(struct engine *engine, struct scope *scope,
                         const struct child_plan *child_plans); /* CONFLICT: as redrive_check() */
pawl_status family_record(struct engine *engine, struct scope *scope,
                          struct child_plan *child_plans, int64_t at_ms);
pawl_status family_part(struct engine *engine, struct scope *scope, uint64_t parent,
                        const struct definition *definition, const struct decision *decision,
                        int64_t at_ms);
/* After the commit, or its refusal. family_note(): which instances have ended. family_tell():
 * reports one end to its parent; false: all are reported. */
void family_over(struct engine *engine, struct child_plan *child_plans, bool is_refused);
void family_note(struct engine *engine, const struct batch *batch);
bool family_tell(struct engine *engine);
void family_fini(struct engine *engine);
/* Children of `parent` (0: of all) whose end was not reported to it: it could not be, or the
 * process died. */
pawl_status family_look(struct engine *engine, struct scope *scope, uint64_t parent);
void family_look_again(struct engine *engine); /* a parent may have had no handler: ask once more */

/* actors.c */
struct actor *actor_new(struct engine *engine);
void actor_free(struct engine *engine, struct actor *actor);
void actors_fini(struct engine *engine);
pawl_status actor_adopt(struct engine *engine, struct actor *actor);
struct actor *actor_get(struct engine *engine, uint64_t instance); /* NULL: no memory */
/* To be restored ahead of its timer: the actor, whose turn is the caller's from now on, until
 * actor_release(); NULL: there is nothing to restore. */
struct actor *actor_take_ahead(struct engine *engine, uint64_t instance);
bool actors_are_runnable(const struct engine *engine); /* turns wait that no thread has taken */
bool actors_are_ahead(const struct engine *engine); /* some were taken since the last ... */
void actors_forget_ahead(struct engine *engine);    /* those that are too many and idle */
pawl_status actor_load(struct engine *engine, struct scope *scope, struct actor *actor);
/* The context of a flow, running or ended, folded from its entries up to `at`, the head that it had
 * after one of them (NULL: all of them); lock not held. */
pawl_status restore_context(struct engine *engine, struct scope *scope, uint64_t instance,
                            const struct head_row *at, str *out);
/* Likewise, what `read` takes from its memory, which goes then. */
typedef pawl_status restored_fn(void *context, const void *memory, struct scope *scope);
pawl_status restore_read(struct engine *engine, struct scope *scope, uint64_t instance,
                         const struct head_row *at, restored_fn *read, void *context);
/* Of a flow whose whole log was read: its context, and which steps have a result, by their index
 * (NULL: not wanted; else of so many steps, those of the definition in force). */
pawl_status restore_known(struct engine *engine, struct scope *scope,
                          const struct instance_log *log, bool *is_done, uint32_t steps,
                          str *context);
void instance_log_ask(struct engine *engine, uint64_t instance, struct instance_log *out,
                      struct instance_log_query *query);
void actors_load(struct engine *engine, struct actor *const *actors,
                 uint32_t count); /* those whose turn is ours; a hint: failures are not reported */
pawl_status head_row_now(struct engine *engine, struct scope *scope, uint64_t instance,
                         struct head_row *out); /* as an owner knows it, or the store */

/* poison.c: lock not held. noted: its instance has to be held, with the scope's words. */
bool poison_noted(struct actor *actor, const struct mail *mail, struct scope *scope,
                  pawl_status status);
/* Pauses the instance. Returns the event's `status`, or the error that kept it from being
 * paused. */
pawl_status poison_hold(struct engine *engine, struct scope *scope, const struct actor *actor,
                        pawl_status status, bool *is_held);
pawl_status poison_stand(struct engine *engine, struct scope *scope, struct actor *actor);
pawl_status poison_cancel(struct engine *engine, struct actor *actor, const struct event *event,
                          struct scope *scope, struct decision *out);
pawl_status poison_holds(struct engine *engine, struct scope *scope, uint64_t pause_pos, bool *out);
pawl_status poison_free(struct engine *engine, const struct actor *actor, const struct event *event,
                        struct scope *scope, uint64_t *pos, struct decision *out);

/* bars.c: does the definition in force forbid cancelling a flow that has these rows? bars_look() is
 * for the drain and takes the definition that the instance began with. */
bool bars_cancel(const struct definition *definition, const struct live *live);
pawl_status bars_look(struct engine *engine, struct scope *scope, const struct head *head,
                      const struct definition *definition, bool *out);

/* bounds.c: PAUSED with the reason if an instance is over a bound. For one at rest: */
void bounds_init(struct engine_options *options);
pawl_status bounds_standing(const struct engine *engine, struct scope *scope, uint32_t seq,
                            uint32_t live_steps);
/* For one that has folded an event or made a decision; sets actor->is_at_bound. */
pawl_status bounds_event(const struct engine *engine, struct actor *actor,
                         const struct event *event, uint32_t seq_before, struct scope *scope);
pawl_status bounds_decision(const struct engine *engine, struct actor *actor, struct scope *scope);

/* snapshots.c: one whenever as much has been written since the last as it would cost; else none. */
str snapshot_if_due(struct engine *engine, struct actor *actor, struct scope *scope,
                    const struct decision *decision);

/* payloads.c: its memory may leave payloads in the history from now on. */
void payloads_attach(struct engine *engine, struct actor *actor);
/* Of the entries behind those that are in the store the actor has folded `all`, and is folding
 * `more`; NULL: none. */
void payloads_decide(struct actor *actor, const struct decision *all, const struct decision *more);

/* turns.c: take the actor's next mail to the drain, or into `gathered`. `busy` is the caller's. */
void actor_take_turn(struct engine *engine, struct actor *actor, struct request **gathered);
void actor_release(struct engine *engine, struct actor *actor); /* gives the turn back */

/* mailbox.c; mail_finish(): it was decided, or refused. */
void mail_finish(struct engine *engine, struct mail *mail, pawl_status status);
void mail_group_leave(struct engine *engine, struct mail_group *group); /* one less is left */
pawl_status actor_step(struct actor *actor, const struct event *event, struct scope *scope,
                       struct decision *out);
void actor_restamp(struct actor *actor, const struct decision *decision); /* after its commit */
/* Is a signal that was kept there for something that waits? Also of code. */
bool actor_has_kept(const struct engine *engine, const struct actor *actor);
pawl_status actor_decide(struct engine *engine, struct actor *actor, const struct event *event,
                         struct scope *scope, struct decision *out, struct job **jobs);
void actor_compact(struct actor *actor); /* what was folded away goes, now and then */
/* Sends an event and waits for its answer. `fire`, `key` and `out` may be NULL. */
pawl_status engine_send(struct engine *engine, struct scope *scope, uint64_t instance,
                        const struct event *event, const struct fire_args *fire, const uint8_t *key,
                        struct fired *out);
/* The same for a signal; *is_kept: nothing takes it yet. */
pawl_status mail_signal(struct engine *engine, struct scope *scope, uint64_t instance,
                        const struct event *event, const uint8_t *key, bool *is_kept);
struct mail *mail_new(struct engine *engine);
void mail_free(struct engine *engine, struct mail *mail);
/* Those that rode along may have filled the scope: what is in it of the mail itself is moved. */
void mail_renew_scope(struct engine *engine, struct mail *mail);
void mail_wake(struct engine *engine, uint64_t instance); /* EVENT_WAKE */
pawl_status mail_wake_all(struct engine *engine, struct scope *scope, const uint64_t *numbers,
                          uint32_t count); /* not held */
void mail_fini(struct engine *engine);                                         /* the spare ones */
/* One with this event; NULL: no memory. */
struct mail *mail_to(struct engine *engine, uint64_t instance, const struct event *event);
/* Sends it to its instance. False: no memory; it is freed. NULL is allowed. */
bool mail_send(struct engine *engine, struct mail *mail);
bool actors_have_work(const struct engine *engine); /* now, or to try again later */
void engine_pass_news(struct engine *engine); /* of children that have ended */
bool actors_take_turn(struct engine *engine); /* of one that has mail; false: none */
bool actors_pass_on(struct engine *engine);   /* an end to a parent, or what met a failing store */
void mail_drop_all(struct engine *engine);    /* at close: their causes are still in the store */
int64_t mail_retry_ms(const struct engine *engine);
void mail_deliver(struct engine *engine, struct actor *actor, struct mail *mail);
/* Those that are not done, before any of them is decided, and to the drain together. */
void mail_deliver_all(struct engine *engine, struct mail *const *mails, uint32_t count);
/* The same with mails of pawl's own, for which the test clock waits. */
void mail_send_all(struct engine *engine, struct mail *const *mails, uint32_t count);

/* pause.c */
pawl_status pause_look(struct engine *engine, struct scope *scope, uint64_t instance, bool *out);
bool pause_bars(enum event_kind kind);
/* Pauses an instance whose code ends its process, or that is at a bound. The scope's error becomes
 * the reason; if the pause fails, the scope holds that error instead. */
pawl_status pause_poisoned(struct engine *engine, struct scope *scope, const struct actor *actor);
/* With room reserved for one record: pauses the instance at its bound, with the
 * scope's error as the reason. Returns PAUSED with the same message. */
pawl_status pause_at_bound(struct engine *engine, struct scope *scope, struct head *head,
                           int64_t at_ms);
/* Likewise: pauses it behind the entry of an event whose turn is owed. */
pawl_status pause_with_entry(struct engine *engine, struct scope *scope, struct head *head,
                             const struct decision *decision, int64_t at_ms);
/* After the commit: it is logged, if the decision paused its instance. */
void pause_told(struct engine *engine, const struct decision *decision);
pawl_status pause_refusal(struct scope *scope);

/* deaths.c: turns and calls that the process did not survive. deaths_begin() is for any event:
 * where it takes a turn of code here, that is noted until deaths_end(); one that has died too often
 * gets its `poison`. deaths_ask() is for a call that is to be made here: unless it is DEATHS_FEW it
 * is not started. */
enum death_verdict { DEATHS_FEW, DEATHS_WAIT, DEATHS_MANY };
bool deaths_open(struct engine *engine);
void deaths_close(struct engine *engine);
pawl_status deaths_begin(struct engine *engine, const struct actor *actor, struct event *event,
                         struct scope *scope, uint32_t *mark);
void deaths_end(struct engine *engine, uint32_t *mark); /* 0: none */
enum death_verdict deaths_ask(struct engine *engine, const struct actor *actor, struct job *job);
pawl_status deaths_refuse(struct engine *engine, const struct actor *actor,
                          const struct flow_call *call, enum death_verdict verdict,
                          struct scope *scope);
void deaths_begin_call(struct engine *engine, struct job *job, uint32_t *mark);
void deaths_leave(struct engine *engine, const struct job *job);
void deaths_forgive(struct engine *engine); /* types that are held are tried again */

/* wakes.c: kept signals that a death left with instances that await them. */
void wakes_look(struct engine *engine);
void wakes_look_again(struct engine *engine);
bool wakes_are_due(const struct engine *engine);
void wakes_run(struct engine *engine); /* a page */

/* untaken.c */
void untaken_note(struct engine *engine, const struct mail *mail, pawl_status status);
void untaken_forget(struct engine *engine, uint64_t instance);
bool untaken_of(struct engine *engine, uint64_t instance, struct refusal *out);
void untaken_fini(struct engine *engine);

/* refused_signals.c: both take the lock */
void refused_signals_note(struct engine *engine, str id, str name, const char *words);
void refused_signals_drop(struct engine *engine, str id, str name);
bool refused_signals_find(struct engine *engine, uint64_t instance, str name,
                          struct refused_signal *out); /* the last one */
void refused_signals_fini(struct engine *engine);

/* redrives.c */
pawl_status redrive_note(struct engine *engine, struct scope *scope, const struct head *head,
                         const struct draft *draft);
pawl_status redrive_check(struct engine *engine, struct scope *scope,
                          const struct create_args *args);
/* Before the drain: a step of a flow that is run again had the child `id`, and wants one now. It
 * gets what `args` learns here, or the result of that child, which has completed; if neither, a new
 * child. CONFLICT: the child is under way; as engine_redrive_given(). */
struct child_wanted {
    const struct definition_row *row;
    const struct definition *definition;
};
pawl_status redrive_child(struct engine *engine, struct scope *scope, str id,
                          const struct child_wanted *wanted, struct create_args *args, str *result);

/* amend.c: amend_note(): an entry that amends is the head's last one. */
pawl_status amend_note(struct engine *engine, struct scope *scope, const struct head *head);
/* What an amended flow goes on by: the definition with its plan in force, and its name. Left as
 * they are where nothing was amended. */
pawl_status amended_definition(struct engine *engine, struct scope *scope, const struct head *head,
                               const struct definition **definition);
/* The same, with the amends of the batch applied. */
pawl_status amended_in_drain(struct engine *engine, struct scope *scope, const struct head *head,
                             const struct definition **definition);
/* The version of the registration that a code instance goes by since its last amend; 0: since its
 * creation. */
pawl_status amended_code_version(struct engine *engine, struct scope *scope,
                                 const struct head *head, uint32_t *out);
pawl_status amended_name(struct engine *engine, struct scope *scope, const struct head *head,
                         str *name, uint32_t *version, bool *is_amended);
/* What the callers that amended it may create; data NULL: anything. */
pawl_status amended_rights(struct engine *engine, struct scope *scope, const struct head *head,
                           str *out);

#endif
