/* args.c - words of the command line into a verb, its operands and its options; and those
 * into the input of an operation. */
#include "base/limits.h"
#include "surface/cli/cli.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

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

static int take_global(struct args_reader *reader, str name, const char *equals, bool *taken)
{
    struct cli *cli = reader->cli;

    *taken = true;
    if (str_is(name, "json"))
        cli->json = true;
    else if (str_is(name, "help"))
        cli->help = true;
    else if (str_is(name, "store")) {
        cli->store = take_value(reader, equals);
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

static const char *near_option(const struct verb *verb, str name)
{
    static const char *const everywhere[] = { "store", "json", "color", "help" };

    for (const struct cli_option *option = verb ? verb->options : NULL; option && option->name;
         option++)
        if (is_near(name, option->name))
            return option->name;
    for (size_t i = 0; i < sizeof everywhere / sizeof everywhere[0]; i++)
        if (is_near(name, everywhere[i]))
            return everywhere[i];
    return NULL;
}

/* The nearest one, or all that there are. */
static int unknown_option(const struct cli *cli, str name)
{
    const char *near = near_option(cli->verb, name);
    struct buf known;
    int code;

    if (near)
        return usage_fail(cli, "unknown option --%.*s; did you mean --%s?", STR_ARG(name), near);
    buf_init(&known, &heap_libc, LIMIT_TEXT);
    for (const struct cli_option *option = cli->verb ? cli->verb->options : NULL;
         option && option->name; option++)
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
    const struct cli_option *option;
    bool taken;
    int code = take_global(reader, name, equals, &taken);

    if (taken)
        return code;
    option = option_find(cli->verb ? cli->verb->options : NULL, name);
    if (!option)
        return unknown_option(cli, name);
    if (cli->given_count == CLI_OPTIONS_MAX)
        return usage_fail(cli, "too many options");
    cli->given[cli->given_count].option = option;
    cli->given[cli->given_count].value = option->value ? take_value(reader, equals) : NULL;
    if (option->value && !cli->given[cli->given_count].value)
        return usage_fail(cli, "--%s needs a value: %s", option->name, option->value);
    if (option->value && strcmp(option->name, "actor") == 0 && !*cli->given[cli->given_count].value)
        return usage_fail(cli, "--actor is empty (an unset variable?): name an actor, or leave it "
                               "out");
    if (!option->value && equals)
        return usage_fail(cli, "--%s takes no value", option->name);
    cli->given_count++;
    return EXIT_DONE;
}

static int unknown_verb(struct cli *cli, const char *word)
{
    for (const struct verb *verb = verbs; verb->name; verb++)
        if (is_near(str_of(word), verb->name))
            return usage_fail(cli, "unknown verb '%s'; did you mean '%s'?", word, verb->name);
    return usage_fail(cli, "unknown verb '%s'", word);
}

static int take_operand(struct args_reader *reader, const char *word)
{
    struct cli *cli = reader->cli;

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
        return take_operand(reader, word);
    if (strcmp(word, "-h") == 0) {
        reader->cli->help = true;
        return EXIT_DONE;
    }
    if (strcmp(word, "--") == 0) {
        reader->only_operands = true;
        return EXIT_DONE;
    }
    if (word[1] != '-')
        return usage_fail(reader->cli, "unknown option %s", word);
    return take_option(reader, word);
}

bool file_is_readable(const char *path)
{
    if (strcmp(path, "-") == 0 || access(path, R_OK) == 0)
        return true;
    fprintf(stderr, "pawl: cannot read '%s': %s\n", path, strerror(errno));
    return false;
}

bool word_is_file(const char *word)
{
    const char *dot = strrchr(word, '.');
    struct stat found;

    if (strcmp(word, "-") == 0)
        return true;
    if (stat(word, &found) == 0)
        return !S_ISDIR(found.st_mode);
    return dot &&
           (strcmp(dot, ".yaml") == 0 || strcmp(dot, ".yml") == 0 || strcmp(dot, ".json") == 0);
}

/* A number that no operation will look at. */
static bool is_wrong_number(const struct given *given)
{
    uint64_t number;

    return given->option->kind == OPTION_NUMBER && !given->option->member &&
           !(str_to_u64(str_of(given->value), &number) && number > 0);
}

/* A file that is not there is a wrong word, as a file among the operands would be. */
static int check_values(const struct cli *cli)
{
    for (uint32_t i = 0; i < cli->given_count; i++) {
        const struct given *given = &cli->given[i];

        if (given->option->kind == OPTION_JSON && given->value[0] == '@' &&
            !file_is_readable(given->value + 1))
            return EXIT_USAGE;
        if (given->option->kind == OPTION_FILE && !file_is_readable(given->value))
            return EXIT_USAGE;
        if (is_wrong_number(given))
            return usage_fail(cli, "--%s: expected a whole number, 1 or more, found '%s'",
                              given->option->name, given->value);
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

const char *args_option(const struct cli *cli, const char *name)
{
    const char *value = NULL;

    for (uint32_t i = 0; i < cli->given_count; i++)
        if (strcmp(cli->given[i].option->name, name) == 0)
            value = cli->given[i].value;
    return value;
}

bool args_flag(const struct cli *cli, const char *name)
{
    for (uint32_t i = 0; i < cli->given_count; i++)
        if (strcmp(cli->given[i].option->name, name) == 0)
            return true;
    return false;
}

/* Bytes of the character that `text` begins with; 0: it does not begin with one. */
static size_t character_size(str text)
{
    for (size_t size = 1; size <= 4 && size <= text.size; size++)
        if (str_is_utf8((str){ text.data, size }, false))
            return size;
    return 0;
}

/* Texts go to a store byte for byte: what is no UTF-8 is refused here, with its place, for on the
 * way it could only be changed. */
static pawl_status check_text(struct scope *scope, const char *path, str text)
{
    unsigned line = 1, column = 1;

    for (size_t i = 0, size; i < text.size; i += size, column++) {
        size = character_size(str_from(text, i));
        if (size == 0)
            return scope_fail(scope, PAWL_INVALID_REQUEST,
                              "%s:%u:%u: expected UTF-8, found the byte 0x%02X", path, line, column,
                              (unsigned char)text.data[i]);
        if (text.data[i] == '\n') {
            line++;
            column = 0;
        }
    }
    return PAWL_OK;
}

pawl_status file_read(struct scope *scope, const char *path, str *out)
{
    FILE *file = strcmp(path, "-") == 0 ? stdin : fopen(path, "rb");
    pawl_status status = PAWL_OK;
    struct buf text;
    char block[65536];
    size_t size;

    if (!file)
        return scope_fail(scope, PAWL_INVALID_REQUEST, "cannot read '%s': %s", path,
                          strerror(errno));
    buf_init(&text, scope->arena.heap, LIMIT_TEXT + 1);
    while (!text.failed && (size = fread(block, 1, sizeof block, file)) > 0)
        buf_add(&text, block, size);
    if (ferror(file))
        status =
            scope_fail(scope, PAWL_INVALID_REQUEST, "cannot read '%s': %s", path, strerror(errno));
    else if (text.failed)
        status = scope_fail(scope, PAWL_TOO_LARGE, "'%s' is larger than 1 MiB", path);
    else
        status = check_text(scope, path, buf_view(&text));
    if (status == PAWL_OK)
        *out = arena_str(&scope->arena, buf_view(&text));
    if (file != stdin)
        fclose(file);
    buf_fini(&text);
    return status;
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
static pawl_status time_refusal(const struct cli *cli)
{
    const struct op *op = cli->verb->operation ? op_find(str_of(cli->verb->operation)) : NULL;

    return op && op->flags & OP_ANY_QUERY ? PAWL_INVALID_QUERY : PAWL_INVALID_REQUEST;
}

static pawl_status put_time(struct cli *cli, const struct given *given, struct buf *input)
{
    bool is_span = given->option->kind == OPTION_SPAN;
    char at[WHEN_SPAN_SIZE];

    if (is_span ? !when_read_span(given->value, at)
                : !when_read(given->option->kind, given->value, at))
        return scope_fail(&cli->scope, time_refusal(cli),
                          "--%s: expected " WHEN_EXPECTED "%s, found '%s'", given->option->name,
                          is_span ? "; or two of them with .. between them" : "", given->value);
    if (is_span && when_is_backward(at))
        return scope_fail(&cli->scope, time_refusal(cli),
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
static pawl_status read_pair(struct cli *cli, uint32_t index, str *key, str *value)
{
    const struct given *given = &cli->given[index];
    pawl_status status = args_pair(cli, given, key, value);

    for (uint32_t i = 0; i < index && status == PAWL_OK; i++)
        if (cli->given[i].option == given->option &&
            strncmp(cli->given[i].value, given->value, key->size + 1) == 0)
            status = scope_fail(&cli->scope, PAWL_INVALID_REQUEST,
                                "--%s: expected each key once, found '%.*s' again",
                                given->option->name, STR_ARG(*key));
    return status;
}

static pawl_status put_filter(struct cli *cli, uint32_t index, struct buf *input)
{
    const struct given *given = &cli->given[index];
    str key = STR_NONE, value = STR_NONE;
    struct buf name;

    TRY(read_pair(cli, index, &key, &value));
    buf_init(&name, cli->scope.arena.heap, LIMIT_TEXT);
    buf_fmt(&name, "%s%.*s", given->option->member, STR_ARG(key));
    json_key_str(input, buf_view(&name));
    json_str(input, value);
    buf_fini(&name);
    return PAWL_OK;
}

/* All labels at once, at the first of them: they are one object. */
static pawl_status put_labels(struct cli *cli, uint32_t first, struct buf *input)
{
    const struct cli_option *option = cli->given[first].option;
    str key = STR_NONE, value = STR_NONE;

    for (uint32_t i = 0; i < first; i++)
        if (cli->given[i].option == option)
            return PAWL_OK;
    json_put_open(input, option->member, '{');
    for (uint32_t i = first; i < cli->given_count; i++) {
        if (cli->given[i].option != option)
            continue;
        TRY(read_pair(cli, i, &key, &value));
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

static pawl_status put_option(struct cli *cli, uint32_t index, struct buf *input)
{
    const struct given *given = &cli->given[index];

    TRY(check_utf8(cli, given->option->name, given->value));
    switch (given->option->kind) {
    case OPTION_JSON:
        return put_json(cli, given, input);
    case OPTION_NUMBER:
        return put_number(cli, given, input);
    case OPTION_FILTER:
        return put_filter(cli, index, input);
    case OPTION_LABEL:
        return put_labels(cli, index, input);
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
    pawl_status status = PAWL_OK;

    for (uint32_t i = 0; status == PAWL_OK && i < cli->operand_count && i < 2; i++)
        if (cli->verb->members[i])
            status = put_operand(cli, i, input);
    for (uint32_t i = 0; status == PAWL_OK && i < cli->given_count; i++)
        if (cli->given[i].option->member)
            status = put_option(cli, i, input);
    return status;
}
