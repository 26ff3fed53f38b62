/* environment.c - the environment of a program: a few of our variables, and the step's. */
#include "tool/tool_int.h"

#define KEY_NAME   "PAWL_IDEMPOTENCY_KEY"
#define TRACE_NAME "TRACEPARENT"

extern char **environ;

char *environment_variable(struct arena *arena, str name, str value)
{
    char *entry = arena_alloc(arena, name.size + value.size + 2);

    if (!entry)
        return NULL;
    memcpy(entry, name.data, name.size);
    entry[name.size] = '=';
    if (value.size > 0)
        memcpy(entry + name.size + 1, value.data, value.size);
    return entry;
}

static str name_of(const char *variable)
{
    const char *equals = strchr(variable, '=');

    return (str){ variable, equals ? (size_t)(equals - variable) : 0 };
}

bool environment_is_of_step(str name)
{
    return str_is(name, KEY_NAME) || str_is(name, TRACE_NAME);
}

static bool has_variable(char *const *variables, str name)
{
    for (; *variables; variables++)
        if (str_eq(name_of(*variables), name))
            return true;
    return false;
}

/* Passes on what a program usually needs, and what the rules name. Any other variable may be a
 * secret of the host. */
static bool is_passed_on(const struct rule_names *named, str name)
{
    static const char *const usual[] = { "PATH",   "HOME", "LANG",    "TZ",
                                         "TMPDIR", "USER", "LOGNAME", NULL };

    return name.size > 0 && (str_is_one_of(name, usual) || str_starts(name, STR("LC_")) ||
                             rule_names_have(named, name));
}

static size_t count_of(char *const *variables)
{
    size_t count = 0;

    while (variables[count])
        count++;
    return count;
}

/* The host's variables first, then the step's own, which take precedence. */
static size_t add_variables(const struct call *call, char **of_step, char **made)
{
    size_t kept = 0;

    for (char **variable = environ; *variable; variable++) {
        str name = name_of(*variable);

        if (is_passed_on(&call->toolbox->rules.variables, name) && !environment_is_of_step(name) &&
            !has_variable(of_step, name))
            made[kept++] = *variable;
    }
    for (; *of_step; of_step++)
        made[kept++] = *of_step;
    return kept;
}

char **environment_make(const struct call *call, char **of_step, const char **marker)
{
    struct arena *arena = &call->scope->arena;
    const pawl_tool_call *given = call->given;
    char **made = ARENA_ARRAY(arena, char *, count_of(environ) + count_of(of_step) + 3);
    size_t kept = made ? add_variables(call, of_step, made) : 0;

    *marker = NULL;
    if (!made)
        return NULL;
    made[kept] = environment_variable(arena, STR(KEY_NAME), str_of(given->idempotency_key));
    if (str_of(given->idempotency_key).size > 0)
        *marker = made[kept];
    if (given->traceparent)
        made[kept + 1] = environment_variable(arena, STR(TRACE_NAME), str_of(given->traceparent));
    return arena->failed ? NULL : made;
}

char **environment_of_server(struct arena *arena, const struct rule_names *named)
{
    char **made = ARENA_ARRAY(arena, char *, count_of(environ) + 1);
    size_t kept = 0;

    for (char **variable = environ; made && *variable; variable++)
        if (is_passed_on(named, name_of(*variable)))
            made[kept++] = *variable;
    return made;
}
