/* library.c - what an expression may call: little, and all of it linear in what it is given.
 *
 * Lua's own libraries are not opened. Left out on purpose: patterns (they backtrack), format,
 * pcall, coroutines, load, metatables, everything that knows a clock or an address. The table
 * `string` is also where methods of texts are looked up. */
#include "expr/expr_int.h"
#include <math.h>

#define BYTES_PER_OPERATION 64

static str check_text(lua_State *lua, int index)
{
    str text = STR_NONE;

    text.data = luaL_checklstring(lua, index, &text.size);
    sandbox_charge(lua, text.size / BYTES_PER_OPERATION);
    return text;
}

/* ---- Texts ----------------------------------------------------------------------------------- */

static int string_len(lua_State *lua)
{
    lua_pushinteger(lua, (lua_Integer)check_text(lua, 1).size);
    return 1;
}

/* Places count from 1, from the end if negative. */
static lua_Integer absolute(lua_Integer place, size_t size)
{
    if (place >= 0)
        return place;
    return place < -(lua_Integer)size ? 0 : (lua_Integer)size + place + 1;
}

static int string_sub(lua_State *lua)
{
    str text = check_text(lua, 1);
    lua_Integer from = absolute(luaL_checkinteger(lua, 2), text.size);
    lua_Integer to = absolute(luaL_optinteger(lua, 3, -1), text.size);

    from = from < 1 ? 1 : from;
    to = to > (lua_Integer)text.size ? (lua_Integer)text.size : to;
    if (from > to)
        lua_pushliteral(lua, "");
    else
        lua_pushlstring(lua, text.data + from - 1, (size_t)(to - from + 1));
    return 1;
}

static char upper(char byte)
{
    return byte >= 'a' && byte <= 'z' ? (char)(byte - 'a' + 'A') : byte;
}

static char lower(char byte)
{
    return byte >= 'A' && byte <= 'Z' ? (char)(byte - 'A' + 'a') : byte;
}

static int change_bytes(lua_State *lua, char (*change)(char byte))
{
    str text = check_text(lua, 1);
    char *made = lua_newuserdatauv(lua, text.size + 1, 0);

    for (size_t i = 0; i < text.size; i++)
        made[i] = change(text.data[i]);
    lua_pushlstring(lua, made, text.size);
    return 1;
}

static int string_upper(lua_State *lua)
{
    return change_bytes(lua, upper);
}

static int string_lower(lua_State *lua)
{
    return change_bytes(lua, lower);
}

static int string_rep(lua_State *lua)
{
    str text = check_text(lua, 1);
    lua_Integer count = luaL_checkinteger(lua, 2);
    size_t size;
    char *made;

    if (count < 1 || text.size == 0) {
        lua_pushliteral(lua, "");
        return 1;
    }
    if ((uint64_t)count > EXPR_STRING_MAX / text.size)
        return luaL_error(lua, "string.rep: a text of more than %d bytes", (int)EXPR_STRING_MAX);
    size = text.size * (size_t)count;
    sandbox_charge(lua, size / BYTES_PER_OPERATION);
    made = lua_newuserdatauv(lua, size, 0);
    for (size_t at = 0; at < size; at += text.size)
        memcpy(made + at, text.data, text.size);
    lua_pushlstring(lua, made, size);
    return 1;
}

static int string_find(lua_State *lua)
{
    str text = check_text(lua, 1), wanted = check_text(lua, 2);
    lua_Integer from = absolute(luaL_optinteger(lua, 3, 1), text.size);
    const char *found = NULL;

    from = from < 1 ? 1 : from;
    /* The text itself is looked for, never a pattern; memmem() is linear. */
    if (from <= (lua_Integer)text.size + 1)
        found =
            memmem(text.data + from - 1, text.size - (size_t)(from - 1), wanted.data, wanted.size);
    if (!found) {
        lua_pushnil(lua);
        return 1;
    }
    lua_pushinteger(lua, found - text.data + 1);
    lua_pushinteger(lua, found - text.data + (lua_Integer)wanted.size);
    return 2;
}

static int string_starts(lua_State *lua)
{
    lua_pushboolean(lua, str_starts(check_text(lua, 1), check_text(lua, 2)));
    return 1;
}

static int string_ends(lua_State *lua)
{
    str text = check_text(lua, 1), end = check_text(lua, 2);

    lua_pushboolean(lua,
                    text.size >= end.size && str_eq(str_from(text, text.size - end.size), end));
    return 1;
}

/* ---- Numbers --------------------------------------------------------------------------------- */

static int round_number(lua_State *lua, bool is_up)
{
    lua_Number number, whole;

    if (lua_isinteger(lua, 1)) {
        lua_settop(lua, 1);
        return 1;
    }
    number = luaL_checknumber(lua, 1);
    whole = is_up ? -floor(-number) : floor(number);
    if (whole >= (lua_Number)LUA_MININTEGER && whole < -(lua_Number)LUA_MININTEGER)
        lua_pushinteger(lua, (lua_Integer)whole);
    else
        lua_pushnumber(lua, whole);
    return 1;
}

static int math_floor(lua_State *lua)
{
    return round_number(lua, false);
}

static int math_ceil(lua_State *lua)
{
    return round_number(lua, true);
}

static int math_abs(lua_State *lua)
{
    luaL_checknumber(lua, 1);
    lua_pushinteger(lua, 0);
    if (lua_compare(lua, 1, 2, LUA_OPLT)) {
        lua_pushvalue(lua, 1);
        lua_arith(lua, LUA_OPUNM);
    } else {
        lua_pushvalue(lua, 1);
    }
    return 1;
}

static int pick(lua_State *lua, bool is_max)
{
    int best = 1;

    luaL_checknumber(lua, 1);
    for (int i = 2; i <= lua_gettop(lua); i++) {
        luaL_checknumber(lua, i);
        if (is_max ? lua_compare(lua, best, i, LUA_OPLT) : lua_compare(lua, i, best, LUA_OPLT))
            best = i;
    }
    lua_pushvalue(lua, best);
    return 1;
}

static int math_min(lua_State *lua)
{
    return pick(lua, false);
}

static int math_max(lua_State *lua)
{
    return pick(lua, true);
}

/* ---- The rest -------------------------------------------------------------------------------- */

static int base_type(lua_State *lua)
{
    luaL_checkany(lua, 1);
    lua_pushstring(lua, value_to_node(lua, 1) ? "table" : luaL_typename(lua, 1));
    return 1;
}

/* Of what has a text of its own; that of a table would be its address. */
static int base_tostring(lua_State *lua)
{
    luaL_checkany(lua, 1);
    if (lua_isnil(lua, 1))
        lua_pushliteral(lua, "nil");
    else if (lua_isboolean(lua, 1))
        lua_pushstring(lua, lua_toboolean(lua, 1) ? "true" : "false");
    else if (lua_isstring(lua, 1))
        (void)lua_tolstring(lua, 1, NULL);
    else
        return luaL_error(lua, "tostring: a %s has no text", luaL_typename(lua, 1));
    return 1;
}

static int base_tonumber(lua_State *lua)
{
    str text;

    luaL_checkany(lua, 1);
    if (lua_type(lua, 1) == LUA_TNUMBER) {
        lua_settop(lua, 1);
        return 1;
    }
    text = lua_type(lua, 1) == LUA_TSTRING ? check_text(lua, 1) : STR("");
    if (lua_stringtonumber(lua, text.data) != text.size + 1)
        lua_pushnil(lua);
    return 1;
}

static int next_item(lua_State *lua)
{
    lua_Integer place = luaL_checkinteger(lua, 2) + 1;

    lua_pushinteger(lua, place);
    return lua_geti(lua, 1, place) == LUA_TNIL ? 1 : 2;
}

static int base_ipairs(lua_State *lua)
{
    luaL_checkany(lua, 1);
    lua_pushcfunction(lua, next_item);
    lua_pushvalue(lua, 1);
    lua_pushinteger(lua, 0);
    return 3;
}

/* ---- Together -------------------------------------------------------------------------------- */

static const luaL_Reg base_functions[] = {
#define X(name, function) { #name, function },
    EXPR_FUNCTIONS(X)
#undef X
    { NULL, NULL }
};
static const luaL_Reg string_functions[] = {
    { "len", string_len },       { "sub", string_sub },   { "upper", string_upper },
    { "lower", string_lower },   { "rep", string_rep },   { "find", string_find },
    { "starts", string_starts }, { "ends", string_ends }, { NULL, NULL }
};
static const luaL_Reg math_functions[] = { { "floor", math_floor }, { "ceil", math_ceil },
                                           { "abs", math_abs },     { "min", math_min },
                                           { "max", math_max },     { NULL, NULL } };

static void add_functions(lua_State *lua, const luaL_Reg *functions)
{
    for (; functions->name; functions++) {
        lua_pushcfunction(lua, functions->func);
        lua_setfield(lua, -2, functions->name);
    }
}

void library_open(lua_State *lua)
{
    add_functions(lua, base_functions);
    lua_newtable(lua);
    add_functions(lua, string_functions);
    lua_pushliteral(lua, ""); /* methods of texts, ("a"):len(): one metatable holds for all */
    lua_newtable(lua);
    lua_pushvalue(lua, -3);
    lua_setfield(lua, -2, "__index");
    lua_setmetatable(lua, -2);
    lua_pop(lua, 1);
    lua_setfield(lua, -2, "string");
    lua_newtable(lua);
    add_functions(lua, math_functions);
    lua_setfield(lua, -2, "math");
}
