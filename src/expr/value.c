/* value.c - values of the flow, as an expression sees them.
 *
 * Objects and arrays are handles on nodes that were read already: looking at one member of a
 * large result costs that member. Of the world's open object a member is read when it is looked at,
 * and all of them when it is walked. A handle knows where it was last, so that a loop over an
 * array is linear. Nothing here can be changed by an expression. */
#include "expr/expr_int.h"

#define METATABLE       "value"
#define NUMBER_SIZE_MAX 200

struct handle {
    const struct node *node;
    const struct node *last; /* the child looked at last, and its place from 1; NULL: none */
    lua_Integer place;
};

/* ---- Pushing --------------------------------------------------------------------------------- */

static void push_number(lua_State *lua, const struct node *node)
{
    char text[NUMBER_SIZE_MAX + 1] = { 0 };

    if (node->text.size > NUMBER_SIZE_MAX)
        luaL_error(lua, "a number of %d digits", (int)node->text.size);
    memcpy(text, node->text.data, node->text.size);
    if (lua_stringtonumber(lua, text) == 0)
        luaL_error(lua, "'%s' is no number", text);
}

/* One value for each node: `result.items` twice is the same one, and remembers its place; a long
 * text is copied once. */
static void push_kept(lua_State *lua, const struct node *node)
{
    struct handle *handle;

    if (lua_rawgetp(lua, LUA_REGISTRYINDEX, node) != LUA_TNIL)
        return;
    lua_pop(lua, 1);
    if (node->kind == NODE_STRING) {
        lua_pushlstring(lua, node->text.data, node->text.size);
    } else {
        handle = lua_newuserdatauv(lua, sizeof *handle, 0);
        *handle = (struct handle){ .node = node };
        lua_getfield(lua, LUA_REGISTRYINDEX, METATABLE);
        lua_setmetatable(lua, -2);
    }
    lua_pushvalue(lua, -1);
    lua_rawsetp(lua, LUA_REGISTRYINDEX, node);
}

static void value_push(lua_State *lua, const struct node *node)
{
    if (!node || node->kind == NODE_NULL)
        lua_pushnil(lua);
    else if (node->kind == NODE_BOOL)
        lua_pushboolean(lua, node->truth);
    else if (node->kind == NODE_NUMBER)
        push_number(lua, node);
    else
        push_kept(lua, node);
}

static struct handle *to_handle(lua_State *lua, int index)
{
    return lua_type(lua, index) == LUA_TUSERDATA ? lua_touserdata(lua, index) : NULL;
}

const struct node *value_to_node(lua_State *lua, int index)
{
    const struct handle *handle = to_handle(lua, index);

    return handle ? handle->node : NULL;
}

/* ---- Looking into one ------------------------------------------------------------------------ */

static void check_world(lua_State *lua)
{
    if (sandbox_of(lua)->status != PAWL_OK)
        luaL_error(lua, "not to be had");
}

static bool is_open(lua_State *lua, const struct handle *handle)
{
    return handle->node == sandbox_of(lua)->world->open;
}

/* All of it is looked at. */
static const struct node *whole(lua_State *lua, struct handle *handle)
{
    struct sandbox *sandbox = sandbox_of(lua);

    if (is_open(lua, handle)) {
        const struct node *node = sandbox->world->whole(sandbox->world->context, &sandbox->status);

        check_world(lua);
        handle->node = node;
    }
    return handle->node;
}

static const struct node *member(lua_State *lua, const struct handle *handle, str key)
{
    struct sandbox *sandbox = sandbox_of(lua);
    const struct node *child = handle->node->first;
    uint32_t seen = 0;

    if (is_open(lua, handle)) {
        child = sandbox->world->member(sandbox->world->context, key, &seen, &sandbox->status);
        check_world(lua);
    } else {
        for (; child && !str_eq(child->key, key); child = child->next)
            seen++;
    }
    sandbox_charge(lua, seen / 4);
    return child;
}

static const struct node *element(lua_State *lua, struct handle *handle, lua_Integer place)
{
    uint64_t seen = 0;

    if (place < 1 || place > (lua_Integer)handle->node->count)
        return NULL;
    if (!handle->last || place < handle->place) {
        handle->last = handle->node->first;
        handle->place = 1;
    }
    for (; handle->place < place; handle->place++, seen++)
        handle->last = handle->last->next;
    sandbox_charge(lua, seen / 4);
    return handle->last;
}

static int value_index(lua_State *lua)
{
    struct handle *handle = to_handle(lua, 1);
    bool is_object = handle->node->kind == NODE_OBJECT;
    size_t size;

    if (is_object && lua_type(lua, 2) == LUA_TSTRING) {
        const char *key = lua_tolstring(lua, 2, &size);

        value_push(lua, member(lua, handle, (str){ key, size }));
    } else if (!is_object && lua_isinteger(lua, 2)) {
        value_push(lua, element(lua, handle, lua_tointeger(lua, 2)));
    } else {
        lua_pushnil(lua);
    }
    return 1;
}

static int value_length(lua_State *lua)
{
    lua_pushinteger(lua, whole(lua, to_handle(lua, 1))->count);
    return 1;
}

static int value_refuse_change(lua_State *lua)
{
    return luaL_error(lua, "values of the flow cannot be changed");
}

/* ---- pairs: in the order of the document, so the same every time --------------------------- */

static int next_pair(lua_State *lua)
{
    struct handle *handle = to_handle(lua, lua_upvalueindex(1));
    lua_Integer place = lua_tointeger(lua, lua_upvalueindex(2)) + 1;
    const struct node *child;

    (void)whole(lua, handle);
    child = element(lua, handle, place);
    if (!child)
        return 0;
    lua_pushinteger(lua, place);
    lua_replace(lua, lua_upvalueindex(2));
    if (handle->node->kind == NODE_OBJECT)
        lua_pushlstring(lua, child->key.data, child->key.size);
    else
        lua_pushinteger(lua, place);
    value_push(lua, child);
    return 2;
}

int value_pairs(lua_State *lua)
{
    if (!to_handle(lua, 1))
        return luaL_error(lua, "pairs: expected a value of the flow, found %s; use ipairs",
                          luaL_typename(lua, 1));
    lua_pushvalue(lua, 1);
    lua_pushinteger(lua, 0);
    lua_pushcclosure(lua, next_pair, 2);
    return 1;
}

/* ---- What is looked up when it is asked for -------------------------------------------------- */

static str key_of(lua_State *lua, int index)
{
    str key = STR_NONE;

    if (lua_type(lua, index) == LUA_TSTRING)
        key.data = lua_tolstring(lua, index, &key.size);
    return key;
}

static int find_global(lua_State *lua)
{
    struct sandbox *sandbox = sandbox_of(lua);
    str key = key_of(lua, 2);
    const struct node *node = NULL;

    if (key.data)
        node = sandbox->world->global(sandbox->world->context, key, &sandbox->status);
    check_world(lua);
    value_push(lua, node);
    lua_pushvalue(lua, 2);
    lua_pushvalue(lua, -2);
    lua_rawset(lua, 1); /* next time it is there */
    return 1;
}

/* steps.NAME is {result = ...}; a step that has none yet has nil. */
static int find_step(lua_State *lua)
{
    struct sandbox *sandbox = sandbox_of(lua);
    str key = key_of(lua, 2);
    const struct node *node = NULL;
    bool is_known =
        key.data && sandbox->world->step(sandbox->world->context, key, &node, &sandbox->status);

    check_world(lua);
    if (!is_known)
        return luaL_error(lua, "steps: there is no '%s', or it is not written as steps.NAME",
                          key.data ? key.data : "?");
    lua_createtable(lua, 0, 1);
    value_push(lua, node);
    lua_setfield(lua, -2, "result");
    return 1;
}

static void set_function(lua_State *lua, const char *name, lua_CFunction function)
{
    lua_pushcfunction(lua, function);
    lua_setfield(lua, -2, name);
}

/* An empty table whose members are found by `index`. */
static void push_looked_up(lua_State *lua, lua_CFunction index)
{
    lua_newtable(lua);
    lua_newtable(lua);
    set_function(lua, "__index", index);
    lua_setmetatable(lua, -2);
}

void value_open(lua_State *lua)
{
    lua_newtable(lua);
    set_function(lua, "__index", value_index);
    set_function(lua, "__newindex", value_refuse_change);
    set_function(lua, "__len", value_length);
    lua_pushstring(lua, "value");
    lua_setfield(lua, -2, "__name");
    lua_setfield(lua, LUA_REGISTRYINDEX, METATABLE);
    push_looked_up(lua, find_global);
    push_looked_up(lua, find_step);
    lua_setfield(lua, -2, "steps");
}
