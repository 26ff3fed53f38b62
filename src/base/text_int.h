/* text_int.h - private to base: UTF-8 by the character, and the JSON quote. */
#ifndef PAWL_BASE_TEXT_INT_H
#define PAWL_BASE_TEXT_INT_H

#include "base/buf.h"

/* The bytes of the character that `s` begins with, 1..4; 0 if it is not valid UTF-8. */
size_t utf8_size(str s);

/* At most `size_max` bytes of `s`, cut between characters. */
str utf8_head(str s, size_t size_max);

/* Write the character's 1..4 bytes and say how many. It must be a Unicode scalar value. */
size_t utf8_encode(uint32_t character, char out[4]);

/* How many bytes at the front of `s` are ASCII that a JSON string has as it is: no controls, no
 * quote, no backslash. Nearly all of most strings. */
size_t json_plain_size(str s);

/* A JSON string without json_str()'s comma. Bytes that are not UTF-8 become U+FFFD. */
void json_quote(struct buf *buf, str s);

#endif
