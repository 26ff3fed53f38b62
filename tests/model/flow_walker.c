/* flow_walker.c - the reducer of flows, taken along the ways that a model names.
 *
 * A line is "DEFINITION<tab>WAYS", and WAYS a tree of events: "1d(2d 3x(4d))" is 1d, then either
 * 2d, or 3x and 4d. An event is ORDINAL LETTER [@NAME] [=JSON], the letters being those of
 * `letters`; JSON has neither spaces nor parentheses. The answer: "put", with what was found
 * behind it, or "refused"; then for the beginning and for each event, in order, a line
 * "STATE|LIVE|CONTEXT|SAID", or "refused REASON"; then an empty line. LIVE is a list of
 * ORDINAL:STEP:ATTEMPT:STATUS; SAID tells what tools are called with, children that are wanted, and
 * how the flow ended. walking.py holds a model against it. */
#include "base/limits.h"
#include "flow/flow.h"
#include "flow/memory.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SAID_SIZE 4000

static const struct letter {
    char letter;
    enum event_kind kind;
    const char *name; /* of a timer of the engine's own */
    bool no_retry;
    enum terminal_kind outcome;
} letters[] = {
    { 'd', EVENT_STEP_DONE, NULL, false, TERMINAL_NOT },
    { 'x', EVENT_STEP_FAILED, NULL, true, TERMINAL_NOT }, /* for good */
    { 'e', EVENT_STEP_FAILED, NULL, false, TERMINAL_NOT },
    { 'l', EVENT_STEP_LOST, NULL, false, TERMINAL_NOT },
    { 'o', EVENT_TIMER, "~timeout", false, TERMINAL_NOT },
    { 'r', EVENT_TIMER, "~retry", false, TERMINAL_NOT },
    { 'w', EVENT_TIMER, NULL, false, TERMINAL_NOT },
    { 's', EVENT_SIGNAL, NULL, false, TERMINAL_NOT },
    { 'g', EVENT_APPROVE, NULL, false, TERMINAL_NOT },
    { 'j', EVENT_REJECT, NULL, false, TERMINAL_NOT },
    { 'c', EVENT_CHILD, NULL, false, TERMINAL_SUCCESS },
    { 'y', EVENT_CHILD, NULL, false, TERMINAL_FAILURE },
    { 'z', EVENT_CHILD, NULL, false, TERMINAL_CANCEL },
};

struct place {
    struct buf memory; /* printed: what a restart would read */
    uint32_t state;
};

static struct scope plans; /* the definition's */
static struct scope scope; /* of one event */
static struct definition *definition;
static char said[SAID_SIZE];
static size_t said_size;

static void fail(const char *what)
{
    printf("%s: %s\n", what, scope.error.message);
    exit(1);
}

static void say(const char *word, uint32_t ordinal, str text)
{
    int size = snprintf(said + said_size, SAID_SIZE - said_size, "%s%s %u %.*s",
                        said_size > 0 ? ";" : "", word, ordinal, STR_ARG(text));

    if (size < 0 || (size_t)size >= SAID_SIZE - said_size)
        fail("too much is said");
    said_size += (size_t)size;
}

/* ---- One event after another ------------------------------------------------------------- */

static pawl_status apply(struct flow_memory *memory, struct place *place, struct event event);

/* A worker takes what is ready at once, and is told what to do. */
static void start_ready(struct flow_memory *memory, struct place *place)
{
    for (uint32_t i = 0; place->state == LIFE_RUNNING && i < memory->live_count; i++) {
        uint32_t ordinal = memory->live[i].ordinal;
        struct flow_call call;

        if (memory->live[i].status != STEP_READY)
            continue;
        if (apply(memory, place, (struct event){ .kind = EVENT_STEP_START, .ordinal = ordinal }) !=
                PAWL_OK ||
            flow_call(definition, memory, ordinal, &scope, &call) != PAWL_OK)
            fail("start");
        if (!str_is(call.args, "{}"))
            say("call", ordinal, call.args);
    }
}

static void tell_children(const struct draft *draft)
{
    for (uint32_t i = 0; i < draft->effects.count; i++) {
        const struct effect *effect = &draft->effects.items[i];

        if (effect->kind == EFFECT_SPAWN) {
            say(effect->is_abandoned ? "abandon" : "spawn", effect->ordinal,
                effect->input.data ? effect->input : STR("{}"));
        }
    }
}

static void fold(struct flow_memory *memory, struct place *place, const struct draft *draft)
{
    struct entry_view entry = { .transition = draft->transition,
                                .step = draft->step,
                                .ordinal = draft->ordinal,
                                .attempt = draft->attempt,
                                .payload = draft->payload,
                                .actor = draft->actor,
                                .effects = &draft->effects };
    pawl_status status =
        draft->keep.data
            ? flow_behavior.keep(memory, draft->keep, draft->payload, &scope, &scope.arena)
            : flow_behavior.apply(definition, memory, &entry, &scope, &scope.arena);

    if (status != PAWL_OK)
        fail("apply");
    if (draft->keep.data)
        return;
    place->state = definition->transitions[draft->transition].to;
    tell_children(draft);
    if (place->state > LIFE_RUNNING)
        say("end", 0, draft->payload);
}

static pawl_status apply(struct flow_memory *memory, struct place *place, struct event event)
{
    struct standing standing = { .state = place->state, .memory = memory };
    struct decision decision = { 0 };
    pawl_status status;

    event.is_leased = true;
    status = flow_behavior.decide(definition, &standing, &event, &scope, &decision);
    for (uint32_t i = 0; status == PAWL_OK && i < decision.count; i++)
        fold(memory, place, &decision.drafts[i]);
    return status;
}

/* What was kept is taken in the same breath in which somebody begins to wait for it. */
static pawl_status apply_all(struct flow_memory *memory, struct place *place, struct event event)
{
    pawl_status status = apply(memory, place, event);

    while (status == PAWL_OK && place->state == LIFE_RUNNING && flow_behavior.wakes(memory))
        if (apply(memory, place, (struct event){ .kind = EVENT_WAKE }) != PAWL_OK)
            fail("wake");
    if (status == PAWL_OK)
        start_ready(memory, place);
    return status;
}

/* ---- What is told of a place ---------------------------------------------------------------- */

static void tell(const struct flow_memory *memory, const struct place *place)
{
    struct buf context;

    printf("%s|", definition->states[place->state].name.data);
    for (uint32_t i = 0; i < memory->live_count; i++) {
        const struct attempt *live = &memory->live[i];

        printf("%s%u:%s:%u:%s", i > 0 ? "," : "", live->ordinal,
               flow_step_name(definition, live->plan).data, live->attempt,
               step_status_name(live->status));
    }
    buf_init(&context, &heap_libc, 0);
    flow_print_context(memory, &context);
    printf("|%s|%.*s\n", buf_text(&context), (int)said_size, said);
    buf_fini(&context);
}

static void print_memory(struct flow_memory *memory, struct place *place)
{
    buf_init(&place->memory, &heap_libc, 0);
    flow_behavior.memory_print(definition, memory, &place->memory);
}

static struct flow_memory *load_memory(const struct place *place)
{
    void *memory = NULL;

    if (flow_behavior.memory_load(definition, (str){ place->memory.data, place->memory.size },
                                  STR("{\"q\":7}"), &scope, &scope.arena, &memory) != PAWL_OK)
        fail("load");
    return memory;
}

/* ---- The ways ----------------------------------------------------------------------------------
 */

static str read_word(char **at, char mark)
{
    str word = STR_NONE;

    if (**at == mark) {
        word = (str){ *at + 1, strcspn(*at + 1, mark == '=' ? "() " : "=() ") };
        *at += word.size + 1;
    }
    return arena_str(&scope.arena, word);
}

static struct event read_event(char **at)
{
    struct event event = { .ordinal = (uint32_t)strtoul(*at, at, 10) };
    const struct letter *letter = letters;

    while (letter->letter != **at)
        if (++letter == letters + sizeof letters / sizeof letters[0])
            fail("an event of no known letter");
    (*at)++;
    event.kind = letter->kind;
    event.no_retry = letter->no_retry;
    event.outcome = letter->outcome;
    event.name = event.actor = read_word(at, '@');
    event.payload = read_word(at, '=');
    if (letter->name)
        event.name = str_of(letter->name);
    return event;
}

/* One event, from a memory that was read anew. False: it was refused. */
static bool happen(const struct place *place, char **at, struct place *next)
{
    struct flow_memory *memory;
    pawl_status status;

    scope_clear(&scope);
    memory = load_memory(place);
    next->state = place->state;
    said_size = 0;
    status = apply_all(memory, next, read_event(at));
    if (status != PAWL_OK) {
        printf("refused %s\n", pawl_status_name(status));
        return false;
    }
    print_memory(memory, next);
    tell(memory, next);
    return true;
}

/* All that may happen next at this place, up to the closing parenthesis. */
static void walk(const struct place *place, char **at)
{
    while (**at && **at != ')') {
        struct place next;
        bool is_accepted = happen(place, at, &next);

        if (**at == '(') {
            (*at)++;
            walk(is_accepted ? &next : place, at);
            (*at)++;
        }
        *at += **at == ' ';
        if (is_accepted)
            buf_fini(&next.memory);
    }
}

static void begin(struct place *place)
{
    struct flow_memory *memory =
        flow_behavior.memory_new(definition, STR("{\"q\":7}"), &scope.arena);

    said_size = 0;
    if (!memory || apply_all(memory, place, (struct event){ .kind = EVENT_START }) != PAWL_OK)
        fail("start");
    print_memory(memory, place);
    tell(memory, place);
}

static bool put(char *text)
{
    struct findings findings = { 0 };
    struct node *document = NULL;

    if (node_read_json(&plans, str_of(text), &document) != PAWL_OK ||
        flow_compile(&plans, document, &findings, &definition) != PAWL_OK) {
        printf("refused\n");
        return false;
    }
    printf("put");
    for (uint32_t i = 0; i < findings.count; i++)
        printf("|%s", findings.items[i].message);
    printf("\n");
    return true;
}

static void run(char *line)
{
    struct place place = { .state = LIFE_CREATED };
    char *ways = strchr(line, '\t');

    scope_init(&plans, &heap_libc, 0);
    scope_init(&scope, &heap_libc, 0);
    *ways++ = '\0';
    if (put(line)) {
        begin(&place);
        walk(&place, &ways);
        buf_fini(&place.memory);
    }
    printf("\n");
    scope_fini(&scope);
    scope_fini(&plans);
}

int main(void)
{
    char *line = NULL;
    size_t capacity = 0;
    ssize_t size;

    while ((size = getline(&line, &capacity, stdin)) > 0) {
        line[size - 1] = '\0';
        run(line);
    }
    free(line);
    return 0;
}
