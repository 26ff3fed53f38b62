/* effect.h - what an entry caused, as data. Printed as the entry's body, so that live
 * tables, verify and SQL never need to run a reducer or a handler again.
 *
 * A body is one JSON array of effects, each an array that begins with its word:
 *   ["step",ORD,PLAN,ATTEMPT,"ready"|"pending"]  a row for an attempt is created;
 *                            ["step",ORD,PLAN] is short for attempt 1, ready
 *   ["ready",ORD]            a pending row becomes ready
 *   ["run",ORD]              a ready row is being worked on; ["run",ORD,MS,"HEX"]: by a worker
 *                            elsewhere, whose lease lasts MS and whose token has this hash
 *   ["end",ORD]              the row is spent, and with it its timers, waits and child
 *   ["arm","NAME",DUE,ORD]   a timer is armed (ORD 0: the instance's own)
 *   ["disarm","NAME",ORD]    a timer is taken back, or has fired
 *   ["await","NAME",ORD]     a signal is awaited; ["await","NAME",ORD,VALUE]: VALUE, any JSON, is
 *                            what a broadcast's filter is compared with
 *   ["leave","NAME",ORD]     it is no longer
 *   ["await","~NAME",0]      not awaited: the signal is kept (model/interest.h), until "leave"
 *   ["spawn",ORD,"ID"]       an instance was created, which the row waits for;
 *                            ["spawn",ORD,"ID","abandon"]: it outlives this one
 *   ["take","NAME"]          the oldest kept signal of this name is spent
 *   ["state",{...}]          the new state of a code instance
 *   ["call",ORD,ARGS]        what the code instance's attempt ORD is given: any JSON;
 *                            ["call",ORD,ARGS,"KEY"]: its idempotency key is ID:KEY
 *   ["version",N]            the state is now one of version N of the code type
 *   ["reduce","NAME",ARGS]   the host's NAME was done with ARGS in the same commit
 *   ["snapshot","HEX"]       after this entry a snapshot was kept, with this SHA-256
 *   ["plan",{...}]           a flow goes on by this plan (amend);
 *                            ["plan",{...},[[WORD,NAME],...]]: a code instance by this
 *                            registration, and its steps by index: "call", "external" or "child",
 *                            and the name
 *   ["note",JSON]            what code that is replayed is to have again with this event
 *   ["send",OPERATION,INPUT] the operation was ordered, by an alarm that is due at once
 *   ["redrive","ID"]         the instance runs another one again, which has this id
 * Before them may stand ["trace","00-..."], the W3C traceparent of the request that caused the
 * entry. It is not an effect, and not in the list of effects.
 * Bodies are written in short, since these are most of what a flow records: ["step",...] without
 * its word, ["run",ORD] as -ORD, ["end",ORD] as ORD. Both forms are read.
 * An entry into a terminal state ends every row, timer and wait of its instance, and cancels the
 * children it waits for, but for those that were abandoned; that is a rule, not listed effects. */
#ifndef PAWL_MODEL_EFFECT_H
#define PAWL_MODEL_EFFECT_H

#include "base/buf.h"
#include "base/scope.h"

#define EFFECT_MAP(X)                                                                              \
    X(STEP, "step")                                                                                \
    X(READY, "ready")                                                                              \
    X(RUN, "run")                                                                                  \
    X(END, "end")                                                                                  \
    X(ARM, "arm")                                                                                  \
    X(DISARM, "disarm")                                                                            \
    X(AWAIT, "await")                                                                              \
    X(LEAVE, "leave")                                                                              \
    X(STATE, "state")                                                                              \
    X(SNAPSHOT, "snapshot")                                                                        \
    X(SPAWN, "spawn")                                                                              \
    X(TAKE, "take")                                                                                \
    X(PLAN, "plan")                                                                                \
    X(CALL, "call")                                                                                \
    X(VERSION, "version")                                                                          \
    X(REDUCE, "reduce")                                                                            \
    X(REDRIVE, "redrive")                                                                          \
    X(NOTE, "note")                                                                                \
    X(SEND, "send")

enum effect_kind {
#define X(name, word) EFFECT_##name,
    EFFECT_MAP(X)
#undef X
};

/* A worker elsewhere holds its lease by a token. Entries and rows hold only its hash. */
#define LEASE_TOKEN_SIZE 32 /* hexadecimal digits */
#define LEASE_HASH_SIZE  40 /* likewise: the first 20 bytes of H(token) */
#define LEASE_COMPILER   2  /* from this compiler on, an entry covers every lease */

#define STEP_STATUS_MAP(X)                                                                         \
    X(PENDING, "pending")                                                                          \
    X(READY, "ready")                                                                              \
    X(RUNNING, "running") X(DONE, "done") X(FAILED, "failed") X(CANCELLED, "cancelled")

enum step_status {
#define X(name, word) STEP_##name,
    STEP_STATUS_MAP(X)
#undef X
};

struct effect {
    enum effect_kind kind;
    uint32_t ordinal;
    uint32_t plan, attempt;  /* STEP; VERSION: attempt is the number */
    enum step_status status; /* STEP: PENDING or READY */
    str name; /* ARM, DISARM, AWAIT, LEAVE, TAKE, REDUCE, SEND; SNAPSHOT: its hash; SPAWN,
                 REDRIVE: the id; CALL: its key, or none */
    int64_t due_at_ms;     /* ARM */
    bool wall;             /* ARM: due by the wall clock */
    str state; /* STATE, PLAN, NOTE: JSON; CALL, REDUCE, SEND: arguments; AWAIT: its value, JSON, or
                              none; LEAVE: the value it had, which is not printed */
    str definition, input; /* SPAWN: what is created; told by its own create record. PLAN of code:
                              input is its list of steps, JSON */
    uint64_t child;        /* SPAWN: its number, as the id has it */
    bool is_abandoned;     /* SPAWN: it outlives its parent */
    str lease;             /* RUN: the hash of the token of a worker elsewhere; data NULL: none */
    int64_t lease_ms;      /* RUN: how long its lease lasts */
    bool is_bare;          /* END: it has neither timers nor waits, so no reader looks for them */
};

struct effect_list {
    struct effect *items; /* in an arena */
    uint32_t count, capacity;
};

pawl_status effect_add(struct scope *scope, struct effect_list *list, struct effect effect);
void effects_print(const struct effect_list *list, struct buf *out);
/* The whole body: the trace, if there is one, then the effects in short. */
void body_print(str trace, const struct effect_list *list, struct buf *out);
str body_trace(str body); /* data NULL: none */
/* The first of this kind; NULL: none. The list may be NULL. */
const struct effect *effects_first(const struct effect_list *list, enum effect_kind kind);
/* That of code lists its steps by index: [[WORD,NAME],...]. One of them; false: not a step. */
enum { PLAN_CALL, PLAN_EXTERNAL, PLAN_CHILD, PLAN_STEP_WORDS };
extern const char *const plan_step_words[PLAN_STEP_WORDS];
struct node;
bool plan_step_read(const struct node *item, uint32_t *word, str *name);
pawl_status effects_read(struct scope *scope, str body,
                         struct effect_list *out); /* STORAGE_FAILURE */
const char *step_status_name(enum step_status status);
static inline bool effect_makes_ready(const struct effect *effect)
{
    return effect->kind == EFFECT_READY ||
           (effect->kind == EFFECT_STEP && effect->status == STEP_READY);
}

#endif
