/* kinds.h - what a step can be. Everything that is particular to one kind is in its row.
 *
 * Rows are in kinds.c (kinds that need no function) and in step_<kind>.c. The rest of flow, the
 * engine and the drawing ask the row, and never which kind it is: tests/house/run_kinds.py counts.
 *
 * A column that a row does not set has the default that is written beside it. */
#ifndef PAWL_FLOW_KINDS_H
#define PAWL_FLOW_KINDS_H

#include "base/buf.h"
#include "model/decision.h"

struct attempt;
struct compilation;
struct known_key;
struct node;
struct plan_step;
struct source_step;
struct turn;

/* How a step is drawn. The drawing has a shape for each. */
enum step_look { LOOK_STEP, LOOK_GATE, LOOK_WAIT };

struct step_kind {
    /* ---- Words ---- */
    const char *word; /* in plans and in messages: "gate" */
    const char *about; /* one line for the documentation; NULL: no author writes it */
    const char *key;  /* which says in a document that a step is one: "approval"; NULL: none */
    const struct known_key *keys; /* its keys of a step; NULL: none */
    bool is_alone;    /* no other kind's key may be beside it; false: step_tool.c decides */
    const char *tool; /* the tool whose name makes a step one: "sleep"; NULL: none */
    const char *of_tool; /* the same, of a plan that names the kind and no tool; NULL: none */
    const char *why;  /* what a pending step waits for; NULL: its timers and signals say so */

    /* ---- What it is. Default: it waits where it is until an event ends it ---- */
    bool is_tool;       /* its plan names a tool and no kind; it is tried again unasked */
    bool is_taken;      /* a runner takes it to its tool */
    bool is_external;   /* another program ends it without a lease, and may have done its work */
    bool is_gone;       /* an amend has removed it: it begins no more, and is nowhere in a tree */
    bool may_spawn;     /* it creates instances */
    bool has_own_args;  /* its args are an object that the compiler wrote, not the author's */
    bool has_arms;      /* ... whose `arms` lists what it waits for */
    bool leads_by_arm;  /* each arm has its own way on, and the result says which it was */
    bool is_tried_once; /* `retry` is refused */
    bool is_without_result; /* no template or condition may name its result */
    enum step_look look;
    /* Prints what a picture says below its name. NULL: its tool, or `word`. */
    void (*note)(const struct plan_step *step, struct buf *out);

    /* ---- Compiling ---- */
    /* `node` is the value of `key`. Sets the args and whatever else the step needs when it begins.
     * NULL: step_tool.c has done it. */
    void (*compile)(struct source_step *step, const struct node *node);
    /* When all steps are known. NULL: nothing to check. */
    void (*check)(const struct source_step *step);
    /* The step that is done for each of its items: in the value of `key`. NULL: it has no items. */
    const struct node *(*body)(const struct node *node);
    /* In a tree, of a step that leads by arms: how many it has, and the list of what follows one of
     * them; NULL: nothing follows. */
    uint32_t (*arm_count)(const struct node *step);
    const struct node *(*arm)(const struct node *step, uint32_t arm);

    /* ---- Deciding: pure, on the turn. NULL: nothing happens ---- */
    /* Adds the effects by which the new attempt waits. A status that is not trouble
     * (status_is_trouble()) fails the step with the scope's error. */
    pawl_status (*begin)(struct turn *turn, const struct plan_step *step, uint32_t ordinal);
    /* It has begun: drafts an entry of its own behind the one that began it. */
    void (*begun)(struct turn *turn, const struct attempt *attempt);
    /* Events that are sent to one step, by enum event_kind. NULL: it does not await this event. */
    void (*on[EVENT_KIND_COUNT])(struct turn *turn, const struct attempt *attempt);
    /* The result of a step whose timer or signal, arm number `arm`, came with `payload`. A status
     * that is not trouble fails the step with the scope's error, without another attempt. NULL: the
     * payload. */
    pawl_status (*arm_result)(struct turn *turn, const struct attempt *attempt, uint32_t arm,
                              str payload, str *out);

    /* ---- Reading an entry back: pawl verify decides each event again ---- */
    /* Event number `n` that can have made an entry of the kind's own transitions; false: no more.
     */
    bool (*event)(const struct entry_view *entry, uint32_t n, struct event *out);
    /* arm_result() read back; false: it is not one. NULL: arm 0, and the result is the payload. */
    bool (*read_arm)(str result, uint32_t *arm, str *payload);
};

/* In the order in which messages list them. A row with a `tool` comes before the one without. */
#define STEP_KINDS(X)                                                                              \
    X(sleep)                                                                                       \
    X(tool)                                                                                        \
    X(mcp) X(gate) X(wait) X(schedule) X(select) X(if) X(map) X(spawn) X(external) X(group) X(gone)

#define X(name) extern const struct step_kind step_kind_##name;
STEP_KINDS(X)
#undef X

#define ONE(name) +1
enum { STEP_KIND_COUNT = 0 STEP_KINDS(ONE) };
#undef ONE
extern const struct step_kind *const step_kinds[STEP_KIND_COUNT];

/* The kind with this word, of a step with this tool (data NULL: none). NULL: there is no such kind.
 */
const struct step_kind *step_kind_find(str word, str tool);

/* That of a step whose author wrote `tool: TOOL`. */
const struct step_kind *step_kind_of_tool(str tool);

#endif
