/* state.c - variables out of a JSON object, by name, into a C struct.
 *
 * By name, so that a later build may add, drop and reorder variables. */
#include "base/number.h"
#include "code/code_int.h"
#include "model/words.h"
#include <math.h>
#include <stdio.h>

/* clang-format off */
const char *var_type_name(pawl_var_type type)
{
    switch (type) {
#define X(name, number, text) case PAWL_VAR_##name: return (text);
    PAWL_VAR_TYPE_MAP(X)
#undef X
    }
    return NULL;
}
/* clang-format on */

size_t var_type_size(pawl_var_type type)
{
    switch (type) {
    case PAWL_VAR_INT8:
    case PAWL_VAR_UINT8:
        return 1;
    case PAWL_VAR_INT16:
    case PAWL_VAR_UINT16:
        return 2;
    case PAWL_VAR_INT32:
    case PAWL_VAR_UINT32:
        return 4;
    case PAWL_VAR_INT64:
    case PAWL_VAR_UINT64:
        return 8;
    case PAWL_VAR_FLOAT:
        return sizeof(float);
    case PAWL_VAR_DOUBLE:
        return sizeof(double);
    case PAWL_VAR_BOOL:
        return sizeof(bool);
    case PAWL_VAR_TEXT:
    case PAWL_VAR_JSON:
    case PAWL_VAR_STRUCT:
        break;
    }
    return 0;
}

bool vars_is_end(const pawl_var *var)
{
    return !var->name && (var->type == 0 || var->type == PAWL_VAR_INT64) && var->size == 0;
}

/* Little and big endian alike: the value is copied as what it is. */
static bool store_integer(uint64_t n, size_t size, void *place)
{
    if (size == 1)
        *(uint8_t *)place = (uint8_t)n;
    else if (size == 2)
        *(uint16_t *)place = (uint16_t)n;
    else if (size == 4)
        *(uint32_t *)place = (uint32_t)n;
    else
        *(uint64_t *)place = n;
    return true;
}

static bool load_signed(const struct node *node, size_t size, void *place)
{
    int64_t n, most = size < 8 ? (INT64_C(1) << (size * 8 - 1)) - 1 : INT64_MAX;

    return node_to_i64(node, &n) && n >= -most - 1 && n <= most &&
           store_integer((uint64_t)n, size, place);
}

static bool load_unsigned(const struct node *node, size_t size, void *place)
{
    uint64_t n;

    return node->kind == NODE_NUMBER && str_to_u64(node->text, &n) &&
           (size == 8 || n >> (size * 8) == 0) && store_integer(n, size, place);
}

static bool load_float(const struct node *node, size_t size, void *place)
{
    double value;
    float narrow;

    if (node->kind != NODE_NUMBER || !number_read_double(node->text, &value))
        return false;
    narrow = (float)value;
    if (size == sizeof narrow)
        return isfinite(narrow) && memcpy(place, &narrow, sizeof narrow);
    return memcpy(place, &value, sizeof value);
}

static bool load_chars(str text, size_t size, char *place)
{
    if (text.size >= size)
        return false;
    memcpy(place, text.data, text.size);
    memset(place + text.size, 0, size - text.size);
    return true;
}

/* The path grows from its end: each level puts itself in front. */
static void path_put_name(struct var_place *place, const char *name)
{
    char rest[VAR_PATH_SIZE];

    memcpy(rest, place->path, sizeof rest);
    (void)snprintf(place->path, sizeof place->path, "%.80s%s%.100s", name,
                   rest[0] && rest[0] != '[' ? "." : "", rest);
}

static void path_put_index(struct var_place *place, uint32_t index)
{
    char rest[VAR_PATH_SIZE];

    memcpy(rest, place->path, sizeof rest);
    (void)snprintf(place->path, sizeof place->path, "[%u]%s%.150s", index,
                   rest[0] && rest[0] != '[' ? "." : "", rest);
}

static bool load_struct(struct var_place *place, const pawl_var *var, const struct node *node,
                        void *at)
{
    struct var_place inner = {
        .scope = place->scope, .vars = var->fields(), .base = at, .shape = place->shape
    };

    if (node->kind != NODE_OBJECT)
        return false;
    if (vars_load(&inner, node, false))
        return true;
    place->bad_var = inner.bad_var;
    place->bad_vars = inner.bad_vars;
    place->bad_node = inner.bad_node;
    place->bad_is_item = inner.bad_is_item;
    memcpy(place->path, inner.path, sizeof place->path);
    return false;
}

static bool load_one(struct var_place *place, const pawl_var *var, const struct node *node,
                     void *at)
{
    switch (var->type) {
    case PAWL_VAR_INT8:
    case PAWL_VAR_INT16:
    case PAWL_VAR_INT32:
    case PAWL_VAR_INT64:
        return load_signed(node, var->size, at);
    case PAWL_VAR_UINT8:
    case PAWL_VAR_UINT16:
    case PAWL_VAR_UINT32:
    case PAWL_VAR_UINT64:
        return load_unsigned(node, var->size, at);
    case PAWL_VAR_FLOAT:
    case PAWL_VAR_DOUBLE:
        return load_float(node, var->size, at);
    case PAWL_VAR_BOOL:
        return node->kind == NODE_BOOL && memcpy(at, &node->truth, sizeof node->truth);
    case PAWL_VAR_TEXT:
        return node->kind == NODE_STRING && load_chars(node->text, var->size, at);
    case PAWL_VAR_JSON:
        return load_chars(node->raw, var->size, at);
    case PAWL_VAR_STRUCT:
        return load_struct(place, var, node, at);
    }
    return false;
}

static void note_bad(struct var_place *place, const pawl_var *var, const struct node *node)
{
    if (place->bad_var || place->bad_vars)
        return;
    place->bad_var = var;
    place->bad_node = node;
}

static bool load_list(struct var_place *place, const pawl_var *var, const struct node *node)
{
    char *at = (char *)place->base + var->offset;
    uint32_t count = 0;

    if (node->kind != NODE_ARRAY || node->count > var->max)
        return false;
    memset(at, 0, var->size * var->max); /* no element of the one before shines through */
    for (const struct node *item = node->first; item; item = item->next, count++)
        if (!load_one(place, var, item, at + var->size * count)) {
            note_bad(place, var, item);
            place->bad_is_item = place->bad_node == item;
            path_put_index(place, count);
            return false;
        }
    memcpy((char *)place->base + var->count_offset, &count, sizeof count);
    return true;
}

bool var_load(struct var_place *place, const pawl_var *var, const struct node *node)
{
    if (var->max > 0 ? load_list(place, var, node)
                     : load_one(place, var, node, (char *)place->base + var->offset))
        return true;
    note_bad(place, var, node);
    path_put_name(place, var->name);
    return false;
}

/* What a machine starts may be given its event as well. */
static bool is_declared(const struct var_place *place, str name, bool inputs_only)
{
    for (const pawl_var *var = place->vars; var && !vars_is_end(var); var++)
        if ((var->is_input || !inputs_only) && str_is(name, var->name))
            return true;
    return inputs_only && place->shape == SHAPE_STARTED && str_is(name, "event");
}

static bool has_unknown(struct var_place *place, const struct node *object, bool inputs_only)
{
    for (const struct node *member = object->first; member; member = member->next)
        if (!is_declared(place, member->key, inputs_only)) {
            place->bad_vars = place->vars;
            place->bad_is_input = inputs_only;
            place->bad_node = member;
            (void)snprintf(place->path, sizeof place->path, "%.*s",
                           STR_ARG(words_shown(member->key)));
            return true;
        }
    return false;
}

/* Null is no value, but of a variable that holds any JSON. */
static bool is_missing(struct var_place *place, const pawl_var *var, const struct node *node)
{
    if (place->shape == SHAPE_STORED || !var->is_required ||
        (node && var->type == PAWL_VAR_JSON && var->max == 0))
        return false;
    place->bad_var = var;
    place->bad_node = node;
    path_put_name(place, var->name);
    return true;
}

bool vars_load(struct var_place *place, const struct node *object, bool inputs_only)
{
    if (place->shape >= SHAPE_SENT && has_unknown(place, object, inputs_only))
        return false;
    for (const pawl_var *var = place->vars; var && !vars_is_end(var); var++) {
        const struct node *node = node_find(object, var->name);

        if (!var->is_input && inputs_only)
            continue;
        if (node && node->kind != NODE_NULL ? !var_load(place, var, node)
                                            : is_missing(place, var, node))
            return false;
    }
    return true;
}

#define CANNOT_HOLD "code type '%s' in this program cannot hold the stored state: variable '%s' "
#define WAY_OUT                                                                                    \
    "; run it with a build whose variable is as it was, or raise the version and migrate"

/* A number is shown, of others how large they are. */
static void words_for(const struct node *found, char *out, size_t size)
{
    if (found->kind == NODE_NUMBER)
        (void)snprintf(out, size, ": %.*s", STR_ARG(words_shown(found->text)));
    else if (found->kind == NODE_STRING)
        (void)snprintf(out, size, " of %zu bytes", found->text.size);
    else if (found->kind == NODE_ARRAY)
        (void)snprintf(out, size, " of %u", found->count);
    else
        out[0] = '\0';
}

static pawl_status fail_var(struct scope *scope, const pawl_code_type *type,
                            const struct var_place *place)
{
    const pawl_var *var = place->bad_var;
    char found[120];

    words_for(place->bad_node, found, sizeof found);
    return scope_fail(scope, PAWL_NOT_KNOWN, CANNOT_HOLD "is %s of %zu bytes%s, found %s%s" WAY_OUT,
                      type->name, var->name, var_type_name(var->type), var->size,
                      var->max > 0 ? " each, in a list" : "", node_kind_name(place->bad_node->kind),
                      found);
}

static pawl_status fail_kind(struct scope *scope, const pawl_code_type *type, const pawl_var *var,
                             const struct node *before)
{
    const struct node *word = node_find(before, "type");

    return scope_fail(scope, PAWL_NOT_KNOWN, CANNOT_HOLD "was %s%.*s and is %s%s" WAY_OUT,
                      type->name, var->name, node_find(before, "max") ? "a list of " : "",
                      STR_ARG(word ? word->text : STR("something else")),
                      var->max > 0 ? "a list of " : "", var_type_name(var->type));
}

static pawl_status find_phase(struct scope *scope, const pawl_code_type *type,
                              const struct node *object, str *out)
{
    const struct node *phase = node_find(object, "phase");

    *out = STR_NONE;
    if (!type->phases || !phase || phase->kind != NODE_STRING)
        return PAWL_OK;
    *out = phase->text;
    if (names_find(type->phases, phase->text.data) < names_count(type->phases))
        return PAWL_OK;
    return scope_fail(scope, PAWL_NOT_KNOWN,
                      "the instance waits at '%.*s', and code type '%s' in this program has no "
                      "such place; run it with a build that has, or raise the version and migrate",
                      STR_ARG(phase->text), type->name);
}

pawl_status state_read(struct scope *scope, const pawl_code_type *type, str text,
                       const struct node **out)
{
    struct node *object = NULL;
    pawl_status status = text.data ? node_read_json(scope, text, &object) : PAWL_OK;

    if (status == PAWL_NO_MEMORY)
        return status;
    if (status != PAWL_OK || (object && object->kind != NODE_OBJECT))
        return scope_fail(scope, PAWL_STORAGE_FAILURE,
                          "the stored state of a '%s' is damaged: expected a JSON object; look "
                          "closer with 'pawl verify'",
                          type->name);
    *out = object;
    return PAWL_OK;
}

const struct node *stored_value(const pawl_code_type *type, const struct stored *stored,
                                const pawl_var *var)
{
    const struct node *found = node_find(stored->object, var->name);

    for (const pawl_rename *row = type->renamed; !found && row && row->from; row++)
        if (strcmp(row->to, var->name) == 0)
            found = node_find(stored->object, row->from);
    return found && found->kind != NODE_NULL ? found : NULL;
}

pawl_status state_load(struct scope *scope, const pawl_code_type *type, const struct stored *stored,
                       void *state, str *phase)
{
    struct var_place place = { .scope = scope, .vars = type->vars, .base = state };

    *phase = STR_NONE;
    if (!stored->object)
        return PAWL_OK;
    for (const pawl_var *var = type->vars; var && !vars_is_end(var); var++) {
        const struct node *value = stored_value(type, stored, var);
        const struct node *before = declared_find(type, stored->declared, var);

        if (value && !var_load(&place, var, value))
            return fail_var(scope, type, &place);
        if (value && before && !declared_is_alike(before, var))
            return fail_kind(scope, type, var, before);
    }
    return find_phase(scope, type, stored->object, phase);
}
