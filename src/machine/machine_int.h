/* machine_int.h - private to machine: a document on its way to a definition.
 *
 * The way: parse.c (states, kinds, initial) -> transitions.c (as written) -> expand.c (`*`,
 * then the definition's own table) -> deadlines.c -> check.c (what is legal but odd). Each part
 * reports all it finds and goes on; only machine_compile() asks whether anything was wrong. */
#ifndef PAWL_MACHINE_MACHINE_INT_H
#define PAWL_MACHINE_MACHINE_INT_H

#include "base/sort.h"
#include "machine/machine.h"
#include "model/vocabulary.h"

#define STATE_NONE UINT32_MAX
#define STATE_ANY  (UINT32_MAX - 1) /* `from_state: "*"` */

/* A transition as it was written. */
struct declared {
    const struct node *node;
    uint32_t from, to; /* index, STATE_ANY, or STATE_NONE where the document is wrong */
    str action, guard; /* data NULL: none */
    bool requires_reason, by_engine;
    str starts; /* JSON; data NULL: nothing */
};

struct compiler {
    struct scope *scope;
    struct reporter report;
    const struct node *document;
    bool is_inline;
    struct definition *definition;
    const struct node **state_nodes; /* by index of the state */
    uint32_t *by_name;               /* indices of states, ordered by name */
    struct declared *declared;
    uint32_t declared_count;
    uint32_t *by_exit; /* indices of declared, ordered by (from, action, index) */
};

/* findings.c: add an error or warning about the text at `node`. */
void compiler_error(struct compiler *compiler, const struct node *node, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void compiler_warn(struct compiler *compiler, const struct node *node, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* A place to tell of a member's key instead of its value. */
static inline struct node compiler_at_key(const struct node *member)
{
    return (struct node){ .line = member->key_line, .column = member->key_column };
}

/* The rest fails with NO_MEMORY alone. */

/* parse.c: unknown keys of `object` are errors in a registered definition. `path` goes before
 * their names: "starts.", or "". */
void compiler_check_keys(struct compiler *compiler, const struct node *object,
                         const struct known_key *keys, const char *path);
extern const struct known_key machine_keys[], transition_keys[], starts_keys[], deadline_keys[];
extern const struct known_key on_end_keys[];

/* parse.c: a name that is a string, not blank, not too long; else false and an error that
 * calls it `what`. */
bool compiler_read_name(struct compiler *compiler, const struct node *node, const char *what,
                        str *out);

/* parse.c: the index of the state that `node` names, or STATE_NONE and an error. */
uint32_t compiler_read_state(struct compiler *compiler, const struct node *node, const char *what);

pawl_status compiler_read_transitions(struct compiler *compiler); /* transitions.c */
pawl_status compiler_expand(struct compiler *compiler);           /* expand.c */
pawl_status compiler_read_deadlines(struct compiler *compiler);   /* deadlines.c */
void compiler_check_on_end(struct compiler *compiler);            /* on_end.c */
void compiler_print_on_end(const struct node *starts, struct buf *out);
pawl_status compiler_check(struct compiler *compiler);            /* check.c */
pawl_status compiler_check_alike(struct compiler *compiler);      /* alike.c */

#endif
