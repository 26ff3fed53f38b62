/* words.c - other people's texts, as our messages show them. */
#include "model/words.h"

#define NEAREST_SIZE_MAX 32 /* our own keys are shorter */

str words_shown(str s)
{
    size_t size = s.size < WORDS_SIZE_MAX ? s.size : WORDS_SIZE_MAX;

    while (size < s.size && size > 0 && ((unsigned char)s.data[size] & 0xC0) == 0x80)
        size--;
    return (str){ s.data, size };
}

/* ---- Slips of the hand ---- */

static uint32_t least(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

/* One row of the table of distances: how far the first i + 1 bytes of `a` are from each
 * beginning of `b`. Two bytes swapped count once. */
static void next_row(str a, str b, size_t i, const uint32_t *before, const uint32_t *above,
                     uint32_t *row)
{
    row[0] = (uint32_t)i + 1;
    for (size_t j = 0; j < b.size; j++) {
        uint32_t differs = a.data[i] != b.data[j];

        row[j + 1] = least(least(row[j], above[j + 1]) + 1, above[j] + differs);
        if (i > 0 && j > 0 && a.data[i] == b.data[j - 1] && a.data[i - 1] == b.data[j])
            row[j + 1] = least(row[j + 1], before[j - 1] + 1);
    }
}

static uint32_t distance(str a, str b)
{
    uint32_t rows[3][NEAREST_SIZE_MAX + 1];

    for (size_t j = 0; j <= b.size; j++)
        rows[0][j] = (uint32_t)j;
    for (size_t i = 0; i < a.size; i++)
        next_row(a, b, i, rows[(i + 2) % 3], rows[i % 3], rows[(i + 1) % 3]);
    return rows[a.size % 3][b.size];
}

const char *words_nearest(str word, const char *const *known)
{
    uint32_t best = UINT32_MAX;
    const char *found = NULL;

    for (; word.size <= NEAREST_SIZE_MAX && *known; known++) {
        str other = str_of(*known);
        uint32_t away = other.size <= NEAREST_SIZE_MAX ? distance(word, other) : UINT32_MAX;

        if (away < best && away <= 2 && away * 3 <= other.size) {
            best = away;
            found = *known;
        }
    }
    return found;
}

/* The next character that counts, in lower case, off the front of `s`; -1 at its end. */
static int next_loosely(str *s)
{
    while (s->size > 0) {
        unsigned char c = (unsigned char)s->data[0];

        *s = str_from(*s, 1);
        if (c != '-' && c != '_' && c != ' ' && (c < '\t' || c > '\r'))
            return c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c;
    }
    return -1;
}

int words_compare_loosely(str a, str b)
{
    int left, right;

    do {
        left = next_loosely(&a);
        right = next_loosely(&b);
    } while (left == right && left >= 0);
    return left < right ? -1 : left > right;
}
