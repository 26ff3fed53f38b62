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
/* Another definition that a text names: the engine knows whether it is stored. */
struct reference {
    const char *owner, *key; /* "step", "spawn"; "action", "starts" */
    str of;                  /* the step's or action's name */
    str name;                /* "order" or "order@2" */
    uint32_t line, column;
};
#define REFERENCE_COUNT_MAX 100u /* more are not looked at */

struct findings {
    struct finding *items; /* in the scope's arena */
    uint32_t count, capacity;
    struct reference *references; /* likewise */
    uint32_t reference_count, reference_capacity;
};

/* What is reported about one document. The first error is the scope's, too. No memory for a finding
 * shows in the arena. */
#define FINDINGS_MAX 100u /* of errors, and of warnings */
struct reporter {
    struct scope *scope;
    struct findings *findings; /* may be NULL */
    uint32_t error_count, warning_count;
    bool is_inline; /* INVALID_DECLARATION, and no warnings */
};
/* About the text at `node`, or about a step, which the message names first (data NULL: none). */
void findings_report(struct reporter *reporter, const struct node *node, str step, bool is_warning,
                     const char *format, va_list args) __attribute__((format(printf, 5, 0)));

/* Notes a reference, if it is not one too many. No memory shows in the arena. */
void findings_refer(struct findings *findings, struct scope *scope,
                    const struct reference *reference);

/* Compile a document with `states`. Inline: kinds optional, no `*`, unknown keys ignored, and
 * the status is INVALID_DECLARATION; registered: each terminal state needs a kind, `*` is
 * expanded, unknown keys are errors, and the status is INVALID_DEFINITION. All errors are
 * collected in `findings` (may be NULL); the scope's error is the first. Definitions live in
 * the scope's arena. Requirements A12-A14, D6-D13, X4, X5. */
pawl_status machine_compile(struct scope *scope, const struct node *document, bool is_inline,
                            struct findings *findings, struct definition **out);

#endif
