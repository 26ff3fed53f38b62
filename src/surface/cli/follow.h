/* follow.h - private to the command line: the entries of a store as they are recorded, whether by
 * a server's stream or by reading the file; and a terminal that is drawn again with them. */
#ifndef PAWL_SURFACE_CLI_FOLLOW_H
#define PAWL_SURFACE_CLI_FOLLOW_H

#include "api/events.h"
#include "surface/cli/cli.h"
#include <signal.h>
#include <termios.h>

/* ---- watching: signals and keys ---- */

struct watching {
    sigset_t usual;      /* signals as they were: let through while we wait */
    struct termios keys; /* of the terminal, to be put back */
    bool has_keys;       /* standard input is a terminal, and ours for the time being */
    struct term *term;
    int lines;   /* drawn, and to be drawn over */
    char note[320];        /* below each frame */
    int64_t note_until_ms; /* by the wall clock */
    const char *server; /* its address, for words about it; NULL: none is watched */
    bool is_silent;     /* that was reported; its next answer is reported, too */
    FILE *frame; /* what is being drawn */
    char *text;
    size_t size;
};

/* From now on SIGINT, SIGTERM and the key q are a wish to stop; nothing typed is shown. */
void watching_begin(struct watching *watching, struct term *term);
/* The terminal as it was; what was drawn last stays. */
void watching_end(struct watching *watching);
bool watching_is_over(void);

/* Wait until fd (-1: none) can be read, the user wants to stop or the terminal has another size,
 * at most wait_ms. True: fd can be read. */
bool watching_wait(struct watching *watching, int fd, int64_t wait_ms);

/* Draw: what is written to term->out in between takes the place of what was there before. Only on
 * a terminal; else it is written as it is. */
void frame_begin(struct watching *watching);
void frame_end(struct watching *watching);
int frame_rows(const struct watching *watching); /* lines there is room for */

#define BACK_MS 5000 /* for how long the note that a server is back is shown */

/* A line below what is drawn, now and for so long (0: until another); off a terminal on stderr. */
void watching_say(struct watching *watching, int64_t for_ms, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Report once that the server has sent nothing for so long; and that it answers again. */
void watching_silence(struct watching *watching, const char *words);
void watching_answered(struct watching *watching);

/* As client.wait: `context` is the watching. Keys and signals count meanwhile. */
int watching_await(void *context, int fd, int64_t waited_ms);

/* ---- following ---- */

typedef void (*follow_fn)(void *context, str entry); /* JSON */

struct follow {
    struct cli *cli;
    struct watching *watching;
    follow_fn fn; /* is called with each entry */
    void *context;
    uint32_t count;    /* of entries that the last follow_read() reported */
    const char *id;    /* of one instance; NULL: all */
    int fd;            /* a server's stream; -1: the file is looked at */
    struct shard_vector at;         /* the last entries that were reported, of a file */
    char cursor[EVENT_CURSOR_SIZE]; /* the same, of a stream */
    struct buf bytes;  /* of a stream, not yet understood */
    bool has_head;
    int64_t quiet_ms; /* for which the stream has sent nothing */
};

/* Begin behind what is there (or with the first entry). The caller has set cli, watching, fn,
 * context and id, and fd to -1. */
pawl_status follow_begin(struct follow *follow, bool from_start);
void follow_end(struct follow *follow);

/* What was recorded since, at most wait_ms later. A server that went away is looked for again, and
 * both that and its return are reported; STORAGE_FAILURE if it stays away. */
pawl_status follow_read(struct follow *follow, int64_t wait_ms);

/* Has the server's stream more to read, or does it end in a moment? Not so for a file. */
bool follow_has_more(const struct follow *follow);

#endif
