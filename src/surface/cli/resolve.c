/* resolve.c - which instance is meant: an id, a unique prefix of one, or @last. */
#include "base/ids.h"
#include "base/limits.h"
#include "surface/cli/cli.h"
#include <ctype.h>

static pawl_status read_page(struct cli *cli, struct scope *scope, uint32_t limit, str after,
                             struct node **out)
{
    struct buf input;

    input_init(&input);
    json_key(&input, "limit");
    json_u64(&input, limit);
    if (after.size > 0) {
        json_key(&input, "after");
        json_str(&input, after);
    }
    json_close(&input, '}');
    return target_ask(cli, scope, "instance.list", &input, out, NULL);
}

static pawl_status find_last(struct cli *cli, const char **out)
{
    struct node *page;
    const struct node *newest;
    pawl_status status = read_page(cli, &cli->scope, 1, STR(""), &page);

    if (status != PAWL_OK)
        return status;
    newest = node_at(node_find(page, "instances"), 0);
    if (!newest)
        return scope_fail(&cli->scope, PAWL_NOT_KNOWN, "@last: there is no instance yet");
    *out = member_str(newest, "instance_id").data;
    return PAWL_OK;
}

struct search {
    str prefix;
    char found[ID_SIZE + 1], second[ID_SIZE + 1]; /* "": none yet */
    bool over;                                    /* all that follow sort before the prefix */
};

static void look_at(struct search *search, str id)
{
    if (str_starts(id, search->prefix)) {
        char *slot = search->found[0] ? search->second : search->found;

        memcpy(slot, id.data, id.size < ID_SIZE ? id.size : ID_SIZE);
        search->over = search->second[0] != '\0';
    } else if (str_compare(id, search->prefix) < 0)
        search->over = true;
}

/* Ids sort by creation and pages come newest first: what matches lies together, and what
 * people mean is most often near the beginning. */
static pawl_status search_pages(struct cli *cli, struct search *search)
{
    char cursor[256] = "";
    struct scope scope;
    pawl_status status = PAWL_OK;

    scope_init(&scope, &heap_libc, CLI_MEMORY_MAX);
    while (status == PAWL_OK && !search->over) {
        struct node *page;
        const struct node *rows;

        scope_clear(&scope);
        status = read_page(cli, &scope, LIMIT_LIST, str_of(cursor), &page);
        if (status != PAWL_OK)
            break;
        rows = node_find(page, "instances");
        for (const struct node *row = rows ? rows->first : NULL; row && !search->over;
             row = row->next)
            look_at(search, member_str(row, "instance_id"));
        snprintf(cursor, sizeof cursor, "%.*s", STR_ARG(member_str(page, "next")));
        if (!cursor[0])
            break;
    }
    if (status != PAWL_OK)
        cli->scope.error = scope.error;
    scope_fini(&scope);
    return status;
}

static pawl_status find_prefix(struct cli *cli, str prefix, const char **out)
{
    struct search search = { .prefix = prefix };
    pawl_status status = search_pages(cli, &search);

    if (status != PAWL_OK)
        return status;
    if (!search.found[0])
        return scope_fail(&cli->scope, PAWL_NOT_KNOWN, "no instance's id begins with '%.*s'",
                          STR_ARG(prefix));
    if (search.second[0])
        return scope_fail(&cli->scope, PAWL_INVALID_REQUEST,
                          "'%.*s' begins more than one id: %s and %s", STR_ARG(prefix),
                          search.second, search.found);
    *out = arena_text(&cli->scope.arena, str_of(search.found));
    return *out ? PAWL_OK : scope_no_memory(&cli->scope);
}

pawl_status id_resolve(struct cli *cli, const char *text, const char **out)
{
    char *upper = arena_text(&cli->scope.arena, str_of(text));
    size_t size = strlen(text);

    if (!upper)
        return scope_no_memory(&cli->scope);
    if (strcmp(text, "@last") == 0)
        return find_last(cli, out);
    for (char *at = upper; *at; at++)
        *at = (char)toupper((unsigned char)*at);
    if (size == 0 || size >= ID_SIZE) {
        *out = size == ID_SIZE ? upper : text;
        return PAWL_OK;
    }
    return find_prefix(cli, (str){ upper, size }, out);
}
