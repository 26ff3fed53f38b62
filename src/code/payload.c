/* payload.c - what an event brings, read into the struct that its type declares. */
#include "base/limits.h"
#include "code/code_int.h"

static const pawl_var *find_payload(const pawl_code_type *type, const char *name)
{
    char wire[LIMIT_NAME + 1];

    for (const pawl_var *var = type->payloads; name && var && !vars_is_end(var); var++) {
        (void)pawl_wire_name(var->name, wire, sizeof wire);
        if (strcmp(var->name, name) == 0 || strcmp(wire, name) == 0)
            return var;
    }
    return NULL;
}

static pawl_status fail_payload(struct scope *scope, const pawl_event *event,
                                const struct var_place *place)
{
    const pawl_var *var = place->bad_var;
    const struct node *found = place->bad_node;
    bool is_number = found->kind == NODE_NUMBER;

    return scope_fail(
        scope, PAWL_INVALID_REQUEST,
        "the payload of '%s': expected %s%s%s for '%s', found %s%s%.*s", event->name,
        var->max > 0 ? "a list of " : "", var_type_name(var->type),
        var_type_size(var->type) == 0 && var->type != PAWL_VAR_STRUCT ? " that fits its size" : "",
        var->name, node_kind_name(found->kind), is_number ? ": " : "",
        (int)(is_number ? found->text.size : 0), found->text.data ? found->text.data : "");
}

pawl_status payload_read(struct scope *scope, const pawl_code_type *type, const pawl_event *event,
                         void *value)
{
    const pawl_var *var = find_payload(type, event->name);
    struct var_place place = { .scope = scope, .vars = var, .base = value };
    struct node *node;
    pawl_status status;

    if (!var)
        return PAWL_OK;
    status = node_read_json(scope, str_of(event->payload), &node);
    if (status == PAWL_OK && !var_load(&place, var, node))
        status = fail_payload(scope, event, &place);
    return status;
}
