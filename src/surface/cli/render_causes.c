/* render_causes.c - why what an instance waits for has not come, in sentences; and what to do
 * about one that has failed. */
#include "base/limits.h"
#include "surface/cli/view.h"

#define INDENT        6
#define MARGIN        "      "
#define ERROR_COLUMNS 400 /* of an error; the rest is in `history` */

static void put_sentence(struct cli *cli, enum style style, struct buf *text)
{
    str sentence = buf_take(text, &cli->scope.arena);

    fputs(MARGIN, cli->term.out);
    term_wrap(&cli->term, style, sentence, INDENT, MARGIN);
    fputc('\n', cli->term.out);
}

/* " 2026-05-01 09:30:00Z (3 min ago)" */
static void print_moment(struct buf *out, str at)
{
    char moment[MOMENT_SIZE], distance[MOMENT_SIZE];

    moment_print(at, moment);
    distance_print(at, distance);
    buf_fmt(out, " %s (%s)", moment, distance);
}

static void print_until(struct buf *out, str at)
{
    char moment[MOMENT_SIZE], distance[MOMENT_SIZE];

    moment_print(at, moment);
    until_print(at, distance);
    buf_fmt(out, " %s (%s)", moment, distance);
}

static void print_names(struct buf *out, const struct node *list, const char *last_word)
{
    for (const struct node *name = list ? list->first : NULL; name; name = name->next)
        buf_fmt(out, "%s%.*s",
                name == list->first ? ""
                : name->next        ? ", "
                                    : last_word,
                STR_ARG(name->text));
}

/* ---- Steps ---- */

static void put_failed(struct cli *cli, const struct node *item, struct buf *text)
{
    const struct node *failed = node_find(item, "failed");
    str error = member_json(failed, "error"), until = member_str(item, "until");

    if (!failed)
        return;
    buf_fmt(text, "attempt %lld", (long long)member_int(failed, "attempt"));
    if (member_int(failed, "of") > 0)
        buf_fmt(text, " of %lld", (long long)member_int(failed, "of"));
    buf_str(text, STR(" failed at"));
    print_moment(text, member_str(failed, "at"));
    if (error.size > 0)
        buf_fmt(text, " with %.*s%s", error.size < ERROR_COLUMNS ? (int)error.size : ERROR_COLUMNS,
                error.data, error.size > ERROR_COLUMNS ? "…" : "");
    if (until.size > 0) {
        buf_str(text, STR("; next attempt at"));
        print_until(text, until);
    }
    put_sentence(cli, WARN, text);
}

static void put_held(struct cli *cli, const struct node *item, struct buf *text)
{
    const struct node *held = node_find(item, "held");
    str worker = member_str(held, "worker"), until = member_str(held, "lease_until");
    str progress = member_json(held, "progress");

    if (!held)
        return;
    if (worker.size > 0)
        buf_fmt(text, "held by the worker %.*s since", STR_ARG(worker));
    else
        buf_str(text, STR("runs in the process that owns the store since"));
    print_moment(text, member_str(held, "since"));
    if (worker.size > 0 && until.size > 0) {
        buf_str(text, STR("; its lease ends at"));
        print_until(text, until);
    }
    put_sentence(cli, DIM, text);
    if (progress.size > 0) {
        buf_fmt(text, "progress %.*s%s at",
                progress.size < ERROR_COLUMNS ? (int)progress.size : ERROR_COLUMNS, progress.data,
                progress.size > ERROR_COLUMNS ? "…" : "");
        print_moment(text, member_str(held, "progress_at"));
        put_sentence(cli, LIVE, text);
    }
}

/* "waits for a place: concurrency of flow, step work, key "ann": 1 at once" */
static void put_limit(struct cli *cli, const struct node *item, struct buf *text)
{
    const struct node *limit = node_find(item, "limit");
    str definition = member_str(limit, "definition"), step = member_str(limit, "step");
    str tool = member_str(limit, "tool"), key = member_json(limit, "key");
    int64_t per_ms = member_int(limit, "per_ms");

    if (!limit)
        return;
    buf_fmt(text, "waits for its limit: %.*s of %.*s%.*s", STR_ARG(member_str(limit, "limit")),
            STR_ARG(definition), STR_ARG(tool));
    if (step.size > 0)
        buf_fmt(text, ", step %.*s", STR_ARG(step));
    if (key.size > 0)
        buf_fmt(text, ", key %.*s", key.size < ERROR_COLUMNS ? (int)key.size : ERROR_COLUMNS,
                key.data);
    buf_fmt(text, ": %lld %s", (long long)member_int(limit, "max"), per_ms > 0 ? "in " : "at once");
    if (per_ms > 0)
        buf_fmt(text, "%lld ms", (long long)per_ms);
    put_sentence(cli, DIM, text);
}

static void put_asked(struct cli *cli, const struct node *item, struct buf *text)
{
    const struct node *workers = node_find(item, "workers"), *tools = node_find(workers, "tools");
    str asked = member_str(workers, "asked_at"), by = member_str(workers, "asked_by");

    if (!workers)
        return;
    if (asked.size > 0) {
        buf_fmt(text, "%s%.*s asked for this tool last at",
                by.size > 0 ? "the worker " : "a worker", STR_ARG(by));
        print_moment(text, asked);
        put_sentence(cli, DIM, text);
        return;
    }
    buf_fmt(text, "no worker has asked for the tool %.*s since", STR_ARG(member_str(item, "tool")));
    print_moment(text, member_str(workers, "since"));
    if (tools && tools->first) {
        buf_str(text, STR("; workers here serve "));
        print_names(text, tools, " and ");
    } else if (tools) {
        buf_str(text, STR("; no worker has asked for any tool"));
    }
    put_sentence(cli, WARN, text);
}

/* ---- Gates, signals, pauses ---- */

static void put_approved(struct cli *cli, const struct node *item, struct buf *text)
{
    const struct node *approval = node_find(item, "approval"), *by = node_find(approval, "by");
    const struct node *approved = node_find(item, "approved_by");
    str until = member_str(item, "until"), since = member_str(item, "since");

    if (!approval || !approved)
        return;
    buf_str(text, STR("waits for "));
    if (by && by->kind == NODE_ARRAY)
        print_names(text, by, " or ");
    else
        buf_str(text, STR("anyone"));
    buf_fmt(text, "; %u of %lld approved", approved->count,
            (long long)member_int(approval, "count"));
    if (approved->first) {
        buf_str(text, STR(": "));
        print_names(text, approved, " and ");
    }
    if (until.size > 0) {
        buf_str(text, STR("; until"));
        print_until(text, until);
    }
    if (since.size > 0) {
        buf_str(text, STR("; since"));
        print_moment(text, since);
    }
    put_sentence(cli, DIM, text);
}

static void put_refused(struct cli *cli, const struct node *item, struct buf *text)
{
    str words = member_str(item, "refused"), at = member_str(item, "refused_at");

    if (words.size == 0)
        return;
    if (at.size > 0) {
        buf_str(text, STR("the last one was refused at"));
        print_moment(text, at);
        buf_fmt(text, ": %.*s", STR_ARG(words));
    } else {
        buf_fmt(text, "refused: %.*s", STR_ARG(words));
    }
    put_sentence(cli, WARN, text);
}

static void put_pause(struct cli *cli, const char *id, const struct node *item, struct buf *text)
{
    str who = member_str(item, "actor_ref"), reason = member_str(item, "reason");

    if (!str_is(member_str(item, "kind"), "pause"))
        return;
    buf_str(text, STR("paused"));
    if (who.size > 0)
        buf_fmt(text, " by %.*s", STR_ARG(who));
    buf_str(text, STR(" at"));
    print_moment(text, member_str(item, "paused_at"));
    if (reason.size > 0)
        buf_fmt(text, " because: %.*s", STR_ARG(reason));
    buf_fmt(text, "; go on: %s resume %s", cli->command, id);
    put_sentence(cli, WARN, text);
}

static void put_awaited(struct cli *cli, const struct node *item, struct buf *text)
{
    str child = member_str(item, "instance_id");

    if (!str_is(member_str(item, "kind"), "child") || child.size == 0)
        return;
    buf_fmt(text, "the child %.*s has not ended; what it waits for: %s why %.*s", STR_ARG(child),
            cli->command, STR_ARG(child));
    put_sentence(cli, DIM, text);
}

typedef void put_fn(struct cli *cli, const struct node *item, struct buf *text);

void put_causes(struct cli *cli, const char *id, const struct node *item)
{
    static put_fn *const all[] = { put_failed,   put_held,    put_limit,  put_asked,
                                   put_approved, put_refused, put_awaited };
    struct buf text;

    buf_init(&text, &heap_libc, CLI_ANSWER_MAX);
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        all[i](cli, item, &text);
    put_pause(cli, id, item, &text);
    buf_fini(&text);
}

/* ---- The end ---- */

void put_redrive(struct cli *cli, const char *id, const struct node *instance)
{
    str status = member_str(instance, "status"), kind = member_str(instance, "kind");
    bool is_short = str_is(status, "failed") || str_is(status, "cancelled");

    if (is_short && !str_is(kind, "machine") && member_str(instance, "retried_as").size == 0)
        term_put(&cli->term, DIM, "  run it again from where it ended: %s redrive %s\n",
                 cli->command, id);
}
