/* module.h - code types in a shared object or behind a command, run by child processes.
 *
 * Whatever the code does to its process, crash it or never come back, it does to the child: that
 * one is ended and another begun, and the turn is tried once more. If that too ends it, the turn is
 * refused with PAUSED, for the engine to hold the instance; everything else goes on. */
#ifndef PAWL_MODULE_MODULE_H
#define PAWL_MODULE_MODULE_H

#include "base/heap.h"
#include "base/scope.h"
#include "code/code.h"

struct module;

/* One type of a module, to be bound; its source is what it printed in its process. */
struct module_type {
    struct code_binding binding;
};

struct env;
struct module_options {
    struct env *env;
    const char *program, *path;
    int turn_ms; /* 0: five seconds; a turn that takes longer counts as one that ended its
                    process */
    bool is_near; /* a test waits for each turn: a child runs on the processor of its asker */
    /* Receives the words of each failed turn with the path of the module: callers, who may be far
     * away, get its file name only. From any thread. */
    void (*report)(void *context, const char *words);
    void *context;
};

/* path: of a shared object, or a command (docs/turn-protocol.md). Reads the file once, begins a
 * child, `program` --module-host `path` or the command, and asks it what it has. All children of
 * this module run the same build, whatever happens to the file. NOT_KNOWN names what is wrong with
 * the module: it cannot be loaded, is not a module, or was built for another ABI. */
pawl_status module_open(const struct heap *heap, const struct module_options *options,
                        struct scope *scope, struct module **out);
void module_close(struct module *module); /* no turn is under way; NULL is allowed */

/* The file as it is now, as a module beside this one. */
pawl_status module_open_again(const struct module *module, struct scope *scope,
                              struct module **out);
/* Another one takes its turns from now on. Those under way end here, and later calls are still
 * served, but no child stays. */
void module_retire(struct module *module);
bool module_is_retired(struct module *module);

const char *module_path(const struct module *module);
const char *module_file_name(const struct module *module); /* without its folders */
const char *module_digest(const struct module *module);    /* SHA-256 of its bytes, hex */

uint32_t module_type_count(const struct module *module);
const struct module_type *module_type_at(const struct module *module, uint32_t index);

/* The tools that its processes serve; NULL: there are no more. */
const char *module_tool_at(const struct module *module, uint32_t index);
struct module_answer {
    bool has_failed, is_final; /* final: another attempt would fail likewise */
    bool was_lost;             /* the process ended before it answered */
    int64_t took_ms;
    str json; /* the result, or the error; in the scope */
};
/* From any thread; waits while all its processes are busy. A process that ends is a failed call. */
void module_call(struct module *module, const pawl_tool_call *call, struct scope *scope,
                 struct module_answer *out);

/* One of several calls that a process takes together, in their order; and with its result it takes
 * the turn of the code that called, if it has the instance in memory. That answer is kept, and used
 * if the turn is asked for. A process that ends is a failed call of the one that it was at; the
 * others are made by themselves. */
struct module_call {
    const pawl_tool_call *call;
    const char *type; /* of the code; NULL: a flow called */
    uint32_t number;  /* of the call */
    uint64_t mark;    /* of what the turns before have seen: code/code.h */
    int64_t at_ms;
    struct module_answer answer;
};
bool module_takes_many(const struct module *module);
void module_call_many(struct module *module, struct module_call *calls, uint32_t count,
                      struct scope *scope);

/* The life of the child: `argv` of --module-host PATH. The exit status. */
int module_host(const char *path);

#endif
