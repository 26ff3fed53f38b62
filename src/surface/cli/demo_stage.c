/* demo_stage.c - what the demo needs to type commands: a folder, words, child processes. */
#include "base/sha.h"
#include "surface/cli/demo.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define WORDS_MAX  16
#define READ_MS    900
#define OUTPUT_MAX ((size_t)16 << 20)

bool demo_begin(struct demo *demo)
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

void demo_end(struct demo *demo)
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

void demo_pause(const struct demo *demo, long ms)
{
    struct timespec rest = { .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000 };

    fflush(stdout);
    if (!demo->fast)
        nanosleep(&rest, NULL);
}

void demo_title(struct demo *demo, const char *text)
{
    fputc('\n', demo->cli->term.out);
    term_put(&demo->cli->term, ACCENT, "── %s\n", text);
    demo_pause(demo, READ_MS);
}

void demo_expect(struct demo *demo, bool as_told, const char *what)
{
    if (as_told)
        return;
    demo->failed = true;
    term_put(&demo->cli->term, BAD, "✘ this did not go as announced: %s\n", what);
}

void demo_write(struct demo *demo, const char *name, str text)
{
    FILE *file = fopen(name, "w");
    bool written = file && fwrite(text.data, 1, text.size, file) == text.size;

    if (file && fclose(file) != 0)
        written = false;
    demo_expect(demo, written, name);
}

/* ---- Commands ---- */

/* Split at blanks; quotes keep them and go. `text` is changed. */
static void split(char *text, char *words[WORDS_MAX])
{
    int count = 1;

    while (*text && count < WORDS_MAX - 1) {
        char end = ' ';

        while (*text == ' ')
            text++;
        if (*text == '\'') {
            end = '\'';
            text++;
        }
        if (!*text)
            break;
        words[count++] = text;
        while (*text && *text != end)
            text++;
        if (*text)
            *text++ = '\0';
    }
    words[count] = NULL;
}

static pid_t spawn(struct demo *demo, const char *arguments, int out)
{
    char name[] = "pawl", *words[WORDS_MAX] = { name }, *text = strdup(arguments);
    pid_t pid;

    fflush(NULL);
    pid = text ? fork() : -1;
    if (pid == 0) {
        split(text, words);
        if (out >= 0 && dup2(out, STDOUT_FILENO) < 0)
            _exit(127);
        execv(demo->program, words);
        _exit(127);
    }
    free(text);
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

void demo_run(struct demo *demo, int expected, const char *arguments)
{
    type(demo, arguments);
    demo_expect(demo, wait_for(spawn(demo, arguments, -1)) == expected, arguments);
    demo_pause(demo, READ_MS);
}

pid_t demo_begin_child(struct demo *demo, const char *arguments)
{
    type(demo, arguments);
    return spawn(demo, arguments, -1);
}

struct node *demo_ask(struct demo *demo, const char *arguments)
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

bool demo_tamper(struct demo *demo, const char *from, const char *to, str hash)
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
