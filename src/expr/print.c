/* print.c - the value of an expression as JSON.
 *
 * A table whose keys are 1 to n is a list, one whose keys are all texts an object, its members in
 * the order of their bytes: the order of Lua's own tables is never seen. An empty table is an empty
 * list. */
#include "base/limits.h"
#include "base/number.h"
#include "base/sort.h"
#include "expr/expr_int.h"
#include <math.h>
#include <stdlib.h>

#define BYTES_PER_OPERATION 64

struct printing {
    lua_State *lua;
    struct sandbox *sandbox;
    struct buf *out;
};

static void print_value(struct printing *printing, uint32_t depth);

/* What was written since `before` is paid for, and within the limit of a value. */
static void settle(const struct printing *printing, size_t before)
{
    if (printing->out->size > LIMIT_TEXT)
        luaL_error(printing->lua, "a value of more than %d bytes", (int)LIMIT_TEXT);
    if (printing->out->failed) {
        printing->sandbox->status = PAWL_NO_MEMORY;
        luaL_error(printing->lua, "not to be had");
    }
    sandbox_charge(printing->lua, 1 + (printing->out->size - before) / BYTES_PER_OPERATION);
}

static void print_number(const struct printing *printing)
{
    lua_Number number = lua_tonumber(printing->lua, -1);

    if (lua_isinteger(printing->lua, -1))
        json_i64(printing->out, lua_tointeger(printing->lua, -1));
    else if (isfinite(number))
        number_print_double(number, false, printing->out);
    else
        luaL_error(printing->lua, "a number that JSON does not have (1/0 or 0/0)");
}

/* A value of the flow: the same table as any, but its bytes are those that were read. */
static void print_node(const struct printing *printing, const struct node *node)
{
    struct sandbox *sandbox = printing->sandbox;

    if (node == sandbox->world->open)
        node = sandbox->world->whole(sandbox->world->context, &sandbox->status);
    if (sandbox->status != PAWL_OK)
        luaL_error(printing->lua, "not to be had");
    json_raw(printing->out, STR("")); /* its comma */
    node_print(node, printing->out);
}

static str *collect_keys(struct printing *printing, uint32_t *count, bool *is_list)
{
    lua_State *lua = printing->lua;
    str *keys;

    *count = 0;
    *is_list = true;
    for (lua_pushnil(lua); lua_next(lua, -2) != 0; lua_pop(lua, 1)) {
        ++*count;
        *is_list = *is_list && lua_isinteger(lua, -2);
        sandbox_charge(lua, 1);
    }
    keys = lua_newuserdatauv(lua, (*count + 1) * sizeof *keys, 0);
    lua_insert(lua, -2);
    if (*is_list)
        return keys;
    *count = 0;
    for (lua_pushnil(lua); lua_next(lua, -2) != 0; lua_pop(lua, 1)) {
        if (lua_type(lua, -2) != LUA_TSTRING)
            luaL_error(lua, "a table has texts as keys, or 1 to n; found a %s among texts",
                       luaL_typename(lua, -2));
        keys[*count].data = lua_tolstring(lua, -2, &keys[*count].size);
        ++*count;
    }
    return keys;
}

static void print_members(struct printing *printing, str *keys, uint32_t count, uint32_t depth)
{
    qsort(keys, count, sizeof *keys, compare_strs);
    json_open(printing->out, '{');
    for (uint32_t i = 0; i < count; i++) {
        json_key_str(printing->out, keys[i]);
        lua_pushlstring(printing->lua, keys[i].data, keys[i].size);
        lua_rawget(printing->lua, -2);
        print_value(printing, depth);
    }
    json_close(printing->out, '}');
}

static void print_items(struct printing *printing, uint32_t depth)
{
    lua_State *lua = printing->lua;
    lua_Integer count = 0;

    for (lua_pushnil(lua); lua_next(lua, -2) != 0; lua_pop(lua, 1))
        count++;
    json_open(printing->out, '[');
    for (lua_Integer place = 1; place <= count; place++) {
        if (lua_rawgeti(lua, -1, place) == LUA_TNIL)
            luaL_error(lua, "a list of %d items lacks number %d", (int)count, (int)place);
        print_value(printing, depth);
    }
    json_close(printing->out, ']');
}

static void print_table(struct printing *printing, uint32_t depth)
{
    uint32_t count;
    bool is_list;
    str *keys;

    luaL_checkstack(printing->lua, 8, "a value");
    keys = collect_keys(printing, &count, &is_list);
    if (is_list)
        print_items(printing, depth);
    else
        print_members(printing, keys, count, depth);
    lua_remove(printing->lua, -2); /* the keys */
}

/* The value on top of the stack, which goes. */
static void print_value(struct printing *printing, uint32_t depth)
{
    lua_State *lua = printing->lua;
    const struct node *node = value_to_node(lua, -1);
    size_t before = printing->out->size, size;
    const char *text;

    if (depth == NODE_DEPTH_MAX)
        luaL_error(lua, "a value of more than %d levels", NODE_DEPTH_MAX);
    if (node) {
        print_node(printing, node);
    } else if (lua_type(lua, -1) == LUA_TTABLE) {
        print_table(printing, depth + 1);
    } else if (lua_type(lua, -1) == LUA_TNUMBER) {
        print_number(printing);
    } else if (lua_type(lua, -1) == LUA_TSTRING) {
        text = lua_tolstring(lua, -1, &size);
        json_str(printing->out, (str){ text, size });
    } else if (lua_isboolean(lua, -1)) {
        json_bool(printing->out, lua_toboolean(lua, -1));
    } else if (lua_isnil(lua, -1)) {
        json_null(printing->out);
    } else {
        luaL_error(lua, "a %s is no value", luaL_typename(lua, -1));
    }
    settle(printing, before);
    lua_pop(lua, 1);
}

void value_print(lua_State *lua, struct buf *out)
{
    struct printing printing = { .lua = lua, .sandbox = sandbox_of(lua), .out = out };

    print_value(&printing, 0);
}
