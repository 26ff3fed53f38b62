/* verb_doctor.c - doctor: is everything about a store as it should be, and if not, what to try;
 * --rebuild: makes the rows that follow from the log again; --accept-head: accepts the log. */
#include "base/time.h"
#include "repair/repair.h"
#include "store/owner.h"
#include "surface/cli/cli.h"
#include <limits.h>
#include <pwd.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#define MIB             ((uint64_t)1 << 20)
#define DISK_WARN       (512 * MIB)
#define DISK_BAD        (64 * MIB)
#define WAL_WARN        (256 * MIB)
#define FILES_WARN      1024
#define CLOCK_WARN_MS   5000
#define OVERDUE_WARN_MS 60000
#define QUICK_MAX       (256 * MIB) /* a file that is larger is read whole only with --full */

#define DOCTOR_FINDINGS_MAX 24

enum doctor_verdict { DOCTOR_GOOD, DOCTOR_WARN, DOCTOR_BAD };

struct doctor_finding {
    enum doctor_verdict verdict;
    const char *name;
    char words[400];
    char advice[512]; /* the next command to try, or what to do; "": nothing */
};

struct doctor {
    struct cli *cli;
    struct doctor_finding findings[DOCTOR_FINDINGS_MAX];
    uint32_t count;
    enum doctor_verdict worst;
    char advice[512];
};

/* One thing that was looked at. `advice` may be NULL. */
static void __attribute__((format(printf, 5, 6)))
doctor_say(struct doctor *doctor, enum doctor_verdict verdict, const char *name, const char *advice,
           const char *format, ...)
{
    struct doctor_finding *finding = &doctor->findings[doctor->count];
    va_list arguments;

    if (doctor->count == DOCTOR_FINDINGS_MAX)
        return;
    doctor->count++;
    doctor->worst = verdict > doctor->worst ? verdict : doctor->worst;
    finding->verdict = verdict;
    finding->name = name;
    va_start(arguments, format);
    vsnprintf(finding->words, sizeof finding->words, format, arguments);
    va_end(arguments);
    snprintf(finding->advice, sizeof finding->advice, "%s", advice ? advice : "");
}

static const char *size_words(uint64_t bytes, char out[MOMENT_SIZE])
{
    if (bytes < 10 * MIB)
        snprintf(out, MOMENT_SIZE, "%llu KiB", (unsigned long long)(bytes / 1024));
    else if (bytes < 10240 * MIB)
        snprintf(out, MOMENT_SIZE, "%llu MiB", (unsigned long long)(bytes / MIB));
    else
        snprintf(out, MOMENT_SIZE, "%llu GiB", (unsigned long long)(bytes / MIB / 1024));
    return out;
}

/* "pawl --store URL VERB": the next command to try. */
static const char *command(struct doctor *doctor, const char *words)
{
    snprintf(doctor->advice, sizeof doctor->advice, "%.400s %s", doctor->cli->command, words);
    return doctor->advice;
}

/* ---- The file ---- */

static uint64_t file_bytes(const char *file, const char *ending)
{
    char path[4096];
    struct stat info;

    if (snprintf(path, sizeof path, "%s%s", file, ending) >= (int)sizeof path ||
        stat(path, &info) != 0)
        return 0;
    return (uint64_t)info.st_size;
}

/* The user to whom a file belongs, or /proc/PID; by number, if that has no name. */
static const char *user_of(const char *path, char out[64])
{
    struct stat info;
    const struct passwd *user;

    if (stat(path, &info) != 0)
        return "unknown";
    user = getpwuid(info.st_uid);
    if (user)
        snprintf(out, 64, "%s", user->pw_name);
    else
        snprintf(out, 64, "%u", (unsigned)info.st_uid);
    return out;
}

static const char *store_source(const struct cli *cli)
{
    if (cli->store_named)
        return "from --store";
    return cli->store_given ? "from PAWL_STORE" : "the default store";
}

/* Which file it is, whose, and why this one. */
static void check_file(struct doctor *doctor, const char *file)
{
    char size[MOMENT_SIZE], user[64], path[PATH_MAX];
    bool can_read = access(file, R_OK) == 0, can_write = access(file, W_OK) == 0;
    struct stat info = { 0 };

    (void)stat(file, &info);
    doctor_say(doctor,
               can_write  ? DOCTOR_GOOD
               : can_read ? DOCTOR_WARN
                          : DOCTOR_BAD,
               "file",
               can_write  ? NULL
               : can_read ? "chmod u+w, or run as the user who owns it"
                          : "run doctor as the user who owns it",
               "%.200s, %s, of user %s, mode %o; %s%s", realpath(file, path) ? path : file,
               size_words(file_bytes(file, ""), size), user_of(file, user),
               (unsigned)info.st_mode & 07777, store_source(doctor->cli),
               can_write  ? ""
               : can_read ? "; this user may read it, but not write it"
                          : "; this user may not read it");
}

static void check_wal(struct doctor *doctor, const char *file)
{
    uint64_t bytes = file_bytes(file, "-wal");
    char size[MOMENT_SIZE];

    doctor_say(doctor, bytes > WAL_WARN ? DOCTOR_WARN : DOCTOR_GOOD, "wal",
               bytes > WAL_WARN ? "close readers that stay open for long; then it shrinks by itself"
                                : NULL,
               "%s write-ahead log", size_words(bytes, size));
}

static void check_disk(struct doctor *doctor, const char *file)
{
    struct statvfs info;
    uint64_t bytes;
    char size[MOMENT_SIZE];
    enum doctor_verdict verdict = DOCTOR_GOOD;

    if (statvfs(file, &info) != 0)
        return;
    bytes = (uint64_t)info.f_bavail * info.f_frsize;
    if (bytes < DISK_WARN)
        verdict = bytes < DISK_BAD ? DOCTOR_BAD : DOCTOR_WARN;
    doctor_say(doctor, verdict, "disk",
               verdict == DOCTOR_GOOD ? NULL
                                      : "free some space: nothing can be recorded on a full disk",
               "%s free", size_words(bytes, size));
}

static void check_owner(struct doctor *doctor, const char *file)
{
    struct cli *cli = doctor->cli;
    char address[256] = "", user[64], process[32];
    int pid = 0;
    struct client client;

    if (sqlite_owner(str_of(file), address, sizeof address, &pid) != PAWL_OK) {
        doctor_say(doctor, DOCTOR_WARN, "owner", NULL, "%s-owner cannot be read", file);
    } else if (pid <= 0) {
        doctor_say(doctor, DOCTOR_GOOD, "owner", NULL,
                   "none: no process has the store open; steps and timers wait for pawl serve, "
                   "run or resume");
    } else if (!address[0]) {
        doctor_say(doctor, DOCTOR_WARN, "owner", "end it, or go through it",
                   "process %d, which has no address: commands cannot go through it", pid);
    } else if (client_init(&client, address, &cli->scope) != PAWL_OK || !client_reaches(&client)) {
        doctor_say(doctor, DOCTOR_BAD, "owner", "look at that process, and end it if it hangs",
                   "process %d, which does not answer at %s", pid, address);
    } else {
        snprintf(process, sizeof process, "/proc/%d", pid);
        doctor_say(doctor, DOCTOR_GOOD, "owner", NULL,
                   "process %d of user %s has the store open, and answers at %s", pid,
                   user_of(process, user), address);
    }
}

static void check_files_limit(struct doctor *doctor)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
        return;
    doctor_say(doctor, limit.rlim_max < FILES_WARN ? DOCTOR_WARN : DOCTOR_GOOD, "limits",
               limit.rlim_max < FILES_WARN ? "ulimit -n 65536" : NULL,
               "%llu open files at most: a server has as many connections",
               (unsigned long long)limit.rlim_max);
}

/* ---- What the store says ---- */

static void check_content(struct doctor *doctor, const struct node *info)
{
    struct arena *arena = &doctor->cli->scope.arena;

    int64_t shards = member_int(info, "shards");
    const char *of_shards = counted(arena, shards, "shard", "shards");

    doctor_say(doctor, DOCTOR_GOOD, "content", NULL, "%s, %s, %s, %s ahead of their rows%s%s",
               counted(arena, member_int(info, "records"), "record", "records"),
               counted(arena, member_int(info, "instances"), "instance", "instances"),
               counted(arena, member_int(info, "definitions"), "definition", "definitions"),
               counted(arena, member_int(info, "rows_behind"), "record", "records"),
               shards > 1 ? "; " : "", shards > 1 ? of_shards : "");
}

static void check_versions(struct doctor *doctor, const struct node *info)
{
    str version = member_str(info, "version"), sqlite = member_str(info, "sqlite");
    str format = member_str(info, "format"), migrations = member_str(info, "migrations");
    bool is_same = str_is(version, PAWL_VERSION);

    doctor_say(doctor, is_same ? DOCTOR_GOOD : DOCTOR_WARN, "version",
               is_same ? NULL : "use one version on both sides", "pawl %.*s, %s%.*s%s%s",
               STR_ARG(version), str_starts(sqlite, STR("PostgreSQL")) ? "" : "SQLite ",
               STR_ARG(sqlite), is_same ? "" : "; this command line is pawl ",
               is_same ? "" : PAWL_VERSION);
    doctor_say(doctor, DOCTOR_GOOD, "format", NULL, "%.*s, with %.*s migrations", STR_ARG(format),
               STR_ARG(migrations));
    check_content(doctor, info);
}

static void check_schema(struct doctor *doctor, const struct node *info)
{
    str fault = member_str(info, "schema_fault");
    int64_t foreign = member_int(info, "host_objects");

    if (fault.size == 0 && foreign > 0) {
        doctor_say(doctor, DOCTOR_GOOD, "schema", NULL,
                   "pawl's tables, indexes and views are right; %lld others belong to the host",
                   (long long)foreign);
        return;
    }
    doctor_say(doctor, fault.size > 0 ? DOCTOR_BAD : DOCTOR_GOOD, "schema",
               fault.size > 0 ? command(doctor, "verify") : NULL, "%.*s",
               STR_ARG(fault.size > 0 ? fault : STR("tables, indexes and views are pawl's own")));
}

static void check_clock(struct doctor *doctor, const struct node *info)
{
    int64_t there = 0, ahead_ms = member_int(info, "clock_ahead_ms"), here = now_ms();
    char span[MOMENT_SIZE];

    if (!time_parse(member_str(info, "now"), &there))
        return;
    if (member_true(info, "test_clock")) {
        doctor_say(doctor, DOCTOR_GOOD, "clock", NULL, "virtual: only test.advance moves it");
        return;
    }
    if (ahead_ms) {
        span_print(ahead_ms > 0 ? ahead_ms : -ahead_ms, span);
        doctor_say(doctor, DOCTOR_WARN, "clock",
                   ahead_ms > 0 ? command(doctor, "doctor --accept-clock") : "restart the server",
                   "the store's clock is %s %s this machine's, which has jumped: recorded_at "
                   "differs from fired_at; durations are not affected",
                   span, ahead_ms > 0 ? "ahead of" : "behind");
        return;
    }
    span_print(there > here ? there - here : here - there, span);
    if (there - here > CLOCK_WARN_MS || here - there > CLOCK_WARN_MS)
        doctor_say(doctor, DOCTOR_WARN, "clock", "set the clocks of both machines",
                   "the server's clock and this one's differ by %s", span);
    else
        doctor_say(doctor, DOCTOR_GOOD, "clock", NULL, "right");
}

static void check_timers(struct doctor *doctor, const struct node *info)
{
    long long count = (long long)member_int(info, "timers_overdue");
    int64_t oldest = 0, now = 0;
    char span[MOMENT_SIZE];

    if (!time_parse(member_str(info, "oldest_overdue"), &oldest) ||
        !time_parse(member_str(info, "now"), &now) || now - oldest < OVERDUE_WARN_MS) {
        doctor_say(doctor, DOCTOR_GOOD, "timers", NULL, "none is overdue");
        return;
    }
    span_print(now - oldest, span);
    doctor_say(doctor, DOCTOR_WARN, "timers", command(doctor, "serve"),
               "%lld%s overdue, the first by %s: no process has owned the store since", count,
               count == 1000 ? " or more" : "", span);
}

/* The store's own report; another process may have it open. */
static void check_health(struct doctor *doctor)
{
    struct cli *cli = doctor->cli;
    const struct node *first;
    struct node *answer;

    if (cli_ask_id(cli, "health.get", NULL, &answer) != PAWL_OK) {
        doctor_say(doctor, DOCTOR_BAD, "health", NULL, "%.390s", cli->scope.error.message);
        return;
    }
    first = node_first(answer, "conditions");
    if (!first)
        doctor_say(doctor, DOCTOR_GOOD, "health", NULL, "no condition is reported");
    for (const struct node *one = first; one; one = one->next) {
        bool went_back = str_is(member_str(one, "condition"), "went-back");

        doctor_say(doctor, went_back ? DOCTOR_BAD : DOCTOR_WARN, "health",
                   went_back ? command(doctor, "doctor --accept-head") : NULL,
                   "%.*s: %.*s", STR_ARG(member_str(one, "condition")),
                   STR_ARG(member_str(one, "what")));
    }
}

/* ---- Nodes ---- */

#define SKEW_WARN_MS 250 /* as a node warns */

struct node_counts {
    int64_t up, silent, unowned, others; /* others: up, with another version than this one */
};

static struct node_counts count_nodes(const struct node *answer)
{
    struct node_counts counts = { 0 };

    for (const struct node *one = node_first(answer, "nodes"); one; one = one->next) {
        str state = member_str(one, "state");

        counts.up += str_is(state, "up");
        counts.silent += str_is(state, "silent");
        counts.others += str_is(state, "up") && !str_is(member_str(one, "version"), PAWL_VERSION);
    }
    for (const struct node *one = node_first(answer, "shards"); one; one = one->next)
        counts.unowned += member_str(one, "node").size == 0;
    return counts;
}

static void check_node_clock(struct doctor *doctor, int64_t skew_ms)
{
    if (skew_ms < SKEW_WARN_MS && skew_ms > -SKEW_WARN_MS)
        return;
    doctor_say(doctor, DOCTOR_WARN, "node clock", "set the clock of that machine",
               "the node that answered is %lld ms %s the database, and corrects what it records",
               (long long)(skew_ms < 0 ? -skew_ms : skew_ms), skew_ms < 0 ? "ahead of" : "behind");
}

/* Of a store that nodes serve: one in PostgreSQL. */
static void check_nodes(struct doctor *doctor)
{
    struct arena *arena = &doctor->cli->scope.arena;
    struct node_counts counts;
    struct node *answer;
    bool is_good;

    if (cli_ask_id(doctor->cli, "node.list", NULL, &answer) != PAWL_OK ||
        !node_first(answer, "nodes"))
        return;
    counts = count_nodes(answer);
    is_good = !counts.silent && !counts.unowned && !counts.others;
    doctor_say(doctor, is_good ? DOCTOR_GOOD : DOCTOR_WARN, "nodes",
               is_good ? NULL : command(doctor, "nodes"),
               "%s up, %lld silent, %lld of another version, %s without an owner",
               counted(arena, counts.up, "node", "nodes"), (long long)counts.silent,
               (long long)counts.others, counted(arena, counts.unowned, "shard", "shards"));
    check_node_clock(doctor, member_int(answer, "clock_difference_ms"));
}

/* ---- Is the file whole? ---- */

static void check_integrity(struct doctor *doctor, const char *file)
{
    struct cli *cli = doctor->cli;
    const struct node *first;

    if (file_bytes(file, "") > QUICK_MAX && !args_flag(cli, "full")) {
        doctor_say(doctor, DOCTOR_GOOD, "integrity", command(doctor, "doctor --full"),
                   "not checked: the file is large");
        return;
    }
    if (sql_first(cli, "PRAGMA quick_check", &first) != PAWL_OK)
        doctor_say(doctor, DOCTOR_BAD, "integrity", command(doctor, "verify"), "%.200s",
                   cli->scope.error.message);
    else if (first && str_is(first->text, "ok"))
        doctor_say(doctor, DOCTOR_GOOD, "integrity", command(doctor, "verify"),
                   "SQLite finds no fault; verify checks the history");
    else
        doctor_say(doctor, DOCTOR_BAD, "integrity", "first copy the file", "SQLite: %.*s",
                   STR_ARG(first ? first->text : STR("nothing")));
}

/* ---- Output: for people, or as {healthy, checks: [{name, verdict, what, try}]} ---- */

static const char *const verdict_words[] = {
    [DOCTOR_GOOD] = "good", [DOCTOR_WARN] = "warning", [DOCTOR_BAD] = "bad"
};

static void print_findings_json(const struct doctor *doctor)
{
    struct buf out;

    buf_init(&out, &heap_libc, CLI_ANSWER_MAX);
    json_open(&out, '{');
    json_put_bool(&out, "healthy", doctor->worst != DOCTOR_BAD);
    json_put_open(&out, "checks", '[');
    for (uint32_t i = 0; i < doctor->count; i++) {
        const struct doctor_finding *finding = &doctor->findings[i];

        json_open(&out, '{');
        json_put_text(&out, "name", finding->name);
        json_put_text(&out, "verdict", verdict_words[finding->verdict]);
        json_put_text(&out, "what", finding->words);
        json_put_text(&out, "try", finding->advice[0] ? finding->advice : NULL);
        json_close(&out, '}');
    }
    json_close(&out, ']');
    json_close(&out, '}');
    print_json(doctor->cli, buf_view(&out));
    buf_fini(&out);
}

static void print_doctor(const struct doctor *doctor)
{
    static const char *const marks[] = { "✔", "!", "✘" };
    static const enum style styles[] = { GOOD, WARN, BAD };
    struct cli *cli = doctor->cli;
    struct term *term = &cli->term;

    if (cli->json) {
        print_findings_json(doctor);
        return;
    }
    for (uint32_t i = 0; i < doctor->count; i++) {
        const struct doctor_finding *finding = &doctor->findings[i];

        term_put(term, styles[finding->verdict], "%s ", marks[finding->verdict]);
        fprintf(term->out, "%-10s ", finding->name);
        term_cell(term, PLAIN, str_of(finding->words), TABLE_CELL_MAX, 0);
        fputc('\n', term->out);
        if (finding->advice[0])
            term_put(term, DIM, "             try: %s\n", finding->advice);
    }
}

/* ---- All of it ---- */

static pawl_status ask_store(struct doctor *doctor)
{
    struct cli *cli = doctor->cli;
    struct node *info;
    const char *file = store_file(cli->store);
    bool is_file = file && *file;
    pawl_status status = target_open(cli, USE_READ, NULL);

    if (status == PAWL_OK)
        status = cli_ask_id(cli, "store.info", NULL, &info);
    if (status != PAWL_OK) {
        doctor_say(doctor, DOCTOR_BAD, "store",
                   status == PAWL_NOT_KNOWN ? command(doctor, "init") : NULL, "%.300s",
                   cli->scope.error.message);
        return status;
    }
    check_versions(doctor, info);
    check_schema(doctor, info);
    check_clock(doctor, info);
    check_timers(doctor, info);
    check_health(doctor);
    if (!is_file)
        check_nodes(doctor);
    if (is_file)
        check_integrity(doctor, file);
    return PAWL_OK;
}

static int examine(struct cli *cli)
{
    struct doctor *doctor = ARENA_NEW(&cli->scope.arena, struct doctor);
    const char *file = store_file(cli->store);
    pawl_status status;

    if (!doctor) {
        scope_no_memory(&cli->scope);
        return report(cli);
    }
    doctor->cli = cli;
    if (file && access(file, F_OK) == 0) {
        check_file(doctor, file);
        check_wal(doctor, file);
        check_disk(doctor, file);
        check_owner(doctor, file);
        check_files_limit(doctor);
    }
    status = ask_store(doctor);
    print_doctor(doctor);
    if (status != PAWL_OK)
        return exit_of(status);
    return doctor->worst == DOCTOR_BAD ? EXIT_REJECTED : EXIT_DONE;
}

int verb_doctor(struct cli *cli)
{
    if (args_flag(cli, "accept-head"))
        return doctor_accept_head(cli);
    if (args_flag(cli, "accept-clock"))
        return doctor_accept_clock(cli);
    return args_flag(cli, "rebuild") ? doctor_rebuild(cli) : examine(cli);
}
