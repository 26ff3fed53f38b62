/* curl.h - private to tool: libcurl, loaded when the http tool is first used. A program that
 * never calls a server does not load it, and libpawl does not link it. */
#ifndef PAWL_TOOL_CURL_H
#define PAWL_TOOL_CURL_H

#include "tool/tool_int.h"
#define CURL_DISABLE_TYPECHECK
#include <curl/curl.h>

#define CURL_FUNCTIONS(X)                                                                          \
    X(init, "curl_easy_init", CURL *, (void))                                                      \
    X(setopt, "curl_easy_setopt", CURLcode, (CURL *, CURLoption, ...))                             \
    X(perform, "curl_easy_perform", CURLcode, (CURL *))                                            \
    X(getinfo, "curl_easy_getinfo", CURLcode, (CURL *, CURLINFO, ...))                             \
    X(cleanup, "curl_easy_cleanup", void, (CURL *))                                                \
    X(strerror, "curl_easy_strerror", const char *, (CURLcode))                                    \
    X(slist_append, "curl_slist_append", struct curl_slist *, (struct curl_slist *, const char *)) \
    X(slist_free, "curl_slist_free_all", void, (struct curl_slist *))                              \
    X(url_new, "curl_url", CURLU *, (void))                                                        \
    X(url_set, "curl_url_set", CURLUcode, (CURLU *, CURLUPart, const char *, unsigned int))        \
    X(url_get, "curl_url_get", CURLUcode, (CURLU *, CURLUPart, char **, unsigned int))             \
    X(url_free, "curl_url_cleanup", void, (CURLU *))                                               \
    X(free, "curl_free", void, (void *))                                                           \
    X(start, "curl_global_init", CURLcode, (long))                                                 \
    X(multi_new, "curl_multi_init", CURLM *, (void))                                               \
    X(multi_add, "curl_multi_add_handle", CURLMcode, (CURLM *, CURL *))                            \
    X(multi_remove, "curl_multi_remove_handle", CURLMcode, (CURLM *, CURL *))                      \
    X(multi_perform, "curl_multi_perform", CURLMcode, (CURLM *, int *))                            \
    X(multi_poll, "curl_multi_poll", CURLMcode,                                                    \
      (CURLM *, struct curl_waitfd *, unsigned int, int, int *))                                   \
    X(multi_read, "curl_multi_info_read", CURLMsg *, (CURLM *, int *))                             \
    X(multi_free, "curl_multi_cleanup", CURLMcode, (CURLM *))

struct curl_api {
#define X(name, symbol, type, parameters) type(*name) parameters;
    CURL_FUNCTIONS(X)
#undef X
};

/* NULL: it cannot be loaded. Thread-safe; stays until the process ends. */
const struct curl_api *curl_api_get(struct toolbox *toolbox);

#endif
