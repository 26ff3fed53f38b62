/* verify_file.c - `verify_file --store URL verify [--json] [NUMBER]`: the check of a store as the
 * command line of pawl asks for it, without an engine, for flip.py. */
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
    struct verify_report report;
    pawl_error error;

    if (verify_run(store, &heap_libc, &(struct verify_request){ .instance = instance }, &report,
                   &error) != PAWL_OK)
        return fail(error.message);
    return say(&report);
}

int main(int count, char **arguments)
{
    struct env *env = env_os_new(&heap_libc);
    struct store_options options = { .env = env, .heap = &heap_libc };
    struct store *store;
    struct scope scope;
    int code;

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
