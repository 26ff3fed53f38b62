/* curl.c - libcurl's functions, looked up by name. */
#include "tool/curl.h"
#include <dlfcn.h>

static bool load(struct curl_api *api)
{
    void *library = dlopen("libcurl.so.4", RTLD_NOW | RTLD_LOCAL), *found;

    if (!library)
        return false;
        /* POSIX lets a pointer to a function stand in a void *; C wants it copied. */
#define X(name, symbol, type, parameters)                                                          \
    found = dlsym(library, symbol);                                                                \
    if (!found)                                                                                    \
        return false;                                                                              \
    memcpy(&api->name, &found, sizeof found);
    CURL_FUNCTIONS(X)
#undef X
    return api->start(CURL_GLOBAL_DEFAULT) == CURLE_OK;
}

const struct curl_api *curl_api_get(struct toolbox *toolbox)
{
    bool is_loaded;

    pthread_mutex_lock(&toolbox->lock);
    if (!toolbox->curl) {
        struct curl_api *api = heap_new(toolbox->options.heap, sizeof *api);

        if (api && load(api))
            toolbox->curl = api;
        else
            heap_free(toolbox->options.heap, api, sizeof *api);
    }
    is_loaded = toolbox->curl != NULL;
    pthread_mutex_unlock(&toolbox->lock);
    return is_loaded ? toolbox->curl : NULL;
}

void curl_api_free(struct toolbox *toolbox)
{
    heap_free(toolbox->options.heap, toolbox->curl, sizeof(struct curl_api));
}
