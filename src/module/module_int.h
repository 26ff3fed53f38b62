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
 * Members that are absent are left out. */
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

#endif
