/* ops_types.c - is a value what its row of the table says? */
#include "api/ops_int.h"

static const struct {
    const char *name;
    enum node_kind kind; /* of its values; not of OP_INTEGER and OP_JSON */
} types[] = {
    [OP_STRING] = { "a string", NODE_STRING },  [OP_INTEGER] = { "a whole number", NODE_NUMBER },
    [OP_BOOL] = { "true or false", NODE_BOOL }, [OP_OBJECT] = { "an object", NODE_OBJECT },
    [OP_JSON] = { "a JSON value", NODE_NULL },
};

static bool has_type(const struct node *node, enum op_type type)
{
    int64_t number;

    if (type == OP_INTEGER)
        return node_to_i64(node, &number);
    return type == OP_JSON || node->kind == types[type].kind;
}

pawl_status op_check_value(struct scope *scope, const struct op_param *param,
                           const struct node *node, const char *where)
{
    if (!node)
        return param->required ? scope_fail(scope, PAWL_INVALID_REQUEST, "'%s%s' is missing: %s",
                                            where, param->name, param->summary)
                               : PAWL_OK;
    if (!has_type(node, param->type))
        return scope_fail(scope, PAWL_INVALID_REQUEST, "'%s%s': expected %s, found %s", where,
                          param->name, types[param->type].name,
                          param->type == OP_INTEGER && node->kind == NODE_NUMBER
                              ? "a number that is not, or is too large"
                              : node_kind_name(node->kind));
    if (param->required && param->type == OP_STRING && str_is_blank(node->text))
        return scope_fail(scope, PAWL_INVALID_REQUEST, "'%s%s' is blank: %s", where, param->name,
                          param->summary);
    return PAWL_OK;
}

pawl_status op_check_part(struct scope *scope, const struct op *as, const struct node *part,
                          const char *where)
{
    for (const struct node *member = part->first; member; member = member->next)
        if (!op_param_find(as, member->key))
            return scope_fail(scope, PAWL_INVALID_REQUEST, "unknown field '%s%.*s'", where,
                              STR_ARG(member->key));
    for (const struct op_param *param = as->params; param->name; param++) {
        const struct node *node = node_find(part, param->name);

        TRY(op_check_value(scope, param, node && node->kind == NODE_NULL ? NULL : node, where));
    }
    return PAWL_OK;
}
