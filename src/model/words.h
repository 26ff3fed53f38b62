/* words.h - other people's texts, as our messages show them. */
#ifndef PAWL_MODEL_WORDS_H
#define PAWL_MODEL_WORDS_H

#include "base/str.h"

#define WORDS_SIZE_MAX 80

/* At most WORDS_SIZE_MAX bytes of `s`, cut between characters: a huge name must not push
 * what a message has to say out of it. */
str words_shown(str s);

#endif
