/* registration.c - a code type becomes a definition: the lifecycle, and its print as the plan. */
#include "base/limits.h"
#include "code/code_int.h"
#include "model/words.h"

static bool is_var_end(const pawl_var *var)
{
    return !var->name && var->type == 0 && var->size == 0;
}

static uint32_t type_version(const pawl_code_type *type)
{
    return type->version > 0 ? type->version : 1;
}

static void print_names(const char *key, const char *const *names, struct buf *out)
{
    json_key(out, key);
    json_open(out, '[');
    for (; names && *names; names++)
        json_text(out, *names);
    json_close(out, ']');
}

static void print_vars(const pawl_var *var, struct buf *out)
{
    json_key(out, "vars");
    json_open(out, '[');
    for (; var && !is_var_end(var); var++) {
        json_open(out, '{');
        json_key(out, "name");
        json_text(out, var->name);
        json_key(out, "type");
        json_text(out, var_type_name(var->type));
        json_close(out, '}');
    }
    json_close(out, ']');
}

pawl_status code_source(struct scope *scope, const pawl_code_type *type, str *out)
{
    struct buf buf;
    str source;

    buf_init(&buf, scope->arena.heap, LIMIT_SCOPE);
    json_open(&buf, '{');
    json_key(&buf, "code");
    json_text(&buf, type->name);
    json_key(&buf, "version");
    json_u64(&buf, type_version(type));
    print_names("timers", type->timers, &buf);
    print_names("signals", type->signals, &buf);
    print_vars(type->vars, &buf);
    json_close(&buf, '}');
    source = buf_keep(&buf, &scope->arena);
    buf_fini(&buf);
    if (!source.data)
        return scope_no_memory(scope);
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

/* The size that a variable of this type must have; 0: any from 2 on. */
static size_t type_size(pawl_var_type type)
{
    switch (type) {
    case PAWL_VAR_INT64:
        return sizeof(int64_t);
    case PAWL_VAR_DOUBLE:
        return sizeof(double);
    case PAWL_VAR_BOOL:
        return sizeof(bool);
    case PAWL_VAR_TEXT:
        break;
    }
    return 0;
}

static pawl_status check_var_place(struct scope *scope, const pawl_code_type *type,
                                   const pawl_var *var)
{
    size_t size = type_size(var->type);

    if (!var_type_name(var->type))
        return scope_fail(scope, PAWL_INVALID_REQUEST,
                          "variable '%s': expected a type of pawl_var_type, found %d", var->name,
                          (int)var->type);
    if (size > 0 ? var->size != size : var->size < 2)
        return scope_fail(scope, PAWL_INVALID_REQUEST,
                          "variable '%s': expected %s%zu bytes for its type %s, found %zu",
                          var->name, size > 0 ? "" : "at least ", size > 0 ? size : 2,
                          var_type_name(var->type), var->size);
    if (var->offset > type->state_size || var->size > type->state_size - var->offset)
        return scope_fail(scope, PAWL_INVALID_REQUEST,
                          "variable '%s' ends at byte %zu and state_size is %zu; set it to the "
                          "size of the struct",
                          var->name, var->offset + var->size, type->state_size);
    return PAWL_OK;
}

static pawl_status check_var(struct scope *scope, const pawl_code_type *type, uint32_t index)
{
    const pawl_var *var = &type->vars[index];

    if (index == LIMIT_DECLARED)
        return scope_fail(scope, PAWL_INVALID_REQUEST,
                          "a code type has at most %u variables; end the list with a zero row",
                          LIMIT_DECLARED);
    if (!var->name || !is_name(str_of(var->name)))
        return scope_fail(scope, PAWL_INVALID_REQUEST,
                          "variable %u: expected a name of 1 to %d bytes of UTF-8", index,
                          LIMIT_NAME);
    for (uint32_t before = 0; before < index; before++)
        if (strcmp(type->vars[before].name, var->name) == 0)
            return scope_fail(scope, PAWL_INVALID_REQUEST,
                              "variable '%s' is declared twice; keep one", var->name);
    return check_var_place(scope, type, var);
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
    if (type->state_size > LIMIT_TEXT)
        return scope_fail(scope, PAWL_INVALID_REQUEST,
                          "code type '%s': expected a state_size of at most %u bytes, found %zu",
                          type->name, LIMIT_TEXT, type->state_size);
    return PAWL_OK;
}

static pawl_status check_type(struct scope *scope, const pawl_code_type *type)
{
    pawl_status status = check_head(scope, type);

    if (status == PAWL_OK)
        status = check_names(scope, "timer", type->timers);
    if (status == PAWL_OK)
        status = check_names(scope, "signal", type->signals);
    for (uint32_t i = 0; status == PAWL_OK && type->vars && !is_var_end(&type->vars[i]); i++)
        status = check_var(scope, type, i);
    return status;
}

pawl_status code_compile(struct scope *scope, const pawl_code_type *type, struct definition **out)
{
    pawl_status status = check_type(scope, type);
    struct definition *definition;

    if (status != PAWL_OK)
        return status;
    definition = ARENA_NEW(&scope->arena, struct definition);
    if (!definition)
        return scope_no_memory(scope);
    definition->kind = KIND_CODE;
    definition->compiler = COMPILER_NUMBER;
    definition->plan = (void *)(uintptr_t)type; /* read only: every user takes it as const */
    status = code_source(scope, type, &definition->plan_text);
    if (status == PAWL_OK)
        status = definition_set_lifecycle(definition, scope);
    if (status == PAWL_OK)
        *out = definition;
    return status;
}

str code_name(const struct definition *definition, struct scope *scope)
{
    struct node *plan, *name;

    if (!definition->plan_text.data ||
        node_read_json(scope, definition->plan_text, &plan) != PAWL_OK)
        return STR("?");
    name = node_find(plan, "code");
    return name && name->kind == NODE_STRING ? words_shown(name->text) : STR("?");
}
