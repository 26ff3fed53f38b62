/* args.c - words of the command line into a verb, its operands and its options; and those
 * into the input of an operation. */
#include "base/limits.h"
#include "base/redact.h"
#include "surface/cli/cli.h"
#include <string.h>

const struct verb *verb_find(const char *name)
{
    for (const struct verb *verb = verbs; verb->name; verb++)
        if (strcmp(verb->name, name) == 0)
            return verb;
    return NULL;
}

const struct cli_option *option_find(const struct cli_option *options, str name)
{
    for (; options && options->name; options++)
        if (str_is(name, options->name))
            return options;
    return NULL;
}

const struct cli_option global_options[] = {
    { "store", "URL", OPTION_TEXT, NULL,
      "sqlite:FILE, postgres://HOST/DATABASE, memory: or http://host:port" },
    { "json", NULL, OPTION_FLAG, NULL, "print what HTTP would answer" },
    { "color", "WHEN", OPTION_TEXT, NULL, "always, never or auto" },
    { "help", NULL, OPTION_FLAG, NULL, "options and examples" },
    { 0 },
};

struct args_reader {
    struct cli *cli;
    char **words;
    int count, at;
    bool only_operands; /* after "--" */
};

/* The value of an option: behind its '=', or the next word. */
static const char *take_value(struct args_reader *reader, const char *equals)
{
    if (equals)
        return equals + 1;
    return reader->at + 1 < reader->count ? reader->words[++reader->at] : NULL;
}

/* A copy: a password in it must not be seen in the list of processes. */
static const char *take_store(struct args_reader *reader, const char *equals)
{
    char *given = (char *)(uintptr_t)take_value(reader, equals), *kept;

    if (!given)
        return NULL;
    kept = arena_text(&reader->cli->scope.arena, str_of(given));
    url_blank(given);
    return kept;
}

static int take_global(struct args_reader *reader, str name, const char *equals, bool *taken)
{
    struct cli *cli = reader->cli;

    *taken = true;
    if (str_is(name, "json"))
        cli->json = true;
    else if (str_is(name, "help"))
        cli->help = true;
    else if (str_is(name, "store")) {
        cli->store = take_store(reader, equals);
        cli->store_given = cli->store_named = true;
        if (!cli->store || !*cli->store)
            return usage_fail(cli, "--store needs a URL, e.g. --store sqlite:pawl.db");
    } else if (str_is(name, "color")) {
        if (!term_set_colour(&cli->term, take_value(reader, equals)))
            return usage_fail(cli, "--color needs a word: always, never or auto");
    } else
        *taken = false;
    return EXIT_DONE;
}

bool args_add(struct cli *cli, const char *name, const char *value)
{
    const struct cli_option *option =
        option_find(cli->verb ? cli->verb->options : NULL, str_of(name));

    if (!option || cli->given_count == CLI_OPTIONS_MAX)
        return false;
    cli->given[cli->given_count++] = (struct given){ option, value };
    return true;
}

/* One letter too many, too few, wrong, or two swapped: all of them leave most letters. */
static bool is_near(str a, const char *b)
{
    uint32_t count = 0, seen[256] = { 0 };
    size_t longer = a.size > strlen(b) ? a.size : strlen(b);

    for (size_t i = 0; i < a.size; i++)
        seen[(unsigned char)a.data[i]]++;
    for (; *b; b++)
        if (seen[(unsigned char)*b] > 0) {
            seen[(unsigned char)*b]--;
            count++;
        }
    return longer > 2 && count + 1 >= longer;
}

static const char *near_among(const struct cli_option *option, str name)
{
    for (; option && option->name; option++)
        if (is_near(name, option->name))
            return option->name;
    return NULL;
}

/* The nearest one, or all that there are. */
static int unknown_option(const struct cli *cli, str name)
{
    const struct cli_option *option = cli->verb ? cli->verb->options : NULL;
    const char *near = near_among(option, name);
    struct buf known;
    int code;

    near = near ? near : near_among(global_options, name);
    if (near)
        return usage_fail(cli, "unknown option --%.*s; did you mean --%s?", STR_ARG(name), near);
    buf_init(&known, &heap_libc, LIMIT_TEXT);
    for (; option && option->name; option++)
        buf_fmt(&known, "%s--%s", known.size ? ", " : "; there are ", option->name);
    code = usage_fail(cli, "unknown option --%.*s%s", STR_ARG(name), buf_text(&known));
    buf_fini(&known);
    return code;
}

static int take_option(struct args_reader *reader, const char *word)
{
    struct cli *cli = reader->cli;
    const char *equals = strchr(word, '=');
    str name = { word + 2, equals ? (size_t)(equals - word - 2) : strlen(word) - 2 };
    struct given given;
    bool taken, needs_value;
    int code = take_global(reader, name, equals, &taken);

    if (taken)
        return code;
    given.option = option_find(cli->verb ? cli->verb->options : NULL, name);
    if (!given.option)
        return unknown_option(cli, name);
    if (cli->given_count == CLI_OPTIONS_MAX)
        return usage_fail(cli, "too many options");
    needs_value = given.option->value != NULL;
    given.value = needs_value ? take_value(reader, equals) : NULL;
    if (needs_value && !given.value)
        return usage_fail(cli, "--%.*s needs a value: %s", STR_ARG(name), given.option->value);
    if (needs_value && str_is(name, "actor") && !*given.value)
        return usage_fail(cli, "--actor is empty (an unset variable?): name an actor, or leave it "
                               "out");
    if (!needs_value && equals)
        return usage_fail(cli, "--%.*s takes no value", STR_ARG(name));
    cli->given[cli->given_count++] = given;
    return EXIT_DONE;
}

static int unknown_verb(struct cli *cli, const char *word)
{
    for (const struct verb *verb = verbs; verb->name; verb++)
        if (is_near(str_of(word), verb->name))
            return usage_fail(cli, "unknown verb '%s'; did you mean '%s'?", word, verb->name);
    return usage_fail(cli, "unknown verb '%s'", word);
}

static int take_operand(struct cli *cli, const char *word)
{
    if (!cli->verb && strcmp(word, "help") == 0) {
        cli->help = true;
        return EXIT_DONE;
    }
    if (!cli->verb) {
        cli->verb = verb_find(word);
        return cli->verb ? EXIT_DONE : unknown_verb(cli, word);
    }
    if (cli->operand_count == CLI_OPERANDS_MAX || cli->operand_count == cli->verb->operand_max)
        return usage_fail(cli, "one word too many: '%s'", word);
    cli->operands[cli->operand_count++] = word;
    return EXIT_DONE;
}

static int take_word(struct args_reader *reader)
{
    const char *word = reader->words[reader->at];

    if (reader->only_operands || word[0] != '-' || word[1] == '\0')
        return take_operand(reader->cli, word);
    if (strcmp(word, "-h") == 0)
        reader->cli->help = true;
    else if (strcmp(word, "--") == 0)
        reader->only_operands = true;
    else if (word[1] != '-')
        return usage_fail(reader->cli, "unknown option %s", word);
    else
        return take_option(reader, word);
    return EXIT_DONE;
}

/* A file that is not there is a wrong word, as a file among the operands would be; so is a number
 * that no operation will check. */
static int check_values(const struct cli *cli)
{
    for (uint32_t i = 0; i < cli->given_count; i++) {
        const struct cli_option *option = cli->given[i].option;
        const char *value = cli->given[i].value;
        uint64_t number;

        if ((option->kind == OPTION_JSON && value[0] == '@' && !file_is_readable(value + 1)) ||
            (option->kind == OPTION_FILE && !file_is_readable(value)))
            return EXIT_USAGE;
        if (option->kind == OPTION_NUMBER && !option->member &&
            !(str_to_u64(str_of(value), &number) && number > 0))
            return usage_fail(cli, "--%s: expected a whole number, 1 or more, found '%s'",
                              option->name, value);
    }
    return EXIT_DONE;
}

int args_parse(struct cli *cli, int argc, char **argv)
{
    struct args_reader reader = { .cli = cli, .words = argv, .count = argc, .at = 1 };
    int code = EXIT_DONE;

    for (; reader.at < argc && code == EXIT_DONE; reader.at++)
        code = take_word(&reader);
    if (code != EXIT_DONE || cli->help || !cli->verb)
        return code;
    if (cli->operand_count < cli->verb->operand_min)
        return usage_fail(cli, "expected %s", cli->verb->operands);
    return check_values(cli);
}

const struct given *given_next(const struct cli *cli, const char *name, const struct given *before)
{
    for (const struct given *given = before ? before + 1 : cli->given;
         given < cli->given + cli->given_count; given++)
        if (strcmp(given->option->name, name) == 0)
            return given;
    return NULL;
}

const char *args_option(const struct cli *cli, const char *name)
{
    const char *value = NULL;

    for (const struct given *given = NULL; (given = given_next(cli, name, given));)
        value = given->value;
    return value;
}

bool args_flag(const struct cli *cli, const char *name)
{
    return given_next(cli, name, NULL) != NULL;
}

/* ---- Options and operands as members of an input ---- */

pawl_status args_json(struct cli *cli, const struct cli_option *option, const char *value, str *out)
{
    str text = str_of(value);
    struct node *node;

    if (value[0] == '@')
        TRY(file_read(&cli->scope, value + 1, &text));
    if (node_read_json(&cli->scope, text, &node) != PAWL_OK)
        return scope_fail(&cli->scope, PAWL_INVALID_REQUEST,
                          "--%s is not JSON: %.300s (a text needs its quotes: '\"text\"')",
                          option->name, cli->scope.error.message);
    *out = node->raw;
    return PAWL_OK;
}

static pawl_status put_json(struct cli *cli, const struct given *given, struct buf *input)
{
    str json;

    TRY(args_json(cli, given->option, given->value, &json));
    json_put_raw(input, given->option->member, json);
    return PAWL_OK;
}

/* JSON goes as it is, byte for byte from its first brace to its last; YAML as the JSON that it
 * means. */
static pawl_status put_file(struct cli *cli, const struct given *given, struct buf *input)
{
    struct node *node = NULL;
    str text;

    TRY(file_read(&cli->scope, given->value, &text));
    cli->declaration = text;
    json_key(input, given->option->member);
    if (node_read_json(&cli->scope, text, &node) == PAWL_OK)
        json_raw(input, node->raw);
    else if (!text_looks_like_json(text) && node_read_yaml(&cli->scope, text, &node) == PAWL_OK)
        node_print(node, input);
    else
        return scope_fail(&cli->scope, PAWL_INVALID_DECLARATION, "%s: %.300s", given->value,
                          cli->scope.error.message);
    return PAWL_OK;
}

/* A time in the query of a list is refused as the list refuses it. */
static pawl_status put_time(struct cli *cli, const struct given *given, struct buf *input)
{
    const struct op *op = cli->verb->operation ? op_find(str_of(cli->verb->operation)) : NULL;
    pawl_status refusal =
        op && op->flags & OP_ANY_QUERY ? PAWL_INVALID_QUERY : PAWL_INVALID_REQUEST;
    bool is_span = given->option->kind == OPTION_SPAN;
    char at[WHEN_SPAN_SIZE];

    if (is_span ? !when_read_span(given->value, at)
                : !when_read(given->option->kind, given->value, at))
        return scope_fail(&cli->scope, refusal, "--%s: expected " WHEN_EXPECTED "%s, found '%s'",
                          given->option->name,
                          is_span ? "; or two of them with .. between them" : "", given->value);
    if (is_span && when_is_backward(at))
        return scope_fail(&cli->scope, refusal,
                          "--%s: expected a range whose second time is not the earlier one, found "
                          "'%s'",
                          given->option->name, given->value);
    json_put_text(input, given->option->member, at);
    return PAWL_OK;
}

static pawl_status put_number(struct cli *cli, const struct given *given, struct buf *input)
{
    uint64_t number;

    if (!str_to_u64(str_of(given->value), &number))
        return scope_fail(&cli->scope, PAWL_INVALID_REQUEST,
                          "--%s: expected a whole number, found '%s'", given->option->name,
                          given->value);
    json_put_u64(input, given->option->member, number);
    return PAWL_OK;
}

pawl_status args_pair(struct cli *cli, const struct given *given, str *key, str *value)
{
    const char *equals = strchr(given->value, '=');

    if (!equals || equals == given->value)
        return scope_fail(&cli->scope, PAWL_INVALID_REQUEST, "--%s: expected %s, found '%s'",
                          given->option->name, given->option->value, given->value);
    *key = (str){ given->value, (size_t)(equals - given->value) };
    *value = str_of(equals + 1);
    return PAWL_OK;
}

/* K=V, whose K was not given before. */
static pawl_status read_pair(struct cli *cli, const struct given *given, str *key, str *value)
{
    TRY(args_pair(cli, given, key, value));
    for (const struct given *other = cli->given; other < given; other++)
        if (other->option == given->option &&
            strncmp(other->value, given->value, key->size + 1) == 0)
            return scope_fail(&cli->scope, PAWL_INVALID_REQUEST,
                              "--%s: expected each key once, found '%.*s' again",
                              given->option->name, STR_ARG(*key));
    return PAWL_OK;
}

static pawl_status put_filter(struct cli *cli, const struct given *given, struct buf *input)
{
    str key = STR_NONE, value = STR_NONE;
    struct buf name;

    TRY(read_pair(cli, given, &key, &value));
    buf_init(&name, cli->scope.arena.heap, LIMIT_TEXT);
    buf_fmt(&name, "%s%.*s", given->option->member, STR_ARG(key));
    json_key_str(input, buf_view(&name));
    json_str(input, value);
    buf_fini(&name);
    return PAWL_OK;
}

/* All labels at once, at the first of them: they are one object. */
static pawl_status put_labels(struct cli *cli, const struct given *first, struct buf *input)
{
    const char *name = first->option->name;
    str key = STR_NONE, value = STR_NONE;

    if (given_next(cli, name, NULL) != first)
        return PAWL_OK;
    json_put_open(input, first->option->member, '{');
    for (const struct given *given = first; given; given = given_next(cli, name, given)) {
        TRY(read_pair(cli, given, &key, &value));
        json_key_str(input, key);
        json_str(input, value);
    }
    json_close(input, '}');
    return PAWL_OK;
}

/* Other bytes would be replaced on their way into JSON, and two names could become one. */
static pawl_status check_utf8(struct cli *cli, const char *what, const char *value)
{
    if (!value || str_is_utf8(str_of(value), false))
        return PAWL_OK;
    return scope_fail(&cli->scope, PAWL_INVALID_REQUEST, "%s: expected UTF-8, found other bytes",
                      what);
}

/* `waiting` is how statuses are shown; the wire says `suspended`. */
static const char *status_word(const struct given *given)
{
    bool is_shown = strcmp(given->option->name, "status") == 0 &&
                    strcmp(given->value, STATUS_WAITING) == 0;

    return is_shown ? "suspended" : given->value;
}

static pawl_status put_option(struct cli *cli, const struct given *given, struct buf *input)
{
    TRY(check_utf8(cli, given->option->name, given->value));
    switch (given->option->kind) {
    case OPTION_JSON:
        return put_json(cli, given, input);
    case OPTION_NUMBER:
        return put_number(cli, given, input);
    case OPTION_FILTER:
        return put_filter(cli, given, input);
    case OPTION_LABEL:
        return put_labels(cli, given, input);
    case OPTION_FILE:
        return put_file(cli, given, input);
    case OPTION_SINCE:
    case OPTION_UNTIL:
    case OPTION_DUE:
    case OPTION_SPAN:
        return put_time(cli, given, input);
    case OPTION_FLAG:
        json_put_bool(input, given->option->member, true);
        return PAWL_OK;
    case OPTION_TEXT:
        json_put_text(input, given->option->member, status_word(given));
        return PAWL_OK;
    }
    return PAWL_OK;
}

static pawl_status put_operand(struct cli *cli, uint32_t index, struct buf *input)
{
    const char *member = cli->verb->members[index];
    const char *value = cli->operands[index];

    TRY(check_utf8(cli, member, value));
    if (strcmp(member, "instance_id") == 0)
        TRY(id_resolve(cli, value, &value));
    if (strcmp(member, "step_id") == 0)
        TRY(step_resolve(cli, value, &value));
    json_put_text(input, member, value);
    return PAWL_OK;
}

pawl_status args_members(struct cli *cli, struct buf *input)
{
    for (uint32_t i = 0; i < cli->operand_count && i < 2; i++)
        if (cli->verb->members[i])
            TRY(put_operand(cli, i, input));
    for (uint32_t i = 0; i < cli->given_count; i++)
        if (cli->given[i].option->member)
            TRY(put_option(cli, &cli->given[i], input));
    return PAWL_OK;
}
