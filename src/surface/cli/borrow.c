/* borrow.c - a trial of a definition that a store has: the trial is in memory, so what the store
 * defines is read from it and put there. Code is not: it comes with the program and its modules. */
#include "surface/cli/trial.h"
#include <unistd.h>

#define PAGE 1000

struct borrowed {
    struct borrowed *next;
    const char *name;
    str text;
};

static pawl_status ask_page(struct cli *cli, str after, struct node **out)
{
    return target_ask_with(cli, &cli->scope, "definition.list",
                           WITH({ "limit", .number = PAGE }, { "after", after }), out, NULL);
}

static pawl_status keep_one(struct cli *cli, const char *name, struct borrowed **list)
{
    struct borrowed *one;
    struct node *answer;

    TRY(definition_ask(cli, name, &answer));
    if (str_is(member_str(answer, "kind"), "code"))
        return PAWL_OK;
    one = ARENA_NEW(&cli->scope.arena, struct borrowed);
    TRY_MEMORY(&cli->scope, one);
    *one = (struct borrowed){ .next = *list,
                              .name = member_str(answer, "name").data,
                              .text = member_str(answer, "text") };
    *list = one;
    return PAWL_OK;
}

/* The newest of each; the one that is meant is put last, and may be an older one. */
static pawl_status keep_all(struct cli *cli, const char *meant, bool *has_meant,
                            struct borrowed **list)
{
    struct node *page;
    str after = STR_NONE;
    pawl_status status = keep_one(cli, meant, list);

    if (status == PAWL_NOT_KNOWN || status == PAWL_INVALID_REQUEST) /* told when it is created */
        status = PAWL_OK;
    *has_meant = *list != NULL;
    while (status == PAWL_OK) {
        status = ask_page(cli, after, &page);
        if (status != PAWL_OK)
            break;
        for (const struct node *row = node_first(page, "definitions"); row && status == PAWL_OK;
             row = row->next)
            status = keep_one(cli, member_str(row, "name").data, list);
        after = member_str(page, "next");
        if (after.size == 0)
            break;
    }
    return status;
}

pawl_status borrow_read(struct cli *cli, const char *store, const char *meant, bool *has_meant,
                        struct borrowed **out)
{
    const char *kept = cli->store, *file = store_file(store);
    pawl_status status;

    *out = NULL;
    *has_meant = false;
    if (!file || access(file, F_OK) != 0)
        return PAWL_OK;
    cli->store = store;
    status = target_open(cli, USE_READ, NULL);
    if (status == PAWL_OK)
        status = keep_all(cli, meant, has_meant, out);
    target_close(cli);
    cli->store = kept;
    return status;
}

pawl_status borrow_put(struct cli *cli, const struct borrowed *list)
{
    struct put put;
    pawl_status status = PAWL_OK;

    for (; list && status == PAWL_OK; list = list->next)
        status = define_text(cli, list->text, list->name, list->name, &put);
    return status;
}
