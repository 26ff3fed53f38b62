/* dashboard.c - the files of the dashboard over HTTP, and the token that a browser keeps. */
#include "surface/dashboard/dashboard.h"

extern const str dashboard_files[][2]; /* made by tools/embed from this folder */

/* Scripts and styles are files of this server, and nothing else is loaded or called. Text becomes
 * text: with trusted types a browser refuses to read it as markup. */
#define POLICY                                                                                     \
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "              \
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "            \
    "require-trusted-types-for 'script'; trusted-types 'none'"

/* ---- Files ---- */

static const struct {
    const char *end, *type;
} types[] = {
    { ".html", "text/html; charset=utf-8" },
    { ".js", "text/javascript; charset=utf-8" },
    { ".css", "text/css; charset=utf-8" },
    { ".svg", "image/svg+xml" },
};

static const char *type_of(str name)
{
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        str end = str_of(types[i].end);

        if (name.size > end.size && str_eq(str_from(name, name.size - end.size), end))
            return types[i].type;
    }
    return "application/octet-stream";
}

static pawl_status serve_file(struct op_call *call, str name, struct buf *out)
{
    for (const str(*file)[2] = dashboard_files; (*file)[0].data; file++) {
        if (!str_eq((*file)[0], name))
            continue;
        call->content_type = type_of(name);
        call->page.policy = POLICY;
        buf_str(out, (*file)[1]);
        return PAWL_OK;
    }
    return scope_fail(call->scope, PAWL_NOT_KNOWN, "no such address: /dashboard/%.*s",
                      STR_ARG(name));
}

static pawl_status page_start(struct op_call *call, struct buf *out)
{
    return serve_file(call, STR("index.html"), out);
}

static pawl_status page_file(struct op_call *call, struct buf *out)
{
    return serve_file(call, node_find(call->input, "name")->text, out);
}

/* ---- The token ---- */

static void print_who(const struct op_principal *who, struct buf *out)
{
    json_put_str(out, "name", who->name);
    json_put_str(out, "scopes", who->scopes);
    json_put_str(out, "actor_ref", who->actor);
}

/* The token is its own session: it ends when it expires or is revoked, and a restart of the server
 * ends none. */
static pawl_status page_login(struct op_call *call, struct buf *out)
{
    const struct node *token = node_find(call->input, "token");

    TRY(op_authenticate(call->p, call->scope, token->text, &call->who));
    call->page.token = token->text;
    print_who(&call->who, out);
    return PAWL_OK;
}

static pawl_status page_logout(struct op_call *call, struct buf *out)
{
    call->page.token = STR("");
    json_put_bool(out, "done", true);
    return PAWL_OK;
}

/* Who the server takes the caller for; all is null where it wants no token. */
static pawl_status page_who(struct op_call *call, struct buf *out)
{
    print_who(&call->who, out);
    return PAWL_OK;
}

/* ---- Addresses ---- */

static const struct op_param no_params[] = { { 0 } };
static const struct op_param file_params[] = {
    { "name", IN_PATH, OP_STRING, true, "the file" },
    { 0 },
};
static const struct op_param login_params[] = {
    { "token", IN_BODY, OP_STRING, true, "the token" },
    { 0 },
};

#define FILE_FLAGS (OP_QUICK | OP_RAW_ANSWER | OP_FIXED)

const struct op dashboard_rows[] = {
    { "page.start", "GET", "/", FILE_FLAGS, 200, "the dashboard", no_params, page_start, "none" },
    { "page.login", "POST", "/dashboard/login", 0, 200, "exchange a token for a cookie",
      login_params, page_login, "none" },
    { "page.logout", "POST", "/dashboard/logout", OP_QUICK, 200, "forget the cookie", no_params,
      page_logout, "none" },
    { "page.who", "GET", "/dashboard/who", OP_QUICK, 200, "who calls", no_params, page_who, "any" },
    { "page.file", "GET", "/dashboard/{name}", FILE_FLAGS, 200, "a file of the dashboard",
      file_params, page_file, "none" },
    { 0 },
};
