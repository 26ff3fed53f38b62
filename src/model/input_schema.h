/* input_schema.h - `input:` of a definition: what its instances may be started with.
 *
 * A subset of JSON Schema, whose keywords are the table schema_keys (schema_rules.c). A schema is
 * kept as the tree of its text: definitions are few, and an input is checked once. */
#ifndef PAWL_MODEL_INPUT_SCHEMA_H
#define PAWL_MODEL_INPUT_SCHEMA_H

#include "base/node.h"
#include "base/scope.h"

/* Reports what is wrong with a schema itself: unknown keywords, values that fit none. */
typedef void schema_report(void *context, const struct node *at, const char *message);
void input_schema_check(const struct node *schema, schema_report *report, void *context);
/* The same of a schema that another key has. */
void key_schema_check(const struct node *schema, const char *key, schema_report *report,
                      void *context);

/* INVALID_REQUEST "input.amount: expected a number, found a string" for the first thing in `input`
 * (JSON; data NULL: {}) that `schema` does not allow. NULL allows everything. */
pawl_status input_schema_accept(struct scope *scope, const struct node *schema, str input);

/* Can an input that `schema` allows have something at the dotted `path` (data NULL: the input
 * itself)? Where a schema lists `properties`, a property that is not listed counts as missing
 * unless `additionalProperties` allows it explicitly. */
bool input_schema_has(const struct node *schema, str path);

/* The schema of as much of `path` as there is, which is taken off it: what is left begins with the
 * word that is missing there. The path is not empty, and input_schema_has() is false for it. */
const struct node *input_schema_reach(const struct node *schema, str *path);

bool input_schema_is_type(const struct node *word); /* "string", ... */

#endif
