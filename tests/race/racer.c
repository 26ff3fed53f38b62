/* racer.c - a program that links libpawl and fires, for run_race.py.
 *
 *   racer URL ID ACTION COUNT EXPECTED MARK
 *
 * Opens the store, prints "ready", waits for a line on stdin, then fires ACTION COUNT times
 * (EXPECTED: the number the entry must get; 0: any), each with the payload {"mark":"MARK-i"},
 * and prints for each the status and the number of its entry. */
#include <pawl.h>
#include <stdio.h>
#include <stdlib.h>

static int fail(const pawl_error *error)
{
    printf("%s %s\n", pawl_status_name(error->status), error->message);
    return 1;
}

static void fire(pawl *p, char **arguments, int i)
{
    char payload[128];
    pawl_error error;
    pawl_fired fired = { 0 };
    pawl_fire_args args = { .action = arguments[3],
                            .actor_ref = arguments[6],
                            .payload = payload,
                            .expected_sequence = strtoull(arguments[5], NULL, 10) };
    pawl_status status;

    snprintf(payload, sizeof payload, "{\"mark\":\"%s-%d\"}", arguments[6], i);
    status = pawl_fire(p, arguments[2], &args, &fired, &error);
    printf("%s %llu %s-%d\n", pawl_status_name(status), (unsigned long long)fired.sequence_number,
           arguments[6], i);
}

int main(int count, char **arguments)
{
    pawl_error error;
    pawl *p = NULL;
    char line[16];

    if (count != 7)
        return 2;
    if (pawl_open(&p, arguments[1], NULL, &error))
        return fail(&error);
    puts("ready");
    fflush(stdout);
    if (!fgets(line, sizeof line, stdin))
        return 2;
    for (int i = 0; i < atoi(arguments[4]); i++)
        fire(p, arguments, i);
    pawl_close(p);
    return 0;
}
