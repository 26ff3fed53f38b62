/* verb_watch.c - watch: all instances, or one, as it happens. On a terminal a view that is drawn
 * in place, else a line for each entry. */
#include "base/limits.h"
#include "surface/cli/follow.h"
#include "surface/cli/view.h"
#include <stdlib.h>

#define TICK_MS     1000 /* times that pass are drawn again at least this often */
#define RECENT      6    /* entries below the list */
#define RECENT_SIZE 2048
#define NARROW      100 /* columns: when an entry was recorded is left out */
#define WORDS       5   /* one of an entry takes at most this part of a line */
#define CALM_MS     80 /* between two frames */

struct watch {
    struct cli *cli;
    struct watching watching;
    struct follow follow;
    const char *id; /* NULL: all */
    char recent[RECENT][RECENT_SIZE];
    uint32_t recent_count, frame;
    bool is_view; /* drawn in place; else a line for each entry */
    bool has_ended;
    int64_t printed_seq, end_seq; /* of the last entry printed; of the one that ended it */
    int code;
};

/* ---- An entry as a line ---- */

/* Its columns. */
static int put_when(struct cli *cli, const struct node *entry, bool with_id)
{
    struct term *term = &cli->term;
    bool is_narrow = term->tty && term->width < NARROW;
    char fired[MOMENT_SIZE], recorded[MOMENT_SIZE], text[3 * MOMENT_SIZE], number[SHORT_ID_SIZE];
    str id = short_id(term, member_str(entry, "instance_id"), number);

    print_times(entry, fired, recorded);
    snprintf(text, sizeof text, "%s  %s%s%.*s%s#%lld  ", fired, is_narrow ? "" : recorded,
             is_narrow ? "" : "  ", with_id ? (int)id.size : 0, id.data, with_id ? "  " : "",
             (long long)member_int(entry, "sequence_number"));
    term_put(term, DIM, "%s", text);
    return term_columns(str_of(text));
}

/* A word of an entry and the text between it and the next: its columns. */
static int put_word(const struct term *term, enum style style, str word, const char *behind)
{
    int most = term->tty ? term->width / WORDS : LIMIT_ACTION;

    term_cell(term, style, word, most, 0);
    fputs(behind, term->out);
    return (term_columns(word) < most ? term_columns(word) : most) + term_columns(str_of(behind));
}

/* What does not fit a terminal is cut from the note, with an ellipsis. */
static void put_line(struct cli *cli, const struct node *entry, bool with_id)
{
    struct term *term = &cli->term;
    str from = member_str(entry, "from_state"), to = member_str(entry, "to_state");
    str actor = member_str(entry, "actor_ref"), note = entry_note(cli, entry);
    str action = member_str(entry, "action");
    int used = put_when(cli, entry, with_id), room;

    if (!str_eq(from, to))
        used += put_word(term, PLAIN, from, " → ");
    used += put_word(term, PLAIN, to, "  ");
    used += put_word(term, action_style(action), action, actor.size > 0 ? "  by " : "");
    if (actor.size > 0)
        used += put_word(term, PLAIN, actor, "");
    room = term->tty ? term->width - used - 2 : TABLE_CELL_MAX;
    if (note.size > 0 && room > 1) {
        fputs("  ", term->out);
        term_cell(term, DIM, note, room, 0);
    }
    fputc('\n', term->out);
}

/* While the present server is waited for (another may have been found), keys and signals count. */
static void await_openly(struct watch *watch)
{
    struct client *client = watch->cli->target.remote;

    watch->watching.server = watch->cli->target.address;
    if (client) {
        client->wait = watching_await;
        client->wait_context = &watch->watching;
    }
}

static void print_line(struct watch *watch, str entry)
{
    struct cli *cli = watch->cli;
    struct scope kept = scope_take(cli);
    struct node *node;

    if (node_read_json(&cli->scope, entry, &node) == PAWL_OK) {
        if (cli->json)
            print_json(cli, entry);
        else
            put_line(cli, node, !watch->id);
        watch->printed_seq = member_int(node, "sequence_number");
    }
    scope_give(cli, kept);
}

/* The newest last; drawn below the list. */
static void remember(struct watch *watch, str entry)
{
    FILE *out = watch->cli->term.out;
    char *text = NULL;
    size_t size = 0;

    if (watch->recent_count == RECENT) {
        memmove(watch->recent[0], watch->recent[1], sizeof watch->recent - RECENT_SIZE);
        watch->recent_count--;
    }
    watch->cli->term.out = open_memstream(&text, &size);
    if (watch->cli->term.out) {
        print_line(watch, entry);
        fclose(watch->cli->term.out);
        snprintf(watch->recent[watch->recent_count++], RECENT_SIZE, "%.*s", RECENT_SIZE - 1, text);
    }
    watch->cli->term.out = out;
    free(text);
}

static void take_entry(void *context, str entry)
{
    struct watch *watch = context;

    if (!watch->is_view)
        print_line(watch, entry);
    else if (!watch->id)
        remember(watch, entry);
}

/* ---- Frames ---- */

static pawl_status draw_list(struct watch *watch)
{
    struct cli *cli = watch->cli;
    int rows = frame_rows(&watch->watching) - RECENT - 4;
    struct node *answer;

    TRY(cli_ask(cli, "instance.list", WITH({ "limit", .number = rows > 1 ? rows : 1 }), &answer));
    term_put(&cli->term, BOLD, "%s", store_shown(cli));
    term_put(&cli->term, DIM, "  newest first; q ends\n");
    put_list(cli, answer);
    if (watch->recent_count > 0)
        fputc('\n', cli->term.out);
    for (uint32_t i = 0; i < watch->recent_count; i++)
        fputs(watch->recent[i], cli->term.out);
    return PAWL_OK;
}

static void note_end(struct watch *watch, const struct node *view)
{
    const struct node *instance = node_find(view, "instance");

    watch->has_ended = has_ended(instance);
    watch->end_seq = member_int(instance, "next_sequence_number") - 1;
    watch->code = exit_of_end(instance);
}

static pawl_status draw(struct watch *watch)
{
    struct cli *cli = watch->cli;
    struct scope kept = scope_take(cli);
    struct node *view;
    pawl_status status;

    await_openly(watch);
    frame_begin(&watch->watching);
    status = watch->id
                 ? view_draw(cli, watch->id, frame_rows(&watch->watching), watch->frame++, &view)
                 : draw_list(watch);
    if (status == PAWL_OK && watch->id)
        note_end(watch, view);
    frame_end(&watch->watching);
    scope_give(cli, kept);
    return status;
}

/* Off a terminal nothing is drawn; but whether it has ended must be known. */
static pawl_status look_for_end(struct watch *watch)
{
    struct scope kept = scope_take(watch->cli);
    struct node *view;
    pawl_status status;

    await_openly(watch);
    status = view_read(watch->cli, watch->id, 0, &view);
    if (status == PAWL_OK)
        note_end(watch, view);
    scope_give(watch->cli, kept);
    return status;
}

/* ---- The loop ---- */

/* A server that ends while it is asked for news is looked for by follow_read(). */
static pawl_status show_news(struct watch *watch)
{
    pawl_status status = PAWL_OK;

    if (watch->is_view)
        status = draw(watch);
    else
        fflush(watch->cli->term.out);
    if (!watch->is_view && watch->id && watch->follow.count > 0)
        status = look_for_end(watch);
    return status != PAWL_OK && follow_has_more(&watch->follow) ? PAWL_OK : status;
}

/* Off a terminal it is over when the last entry has been printed. */
static bool is_over(const struct watch *watch)
{
    return watching_is_over() ||
           (watch->has_ended && (watch->is_view || watch->printed_seq >= watch->end_seq));
}

static pawl_status watch_on(struct watch *watch)
{
    pawl_status status = PAWL_OK;

    while (status == PAWL_OK && !is_over(watch)) {
        status = follow_read(&watch->follow, TICK_MS);
        if (status == PAWL_OK)
            status = show_news(watch);
        if (watch->cli->term.tty && watch->follow.count > 0 && !watch->has_ended)
            watching_wait(&watch->watching, -1, CALM_MS);
    }
    return status;
}

/* One instance is printed from its beginning, so that off a terminal its whole history is there. */
static pawl_status watch_begin(struct watch *watch)
{
    struct cli *cli = watch->cli;

    if (cli->operand_count == 1)
        TRY(id_resolve(cli, cli->operands[0], &watch->id));
    if (watch->id)
        TRY(look_for_end(watch));
    watch->follow.id = watch->id;
    TRY(follow_begin(&watch->follow, watch->id && !watch->is_view));
    return watch->is_view ? draw(watch) : PAWL_OK;
}

int verb_watch(struct cli *cli)
{
    struct watch watch = { .cli = cli, .is_view = cli->term.tty && !cli->json };
    pawl_status status = target_open(cli, USE_EXISTING, NULL);

    if (status != PAWL_OK)
        return report(cli);
    watching_begin(&watch.watching, &cli->term);
    watch.follow = (struct follow){
        .cli = cli, .watching = &watch.watching, .fn = take_entry, .context = &watch, .fd = -1
    };
    status = watch_begin(&watch);
    if (status == PAWL_OK)
        status = watch_on(&watch);
    follow_end(&watch.follow);
    watching_end(&watch.watching);
    if (status != PAWL_OK && !watching_is_over())
        return report(cli);
    return watch.has_ended ? watch.code : EXIT_DONE;
}
