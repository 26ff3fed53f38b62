/* afar.h - turns that workers elsewhere take: a queue, leases, and which build is in force.
 *
 * To the code layer it is a binding like that of a module's: the thread that runs a turn waits
 * here until a worker has answered, so the history is the same, entry by entry. The operations
 * turn.offer, turn.claim and turn.complete are the other side (docs/turn-protocol.md).
 *
 * (1) A turn is given to one worker at a time. When its lease runs out it is given to another,
 *     and the late answer is lease-lost. After AFAR_TRIES leases it is refused with PAUSED, for
 *     the engine to hold the instance.
 * (2) Of each type one version and one build is in force. A worker that offers something else is
 *     refused by name; a higher version takes over at once, another build of the same version
 *     when no worker of the one before is there any more.
 * (3) While no worker of a type is there its turns are refused with NOT_KNOWN: their events wait,
 *     as in a program without the code. */
#ifndef PAWL_MODULE_AFAR_H
#define PAWL_MODULE_AFAR_H

#include "base/heap.h"
#include "base/node.h"
#include "base/waiter.h"
#include "code/code.h"

struct env;
struct afar;

#define AFAR_TRIES    3u
#define AFAR_THREADS  10u /* that may wait here; fewer than the server has */
#define AFAR_LEASE_MS 10000
#define AFAR_TOKEN    32  /* hexadecimal digits, of sessions and leases */
#define AFAR_TURNS    64u /* that a claim may ask for */

/* What the types become: called without a lock. */
typedef pawl_status (*afar_bind_fn)(void *context, struct scope *scope,
                                    const struct code_binding *binding);
struct afar_host {
    afar_bind_fn bind;
    bool (*is_taken)(void *context, const char *name); /* by this program's own code */
    void (*came)(void *context);                       /* workers of a type are there again */
    void *context;
};

/* NULL: no memory. */
struct afar *afar_new(const struct heap *heap, struct env *env, const struct afar_host *host);
/* Turns that wait are refused, and so are later ones. Before the engine is closed. */
void afar_stop(struct afar *afar);
void afar_free(struct afar *afar);

/* A worker says what it has, `hello` as a module's first frame. INVALID_REQUEST names what is wrong
 * with it, or what it does not match. */
pawl_status afar_offer(struct afar *afar, struct scope *scope, str worker, const struct node *hello,
                       char session[AFAR_TOKEN + 1]);

/* One claim that may wait: in the caller's memory from the first take until afar_leave(). */
struct afar_claim {
    str session;
    uint32_t max;
    int64_t lease_ms;
    struct waiter waiter; /* woken when there may be a turn; wake NULL: it does not wait */
    struct afar_claim *next;
    bool is_listed;
};

/* Prints what there is as a list of turns. *waits: there is nothing, and the claim is listed, so
 * that its waiter is woken. NOT_KNOWN: no such session, or nothing that it offered is in force. */
pawl_status afar_take(struct afar *afar, struct scope *scope, struct afar_claim *claim,
                      bool may_wait, struct buf *out, bool *waits);
void afar_leave(struct afar *afar, struct afar_claim *claim);

/* LEASE_LOST: the turn is not this one's any more. */
pawl_status afar_answer(struct afar *afar, struct scope *scope, str turn_id, str lease, str answer);

int64_t afar_now(const struct afar *afar);

#endif
