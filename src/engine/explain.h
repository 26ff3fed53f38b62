/* explain.h - what an instance waits for and why, and all that is shown of it (queries/why.c,
 * causes.c, story.c, inbox.c). */
#ifndef PAWL_ENGINE_EXPLAIN_H
#define PAWL_ENGINE_EXPLAIN_H

#include "engine/engine.h"

struct waiting {
    const char *kind; /* action, timer, signal, step, ... */
    str name;
    bool has_until, is_due;
    int64_t until_ms;
    str refused;             /* kinds timer, child and signal: why what came for it was refused
                                here; data NULL: it was not */
    struct pause_view pause; /* kind pause; the name is its reason */
    uint32_t ordinal;        /* of the step, if it is one, or a timer of one; else 0 */
    str tool;                /* kind step: what it calls; data NULL: a call from outside ends it */
    enum step_status step_status; /* of such a step */
    bool is_here;            /* this process has the tool */
    int64_t since_ms;        /* kind approval: when the gate was reached; 0: not recorded */
    str approval;            /* ... who has to approve, JSON (flow_print_approval) ... */
    str ask;                 /* ... what they are asked, JSON; data NULL: nothing ... */
    str approved_by;         /* ... and who has so far: a JSON array of names */
    uint64_t child; /* kind child: its number, and its id; 0: none */
    char child_id[ID_SIZE + 1];
    /* Causes. Of a step that was tried before, and of the timer of its next attempt: */
    uint32_t failed_attempt, attempts_max; /* failed 0: none; max 0: not known */
    int64_t failed_ms;
    str error; /* JSON; data NULL: none, or it was erased */
    /* Of a step that runs: */
    int64_t held_since_ms;  /* 0: not known */
    str worker;             /* data NULL: not known, or no worker has it */
    int64_t lease_until_ms; /* 0: not known, or it has none */
    str progress;           /* what the worker said last, JSON; data NULL: nothing */
    int64_t progress_ms;
    /* Of a ready step whose tool is not here, in the process that owns the store: */
    int64_t known_since_ms; /* 0: not known */
    int64_t asked_ms;       /* when a worker asked for the tool last; 0: none has since then */
    str asked_by, served;   /* that worker; the tools that workers asked for, a JSON array */
    str limit; /* ... of one that waits for a place: its limit, JSON (quotas_explain) */
    int64_t refused_ms;     /* of a signal: when `refused` was; 0: not known */
};
#define SERVED_TOOLS 20u /* that are listed */
/* How it ended; at_ms 0: it has not. */
struct instance_end {
    int64_t at_ms;
    enum instance_status status;
    str error;        /* JSON; data NULL: none */
    bool can_redrive; /* unless it was run again already */
    /* It has not, but nothing forward begins any more: it was cancelled, or has failed. at_ms 0:
     * not so. */
    struct pause_view winding_up;
    bool is_cancelling;
};
/* `ending` may be NULL. */
pawl_status engine_why(struct engine *engine, struct scope *scope, str id, struct waiting **out,
                       uint32_t *count, struct instance_end *ending);

/* The gates at which an instance waits, for a list. */
struct inbox {
    char id[ID_SIZE + 1];
    str definition; /* data NULL: inline */
    uint32_t version;
    str subject; /* data NULL: none */
    struct waiting *gates;
    uint32_t count;
};
/* Is one of them wanted? Its subject, since when and who has approved are not known yet. */
typedef bool (*inbox_sight)(void *context, const struct inbox *inbox);
/* By the live rows of an instance. The log is read only of what is wanted; count 0: none is.
 * NOT_KNOWN. */
pawl_status engine_inbox(struct engine *engine, struct scope *scope, const struct busy_row *row,
                         inbox_sight is_wanted, void *context, struct inbox *out);

/* All that is shown of one instance, as it was at one moment: read at one go. Of a long history the
 * newest part: at most INSTANCE_LOG_RECORDS, or INSTANCE_LOG_BYTES. */
#define STORY_WAITS 100u /* that are complete; of others the ids of children are not read */
struct story {
    struct instance_view view;
    const struct definition *now; /* in force; differs from the view's if it was amended */
    struct live live;
    struct waiting *waiting;
    uint32_t waiting_count;
    struct entry *entries;       /* ascending */
    struct effect_list *effects; /* of each */
    uint32_t entry_count;
    bool is_whole;       /* the first entry is among them */
    str variables;       /* as engine_variables() */
    const bool *is_done; /* of a flow that is not whole: which steps have a result, by index */
};
/* The definition in force: its plan has every amend in it. */
pawl_status engine_definition_now(struct engine *engine, struct scope *scope, str id,
                                  const struct definition **out);

/* `entries_max`: of a machine no more are read; at most 1000. */
pawl_status engine_story(struct engine *engine, struct scope *scope, str id, uint32_t entries_max,
                         struct story *out);

#endif
