/* tool_exec.c - programs as tools: what they say, how they end, and that nothing outlives
 * them. Times are real here, because processes are: limits are short where they must run
 * out, and long where they must not. */
#include "base/buf.h"
#include "lib/fault.h"
#include "lib/test.h"
#include "tool/tool.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define LONG_MS 20000
#define NOBODY  65534

static struct toolbox *make_toolbox(struct env *env)
{
    return toolbox_new(
        &(struct toolbox_options){ .heap = &heap_libc, .env = env, .allow_exec = true });
}

struct exec_rig {
    struct env *env;
    struct toolbox *toolbox;
};

static struct exec_rig open_rig(void)
{
    struct exec_rig rig = { .env = env_os_new(&heap_libc) };

    rig.toolbox = make_toolbox(rig.env);
    EXPECT(rig.toolbox != NULL);
    return rig;
}

static void close_rig(struct exec_rig *rig)
{
    toolbox_free(rig->toolbox);
    rig->env->close(rig->env);
}

static struct tool_result run(struct test *t, struct exec_rig *rig, const char *args,
                              int64_t timeout_ms)
{
    pawl_tool_call call = { .tool = "exec", .args = args, .idempotency_key = "ID.1" };
    struct tool_result result = { 0 };

    EXPECT_OK(toolbox_run(rig->toolbox, &call, timeout_ms, NULL, &t->scope, &result));
    return result;
}

/* sh -c SCRIPT, which must not need quoting in JSON. */
static struct tool_result run_script(struct test *t, struct exec_rig *rig, const char *script,
                                     int64_t timeout_ms)
{
    char args[1000];

    (void)snprintf(args, sizeof args, "{\"argv\":[\"sh\",\"-c\",\"%s\"]}", script);
    return run(t, rig, args, timeout_ms);
}

static void expect_result(struct test *t, struct exec_rig *rig, const char *args, const char *json)
{
    struct tool_result result = run(t, rig, args, LONG_MS);

    EXPECT_STR(result.json, json);
    EXPECT(!result.failed);
}

static void expect_failed(struct tool_result result, const char *part)
{
    EXPECT_HAS(result.json.data, part);
    EXPECT(result.failed);
}

/* Has every process of the group that holds the other end of this fifo ended? */
static bool hangs_up(int fd)
{
    struct pollfd poll_fd = { fd, 0, 0 };

    return poll(&poll_fd, 1, LONG_MS) == 1 && (poll_fd.revents & POLLHUP);
}

/* ---- What goes in, what comes out --------------------------------------------------------- */

TEST(exec, json_goes_in_on_stdin_and_comes_out_on_stdout)
{
    struct exec_rig rig = open_rig();

    expect_result(t, &rig, "{\"argv\":[\"cat\"],\"input\":{\"a\": [1.50, \"x\"]}}",
                  "{\"a\":[1.50,\"x\"]}");
    expect_result(t, &rig, "{\"argv\":[\"cat\"]}", "null");
    expect_result(t, &rig, "{\"argv\":[\"true\"],\"input\":1}", "null");
    expect_result(t, &rig, "{\"argv\":[\"echo\",7]}", "7");
    expect_result(t, &rig, "{\"argv\":[\"cat\",\"/dev/stdin\"],\"input\":true}", "true");
    close_rig(&rig);
}

TEST(exec, no_shell_reads_the_arguments)
{
    struct exec_rig rig = open_rig();

    expect_result(t, &rig, "{\"argv\":[\"echo\",\"\\\"$HOME; `id` *\\\"\"]}", "\"$HOME; `id` *\"");
    close_rig(&rig);
}

TEST(exec, the_program_is_given_its_idempotency_key_and_a_clean_environment)
{
    struct exec_rig rig = open_rig();

    setenv("SECRET_WORD", "5", 1);
    setenv("PAWL_TOKEN", "6", 1);
    setenv("LC_ALL", "C", 1);
    setenv("TZ", "UTC", 1);
    setenv("PAWL_IDEMPOTENCY_KEY", "stale", 1);
    EXPECT_STR(run_script(t, &rig,
                          "echo [\\\\\\\"$SECRET_WORD$PAWL_TOKEN\\\\\\\",\\\\\\\"$LC_ALL $TZ\\\\\\\","
                          "\\\\\\\"$PAWL_IDEMPOTENCY_KEY\\\\\\\"]",
                          LONG_MS)
                   .json,
               "[\"\",\"C UTC\",\"ID.1\"]");
    EXPECT_STR(run_script(t, &rig,
                          "env | grep -Evc '^(PATH|HOME|LANG|TZ|TMPDIR|USER|LOGNAME|LC_[A-Z]+|PWD|"
                          "SHLVL|_|PAWL_IDEMPOTENCY_KEY)=' || true",
                          LONG_MS)
                   .json,
               "0");
    close_rig(&rig);
}

TEST(exec, the_rules_may_name_more_of_the_environment)
{
    struct exec_rig rig = open_rig();

    EXPECT_OK(toolbox_set_rules(rig.toolbox, STR("exec: {env: [SECRET_WORD]}"), &t->scope));
    setenv("SECRET_WORD", "5", 1);
    setenv("OTHER_WORD", "6", 1);
    EXPECT_STR(run_script(t, &rig, "echo [$SECRET_WORD$OTHER_WORD]", LONG_MS).json, "[5]");
    close_rig(&rig);
}

TEST(exec, descriptors_of_the_host_do_not_reach_the_program)
{
    struct exec_rig rig = open_rig();
    int fd = dup(1);

    EXPECT(fd >= 0);
    EXPECT_STR(run_script(t, &rig, "ls /proc/self/fd | wc -l", LONG_MS).json, "4");
    EXPECT_EQ(close(fd), 0);
    close_rig(&rig);
}

TEST(exec, descriptors_are_given_back_and_no_child_is_left_behind)
{
    struct exec_rig rig = open_rig();
    int before = dup(1), after;

    for (int i = 0; i < 20; i++)
        (void)run_script(t, &rig, i % 2 ? "exit 1" : "echo 1", LONG_MS);
    (void)run(t, &rig, "{\"argv\":[\"/does/not/exist\"]}", LONG_MS);
    after = dup(1);
    EXPECT_EQ(after, before + 1);
    EXPECT(waitpid(-1, NULL, WNOHANG) == -1 && errno == ECHILD);
    close(before);
    close(after);
    close_rig(&rig);
}

TEST(exec, a_host_that_has_closed_its_standard_descriptors_can_still_run_programs)
{
    struct exec_rig rig = open_rig();
    int kept[3];
    struct tool_result result;

    fflush(stdout);
    for (int fd = 0; fd < 3; fd++) {
        kept[fd] = fcntl(fd, F_DUPFD_CLOEXEC, 10);
        close(fd);
    }
    result = run(t, &rig, "{\"argv\":[\"cat\"],\"input\":[1]}", LONG_MS);
    for (int fd = 0; fd < 3; fd++)
        if (kept[fd] >= 0) {
            dup2(kept[fd], fd);
            close(kept[fd]);
        }
    EXPECT_STR(result.json, "[1]");
    close_rig(&rig);
}

/* ---- What goes wrong ------------------------------------------------------------------------ */

TEST(exec, argv_must_be_an_array_of_strings)
{
    static const char *const bad[] = { "{}", "{\"argv\":\"ls\"}", "{\"argv\":[]}",
                                       "{\"argv\":[\"ls\",null]}", "{\"argv\":[[\"ls\"]]}" };
    struct exec_rig rig = open_rig();

    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        expect_failed(run(t, &rig, bad[i], LONG_MS), "exec: ");
    close_rig(&rig);
}

TEST(exec, a_program_that_is_not_there_fails_in_words)
{
    struct exec_rig rig = open_rig();

    expect_failed(run(t, &rig, "{\"argv\":[\"/does/not/exist\"]}", LONG_MS),
                  "exec '/does/not/exist': could not be started: No such file");
    expect_failed(run(t, &rig, "{\"argv\":[\"\"]}", LONG_MS), "could not be started");
    expect_failed(run(t, &rig, "{\"argv\":[\"/etc/passwd\"]}", LONG_MS), "Permission denied");
    close_rig(&rig);
}

TEST(exec, an_exit_status_or_a_signal_is_an_error_with_the_end_of_stderr)
{
    struct exec_rig rig = open_rig();
    struct tool_result result;

    EXPECT_STR(run_script(t, &rig, "echo 1; echo oh no >&2; exit 3", LONG_MS).json,
               "\"exec 'sh' ended with status 3; stderr: oh no\"");
    EXPECT_STR(run_script(t, &rig, "kill -SEGV $$", LONG_MS).json,
               "\"exec 'sh' ended by signal 11\"");
    result =
        run_script(t, &rig, "yes 123456789 | head -c 300000 >&2; echo last >&2; exit 1", LONG_MS);
    expect_failed(result, "9\\nlast\"");
    EXPECT(result.json.size > 1000 && result.json.size < 1300);
    result = run_script(t, &rig, "printf 'a\\\\377b' >&2; exit 1", LONG_MS);
    expect_failed(result, "a\xEF\xBF\xBD"
                          "b");
    close_rig(&rig);
}

TEST(exec, output_that_is_no_json_is_a_text_unless_json_was_asked_for)
{
    struct exec_rig rig = open_rig();

    expect_result(t, &rig, "{\"argv\":[\"echo\",\"hello\"]}", "\"hello\"");
    expect_result(t, &rig, "{\"argv\":[\"printf\",\"1\\\\n2\\\\n\\\\n\"]}", "\"1\\n2\\n\"");
    expect_result(t, &rig, "{\"argv\":[\"echo\",\"{\\\"a\\\": 1.10}\"]}", "{\"a\": 1.10}");
    expect_failed(run(t, &rig, "{\"argv\":[\"echo\",\"hello\"],\"as\":\"json\"}", LONG_MS),
                  "what the program printed is not JSON: line 1, column 1");
    expect_failed(run_script(t, &rig, "printf '\\\\000'", LONG_MS), "is not UTF-8 text");
    expect_failed(run_script(t, &rig, "printf 'a\\\\377'", LONG_MS), "is not UTF-8 text");
    close_rig(&rig);
}

TEST(exec, as_says_how_the_output_is_read)
{
    struct exec_rig rig = open_rig();

    expect_result(t, &rig, "{\"argv\":[\"echo\",\"42\"],\"as\":\"text\"}", "\"42\"");
    expect_result(t, &rig, "{\"argv\":[\"true\"],\"as\":\"text\"}", "\"\"");
    expect_result(t, &rig, "{\"argv\":[\"printf\",\"a\\\\n\\\\nb c\\\\r\\\\nd\"],\"as\":\"lines\"}",
                  "[\"a\",\"\",\"b c\",\"d\"]");
    expect_result(t, &rig, "{\"argv\":[\"true\"],\"as\":\"lines\"}", "[]");
    expect_failed(run(t, &rig, "{\"argv\":[\"true\"],\"as\":\"xml\"}", LONG_MS),
                  "'as' must be json, text or lines");
    expect_failed(run_script(t, &rig, "head -c 1000000 /dev/zero | tr '\\\\0' '\\\\1'", LONG_MS),
                  "over 1048576 bytes as JSON");
    close_rig(&rig);
}

TEST(exec, a_program_gets_its_stdin_its_variables_and_its_folder_from_the_step)
{
    struct exec_rig rig = open_rig();

    expect_result(t, &rig, "{\"argv\":[\"cat\"],\"stdin\":\"plain\\ntext\"}", "\"plain\\ntext\"");
    expect_result(t, &rig,
                  "{\"argv\":[\"sh\",\"-c\",\"echo $A $B $C $HOME\"],"
                  "\"env\":{\"A\":\"one\",\"B\":2.50,\"C\":true,\"HOME\":\"/here\"}}",
                  "\"one 2.50 true /here\"");
    expect_result(t, &rig, "{\"argv\":[\"pwd\"],\"cwd\":\"/usr/bin\"}", "\"/usr/bin\"");
    expect_failed(run(t, &rig, "{\"argv\":[\"pwd\"],\"cwd\":\"/nowhere/at/all\"}", LONG_MS),
                  "'cwd': expected a folder, found none at '/nowhere/at/all'");
    close_rig(&rig);
}

TEST(exec, where_programs_are_listed_a_step_cannot_get_around_the_list)
{
    struct exec_rig rig = open_rig();

    EXPECT_OK(toolbox_set_rules(rig.toolbox,
                                STR("exec: {programs: [sh, ./job], env: [GIVEN]}"), &t->scope));
    expect_result(t, &rig, "{\"argv\":[\"sh\",\"-c\",\"echo $GIVEN\"],\"env\":{\"GIVEN\":\"x\"}}",
                  "\"x\"");
    expect_failed(run(t, &rig, "{\"argv\":[\"sh\"],\"env\":{\"BASH_ENV\":\"/tmp/x\"}}", LONG_MS),
                  "the variable 'BASH_ENV' is not listed in tools.exec.env");
    expect_failed(run(t, &rig, "{\"argv\":[\"./job\"],\"cwd\":\"/tmp\"}", LONG_MS),
                  "a listed program must be an absolute path");
    close_rig(&rig);
}

/* Another attempt would fail likewise, and a step with retries would wait minutes for it. */
TEST(exec, a_wrong_argument_is_refused_by_name_and_for_good)
{
    static const struct {
        const char *args, *words;
    } wrong[] = {
        { "{\"argv\":[\"ls\"],\"evn\":{}}", "exec: unknown argument 'evn'; did you mean 'env'?" },
        { "{\"argv\":[\"ls\"],\"shell\":true}",
          "unknown argument 'shell'; known: argv, input, stdin, env, cwd, as" },
        { "{\"argv\":[\"ls\"],\"stdin\":\"a\",\"input\":1}", "are two inputs" },
        { "{\"argv\":[\"ls\"],\"stdin\":{}}", "'stdin' must be a text, found an object" },
        { "{\"argv\":[\"ls\"],\"env\":[1]}", "'env' must be an object" },
        { "{\"argv\":[\"ls\"],\"env\":{\"A=B\":\"\"}}", "'A=B' cannot name a variable" },
        { "{\"argv\":[\"ls\"],\"env\":{\"A\":{}}}", "env.A must be a string, found an object" },
        { "{\"argv\":[\"ls\"],\"env\":{\"PAWL_IDEMPOTENCY_KEY\":\"x\"}}", "is set by pawl" },
        { "{\"argv\":[\"ls\"],\"cwd\":7}", "'cwd' must be the path of a folder" },
        { "{\"argv\":\"ls\"}", "'argv' must be an array" },
        { "7", "its args must be a JSON object" },
    };
    struct exec_rig rig = open_rig();

    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        struct tool_result result = run(t, &rig, wrong[i].args, LONG_MS);

        expect_failed(result, wrong[i].words);
        EXPECT(result.is_final);
    }
    close_rig(&rig);
}

TEST(exec, a_flood_on_stdout_is_cut_off_and_one_on_stderr_is_swallowed)
{
    struct exec_rig rig = open_rig();

    expect_failed(run(t, &rig, "{\"argv\":[\"yes\"]}", LONG_MS),
                  "printed more than 1048576 bytes and was killed");
    EXPECT_STR(run_script(t, &rig, "head -c 5000000 /dev/zero >&2; echo 1", LONG_MS).json, "1");
    expect_failed(run_script(t, &rig, "exec cat /dev/zero >&2", 300), "timeout: ");
    close_rig(&rig);
}

TEST(exec, an_input_of_a_megabyte_that_nobody_reads_holds_nobody_up)
{
    struct exec_rig rig = open_rig();
    struct buf args;

    buf_init(&args, &heap_libc, 0);
    buf_str(&args, STR("{\"argv\":[\"true\"],\"input\":\""));
    for (int i = 0; i < 1000000; i++)
        buf_byte(&args, 'x');
    buf_str(&args, STR("\"}"));
    expect_result(t, &rig, buf_text(&args), "null");
    buf_fini(&args);
    close_rig(&rig);
}

/* ---- Time, and what is left behind ------------------------------------------------------------
 */

TEST(exec, a_program_that_hangs_is_killed_when_its_time_is_over)
{
    struct exec_rig rig = open_rig();

    expect_failed(run(t, &rig, "{\"argv\":[\"sleep\",\"1000\"]}", 100),
                  "timeout: exec 'sleep' took longer than 100ms and was killed");
    expect_failed(
        run_script(t, &rig, "trap '' TERM INT HUP; exec 1>&- 2>&-; while :; do :; done", 100),
        "timeout: ");
    close_rig(&rig);
}

TEST(exec, the_time_limit_holds_even_if_the_clock_stands_still)
{
    struct env *env = env_sim_new(0, 1);
    struct exec_rig rig = { env, make_toolbox(env) };

    expect_failed(run(t, &rig, "{\"argv\":[\"sleep\",\"1000\"]}", 100), "timeout: ");
    close_rig(&rig);
}

/* A fifo that the grandchild holds open: its hanging up proves that it is gone. */
static void expect_grandchild_gone(struct test *t, const char *script, int64_t timeout_ms,
                                   const char *part)
{
    char folder[TEST_FOLDER_SIZE], path[96], text[300];
    struct exec_rig rig = open_rig();
    struct tool_result result;
    int fd;

    test_folder(folder);
    (void)snprintf(path, sizeof path, "%s/fifo", folder);
    EXPECT_EQ(mkfifo(path, 0600), 0);
    fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    EXPECT(fd >= 0);
    (void)snprintf(text, sizeof text, "exec 9>%s; %s", path, script);
    result = run_script(t, &rig, text, timeout_ms);
    EXPECT_HAS(result.json.data, part);
    EXPECT(hangs_up(fd));
    close(fd);
    unlink(path);
    rmdir(folder);
    close_rig(&rig);
}

TEST(exec, a_grandchild_in_the_background_ends_with_its_program)
{
    expect_grandchild_gone(t, "sleep 1000 & echo 1", LONG_MS, "1");
    expect_grandchild_gone(t, "(trap '' TERM; sleep 1000; :) & sleep 1000", 200, "timeout: ");
    expect_grandchild_gone(t, "sleep 1000 & exit 4", LONG_MS, "status 4");
    expect_grandchild_gone(t, "sleep 1000 & yes", LONG_MS, "printed more than");
}

TEST(exec, a_grandchild_that_left_the_group_ends_with_its_program_too)
{
    expect_grandchild_gone(t, "setsid sleep 1000 & echo 1", LONG_MS, "1");
    expect_grandchild_gone(t, "setsid setsid sh -c 'trap : TERM HUP; setsid sleep 1000 & wait' & sleep 1000",
                           200, "timeout: ");
    expect_grandchild_gone(t, "(setsid sh -c 'setsid sleep 1000 & setsid sleep 1000 &' &) ; exit 4",
                           LONG_MS, "status 4");
    expect_grandchild_gone(t, "setsid sleep 1000 & yes", LONG_MS, "printed more than");
}

TEST(exec, those_who_keep_forking_while_they_are_ended_are_ended_all_the_same)
{
    expect_grandchild_gone(t,
                           "f() { setsid sh -c 'sleep 0.01; sleep 1000 & sleep 1000 &' & }; "
                           "for i in 1 2 3 4 5 6 7 8 9; do f; done; sleep 0.02; echo 1",
                           LONG_MS, "1");
}

TEST(exec, what_a_program_began_ends_also_if_the_program_kills_its_keeper)
{
    static const char *const scripts[] = {
        "setsid sleep 1000 & kill -9 $PPID; sleep 1000", /* found by its environment */
        "(setsid setsid sleep 1000 &); kill -9 $PPID",
        "env -i setsid sleep 1000 & kill -9 $PPID; sleep 1000", /* by its parents */
        "env -i sleep 1000 & sleep 0.2; kill -9 $PPID",         /* by its group */
        "exec env -i sh -c 'setsid sleep 1000 & sleep 0.2; kill -9 $PPID; sleep 1000'",
    };

    for (size_t i = 0; i < sizeof scripts / sizeof scripts[0]; i++)
        expect_grandchild_gone(t, scripts[i], LONG_MS, "its exit status is unknown");
}

TEST(exec, a_program_that_stops_its_keeper_holds_up_no_step)
{
    expect_grandchild_gone(t, "setsid sleep 1000 & kill -STOP $PPID; echo 1", LONG_MS, "1");
    expect_grandchild_gone(t, "setsid sleep 1000 & kill -STOP $PPID; sleep 1000", 200, "timeout: ");
    expect_grandchild_gone(t, "(while :; do kill -STOP $PPID; done) & sleep 1000", 200,
                           "timeout: ");
}

TEST(exec, the_end_of_one_keeper_leaves_the_programs_of_others_with_the_same_key_alone)
{
    struct exec_rig rig = open_rig();
    pid_t other = fork();
    int status;

    if (other == 0) {
        struct tool_result result = run_script(t, &rig, "sleep 1; echo 7", LONG_MS);

        _exit(result.failed ? 1 : 0);
    }
    for (int i = 0; i < 5; i++)
        expect_failed(run_script(t, &rig, "sleep 0.1; kill -9 $PPID; sleep 1000", LONG_MS),
                      "its exit status is unknown");
    EXPECT_EQ(waitpid(other, &status, 0), other);
    EXPECT_EQ(status, 0);
    close_rig(&rig);
}

TEST(exec, a_program_and_all_it_began_end_when_their_host_is_killed)
{
    char folder[TEST_FOLDER_SIZE], path[96], text[300], byte;
    struct pollfd begun;
    pid_t host;

    test_folder(folder);
    (void)snprintf(path, sizeof path, "%s/fifo", folder);
    (void)snprintf(text, sizeof text, "exec 9>%s; setsid sleep 1000 & echo >&9; sleep 1000", path);
    EXPECT_EQ(mkfifo(path, 0600), 0);
    begun = (struct pollfd){ open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC), POLLIN, 0 };
    host = fork();
    if (host == 0) {
        struct exec_rig rig = open_rig();

        (void)run_script(t, &rig, text, LONG_MS);
        _exit(0);
    }
    EXPECT_EQ(poll(&begun, 1, LONG_MS), 1);
    EXPECT_EQ(read(begun.fd, &byte, 1), 1);
    EXPECT_EQ(kill(host, SIGKILL), 0);
    EXPECT_EQ(waitpid(host, NULL, 0), host);
    EXPECT(hangs_up(begun.fd));
    close(begun.fd);
    unlink(path);
    rmdir(folder);
}

/* The program of the test's own folder, as a file whose owner is root and which runs as its owner. */
static void copy_as_root(const char *folder, char path[200])
{
    char from[200] = "", command[1024];
    ssize_t size = readlink("/proc/self/exe", from, sizeof from - 1);

    EXPECT(size > 0 && strrchr(from, '/'));
    *strrchr(from, '/') = '\0';
    (void)snprintf(path, 200, "%s/other_user", folder);
    (void)snprintf(command, sizeof command, "cp %s/other_user %s && chmod 4755 %s && chmod 777 %s",
                   from, path, path, folder);
    EXPECT_EQ(system(command), 0); /* NOLINT: a test's own words */
}

static void end_other_user(const char *folder)
{
    char path[200], command[300];
    FILE *file;
    int pid = 0;

    (void)snprintf(path, sizeof path, "%s/pid", folder);
    file = fopen(path, "r");
    EXPECT(file && fscanf(file, "%d", &pid) == 1 && pid > 1);
    fclose(file);
    EXPECT_EQ(kill(pid, 0), 0); /* it could not be killed by its host */
    EXPECT_EQ(kill(pid, SIGKILL), 0);
    (void)snprintf(command, sizeof command, "rm -r %s", folder);
    EXPECT_EQ(system(command), 0);
}

TEST(exec, a_program_that_runs_as_another_user_delays_no_step)
{
    char folder[TEST_FOLDER_SIZE], path[200], args[500];
    pid_t host;
    int status;

    if (geteuid() != 0)
        return; /* only root can make such a file */
    test_folder(folder);
    copy_as_root(folder, path);
    (void)snprintf(args, sizeof args, "{\"argv\":[\"%s\",\"%s/pid\"]}", path, folder);
    host = fork();
    if (host == 0) {
        struct exec_rig rig = open_rig();

        if (setresuid(NOBODY, NOBODY, NOBODY) != 0)
            _exit(2);
        expect_failed(run(t, &rig, args, 500), "timeout: ");
        _exit(0);
    }
    EXPECT_EQ(waitpid(host, &status, 0), host);
    EXPECT_EQ(status, 0);
    end_other_user(folder);
}

struct background {
    struct exec_rig rig;
    const char *args;
    struct tool_result result;
    struct scope scope;
    pawl_status status;
};

static void *run_in_background(void *context)
{
    struct background *background = context;
    pawl_tool_call call = { .tool = "exec", .args = background->args, .idempotency_key = "k" };

    background->status = toolbox_run(background->rig.toolbox, &call, 0, NULL, &background->scope,
                                     &background->result);
    return NULL;
}

/* Three programs with these arguments, until kill_all has ended them. */
static void expect_all_killed(struct exec_rig rig, const char *args, const char *part)
{
    struct background backgrounds[3];
    pthread_t threads[3];

    for (int i = 0; i < 3; i++) {
        backgrounds[i] = (struct background){ .rig = rig, .args = args, .status = PAWL_CONFLICT };
        scope_init(&backgrounds[i].scope, &heap_libc, 0);
        EXPECT_EQ(pthread_create(&threads[i], NULL, run_in_background, &backgrounds[i]), 0);
    }
    (void)poll(NULL, 0, 300); /* they run */
    for (int i = 0; i < 3; i++)
        while (pthread_tryjoin_np(threads[i], NULL) == EBUSY) {
            toolbox_kill_all(rig.toolbox); /* it may not have begun yet: again */
            (void)poll(NULL, 0, 5);
        }
    for (int i = 0; i < 3; i++) {
        EXPECT_OK(backgrounds[i].status);
        expect_failed(backgrounds[i].result, part);
        scope_fini(&backgrounds[i].scope);
    }
    close_rig(&rig);
}

TEST(exec, kill_all_ends_every_program_that_is_running_now)
{
    struct exec_rig rig = open_rig();

    toolbox_kill_all(rig.toolbox);
    expect_all_killed(rig, "{\"argv\":[\"sh\",\"-c\",\"sleep 1000 & sleep 1000\"]}",
                      "ended by signal 9");
}

TEST(exec, kill_all_ends_programs_that_keep_their_keepers_stopped)
{
    expect_all_killed(open_rig(),
                      "{\"argv\":[\"sh\",\"-c\",\"(while :; do kill -STOP $PPID; done) & sleep "
                      "1000\"]}",
                      "exec 'sh'");
}

struct asked {
    struct background background;
    struct tool_stop stop;
};

static void *run_until_asked(void *context)
{
    struct asked *asked = context;
    struct background *background = &asked->background;
    pawl_tool_call call = { .tool = "exec", .args = background->args, .idempotency_key = "k" };

    background->status = toolbox_run(background->rig.toolbox, &call, 0, &asked->stop,
                                     &background->scope, &background->result);
    return NULL;
}

TEST(exec, a_call_that_is_asked_to_stop_ends_though_its_program_keeps_its_keeper_stopped)
{
    struct asked asked = { .background = {
                               .rig = open_rig(),
                               .args = "{\"argv\":[\"sh\",\"-c\",\"(while :; do kill -STOP $PPID; "
                                       "done) & sleep 1000\"]}" } };
    pthread_t thread;

    scope_init(&asked.background.scope, &heap_libc, 0);
    EXPECT_EQ(pthread_create(&thread, NULL, run_until_asked, &asked), 0);
    (void)poll(NULL, 0, 300); /* it runs */
    toolbox_stop(asked.background.rig.toolbox, &asked.stop);
    EXPECT_EQ(pthread_join(thread, NULL), 0);
    EXPECT_OK(asked.background.status);
    expect_failed(asked.background.result, "exec 'sh'");
    EXPECT(asked.background.result.is_cut); /* no answer of its own */
    scope_fini(&asked.background.scope);
    close_rig(&asked.background.rig);
}

/* ---- The host's ways ---------------------------------------------------------------------------
 */

TEST(exec, a_host_that_blocks_or_ignores_signals_does_not_pass_that_on)
{
    struct exec_rig rig = open_rig();
    struct tool_result result;
    sigset_t all;

    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, NULL);
    signal(SIGPIPE, SIG_IGN);
    result = run_script(t, &rig, "grep -E 'SigBlk|SigIgn' /proc/self/status >&2; exit 1", LONG_MS);
    EXPECT_HAS(result.json.data, "SigBlk:\\t0000000000000000\\nSigIgn:");
    EXPECT_HAS(result.json.data, "0000000\""); /* 32 and 33 are glibc's own */
    close_rig(&rig);
}

TEST(exec, a_host_that_ignores_sigchld_learns_how_its_programs_end)
{
    struct exec_rig rig = open_rig();

    signal(SIGCHLD, SIG_IGN);
    EXPECT_STR(run(t, &rig, "{\"argv\":[\"true\"]}", LONG_MS).json, "null");
    expect_failed(run(t, &rig, "{\"argv\":[\"false\"]}", LONG_MS), "status 1");
    signal(SIGCHLD, SIG_DFL);
    close_rig(&rig);
}

TEST(exec, every_allocation_that_fails_is_no_memory_and_leaks_nothing)
{
    struct fault_heap fault = { 0 };
    struct env *env = env_os_new(&heap_libc);

    FAULT_EACH(fault, FAULT_ONCE)
    {
        pawl_tool_call call = { .tool = "exec",
                                .args = "{\"argv\":[\"cat\"],\"input\":[1,2]}",
                                .idempotency_key = "k" };
        struct toolbox *toolbox = toolbox_new(
            &(struct toolbox_options){ .heap = &fault.heap, .env = env, .allow_exec = true });
        struct tool_result result;
        struct scope scope;
        pawl_status status;

        if (!toolbox)
            continue;
        scope_init(&scope, &fault.heap, 0);
        status = toolbox_run(toolbox, &call, LONG_MS, NULL, &scope, &result);
        EXPECT(status == (fault.has_failed ? PAWL_NO_MEMORY : PAWL_OK));
        scope_fini(&scope);
        toolbox_free(toolbox);
    }
    env->close(env);
}
