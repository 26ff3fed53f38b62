/* render_timeline.c - bars over time: how long each state was held, how long each attempt took. */
#include "base/time.h"
#include "surface/cli/view.h"
#include <sys/param.h>

#define NAME_COLUMNS 24
#define NOTE_COLUMNS 16
#define SPAN_COLUMNS 10
#define BAR_MIN      10
#define BAR_MAX      1000
#define BARS_MAX     400 /* of the newest */

struct bar {
    str name, note; /* note: who, or which attempt */
    int64_t from_ms, to_ms;
    uint64_t number; /* of its entry or attempt; 0: before the first */
    bool is_open;    /* it has not ended */
    enum style style;
};

struct timeline {
    struct bar *bars;
    uint32_t count, first; /* the first that is drawn */
    int64_t from_ms, to_ms;
    int name_columns, bar_columns, note_columns;
};

static int64_t moment_of(const struct node *object, const char *member, int64_t otherwise)
{
    int64_t at_ms;

    return time_parse(member_str(object, member), &at_ms) ? at_ms : otherwise;
}

/* ---- States of a machine (and of code) ---- */

static void end_bar(struct timeline *timeline, int64_t at_ms)
{
    struct bar *last = &timeline->bars[timeline->count - 1];

    last->to_ms = MAX(at_ms, last->from_ms);
    last->is_open = false;
}

/* The state before the first entry that was read. If that is not the first of all, its beginning is
 * unknown: it is drawn from that entry on. */
static struct bar first_state(const struct showing *showing, const struct node *entry)
{
    int64_t at_ms = moment_of(showing->instance, "instantiated_at", 0);
    int64_t number = entry ? member_int(entry, "sequence_number") : 1;
    bool is_whole = number == 1;

    return (struct bar){
        .name =
            member_str(entry ? entry : showing->instance, entry ? "from_state" : "current_state"),
        .note = is_whole ? member_str(showing->instance, "created_by") : STR(""),
        .from_ms = is_whole ? at_ms : moment_of(entry, "fired_at", at_ms),
        .number = is_whole ? 0 : (uint64_t)number,
        .is_open = true,
    };
}

static void collect_states(const struct showing *showing, struct timeline *timeline)
{
    const struct node *entry = node_first(showing->view, "entries");
    int64_t at_ms;

    timeline->bars[timeline->count++] = first_state(showing, entry);
    at_ms = timeline->bars[0].from_ms;
    for (; entry; entry = entry->next) {
        at_ms = moment_of(entry, "fired_at", at_ms);
        if (str_eq(member_str(entry, "from_state"), member_str(entry, "to_state")))
            continue;
        end_bar(timeline, at_ms);
        timeline->bars[timeline->count++] =
            (struct bar){ .name = member_str(entry, "to_state"),
                          .note = member_str(entry, "actor_ref"),
                          .from_ms = at_ms,
                          .to_ms = at_ms,
                          .number = (uint64_t)member_int(entry, "sequence_number"),
                          .is_open = true };
    }
    timeline->bars[timeline->count - 1].style = status_style(status_shown(showing->instance));
    if (has_ended(showing->instance))
        end_bar(timeline, at_ms);
}

/* ---- Attempts of a flow ---- */

static str attempt_note(struct cli *cli, const struct node *step)
{
    char *text = arena_alloc(&cli->scope.arena, 32);

    if (!text || member_int(step, "attempt") < 2)
        return STR("");
    snprintf(text, 32, "attempt %lld", (long long)member_int(step, "attempt"));
    return str_of(text);
}

static void collect_attempts(struct cli *cli, const struct showing *showing,
                             struct timeline *timeline)
{
    int64_t before_ms = moment_of(showing->instance, "instantiated_at", 0);
    uint64_t number = earlier_attempts(showing);

    for (const struct node *step = node_first(showing->view, "steps"); step; step = step->next) {
        struct bar bar = { .name = member_str(step, "name"), .note = attempt_note(cli, step),
                           .number = ++number };

        /* What waits where it is (a sleep, a gate) is never taken up: it began when the last one
         * before it ended. */
        bar.from_ms = moment_of(step, "started_at", moment_of(step, "ready_at", before_ms));
        bar.to_ms = moment_of(step, "completed_at", -1);
        bar.is_open = bar.to_ms < 0;
        bar.style = status_style(member_str(step, "status"));
        if (bar.to_ms > before_ms)
            before_ms = bar.to_ms;
        timeline->bars[timeline->count++] = bar;
    }
}

/* ---- Drawing ---- */

/* Too long for its column: it has a line of its own. */
static bool is_long_note(const struct term *term, const struct bar *bar)
{
    return term->tty && term_columns(bar->note) > NOTE_COLUMNS;
}

static void measure(const struct term *term, struct timeline *timeline)
{
    int64_t now = now_ms();
    int room;

    timeline->from_ms = timeline->bars[timeline->first].from_ms;
    for (uint32_t i = timeline->first; i < timeline->count; i++) {
        struct bar *bar = &timeline->bars[i];

        if (bar->is_open)
            bar->to_ms = MAX(now, bar->from_ms);
        timeline->from_ms = MIN(timeline->from_ms, bar->from_ms);
        timeline->to_ms = MAX(timeline->to_ms, bar->to_ms);
        timeline->name_columns = MAX(timeline->name_columns, term_columns(bar->name));
        if (!is_long_note(term, bar))
            timeline->note_columns = MAX(timeline->note_columns, term_columns(bar->note));
    }
    timeline->name_columns = MIN(timeline->name_columns, MIN(NAME_COLUMNS, term->width / 3));
    room = term->width - timeline->name_columns - SPAN_COLUMNS - 6 -
           (timeline->note_columns > 0 ? timeline->note_columns + 2 : 0);
    timeline->bar_columns = MAX(BAR_MIN, MIN(BAR_MAX, room));
}

static void put_bar(const struct term *term, const struct timeline *timeline, const struct bar *bar)
{
    int64_t whole = timeline->to_ms > timeline->from_ms ? timeline->to_ms - timeline->from_ms : 1;
    int columns = timeline->bar_columns;
    int from = (int)((bar->from_ms - timeline->from_ms) * columns / whole);
    int to = (int)((bar->to_ms - timeline->from_ms) * columns / whole);
    enum style style = bar->style == PLAIN ? LIVE : bar->style;
    const char *block = bar->is_open ? "▒" : "█";

    if (from >= columns)
        from = columns - 1;
    if (to <= from) {
        to = from + 1;
        block = "▏";
    }
    fprintf(term->out, "%*s", from, "");
    for (int at = from; at < to; at++)
        term_put(term, style, "%s", block);
    fprintf(term->out, "%*s", to < columns ? columns - to : 0, "");
}

/* In a line of its own, indented; further to the left if it needs the room. */
static void put_alone(const struct term *term, enum style style, str text, int indent)
{
    int room = term->width - term_columns(text);

    if (indent > room)
        indent = room > 2 ? room : 2;
    fprintf(term->out, "%*s", indent, "");
    term_cell(term, style, text, term->width - indent, 0);
    fputc('\n', term->out);
}

static void put_row(const struct term *term, const struct timeline *timeline, const struct bar *bar)
{
    char span[MOMENT_SIZE];
    bool is_long = term->tty && term_columns(bar->name) > timeline->name_columns;
    enum style style = bar->is_open ? BOLD : PLAIN;

    span_print(bar->to_ms - bar->from_ms, span);
    if (is_long)
        put_alone(term, style, bar->name, 2);
    fputs("  ", term->out);
    term_cell(term, style, is_long ? STR("") : bar->name, TABLE_CELL_MAX,
              timeline->name_columns + 2);
    put_bar(term, timeline, bar);
    term_put(term, DIM, " %*s", SPAN_COLUMNS - 2, span);
    if (bar->note.size > 0 && !is_long_note(term, bar)) {
        fputs("  ", term->out);
        term_cell(term, DIM, bar->note, TABLE_CELL_MAX, 0);
    }
    fputc('\n', term->out);
    if (is_long_note(term, bar))
        put_alone(term, DIM, bar->note, timeline->name_columns + 4);
}

static void put_bars(struct cli *cli, const struct showing *showing, struct timeline *timeline)
{
    uint64_t earlier;
    char moment[MOMENT_SIZE], span[MOMENT_SIZE], text[TIME_TEXT_SIZE];

    /* Never the state before the first entry alone is left out: it has no number. */
    timeline->first = timeline->count > BARS_MAX + 1 ? timeline->count - BARS_MAX : 0;
    measure(&cli->term, timeline);
    time_print(timeline->from_ms, text);
    moment_print(str_of(text), moment);
    span_print(timeline->to_ms - timeline->from_ms, span);
    earlier = timeline->bars[timeline->first].number;
    if (earlier <= 1)
        term_put(&cli->term, DIM, "  from %s, %s in all\n", moment, span);
    else
        term_put(&cli->term, DIM,
                 "  the newest %u: from %s, %s\n  ⋮ %llu earlier: %s history %.10s\n",
                 timeline->count - timeline->first, moment, span, (unsigned long long)earlier - 1,
                 cli->command, member_str(showing->instance, "instance_id").data);
    for (uint32_t i = timeline->first; i < timeline->count; i++)
        put_row(&cli->term, timeline, &timeline->bars[i]);
}

void put_timeline(struct cli *cli, const struct showing *showing)
{
    const struct node *entries = node_find(showing->view, "entries");
    const struct node *steps = node_find(showing->view, "steps");
    uint32_t most = (entries ? entries->count : 0) + (steps ? steps->count : 0) + 1;
    struct timeline timeline = { .bars = ARENA_ARRAY(&cli->scope.arena, struct bar, most) };

    if (!timeline.bars)
        return;
    if (showing->graph)
        collect_attempts(cli, showing, &timeline);
    else
        collect_states(showing, &timeline);
    if (timeline.count == 0)
        fputs("  nothing has begun yet\n", cli->term.out);
    else
        put_bars(cli, showing, &timeline);
}
