/* verify_file.c - checks stores like pawl's own command, but without an engine, for flip.py and
 * forger.py: reads paths from its input and answers each with a line. */
#include "base/limits.h"
#include "evidence/evidence.h"
#include "store/store.h"
#include <stdio.h>

static void say(const struct verify_report *report)
{
    printf("{\"valid\":%s,\"records\":%llu,\"entries\":%llu,\"instances\":%llu",
           report->valid ? "true" : "false", (unsigned long long)report->records,
           (unsigned long long)report->entries, (unsigned long long)report->instances);
    if (!report->valid)
        printf(",\"first_bad\":%llu,\"what\":\"%s\",\"instance_id\":\"%s\",\"position\":%llu",
               (unsigned long long)report->bad_seq, report->what, report->bad_instance,
               (unsigned long long)report->bad_pos);
    puts("}");
}

/* {"valid": false, "refused": "the reason"} */
static void say_failure(const char *how, const char *message)
{
    printf("{\"valid\":false,\"%s\":\"", how);
    for (; *message; message++)
        putchar(*message == '"' || *message == '\\' || (unsigned char)*message < ' ' ? '\'' : *message);
    puts("\"}");
}

static void check(struct store *store)
{
    struct verify_request request = { 0 };
    struct verify_report report;
    pawl_error error;

    if (verify_run(store, &heap_libc, &request, &report, &error) == PAWL_OK)
        say(&report);
    else
        say_failure("failed", error.message);
}

int main(int count, char **arguments)
{
    struct env *env = env_os_new(&heap_libc);
    struct store_options options = { .env = env, .heap = &heap_libc };
    char url[4096] = "sqlite:";

    if (!env || count != 2 || strcmp(arguments[1], "--many") != 0)
        return 2;
    while (fgets(url + 7, sizeof url - 7, stdin)) {
        struct store *store;
        struct scope scope;

        url[strcspn(url, "\n")] = '\0';
        scope_init(&scope, &heap_libc, LIMIT_SCOPE);
        if (store_open(str_of(url), &options, &scope, &store) == PAWL_OK) {
            check(store);
            store_close(store);
        } else
            say_failure("refused", scope.error.message);
        fflush(stdout);
        scope_fini(&scope);
    }
    env->close(env);
    return 0;
}
