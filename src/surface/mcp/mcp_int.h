/* mcp_int.h - private to mcp: an exchange on its way from a message to its answer.
 *
 * What holds:
 *  (1) An exchange is one request. Its method is called again and again until it does not wait any
 *      more; each time it looks at the store again. So a method has no state but `stage`,
 *      `instance` and what it kept in the exchange's scope.
 *  (2) Before a method looks, the exchange is known to the watcher: what is committed after it has
 *      looked wakes it.
 *  (3) One thread at a time runs an exchange. Asleep it belongs to no thread, and the one that
 *      clears `is_asleep`, under the server's lock, wakes it. */
#ifndef PAWL_SURFACE_MCP_MCP_INT_H
#define PAWL_SURFACE_MCP_MCP_INT_H

#include "api/events.h"
#include "api/ops.h"
#include "base/guard.h"
#include "base/ids.h"
#include "base/limits.h"
#include "surface/mcp/mcp.h"

/* ---- Words of the protocol ---- */

#define MCP_VERSION_MAP(X)                                                                         \
    X(2024_11_05, "2024-11-05")                                                                    \
    X(2025_03_26, "2025-03-26")                                                                    \
    X(2025_06_18, "2025-06-18")                                                                    \
    X(2025_11_25, "2025-11-25")                                                                    \
    X(2026_07_28, "2026-07-28")
enum mcp_version {
#define X(name, text) MCP_##name,
    MCP_VERSION_MAP(X)
#undef X
        MCP_VERSIONS
};
#define MCP_LEGACY_NEWEST MCP_2025_11_25

extern const char *const mcp_version_words[MCP_VERSIONS];
bool version_find(str word, enum mcp_version *out);
static inline bool is_modern(enum mcp_version version)
{
    return version >= MCP_2026_07_28;
}

#define META_PREFIX  "io.modelcontextprotocol/"
#define TASKS_WORD   META_PREFIX "tasks"
#define UI_WORD      META_PREFIX "ui"
#define RELATED_TASK META_PREFIX "related-task"
#define APP_URI      "ui://pawl/process"
#define APP_MEDIA    "text/html;profile=mcp-app"

enum rpc_code {
    RPC_PARSE = -32700,
    RPC_REQUEST = -32600,
    RPC_METHOD = -32601,
    RPC_PARAMS = -32602,
    RPC_INTERNAL = -32603,
    RPC_NO_RESOURCE = -32002, /* legacy */
    RPC_HEADERS = -32020,
    RPC_CAPABILITY = -32021,
    RPC_VERSION = -32022,
};

/* What a client can do, as it has declared. */
struct client_caps {
    bool tasks; /* the extension of 2026-07-28 */
    bool form;  /* it can ask people to fill in a form */
    bool url;
    bool sampling, roots;
};
void caps_read(const struct node *declared, struct client_caps *out);

/* ---- Sessions of the legacy era ---- */

#define SESSION_ID_SIZE   33
#define SESSIONS_MAX      10000u
#define SUBSCRIPTIONS_MAX 256u

struct session;
struct rpc_exchange;

/* An instance that an exchange follows, or the streams of a session. Under the server's lock. */
struct mcp_watch {
    struct mcp_watch *next, *previous; /* of its bucket */
    struct mcp_watch *more;            /* of the same exchange */
    struct rpc_exchange *exchange;     /* NULL: it is a session's */
    struct session *session;
    uint64_t instance; /* its number; 0: it is in no bucket */
    bool has_changed;  /* since its follower has looked */
};

struct subscription {
    struct subscription *next;
    struct mcp_watch watch;
    int64_t seen; /* resource_stamp() that its subscriber knows of */
    char uri[];
};

struct session {
    struct session *next;
    uint32_t references;      /* that of the table, and of each exchange */
    char id[SESSION_ID_SIZE]; /* "": of stdio */
    char *principal;          /* whose it is; NULL: of a caller without a token */
    enum mcp_version version;
    struct client_caps caps;
    bool has_ended, wants_logs;
    int64_t used_ms;
    struct subscription *subscriptions;
    uint32_t subscription_count;
    struct rpc_exchange *streams; /* that wait for what it has subscribed to */
};

/* ---- One request ---- */

enum transport { OVER_HTTP, OVER_STDIO };

struct rpc_error {
    int code; /* 0: none */
    char message[512];
    str data; /* JSON; data NULL: none */
    int http; /* its status; 0: by the code */
};

struct mcp_method;
struct rpc_exchange;
typedef pawl_status (*method_fn)(struct rpc_exchange *exchange, struct buf *result);

struct exchange_link {
    struct rpc_exchange *next, *previous;
};

/* What an exchange needs while it runs, and not while it waits: thousands may wait. */
struct rpc_turn {
    struct scope work;
    struct rpc_error error;
};

struct rpc_exchange {
    struct op_pieces pieces; /* as HTTP reads it; the first member */
    struct mcp_server *server;
    enum transport transport;
    struct exchange_link of_all, of_lists; /* among those that the watcher knows */
    struct rpc_exchange *next_stream;      /* of the same session */
    struct arena arena;                    /* the message, and what is kept of it */
    struct rpc_turn *turn;                 /* NULL while it waits */

    /* The message. */
    struct node *message;
    str id; /* JSON; data NULL: a notification */
    str method_name;
    struct node *params;
    const struct node *meta;
    const struct mcp_method *method;

    /* The caller. */
    struct op_headers headers; /* only during the first turn */
    struct op_principal who;
    enum mcp_version version;
    struct client_caps caps;
    const char *lacks;       /* a scope that its token should have had; NULL: none */
    struct session *session; /* NULL: none */
    str progress_token;      /* JSON; data NULL: none */

    /* Where it is. */
    uint32_t stage;
    char instance[ID_SIZE + 1]; /* that it waits for; "": none */
    struct mcp_watch own;       /* of that */
    struct mcp_watch *watches;  /* what wakes it */
    bool follows_lists;         /* a change of definitions wakes it */
    bool is_known;              /* to the watcher */
    atomic_bool is_deaf;        /* nothing is sent any more: the client has cancelled it */
    bool waits;                 /* the method is to be called again */
    bool ends_well;             /* a stream that ends with the server, as it should */
    bool is_done;
    bool is_stream;           /* it answers with a stream of messages */
    bool is_asleep, is_woken; /* under the server's lock */
    int64_t due_ms;           /* by the tick: wake it then; 0: never */
    int64_t give_up_ms;       /* until when the method waits; 0: not set */
    int64_t beat_ms;          /* of a stream: when a comment is due */
    uint64_t asked;           /* the number of our request to the client; 0: none */
    str reply;                /* the client's answer to it: JSON of the message */
    const char *reply_text;   /* the same on its way, on libc's heap; under the lock */
    size_t reply_size;
    uint64_t progress; /* the last number that was sent */

    /* On a thread that reads requests, which may not wait. */
    const struct waiter *waiter; /* NULL: it is on another thread */
    struct op_call *under_way;   /* an operation that was started; NULL: none */
    struct buf under_way_out;
    bool needs_thread; /* it was not begun: another thread has to run it */
    const void *kept;  /* the method's own, in the scope */
    str kept_text;     /* likewise */
    void (*wake)(void *context);
    void *wake_context;

    /* What goes out. */
    const char *result_type; /* modern; NULL: complete */
    struct buf meta_out;     /* members of the result's _meta */
    struct buf out;          /* messages before the answer, framed */
    struct buf answer;       /* the answer, not framed */
    int http_status;
};

#define ALL_ERAS  3u
#define OF_LEGACY 1u
#define OF_MODERN 2u

struct mcp_method {
    const char *name;
    unsigned eras;
    method_fn run;
    bool needs_tasks;       /* modern: the extension has to be declared */
    const char *header;     /* modern, HTTP: the parameter that Mcp-Name repeats; NULL: none */
    enum mcp_version since; /* legacy */
    bool is_quick;          /* it reads one thing, and never waits */
};
extern const struct mcp_method mcp_methods[]; /* ending in a zero row */
const struct mcp_method *method_find(str name);

/* ---- exchange.c ---- */

/* NULL: no memory. */
struct rpc_exchange *exchange_new(struct mcp_server *server, enum transport transport);
void exchange_free(struct rpc_exchange *exchange);
/* A turn of its method. Afterwards is_done, or it waits. */
void exchange_run(struct rpc_exchange *exchange);
/* The first turn, on a thread that may not wait: afterwards it is done, or needs_thread, or an
 * operation is under way, and `waiter` is woken when exchange_go_on() is to be called. */
bool exchange_is_quick(const struct rpc_exchange *exchange);
void exchange_start(struct rpc_exchange *exchange, const struct waiter *waiter);
/* True: it waits again. */
bool exchange_go_on(struct rpc_exchange *exchange, bool is_stopping);
/* Turns until it is done, in this thread. `put` gets what goes out meanwhile; NULL: it is
 * dropped. */
void exchange_finish(struct rpc_exchange *exchange, void (*put)(void *context, str text),
                     void *context);
/* One message of a batch: its answer, if it has one, is added to an open array. */
#define RPC_BATCH_MAX 100u
void exchange_in_batch(struct rpc_exchange *exchange, struct node *message, struct buf *out);
void exchange_refused_in_batch(struct rpc_exchange *exchange, struct buf *out);
bool exchange_sleep(struct op_pieces *pieces, void (*wake)(void *context), void *context);
/* Reads into what is kept of the message; `read` is one of base/node.h. */
pawl_status exchange_read(struct rpc_exchange *exchange,
                          pawl_status (*read)(struct scope *scope, str text, struct node **out),
                          str text, struct node **out);
/* Of one that will wait for days: only its id and its caller are kept. The old message is the
 * caller's to free, when it has read what it needs. */
pawl_status exchange_settle(struct rpc_exchange *exchange, struct arena *message);
/* Takes what is to be sent now. */
void exchange_take(struct rpc_exchange *exchange, struct buf *out);

/* By a method: */
pawl_status rpc_fail(struct rpc_exchange *exchange, int code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* The rejection of an operation as an error of the protocol. */
pawl_status rpc_fail_as(struct rpc_exchange *exchange, pawl_status status);
pawl_status rpc_need(struct rpc_exchange *exchange, const char *capabilities); /* JSON */
/* Call it again when the instance has changed, or at the latest in so many ms (0: no limit). */
void exchange_watch(struct rpc_exchange *exchange, str instance);
/* Before it is known to the watcher: this one wakes it, too. The lists are those of definitions. */
void exchange_follow(struct rpc_exchange *exchange, struct mcp_watch *watch, uint64_t instance);
void exchange_follow_lists(struct rpc_exchange *exchange);
/* Has it changed since this was asked? */
bool watch_take(struct mcp_server *server, struct mcp_watch *watch);
void exchange_wait(struct rpc_exchange *exchange, int64_t most_ms);
bool exchange_is_late(struct rpc_exchange *exchange); /* the time that it waits is over */
/* A notification, or a request of ours whose answer will be in exchange->reply. `params` are the
 * members of an object. */
void exchange_notify(struct rpc_exchange *exchange, const char *method, str params);
void exchange_ask(struct rpc_exchange *exchange, const char *method, str params);
void exchange_progress(struct rpc_exchange *exchange, uint64_t done, uint64_t total, str words);
/* Copies what it has of the caller and of the message into its scope. */
int64_t tick_ms(const struct mcp_server *server);

/* ---- message.c: JSON-RPC ---- */

/* Reads a message into the exchange. False: its error says what is wrong. */
bool message_read(struct rpc_exchange *exchange, str text);
bool message_take(struct rpc_exchange *exchange, struct node *message); /* of a batch */
void error_print(struct rpc_exchange *exchange, struct buf *out);
/* What an answer to a request of ours has: its result, or NULL. */
const struct node *reply_result(struct rpc_exchange *exchange);

/* ---- era.c: which version, and what the client can do ---- */

/* Decides the version, checks what it demands of a request, finds the method. False: the error. */
bool era_enter(struct rpc_exchange *exchange);
/* Modern, HTTP: parameters that a tool wants repeated in headers. */
bool headers_match_schema(struct rpc_exchange *exchange, const struct node *schema,
                          const struct node *arguments);

/* ---- session.c ---- */

struct session *session_new(struct mcp_server *server, const struct op_principal *who,
                            bool is_listed); /* NULL: no memory, or too many */
struct session *session_find(struct mcp_server *server, str id, const struct op_principal *who);
void session_leave(struct mcp_server *server, struct session *session); /* NULL is allowed */
void session_end(struct mcp_server *server, struct session *session);
void sessions_free(struct mcp_server *server);
/* OVERLOADED: it has SUBSCRIPTIONS_MAX. */
pawl_status session_subscribe(struct mcp_server *server, struct session *session, str uri,
                              int64_t stamp);
void session_unsubscribe(struct mcp_server *server, struct session *session, str uri);
/* Gives an answer of the client to the exchange that asked, or cancels a request. */
void exchange_answered(struct rpc_exchange *message);
void exchange_cancelled(struct rpc_exchange *message);

/* ---- watcher.c ---- */

enum mcp_row { ROW_POST, ROW_GET, ROW_DELETE, ROW_METADATA, ROW_METADATA_MCP, MCP_ROWS };

#define BUCKETS 1024u

struct mcp_server {
    pawl *p;
    struct mcp_options options;
    struct op rows[MCP_ROWS + 1];
    struct guard lock;
    pthread_t thread;
    int event; /* an eventfd */
    bool is_running;
    atomic_bool is_stopping;
    struct shard_vector at;     /* up to where the watcher has read, while an exchange waits */
    struct rpc_exchange *first; /* those that the watcher knows */
    struct mcp_watch *buckets[BUCKETS]; /* by the instance */
    struct rpc_exchange *followers;     /* of lists */
    atomic_uint exchange_count;
    int64_t due_ms; /* when the first of them is due */
    uint64_t asked; /* requests of ours to clients */
    struct session *sessions;
    uint32_t session_count;
    uint8_t secret[32];                              /* signs what a client carries for us */
    uint64_t definitions_hash;                       /* of their list; 0: no exchange follows it */
    _Atomic uint64_t tools_changed, prompts_changed; /* how often lists have changed */
};

void watcher_join(struct rpc_exchange *exchange);
void watcher_leave(struct rpc_exchange *exchange);
void exchange_wake(struct rpc_exchange *exchange); /* under the lock */
void watcher_wake(struct mcp_server *server);
void look_at_definitions(struct mcp_server *server);
void lists_wake(struct mcp_server *server); /* those that follow them */
/* Under the lock. */
void watch_join(struct mcp_server *server, struct mcp_watch *watch);
void watch_leave(struct mcp_server *server, struct mcp_watch *watch);

/* ---- run_op.c: operations ---- */

/* Runs an operation as the caller may; its answer goes to `out`. Input: an object, or NULL. The
 * nodes are used up. The error is in exchange->work. */
pawl_status op_ask(struct rpc_exchange *exchange, const char *operation, struct node *input,
                   struct buf *out);
/* The same, on a thread that may not wait: the exchange may have it under way afterwards, or need
 * another thread. */
pawl_status op_begin(struct rpc_exchange *exchange, const char *operation, struct node *input,
                     struct buf *out);
/* The same as op_ask() with members, and the answer as a tree in the scope of this turn. */
struct op_member {
    const char *name; /* NULL: the end */
    str text, json;
};
#define MEMBERS(...) ((const struct op_member[]){ __VA_ARGS__, { 0 } })
pawl_status op_ask_text(struct rpc_exchange *exchange, const char *operation,
                        const struct op_member *members, str *out);
pawl_status op_ask_node(struct rpc_exchange *exchange, const char *operation,
                        const struct op_member *members, struct node **out);

/* ---- tools.c, tools_manage.c, tools_definition.c ---- */

struct manage_tool {
    const char *name, *title;
    const char *decides; /* a parameter that chooses the operation; NULL: none */
    const char *preset;  /* JSON */
    const char *operations[2];
    const char *description, *annotations, *input_schema, *output_schema;
    const char *choices; /* of `decides`, in the order of the operations: "approve,reject" */
};
extern const struct manage_tool manage_tools[]; /* ending in a zero row */
const struct manage_tool *manage_find(str name);
pawl_status manage_call(struct rpc_exchange *exchange, const struct manage_tool *tool,
                        struct buf *result);
/* What its operation has answered is the tool's result. */
pawl_status manage_end(struct rpc_exchange *exchange, pawl_status status, struct buf *answer,
                       struct buf *result);

enum task_mode { TASK_AUTO, TASK_REQUIRED, TASK_NEVER };
struct definition_tool {
    str definition; /* its name */
    str version;
    str description;
    str schema;               /* of its arguments: JSON */
    const struct node *input; /* as its author wrote it; NULL: none */
    const struct node *mcp;   /* likewise */
    bool reaches_out;         /* a step of it may act outside of pawl */
    bool is_wrapped;          /* the input is the argument `input`, because it is no object */
    bool is_machine;
    enum task_mode task;
    int64_t sync_wait_ms;
    int64_t kept_ms; /* what a process holds is erased so long after its end; -1: never */
};
#define SYNC_WAIT_MS  10000
#define TOOL_NAME_MAX 64
/* Names of tools have fewer characters than those of definitions. */
void tool_name_of(str definition, char out[TOOL_NAME_MAX + 1]);
/* The tool of a definition, in the exchange's scope; *out NULL: there is none. */
pawl_status definition_tool_find(struct rpc_exchange *exchange, str tool_name,
                                 const struct definition_tool **out);
pawl_status definition_tool_read(struct rpc_exchange *exchange, str definition,
                                 struct definition_tool *out);
pawl_status definition_tool_at(struct rpc_exchange *exchange, str definition, str version,
                               struct definition_tool *out);
/* The definitions that the caller may see, at most so many; *count may be one more. */
pawl_status definitions_list(struct rpc_exchange *exchange, uint32_t most, str *names,
                             uint32_t *count);
pawl_status definition_call(struct rpc_exchange *exchange, struct buf *result);
#define TOOLS_OF_DEFINITIONS_MAX 40u /* beyond that, definition_search finds them */

bool steps_reach_out(const struct node *steps);
/* Members of the tool. */
void definition_hints_print(const struct definition_tool *tool, struct buf *out);
void definition_output_print(const struct definition_tool *tool, struct buf *out);

/* ---- task.c, questions.c ---- */

enum task_status { TASK_WORKING, TASK_INPUT, TASK_COMPLETED, TASK_FAILED, TASK_CANCELLED };
struct task_view {
    str id;
    struct arena *arena;         /* of this turn; NULL: it is one of a list */
    const struct node *instance; /* as instance.get answers */
    const struct node *waiting;  /* as instance.why answers; NULL: it has ended, or was not asked */
    enum task_status status;     /* of the modern era; see task_word() */
    bool has_ended;
    const struct node *error; /* of the protocol, {code, message}; NULL: none */
};
/* What instance `id` is to this caller. -32602 if it is not known, or another's. */
pawl_status task_read(struct rpc_exchange *exchange, str id, struct task_view *out);
/* The same without asking what a machine waits for. */
pawl_status task_look(struct rpc_exchange *exchange, str id, struct task_view *out);
bool task_is_stuck(const struct task_view *view); /* nothing goes on until a caller acts */
void task_print(struct rpc_exchange *exchange, const struct task_view *view, struct buf *out);
/* The members of the tool's result: of a process that has ended, or of its handle. */
void task_result(struct rpc_exchange *exchange, const struct task_view *view, struct buf *out);
void task_handle(struct rpc_exchange *exchange, const struct task_view *view, struct buf *out);
pawl_status task_error(struct rpc_exchange *exchange, const struct task_view *view); /* its own */
void task_message(const struct task_view *view, struct buf *out);
/* The result as structuredContent, as the tool's schema says. NULL: it has none. */
void structured_put(struct rpc_exchange *exchange, const struct task_view *view,
                    const struct node *result, struct buf *out);

void task_print_whole(struct rpc_exchange *exchange, const struct task_view *view, struct buf *out);
pawl_status task_created(struct rpc_exchange *exchange, const struct task_view *view,
                         struct buf *result);
bool caller_may_decide(const struct rpc_exchange *exchange, const struct node *by);

bool gate_is_for(const struct rpc_exchange *exchange, const struct node *waiting);
void gates_print(struct rpc_exchange *exchange, const struct task_view *view, struct buf *out);
void gate_form(struct rpc_exchange *exchange, const struct task_view *view, const struct node *gate,
               struct buf *out);
/* A client's answer {action, content} to a gate. */
pawl_status gate_decide(struct rpc_exchange *exchange, str step_id, const struct node *answer);
/* Legacy: asks the client about the first gate that is for it, and takes its answer. */
pawl_status gate_ask(struct rpc_exchange *exchange, const struct task_view *view);

/* ---- resources.c, prompts.c, listener.c, methods.c ---- */

uint64_t uri_instance(str uri); /* the number of the instance that it is about; 0: none */
/* What grows when the resource changes: entries of an instance, the version of a definition. -1: it
 * is not there for this caller. */
int64_t resource_stamp(struct rpc_exchange *exchange, str uri);
void contents_put(struct buf *result, str uri, const char *media, const char *member, str text);
void cache_put(struct rpc_exchange *exchange, struct buf *out);
pawl_status cursor_refuse(struct rpc_exchange *exchange);
pawl_status method_stream(struct rpc_exchange *exchange, struct buf *result);
extern const struct mcp_method stream_method; /* the stream of a legacy session */
pawl_status caller_keep(struct rpc_exchange *exchange, const struct op_principal *who);

#define METHOD_MAP(X)                                                                              \
    X(server_discover)                                                                             \
    X(initialize)                                                                                  \
    X(ping)                                                                                        \
    X(set_level) X(tools_list) X(tools_call) X(tasks_get) X(tasks_update) X(tasks_cancel)          \
        X(tasks_result) X(tasks_list) X(resources_list) X(templates_list) X(resources_read)        \
            X(subscribe) X(unsubscribe) X(prompts_list) X(prompts_get) X(complete) X(listen)
#define X(name) pawl_status method_##name(struct rpc_exchange *exchange, struct buf *result);
METHOD_MAP(X)
#undef X

void tool_result_text(struct buf *result, str text, bool is_error);
/* The rejection of an operation as a tool's result: isError. */
pawl_status tool_refused(struct rpc_exchange *exchange, pawl_status status, struct buf *result);
bool tool_is_selected(const struct mcp_server *server, const char *group, str name);
/* Does the caller's token allow this operation of a definition (data NULL: of some)? */
bool op_is_allowed(struct rpc_exchange *exchange, const char *operation, str definition);

#endif
