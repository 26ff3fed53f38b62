/* vocabulary.c - the keys of definitions, by place. */
#include "model/vocabulary.h"
#include "base/assert.h"
#include "model/words.h"
#include <stdio.h>

/* ---- The tables ---------------------------------------------------------------------------- */

#define KEY_DESCRIPTION { "description", "TEXT", "what it is for; not interpreted", NULL }

static const struct known_key none_keys[] = { { 0 } };

static const struct known_key machine_keys[] = {
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

static const struct known_key transition_keys[] = {
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

static const struct known_key starts_keys[] = {
    { "definition", "NAME or NAME@VERSION", "what is created", NULL },
    { "input", "OBJECT", "its input; `event` is added to it", NULL },
    { 0 },
};

static const struct known_key deadline_keys[] = {
    { "state", "STATE", "the state that is held", NULL },
    { "after", "DURATION", "for how long", NULL },
    { "action", "ACTION", "what is fired then", NULL },
    KEY_DESCRIPTION,
    { 0 },
};

static const struct known_key flow_keys[] = {
    { "name", "NAME", "the definition's name, unless it is given when it is put", NULL },
    KEY_DESCRIPTION,
    { "input", "SCHEMA", "what an instance may be started with", NULL },
    { "output", "TEMPLATE", "the result of the flow, instead of the last step's", NULL },
    { "signals", "{NAME: {buffer: true}}", "signals that are kept until a step awaits them", NULL },
    { "cancel", "true | false | {not_from}", "from where it can be cancelled", NULL },
    { 0 },
};

static const struct known_key graph_keys[] = {
    { "steps", "{NAME: STEP}", "the steps; the first is `start`, or else the first one", NULL },
    { 0 },
};

static const struct known_key signal_keys[] = {
    { "buffer", "true | false", "whether it is kept until a step awaits it", NULL },
    { 0 },
};

static const struct known_key cancel_keys[] = {
    { "not_from", "[STEP, ...]", "steps during which it cannot be cancelled", NULL },
    { 0 },
};

#define WORK_KEYS                                                                                  \
    { "name", "NAME", "what the step is called", NULL }, KEY_DESCRIPTION,                          \
        { "tool", "NAME or null", "the tool that is called; null: a gate", NULL },                 \
        { "args", "OBJECT", "what the tool gets; templates are replaced", "input" },               \
        { "action", "NAME", "another word for `tool`", NULL },                                     \
        { "payload", "ANYTHING", "another word for `args`", NULL },                                \
        { "retry", "{max, backoff}", "how often it is tried, and after how long", "retries" },     \
        { "timeout", "DURATION", "how long one attempt may take", NULL },                          \
        { "idempotent", "true | false", "whether an attempt without an answer may be repeated", NULL },          \
        { "augment", "{DEST: SOURCE}", "what of the result is put into the context", NULL },       \
        { "wait", "{timer | until | signal}", "waits instead of calling a tool", NULL },           \
        { "select", "[ARM, ...]", "waits for the first of several things", NULL },                 \
        { "external", "true | false", "completed from outside, without a lease", NULL },           \
        { "approval", "{by, count}", "a gate: who may approve, and how many must", "gate" },    \
    {                                                                                              \
        "spawn", "{definition, input}", "runs another definition as a child", NULL                 \
    }

static const struct known_key leaf_keys[] = { WORK_KEYS, { 0 } };

static const struct known_key step_keys[] = {
    WORK_KEYS,
    { "next", "STEP", "the step that follows", NULL },
    { "done", "true", "the flow ends here", NULL },
    { "branch", "[{if, then}, ...]", "the first branch whose condition holds follows", NULL },
    { "parallel", "[STEP, ...]", "all of these follow", NULL },
    { "join", "STEP", "follows once when no sibling is outstanding", NULL },
    { 0 },
};

static const struct known_key do_keys[] = {
    { "do", "[STEP, ...]", "one after the other", NULL },
    KEY_DESCRIPTION,
    { 0 },
};

static const struct known_key dopar_keys[] = {
    { "dopar", "[STEP, ...]", "all at once", NULL },
    KEY_DESCRIPTION,
    { 0 },
};

static const struct known_key try_keys[] = {
    { "try", "[STEP, ...]", "one after the other", NULL },
    { "rescue", "[STEP, ...]", "runs if one of them failed", "catch" },
    { "finally", "[STEP, ...]", "runs after either", NULL },
    KEY_DESCRIPTION,
    { 0 },
};

static const struct known_key retry_keys[] = {
    { "max", "NUMBER", "all attempts, the first included", "attempts" },
    { "backoff", "[DURATION, ...] | {initial, factor, max, jitter}", "the delays between them",
      "delay" },
    { 0 },
};

static const struct known_key backoff_keys[] = {
    { "initial", "DURATION", "the first delay", NULL },
    { "factor", "NUMBER", "each delay is that many times the one before; 2 by default", NULL },
    { "max", "DURATION", "the longest delay", NULL },
    { "jitter", "0..1", "the part of a delay that is random", NULL },
    { 0 },
};

static const struct known_key approval_keys[] = {
    { "by", "[ACTOR, ...]", "who may approve; anyone by default", NULL },
    { "count", "NUMBER", "how many must; 1 by default", NULL },
    { 0 },
};

#define WAIT_KEYS                                                                                  \
    { "timer", "DURATION", "for this long", NULL },                                                \
        { "until", "TIME", "until this time", NULL },                                              \
        { "signal", "NAME", "for this signal", NULL },                                             \
    {                                                                                              \
        "value", "TEXT", "what a broadcast's filter is compared with", NULL                        \
    }

static const struct known_key wait_keys[] = { WAIT_KEYS, { 0 } };

static const struct known_key arm_keys[] = {
    WAIT_KEYS,
    { "then", "STEP", "the step that follows", "do" },
    { 0 },
};

static const struct known_key tree_arm_keys[] = {
    WAIT_KEYS,
    { "do", "[STEP, ...]", "what follows", "then" },
    { 0 },
};

static const struct known_key branch_keys[] = {
    { "if", "CONDITION", "when it is taken", NULL },
    { "then", "STEP", "the step that follows", NULL },
    { 0 },
};

static const struct known_key spawn_keys[] = {
    { "definition", "NAME or NAME@VERSION", "what is run", NULL },
    { "input", "TEMPLATE", "its input", NULL },
    { "on_parent_end", "cancel | abandon", "what becomes of it when this flow ends first", NULL },
    { 0 },
};

static const struct known_key schema_keys[] = {
    { "type", "null | boolean | integer | number | string | array | object, or a list of them",
      "what kind of value it is", NULL },
    { "properties", "{NAME: SCHEMA}", "the members of an object", NULL },
    { "required", "[NAME, ...]", "members that must be there", NULL },
    { "additionalProperties", "true | false | SCHEMA", "members that are not listed", NULL },
    { "items", "SCHEMA", "each item of an array", NULL },
    { "enum", "[VALUE, ...]", "the values that are allowed", NULL },
    { "const", "VALUE", "the only value that is allowed", NULL },
    { "minimum", "NUMBER", "the least number", NULL },
    { "maximum", "NUMBER", "the greatest number", NULL },
    { "minLength", "NUMBER", "the least number of characters", NULL },
    { "maxLength", "NUMBER", "the greatest number of characters", NULL },
    KEY_DESCRIPTION,
    { 0 },
};

static const struct {
    const char *title;
    const struct known_key *keys;
} places[KEY_PLACE_COUNT] = {
#define X(name, table, title) [KEYS_##name] = { title, table##_keys },
    KEY_PLACES(X)
#undef X
};

/* ---- Questions ------------------------------------------------------------------------------- */

const struct known_key *vocabulary_of(enum key_place place)
{
    ASSERT(place < KEY_PLACE_COUNT);
    return places[place].keys;
}

const char *vocabulary_title(enum key_place place)
{
    ASSERT(place < KEY_PLACE_COUNT);
    return places[place].title;
}

bool vocabulary_is_free(str key)
{
    return str_starts(key, STR("x-"));
}

static bool is_listed(enum key_place place, str key)
{
    for (const struct known_key *known = vocabulary_of(place); known->word; known++)
        if (str_is(key, known->word))
            return true;
    return false;
}

bool vocabulary_has(enum key_place place, str key)
{
    return vocabulary_is_free(key) || is_listed(place, key);
}

const char *vocabulary_meant(enum key_place place, str mistake)
{
    for (const struct known_key *known = vocabulary_of(place); known->word; known++)
        if (known->mistake && str_is(mistake, known->mistake))
            return known->word;
    return NULL;
}

/* ---- What to write instead ------------------------------------------------------------------- */

#define WORDS_MAX 64 /* of two places */

static size_t add_words(const char **words, size_t count, enum key_place place)
{
    for (const struct known_key *known = vocabulary_of(place); known->word; known++) {
        size_t i = 0;

        while (i < count && strcmp(words[i], known->word) != 0)
            i++;
        if (i == count && count + 1 < WORDS_MAX)
            words[count++] = known->word;
    }
    words[count] = NULL;
    return count;
}

static const char *find_meant(enum key_place place, enum key_place beside, str key,
                              const char *const *words)
{
    const char *meant = vocabulary_meant(place, key);

    if (!meant)
        meant = vocabulary_meant(beside, key);
    return meant ? meant : words_nearest(key, words);
}

void vocabulary_hint(enum key_place place, enum key_place beside, str key, char out[KEY_HINT_SIZE])
{
    const char *words[WORDS_MAX];
    size_t count = add_words(words, add_words(words, 0, place), beside), used = 0;
    const char *meant = find_meant(place, beside, key, words);

    if (meant)
        used = (size_t)snprintf(out, KEY_HINT_SIZE, "did you mean '%s'? ", meant);
    used += (size_t)snprintf(out + used, KEY_HINT_SIZE - used, "known here: ");
    for (size_t i = 0; i < count && used < KEY_HINT_SIZE; i++)
        used += (size_t)snprintf(out + used, KEY_HINT_SIZE - used, "%s%s", i > 0 ? ", " : "",
                                 words[i]);
    if (!meant && used < KEY_HINT_SIZE)
        (void)snprintf(out + used, KEY_HINT_SIZE - used, "; a key of your own begins with x-");
}
