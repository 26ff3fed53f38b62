/* scenario.h - one process of each behavior, driven over pawl.h call by call, and a witness
 * who remembers what was answered and what was seen.
 *
 * A scenario is a list of acts. After each the witness looks at the history, as far as that
 * can be read, and insists:
 *   - what was acknowledged is there, and what was once seen stays, hash by hash;
 *   - after STORAGE_FAILURE and NO_MEMORY nothing of the call is there;
 *   - after OUTCOME_UNKNOWN all of it is there or nothing;
 *   - entries are numbered 1..N.
 * An act that did not happen is done again. The same witness goes on with the next pawl that
 * opens the store. */
#ifndef PAWL_TESTS_FAULT_SCENARIO_H
#define PAWL_TESTS_FAULT_SCENARIO_H

#include "api/api.h"
#include "lib/fault.h"
#include "lib/test.h"

#define ENTRIES_MAX 64

enum act_kind { ACT_DEFINE, ACT_CREATE, ACT_FIRE, ACT_CANCEL, ACT_SIGNAL, ACT_ADVANCE };

struct act {
    enum act_kind kind;
    const char *name;    /* the action or signal */
    const char *payload; /* JSON */
    int64_t by_ms;       /* ADVANCE */
};

struct scenario {
    const char *name;
    bool own;
    const char *definition; /* its name */
    const char *source;     /* NULL: code, which is registered */
    const char *input;
    const struct act *acts;
    uint32_t act_count;
    const char *end;    /* the state it must end in */
    const char *result; /* what instance.get must show then; NULL: nothing special */
    uint32_t entries;   /* at least; */
    bool is_exact;      /* and never more: attempts of a flow may be lost and made again */
};

extern const struct scenario scenarios[]; /* ends with a zero row */
const struct scenario *scenario_find(const char *name);

struct witness {
    const struct scenario *scenario;
    char url[128];
    const struct heap *heap; /* NULL: libc's */
    struct env *env;         /* of the pawl that is open */
    pawl *p;
    uint32_t next;  /* act */
    char id[27];    /* "": no instance yet */
    uint32_t count; /* entries seen */
    char seen[ENTRIES_MAX][65];
    uint32_t promised;  /* entries that a PAWL_OK stands for */
    bool has_heard;     /* the signal is in the history */
    bool is_defined;    /* acknowledged or seen */
    bool may_grow;      /* the last act may have happened: not known, or time was moved */
    uint32_t most;      /* and then by so many entries at most */
    bool looks_closely; /* also at what was seen before */
    uint32_t refusals;  /* acts that failed, in all */
    uint32_t unknowns;  /* of them with OUTCOME_UNKNOWN */
};

void witness_init(struct witness *w, const struct scenario *scenario, const char *url);

/* Open a pawl and register tools and code. Any honest failure is returned, and then w->p is NULL.
 */
pawl_status witness_open(struct witness *w);
void witness_close(struct witness *w);

/* Do the acts, until all are done or `refusals_max` have failed. */
void witness_act(struct witness *w, uint32_t refusals_max);

/* Without faults from here on: look, move time until it has ended, and check everything. */
void witness_finish(struct witness *w);

/* Look at the store; false where it can not be read. */
bool witness_look(struct witness *w);

#endif
