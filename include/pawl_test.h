/* pawl_test.h - a kit for tests of your own processes: a store in memory, a clock that only the
 * test moves, and expectations about what happened. A workflow of thirty days takes a millisecond.
 * SPDX-License-Identifier: Apache-2.0
 *
 *     pawl_kit kit;
 *     pawl_kit_open(&kit, NULL);
 *     pawl_kit_register(&kit, buff());
 *     const char *id = pawl_kit_start(&kit, "buff", "{\"duration_secs\":60}");
 *     pawl_kit_advance(&kit, PAWL_SECS(59));
 *     PAWL_EXPECT_OK(&kit, pawl_kit_signal(&kit, id, "stack", "4"));
 *     pawl_kit_advance(&kit, PAWL_SECS(60));
 *     PAWL_EXPECT_HISTORY(&kit, id, "start signal:stack timer:expire finish");
 *     PAWL_EXPECT_RESULT(&kit, id, "{\"final_stacks\":5}");
 *     pawl_kit_close(&kit);
 *
 * What is not as expected is printed on stderr, with file and line. It ends the
 * program with status 1. */
#ifndef PAWL_TEST_H
#define PAWL_TEST_H

#include <pawl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PAWL_KIT_TYPES 256
#define PAWL_KIT_IDS 64

typedef struct pawl_kit {
    pawl *p;
    pawl_error error;
    const char *url;
    const pawl_code_type *types[PAWL_KIT_TYPES];
    unsigned type_count;
    pawl_id ids[PAWL_KIT_IDS]; /* of what was started; the oldest are used again */
    unsigned id_count;
    char *text; /* what the last look gave; lives until the next */
    size_t text_size, text_room;
} pawl_kit;

#define PAWL_EXPECT_OK(kit, status) pawl_kit_expect_ok((kit), (status), __FILE__, __LINE__)
#define PAWL_EXPECT_STATUS(kit, status, wanted)                                                    \
    pawl_kit_expect_status((kit), (status), (wanted), __FILE__, __LINE__)
#define PAWL_EXPECT_HISTORY(kit, id, wanted)                                                       \
    pawl_kit_expect((kit), "history", pawl_kit_history((kit), (id)), (wanted), __FILE__, __LINE__)
#define PAWL_EXPECT_STATE(kit, id, wanted)                                                         \
    pawl_kit_expect((kit), "state", pawl_kit_state((kit), (id)), (wanted), __FILE__, __LINE__)
/* Texts as they are printed: compact JSON, members in their order. */
#define PAWL_EXPECT_RESULT(kit, id, wanted)                                                        \
    pawl_kit_expect((kit), "result", pawl_kit_member((kit), "instance.get", (id), "result"),       \
                    (wanted), __FILE__, __LINE__)
#define PAWL_EXPECT_ERROR(kit, id, wanted)                                                         \
    pawl_kit_expect((kit), "error", pawl_kit_member((kit), "instance.get", (id), "error"),         \
                    (wanted), __FILE__, __LINE__)
#define PAWL_EXPECT_VARIABLE(kit, id, name, wanted)                                                \
    pawl_kit_expect((kit), (name), pawl_kit_member((kit), "instance.variables", (id), (name)),     \
                    (wanted), __FILE__, __LINE__)

static inline void pawl_kit_die(const char *file, int line, const char *what, const char *found,
                                const char *wanted)
{
    fprintf(stderr, "%s:%d: %s: expected %s, found %s\n", file, line, what, wanted, found);
    exit(1);
}

static inline void pawl_kit_expect(pawl_kit *kit, const char *what, const char *found,
                                   const char *wanted, const char *file, int line)
{
    (void)kit;
    if (strcmp(found, wanted) != 0)
        pawl_kit_die(file, line, what, found, wanted);
}

static inline void pawl_kit_expect_status(pawl_kit *kit, pawl_status found, pawl_status wanted,
                                          const char *file, int line)
{
    char words[512];

    if (found == wanted)
        return;
    snprintf(words, sizeof words, "%s: %.400s", pawl_status_name(found),
             found == PAWL_OK ? "" : kit->error.message);
    pawl_kit_die(file, line, "status", words, pawl_status_name(wanted));
}

static inline void pawl_kit_expect_ok(pawl_kit *kit, pawl_status found, const char *file, int line)
{
    pawl_kit_expect_status(kit, found, PAWL_OK, file, line);
}

static inline void pawl_kit_open_again(pawl_kit *kit)
{
    pawl_options options;

    memset(&options, 0, sizeof options);
    options.own = true;
    options.test_clock = true;
    PAWL_EXPECT_OK(kit, pawl_open(&kit->p, kit->url, &options, &kit->error));
    for (unsigned i = 0; i < kit->type_count; i++)
        PAWL_EXPECT_OK(kit, pawl_code_register(kit->p, kit->types[i], &kit->error));
}

/* A store at `url`; NULL: in memory. The clock stands still. */
static inline void pawl_kit_open(pawl_kit *kit, const char *url)
{
    memset(kit, 0, sizeof *kit);
    kit->url = url ? url : "memory:";
    pawl_kit_open_again(kit);
}

static inline void pawl_kit_close(pawl_kit *kit)
{
    pawl_close(kit->p);
    free(kit->text);
    kit->p = NULL;
    kit->text = NULL;
    kit->text_size = kit->text_room = 0;
}

/* As if the program had died and begun again; for a store in a file. */
static inline void pawl_kit_restart(pawl_kit *kit)
{
    pawl_kit_close(kit);
    pawl_kit_open_again(kit);
}

static inline void pawl_kit_register(pawl_kit *kit, const pawl_code_type *type)
{
    PAWL_EXPECT_OK(kit, pawl_code_register(kit->p, type, &kit->error));
    if (kit->type_count == PAWL_KIT_TYPES)
        pawl_kit_die(__FILE__, __LINE__, "types", type->name, "at most 256 of them");
    kit->types[kit->type_count++] = type;
}

/* The id lives until 64 more have been started. */
static inline const char *pawl_kit_create(pawl_kit *kit, const pawl_create_args *args)
{
    pawl_id *id = &kit->ids[kit->id_count++ % PAWL_KIT_IDS];

    PAWL_EXPECT_OK(kit, pawl_create(kit->p, args, id, &kit->error));
    return id->text;
}

static inline const char *pawl_kit_start(pawl_kit *kit, const char *definition, const char *input)
{
    pawl_create_args args;

    memset(&args, 0, sizeof args);
    args.definition = definition;
    args.input = input;
    return pawl_kit_create(kit, &args);
}

/* Everything that falls due on the way happens at its time, in order. */
static inline void pawl_kit_advance(pawl_kit *kit, int64_t by_ms)
{
    PAWL_EXPECT_OK(kit, pawl_test_advance(kit->p, by_ms, &kit->error));
}

static inline pawl_status pawl_kit_signal(pawl_kit *kit, const char *id, const char *name,
                                          const char *payload)
{
    return pawl_signal(kit->p, id, name, payload, NULL, &kit->error);
}

/* ---- The text that the last look gave: as long as it is ---- */

static inline void pawl_kit_add(pawl_kit *kit, const char *text, size_t size)
{
    if (kit->text_size + size + 1 > kit->text_room) {
        kit->text_room = 2 * (kit->text_size + size + 1);
        kit->text = (char *)realloc(kit->text, kit->text_room);
        if (!kit->text)
            pawl_kit_die(__FILE__, __LINE__, "memory", "none", "enough for an answer");
    }
    memcpy(kit->text + kit->text_size, text, size);
    kit->text_size += size;
    kit->text[kit->text_size] = '\0';
}

static inline const char *pawl_kit_keep(pawl_kit *kit, const char *text, size_t size)
{
    kit->text_size = 0;
    pawl_kit_add(kit, text, size);
    return kit->text;
}

/* ---- Compact JSON, as pawl prints it ---- */

/* The size of the value that a text begins with. */
static inline size_t pawl_kit_value_size(const char *json)
{
    size_t at = 0, depth = 0;
    bool quoted = false;

    for (; json[at]; at++) {
        char c = json[at];

        if (quoted) {
            if (c == '\\' && json[at + 1])
                at++;
            else if (c == '"')
                quoted = false;
        } else if (c == '"') {
            quoted = true;
        } else if (c == '{' || c == '[') {
            depth++;
        } else if (c == '}' || c == ']' || c == ',' || c == ':') {
            if (depth == 0)
                break;
            if (c == '}' || c == ']')
                depth--;
        }
    }
    return at;
}

/* The next item of an array or object, behind `at`; NULL: no more. Begin with the text itself. */
static inline const char *pawl_kit_next(const char *at)
{
    if (*at != '{' && *at != '[' && *at != ',')
        return NULL;
    at++;
    return *at && *at != '}' && *at != ']' ? at : NULL;
}

/* The value of an object's own member, not of one within; NULL: it has none, or it is no object. */
static inline const char *pawl_kit_find(const char *object, const char *name)
{
    const char *at = object && *object == '{' ? pawl_kit_next(object) : NULL;

    while (at) {
        size_t size = pawl_kit_value_size(at);
        const char *value = at + size + 1;

        if (size == strlen(name) + 2 && strncmp(at + 1, name, size - 2) == 0)
            return value;
        at = pawl_kit_next(value + pawl_kit_value_size(value));
    }
    return NULL;
}

/* A text of an object, without its quotes; "" if it has none. *size: of it. */
static inline const char *pawl_kit_find_text(const char *object, const char *name, size_t *size)
{
    const char *value = pawl_kit_find(object, name);

    *size = value && *value == '"' ? pawl_kit_value_size(value) - 2 : 0;
    return *size ? value + 1 : "";
}

/* "start signal:stack timer:expire finish": actions, and which timer, signal or step. */
static inline const char *pawl_kit_history(pawl_kit *kit, const char *id)
{
    pawl_history *history = NULL;
    pawl_entry entry;

    pawl_kit_keep(kit, "", 0);
    PAWL_EXPECT_OK(kit, pawl_history_open(kit->p, id, NULL, &history, &kit->error));
    while (pawl_history_next(history, &entry)) {
        size_t size = 0;
        const char *name = pawl_kit_find_text(entry.payload, entry.action, &size);

        if (kit->text_size)
            pawl_kit_add(kit, " ", 1);
        pawl_kit_add(kit, entry.action, strlen(entry.action));
        if (entry.step) {
            pawl_kit_add(kit, ":", 1);
            pawl_kit_add(kit, entry.step, strlen(entry.step));
        } else if (size && (!strcmp(entry.action, "timer") || !strcmp(entry.action, "signal"))) {
            pawl_kit_add(kit, ":", 1);
            pawl_kit_add(kit, name, size);
        }
    }
    PAWL_EXPECT_OK(kit, pawl_history_close(history, &kit->error));
    return kit->text;
}

static inline const char *pawl_kit_state(pawl_kit *kit, const char *id)
{
    const char *state = "";

    PAWL_EXPECT_OK(kit, pawl_current(kit->p, id, &state, &kit->error));
    return state;
}

/* Call an operation with {"instance_id":ID}; its whole answer is kit->text. */
static inline const char *pawl_kit_ask(pawl_kit *kit, const char *operation, const char *id)
{
    char input[96], *out = NULL;

    snprintf(input, sizeof input, "{\"instance_id\":\"%s\"}", id);
    PAWL_EXPECT_OK(kit, pawl_call(kit->p, operation, input, &out, &kit->error));
    pawl_kit_keep(kit, out, strlen(out));
    pawl_free(kit->p, out);
    return kit->text;
}

/* One member of such an answer, as it is printed; of instance.variables, one variable. "" if it
 * has no such member. */
static inline const char *pawl_kit_member(pawl_kit *kit, const char *operation, const char *id,
                                          const char *name)
{
    const char *object = pawl_kit_ask(kit, operation, id), *value;
    size_t size;

    if (!strcmp(operation, "instance.variables"))
        object = pawl_kit_find(object, "variables");
    value = pawl_kit_find(object, name);
    if (!value)
        return "";
    size = pawl_kit_value_size(value);
    memmove(kit->text, value, size);
    kit->text[size] = '\0';
    kit->text_size = size;
    return kit->text;
}

/* The id of the last step that waits for an answer, or else of the last; "" without steps. */
static inline const char *pawl_kit_last_step(const char *steps, size_t *size)
{
    const char *found = "";
    bool waits = false;

    *size = 0;
    for (const char *at = steps ? pawl_kit_next(steps) : NULL; at;
         at = pawl_kit_next(at + pawl_kit_value_size(at))) {
        size_t status_size, id_size;
        const char *status = pawl_kit_find_text(at, "status", &status_size);
        const char *id = pawl_kit_find_text(at, "step_id", &id_size);
        bool is_pending = status_size == 7 && strncmp(status, "pending", 7) == 0;

        if (waits && !is_pending)
            continue;
        waits = is_pending;
        found = id;
        *size = id_size;
    }
    return found;
}

/* Answer what the instance has asked for (has(external, ...)): with a result, or with an error. */
static inline pawl_status pawl_kit_answer(pawl_kit *kit, const char *id, const char *result,
                                          const char *error)
{
    const char *json = error ? error : result;
    char *input, *out = NULL;
    size_t size = 128 + strlen(json), step_size;
    const char *steps = pawl_kit_find(pawl_kit_ask(kit, "instance.steps", id), "steps");
    const char *step = pawl_kit_last_step(steps, &step_size);
    pawl_status status;

    if (!step_size)
        pawl_kit_die(__FILE__, __LINE__, "steps", kit->text, "one that waits");
    input = (char *)malloc(size);
    if (!input)
        exit(1);
    snprintf(input, size, "{\"step_id\":\"%.*s\",\"%s\":%s}", (int)step_size, step,
             error ? "error" : "result", json);
    status = pawl_call(kit->p, error ? "step.fail" : "step.complete", input, &out, &kit->error);
    pawl_free(kit->p, out);
    free(input);
    return status;
}

#endif
