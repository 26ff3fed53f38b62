/* machine_keys.c - the keys of a machine, by place. */
#include "machine/machine_int.h"

/* Keys: a machine. */
const struct known_key machine_keys[] = {
    { "name", "NAME", "the definition's name, unless it is given when it is put", NULL },
    KEY_DESCRIPTION,
    { "input", "SCHEMA", "what an instance may be started with", NULL },
    { "states", "[STATE, ...]", "every state; at most @LIMIT_STATES@", NULL, "required" },
    { "initial_state", "STATE", "the state in which an instance begins", "initial", "required" },
    { "terminal_states", "[STATE, ...]", "the states in which an instance has ended", "terminal",
      "none" },
    { "terminal_kinds", "{STATE: success | failure | cancel}", "how each terminal state ends", NULL,
      "required for each" },
    { "transitions", "[TRANSITION, ...]", "every transition; at most @LIMIT_TRANSITIONS@", NULL,
      "required" },
    { "deadlines", "[DEADLINE, ...]",
      "actions that pawl fires when time has passed; at most @LIMIT_DEADLINES@", NULL, "none" },
    { "mcp", "{task, sync_wait, description}", "how MCP clients are offered it", NULL },
    { "retention", "{after_end, then}", "when what an ended instance holds is erased", NULL,
      "it is kept" },
    { "labels", "ANYTHING", "for readers of the definition; not interpreted", NULL },
    { "version", "ANYTHING", "for readers of the definition; pawl numbers versions itself", NULL },
    { 0 },
};

/* Keys: a transition. */
const struct known_key transition_keys[] = {
    { "from_state", "STATE or '*'", "where it leads from; '*': every state that is not terminal",
      "from", "required" },
    { "action", "ACTION", "what a caller fires", NULL, "required" },
    { "to_state", "STATE", "where it leads to", "to", "required" },
    { "guard", "GUARD", "a condition that the caller must assert", NULL, "none" },
    { "requires_reason", "true | false", "whether the caller must give a reason", NULL, "false" },
    { "by", "caller | engine", "who may fire it; `engine`: only a deadline or `on_end`", NULL,
      "caller" },
    { "starts", "{definition, input, on_end}", "the instance that is created with it", NULL,
      "none" },
    KEY_DESCRIPTION,
    { 0 },
};

/* Keys: `starts`. */
const struct known_key starts_keys[] = {
    { "definition", "NAME or NAME@VERSION", "what is created", NULL, "required" },
    { "input", "OBJECT", "its input; `event` is added to it", NULL, "{}" },
    { "on_end", "{completed, failed, cancelled}", "what this machine does when that has ended",
      NULL, "nothing" },
    { 0 },
};

/* Keys: `on_end`. */
const struct known_key on_end_keys[] = {
    { "completed", "ACTION", "is fired when what was started has completed", NULL, "none" },
    { "failed", "ACTION", "is fired when it has failed, or could not be created", "error", "none" },
    { "cancelled", "ACTION", "is fired when it was cancelled", "canceled", "none" },
    { 0 },
};

/* Keys: a deadline. */
const struct known_key deadline_keys[] = {
    { "state", "STATE", "the state that is held", NULL, "required" },
    { "after", "DURATION", "for how long; more than 0", NULL, "required" },
    { "action", "ACTION", "what is fired then", NULL, "required" },
    KEY_DESCRIPTION,
    { 0 },
};
