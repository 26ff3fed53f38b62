/* evidence_page.c - show --evidence: all that the store has of one instance, on one page for an
 * auditor's file: definition, facts, every record with its hash and its values or their
 * commitments, and what verify says. */
#include "base/time.h"
#include "surface/cli/cli.h"
#include "surface/cli/sheet.h"
#include "surface/cli/view.h"
#include <pwd.h>
#include <time.h>
#include <unistd.h>

struct evidence {
    struct cli *cli;
    const char *id;
    struct node *instance, *history, *verdict, *info;
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

    TRY(cli_ask_id(cli, "instance.get", evidence->id, &evidence->instance));
    TRY(read_export(evidence));
    TRY(cli_ask_id(cli, "instance.history", evidence->id, &evidence->history));
    TRY(cli_ask_id(cli, "instance.verify", evidence->id, &evidence->verdict));
    return cli_ask_id(cli, "store.info", NULL, &evidence->info);
}

/* ---- Pieces ---- */

static str printed(struct cli *cli, struct buf *text)
{
    return buf_take(text, &cli->scope.arena);
}

static str number_text(struct cli *cli, const struct node *object, const char *name)
{
    struct buf text;

    buf_init(&text, &heap_libc, 64);
    if (node_find(object, name))
        buf_fmt(&text, "%lld", (long long)member_int(object, name));
    return printed(cli, &text);
}

/* A value: its text, or that it was erased; and its commitment. */
static void put_value(struct evidence *evidence, const char *name, const struct node *value)
{
    const struct node *text = node_find(value, "text");
    struct buf words;

    if (!value || value->kind != NODE_OBJECT)
        return;
    if (text && text->kind == NODE_STRING)
        sheet_fact(&evidence->sheet, name,
                   text->text.size > 0 ? text->text : STR("(an empty text)"));
    else
        sheet_fact(&evidence->sheet, name, STR("(erased)"));
    buf_init(&words, &heap_libc, 256);
    buf_fmt(&words, "SHA-256 %.*s", STR_ARG(member_str(value, "commitment")));
    sheet_fact(&evidence->sheet, "  commitment", printed(evidence->cli, &words));
}

/* ---- Sections ---- */

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
    sheet_fact(&evidence->sheet, "printed at", str_of(now));
    sheet_fact(&evidence->sheet, "local time", str_of(zone));
    sheet_fact(&evidence->sheet, "printed by", printed(cli, &who));
    sheet_fact(&evidence->sheet, "program", STR("pawl " PAWL_VERSION));
    sheet_fact(&evidence->sheet, "store", str_of(store_shown(cli)));
    sheet_fact(&evidence->sheet, "store's program", member_str(evidence->info, "version"));
    sheet_fact(&evidence->sheet, "time zone", STR("all other times on this page are UTC"));
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
    sheet_words(
        &evidence->sheet,
        STR("Each hash is SHA-256 over its record and the hash of the record before it. The "
            "root covers all records of the store up to that position. A commitment is "
            "SHA-256 over a salt and the value; it stays when the value is erased. Whether "
            "the store as a whole is valid is not said here: run pawl verify."));
}

static void put_definition(struct evidence *evidence, const struct node *definition,
                           const struct node *row)
{
    sheet_section(&evidence->sheet, "Definition");
    sheet_fact(&evidence->sheet, "name", member_str(definition, "name"));
    sheet_fact(&evidence->sheet, "version", number_text(evidence->cli, definition, "version"));
    sheet_fact(&evidence->sheet, "kind", member_str(definition, "kind"));
    sheet_fact(&evidence->sheet, "source SHA-256", member_str(row, "source"));
    sheet_fact(&evidence->sheet, "compiled SHA-256", member_str(row, "compiled"));
    sheet_block(&evidence->sheet, member_str(definition, "source"));
}

static void put_instance(struct evidence *evidence, const struct node *row)
{
    static const char *const names[] = { "instance_id",     "kind",          "current_state",
                                         "status",          "terminal_kind", "correlation_id",
                                         "parent_id",       "retry_of",      "retried_as",
                                         "instantiated_at", "updated_at" };
    static const char *const values[] = { "subject", "creator", "input", "metadata" };

    sheet_section(&evidence->sheet, "Instance");
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        sheet_fact(&evidence->sheet, names[i], member_str(evidence->instance, names[i]));
    sheet_fact(&evidence->sheet, "labels", member_json(evidence->instance, "labels"));
    for (size_t i = 0; i < sizeof values / sizeof *values; i++)
        put_value(evidence, values[i], node_find(row, values[i]));
    sheet_fact(&evidence->sheet, "result", member_json(evidence->instance, "result"));
    sheet_fact(&evidence->sheet, "error", member_json(evidence->instance, "error"));
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

static str time_text(struct cli *cli, const struct node *record, const char *name)
{
    char *text = arena_alloc(&cli->scope.arena, 64);

    if (!text)
        return STR("");
    time_print(member_int(record, name), text);
    return str_of(text);
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
    sheet_fact(&evidence->sheet, "effects", member_str(record, "body"));
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
    const struct node *definition = NULL, *row = NULL, *line = evidence->exported->first;
    struct buf title;

    for (const struct node *item = line; item; item = item->next) {
        definition = definition ? definition : node_find(item, "definition");
        row = row ? row : node_find(item, "instance");
    }
    buf_init(&title, &heap_libc, 256);
    buf_fmt(&title, "Evidence of instance %s", evidence->id);
    sheet_begin(&evidence->sheet, printed(evidence->cli, &title));
    put_origin(evidence);
    put_verdict(evidence);
    put_definition(evidence, definition, row);
    put_instance(evidence, row);
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
