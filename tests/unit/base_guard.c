/* base_guard.c - what a guard promises the functions that assert it. */
#include "base/guard.h"
#include "lib/test.h"
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

static struct guard guard;

static void rely(void)
{
    ASSERT_HOLDS(&guard);
}

static void rely_on_release(void)
{
    ASSERT_RELEASED(&guard);
}

static void lock_again(void)
{
    guard_lock(&guard);
}

/* Does a process that calls it abort? */
static bool aborts(void (*call)(void))
{
    int status = 0;
    pid_t child = fork();

    if (child == 0) {
        close(2);
        call();
        _exit(0);
    }
    waitpid(child, &status, 0);
    return WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT;
}

static void *look(void *out)
{
    *(bool *)out = thread_is_self(&guard.owner);
    return NULL;
}

TEST(guard, a_function_that_relies_on_a_lock_stops_the_process_without_it)
{
    guard_init(&guard);
    EXPECT(aborts(rely));
    guard_lock(&guard);
    EXPECT(!aborts(rely));
    EXPECT(aborts(rely_on_release));
    EXPECT(aborts(lock_again));
    guard_unlock(&guard);
    EXPECT(!aborts(rely_on_release));
    guard_fini(&guard);
}

TEST(guard, another_thread_holds_it_and_this_one_does_not)
{
    pthread_t thread;
    bool is_held = true;

    guard_init(&guard);
    guard_lock(&guard);
    EXPECT_EQ(pthread_create(&thread, NULL, look, &is_held), 0);
    pthread_join(thread, NULL);
    EXPECT(!is_held);
    guard_unlock(&guard);
    guard_fini(&guard);
}
