/* vocabulary.h - the keys that a definition may have: one table for each place.
 *
 * The compilers of machines and flows take what these tables hold and refuse every other key. The
 * documentation of definitions is printed from the same tables. A key that begins with "x-" is
 * free in every place. */
#ifndef PAWL_MODEL_VOCABULARY_H
#define PAWL_MODEL_VOCABULARY_H

#include "base/str.h"

/* The enum, the table in vocabulary.c, the title in the documentation. */
#define KEY_PLACES(X)                                                                              \
    X(NONE, none, "")                                                                              \
    X(MACHINE, machine, "machine")                                                                 \
    X(TRANSITION, transition, "a transition of a machine")                                         \
    X(STARTS, starts, "`starts` of a transition")                                                  \
    X(DEADLINE, deadline, "a deadline of a machine")                                               \
    X(FLOW, flow, "flow")                                                                          \
    X(GRAPH, graph, "flow written as a graph")                                                     \
    X(SIGNAL, signal, "a signal under `signals`")                                                  \
    X(CANCEL, cancel, "`cancel` of a flow")                                                        \
    X(STEP, step, "a step of a graph")                                                             \
    X(LEAF, leaf, "a leaf of a tree")                                                              \
    X(DO, do, "a group that runs in sequence")                                                     \
    X(DOPAR, dopar, "a group that runs in parallel")                                               \
    X(TRY, try, "a group that handles failures")                                                   \
    X(RETRY, retry, "`retry` of a step")                                                           \
    X(BACKOFF, backoff, "`backoff` of `retry`")                                                    \
    X(APPROVAL, approval, "`approval` of a gate")                                                  \
    X(WAIT, wait, "`wait` of a step")                                                              \
    X(ARM, arm, "an arm of `select` in a graph")                                                   \
    X(TREE_ARM, tree_arm, "an arm of `select` in a tree")                                          \
    X(BRANCH, branch, "a branch of a step")                                                        \
    X(SPAWN, spawn, "`spawn` of a step")                                                           \
    X(SCHEMA, schema, "`input`: a schema, and each schema inside it")

enum key_place {
#define X(name, table, title) KEYS_##name,
    KEY_PLACES(X)
#undef X
        KEY_PLACE_COUNT
};

struct known_key {
    const char *word;
    const char *value;   /* what it takes: "DURATION" */
    const char *summary; /* one line for the documentation */
    const char *mistake; /* what authors write instead; NULL: nothing known */
};

const struct known_key *vocabulary_of(enum key_place place); /* ends with word NULL */
const char *vocabulary_title(enum key_place place);

/* Does `place` have this key? Keys that begin with "x-" are free. */
bool vocabulary_has(enum key_place place, str key);
bool vocabulary_is_free(str key);

/* The key of `place` that `mistake` is written for, or NULL. */
const char *vocabulary_meant(enum key_place place, str mistake);

#define KEY_HINT_SIZE 320

/* "did you mean 'max'? known here: max, backoff": what to write instead of `key`, which is unknown.
 * The keys of `beside` are known as well; KEYS_NONE: none. */
void vocabulary_hint(enum key_place place, enum key_place beside, str key,
                     char out[KEY_HINT_SIZE]);

#endif
