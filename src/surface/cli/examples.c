/* examples.c - what a server with --examples begins with. */
#include "surface/cli/cli.h"

extern const str example_files[][2]; /* made by tools/embed from examples/ */

/* What to do in a store without orders: create an instance, or fire an action at the newest. By the
 * label `example` the dashboard finds those that it greets with. One more, `killed`, is begun by
 * script/server, in a process that it kills. */
static const struct {
    const char *definition, *subject, *action, *actor;
    const char *labels, *input; /* JSON */
} story[] = {
    { .definition = "order",
      .subject = "A-17",
      .actor = "ann",
      .labels = "{\"region\":\"eu\",\"example\":\"verified\"}" },
    { .action = "pay", .actor = "ann" },
    { .action = "ship", .actor = "bob" },
    { .definition = "order", .subject = "A-18", .actor = "ann" },
    { .action = "pay", .actor = "eve" },
    { .definition = "order",
      .subject = "A-19",
      .actor = "ann",
      .labels = "{\"example\":\"refused\"}" },
    { .definition = "batch-release", .subject = "batch-7" },
    { .action = "begin-testing", .actor = "lab" },
    { .definition = "welcome", .input = "{\"name\":\"Ann\"}" },
    { .definition = "approval",
      .subject = "the annual report",
      .actor = "ann",
      .labels = "{\"example\":\"approval\"}",
      .input = "{\"what\":\"the annual report\"}" },
    { .definition = "countdown", .input = "{\"from\":60,\"every\":\"2s\"}" },
};

static pawl_status run_story(struct cli *cli)
{
    str id = STR_NONE;

    for (size_t i = 0; i < sizeof story / sizeof story[0]; i++) {
        struct node *answer;

        TRY(cli_ask(cli, story[i].action ? "instance.fire" : "instance.create",
                    WITH({ "instance_id", story[i].action ? id : STR_NONE },
                         { "definition", str_of(story[i].definition) },
                         { "subject_ref", str_of(story[i].subject) },
                         { "action", str_of(story[i].action) },
                         { "actor_ref", str_of(story[i].actor) },
                         { "labels", .json = str_of(story[i].labels) },
                         { "input", .json = str_of(story[i].input) }),
                    &answer));
        if (!story[i].action)
            id = member_str(answer, "instance_id");
    }
    return PAWL_OK;
}

pawl_status examples_put(struct cli *cli)
{
    struct node *page;
    struct put put;

    for (const str(*file)[2] = example_files; (*file)[0].data; file++)
        TRY(define_text(cli, (*file)[1], (*file)[0].data, NULL, &put));
    TRY(cli_ask(cli, "instance.list",
                WITH({ "definition", STR("order") }, { "limit", .number = 1 }), &page));
    return node_first(page, "instances") ? PAWL_OK : run_story(cli);
}
