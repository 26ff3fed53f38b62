/* expr.h - conditions and values written in Lua, evaluated where they can do no harm.
 *
 * Pure: the same text and the same values give the same answer, live and when a history is
 * checked years later. So every limit counts (operations, bytes) and none measures time; they are
 * chosen so small that no text takes 10 ms. A new Lua state is made for each evaluation and
 * forgotten after it: one expression cannot leave anything behind for the next. */
#ifndef PAWL_EXPR_EXPR_H
#define PAWL_EXPR_EXPR_H

#include "base/limits.h"
#include "base/node.h"
#include "base/scope.h"

#define EXPR_TEXT_MAX      4096u             /* of an expression: bytes */
#define EXPR_OPERATION_MAX 50000u            /* of one evaluation; long texts cost more */
#define EXPR_MEMORY_MAX    ((size_t)1 << 20) /* asked for in one evaluation, all together */
#define EXPR_STRING_MAX    ((size_t)256 << 10)
/* While a value is printed: one text more than LIMIT_TEXT, every byte escaped. */
#define EXPR_PRINT_MAX ((size_t)8 * LIMIT_TEXT)

/* What an expression sees. Asked for when it is looked at, and once. A failure of the caller's
 * own (no memory) is kept in *status and ends the evaluation with it. */
struct expr_world {
    /* result, error, input, context, instance; NULL: nil. */
    const struct node *(*global)(void *context, str name, pawl_status *status);
    /* The result of a step; false: there is no such step, or its result is not kept. */
    bool (*step)(void *context, str name, const struct node **out, pawl_status *status);
    void *context;
    /* An object that `global` returns without its members; NULL: no such object. */
    const struct node *open;
    /* They are asked for one by one; `before` counts those that are before it. NULL: none. */
    const struct node *(*member)(void *context, str key, uint32_t *before, pawl_status *status);
    /* ... or all together, as another object: those that were asked for are the same nodes. */
    const struct node *(*whole)(void *context, pawl_status *status);
};

/* What for: messages say so. */
enum expr_use { EXPR_CONDITION, EXPR_VALUE, EXPR_QUERY, EXPR_USE_COUNT };

/* Does it compile? INVALID_DEFINITION with Lua's words, NO_MEMORY. */
pawl_status expr_check(struct scope *scope, enum expr_use use, str text);

/* Is it true? (Lua's sense: anything but false and nil.) INVALID_REQUEST with the reason if it
 * cannot be told: a mistake at run time, or a limit. NO_MEMORY, or the world's own status. */
pawl_status expr_holds(struct scope *scope, str text, const struct expr_world *world, bool *out);

/* Its value as JSON, in the scope's arena, at most LIMIT_TEXT bytes; nil is null. Fails likewise,
 * also where the value is one that JSON does not have. */
pawl_status expr_value(struct scope *scope, enum expr_use use, str text,
                       const struct expr_world *world, str *out);

/* Where an expression in {{= ... }} ends: the place of the braces that close it, which are not in a
 * quote, a comment or a table. SIZE_MAX: nowhere. */
size_t expr_end(str text);

/* The next NAME in `steps.NAME` or `steps["NAME"]`, from *at on; false: no more. What is named
 * otherwise (`steps["a" .. x]`) is not seen, and its result need not be there. */
bool expr_next_step(str text, size_t *at, str *out);

/* What it may name: values, functions and tables of functions; ends in NULL. */
const char *const *expr_names(enum expr_use use);

/* Names that nothing gives the expression, each once: they are nil when it runs. */
#define EXPR_MADE_MAX 64 /* names that a text makes itself; of more nothing is said */
struct expr_unknown {
    str text, before;
    const char *const *known;
    size_t at;
    str made[EXPR_MADE_MAX];
    uint32_t made_count;
    bool is_over;
};
void expr_unknown_begin(struct expr_unknown *unknown, enum expr_use use, str text);
bool expr_unknown_next(struct expr_unknown *unknown, str *out);

#endif
