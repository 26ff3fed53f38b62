/* module_int.h - private to module: what the two processes say to each other.
 *
 * A frame is 4 bytes of length, least first, and JSON. The child begins with its types:
 *   {"types":[SOURCE,...]}                    or {"error":WORDS}
 * then each request of ours gets one answer:
 *   {"type":NAME,"kind":N,"at":MS,"from":N,"strict":true,"event":true,"check":true,"name":S,
 *    "payload":JSON,"state":JSON,"declared":SOURCE}
 *   {"end":N,"value":JSON,"state":JSON,"migrated":JSON,"timers":EFFECTS,"signals":EFFECTS,"call":S,
 *    "args":JSON,"key":S,"spawn":N,"reduces":EFFECTS,"problem":S,"misfit":S,"renewed":N}
 *                                           or {"status":N,"message":S}
 * Members that are absent, empty or 0 are left out. Behind a request may be a NUL and a number: so
 * many turns more are to be taken, each by the timer that is due first (ahead.c). Their answers
 * follow the first one, each behind a NUL. */
#ifndef PAWL_MODULE_MODULE_INT_H
#define PAWL_MODULE_MODULE_INT_H

#include "base/limits.h"
#include "base/node.h"
#include "base/sha.h"
#include "module/module.h"

#define FRAME_MAX LIMIT_SCOPE

/* ---- image.c ---- */

#define IMAGE_FD 3 /* where a child finds the bytes that it is to load */

struct image {
    int fd; /* -1: none */
    uint8_t sha[SHA_SIZE];
};

/* NOT_KNOWN names what is wrong with the file. */
pawl_status image_read(struct scope *scope, const char *path, struct image *out);
void image_close(struct image *image);
const char *image_file_name(const char *path); /* without its folders */

/* ---- frame.c ---- */

enum frame_end { FRAME_OK, FRAME_CLOSED, FRAME_LATE, FRAME_NO_MEMORY };

/* wait_ms -1: for ever. The text lives in the scope. What is written with a wait_ms goes to a
 * descriptor that does not block. */
enum frame_end frame_read(int fd, int wait_ms, struct scope *scope, str *out);
enum frame_end frame_write(int fd, int wait_ms, const struct buf *frame);

/* ---- wire.c ---- */

void wire_print_request(const char *type, const struct turn_request *request, struct buf *out);
bool wire_read_request(const struct node *root, struct turn_request *out);
void wire_print_answer(const struct turn_answer *answer, struct buf *out);
void wire_print_failure(const pawl_error *error, struct buf *out);
/* The answer, or the failure that it is; NOT_KNOWN: it is neither. */
pawl_status wire_read_answer(struct scope *scope, str text, struct turn_answer *out);

/* ---- ahead.c: turns that a child takes before they are asked for ---- */

struct ahead {
    struct buf
        request; /* what comes next if it is the timer that is due first; size 0: nothing does */
    struct buf answers; /* to that, and to what follows it, with a NUL between them */
    size_t used;        /* bytes of them */
    uint32_t count;     /* of turns that are asked for beyond the next one */
    bool is_off;        /* a child ended while it took more than one turn */
};

void ahead_init(struct ahead *ahead, const struct heap *heap);
void ahead_fini(struct ahead *ahead);
/* The request that follows this answer if nothing but its timer comes; false: it waits for none. */
bool ahead_foresee(const struct turn_answer *answer, struct turn_request *out);
/* The answer to this request, if it is there; else `count` is set. */
bool ahead_take(struct ahead *ahead, const char *type, str request, struct scope *scope,
                struct turn_answer *out);
/* What a child answered, and behind it what it answered besides. */
void ahead_keep(struct ahead *ahead, const char *type, const struct turn_answer *answer,
                str answers);

#endif
