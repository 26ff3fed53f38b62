/* verb_demo.c - the whole idea in a minute: declare, fire, be refused, kill, resume, verify,
 * tamper. Every line is a real command in a real folder; if one does not do what the
 * narration says, the demo fails. */
#include "base/sha.h"
#include "surface/cli/cli.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define READ_MS    900
#define OUTPUT_MAX ((size_t)16 << 20)

struct demo {
    struct cli *cli;
    bool fast, failed; /* failed: something did not go as announced */
    char folder[64];
    char program[4096]; /* this binary */
};

extern const str example_files[][2]; /* made by tools/embed from examples/ */

static const char trip[] =
    "name: trip\n"
    "steps:\n"
    "  start: {name: pack, tool: set, args: {bag: full}, next: ride}\n"
    "  ride: {tool: sleep, args: {for: 1s}, next: change}\n"
    "  change: {tool: exec, args: {argv: [sh, -c, 'sleep 1; echo 1']}, next: walk}\n"
    "  walk: {tool: sleep, args: {for: 1s}, next: arrive}\n"
    "  arrive: {tool: set, args: {place: home}, done: true}\n";

/* ---- The stage: a folder, words, child processes ---- */

/* Make the folder and go there. False: it cannot be made. */
static bool demo_begin(struct demo *demo)
{
    const char *base = getenv("TMPDIR");
    ssize_t size = readlink("/proc/self/exe", demo->program, sizeof demo->program - 1);

    if (size <= 0)
        return false;
    demo->program[size] = '\0';
    snprintf(demo->folder, sizeof demo->folder, "%.40s/pawl-demo-XXXXXX",
             base && *base && strlen(base) < 40 ? base : "/tmp");
    unsetenv("PAWL_STORE"); /* everything below happens in pawl.db of the folder */
    return mkdtemp(demo->folder) && chdir(demo->folder) == 0;
}

static void demo_end(struct demo *demo)
{
    DIR *folder = opendir(demo->folder);
    struct dirent *item;

    while (folder && (item = readdir(folder)))
        if (item->d_name[0] != '.')
            unlinkat(dirfd(folder), item->d_name, 0);
    if (folder)
        closedir(folder);
    if (chdir("/") == 0)
        rmdir(demo->folder);
}

static void demo_pause(const struct demo *demo, long ms)
{
    struct timespec rest = { .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000 };

    fflush(stdout);
    if (!demo->fast)
        nanosleep(&rest, NULL);
}

static void demo_title(struct demo *demo, const char *text)
{
    fputc('\n', demo->cli->term.out);
    term_put(&demo->cli->term, ACCENT, "── %s\n", text);
    demo_pause(demo, READ_MS);
}

/* Remember whether something is as announced, and say so if it is not. */
static void demo_expect(struct demo *demo, bool as_announced, const char *what)
{
    if (as_announced)
        return;
    demo->failed = true;
    term_put(&demo->cli->term, BAD, "✘ this did not go as announced: %s\n", what);
}

static void demo_write(struct demo *demo, const char *name, str text)
{
    FILE *file = fopen(name, "w");
    bool written = file && fwrite(text.data, 1, text.size, file) == text.size;

    if (file && fclose(file) != 0)
        written = false;
    demo_expect(demo, written, name);
}

/* ---- Commands ---- */

static pid_t spawn(struct demo *demo, const char *arguments, int out)
{
    char *command = NULL;
    pid_t pid = -1;

    fflush(NULL);
    if (asprintf(&command, "exec \"$0\" %s", arguments) >= 0)
        pid = fork();
    if (pid == 0) {
        if (out < 0 || dup2(out, STDOUT_FILENO) >= 0)
            execl("/bin/sh", "sh", "-c", command, demo->program, (char *)NULL);
        _exit(127);
    }
    free(command);
    return pid;
}

static int wait_for(pid_t pid)
{
    int status = -1;

    while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    return pid > 0 && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void type(struct demo *demo, const char *arguments)
{
    term_put(&demo->cli->term, DIM, "$ ");
    term_put(&demo->cli->term, BOLD, "pawl %s\n", arguments);
    demo_pause(demo, READ_MS / 2);
}

/* Say, type and run `pawl ARGUMENTS`, which a shell splits, and expect this exit status. */
static void demo_run(struct demo *demo, int expected, const char *arguments)
{
    type(demo, arguments);
    demo_expect(demo, wait_for(spawn(demo, arguments, -1)) == expected, arguments);
    demo_pause(demo, READ_MS);
}

/* Begin one and let it run; its process. -1: it could not be begun. */
static pid_t demo_begin_child(struct demo *demo, const char *arguments)
{
    type(demo, arguments);
    return spawn(demo, arguments, -1);
}

/* The same without a word, its --json answer parsed into the cli's scope. NULL: none came. */
static struct node *demo_ask(struct demo *demo, const char *arguments)
{
    struct scope *scope = &demo->cli->scope;
    struct node *answer = NULL;
    struct buf output;
    int ends[2];
    pid_t pid;

    if (pipe2(ends, O_CLOEXEC) != 0)
        return NULL;
    buf_init(&output, &heap_libc, OUTPUT_MAX);
    pid = spawn(demo, arguments, ends[1]);
    close(ends[1]);
    read_to_end(ends[0], &output);
    close(ends[0]);
    if (wait_for(pid) == EXIT_DONE &&
        node_read_json(scope, buf_keep(&output, &scope->arena), &answer) != PAWL_OK)
        answer = NULL;
    buf_fini(&output);
    return answer;
}

/* ---- The lie ---- */

/* Change one byte of an entry's hash in a copy of the store. False: not found. */
static bool demo_tamper(struct demo *demo, const char *from, const char *to, str hash)
{
    int fd = open(from, O_RDONLY | O_CLOEXEC);
    unsigned char wanted[32];
    struct buf bytes;
    char *found = NULL;

    buf_init(&bytes, &heap_libc, (size_t)1 << 30);
    if (fd >= 0 && sha_unhex(hash, wanted, sizeof wanted) && read_to_end(fd, &bytes))
        found = memmem(bytes.data, bytes.size, wanted, sizeof wanted);
    if (found) {
        *found = (char)(*found ^ 1);
        demo_write(demo, to, buf_view(&bytes));
    }
    if (fd >= 0)
        close(fd);
    buf_fini(&bytes);
    return found != NULL;
}

/* ---- The play ---- */

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
