/* schema.h - what the operations take and answer, in words that JSON Schema is made from.
 *
 * describe/NAME.yaml has up to four sections:
 *
 *   operations:  name of the row in ops.c -> what is not in that row (below)
 *   types:       name -> a type
 *   scalars:     name -> {format or pattern, example}: a string of that form
 *   problems:    reason -> a sentence, as `detail` may say it
 *
 * A type is a word (text, int, count, bool, json, object, null, or the name of a type or scalar),
 * `in A B` (one of these strings), `list of T` or [T], alternatives `T | T`, an object {member: T,
 * member?: T} that has no others, or {"*": T}, any members. Behind ` -- ` it may say what it is
 * for.
 *
 * Of an operation: `takes` refines parameters of its row (which has their names, places, what is
 * required and a line about each), `answer` is the type of its answer, `media` its content types if
 * not application/json, `body` those of a text body, `also` further statuses of success, `rejects`
 * what it may refuse beyond what follows from its row, `doc` more words, `example` a whole input
 * (path, query and body in one object) and `gives` the answer to it. */
#ifndef PAWL_API_SCHEMA_H
#define PAWL_API_SCHEMA_H

#include "api/ops.h"

#define DESCRIBE_MAX 16

struct describe {
    struct node *files[DESCRIBE_MAX];
    uint32_t count;
};

/* Read all of them into the scope. NO_MEMORY, or what is wrong with a file. */
pawl_status describe_open(struct scope *scope, struct describe *out);

/* NULL if there is none. */
const struct node *describe_find(const struct describe *describe, const char *section, str name);

/* A type as JSON Schema. */
void schema_print(const struct node *type, struct buf *out);

/* Every scalar and type, as members of components.schemas. */
void schema_print_named(const struct describe *describe, struct buf *out);

/* A parameter of an operation; null counts as not supplied. `of` is the operation's description. */
void schema_print_param(const struct op_param *param, const struct node *of, struct buf *out);

/* The parameters that are in one place, as an object that takes no others. */
void schema_print_object(const struct op *op, const struct node *of, enum op_place place,
                         struct buf *out);

/* All of /openapi.json: openapi.c. */
pawl_status openapi_print(struct scope *scope, struct buf *out);

#endif
