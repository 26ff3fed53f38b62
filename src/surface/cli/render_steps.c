/* render_steps.c - the steps of a flow in the shape of its definition: a tree as a tree, a graph
 * from top to bottom; beside each what came of it. */
#include "base/limits.h"
#include "base/time.h"
#include "surface/cli/view.h"

#define LINES_MAX        200 /* beyond this: steps under way, failed ones, first and last */
#define EDGE_LINES       3
#define NAME_MAX_COLUMNS 40

struct step_sum { /* all attempts of one step; in a loop, those of its last round */
    const struct node *last;
    uint32_t rounds;
    str started, ended;
};

static struct step_sum sum_step(const struct node *step, str name)
{
    struct step_sum sum = { .started = STR(""), .ended = STR("") };

    for (; step; step = step->next) {
        if (!str_eq(member_str(step, "name"), name))
            continue;
        sum.last = step;
        if (member_int(step, "attempt") <= 1) {
            sum.rounds++;
            sum.started = STR("");
        }
        if (sum.started.size == 0)
            sum.started = member_str(step, "started_at");
        sum.ended = member_str(step, "completed_at");
    }
    return sum;
}

uint64_t earlier_attempts(const struct showing *showing)
{
    return (uint64_t)member_int(showing->view, "steps_before");
}

/* "1.2 s" for what has ended, "1.2 s so far" for what has not. */
static void print_took(const struct step_sum *sum, char out[MOMENT_SIZE])
{
    int64_t from, to;
    bool has_ended = time_parse(sum->ended, &to);
    char span[MOMENT_SIZE];

    out[0] = '\0';
    if (!time_parse(sum->started, &from))
        return;
    to = has_ended ? to : now_ms();
    span_print(to > from ? to - from : 0, span);
    snprintf(out, MOMENT_SIZE, "%.25s%s", span, has_ended ? "" : " so far");
}

/* Of a step whose attempt has failed, and whose next one is not due yet: the timer that says so. */
static const struct node *retry_of(const struct showing *showing, const struct step_sum *sum)
{
    str name = member_str(sum->last, "name");

    if (!sum->last || !str_is(member_str(sum->last, "status"), "pending"))
        return NULL;
    for (const struct node *item = node_first(showing->view, "waiting_for"); item;
         item = item->next)
        if (str_eq(member_str(item, "name"), name) && node_find(item, "failed") &&
            member_str(item, "until").size > 0)
            return item;
    return NULL;
}

static int put_retry(struct cli *cli, const struct node *retry)
{
    const struct node *failed = node_find(retry, "failed");
    char text[2 * MOMENT_SIZE + 64], distance[MOMENT_SIZE], of[24] = "";

    until_print(member_str(retry, "until"), distance);
    if (member_int(failed, "of") > 0)
        snprintf(of, sizeof of, " of %lld", (long long)member_int(failed, "of"));
    snprintf(text, sizeof text, "  attempt %lld%s failed, next try %s",
             (long long)member_int(failed, "attempt"), of, distance);
    term_put(&cli->term, WARN, "%s", text);
    return term_columns(str_of(text));
}

static void put_outcome_of(struct cli *cli, const struct showing *showing,
                           const struct step_sum *sum, int columns)
{
    const struct node *failed = node_find(retry_of(showing, sum), "failed");
    str error = member_json(failed ? failed : sum->last, "error");
    str result = member_json(sum->last, "result");
    str shown = error.size > 0 ? error : result;
    int room = cli->term.tty ? cli->term.width - columns - 2 : TABLE_CELL_MAX;

    if (shown.size == 0 || room < 8)
        return;
    fputs("  ", cli->term.out);
    term_cell(&cli->term, error.size > 0 ? BAD : DIM, shown, room, 0);
}

/* Only what is more than one; the columns it takes. `more`: there may be more than were counted. */
static int put_count(struct cli *cli, const char *word, uint32_t count, bool more)
{
    char text[32];

    if (count <= 1)
        return 0;
    snprintf(text, sizeof text, "%s%u%s", word, count, more ? "+" : "");
    term_put(&cli->term, WARN, "  %s", text);
    return 2 + term_columns(str_of(text));
}

static int put_facts(struct cli *cli, const struct showing *showing, const struct node *node,
                     const struct step_sum *sum)
{
    const struct node *retry = retry_of(showing, sum);
    char took[MOMENT_SIZE];
    int columns = 0;
    str note = member_str(node, "note");

    if (note.size > 0) {
        fputs("  ", cli->term.out);
        term_cell(&cli->term, DIM, note, NAME_MAX_COLUMNS, 0);
        columns += 2 + term_columns(note);
    }
    if (!sum->last)
        return columns;
    columns += put_count(cli, "×", sum->rounds, earlier_attempts(showing) > 0);
    if (retry)
        return columns + put_retry(cli, retry);
    columns += put_count(cli, "attempt ", (uint32_t)member_int(sum->last, "attempt"), false);
    print_took(sum, took);
    if (took[0])
        term_put(&cli->term, DIM, "  %s", took);
    return columns + 2 + (int)strlen(took);
}

/* Of a redriven instance: the one before it that has the step's result; empty: none. */
static str reused_from(const struct showing *showing, str name)
{
    for (const struct node *item = node_first(showing->view, "reused"); item; item = item->next)
        if (str_eq(member_str(item, "name"), name))
            return member_str(item, "instance_id");
    return STR("");
}

static void put_step(struct cli *cli, const struct showing *showing, const struct node *node,
                     int columns)
{
    str name = member_str(node, "name");
    struct step_sum sum = sum_step(node_first(showing->view, "steps"), name);
    str from = sum.last ? STR("") : reused_from(showing, name), seen = member_str(node, "mark");
    str status = sum.last ? member_str(sum.last, "status") : from.size > 0 ? STR("done") : STR("");
    const char *mark;

    /* The picture knows what came of a step whose attempts are not among those that were read. */
    if (status.size == 0 && (str_is(seen, "done") || str_is(seen, "failed")))
        status = seen;
    mark = status.size > 0 ? status_mark(status) : "·";
    if (showing->spinner && str_is(status, "running"))
        mark = showing->spinner;
    term_put(&cli->term, status.size > 0 ? status_style(status) : DIM, "%s ", mark);
    term_cell(&cli->term, sum.last ? PLAIN : DIM, name,
              cli->term.tty ? NAME_MAX_COLUMNS : TABLE_CELL_MAX, 0);
    columns += 2 + term_columns(name);
    columns += put_facts(cli, showing, node, &sum);
    if (sum.last)
        put_outcome_of(cli, showing, &sum, columns);
    if (from.size > 0)
        term_put(&cli->term, DIM, "  in %.10s", from.data);
}

/* Does another line follow at this depth before one that is less deep? */
static bool has_sibling(const struct node *line, int64_t depth)
{
    for (line = line->next; line; line = line->next)
        if (member_int(line, "depth") <= depth)
            return member_int(line, "depth") == depth;
    return false;
}

static int put_branches(struct cli *cli, const struct node *line)
{
    int64_t depth = member_int(line, "depth");

    fputs("  ", cli->term.out);
    for (int64_t i = 1; i < depth; i++)
        term_put(&cli->term, DIM, has_sibling(line, i) ? "│  " : "   ");
    if (depth > 0)
        term_put(&cli->term, DIM, has_sibling(line, depth) ? "├─ " : "└─ ");
    return 2 + (int)depth * 3;
}

struct room { /* for lines: of more than fit, those that matter, and where it begins and ends */
    uint32_t max, count, at, shown;
};

static bool is_worth_a_line(struct room *room, const struct node *node)
{
    str mark = member_str(node, "mark");
    bool is_edge = room->at < EDGE_LINES || room->at + EDGE_LINES >= room->count;
    bool matters = str_is(mark, "present") || str_is(mark, "failed");

    room->at++;
    if (room->count > room->max && !is_edge && (!matters || room->shown >= room->max))
        return false;
    room->shown++;
    return true;
}

static void put_step_line(struct cli *cli, const struct showing *showing, const struct node *line,
                          const struct node *node)
{
    int columns = put_branches(cli, line);

    if (node)
        put_step(cli, showing, node, columns);
    else
        term_cell(&cli->term, DIM, member_str(line, "word"), LIMIT_ACTION, 0);
    fputc('\n', cli->term.out);
}

void put_steps(struct cli *cli, const struct showing *showing)
{
    const struct node *lines = node_find(showing->graph, "lines");
    const struct node *nodes = node_find(showing->graph, "nodes");
    const char *id = member_str(showing->instance, "instance_id").data;
    struct room room = { .max = showing->lines_max ? showing->lines_max : LINES_MAX,
                         .count = lines ? lines->count : 0 };
    int64_t count = member_int(showing->instance, "next_sequence_number") - 1;
    unsigned long long earlier = earlier_attempts(showing);

    for (const struct node *line = lines ? lines->first : NULL; line; line = line->next) {
        const struct node *at = node_find(line, "node"), *node = NULL;

        if (at && at->kind == NODE_NUMBER)
            node = node_at(nodes, (uint32_t)member_int(line, "node"));
        if (is_worth_a_line(&room, node))
            put_step_line(cli, showing, line, node);
    }
    if (room.shown < room.at)
        term_put(&cli->term, DIM, "  ⋮ %u lines more: %s graph --instance %.10s\n",
                 room.at - room.shown, cli->command, id);
    if (earlier > 0) /* the counts are not of all attempts */
        term_put(&cli->term, DIM,
                 "  ⋮ of the newest %u attempts; %llu earlier: %s graph --instance %.10s\n",
                 node_find(showing->view, "steps")->count, earlier, cli->command, id);
    if (showing->lines_max == 0) /* a frame has no room for hints */
        term_put(&cli->term, DIM, "\n  %s: %s history %.10s\n",
                 counted(&cli->scope.arena, count, "entry", "entries"), cli->command, id);
}
