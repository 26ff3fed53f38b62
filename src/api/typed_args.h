/* typed_args.h - private to api: values that callers supply, whichever way they come. */
#ifndef PAWL_API_TYPED_ARGS_H
#define PAWL_API_TYPED_ARGS_H

#include "api/api.h"
#include "api/key.h"
#include "base/node.h"

/* ---- Of typed functions and operations alike ---- */

str told(str text); /* data NULL: nothing, or white space, which says nothing */

/* A sentence about what is wrong, to be reported last; NULL: nothing. A reference is not blank, and
 * an actor's is not reserved. */
const char *ref_defect(struct scope *scope, const char *name, str text);
const char *time_defect(struct scope *scope, const char *name, str text, bool *has, int64_t *out);
#define SINGLETON_WORDS "'singleton' is for a 'definition' and a 'subject_ref': expected both"
const char *metadata_defect(const struct node *node); /* NULL: not supplied */
pawl_status defect_status(struct scope *scope, const char *defect);

pawl_status check_labels(struct scope *scope, const struct node *labels); /* NULL: not supplied */

/* ---- Of typed functions ---- */

str supplied(const char *text); /* null, missing and "" count as not supplied (D27) */

/* OK, or INVALID_REQUEST with words about `what`; what is not supplied is fine. */
pawl_status check_utf8(struct scope *scope, const char *what, str text);
pawl_status check_ref(struct scope *scope, const char *what, str text);
pawl_status check_json(struct scope *scope, const char *what, str text, struct node **out);

/* The message of a failed check, for an engine that reports it instead; NULL: it did not fail. */
const char *late_words(struct scope *scope, pawl_status status);

/* ---- What an idempotency key covers ---- */

#define TEXT_MEMBER(name, text)                                                                    \
    {                                                                                              \
        STR_INIT(name), supplied(text), true                                                       \
    }
#define JSON_MEMBER(name, text)                                                                    \
    {                                                                                              \
        STR_INIT(name), supplied(text), false                                                      \
    }
#define MEMBER_COUNT(members) (uint32_t)(sizeof(members) / sizeof *(members))

#endif
