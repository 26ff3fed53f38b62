/* ids.c - instance ids to text and back: five bits a character, highest first. */
#include "base/ids.h"
#include "base/assert.h"

#define NUMBER_CHARACTERS 10
#define NOT_A_DIGIT       32

static const char alphabet[] = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";

static unsigned digit_value(char character)
{
    const char *found = character ? strchr(alphabet, character) : NULL;

    return found ? (unsigned)(found - alphabet) : NOT_A_DIGIT;
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

static bool digits_parse(str digits, uint64_t *out)
{
    uint64_t bits = 0;

    for (size_t i = 0; i < digits.size; i++) {
        unsigned value = digit_value(digits.data[i]);

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
    str head = { text.data, ID_SIZE }, digits;
    uint64_t number;

    if (text.size < ID_SIZE + 2 || text.data[ID_SIZE] != mark || !id_parse(head, NULL, NULL))
        return false;
    digits = str_from(text, ID_SIZE + 1);
    if ((digits.data[0] == '0' && digits.size > 1) || !str_to_u64(digits, &number))
        return false;
    *id = head;
    *n = number;
    return true;
}
