/* state.c - the tracked variables: a C struct here, a JSON object by name in the store.
 *
 * By name, so that a later build may add, drop and reorder variables. Integers are exact,
 * doubles come back bit for bit; both whatever locale the host has set. */
#include "base/limits.h"
#include "base/node.h"
#include "code/code_int.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define NUMBER_SIZE_MAX 512 /* of a double as JSON; ours have at most 24 characters */

const char *var_type_name(pawl_var_type type)
{
    switch (type) {
    case PAWL_VAR_INT64:
        return "int64";
    case PAWL_VAR_DOUBLE:
        return "double";
    case PAWL_VAR_BOOL:
        return "bool";
    case PAWL_VAR_TEXT:
        return "text";
    }
    return NULL;
}

/* The host's decimal point, e.g. "," in Germany. */
static str decimal_point(char sample[16])
{
    int size = snprintf(sample, 16, "%.1f", 0.5);

    return size > 2 ? (str){ sample + 1, (size_t)size - 2 } : STR(".");
}

/* Replace the first `from` by `to`. False if the result does not fit. */
static bool replace(str text, str from, str to, char out[NUMBER_SIZE_MAX])
{
    const char *found = memmem(text.data, text.size, from.data, from.size);
    size_t head = found ? (size_t)(found - text.data) : text.size;
    size_t tail = found ? text.size - head - from.size : 0;

    if (head + to.size + tail >= NUMBER_SIZE_MAX)
        return false;
    memcpy(out, text.data, head);
    if (found) {
        memcpy(out + head, to.data, to.size);
        memcpy(out + head + to.size, found + from.size, tail);
        head += to.size + tail;
    }
    out[head] = '\0';
    return true;
}

static bool read_double(str text, double *out)
{
    char sample[16], number[NUMBER_SIZE_MAX], *end;

    if (!replace(text, STR("."), decimal_point(sample), number))
        return false;
    *out = strtod(number, &end);
    return *end == '\0' && isfinite(*out);
}

/* The shortest of 15, 16 or 17 digits that reads back the same. */
static void print_double(double value, struct buf *out)
{
    char sample[16], number[64], json[NUMBER_SIZE_MAX];

    for (int digits = 15; digits <= 17; digits++) {
        (void)snprintf(number, sizeof number, "%.*g", digits, value);
        if (strtod(number, NULL) == value)
            break;
    }
    if (replace(str_of(number), decimal_point(sample), STR("."), json))
        json_raw(out, str_of(json));
}

static bool load_int64(const struct node *node, void *place)
{
    int64_t n;

    return node_to_i64(node, &n) && memcpy(place, &n, sizeof n);
}

static bool load_double(const struct node *node, void *place)
{
    double value;

    return node->kind == NODE_NUMBER && read_double(node->text, &value) &&
           memcpy(place, &value, sizeof value);
}

static bool load_bool(const struct node *node, void *place)
{
    return node->kind == NODE_BOOL && memcpy(place, &node->truth, sizeof node->truth);
}

static bool load_text(const struct node *node, const pawl_var *var, void *place)
{
    if (node->kind != NODE_STRING || node->text.size >= var->size)
        return false;
    return memcpy(place, node->text.data, node->text.size);
}

static bool load_var(const struct node *node, const pawl_var *var, void *state)
{
    void *place = (char *)state + var->offset;

    switch (var->type) {
    case PAWL_VAR_INT64:
        return load_int64(node, place);
    case PAWL_VAR_DOUBLE:
        return load_double(node, place);
    case PAWL_VAR_BOOL:
        return load_bool(node, place);
    case PAWL_VAR_TEXT:
        return load_text(node, var, place);
    }
    return false;
}

static pawl_status fail_var(struct scope *scope, const pawl_code_type *type, const pawl_var *var,
                            const struct node *node)
{
    return scope_fail(scope, PAWL_NOT_KNOWN,
                      "code type '%s' in this program cannot hold the stored state: variable '%s' "
                      "is %s of %zu bytes, found %s of %zu; run it with a build whose variable "
                      "is as it was",
                      type->name, var->name, var_type_name(var->type), var->size,
                      node_kind_name(node->kind), node->text.size);
}

static pawl_status load_vars(struct scope *scope, const pawl_code_type *type,
                             const struct node *object, void *state)
{
    for (const pawl_var *var = type->vars; var && var->name; var++) {
        const struct node *node = node_find(object, var->name);

        if (node && node->kind != NODE_NULL && !load_var(node, var, state))
            return fail_var(scope, type, var, node);
    }
    return PAWL_OK;
}

pawl_status state_load(struct scope *scope, const pawl_code_type *type, str text, void *state)
{
    struct node *object;
    pawl_status status;

    if (!text.data)
        return PAWL_OK;
    status = node_read_json(scope, text, &object);
    if (status == PAWL_NO_MEMORY)
        return status;
    if (status != PAWL_OK || object->kind != NODE_OBJECT)
        return scope_fail(scope, PAWL_STORAGE_FAILURE,
                          "the stored state of a '%s' is damaged: expected a JSON object; look "
                          "closer with 'pawl verify'",
                          type->name);
    return load_vars(scope, type, object, state);
}

static void print_text(struct pawl_turn *turn, const pawl_var *var, const char *place,
                       struct buf *out)
{
    const char *end = memchr(place, '\0', var->size);
    str text = { place, end ? (size_t)(end - place) : var->size };

    if (!end)
        turn_problem(turn, "the variable '%s' does not end in NUL within its %zu bytes", var->name,
                     var->size);
    else if (!str_is_utf8(text, false))
        turn_problem(turn, "the variable '%s' is not UTF-8", var->name);
    else
        json_str(out, text);
}

static void print_finite(struct pawl_turn *turn, const pawl_var *var, const char *place,
                         struct buf *out)
{
    double value;

    memcpy(&value, place, sizeof value);
    if (isfinite(value))
        print_double(value, out);
    else
        turn_problem(turn, "the variable '%s' is not a finite number", var->name);
}

static void print_var(struct pawl_turn *turn, const pawl_var *var, const char *state,
                      struct buf *out)
{
    const char *place = state + var->offset;
    int64_t n;

    json_key(out, var->name);
    switch (var->type) {
    case PAWL_VAR_INT64:
        memcpy(&n, place, sizeof n);
        json_i64(out, n);
        break;
    case PAWL_VAR_DOUBLE:
        print_finite(turn, var, place, out);
        break;
    case PAWL_VAR_BOOL:
        json_bool(out, *(const unsigned char *)place != 0);
        break;
    case PAWL_VAR_TEXT:
        print_text(turn, var, place, out);
        break;
    }
}

void state_print(struct pawl_turn *turn, const void *state, str *out)
{
    struct buf buf;
    str text;

    buf_init(&buf, turn->scope->arena.heap, LIMIT_SCOPE);
    json_open(&buf, '{');
    for (const pawl_var *var = turn->type->vars; var && var->name; var++)
        print_var(turn, var, state, &buf);
    json_close(&buf, '}');
    text = buf_keep(&buf, &turn->scope->arena);
    if (!text.data)
        turn->status = scope_no_memory(turn->scope);
    else if (text.size > LIMIT_TEXT)
        turn_problem(turn, "the variables take %zu bytes as JSON, and at most %u are kept",
                     text.size, LIMIT_TEXT);
    else if (!turn->problem.data)
        *out = text;
    buf_fini(&buf);
}
