/* code_int.h - private to code: one turn of a handler, and what an instance remembers. */
#ifndef PAWL_CODE_CODE_INT_H
#define PAWL_CODE_CODE_INT_H

#include "base/ids.h"
#include "base/node.h"
#include "code/code.h"

#define LIMIT_DECLARED 1024u /* timers, signals or variables of one type */
#define LIMIT_PARTS    8u    /* structs inside structs */
#define STRICT_COMPILER 3     /* from this compiler on, payloads have no unknown members */

/* ---- plan.c: a definition's plan, as its registration was printed ---- */

enum code_step_kind { /* as the plan of an amend has them */
    CODE_CALL = PLAN_CALL,
    CODE_EXTERNAL = PLAN_EXTERNAL,
    CODE_CHILD = PLAN_CHILD
};

struct code_step {
    str name;
    enum code_step_kind kind;
};

struct code_plan {
    str name, source; /* source: the registration as printed */
    uint32_t version; /* of the type; what new instances begin with */
    struct code_step *steps; /* calls, then externals, then children; then those of later
                                registrations that the instance goes on by */
    uint32_t step_count;
    str *buffered; /* signals that are kept */
    uint32_t buffered_count;
    bool is_replayed;                           /* the memory has the journal */
    const struct code_binding *_Atomic binding; /* may come while others look; NULL: none yet */
};

pawl_status code_prepare(struct definition *definition, struct scope *scope);

static inline const struct code_plan *plan_of(const struct definition *definition)
{
    return definition->plan;
}

bool plan_is_replayed(const struct node *registration);
/* "buffered" of a registration. */
pawl_status plan_read_buffered(struct scope *scope, const struct node *registration,
                               struct code_plan *plan);

/* ---- code_amend.c: an instance goes on by another registration ---- */

bool plan_has(const struct code_plan *plan, enum code_step_kind kind, str name, uint32_t *index);

/* The steps of `before` where they were, then what the type has besides them; what it keeps. */
pawl_status plan_extend(struct scope *scope, const struct code_plan *before,
                        const pawl_code_type *type, struct code_plan *out);
void plan_print_steps(const struct code_plan *plan, struct buf *out);

/* The plan that an amend's effect brings, in the arena. STORAGE_FAILURE: it moves a step. */
pawl_status plan_amended(struct scope *scope, const struct code_plan *before,
                         const struct effect *effect, struct arena *arena, struct code_plan **out);

/* ---- memory.c: what an instance remembers between turns ---- */

struct code_timer {
    str name;
    uint32_t ordinal; /* TIMER_AGAIN: of the attempt that waits for it; else 0 */
    int64_t due_at_ms;
};

struct code_wait {
    str name, value; /* value: what a broadcast's filter must be; data NULL: none */
};

/* What an instance has subscribed to of one signal: JSON without white space, each value once. */
struct code_values {
    str *items;
    uint32_t count, capacity;
};

/* A text that is changed in place. */
struct code_text {
    char *data; /* NULL: none */
    size_t size, capacity;
};

/* What it has called and waits for. */
struct code_attempt {
    uint32_t ordinal; /* 0: it has ended; the next attempt of the same call may take its place */
    uint32_t plan, attempt, first_ordinal;
    uint32_t number; /* of the call among all that it ever began, from 1 */
    enum step_status status;
    struct code_text args;
    struct code_text key;    /* its own; size 0: none */
    char child[ID_SIZE + 1]; /* the id of the instance that it spawned; "": not known */
};

/* An event whose turn is owed: an answer that came while the instance was held, or any event whose
 * turn was a mistake of its author. Its entry spends all that was waited for and arms a timer of
 * this name, due at once, which cannot fire before resume. Its turn is that timer's. */
#define TIMER_TURN STR("~turn")

/* Of the attempt that waits for its time, and of that ordinal; all others are the instance's. */
#define TIMER_AGAIN STR("~retry")

/* RENEW: how long the timer runs is not known where the code wakes. */
#define TIMER_BARE INT64_MIN

struct code_owed {
    pawl_event_kind kind;
    struct code_text name, payload; /* of the event */
    uint32_t call;                  /* its number, of an answer */
    char child[ID_SIZE + 1];        /* of a child's end */
};

/* The events since the last checkpoint, of a type that is replayed. */
struct code_journal {
    struct code_text events;
    uint32_t count;
    size_t taken_size; /* of those that a turn has seen ... */
    uint32_t taken;    /* ... and how many */
    uint64_t mark, taken_mark;
};

/* Lives in one arena and is changed in place: an instance of many turns must not grow it. */
struct code_memory {
    struct code_text state;    /* JSON of the tracked variables; NULL before the first turn */
    struct code_timer *timers; /* in the order they were armed */
    struct code_wait *signals; /* in the order they were awaited; with rows of model/interest.h */
    struct kept_signal *kept;  /* signals that nothing awaited, oldest first */
    uint32_t kept_count, kept_capacity;
    uint32_t timer_count, timer_capacity, signal_count, signal_capacity;
    str *names; /* each name once, however often it is armed */
    uint32_t name_count, name_capacity;
    struct code_attempt *calls; /* in the order in which they were begun */
    uint32_t call_count, call_capacity;
    char id[ID_SIZE + 1];  /* of the instance */
    str input;             /* of the instance, in its owner's arena; for a start that is owed */
    struct code_owed *owed; /* while TIMER_TURN is armed: one, or several answers of calls that were
                               gathered, oldest first; of a type that is replayed the journal has
                               them too */
    uint32_t owed_count, owed_capacity;
    struct code_owed answered; /* the call and child of the entry that is being applied */
    struct code_journal journal;
    uint32_t ordinals;     /* of attempts so far */
    uint32_t numbers;      /* of calls so far */
    uint32_t first_call;   /* of those that the last turn began that began any */
    uint32_t version;      /* of the type that wrote the state; 0: the definition's own */
    const struct code_plan *plan; /* in force since an amend; NULL: the definition's */
};

static inline const struct code_plan *plan_in_force(const struct definition *definition,
                                                    const struct code_memory *memory)
{
    return memory->plan ? memory->plan : plan_of(definition);
}

void *code_memory_new(const struct definition *definition, str input, struct arena *arena);
/* The same without the journal, which a snapshot has whole. */
pawl_status code_memory_fold(const struct definition *definition, void *memory,
                             const struct entry_view *entry, struct scope *scope,
                             struct arena *arena);
pawl_status code_memory_apply(const struct definition *definition, void *memory,
                              const struct entry_view *entry, struct scope *scope,
                              struct arena *arena);
void code_memory_restamp(void *memory, const struct effect_list *effects);
void code_memory_print(const struct definition *definition, const void *memory, struct buf *out);
pawl_status code_memory_load(const struct definition *definition, str text, str input,
                             struct scope *scope, struct arena *arena, void **out);

str code_memory_state(const struct code_memory *memory); /* data NULL: none yet */
/* STORAGE_FAILURE: an entry does what none can do. */
pawl_status code_fail_entry(struct scope *scope, const char *does);
bool code_memory_spawns(const struct definition *definition, const struct code_memory *memory,
                        uint32_t plan_index);
bool code_memory_has_timer(const struct code_memory *memory, str name);
bool code_memory_is_retried(const struct code_memory *memory,
                            uint32_t ordinal); /* it waits for that */
/* The live attempt; NULL: it is over. */
struct code_attempt *code_memory_call(const struct code_memory *memory, uint32_t ordinal);
bool code_introduce(void *memory, const struct identity *identity, struct arena *arena);
uint32_t code_live_steps(const void *memory);
bool code_set_text(struct code_text *text, str value, struct arena *arena);
bool code_memory_has_signal(const struct code_memory *memory, str name);
bool code_memory_has_wait(const struct code_memory *memory, str name); /* or a row of an interest */
/* Has it subscribed to the signal's filter, if there is one? */
bool code_memory_subscribes(const struct code_memory *memory, const struct event *signal);
pawl_status code_memory_keep(void *memory, str name, str payload, struct scope *scope,
                             struct arena *arena);
/* It owes a turn for this event as well; TIMER_TURN says how long. NULL: no memory. */
struct code_owed *code_memory_owe(struct code_memory *memory, pawl_event_kind kind, str name,
                                  str payload, struct arena *arena);
/* The oldest kept signal that is awaited; NULL: none. */
const struct kept_signal *code_memory_kept(const struct code_memory *memory);

/* ---- journal.c: the events of a type that is replayed ---- */

/* Is the entry an event of the code? Then it is added. */
pawl_status journal_apply(const struct definition *definition, struct code_memory *memory,
                          const struct entry_view *entry, struct scope *scope, struct arena *arena);
/* What the turn of this cause is given. */
struct cause;
struct code_work;
pawl_status journal_request(struct code_work *work, const struct cause *cause,
                            struct turn_journal *out);
void journal_print(const struct code_memory *memory, struct buf *out);
pawl_status journal_load(struct scope *scope, const struct node *root, struct code_memory *memory,
                         struct arena *arena);

/* ---- turn.c: what the handler said ---- */

struct pawl_turn {
    struct scope *scope;
    const pawl_code_type *type;
    const pawl_event *event;
    struct turn_answer *answer;
    str phase;                       /* where it waits; data NULL: nowhere by name */
    struct code_values *subscriptions; /* in the order of the type's signals */
    unsigned label;                  /* sequence.c: of the place that is being armed, from 1 */
    bool is_waking;                  /* the arms look for the event; else they are armed */
    bool is_taken;                   /* an arm has had it */
    bool is_given;                   /* the next arm has its arguments */
    bool is_done;                    /* the code came to its end */
    uint32_t open_calls;             /* that the instance still waits for */
    uint32_t which;                  /* of an answer: its number among those begun together */
    bool is_gathering;               /* it may begin more than one thing */
    str problem;                     /* why the turn is invalid; data NULL: it is not */
    pawl_status status;              /* NO_MEMORY and NOT_KNOWN stick */
};

/* The handler asked for something impossible: its turn is invalid. The first problem counts. */
void turn_problem(struct pawl_turn *turn, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* What is wrong with a JSON text is the turn's problem. */
void turn_check_json(struct pawl_turn *turn, const char *what, str json);

/* Settle how the turn ends, once the handler has returned. Fails with NO_MEMORY. */
pawl_status turn_settle(struct pawl_turn *turn);

/* By names as the type declares them. */
void say_timer(struct pawl_turn *turn, const char *declared, int64_t due_at_ms);
void say_signal(struct pawl_turn *turn, const char *declared);
int64_t turn_due_after(int64_t at_ms, int64_t after_ms); /* at least a millisecond */
void say_call(struct pawl_turn *turn, const char *declared, const char *key, const char *args_json);
void say_spawn(struct pawl_turn *turn, const char *declared, const char *input_json, bool abandon);
void say_end(struct pawl_turn *turn, enum turn_end how, const char *what, const char *json);

unsigned names_count(const char *const *names);
unsigned names_find(const char *const *names,
                    const char *name); /* wire names count too; or count */

/* ---- subscriptions.c: values of signals that an instance asks for ---- */

void say_subscribe(struct pawl_turn *turn, unsigned signal, const char *value_json);
void say_unsubscribe(struct pawl_turn *turn, unsigned signal, const char *value_json);

/* From the stored state and into it: one row a signal of the type. */
pawl_status subscriptions_read(struct scope *scope, const pawl_code_type *type,
                               const struct node *stored, struct code_values **out);
void subscriptions_print(const struct pawl_turn *turn, struct buf *out);

/* The turn's answer names all of them; each awaited signal has its first. */
void turn_tell_subscriptions(struct pawl_turn *turn);

/* ---- effects.c, interests.c, kept.c, reduce.c: a decision in the making ---- */

struct code_work {
    const struct definition *definition;
    const struct code_binding *binding; /* one all through, also if another is bound meanwhile */
    const struct standing *standing;
    const struct code_memory *memory;
    const struct event *event;
    struct scope *scope;
    struct turn_answer answer;
    str before; /* the state that the turn began with */
    const struct code_plan *plan; /* what its amend brings; NULL: none */
    bool is_renewing, is_renewed; /* by an amend of this decision */
    struct decision decision;
};

/* What is recorded of the event: the transition, its payload, and the attempt it was of. */
struct cause {
    uint32_t transition;
    pawl_event_kind kind;
    str name, payload; /* for the handler */
    str child_id;      /* for the handler as well; data NULL: none */
    str recorded;      /* payload of the entry */
    const struct code_attempt *attempt;
    bool is_kept;      /* SIGNAL: its sender is gone */
    bool is_owed;      /* the event itself is recorded already */
};

/* ADD_EFFECT(work, effects, .kind = EFFECT_LEAVE, .name = name) */
#define ADD_EFFECT(work, effects, ...)                                                             \
    effect_add((work)->scope, (effects), (struct effect){ __VA_ARGS__ })

/* renew.c: the build that takes the turn, and the registration that the instance went by. */

/* What was registered when the state was written; data NULL: what is registered now, or unknown. */
str code_declared(const struct code_work *work, const struct code_binding *binding);

/* The plan that the turn's steps go by, and the kind of what the turn calls. */
const struct code_plan *code_work_plan(const struct code_work *work);
enum code_step_kind code_called_kind(const struct code_work *work, const struct turn_call *call);

/* amend, before the entry of the event: the state as this version has it if it was migrated, and
 * the registration if it is migrated or calls what the one before does not have. */
pawl_status code_add_amend(struct code_work *work, const struct code_binding *binding, uint32_t version);

uint32_t code_state_version(const struct code_work *work);
uint32_t code_type_version(const struct code_binding *binding);

/* Was the state written by an older version than the type has now? An instance that is held, owes a
 * turn or ends the process is left alone. */
bool code_is_renewal_due(const struct code_work *work);
/* amend: the instance waits for what this build has at its place. work->memory is that after it. */
pawl_status code_renew(struct code_work *work);

/* The steps that the turn calls. */
pawl_status code_add_calls(struct code_work *work, struct effect_list *effects);

/* kept.c: the memory as it will be after what was decided so far; it knows the first `known` drafts
 * already. */
pawl_status code_fold_ahead(struct code_work *work, uint32_t known, struct code_memory **out);

/* One turn of the handler, recorded as its cause says. */
pawl_status code_take_turn(struct code_work *work, const struct cause *cause);

/* ---- call_retry.c: a call that failed is tried again ---- */

/* A type without retries prints nothing. */
void retries_print(const pawl_code_type *type, struct buf *out);
pawl_status retries_check(struct scope *scope, const pawl_code_type *type);

/* Is the call that failed tried again by its type's policy, and when? */
pawl_status code_retry_due(struct code_work *work, const struct cause *cause, bool *is_due,
                           int64_t *due_at_ms);
/* No turn: the failure is recorded, and another attempt waits for its time. */
pawl_status code_try_again(struct code_work *work, const struct cause *cause, int64_t due_at_ms);
pawl_status code_retry_now(struct code_work *work); /* its time has come */

/* reduce.c: the live attempt that the event is about; of none, one with the ordinal 0. */
const struct code_attempt *code_attempt_of(const struct code_work *work);
/* A draft of that attempt, without effects; NULL: no memory. */
struct draft *code_draft_attempt(struct code_work *work, uint32_t transition);
/* The live attempt ends with the draft, and the next one of the same call begins. */
pawl_status code_add_attempt(struct code_work *work, struct draft *draft, enum step_status status);

/* No turn: the event is recorded, and the turn that it is worth is owed. reason: why, where it is
 * the author's mistake; data NULL: the instance is held. */
pawl_status code_owe_turn(struct code_work *work, const struct cause *cause, str reason);

/* The payload of a timer's or signal's entry. */
pawl_status code_print_payload(struct code_work *work, str *out);

/* Does the declaration say that the signal is kept? */
bool plan_keeps_signal(const struct code_plan *plan, str signal);

/* The rows by which broadcasts find it (model/interest.h), as far as the turn changes them. */
pawl_status code_add_interests(struct code_work *work, struct effect_list *effects);

/* Turns for the kept signals that the last turn began to await. */
pawl_status code_take_kept(struct code_work *work);
bool code_has_kept(const void *memory); /* something awaits a signal that is kept */

/* ---- state.c, state_print.c: variables, struct <-> JSON ---- */

/* What is read, and so how strictly: members that the type requires or does not declare. */
enum var_shape {
    SHAPE_STORED, /* by another build, perhaps: neither matters */
    SHAPE_ANSWER, /* of a tool or child, which may grow: no required member is missing */
    SHAPE_SENT,   /* by a caller, who gets an error: nor may it have a member that is unknown ... */
    SHAPE_STARTED, /* ... but `event`, which a machine adds to the input of what it starts */
};

#define VAR_PATH_SIZE 200

/* Where variables are read to or printed from, and what did not fit. */
struct var_place {
    struct scope *scope;
    const pawl_var *vars;
    void *base;
    enum var_shape shape;
    const pawl_var *bad_var;     /* out: what variable does not fit; NULL: an unknown member ... */
    const pawl_var *bad_vars;    /* ... in the struct of these, ... */
    bool bad_is_input;           /* ... of which only the inputs count */
    bool bad_is_item;            /* an item of the list that bad_var is */
    const struct node *bad_node; /* what was found; NULL: nothing */
    char path[VAR_PATH_SIZE];    /* where, from here: "lines[1].sku" */
};

/* Fill from an object. Members it does not have stay. False: it does not fit; see `bad_var`. */
bool vars_load(struct var_place *place, const struct node *object, bool inputs_only);
bool var_load(struct var_place *place, const pawl_var *var, const struct node *node);

/* The stored state as a tree, for the two below; data NULL: NULL. STORAGE_FAILURE: no object. */
pawl_status state_read(struct scope *scope, const pawl_code_type *type, str text,
                       const struct node **out);

/* What a state is filled from. */
struct stored {
    const struct node *object;   /* NULL: nothing was stored */
    const struct node *declared; /* the variables of the build that wrote it, as its registration
                                    has them; NULL: those of the type */
};

/* The stored value of a variable, by its name or one that it had. NULL: none. */
const struct node *stored_value(const pawl_code_type *type, const struct stored *stored,
                                const pawl_var *var);

/* Fill `state`, which holds the first values. Fields that were not stored stay, fields the type
 * does not have are passed over. NOT_KNOWN if a variable was of another kind, a value does not fit
 * it or the phase is not the type's: this program cannot run the instance, another build might. */
pawl_status state_load(struct scope *scope, const pawl_code_type *type, const struct stored *stored,
                       void *state, str *phase);

/* ---- declared.c: the variables of another build ---- */

/* The variables of a registration as it was printed; text without data: NULL. */
pawl_status declared_read(struct scope *scope, str text, const struct node **out);

/* What was declared of the variable before, by its name or one that it had; NULL: nothing. */
const struct node *declared_find(const pawl_code_type *type, const struct node *declared,
                                 const pawl_var *var);

/* Was it of the same kind: integer, floating, bool, text, JSON or struct, alone or in a list? */
bool declared_is_alike(const struct node *before, const pawl_var *var);

/* Print variables; what cannot be printed is the turn's problem, and *out stays. A state has its
 * phase (data NULL: it has none) and its subscriptions before them. */
void state_print(struct pawl_turn *turn, const void *state, str phase, str *out);
void result_print(struct pawl_turn *turn, const void *result, str *out);
void struct_print(struct pawl_turn *turn, const pawl_var *fields, const void *value, str *out);

const char *var_type_name(pawl_var_type type); /* "int64", ...; NULL: no such type */
size_t var_type_size(pawl_var_type type);      /* 0: it has no size of its own */
bool vars_is_end(const pawl_var *var);

/* ---- payload.c ---- */

/* Fill the member of `value` that the type's `payloads` have for the event's name; nothing if they
 * have none. INVALID_REQUEST: the payload is not as declared. */
pawl_status payload_read(struct scope *scope, const pawl_code_type *type, const pawl_event *event,
                         enum var_shape shape, void *value);

/* Fill the inputs of `state` from the payload of the start. INVALID_REQUEST likewise. */
pawl_status input_read(struct scope *scope, const pawl_code_type *type, str input,
                       enum var_shape shape, void *state);

#endif
