/* live.c - an instance while it runs: each entry as it is recorded, and below them, on a
 * terminal, one line that says what it is doing now; a flow on a terminal as its steps, drawn
 * again in place. */
#include "base/limits.h"
#include "surface/cli/follow.h"
#include "surface/cli/host.h"
#include "surface/cli/trial.h"
#include "surface/cli/view.h"

#define POLL_MS     100
#define POLL_MIN_MS 5 /* at first: a short flow is over in less than a glance */
#define ENTRIES_AT_ONCE 1000

struct live_screen {
    struct cli *cli;
    struct host *host;
    struct trial *trial; /* NULL: none */
    const char *id;
    int64_t seq;         /* of the last entry drawn */
    bool has_state;      /* a state is drawn above the next entry */
    int64_t actions_seq; /* for which the legal actions were drawn; -1: never */
    char before[64];     /* when the entry before happened */
    char after[LIMIT_ACTION + 1]; /* the state behind the last entry, not drawn yet; "": drawn */
    uint32_t said;       /* steps without their tool that were named */
    uint32_t frame;
    struct node *view;        /* instance.view, as this turn has read it */
    struct watching watching; /* a flow on a terminal */
};

static struct node *instance_seen(const struct live_screen *live)
{
    return node_find(live->view, "instance");
}

static void clear_line(const struct live_screen *live)
{
    if (live->cli->term.tty && !live->cli->json)
        fputs("\r\033[K", live->cli->term.out);
}

/* Before the last words, which go to stderr. */
static void end_view(const struct live_screen *live, const struct node *instance)
{
    clear_line(live);
    if (live->cli->json)
        print_json(live->cli, instance->raw);
    fflush(live->cli->term.out);
}

/* The state before the first thing that is drawn. */
static void draw_state(struct live_screen *live, str state)
{
    if (!live->has_state)
        put_state(live->cli, DIM, "○", state);
    live->has_state = true;
}

/* The state behind the last entry is drawn when it turns out not to be the end. */
static void draw_after(struct live_screen *live)
{
    if (live->after[0])
        put_state(live->cli, DIM, "○", str_of(live->after));
    live->after[0] = '\0';
}

static void draw_entry(struct live_screen *live, const struct node *entry)
{
    str from = member_str(entry, "from_state"), to = member_str(entry, "to_state");

    draw_after(live);
    if (!live->has_state)
        put_path_head(live->cli);
    draw_state(live, from);
    put_entry(live->cli, entry, str_of(live->before));
    if (!str_eq(from, to))
        snprintf(live->after, sizeof live->after, "%.*s", STR_ARG(to));
    snprintf(live->before, sizeof live->before, "%.*s", STR_ARG(member_str(entry, "fired_at")));
}

static void draw_entries(struct live_screen *live, const struct node *entry)
{
    while (entry && member_int(entry, "sequence_number") <= live->seq)
        entry = entry->next;
    if (entry)
        clear_line(live);
    for (; entry; entry = entry->next) {
        if (!live->cli->json)
            draw_entry(live, entry);
        live->seq = member_int(entry, "sequence_number");
    }
}

/* Those of the view; and before them what has happened since the last look and is not in it. */
static pawl_status draw_news(struct live_screen *live)
{
    const struct node *first = node_first(live->view, "entries");
    int64_t begin = member_int(first, "sequence_number");
    struct node *history;

    if (begin > live->seq + 1) {
        TRY(cli_ask(live->cli, "instance.history",
                    WITH({ "instance_id", str_of(live->id) },
                         { "sequence_from", .number = live->seq + 1 },
                         { "sequence_to", .number = begin - 1 }),
                    &history));
        draw_entries(live, node_first(history, "entries"));
    }
    draw_entries(live, first);
    return PAWL_OK;
}

/* ---- The line below ---- */

static void put_waits(const struct term *term, const struct node *item)
{
    for (uint32_t count = 0; item && count < 3; item = item->next) {
        str kind = member_str(item, "kind"), name = member_str(item, "name");
        char distance[MOMENT_SIZE];

        until_print(member_str(item, "until"), distance);
        fprintf(term->out, "%s%.*s ", count++ ? ", " : "  waits for ", STR_ARG(kind));
        term_cell(term, BOLD, name, 24, 0);
        if (distance[0])
            fprintf(term->out, " %s", distance);
    }
}

static void put_spinner(struct live_screen *live, const struct node *instance)
{
    struct term *term = &live->cli->term;
    str status = status_shown(instance);

    term_put(term, LIVE, "  %s ", spinner_at(live->frame++));
    term_put(term, status_style(status), "%.*s", STR_ARG(status));
}

static void draw_line(struct live_screen *live)
{
    struct term *term = &live->cli->term;

    if (!term->tty || live->cli->json)
        return;
    clear_line(live);
    fputs("\033[?7l", term->out); /* a line that is too long must not wrap */
    put_spinner(live, instance_seen(live));
    put_waits(term, node_first(live->view, "waiting_for"));
    fputs("\033[?7h", term->out);
    fflush(term->out);
}

/* ---- A machine that nothing but people will move ---- */

static bool waits_for_people(const struct live_screen *live)
{
    if (!str_is(member_str(instance_seen(live), "kind"), "machine"))
        return false;
    for (const struct node *item = node_first(live->view, "waiting_for"); item; item = item->next)
        if (str_is(member_str(item, "kind"), "timer"))
            return false;
    return true;
}

static int leave_to_people(struct live_screen *live, const struct node *instance)
{
    end_view(live, instance);
    fprintf(stderr, "  waiting in '%.*s' for an action; see: %s show %.10s\n",
            STR_ARG(member_str(instance, "current_state")), live->cli->command, live->id);
    return EXIT_REJECTED;
}

/* A machine waits for people: say once in each state what they may do. */
static void draw_actions(struct live_screen *live, const struct node *instance)
{
    if (live->trial || live->cli->json || !str_is(member_str(instance, "kind"), "machine") ||
        live->actions_seq == live->seq)
        return;
    live->actions_seq = live->seq;
    clear_line(live);
    draw_after(live);
    draw_state(live, member_str(instance, "current_state"));
    put_actions(live->cli, instance);
    fflush(live->cli->term.out);
}

/* ---- The end ---- */

static int finish(struct live_screen *live, const struct node *instance)
{
    struct cli *cli = live->cli;
    str status = status_shown(instance);

    end_view(live, instance);
    if (!cli->json) {
        fputs("  ", cli->term.out);
        term_put(&cli->term, status_style(status), "%s ", status_mark(status));
        put_standing(cli, instance);
        put_outcome(cli, instance);
    }
    return exit_of_end(instance);
}

/* The next command needs the same options for code and tools. */
static void put_options(const struct cli *cli)
{
    static const char *const options[] = { "module", "config", "test" };

    for (size_t i = 0; i < sizeof options / sizeof options[0]; i++)
        for (const struct given *given = NULL; (given = given_next(cli, options[i], given));)
            fprintf(stderr, " --%s%s%s", options[i], given->value ? " " : "",
                    given->value ? given->value : "");
    fputc('\n', stderr);
}

static int leave(struct live_screen *live)
{
    clear_line(live);
    fflush(live->cli->term.out);
    if (!store_outlives(live->cli->store)) { /* in memory: nothing is left */
        fprintf(stderr, "  stopped after entry %lld\n", (long long)live->seq);
        return EXIT_REJECTED;
    }
    fprintf(stderr, "  left waiting after entry %lld; go on: %s resume %s", (long long)live->seq,
            live->cli->command, live->id);
    put_options(live->cli);
    return EXIT_REJECTED;
}

/* ---- Steps whose tool is not here ---- */

#define FAMILY_DEPTH_MAX 32

struct lacking {
    uint32_t steps;   /* that wait for a tool that is not here */
    uint32_t others;  /* waits of any other kind: something may still come of them */
    char tool[LIMIT_NAME + 1]; /* of the first such step */
};

static void say_lack(struct live_screen *live, struct lacking *lacking, const struct node *item)
{
    str tool = member_str(item, "tool");

    if (lacking->steps++ == 0)
        snprintf(lacking->tool, sizeof lacking->tool, "%.*s", STR_ARG(tool));
    if (lacking->steps <= live->said)
        return;
    live->said = lacking->steps;
    clear_line(live);
    fflush(live->cli->term.out);
    fprintf(stderr, "  step '%.*s' needs the tool '%.*s', which is not here\n",
            STR_ARG(member_str(item, "name")), STR_ARG(tool));
}

/* A view has the first waits: if these are not all, they are asked for. */
static pawl_status read_waits(struct live_screen *live, const char *id, struct node **out)
{
    *out = live->view;
    if (strcmp(id, live->id) != 0)
        TRY(view_read(live->cli, id, 0, out));
    return member_int(*out, "waiting_more") > 0 ? cli_ask_id(live->cli, "instance.why", id, out)
                                                : PAWL_OK;
}

/* Of an instance and its children. */
static pawl_status find_lacking(struct live_screen *live, const char *id, int depth,
                                struct lacking *lacking)
{
    struct node *waits;

    TRY(read_waits(live, id, &waits));
    for (const struct node *item = node_first(waits, "waiting_for"); item; item = item->next) {
        str child = member_str(item, "instance_id");

        if (lacks_worker(item))
            say_lack(live, lacking, item);
        else if (child.size > 0 && depth < FAMILY_DEPTH_MAX)
            TRY(find_lacking(live, child.data, depth + 1, lacking));
        else
            lacking->others++;
    }
    return PAWL_OK;
}

/* Only workers can move it, and none can reach this process: there is nothing to wait for. */
static bool is_without_tools(struct live_screen *live, int *code)
{
    struct cli *cli = live->cli;
    struct lacking lacking = { 0 };

    if (live->trial || !live->host->server)
        return false;
    if (find_lacking(live, live->id, 0, &lacking) != PAWL_OK || lacking.steps == 0 ||
        lacking.others > 0)
        return false;
    if (cli->json)
        print_json(cli, instance_seen(live)->raw);
    fprintf(stderr,
            "  give its answer with --stub %s=JSON or in pawl.yaml, or serve the store and start a "
            "worker that has it: %s serve\n",
            lacking.tool, cli->command);
    *code = leave(live);
    return true;
}

/* Paused by pawl itself: nothing happens before the cause that the reason names is corrected. */
static int leave_held(struct live_screen *live, const struct node *instance)
{
    end_view(live, instance);
    fprintf(stderr, "  paused: %.*s\n",
            STR_ARG(member_str(node_find(instance, "pause"), "reason")));
    return leave(live);
}

static pawl_status read_all(struct live_screen *live)
{
    TRY(view_read(live->cli, live->id, ENTRIES_AT_ONCE, &live->view));
    return draw_news(live);
}

static int look(struct live_screen *live, bool *over)
{
    const struct node *instance;

    *over = true;
    if (read_all(live) != PAWL_OK) {
        clear_line(live);
        return report(live->cli);
    }
    instance = instance_seen(live);
    if (has_ended(instance))
        return finish(live, instance);
    draw_actions(live, instance);
    if (!live->trial && waits_for_people(live))
        return leave_to_people(live, instance);
    if (!live->trial &&
        str_starts(member_str(node_find(instance, "pause"), "actor_ref"), STR("pawl/")))
        return leave_held(live, instance);
    draw_line(live);
    fflush(live->cli->term.out);
    *over = false;
    return EXIT_DONE;
}

/* ---- A flow on a terminal ---- */

static int look_at_tree(struct live_screen *live, bool *over)
{
    struct cli *cli = live->cli;
    struct watching *watching = &live->watching;
    const struct node *instance = NULL;
    char span[MOMENT_SIZE];
    pawl_status status;

    term_measure(&cli->term);
    frame_begin(watching);
    status = view_draw(cli, live->id, frame_rows(watching), live->frame, &live->view);
    if (status == PAWL_OK)
        instance = instance_seen(live);
    *over = status != PAWL_OK || has_ended(instance);
    if (!*over) {
        live->seq = member_int(instance, "next_sequence_number") - 1;
        put_spinner(live, instance);
        distance_print(member_str(instance, "instantiated_at"), span);
        term_put(&cli->term, DIM, "  begun %s\n", span);
    }
    frame_end(watching);
    if (status != PAWL_OK)
        return report(cli);
    return *over ? exit_of_end(instance) : EXIT_DONE;
}

/* ---- A trial ---- */

/* Nothing falls due. It may have ended after the last look: then the next look shows that. */
static int leave_stuck(struct live_screen *live, int64_t *wait_ms)
{
    if (view_read(live->cli, live->id, 0, &live->view) != PAWL_OK)
        return report(live->cli);
    if (has_ended(instance_seen(live))) {
        *wait_ms = 0;
        return EXIT_DONE;
    }
    end_view(live, instance_seen(live));
    return stuck_report(live->cli, live->id) == PAWL_OK ? EXIT_REJECTED : report(live->cli);
}

/* ---- The loop ---- */

/* Look, and set how long to wait before the next look; less than 0: no more. The exit status. */
static int take_turn(struct live_screen *live, bool is_tree, int64_t *wait_ms)
{
    bool over = false;
    int code = is_tree ? look_at_tree(live, &over) : look(live, &over);

    if (over || is_without_tools(live, &code)) {
        *wait_ms = -1;
    } else if (live->trial && trial_go_on(live->trial, live->id, wait_ms) != PAWL_OK) {
        *wait_ms = -1;
        return report(live->cli);
    } else if (live->trial && *wait_ms == TRIAL_STUCK) {
        return leave_stuck(live, wait_ms);
    }
    return code;
}

static bool is_flow(struct live_screen *live)
{
    return view_read(live->cli, live->id, 0, &live->view) == PAWL_OK &&
           str_is(member_str(instance_seen(live), "kind"), "flow");
}

/* What is read in a turn goes with it, not with the verb: there may be millions of entries. */
int live_follow(struct cli *cli, struct host *host, const char *id, int64_t after_seq,
                struct trial *trial)
{
    struct live_screen live = {
        .cli = cli, .host = host, .trial = trial, .id = id, .seq = after_seq, .actions_seq = -1
    };
    int64_t wait_ms = POLL_MIN_MS;
    bool is_tree = cli->term.tty && !cli->json && is_flow(&live);
    int code;

    live.watching.term = &cli->term;
    for (;;) {
        struct scope kept = scope_take(cli);

        code = take_turn(&live, is_tree, &wait_ms);
        scope_give(cli, kept);
        if (wait_ms < 0)
            break;
        if (host_wait(host, wait_ms)) {
            code = leave(&live);
            break;
        }
        wait_ms = wait_ms * 2 < POLL_MS ? wait_ms * 2 : POLL_MS;
    }
    if (trial)
        script_report(trial);
    return code;
}
