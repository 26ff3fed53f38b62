/* decimal.c - a number of JSON as its digits and the place of the first one. */
#include "model/decimal.h"

#define EXPONENT_MAX (INT64_C(1) << 40) /* beyond it the sign alone counts */

/* sign * 0.DIGITS * 10^exponent; the digits begin and end with one that is not 0. */
struct decimal {
    int sign; /* 0: the number is 0 */
    int64_t exponent;
    str digits;   /* may have the point among them */
    size_t count; /* of digits, without the point */
};

static bool is_digit(char byte)
{
    return byte >= '0' && byte <= '9';
}

static int64_t read_exponent(str text)
{
    bool is_negative = text.size > 0 && text.data[0] == '-';
    int64_t value = 0;

    for (size_t i = 0; i < text.size; i++)
        if (is_digit(text.data[i]) && value < EXPONENT_MAX)
            value = value * 10 + (text.data[i] - '0');
    return is_negative ? -value : value;
}

/* The digits up to the exponent, and where the point is: behind `before` digits. */
static void measure(str mantissa, struct decimal *out)
{
    size_t first = SIZE_MAX, last = 0, before = 0, seen = 0, leading = 0;
    bool has_point = false;

    for (size_t i = 0; i < mantissa.size; i++) {
        if (mantissa.data[i] == '.')
            has_point = true;
        if (!is_digit(mantissa.data[i]))
            continue;
        before += !has_point;
        if (mantissa.data[i] != '0') {
            first = first == SIZE_MAX ? i : first;
            last = i;
            out->count = seen + 1;
        } else if (first == SIZE_MAX) {
            leading++;
        }
        seen += first != SIZE_MAX;
    }
    if (first == SIZE_MAX)
        return;
    out->sign = 1;
    out->digits = (str){ mantissa.data + first, last - first + 1 };
    out->exponent = (int64_t)before - (int64_t)leading;
}

static struct decimal decimal_of(str text)
{
    bool is_negative = text.size > 0 && text.data[0] == '-';
    struct decimal out = { 0 };
    size_t at = is_negative;

    while (at < text.size && text.data[at] != 'e' && text.data[at] != 'E')
        at++;
    measure((str){ text.data + is_negative, at - is_negative }, &out);
    if (at < text.size)
        out.exponent += read_exponent(str_from(text, at + 1));
    out.sign = is_negative ? -out.sign : out.sign;
    return out;
}

/* The next digit off the front; 0 behind the last. */
static int next_digit(str *digits)
{
    int digit;

    if (digits->size > 0 && digits->data[0] == '.')
        *digits = str_from(*digits, 1);
    if (digits->size == 0)
        return 0;
    digit = digits->data[0] - '0';
    *digits = str_from(*digits, 1);
    return digit;
}

/* Of two that are not 0, whatever their signs. */
static int compare_size(struct decimal a, struct decimal b)
{
    if (a.exponent != b.exponent)
        return a.exponent < b.exponent ? -1 : 1;
    while (a.digits.size > 0 || b.digits.size > 0) {
        int left = next_digit(&a.digits), right = next_digit(&b.digits);

        if (left != right)
            return left < right ? -1 : 1;
    }
    return 0;
}

int decimal_compare(str a, str b)
{
    struct decimal left = decimal_of(a), right = decimal_of(b);

    if (left.sign != right.sign)
        return left.sign < right.sign ? -1 : 1;
    return left.sign * (left.sign == 0 ? 0 : compare_size(left, right));
}

bool decimal_is_whole(str number)
{
    struct decimal decimal = decimal_of(number);

    return decimal.sign == 0 || decimal.exponent >= (int64_t)decimal.count;
}

/* ---- One text for all that are equal ---- */

#define PLAIN_DIGITS 21 /* before the point; more, or 6 zeros behind it, have an exponent */
#define PLAIN_ZEROS  6

static void print_digits(str *digits, size_t count, struct buf *out)
{
    for (size_t i = 0; i < count; i++)
        buf_byte(out, (char)('0' + next_digit(digits)));
}

/* The point is behind `before` digits, which may be fewer than there are, or more. */
static void print_plain(const struct decimal *decimal, size_t before, struct buf *out)
{
    str digits = decimal->digits;

    print_digits(&digits, before, out);
    if (decimal->count <= before)
        return;
    buf_byte(out, '.');
    print_digits(&digits, decimal->count - before, out);
}

void decimal_print(str number, struct buf *out)
{
    struct decimal decimal = decimal_of(number);
    str digits = decimal.digits;

    if (decimal.sign < 0)
        buf_byte(out, '-');
    if (decimal.sign == 0) {
        buf_byte(out, '0');
    } else if (decimal.exponent > 0 && decimal.exponent <= PLAIN_DIGITS) {
        print_plain(&decimal, (size_t)decimal.exponent, out);
    } else if (decimal.exponent <= 0 && decimal.exponent > -PLAIN_ZEROS) {
        buf_str(out, STR("0."));
        for (int64_t i = decimal.exponent; i < 0; i++)
            buf_byte(out, '0');
        print_digits(&digits, decimal.count, out);
    } else {
        print_plain(&decimal, 1, out);
        buf_byte(out, 'e');
        buf_i64(out, decimal.exponent - 1);
    }
}
