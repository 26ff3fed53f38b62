/* resolve.c - which instance is meant: an id, a unique prefix of one, or @last. */
#include "base/ids.h"
#include "surface/cli/cli.h"
#include <ctype.h>

static pawl_status find(struct cli *cli, const char *prefix, const char **out)
{
    struct node *answer;
    struct buf input;
    pawl_status status;

    input_init(&input);
    if (prefix) {
        json_key(&input, "prefix");
        json_text(&input, prefix);
    }
    json_close(&input, '}');
    status = target_ask(cli, &cli->scope, "instance.find", &input, &answer, NULL);
    if (status == PAWL_OK)
        *out = member_str(answer, "instance_id").data;
    else if (status == PAWL_NOT_KNOWN && !prefix)
        scope_fail(&cli->scope, status, "@last: there is no instance yet");
    return status;
}

pawl_status id_resolve(struct cli *cli, const char *text, const char **out)
{
    char *upper = arena_text(&cli->scope.arena, str_of(text));
    size_t size = strlen(text);

    if (!upper)
        return scope_no_memory(&cli->scope);
    if (strcmp(text, "@last") == 0)
        return find(cli, NULL, out);
    for (char *at = upper; *at; at++)
        *at = (char)toupper((unsigned char)*at);
    if (str_is_blank(str_of(text)) ||
        size >= ID_SIZE) { /* the operation says what it thinks of it */
        *out = size == ID_SIZE ? upper : text;
        return PAWL_OK;
    }
    return find(cli, upper, out);
}
