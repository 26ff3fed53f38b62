/* args.h - private to api: what the typed functions of pawl.h do with their arguments. */
#ifndef PAWL_API_ARGS_H
#define PAWL_API_ARGS_H

#include "api/api.h"
#include "api/key.h"

str supplied(const char *text); /* null, missing and "" count as not supplied (D27) */

/* OK, or INVALID_REQUEST with words about `what`; what is not supplied is fine. */
pawl_status check_utf8(struct scope *scope, const char *what, str text);
pawl_status check_ref(struct scope *scope, const char *what, str text); /* not blank */
pawl_status check_json(struct scope *scope, const char *what, str text, bool is_object);
pawl_status read_time(struct scope *scope, const char *what, const char *text, bool *has,
                      int64_t *out);

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
