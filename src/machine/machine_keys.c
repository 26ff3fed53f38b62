/* machine_keys.c - the keys of a machine, by place. */
#include "machine/machine_int.h"

/* Keys: A machine. */
const struct known_key machine_keys[] = {
    { "name", "NAME", "the definition's name, unless it is given when it is put", NULL },
    KEY_DESCRIPTION,
    { "input", "SCHEMA", "what an instance may be started with", NULL },
    { "states", "[STATE, ...]", "every state", NULL },
    { "initial_state", "STATE", "the state in which an instance begins", "initial" },
    { "terminal_states", "[STATE, ...]", "the states in which an instance has ended", "terminal" },
    { "terminal_kinds", "{STATE: success | failure | cancel}", "how each terminal state ends",
      NULL },
    { "transitions", "[TRANSITION, ...]", "every transition", NULL },
    { "deadlines", "[DEADLINE, ...]", "actions that the engine fires when time has passed", NULL },
    { "labels", "ANYTHING", "for readers of the definition; not interpreted", NULL },
    { "version", "ANYTHING", "for readers of the definition; pawl numbers versions itself", NULL },
    { 0 },
};

/* Keys: A transition of a machine. */
const struct known_key transition_keys[] = {
    { "from_state", "STATE or '*'", "where it leads from; '*': every state that is not terminal",
      "from" },
    { "action", "ACTION", "what a caller fires", NULL },
    { "to_state", "STATE", "where it leads to", "to" },
    { "guard", "GUARD", "a condition that the caller must assert", NULL },
    { "requires_reason", "true | false", "whether the caller must give a reason", NULL },
    { "starts", "{definition, input}", "the instance that is created with it", NULL },
    KEY_DESCRIPTION,
    { 0 },
};

/* Keys: `starts` of a transition. */
const struct known_key starts_keys[] = {
    { "definition", "NAME or NAME@VERSION", "what is created", NULL },
    { "input", "OBJECT", "its input; `event` is added to it", NULL },
    { 0 },
};

/* Keys: A deadline of a machine. */
const struct known_key deadline_keys[] = {
    { "state", "STATE", "the state that is held", NULL },
    { "after", "DURATION", "for how long", NULL },
    { "action", "ACTION", "what is fired then", NULL },
    KEY_DESCRIPTION,
    { 0 },
};
