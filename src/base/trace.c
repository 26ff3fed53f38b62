/* trace.c - is it a traceparent? */
#include "base/trace.h"

static bool is_hex(str text)
{
    return str_span(text, "0123456789abcdef") == text.size;
}

static bool is_id(str text)
{
    return str_span(text, "0") < text.size && is_hex(text);
}

bool trace_is_valid(str text)
{
    return text.size == TRACE_SIZE && memcmp(text.data, "00-", 3) == 0 && text.data[35] == '-' &&
           text.data[52] == '-' && is_id((str){ text.data + 3, 32 }) &&
           is_id((str){ text.data + 36, 16 }) && is_hex((str){ text.data + 53, 2 });
}
