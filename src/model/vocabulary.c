/* vocabulary.c - questions about tables of keys, and what to write instead of a key. */
#include "model/vocabulary.h"
#include "model/words.h"
#include <stdio.h>

bool key_is_free(str key)
{
    return str_starts(key, STR("x-"));
}

bool keys_have(const struct known_key *keys, str key)
{
    for (; keys->word; keys++)
        if (str_is(key, keys->word))
            return true;
    return key_is_free(key);
}

const char *keys_meant(const struct known_key *keys, str mistake)
{
    for (; keys->word; keys++)
        if (keys->mistake && str_is(mistake, keys->mistake))
            return keys->word;
    return NULL;
}

/* ---- What to write instead ------------------------------------------------------------------- */

#define WORDS_MAX 64 /* of all tables */

static size_t add_words(const char **words, size_t count, const struct known_key *keys)
{
    for (; keys->word; keys++) {
        size_t i = 0;

        while (i < count && strcmp(words[i], keys->word) != 0)
            i++;
        if (i == count && count + 1 < WORDS_MAX)
            words[count++] = keys->word;
    }
    return count;
}

void keys_hint(const struct known_key *const *tables, str key, char out[KEY_HINT_SIZE])
{
    const char *words[WORDS_MAX] = { NULL }, *meant = NULL;
    size_t count = 0, used = 0;

    for (; *tables; tables++) {
        count = add_words(words, count, *tables);
        meant = meant ? meant : keys_meant(*tables, key);
    }
    words[count] = NULL;
    meant = meant ? meant : words_nearest(key, words);
    if (meant)
        used = (size_t)snprintf(out, KEY_HINT_SIZE, "did you mean '%s'? ", meant);
    used += (size_t)snprintf(out + used, KEY_HINT_SIZE - used, "known here: ");
    for (size_t i = 0; i < count && used < KEY_HINT_SIZE; i++)
        used +=
            (size_t)snprintf(out + used, KEY_HINT_SIZE - used, "%s%s", i > 0 ? ", " : "", words[i]);
    if (!meant && used < KEY_HINT_SIZE)
        (void)snprintf(out + used, KEY_HINT_SIZE - used, "; a key of your own begins with x-");
}
