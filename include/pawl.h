/* pawl.h - durable state machines, flows and code, in one library.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Open a store, define processes, create instances, fire their actions. Every
 * call that returns PAWL_OK has already reached the disk; one made inside a transaction
 * of the host's (pawl_attach()) reaches it with the host's COMMIT.
 *
 * Ownership: arguments are borrowed for the call. What comes back with a
 * pawl_..._close() or pawl_free() is the caller's. Names in results (new_state,
 * from_state, ...) live until pawl_close(), unless said otherwise.
 * Threads: a pawl may be shared by threads, but for an attached one; anything else
 * belongs to one thread at a time.
 * Structs: fill argument structs with designated initialisers; zero is the
 * default of every member. Texts are UTF-8 and end in NUL; JSON values are
 * passed as their text and kept byte for byte. NULL is allowed where it says so;
 * anywhere else it is INVALID_REQUEST.
 */
#ifndef PAWL_H
#define PAWL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define PAWL_API __attribute__((visibility("default")))
#else
#define PAWL_API
#endif

#define PAWL_VERSION "0.1.0"

/* ---- Statuses ---------------------------------------------------------- */

/* Every status: its number, its token on every surface, its HTTP status and
 * its meaning. The enum, pawl_status_name(), the HTTP answers and
 * docs/reference/status.md are made from this list. Numbers are never reused. */
#define PAWL_STATUS_MAP(X)                                                                         \
    X(OK, 0, "ok", 200, "done, and durable")                                                       \
    X(INVALID_REQUEST, 1, "invalid-request", 400, "the request is invalid in any state")           \
    X(INVALID_QUERY, 2, "invalid-query", 400, "unknown filter, or invalid filter value")           \
    X(UNAUTHENTICATED, 3, "unauthenticated", 401, "a token is needed")                             \
    X(FORBIDDEN, 4, "forbidden", 403, "the caller may not do this")                                \
    X(NOT_KNOWN, 5, "not-known", 404, "no such definition, instance, step or store")               \
    X(NOT_ALLOWED, 6, "not-allowed", 405, "the address does not take this method")                 \
    X(TERMINAL, 7, "terminal", 409, "the instance has ended")                                      \
    X(INVALID_TRANSITION, 8, "invalid-transition", 409, "the state does not declare the action")   \
    X(REASON_REQUIRED, 9, "reason-required", 409, "the transition wants a reason")                 \
    X(GUARD_NOT_SATISFIED, 10, "guard-not-satisfied", 409, "the guard was not asserted")           \
    X(NO_CANCEL_TRANSITION, 11, "no-cancel-transition", 409, "no way to cancel from this state")   \
    X(NOT_AWAITING, 12, "not-awaiting", 409, "nothing waits for this")                             \
    X(LEASE_LOST, 13, "lease-lost", 409, "the lease has expired or is another worker's")           \
    X(CONFLICT, 14, "conflict", 409, "another change came first; read again")                      \
    X(PAUSED, 15, "paused", 409, "the instance is paused")                                         \
    X(TOO_LARGE, 16, "too-large", 413, "over a limit of size")                                     \
    X(INVALID_DECLARATION, 17, "invalid-declaration", 422, "the inline declaration is not valid")  \
    X(INVALID_DEFINITION, 18, "invalid-definition", 422, "the definition is not valid")            \
    X(STORAGE_FAILURE, 19, "storage-failure", 503, "the store failed; nothing has changed")        \
    X(OUTCOME_UNKNOWN, 20, "outcome-unknown", 503, "the store failed in a commit; read again")     \
    X(OVERLOADED, 21, "overloaded", 503, "too much at once; try later")                            \
    X(IN_USE, 22, "in-use", 503, "another process owns the store")                                 \
    X(NO_MEMORY, 23, "no-memory", 503, "out of memory, or over the limit of one request")

typedef enum pawl_status {
#define X(name, code, token, http, text) PAWL_##name = (code),
    PAWL_STATUS_MAP(X)
#undef X
} pawl_status;

/* The token of a status, e.g. "invalid-transition". Never NULL. */
PAWL_API const char *pawl_status_name(pawl_status status);

/* What went wrong, in words: expected, found, where. Filled by every call that
 * does not return PAWL_OK; may be passed as NULL. */
typedef struct pawl_error {
    pawl_status status;
    char message[508];
} pawl_error;

/* ---- Opening a store --------------------------------------------------- */

typedef struct pawl pawl;

typedef enum pawl_log_level { PAWL_LOG_DEBUG, PAWL_LOG_INFO, PAWL_LOG_WARN, PAWL_LOG_ERROR } pawl_log_level;

/* Zero is the default of every member, and options of NULL are all zero: a shared store, no
 * threads, the real clock, no exec, no log, libc's memory, and a line on stderr before abort(). */
typedef struct pawl_options {
    bool own;              /* own the store: rows may lag behind the log, no other process writes */
    const char *address;   /* with own: the owner's address, e.g. "http://127.0.0.1:7295" */
    uint32_t workers;      /* with own: threads that drain, fire timers and run tools; 0: the host
                              calls pawl_run_due() */
    bool test_clock;       /* a virtual clock that only pawl_test_advance() moves */
    bool allow_exec;       /* flows may use the exec tool */
    void (*log)(void *context, pawl_log_level level, const char *event, const char *text); /* NULL:
                              nothing is logged; from any thread of pawl's; texts are borrowed */
    void *log_context;
    void *(*resize)(void *context, void *block, size_t old_size, size_t new_size); /* the host's
                              allocator for all that pawl itself keeps (SQLite, libcrypto and
                              libyaml have theirs), from any thread; new_size 0 frees; NULL:
                              realloc and free */
    void *resize_context;
    void (*panic)(void *context, const char *text); /* a promise of pawl's own is broken and its
                              memory cannot be trusted: told here instead of stderr, then abort().
                              It may end the program its own way; it must not call pawl */
    void *panic_context;
    const char *tools;     /* JSON or YAML: which tools flows may call and for whom, as `tools`
                              in pawl.yaml (docs/config.md); NULL: exec as said above, no http */
    uint32_t max_entries;  /* entries of an instance; at this limit it is paused; 0: 10,000,000 */
    uint32_t max_live_steps; /* of an instance at once, likewise; 0: 100,000 */
    const char *secret;    /* with own: what callers at `address` must send as their bearer token;
                              written to FILE-secret (0600) until pawl_close(); NULL: none */
    uint32_t shards;       /* of a new store: 1, 2, 4, ... or 1024; each has a log of its own, and
                              commits by itself. Fixed when it is made; 0: one, or what it has */
    const char *retention; /* JSON or YAML: {NAME: {after_end, then}}, as `retention` in pawl.yaml;
                              comes before what definitions say; NULL: they alone decide */
} pawl_options;

/* Open the store at `url`: "sqlite:FILE" (created if missing) or "memory:"; NULL is
 * "sqlite:pawl.db". `options` may be NULL. On PAWL_OK *out is the caller's, to pawl_close(). Fails
 * with INVALID_REQUEST (the url), IN_USE (its owner is named), STORAGE_FAILURE, NO_MEMORY. *out is
 * NULL then. */
PAWL_API pawl_status pawl_open(pawl **out, const char *url, const pawl_options *options,
                               pawl_error *error);

/* Join the host's own SQLite connection: pawl's tables (pawl_...) lie in the host's file, and what
 * is called inside a transaction of the host's is part of it: its COMMIT makes the host's rows and
 * pawl's entries durable together, its ROLLBACK takes both back, and pawl knows it.
 *
 * Inside a transaction PAWL_OK means "part of your transaction", not "durable". A call that is
 * refused or fails undoes itself alone; if SQLite had to roll back everything, the message says so
 * and every call is refused until you begin again. Begin with BEGIN IMMEDIATE: a transaction that
 * has read before another one wrote gets OVERLOADED, as does one that meets another writer for
 * longer than your sqlite3_busy_timeout(). Outside of a transaction each call commits its own.
 *
 * The file must be in WAL mode; application_id and user_version stay yours, other settings are
 * never touched, and `synchronous` decides, as for your rows, what a power cut may take. No owner
 * can be beside an attachment; other shared writers (the command line) take turns with your
 * transactions. Unlike any other pawl, this one belongs to the thread that uses the connection.
 * Tools are not run here, timers fire when you call pawl_run_due(). pawl_close() comes before
 * sqlite3_close(), outside of a transaction, and leaves the connection to you.
 *
 * `own`, `workers` and `address` must be zero. Fails with INVALID_REQUEST (names what is wrong with
 * the connection), IN_USE (its owner is named), STORAGE_FAILURE, NO_MEMORY. */
struct sqlite3;
PAWL_API pawl_status pawl_attach(pawl **out, struct sqlite3 *connection, const pawl_options *options,
                                 pawl_error *error);

/* A store beside this one by its name ("default": this one itself), made before by
 * pawl_call(p, "store.put", "{\"store\":NAME}"): a file FILE-stores/NAME.db of its own beside
 * sqlite:FILE, which pawl_open() opens as well; beside memory: it lives as long as `p`. Stores
 * share nothing. It is opened with the options of `p` (tools and code types are registered for
 * each), driven by itself, and closed with `p`: pawl_close() lets it be. Fails with NOT_KNOWN,
 * IN_USE, STORAGE_FAILURE, NO_MEMORY. */
PAWL_API pawl_status pawl_store(pawl *p, const char *name, pawl **out, pawl_error *error);

/* Finish what was accepted, flush, release. NULL is allowed. */
PAWL_API void pawl_close(pawl *p);

/* Release what a call handed over as text (pawl_get(), pawl_call(), ...). */
PAWL_API void pawl_free(pawl *p, void *text);

/* ---- Definitions ------------------------------------------------------- */

typedef struct pawl_defined {
    char name[129];
    uint32_t version;
    bool is_new;          /* false: this very text is already the newest version */
    char sha256[65];      /* of the bytes as supplied */
} pawl_defined;

/* Put a definition, JSON or YAML, that names itself (`name:`). `out` may be NULL.
 * Fails with INVALID_DEFINITION, TOO_LARGE, and the store's failures. */
PAWL_API pawl_status pawl_define(pawl *p, const char *text, size_t size, pawl_defined *out,
                                 pawl_error *error);

/* ---- Instances --------------------------------------------------------- */

/* An idempotency key is any text of 1..128 bytes. A call that was accepted with
 * it is not done again for 7 days: the same call gets the same answer, another
 * one with the same key CONFLICT. So a call that ended in OUTCOME_UNKNOWN, or
 * whose answer was lost, can simply be repeated. */

typedef struct pawl_id {
    char text[27]; /* 26 characters; later ids sort later */
} pawl_id;

typedef struct pawl_create_args {
    const char *definition;  /* "name" (newest) or "name@version"; or else: */
    const char *declaration; /* an inline machine as JSON, kept byte for byte */
    const char *input;       /* JSON */
    const char *actor_ref;
    const char *subject_ref;
    const char *correlation_id;
    const char *labels;      /* a JSON object of strings */
    const char *instance_metadata; /* JSON, not empty */
    const char *instantiated_at;   /* RFC 3339, not in the future */
    bool test;               /* its timers fire only by pawl_test_fire_timer() */
    const char *idempotency_key; /* see above */
    bool singleton; /* of a definition: one about this subject_ref that has not ended is returned */
} pawl_create_args;

/* Create an instance of a definition, or of an inline declaration.
 * Fails with INVALID_DECLARATION, INVALID_REQUEST, NOT_KNOWN, and the store's failures. */
PAWL_API pawl_status pawl_create(pawl *p, const pawl_create_args *args, pawl_id *out,
                                 pawl_error *error);

typedef struct pawl_fire_args {
    const char *action;
    const char *actor_ref;
    bool guard_satisfied;
    const char *fired_at;   /* RFC 3339, neither in the future nor before the creation */
    const char *reason;
    const char *payload;    /* JSON */
    uint64_t expected_sequence; /* 0: any */
    const char *idempotency_key;
} pawl_fire_args;

typedef struct pawl_fired {
    const char *new_state;
    uint64_t sequence_number;
    char transition_id[48];
} pawl_fired;

/* Fire an action of a machine. `out` may be NULL. Fails with INVALID_REQUEST, NOT_KNOWN, TERMINAL,
 * INVALID_TRANSITION (the message lists the legal actions), REASON_REQUIRED,
 * GUARD_NOT_SATISFIED, PAUSED, CONFLICT, and the store's failures. */
PAWL_API pawl_status pawl_fire(pawl *p, const char *id, const pawl_fire_args *args,
                               pawl_fired *out, pawl_error *error);

typedef struct pawl_batch_fire {
    const char *id;        /* in */
    pawl_fire_args args;   /* in */
    pawl_status status;    /* out, of this fire alone */
    pawl_fired fired;      /* out, where status is PAWL_OK */
} pawl_batch_fire;

/* Fire many actions, in order, in one commit. Each has its own status; the call
 * itself fails only as a whole (the store's failures), and then nothing happened. */
PAWL_API pawl_status pawl_fire_batch(pawl *p, pawl_batch_fire *fires, size_t count,
                                     pawl_error *error);

/* Cancel by the declared transition into a terminal state of kind cancel. `actor_ref`,
 * `reason` and `out` may be NULL. Fails with NOT_KNOWN, TERMINAL, NO_CANCEL_TRANSITION, and the
 * store's failures. */
PAWL_API pawl_status pawl_cancel(pawl *p, const char *id, const char *actor_ref,
                                 const char *reason, pawl_fired *out, pawl_error *error);

/* Send a signal to a flow or code instance. `payload` is JSON or NULL, `actor_ref` may be NULL.
 * Fails with NOT_KNOWN, TERMINAL, NOT_AWAITING, PAUSED, and the store's failures. */
PAWL_API pawl_status pawl_signal(pawl *p, const char *id, const char *name, const char *payload,
                                 const char *actor_ref, pawl_error *error);

/* The name of the present state. */
PAWL_API pawl_status pawl_current(pawl *p, const char *id, const char **out, pawl_error *error);

/* The exact bytes of the declaration or definition that the instance was created with, into *out
 * (freed with pawl_free(); a NUL follows them) and their number into *size, which may be NULL.
 * Fails with INVALID_REQUEST, NOT_KNOWN, STORAGE_FAILURE, NO_MEMORY. */
PAWL_API pawl_status pawl_declaration(pawl *p, const char *id, char **out, size_t *size,
                                      pawl_error *error);

/* ---- History ----------------------------------------------------------- */

typedef struct pawl_history pawl_history;

typedef struct pawl_history_query {
    const char *transition_id, *from_state, *to_state, *action, *actor_ref;
    uint64_t sequence_from, sequence_to; /* inclusive; 0: open */
    const char *fired_after, *fired_before; /* RFC 3339, inclusive */
} pawl_history_query;

/* Strings of an entry live until the next call on its pawl_history. */
typedef struct pawl_entry {
    uint64_t sequence_number;
    const char *transition_id, *from_state, *to_state, *action;
    const char *actor_ref; /* NULL if it was not supplied */
    const char *reason, *payload; /* NULL if absent; payload is JSON */
    const char *step;      /* of a flow's entries, else NULL */
    uint32_t attempt;
    int64_t fired_at_ms;   /* Unix time in milliseconds: as supplied, or the wall clock */
    int64_t recorded_at_ms; /* by the store's clock, which never goes back */
    bool guard_satisfied;
    char hash[65];
} pawl_entry;

/* Read the history, oldest first, up to the last entry there is now. `query` may be NULL for all
 * of it. Entries are read as pawl_history_next() asks for them: a long history needs no more
 * memory than a short one. To read a part of it, stop early, and go on later with sequence_from.
 * Close it before pawl_close().
 * Fails with INVALID_REQUEST, NOT_KNOWN, INVALID_QUERY, STORAGE_FAILURE. */
PAWL_API pawl_status pawl_history_open(pawl *p, const char *id, const pawl_history_query *query,
                                       pawl_history **out, pawl_error *error);

/* The next entry into *out; false at the end or on an error, which
 * pawl_history_close() then reports. */
PAWL_API bool pawl_history_next(pawl_history *history, pawl_entry *out);

/* Close, and tell whether all was read without an error. NULL is allowed. */
PAWL_API pawl_status pawl_history_close(pawl_history *history, pawl_error *error);

/* ---- Tools ------------------------------------------------------------- */

/* What a tool is given. All of it is borrowed for the call. */
typedef struct pawl_tool_call {
    const char *tool, *args; /* args is a JSON object */
    const char *instance_id, *step, *idempotency_key;
    uint32_t attempt;
    const char *created_by; /* who created the instance, in whose name it runs; NULL: not said */
    const char *traceparent; /* W3C trace context of the request that created it; NULL: none */
} pawl_tool_call;

typedef struct pawl_tool_answer pawl_tool_answer;

/* Answer with a result or an error (JSON texts, copied); the last one counts. A
 * tool that answers nothing has the result null. */
PAWL_API void pawl_answer_result(pawl_tool_answer *answer, const char *json);
PAWL_API void pawl_answer_error(pawl_tool_answer *answer, const char *json);

typedef void (*pawl_tool_fn)(void *context, const pawl_tool_call *call, pawl_tool_answer *answer);

/* Make `fn` the tool `name`. It may be called from several threads at once.
 * Fails with INVALID_REQUEST (a bad or taken name), NO_MEMORY. */
PAWL_API pawl_status pawl_tool_register(pawl *p, const char *name, pawl_tool_fn fn, void *context,
                                        pawl_error *error);

/* ---- A host with its own loop, and tests ------------------------------- */

/* When the next thing falls due, in milliseconds from now: 0 at once, -1 never. */
PAWL_API int64_t pawl_next_due(pawl *p);

/* A descriptor for the host's poll(): readable while pawl_run_due() has something to do, because a
 * timer has fallen due or because another thread made work. It is pawl's: neither read nor close
 * it, it goes with pawl_close(). pawl_run_due() silences it. With `workers` it is never readable:
 * they do it. A shared store learns of timers that other processes arm only when pawl_run_due()
 * looks. -1 if the system has no descriptors left. */
PAWL_API int pawl_fd(pawl *p);

/* Do everything that is due: fire timers, run ready steps, flush rows. */
PAWL_API pawl_status pawl_run_due(pawl *p, pawl_error *error);

/* The same, but a bounded amount of work: after about `budget` events and tool calls it returns.
 * If more is due, pawl_next_due() is 0 and pawl_fd() readable. A budget of 0 is no bound. */
PAWL_API pawl_status pawl_run_due_within(pawl *p, uint32_t budget, pawl_error *error);

/* Move the test clock; answers when nothing more is due. Only with .test_clock. */
PAWL_API pawl_status pawl_test_advance(pawl *p, int64_t by_ms, pawl_error *error);

/* Fire a timer of a `test: true` instance by its name. Fails with NOT_AWAITING. */
PAWL_API pawl_status pawl_test_fire_timer(pawl *p, const char *id, const char *name,
                                          pawl_error *error);

/* ---- Trees that another program runs -------------------------------------- */

/* Pure functions over JSON, without a store. A tree of actions under do, dopar and try (JSON or
 * YAML) becomes a job: a text that may be kept anywhere and gone on with later, here or elsewhere.
 * Its first members are {"status": pending, success or failure, "settled", "context", "leaves":
 * [{node, status, output}]}: a dopar of which a branch has failed is a failure at once, and settled
 * when its other branches have ended. Fails with INVALID_DEFINITION (where, and why), NO_MEMORY. */
PAWL_API pawl_status pawl_plan_make(const char *ast, char **job, pawl_error *error);

/* Take results, in any order: a list of
 * {"node":N,"status":"success"|"failure"|"timeout","output":JSON}, or NULL for none (the first
 * time). *next is the job from then on, *actions what is to be done now:
 * [{"node","action","payload"}], each handed out once. Nodes are numbered depth first from 0, a try
 * having three (forms, rescue, finally). A failed action is not tried again: that is the runner's.
 * Each call reads and writes the whole job, so it takes as long as the job is. Of a wide job pass
 * the results that have come meanwhile in one call: a tenth of them at a time costs ten calls, and
 * one at a time as many calls as there are actions. A job of up to 16 MiB is never NO_MEMORY,
 * unless the machine has none: reading takes up to 64 bytes for each byte of a job of many small
 * values. Fails with INVALID_REQUEST (an unknown node, one that is not pending, no job),
 * NO_MEMORY. */
PAWL_API pawl_status pawl_plan_restart(const char *job, const char *results, char **next,
                                       char **actions, pawl_error *error);
PAWL_API void pawl_plan_free(char *text); /* NULL is allowed */

/* ---- Graphs that the caller runs ------------------------------------- */

/* What the runner of a graph knows when a step is over. All texts are JSON; steps are given by
 * their names, or by their keys under `steps`. */
typedef struct pawl_next_args {
    const char *step;    /* the step that is over; NULL: none yet, the flow begins */
    const char *result;  /* what it came to; NULL: null */
    const char *live;    /* ["b","c"]: steps under way beside it; NULL: none */
    const char *joined;  /* ["end"]: steps at which others have arrived and wait; NULL: none */
    const char *input;   /* the flow's input, an object; NULL: {} */
    const char *context; /* what steps put there, an object; NULL: {} */
    const char *results; /* {"a": 1}: what earlier steps came to, as far as templates and conditions
                            name them; NULL: none */
} pawl_next_args;

/* Which steps of a graph (JSON or YAML) follow a step with its result. A pure function, without a
 * store: the same that the engine runs. *next is {"status": pending, success or failure, "steps":
 * [{name, kind, tool, args}], "joined": [...], "context": {...}, "result" or "error" at the end}:
 * `joined` and `context` are for the next call. No step and status pending: others are waited for.
 * A step that has failed is the runner's. Fails with INVALID_DEFINITION (where, and why),
 * INVALID_REQUEST (an unknown step, no JSON), NO_MEMORY. */
PAWL_API pawl_status pawl_next_steps(const char *flow, const pawl_next_args *args, char **next,
                                     pawl_error *error); /* *next: to pawl_plan_free() */

/* ---- Everything else, by name ------------------------------------------ */

/* Call an operation of the table (docs/reference) by its name with a JSON object, which may
 * have a member idempotency_key if the operation changes something;
 * *out is the JSON answer, the caller's, to pawl_free(). On a rejection *out is NULL.
 * `input_json` may be NULL for an empty object. */
PAWL_API pawl_status pawl_call(pawl *p, const char *operation, const char *input_json, char **out,
                               pawl_error *error);

#ifdef __cplusplus
}
#endif

#include <pawl_turn.h> /* code: processes written in C */

#endif
