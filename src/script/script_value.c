/* script_value.c - values of Lua as JSON and back. */
#include "script/script_int.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define NUMBER_SIZE_MAX 200
#define WHOLE_MAX       9007199254740992.0 /* 2^53: below it, a whole float prints as one */

const char script_array_mark = 0;

/* ---- Into Lua -------------------------------------------------------------------------------- */

static void push_number(lua_State *lua, const struct node *node)
{
    char text[NUMBER_SIZE_MAX + 1] = { 0 };

    if (node->text.size > NUMBER_SIZE_MAX)
        luaL_error(lua, "a number of %d digits", (int)node->text.size);
    memcpy(text, node->text.data, node->text.size);
    if (lua_stringtonumber(lua, text) == 0)
        luaL_error(lua, "'%s' is no number", text);
}

static void push_children(lua_State *lua, const struct node *node)
{
    bool is_array = node->kind == NODE_ARRAY;
    lua_Integer place = 0;

    luaL_checkstack(lua, 4, "a value that is too deep");
    lua_createtable(lua, is_array ? (int)node->count : 0, is_array ? 0 : (int)node->count);
    for (const struct node *child = node->first; child; child = child->next) {
        if (!is_array)
            lua_pushlstring(lua, child->key.data, child->key.size);
        script_push(lua, child);
        if (is_array)
            lua_rawseti(lua, -2, ++place);
        else
            lua_rawset(lua, -3);
    }
    if (!is_array)
        return;
    lua_rawgetp(lua, LUA_REGISTRYINDEX, &script_array_mark);
    lua_setmetatable(lua, -2);
}

void script_push(lua_State *lua, const struct node *node)
{
    if (!node || node->kind == NODE_NULL)
        lua_pushnil(lua);
    else if (node->kind == NODE_BOOL)
        lua_pushboolean(lua, node->truth);
    else if (node->kind == NODE_NUMBER)
        push_number(lua, node);
    else if (node->kind == NODE_STRING)
        lua_pushlstring(lua, node->text.data, node->text.size);
    else
        push_children(lua, node);
}

/* ---- Out of Lua ------------------------------------------------------------------------------ */

static void print_float(lua_State *lua, double number, struct buf *out)
{
    char text[40];

    if (!isfinite(number))
        luaL_error(lua, "a number that is not finite is no JSON");
    if (number == floor(number) && fabs(number) <= WHOLE_MAX) {
        json_i64(out, (int64_t)number);
        return;
    }
    for (int digits = 15; digits <= 17; digits++) {
        (void)snprintf(text, sizeof text, "%.*g", digits, number);
        if (strtod(text, NULL) == number)
            break;
    }
    json_raw(out, str_of(text));
}

static bool is_array(lua_State *lua, int index)
{
    bool is_marked = false;

    if (lua_getmetatable(lua, index)) {
        lua_rawgetp(lua, LUA_REGISTRYINDEX, &script_array_mark);
        is_marked = lua_rawequal(lua, -1, -2);
        lua_pop(lua, 2);
    }
    return is_marked || lua_rawlen(lua, index) > 0;
}

static void print_array(lua_State *lua, int index, struct buf *out)
{
    lua_Integer size = (lua_Integer)lua_rawlen(lua, index);

    json_open(out, '[');
    for (lua_Integer i = 1; i <= size; i++) {
        lua_rawgeti(lua, index, i);
        script_print(lua, -1, out);
        lua_pop(lua, 1);
    }
    json_close(out, ']');
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* The names are kept alive by the table itself. */
static const char **names_of(lua_State *lua, int index, size_t *count)
{
    const char **names;
    size_t room = 0;

    *count = 0;
    for (lua_pushnil(lua); lua_next(lua, index); lua_pop(lua, 1))
        room++;
    names = lua_newuserdatauv(lua, (room + 1) * sizeof(void *), 0);
    for (lua_pushnil(lua); lua_next(lua, index); lua_pop(lua, 1)) {
        if (lua_type(lua, -2) != LUA_TSTRING)
            luaL_error(lua,
                       "a table with places and names at once, or with other keys, is no JSON");
        names[(*count)++] = lua_tostring(lua, -2);
    }
    qsort(names, *count, sizeof(void *), compare_names);
    return names;
}

static void print_object(lua_State *lua, int index, struct buf *out)
{
    size_t count;
    const char **names = names_of(lua, index, &count);

    json_open(out, '{');
    for (size_t i = 0; i < count; i++) {
        lua_getfield(lua, index, names[i]);
        json_key_str(out, str_of(names[i]));
        script_print(lua, -1, out);
        lua_pop(lua, 1);
    }
    json_close(out, '}');
    lua_pop(lua, 1); /* the names */
}

static void print_text(lua_State *lua, int index, struct buf *out)
{
    str text = STR_NONE;

    text.data = lua_tolstring(lua, index, &text.size);
    if (!str_is_utf8(text, false))
        luaL_error(lua, "a text that is not UTF-8 is no JSON");
    json_str(out, text);
}

void script_print(lua_State *lua, int index, struct buf *out)
{
    index = lua_absindex(lua, index);
    luaL_checkstack(lua, 8, "a value that is too deep for JSON");
    switch (lua_type(lua, index)) {
    case LUA_TNIL:
        json_null(out);
        break;
    case LUA_TBOOLEAN:
        json_bool(out, lua_toboolean(lua, index));
        break;
    case LUA_TNUMBER:
        if (lua_isinteger(lua, index))
            json_i64(out, lua_tointeger(lua, index));
        else
            print_float(lua, lua_tonumber(lua, index), out);
        break;
    case LUA_TSTRING:
        print_text(lua, index, out);
        break;
    case LUA_TTABLE:
        if (is_array(lua, index))
            print_array(lua, index, out);
        else
            print_object(lua, index, out);
        break;
    default:
        luaL_error(lua, "a %s is no JSON", luaL_typename(lua, index));
    }
}
