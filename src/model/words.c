/* words.c - other people's texts, as our messages show them. */
#include "model/words.h"

str words_shown(str s)
{
    size_t size = s.size < WORDS_SIZE_MAX ? s.size : WORDS_SIZE_MAX;

    while (size < s.size && size > 0 && ((unsigned char)s.data[size] & 0xC0) == 0x80)
        size--;
    return (str){ s.data, size };
}
