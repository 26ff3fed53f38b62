/* test.c - runs the tests and tells it in TAP. Keep it small.
 *   PROGRAM [--list] [--no-fork] [--timeout SECONDS] [PART OF A NAME]... */
#include "lib/test.h"
#include "lib/folder.h"
#include "lib/postgres.h"
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define EXIT_FAILED 100 /* by an EXPECT, which has said why; sanitizers use 1 */

static struct test *tests, **tests_end = &tests, *current;
static bool forking = true;
static long timeout_s = 180; /* half an hour with PAWL_TEST_LONG, which tries every n */
static jmp_buf after_failure;

void test_register(struct test *test)
{
    *tests_end = test;
    tests_end = &test->next;
}

_Noreturn void test_fail(const char *file, int line, const char *format, ...)
{
    va_list args;

    printf("# %s:%d: ", file, line);
    va_start(args, format);
    vprintf(format, args);
    va_end(args);
    putchar('\n');
    if (current && current->scope.error.message[0])
        printf("# the scope's error: %s\n", current->scope.error.message);
    fflush(stdout);
    if (forking)
        _exit(EXIT_FAILED);
    longjmp(after_failure, 1);
}

void test_expect_eq(const char *file, int line, const char *what, int64_t a, int64_t b)
{
    if (a != b)
        test_fail(file, line, "expected %s, found %" PRId64 " and %" PRId64, what, a, b);
}

void test_expect_str(const char *file, int line, const char *what, str found, const char *wanted)
{
    if (!found.data != !wanted || !str_is(found, wanted))
        test_fail(file, line, "expected %s to be '%s', found '%.*s'%s", what,
                  wanted ? wanted : "(none)", STR_ARG(found), found.data ? "" : " (none)");
}

void test_expect_ok(const char *file, int line, const char *what, pawl_status status)
{
    if (status != PAWL_OK)
        test_fail(file, line, "expected %s to be OK, found status %d", what, (int)status);
}

void test_expect_has(const char *file, int line, const char *text, const char *part)
{
    if (!strstr(text, part))
        test_fail(file, line, "expected '%s' in '%s'", part, text);
}

static bool run_here(struct test *test)
{
    volatile bool passed = false; /* volatile: longjmp() must not lose it */

    current = test;
    scope_init(&test->scope, &heap_libc, 0);
    if (setjmp(after_failure) == 0) {
        test->run(test);
        passed = true;
    }
    scope_fini(&test->scope);
    return passed;
}

/* Wait until the child has ended, or until its time is over: then end it. */
static bool wait_for_child(pid_t child, const sigset_t *ended, int *out_status)
{
    struct timespec now, end, left;
    clock_gettime(CLOCK_MONOTONIC, &end);
    end.tv_sec += timeout_s;
    while (waitpid(child, out_status, WNOHANG) == 0) {
        clock_gettime(CLOCK_MONOTONIC, &now);
        if (now.tv_sec >= end.tv_sec) {
            kill(child, SIGKILL);
            waitpid(child, out_status, 0);
            return false;
        }
        left = (struct timespec){ .tv_sec = end.tv_sec - now.tv_sec };
        sigtimedwait(ended, NULL, &left);
    }
    return true;
}

static bool explain(bool in_time, int status)
{
    if (!in_time)
        printf("# still running after %ld s: ended\n", timeout_s);
    else if (WIFSIGNALED(status))
        printf("# crashed: signal %d (%s)\n", WTERMSIG(status), strsignal(WTERMSIG(status)));
    else if (WEXITSTATUS(status) != 0 && WEXITSTATUS(status) != EXIT_FAILED)
        printf("# exited with status %d (a sanitizer, or exit() in the test)\n",
               WEXITSTATUS(status));
    return in_time && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static bool run_forked(struct test *test)
{
    sigset_t ended;
    int status = 0;
    bool in_time;
    pid_t child;

    sigemptyset(&ended);
    sigaddset(&ended, SIGCHLD);
    sigprocmask(SIG_BLOCK, &ended, NULL); /* so that sigtimedwait() cannot miss it */
    fflush(stdout);
    child = fork();
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        sigprocmask(SIG_UNBLOCK, &ended, NULL);
        test_folders_begin(getpid());
        exit(run_here(test) ? 0 : EXIT_FAILED); /* not _exit(): leaks are looked for there */
    }
    if (child < 0) {
        printf("# no new process: %s\n", strerror(errno));
        return false;
    }
    in_time = wait_for_child(child, &ended, &status);
    test_folders_end(child);
    return explain(in_time, status);
}

static bool run_unforked(struct test *test)
{
    bool passed;

    test_folders_begin(getpid());
    passed = run_here(test);
    test_folders_end(getpid());
    return passed;
}

bool test_is_long(void)
{
    return getenv("PAWL_TEST_LONG") != NULL;
}

uint64_t test_seed(void)
{
    const char *text = getenv("PAWL_TEST_SEED");

    return text ? strtoull(text, NULL, 10) : 0;
}

static uint64_t sum_of(const char *text)
{
    uint64_t sum = 0;

    for (; *text; text++)
        sum += (uint8_t)*text;
    return sum;
}

#define POSTGRES_DAYS 8 /* a test over PostgreSQL has its turn once in so many days */

/* Is it the turn of another store of this test? */
static bool is_for_tomorrow(const struct test *test, char **filters)
{
    uint64_t day = test_seed() + sum_of(test->name);
    const char *today = day % 2 ? "memory" : "sqlite";
    bool is_turn =
        test->store && (strcmp(test->store, "postgres") == 0 ? day % POSTGRES_DAYS == 0
                                                             : strcmp(test->store, today) == 0);

    return test->store && !is_turn && !*filters && !test_is_long() && getenv("PAWL_TEST_SEED");
}

static bool is_wanted(const struct test *test, char **filters)
{
    char name[256];

    (void)snprintf(name, sizeof name, "%s.%s", test->suite, test->name);
    for (char **filter = filters; *filter; filter++)
        if (strstr(name, *filter))
            return true;
    return !*filters;
}

/* The processor time that the children which have ended used. */
static double used_s(void)
{
    struct rusage used;

    getrusage(RUSAGE_CHILDREN, &used);
    return (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
           (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec) / 1e6;
}

/* One that took more than half a second says so: who makes the tests faster begins there. */
static void print_result(const struct test *test, int number, bool passed, double took_s)
{
    printf("%s %d - %s: ", passed ? "ok" : "not ok", number, test->suite);
    for (const char *at = test->name; *at; at++)
        putchar(*at == '_' ? ' ' : *at);
    if (took_s > 0.5)
        printf(" # %.1f s", took_s);
    putchar('\n');
}

static int run_all(char **filters)
{
    int wanted = 0, number = 0, failed = 0, others = 0;

    for (struct test *test = tests; test; test = test->next) {
        others += is_for_tomorrow(test, filters);
        wanted += is_wanted(test, filters) && !is_for_tomorrow(test, filters);
    }
    printf("1..%d\n", wanted);
    for (struct test *test = tests; test; test = test->next) {
        double before_s = used_s();
        bool passed;

        if (!is_wanted(test, filters) || is_for_tomorrow(test, filters))
            continue;
        if (strstr(test->suite, "_postgres") && !test_postgres_start()) {
            printf("ok %d - %s: %s # SKIP there is no PostgreSQL here\n", ++number, test->suite,
                   test->name);
            continue;
        }
        passed = forking ? run_forked(test) : run_unforked(test);
        failed += !passed;
        print_result(test, ++number, passed, used_s() - before_s);
    }
    test_postgres_stop();
    if (others)
        printf("SKIPPED: %d tests over their other store, whose turn is tomorrow\n", others);
    printf("# %d passed, %d failed\n", number - failed, failed);
    return failed > 0 || number == 0; /* a filter that finds nothing is a mistake */
}

#if defined(__has_feature) /* clang */
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define IS_SANITIZED true
#endif
#elif defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define IS_SANITIZED true
#endif
#ifndef IS_SANITIZED
#define IS_SANITIZED false
#endif

bool test_is_sanitized(void)
{
    return IS_SANITIZED;
}

uint64_t test_first(uint64_t daily, uint64_t whole)
{
    return 1 + (test_seed() + sum_of(current->suite) + sum_of(current->name)) %
                   (test_is_long() ? whole : daily);
}

uint64_t test_stride(uint64_t daily, uint64_t whole)
{
#ifdef __SANITIZE_THREAD__
    daily *= 8;
#endif
    return test_is_long() ? whole : daily;
}

int main(int argc, char **argv)
{
    bool listing = false;

    if (test_is_long())
        timeout_s = 1800;
    for (; argc > 1 && strncmp(argv[1], "--", 2) == 0; argc--, argv++) {
        if (strcmp(argv[1], "--list") == 0)
            listing = true;
        else if (strcmp(argv[1], "--no-fork") == 0)
            forking = false;
        else if (strcmp(argv[1], "--timeout") == 0 && argc > 2) {
            timeout_s = strtol(argv[2], NULL, 10);
            argc--, argv++;
        } else
            return fprintf(stderr, "unknown option %s\n", argv[1]), 2;
    }
    for (struct test *test = tests; listing && test; test = test->next)
        if (is_wanted(test, argv + 1))
            printf("%s.%s\n", test->suite, test->name);
    return listing ? 0 : run_all(argv + 1);
}
