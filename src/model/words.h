/* words.h - other people's texts, as our messages show them. */
#ifndef PAWL_MODEL_WORDS_H
#define PAWL_MODEL_WORDS_H

#include "base/str.h"

#define WORDS_SIZE_MAX 80

/* At most WORDS_SIZE_MAX bytes of `s`, cut between characters: a huge name must not push
 * what a message has to say out of it. */
str words_shown(str s);

/* The one of `known` (ending in NULL) that `word` is most likely a slip of the hand for: at most
 * two letters wrong, missing, too many or swapped, and no more than a third of it. NULL: none. */
const char *words_nearest(str word, const char *const *known);

/* Are two names the same but for case, blanks, hyphens and underscores? As str_compare(). */
int words_compare_loosely(str a, str b);

#endif
