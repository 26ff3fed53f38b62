/* module_int.h - private to module: what the two processes say to each other.
 *
 * docs/turn-protocol.md is the contract; this is the short form. A frame is 4 bytes of length,
 * least first, and JSON. The child begins with what it has:
 *   {"pawl":1,"build":S,"types":[SOURCE,...],"tools":[NAME,...]}          or {"error":WORDS}
 * then each request of ours gets one answer. A turn of code that keeps its variables:
 *   {"type":NAME,"kind":N,"at":MS,"from":N,"strict":1,"event":1,"check":1,"name":S,"child":S,
 *    "payload":JSON,"state":JSON,"declared":SOURCE,"call":N,"first":N,"open_calls":N}
 * of code that is replayed:
 *   {"type":NAME,"at":MS,"id":S,"keep":N,"have":N,"fresh":[EVENT,...]}    or, without "have",
 *   {...,"state":JSON,"events":[EVENT,...],"open":OPEN}
 * and the answer to both:
 *   {"end":N,"value":JSON,"state":JSON,"migrated":JSON,"timers":EFFECTS,"signals":EFFECTS,
 *    "calls":[{"name":S,"args":JSON,"key":S,"spawn":N}],"keeps":1,"dropped":EFFECTS,"note":JSON,
 *    "reduces":EFFECTS,"sends":EFFECTS,"problem":S,"misfit":S,"renewed":N}
 *   or {"status":N,"message":S}   or {"need":1}: it has not got what "have" names
 * A call of a tool: {"tool":NAME,"args":JSON,"key":S,"instance":S,"step":S,"attempt":N}, and
 *   {"result":JSON} or {"failed":JSON,"final":1}
 * Members that are absent, empty or 0 are left out. Behind a request may be a NUL and a number: so
 * many turns more are to be taken, each by the timer that is due first (ahead.c). Their answers
 * follow the first one, each behind a NUL. */
#ifndef PAWL_MODULE_MODULE_INT_H
#define PAWL_MODULE_MODULE_INT_H

#include "base/limits.h"
#include "base/node.h"
#include "base/sha.h"
#include "env/env.h"
#include "module/module.h"
#include <pthread.h>
#include <sys/types.h>

#define FRAME_MAX     LIMIT_SCOPE
#define TURN_PROTOCOL 1

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

/* ---- command.c ---- */

/* What is run for a module that is not a shared object: words between blanks, "..." and '...', and
 * no shell; a file of a known language alone gets its interpreter. NULL: it is the path of a shared
 * object. The array ends in NULL and lives in the scope. INVALID_REQUEST: a quote is not closed. */
pawl_status command_split(struct scope *scope, const char *text, char ***out);

bool path_is_script(str path); /* a file of Lua: its process is a pawl as well */

/* ---- script_child.c ---- */

int script_child(const char *path, int in, int out); /* the exit status */

/* ---- frame.c ---- */

enum frame_end { FRAME_OK, FRAME_CLOSED, FRAME_LATE, FRAME_NO_MEMORY };

/* wait_ms -1: for ever. The text lives in the scope. What is written with a wait_ms goes to a
 * descriptor that does not block. */
enum frame_end frame_read(int fd, int wait_ms, struct scope *scope, str *out);
enum frame_end frame_write(int fd, int wait_ms, const struct buf *frame);
/* The same where another frame may be right behind it. */
enum frame_end frame_read_alone(int fd, int wait_ms, struct scope *scope, str *out);

/* ---- wire.c ---- */

/* have: the number under which the child may have the instance; 0: it gets the whole state. */
void wire_print_request(const char *type, const struct turn_request *request, uint64_t keep,
                        uint64_t have, struct buf *out);
bool wire_read_request(const struct node *root, struct turn_request *out);
void wire_print_answer(const struct turn_answer *answer, struct buf *out);
void wire_print_failure(const pawl_error *error, struct buf *out);
/* The answer, or the failure that it is; NOT_KNOWN: it is neither, or says what no turn may. */
pawl_status wire_read_answer(struct scope *scope, str text, struct turn_answer *out);
bool wire_is_need(str text);

/* ---- ahead.c: turns that a child takes before they are asked for ---- */

struct ahead {
    struct buf
        request; /* what comes next if it is the timer that is due first; size 0: nothing does */
    struct buf answers; /* to that, and to what follows it, with a NUL between them */
    size_t used;        /* bytes of them */
    uint32_t count;     /* of turns that are asked for beyond the next one */
    bool is_off;        /* a child ended while it took more than one turn */
};

void ahead_init(struct ahead *ahead, const struct heap *heap);
void ahead_fini(struct ahead *ahead);
/* The request that follows this answer if nothing but its timer comes; false: it waits for none. */
bool ahead_foresee(const struct turn_answer *answer, struct turn_request *out);
/* The answer to this request, if it is there; else `count` is set. */
bool ahead_take(struct ahead *ahead, const char *type, str request, struct scope *scope,
                struct turn_answer *out);
/* What a child answered, and behind it what it answered besides. */
void ahead_keep(struct ahead *ahead, const char *type, const struct turn_answer *answer,
                str answers);

/* ---- process.c: children that take turns and calls ---- */

#define CHILDREN  4u  /* turns at once */
#define CALLERS   16u /* calls of tools at once */
#define HELD_ROWS 4096u

/* What a child may still have of an instance that is replayed; key 0: nothing. */
struct held {
    uint64_t key, number;
};

struct child_process {
    pid_t pid; /* 0: none */
    int in, out;
    int cpu;           /* where it has to run; -1: anywhere */
    bool is_busy;      /* the thread that set it uses the child */
    bool is_begun;     /* its process lived when the last thread that used it was done */
    struct held *held; /* HELD_ROWS of them, by key; NULL: none yet */
    uint64_t numbers;  /* given so far */
    _Atomic uint64_t held_from; /* lower ones were given to a process that has ended */
};

struct module {
    const struct heap *heap;
    struct env *env;
    pthread_mutex_t lock; /* of the children's is_busy, and of a pid whose child is not */
    pthread_cond_t freed; /* one of them is no longer busy */
    bool is_retired;      /* a newer build takes the turns: none of the children stays */
    struct scope kept;    /* paths, types */
    char *program, *path;
    char **command; /* NULL: a shared object, which `program` loads */
    struct image image;
    char digest[2 * SHA_SIZE + 1];
    void (*report)(void *context, const char *words);
    void *context;
    struct child_process children[CHILDREN], callers[CALLERS];
    int turn_ms;
    bool is_near;
    bool takes_many;    /* of calls in one frame */
    struct ahead ahead; /* is_near; under the lock */
    struct foreseen *foreseen; /* under the lock; NULL: none yet */
    struct module_type *types;
    uint32_t type_count;
    const char **tools; /* ends in NULL */
    uint32_t tool_count;
};

/* Begin a child and hear its first words: the frame lives in the scope. */
pawl_status process_begin(const struct module *module, struct child_process *child,
                          struct scope *scope, str *hello);
/* How it ended, in words; it is killed if it lives. */
void process_end(struct child_process *child, char words[64]);
/* Begins the child if it does not live; its build must be the module's. */
pawl_status process_need(const struct module *module, struct child_process *child,
                         struct scope *scope);
enum frame_end process_ask(const struct module *module, struct child_process *child, int wait_ms,
                           struct scope *scope, const struct buf *request, str *out);
/* One that lives if there is one, else one to be begun; waits while all are busy. `key`: best one
 * that holds it. */
struct child_process *process_take(struct module *module, struct child_process *children,
                                   uint32_t count, uint64_t key);
void process_give_back(struct module *module, struct child_process *child);
/* This one; another one, or NULL, if it is busy for long. */
struct child_process *process_take_one(struct module *module, struct child_process *child);
/* The members of a hello; NOT_KNOWN: it names what is wrong. */
pawl_status hello_read(struct scope *scope, const char *path, str hello, struct node **out);

/* One of its types; `run` and its context are the caller's to set. NOT_KNOWN likewise; all that
 * `out` points to is in `kept`, and in what `source` was read from. */
pawl_status hello_type(struct scope *kept, const char *path, const struct node *source,
                       struct module_type *out);

/* ---- module.c ---- */

void call_print(const pawl_tool_call *call, struct buf *out); /* the members of a call */
void call_take_answer(struct scope *scope, const struct node *root, struct module_answer *out);

/* ---- foreseen.c: turns that were taken right behind the step that they are for ---- */

struct foreseen_turn {
    uint64_t key, mark;
    uint32_t number; /* of the call whose result it is for */
    int64_t at_ms;
    bool is_timed;               /* the code looked at the time */
    struct child_process *child; /* it keeps the instance, ... */
    uint64_t keep;               /* ... under this number */
};

uint64_t foreseen_key(str id, uint32_t number);
void foreseen_put(struct module *module, const struct foreseen_turn *turn, str result, str answer);
/* The answer to this request, if it is there. */
bool foreseen_take(struct module *module, const struct turn_request *request, struct scope *scope,
                   struct foreseen_turn *turn, struct turn_answer *out);
void foreseen_free(struct module *module);

/* The number under which the child may have it; 0: it has not. Both under the module's lock, where
 * another thread may use the child. */
uint64_t held_find(const struct child_process *child, uint64_t key);
void held_put(const struct heap *heap, struct child_process *child, uint64_t key, uint64_t number);
uint64_t held_key(uint64_t mark, str id); /* id: that of its type, where it has none yet */
void held_free(const struct heap *heap, struct child_process *child);

#endif
