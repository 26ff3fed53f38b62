/* render_inbox.c - workers: who does the steps; gates: what waits for an approval. */
#include "base/limits.h"
#include "surface/cli/view.h"

static str cell(struct cli *cli, struct buf *text)
{
    return buf_take(text, &cli->scope.arena);
}

static str distance_cell(struct cli *cli, str at)
{
    char *text = arena_alloc(&cli->scope.arena, MOMENT_SIZE);

    if (!text || at.size == 0)
        return STR("");
    distance_print(at, text);
    return str_of(text);
}

/* ---- Workers ---- */

enum { WORKER_NAME, WORKER_HELD, WORKER_SEEN, WORKER_TOOLS, WORKER_COLUMNS };
static const char *const worker_heads[WORKER_COLUMNS] = { "WORKER", "HOLDS", "SEEN", "TOOLS" };

static void fill_worker(struct cli *cli, const struct text_table *table, const struct node *row,
                        str *cells, enum style *styles)
{
    const struct node *first = node_first(row, "tools");
    struct buf text;

    (void)table;
    cells[WORKER_NAME] = member_str(row, "worker");
    buf_init(&text, &heap_libc, LIMIT_TEXT);
    buf_fmt(&text, "%lld", (long long)member_int(row, "steps_held"));
    cells[WORKER_HELD] = cell(cli, &text);
    cells[WORKER_SEEN] = member_true(row, "waiting")
                             ? STR("waits now")
                             : distance_cell(cli, member_str(row, "last_seen_at"));
    buf_init(&text, &heap_libc, LIMIT_TEXT);
    for (const struct node *tool = first; tool; tool = tool->next)
        buf_fmt(&text, "%s%.*s", tool == first ? "" : ", ", STR_ARG(member_str(tool, "tool")));
    cells[WORKER_TOOLS] = cell(cli, &text);
    styles[WORKER_SEEN] = DIM;
}

void render_workers(struct cli *cli, const struct node *answer)
{
    struct text_table table = { .column_count = WORKER_COLUMNS,
                                .heads = worker_heads,
                                .whole = 1u << WORKER_NAME | 1u << WORKER_HELD | 1u << WORKER_SEEN,
                                .below = 1u << WORKER_TOOLS };
    long long unknown = member_int(answer, "steps_held_by_unknown");
    char since[MOMENT_SIZE];

    moment_print(member_str(answer, "since"), since);
    if (!member_true(answer, "owner"))
        fprintf(cli->term.out, "no process serves this store, so no worker can ask: %s serve\n",
                cli->command);
    else if (!rows_print(cli, node_find(answer, "workers"), &table, fill_worker,
                         &(struct table_pages){ 0 }))
        fprintf(cli->term.out, "no worker has asked this server for steps since %s\n", since);
    else
        term_put(&cli->term, DIM, "those that asked this server since %s\n", since);
    if (unknown > 0)
        term_put(&cli->term, DIM, "%lld more steps are held by workers that claimed them before\n",
                 unknown);
}

/* ---- Nodes ---- */

enum { NODE_NAME, NODE_STATE, NODE_SHARDS, NODE_BEAT, NODE_ADDRESS, NODE_COLUMNS };
static const char *const node_heads[NODE_COLUMNS] = { "NODE", "STATE", "SHARDS", "BEAT",
                                                      "ADDRESS" };

static void fill_node(struct cli *cli, const struct text_table *table, const struct node *row,
                      str *cells, enum style *styles)
{
    struct buf text;

    (void)table;
    cells[NODE_NAME] = member_str(row, "node");
    cells[NODE_STATE] = member_str(row, "state");
    buf_init(&text, &heap_libc, LIMIT_TEXT);
    buf_fmt(&text, "%lld", (long long)member_int(row, "shards"));
    cells[NODE_SHARDS] = cell(cli, &text);
    buf_init(&text, &heap_libc, LIMIT_TEXT);
    buf_fmt(&text, "%lld ms ago", (long long)member_int(row, "beat_age_ms"));
    cells[NODE_BEAT] = cell(cli, &text);
    cells[NODE_ADDRESS] = member_str(row, "address");
    styles[NODE_BEAT] = DIM;
}

void render_nodes(struct cli *cli, const struct node *answer)
{
    struct text_table table = { .column_count = NODE_COLUMNS,
                                .heads = node_heads,
                                .whole = 1u << NODE_NAME | 1u << NODE_STATE | 1u << NODE_SHARDS,
                                .below = 1u << NODE_ADDRESS };
    const struct node *shards = node_find(answer, "shards");
    long long free_count = 0, skew_ms = member_int(answer, "clock_difference_ms");

    if (!rows_print(cli, node_find(answer, "nodes"), &table, fill_node,
                    &(struct table_pages){ 0 })) {
        fprintf(cli->term.out,
                "one process has this store to itself; several nodes need a store in "
                "PostgreSQL (docs/howto/scale.md)\n");
        return;
    }
    for (const struct node *shard = shards ? shards->first : NULL; shard; shard = shard->next)
        free_count += !member_str(shard, "node").size;
    if (free_count > 0)
        fprintf(cli->term.out, "%lld shards have no owner now\n", free_count);
    if (skew_ms >= 250 || skew_ms <= -250)
        fprintf(cli->term.out,
                "the clock of the node that answered differs from the database's by "
                "%lld ms\n",
                skew_ms);
}

/* ---- Gates ---- */

enum {
    GATE_STEP,
    GATE_DEFINITION,
    GATE_NAME,
    GATE_WHO,
    GATE_SINCE,
    GATE_UNTIL,
    GATE_SUBJECT,
    GATE_ASKED, /* where a gate of the page asks something */
    GATE_COLUMNS
};
static const char *const gate_heads[GATE_COLUMNS] = { "STEP_ID",   "DEFINITION", "STEP",
                                                      "APPROVALS", "SINCE",      "UNTIL",
                                                      "SUBJECT",   "ASKED" };

/* "1 of 2 (ann): ann, bob": so many have approved, those, of the ones who may */
static str approvals_cell(struct cli *cli, const struct node *row)
{
    const struct node *approval = node_find(row, "approval"), *by = node_find(approval, "by");
    const struct node *approved = node_find(row, "approved_by");
    struct buf text;

    buf_init(&text, &heap_libc, LIMIT_TEXT);
    buf_fmt(&text, "%u of %lld", approved ? approved->count : 0,
            (long long)member_int(approval, "count"));
    for (const struct node *name = approved ? approved->first : NULL; name; name = name->next)
        buf_fmt(&text, "%s%.*s%s", name == approved->first ? " (" : ", ", STR_ARG(name->text),
                name->next ? "" : ")");
    if (by && by->kind == NODE_ARRAY)
        for (const struct node *name = by->first; name; name = name->next)
            buf_fmt(&text, "%s%.*s", name == by->first ? ": " : ", ", STR_ARG(name->text));
    else
        buf_str(&text, STR(": anyone"));
    return cell(cli, &text);
}

/* The id as `pawl approve` takes it: the number of the instance and of the attempt. */
static str step_cell(struct cli *cli, const struct node *row)
{
    str step = member_str(row, "step_id");
    const char *dot = strrchr(step.data, '.');
    struct buf text;

    buf_init(&text, &heap_libc, LIMIT_TEXT);
    buf_fmt(&text, "%llu%s", (unsigned long long)id_number(step), dot ? dot : "");
    return cell(cli, &text);
}

/* Its message, or all of what it asks. */
static str asked_cell(const struct node *row)
{
    const struct node *ask = node_find(row, "ask");
    str message = ask && ask->kind == NODE_STRING ? ask->text : member_str(ask, "message");

    return !ask ? STR("") : message.size > 0 ? message : ask->raw;
}

static bool asks(const struct node *gates)
{
    for (const struct node *row = gates ? gates->first : NULL; row; row = row->next)
        if (node_find(row, "ask"))
            return true;
    return false;
}

static void fill_gate(struct cli *cli, const struct text_table *table, const struct node *row,
                      str *cells, enum style *styles)
{
    char *until = arena_alloc(&cli->scope.arena, MOMENT_SIZE);
    char *since = arena_alloc(&cli->scope.arena, MOMENT_SIZE);

    if (until)
        until_print(member_str(row, "until"), until);
    if (since)
        distance_print(member_str(row, "since"), since);
    cells[GATE_STEP] = step_cell(cli, row);
    cells[GATE_DEFINITION] = member_str(row, "definition");
    cells[GATE_NAME] = member_str(row, "step");
    cells[GATE_WHO] = approvals_cell(cli, row);
    cells[GATE_SINCE] = since ? str_of(since) : STR("");
    cells[GATE_UNTIL] = until ? str_of(until) : STR("");
    cells[GATE_SUBJECT] = member_str(row, "subject_ref");
    if (table->column_count > GATE_ASKED)
        cells[GATE_ASKED] = asked_cell(row);
    styles[GATE_SINCE] = styles[GATE_UNTIL] = DIM;
}

void render_gates(struct cli *cli, const struct node *answer)
{
    struct text_table table = { .column_count =
                                    asks(node_find(answer, "gates")) ? GATE_COLUMNS : GATE_ASKED,
                                .heads = gate_heads,
                                .whole = 1u << GATE_STEP | 1u << GATE_SINCE | 1u << GATE_UNTIL,
                                .below = 1u << GATE_WHO | 1u << GATE_SUBJECT | 1u << GATE_ASKED };
    const struct node *first = node_first(answer, "gates");
    str next = member_str(answer, "next");

    if (!rows_print(cli, node_find(answer, "gates"), &table, fill_gate, &(struct table_pages){ 0 }))
        fputs("no gate waits\n", cli->term.out);
    else
        term_put(&cli->term, DIM, "%s approve %.*s --actor WHO\n", cli->command,
                 STR_ARG(step_cell(cli, first)));
    if (next.size > 0)
        put_next_page(cli, next);
}
