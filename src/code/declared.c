/* declared.c - the variables of the build that wrote a state, beside those of the build that reads
 * it: a number says nothing about whether it was cents or euros. */
#include "code/code_int.h"

pawl_status declared_read(struct scope *scope, str text, const struct node **out)
{
    struct node *root = NULL;
    pawl_status status = text.data ? node_read_json(scope, text, &root) : PAWL_OK;

    *out = status == PAWL_OK ? node_find(root, "vars") : NULL;
    return status == PAWL_NO_MEMORY ? status : PAWL_OK;
}

static const struct node *find_row(const struct node *declared, const char *name)
{
    for (const struct node *row = declared ? declared->first : NULL; row; row = row->next) {
        const struct node *its_name = node_find(row, "name");

        if (its_name && its_name->kind == NODE_STRING && str_is(its_name->text, name))
            return row;
    }
    return NULL;
}

const struct node *declared_find(const pawl_code_type *type, const struct node *declared,
                                 const pawl_var *var)
{
    const struct node *found = find_row(declared, var->name);

    for (const pawl_rename *row = type->renamed; !found && row && row->from; row++)
        if (strcmp(row->to, var->name) == 0)
            found = find_row(declared, row->from);
    return found;
}

/* 0: no type that this build knows. */
static pawl_var_type type_of(const struct node *row)
{
    const struct node *word = node_find(row, "type");

    for (int type = PAWL_VAR_INT64; word && type <= PAWL_VAR_STRUCT; type++)
        if (str_is(word->text, var_type_name((pawl_var_type)type)))
            return (pawl_var_type)type;
    return (pawl_var_type)0;
}

static bool is_integer(pawl_var_type type)
{
    return type == PAWL_VAR_INT64 || (type >= PAWL_VAR_INT8 && type <= PAWL_VAR_UINT64);
}

/* An integer that does not fit is seen by its value; digits that a float drops are not. */
static bool is_kept(pawl_var_type before, pawl_var_type now)
{
    return before == now || (is_integer(before) && is_integer(now)) ||
           (before == PAWL_VAR_FLOAT && now == PAWL_VAR_DOUBLE);
}

bool declared_is_alike(const struct node *before, const pawl_var *var)
{
    const struct node *fields = node_find(before, "fields");

    if (!is_kept(type_of(before), var->type) ||
        (node_find(before, "max") != NULL) != (var->max > 0))
        return false;
    for (const pawl_var *field = var->fields ? var->fields() : NULL; field && !vars_is_end(field);
         field++) {
        const struct node *row = find_row(fields, field->name);

        if (row && !declared_is_alike(row, field))
            return false;
    }
    return true;
}
