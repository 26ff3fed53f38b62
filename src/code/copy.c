/* copy.c - arguments are borrowed for the call, handlers are called long after it: keep a copy,
 * with the names as they are called outside. */
#include "base/limits.h"
#include "code/code_int.h"

/* NULL stays NULL. */
static const char *copy_text(struct arena *arena, const char *text)
{
    return arena_text(arena, str_of(text));
}

static const char *copy_name(struct arena *arena, const char *name)
{
    char wire[LIMIT_NAME + 1];

    if (pawl_wire_name(name, wire, sizeof wire) >= sizeof wire)
        return copy_text(arena, name); /* too long: told when it is checked */
    return copy_text(arena, wire);
}

static const char *const *copy_names(struct arena *arena, const char *const *names, bool as_wire)
{
    unsigned count = names_count(names);
    const char **copy = ARENA_ARRAY(arena, const char *, count + 1);

    for (unsigned i = 0; copy && i < count; i++)
        copy[i] = as_wire ? copy_name(arena, names[i]) : copy_text(arena, names[i]);
    return names ? (const char *const *)copy : NULL;
}

/* A copy of `count` rows, of which each begins with so many texts, and of the zero row behind. */
static void *copy_rows(struct arena *arena, const void *rows, size_t count, size_t size,
                       size_t texts)
{
    char *copy = rows ? arena_alloc(arena, (count + 1) * size) : NULL;

    if (copy)
        memcpy(copy, rows, count * size);
    for (size_t i = 0; copy && i < count; i++)
        for (size_t t = 0; t < texts; t++) {
            const char **text = (const char **)(void *)(copy + i * size) + t;

            *text = copy_text(arena, *text);
        }
    return copy;
}

/* Fields of structs are asked for by a function and need no copy. */
static const pawl_var *copy_vars(struct arena *arena, const pawl_var *vars)
{
    size_t count = 0;

    while (vars && !vars_is_end(&vars[count]) && count <= LIMIT_DECLARED)
        count++;
    return copy_rows(arena, vars, count, sizeof *vars, 1);
}

/* Rows that end with one whose first text is NULL. */
static void *copy_named(struct arena *arena, const void *rows, size_t size, size_t texts)
{
    const char *at = rows;
    size_t count = 0;

    while (rows && count <= LIMIT_DECLARED &&
           *(const char *const *)(const void *)(at + count * size))
        count++;
    return copy_rows(arena, rows, count, size, texts);
}

const pawl_code_type *code_copy(struct arena *arena, const pawl_code_type *type)
{
    pawl_code_type *copy = arena_copy(arena, type, sizeof *type);

    if (!copy)
        return NULL;
    copy->name = copy_text(arena, type->name);
    copy->timers = copy_names(arena, type->timers, true);
    copy->signals = copy_names(arena, type->signals, true);
    copy->calls = copy_names(arena, type->calls, false);
    copy->externals = copy_names(arena, type->externals, false);
    copy->children = copy_names(arena, type->children, false);
    copy->buffered = copy_names(arena, type->buffered, true);
    copy->phases = copy_names(arena, type->phases, false);
    copy->vars = copy_vars(arena, type->vars);
    copy->payloads = copy_vars(arena, type->payloads);
    copy->result = copy_vars(arena, type->result);
    copy->renamed = copy_named(arena, type->renamed, sizeof *type->renamed, 2);
    copy->retries = copy_named(arena, type->retries, sizeof *type->retries, 1);
    copy->no_retries = copy_named(arena, type->no_retries, sizeof *type->no_retries, 2);
    if (type->initial && type->state_size <= LIMIT_TEXT)
        copy->initial = arena_copy(arena, type->initial, type->state_size);
    return arena->failed ? NULL : copy;
}
