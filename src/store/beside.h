/* beside.h - the other stores of a store, asked without opening any of them.
 *
 * Beside sqlite:FILE the store NAME is FILE-stores/NAME.db: the folder is the list, so there is
 * nothing that could differ from it. Stores in memory have no place of their own: the
 * program that opened the first has to remember the others. */
#ifndef PAWL_STORE_BESIDE_H
#define PAWL_STORE_BESIDE_H

#include "base/scope.h"
#include "base/str.h"

#define STORE_NAME_MAX 128
#define STORE_DEFAULT  "default" /* the store that was opened */

/* 1..128 of A-Za-z0-9._- that begin with a letter or a digit: safe as a file's name, in a path of
 * HTTP, and never hidden. */
bool store_name_is_valid(str name);

/* Where the store `name` of the store at `url` lies; in memory: "memory:". The name is valid. */
pawl_status store_beside(struct scope *scope, str url, str name, const char **out);

/* Is it there? In memory: false. */
bool store_is_beside(struct scope *scope, str url, str name);

/* Make a place for stores beside this one; OK if there is one. STORAGE_FAILURE. */
pawl_status store_make_room_beside(struct scope *scope, str url);

/* The names of those that are there, in byte order, without the default; in memory: none. */
pawl_status store_names_beside(struct scope *scope, str url, str **out, uint32_t *count);

#endif
