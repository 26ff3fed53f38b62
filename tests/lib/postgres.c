/* postgres.c - see postgres.h. tests/lib/postgres.py does the work: it ends when the pipe to it
 * does, so that no cluster outlives a test program that was killed. */
#include "lib/postgres.h"
#include "lib/test.h"
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static char url[TEST_POSTGRES_URL - 40];
static int to_helper = -1;
static pid_t helper;

static bool read_url(int from)
{
    ssize_t size = read(from, url, sizeof url - 1);

    close(from);
    if (size <= 0)
        return false;
    url[strcspn(url, "\n")] = '\0';
    return true;
}

_Noreturn static void run_helper(const int in[2], const int out[2])
{
    const char *root = getenv("PAWL_ROOT");
    char path[400];

    snprintf(path, sizeof path, "%s/tests/lib/postgres.py", root ? root : PAWL_SOURCE_ROOT);
    dup2(in[0], 0);
    dup2(out[1], 1);
    close(in[1]);
    close(out[0]);
    execlp("python3", "python3", path, (char *)NULL);
    _exit(127);
}

bool test_postgres_start(void)
{
    const char *running = getenv("PAWL_TEST_POSTGRES");
    int in[2], out[2];

    if (running)
        snprintf(url, sizeof url, "%s", running);
    if (*url)
        return true;
    if (pipe2(in, O_CLOEXEC) != 0 || pipe2(out, O_CLOEXEC) != 0)
        return false;
    helper = fork();
    if (helper == 0)
        run_helper(in, out);
    close(in[0]);
    close(out[1]);
    to_helper = in[1];
    return helper > 0 && read_url(out[0]);
}

void test_postgres_stop(void)
{
    if (to_helper < 0)
        return;
    close(to_helper);
    to_helper = -1;
    waitpid(helper, NULL, 0);
}

void test_postgres_url(const char *name, char out[TEST_POSTGRES_URL])
{
    EXPECT(*url);
    snprintf(out, TEST_POSTGRES_URL, "%s&schema=t%ld_%s", url, (long)getpid(), name);
}
