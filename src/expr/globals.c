/* globals.c - names that an expression uses and nothing gives it. Such a name is nil, and so a slip
 * of the pen would be false without a word.
 *
 * Read by a small scanner: Lua itself looks a global up when it runs. What the text makes itself
 * (local, for, parameters, `name = ...`) counts as known wherever it is. */
#include "expr/expr_int.h"

#define X(name, function) #name,
#define VALUE_NAMES                                                                                \
    "input", "context", "steps", "instance", EXPR_FUNCTIONS(X) "string", "math", NULL

static const char *const condition_names[] = { "result", "error", VALUE_NAMES };
static const char *const value_names[] = { VALUE_NAMES };
static const char *const query_names[] = { "state", VALUE_NAMES };
#undef X

static const char *const keywords[] = {
    "and",      "break",  "do",   "else", "elseif", "end",   "false", "for",
    "function", "goto",   "if",   "in",   "local",  "nil",   "not",   "or",
    "repeat",   "return", "then", "true", "until",  "while", NULL,
};

const char *const *expr_names(enum expr_use use)
{
    static const char *const *const names[EXPR_USE_COUNT] = {
        [EXPR_CONDITION] = condition_names,
        [EXPR_VALUE] = value_names,
        [EXPR_QUERY] = query_names,
    };

    return names[use];
}

/* ---- Tokens ---------------------------------------------------------------------------------- */

enum token_kind { TOKEN_END, TOKEN_NAME, TOKEN_KEYWORD, TOKEN_OTHER };

struct token {
    enum token_kind kind;
    str text;
};

static bool is_digit(char byte)
{
    return byte >= '0' && byte <= '9';
}

static bool is_letter(char byte)
{
    return byte == '_' || (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z');
}

static char at(str text, size_t place)
{
    return place < text.size ? text.data[place] : '\0';
}

/* The end of [[...]] or [==[...]==] at `from`; 0: none begins there. */
static size_t skip_long(str text, size_t from)
{
    size_t level = 0, place = from + 1;

    while (at(text, place) == '=')
        place++, level++;
    if (at(text, from) != '[' || at(text, place) != '[')
        return 0;
    for (place++; place < text.size; place++) {
        size_t equals = 0;

        while (text.data[place] == ']' && at(text, place + 1 + equals) == '=')
            equals++;
        if (text.data[place] == ']' && equals == level && at(text, place + 1 + equals) == ']')
            return place + equals + 2;
    }
    return text.size;
}

static size_t skip_quoted(str text, size_t from)
{
    size_t place = from + 1;

    while (place < text.size && text.data[place] != text.data[from])
        place += text.data[place] == '\\' ? 2 : 1;
    return place < text.size ? place + 1 : text.size;
}

static size_t skip_comment(str text, size_t from)
{
    size_t end = skip_long(text, from + 2);

    if (end != 0)
        return end;
    while (from < text.size && text.data[from] != '\n')
        from++;
    return from;
}

static size_t skip_number(str text, size_t from)
{
    while (is_digit(at(text, from)) || is_letter(at(text, from)) || at(text, from) == '.' ||
           (from > 0 && memchr("+-", at(text, from), 2) && memchr("eEpP", text.data[from - 1], 4)))
        from++;
    return from;
}

/* Where the token at `from` ends, which is neither a name nor white space. */
static size_t skip_other(str text, size_t from)
{
    char byte = text.data[from];

    if (byte == '"' || byte == '\'')
        return skip_quoted(text, from);
    if (byte == '[' && skip_long(text, from) != 0)
        return skip_long(text, from);
    if (is_digit(byte) || (byte == '.' && is_digit(at(text, from + 1))))
        return skip_number(text, from);
    if (at(text, from + 1) == byte && memchr(".:=/<>", byte, 6))
        return from + (byte == '.' && at(text, from + 2) == '.' ? 3 : 2);
    return from + (memchr("~<>=", byte, 4) && at(text, from + 1) == '=' ? 2 : 1);
}

static struct token next_token(str text, size_t *place)
{
    size_t from;

    for (;;) {
        while (*place < text.size && memchr(" \t\r\n\f\v", text.data[*place], 6))
            ++*place;
        if (at(text, *place) != '-' || at(text, *place + 1) != '-')
            break;
        *place = skip_comment(text, *place);
    }
    from = *place;
    if (from >= text.size)
        return (struct token){ .kind = TOKEN_END };
    if (!is_letter(text.data[from])) {
        *place = skip_other(text, from);
        *place = *place > text.size ? text.size : *place;
        return (struct token){ TOKEN_OTHER, { text.data + from, *place - from } };
    }
    while (is_letter(at(text, *place)) || is_digit(at(text, *place)))
        ++*place;
    return (struct token){ str_is_one_of((str){ text.data + from, *place - from }, keywords)
                               ? TOKEN_KEYWORD
                               : TOKEN_NAME,
                           { text.data + from, *place - from } };
}

size_t expr_end(str text)
{
    uint32_t depth = 0;
    struct token token;
    size_t place = 0;

    while ((token = next_token(text, &place)).kind != TOKEN_END) {
        bool closes = token.kind == TOKEN_OTHER && str_is(token.text, "}");

        if (closes && depth == 0)
            return at(text, place) == '}' ? place - 1 : SIZE_MAX;
        if (closes)
            depth--;
        else if (token.kind == TOKEN_OTHER && str_is(token.text, "{"))
            depth++;
    }
    return SIZE_MAX;
}

/* ---- What the text makes itself -------------------------------------------------------------- */

static bool is_made(const struct expr_unknown *unknown, str name)
{
    for (uint32_t i = 0; i < unknown->made_count; i++)
        if (str_eq(unknown->made[i], name))
            return true;
    return false;
}

static void make(struct expr_unknown *unknown, str name)
{
    if (is_made(unknown, name))
        return;
    if (unknown->made_count == EXPR_MADE_MAX)
        unknown->is_over = true; /* so many that a guess would be one too many */
    else
        unknown->made[unknown->made_count++] = name;
}

/* Names behind local, for and function (its parameters too) are the text's own, up to the first
 * token that ends such a list; and what is followed by a single `=`, or by `::`. */
void expr_unknown_begin(struct expr_unknown *unknown, enum expr_use use, str text)
{
    static const char *const listing[] = { "local", "for", "function", "goto", NULL };
    struct token token, before = { .kind = TOKEN_END };
    bool is_listing = false;
    size_t place = 0;

    *unknown = (struct expr_unknown){ .text = text, .known = expr_names(use) };
    while ((token = next_token(text, &place)).kind != TOKEN_END) {
        if (token.kind == TOKEN_KEYWORD)
            is_listing = str_is_one_of(token.text, listing);
        else if (token.kind == TOKEN_OTHER && !memchr(",(<>.:", token.text.data[0], 6))
            is_listing = false;
        else if (token.kind == TOKEN_NAME && is_listing)
            make(unknown, token.text);
        if (before.kind == TOKEN_NAME && str_is(token.text, "="))
            make(unknown, before.text);
        before = token;
    }
}

bool expr_unknown_next(struct expr_unknown *unknown, str *out)
{
    /* A member (a.b, a:b) and a label are no globals. */
    static const char *const member_signs[] = { ".", ":", "::", NULL };
    struct token token;
    str before = unknown->before;

    while (!unknown->is_over &&
           (token = next_token(unknown->text, &unknown->at)).kind != TOKEN_END) {
        bool is_global = token.kind == TOKEN_NAME && !str_is_one_of(before, member_signs);

        before = unknown->before = token.text;
        if (!is_global || str_is_one_of(token.text, unknown->known) ||
            is_made(unknown, token.text) || str_is(token.text, "_ENV"))
            continue;
        make(unknown, token.text); /* said once */
        *out = token.text;
        return true;
    }
    return false;
}
