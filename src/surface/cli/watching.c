/* watching.c - a terminal for as long as something is watched: drawn over in place, silent keys,
 * and as it was afterwards. */
#include "surface/cli/follow.h"
#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define ROWS_DEFAULT 24
#define FURTHER      6 /* columns before the further rows of a line */
#define HIDE_CURSOR  "\033[?25l"
#define SHOW_CURSOR  "\033[?25h"
#define NO_WRAP      "\033[?7l"
#define WRAP         "\033[?7h"

static volatile sig_atomic_t wants_stop, has_resized;

static void note_signal(int number)
{
    if (number == SIGWINCH)
        has_resized = 1;
    else
        wants_stop = 1;
}

bool watching_is_over(void)
{
    return wants_stop != 0;
}

/* Held back but while we wait, so that none is missed between a look and a wait. */
static void take_signals(struct watching *watching)
{
    static const int numbers[] = { SIGINT, SIGTERM, SIGHUP, SIGWINCH };
    struct sigaction action = { .sa_handler = note_signal };
    sigset_t held;

    sigemptyset(&held);
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        sigaction(numbers[i], &action, NULL);
        sigaddset(&held, numbers[i]);
    }
    sigprocmask(SIG_BLOCK, &held, &watching->usual);
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        sigdelset(&watching->usual, numbers[i]);
}

static void take_keys(struct watching *watching)
{
    struct termios quiet;

    if (!isatty(STDIN_FILENO) || tcgetattr(STDIN_FILENO, &watching->keys) != 0)
        return;
    quiet = watching->keys;
    quiet.c_lflag &= ~(tcflag_t)(ECHO | ICANON);
    watching->has_keys = tcsetattr(STDIN_FILENO, TCSANOW, &quiet) == 0;
}

void watching_begin(struct watching *watching, struct term *term)
{
    *watching = (struct watching){ .term = term };
    wants_stop = 0;
    take_signals(watching);
    if (!term->tty)
        return;
    take_keys(watching);
    fputs(HIDE_CURSOR, term->out);
    fflush(term->out);
}

void watching_end(struct watching *watching)
{
    if (watching->term->tty) {
        fputs(WRAP SHOW_CURSOR, watching->term->out);
        fflush(watching->term->out);
    }
    if (watching->has_keys)
        tcsetattr(STDIN_FILENO, TCSANOW, &watching->keys);
    sigprocmask(SIG_SETMASK, &watching->usual, NULL);
}

/* A terminal that has hung up is always ready, so that ppoll() would never let a signal through. */
static void read_keys(void)
{
    char keys[64];
    ssize_t count = read(STDIN_FILENO, keys, sizeof keys);

    if (count == 0 || (count < 0 && errno != EINTR && errno != EAGAIN))
        wants_stop = 1;
    for (ssize_t i = 0; i < count; i++)
        if (keys[i] == 'q' || keys[i] == 'Q' || keys[i] == 4) /* 4: Ctrl-D */
            wants_stop = 1;
}

bool watching_wait(struct watching *watching, int fd, int64_t wait_ms)
{
    struct pollfd ends[2] = { { .fd = fd, .events = POLLIN },
                              { .fd = watching->has_keys ? STDIN_FILENO : -1, .events = POLLIN } };
    struct timespec most = { .tv_sec = wait_ms / 1000, .tv_nsec = wait_ms % 1000 * 1000000 };

    if (ppoll(ends, 2, &most, &watching->usual) <= 0)
        return false;
    if (ends[1].revents & POLLIN)
        read_keys();
    else if (ends[1].revents)
        wants_stop = 1; /* it has hung up */
    return ends[0].revents != 0;
}

/* ---- Frames ---- */

/* The cursor is below the last of them. */
int frame_rows(const struct watching *watching)
{
    int rows = term_rows(watching->frame ? stdout : watching->term->out);

    return (rows > 0 ? rows : ROWS_DEFAULT) - 1;
}

/* After a change of size the terminal may have rewrapped lines: our old output cannot be found. */
void frame_begin(struct watching *watching)
{
    struct term *term = watching->term;

    if (!term->tty)
        return;
    if (has_resized) {
        has_resized = 0;
        watching->lines = 0;
        fputs("\033[H\033[2J", term->out);
        term_measure(term);
    }
    watching->frame = open_memstream(&watching->text, &watching->size);
    if (watching->frame)
        term->out = watching->frame;
}

/* The bytes of a character, or of a change of colour, which has no column. */
static size_t token_size(const char *text, bool *has_column)
{
    size_t size = 1;

    *has_column = text[0] != '\033';
    if (!*has_column)
        return strcspn(text, "m\n") + 1;
    while (((unsigned char)text[size] & 0xC0) == 0x80)
        size++;
    return size;
}

/* As much of a line as fits: to its last space, unless little would be left of it. */
static size_t piece_size(const char *line, size_t size, int room)
{
    size_t at = 0, space = 0;
    bool has_column;

    for (int columns = 0; at < size; columns += has_column) {
        size_t token = token_size(line + at, &has_column);

        if (has_column && columns == room)
            return line[at] == ' ' || space == 0 ? at : space;
        if (columns > room / 4 && line[at] == ' ')
            space = at;
        at += token;
    }
    return size;
}

/* One line of a frame, in several rows if it is longer than the terminal is wide: their number.
 * Cleared first: in the last column the cursor does not move, and clearing behind a line would take
 * its end. */
static int put_frame_line(FILE *out, const char *line, size_t size, int width, int rows_max)
{
    size_t piece = piece_size(line, size, width);
    int rows = 1;

    fprintf(out, "\033[K%.*s\n", (int)piece, line);
    while (piece < size && rows < rows_max) {
        while (piece < size && line[piece] == ' ')
            piece++;
        line += piece;
        size -= piece;
        piece = piece_size(line, size, width - FURTHER);
        fprintf(out, "\033[K%*s%.*s\n", FURTHER, "", (int)piece, line);
        rows++;
    }
    return rows;
}

/* The rows that are kept free for the note. */
static int note_rows(const struct watching *watching)
{
    int size = (int)strlen(watching->note), room = watching->term->width - FURTHER;

    return size == 0 ? 0 : size <= watching->term->width ? 1 : 1 + (size + room - 1) / room;
}

/* Line by line over what is there. */
static void put_frame(struct watching *watching, FILE *out)
{
    const char *line = watching->text;
    int rows = frame_rows(watching) - note_rows(watching), count = 0;

    fputs(NO_WRAP, out);
    if (watching->lines > 0)
        fprintf(out, "\033[%dA\r", watching->lines);
    while (*line && count < rows) {
        size_t size = strcspn(line, "\n");

        count += put_frame_line(out, line, size, watching->term->width, rows - count);
        line += size + (line[size] == '\n');
    }
    fputs("\033[J" WRAP, out);
    fflush(out);
    watching->lines = count;
}

/* Below the frame. */
static void put_note(struct watching *watching, FILE *out)
{
    if (!watching->note[0] || (watching->note_until_ms && now_ms() > watching->note_until_ms))
        return;
    fputc('\r', out);
    watching->lines += put_frame_line(out, watching->note, strlen(watching->note),
                                      watching->term->width, note_rows(watching));
    fflush(out);
}

void frame_end(struct watching *watching)
{
    if (!watching->frame) {
        fflush(watching->term->out);
        return;
    }
    fclose(watching->frame);
    watching->frame = NULL;
    watching->term->out = stdout;
    put_frame(watching, stdout);
    put_note(watching, stdout);
    free(watching->text);
    watching->text = NULL;
}

void watching_say(struct watching *watching, int64_t for_ms, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(watching->note, sizeof watching->note, format, arguments);
    va_end(arguments);
    watching->note_until_ms = for_ms ? now_ms() + for_ms : 0;
    if (watching->term->tty)
        put_note(watching, watching->frame ? stdout : watching->term->out);
    else
        fprintf(stderr, "pawl: %s\n", watching->note);
}

void watching_silence(struct watching *watching, const char *words)
{
    if (!watching->is_silent)
        watching_say(watching, 0, "%s %s; waiting", watching->server, words);
    watching->is_silent = true;
}

void watching_answered(struct watching *watching)
{
    if (watching->is_silent)
        watching_say(watching, BACK_MS, "%s answers again", watching->server);
    watching->is_silent = false;
}

int watching_await(void *context, int fd, int64_t waited_ms)
{
    struct watching *watching = context;
    bool is_ready = watching_wait(watching, fd, CLIENT_LOOK_MS);

    if (watching_is_over())
        return -1;
    if (is_ready)
        watching_answered(watching);
    else if (waited_ms + CLIENT_LOOK_MS >= CLIENT_SILENT_MS)
        watching_silence(watching, "has not answered for 10 s");
    return is_ready;
}
