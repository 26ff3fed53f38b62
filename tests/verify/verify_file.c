/* verify_file.c - `verify_file --store URL verify [--json] [NUMBER]`: checks a store like pawl's
 * own command, but without an engine, for flip.py. `verify_file --many` reads paths from its input
 * and answers each with a line, for forger.py. */
#include "base/limits.h"
#include "evidence/evidence.h"
#include "store/store.h"
#include <stdio.h>
#include <stdlib.h>

static int say(const struct verify_report *report)
{
    printf("{\"valid\":%s,\"records\":%llu,\"entries\":%llu,\"instances\":%llu",
           report->valid ? "true" : "false", (unsigned long long)report->records,
           (unsigned long long)report->entries, (unsigned long long)report->instances);
    if (!report->valid)
        printf(",\"first_bad\":%llu,\"what\":\"%s\",\"instance_id\":\"%s\",\"position\":%llu",
               (unsigned long long)report->bad_seq, report->what, report->bad_instance,
               (unsigned long long)report->bad_pos);
    puts("}");
    return report->valid ? 0 : 1;
}

static int fail(const char *message)
{
    fprintf(stderr, "%s\n", message);
    return 3;
}

static int check(struct store *store, uint64_t instance)
{
    struct verify_request request = { .instance = instance };
    struct verify_report report;
    pawl_error error;

    if (verify_run(store, &heap_libc, &request, &report, &error) != PAWL_OK) {
        puts("{\"valid\":false,\"failed\":true}");
        return fail(error.message);
    }
    return say(&report);
}

/* A store that cannot be opened is reported as {"refused": true}. */
static int check_many(struct env *env)
{
    struct store_options options = { .env = env, .heap = &heap_libc };
    char url[4096] = "sqlite:";

    while (fgets(url + 7, sizeof url - 7, stdin)) {
        struct store *store;
        struct scope scope;

        url[strcspn(url, "\n")] = '\0';
        scope_init(&scope, &heap_libc, LIMIT_SCOPE);
        if (store_open(str_of(url), &options, &scope, &store) == PAWL_OK) {
            (void)check(store, 0);
            store_close(store);
        } else {
            puts("{\"valid\":false,\"refused\":true}");
        }
        fflush(stdout);
        scope_fini(&scope);
    }
    env->close(env);
    return 0;
}

int main(int count, char **arguments)
{
    struct env *env = env_os_new(&heap_libc);
    struct store_options options = { .env = env, .heap = &heap_libc };
    struct store *store;
    struct scope scope;
    int code;

    if (env && count == 2 && strcmp(arguments[1], "--many") == 0)
        return check_many(env);
    if (count < 4 || !env)
        return 2;
    scope_init(&scope, &heap_libc, LIMIT_SCOPE);
    if (store_open(str_of(arguments[2]), &options, &scope, &store) == PAWL_OK) {
        code = check(store, count > 5 ? strtoull(arguments[5], NULL, 10) : 0);
        store_close(store);
    } else
        code = fail(scope.error.message);
    scope_fini(&scope);
    env->close(env);
    return code;
}
