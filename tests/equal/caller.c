/* caller.c - a program that links pawl, driven line by line by run_equal.py:
 *
 *   caller URL            call|typed TAB OPERATION TAB INPUT   ->   {"answer":...} or
 * {"reason":...,"detail":...}
 *
 * `call` is pawl_call(); `typed` the function of pawl.h for the same operation, where there is one.
 */
#include "base/buf.h"
#include "base/node.h"
#include "base/scope.h"
#include <pawl.h>
#include <stdio.h>
#include <stdlib.h>

static pawl *p;
static pawl_error error;
static struct scope scope;

static const char *text_of(const struct node *input, const char *name)
{
    const struct node *node = node_find(input, name);

    if (!node || node->kind == NODE_NULL)
        return NULL;
    return arena_text(&scope.arena, node->kind == NODE_STRING ? node->text : node->raw);
}

/* JSON as it is written, also of a string. */
static const char *json_of(const struct node *input, const char *name)
{
    const struct node *node = node_find(input, name);

    return node && node->kind != NODE_NULL ? arena_text(&scope.arena, node->raw) : NULL;
}

static bool is_true(const struct node *input, const char *name)
{
    const char *text = json_of(input, name);

    return text && strcmp(text, "true") == 0;
}

static pawl_status typed_create(const struct node *input, struct buf *out)
{
    pawl_create_args args = { .definition = text_of(input, "definition"),
                              .declaration = json_of(input, "declaration"),
                              .input = json_of(input, "input"),
                              .actor_ref = text_of(input, "actor_ref"),
                              .subject_ref = text_of(input, "subject_ref"),
                              .correlation_id = text_of(input, "correlation_id"),
                              .labels = json_of(input, "labels"),
                              .instance_metadata = json_of(input, "instance_metadata"),
                              .instantiated_at = text_of(input, "instantiated_at"),
                              .test = is_true(input, "test"),
                              .singleton = is_true(input, "singleton"),
                              .idempotency_key = text_of(input, "idempotency_key") };
    pawl_id id;
    pawl_status status = pawl_create(p, &args, &id, &error);

    if (status == PAWL_OK)
        buf_fmt(out, "{\"instance_id\":\"%s\"}", id.text);
    return status;
}

static pawl_status typed_fire(const struct node *input, struct buf *out)
{
    const char *expected = json_of(input, "expected_sequence");
    pawl_fire_args args = { .action = text_of(input, "action"),
                            .actor_ref = text_of(input, "actor_ref"),
                            .guard_satisfied = is_true(input, "guard_satisfied"),
                            .fired_at = text_of(input, "fired_at"),
                            .reason = text_of(input, "reason"),
                            .payload = json_of(input, "payload"),
                            .expected_sequence = expected ? strtoull(expected, NULL, 10) : 0,
                            .idempotency_key = text_of(input, "idempotency_key") };
    pawl_fired fired;
    pawl_status status = pawl_fire(p, text_of(input, "instance_id"), &args, &fired, &error);

    if (status == PAWL_OK)
        buf_fmt(out, "{\"new_state\":\"%s\",\"sequence_number\":%llu,\"transition_id\":\"%s\"}",
                fired.new_state, (unsigned long long)fired.sequence_number, fired.transition_id);
    return status;
}

static pawl_status typed_cancel(const struct node *input, struct buf *out)
{
    pawl_fired fired;
    pawl_status status = pawl_cancel(p, text_of(input, "instance_id"), text_of(input, "actor_ref"),
                                     text_of(input, "reason"), &fired, &error);

    if (status == PAWL_OK)
        buf_fmt(out, "{\"new_state\":\"%s\"}", fired.new_state);
    return status;
}

static pawl_status typed_signal(const struct node *input, struct buf *out)
{
    pawl_status status =
        pawl_signal(p, text_of(input, "instance_id"), text_of(input, "name"),
                    json_of(input, "payload"), text_of(input, "actor_ref"), &error);

    if (status == PAWL_OK)
        buf_str(out, STR("{}"));
    return status;
}

static pawl_status typed_current(const struct node *input, struct buf *out)
{
    const char *state;
    pawl_status status = pawl_current(p, text_of(input, "instance_id"), &state, &error);

    if (status == PAWL_OK)
        buf_fmt(out, "{\"current_state\":\"%s\"}", state);
    return status;
}

static pawl_status typed_define(const struct node *input, struct buf *out)
{
    const char *text = text_of(input, "text");
    pawl_defined defined;
    pawl_status status = pawl_define(p, text, strlen(text), &defined, &error);

    if (status == PAWL_OK)
        buf_fmt(out, "{\"name\":\"%s\",\"version\":%u,\"sha256\":\"%s\"}", defined.name,
                defined.version, defined.sha256);
    return status;
}

static const struct {
    const char *operation;
    pawl_status (*call)(const struct node *input, struct buf *out);
} typed[] = {
    { "instance.create", typed_create },   { "instance.fire", typed_fire },
    { "instance.cancel", typed_cancel },   { "signal.send", typed_signal },
    { "instance.current", typed_current }, { "definition.put", typed_define },
};

/* False: there is no such function. */
static bool call_typed(const char *operation, const char *input, pawl_status *status,
                       struct buf *out)
{
    struct node *node;

    for (size_t i = 0; i < sizeof typed / sizeof *typed; i++) {
        if (strcmp(typed[i].operation, operation) != 0)
            continue;
        if (node_read_json(&scope, str_of(input), &node) != PAWL_OK)
            return false;
        *status = typed[i].call(node, out);
        return true;
    }
    return false;
}

static pawl_status call_by_name(const char *operation, const char *input, struct buf *out)
{
    char *answer = NULL;
    pawl_status status = pawl_call(p, operation, input, &answer, &error);

    buf_str(out, str_of(answer ? answer : ""));
    pawl_free(p, answer);
    return status;
}

static void say(pawl_status status, const struct buf *answer)
{
    struct buf line;

    buf_init(&line, &heap_libc, 0);
    json_open(&line, '{');
    if (status == PAWL_OK) {
        json_key(&line, "answer");
        json_raw(&line, buf_view(answer));
    } else {
        json_key(&line, "reason");
        json_text(&line, pawl_status_name(status));
        json_key(&line, "detail");
        json_text(&line, error.message);
    }
    json_close(&line, '}');
    puts(buf_text(&line));
    fflush(stdout);
    buf_fini(&line);
}

static void take(char *line)
{
    char *operation = strchr(line, '\t'), *input = operation ? strchr(operation + 1, '\t') : NULL;
    pawl_status status = PAWL_OK;
    struct buf answer;

    if (!input) {
        puts("{\"wrong\":true}");
        return;
    }
    *operation++ = 0;
    *input++ = 0;
    buf_init(&answer, &heap_libc, 0);
    if (strcmp(line, "call") == 0)
        status = call_by_name(operation, input, &answer);
    else if (!call_typed(operation, input, &status, &answer))
        status = call_by_name(operation, input, &answer);
    say(status, &answer);
    buf_fini(&answer);
    scope_clear(&scope);
}

int main(int argc, char **argv)
{
    char *line = NULL;
    size_t room = 0;
    ssize_t size;

    if (argc != 2 || pawl_open(&p, argv[1], &(pawl_options){ .own = true }, &error) != PAWL_OK) {
        fprintf(stderr, "%s\n", error.message);
        return 2;
    }
    scope_init(&scope, &heap_libc, 64u << 20);
    while ((size = getline(&line, &room, stdin)) > 0) {
        line[size - 1] = 0;
        take(line);
    }
    free(line);
    scope_fini(&scope);
    pawl_close(p);
    return 0;
}
