/* yaml_scalar.c - what a plain scalar means by the YAML 1.2 core schema. */
#include "base/node_int.h"

static bool is_any(str text, const char *const *words)
{
    for (; *words; words++)
        if (str_is(text, *words))
            return true;
    return false;
}

static str skip_sign(str text)
{
    return text.size > 0 && (text.data[0] == '-' || text.data[0] == '+') ? str_from(text, 1) : text;
}

/* "0x1F" and "0o17", which take no sign: 16, 8, or 0 if it is neither. */
static uint64_t prefixed_base(str text)
{
    uint64_t base = str_starts(text, STR("0x")) ? 16 : str_starts(text, STR("0o")) ? 8 : 0;
    str digits;

    if (base == 0 || text.size == 2)
        return 0;
    digits = str_from(text, 2);
    if (str_span(digits, base == 16 ? "0123456789abcdefABCDEF" : "01234567") < digits.size)
        return 0;
    return base;
}

/* The parts of [-+]? ( \. [0-9]+ | [0-9]+ ( \. [0-9]* )? ) ( [eE] [-+]? [0-9]+ )? */
struct yaml_decimal {
    str whole, fraction, exponent; /* digits; of the exponent: from the e on */
    bool has_point;
};

static bool decimal_parse(str text, struct yaml_decimal *out)
{
    static const char digits[] = "0123456789";
    str rest = skip_sign(text), exponent;

    *out = (struct yaml_decimal){ .whole = { rest.data, str_span(rest, digits) } };
    rest = str_from(rest, out->whole.size);
    if (rest.size > 0 && rest.data[0] == '.') {
        out->has_point = true;
        rest = str_from(rest, 1);
        out->fraction = (str){ rest.data, str_span(rest, digits) };
        rest = str_from(rest, out->fraction.size);
    }
    if (out->whole.size + out->fraction.size == 0)
        return false;
    if (rest.size == 0)
        return true;
    if (rest.data[0] != 'e' && rest.data[0] != 'E')
        return false;
    out->exponent = rest;
    exponent = skip_sign(str_from(rest, 1));
    return exponent.size > 0 && str_span(exponent, digits) == exponent.size;
}

enum yaml_kind yaml_resolve(str text)
{
    static const char *const nulls[] = { "", "~", "null", "Null", "NULL", NULL };
    static const char *const bools[] = { "true", "True", "TRUE", "false", "False", "FALSE", NULL };
    static const char *const infinities[] = { ".inf", ".Inf", ".INF", NULL };
    static const char *const nans[] = { ".nan", ".NaN", ".NAN", NULL };
    struct yaml_decimal decimal;

    if (is_any(text, nulls))
        return YAML_NULL;
    if (is_any(text, bools))
        return YAML_BOOL;
    if (is_any(skip_sign(text), infinities) || is_any(text, nans))
        return YAML_NOT_FINITE;
    if (prefixed_base(text) > 0)
        return YAML_INT;
    if (!decimal_parse(text, &decimal))
        return YAML_STR;
    return decimal.has_point || decimal.exponent.size > 0 ? YAML_FLOAT : YAML_INT;
}

static bool prefixed_parse(str digits, uint64_t base, uint64_t *out)
{
    uint64_t n = 0;

    for (size_t i = 0; i < digits.size; i++) {
        char byte = digits.data[i];
        uint64_t digit = (uint64_t)(byte <= '9' ? byte - '0' : (byte | 32) - 'a' + 10);

        if (n > (UINT64_MAX - digit) / base)
            return false;
        n = n * base + digit;
    }
    *out = n;
    return true;
}

static bool prefixed_number(struct arena *arena, str digits, uint64_t base, str *out)
{
    char text[20];
    size_t at = sizeof text;
    uint64_t n;

    if (!prefixed_parse(digits, base, &n))
        return false;
    do
        text[--at] = (char)('0' + n % 10);
    while ((n /= 10) > 0);
    *out = arena_str(arena, (str){ text + at, sizeof text - at });
    return true;
}

static char *put(char *end, str s)
{
    if (s.size > 0)
        memcpy(end, s.data, s.size);
    return end + s.size;
}

bool yaml_number(struct arena *arena, str text, str *out)
{
    uint64_t base = prefixed_base(text);
    struct yaml_decimal decimal;
    char *data, *end;

    if (base > 0)
        return prefixed_number(arena, str_from(text, 2), base, out);
    (void)decimal_parse(text, &decimal);
    data = end = arena_alloc(arena, text.size + 2); /* ".5" grows by a zero; and a NUL */
    *out = STR_NONE;
    if (!data)
        return true;
    if (text.data[0] == '-')
        *end++ = '-';
    while (decimal.whole.size > 1 && decimal.whole.data[0] == '0')
        decimal.whole = str_from(decimal.whole, 1);
    end = put(end, decimal.whole.size > 0 ? decimal.whole : STR("0"));
    if (decimal.fraction.size > 0)
        *end++ = '.';
    end = put(put(end, decimal.fraction), decimal.exponent);
    *out = (str){ data, (size_t)(end - data) };
    return true;
}
