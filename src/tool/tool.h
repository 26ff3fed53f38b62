/* tool.h - what steps call: built in (log, set, fail, exec) or registered by the host.
 * `sleep` is not here: it is a durable timer, made by the flow's reducer. */
#ifndef PAWL_TOOL_TOOL_H
#define PAWL_TOOL_TOOL_H

#include "base/buf.h"
#include "base/scope.h"
#include "env/env.h"
#include <pawl.h>

struct toolbox;

struct toolbox_options {
    const struct heap *heap;
    struct env *env;
    bool allow_exec;
    void (*log)(void *context, pawl_log_level level, const char *event, const char *text);
    void *log_context;
};

struct toolbox *toolbox_new(const struct toolbox_options *options); /* NULL: no memory */
void toolbox_free(struct toolbox *toolbox);
pawl_status toolbox_register(struct toolbox *toolbox, const char *name, pawl_tool_fn fn,
                             void *context, pawl_error *error);
/* What flows may call, JSON or YAML as rules.h says. Before anything runs. INVALID_REQUEST. */
pawl_status toolbox_set_rules(struct toolbox *toolbox, str text, struct scope *scope);

#define PARTY_MAX 32u

/* Calls that one process takes together, because each of them takes next to no time. */
struct tool_item {
    const pawl_tool_call *call;
    void *context;    /* of its tool */
    const char *type; /* of the code that called; NULL: it is a flow */
    uint32_t number;  /* of the call, and what the turns of its code have seen: code/code.h */
    uint64_t mark;
    int64_t at_ms;
};
struct tool_party {
    bool (*is_quick)(void *context); /* of a tool: may its next call be one of several? */
    void *(*place)(void *context);   /* tools of the same place are called together */
    void (*run)(const struct tool_item *items, uint32_t count, pawl_tool_answer *const *answers);
};
pawl_status toolbox_register_party(struct toolbox *toolbox, const char *name, pawl_tool_fn fn,
                                   const struct tool_party *party, void *context,
                                   pawl_error *error);
/* Where a call of this tool may be made with others; NULL: it is made by itself. */
const void *toolbox_place(const struct toolbox *toolbox, str name, str creator);
bool toolbox_has(const struct toolbox *toolbox, str name); /* thread-safe */
/* ... or has to be run here because it is forbidden to the creator of the instance: it fails. */
bool toolbox_serves(const struct toolbox *toolbox, str name, str creator);

/* How many calls of a tool may be under way at once, and begin within `per_ms`; 0: any number. Of
 * all flows together. NULL: it has no limits. */
struct tool_limits {
    uint32_t at_once, rate;
    int64_t per_ms;
};
const struct tool_limits *toolbox_limits(const struct toolbox *toolbox, str name);
bool toolbox_has_limits(const struct toolbox *toolbox, int64_t *per_max_ms); /* of some tool */

/* {"tool":NAME,"kind":"built-in","on":true} of each that is in this process, with commas. */
void toolbox_print_tools(struct toolbox *toolbox, struct buf *out);
void toolbox_print_tool(str name, const char *kind, bool is_on, struct buf *out);
/* An array: what each MCP server offers now. Asks them, for seconds at most each. */
void toolbox_print_servers(struct toolbox *toolbox, struct scope *scope, struct buf *out);

/* Is it a function that the host registered, which runs in this process? */
bool toolbox_is_of_host(const struct toolbox *toolbox, str name);

/* Is it a function of its arguments alone, done in no time? It may be run before its start is
 * durable. */
bool toolbox_is_pure(str name);

/* Of a host's tool that has answered with an error: another attempt would fail likewise. */
void toolbox_answer_is_final(pawl_tool_answer *answer);

struct tool_result {
    bool failed;
    bool is_final; /* another attempt would fail likewise */
    bool is_late;  /* a program was ended because its time was over: it may have done its work */
    bool is_cut;   /* toolbox_stop() ended it: this is no answer of its own */
    str json;      /* the result, or the error; in the scope's arena */
};

/* Asks for an early end of a run, from any thread: toolbox_stop() kills the program of an exec and
 * ends an exchange of http; a tool of the host's runs on to its end. A run that has not begun yet
 * ends as soon as it does. */
struct tool_stop {
    _Atomic bool is_asked;
};

/* Run a tool to its end, in this thread, or until `stop` (may be NULL). An unknown tool, a tool
 * that is off, a crash of an exec'd program, output that is no JSON, too much output or too much
 * time are failed results with an error in words, never a status; the status is only NO_MEMORY.
 * timeout_ms 0: none. */
pawl_status toolbox_run(struct toolbox *toolbox, const pawl_tool_call *call, int64_t timeout_ms,
                        struct tool_stop *stop, struct scope *scope, struct tool_result *out);
/* The same for several of one place. Each answer lives in its scope. */
void toolbox_run_party(struct toolbox *toolbox, struct tool_item *items, uint32_t count,
                       struct scope *const *scopes, struct tool_result *out);
void toolbox_stop(struct toolbox *toolbox, struct tool_stop *stop);

/* End every program that an exec step is running now, and every exchange of http (at close). */
void toolbox_kill_all(struct toolbox *toolbox);
void toolbox_go_on(struct toolbox *toolbox); /* calls run again after that */

#endif
