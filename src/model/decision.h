/* decision.h - the one port of machine, flow and code: (definition, state, event) in,
 * entries out. Behaviors are pure: the same arguments give the same decision. They never
 * see the store, the clock, the network or a random source; time comes in the event.
 *
 *   decide:  what happens, as drafts of entries; changes nothing.
 *   apply:   fold one entry into the memory of the instance; the only way it changes.
 *
 * The engine may fold the drafts of one decision at once and decide the next event on top
 * (completing a step and starting the next is one commit); if the commit fails it forgets
 * the memory and loads it again: last snapshot, then apply() for every entry after it. */
#ifndef PAWL_MODEL_DECISION_H
#define PAWL_MODEL_DECISION_H

#include "model/definition.h"
#include "model/effect.h"

enum event_kind {
    EVENT_UNKNOWN,
    EVENT_START, /* payload: the input */
    EVENT_FIRE,  /* name: the action */
    EVENT_CANCEL,
    EVENT_TIMER,         /* name, ordinal: the timer that is due */
    EVENT_SIGNAL,        /* name, payload */
    EVENT_STEP_START,    /* ordinal: a ready attempt is being taken to its tool */
    EVENT_STEP_DONE,     /* ordinal, payload: the result */
    EVENT_STEP_FAILED,   /* ordinal, payload: the error; no_retry: its attempts end */
    EVENT_STEP_LOST,     /* ordinal: it ran in a process that died */
    EVENT_STEP_RETURNED, /* ordinal: its worker could not be sent it, or a pause ended it */
    EVENT_STEP_SPOILED,  /* ordinal, payload: what it waited for came and cannot be used */
    EVENT_STEP_TIMEOUT,  /* ordinal: its worker did not answer in time */
    EVENT_APPROVE,       /* ordinal, actor, payload: a gate opens */
    EVENT_REJECT,        /* ordinal, actor, reason: it stays shut for good */
    EVENT_WAKE,          /* a signal that was kept is there for what has begun to wait */
    EVENT_CHILD,         /* ordinal: of the step that waits; outcome, payload: its result or error;
                          name: its id, if it was created */
    EVENT_AMEND,         /* payload: which definition; given: its plan */
};
#define EVENT_KIND_COUNT (EVENT_AMEND + 1)

struct event {
    enum event_kind kind;
    int64_t at_ms;         /* by the store's clock */
    int64_t due_at_ms;     /* TIMER: the time it was armed for, before any shift; 0: unknown */
    str name, payload;     /* payload: JSON text; data NULL: none */
    str actor, reason;     /* data NULL: not supplied */
    bool may_have_event;   /* START: by a machine's transition, a parent, or again: the input may
                              have the member `event`, which a caller does not add */
    str given;             /* AMEND: the plan; START: what another instance leaves; or data NULL */
    uint64_t expected_seq; /* AMEND: refused unless this is the last entry; 0: whatever */
    uint32_t ordinal;
    str failure;      /* JSON; what this event did could not be committed: fail with it */
    bool is_deferred; /* an answer whose turn cannot be taken here: recorded, the turn owed */
    str poison;       /* why its turn is not to be taken; data NULL: it may be */
    bool guard_satisfied, no_retry;
    bool is_leased;      /* STEP_*: by the lease's holder, or the engine itself */
    bool is_worker_gone; /* STEP_TIMEOUT: the lease of a worker elsewhere ran out */
    bool is_recorded;    /* read from its entry (event_of), which an older program may have made */
    bool by_engine;      /* FIRE: what it started has ended; it may take what is `by: engine` */
    bool is_forced;      /* TIMER: by hand, though it may not be due yet */
    bool is_held;        /* the instance is paused. STEP_*: it is recorded, and no turn is taken;
                            SIGNAL: it is kept where the definition says so, else PAUSED */
    str filter;          /* SIGNAL: only for a wait with this value, canonical; data NULL: any */
    str filter_written;  /* as its sender wrote it, where that differs: older waits have that */
    enum terminal_kind outcome; /* CHILD: of the state it ended in */
    const char *late; /* what is wrong with a value, checked after all else; NULL: nothing */
};

/* Is the signal for a wait with this value? */
bool event_is_for(const struct event *event, str value);

/* A signal that came before anything awaited it. */
struct kept_signal {
    str name, payload;
};

/* May one more be kept beside these? OVERLOADED. */
pawl_status kept_check_room(struct scope *scope, const struct kept_signal *signals, uint32_t count,
                            str payload);

/* An entry to be: the engine numbers, stamps and chains it. */
struct draft {
    uint32_t transition;             /* index */
    uint32_t step, ordinal, attempt; /* flows: plan index + 1, ... ; 0: none */
    str payload, reason, actor;      /* data NULL: absent */
    bool guard;
    str keep; /* no entry but a kept signal of this name (CONTROL_KEEP_SIGNAL); else data NULL */
    struct effect_list effects;
};

struct decision {
    struct draft *drafts; /* in the scope's arena */
    uint32_t count;
    str hold; /* why the commit of its last entry also pauses the instance; data NULL: no */
    str hold_by; /* the actor of that pause; data NULL: its event cannot be decided */
};

/* An entry as apply() sees it: a draft just made, or a record read back. */
struct entry_view {
    uint32_t seq; /* its number; 0: not known */
    uint32_t transition, step, ordinal, attempt;
    str payload, reason, actor;
    const struct effect_list *effects;
    int64_t at_ms;
};

/* The entry that a draft becomes. The caller knows its number and time. */
struct entry_view entry_of_draft(const struct draft *draft);
/* The entry of a record, with effects that the caller reads. Its texts are values of the store: the
 * caller reads those that it needs. */
struct record;
struct entry_view entry_of_record(const struct record *record, const struct effect_list *effects);

/* What decide() looks at: where the instance stands and what it remembers. */
struct standing {
    uint32_t state;
    uint64_t seq;      /* of its last entry */
    const void *memory; /* the behavior's; NULL for machines */
    int64_t entered_at_ms; /* TIMER of a machine: when it came into its state */
};

/* What an instance is, as its creation fixed it. data NULL: absent. */
struct identity {
    str id, definition, subject, correlation, creator;
    str labels; /* JSON */
    uint32_t version;
};

/* The payloads of an instance's own entries, read again: a memory need not keep what is large. It
 * lasts as long as the memory. */
struct payload_source {
    /* Of entry `seq`; data NULL: it has none, or it was erased. NO_MEMORY, STORAGE_FAILURE. */
    pawl_status (*read)(void *context, struct scope *scope, uint32_t seq, str *out);
    void *context;
};

struct behavior {
    enum definition_kind kind;

    /* Load definition->plan from plan_text into the scope's arena. May be NULL. */
    pawl_status (*prepare)(struct definition *definition, struct scope *scope);

    /* Decide one event. Rejections by status and words; nothing changes. */
    pawl_status (*decide)(const struct definition *definition, const struct standing *standing,
                          const struct event *event, struct scope *scope, struct decision *out);

    /* The rest is NULL for machines. Memory lives in the arena it was made in. */
    void *(*memory_new)(const struct definition *definition, str input, struct arena *arena);
    /* Tells a memory its instance's identity, which is not part of a snapshot. False: no memory
     * left. NULL where the memory does not use it. */
    bool (*introduce)(void *memory, const struct identity *identity, struct arena *arena);
    /* From now on the memory may leave payloads in the history. NULL: this kind never does. */
    void (*attach)(void *memory, const struct payload_source *payloads);
    pawl_status (*apply)(const struct definition *definition, void *memory,
                         const struct entry_view *entry, struct scope *scope, struct arena *arena);
    /* The entry was recorded later than it was decided, and its timers count from then: their due
     * times as they stand in the log. NULL where memory holds none. */
    void (*restamp)(void *memory, const struct effect_list *effects);
    /* A signal that no step awaits yet is kept; an entry with EFFECT_TAKE spends the oldest of its
     * name. NULL where none are kept. NO_MEMORY. */
    pawl_status (*keep)(void *memory, str name, str payload, struct scope *scope,
                        struct arena *arena);
    str (*step_name)(const void *memory, uint32_t plan_index); /* by the plan in force; of flows */
    uint32_t (*live_steps)(const void *memory); /* how many; NULL: never more than one */
    bool (*wakes)(const void *memory); /* would EVENT_WAKE take one? NULL: it needs no such event */
    bool (*has_kept)(const void *memory); /* would it take one, in its own commit? NULL: as above */
    void (*memory_print)(const struct definition *definition, const void *memory, struct buf *out);
    pawl_status (*memory_load)(const struct definition *definition, str text, str input,
                               struct scope *scope, struct arena *arena, void **out);

    /* For a check of histories: the n-th event (from 0) that may have made `entry` as the first
     * of its decision, or false if there are no more. An entry does not tell all of its event:
     * each one that it leaves open is given, and the check takes the one that decide() answers
     * with this entry. The input of START is the caller's. NULL: handlers are not run again. */
    bool (*event_of)(const struct definition *definition, const void *memory,
                     const struct entry_view *entry, uint32_t n, struct event *out);
};

/* The answer to a caller whose event a paused instance does not take. */
#define PAUSED_WORDS "the instance is paused; resume it first"

/* Add a zeroed draft for `transition`; NULL if there is no memory. */
struct draft *decision_add(struct scope *scope, struct decision *decision, uint32_t transition);

extern const struct behavior machine_behavior, flow_behavior, code_behavior;

#endif
