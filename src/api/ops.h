/* ops.h - every operation, once. HTTP routes, CLI verbs, pawl_call() and the reference are read
 * from this table, which tools/gen-ops makes from describe/ (describe/README.md says how). Adding
 * an operation is one description and one function.
 *
 * An input is one JSON object: the members of the body with the path's and the query's
 * parameters beside them. Where a surface has them apart (HTTP), it hands them over apart, so
 * that a path parameter in the body is an unknown field. Types and unknown fields are checked
 * here, from the table, before the handler runs. */
#ifndef PAWL_API_OPS_H
#define PAWL_API_OPS_H

#include "base/buf.h"
#include "base/node.h"
#include "base/scope.h"
#include "base/waiter.h"
#include <pawl.h>

enum op_place { IN_BODY, IN_PATH, IN_QUERY };
enum op_type { OP_STRING, OP_INTEGER, OP_BOOL, OP_OBJECT, OP_JSON /* any value */ };

struct op_param {
    const char *name;
    enum op_place place;
    enum op_type type;
    bool required;
    const char *summary;
};

#define OP_WRITES 1u     /* changes the store */
#define OP_TEXT_BODY 2u  /* the body is a text (a definition), the member `text` */
#define OP_RAW_ANSWER                                                                              \
    4u /* the handler prints the whole answer; of others, the members of an object */
#define OP_KEY_IN_RECORD 256u /* writes a record that an idempotency key rides in; others that write
                              have their answer kept */
#define OP_NO_KEY 512u    /* its answer must not be kept (a secret): it takes no idempotency key */
#define OP_ANY_QUERY 8u  /* unknown query keys are the handler's to name (label.K, invalid-query) */
#define OP_QUICK 32u     /* looks at one thing: not worth handing to another thread */
#define OP_FIXED 64u     /* what is there never changes: worth a tag */
#define OP_FIGURES 128u  /* what is counted; a surface adds what it has counted itself */
#define OP_FIRST_STORE 1024u /* about all stores of a server: the first answers, by its tokens */
#define OP_ASYNC 2048u   /* with a waiter it only starts, and does not block the calling thread */
#define OP_STREAM 16u    /* the answer says where a stream begins; a surface that can, goes on */

/* Which shard of a store of several it concerns (shards.h). */
enum op_where {
    AT_INSTANCE, /* that of instance_id or step_id */
    AT_KEYED,    /* that of the idempotency key; without one, each in turn */
    AT_ALARM,    /* that of alarm_id */
    AT_HOME,     /* the first */
    AT_ALL,      /* each for itself, merged by the handler */
    AT_HERE,     /* none: the process, or what the handler finds in its input */
};

/* Who calls. */
struct op_principal {
    str name;   /* data NULL: a local caller, who may do everything */
    str scopes; /* "read,write:order" */
    str actor;  /* who acts with it; data NULL: the actor that a call names */
};

/* Where a stream of entries begins (events.h reads on from there). */
struct shard_vector;
struct op_stream {
    const struct shard_vector *after; /* entries behind it; in the scope */
    char instance[27]; /* of this instance; "": of all */
};

/* An answer that comes in pieces, because the whole may be larger than memory. `read` appends
 * about OP_PIECE bytes; *is_last: they are the last. When it fails, the pieces so far are no
 * answer. `close` frees it, also before the end.
 *
 * Of a live answer (`sleep` is there) the next piece may not exist yet. Then `read` appends
 * nothing, and `sleep` is called: true, and `wake` will be called once, when it is worth reading
 * again, perhaps by another thread before this returns; false: read again now. */
struct op_pieces {
    pawl_status (*read)(struct op_pieces *pieces, struct scope *scope, struct buf *out,
                        bool *is_last);
    void (*close)(struct op_pieces *pieces);
    bool (*sleep)(struct op_pieces *pieces, void (*wake)(void *context), void *context);
};
#define OP_PIECE ((size_t)64 << 10)

/* Headers of a request and of its answer, where the surface has them; for rows that other surfaces
 * mount (surface/http/http.h). A value that is asked for lives as long as the request. */
struct op_headers {
    str (*get)(const void *context, const char *name); /* data NULL: it has none */
    const void *context;
    bool is_tls; /* it came within TLS */
};
struct op_header {
    const char *name, *value;
    const struct op_header *next;
};

/* The steps that an answer gives to a worker; they live in the scope. */
struct op_given {
    const struct claimed *steps;
    uint32_t count;
};

/* What an answer for a browser needs besides its bytes; zeros: nothing. */
struct op_page {
    const char *policy; /* its Content-Security-Policy; it is also asked for again at each use */
    str token;          /* the browser keeps this token; "": it forgets it */
};

struct op_call {
    pawl *p;
    struct scope *scope;
    const struct op *op;
    struct node *input;     /* an object: everything, checked against op->params */
    const uint8_t *key;     /* idempotency, for handlers of OP_KEY_IN_RECORD; NULL: none */
    str key_text;           /* as it came; data NULL: none */
    bool is_forwarded;      /* by another node: it goes no further */
    enum {
        ENTERED_NOT,
        ENTERED_ONE,
        ENTERED_ALL,
        ENTERED_SOME
    } entered;         /* shards that this node
                               owns as long as the call runs (api/station.h) */
    pawl_status again; /* it is to be run again after this, by a thread that may wait; OK: not */
    struct roaming *roaming; /* a claim that looks at other nodes too (api/roaming.c) */
    bool is_near;            /* in: this thread waits for no other node */
    bool
        is_elsewhere; /* out, with is_near: nothing was done, or `again` says what; go on farther */
    const bool *own_shards; /* of a call about every shard: these alone; NULL: all */
    str part;               /* forwarded: the numbers of these shards; data NULL: the whole call */
    int http_status;        /* of success; the handler may change it (200 or 201) */
    const char *content_type; /* default application/json */
    struct op_stream stream;  /* OP_STREAM: out */
    struct op_principal who;
    const struct waiter *waiter;    /* NULL: it waits where it is called */
    struct op_wait *wait;           /* out: what goes on later */
    bool *waits;                    /* out: it has to wait; the caller's, of op_start() */
    struct op_given given;          /* out */
    struct op_pieces *pieces; /* out: the answer; the handler has put nothing into its buffer */
    struct op_headers request_headers;      /* get NULL: there are none */
    const struct op_header *answer_headers; /* out; in the scope; of a live answer static */
    const char *lacks;        /* out: of a 403, the scope that the token lacks; NULL: not told */
    bool takes_pieces;        /* the caller reads on by itself what is longer than one piece */
    struct op_page page;      /* out */
};

struct op {
    const char *name;       /* "instance.fire" */
    const char *method, *path; /* "POST", "/v1/instances/{instance_id}/fire" */
    unsigned flags;
    int http_status;        /* of success */
    const char *summary;
    const struct op_param *params; /* ending in a zero row */
    pawl_status (*handle)(struct op_call *call, struct buf *out);
    const char *scope; /* what a token must have: one of OP_SCOPES; NULL: no token is enough */
    enum op_where where;
    /* Of a mounted row: does this request surely not wait? NULL: by its flags. */
    bool (*is_quick)(const struct op_headers *headers);
};

/* "none": needs no token; "any": needs a token of any scope. */
#define OP_SCOPES "none", "any", "read", "write", "work", "define", "test", "admin"

extern const struct op ops[];      /* ending in a zero row */
const struct op *op_find(str name); /* NULL: not found */
const struct op_param *op_param_find(const struct op *op, str name); /* NULL: unknown */

/* How a request reached us. `body` NULL: none. pairs: path and query parameters, decoded. */
struct op_pair {
    str name, value;
    enum op_place place;
};
struct op_request {
    const struct op_pair *pairs;
    uint32_t pair_count;
    struct node *body;     /* parsed; for OP_TEXT_BODY NULL */
    str text;              /* OP_TEXT_BODY: the body's bytes */
    str key;               /* idempotency; data NULL: none. Ignored unless the operation writes */
    str trace;             /* W3C traceparent; data NULL: none; kept in entries if it is valid */
    struct op_principal who;
    const struct waiter *waiter; /* it may wait without a thread (below); NULL: it may not */
    bool takes_pieces;     /* the caller reads answer.pieces */
    struct op_headers headers;
    bool is_forwarded; /* by another node, which has authenticated its caller */
    str part;          /* then: the shards that it is about; data NULL: the whole call */
};
struct op_answer {
    int http_status;
    const char *content_type;
    struct op_stream stream;
    struct op_pieces *pieces; /* the rest of the answer, the caller's to close; NULL: none */
    struct op_given given;
    struct op_page page;
    const struct op_header *headers;
    const char *lacks;
};

/* ---- Running an operation ---- */

/* Merge what came apart and check it against the table. Rejections from the table alone. */
pawl_status op_prepare(pawl *p, const struct op *op, const struct op_request *request,
                       struct scope *scope, struct op_call *out);

/* Run a call that was prepared. Without a waiter it has ended when this returns: *waits is false,
 * and on OK the answer is in `out`. With a waiter, *waits may be true: the operation holds no
 * thread. Then:
 *
 * (1) `wake` is called once. It may be called before this returns, and by another thread.
 * (2) After it, or after wait->left_ms, op_go_on() has to be called. It may have to wait again.
 * (3) Only one thread touches the call at a time. A caller that lets `wake` start op_go_on() on
 *     another thread touches nothing of the call after this; one that still has to queue the call
 *     makes `wake` leave a note instead.
 * (4) With is_stopping, op_go_on() waits for nothing but a commit that is under way. */
struct op_wait {
    pawl_status (*go_on)(struct op_call *call, bool is_stopping, struct buf *out);
    int64_t left_ms; /* 0: not before it is woken */
    bool is_slow;    /* when it is woken: to go on may hold up a thread */
};
pawl_status op_start(struct op_call *call, struct buf *out, struct op_answer *answer, bool *waits);
pawl_status op_go_on(struct op_call *call, bool is_stopping, struct buf *out,
                     struct op_answer *answer, bool *waits);
/* By a handler that has to wait, before it lets the one who wakes it begin. */
void op_waits(struct op_call *call, struct op_wait *wait);

/* By name, with a whole input as pawl_call() takes it. The answer goes to `put`, piece by piece: it
 * may be larger than memory. When this fails, what was put is no answer. `put` returns false to end
 * it; that is STORAGE_FAILURE, with the words that `put` left in the scope. */
typedef bool (*put_piece_fn)(void *context, struct scope *scope, str piece);
pawl_status op_call_pieces(pawl *p, const char *operation, str input_json, struct scope *scope,
                           put_piece_fn put, void *context);

/* The answer could not be sent: its steps are ready again, and no attempt is spent. */
void op_not_sent(pawl *p, const struct op_given *given);
/* A copy on libc's heap, for op_not_sent() alone; steps NULL: no memory. */
struct op_given op_given_copy(const struct op_given *given);
void op_given_free(struct op_given *given); /* of a copy */

/* Will running it wait for another node? Then not by a thread that others need. */
bool op_is_away(const struct op_call *call);

/* Whom the thread that runs it may have to wait for. Nodes must never wait for each other in a
 * circle, so a thread of one reach waits only for threads of lower ones, here and elsewhere. */
enum op_reach {
    OP_NEAR, /* no other node */
    OP_SUM,  /* other nodes, each for its part of a sum: for near ones */
    OP_FAR,  /* another node that may add up */
    OP_LONG, /* as OP_FAR, for a claim that waits there */
    OP_REACHES
};
enum op_reach op_reach(const struct op_call *call);
bool op_may_be_away(pawl *p, const struct op *op); /* of one that only reads */
bool op_has_nodes(pawl *p);             /* others may serve the same store */
void op_count_streams(pawl *p, int by); /* that are open: others say at once what they commit */

/* A request that another node has signed (api/station.h): who calls, and the hash of its body,
 * which is compared when that has come. UNAUTHENTICATED. */
#define OP_SIGNED_HEADER "Pawl-Signed"
#define OP_SIGNED_AS     "Pawl-As"
#define OP_SIGNED_PART   "Pawl-Part"
struct op_signed {
    str header, as, method, target, key, trace, part;
    uint8_t body[32]; /* out */
};
pawl_status op_accept_signed(pawl *p, struct scope *scope, struct op_signed *request,
                             struct op_principal *out);
pawl_status op_check_signed_body(pawl *p, struct scope *scope, const struct op_signed *request,
                                 str body);

/* UNAUTHENTICATED: no such token, or no longer. */
pawl_status op_authenticate(pawl *p, struct scope *scope, str bearer, struct op_principal *out);
/* For a store that does not exist: does the same work and returns what op_authenticate() would. */
pawl_status op_authenticate_nowhere(pawl *first, struct scope *scope, str bearer);
/* Before the body is read: FORBIDDEN if no body could make it a call that the token allows. */
pawl_status op_authorize_early(struct scope *scope, const struct op *op,
                               const struct op_principal *who);
/* May request->who do this? FORBIDDEN: no scope of the token allows this call. */
pawl_status op_authorize(pawl *p, struct scope *scope, const struct op *op,
                         const struct op_request *request);
bool op_has_tokens(pawl *p); /* that are in force */

/* A key that every surface carries unchanged. */
bool key_is_plain(str key);
#define KEY_EXPECTED                                                                               \
    "the idempotency key: expected 1..128 bytes of UTF-8, no control characters, no space at its "  \
    "ends"

/* Is a JSON value what a schema of a definition says (model/input_schema.h)? NULL allows all. */
bool op_fits_schema(struct scope *scope, const struct node *schema, str json);

/* The error message for a remote caller: for a failing store, without the paths of its files, which
 * are in the log. */
#define OP_DETAIL_SIZE sizeof(((pawl_error *)0)->message)
const char *op_detail(pawl_status status, const char *words, char out[OP_DETAIL_SIZE]);

/* The rejection as application/problem+json: {type, title, status, detail, reason}. */
void op_problem(pawl_status status, const char *detail, struct buf *out);
void op_problem_remote(pawl_status status, const char *words, struct buf *out); /* by op_detail() */
int pawl_status_http(pawl_status status);

#endif
