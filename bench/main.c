/* main.c - bench: every number of DESIGN.md section 7 that issue 2 asks for, in one table.
 *
 *   bench [--json FILE] [--quick] [--dir DIR] [--only fires,million,...] [--pawl PROGRAM] */
#include "bench.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char usage[] =
    "usage: bench [--json FILE] [--quick] [--dir DIR] [--only SECTION,...] [--pawl PROGRAM]\n"
    "sections: fires depth disk flows maps code timers server http mcp million lists"
    " sleepers erasing, and only if they are named: postgres, and of it postgres-flows and"
    " postgres-nodes\n"
    "DIR should be on the disk that matters; the default is ./var\n";

static void measure_million(struct bench *bench)
{
    struct big big;

    big_make(bench, &big);
    measure_million_fires(bench, &big);
    measure_million_server(bench, &big);
    crowd_free(&big.crowd);
}

static const struct section {
    const char *name;
    void (*measure)(struct bench *bench);
} sections[] = {
    { "fires", measure_fires },
    { "depth", measure_depth },
    { "disk", measure_disk },
    { "flows", measure_flows },
    { "maps", measure_maps },
    { "code", measure_code },
    { "timers", measure_timers },
    { "server", measure_server },
    { "http", measure_http },
    { "mcp", measure_mcp },
    { "million", measure_million },
    { "lists", measure_lists },
    { "sleepers", measure_sleepers },
    { "erasing", measure_erasing },
    { "postgres", measure_postgres },
    { "postgres-flows", measure_postgres_flows },
    { "postgres-nodes", measure_postgres_nodes },
};

static bool is_wanted(const struct bench *bench, const char *name)
{
    if (!bench->only)
        return strncmp(name, "postgres", strlen("postgres")) != 0;
    for (const char *at = bench->only; *at; at += strcspn(at, ",") + (at[strcspn(at, ",")] == ','))
        if (strcspn(at, ",") == strlen(name) && strncmp(at, name, strlen(name)) == 0)
            return true;
    return false;
}

static const char *value_of(int argc, char **argv, int *at)
{
    if (*at + 1 >= argc)
        die("%s needs a value", argv[*at]);
    return argv[++*at];
}

static void read_words(struct bench *bench, int argc, char **argv, const char **dir)
{
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--quick") == 0)
            bench->quick = true;
        else if (strcmp(argv[i], "--json") == 0)
            bench->json = value_of(argc, argv, &i);
        else if (strcmp(argv[i], "--dir") == 0)
            *dir = value_of(argc, argv, &i);
        else if (strcmp(argv[i], "--only") == 0)
            bench->only = value_of(argc, argv, &i);
        else if (strcmp(argv[i], "--pawl") == 0)
            snprintf(bench->program, sizeof bench->program, "%s", value_of(argc, argv, &i));
        else {
            fputs(usage, strcmp(argv[i], "--help") == 0 ? stdout : stderr);
            exit(strcmp(argv[i], "--help") == 0 ? 0 : 2);
        }
    }
}

/* The pawl of the same build: ../pawl, seen from this program. */
static void find_program(struct bench *bench)
{
    char self[PATH_SIZE - 16] = "", *slash;

    if (!bench->program[0] && readlink("/proc/self/exe", self, sizeof self - 1) > 0) {
        slash = strrchr(self, '/');
        *slash = '\0';
        snprintf(bench->program, sizeof bench->program, "%s/../pawl", self);
    }
    if (access(bench->program, X_OK) != 0)
        die("%s: %s (say where pawl is with --pawl)", bench->program, strerror(errno));
}

static void make_dir(struct bench *bench, const char *dir)
{
    if (mkdir(dir, 0777) != 0 && errno != EEXIST)
        die("%s: %s", dir, strerror(errno));
    if (snprintf(bench->dir, sizeof bench->dir, "%s/bench-XXXXXX", dir) >= PATH_SIZE - 64 ||
        !mkdtemp(bench->dir))
        die("cannot make a folder in %s: %s", dir, strerror(errno));
}

/* --child DIR NAME COUNT BATCH FIRES: see server.c. */
static int run_child(char **argv)
{
    static struct bench bench;

    snprintf(bench.dir, sizeof bench.dir, "%s", argv[2]);
    child_fire(&bench, argv[3], strtoul(argv[4], NULL, 10), strtoul(argv[5], NULL, 10),
               strtoul(argv[6], NULL, 10));
    return 0;
}

/* --sleepers DIR NAME COUNT WAKE: see sleepers.c. */
static int run_sleepers(char **argv)
{
    static struct bench bench;

    snprintf(bench.dir, sizeof bench.dir, "%s", argv[2]);
    child_sleepers(&bench, argv[3], strtoul(argv[4], NULL, 10), argv[5][0] == '1');
    return 0;
}

int main(int argc, char **argv)
{
    static struct bench bench;
    const char *dir = "var";
    double begin = now_s();

    if (argc == 7 && strcmp(argv[1], "--child") == 0)
        return run_child(argv);
    if (argc == 6 && strcmp(argv[1], "--sleepers") == 0)
        return run_sleepers(argv);
    read_words(&bench, argc, argv, &dir);
    find_program(&bench);
    make_dir(&bench, dir);
    for (size_t i = 0; i < sizeof sections / sizeof *sections; i++)
        if (is_wanted(&bench, sections[i].name)) {
            told("%s ...", sections[i].name);
            sections[i].measure(&bench);
        }
    remove_dir(bench.dir);
    told("measured in %.0f s", now_s() - begin);
    report_table(&bench);
    report_json(&bench);
    return 0;
}
