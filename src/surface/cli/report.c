/* report.c - a rejection: its token, its words, and the next command to try. */
#include "api/ops.h"
#include "surface/cli/cli.h"
#include <ctype.h>
#include <stdlib.h>
#include <unistd.h>

#define NAMES_MAX 8
#define OUR_TYPE  "countdown" /* the code type that every binary brings */

int exit_of(pawl_status status)
{
    if (status == PAWL_OK)
        return EXIT_DONE;
    return status == PAWL_STORAGE_FAILURE || status == PAWL_OUTCOME_UNKNOWN || status == PAWL_IN_USE
               ? EXIT_STORE
               : EXIT_REJECTED;
}

/* The verb to try instead with the same id; NULL: there is no such advice. */
static const char *advice(const struct cli *cli, pawl_status status)
{
    static const struct {
        pawl_status status;
        const char *verb;
    } rows[] = {
        { PAWL_INVALID_TRANSITION, "show" },
        { PAWL_TERMINAL, "history" },
        { PAWL_NO_CANCEL_TRANSITION, "show" },
        { PAWL_NOT_AWAITING, "why" },
        { PAWL_CONFLICT, "show" },
        { PAWL_OUTCOME_UNKNOWN, "show" },
        { PAWL_PAUSED, "resume" },
        { PAWL_NOT_KNOWN, "list" },
    };
    bool names_an_instance = cli->verb && cli->operand_count > 0 && cli->verb->members[0] &&
                             strcmp(cli->verb->members[0], "instance_id") == 0;

    for (size_t i = 0; names_an_instance && i < sizeof rows / sizeof rows[0]; i++)
        if (rows[i].status == status)
            return rows[i].verb;
    return NULL;
}

static bool names_a_definition(const struct cli *cli)
{
    return cli->verb && cli->operand_count > 0 &&
           (strcmp(cli->verb->name, "start") == 0 || strcmp(cli->verb->name, "graph") == 0);
}

/* Names of definitions; with the code type that can be run before the store has it. */
static void put_names(const struct node *one, bool with_ours)
{
    const char *before = "  there are: ";

    for (int i = 0; one && i < NAMES_MAX; i++, one = one->next) {
        str name = member_str(one, "name");

        with_ours = with_ours && !str_is(name, OUR_TYPE);
        fprintf(stderr, "%s%.*s", before, STR_ARG(name));
        before = ", ";
    }
    if (with_ours || one)
        fprintf(stderr, "%s%s", before, one ? "..." : OUR_TYPE);
    if (with_ours || *before == ',')
        fputc('\n', stderr);
}

void hint_definitions(struct cli *cli)
{
    struct node *answer = NULL;
    bool is_run = strcmp(cli->verb->name, "run") == 0;

    if ((cli->target.local || cli->target.remote) &&
        cli_ask_id(cli, "definition.list", NULL, &answer) == PAWL_OK)
        put_names(node_first(answer, "definitions"), is_run);
    fprintf(stderr, "  try: %s define FILE%s\n", cli->command,
            is_run ? "; code types come with --module FILE" : "");
}

static const struct general_advice {
    pawl_status status;
    const char *words; /* NULL: doctor may know more */
} general[] = {
    { PAWL_REASON_REQUIRED, "add a reason: --reason TEXT" },
    { PAWL_GUARD_NOT_SATISFIED, "if its guard is satisfied, say so: --guard" },
    { PAWL_UNAUTHENTICATED,
      "export PAWL_TOKEN=ID.SECRET; made at the store's machine by: pawl token "
      "create --scope LIST" },
    { PAWL_FORBIDDEN,
      "its token needs another scope: pawl token create --scope LIST (pawl token --help)" },
    { PAWL_IN_USE, NULL },
    { PAWL_STORAGE_FAILURE, NULL },
    { PAWL_OVERLOADED, "try again in a moment" },
    { PAWL_OUTCOME_UNKNOWN, NULL },
};

/* A server cannot be examined from here; where nothing listens, one may be started. */
static bool hint_server(const struct cli *cli, pawl_status status)
{
    const struct client *client = cli->target.remote;

    if (status != PAWL_STORAGE_FAILURE || !client || cli->target.through_owner)
        return false;
    if (client->nothing_listens)
        fprintf(stderr, "  is it running? there: pawl serve --listen %s:%s\n", client->host,
                client->port);
    return true;
}

static bool hint_general(const struct cli *cli, pawl_status status)
{
    const char *file = store_file(cli->store);
    bool has_doctor = !file || !*file || access(file, F_OK) == 0; /* it has something to look at */

    for (size_t i = 0; i < sizeof general / sizeof general[0]; i++) {
        if (general[i].status != status)
            continue;
        if (status == PAWL_FORBIDDEN && !getenv("PAWL_TOKEN"))
            return true; /* no token, so that no scope is at fault */
        if (general[i].words)
            fprintf(stderr, "  %s\n", general[i].words);
        else if (has_doctor)
            fprintf(stderr, "  try: %s doctor\n", cli->command);
        return true;
    }
    return false;
}

/* A handler or a reduce that is elsewhere: the sentences end so (code/effects.c,
 * engine/registry/reduces.c).
 */
static bool lacks_code(const pawl_error *error)
{
    static const char end[] = " in this program";
    size_t size = strlen(error->message);

    return error->status == PAWL_NOT_KNOWN && size >= sizeof end &&
           strcmp(error->message + size - (sizeof end - 1), end) == 0;
}

/* What SQL can read, by name. */
static bool hint_views(struct cli *cli, const pawl_error *error)
{
    static const char query[] =
        "select group_concat(name, ', ') from (select name from sqlite_schema where type = 'view' "
        "order by name)";
    const struct node *first;

    if (!cli->verb || strcmp(cli->verb->name, "sql") != 0 ||
        !strstr(error->message, "no such table") || sql_first(cli, query, &first) != PAWL_OK)
        return false;
    if (first)
        fprintf(stderr, "  there are: %.*s\n", STR_ARG(first->text));
    return true;
}

static void hint(struct cli *cli, const pawl_error *error)
{
    pawl_status status = error->status;
    const char *verb = advice(cli, status);

    if (cli->is_advised || hint_server(cli, status) || hint_views(cli, error))
        return;
    if (lacks_code(error))
        fputs("  code comes with --module FILE (of serve, run and resume), or in a program of its "
              "own\n",
              stderr);
    else if (verb && status == PAWL_NOT_KNOWN)
        fprintf(stderr, "  try: %s list\n", cli->command);
    else if (verb)
        fprintf(stderr, "  try: %s %s %s\n", cli->command, verb, cli->operands[0]);
    else if (status == PAWL_NOT_KNOWN && names_a_definition(cli))
        hint_definitions(cli);
    else if (!hint_general(cli, status) && cli->verb &&
             (status == PAWL_INVALID_REQUEST || status == PAWL_INVALID_QUERY))
        fprintf(stderr, "  see: pawl %s --help\n", cli->verb->name);
}

/* ---- Words of the wire as they are typed here ---- */

/* The option of the verb that becomes this member of the input; NULL: none. */
static const struct cli_option *option_of(const struct cli *cli, str member)
{
    const struct cli_option *option = cli->verb ? cli->verb->options : NULL;

    for (; option && option->name; option++)
        if (option->member && str_is(member, option->member))
            return option;
    return NULL;
}

static size_t word_size(const char *text)
{
    size_t size = 0;

    while (isalnum((unsigned char)text[size]) || (text[size] && strchr("_-./@", text[size])))
        size++;
    while (size > 0 && strchr(".-/@", text[size - 1]))
        size--;
    return size;
}

/* Print the piece of a message that begins at `at`: a member of the input as the option that it
 * was typed as, a status as lists print it, else as it is. Returns its end. An unquoted word names
 * a member if it has a '_', which no English word has, or if the message begins with it. */
static const char *put_piece(const struct cli *cli, const char *message, const char *at)
{
    bool is_value = at - message >= 6 && memcmp(at - 6, "found ", 6) == 0;
    const char *quote = *at == '\'' ? strchr(at + 1, '\'') : NULL;
    size_t size = quote ? (size_t)(quote + 1 - at) : word_size(at);
    str word = quote ? (str){ at + 1, size - 2 } : (str){ at, size };
    bool is_member = quote || str_has(word, '_') || (at == message && at[size] == ':');
    const struct cli_option *option = is_member && !is_value ? option_of(cli, word) : NULL;

    if (size == 0)
        size = 1;
    if (option)
        fprintf(stderr, "--%s", option->name);
    else if (!quote && args_option(cli, "status") && str_is(word, "suspended"))
        fputs(STATUS_WAITING, stderr);
    else
        fwrite(at, 1, size, stderr);
    return at + size;
}

static void put_message(const struct cli *cli, const char *message)
{
    static const char key_words[] = "the idempotency key: "; /* KEY_EXPECTED begins so */
    const struct cli_option *key = option_of(cli, STR("idempotency_key"));
    const char *begin = message;

    if (key && str_starts(str_of(message), str_of(key_words))) {
        fprintf(stderr, "--%s: ", key->name);
        begin += sizeof key_words - 1;
    }
    for (const char *at = begin; *at;)
        at = put_piece(cli, message, at);
    fputc('\n', stderr);
}

int report(struct cli *cli)
{
    const pawl_error error = cli->scope.error; /* a hint may ask, and fail */
    struct buf problem;

    fflush(stdout);
    fprintf(stderr, "pawl: %s: ", pawl_status_name(error.status));
    put_message(cli, error.message);
    if (!cli->json) {
        hint(cli, &error);
        return exit_of(error.status);
    }
    buf_init(&problem, &heap_libc, CLI_ANSWER_MAX);
    op_problem(error.status, error.message, &problem);
    print_json(cli, buf_view(&problem));
    buf_fini(&problem);
    return exit_of(error.status);
}
