/* trace.c - is it a traceparent? */
#include "base/trace.h"

static bool is_hex(str text)
{
    for (size_t i = 0; i < text.size; i++)
        if (!text.data[i] || !strchr("0123456789abcdef", text.data[i]))
            return false;
    return true;
}

static bool is_id(str text)
{
    bool is_zero = true;

    for (size_t i = 0; i < text.size; i++)
        is_zero = is_zero && text.data[i] == '0';
    return !is_zero && is_hex(text);
}

bool trace_is_valid(str text)
{
    return text.size == TRACE_SIZE && memcmp(text.data, "00-", 3) == 0 && text.data[35] == '-' &&
           text.data[52] == '-' && is_id((str){ text.data + 3, 32 }) &&
           is_id((str){ text.data + 36, 16 }) && is_hex((str){ text.data + 53, 2 });
}
