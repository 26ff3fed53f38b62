/* render_history.c - entries: as a table, and one by one as a path. */
#include "base/limits.h"
#include "surface/cli/view.h"

enum {
    ENTRY_SEQ,
    ENTRY_FIRED,
    ENTRY_RECORDED,
    ENTRY_STATES,
    ENTRY_ACTION,
    ENTRY_ACTOR,
    ENTRY_NOTE,
    ENTRY_COLUMNS
};
#define SEQ_COLUMNS 7 /* of a history in several pages: so that a longer number moves nothing */
static const char *const entry_heads[ENTRY_COLUMNS] = {
    "#", "FIRED AT", "RECORDED", "STATES", "ACTION", "ACTOR", "NOTE"
};

static str join(struct cli *cli, str a, const char *between, str b)
{
    size_t size = a.size + strlen(between) + b.size + 1;
    char *text = arena_alloc(&cli->scope.arena, size);

    if (!text)
        return a;
    snprintf(text, size, "%.*s%s%.*s", STR_ARG(a), between, STR_ARG(b));
    return str_of(text);
}

/* What it had is not there any more. */
static str join_erased(struct cli *cli, str note, const struct node *entry)
{
    for (const struct node *name = node_first(entry, "erased"); name; name = name->next) {
        note = join(cli, note, note.size ? "  (" : "(", name->text);
        note = join(cli, note, "", STR(" erased)"));
    }
    return note;
}

/* What else there is to say about an entry: step and attempt, guard, reason, payload, trace. */
str entry_note(struct cli *cli, const struct node *entry)
{
    str note = member_str(entry, "step"), reason = member_str(entry, "reason");
    str payload = member_json(entry, "payload");
    str attempt = member_str(entry, "attempt"), trace = member_str(entry, "traceparent");
    str tool = member_str(entry, "tool"), kind = member_str(entry, "kind");

    if (tool.size > 0 || kind.size > 0)
        note = join(cli, note, " ", tool.size > 0 ? tool : kind);
    if (note.size > 0 && member_int(entry, "attempt") > 1)
        note = join(cli, note, " attempt ", attempt);
    if (member_true(entry, "guard_satisfied"))
        note = join(cli, note, note.size ? ", " : "", STR("guard satisfied"));
    if (reason.size > 0)
        note = join(cli, join(cli, note, note.size ? "  “" : "“", reason), "", STR("”"));
    if (payload.size > 0)
        note = join(cli, note, note.size ? "  " : "", payload);
    if (trace.size > 0)
        note = join(cli, note, note.size ? "  trace " : "trace ", trace);
    return join_erased(cli, note, entry);
}

enum style action_style(str action)
{
    if (str_is(action, "step.complete") || str_is(action, "finish"))
        return GOOD;
    if (str_is(action, "step.fail") || str_is(action, "fail") || str_is(action, "step.timeout"))
        return BAD;
    if (str_is(action, "step.retry") || str_is(action, "cancel"))
        return WARN;
    return PLAIN;
}

void print_times(const struct node *entry, char fired[MOMENT_SIZE], char recorded[MOMENT_SIZE])
{
    moment_print(member_str(entry, "fired_at"), fired);
    moment_print_beside(fired, member_str(entry, "recorded_at"), recorded);
}

static void fill_entry(struct cli *cli, const struct text_table *table, const struct node *entry,
                       str *cells, enum style *styles)
{
    char *fired = arena_alloc(&cli->scope.arena, MOMENT_SIZE);
    char *recorded = arena_alloc(&cli->scope.arena, MOMENT_SIZE);
    str from = member_str(entry, "from_state"), to = member_str(entry, "to_state");

    (void)table;
    if (fired && recorded)
        print_times(entry, fired, recorded);
    cells[ENTRY_SEQ] = member_str(entry, "sequence_number");
    cells[ENTRY_FIRED] = str_of(fired);
    cells[ENTRY_RECORDED] = str_of(recorded);
    cells[ENTRY_STATES] = str_eq(from, to) ? to : join(cli, from, " → ", to);
    cells[ENTRY_ACTION] = member_str(entry, "action");
    cells[ENTRY_ACTOR] = member_str(entry, "actor_ref");
    cells[ENTRY_NOTE] = entry_note(cli, entry);
    styles[ENTRY_SEQ] = styles[ENTRY_FIRED] = styles[ENTRY_RECORDED] = styles[ENTRY_NOTE] = DIM;
    styles[ENTRY_ACTION] = action_style(cells[ENTRY_ACTION]);
}

/* A table has no room there: as a path. */
static void put_slim(struct cli *cli, const struct node *entry, bool has_heads)
{
    if (entry && has_heads) {
        put_path_head(cli);
        put_state(cli, DIM, "○", member_str(entry, "from_state"));
    }
    for (; entry; entry = entry->next) {
        put_entry(cli, entry, STR(""));
        if (!str_eq(member_str(entry, "from_state"), member_str(entry, "to_state")))
            put_state(cli, DIM, "○", member_str(entry, "to_state"));
    }
}

void render_entries(struct cli *cli, const struct node *entries, struct entry_pages *pages)
{
    bool has_heads = pages->count == 0;
    struct text_table table = {
        .column_count = ENTRY_COLUMNS,
        .heads = has_heads ? entry_heads : NULL,
        .whole = 1u << ENTRY_SEQ | 1u << ENTRY_FIRED | 1u << ENTRY_RECORDED | 1u << ENTRY_ACTION,
        .below = 1u << ENTRY_STATES | 1u << ENTRY_ACTOR | 1u << ENTRY_NOTE,
    };

    if (!entries)
        return;
    pages->count += entries->count;
    if (pages->has_more && pages->table.widths[ENTRY_SEQ] == 0)
        pages->table.widths[ENTRY_SEQ] = SEQ_COLUMNS;
    if (term_is_slim(&cli->term))
        put_slim(cli, entries->first, has_heads);
    else
        rows_print(cli, entries, &table, fill_entry, &pages->table);
}

void render_history(struct cli *cli, const struct node *answer)
{
    const struct node *entries = node_find(answer, "entries");
    str next = member_str(answer, "next");

    if (!entries || entries->count == 0)
        fputs("no entries\n", cli->term.out);
    else
        render_entries(cli, entries, &(struct entry_pages){ 0 });
    if (next.size > 0)
        put_next_page(cli, next);
}

/* ---- The path ---- */

#define ACTION_COLUMNS 13 /* of the longest of a flow: what follows is in a column */
#define NOTE_MIN       12
#define NARROW         90 /* on such a terminal the time since the last entry is left out */

#define CONTINUED "  │       " /* the beginning of a further line */

/* The gap before what follows; or a further line, where `columns` of it have no room. The columns
 * that are used then. */
static int put_gap(const struct term *term, int used, int columns)
{
    if (!term->tty || used + 2 + columns <= term->width) {
        fputs("  ", term->out);
        return used + 2;
    }
    term_put(term, DIM, "\n" CONTINUED);
    return term_columns(STR(CONTINUED));
}

void put_path_head(struct cli *cli)
{
    term_put(&cli->term, DIM, "    %4s  %-20s  %s\n", "#", "fired at",
             term_is_slim(&cli->term) ? "" : "recorded ");
}

/* Number and times: their columns. */
static int put_times(const struct term *term, const struct node *entry, str before)
{
    char fired[MOMENT_SIZE], recorded[MOMENT_SIZE], elapsed[MOMENT_SIZE], text[4 * MOMENT_SIZE];
    int elapsed_columns = term->tty && term->width < NARROW ? 0 : 8, size;

    print_times(entry, fired, recorded);
    elapsed_print(before, member_str(entry, "fired_at"), elapsed);
    size = snprintf(text, sizeof text, "  │ %4lld  %s  ",
                    (long long)member_int(entry, "sequence_number"), fired);
    if (!term_is_slim(term)) /* else without when it was recorded */
        snprintf(text + size, sizeof text - (size_t)size, "%-9s %*s  ", recorded, elapsed_columns,
                 elapsed_columns ? elapsed : "");
    term_put(term, DIM, "%s", text);
    return term_columns(str_of(text));
}

void put_entry(struct cli *cli, const struct node *entry, str before)
{
    struct term *term = &cli->term;
    str action = member_str(entry, "action"), actor = member_str(entry, "actor_ref");
    str note = entry_note(cli, entry);
    int columns = term_columns(action) > ACTION_COLUMNS ? term_columns(action) : ACTION_COLUMNS;
    bool more = actor.size > 0 || note.size > 0;

    columns += put_times(term, entry, before);
    term_cell(term, action_style(action), action, LIMIT_ACTION, more ? ACTION_COLUMNS : 0);
    if (actor.size > 0) {
        columns = put_gap(term, columns, 3 + term_columns(actor));
        term_put(term, DIM, "by ");
        term_cell(term, PLAIN, actor, LIMIT_ACTION, 0);
        columns += 3 + term_columns(actor);
    }
    if (note.size > 0)
        term_wrap(term, DIM, note, put_gap(term, columns, NOTE_MIN), CONTINUED);
    fputc('\n', term->out);
}

void put_state(struct cli *cli, enum style style, const char *mark, str state)
{
    fputs("  ", cli->term.out);
    term_put(&cli->term, style, "%s ", mark);
    term_cell(&cli->term, style == DIM ? PLAIN : style, state, LIMIT_ACTION, 0);
    fputc('\n', cli->term.out);
}
