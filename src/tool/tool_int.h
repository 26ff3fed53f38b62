/* tool_int.h - private to tool: what toolbox.c, builtin.c and exec.c share. */
#ifndef PAWL_TOOL_TOOL_INT_H
#define PAWL_TOOL_TOOL_INT_H

#include "base/buf.h"
#include "base/node.h"
#include "model/vocabulary.h"
#include "tool/keeper.h"
#include "tool/rules.h"
#include "tool/tool.h"
#include <pthread.h>
#include <sys/socket.h>
#include <sys/types.h>

struct host_tool {
    struct host_tool *next;
    size_t size; /* of it, with its name */
    pawl_tool_fn fn;
    void *context;
    const struct tool_party *party; /* NULL: each of its calls is made by itself */
    char name[];
};

/* A program that an exec step runs now. It lies on that step's stack. */
struct running {
    struct running *next;
    struct keeper keeper;
    const struct tool_stop *stop; /* NULL: none */
};

struct toolbox {
    struct toolbox_options options;
    pthread_mutex_t lock; /* guards what follows */
    struct host_tool *tools;
    struct running *running;
    struct curl_api *curl; /* NULL: not loaded yet */
    _Atomic bool is_stopping;
    struct remote *remote; /* MCP servers; NULL: none is configured */
    struct scope scope; /* of the rules */
    struct tool_rules rules;
};

/* One call of a built-in tool. A failed answer is a result, not a status: `status` is only
 * ever NO_MEMORY. */
struct call {
    struct toolbox *toolbox;
    const pawl_tool_call *given;
    struct scope *scope;
    const struct node *args;
    int64_t timeout_ms; /* 0: none */
    const struct tool_stop *stop; /* NULL: none */
    struct tool_result result;
    pawl_status status;
};

/* Answer with JSON that is known to be valid (copied), or fail in words. */
void call_result(struct call *call, str json);
void call_fail(struct call *call, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Fail for good: another attempt would fail likewise. Always false. */
bool call_refuse(struct call *call, const char *format, ...) __attribute__((format(printf, 2, 3)));

bool call_no_memory(struct call *call); /* always false */

/* Is the box, or this call, asked to stop? */
static inline bool call_is_stopping(const struct call *call)
{
    return call->toolbox->is_stopping || (call->stop && call->stop->is_asked);
}

/* Are all arguments in the table? Else the call is refused. */
bool call_knows(struct call *call, const struct known_key *known);

/* Answer with a text from outside: it must be one JSON value, else the call fails and says
 * `who` is to blame. Blank counts as null. */
void call_outside(struct call *call, const char *who, str text);

struct builtin {
    const char *name;
    void (*run)(struct call *call);
    bool takes_any; /* JSON, not only an object */
    bool is_inner;  /* for a flow of ours, and not for authors */
};

/* NULL: no builtin has the name. */
const struct builtin *builtin_find(str name);
const struct builtin *builtin_at(size_t index); /* in order of name; NULL after the last */

void exec_run(struct call *call);
void http_run(struct call *call);
void curl_api_free(struct toolbox *toolbox); /* curl.c */

/* environment.c: a few of our variables, those of the step, its key and its trace. NULL: no memory.
 * `marker` is the variable that only this step's processes have. */
char **environment_make(const struct call *call, char **of_step, const char **marker);
char *environment_variable(struct arena *arena, str name, str value); /* NAME=VALUE */
/* Of a program that serves us: a few of our variables, and those that its rule names. */
char **environment_of_server(struct arena *arena, const struct rule_names *named);
bool environment_is_of_step(str name); /* the key, the trace: nothing else sets them */

bool address_is_private(const struct sockaddr *address); /* address.c */

#endif
