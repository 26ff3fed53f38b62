/* machine.h - the simplest behavior: you fire its actions.
 *
 * Pure: no clock, no store, no I/O. See model/decision.h for the port. */
#ifndef PAWL_MACHINE_MACHINE_H
#define PAWL_MACHINE_MACHINE_H

#include "model/decision.h"

/* Collects findings of a check: every error and warning with its place. */
struct finding {
    char message[480]; /* with its place it fits into pawl_error.message */
    uint32_t line, column;
    bool is_warning;
};
struct findings {
    struct finding *items; /* in the scope's arena */
    uint32_t count, capacity;
};

/* Compile a document with `states`. Inline: kinds optional, no `*`, unknown keys ignored, and
 * the status is INVALID_DECLARATION; registered: each terminal state needs a kind, `*` is
 * expanded, unknown keys are errors, and the status is INVALID_DEFINITION. All errors are
 * collected in `findings` (may be NULL); the scope's error is the first. Definitions live in
 * the scope's arena. Requirements A12-A14, D6-D13, X4, X5. */
pawl_status machine_compile(struct scope *scope, const struct node *document, bool is_inline,
                            struct findings *findings, struct definition **out);

#endif
