/* sandbox.c - one Lua state for one evaluation, and its limits.
 *
 * Memory comes from an arena that goes with the evaluation: nothing is freed in between, the
 * collector never runs, and what counts is all that was ever asked for. That is the same number
 * every time, whatever was garbage when. The state is not closed either: it owns nothing but
 * that memory, and closing it would take as long as it has objects. */
#include "expr/expr_int.h"

/* Between two looks at the count of operations. A text of EXPR_STRING_MAX can be compared this
 * often before it is noticed: about 50 us each. */
#define TICK                16
#define BYTES_PER_OPERATION 256
/* A call copies its arguments and a return its results, however many there are on the stack. */
#define STACK_BYTES_PER_OPERATION 4096

/* An evaluation that has asked for too much gets it until the next look: refusing a block makes
 * Lua collect its garbage first, which takes longer than anything else here. */
#define MEMORY_HARD_MAX (2 * EXPR_MEMORY_MAX)

struct sandbox *sandbox_of(lua_State *lua)
{
    return *(struct sandbox **)lua_getextraspace(lua);
}

/* ---- Limits ---------------------------------------------------------------------------------- */

static void *refuse(struct sandbox *sandbox, enum expr_limit limit)
{
    if (sandbox->limit == WITHIN_LIMITS)
        sandbox->limit = limit;
    return NULL;
}

/* The stack is the first block that Lua asks for without saying what for. A larger one is asked for
 * in the same way and the old one let go, or the block is grown; which, depends on the Lua. */
static void note_stack(struct sandbox *sandbox, const void *block, const void *made, size_t size)
{
    if (!block) {
        sandbox->newest = made;
        sandbox->newest_size = size;
    }
    if (!sandbox->stack || block == sandbox->stack) {
        sandbox->stack = made;
        sandbox->stack_size = size;
    }
}

/* Lua tells what a new block is for in `old_size`. */
static void *grow(struct sandbox *sandbox, void *block, size_t old_size, size_t new_size)
{
    bool is_string = !block && old_size == LUA_TSTRING;
    void *made;

    if (is_string && new_size > EXPR_STRING_MAX)
        return refuse(sandbox, OVER_STRING);
    if (new_size + sandbox->memory_used > EXPR_MEMORY_MAX)
        (void)refuse(sandbox, OVER_MEMORY);
    if (new_size + sandbox->memory_used > MEMORY_HARD_MAX)
        return NULL;
    made = arena_alloc(&sandbox->arena, new_size);
    if (!made) {
        sandbox->status = PAWL_NO_MEMORY;
        return NULL;
    }
    sandbox->memory_used += new_size;
    if (is_string && new_size > sandbox->longest)
        sandbox->longest = new_size;
    if (block)
        memcpy(made, block, old_size);
    if (block || old_size == 0)
        note_stack(sandbox, block, made, new_size);
    return made;
}

static void *allocate(void *context, void *block, size_t old_size, size_t new_size)
{
    struct sandbox *sandbox = context;

    if (new_size > 0)
        return block && new_size <= old_size ? block : grow(sandbox, block, old_size, new_size);
    if (block && block == sandbox->stack) {
        sandbox->stack = sandbox->newest;
        sandbox->stack_size = sandbox->newest_size;
    }
    return NULL;
}

void sandbox_charge(lua_State *lua, uint64_t operations)
{
    struct sandbox *sandbox = sandbox_of(lua);

    sandbox->operations += operations;
    if (sandbox->operations > EXPR_OPERATION_MAX)
        (void)refuse(sandbox, OVER_OPERATIONS);
    if (sandbox->limit != WITHIN_LIMITS)
        luaL_error(lua, "over its limits");
}

static void tick(lua_State *lua, lua_Debug *debug)
{
    const struct sandbox *sandbox = sandbox_of(lua);

    (void)debug;
    sandbox_charge(lua, TICK * (1 + sandbox->longest / BYTES_PER_OPERATION +
                                sandbox->stack_size / STACK_BYTES_PER_OPERATION));
}

/* ---- Compiling ------------------------------------------------------------------------------- */

struct source {
    str parts[2];
    int next;
};

static const char *read_source(lua_State *lua, void *context, size_t *size)
{
    struct source *source = context;
    str part;

    (void)lua;
    while (source->next < 2) {
        part = source->parts[source->next++];
        *size = part.size;
        if (part.size > 0)
            return part.data;
    }
    return NULL;
}

static bool begins_statement(str text)
{
    static const char *const words[] = { "local", "if",     "for",  "while",   "repeat",
                                         "do",    "return", "goto", "function" };

    text = str_from(text, str_span(text, " \t\r\n"));
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        str word = str_of(words[i]);
        char next = text.size > word.size ? text.data[word.size] : ' ';

        /* `function` begins an expression too, unless it has a name: the parenthesis tells. */
        if (str_starts(text, word) && memchr(" \t\r\n", next, 4))
            return true;
    }
    return false;
}

/* An expression, or statements that return something. Leaves a function, or raises. */
static void compile(lua_State *lua, const struct sandbox *sandbox)
{
    str text = sandbox->text;
    struct source source = { { begins_statement(text) ? STR("") : STR("return "), text }, 0 };

    if (lua_load(lua, read_source, &source, sandbox->chunk, "t") != LUA_OK)
        lua_error(lua);
}

/* ---- Evaluating ------------------------------------------------------------------------------ */

static int evaluate(lua_State *lua)
{
    struct sandbox *sandbox = sandbox_of(lua);

    compile(lua, sandbox);
    if (!sandbox->world)
        return 0;
    value_open(lua); /* leaves the table of globals */
    library_open(lua);
    lua_setupvalue(lua, -2, 1);
    lua_sethook(lua, tick, LUA_MASKCOUNT, TICK);
    lua_call(lua, 0, 1);
    sandbox_charge(lua, 0); /* what was met between two looks */
    sandbox->is_true = lua_toboolean(lua, -1);
    if (sandbox->out)
        value_print(lua, sandbox->out);
    return 0;
}

static pawl_status fail_limit(const struct sandbox *sandbox, struct scope *scope,
                              pawl_status status)
{
    const char *what = sandbox->chunk + 1;

    switch (sandbox->limit) {
    case OVER_OPERATIONS:
        return scope_fail(scope, status, "%s: it takes more than %u operations", what,
                          EXPR_OPERATION_MAX);
    case OVER_MEMORY:
        return scope_fail(scope, status, "%s: it takes more than %zu bytes of memory", what,
                          EXPR_MEMORY_MAX);
    case OVER_STRING:
        return scope_fail(scope, status, "%s: a text of more than %zu bytes", what,
                          EXPR_STRING_MAX);
    case WITHIN_LIMITS:
        break;
    }
    return status;
}

static pawl_status tell(struct sandbox *sandbox, lua_State *lua, struct scope *scope,
                        pawl_status status)
{
    const char *words;

    if (sandbox->status == PAWL_NO_MEMORY)
        return scope_no_memory(scope);
    if (sandbox->status != PAWL_OK) /* said by the world */
        return sandbox->status;
    if (sandbox->limit != WITHIN_LIMITS)
        return fail_limit(sandbox, scope, status);
    words = lua_type(lua, -1) == LUA_TSTRING ? lua_tostring(lua, -1) : "it failed";
    if (str_starts(str_of(words), str_of(sandbox->chunk + 1)))
        return scope_fail(scope, status, "%s", words);
    return scope_fail(scope, status, "%s: %s", sandbox->chunk + 1, words);
}

static pawl_status run(struct sandbox *sandbox, struct scope *scope, pawl_status failed)
{
    lua_State *lua = lua_newstate(allocate, sandbox);

    TRY_MEMORY(scope, lua);
    *(struct sandbox **)lua_getextraspace(lua) = sandbox;
    lua_gc(lua, LUA_GCSTOP);
    lua_pushcfunction(lua, evaluate);
    if (lua_pcall(lua, 0, 0, 0) == LUA_OK && sandbox->status == PAWL_OK)
        return PAWL_OK;
    return tell(sandbox, lua, scope, failed);
}

static pawl_status run_text(struct sandbox *sandbox, struct scope *scope, pawl_status failed)
{
    pawl_status status;

    if (sandbox->text.size > EXPR_TEXT_MAX)
        return scope_fail(scope, failed, "%s: expected at most %u bytes, found %zu",
                          sandbox->chunk + 1, EXPR_TEXT_MAX, sandbox->text.size);
    arena_init(&sandbox->arena, scope->arena.heap, 4 * EXPR_MEMORY_MAX);
    status = run(sandbox, scope, failed);
    arena_fini(&sandbox->arena);
    return status;
}

static const char *const chunks[EXPR_USE_COUNT] = {
    [EXPR_CONDITION] = "=condition",
    [EXPR_VALUE] = "=expression",
    [EXPR_QUERY] = "=query",
};

pawl_status expr_check(struct scope *scope, enum expr_use use, str text)
{
    struct sandbox sandbox = { .text = text, .chunk = chunks[use] };

    return run_text(&sandbox, scope, PAWL_INVALID_DEFINITION);
}

pawl_status expr_holds(struct scope *scope, str text, const struct expr_world *world, bool *out)
{
    struct sandbox sandbox = { .text = text, .world = world, .chunk = chunks[EXPR_CONDITION] };
    pawl_status status = run_text(&sandbox, scope, PAWL_INVALID_REQUEST);

    if (status == PAWL_OK)
        *out = sandbox.is_true;
    return status;
}

pawl_status expr_value(struct scope *scope, enum expr_use use, str text,
                       const struct expr_world *world, str *out)
{
    struct sandbox sandbox = { .text = text, .world = world, .chunk = chunks[use] };
    struct buf value;
    pawl_status status;

    buf_init(&value, scope->arena.heap, EXPR_PRINT_MAX);
    sandbox.out = &value;
    status = run_text(&sandbox, scope, PAWL_INVALID_REQUEST);
    if (status == PAWL_OK) {
        *out = buf_keep(&value, &scope->arena);
        status = out->data ? PAWL_OK : scope_no_memory(scope);
    }
    buf_fini(&value);
    return status;
}
