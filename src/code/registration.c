/* registration.c - a code type becomes a definition: the lifecycle, and its print as the plan. */
#include "base/limits.h"
#include "code/code_int.h"
#include "model/interest.h"
#include "model/words.h"

static void print_names(const char *key, const char *const *names, struct buf *out)
{
    json_put_open(out, key, '[');
    for (; names && *names; names++)
        json_text(out, *names);
    json_close(out, ']');
}

/* Empty members of later releases are left out: older registrations print as before. */
static void print_more_names(const char *key, const char *const *names, struct buf *out)
{
    if (names && *names)
        print_names(key, names, out);
}

static void print_vars(const char *key, const pawl_var *var, struct buf *out)
{
    json_put_open(out, key, '[');
    for (; var && !vars_is_end(var); var++) {
        json_open(out, '{');
        json_put_text(out, "name", var->name);
        json_put_text(out, "type", var_type_name(var->type));
        json_opt_u64(out, "max", var->max);
        if (var->fields)
            print_vars("fields", var->fields(), out);
        if (var->is_input)
            json_put_bool(out, "input", true);
        if (var->is_required)
            json_put_bool(out, "required", true);
        json_close(out, '}');
    }
    json_close(out, ']');
}

static void print_more_vars(const char *key, const pawl_var *var, struct buf *out)
{
    if (var && !vars_is_end(var))
        print_vars(key, var, out);
}

/* "renamed":[[OLD,NEW],...], where there are any. */
static void print_renamed(const pawl_rename *row, struct buf *out)
{
    if (!row || !row->from)
        return;
    json_put_open(out, "renamed", '[');
    for (; row->from; row++) {
        json_open(out, '[');
        json_text(out, row->from);
        json_text(out, row->to);
        json_close(out, ']');
    }
    json_close(out, ']');
}

pawl_status code_source(struct scope *scope, const pawl_code_type *type, str *out)
{
    struct buf buf;
    str source;

    buf_init(&buf, scope->arena.heap, LIMIT_SCOPE);
    json_open(&buf, '{');
    json_put_text(&buf, "code", type->name);
    json_put_u64(&buf, "version", type->version > 0 ? type->version : 1);
    print_names("timers", type->timers, &buf);
    print_names("signals", type->signals, &buf);
    print_vars("vars", type->vars, &buf);
    print_more_names("calls", type->calls, &buf);
    print_more_names("externals", type->externals, &buf);
    print_more_names("children", type->children, &buf);
    print_more_names("buffered", type->buffered, &buf);
    print_more_names("phases", type->phases, &buf);
    print_more_vars("payloads", type->payloads, &buf);
    print_more_vars("result", type->result, &buf);
    print_renamed(type->renamed, &buf);
    retries_print(type, &buf);
    json_close(&buf, '}');
    source = buf_take(&buf, &scope->arena);
    TRY_MEMORY(scope, source.data);
    *out = source;
    return PAWL_OK;
}

static bool is_name(str name)
{
    return name.size <= LIMIT_NAME && str_is_utf8(name, false) && !str_is_blank(name);
}

static pawl_status check_names(struct scope *scope, const char *what, const char *const *names)
{
    for (uint32_t i = 0; names && names[i]; i++) {
        if (i == LIMIT_DECLARED)
            return scope_fail(scope, PAWL_INVALID_REQUEST,
                              "a code type has at most %u %ss; end the list with NULL",
                              LIMIT_DECLARED, what);
        if (!is_name(str_of(names[i])))
            return scope_fail(scope, PAWL_INVALID_REQUEST,
                              "%s %u: expected a name of 1 to %d bytes of UTF-8, found '%.*s'",
                              what, i, LIMIT_NAME, STR_ARG(words_shown(str_of(names[i]))));
        for (uint32_t before = 0; before < i; before++)
            if (str_is(str_of(names[before]), names[i]))
                return scope_fail(scope, PAWL_INVALID_REQUEST,
                                  "%s '%s' is declared twice; keep one", what, names[i]);
    }
    return PAWL_OK;
}

/* The struct that a list of variables describes. */
struct code_layout {
    struct scope *scope;
    const pawl_var *vars;
    size_t size;
    const char *member; /* of pawl_code_type, that says the size */
    uint32_t depth;
};

static pawl_status check_place(const struct code_layout *layout, const pawl_var *var)
{
    size_t count = var->max > 0 ? var->max : 1;

    if (var->offset > layout->size || var->size > (layout->size - var->offset) / count)
        return scope_fail(layout->scope, PAWL_INVALID_REQUEST,
                          "variable '%s' ends at byte %zu and %s is %zu; set it to the "
                          "size of the struct",
                          var->name, var->offset + var->size * count, layout->member, layout->size);
    if (var->max > 0 &&
        (layout->size < sizeof(uint32_t) || var->count_offset > layout->size - sizeof(uint32_t)))
        return scope_fail(layout->scope, PAWL_INVALID_REQUEST,
                          "variable '%s': its count lies outside of the struct", var->name);
    return PAWL_OK;
}

static pawl_status check_vars(const struct code_layout *layout);

static pawl_status check_fields(const struct code_layout *layout, const pawl_var *var)
{
    struct code_layout inner = { layout->scope, NULL, var->size, "the size of its struct",
                            layout->depth + 1 };

    if (var->type != PAWL_VAR_STRUCT)
        return PAWL_OK;
    if (!var->fields || inner.depth > LIMIT_PARTS)
        return scope_fail(layout->scope, PAWL_INVALID_REQUEST,
                          "variable '%s': expected the fields of its struct, at most %u deep",
                          var->name, LIMIT_PARTS);
    inner.vars = var->fields();
    return check_vars(&inner);
}

static pawl_status check_var_type(const struct code_layout *layout, const pawl_var *var)
{
    size_t size = var_type_size(var->type), least = var->type == PAWL_VAR_STRUCT ? 1 : 2;

    if (!var_type_name(var->type))
        return scope_fail(layout->scope, PAWL_INVALID_REQUEST,
                          "variable '%s': expected a type of pawl_var_type, found %d", var->name,
                          (int)var->type);
    if (size > 0 ? var->size != size : var->size < least)
        return scope_fail(layout->scope, PAWL_INVALID_REQUEST,
                          "variable '%s': expected %s%zu bytes for its type %s, found %zu",
                          var->name, size > 0 ? "" : "at least ", size > 0 ? size : least,
                          var_type_name(var->type), var->size);
    TRY(check_place(layout, var));
    return check_fields(layout, var);
}

static pawl_status check_var(const struct code_layout *layout, uint32_t index)
{
    const pawl_var *var = &layout->vars[index];

    if (index == LIMIT_DECLARED)
        return scope_fail(layout->scope, PAWL_INVALID_REQUEST,
                          "a code type has at most %u variables; end the list with a zero row",
                          LIMIT_DECLARED);
    if (!var->name || !is_name(str_of(var->name)))
        return scope_fail(layout->scope, PAWL_INVALID_REQUEST,
                          "variable %u: expected a name of 1 to %d bytes of UTF-8", index,
                          LIMIT_NAME);
    for (uint32_t before = 0; before < index; before++)
        if (strcmp(layout->vars[before].name, var->name) == 0)
            return scope_fail(layout->scope, PAWL_INVALID_REQUEST,
                              "variable '%s' is declared twice; keep one", var->name);
    return check_var_type(layout, var);
}

static pawl_status check_vars(const struct code_layout *layout)
{
    for (uint32_t i = 0; layout->vars && !vars_is_end(&layout->vars[i]); i++)
        TRY(check_var(layout, i));
    return PAWL_OK;
}

static bool has_var(const pawl_code_type *type, const char *name)
{
    const pawl_var *var = type->vars;

    while (var && !vars_is_end(var) && strcmp(var->name, name) != 0)
        var++;
    return var && !vars_is_end(var);
}

static pawl_status check_rename(struct scope *scope, const pawl_code_type *type, uint32_t index)
{
    const pawl_rename *row = &type->renamed[index];

    if (index == LIMIT_DECLARED)
        return scope_fail(scope, PAWL_INVALID_REQUEST,
                          "a code type has at most %u renamed variables; end the list with a zero "
                          "row",
                          LIMIT_DECLARED);
    if (!row->to || !has_var(type, row->to))
        return scope_fail(scope, PAWL_INVALID_REQUEST,
                          "renamed '%s' to '%s': expected a variable of the list, found none of "
                          "that name",
                          row->from, row->to ? row->to : "");
    if (has_var(type, row->from))
        return scope_fail(scope, PAWL_INVALID_REQUEST,
                          "renamed '%s' to '%s': '%s' is a variable; take one of the lines away",
                          row->from, row->to, row->from);
    for (uint32_t before = 0; before < index; before++)
        if (strcmp(type->renamed[before].from, row->from) == 0)
            return scope_fail(scope, PAWL_INVALID_REQUEST,
                              "renamed '%s' to '%s': it is renamed to '%s' already; keep one",
                              row->from, row->to, type->renamed[before].to);
    return PAWL_OK;
}

static pawl_status check_renamed(struct scope *scope, const pawl_code_type *type)
{
    for (uint32_t i = 0; type->renamed && type->renamed[i].from; i++)
        TRY(check_rename(scope, type, i));
    return PAWL_OK;
}

/* The stored state has the phase under this name. */
static pawl_status check_phase_name(struct scope *scope, const pawl_code_type *type)
{
    for (const pawl_var *var = type->vars; type->phases && var && !vars_is_end(var); var++)
        if (strcmp(var->name, "phase") == 0 || strcmp(var->name, "subscriptions") == 0)
            return scope_fail(scope, PAWL_INVALID_REQUEST,
                              "variable '%s': the name is taken by what an instance waits "
                              "for; call it otherwise",
                              var->name);
    return PAWL_OK;
}

/* A tool and an external call may not share a name: an answer has only the name. */
static pawl_status check_calls(struct scope *scope, const pawl_code_type *type)
{
    for (const char *const *name = type->calls; name && *name; name++)
        if (names_find(type->externals, *name) < names_count(type->externals))
            return scope_fail(scope, PAWL_INVALID_REQUEST,
                              "'%s' is declared as a call and as an external; keep one", *name);
    for (const char *const *name = type->buffered; name && *name; name++)
        if (names_find(type->signals, *name) == names_count(type->signals))
            return scope_fail(scope, PAWL_INVALID_REQUEST,
                              "'%s' is buffered, and no signal of the type", *name);
    return PAWL_OK;
}

static pawl_status check_head(struct scope *scope, const pawl_code_type *type)
{
    str name = str_of(type->name);

    if (!definition_name_is_valid(name))
        return scope_fail(scope, PAWL_INVALID_REQUEST,
                          "a code type's name: expected 1 to %d of A-Z a-z 0-9 . _ / -, found "
                          "'%.*s'",
                          LIMIT_NAME, STR_ARG(words_shown(name)));
    if (!type->handle)
        return scope_fail(scope, PAWL_INVALID_REQUEST, "code type '%s' has no handler; set .handle",
                          type->name);
    if (type->state_size > LIMIT_TEXT || type->payload_size > LIMIT_TEXT)
        return scope_fail(scope, PAWL_INVALID_REQUEST,
                          "code type '%s': expected a state_size and a payload_size of at most %u "
                          "bytes, found %zu and %zu",
                          type->name, LIMIT_TEXT, type->state_size, type->payload_size);
    return PAWL_OK;
}

/* Names like these are the engine's own, of rows that are no waits. */
static pawl_status check_signals(struct scope *scope, const pawl_code_type *type)
{
    for (const char *const *name = type->signals; name && *name; name++)
        if (interest_is(str_of(*name)))
            return scope_fail(scope, PAWL_INVALID_REQUEST,
                              "signal '%.*s' begins with '~', as the engine's own names do; name "
                              "it otherwise",
                              STR_ARG(words_shown(str_of(*name))));
    return PAWL_OK;
}

static pawl_status check_lists(struct scope *scope, const pawl_code_type *type)
{
    const struct {
        const char *what;
        const char *const *names;
    } lists[] = { { "timer", type->timers },   { "signal", type->signals },
                  { "call", type->calls },     { "external", type->externals },
                  { "child", type->children }, { "buffered signal", type->buffered },
                  { "phase", type->phases } };

    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++)
        TRY(check_names(scope, lists[i].what, lists[i].names));
    TRY(check_signals(scope, type));
    return check_calls(scope, type);
}

static pawl_status check_type(struct scope *scope, const pawl_code_type *type)
{
    const struct code_layout structs[] = {
        { scope, type->vars, type->state_size, "state_size", 0 },
        { scope, type->payloads, type->payload_size, "payload_size", 0 },
        { scope, type->result, SIZE_MAX, "its struct", 0 },
    };

    TRY(check_head(scope, type));
    TRY(check_lists(scope, type));
    TRY(check_phase_name(scope, type));
    for (size_t i = 0; i < sizeof structs / sizeof structs[0]; i++)
        TRY(check_vars(&structs[i]));
    TRY(check_renamed(scope, type));
    return retries_check(scope, type);
}

pawl_status code_compile(struct scope *scope, const struct code_binding *binding,
                         struct definition **out)
{
    struct definition *definition;

    TRY(check_type(scope, binding->type));
    definition = ARENA_NEW(&scope->arena, struct definition);
    TRY_MEMORY(scope, definition);
    definition->kind = KIND_CODE;
    definition->compiler = COMPILER_NUMBER;
    TRY(code_source(scope, binding->type, &definition->plan_text));
    TRY(definition_set_lifecycle(definition, scope));
    TRY(code_prepare(definition, scope));
    code_bind(definition, binding);
    *out = definition;
    return PAWL_OK;
}
