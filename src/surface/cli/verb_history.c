/* verb_history.c - history: all entries, page by page, or the last ones. */
#include "surface/cli/view.h"
#include <errno.h>
#include <stdlib.h>

#define PAGE 1000

/* Every page, in a scope that is emptied between them. The cursor of the first is in `after`. */
typedef void (*page_fn)(struct cli *cli, void *context, const struct node *entries, bool has_more);

static pawl_status each_page(struct cli *cli, char after[64], page_fn fn, void *context)
{
    pawl_status status = PAWL_OK;

    do {
        struct scope kept = scope_take(cli);
        struct node *answer;

        status = cli_ask_typed(
            cli, "instance.history",
            WITH({ "limit", .number = PAGE }, { "after", str_of(after[0] ? after : NULL) }),
            &answer);
        if (status == PAWL_OK) {
            snprintf(after, 64, "%.*s", STR_ARG(member_str(answer, "next")));
            fn(cli, context, node_find(answer, "entries"), after[0] != '\0');
        }
        scope_give(cli, kept);
    } while (status == PAWL_OK && after[0]);
    return status;
}

/* ---- The last ones ---- */

/* The numbers of the last entries that were met. */
struct ring {
    uint64_t *numbers;
    uint64_t size, count;
};

static void note_numbers(struct cli *cli, void *context, const struct node *entries, bool has_more)
{
    struct ring *ring = context;

    (void)cli;
    (void)has_more;
    for (const struct node *entry = entries ? entries->first : NULL; entry; entry = entry->next)
        ring->numbers[ring->count++ % ring->size] = (uint64_t)member_int(entry, "sequence_number");
}

/* Of those that fit the filters, the number before the last `size`. */
static pawl_status find_last(struct cli *cli, uint64_t size, char after[64])
{
    struct ring ring = { .size = size };
    char from[64] = "";
    pawl_status status;

    ring.numbers = calloc(size, sizeof *ring.numbers);
    TRY_MEMORY(&cli->scope, ring.numbers);
    status = each_page(cli, from, note_numbers, &ring);
    if (status == PAWL_OK && ring.count > size)
        snprintf(after, 64, "%llu",
                 (unsigned long long)ring.numbers[ring.count % size] - 1);
    free(ring.numbers);
    return status;
}

static bool has_filters(const struct cli *cli)
{
    for (uint32_t i = 0; i < cli->given_count; i++)
        if (cli->given[i].option->member)
            return true;
    return false;
}

/* Without filters nothing has to be read to find them. */
static pawl_status find_end(struct cli *cli, uint64_t size, char after[64])
{
    struct node *instance;
    int64_t next;

    TRY(cli_ask_id(cli, "instance.get", cli->operands[0], &instance));
    next = member_int(instance, "next_sequence_number");
    if ((uint64_t)next > size + 1)
        snprintf(after, 64, "%llu", (unsigned long long)next - 1 - size);
    return PAWL_OK;
}

/* ---- Printing ---- */

static void put_page(struct cli *cli, void *context, const struct node *entries, bool has_more)
{
    struct entry_pages *pages = context;

    pages->has_more |= has_more;
    render_entries(cli, entries, pages);
}

static pawl_status put_all(struct cli *cli, char after[64])
{
    struct entry_pages pages = { 0 };
    pawl_status status = each_page(cli, after, put_page, &pages);

    if (status == PAWL_OK && pages.count == 0)
        fputs("no entries\n", cli->term.out);
    return status;
}

static bool put_piece(void *context, struct scope *scope, str piece)
{
    const struct cli *cli = context;

    if (fwrite(piece.data, 1, piece.size, cli->term.out) == piece.size)
        return true;
    scope_fail(scope, PAWL_STORAGE_FAILURE, "the history cannot be written to standard output: %s",
               strerror(errno));
    return false;
}

static pawl_status put_json(struct cli *cli, const char *after)
{
    struct buf input;

    TRY(input_typed(cli, &input, WITH({ "after", str_of(after[0] ? after : NULL) })));
    TRY(target_call(cli, "instance.history", &input,
                    &(struct answer_to){ .put = put_piece, .context = cli }));
    fputc('\n', cli->term.out);
    return PAWL_OK;
}

int verb_history(struct cli *cli)
{
    const char *last = args_option(cli, "last");
    uint64_t size = last ? strtoull(last, NULL, 10) : 0;
    char after[64] = "";
    pawl_status status;

    if (args_option(cli, "limit") || args_option(cli, "after")) {
        if (last)
            return usage_fail(cli, "--last, or --limit and --after, not both");
        return verb_do(cli, USE_EXISTING, "instance.history", render_history);
    }
    status = target_open(cli, USE_EXISTING, NULL);
    if (status == PAWL_OK) /* once: @last may be another one when the next page is asked for */
        status = id_resolve(cli, cli->operands[0], &cli->operands[0]);
    if (status == PAWL_OK && last)
        status = has_filters(cli) ? find_last(cli, size, after) : find_end(cli, size, after);
    if (status == PAWL_OK)
        status = cli->json ? put_json(cli, after) : put_all(cli, after);
    return status == PAWL_OK ? EXIT_DONE : report(cli);
}
