/* command.c - what --module names: the path of a shared object, or a command. */
#include "module/module_int.h"
#include <sys/stat.h>

/* A file of a language that has a client of ours is run by its interpreter. */
static const struct language {
    const char *suffix;
    const char *words[4];
} languages[] = {
    { ".py", { "python3", "-m", "pawl_client" } },
    { ".js", { "node" } },
    { ".mjs", { "node" } },
    { ".ts", { "node", "--experimental-strip-types" } },
};

static const struct language *language_of(str path)
{
    for (size_t i = 0; i < sizeof languages / sizeof languages[0]; i++) {
        str suffix = str_of(languages[i].suffix);

        if (path.size > suffix.size && str_eq(str_from(path, path.size - suffix.size), suffix))
            return &languages[i];
    }
    return NULL;
}

bool path_is_script(str path)
{
    return path.size > 4 && str_eq(str_from(path, path.size - 4), STR(".lua"));
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\n';
}

/* A file whose name has blanks is a file. */
static bool is_shared_object(const char *text)
{
    struct stat found;

    if (language_of(str_of(text)))
        return false;
    return !strpbrk(text, " \t\n") || stat(text, &found) == 0;
}

/* One word to `out`, which has room for the whole text; NULL: a quote is not closed. */
static const char *take_word(const char *text, char *out)
{
    char quote = '\0';

    for (; *text && (quote || !is_blank(*text)); text++) {
        if (*text == quote)
            quote = '\0';
        else if (!quote && (*text == '"' || *text == '\''))
            quote = *text;
        else if (*text == '\\' && quote != '\'' && text[1])
            *out++ = *++text;
        else
            *out++ = *text;
    }
    *out = '\0';
    return quote ? NULL : text;
}

static pawl_status interpret(struct scope *scope, const struct language *language, const char *path,
                             char **argv)
{
    uint32_t count = 0;

    for (; count < 4 && language->words[count]; count++)
        argv[count] = arena_text(&scope->arena, str_of(language->words[count]));
    argv[count] = arena_text(&scope->arena, str_of(path));
    return scope->arena.failed ? scope_no_memory(scope) : PAWL_OK;
}

pawl_status command_split(struct scope *scope, const char *text, char ***out)
{
    const struct language *language = language_of(str_of(text));
    size_t size = strlen(text);
    struct stat found;
    char **argv;
    uint32_t count = 0;

    *out = NULL;
    if (is_shared_object(text))
        return PAWL_OK;
    argv = *out = ARENA_ARRAY(&scope->arena, char *, size + 6);
    TRY_MEMORY(scope, argv);
    if (language && (!strpbrk(text, " \t\n") || stat(text, &found) == 0))
        return interpret(scope, language, text, argv);
    while (*text) {
        while (is_blank(*text))
            text++;
        if (!*text)
            break;
        argv[count] = arena_alloc(&scope->arena, size + 1);
        TRY_MEMORY(scope, argv[count]);
        text = take_word(text, argv[count++]);
        if (!text)
            return scope_fail(scope, PAWL_INVALID_REQUEST,
                              "--module: a quote is not closed; expected a file, or words between "
                              "blanks and quotes");
    }
    return PAWL_OK;
}
