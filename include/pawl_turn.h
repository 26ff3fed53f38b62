/* pawl_turn.h - processes written in C: a code type, and one turn of its handler. Part of pawl.h.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PAWL_TURN_H
#define PAWL_TURN_H

#include <pawl.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A code type: a process written in C. Its handler is given the stored state and
 * one event, and says through the turn what happens next. It must hold no state
 * of its own and read no clock: the same arguments, the same turn.
 * <pawl_code.h> makes one from code written in sequence; this is what it stands on. */
typedef struct pawl_turn pawl_turn;

typedef enum pawl_event_kind {
    PAWL_EVENT_START = 1,
    PAWL_EVENT_TIMER,
    PAWL_EVENT_SIGNAL,
    PAWL_EVENT_CALL,        /* a call has its result */
    PAWL_EVENT_CALL_FAILED, /* or its error, also if the result is not as `payloads` says */
    PAWL_EVENT_CHILD,       /* a child has completed */
    PAWL_EVENT_CHILD_FAILED /* or failed, was cancelled, or its result is not as `payloads` says */
} pawl_event_kind;
/* Nothing has happened: only for types that `renews`. Others need no case for it. */
#define PAWL_EVENT_RENEW ((pawl_event_kind)8)

typedef struct pawl_event {
    pawl_event_kind kind;
    const char *name;    /* of the timer, signal or call; of a child: its definition */
    const char *payload; /* JSON: the input at the start, a signal's payload, a result, an error;
                            "null" if none */
    int64_t at_ms;       /* when it happened, by the store's clock */
    const char *phase;   /* what the last turn called the place it waits at; NULL: nothing */
    const void *value;   /* a struct of `payload_size` bytes, zero but for the member that
                            `payloads` has for this event's name: its payload, read and checked */
    const char *child_id; /* CHILD, CHILD_FAILED: the instance; NULL: none could be created */
} pawl_event;

/* A tracked variable: where it lies in the state struct. TEXT is a char array that ends in NUL,
 * JSON one that holds a JSON text ("" is null), STRUCT has fields of its own. */
#define PAWL_VAR_TYPE_MAP(X)                                                                       \
    X(INT64, 1, "int64") X(DOUBLE, 2, "double") X(BOOL, 3, "bool") X(TEXT, 4, "text")              \
    X(INT8, 5, "int8") X(INT16, 6, "int16") X(INT32, 7, "int32") X(UINT8, 8, "uint8")              \
    X(UINT16, 9, "uint16") X(UINT32, 10, "uint32") X(UINT64, 11, "uint64") X(FLOAT, 12, "float")   \
    X(JSON, 13, "json") X(STRUCT, 14, "struct")

typedef enum pawl_var_type {
#define X(name, number, text) PAWL_VAR_##name = (number),
    PAWL_VAR_TYPE_MAP(X)
#undef X
} pawl_var_type;

typedef struct pawl_var {
    const char *name;
    pawl_var_type type;
    size_t offset, size;   /* size: of one value */
    uint32_t max;          /* 0: one value; else an array of that many ... */
    size_t count_offset;   /* ... of which a uint32_t there says how many count */
    const struct pawl_var *(*fields)(void); /* STRUCT: its members, ending in a zero row */
    bool is_input;         /* read from the input's member of this name at the start */
    bool is_required;      /* an input, or a member of a struct that is sent, may not lack it */
} pawl_var;

#define PAWL_VAR(struct_name, field, kind)                                                         \
    { #field, kind, offsetof(struct_name, field), sizeof(((struct_name *)0)->field), 0, 0, NULL, false, false }

/* How a call is tried again when it has failed. */
typedef struct pawl_retry {
    const char *call;             /* one of the type's calls */
    uint32_t max_attempts;        /* 1..1000; the first and those that were lost count too */
    int64_t first_ms, longest_ms; /* the delay before the second attempt; it doubles each time, up
                                     to the longest (0: none). Both 0: 30 s, 2 min, then 5 min */
} pawl_retry;

/* An error after which a call is not tried again: a text, or an object whose `code`, `reason` or
 * `error` is that text. */
typedef struct pawl_no_retry {
    const char *call, *error;
} pawl_no_retry;

/* A variable that has another name now. */
typedef struct pawl_rename {
    const char *from, *to;
} pawl_rename;

/* Names of timers and signals may be written like C's enumerators, StartPatrol; outside they are
 * called start_patrol. */
typedef struct pawl_code_type {
    const char *name;
    uint32_t version;             /* 0 counts as 1 */
    const char *const *timers;    /* names it may arm, ending in NULL */
    const char *const *signals;   /* names it may await, ending in NULL */
    const char *const *calls;     /* tools it may call, ending in NULL */
    const char *const *externals; /* what it may ask for that is answered by step.complete */
    const char *const *children;  /* definitions it may spawn */
    const char *const *buffered;  /* those of `signals` that are kept while nothing awaits them */
    const char *const *phases;    /* places it may wait at; NULL: they have no names */
    const pawl_var *vars;         /* tracked variables, ending in a zero row */
    size_t state_size;            /* of the struct that `vars` describes */
    const void *initial;          /* such a struct: how it begins, and what a variable is that the
                                     stored state does not have; NULL: zeros */
    const pawl_var *payloads;     /* what the payload of a signal, call or child must be, by name;
                                     one that is not named may be anything */
    size_t payload_size;          /* of the struct that `payloads` describes */
    const pawl_var *result;       /* of pawl_turn_return() */
    /* Handle one event. `state` holds the tracked variables as the last turn left
     * them (`initial` at the start) and is stored again after the call. */
    void (*handle)(void *context, pawl_turn *turn, void *state, const pawl_event *event);
    /* The stored state was written by version `from`: make it one of this version. `state` holds
     * the variables that have kept their kind, `stored` is all of it as JSON; return the phase to
     * go on from, or NULL for the stored one. The change is an entry of its own. May be NULL. */
    const char *(*migrate)(void *context, uint32_t from, const char *stored, void *state);
    void *context;
    /* `handle` knows PAWL_EVENT_RENEW. It comes once to each instance that waits and was written by
     * an older version: say what it waits for at its phase. What it waits for already stays as it
     * is, a timer with its due time; anything else begins now. Variables are not stored. */
    bool renews;
    const pawl_rename *renamed; /* variables that an older build stored by another name, ending in
                                   a zero row; NULL: none */
    const pawl_retry *retries;  /* ending in a zero row; NULL: the handler gets failures */
    const pawl_no_retry *no_retries; /* likewise */
} pawl_code_type;

/* Register a code type; it can then be created like any definition.
 * Fails with INVALID_REQUEST (names what is wrong), and the store's failures. */
PAWL_API pawl_status pawl_code_register(pawl *p, const pawl_code_type *type, pawl_error *error);

/* A reduce: the host's own rows, in the same transaction as the turn that asked for it, in the same
 * file: both are there, or neither. `db` may do anything but touch pawl's tables, transactions,
 * PRAGMA and ATTACH; of a store in memory it is NULL. Return false, with words, to undo it all. It
 * is called by the thread that commits, and must be short. From inside it every call of pawl that
 * needs a store is refused with INVALID_REQUEST, because it would wait for this very commit;
 * pawl_close() must not be called, nor may it wait for another thread that calls pawl. Not in an
 * attachment: there the transaction is the host's anyway. Fails with INVALID_REQUEST, NO_MEMORY. */
struct sqlite3;
typedef bool (*pawl_reduce_fn)(void *context, struct sqlite3 *db, const char *args, char *words,
                               size_t words_size);
PAWL_API pawl_status pawl_reduce_register(pawl *p, const char *name, pawl_reduce_fn fn,
                                          void *context, pawl_error *error);

/* Say what happens next: wait for any of the armed timers and awaited signals, the call or the
 * child (the first wins, the others are disarmed with it), or end. A turn that does neither, or
 * asks for what its type does not declare, pauses its instance; resume gives the event to it again.
 * Timers are armed afresh by each turn, for at least a millisecond. */
PAWL_API void pawl_turn_timer(pawl_turn *turn, const char *name, int64_t after_ms);
PAWL_API void pawl_turn_signal(pawl_turn *turn, const char *name);
PAWL_API void pawl_turn_call(pawl_turn *turn, const char *name, const char *args_json);
/* The same with a key of its own: calls of one instance that have the same key have one idempotency
 * key, INSTANCE:KEY. Without one, each call has its own, which all its attempts share. 1..80
 * bytes. */
PAWL_API void pawl_turn_call_keyed(pawl_turn *turn, const char *name, const char *key,
                                   const char *args_json);
/* Create an instance of a definition that the type declares in `children`, in this very commit, and
 * wait for its end. It is cancelled with this one's end, unless it is to be abandoned. */
PAWL_API void pawl_turn_spawn(pawl_turn *turn, const char *definition, const char *input_json,
                              bool abandon);
/* From now on a broadcast of the signal reaches this instance with this value as its filter, with
 * one of the others that it has subscribed to, or without a filter. At most 256 values of a signal;
 * does not wait. NULL takes all of them back, pawl_turn_unsubscribe() one (or with NULL all). */
PAWL_API void pawl_turn_subscribe(pawl_turn *turn, const char *signal, const char *value_json);
PAWL_API void pawl_turn_unsubscribe(pawl_turn *turn, const char *signal, const char *value_json);
/* Start another instance, or signal one, with the commit of this turn; does not wait, and nothing
 * comes back: a refusal is in the log. The one that is started is no child. NULL: an input of {}, a
 * payload of null. */
PAWL_API void pawl_turn_start(pawl_turn *turn, const char *definition, const char *input_json);
PAWL_API void pawl_turn_send(pawl_turn *turn, const char *instance_id, const char *signal,
                             const char *payload_json);
PAWL_API void pawl_turn_complete(pawl_turn *turn, const char *result_json);
PAWL_API void pawl_turn_fail(pawl_turn *turn, const char *error_json);

/* Do something of the host's own with the commit of this turn: see pawl_reduce_register(). Nothing
 * comes back. If it fails, the instance fails with its words, and nothing of the turn is kept. */
PAWL_API void pawl_turn_reduce(pawl_turn *turn, const char *name, const char *args_json);

/* When the event happened, by the store's clock: event->at_ms. The only time a handler may know. */
PAWL_API int64_t pawl_turn_now(const pawl_turn *turn);

/* Name the place where the instance waits; the next event brings it back. */
PAWL_API void pawl_turn_phase(pawl_turn *turn, const char *phase);

/* Complete with the struct that the type's `result` describes; without one with null. */
PAWL_API void pawl_turn_return(pawl_turn *turn, const void *result);

/* A text as printf() makes it, and a JSON string of a text; both live as long as the turn. "" if
 * there is no memory, and the turn fails with NO_MEMORY then. */
PAWL_API const char *pawl_turn_text(pawl_turn *turn, const char *format, ...)
#if defined(__GNUC__)
    __attribute__((format(printf, 2, 3)))
#endif
    ;
PAWL_API const char *pawl_turn_quote(pawl_turn *turn, const char *text);

/* A struct as JSON, by its fields (those of PAWL_STRUCT, or the `fields` of a pawl_var). "null",
 * and the turn is invalid, if a value cannot be printed. */
PAWL_API const char *pawl_turn_json(pawl_turn *turn, const pawl_var *fields, const void *value);

/* StartPatrol -> start_patrol; what is no identifier stays as it is. Returns the length; `out` is
 * cut to `size` and ends in NUL. */
PAWL_API size_t pawl_wire_name(const char *name, char *out, size_t size);

/* The other way: the timer or signal of a type that has this wire name, as the type declares it.
 * start_patrol -> "StartPatrol"; NULL: the type has none. */
PAWL_API const char *pawl_timer_from_name(const pawl_code_type *type, const char *wire_name);
PAWL_API const char *pawl_signal_from_name(const pawl_code_type *type, const char *wire_name);

/* A signal as it is sent, as the event that a handler gets: its kind, the wire name, the payload
 * and, in `value`, the payload read and checked. `got` is a struct of the type's `payload_size`
 * bytes (struct NAME_got of PAWL_CODE), which `value` points to; the name and the payload are the
 * caller's. NULL as payload: null; NULL as `got`: the payload is only checked to be JSON. Fails
 * with NOT_KNOWN (the type has no such signal), INVALID_REQUEST (the payload is not as declared:
 * what was expected, found, and where) and NO_MEMORY; *out is unchanged then. */
PAWL_API pawl_status pawl_signal_from_name_and_payload(const pawl_code_type *type,
                                                       const char *wire_name,
                                                       const char *payload_json, void *got,
                                                       pawl_event *out, pawl_error *error);

/* What <pawl_code.h> is made of: see there. Indices are those of the type's lists. */
PAWL_API unsigned pawl_seq_at(const pawl_turn *turn);
PAWL_API void pawl_seq_arm(pawl_turn *turn, unsigned label);
PAWL_API void pawl_seq_wake(pawl_turn *turn);
PAWL_API bool pawl_seq_is_arming(pawl_turn *turn);
PAWL_API bool pawl_seq_timer(pawl_turn *turn, unsigned timer, int64_t after_ms);
PAWL_API bool pawl_seq_signal(pawl_turn *turn, unsigned signal);
PAWL_API bool pawl_seq_call(pawl_turn *turn, unsigned call, const char *args_json);
PAWL_API bool pawl_seq_call_keyed(pawl_turn *turn, unsigned call, const char *key,
                                  const char *args_json);
PAWL_API bool pawl_seq_external(pawl_turn *turn, unsigned external, const char *args_json);
PAWL_API bool pawl_seq_spawn(pawl_turn *turn, unsigned child, const char *input_json, bool abandon);
PAWL_API void pawl_seq_subscribe(pawl_turn *turn, unsigned signal, const char *value_json);
PAWL_API void pawl_seq_unsubscribe(pawl_turn *turn, unsigned signal, const char *value_json);
PAWL_API bool pawl_seq_gathers(pawl_turn *turn);
PAWL_API void pawl_seq_gather_call(pawl_turn *turn, unsigned call, const char *key,
                                   const char *args_json);
PAWL_API void pawl_seq_gather_external(pawl_turn *turn, unsigned external, const char *args_json);
PAWL_API void pawl_seq_gather_child(pawl_turn *turn, unsigned child, const char *input_json);
PAWL_API bool pawl_seq_gathered(pawl_turn *turn);
PAWL_API bool pawl_seq_gather_over(pawl_turn *turn);
PAWL_API unsigned pawl_seq_which(const pawl_turn *turn);
PAWL_API bool pawl_seq_over(pawl_turn *turn);
PAWL_API const char *pawl_seq_error(const pawl_turn *turn);
PAWL_API bool pawl_seq_failed(pawl_turn *turn);
PAWL_API void pawl_seq_done(pawl_turn *turn);
PAWL_API void pawl_seq_finish(pawl_turn *turn, const void *result);

#ifdef __cplusplus
}
#endif
#endif
