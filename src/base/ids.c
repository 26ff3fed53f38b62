/* ids.c - instance ids to text and back: five bits a character, highest first. */
#include "base/ids.h"
#include "base/assert.h"

#define NUMBER_CHARACTERS 10
#define NOT_A_DIGIT       32

static const char alphabet[] = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";

/* The value of each digit, plus 1; every fire reads 26 of them. */
/* clang-format off */
static const uint8_t digits[256] = {
    ['0'] = 1,  ['1'] = 2,  ['2'] = 3,  ['3'] = 4,  ['4'] = 5,  ['5'] = 6,  ['6'] = 7,  ['7'] = 8,
    ['8'] = 9,  ['9'] = 10, ['A'] = 11, ['B'] = 12, ['C'] = 13, ['D'] = 14, ['E'] = 15, ['F'] = 16,
    ['G'] = 17, ['H'] = 18, ['J'] = 19, ['K'] = 20, ['M'] = 21, ['N'] = 22, ['P'] = 23, ['Q'] = 24,
    ['R'] = 25, ['S'] = 26, ['T'] = 27, ['V'] = 28, ['W'] = 29, ['X'] = 30, ['Y'] = 31, ['Z'] = 32,
};
/* clang-format on */

static unsigned digit_value(char character)
{
    unsigned found = digits[(unsigned char)character];

    return found ? found - 1 : NOT_A_DIGIT;
}

void id_print(uint64_t number, const uint8_t random[ID_RANDOM_SIZE], char out[ID_SIZE + 1])
{
    ASSERT(number <= ID_NUMBER_MAX);
    for (int i = NUMBER_CHARACTERS - 1; i >= 0; i--, number >>= 5)
        out[i] = alphabet[number & 31];
    out += NUMBER_CHARACTERS;
    for (int half = 0; half < 2; half++, random += 5, out += 8) {
        uint64_t bits = 0;

        for (int i = 0; i < 5; i++)
            bits = bits << 8 | random[i];
        for (int i = 7; i >= 0; i--, bits >>= 5)
            out[i] = alphabet[bits & 31];
    }
    *out = '\0';
}

static bool digits_parse(str text, uint64_t *out)
{
    uint64_t bits = 0;

    for (size_t i = 0; i < text.size; i++) {
        unsigned value = digit_value(text.data[i]);

        if (value == NOT_A_DIGIT)
            return false;
        bits = bits << 5 | value;
    }
    *out = bits;
    return true;
}

static void bytes_of(uint64_t bits, uint8_t out[5])
{
    for (int i = 4; i >= 0; i--, bits >>= 8)
        out[i] = (uint8_t)bits;
}

bool id_parse(str text, uint64_t *number, uint8_t random[ID_RANDOM_SIZE])
{
    uint64_t first, high, low;

    if (text.size != ID_SIZE || !digits_parse((str){ text.data, NUMBER_CHARACTERS }, &first) ||
        !digits_parse((str){ text.data + NUMBER_CHARACTERS, 8 }, &high) ||
        !digits_parse((str){ text.data + NUMBER_CHARACTERS + 8, 8 }, &low))
        return false;
    if (number)
        *number = first;
    if (random) {
        bytes_of(high, random);
        bytes_of(low, random + 5);
    }
    return true;
}

bool id_split(str text, char mark, str *id, uint64_t *n)
{
    str head = { text.data, ID_SIZE }, rest;
    uint64_t number;

    if (text.size < ID_SIZE + 2 || text.data[ID_SIZE] != mark || !id_parse(head, NULL, NULL))
        return false;
    rest = str_from(text, ID_SIZE + 1);
    if ((rest.data[0] == '0' && rest.size > 1) || !str_to_u64(rest, &number))
        return false;
    *id = head;
    *n = number;
    return true;
}
