/* evidence_page.c - show --evidence: all that the store has of one instance, on one page for an
 * auditor's file: definition, facts, every record with its hash and its values or their
 * commitments, and what verify says. */
#include "base/time.h"
#include "surface/cli/cli.h"
#include "surface/cli/sheet.h"
#include "surface/cli/view.h"
#include <pwd.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define ROWS_MAX 1000 /* of steps, and of children */

struct evidence {
    struct cli *cli;
    const char *id;
    struct node *view, *instance, *history, *verdict;
    struct node *info;     /* NULL: a token that is limited to definitions may not read it */
    struct node *exported; /* a list: the lines of instance.export, in their order */
    struct sheet sheet;
};

/* ---- Reading ---- */

/* Lines become one JSON array. */
static pawl_status read_export(struct evidence *evidence)
{
    struct cli *cli = evidence->cli;
    struct buf input, text;
    bool is_begun = false;
    str lines = STR_NONE;

    input_with(&input, WITH({ "instance_id", str_of(evidence->id) }));
    TRY(target_call(cli, "instance.export", &input, &(struct answer_to){ .whole = &lines }));
    buf_init(&text, &heap_libc, CLI_MEMORY_MAX);
    buf_byte(&text, '[');
    while (lines.size > 0) {
        str line = str_before(lines, '\n');

        if (line.size > 0 && is_begun)
            buf_byte(&text, ',');
        buf_str(&text, line);
        is_begun = is_begun || line.size > 0;
        lines = str_from(lines, line.size < lines.size ? line.size + 1 : lines.size);
    }
    buf_byte(&text, ']');
    lines = buf_take(&text, &cli->scope.arena);
    TRY_MEMORY(&cli->scope, lines.data);
    return node_read_json(&cli->scope, lines, &evidence->exported);
}

static pawl_status read_all(struct evidence *evidence)
{
    struct cli *cli = evidence->cli;
    pawl_status status;

    TRY(cli_ask(cli, "instance.view",
                WITH({ "instance_id", str_of(evidence->id) }, { "steps", .number = ROWS_MAX },
                     { "children", .number = ROWS_MAX }),
                &evidence->view));
    evidence->instance = node_find(evidence->view, "instance");
    TRY(read_export(evidence));
    TRY(cli_ask_id(cli, "instance.history", evidence->id, &evidence->history));
    TRY(cli_ask_id(cli, "instance.verify", evidence->id, &evidence->verdict));
    status = cli_ask_id(cli, "store.info", NULL, &evidence->info);
    if (status == PAWL_FORBIDDEN)
        evidence->info = NULL;
    return status == PAWL_FORBIDDEN ? PAWL_OK : status;
}

/* ---- Pieces ---- */

static str printed(struct cli *cli, struct buf *text)
{
    return buf_take(text, &cli->scope.arena);
}

/* The text of a member, or its JSON. Of two names ("result error") the first that is there. */
static str cell_text(const struct node *object, const char *name)
{
    const char *space = strchr(name, ' ');
    char first[32];
    str text;

    snprintf(first, sizeof first, "%.*s", space ? (int)(space - name) : (int)strlen(name), name);
    text = member_str(object, first);
    text = text.size > 0 ? text : member_json(object, first);
    return text.size == 0 && space ? cell_text(object, space + 1) : text;
}

static str number_text(struct cli *cli, const struct node *object, const char *name)
{
    struct buf text;

    buf_init(&text, &heap_libc, 64);
    if (node_find(object, name))
        buf_fmt(&text, "%lld", (long long)member_int(object, name));
    return printed(cli, &text);
}

/* "refund@2" */
static str name_text(struct cli *cli, const struct node *object, const char *member)
{
    str name = member_str(object, member);
    struct buf text;

    if (name.size == 0)
        return STR("(inline)");
    buf_init(&text, &heap_libc, CLI_ANSWER_MAX);
    buf_fmt(&text, "%.*s@%lld", STR_ARG(name), (long long)member_int(object, "version"));
    return printed(cli, &text);
}

/* What JSON cannot hold as text was exported in hexadecimal. */
static str bytes_text(struct cli *cli, const struct node *object, const char *name,
                      const char *hex_name)
{
    const struct node *text = node_find(object, name), *hex = node_find(object, hex_name);
    struct buf words;

    if (text && text->kind == NODE_STRING)
        return text->text.size > 0 ? text->text : STR("(an empty text)");
    if (!hex || hex->kind != NODE_STRING)
        return STR_NONE;
    buf_init(&words, &heap_libc, CLI_ANSWER_MAX);
    buf_fmt(&words, "(bytes in hexadecimal) %.*s", STR_ARG(hex->text));
    return printed(cli, &words);
}

/* A value: its text, or that it was erased; and its commitment. */
static void put_value(struct evidence *evidence, const char *name, const struct node *value)
{
    str text = bytes_text(evidence->cli, value, "text", "hex");

    if (value && value->kind == NODE_OBJECT)
        sheet_noted(&evidence->sheet, name, text.data ? text : STR("(erased)"), "commitment",
                    member_str(value, "commitment"));
}

/* ---- Sections ---- */

/* Which token asked a server; empty: none. */
static str token_shown(const struct cli *cli)
{
    const char *token = getenv("PAWL_TOKEN");

    return token && strncmp(cli->store, "http", 4) == 0 ? str_before(str_of(token), '.') : STR("");
}

/* Who printed it, when, with which program, from where. */
static void put_origin(struct evidence *evidence)
{
    const struct passwd *user = getpwuid(getuid());
    struct cli *cli = evidence->cli;
    char host[256] = "", zone[64] = "", now[64];
    time_t at = (time_t)(now_ms() / 1000);
    struct tm local;
    struct buf who;

    (void)gethostname(host, sizeof host - 1);
    time_print(now_ms(), now);
    if (localtime_r(&at, &local))
        (void)strftime(zone, sizeof zone, "%Y-%m-%d %H:%M:%S %z (%Z)", &local);
    buf_init(&who, &heap_libc, 1024);
    buf_fmt(&who, "%s at %s", user ? user->pw_name : "unknown", host);
    sheet_section(&evidence->sheet, "This page");
    sheet_fact(&evidence->sheet, "printed by", printed(cli, &who));
    sheet_fact(&evidence->sheet, "with the token", token_shown(cli));
    sheet_fact(&evidence->sheet, "printed at", str_of(now));
    sheet_fact(&evidence->sheet, "local time", str_of(zone));
    sheet_fact(&evidence->sheet, "time zone", STR("all other times on this page are UTC"));
    sheet_fact(&evidence->sheet, "program", STR("pawl " PAWL_VERSION));
    sheet_fact(&evidence->sheet, "store", str_of(store_shown(cli)));
    sheet_fact(&evidence->sheet, "store's program", member_str(evidence->info, "version"));
}

/* The first thing on the page. */
static void put_result(struct evidence *evidence)
{
    bool is_valid = member_true(evidence->verdict, "valid");
    struct buf words;

    buf_init(&words, &heap_libc, CLI_ANSWER_MAX);
    if (is_valid)
        buf_fmt(&words,
                "VALID: %s, with all records, rows and decisions of this instance, as they "
                "were when this page was printed.",
                counted(&evidence->cli->scope.arena, member_int(evidence->verdict, "entries"),
                        "entry", "entries"));
    else
        buf_fmt(&words, "NOT VALID: %.*s", STR_ARG(member_str(evidence->verdict, "what")));
    sheet_verdict(&evidence->sheet, is_valid, printed(evidence->cli, &words));
}

static void put_verdict(struct evidence *evidence)
{
    struct cli *cli = evidence->cli;
    const struct node *verdict = evidence->verdict, *info = evidence->info;
    bool is_valid = member_true(verdict, "valid");

    sheet_section(&evidence->sheet, "Verification");
    sheet_fact(&evidence->sheet, "result", is_valid ? STR("VALID") : STR("NOT VALID"));
    sheet_fact(&evidence->sheet, "entries", number_text(cli, verdict, "entries"));
    sheet_fact(&evidence->sheet, "first bad entry", number_text(cli, verdict, "first_bad"));
    sheet_fact(&evidence->sheet, "what is wrong", member_str(verdict, "what"));
    sheet_fact(&evidence->sheet, "store id", member_str(info, "store_id"));
    sheet_fact(&evidence->sheet, "store's root", member_str(info, "root"));
    sheet_fact(&evidence->sheet, "at position", number_text(cli, info, "records"));
    sheet_fact(&evidence->sheet, "last record", member_str(info, "last_record_at"));
    if (!info)
        sheet_fact(&evidence->sheet, "store's root", STR("not for this token, which is limited"));
    sheet_words(
        &evidence->sheet,
        STR("Each hash is SHA-256 over its record and the hash of the record before it. The "
            "root covers all records of the store up to that position. A commitment is "
            "SHA-256 over a salt and the value; it stays when the value is erased. Whether "
            "the store as a whole is valid is not said here: run pawl verify. The records "
            "with salts, to check the hashes elsewhere: pawl export."));
}

static void put_instance(struct evidence *evidence, const struct node *row)
{
    static const char *const names[] = { "kind",          "current_state",  "status",
                                         "terminal_kind", "correlation_id", "parent_id",
                                         "retry_of",      "retried_as",     "instantiated_at",
                                         "updated_at",    "created_by" };
    static const char *const values[] = { "subject", "input", "metadata" };

    sheet_section(&evidence->sheet, "Instance");
    sheet_fact(&evidence->sheet, "instance_id", str_of(evidence->id));
    sheet_fact(&evidence->sheet, "definition",
               name_text(evidence->cli, evidence->instance, "definition"));
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        sheet_fact(&evidence->sheet, names[i], member_str(evidence->instance, names[i]));
    sheet_fact(&evidence->sheet, "labels", member_json(evidence->instance, "labels"));
    for (size_t i = 0; i < sizeof values / sizeof *values; i++)
        put_value(evidence, values[i], node_find(row, values[i]));
    sheet_fact(&evidence->sheet, "variables", member_json(evidence->view, "variables"));
    sheet_fact(&evidence->sheet, "result", member_json(evidence->instance, "result"));
    sheet_fact(&evidence->sheet, "error", member_json(evidence->instance, "error"));
}

/* ---- Lists ---- */

/* One row for each item: the texts of these members. */
static void put_list_of(struct evidence *evidence, const char *title, const char *list,
                        const char *const *members, const char *const *heads, uint32_t columns)
{
    const struct node *items = node_find(evidence->view, list);
    uint32_t count = items ? items->count : 0, row = 0;
    str *cells = ARENA_ARRAY(&evidence->cli->scope.arena, str, (size_t)count * columns + 1);

    if (count == 0 || !cells)
        return;
    sheet_section(&evidence->sheet, title);
    for (const struct node *item = items->first; item; item = item->next, row++)
        for (uint32_t i = 0; i < columns; i++)
            cells[row * columns + i] = cell_text(item, members[i]);
    sheet_table(&evidence->sheet, heads, cells, columns, count);
}

static void put_left_out(struct evidence *evidence, const char *member, const char *what)
{
    int64_t count = member_int(evidence->view, member);
    struct buf words;

    if (count <= 0)
        return;
    buf_init(&words, &heap_libc, 256);
    buf_fmt(&words, "%lld more are not listed here; %s.", (long long)count, what);
    sheet_words(&evidence->sheet, printed(evidence->cli, &words));
}

#define LIST_OF(evidence, title, list, members, heads)                                             \
    put_list_of(evidence, title, list, members, heads, sizeof(members) / sizeof *(members))

static void put_lists(struct evidence *evidence)
{
    static const char *const steps[] = { "name",       "tool",         "attempt",     "status",
                                         "started_at", "completed_at", "result error" };
    static const char *const step_heads[] = { "step",       "tool",     "attempt",        "status",
                                              "started at", "ended at", "result or error" };
    static const char *const waits[] = { "kind", "name", "until", "approval", "approved_by" };
    static const char *const wait_heads[] = { "kind", "name", "until", "who may approve",
                                              "approved by" };
    static const char *const children[] = { "instance_id", "step", "awaited" };
    static const char *const child_heads[] = { "instance", "created by the step", "still awaited" };

    LIST_OF(evidence, "Waits for", "waiting_for", waits, wait_heads);
    put_left_out(evidence, "waiting_more", "pawl why lists them all");
    LIST_OF(evidence, "Steps", "steps", steps, step_heads);
    put_left_out(evidence, "steps_before", "the records below have them all");
    LIST_OF(evidence, "Children", "children", children, child_heads);
    put_left_out(evidence, "children_more", "the records below have them all");
}

/* ---- Definitions ---- */

/* The number of the first entry behind this line; it is the amend that a definition came with. */
static int64_t entry_behind(const struct node *line)
{
    const struct node *record = NULL;

    for (; line && !record; line = line->next)
        record = node_find(line, "record");
    return member_int(record, "seq");
}

static void put_definition(struct evidence *evidence, const struct node *line, bool is_first)
{
    const struct node *definition = node_find(line, "definition");
    struct cli *cli = evidence->cli;
    struct buf title;

    buf_init(&title, &heap_libc, CLI_ANSWER_MAX);
    buf_str(&title, name_text(cli, definition, "name"));
    if (is_first)
        buf_str(&title, STR(", from the beginning"));
    else
        buf_fmt(&title, ", from entry %lld on (amend)", (long long)entry_behind(line->next));
    sheet_entry(&evidence->sheet, printed(cli, &title));
    sheet_fact(&evidence->sheet, "kind", member_str(definition, "kind"));
    sheet_fact(&evidence->sheet, "source SHA-256", member_str(definition, "sha256"));
    sheet_fact(&evidence->sheet, "compiled SHA-256", member_str(definition, "compiled_sha256"));
    sheet_block(&evidence->sheet, bytes_text(cli, definition, "source", "source_hex"));
}

static void put_definitions(struct evidence *evidence)
{
    bool is_first = true;

    sheet_section(&evidence->sheet, "Definition");
    for (const struct node *line = evidence->exported->first; line; line = line->next)
        if (node_find(line, "definition")) {
            put_definition(evidence, line, is_first);
            is_first = false;
        }
}

/* ---- Records ---- */

static const char *control_word(int64_t what)
{
    static const char *const words[] = { "create", "define",      "pause", "resume",
                                         "alarm",  "keep-signal", "token", "erase",
                                         "keyed",  "import",      "clock", "rights" };

    return what < 0 && what >= -(int64_t)(sizeof words / sizeof *words) ? words[-what - 1]
                                                                        : "control record";
}

static str time_text(struct cli *cli, const struct node *record, const char *name)
{
    char *text = arena_alloc(&cli->scope.arena, 64);

    if (!text)
        return STR("");
    time_print(member_int(record, name), text);
    return str_of(text);
}

/* ---- What happened, in short ---- */

enum { PATH_NUMBER, PATH_AT, PATH_WHAT, PATH_STATE, PATH_STEP, PATH_BY, PATH_REASON, PATH_COLUMNS };

static str step_text(struct cli *cli, const struct node *entry)
{
    str name = member_str(entry, "step");
    struct buf text;

    if (name.size == 0 || member_int(entry, "attempt") < 2)
        return name;
    buf_init(&text, &heap_libc, CLI_ANSWER_MAX);
    buf_fmt(&text, "%.*s, attempt %lld", STR_ARG(name), (long long)member_int(entry, "attempt"));
    return printed(cli, &text);
}

static void fill_path(struct cli *cli, const struct node *record, const struct node *entry,
                      str *cells)
{
    str from = member_str(entry, "from_state"), to = member_str(entry, "to_state");

    cells[PATH_NUMBER] = entry ? number_text(cli, record, "seq") : STR("");
    cells[PATH_AT] = time_text(cli, record, "at");
    cells[PATH_WHAT] =
        entry ? member_str(entry, "action") : str_of(control_word(member_int(record, "what")));
    cells[PATH_STATE] = str_eq(from, to) ? STR("") : to;
    cells[PATH_STEP] = step_text(cli, entry);
    cells[PATH_BY] = member_str(node_find(record, "actor"), "text");
    cells[PATH_REASON] = member_str(node_find(record, "reason"), "text");
}

static void put_path(struct evidence *evidence)
{
    static const char *const heads[PATH_COLUMNS] = { "#",    "recorded at", "what",  "new state",
                                                     "step", "by",          "reason" };
    const struct node *entry = node_first(evidence->history, "entries");
    struct cli *cli = evidence->cli;
    uint32_t count = 0;
    str *cells =
        ARENA_ARRAY(&cli->scope.arena, str, (size_t)evidence->exported->count * PATH_COLUMNS + 1);

    sheet_section(&evidence->sheet, "What happened");
    for (const struct node *line = evidence->exported->first; line && cells; line = line->next) {
        const struct node *record = node_find(line, "record");
        bool is_entry = record && member_int(record, "what") >= 0;

        if (!record)
            continue;
        fill_path(cli, record, is_entry ? entry : NULL, &cells[count++ * PATH_COLUMNS]);
        if (is_entry && entry)
            entry = entry->next;
    }
    sheet_table(&evidence->sheet, heads, cells, PATH_COLUMNS, count);
}

/* ---- Records, whole ---- */

static str record_title(struct cli *cli, const struct node *record, const struct node *entry)
{
    str from = member_str(entry, "from_state"), to = member_str(entry, "to_state");
    struct buf text;

    buf_init(&text, &heap_libc, CLI_ANSWER_MAX);
    if (!entry) {
        buf_fmt(&text, "%s", control_word(member_int(record, "what")));
        return printed(cli, &text);
    }
    buf_fmt(&text, "%lld  %.*s", (long long)member_int(record, "seq"),
            STR_ARG(member_str(entry, "action")));
    if (!str_eq(from, to))
        buf_fmt(&text, "  (%.*s -> %.*s)", STR_ARG(from), STR_ARG(to));
    if (member_str(entry, "step").size > 0)
        buf_fmt(&text, "  step %.*s, attempt %lld", STR_ARG(member_str(entry, "step")),
                (long long)member_int(entry, "attempt"));
    return printed(cli, &text);
}

static void put_record(struct evidence *evidence, const struct node *record,
                       const struct node *entry)
{
    struct cli *cli = evidence->cli;

    sheet_entry(&evidence->sheet, record_title(cli, record, entry));
    sheet_fact(&evidence->sheet, "recorded at", time_text(cli, record, "at"));
    if (member_int(record, "fired") != member_int(record, "at"))
        sheet_fact(&evidence->sheet, "fired at", time_text(cli, record, "fired"));
    put_value(evidence, "actor", node_find(record, "actor"));
    put_value(evidence, "reason", node_find(record, "reason"));
    put_value(evidence, "payload", node_find(record, "payload"));
    sheet_fact(&evidence->sheet, "effects", bytes_text(cli, record, "body", "body_hex"));
    sheet_fact(&evidence->sheet, "position", number_text(cli, record, "position"));
    sheet_fact(&evidence->sheet, "hash", member_str(record, "hash"));
}

/* An entry for each record that is one, in the same order; what was recorded since the export
 * was read is left out. */
static void put_records(struct evidence *evidence, const struct node *line)
{
    const struct node *entry = node_first(evidence->history, "entries");

    sheet_section(&evidence->sheet, "Records");
    for (; line; line = line->next) {
        const struct node *record = node_find(line, "record");
        bool is_entry = record && member_int(record, "what") >= 0;

        if (!record)
            continue;
        put_record(evidence, record, is_entry ? entry : NULL);
        if (is_entry && entry)
            entry = entry->next;
    }
}

/* ---- The verb ---- */

static void put_page(struct evidence *evidence)
{
    const struct node *row = NULL, *line = evidence->exported->first;
    struct buf title;

    for (const struct node *item = line; item && !row; item = item->next)
        row = node_find(item, "instance");
    buf_init(&title, &heap_libc, 256);
    buf_fmt(&title, "Evidence of instance %s", evidence->id);
    sheet_begin(&evidence->sheet, printed(evidence->cli, &title));
    put_result(evidence);
    put_origin(evidence);
    put_verdict(evidence);
    put_instance(evidence, row);
    put_path(evidence);
    put_lists(evidence);
    put_definitions(evidence);
    put_records(evidence, line);
    sheet_end(&evidence->sheet);
}

int show_evidence(struct cli *cli)
{
    const char *format = args_option(cli, "format");
    struct evidence evidence = { .cli = cli, .sheet = { .out = cli->term.out } };

    evidence.sheet.is_html = format && strcmp(format, "html") == 0;
    if (format && !evidence.sheet.is_html && strcmp(format, "text") != 0)
        return usage_fail(cli, "--format: expected text or html, found '%s'", format);
    if (cli->json)
        return usage_fail(cli, "--evidence is a page for people; for JSON: %s export ID",
                          cli->command);
    if (id_resolve(cli, cli->operands[0], &evidence.id) != PAWL_OK ||
        read_all(&evidence) != PAWL_OK)
        return report(cli);
    put_page(&evidence);
    return member_true(evidence.verdict, "valid") ? EXIT_DONE : EXIT_REJECTED;
}
