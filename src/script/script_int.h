/* script_int.h - private to script: values of Lua as JSON and back. */
#ifndef PAWL_SCRIPT_SCRIPT_INT_H
#define PAWL_SCRIPT_SCRIPT_INT_H

#include "script/script.h"
#include <lauxlib.h>
#include <lua.h>
#include <lualib.h>

/* The registry's key of the metatable that arrays have: an empty one is no object then. */
extern const char script_array_mark;

void script_push(lua_State *lua, const struct node *node);
/* Raises Lua's error for what JSON cannot hold. Members are in the order of their names. */
void script_print(lua_State *lua, int index, struct buf *out);

#endif
