/* resolve.c - which instance or step is meant: an id, a unique prefix of one, its number, or @last.
 *
 * Digits that do not begin with a 0 are a number, anything else is the beginning of an id: so large
 * that an id would begin with another digit, numbers never get. */
#include "api/ops.h"
#include "surface/cli/cli.h"
#include <ctype.h>

#define NUMBER_SIZE 10 /* characters of an id; the rest is random */
#define STEPS_MAX   8  /* that are listed where one has to be chosen */

static pawl_status find(struct cli *cli, const char *prefix, struct node **answer, const char **out)
{
    TRY(cli_ask(cli, "instance.find", WITH({ "prefix", str_of(prefix) }), answer));
    *out = member_str(*answer, "instance_id").data;
    return PAWL_OK;
}

/* ---- @last ---- */

static bool is_write(const struct cli *cli)
{
    const struct op *op = cli->verb->operation ? op_find(str_of(cli->verb->operation)) : NULL;

    return op ? (op->flags & OP_WRITES) != 0 : strcmp(cli->verb->name, "resume") == 0;
}

/* What this user created last in this store, by whatever address. Where that is not known it is
 * the newest of the store for reads; a write is refused, for that one may be another user's. */
static pawl_status find_last(struct cli *cli, const char **out)
{
    char noted[ID_SIZE + 1];
    struct node *newest, *found;
    pawl_status status = find(cli, NULL, &newest, out);

    if (status == PAWL_NOT_KNOWN)
        return scope_fail(&cli->scope, status, "@last: there is no instance yet");
    if (status != PAWL_OK)
        return status;
    if (last_find(member_str(newest, "store_id"), noted)) {
        status = find(cli, noted, &found, out);
        if (status != PAWL_NOT_KNOWN)
            return status;
    }
    if (is_write(cli))
        return scope_fail(&cli->scope, PAWL_INVALID_REQUEST,
                          "@last is the instance that you created last, and none of yours is known "
                          "in %s, where the newest may be another user's: name it by its ID (%s "
                          "list)",
                          store_shown(cli), cli->command);
    if (cli->target.remote || store_outlives(cli->store))
        fprintf(stderr, "pawl: @last: none of yours is known in this store; this is its newest\n");
    return PAWL_OK;
}

void last_note(struct cli *cli, str id)
{
    struct node *answer;
    const char *found;

    if (id.size != ID_SIZE || !(cli->target.remote || store_outlives(cli->store)))
        return; /* a store in memory is forgotten with this process */
    if (find(cli, id.data, &answer, &found) == PAWL_OK)
        last_write(member_str(answer, "store_id"), id);
}

/* ---- Ids ---- */

/* By the decimal number that views and narrow lists print: an id begins with it, in base 32. */
static pawl_status find_number(struct cli *cli, const char *text, const char **out)
{
    static const uint8_t none[ID_RANDOM_SIZE];
    char id[ID_SIZE + 1];
    struct node *answer;
    uint64_t number;
    pawl_status status = PAWL_NOT_KNOWN;

    if (str_to_u64(str_of(text), &number) && number <= ID_NUMBER_MAX) {
        id_print(number, none, id);
        id[NUMBER_SIZE] = '\0';
        status = find(cli, id, &answer, out);
    }
    if (status == PAWL_NOT_KNOWN)
        scope_fail(&cli->scope, status, "there is no instance number %s", text);
    return status;
}

pawl_status id_resolve(struct cli *cli, const char *text, const char **out)
{
    char *upper = arena_text(&cli->scope.arena, str_of(text));
    size_t size = strlen(text);
    struct node *answer;

    TRY_MEMORY(&cli->scope, upper);
    if (strcmp(text, "@last") == 0)
        return find_last(cli, out);
    for (char *at = upper; *at; at++)
        *at = (char)toupper((unsigned char)*at);
    if (str_is_blank(str_of(text)) || size >= ID_SIZE) { /* the operation checks it */
        *out = size == ID_SIZE ? upper : text;
        return PAWL_OK;
    }
    return text[0] != '0' && strspn(text, "0123456789") == size ? find_number(cli, text, out)
                                                                : find(cli, upper, &answer, out);
}

/* ---- Steps ---- */

bool waits_for(const struct node *why, const char *kind, str name)
{
    for (const struct node *item = node_first(why, "waiting_for"); item; item = item->next)
        if (str_is(member_str(item, "kind"), kind) && str_eq(member_str(item, "name"), name))
            return true;
    return false;
}

/* The one step of an instance that waits for what the verb does. */
static pawl_status find_step(struct cli *cli, const char *id, const char **out)
{
    bool is_gate =
        strcmp(cli->verb->name, "approve") == 0 || strcmp(cli->verb->name, "reject") == 0;
    const char *what = is_gate ? "gates" : "external steps";
    struct node *why, *steps;
    struct buf found;
    uint32_t count = 0;
    str list;

    TRY(cli_ask_id(cli, "instance.why", id, &why));
    TRY(cli_ask(cli, "step.list",
                WITH({ "instance_id", str_of(id) }, { "status", STR("pending") },
                     { "limit", .number = 1000 }),
                &steps));
    buf_init(&found, &heap_libc, CLI_ANSWER_MAX);
    for (const struct node *step = node_first(steps, "steps"); step; step = step->next) {
        str step_id = member_str(step, "step_id"), name = member_str(step, "name");

        if (!waits_for(why, is_gate ? "approval" : "step", name))
            continue;
        *out = step_id.data;
        if (count++ < STEPS_MAX)
            buf_fmt(&found, "%s%llu%s (%.*s)", count > 1 ? ", " : "",
                    (unsigned long long)id_number(step_id), strrchr(step_id.data, '.'), STR_ARG(name));
    }
    list = buf_take(&found, &cli->scope.arena);
    if (count == 0)
        return scope_fail(&cli->scope, PAWL_NOT_AWAITING, "none of its %s waits; see: %s why %s",
                          what, cli->command, cli->operands[0]);
    return count == 1 ? PAWL_OK
                      : scope_fail(&cli->scope, PAWL_INVALID_REQUEST,
                                   "%u %s wait; name one of them: %.*s%s", count, what,
                                   STR_ARG(list), count > STEPS_MAX ? ", ..." : "");
}

pawl_status step_resolve(struct cli *cli, const char *text, const char **out)
{
    const char *dot = strrchr(text, '.'), *id;
    size_t size = dot ? (size_t)(dot - text) : strlen(text);
    char *instance = arena_text(&cli->scope.arena, (str){ text, size }), *step;

    TRY_MEMORY(&cli->scope, instance);
    *out = text;
    if (str_is_blank(str_of(instance)) || (dot && size >= ID_SIZE))
        return PAWL_OK; /* the operation checks it */
    TRY(id_resolve(cli, instance, &id));
    if (!dot)
        return find_step(cli, id, out);
    step = arena_alloc(&cli->scope.arena, ID_SIZE + strlen(dot) + 1);
    TRY_MEMORY(&cli->scope, step);
    snprintf(step, ID_SIZE + strlen(dot) + 1, "%s%s", id, dot);
    *out = step;
    return PAWL_OK;
}
