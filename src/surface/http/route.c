/* route.c - from a method and a target to a row of ops.h, or to one that another surface mounted.
 * The tables are the list of routes. */
#include "surface/http/http_int.h"
#include <stdio.h>

/* Take the next segment off `path`, without its slash; false at the end. */
static bool next_segment(str *path, str *out)
{
    if (path->size == 0)
        return false;
    *path = str_from(*path, 1);
    *out = str_before(*path, '/');
    *path = str_from(*path, out->size);
    return true;
}

/* Does the path fit the template? Values of placeholders are added to `out`, not decoded. Names of
 * definitions may contain '/': at the end of a path they take all the rest. */
static bool fits(str template, str path, struct route *out)
{
    str wanted, found;
    bool is_placeholder;

    out->count = 0;
    while (next_segment(&template, &wanted)) {
        if (!next_segment(&path, &found))
            return false;
        is_placeholder = wanted.size > 2 && wanted.data[0] == '{';
        if (!is_placeholder && !str_eq(wanted, found))
            return false;
        if (!is_placeholder)
            continue;
        if (template.size == 0 && str_is(wanted, "{name}")) {
            found.size += path.size;
            path.size = 0;
        }
        out->pairs[out->count++] = (struct op_pair){
            { wanted.data + 1, wanted.size - 2 },
            found,
            IN_PATH,
        };
    }
    return path.size == 0;
}

/* Is the path that of the template up to its first placeholder? Most rows are passed over here, by
 * a few characters. */
static bool begins_alike(const char *template, str path)
{
    size_t i = 0;

    while (i < path.size && template[i] == path.data[i] && template[i] != '{')
        i++;
    return template[i] == '{' || (template[i] == '\0' && i == path.size);
}

/* Takes "/v1/stores/NAME" off a path, if there is something behind it. */
static bool take_store(str *path, str *name)
{
    const str prefix = STR("/v1/stores/");
    str rest;

    if (!str_starts(*path, prefix))
        return false;
    rest = str_from(*path, prefix.size - 1);
    next_segment(&rest, name);
    if (rest.size > 0)
        *path = rest;
    return rest.size > 0;
}

/* "/v1/stores/NAME/..." is "/v1/..." of that store, and so is "/v1/stores/NAME/metrics" its
 * "/metrics"; "/v1/stores/NAME" alone is an address of its own. */
static pawl_status strip_store(struct scope *scope, str *path, str *store)
{
    str name;
    char *joined;

    *store = STR("default");
    if (!take_store(path, &name))
        return PAWL_OK;
    TRY(url_decode(scope, name, false, store));
    if (str_is(*path, "/metrics") || str_is(*path, "/healthz"))
        return PAWL_OK;
    joined = arena_alloc(&scope->arena, path->size + 3);
    TRY_MEMORY(scope, joined);
    memcpy(joined, "/v1", 3);
    memcpy(joined + 3, path->data, path->size);
    *path = (str){ joined, path->size + 3 };
    return PAWL_OK;
}

static void allow_add(char allow[ALLOW_SIZE], const char *method)
{
    size_t used = strlen(allow);

    if (strstr(allow, method)) /* two rows may fit one path: counts is no instance's id */
        return;
    snprintf(allow + used, ALLOW_SIZE - used, "%s%s", used ? ", " : "", method);
}

/* The row for (method, path), or NULL; `allow` collects the methods that the path takes. */
static const struct op *find_row(const struct op *table, str method, str path, struct route *route,
                                 char allow[ALLOW_SIZE])
{
    const struct op *found = NULL;
    struct route other;

    for (const struct op *op = table; op->name; op++) {
        if (!op->path || !begins_alike(op->path, path) ||
            !fits(str_of(op->path), path, found ? &other : route))
            continue;
        allow_add(allow, op->method);
        if (str_is(str_of(op->method), "GET"))
            allow_add(allow, "HEAD");
        if (!found && str_is(method, op->method))
            found = op;
    }
    if (allow[0])
        allow_add(allow, "OPTIONS");
    return found;
}

/* The first table that knows the path decides. */
static const struct op *find_in_all(const struct op *const *mounts, str method, str path,
                                    struct route *route, char allow[ALLOW_SIZE])
{
    const struct op *found = find_row(ops, method, path, route, allow);

    if (str_starts(path, STR("/v1/")))
        return found;
    for (; mounts && *mounts && !allow[0]; mounts++) {
        found = find_row(*mounts, method, path, route, allow);
        route->is_mounted = allow[0];
    }
    return found;
}

uint32_t route_body_limit(str target)
{
    str path = str_before(target, '?'), store;
    bool is_batch = take_store(&path, &store) ? str_is(path, "/batch") : str_is(path, "/v1/batch");

    return is_batch ? LIMIT_BATCH_TEXT : LIMIT_TEXT;
}

static pawl_status add_query(struct scope *scope, str query, struct route *out)
{
    str piece;

    while (str_take(&query, '&', &piece)) {
        str value = str_after(piece, '=');

        if (piece.size == 0)
            continue;
        if (out->count == HTTP_PAIRS_MAX)
            return scope_fail(scope, PAWL_INVALID_REQUEST, "more than %d parameters",
                              HTTP_PAIRS_MAX);
        out->pairs[out->count++] = (struct op_pair){
            str_before(piece, '='),
            value.data ? value : STR(""),
            IN_QUERY,
        };
    }
    return PAWL_OK;
}

static pawl_status decode_pairs(struct scope *scope, struct route *route)
{
    for (uint32_t i = 0; i < route->count; i++) {
        struct op_pair *pair = &route->pairs[i];
        bool is_query = pair->place == IN_QUERY;

        if (is_query)
            TRY(url_decode(scope, pair->name, true, &pair->name));
        TRY(url_decode(scope, pair->value, is_query, &pair->value));
    }
    return PAWL_OK;
}

pawl_status route_find(struct scope *scope, const struct op *const *mounts, str method, str target,
                       struct route *out, char allow[ALLOW_SIZE])
{
    str path = str_before(target, '?');
    str query = path.size < target.size ? str_from(target, path.size + 1) : STR("");
    str wanted = str_is(method, "HEAD") ? STR("GET") : method;

    allow[0] = 0;
    out->is_mounted = false;
    TRY(strip_store(scope, &path, &out->store));
    if (str_is(path, "*") && str_is(method, "OPTIONS")) {
        snprintf(allow, ALLOW_SIZE, "GET, HEAD, PUT, POST, DELETE, OPTIONS");
        return scope_fail(scope, PAWL_NOT_ALLOWED, "* is no address of its own");
    }
    out->op =
        path.size > 0 && path.data[0] == '/' ? find_in_all(mounts, wanted, path, out, allow) : NULL;
    if (!allow[0])
        return scope_fail(scope, PAWL_NOT_KNOWN, "no such address: %.*s", STR_ARG(path));
    if (!out->op)
        return scope_fail(scope, PAWL_NOT_ALLOWED, "%.*s is not for this address, which takes %s",
                          STR_ARG(method), allow);
    TRY(add_query(scope, query, out));
    return decode_pairs(scope, out);
}
