/* next.c - a graph that you run yourself: which steps follow a step and its result. No store, no
 * threads, JSON in and JSON out. */
#include <pawl.h>
#include <stdio.h>

static const char flow[] = "steps:\n"
                           "  start: {tool: check, branch: [{if: 'result == \"ok\"', then: fan}, "
                           "{if: 'true', then: stop}]}\n"
                           "  fan: {tool: split, parallel: [mail, print]}\n"
                           "  mail: {tool: send, args: {to: '{{input.to}}'}, join: end}\n"
                           "  print: {tool: print, join: end}\n"
                           "  end: {tool: log, done: true}\n"
                           "  stop: {tool: log, done: true}\n";

/* What is known when each step is over. */
static const pawl_next_args turns[] = {
    { .step = NULL },
    { .step = "start", .result = "\"ok\"" },
    { .step = "fan", .input = "{\"to\":\"ann\"}" },
    { .step = "print", .live = "[\"mail\"]" },
    { .step = "mail", .joined = "[\"end\"]" },
    { .step = "end", .result = "2" },
};

int main(void)
{
    pawl_error err;
    char *next;

    for (size_t i = 0; i < sizeof turns / sizeof *turns; i++) {
        if (pawl_next_steps(flow, &turns[i], &next, &err)) {
            fprintf(stderr, "%s: %s\n", pawl_status_name(err.status), err.message);
            return 1;
        }
        puts(next);
        pawl_plan_free(next);
    }
    return 0;
}
