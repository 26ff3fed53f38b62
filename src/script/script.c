/* script.c - the states of Lua in which the instances of a file live, and what is asked of them. */
#include "script/script_int.h"

#define TICK 1000 /* instructions between two looks at their count */

extern const str script_prelude[][2]; /* made from prelude.lua */

/* One instance; its Lua owns it, and finds it by its extra space. */
struct lua_world {
    lua_State *lua;
    const struct heap *heap;
    struct script *script;
    size_t used;
    uint64_t operations, keep; /* keep: the number under which it is kept; 0: it is not */
};

struct script {
    const struct heap *heap;
    struct script_host host;
    str text;
    const char *name;
    struct lua_world *states[SCRIPT_STATES]; /* by `keep` */
};

static struct lua_world *state_of(lua_State *lua)
{
    struct lua_world *state;

    memcpy(&state, lua_getextraspace(lua), sizeof state);
    return state;
}

/* ---- Limits ---------------------------------------------------------------------------------- */

static void *allocate(void *context, void *block, size_t old_size, size_t new_size)
{
    struct lua_world *state = context;
    size_t before = block ? old_size : 0;
    void *made;

    if (new_size == 0) {
        heap_free(state->heap, block, before);
        state->used -= before;
        return NULL;
    }
    if (state->used - before + new_size > SCRIPT_MEMORY_MAX)
        return NULL; /* Lua collects its garbage and asks once more */
    made = heap_resize(state->heap, block, before, new_size);
    if (made)
        state->used += new_size - before;
    return made;
}

static void tick(lua_State *lua, lua_Debug *debug)
{
    struct lua_world *state = state_of(lua);

    (void)debug;
    state->operations += TICK;
    if (state->operations > SCRIPT_OPERATIONS_MAX)
        luaL_error(lua, "the turn takes more than %d operations; is there an endless loop?",
                   (int)SCRIPT_OPERATIONS_MAX);
}

/* ---- A state --------------------------------------------------------------------------------- */

static int give_seed(lua_State *lua)
{
    const struct script_host *host = &state_of(lua)->script->host;

    lua_pushinteger(lua, (lua_Integer)(host->seed(host->context) >> 11)); /* as JSON has it whole */
    return 1;
}

static int say(lua_State *lua)
{
    const struct script_host *host = &state_of(lua)->script->host;

    host->say(host->context, luaL_checkstring(lua, 1));
    return 0;
}

static void open_libraries(lua_State *lua)
{
    static const luaL_Reg libraries[] = {
        { LUA_GNAME, luaopen_base },       { LUA_COLIBNAME, luaopen_coroutine },
        { LUA_TABLIBNAME, luaopen_table }, { LUA_STRLIBNAME, luaopen_string },
        { LUA_UTF8LIBNAME, luaopen_utf8 }, { LUA_MATHLIBNAME, luaopen_math }
    };
    static const char *const hidden[][2] = {
        { LUA_GNAME, "dofile" },          { LUA_GNAME, "loadfile" },
        { LUA_GNAME, "collectgarbage" },  { LUA_GNAME, "warn" },
        { LUA_STRLIBNAME, "dump" },       { LUA_MATHLIBNAME, "random" },
        { LUA_MATHLIBNAME, "randomseed" }
    };

    for (size_t i = 0; i < sizeof libraries / sizeof libraries[0]; i++) {
        luaL_requiref(lua, libraries[i].name, libraries[i].func, 1);
        lua_pop(lua, 1);
    }
    for (size_t i = 0; i < sizeof hidden / sizeof hidden[0]; i++) {
        lua_getglobal(lua, hidden[i][0]);
        lua_pushnil(lua);
        lua_setfield(lua, -2, hidden[i][1]);
        lua_pop(lua, 1);
    }
}

static void load_text(lua_State *lua, str text, const char *name)
{
    if (luaL_loadbufferx(lua, text.data, text.size, name, "t") != LUA_OK)
        lua_error(lua);
}

/* Leaves hello and answer on the stack. */
static int open_state(lua_State *lua)
{
    const struct script *script = state_of(lua)->script;

    open_libraries(lua);
    lua_newtable(lua);
    lua_pushvalue(lua, -1);
    lua_rawsetp(lua, LUA_REGISTRYINDEX, &script_array_mark);
    load_text(lua, script_prelude[0][1], "=prelude.lua");
    lua_pushlstring(lua, script->text.data, script->text.size);
    lua_pushcfunction(lua, give_seed);
    lua_pushvalue(lua, -4);
    lua_pushcfunction(lua, say);
    lua_call(lua, 4, 2);
    load_text(lua, script->text, script->name);
    lua_sethook(lua, tick, LUA_MASKCOUNT, TICK); /* coroutines have it from here */
    lua_call(lua, 0, 0);
    return 2;
}

static void free_state(struct lua_world *state)
{
    if (!state)
        return;
    if (state->lua)
        lua_close(state->lua);
    heap_free(state->heap, state, sizeof *state);
}

static pawl_status fail(struct lua_world *state, struct scope *scope, int status)
{
    const char *words = lua_type(state->lua, -1) == LUA_TSTRING ? lua_tostring(state->lua, -1)
                                                                : "it failed without words";

    if (status == LUA_ERRMEM)
        return scope_fail(scope, PAWL_INVALID_DEFINITION,
                          "the instance takes more than %zu bytes of memory", SCRIPT_MEMORY_MAX);
    return scope_fail(scope, PAWL_INVALID_DEFINITION, "%s", words);
}

static pawl_status new_state(struct script *script, struct scope *scope, struct lua_world **out)
{
    struct lua_world *state = heap_new(script->heap, sizeof *state);
    pawl_status status = PAWL_OK;
    int failed;

    TRY_MEMORY(scope, state);
    *state = (struct lua_world){ .heap = script->heap, .script = script };
    state->lua = lua_newstate(allocate, state);
    if (!state->lua) {
        free_state(state);
        return scope_no_memory(scope);
    }
    memcpy(lua_getextraspace(state->lua), &state, sizeof state);
    lua_pushcfunction(state->lua, open_state);
    failed = lua_pcall(state->lua, 0, 2, 0);
    if (failed != LUA_OK) {
        status = fail(state, scope, failed);
        free_state(state);
        return status;
    }
    *out = state;
    return status;
}

/* ---- Asking ---------------------------------------------------------------------------------- */

struct question {
    const struct node *request; /* NULL: for the hello */
    struct buf *out;
};

/* hello, answer and the question are its arguments. */
static int ask(lua_State *lua)
{
    struct question *question = lua_touserdata(lua, 3);

    lua_pushvalue(lua, question->request ? 2 : 1);
    if (question->request)
        script_push(lua, question->request);
    lua_call(lua, question->request ? 1 : 0, 1);
    script_print(lua, -1, question->out);
    return 0;
}

static pawl_status put_question(struct lua_world *state, struct scope *scope,
                                const struct node *request, struct buf *out)
{
    struct question question = { request, out };
    int failed;

    state->operations = 0;
    lua_settop(state->lua, 2);
    lua_pushcfunction(state->lua, ask);
    lua_pushvalue(state->lua, 1);
    lua_pushvalue(state->lua, 2);
    lua_pushlightuserdata(state->lua, &question);
    failed = lua_pcall(state->lua, 3, 0, 0);
    return failed == LUA_OK ? PAWL_OK : fail(state, scope, failed);
}

static uint64_t number_of(const struct node *request, const char *key)
{
    const struct node *node = node_find(request, key);
    int64_t number = 0;

    return node && node_to_i64(node, &number) && number > 0 ? (uint64_t)number : 0;
}

/* The instance's state, which is the caller's until it is kept again. *out NULL: it was
 * forgotten. */
static pawl_status take_state(struct script *script, struct scope *scope,
                              const struct node *request, struct lua_world **out)
{
    uint64_t have = number_of(request, "have");
    struct lua_world **place = &script->states[have % SCRIPT_STATES];

    *out = NULL;
    if (!have)
        return new_state(script, scope, out);
    if (*place && (*place)->keep == have) {
        *out = *place;
        *place = NULL;
    }
    return PAWL_OK;
}

static void keep_state(struct script *script, struct lua_world *state, uint64_t keep)
{
    struct lua_world **place = &script->states[keep % SCRIPT_STATES];

    free_state(*place);
    state->keep = keep;
    *place = state;
}

/* What cannot be printed is the author's mistake, as what cannot be run is. */
static void print_problem(const struct scope *scope, struct buf *out)
{
    buf_clear(out);
    json_open(out, '{');
    json_put_u64(out, "end", 3);
    json_put_text(out, "problem", scope->error.message);
    json_close(out, '}');
}

pawl_status script_answer(struct script *script, struct scope *scope, const struct node *request,
                          struct buf *out)
{
    uint64_t keep = number_of(request, "keep");
    struct lua_world *state;
    pawl_status status = take_state(script, scope, request, &state);

    if (status == PAWL_OK && !state) {
        buf_str(out, STR("{\"need\":1}"));
        return PAWL_OK;
    }
    if (status == PAWL_OK)
        status = put_question(state, scope, request, out);
    if (status == PAWL_INVALID_DEFINITION)
        print_problem(scope, out);
    if (status == PAWL_OK && keep && memmem(out->data, out->size, "\"end\":0,", 8))
        keep_state(script, state, keep);
    else if (state)
        free_state(state);
    return status == PAWL_INVALID_DEFINITION ? PAWL_OK : status;
}

pawl_status script_hello(struct script *script, struct scope *scope, struct buf *out)
{
    struct lua_world *state;
    pawl_status status;

    TRY(new_state(script, scope, &state));
    status = put_question(state, scope, NULL, out);
    free_state(state);
    return status;
}

/* ---- Opening --------------------------------------------------------------------------------- */

pawl_status script_open(const struct heap *heap, struct scope *scope, str text, const char *name,
                        const struct script_host *host, struct script **out)
{
    struct script *script = heap_new(heap, sizeof *script);

    TRY_MEMORY(scope, script);
    *script = (struct script){ .heap = heap, .host = *host, .text = text, .name = name };
    *out = script;
    return PAWL_OK;
}

void script_close(struct script *script)
{
    for (uint32_t i = 0; script && i < SCRIPT_STATES; i++)
        free_state(script->states[i]);
    if (script)
        heap_free(script->heap, script, sizeof *script);
}
