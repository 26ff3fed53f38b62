/* engine.h - mailbox -> decide -> one drain -> commit -> act.
 *
 * The engine is the only writer. A call becomes an operation in a queue; the thread that drains
 * (the first caller as leader, or the drain thread of a server) decides what can be decided in
 * place, puts all that is accepted into one commit, and answers after it is durable.
 *
 * Promises (tests quote the numbers):
 *  (1) A call that returns PAWL_OK is durable; one that returns a rejection changed nothing.
 *      On a host's connection, inside a transaction: durable with that transaction, and (6) holds
 *      for the host's connection, where what it has written can be seen.
 *  (2) A decision is committed only against the seq it was made for; a stale one is made again.
 *  (3) Entries of an instance are numbered 1..N without gaps, also across restarts.
 *  (4) A timer fires once, never before its due time by the store's clock, also after a restart;
 *      it is counted from the time of the entry that armed it.
 *  (5) The store's clock never goes back.
 *  (6) Every read sees what was acknowledged before it, and never what is not yet durable.
 *  (7) After OUTCOME_UNKNOWN the store is reopened; what is there then is what happened.
 *  (8) A step's result is recorded once; what ran in a process that died has failed with "lost".
 *  (9) A call with an idempotency key is accepted once in 7 days; repeated, it gets the same
 *      answer.
 *
 * Texts in results live in the caller's scope, names of states and actions as long as the engine.
 */
#ifndef PAWL_ENGINE_ENGINE_H
#define PAWL_ENGINE_ENGINE_H

#include "base/figures.h"
#include "base/ids.h"
#include "base/limits.h"
#include "base/scope.h"
#include "evidence/evidence.h"
#include "flow/flow.h"
#include "model/decision.h"
#include "model/record.h"
#include "store/store.h"

struct engine;
struct standing_fact;
struct toolbox;

/* The state of an engine's clock when it was closed, for an engine of the same process that opens
 * the store again. The boot clock measures the time in between better than the wall clock does. */
struct clock_mark {
    bool is_set;
    int64_t base_ms;    /* the store's clock minus the boot clock */
    uint64_t clock_pos; /* position of the store's last clock record then */
};

/* What the engines of one store's shards share. */
struct engine_group {
    _Atomic uint64_t highest; /* number of an instance of any of them: the next ones lie above */
};

struct engine_options {
    struct env *env; /* the engine's from now on */
    const struct heap *heap;
    bool member;      /* of several nodes: it begins without owning */
    _Atomic bool own; /* changed by engine_own() and engine_disown() alone */
    const char *address, *secret;
    uint32_t workers; /* threads; 0: the caller drives with engine_tick() */
    bool test_clock;
    bool allow_exec;
    const char *tools;          /* rules for tools, as in pawl_options; NULL: none */
    const char *retention;      /* likewise; read while it opens */
    uint32_t max_entries, max_live_steps; /* of an instance, as in pawl_options; 0: the default */
    bool must_exist;            /* do not create the store */
    struct store_shard shard;   /* a new store is made as this shard; shards 0: alone */
    /* Of a store of several shards: the home shard's engine, which outlives this one. It decides
     * the versions of definitions; one that is used here is copied from there. */
    struct engine *home;        /* NULL: this is the home shard's, or it is alone */
    struct engine_group *group; /* outlives them all; NULL: it is alone */
    struct clock_mark clock;    /* of the engine that had the store open before; may be unset */
    struct sqlite3 *connection; /* of the host's: attach to it instead of opening; without `own`,
                                   by one thread at a time */
    void (*log)(void *context, pawl_log_level level, const char *event, const char *text);
    void *log_context;
    /* Runs the operation of an alarm; NULL: alarms are not fired here. An operation that is one
     * decision runs with the alarm's id in the scope's `alarm`; one over many instances calls
     * engine_alarm_begin() first. */
    pawl_status (*alarm)(void *context, struct engine *engine, struct scope *scope,
                         struct standing_fact *alarm);
    void *alarm_context;
    /* Moves these instances into the archive file, those that may leave, and counts them; NULL:
     * there is none. */
    pawl_status (*archive)(void *context, struct engine *engine, struct scope *scope,
                           const uint64_t *numbers, uint32_t count, str actor, str reason,
                           uint64_t *moved);
    bool alarms_wait; /* until engine_alarms_go(): code that they need is still to be registered */
    const struct panic_hook *panic; /* for threads of the engine's own; lives as long as it does */
};

pawl_status engine_open(const char *url, const struct engine_options *options, struct scope *scope,
                        struct engine **out);
/* A store that several nodes serve (the engine was opened without `own`): `take` makes its
 * handle that of an owner, `give` makes it another's. Meanwhile no call writes or claims here;
 * reads go on. When engine_own() fails behind `take`, the store is owned: engine_disown() gives
 * it back. */
typedef pawl_status (*engine_owning)(void *context, struct store *store, struct scope *scope);
pawl_status engine_own(struct engine *engine, struct scope *scope, engine_owning take,
                       void *context);
pawl_status engine_disown(struct engine *engine, struct scope *scope, engine_owning give,
                          void *context);
bool engine_owns(const struct engine *engine);
bool engine_is_taken(const struct engine *engine); /* a commit said that another owns it now */
void engine_stop(struct engine *engine); /* ends its threads; it is to be closed then */
void engine_close(struct engine *engine);
void engine_log(struct engine *engine, pawl_log_level level, const char *event, const char *text);

int64_t engine_now_ms(struct engine *engine);  /* the store's clock */
int64_t engine_wall_ms(struct engine *engine); /* the wall clock, or the test clock */
/* How far the store's clock is ahead of the wall clock after a jump; 0: there was none. */
int64_t engine_clock_offset_ms(struct engine *engine);
/* The wall clock is this far ahead of the machine's. */
void engine_correct_clock(struct engine *engine, int64_t by_ms);
struct clock_mark engine_clock_mark(struct engine *engine); /* before it is closed */
/* Sets the store's clock, and every due time by it, to the wall clock. Needs ownership. */
pawl_status engine_accept_clock(struct engine *engine, struct scope *scope, int64_t *ahead_ms);
uint32_t engine_shards(struct engine *engine); /* that the store has; 1: it is alone */
struct toolbox *engine_toolbox(struct engine *engine);
void engine_tools_changed(struct engine *engine); /* steps that no tool served may be served now */
const struct heap *engine_heap(struct engine *engine);
struct store *engine_store(struct engine *engine); /* for reading: verify, sql */
void engine_suspect(struct engine *engine); /* after a storage failure that was no commit's */
bool engine_has_test_clock(const struct engine *engine);

struct engine_figures {
    const struct histogram *commit; /* the engine's */
    uint64_t failed;                /* commits */
    uint64_t position, flushed, wal_bytes;
    uint64_t retention_erased, retention_held; /* so far; found on hold by the last look */
    uint32_t conditions; /* bits of health.h */
    uint32_t queued, claims; /* decisions that wait for a commit; claims, for a step */
};
void engine_figures(struct engine *engine, struct engine_figures *out);
struct env *engine_env(struct engine *engine); /* the clock and the dice */

/* ---- Definitions ---- */

struct defined {
    str name;
    uint32_t version;
    enum definition_kind kind;
    uint8_t sha256[SHA_SIZE];
    bool is_new;
    struct findings *warnings;
};

/* Put a text. `name`: where it is put; data NULL: its own `name:`. `rights`: what its instances may
 * create (model/rights.h); data NULL: anything. `key`: as in create_args. INVALID_DEFINITION ... */
pawl_status engine_define(struct engine *engine, struct scope *scope, str name, str text,
                          str rights, const uint8_t *key, struct defined *out);

/* What instances of this version may create; data NULL: anything. */
pawl_status engine_definition_rights(struct engine *engine, struct scope *scope, str name,
                                     uint32_t version, str *out);

/* Only check: fills findings with errors and warnings; OK also if there are errors. */
struct findings;
pawl_status engine_check(struct engine *engine, struct scope *scope, str name, str text,
                         struct findings *out);
/* Would the instances of a definition that have not ended find their place in another text? For
 * each state that some of them are in: is it there, and can be left by the same actions? Of flows,
 * the names of live steps are compared as well, and what those wait for that are selects. */
#define COMPARE_VERDICTS(X)                                                                        \
    X(SAFE, "safe")                                                                                \
    X(STATE_GONE, "state is gone")                                                                 \
    X(STATE_ENDED, "state is terminal now")                                                        \
    X(EXITS_MISSING, "exits missing")                                                              \
    X(ARMS_MISSING, "arms missing")                                                                \
    X(STEP_GONE, "step is gone")                                                                   \
    X(OTHER_KIND, "kind is different")
enum compare_verdict {
#define X(name, text) COMPARE_##name,
    COMPARE_VERDICTS(X)
#undef X
};
const char *compare_verdict_name(enum compare_verdict verdict);

struct compare_row {
    str name; /* of the state or step */
    uint64_t instances;
    enum compare_verdict verdict;
    str *missing; /* actions of a state, arms of a select */
    uint32_t missing_count, missing_capacity;
};
struct comparison {
    str name;
    uint32_t *versions;                 /* those that have such instances, ascending */
    struct compare_row *states, *steps; /* by name */
    uint32_t version_count, state_count, step_count;
    bool is_safe;
};
/* `text` compiles (engine_check()). NOT_KNOWN: no such definition; version 0: every one. */
pawl_status engine_compare(struct engine *engine, struct scope *scope, str name, uint32_t version,
                           str text, struct comparison *out);
pawl_status engine_code_register(struct engine *engine, const pawl_code_type *type,
                                 struct scope *scope);
/* The same, but its definition is recorded with its first instance. */
pawl_status engine_code_offer(struct engine *engine, const pawl_code_type *type,
                              struct scope *scope);

/* A handler that may be elsewhere takes the turns of the type it names; copied. A binding that
 * knows only the names of its type has the source; of others it is printed here. */
struct code_binding;
pawl_status engine_code_bind(struct engine *engine, const struct code_binding *binding,
                             struct scope *scope);
/* What takes the turns of a binding is there again: events that waited for it are looked at. */
void engine_code_came(struct engine *engine);
/* Alarms that waited for the program to register its code fire from now on. */
void engine_alarms_go(struct engine *engine);
bool engine_has_code(struct engine *engine, str name); /* a handler was registered here */

pawl_status engine_reduce_register(struct engine *engine, struct scope *scope, str name,
                                   pawl_reduce_fn run, void *context);

/* ---- Steps of flows and calls of code (work.c) ---- */

pawl_status work_call(const struct definition *definition, const void *memory, uint32_t ordinal,
                      struct scope *scope, struct flow_call *out); /* LEASE_LOST: it is over */
/* Its idempotency key, which all attempts of a step or call share. */
#define WORK_KEY_SIZE (ID_SIZE + LIMIT_CALL_KEY + 2)
void work_key(const struct flow_call *call, const char *id, char out[WORK_KEY_SIZE]);
str work_tool_of(const struct definition *definition, const void *memory, uint32_t ordinal);
str work_step_name(const struct definition *definition, uint32_t plan_index);
/* By the plan that the memory goes by, which an amend may have brought. */
str work_step_name_now(const struct definition *definition, const void *memory, uint32_t plan_index);
uint32_t work_step_count(const struct definition *definition);
str work_step_tool(const struct definition *definition, uint32_t plan_index); /* NULL: none */
/* What a leaf without a name calls, to be shown beside its path; data NULL: it has a name, or calls
 * nothing. */
str work_unnamed_tool(const struct definition *definition, uint32_t plan_index);
/* What a pending step waits for: WHY_APPROVAL, "step", "child"; NULL: timers and signals say it. */
#define WHY_APPROVAL "approval"
const char *work_why(const struct definition *definition, uint32_t plan_index);
const struct behavior *behavior_of(enum definition_kind kind);

/* ---- Instances ---- */

/* Where the last start of an instance's successor is; pos 0: it has none. */
struct redrive_seen {
    str id;
    uint64_t pos;
};

struct create_args {
    str definition, declaration; /* exactly one */
    str input, metadata, labels; /* JSON */
    str actor, subject, correlation;
    str rights; /* what the starter may create (model/rights.h); data NULL: anything */
    str on_end; /* the machine that started it, and its actions (model/rights.h); data NULL: none */
    str given; /* flows: what an instance leaves that is run again; data NULL: nothing */
    const struct redrive_seen *seen; /* ... refused (CONFLICT) unless these are still the last */
    uint32_t seen_count;
    bool has_instantiated_at;
    int64_t instantiated_at_ms;
    bool test;
    bool may_have_event; /* as in struct event */
    bool is_singleton;   /* one about this subject that has not ended is returned instead */
    const uint8_t *key; /* KEY_SIZE bytes: an accepted call with it is answered again; NULL: none */
    pawl_status late_status; /* a defect of a value, found by the caller: reported after those of */
    const char *late_words;  /* the declaration or definition (D14) */
};
struct created {
    char id[ID_SIZE + 1];
    str state;
    const struct definition *definition; /* what it runs; NULL: an inline machine */
    bool is_existing;                    /* it was there */
};
pawl_status engine_create(struct engine *engine, struct scope *scope,
                          const struct create_args *args, struct created *out);
/* Many that share commits. What is wrong with one is in its place; the others are created. Other
 * than OK: none is. */
struct batch_create {
    struct create_args args;
    pawl_status status;
    const char *words; /* of a rejection, in the scope */
    struct created created;
};
pawl_status engine_create_batch(struct engine *engine, struct scope *scope,
                                struct batch_create *creates, size_t count);
/* A creation without a waiting caller. `done` is called once it is durable or refused, on the
 * draining thread and without a lock; the call and its scope are the engine's until then. Where the
 * start sets *needs_thread nothing has happened, and `done` is not called. Either way
 * engine_create_end() says how it ended; where the call's needs_thread is set, by a thread that may
 * wait. */
struct create_call {
    struct scope *scope;
    struct create_args args;
    struct created created;
    bool needs_thread;
    void (*done)(struct create_call *call);
    pawl_status status; /* the engine's, as is the next */
    struct creating *creating;
};
/* Other than OK: it is refused, and `done` is not called. */
pawl_status engine_create_start(struct engine *engine, struct create_call *call,
                                bool *needs_thread);
pawl_status engine_create_end(struct engine *engine, struct create_call *call);
/* What the caller that started the instance and those that amended it may create; data NULL:
 * anything. */
pawl_status engine_starter_rights(struct engine *engine, struct scope *scope, str id, str *out);

struct fire_args {
    str id, action;
    str actor, reason, payload;
    bool guard_satisfied;
    bool has_fired_at;
    int64_t fired_at_ms;
    int64_t due_at_ms; /* a timer: the time it was armed for; 0: unknown */
    bool has_expected;
    int64_t expected_sequence; /* one that no entry can have conflicts as well */
    bool by_engine;            /* what the instance started has ended */
    bool is_cancel;            /* not an action by name but the declared way to cancel */
    bool is_timer;             /* a deadline's action, if its time is over ... */
    bool is_forced;            /* ... or a test says so */
    pawl_status late_status;   /* a defect of attribution or time, found by the caller: reported in
                                  its    place of the priority (after conflict), with late_words */
    const char *late_words;
    const uint8_t *key;
};
struct fired {
    str new_state;
    enum terminal_kind terminal;
    uint64_t seq;
    char transition_id[ID_SIZE + 22]; /* as in pawl_fired */
};
pawl_status engine_fire(struct engine *engine, struct scope *scope, const struct fire_args *args,
                        struct fired *out);

struct batch_fire {
    struct fire_args args;
    pawl_status status;
    const char *words; /* of a rejection; NULL: those in the scope */
    struct fired fired;
    bool is_elsewhere; /* the engine's: no machine, so it goes through its mailbox */
    bool is_again;     /* the engine's: its key is being used by another call of this commit */
};
pawl_status engine_fire_batch(struct engine *engine, struct scope *scope, struct batch_fire *fires,
                              size_t count);

/* A fire without a waiting caller. `done` is called once it is durable or rejected, on the draining
 * thread and without a lock: it may not wait for the engine. In an engine without threads it is
 * called before this returns. The call and its scope are the engine's until then. Where
 * fire.is_elsewhere is set nothing has happened yet: it is no machine, and engine_fire() has to be
 * called by a thread that may wait; so it has where fire.is_again is set, for the answer. */
struct fire_call {
    struct scope *scope;
    struct batch_fire fire;
    void (*done)(struct fire_call *call);
};
/* NO_MEMORY: `done` will not be called; else OK. */
pawl_status engine_fire_start(struct engine *engine, struct fire_call *call);

/* Cancel every instance with this correlation id that is there now. Those that have ended or have
 * no way to cancel are refused, and counted; a failing store ends the call, with what was
 * cancelled so far cancelled. */
struct cancel_args {
    str correlation, actor, reason;
};
struct cancelled {
    uint64_t cancelled, refused;
};
pawl_status engine_cancel_many(struct engine *engine, struct scope *scope,
                               const struct cancel_args *args, struct cancelled *out);
/* To every instance that awaits it or keeps it; with a filter, JSON, to those whose wait or
 * subscription has that value. A failure of the store fails the call; what was reached stays so. */
struct broadcast {
    uint64_t delivered, kept;
    uint64_t full; /* they would keep it, and keep LIMIT_KEPT_SIGNALS already */
    uint64_t refused; /* it does not fit them: the log names them */
};
/* filter: JSON without white space; data NULL: for all. */
pawl_status engine_broadcast(struct engine *engine, struct scope *scope, str name, str filter,
                             str payload, str actor, const uint8_t *key, struct broadcast *out);
/* late: as in struct event. *is_kept: nothing takes it yet. */
pawl_status engine_signal(struct engine *engine, struct scope *scope, str id, str name, str payload,
                          str actor, const char *late, const uint8_t *key, bool *is_kept);

/* ---- Flows under way: amend.c ---- */

struct amend_args {
    str instance, definition; /* name, or name@version */
    str actor;
    str entries;  /* JSON object by step name: which entry has a result that the new plan needs
                   * and the old one forgot */
    uint64_t seq; /* they are as of this entry, and it is still the last; 0: whatever */
    str rights;   /* what the caller may create; data NULL: anything */
    const char *late; /* as in struct event */
    const uint8_t *key;
};
struct amended {
    str definition;
    uint32_t version;
    uint64_t sequence_number;
};
/* TERMINAL, INVALID_TRANSITION (no flow), NOT_KNOWN, INVALID_REQUEST (the other is no flow),
 * CONFLICT: names the live step that has no place in it. */
pawl_status engine_amend(struct engine *engine, struct scope *scope, const struct amend_args *args,
                         struct amended *out);
/* A registered definition of this kind by name or name@version, and its row. INVALID_REQUEST: it is
 * of another kind. */
pawl_status engine_find_kind(struct engine *engine, struct scope *scope, str text,
                             enum definition_kind kind, struct definition_row *row,
                             const struct definition **out);

/* ---- Idempotency keys ---- */

/* For calls whose key does not ride in a record of their own. The body that was kept with it, and
 * its payload; NOT_KNOWN, or CONFLICT if it was used for another call. */
pawl_status engine_key_find(struct engine *engine, struct scope *scope, const uint8_t *key,
                            str *body, str *payload);
/* Keep one with what is needed to answer again. */
pawl_status engine_key_keep(struct engine *engine, struct scope *scope, const uint8_t *key,
                            str body, str payload);
/* Between the look-up of such a key and its use no other call may do the same: one with the same
 * key waits in enter(). The turn is the caller's, until it has left. */
struct key_turn {
    const uint8_t *key;
    struct key_turn *next;
};
void engine_key_enter(struct engine *engine, struct key_turn *turn, const uint8_t *key);
void engine_key_leave(struct engine *engine, struct key_turn *turn);

/* ---- Tokens and alarms: what stands from one control record to another ---- */

#define STANDING_ID_SIZE 16 /* hexadecimal digits */

struct standing_fact {
    str id;
    int64_t due_at_ms, at_ms; /* at_ms: when it began */
    bool wall;                /* ALARM: due by the wall clock */
    str body, payload;        /* JSON */
    bool is_firing;           /* an alarm over many instances that has begun and not ended */
    bool has_begun;           /* engine_alarm_begin() was called here */
};
struct keep_args {
    int32_t what;      /* CONTROL_TOKEN or CONTROL_ALARM */
    int64_t due_at_ms; /* 0: never; a token's by the wall clock */
    bool wall;         /* ALARM: due by the wall clock, not by the store's */
    str payload;       /* a value: may be erased one day */
    str more;          /* JSON, in the record itself */
    str id, over;      /* to end this one, and how; data NULL: begin one */
    str then;          /* an operation that is ordered in the same commit; data NULL: none */
    bool unless_firing; /* end it only if it is not firing: CONFLICT */
    const uint8_t *key;
};
/* Begin one, whose id is in `id` then, or end one: NOT_KNOWN. */
pawl_status engine_keep(struct engine *engine, struct scope *scope, const struct keep_args *args,
                        char id[STANDING_ID_SIZE + 1]);
pawl_status engine_standing(struct engine *engine, struct scope *scope, int32_t what, str id,
                            struct standing_fact *out); /* NOT_KNOWN */
/* For an unknown id: does the reads that a known id would have cost, so that timing reveals
 * nothing. */
void engine_standing_pretend(struct engine *engine, struct scope *scope);
/* In order of due time. */
pawl_status engine_standing_list(struct engine *engine, struct scope *scope, int32_t what,
                                 uint32_t limit, struct standing_fact **out, uint32_t *count);
/* Record that an alarm over many instances is firing, unless that is recorded already. From then on
 * it cannot be cancelled, and the keys it uses count until it ends. NOT_KNOWN: it is over. */
pawl_status engine_alarm_begin(struct engine *engine, struct scope *scope,
                               struct standing_fact *alarm);
void engine_random(struct engine *engine, uint8_t *out, size_t size);

/* ---- Reading ---- */

/* Hold an instance, or let it go on; twice is once. TERMINAL if it has ended. */
struct pause_args {
    str id, actor, reason;
    bool resume;
    bool ends_runs;   /* end calls here that may be repeated, and give back their attempts */
    const char *late; /* as in struct event */
    const uint8_t *key;
};
pawl_status engine_pause(struct engine *engine, struct scope *scope, const struct pause_args *args,
                         enum instance_status *out);

/* Who paused it, since when and why; data NULL: not given. */
struct pause_view {
    int64_t at_ms;
    str actor, reason;
};

/* Who erased what it held, when and why; at_ms 0: nothing was. data NULL: not given. */
struct erased_view {
    int64_t at_ms;
    str actor, reason;
};

struct instance_view {
    char id[ID_SIZE + 1];
    str definition_name; /* data NULL: inline */
    uint32_t version;
    enum definition_kind kind;
    const struct definition *definition; /* lives as long as the engine */
    uint32_t state;
    uint64_t seq;
    enum instance_status status;
    bool can_cancel;
    str subject, correlation, labels, created_by, input, metadata; /* data NULL: absent */
    char parent_id[ID_SIZE + 1];                                   /* "": none */
    str retry_of; /* the instance that this one runs again; data NULL: none */
    char retried_as[ID_SIZE + 1]; /* the last one that runs this one again; "": none */
    int64_t instantiated_at_ms, updated_at_ms;
    str result, error; /* JSON; data NULL: none */
    struct pause_view pause; /* where the status is paused */
    struct erased_view erased;
    bool is_amended;         /* a flow that goes by another definition than the one it began with */
    bool test;
};
pawl_status engine_get(struct engine *engine, struct scope *scope, str id,
                       struct instance_view *out);
struct identity engine_identity(const struct instance_view *view);
/* A memory of a flow or code instance as it is before its first entry. NULL: no memory. */
void *engine_memory_of(const struct definition *definition, const struct instance_view *view,
                       struct arena *arena);
pawl_status engine_current(struct engine *engine, struct scope *scope, str id, str *out);
pawl_status engine_declaration(struct engine *engine, struct scope *scope, str id, str *out);

/* Ids by number, in the order asked for; views by engine_get(). */
pawl_status engine_list(struct engine *engine, struct scope *scope, const struct list_query *query,
                        uint64_t **numbers, uint32_t *count);
pawl_status engine_id_of(struct engine *engine, struct scope *scope, uint64_t number,
                         char out[ID_SIZE + 1]);

/* Where all instances stand, or those of one definition (data NULL: all; version 0: every
 * version). A scan: about a third of a second for a million instances, on a connection of its
 * own. */
struct counts {
    struct state_count *states; /* by definition version and state; empty ones are left out */
    uint32_t state_count;
    uint64_t by_status[STATUS_COUNT];
    uint64_t without_kind; /* of those that count as completed */
    uint64_t total;
};
pawl_status engine_counts(struct engine *engine, struct scope *scope, str definition,
                          uint32_t version, struct counts *out);

/* What a creation record says, for those that follow the log. data NULL: absent. */
struct creation {
    str definition; /* data NULL: inline */
    uint32_t version;
    enum definition_kind kind;
    str state, subject, correlation, parent_id;
};
struct entry {
    const struct record *record;
    const struct creation *creation; /* NULL, except for a creation that engine_entries() meets: it
                                        has an actor, and none of the following */
    const struct transition *transition;
    str from, to, action;
    str actor, reason, payload; /* data NULL: absent or erased */
    str step;                   /* data NULL: none */
    str tool;                   /* of a leaf that has no name; data NULL: none */
    const char *kind;           /* ... and no tool: gate, wait, ...; NULL: it has */
};
/* The same for a behavior, with effects that the caller reads. */
struct entry_view entry_to_fold(const struct entry *entry, const struct effect_list *effects);
struct history_query { /* data NULL, 0: any */
    str transition_id, from_state, to_state, action, actor;
    uint64_t sequence_from, sequence_to;
    bool has_after, has_before;
    int64_t after_ms, before_ms;
    bool without_values; /* payloads and reasons are not read */
};
/* Entries one by one, ascending, up to the last one there was when it was opened. However long the
 * history is, one entry is held. An entry lives until the next call. Close it before the engine is
 * closed, or never read again. */
struct history_reader;
pawl_status engine_history_open(struct engine *engine, struct scope *scope, str id,
                                const struct history_query *query, struct history_reader **out);
pawl_status engine_history_next(struct history_reader *reader, struct scope *scope,
                                struct entry *out, bool *is_found);
/* Goes on at entry `from`, which is not before the first that the query asks for, and ends with
 * entry `to`. The other conditions of the query stay. */
void engine_history_seek(struct history_reader *reader, uint64_t from, uint64_t to);
void engine_history_close(struct history_reader *reader); /* NULL is allowed */

/* How often an instance took each transition of its definition; `counts` has room for all. */
pawl_status engine_taken(struct engine *engine, struct scope *scope, str id, uint32_t *counts);

/* All of them, for those that need the whole at once. */
struct history {
    struct entry *entries; /* ascending */
    uint32_t count;
};
pawl_status engine_history(struct engine *engine, struct scope *scope, str id,
                           const struct history_query *query, struct history *out);

/* ---- Following the log ---- */

/* `committed` is called after each commit with the position of its last record, on the draining
 * thread and under the engine's lock: it may do no more than wake a thread. NULL ends the watching
 * of this context; when that has returned, it is not called any more. At most LOG_WATCHERS at a
 * time; false: there are that many. */
bool engine_watch(struct engine *engine, void (*committed)(void *context, uint64_t position),
                  void *context);
void engine_poke_watchers(struct engine *engine); /* others have committed: look */
uint64_t engine_position(struct engine *engine); /* of the last record that is durable */

/* What is given lives for that call. Other than OK ends the reading and is returned. */
typedef pawl_status (*entry_fn)(void *context, str id, const struct entry *entry);

/* Creations and entries behind position `after`, in commit order, none that is not durable; at most
 * `limit` records are looked at. *reached: the position up to which there is no other entry; where
 * it is engine_position(), there is nothing more. */
pawl_status engine_entries(struct engine *engine, struct scope *scope, uint64_t after,
                           uint32_t limit, entry_fn fn, void *context, uint64_t *reached);
/* The entries of one instance, at most `limit`. */
pawl_status engine_entries_of(struct engine *engine, struct scope *scope, str id, uint64_t after,
                              uint32_t limit, entry_fn fn, void *context, uint64_t *reached);

struct successor {
    char id[ID_SIZE + 1]; /* "": none */
    uint64_t pos;
};
pawl_status engine_successor(struct engine *engine, struct scope *scope, str id,
                             struct successor *out);

/* A flow or code that has failed or was cancelled is run again, as a new instance. */
struct redrive {
    const struct instance_view *view; /* the one that is run again */
    str from; /* of a flow: the step to begin at; data NULL: where it ended */
    const struct definition *definition; /* that the new one runs */
    bool is_other;                       /* ... which is not the one that the first ran */
};
/* What the new one is given; as flow_redrive(). */
pawl_status engine_redrive_given(struct engine *engine, struct scope *scope,
                                 const struct redrive *redrive, str *out);
/* CONFLICT: it is run again already, or that has completed; or one that it runs again was run again
 * since. What was seen is in `args`, and compared when the new one is recorded. */
pawl_status engine_redrive_once(struct engine *engine, struct scope *scope,
                                const struct instance_view *view, struct create_args *args);

/* The tracked variables of a code instance as its last turn left them, or the context of a flow;
 * data NULL: none. */
/* For a memory that a reader folds: where it reads what it does not keep. `out` is not moved. */
struct recorded_payloads {
    struct payload_source source;
    struct engine *engine;
    uint64_t pos; /* of the last record */
};
pawl_status engine_payloads(struct engine *engine, struct scope *scope, str id,
                            struct recorded_payloads *out);
pawl_status engine_variables(struct engine *engine, struct scope *scope, str id, uint64_t seq,
                             str *out); /* seq: as entry number `seq` left them; 0: as they are */

/* The value of one of the definition's queries, JSON. NOT_KNOWN, INVALID_REQUEST. */
pawl_status engine_query(struct engine *engine, struct scope *scope, str id, str name, str *out);

struct flow_attempts;
/* The last snapshot of its memory, if its entry names it; text.data NULL: none. */
pawl_status engine_snapshot(struct engine *engine, struct scope *scope, str id,
                            struct snapshot_row *out);
/* All attempts, without their results; the definition that it began with, and the one in force. */
pawl_status engine_steps(struct engine *engine, struct scope *scope, str id,
                         struct flow_attempts *out, const struct definition **definition,
                         const struct definition **now);

/* ---- Time ---- */

int64_t engine_next_due_ms(struct engine *engine); /* from now; 0: at once; -1: never */
/* Could it be closed now and opened when it is needed again, at the latest in *due_in_ms (-1:
 * never), without a visible difference? */
bool engine_is_at_rest(struct engine *engine, int64_t *due_in_ms);
/* A descriptor of the engine's, readable while engine_tick() has something to do; -1: none. */
int engine_wakeup_fd(struct engine *engine);
struct tick {
    uint64_t commits, answers; /* made, and given to those who do not wait for them */
    int64_t due_in_ms;         /* as engine_next_due_ms() */
};
/* Does what is due. `budget`: begins no more when so many events and tool calls were handled; 0: no
 * bound. `out` may be NULL. */
pawl_status engine_tick(struct engine *engine, struct scope *scope, uint32_t budget,
                        struct tick *out);
/* Answers when nothing more is due and no tool is running. */
pawl_status engine_advance(struct engine *engine, struct scope *scope, int64_t by_ms);
/* To what is due next, so many times at most, but for no longer than most_ms, nor beyond the end of
 * the instance. */
pawl_status engine_advance_turns(struct engine *engine, struct scope *scope, str id, uint32_t turns,
                                 int64_t most_ms, int64_t *out_moved_ms);
pawl_status engine_fire_timer(struct engine *engine, struct scope *scope, str id, str name,
                              const uint8_t *key);

#endif
