/* flow_keys.c - the keys of a flow, by place, but for those of one kind of step, which are in its
 * row. */
#include "flow/compile.h"

/* Keys: a flow, beside its steps. */
const struct known_key flow_keys[] = {
    { "name", "NAME", "the definition's name, unless it is given when it is put", NULL },
    KEY_DESCRIPTION,
    { "input", "SCHEMA", "what an instance may be started with", NULL },
    { "output", "TEMPLATE", "the result of the flow, instead of the last step's", NULL,
      "the last step's result, or a tree's context" },
    { "signals", "{NAME: {buffer: true}}", "signals that are kept until a step awaits them", NULL,
      "none" },
    { "queries", "{NAME: EXPRESSION}", "what may be asked of an instance", NULL, "none" },
    { "notify", "{definition, on, input}", "what is started when it ends or waits for a person",
      NULL, "nothing" },
    { "saga", "true | false", "whether every step with an effect must say how it is undone", NULL,
      "false" },
    { "cancel", "true | false | {not_from}", "from where it can be cancelled", NULL, "true" },
    { "mcp", "{task, sync_wait, description}", "how MCP clients are offered it", NULL },
    { "retention", "{after_end, then}", "when what an ended instance holds is erased", NULL,
      "it is kept" },
    { "concurrency", "{max, key}", "how many of its instances work at once", "limit", "no limit" },
    { "rate", "{max, per, key}", "how many of its instances begin to work in a time", "throttle",
      "no limit" },
    { "priority", "NUMBER | TEMPLATE", "which of several waiting steps is first: the higher one",
      NULL, "0" },
    { 0 },
};

/* Keys: a flow that is a graph. */
const struct known_key graph_keys[] = {
    { "steps", "{NAME: STEP}", "the steps; the first is `start`, or else the first one", NULL,
      "required" },
    { "timeout", "DURATION", "how long all of it may take", NULL, "no limit" },
    { 0 },
};

/* Keys: a signal under `signals`. */
const struct known_key signal_keys[] = {
    { "buffer", "true | false", "whether it is kept until a step awaits it", NULL, "false" },
    { 0 },
};

/* Keys: `cancel`. */
const struct known_key cancel_keys[] = {
    { "not_from", "[STEP, ...]", "steps during which it cannot be cancelled", NULL, "required" },
    { 0 },
};

/* Keys: every step. */
const struct known_key step_keys[] = {
    { "name", "NAME", "what the step is called", NULL, "its key, or in a tree its path" },
    KEY_DESCRIPTION,
    { "retry", "{max, backoff, on, never}", "how often it is tried, and after how long", "retries",
      "see Retries" },
    { "timeout", "DURATION", "how long one attempt may take", NULL, "no limit" },
    { "wait_for_worker", "DURATION", "how long a call may wait until a worker takes it", NULL,
      "no limit" },
    { "idempotent", "true | false", "whether an attempt without an answer may be repeated", NULL,
      "true in a graph, false in a tree" },
    { "augment", "{DEST: SOURCE}", "what of the result is put into the context", NULL, "nothing" },
    { "compensate", "STEP | read-only | pivot", "the step that undoes it if the flow fails", "undo",
      "nothing is undone" },
    { "concurrency", "{max, key}", "how many calls of it are under way at once", "limit",
      "no limit" },
    { "rate", "{max, per, key}", "how many calls of it begin in a time", "throttle", "no limit" },
    { "priority", "NUMBER | TEMPLATE", "which of several waiting steps is first: the higher one",
      NULL, "the flow's" },
    { 0 },
};

/* Keys: a step of a graph, for what follows it. */
const struct known_key way_keys[] = {
    { "next", "STEP", "the step that follows", NULL },
    { "done", "true", "the flow ends here", NULL },
    { "branch", "[{if, then}, ...]", "the first branch whose condition holds follows", NULL },
    { "parallel", "[STEP, ...]", "all of these follow", NULL },
    { "join", "STEP", "this one follows, once, when all parallel steps have come", NULL },
    { "on_error", "STEP | [{if, then}, ...]", "the step that follows if this one fails for good",
      "catch", "the flow fails" },
    { 0 },
};

/* Keys: a branch. */
const struct known_key branch_keys[] = {
    { "if", "CONDITION", "when it is taken", NULL, "required" },
    { "then", "STEP", "the step that follows", NULL, "required" },
    { 0 },
};

/* What each of them may have. */
#define GROUP_LIMITS                                                                               \
    { "timeout", "DURATION", "how long all of it may take; of a `try`, its steps", NULL,           \
      "no limit" },                                                                                \
    {                                                                                              \
        "retry", "{max, backoff, on, never}", "how often it is tried as a whole, likewise",        \
            "retries", "once"                                                                      \
    }

/* Keys: a group that runs in sequence. */
static const struct known_key do_keys[] = {
    { "do", "[STEP, ...]", "one after the other", NULL, "required" },
    GROUP_LIMITS,
    KEY_DESCRIPTION,
    { 0 },
};

/* Keys: a group that runs in parallel. */
static const struct known_key dopar_keys[] = {
    { "dopar", "[STEP, ...]", "all at once", NULL, "required" },
    GROUP_LIMITS,
    KEY_DESCRIPTION,
    { 0 },
};

/* Keys: a group that handles failures. */
static const struct known_key try_keys[] = {
    { "try", "[STEP, ...]", "one after the other", NULL, "required" },
    { "rescue", "[STEP, ...]", "runs if one of them failed", "catch", "none" },
    { "finally", "[STEP, ...]", "runs after either", NULL, "none" },
    GROUP_LIMITS,
    KEY_DESCRIPTION,
    { 0 },
};

const struct known_key *const group_keys[] = { do_keys, dopar_keys, try_keys, NULL };

/* Keys: `retry`. */
const struct known_key retry_keys[] = {
    { "max", "NUMBER", "all attempts, the first included; at most @LIMIT_ATTEMPTS@", "attempts",
      "a tool: @GRAPH_ATTEMPTS@ in a graph, @TREE_ATTEMPTS@ in a tree; any other step: 1" },
    { "backoff", "[DURATION, ...] | {initial, factor, max, jitter}", "the delays between them",
      "delay", "[@backoff_default_ms@]" },
    { "on", "[KIND, ...]", "the kinds of errors that are tried again", "only", "all" },
    { "never", "[KIND, ...]", "the kinds of errors that are not", "except", "none" },
    { 0 },
};

/* Keys: `concurrency`. */
const struct known_key concurrency_keys[] = {
    { "max", "NUMBER", "so many at once; 1 to @LIMIT_AT_ONCE@", "limit", "required" },
    { "key", "TEMPLATE", "counts those with the same value together", NULL, "all together" },
    { 0 },
};

/* Keys: `rate`. */
const struct known_key rate_keys[] = {
    { "max", "NUMBER", "so many within `per`; 1 to @LIMIT_RATE@", "limit", "required" },
    { "per", "DURATION", "any span of this length; at most a day", "period", "required" },
    { "key", "TEMPLATE", "counts those with the same value together", NULL, "all together" },
    { 0 },
};

/* Keys: `backoff`. */
const struct known_key backoff_keys[] = {
    { "initial", "DURATION", "the first delay", NULL, "required" },
    { "factor", "NUMBER", "each delay is that many times the one before; 1 to @FACTOR_MAX@", NULL,
      "@FACTOR_PRESET@" },
    { "max", "DURATION", "the longest delay", NULL, "no limit" },
    { "jitter", "0..1", "the part of a delay that is added at random", NULL, "0" },
    { 0 },
};
