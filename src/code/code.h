/* code.h - the behavior whose turns are a C function's.
 *
 * The port is model/decision.h. A definition's plan is what its registration printed, and the
 * handler that is bound to it; rebuilding and verifying never run a handler, because each entry
 * carries the resulting state. */
#ifndef PAWL_CODE_CODE_H
#define PAWL_CODE_CODE_H

#include "model/decision.h"
#include <pawl.h>

/* ---- One turn, from texts to texts: what may happen in another process ---- */

/* A type that is replayed has no stored state of its own: its turn is given the events since the
 * last checkpoint, which follow from the entries (journal.c). */
struct turn_journal {
    str id;              /* of the instance */
    str before, fresh;   /* events: JSON objects with commas between them; fresh: those that no
                            turn has seen yet */
    uint32_t count;      /* of `before` */
    uint32_t calls;      /* begun so far */
    uint64_t mark;       /* stands for `before`, and for the checkpoint */
    uint64_t fresh_mark; /* for both */
    str open;            /* JSON: what the instance waits for now */
};

/* The mark after one more event, note or checkpoint (of which the mark begins with 0). */
uint64_t journal_chain(uint64_t mark, str text);

/* What is begun by a turn: a call, an external step, or a child. */
struct turn_call {
    str name, args; /* args: JSON; of a child its input */
    str key;        /* its own; data NULL: none */
    bool is_spawn, is_abandoned;
};

struct turn_request {
    pawl_event_kind kind;
    str name, payload; /* of the event; payload: JSON, data NULL: none */
    str child_id;      /* CHILD, CHILD_FAILED; data NULL: none */
    int64_t at_ms;
    str state;             /* JSON as stored; data NULL: the first turn */
    uint32_t from_version; /* of that state, if the type is to migrate it; 0: it is not */
    str declared; /* the registration that the state was written by, as printed; data NULL: it is
                     the one that takes the turn */
    bool is_strict;        /* START, SIGNAL: members that the type does not declare are refused */
    bool may_have_event;   /* START: but for `event`, which a machine adds */
    bool is_check;         /* SIGNAL: no turn is taken; does the payload fit? */
    uint32_t call;         /* CALL, CHILD and their failures: the number of the call, from 1 */
    uint32_t first_call;   /* of those that were begun by the last turn that began any */
    uint32_t open_calls;   /* that are still open, this one not counted */
    const struct turn_journal *journal; /* of a type that is replayed; else NULL */
};

/* HOLDS: the turn is invalid, by a mistake of its author. Nothing of it counts but the problem. */
enum turn_end { TURN_WAITS, TURN_COMPLETES, TURN_FAILS, TURN_HOLDS };

struct turn_answer {
    enum turn_end end;
    str value;    /* JSON: the result or the error; data NULL: none */
    str state;    /* JSON after the turn; data NULL: it cannot be printed, keep the old */
    str migrated; /* JSON after migrating, before the turn; data NULL: it was not */
    struct effect_list timers, signals; /* ARM and AWAIT */
    struct turn_call *calls;            /* what is begun, in order */
    uint32_t call_count, call_capacity;
    bool keeps; /* what was open stays, but for what the event was for and what is dropped; else
                    the turn names all that the instance waits for */
    struct effect_list dropped; /* keeps: DISARM, LEAVE, and END by the call's number */
    str note; /* JSON: what the code is to have again when it is replayed; data NULL: nothing */
    struct effect_list subscriptions;   /* AWAIT: a signal and a value of it each */
    struct effect_list reduces;         /* REDUCE: done with the commit */
    struct effect_list sends;           /* SEND: operations that are ordered with it */
    str problem; /* HOLDS: what is wrong, in words */
    str misfit;  /* why the answer that the turn is for counts as an error: it is not as the type
                    declares it; data NULL: it is, or it was none */
    bool is_renewed; /* RENEW: timers, signals and call are those of its place; else: unknown */
    bool is_bare;    /* RENEW: the arguments of `call` are not known where the code wakes */
    bool is_moved;   /* RENEW: the type's hook named that place, so that no other wait is left */
};

/* A handler, here or elsewhere. `run` fails with NOT_KNOWN if it cannot hold the stored state,
 * INVALID_REQUEST if the payload is not as the type says, and what its way may fail with. */
struct code_binding {
    const pawl_code_type
        *type; /* its names and version; of a handler elsewhere no more than that */
    pawl_status (*run)(const struct code_binding *binding, const struct turn_request *request,
                       struct scope *scope, struct turn_answer *out);
    void *context; /* of `run` */
    str source;    /* the registration as printed; data NULL: not known */
    bool is_put_when_used; /* its definition is recorded with its first instance, not before */
    bool is_replayed;      /* `run` wants the journal, and keeps no variables */
};

/* `run` of a handler in this process. */
pawl_status code_run(const struct code_binding *binding, const struct turn_request *request,
                     struct scope *scope, struct turn_answer *out);

/* ---- Registration ---- */

/* The canonical print of a registration: the source of its definition. JSON:
 * {"code":NAME,"version":V,"timers":[...],"signals":[...],"vars":[{"name":N,"type":"int64"}]}, then
 * calls, externals, children, buffered, phases, payloads, result, renamed and retries, where there
 * are any. */
pawl_status code_source(struct scope *scope, const pawl_code_type *type, str *out);

/* A copy of a registration that lives as long as the arena, with the names as they are called
 * outside (StartPatrol: start_patrol). Fails with NO_MEMORY. */
const pawl_code_type *code_copy(struct arena *arena, const pawl_code_type *type);

/* Check a registration and make its definition. INVALID_REQUEST names what is wrong (no name, bad
 * or doubled timer, signal or variable, no handler, a size that does not fit its type). The binding
 * must live as long as the definition. */
pawl_status code_compile(struct scope *scope, const struct code_binding *binding,
                         struct definition **out);

/* From now on `binding` takes the turns of this definition's instances. */
void code_bind(struct definition *definition, const struct code_binding *binding);

/* Are its turns taken in this very process, by code_run()? */
bool code_runs_here(const struct definition *definition);
str code_type_name(const struct definition *definition);

/* ---- What a runner and a reader ask of a call ---- */

struct code_call { /* the texts are copies in the scope */
    str name, args;
    str tool; /* data NULL: none */
    str key; /* its own; data NULL: none */
    uint32_t attempt, first_ordinal;
    uint32_t number; /* of the call */
    uint64_t mark;   /* of replayed code: stands for what its turns have seen (turn_journal) */
};
pawl_status code_call(const struct definition *definition, const void *memory, uint32_t ordinal,
                      struct scope *scope, struct code_call *out); /* LEASE_LOST: it is over */
str code_tool_of(const struct definition *definition, const void *memory, uint32_t ordinal);
str code_step_name(const struct definition *definition, uint32_t plan_index);
str code_step_name_now(const struct definition *definition, const void *memory, uint32_t plan_index);
/* What a pending step waits for: "step" (another program), "child"; NULL: it is a call. */
const char *code_step_why(const struct definition *definition, uint32_t plan_index);
uint32_t code_step_count(const struct definition *definition);

/* ---- An instance that goes on by another registration ---- */

uint32_t code_version(const struct definition *definition); /* of its registration */
bool code_has_plan(const struct effect_list *effects);
/* The version of the registration that these effects bring; 0: they bring none. */
pawl_status code_plan_version(struct scope *scope, const struct effect_list *effects, uint32_t *out);
/* The definition as it is in force after the amend with these effects, the last that has a plan. */
pawl_status code_amended(struct scope *scope, const struct definition *definition,
                         const struct effect_list *effects, struct definition **out);

#endif
