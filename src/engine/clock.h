/* clock.h - the store's clock, and what falls due by it: timers, deadlines of machines, alarms.
 * Private to src/engine.
 *
 * Rules:
 *  (1) Times of records come from the store's clock, which never goes back; times that a caller
 *      asks for by the wall clock are compared with that one.
 *  (2) `now` is read once for all that is fired together: a timer that arms itself again is left to
 *      the next call.
 *  (3) Everything here is under the engine's lock, but for the readings, which have their own.
 *  (4) A timer or alarm stays in the store until the entry that it causes is committed. */
#ifndef PAWL_ENGINE_CLOCK_H
#define PAWL_ENGINE_CLOCK_H

#include "base/guard.h"
#include "engine/engine.h"

struct batch;
struct head;
struct request;

struct moment {
    int64_t at_ms, wall_ms; /* by the store's clock; by the wall clock */
};

struct clock {
    /* The store's clock (clock.c). */
    struct guard lock; /* of the next six; no other lock is taken while it is held */
    int64_t at_ms;        /* the last reading */
    int64_t offset_ms;    /* the store's clock minus the wall clock */
    int64_t base_ms;      /* the store's clock minus the boot clock */
    uint64_t seen_pos;    /* position of the last clock record known here */
    uint64_t tip_pos;     /* clock_pos of the tip, for threads that do not hold the engine's lock */
    int64_t tip_offset_ms; /* likewise clock_offset_ms */

    int64_t retry_ms;             /* by the tick: when to try again to record a jump */
    _Atomic int64_t test_now_ms;  /* set under the lock; the drain reads it without */

    /* What falls due (timers.c, alarms.c). */
    int64_t next_due_ms;           /* as far as is known, by the store's clock; INT64_MAX: none */
    int64_t next_wall_ms;          /* likewise by the wall clock */
    bool timers_busy;              /* a thread fires what is due */
    _Atomic uint32_t stuck_timers; /* due, but not to be fired now */
    int64_t stuck_until_ms;
    int64_t restored_until_ms;     /* what falls due until then was looked for (restore_ahead.c) */
    uint32_t firing_count;         /* alarms over many instances that fire here */
    int64_t firing_since_ms;       /* since when the first of them has; unset while none fires */

    /* What definitions say of instances that have ended (retention.c). An owner's; `policies` are
     * the timers' thread's. */
    struct guard keeping;    /* who erases or archives has it; taken before the engine's lock */
    int64_t retention_ms;    /* when to look next, by the store's clock; INT64_MAX: never */
    bool retention_is_stale; /* definitions are to be read again */
    struct scope retention_scope; /* of: */
    struct node *retention_given; /* by settings: {NAME: {after_end, then}}; NULL: none */
    struct retention_policy *policies;
    uint32_t policy_count, policy_capacity;
    _Atomic uint64_t retention_archived;               /* instances, so far */
    _Atomic uint64_t retention_erased, retention_held; /* so far; found on hold by the last look */

    /* For a host with its own loop (tick.c). */
    struct env_wakeup wakeup;               /* fd -1: the host has not asked for it */
    int64_t wakeup_boot_ms, wakeup_wall_ms; /* what it is set to */
    bool wakeup_is_stale;                   /* the host has acted on it: it has to be set again */
};

/* alarms.c */
pawl_status alarms_fire_due(struct engine *engine, struct scope *scope, const struct moment *now,
                            uint32_t *held); /* are due, and wait until their machine is resumed */
pawl_status alarms_next(struct engine *engine, struct scope *scope, bool wall,
                        int64_t *out); /* by one of the clocks */
/* alarm_permits(), before an alarm's request: is the alarm in force? alarm_fired(),
 * after it was accepted: ends the alarm. */
bool alarm_permits(struct engine *engine, struct request *request);
void alarm_fired(struct engine *engine, struct request *request, int64_t at_ms);
bool alarm_counts_key(struct engine *engine, const struct scope *scope,
                      int64_t used_at_ms); /* even if older than 7 days */

/* starts.c: what this transition starts, as an operation for later, and room for it in the batch,
 * whose heads may be elsewhere then. The entry is not there yet. */
pawl_status start_prepare(struct engine *engine, struct scope *scope, const struct head *head,
                          const struct definition *definition, const struct transition *transition,
                          const struct event *event, str *out);
/* writer/ends.c: what has ended, as the machine that started it learns of it. */
struct ended {
    str id; /* data NULL: it could not even be created */
    enum instance_status status;
    str payload, reason; /* its result or error, JSON; data NULL: none */
};
/* As an operation for later; `on_end` is that of a rights record. data NULL: no action is declared
 * for such an end. */
pawl_status on_end_fire(struct scope *scope, const struct heap *heap, str on_end,
                        const struct ended *ended, str *out);
/* In the drain: what has just ended. The scope has the texts until the commit is over. */
void on_end_tell(struct engine *engine, struct scope *scope, int64_t at_ms);
/* sends.c: what code orders with its turn. Heads may be elsewhere afterwards. */
bool sends_any(const struct decision *decision);
struct sender_of {
    const char *id;
    bool is_test;
};
pawl_status sends_record(struct engine *engine, struct scope *scope, const struct sender_of *sender,
                         const struct decision *decision, str rights, int64_t at_ms);
/* standing.c */
pawl_status alarm_record_start(struct engine *engine, struct scope *scope, str operation,
                               int64_t at_ms);
pawl_status alarm_record_end(struct engine *engine, struct scope *scope, str id, int64_t at_ms);
/* Records that an alarm is firing, unless that is recorded already; *since_ms: from when on. */
pawl_status alarm_record_firing(struct engine *engine, struct scope *scope, str id,
                                int64_t *since_ms);

/* deadlines.c */
void deadlines_arm(struct engine *engine, const struct head *head,
                   const struct definition *definition,
                   int64_t at_ms); /* those of its state; room for all is reserved */
/* Fire the timers of machines among `due` and take them out of the list; those that could not be
 * fired and are still armed are added to *refused. */
pawl_status deadlines_fire(struct engine *engine, struct scope *scope, struct live_timer *due,
                           uint32_t *count, uint32_t *refused);

/* clock.c: clock_read() is for the drain, and for a thread that holds the lock. */
struct moment clock_read(struct engine *engine);
struct moment clock_now(struct engine *engine); /* takes the lock */
int64_t clock_wall(struct engine *engine);      /* the wall clock, or the test clock; any thread */
int64_t clock_at(struct engine *engine); /* what a record made now is stamped with */
/* May something be fired at this time? Called by any thread. */
pawl_status clock_check_fired(struct engine *engine, struct scope *scope,
                              const struct fire_args *args, uint64_t instance,
                              struct moment now);
/* The fired_at of an entry, in the present commit, for which no caller gave a time. */
pawl_status clock_fired_at(struct engine *engine, struct scope *scope, uint64_t instance,
                           int64_t *out);
void clock_start(struct engine *engine); /* at opening, when the tip is known */
void clock_realign(struct engine *engine, struct scope *scope); /* then, by an owner */
void clock_copy_tip(struct engine *engine);
void clock_follow_tip(struct engine *engine);                   /* drain: others have written */
bool clock_has_news(struct engine *engine);
pawl_status clock_note(struct engine *engine, const struct moment *now); /* drain */
pawl_status clock_keep(struct engine *engine, struct scope *scope);
pawl_status clock_keep_test(struct engine *engine, struct scope *scope);
void clock_shifted(struct engine *engine);
void clock_committed(struct engine *engine);

#define ASSERT_KEEPING(engine) ASSERT_HOLDS(&(engine)->clock.keeping)

/* retention.c: erases a slice of what is due, by an owner. */
void retention_run(struct engine *engine, const struct moment *now);
pawl_status retention_init(struct engine *engine, struct scope *scope); /* reads settings */
void retention_fini(struct engine *engine);
void retention_changed(struct engine *engine, str text); /* this definition was put */

/* timers.c */
pawl_status timers_fire_due(struct engine *engine, struct scope *scope,
                            uint32_t *budget); /* NULL: no bound; else what is left of it */
pawl_status timers_look_ahead(struct engine *engine, struct scope *scope); /* as the store knows */
void timers_look_again(struct engine *engine);  /* what could not be fired may be fired now */
int64_t timers_next_due(struct engine *engine); /* timers and leases */
bool timers_are_due(struct engine *engine);
void timers_note(struct engine *engine, const struct batch *batch);
bool timers_work(struct engine *engine,
                 struct scope *scope);          /* one unit; what it frees is cleared */
int64_t timers_pause_ms(struct engine *engine); /* how long there is none, as far as is known */
/* restore_ahead.c: false: there is nothing to restore now. Else the lock was released meanwhile. */
bool timers_restore_ahead(struct engine *engine, struct scope *scope);

/* tick.c */
void engine_set_wakeup(struct engine *engine); /* something may be due earlier, or no more */

#endif
