/* borrow.c - a trial of a definition that a store has: the trial is in memory, so what the store
 * defines is read from it and put there. Code is not: it comes with the program and its modules. */
#include "surface/cli/trial.h"
#include <unistd.h>

struct borrowed {
    struct borrowed *next;
    const char *name;
    str text;
};

struct borrowing {
    struct cli *cli;
    struct borrowed *list;
};

static pawl_status keep_one(struct borrowing *borrowing, const char *name)
{
    struct scope *scope = &borrowing->cli->scope;
    struct borrowed *one = ARENA_NEW(&scope->arena, struct borrowed);
    struct node *answer;

    TRY_MEMORY(scope, one);
    TRY(definition_ask(borrowing->cli, name, &answer));
    if (str_is(member_str(answer, "kind"), "code"))
        return PAWL_OK;
    *one = (struct borrowed){ .next = borrowing->list,
                              .name = member_str(answer, "name").data,
                              .text = member_str(answer, "text") };
    borrowing->list = one;
    return PAWL_OK;
}

static pawl_status keep_row(void *context, const struct node *row)
{
    return keep_one(context, member_str(row, "name").data);
}

/* The newest of each; the one that is meant is put last, and may be an older one. */
static pawl_status keep_all(struct borrowing *borrowing, const char *meant, bool *has_meant)
{
    pawl_status status = keep_one(borrowing, meant);

    *has_meant = borrowing->list != NULL;
    if (status == PAWL_NOT_KNOWN ||
        status == PAWL_INVALID_REQUEST) /* reported when it is created */
        status = PAWL_OK;
    return status != PAWL_OK ? status
                             : rows_each(borrowing->cli, "definition.list", "definitions", NULL,
                                         keep_row, borrowing);
}

pawl_status borrow_read(struct cli *cli, const char *store, const char *meant, bool *has_meant,
                        struct borrowed **out)
{
    const char *kept = cli->store, *file = store_file(store);
    struct borrowing borrowing = { .cli = cli };
    pawl_status status;

    *out = NULL;
    *has_meant = false;
    if (!file || access(file, F_OK) != 0)
        return PAWL_OK;
    cli->store = store;
    status = target_open(cli, USE_READ, NULL);
    if (status == PAWL_OK)
        status = keep_all(&borrowing, meant, has_meant);
    *out = borrowing.list;
    target_close(cli);
    cli->store = kept;
    return status;
}

pawl_status borrow_put(struct cli *cli, const struct borrowed *list)
{
    struct put put;

    for (; list; list = list->next)
        TRY(define_text(cli, list->text, list->name, list->name, &put));
    return PAWL_OK;
}
