/* vocabulary.h - the keys that a definition may have, in tables: one for each place.
 *
 * The compilers of machines and flows take what their tables hold and refuse every other key. So do
 * the built-in tools with their arguments. docs/definitions.md is made from the same tables: where
 * it writes @keys NAME@ it has table NAME, and a table that it lacks fails a test. @NAME@ in a text
 * here or there is the value of that constant. A key that begins with "x-" is free in every place.
 */
#ifndef PAWL_MODEL_VOCABULARY_H
#define PAWL_MODEL_VOCABULARY_H

#include "base/str.h"

struct known_key {
    const char *word;    /* NULL: the table's end */
    const char *value;   /* what it takes: "DURATION" */
    const char *summary; /* one line for the documentation */
    const char *mistake; /* what authors write instead; NULL: nothing known */
    const char *preset;  /* without the key: a value, "required"; NULL: nothing of it */
};

#define KEY_DESCRIPTION { "description", "TEXT", "what it is for; not interpreted", NULL }

/* Does the table have this key? Keys that begin with "x-" are free. */
bool keys_have(const struct known_key *keys, str key);
bool key_is_free(str key);

/* The key that `mistake` is written for, or NULL. */
const char *keys_meant(const struct known_key *keys, str mistake);

#define KEY_HINT_SIZE 320

/* "did you mean 'max'? known here: max, backoff": what to write instead of `key`, which is in none
 * of the tables; NULL ends them. */
void keys_hint(const struct known_key *const *tables, str key, char out[KEY_HINT_SIZE]);

#endif
