/* loop.c - a host with a loop of its own and no threads: it polls its own descriptors and pawl's,
 * and does what is due. A flow whose tool fails once, and a code type that ticks by a durable
 * timer, run to their ends so. */
#include <pawl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define TICK_MS 5

static const char flow[] =
    "name: parcel\nsteps:\n"
    "  start: {name: weigh, tool: weigh, args: {of: \"{{input.what}}\"}, next: label,\n"
    "          retry: {max: 3, backoff: [5ms]}}\n"
    "  label: {tool: set, args: {grams: \"{{steps.weigh.result}}\"}, done: true}\n";

struct scales {
    int calls;
};

static void weigh(void *context, const pawl_tool_call *call, pawl_tool_answer *answer)
{
    struct scales *scales = context;

    if (++scales->calls == 1)
        pawl_answer_error(answer, "\"the scales swing\"");
    else
        pawl_answer_result(answer, strstr(call->args, "\"tea\"") ? "250" : "0");
}

struct ticker {
    int64_t left, ticks;
};

static void tick(void *context, pawl_turn *turn, void *state, const pawl_event *event)
{
    struct ticker *ticker = state;
    char result[32];

    (void)context;
    if (event->kind == PAWL_EVENT_START)
        ticker->left = 3;
    else {
        ticker->left--;
        ticker->ticks++;
    }
    if (ticker->left > 0) {
        pawl_turn_timer(turn, "tick", TICK_MS);
        return;
    }
    snprintf(result, sizeof result, "%lld", (long long)ticker->ticks);
    pawl_turn_complete(turn, result);
}

static pawl_status begin(pawl *p, struct scales *scales, pawl_id ids[2], pawl_error *err)
{
    static const char *const timers[] = { "tick", NULL };
    static const pawl_var vars[] = { PAWL_VAR(struct ticker, left, PAWL_VAR_INT64),
                                     PAWL_VAR(struct ticker, ticks, PAWL_VAR_INT64),
                                     { 0 } };
    const pawl_code_type type = { .name = "ticker",
                                  .timers = timers,
                                  .vars = vars,
                                  .state_size = sizeof(struct ticker),
                                  .handle = tick };
    pawl_status status = pawl_tool_register(p, "weigh", weigh, scales, err);

    if (status == PAWL_OK)
        status = pawl_code_register(p, &type, err);
    if (status == PAWL_OK)
        status = pawl_define(p, flow, sizeof flow - 1, NULL, err);
    if (status == PAWL_OK)
        status = pawl_create(
            p, &(pawl_create_args){ .definition = "parcel", .input = "{\"what\":\"tea\"}" },
            &ids[0], err);
    if (status == PAWL_OK)
        status = pawl_create(p, &(pawl_create_args){ .definition = "ticker" }, &ids[1], err);
    return status;
}

/* The host's loop: any event loop would do. pawl's descriptor says when; nothing is read from it.
 * It ends when pawl waits for nothing more; a real one would not. */
static pawl_status loop(pawl *p, int own_fd, pawl_error *err)
{
    struct pollfd polled[2] = { { .fd = own_fd, .events = POLLIN },
                                { .fd = pawl_fd(p), .events = POLLIN } };
    pawl_status status = PAWL_OK;
    char byte;

    while (status == PAWL_OK && pawl_next_due(p) >= 0) {
        if (poll(polled, 2, -1) < 0)
            return PAWL_STORAGE_FAILURE;
        if (polled[0].revents && read(own_fd, &byte, 1) == 1)
            printf("the host got '%c'\n", byte);
        if (polled[1].revents)
            status = pawl_run_due(p, err);
    }
    return status;
}

static pawl_status show(pawl *p, const char *id, pawl_error *err)
{
    char input[64], *text;
    const char *result;
    pawl_status status;

    snprintf(input, sizeof input, "{\"instance_id\":\"%s\"}", id);
    status = pawl_call(p, "instance.get", input, &text, err);
    if (status != PAWL_OK)
        return status;
    result = strstr(text, "\"result\":");
    printf("%s %.*s\n", strstr(text, "\"status\":\"completed\"") ? "completed" : text,
           result ? (int)strcspn(result, ",}") : 0, result ? result : "");
    pawl_free(p, text);
    return PAWL_OK;
}

int main(void)
{
    struct scales scales = { 0 };
    pawl_error err = { 0 };
    pawl_id ids[2];
    int own[2];
    pawl *p;

    if (pipe(own) != 0 || write(own[1], "x", 1) != 1)
        return 1;
    if (pawl_open(&p, "sqlite:loop.db", &(pawl_options){ .own = true }, &err) ||
        begin(p, &scales, ids, &err) || loop(p, own[0], &err) || show(p, ids[0].text, &err) ||
        show(p, ids[1].text, &err)) {
        fprintf(stderr, "%s: %s\n", pawl_status_name(err.status), err.message);
        pawl_close(p);
        return 1;
    }
    printf("weighed %d times\n", scales.calls);
    pawl_close(p);
    return 0;
}
