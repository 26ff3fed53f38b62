/* plan.c - a tree that you run yourself: no store, no threads, JSON in and JSON out.
 *
 * The job is a text: write it down wherever you like, and go on with it after a restart. */
#include <pawl.h>
#include <stdio.h>
#include <string.h>

static const char tree[] = "{\"do\":[{\"action\":\"buy\",\"payload\":{\"what\":\"flour\"}},"
                           "{\"try\":[{\"dopar\":[{\"action\":\"bake\",\"payload\":{}},{\"action\":"
                           "\"fail\",\"payload\":{}}]}],"
                           "\"rescue\":[{\"action\":\"clean\",\"payload\":{}}]}]}";

/* What came of the actions: node numbers count from 0 at the root, depth first. */
static const char *const results[] = {
    NULL,
    "[{\"node\":1,\"status\":\"success\",\"output\":1}]",
    "[{\"node\":6,\"status\":\"failure\",\"output\":\"burnt\"},{\"node\":5,\"status\":\"success\"}"
    "]",
    "[{\"node\":8,\"status\":\"success\"}]",
};

int main(void)
{
    char *job = NULL, *next = NULL, *actions = NULL;
    pawl_error err;

    if (pawl_plan_make(tree, &job, &err))
        goto fail;
    for (size_t i = 0; i < sizeof results / sizeof *results; i++) {
        if (pawl_plan_restart(job, results[i], &next, &actions, &err))
            goto fail;
        puts(actions);
        pawl_plan_free(actions);
        pawl_plan_free(job);
        job = next;
    }
    puts(strstr(job, "\"status\":\"success\"") ? "success" : "not yet");
    if (pawl_plan_restart(job, "[{\"node\":99,\"status\":\"success\"}]", &next, &actions, &err))
        puts(err.message);
    pawl_plan_free(job);
    return 0;
fail:
    fprintf(stderr, "%s: %s\n", pawl_status_name(err.status), err.message);
    pawl_plan_free(job);
    return 1;
}
