/* state_print.c - variables of a C struct as a JSON object. */
#include "base/limits.h"
#include "base/number.h"
#include "base/planted.h"
#include "code/code_int.h"
#include <math.h>

/* The chars of a text or JSON variable up to their NUL; data NULL: the turn has a problem. */
static str chars_of(struct pawl_turn *turn, const pawl_var *var, const char *place)
{
    const char *end = memchr(place, '\0', var->size);
    str text = { place, end ? (size_t)(end - place) : var->size };

    if (!end)
        turn_problem(turn, "the variable '%s' does not end in NUL within its %zu bytes", var->name,
                     var->size);
    else if (!str_is_utf8(text, false))
        turn_problem(turn, "the variable '%s' is not UTF-8", var->name);
    else
        return text;
    return STR_NONE;
}

static void print_json(struct pawl_turn *turn, const pawl_var *var, const char *place,
                       struct buf *out)
{
    str text = chars_of(turn, var, place);
    struct node *node;
    pawl_status status = PAWL_OK;

    if (text.data && text.size > 0)
        status = node_read_json(turn->scope, text, &node);
    if (status == PAWL_NO_MEMORY)
        turn->status = status;
    else if (status != PAWL_OK)
        turn_problem(turn, "the variable '%s' is not JSON: %s", var->name,
                     turn->scope->error.message);
    json_raw(out, status == PAWL_OK && text.size > 0 ? text : STR_NONE);
}

static void print_number(struct pawl_turn *turn, const pawl_var *var, const char *place,
                         struct buf *out)
{
    double value = 0;
    float narrow;

    if (var->type == PAWL_VAR_FLOAT) {
        memcpy(&narrow, place, sizeof narrow);
        value = (double)narrow;
    } else {
        memcpy(&value, place, sizeof value);
    }
    if (isfinite(value))
        number_print_double(value, var->type == PAWL_VAR_FLOAT, out);
    else
        turn_problem(turn, "the variable '%s' is not a finite number", var->name);
}

static int64_t signed_at(const void *place, size_t size)
{
    return size == 1   ? *(const int8_t *)place
           : size == 2 ? *(const int16_t *)place
           : size == 4 ? *(const int32_t *)place
                       : *(const int64_t *)place;
}

static uint64_t unsigned_at(const void *place, size_t size)
{
    return size == 1   ? *(const uint8_t *)place
           : size == 2 ? *(const uint16_t *)place
           : size == 4 ? *(const uint32_t *)place
                       : *(const uint64_t *)place;
}

static void print_vars(struct pawl_turn *turn, const pawl_var *vars, const char *base,
                       struct buf *out);

static void print_one(struct pawl_turn *turn, const pawl_var *var, const char *place,
                      struct buf *out)
{
    str text;

    switch (var->type) {
    case PAWL_VAR_INT8:
    case PAWL_VAR_INT16:
    case PAWL_VAR_INT32:
    case PAWL_VAR_INT64:
        json_i64(out, signed_at(place, var->size));
        break;
    case PAWL_VAR_UINT8:
    case PAWL_VAR_UINT16:
    case PAWL_VAR_UINT32:
    case PAWL_VAR_UINT64:
        json_u64(out, unsigned_at(place, var->size));
        break;
    case PAWL_VAR_FLOAT:
    case PAWL_VAR_DOUBLE:
        print_number(turn, var, place, out);
        break;
    case PAWL_VAR_BOOL:
        json_bool(out, *(const unsigned char *)place != 0);
        break;
    case PAWL_VAR_TEXT:
        text = chars_of(turn, var, place);
        if (text.data)
            json_str(out, text);
        break;
    case PAWL_VAR_JSON:
        print_json(turn, var, place, out);
        break;
    case PAWL_VAR_STRUCT:
        json_open(out, '{');
        print_vars(turn, var->fields(), place, out);
        json_close(out, '}');
        break;
    }
}

static void print_list(struct pawl_turn *turn, const pawl_var *var, const char *base,
                       struct buf *out)
{
    uint32_t count;

    memcpy(&count, base + var->count_offset, sizeof count);
    if (count > var->max) {
        turn_problem(turn, "the variable '%s' has room for %u, and its count is %u", var->name,
                     var->max, count);
        return;
    }
    json_open(out, '[');
    for (uint32_t i = 0; i < count; i++)
        print_one(turn, var, base + var->offset + i * var->size, out);
    json_close(out, ']');
}

static void print_vars(struct pawl_turn *turn, const pawl_var *vars, const char *base,
                       struct buf *out)
{
    for (const pawl_var *var = vars; var && !vars_is_end(var); var++) {
        json_key(out, var->name);
        if (var->max > 0)
            print_list(turn, var, base, out);
        else
            print_one(turn, var, base + var->offset, out);
    }
}

static void print_head(const struct pawl_turn *turn, str phase, struct buf *out)
{
    if (PLANTED(PLACE_LOST))
        return;
    json_opt_str(out, "phase", phase);
    subscriptions_print(turn, out);
}

static void print_object(struct pawl_turn *turn, const pawl_var *vars, const void *base,
                         const str *phase, str *out)
{
    struct buf buf;
    str text;

    buf_init(&buf, turn->scope->arena.heap, LIMIT_SCOPE);
    json_open(&buf, '{');
    if (phase)
        print_head(turn, *phase, &buf);
    print_vars(turn, vars, base, &buf);
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

void result_print(struct pawl_turn *turn, const void *result, str *out)
{
    print_object(turn, turn->type->result, result, NULL, out);
}

void struct_print(struct pawl_turn *turn, const pawl_var *fields, const void *value, str *out)
{
    print_object(turn, fields, value, NULL, out);
}

void state_print(struct pawl_turn *turn, const void *state, str phase, str *out)
{
    print_object(turn, turn->type->vars, state, &phase, out);
}
