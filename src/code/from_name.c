/* from_name.c - names and payloads as they come from outside, for programs that hold a code type:
 * which timer or signal is meant, and what it brings (E20). */
#include "base/limits.h"
#include "code/code_int.h"

static const char *find_wire(const char *const *names, const char *wire_name)
{
    char wire[LIMIT_NAME + 1];

    for (; names && *names && wire_name; names++)
        if (pawl_wire_name(*names, wire, sizeof wire) < sizeof wire && strcmp(wire, wire_name) == 0)
            return *names;
    return NULL;
}

const char *pawl_timer_from_name(const pawl_code_type *type, const char *wire_name)
{
    return type ? find_wire(type->timers, wire_name) : NULL;
}

const char *pawl_signal_from_name(const pawl_code_type *type, const char *wire_name)
{
    return type ? find_wire(type->signals, wire_name) : NULL;
}

static pawl_status fail_unknown(struct scope *scope, const pawl_code_type *type,
                                const char *wire_name)
{
    char wire[LIMIT_NAME + 1];
    struct buf names;
    pawl_status status;

    buf_init(&names, scope->arena.heap, LIMIT_TEXT);
    for (const char *const *name = type->signals; name && *name; name++) {
        (void)pawl_wire_name(*name, wire, sizeof wire);
        buf_item(&names, str_of(wire));
    }
    status = scope_fail(scope, PAWL_NOT_KNOWN,
                        "code type '%s' has no signal '%.80s'; its signals: %.*s",
                        type->name ? type->name : "", wire_name,
                        STR_ARG(names.size > 0 ? buf_view(&names) : STR("none")));
    if (names.failed)
        status = scope_no_memory(scope);
    buf_fini(&names);
    return status;
}

/* As a turn does: a type without payloads has no struct to fill, and its caller passes none. */
static pawl_status read_signal(struct scope *scope, const pawl_code_type *type,
                               const pawl_event *event, void *got)
{
    struct node *node;
    pawl_status status = node_read_json(scope, str_of(event->payload), &node);

    if (status == PAWL_INVALID_REQUEST)
        return scope_fail(scope, status, "the payload of '%s' is not JSON", event->name);
    if (status != PAWL_OK || !got)
        return status;
    memset(got, 0, type->payload_size);
    return payload_read(scope, type, event, SHAPE_SENT, got);
}

pawl_status pawl_signal_from_name_and_payload(const pawl_code_type *type, const char *wire_name,
                                              const char *payload_json, void *got,
                                              pawl_event *out, pawl_error *error)
{
    pawl_event event = { .kind = PAWL_EVENT_SIGNAL,
                         .name = wire_name,
                         .payload = payload_json ? payload_json : "null",
                         .value = got };
    struct scope scope;
    pawl_status status;

    scope_init(&scope, &heap_libc, LIMIT_SCOPE);
    if (!type || !wire_name || !out)
        status = scope_fail(&scope, PAWL_INVALID_REQUEST,
                            "pawl_signal_from_name_and_payload: expected %s, found NULL",
                            !type ? "type" : !wire_name ? "wire_name" : "out");
    else if (!pawl_signal_from_name(type, wire_name))
        status = fail_unknown(&scope, type, wire_name);
    else
        status = read_signal(&scope, type, &event, got);
    if (status == PAWL_OK)
        *out = event;
    else if (error)
        *error = scope.error;
    scope_fini(&scope);
    return status;
}
