/* payload.c - what an event brings, read into the struct that its type declares. */
#include "base/limits.h"
#include "code/code_int.h"
#include "model/words.h"
#include <stdio.h>

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

/* "expected text for 'lines[1].sku', found a number: 7" */
static pawl_status fail_value(struct scope *scope, const char *what, const struct var_place *place,
                              const char *path)
{
    const pawl_var *var = place->bad_var;
    const struct node *found = place->bad_node;
    bool is_missing = var->is_required && (!found || found->kind == NODE_NULL);
    bool is_list = var->max > 0 && !place->bad_is_item;
    bool has_size = var_type_size(var->type) == 0 && var->type != PAWL_VAR_STRUCT && !is_list;
    str number = found && found->kind == NODE_NUMBER ? words_shown(found->text) : STR("");
    char most[48] = "";

    if (is_list && found && found->kind == NODE_ARRAY)
        (void)snprintf(most, sizeof most, " of %u where at most %u fit", found->count, var->max);
    return scope_fail(
        scope, PAWL_INVALID_REQUEST, "%s: expected %s%s%s for '%s'%s, found %s%s%s%.*s", what,
        is_list ? "a list of " : "", var_type_name(var->type),
        has_size && !is_missing ? " that fits its size" : "", path,
        is_missing ? ", which is required" : "", found ? node_kind_name(found->kind) : "nothing",
        most, number.size > 0 ? ": " : "", STR_ARG(number));
}

struct payload_names {
    struct buf text;     /* "a, b, c" */
    const char **known;  /* the same, ending in NULL */
};

static pawl_status list_names(struct scope *scope, const pawl_var *vars, bool inputs_only,
                              struct payload_names *out)
{
    uint32_t count = 0;

    for (const pawl_var *var = vars; !vars_is_end(var); var++)
        count++;
    out->known = ARENA_ARRAY(&scope->arena, const char *, count + 1);
    TRY_MEMORY(scope, out->known);
    buf_init(&out->text, scope->arena.heap, LIMIT_TEXT);
    count = 0;
    for (const pawl_var *var = vars; !vars_is_end(var); var++)
        if (var->is_input || !inputs_only) {
            buf_item(&out->text, str_of(var->name));
            out->known[count++] = var->name;
        }
    return PAWL_OK;
}

/* "expected one of sku, count, found the member 'lines[1].size'; did you mean ...?" */
static pawl_status fail_unknown(struct scope *scope, const char *what,
                                const struct var_place *place, const char *path)
{
    struct payload_names names;
    pawl_status status;
    const char *meant;

    TRY(list_names(scope, place->bad_vars, place->bad_is_input, &names));
    meant = words_nearest(place->bad_node->key, names.known);
    status = scope_fail(scope, PAWL_INVALID_REQUEST,
                        "%s: expected one of %.200s, found the member '%s'%s%s%s", what,
                        buf_text(&names.text), path, meant ? "; did you mean '" : "",
                        meant ? meant : "", meant ? "'?" : "");
    buf_fini(&names.text);
    return status;
}

static pawl_status fail_shape(struct scope *scope, const char *what, const struct var_place *place,
                              const char *path)
{
    return place->bad_var ? fail_value(scope, what, place, path)
                          : fail_unknown(scope, what, place, path);
}

/* A member of the payload itself is named as its sender wrote it: without the signal's name. */
static const char *path_inside(const struct var_place *place, const pawl_var *var)
{
    size_t size = strlen(var->name);

    return strncmp(place->path, var->name, size) == 0 && place->path[size] == '.'
               ? place->path + size + 1
               : place->path;
}

pawl_status payload_read(struct scope *scope, const pawl_code_type *type, const pawl_event *event,
                         enum var_shape shape, void *value)
{
    const pawl_var *var = find_payload(type, event->name);
    struct var_place place = { .scope = scope, .vars = var, .base = value, .shape = shape };
    char what[LIMIT_NAME + 24];
    struct node *node;
    pawl_status status;

    if (!var)
        return PAWL_OK;
    status = node_read_json(scope, str_of(event->payload), &node);
    if (status != PAWL_OK || var_load(&place, var, node))
        return status;
    (void)snprintf(what, sizeof what, "the payload of '%s'", event->name);
    return fail_shape(scope, what, &place, path_inside(&place, var));
}

static bool has_inputs(const pawl_code_type *type)
{
    const pawl_var *var = type->vars;

    while (var && !vars_is_end(var) && !var->is_input)
        var++;
    return var && !vars_is_end(var);
}

static pawl_status fail_no_object(struct scope *scope, const pawl_code_type *type,
                                  const struct node *found)
{
    struct payload_names names;
    pawl_status status;

    TRY(list_names(scope, type->vars, true, &names));
    status = scope_fail(scope, PAWL_INVALID_REQUEST,
                        "input: expected an object with %.200s, found %s", buf_text(&names.text),
                        node_kind_name(found->kind));
    buf_fini(&names.text);
    return status;
}

/* A type without inputs may read what it was given itself. */
pawl_status input_read(struct scope *scope, const pawl_code_type *type, str input,
                       enum var_shape shape, void *state)
{
    struct var_place place = { .scope = scope, .vars = type->vars, .base = state, .shape = shape };
    struct node *node;
    pawl_status status = node_read_json(scope, input, &node);

    if (status != PAWL_OK || !has_inputs(type))
        return status;
    if (shape >= SHAPE_SENT && node->kind != NODE_OBJECT && node->kind != NODE_NULL)
        return fail_no_object(scope, type, node);
    return vars_load(&place, node, true) ? PAWL_OK : fail_shape(scope, "input", &place, place.path);
}
