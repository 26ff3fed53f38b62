/* number.c - doubles as JSON and back, bit for bit, whatever locale the host has set. */
#include "base/number.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define NUMBER_SIZE_MAX 512 /* of a double as JSON; ours have at most 24 characters */

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

bool number_read_double(str text, double *out)
{
    char sample[16], number[NUMBER_SIZE_MAX], *end;

    if (!replace(text, STR("."), decimal_point(sample), number))
        return false;
    *out = strtod(number, &end);
    return *end == '\0' && isfinite(*out);
}

/* The fewest digits that read back the same. */
void number_print_double(double value, bool is_float, struct buf *out)
{
    char sample[16], number[64], json[NUMBER_SIZE_MAX];

    for (int digits = is_float ? 6 : 15; digits <= 17; digits++) {
        (void)snprintf(number, sizeof number, "%.*g", digits, value);
        if (is_float ? (float)strtod(number, NULL) == (float)value : strtod(number, NULL) == value)
            break;
    }
    if (replace(str_of(number), decimal_point(sample), STR("."), json))
        json_raw(out, str_of(json));
}
