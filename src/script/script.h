/* script.h - workflows written in Lua: the turn protocol for the text of one file.
 *
 * Each instance has a Lua state of its own, in which the file is run from its beginning and what
 * happened is replayed; some states are kept between turns. Code has no clock, no random number and
 * no I/O but through its effects, and `pairs` goes by the order of keys (prelude.lua), so that the
 * same events give the same turn. Operations and memory are limited. */
#ifndef PAWL_SCRIPT_SCRIPT_H
#define PAWL_SCRIPT_SCRIPT_H

#include "base/buf.h"
#include "base/heap.h"
#include "base/node.h"
#include "base/scope.h"

#define SCRIPT_OPERATIONS_MAX 50000000u          /* of one turn, with what it replays */
#define SCRIPT_MEMORY_MAX     ((size_t)32 << 20) /* of one instance */
#define SCRIPT_STATES         256u               /* instances that are kept between turns */

struct script;

struct script_host {
    uint64_t (*seed)(void *context);
    void (*say)(void *context, const char *line); /* what code logs */
    void *context;
};

/* INVALID_DEFINITION: what Lua says of the text, with its line. `text` and `name` are borrowed. */
pawl_status script_open(const struct heap *heap, struct scope *scope, str text, const char *name,
                        const struct script_host *host, struct script **out);
void script_close(struct script *script);

/* The hello of the turn protocol, and the answer to a request. INVALID_DEFINITION, or NO_MEMORY. */
pawl_status script_hello(struct script *script, struct scope *scope, struct buf *out);
pawl_status script_answer(struct script *script, struct scope *scope, const struct node *request,
                          struct buf *out);

#endif
