/* remote_int.h - one talk with an MCP server: which of the two eras it speaks, one request, its
 * answer.
 *
 *   remote_rules.c     what pawl.yaml says of servers
 *   mcp_servers.c      the servers, the programs that run, who uses which
 *   stdio_wire.c       lines to and from a program
 *   http_wire.c        POSTs, and answers as JSON or as a stream of events
 *   talk.c             the envelope of a request, and what its answer is
 *   era_of_server.c    which era a server speaks, and the handshake of the older one
 *   remote_tools.c     the tools of a server, remembered for a while; arguments that are headers
 *   too
 *   remote_ask.c       questions of servers, and their answers
 *   remote_step.h      what the tools of steps share
 *   outcome.c          what a server answers, as a result of a step
 *   remote_steps.c     mcp.call
 *   remote_task.c      mcp.look, mcp.answer, mcp.keep, mcp.cancel; what servers offer
 *   held.c             calls of the older era that wait for an answer of ours
 * / */
#ifndef PAWL_TOOL_REMOTE_INT_H
#define PAWL_TOOL_REMOTE_INT_H

#include "tool/remote/mcp_servers.h"
#include "tool/tool_int.h"

#define MODERN_VERSION  "2026-07-28"
#define LEGACY_VERSION  "2025-11-25" /* the newest of those with a handshake */
#define TASKS_EXTENSION "io.modelcontextprotocol/tasks"
#define REMOTE_TEXT_MAX ((size_t)4 << 20) /* one message of a server */
#define LINKS_MAX       8u                /* programs of one server at once */
#define HELD_MAX        64u               /* calls that wait for people in the older era */
#define SLICE_WAIT_MS   50                /* how often a wait looks whether it has to end */
#define WORDS_MAX       600

enum remote_era { ERA_UNKNOWN, ERA_MODERN, ERA_LEGACY };

/* Why there is no result. */
enum remote_fault {
    FAULT_NONE,
    FAULT_UNREACHABLE, /* the server has not seen the request */
    FAULT_BROKEN,      /* it may have, and there is no answer */
    FAULT_LATE,        /* the same, because the time is over */
    FAULT_STOPPED,     /* the same, because we stop or the step was ended */
    FAULT_ERROR,       /* it answers with an error of JSON-RPC */
    FAULT_HTTP,        /* ... or with a status of HTTP: 401, 403, ... */
    FAULT_INVALID,     /* ... or with what is no answer */
    FAULT_QUESTION,    /* it asks something first */
    FAULT_MEMORY,
};

/* Whom we talk to: a program, or an address. */
struct remote_peer {
    enum remote_era era;
    char version[16];
    char session[132];   /* of HTTP in the older era; "": none */
    bool has_task_calls; /* of the older era: its tools may be called as tasks */
};

/* A program that runs, for one talk at a time. */
struct remote_link {
    struct running running;
    int input, output, errors; /* ours; -1: it does not run */
    uint64_t number;           /* no other program of this process has it */
    bool is_used, has_tasks;   /* has_tasks: it knows a task that we shall ask for */
    struct remote_peer peer;
    struct buf unread;
    char tail[256]; /* the end of what it said on stderr */
    size_t tail_size;
};

struct remote_server {
    const struct remote_rule *rule;
    struct remote_peer peer; /* over HTTP; guarded by the lock */
    struct remote_link links[LINKS_MAX];
    struct buf tools; /* the array of tools/list, and until when it holds; guarded by the lock */
    int64_t tools_until_ms;
};

struct remote {
    struct toolbox *toolbox;
    pthread_mutex_t lock;
    struct remote_server *servers;
    uint32_t count;
    struct remote_held *held; /* held.c; guarded by the lock */
    uint32_t held_count;
    uint64_t last_number;
    _Atomic uint64_t last_id; /* of a request */
    _Atomic bool is_stopping;
};

struct remote_talk {
    struct remote *remote;
    struct remote_server *server;
    struct remote_link *link; /* NULL: over HTTP */
    struct remote_peer peer;  /* as it is known now */
    struct scope *scope;
    const struct call *call;    /* whose stop ends it; NULL: none */
    struct remote_held *held;   /* a call that may wait for people; NULL: it may not */
    const struct node *answers; /* older era: {TEXT: answer} to questions that come again */
    int64_t left_ms;            /* for all that is still to come */
    bool is_last_word;          /* it ends, and says so: nothing stops that but its time */
    int64_t paused_ms;          /* of this request: while people thought */
    /* What came of it: */
    enum remote_fault fault;
    char words[WORDS_MAX];
    int64_t code;            /* FAULT_ERROR */
    long status;             /* of HTTP */
    const struct node *data; /* FAULT_ERROR: its data; FAULT_QUESTION: the params */
};

struct remote_request {
    const char *method;
    str params; /* members, without braces */
    str name;   /* what Mcp-Name says; data NULL: no such header */
    str key;    /* the step's idempotency key; data NULL: the request has none */
    struct remote_pair {
        struct remote_pair *next;
        str name, value;
    } * headers; /* Mcp-Param-... */
    bool is_notification;
};

/* talk.c */
bool talk_begin(struct remote_talk *talk, struct call *call, str server);
bool talk_begin_by_link(struct remote_talk *talk, struct call *call, str server, uint64_t link);
void talk_end(struct remote_talk *talk);
bool talk_request(struct remote_talk *talk, const struct remote_request *request,
                  struct node **result); /* false: `fault` says why */
bool talk_once(struct remote_talk *talk, const struct remote_request *request,
               struct node **result); /* the same, in the era that the peer has */
bool talk_fails(struct remote_talk *talk, enum remote_fault fault, const char *format, ...)
    __attribute__((format(printf, 3, 4)));         /* always false */
bool talk_is_over(const struct remote_talk *talk); /* stopped by someone */
/* A message that came: true if it is the answer to `id`. A request of the server is answered, or
 * sets the fault. */
bool talk_take(struct remote_talk *talk, uint64_t id, struct node *message);

/* era_of_server.c */
bool era_find(struct remote_talk *talk);
void era_forget(struct remote_talk *talk);

/* The wires send one message and wait for the answer to `id` (0: none is expected). */
bool http_exchange(struct remote_talk *talk, const struct remote_request *request, str body,
                   uint64_t id, struct node **message);
bool http_tell(struct remote_talk *talk, str body); /* a notification or an answer of ours */
bool stdio_exchange(struct remote_talk *talk, str body, uint64_t id, struct node **message);
bool stdio_tell(struct remote_talk *talk, str body);
bool stdio_start(struct remote_talk *talk);
void stdio_end(struct remote *remote, struct remote_link *link);

/* mcp_servers.c */
struct remote_server *server_find(struct remote *remote, str name);
bool link_acquire(struct remote_talk *talk, uint64_t number); /* 0: any of them */
void link_release(struct remote_talk *talk);

/* remote_tools.c */
bool tools_list(struct remote_talk *talk, struct node **out); /* an array, in the talk's scope */
bool tools_find(struct remote_talk *talk, str name, const struct node **out); /* NULL: not listed */
void tools_forget(struct remote_talk *talk);
bool tools_headers(struct remote_talk *talk, const struct node *tool, const struct node *args,
                   struct remote_request *request);

/* remote_ask.c: {"server":...,"message":...,"requestedSchema":...} of a question, and what an
 * answer to it is on the wire. */
bool ask_is_known(const struct node *request);
void ask_print(str server, str tool, str key, const struct node *params, struct buf *out);
void ask_answer(const struct node *params, const struct node *given, bool is_declined,
                struct buf *out);

/* held.c */
struct remote_held;
bool held_question(struct remote_talk *talk, const struct node *params, str *answer);
void held_end_all(struct remote *remote);
struct held_result {
    bool is_question;
    str text; /* the params of the question, or the result; in the caller's scope */
};
bool held_begin(struct call *call, const struct remote_talk *talk, str name, str params,
                uint64_t *number, struct held_result *out, struct remote_talk *why);
bool held_answer(struct call *call, uint64_t number, str answer, struct held_result *out,
                 struct remote_talk *why);
void held_drop(struct remote *remote, uint64_t number);

#endif
