/* flow_driver.c - the reducer of flows, driven through every order of answers.
 *
 * Reads a definition a line (JSON), and for each prints what happens on every path:
 * "PATH|LIVE|STATE", PATH being the names of the steps answered so far, LIVE those that are being
 * worked on, both joined by commas; then an empty line. A step whose name begins with F fails, one
 * with T has the result true, all others false. run_flow_model.py holds a model of its own against
 * it. */
#include "base/limits.h"
#include "flow/flow.h"
#include <stdio.h>
#include <stdlib.h>

#define PATH_SIZE 400

struct place {
    str memory; /* printed: what a restart would read */
    uint32_t state;
};

static struct scope scope;
static struct definition *definition;

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

static void apply(void *memory, struct place *place, struct event event, bool starts);

static void fold(void *memory, struct place *place, const struct draft *draft)
{
    struct entry_view entry = { .transition = draft->transition,
                                .step = draft->step,
                                .ordinal = draft->ordinal,
                                .attempt = draft->attempt,
                                .payload = draft->payload,
                                .effects = &draft->effects };

    if (flow_behavior.apply(definition, memory, &entry, &scope, &scope.arena) != PAWL_OK)
        fail("apply");
    place->state = definition->transitions[draft->transition].to;
    for (uint32_t i = 0; i < draft->effects.count; i++)
        if (draft->effects.items[i].kind == EFFECT_STEP && place->state == LIFE_RUNNING)
            apply(memory, place,
                  (struct event){ .kind = EVENT_STEP_START,
                                  .ordinal = draft->effects.items[i].ordinal },
                  false);
}

static void apply(void *memory, struct place *place, struct event event, bool starts)
{
    struct standing standing = { .state = place->state, .memory = memory };
    struct decision decision = { 0 };

    (void)starts;
    event.is_leased = event.no_retry = true;
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

static struct event answer_of(const char *name, uint32_t ordinal)
{
    return (struct event){ .kind = name[0] == 'F' ? EVENT_STEP_FAILED : EVENT_STEP_DONE,
                           .ordinal = ordinal,
                           .payload = name[0] == 'T' ? STR("true") : STR("false") };
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
    for (uint32_t i = 0; place->state == LIFE_RUNNING && i < flow_step_count(definition); i++) {
        uint32_t ordinal = flow_live_ordinal(memory, i);
        struct place next = *place;
        char longer[PATH_SIZE];
        void *again;

        if (ordinal == 0)
            continue;
        again = load(place);
        apply(again, &next, answer_of(flow_step_name(definition, i).data, ordinal), true);
        print(again, &next);
        if (snprintf(longer, sizeof longer, "%s%s%s", path, *path ? "," : "",
                     flow_step_name(definition, i).data) >= (int)sizeof longer)
            fail("path");
        explore(&next, longer);
    }
}

static void run(char *line)
{
    struct node *document = NULL;
    struct place place = { .state = LIFE_CREATED };
    void *memory;

    scope_init(&scope, &heap_libc, 0);
    if (node_read_json(&scope, str_of(line), &document) != PAWL_OK ||
        flow_compile(&scope, document, NULL, &definition) != PAWL_OK) {
        printf("refused: %s\n\n", scope.error.message);
    } else {
        memory = load(&place);
        apply(memory, &place, (struct event){ .kind = EVENT_START }, true);
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
