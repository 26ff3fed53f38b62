/* expr_int.h - private to expr: one evaluation. */
#ifndef PAWL_EXPR_EXPR_INT_H
#define PAWL_EXPR_EXPR_INT_H

#include "base/buf.h"
#include "expr/expr.h"
#include <lauxlib.h>
#include <lua.h>

/* Which limit was met. What was met once stays met: nothing can catch it. */
enum expr_limit { WITHIN_LIMITS, OVER_OPERATIONS, OVER_MEMORY, OVER_STRING };

struct sandbox {
    struct arena arena;
    str text;
    const char *chunk;              /* "=condition" or "=expression": what messages call it */
    const struct expr_world *world; /* NULL: only compiled */
    struct buf *out;                /* where its value is printed; NULL: nowhere */
    size_t memory_used;
    size_t longest; /* text so far: comparing two of them is one operation to Lua */
    const void *stack, *newest; /* Lua's stack; the last block that could be the next */
    size_t stack_size, newest_size;
    uint64_t operations;
    enum expr_limit limit;
    pawl_status status; /* of the world, or NO_MEMORY */
    bool is_true;
};

struct sandbox *sandbox_of(lua_State *lua);

/* Count operations that Lua does not see: work done in C. Raises the limit's error. */
void sandbox_charge(lua_State *lua, uint64_t operations);

/* value.c: values of the flow. Containers are handles on nodes; null is nil. */
void value_open(lua_State *lua); /* make their metatable, and the globals that are looked up */
const struct node *value_to_node(lua_State *lua, int index); /* NULL: the value is no node */
int value_pairs(lua_State *lua);

/* print.c: the value on top of the stack as JSON; raises. */
void value_print(lua_State *lua, struct buf *out);

/* The functions that stand by themselves: by name, what they run. */
#define EXPR_FUNCTIONS(X)                                                                          \
    X(type, base_type)                                                                             \
    X(tostring, base_tostring)                                                                     \
    X(tonumber, base_tonumber)                                                                     \
    X(ipairs, base_ipairs)                                                                         \
    X(pairs, value_pairs)

/* library.c: the functions an expression may call, into the table on top of the stack. */
void library_open(lua_State *lua);

#endif
