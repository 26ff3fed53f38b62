/* flow_driver.c - the reducer of flows, driven through every order of events.
 *
 * Reads a definition a line (JSON), and for each prints what happens on every path:
 * "PATH|LIVE|STATE", PATH being the names of the steps something happened to so far, LIVE those
 * that are under way, both joined by commas; then an empty line. The first letter of a step's name
 * says what happens to it, one thing after another: see `fates`. A step X is a select: either of
 * its arms may be taken, "X1/0" or "X1/1". Of a line that begins with ~ the flow is also cancelled
 * at each place, which is "~" in the path. run_flow_model.py holds a model of its own against it.
 */
#include "base/limits.h"
#include "flow/flow.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PATH_SIZE 400
#define STAGES    3
#define ARMS      2

enum happening {
    OVER,
    DONE,
    FAILS,
    BREAKS,
    LOST,
    RETRY,
    TIMEOUT,
    TIMER,
    SIGNAL,
    YES,
    YES_TOO,
    NO,
    CHILD
};

static const struct fate {
    char letter;
    enum happening happens[STAGES];
} fates[] = {
    { 'S', { DONE } },                /* its result is false */
    { 'T', { DONE } },                /* its result is true */
    { 'F', { BREAKS } },              /* and is not tried again */
    { 'R', { FAILS, RETRY, DONE } },  /* two attempts, a backoff between them */
    { 'Q', { FAILS, RETRY, FAILS } }, /* two attempts are all it has */
    { 'L', { LOST, DONE } },          /* with its process; it may be repeated at once */
    { 'O', { TIMEOUT } },             /* its only attempt takes too long */
    { 'W', { TIMER } },               /* it waits for a time */
    { 'V', { SIGNAL } },              /* for a signal that is called like the step */
    { 'G', { YES } },                 /* for anybody's approval */
    { 'A', { YES, YES_TOO } },        /* for two people's */
    { 'J', { NO } },                  /* and is rejected */
    { 'B', { YES, NO } },             /* rejected by the second */
    { 'E', { DONE } },                /* for somebody outside */
    { 'C', { CHILD } },               /* for a child that ends well */
    { 'D', { CHILD } },               /* that fails */
    { 'K', { CHILD } },               /* that is cancelled */
};

struct place {
    str memory; /* printed: what a restart would read */
    uint32_t state;
};

static struct scope scope;
static struct definition *definition;
static bool is_cancelled_anywhere; /* at each place of each path, once */

static void fail(const char *what)
{
    printf("refused: %s: %s\n\n", what, scope.error.message);
    exit(1);
}

static void *load(const struct place *place)
{
    void *memory = NULL;

    if (!place->memory.data)
        memory = flow_behavior.memory_new(definition, STR("{}"), &scope.arena);
    else if (flow_behavior.memory_load(definition, place->memory, STR("{}"), &scope, &scope.arena,
                                       &memory) != PAWL_OK)
        fail("load");
    return memory;
}

static void apply(void *memory, struct place *place, struct event event);

/* A worker takes what is ready at once. */
static bool is_ready(const struct effect *effect)
{
    return effect->kind == EFFECT_READY ||
           (effect->kind == EFFECT_STEP && effect->status == STEP_READY);
}

static void fold(void *memory, struct place *place, const struct draft *draft)
{
    struct entry_view entry = { .transition = draft->transition,
                                .step = draft->step,
                                .ordinal = draft->ordinal,
                                .attempt = draft->attempt,
                                .payload = draft->payload,
                                .actor = draft->actor,
                                .effects = &draft->effects };

    if (flow_behavior.apply(definition, memory, &entry, &scope, &scope.arena) != PAWL_OK)
        fail("apply");
    place->state = definition->transitions[draft->transition].to;
    for (uint32_t i = 0; i < draft->effects.count; i++)
        if (is_ready(&draft->effects.items[i]) && place->state == LIFE_RUNNING)
            apply(memory, place,
                  (struct event){ .kind = EVENT_STEP_START,
                                  .ordinal = draft->effects.items[i].ordinal });
}

static bool is_awaited(void *memory, const struct place *place, struct event event)
{
    struct standing standing = { .state = place->state, .memory = memory };
    struct decision decision = { 0 };

    return flow_behavior.decide(definition, &standing, &event, &scope, &decision) !=
           PAWL_NOT_AWAITING;
}

static void apply(void *memory, struct place *place, struct event event)
{
    struct standing standing = { .state = place->state, .memory = memory };
    struct decision decision = { 0 };

    event.is_leased = true;
    if (flow_behavior.decide(definition, &standing, &event, &scope, &decision) != PAWL_OK)
        fail("decide");
    for (uint32_t i = 0; i < decision.count; i++)
        fold(memory, place, &decision.drafts[i]);
}

static void print(void *memory, struct place *place)
{
    struct buf buf;

    buf_init(&buf, &heap_libc, 0);
    flow_behavior.memory_print(definition, memory, &buf);
    place->memory = buf_keep(&buf, &scope.arena);
    buf_fini(&buf);
}

/* How often a step, or an arm of it, is named in the path. */
static uint32_t times_named(const char *path, str name)
{
    uint32_t count = 0;

    for (const char *at = path; *at;) {
        size_t size = strcspn(at, ",");

        count += size >= name.size && memcmp(at, name.data, name.size) == 0 &&
                 (size == name.size || at[name.size] == '/');
        at += size + (at[size] == ',');
    }
    return count;
}

/* What happens next to a step; a step that is reached again begins anew. */
static enum happening next_of(str name, const char *path)
{
    for (size_t i = 0; i < sizeof fates / sizeof fates[0]; i++) {
        uint32_t stages = 1;

        if (fates[i].letter != name.data[0])
            continue;
        while (stages < STAGES && fates[i].happens[stages] != OVER)
            stages++;
        return fates[i].happens[times_named(path, name) % stages];
    }
    fail("a step of no known fate");
    return OVER;
}

static struct event event_of(enum happening next, str name, uint32_t ordinal)
{
    struct event event = { .ordinal = ordinal, .payload = STR("false") };

    event.kind = next == DONE                      ? EVENT_STEP_DONE
                 : next == FAILS || next == BREAKS ? EVENT_STEP_FAILED
                 : next == LOST                    ? EVENT_STEP_LOST
                 : next == SIGNAL                  ? EVENT_SIGNAL
                 : next == YES || next == YES_TOO  ? EVENT_APPROVE
                 : next == NO                      ? EVENT_REJECT
                 : next == CHILD                   ? EVENT_CHILD
                                                   : EVENT_TIMER;
    event.no_retry = next == BREAKS;
    event.outcome = name.data[0] == 'D'   ? TERMINAL_FAILURE
                    : name.data[0] == 'K' ? TERMINAL_CANCEL
                                          : TERMINAL_SUCCESS;
    event.name = next == RETRY ? STR("~retry") : next == TIMEOUT ? STR("~timeout") : name;
    event.actor = next == YES ? STR("ann") : STR("bob");
    if (name.data[0] == 'T')
        event.payload = STR("true");
    return event;
}

static void explore(const struct place *place, const char *path);

static void take(const struct place *place, const char *path, struct event event, const char *word)
{
    struct place next = *place;
    char longer[PATH_SIZE];
    void *memory = load(place);

    apply(memory, &next, event);
    print(memory, &next);
    if (snprintf(longer, sizeof longer, "%s%s%s", path, *path ? "," : "", word) >=
        (int)sizeof longer)
        fail("path");
    explore(&next, longer);
}

/* A select: the signal that is its first arm, or the timer that is its second. */
static void take_arms(const struct place *place, const char *path, str name, uint32_t ordinal)
{
    static const enum happening arms[ARMS] = { SIGNAL, TIMER };
    char word[64];

    for (int arm = 0; arm < ARMS; arm++) {
        snprintf(word, sizeof word, "%.*s/%d", STR_ARG(name), arm);
        take(place, path, event_of(arms[arm], name, ordinal), word);
    }
}

static void explore(const struct place *place, const char *path)
{
    void *memory = load(place);
    const char *mark = "";

    printf("%s|", path);
    for (uint32_t i = 0; place->state == LIFE_RUNNING && i < flow_step_count(definition); i++)
        if (flow_live_ordinal(memory, i) != 0) {
            printf("%s%s", mark, flow_step_name(definition, i).data);
            mark = ",";
        }
    printf("|%s\n", definition->states[place->state].name.data);
    if (is_cancelled_anywhere && place->state == LIFE_RUNNING && !strchr(path, '~'))
        take(place, path, (struct event){ .kind = EVENT_CANCEL }, "~");
    for (uint32_t i = 0; place->state == LIFE_RUNNING && i < flow_step_count(definition); i++) {
        uint32_t ordinal = flow_live_ordinal(memory, i);
        str name = flow_step_name(definition, i);

        if (ordinal > 0 && strcmp(flow_step_kind(definition, i), "group") == 0) {
            struct event over = { EVENT_TIMER, .ordinal = ordinal, .name = STR("~timeout") };

            if (is_awaited(memory, place, over)) /* its time is over, once */
                take(place, path, over, name.data);
        } else if (ordinal > 0 && name.data[0] == 'X')
            take_arms(place, path, name, ordinal);
        else if (ordinal > 0)
            take(place, path, event_of(next_of(name, path), name, ordinal), name.data);
    }
}

static void run(char *line)
{
    struct node *document = NULL;
    struct place place = { .state = LIFE_CREATED };
    void *memory;

    scope_init(&scope, &heap_libc, 0);
    is_cancelled_anywhere = *line == '~';
    line += is_cancelled_anywhere;
    if (node_read_json(&scope, str_of(line), &document) != PAWL_OK ||
        flow_compile(&scope, document, NULL, &definition) != PAWL_OK) {
        printf("refused: %s\n\n", scope.error.message);
    } else {
        memory = load(&place);
        apply(memory, &place, (struct event){ .kind = EVENT_START });
        print(memory, &place);
        explore(&place, "");
        printf("\n");
    }
    scope_fini(&scope);
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
