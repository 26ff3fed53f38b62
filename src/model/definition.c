/* definition.c - questions to a compiled definition, and its canonical text. */
#include "model/definition.h"
#include "base/assert.h"
#include "base/limits.h"
#include "base/planted.h"

pawl_status definition_index(struct definition *definition, struct scope *scope)
{
    uint32_t states = definition->state_count, count = definition->transition_count;
    uint32_t *start = ARENA_ARRAY(&scope->arena, uint32_t, states + 1);
    uint32_t *next = ARENA_ARRAY(&scope->arena, uint32_t, states + 1);
    uint32_t *exits = ARENA_ARRAY(&scope->arena, uint32_t, count);

    TRY_MEMORY(scope, start && next && exits);
    for (uint32_t i = 0; i < count; i++) {
        ASSERT(definition->transitions[i].from < states);
        start[definition->transitions[i].from + 1]++;
    }
    for (uint32_t s = 0; s < states; s++) {
        start[s + 1] += start[s];
        next[s] = start[s];
    }
    for (uint32_t i = 0; i < count; i++)
        exits[next[definition->transitions[i].from]++] = i;
    definition->exits = exits;
    definition->exit_start = start;
    return PAWL_OK;
}

uint32_t definition_find_state(const struct definition *definition, str name)
{
    for (uint32_t s = 0; s < definition->state_count; s++)
        if (str_eq(definition->states[s].name, name))
            return s;
    return UINT32_MAX;
}

/* The n-th way out of `state`, or NULL after the last. */
static const struct transition *exit_at(const struct definition *definition, uint32_t state,
                                        uint32_t n)
{
    uint32_t at = definition->exit_start[state] + n;

    ASSERT(state < definition->state_count);
    return at < definition->exit_start[state + 1] ? &definition->transitions[definition->exits[at]]
                                                  : NULL;
}

const struct transition *definition_find(const struct definition *definition, uint32_t state,
                                         str action)
{
    const struct transition *transition;

    for (uint32_t n = 0; (transition = exit_at(definition, state, n)); n++)
        if (str_eq(transition->action, action))
            return transition;
    return NULL;
}

const struct transition *definition_find_cancel(const struct definition *definition, uint32_t state)
{
    const struct transition *transition;

    for (uint32_t n = 0; (transition = exit_at(definition, state, n)); n++)
        if (!transition->guard.data && !transition->by_engine &&
            (definition->states[transition->to].terminal == TERMINAL_CANCEL ||
             (PLANTED(CANCEL_ANY_END) && definition->states[transition->to].terminal)))
            return transition;
    return NULL;
}

uint32_t definition_transition_index(const struct definition *d, const struct transition *t)
{
    ASSERT(t >= d->transitions);
    ASSERT(t < d->transitions + d->transition_count);
    return (uint32_t)(t - d->transitions);
}

void definition_legal_actions(const struct definition *definition, uint32_t state, struct buf *out)
{
    const struct transition *transition;
    const char *comma = "";

    for (uint32_t n = 0; (transition = exit_at(definition, state, n)); n++) {
        if (transition->by_engine)
            continue;
        buf_str(out, str_of(comma));
        buf_str(out, transition->action);
        comma = ", ";
    }
    if (comma[0] == '\0')
        buf_str(out, STR("none"));
}

const char *definition_kind_name(enum definition_kind kind)
{
    static const char *const names[] = { "unknown", "machine", "flow", "code" };

    return names[kind];
}

enum definition_kind definition_kind_read(str name)
{
    for (enum definition_kind kind = KIND_MACHINE; kind <= KIND_CODE; kind++)
        if (name.data && str_is(name, definition_kind_name(kind)))
            return kind;
    return KIND_UNKNOWN;
}

const char *instance_status_name(enum instance_status status)
{
    static const char *const names[] = { NULL,        "running", "suspended", "paused",
                                         "completed", "failed",  "cancelled" };

    return names[status];
}

bool instance_status_read(str name, enum instance_status *out)
{
    for (int i = STATUS_RUNNING; i < STATUS_COUNT; i++)
        if (str_is(name, instance_status_name((enum instance_status)i))) {
            *out = (enum instance_status)i;
            return true;
        }
    return false;
}

enum instance_status instance_status_ended(enum terminal_kind terminal)
{
    static const enum instance_status statuses[] = {
        [TERMINAL_NOT] = STATUS_ANY,           [TERMINAL_PLAIN] = STATUS_COMPLETED,
        [TERMINAL_SUCCESS] = STATUS_COMPLETED, [TERMINAL_FAILURE] = STATUS_FAILED,
        [TERMINAL_CANCEL] = STATUS_CANCELLED,
    };

    return statuses[terminal];
}

const char *terminal_kind_name(enum terminal_kind terminal)
{
    static const char *const names[] = { NULL, NULL, "success", "failure", "cancel" };

    return names[terminal];
}

static bool is_name_byte(char byte)
{
    return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') ||
           (byte >= '0' && byte <= '9') || byte == '.' || byte == '_' || byte == '/' || byte == '-';
}

bool definition_name_is_valid(str name)
{
    for (size_t i = 0; i < name.size; i++)
        if (!is_name_byte(name.data[i]))
            return false;
    return name.size > 0 && name.size <= LIMIT_NAME;
}

str reference_name(str reference)
{
    return str_before(reference, '@');
}

bool reference_split(str reference, str *name, uint32_t *version)
{
    uint64_t number = 0;

    *name = reference_name(reference);
    *version = 0;
    if (name->size == reference.size)
        return true;
    if (!str_to_u64(str_from(reference, name->size + 1), &number) || number > UINT32_MAX)
        return false;
    *version = (uint32_t)number;
    return number > 0;
}

static void print_transition(const struct transition *transition, struct buf *out)
{
    json_open(out, '{');
    json_put_u64(out, "from", transition->from);
    json_put_str(out, "action", transition->action);
    json_put_u64(out, "to", transition->to);
    json_opt_str(out, "guard", transition->guard);
    if (transition->requires_reason)
        json_put_bool(out, "requires_reason", true);
    json_opt_raw(out, "starts", transition->starts);
    if (transition->by_engine)
        json_put_text(out, "by", "engine");
    json_close(out, '}');
}

static void print_deadlines(const struct definition *definition, struct buf *out)
{
    if (definition->deadline_count == 0)
        return;
    json_put_open(out, "deadlines", '[');
    for (uint32_t i = 0; i < definition->deadline_count; i++) {
        json_open(out, '{');
        json_put_u64(out, "state", definition->deadlines[i].state);
        json_put_i64(out, "after", definition->deadlines[i].after_ms);
        json_put_u64(out, "transition", definition->deadlines[i].transition);
        json_close(out, '}');
    }
    json_close(out, ']');
}

void definition_print(const struct definition *definition, struct buf *out)
{
    json_open(out, '{');
    json_put_u64(out, "compiler", definition->compiler);
    json_put_text(out, "kind", definition_kind_name(definition->kind));
    json_put_open(out, "states", '[');
    for (uint32_t s = 0; s < definition->state_count; s++) {
        const char *terminal = terminal_kind_name(definition->states[s].terminal);

        json_open(out, '{');
        json_put_str(out, "name", definition->states[s].name);
        if (definition->states[s].terminal != TERMINAL_NOT)
            json_put_text(out, "terminal", terminal ? terminal : "plain");
        json_close(out, '}');
    }
    json_close(out, ']');
    json_put_u64(out, "initial", definition->initial);
    json_put_open(out, "transitions", '[');
    for (uint32_t i = 0; i < definition->transition_count; i++)
        print_transition(&definition->transitions[i], out);
    json_close(out, ']');
    print_deadlines(definition, out);
    json_opt_raw(out, "plan", definition->plan_text);
    json_opt_raw(out, "input", definition->input_text);
    json_close(out, '}');
}
