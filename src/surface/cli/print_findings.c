/* print_findings.c - errors and warnings of a definition: the place, the words, and the author's
 * own line with a caret under what is meant. */
#include "surface/cli/cli.h"

#define GUTTER 9 /* "12345 | " and the blank before it */

/* The line with this number (from 1), without its end; data NULL: the text has fewer lines. */
static str line_of(str text, int64_t number)
{
    str line = STR("");

    for (; number > 0; number--)
        if (!str_take(&text, '\n', &line))
            return number == 1 && text.data ? STR("") : STR_NONE;
    if (line.size > 0 && line.data[line.size - 1] == '\r')
        line.size--;
    return line;
}

static str skip_columns(str text, int columns)
{
    for (; columns > 0 && text.size > 0; columns--)
        do
            text = str_from(text, 1);
        while (text.size > 0 && ((unsigned char)text.data[0] & 0xC0) == 0x80);
    return text;
}

/* A line of a megabyte is legal: what is shown is as wide as the terminal, round the caret. */
static void put_excerpt(const struct term *term, str text, int64_t number, int64_t column,
                        enum style style)
{
    str line = line_of(text, number), before = line;
    int room = term->width - GUTTER, at, skip;

    if (!line.data || column < 1)
        return;
    before.size = (size_t)column - 1 < line.size ? (size_t)column - 1 : line.size;
    at = term_columns(before);
    skip = at < room * 2 / 3 || term_columns(line) <= room ? 0 : at - room / 3;
    term_put(term, DIM, " %5lld | ", (long long)number);
    fputs(skip > 0 ? "…" : "", term->out);
    term_cell(term, PLAIN, skip_columns(line, skip), skip > 0 ? room - 1 : room, 0);
    term_put(term, DIM, "\n       | ");
    fprintf(term->out, "%*s", at - skip + (skip > 0), "");
    term_put(term, style, "^\n");
}

static void put_finding(const struct term *term, const struct node *finding,
                        const struct checked *checked, bool is_error)
{
    str message = member_str(finding, "message");
    long long line = member_int(finding, "line"), column = member_int(finding, "column");

    fprintf(term->out, "%s:%lld:%lld: ", checked->path, line, column);
    term_put(term, is_error ? BAD : WARN, "%s", is_error ? "error" : "warning");
    fputs(": ", term->out);
    term_cell(term, PLAIN, message, TABLE_CELL_MAX, 0);
    fputc('\n', term->out);
    put_excerpt(term, checked->text, line, column, is_error ? BAD : WARN);
}

void findings_put(const struct term *term, const struct checked *checked, const char *member)
{
    for (const struct node *item = node_first(checked->answer, member); item; item = item->next)
        put_finding(term, item, checked, strcmp(member, "errors") == 0);
}

/* ---- Where to read about it ---- */

static const struct key_section *section_of_key(str key)
{
    const struct key_section *section = key_sections;

    while (section->key && !str_is(key, section->key))
        section++;
    return section->key ? section : NULL;
}

/* Of the first key that the message has in quotes, as in 'timeout' or 'cancel.not_from'; NULL: of
 * none. The name of the step, which messages begin with, is no key. */
static const struct key_section *section_of(str message)
{
    const struct key_section *section = NULL;
    str word;

    if (str_starts(message, STR("step '"))) {
        (void)str_take(&message, '\'', &word);
        (void)str_take(&message, '\'', &word);
    }
    while (!section && str_take(&message, '\'', &word) && str_take(&message, '\'', &word)) {
        str last = word;

        while (str_has(last, '.'))
            last = str_after(last, '.');
        section = section_of_key(last);
        if (!section)
            section = section_of_key(str_before(word, '.'));
    }
    return section;
}

void findings_put_section(const struct term *term, const struct checked *checked)
{
    const struct node *first = node_first(checked->answer, "errors");
    const struct key_section *section = NULL;

    for (const struct node *error = first; error && !section; error = error->next)
        section = section_of(member_str(error, "message"));
    if (section)
        fprintf(term->out, "see '%s' in man pawl-definition, or docs/definitions.md#%s\n",
                section->title, section->anchor);
    else if (first)
        fputs("see man pawl-definition, or docs/definitions.md\n", term->out);
}

pawl_status findings_ask(struct cli *cli, const char *path, str text, const char *against,
                         struct checked *out)
{
    *out = (struct checked){ .path = path, .text = text };
    return cli_ask(cli, "definition.check", WITH({ "text", text }, { "against", str_of(against) }),
                   &out->answer);
}

/* The report has the first error's words; all other errors are printed as `check` prints them. */
void findings_explain(struct cli *cli, const char *path, str text)
{
    struct term term;
    struct checked checked;
    const struct node *first;

    if (cli->json || findings_ask(cli, path, text, NULL, &checked) != PAWL_OK)
        return;
    term_init(&term, stderr);
    first = node_first(checked.answer, "errors");
    if (first)
        put_excerpt(&term, text, member_int(first, "line"), member_int(first, "column"), BAD);
    for (const struct node *item = first ? first->next : NULL; item; item = item->next)
        put_finding(&term, item, &checked, true);
    findings_put_section(&term, &checked);
}

/* ---- A declaration, which goes to the store as JSON ---- */

/* Of the nodes of `sent` the last one that begins at or before a place; *found is the same node of
 * `own`, which has the same shape. */
static void find_same(const struct node *sent, const struct node *own, uint32_t line,
                      uint32_t column, const struct node **found)
{
    const struct node *child = sent->first, *same = own->first;

    if (sent->line > line || (sent->line == line && sent->column > column))
        return;
    *found = own;
    for (; child && same; child = child->next, same = same->next)
        find_same(child, same, line, column, found);
}

/* A place in the JSON that was sent, as a place in the file that it was made of. */
static void find_place(struct cli *cli, str text, uint32_t *line, uint32_t *column)
{
    struct node *own = NULL, *sent = NULL;
    const struct node *found = NULL;
    struct buf json;

    if (node_read(&cli->scope, text, &own) != PAWL_OK)
        return;
    if (own->raw.data) { /* JSON was sent as it is, without what is before it */
        *column += *line == 1 ? own->column - 1 : 0;
        *line += own->line - 1;
        return;
    }
    buf_init(&json, &heap_libc, CLI_ANSWER_MAX);
    node_print(own, &json);
    if (!json.failed && node_read_json(&cli->scope, buf_view(&json), &sent) == PAWL_OK)
        find_same(sent, own, *line, *column, &found);
    if (found) {
        *line = found->line;
        *column = found->column;
    }
    buf_fini(&json);
}

int report_declaration(struct cli *cli, const char *path, str text)
{
    pawl_status status = cli->scope.error.status;
    str message = arena_str(&cli->scope.arena, str_of(cli->scope.error.message));
    unsigned line = 0, column = 0;
    int words = 0, code;
    struct term term;

    if (!message.data || sscanf(message.data, "line %u, column %u: %n", &line, &column, &words) < 2)
        return report(cli);
    find_place(cli, text, &line, &column);
    scope_fail(&cli->scope, status, "%s: line %u, column %u: %s", path, line, column,
               message.data + words);
    code = report(cli);
    term_init(&term, stderr);
    if (!cli->json)
        put_excerpt(&term, text, line, column, BAD);
    return code;
}
