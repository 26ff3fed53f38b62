/* countdown.c - a code type that every pawl binary brings: it counts down by a durable timer.
 *
 * Input {"from": 3, "every": "1s"}. Signals: `stop` ends it with {"stopped_at": N}, `add`
 * (payload: a whole number) makes it longer. At zero it ends with {"ticks": N}. */
#include "api/modules.h"
#include "base/node.h"
#include "base/time.h"
#include "surface/cli/cli.h"

#define COUNT_MAX    1000000000
#define EVERY_MS     1000
#define INPUT_MEMORY ((size_t)4 << 20)

struct countdown {
    int64_t remaining, every_ms, ticks;
};

static const pawl_var countdown_vars[] = {
    PAWL_VAR(struct countdown, remaining, PAWL_VAR_INT64),
    PAWL_VAR(struct countdown, every_ms, PAWL_VAR_INT64),
    PAWL_VAR(struct countdown, ticks, PAWL_VAR_INT64),
    { 0 },
};
static const char *const countdown_timers[] = { "tick", NULL };
static const char *const countdown_signals[] = { "stop", "add", NULL };

static bool read_count(const struct node *node, int64_t *out)
{
    return node && node_to_i64(node, out) && *out >= 0 && *out <= COUNT_MAX;
}

static void end_with(pawl_turn *turn, const char *name, int64_t count)
{
    char result[64];

    snprintf(result, sizeof result, "{\"%s\":%lld}", name, (long long)count);
    pawl_turn_complete(turn, result);
}

static void go_on(pawl_turn *turn, const struct countdown *state)
{
    if (state->remaining == 0) {
        end_with(turn, "ticks", state->ticks);
        return;
    }
    pawl_turn_timer(turn, "tick", state->every_ms);
    pawl_turn_signal(turn, "stop");
    pawl_turn_signal(turn, "add");
}

static void start(pawl_turn *turn, struct countdown *state, const struct node *input)
{
    const struct node *every = node_find(input, "every");

    state->every_ms = EVERY_MS;
    if (!read_count(node_find(input, "from"), &state->remaining))
        pawl_turn_fail(turn, "\"countdown: 'from' must be a whole number of 0 or more\"");
    else if (every &&
             (every->kind != NODE_STRING || !duration_parse(every->text, &state->every_ms)))
        pawl_turn_fail(turn, "\"countdown: 'every' must be a duration, like '1s'\"");
    else
        go_on(turn, state);
}

static void take_signal(pawl_turn *turn, struct countdown *state, const char *name,
                        const struct node *payload)
{
    int64_t more;

    if (strcmp(name, "stop") == 0) {
        end_with(turn, "stopped_at", state->remaining);
        return;
    }
    if (read_count(payload, &more) && state->remaining + more <= COUNT_MAX)
        state->remaining += more;
    go_on(turn, state);
}

static void countdown_handle(void *context, pawl_turn *turn, void *memory, const pawl_event *event)
{
    struct countdown *state = memory;
    struct scope scope;
    struct node *payload = NULL;

    (void)context;
    scope_init(&scope, &heap_libc, INPUT_MEMORY);
    if (node_read_json(&scope, str_of(event->payload ? event->payload : "null"), &payload) !=
        PAWL_OK)
        payload = NULL;
    switch (event->kind) {
    case PAWL_EVENT_START:
        start(turn, state, payload);
        break;
    case PAWL_EVENT_TIMER:
        state->remaining--;
        state->ticks++;
        go_on(turn, state);
        break;
    case PAWL_EVENT_SIGNAL:
        take_signal(turn, state, event->name, payload);
        break;
    case PAWL_EVENT_CALL:
    case PAWL_EVENT_CALL_FAILED:
    case PAWL_EVENT_CHILD:
    case PAWL_EVENT_CHILD_FAILED:
        break; /* it asks for none */
    }
    scope_fini(&scope);
}

pawl_status countdown_register(pawl *p, pawl_error *error)
{
    static const pawl_code_type type = {
        .name = "countdown",
        .version = 1,
        .timers = countdown_timers,
        .signals = countdown_signals,
        .vars = countdown_vars,
        .state_size = sizeof(struct countdown),
        .handle = countdown_handle,
    };

    return api_code_offer(p, &type, error);
}
