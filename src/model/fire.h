/* fire.h - the rules of firing and cancelling, the same for every behavior: a flow's and a
 * code's lifecycle is a machine too, whose only caller's action is `cancel`. */
#ifndef PAWL_MODEL_FIRE_H
#define PAWL_MODEL_FIRE_H

#include "model/decision.h"

/* The actor of the pause record of an instance whose event cannot be decided. A flow that the
 * engine has paused can always be cancelled, no matter what its definition says: it has no other
 * end. */
#define POISON_ACTOR "pawl/poison"

/* TERMINAL if the instance has ended. It comes before every other rejection. */
pawl_status fire_check_open(const struct definition *definition, const struct standing *standing,
                            struct scope *scope);

/* Decide EVENT_FIRE: one draft, or TERMINAL, INVALID_TRANSITION, REASON_REQUIRED,
 * GUARD_NOT_SATISFIED, in this order (D18). */
pawl_status fire_decide(const struct definition *definition, const struct standing *standing,
                        const struct event *event, struct scope *scope, struct decision *out);

/* Decide EVENT_CANCEL: one draft, or TERMINAL, NO_CANCEL_TRANSITION (A17, A18, A22),
 * REASON_REQUIRED. A cancel without a reason records none. */
pawl_status fire_decide_cancel(const struct definition *definition, const struct standing *standing,
                               const struct event *event, struct scope *scope,
                               struct decision *out);

/* Fail with `status`, "FORMAT; legal now: pay, drop". */
pawl_status fire_fail_legal(const struct definition *definition, const struct standing *standing,
                            struct scope *scope, pawl_status status, const char *format, ...)
    __attribute__((format(printf, 5, 6)));

#endif
