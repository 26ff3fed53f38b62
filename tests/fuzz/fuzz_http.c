/* fuzz_http.c - a method and a target as they come from the wire: "GET /v1/...". */
#include "fuzz.h"
#include "surface/http/http_int.h"

static void require_texts(const struct route *route)
{
    REQUIRE(route->op && route->count <= HTTP_PAIRS_MAX);
    for (uint32_t i = 0; i < route->count; i++) {
        REQUIRE(route->pairs[i].name.data && route->pairs[i].value.data);
        REQUIRE(str_is_utf8(route->pairs[i].name, false));
        REQUIRE(str_is_utf8(route->pairs[i].value, false));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct route route;
    const char *space = size ? memchr(data, ' ', size) : NULL;
    str method = { (const char *)data, space ? (size_t)(space - (const char *)data) : 0 };
    str target =
        space ? (str){ space + 1, size - method.size - 1 } : (str){ (const char *)data, size };
    char allow[ALLOW_SIZE] = "";
    struct scope scope;
    str decoded;

    scope_init(&scope, &heap_libc, LIMIT_SCOPE);
    if (route_find(&scope, NULL, method, target, &route, allow) == PAWL_OK)
        require_texts(&route);
    REQUIRE(memchr(allow, '\0', sizeof allow));
    if (url_decode(&scope, target, true, &decoded) == PAWL_OK)
        REQUIRE(str_is_utf8(decoded, false) && decoded.size <= target.size);
    (void)host_is_local(target);
    scope_fini(&scope);
    return 0;
}
