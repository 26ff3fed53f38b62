/* verb_demo.c - the whole idea in a minute: declare, fire, be refused, kill, resume, verify,
 * tamper. Every line is a real command in a real folder; if one does not do what the
 * narration says, the demo fails. */
#include "surface/cli/demo.h"
#include <signal.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern const str example_files[][2]; /* made by tools/embed from examples/ */

static const char trip[] =
    "name: trip\n"
    "steps:\n"
    "  start: {name: pack, tool: set, args: {bag: full}, next: ride}\n"
    "  ride: {tool: sleep, args: {for: 1s}, next: change}\n"
    "  change: {tool: exec, args: {argv: [sh, -c, 'sleep 1; echo 1']}, next: walk}\n"
    "  walk: {tool: sleep, args: {for: 1s}, next: arrive}\n"
    "  arrive: {tool: set, args: {place: home}, done: true}\n";

static str example(const char *name)
{
    for (const str(*file)[2] = example_files; (*file)[0].data; file++)
        if (str_is((*file)[0], name))
            return (*file)[1];
    return STR("");
}

/* Its lines, without the comments. */
static void put_text(struct demo *demo, str text)
{
    str line;

    while (str_take(&text, '\n', &line))
        if (line.size > 0 && line.data[0] != '#')
            term_put(&demo->cli->term, DIM, "    %.*s\n", STR_ARG(line));
    demo_pause(demo, 1500);
}

static void declare(struct demo *demo)
{
    demo_title(demo, "A machine is a text: states, and the only ways between them.");
    demo_write(demo, "order.yaml", example("order.yaml"));
    put_text(demo, example("order.yaml"));
    demo_run(demo, EXIT_DONE, "define order.yaml");
    demo_run(demo, EXIT_DONE, "start order --subject A-17 --actor ann");
    demo_run(demo, EXIT_DONE, "fire @last pay --actor ann");
    demo_title(demo, "What is not declared is refused, by name, with what would be legal.");
    demo_run(demo, EXIT_REJECTED, "fire @last drop");
    demo_run(demo, EXIT_DONE, "show @last");
}

/* Wait until the trip has so many entries. False: it never had. */
static bool wait_until_under_way(struct demo *demo, int64_t entries)
{
    struct timespec moment = { .tv_nsec = 20000000 };

    for (int tries = 0; tries < 500; tries++) {
        struct node *trip_now = demo_ask(demo, "show @last --json");

        if (str_is(member_str(trip_now, "definition"), "trip") &&
            member_int(trip_now, "next_sequence_number") > entries)
            return true;
        nanosleep(&moment, NULL);
    }
    return false;
}

static void kill_in_the_middle(struct demo *demo)
{
    pid_t child;
    int status = 0;

    demo_title(demo, "A countdown (a process written in C) is armed. It does not run yet.");
    demo_run(demo, EXIT_DONE, "start countdown --input '{\"from\":3,\"every\":\"2s\"}'");
    demo_title(
        demo,
        "A flow runs in a process of its own. In the middle of a step that is killed with -9.");
    demo_write(demo, "trip.yaml", str_of(trip));
    child = demo_begin_child(demo, "run trip.yaml");
    demo_expect(demo, child > 0 && wait_until_under_way(demo, 5), "run trip.yaml");
    nanosleep(&(struct timespec){ .tv_nsec = 300000000 }, NULL); /* let the step be seen */
    if (child > 0) {
        kill(child, SIGKILL);
        waitpid(child, &status, 0);
    }
    demo_expect(demo, WIFSIGNALED(status), "the kill");
    if (demo->cli->term.tty)
        fputs("\r\033[K", demo->cli->term.out);
    term_put(&demo->cli->term, BAD, "✘ kill -9 %d\n", (int)child);
    demo_pause(demo, 900);
}

static void resume(struct demo *demo)
{
    struct node *list;
    const struct node *countdown;
    char command[96];

    demo_title(demo,
               "Nothing recorded is lost: it goes on where it was, and tries that step again.");
    demo_run(demo, EXIT_DONE, "resume @last");
    demo_title(demo, "And the timer armed before the kill? It fires as well.");
    list = demo_ask(demo, "list --definition countdown --json");
    countdown = node_at(node_find(list, "instances"), 0);
    snprintf(command, sizeof command, "resume %.10s", member_str(countdown, "instance_id").data);
    demo_run(demo, EXIT_DONE, command);
}

static void verify(struct demo *demo)
{
    struct node *history;
    const struct node *last = NULL;

    demo_title(demo, "Every entry is chained by its hash to the one before.");
    demo_run(demo, EXIT_DONE, "verify");
    demo_title(demo, "Now a lie: one byte of a copy of the store is changed.");
    history = demo_ask(demo, "history @last --json");
    for (const struct node *entry = node_first(history, "entries"); entry; entry = entry->next)
        last = entry;
    demo_expect(demo, demo_tamper(demo, "pawl.db", "copy.db", member_str(last, "hash")),
                "finding a hash in the file");
    demo_run(demo, EXIT_REJECTED, "--store sqlite:copy.db verify");
}

static int finish(struct demo *demo)
{
    struct term *term = &demo->cli->term;

    fputc('\n', term->out);
    if (demo->failed)
        term_put(term, BAD, "Not all of it went as announced.\n");
    else
        term_put(term, GOOD, "All of it went as announced.\n");
    if (args_flag(demo->cli, "keep"))
        fprintf(term->out, "The folder is %s\n", demo->folder);
    else
        demo_end(demo);
    fputs("Next: pawl --help, examples/, docs/\n", term->out);
    return demo->failed ? EXIT_REJECTED : EXIT_DONE;
}

int verb_demo(struct cli *cli)
{
    struct demo demo = { .cli = cli, .fast = args_flag(cli, "fast") };

    if (!demo_begin(&demo)) {
        perror("pawl: cannot make a folder for the demo");
        return EXIT_STORE;
    }
    declare(&demo);
    kill_in_the_middle(&demo);
    resume(&demo);
    verify(&demo);
    return finish(&demo);
}
