/* str.c - questions about a view of bytes. */
#include "base/text_int.h"

int str_compare(str a, str b)
{
    size_t size = a.size < b.size ? a.size : b.size;
    int order = size == 0 ? 0 : memcmp(a.data, b.data, size);

    if (order != 0 || a.size == b.size)
        return order;
    return a.size < b.size ? -1 : 1;
}

str str_before(str a, char mark)
{
    const char *found = a.size > 0 ? memchr(a.data, mark, a.size) : NULL;

    return (str){ a.data, found ? (size_t)(found - a.data) : a.size };
}

str str_after(str a, char mark)
{
    size_t size = str_before(a, mark).size;

    return size < a.size ? str_from(a, size + 1) : STR_NONE;
}

bool str_take(str *rest, char mark, str *out)
{
    if (rest->size == 0)
        return false;
    *out = str_before(*rest, mark);
    *rest = str_from(*rest, out->size + (out->size < rest->size));
    return true;
}

static bool is_among(char byte, const char *bytes)
{
    return byte != '\0' && strchr(bytes, byte);
}

bool str_is_one_of(str a, const char *const *words)
{
    while (*words && !str_is(a, *words))
        words++;
    return *words != NULL;
}

size_t str_span(str a, const char *bytes)
{
    size_t size = 0;

    while (size < a.size && is_among(a.data[size], bytes))
        size++;
    return size;
}

str str_trim(str a, const char *bytes)
{
    if (a.size > 0)
        a = str_from(a, str_span(a, bytes));
    while (a.size > 0 && is_among(a.data[a.size - 1], bytes))
        a.size--;
    return a;
}

/* How many of the bytes after the first are 10xxxxxx, up to `want` of them? */
static size_t count_continuation(str s, size_t want)
{
    size_t count = 0;

    while (count < want && count + 1 < s.size && ((unsigned char)s.data[count + 1] & 0xC0) == 0x80)
        count++;
    return count;
}

size_t utf8_size(str s)
{
    unsigned char first = s.size > 0 ? (unsigned char)s.data[0] : 0xFF;
    unsigned char second = s.size > 1 ? (unsigned char)s.data[1] : 0;
    size_t size;

    if (first < 0x80)
        return 1;
    if (first < 0xC2 || first > 0xF4)
        return 0;
    size = first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
    if (count_continuation(s, size - 1) != size - 1)
        return 0;
    /* Overlong forms, surrogates, and beyond U+10FFFF show in the second byte. */
    if ((first == 0xE0 && second < 0xA0) || (first == 0xED && second > 0x9F))
        return 0;
    if ((first == 0xF0 && second < 0x90) || (first == 0xF4 && second > 0x8F))
        return 0;
    return size;
}

str utf8_head(str s, size_t size_max)
{
    size_t size = s.size < size_max ? s.size : size_max;

    while (size < s.size && size > 0 && ((unsigned char)s.data[size] & 0xC0) == 0x80)
        size--;
    return (str){ s.data, size };
}

size_t utf8_encode(uint32_t character, char out[4])
{
    if (character < 0x80) {
        out[0] = (char)character;
        return 1;
    }
    if (character < 0x800) {
        out[0] = (char)(0xC0 | character >> 6);
        out[1] = (char)(0x80 | (character & 0x3F));
        return 2;
    }
    if (character < 0x10000) {
        out[0] = (char)(0xE0 | character >> 12);
        out[1] = (char)(0x80 | (character >> 6 & 0x3F));
        out[2] = (char)(0x80 | (character & 0x3F));
        return 3;
    }
    out[0] = (char)(0xF0 | character >> 18);
    out[1] = (char)(0x80 | (character >> 12 & 0x3F));
    out[2] = (char)(0x80 | (character >> 6 & 0x3F));
    out[3] = (char)(0x80 | (character & 0x3F));
    return 4;
}

bool str_is_utf8(str s, bool allow_nul)
{
    while (s.size > 0) {
        size_t size = utf8_size(s);

        if (size == 0 || (!allow_nul && s.data[0] == '\0'))
            return false;
        s = str_from(s, size);
    }
    return true;
}

/* The size of the White_Space character that `s` begins with, or 0. */
static size_t blank_size(str s)
{
    /* clang-format off */
    static const str wide[] = {
        STR_INIT("\xC2\x85"), STR_INIT("\xC2\xA0"), STR_INIT("\xE1\x9A\x80"),
        STR_INIT("\xE2\x80\xA8"), STR_INIT("\xE2\x80\xA9"), STR_INIT("\xE2\x80\xAF"),
        STR_INIT("\xE2\x81\x9F"), STR_INIT("\xE3\x80\x80"),
    };
    /* clang-format on */

    if (s.data[0] == ' ' || (s.data[0] >= '\t' && s.data[0] <= '\r'))
        return 1;
    if ((unsigned char)s.data[0] < 0x80) /* by far the most: done quickly */
        return 0;
    for (size_t i = 0; i < sizeof wide / sizeof wide[0]; i++)
        if (str_starts(s, wide[i]))
            return wide[i].size;
    /* U+2000..U+200A: the spaces of various widths. */
    if (s.size >= 3 && str_starts(s, STR("\xE2\x80")) && (unsigned char)s.data[2] >= 0x80 &&
        (unsigned char)s.data[2] <= 0x8A)
        return 3;
    return 0;
}

bool str_is_blank(str s)
{
    while (s.size > 0) {
        size_t size = blank_size(s);

        if (size == 0)
            return false;
        s = str_from(s, size);
    }
    return true;
}

bool str_to_u64(str s, uint64_t *out)
{
    uint64_t n = 0;

    if (s.size == 0)
        return false;
    for (size_t i = 0; i < s.size; i++) {
        unsigned digit = (unsigned char)s.data[i] - (unsigned)'0';

        if (digit > 9 || n > (UINT64_MAX - digit) / 10)
            return false;
        n = n * 10 + digit;
    }
    *out = n;
    return true;
}

uint64_t str_hash(str s)
{
    uint64_t hash = UINT64_C(0xCBF29CE484222325);

    for (size_t i = 0; i < s.size; i++)
        hash = (hash ^ (unsigned char)s.data[i]) * UINT64_C(0x100000001B3);
    return hash;
}
