/* environment.c - the environment of a program: a few of our variables, and the step's. */
#include "tool/tool_int.h"

#define KEY_NAME   "PAWL_IDEMPOTENCY_KEY="
#define TRACE_NAME "TRACEPARENT="

extern char **environ;

static char *make_variable(struct arena *arena, str name, str value)
{
    char *entry = arena_alloc(arena, name.size + value.size + 1);

    if (!entry)
        return NULL;
    memcpy(entry, name.data, name.size);
    if (value.size > 0)
        memcpy(entry + name.size, value.data, value.size);
    return entry;
}

/* Passes on what a program usually needs, and what the rules name. Any other variable may be a
 * secret of the host. */
static bool is_passed_on(const struct tool_rules *rules, const char *variable)
{
    static const char *const usual[] = { "PATH", "HOME", "LANG", "TZ", "TMPDIR", "USER", "LOGNAME" };
    const char *equals = strchr(variable, '=');
    str name = { variable, equals ? (size_t)(equals - variable) : 0 };

    if (!equals)
        return false;
    for (size_t i = 0; i < sizeof usual / sizeof usual[0]; i++)
        if (str_is(name, usual[i]))
            return true;
    return str_starts(name, STR("LC_")) || rule_names_have(&rules->variables, name);
}

/* The idempotency key and the trace come from the step; a rule cannot pass on our own. */
static bool is_ours(const char *variable)
{
    return strncmp(variable, KEY_NAME, strlen(KEY_NAME)) == 0 ||
           strncmp(variable, TRACE_NAME, strlen(TRACE_NAME)) == 0;
}

char **environment_make(const struct call *call, const char **marker)
{
    struct arena *arena = &call->scope->arena;
    const pawl_tool_call *given = call->given;
    size_t count = 0, kept = 0;
    char **made;

    while (environ[count])
        count++;
    made = ARENA_ARRAY(arena, char *, count + 3);
    for (size_t i = 0; i < count && made; i++)
        if (is_passed_on(&call->toolbox->rules, environ[i]) && !is_ours(environ[i]))
            made[kept++] = environ[i];
    if (made)
        made[kept++] = make_variable(arena, STR(KEY_NAME), str_of(given->idempotency_key));
    *marker = made && str_of(given->idempotency_key).size > 0 ? made[kept - 1] : NULL;
    if (made && given->traceparent)
        made[kept] = make_variable(arena, STR(TRACE_NAME), str_of(given->traceparent));
    return arena->failed ? NULL : made;
}
