/* ids.h - instance ids: 26 characters of Crockford base32 (upper case, no I L O U):
 * ten for the instance's number (50 bits), sixteen for 80 random bits. Ids of one
 * store sort by creation, cannot be guessed, and are found by number. */
#ifndef PAWL_BASE_IDS_H
#define PAWL_BASE_IDS_H

#include "base/str.h"

#define ID_SIZE 26
#define ID_RANDOM_SIZE 10
#define ID_NUMBER_MAX ((UINT64_C(1) << 50) - 1)

void id_print(uint64_t number, const uint8_t random[ID_RANDOM_SIZE], char out[ID_SIZE + 1]);

/* False if it is not exactly such a text (lower case is not accepted). */
bool id_parse(str text, uint64_t *number, uint8_t random[ID_RANDOM_SIZE]);

/* "ID-7" (a transition_id) and "ID.7" (a step_id): the id, a mark, a decimal number
 * without leading zeros. False if it is not one. */
bool id_split(str text, char mark, str *id, uint64_t *n);

#endif
