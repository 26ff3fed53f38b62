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

/* Fields of structs are asked for by a function and need no copy. */
static const pawl_var *copy_vars(struct arena *arena, const pawl_var *vars)
{
    size_t count = 0;
    pawl_var *copy;

    while (vars && !vars_is_end(&vars[count]) && count <= LIMIT_DECLARED)
        count++;
    copy = ARENA_ARRAY(arena, pawl_var, count + 1);
    for (size_t i = 0; copy && i < count; i++) {
        copy[i] = vars[i];
        copy[i].name = copy_text(arena, vars[i].name);
    }
    return vars ? copy : NULL;
}

static const pawl_rename *copy_renamed(struct arena *arena, const pawl_rename *rows)
{
    size_t count = 0;
    pawl_rename *copy;

    while (rows && rows[count].from && count <= LIMIT_DECLARED)
        count++;
    copy = ARENA_ARRAY(arena, pawl_rename, count + 1);
    for (size_t i = 0; copy && i < count; i++) {
        copy[i].from = copy_text(arena, rows[i].from);
        copy[i].to = copy_text(arena, rows[i].to);
    }
    return rows ? copy : NULL;
}

static const pawl_retry *copy_retries(struct arena *arena, const pawl_retry *rows)
{
    size_t count = 0;
    pawl_retry *copy;

    while (rows && rows[count].call && count <= LIMIT_DECLARED)
        count++;
    copy = ARENA_ARRAY(arena, pawl_retry, count + 1);
    for (size_t i = 0; copy && i < count; i++) {
        copy[i] = rows[i];
        copy[i].call = copy_text(arena, rows[i].call);
    }
    return rows ? copy : NULL;
}

static const pawl_no_retry *copy_no_retries(struct arena *arena, const pawl_no_retry *rows)
{
    size_t count = 0;
    pawl_no_retry *copy;

    while (rows && rows[count].call && count <= LIMIT_DECLARED)
        count++;
    copy = ARENA_ARRAY(arena, pawl_no_retry, count + 1);
    for (size_t i = 0; copy && i < count; i++) {
        copy[i].call = copy_text(arena, rows[i].call);
        copy[i].error = copy_text(arena, rows[i].error);
    }
    return rows ? copy : NULL;
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
    copy->renamed = copy_renamed(arena, type->renamed);
    copy->retries = copy_retries(arena, type->retries);
    copy->no_retries = copy_no_retries(arena, type->no_retries);
    if (type->initial && type->state_size <= LIMIT_TEXT)
        copy->initial = arena_copy(arena, type->initial, type->state_size);
    return arena->failed ? NULL : copy;
}
