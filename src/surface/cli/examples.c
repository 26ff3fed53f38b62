/* examples.c - what a server with --examples begins with. */
#include "surface/cli/cli.h"

extern const str example_files[][2]; /* made by tools/embed from examples/ */

/* What to do in an empty store: create, then fire at the newest. */
static const struct {
    const char *operation, *input; /* %s: the id of the newest */
} story[] = {
    { "instance.create", "{\"definition\":\"order\",\"subject_ref\":\"A-17\",\"actor_ref\":\"ann\","
                         "\"labels\":{\"region\":\"eu\"}" },
    { "instance.fire", "\"action\":\"pay\",\"actor_ref\":\"ann\"" },
    { "instance.fire", "\"action\":\"ship\",\"actor_ref\":\"bob\"" },
    { "instance.create",
      "{\"definition\":\"order\",\"subject_ref\":\"A-18\",\"actor_ref\":\"ann\"" },
    { "instance.fire", "\"action\":\"pay\",\"actor_ref\":\"eve\"" },
    { "instance.create", "{\"definition\":\"batch-release\",\"subject_ref\":\"batch-7\"" },
    { "instance.fire", "\"action\":\"begin-testing\",\"actor_ref\":\"lab\"" },
    { "instance.create", "{\"definition\":\"welcome\",\"input\":{\"name\":\"Ann\"}" },
    { "instance.create", "{\"definition\":\"countdown\",\"input\":{\"from\":60,\"every\":\"2s\"}" },
};

static pawl_status tell(struct cli *cli)
{
    char id[32] = "";

    for (size_t i = 0; i < sizeof story / sizeof story[0]; i++) {
        struct buf input;
        struct node *answer;
        bool creates = strcmp(story[i].operation, "instance.create") == 0;

        buf_init(&input, &heap_libc, CLI_ANSWER_MAX);
        if (!creates)
            buf_fmt(&input, "{\"instance_id\":\"%s\",", id);
        buf_fmt(&input, "%s}", story[i].input);
        TRY(target_ask(cli, &cli->scope, story[i].operation, &input, &answer, NULL));
        if (creates)
            snprintf(id, sizeof id, "%.*s", STR_ARG(member_str(answer, "instance_id")));
    }
    return PAWL_OK;
}

static pawl_status is_empty(struct cli *cli, bool *out)
{
    struct node *page;

    TRY(target_ask_with(cli, &cli->scope, "instance.list", WITH({ "limit", .number = 1 }), &page,
                        NULL));
    *out = !node_first(page, "instances");
    return PAWL_OK;
}

pawl_status examples_put(struct cli *cli)
{
    bool empty;
    pawl_status status = PAWL_OK;

    for (const str(*file)[2] = example_files; status == PAWL_OK && (*file)[0].data; file++) {
        struct put put;

        status = define_text(cli, (*file)[1], (*file)[0].data, NULL, &put);
    }
    if (status == PAWL_OK)
        status = is_empty(cli, &empty);
    return status == PAWL_OK && empty ? tell(cli) : status;
}
