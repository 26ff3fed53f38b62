/* openapi.c - the whole table as an OpenAPI 3.1 document.
 *
 * What a row says, and what describe/ adds to it, is said here in OpenAPI's words; nothing is known
 * here of a single operation. What an operation may refuse follows from its row (rejects()), the
 * rest it lists. */
#include "api/ops_int.h"
#include "api/schema.h"

struct writer {
    struct describe describe;
    struct buf *out;
};

static const pawl_status statuses[] = {
#define X(name, code, token, http, text) PAWL_##name,
    PAWL_STATUS_MAP(X)
#undef X
};

#define STATUS_COUNT_ALL (sizeof statuses / sizeof *statuses)

static void put_text(const struct writer *writer, const char *key, const char *text)
{
    json_key(writer->out, key);
    json_text(writer->out, text);
}

static void open_member(const struct writer *writer, const char *key, char bracket)
{
    json_key(writer->out, key);
    json_open(writer->out, bracket);
}

static void put_node(const struct writer *writer, const char *key, const struct node *node)
{
    json_key(writer->out, key);
    node_print(node, writer->out);
}

/* ---- Parameters ---- */

static const struct node *example_of(const struct node *of, const char *name)
{
    const struct node *example = of ? node_find(of, "example") : NULL;

    return example ? node_find(example, name) : NULL;
}

static void put_param(const struct writer *writer, const struct op_param *param,
                      const struct node *of)
{
    const struct node *example = example_of(of, param->name);

    json_open(writer->out, '{');
    put_text(writer, "name", param->name);
    put_text(writer, "in", param->place == IN_PATH ? "path" : "query");
    json_key(writer->out, "required");
    json_bool(writer->out, param->place == IN_PATH);
    put_text(writer, "description", param->summary);
    json_key(writer->out, "schema");
    schema_print_param(param, of, writer->out);
    if (example)
        put_node(writer, "example", example);
    json_close(writer->out, '}');
}

static void put_shared_param(const struct writer *writer, const char *name)
{
    json_open(writer->out, '{');
    json_key(writer->out, "$ref");
    buf_fmt(writer->out, "\"#/components/parameters/%s\"", name);
    json_close(writer->out, '}');
}

static bool takes_key(const struct op *op)
{
    return (op->flags & OP_WRITES) && !(op->flags & OP_NO_KEY);
}

static void put_params(const struct writer *writer, const struct op *op, const struct node *of)
{
    open_member(writer, "parameters", '[');
    for (const struct op_param *param = op->params; param->name; param++)
        if (param->place != IN_BODY)
            put_param(writer, param, of);
    if (of && node_find(of, "labels"))
        put_shared_param(writer, "labels");
    if (takes_key(op))
        put_shared_param(writer, "idempotency_key");
    if (op->flags & OP_STREAM)
        put_shared_param(writer, "last_event_id");
    json_close(writer->out, ']');
}

/* ---- The body ---- */

/* Of the whole example, what the body has. */
static void put_body_example(const struct writer *writer, const struct op *op,
                             const struct node *of)
{
    open_member(writer, "example", '{');
    for (const struct op_param *param = op->params; param->name; param++)
        if (param->place == IN_BODY && example_of(of, param->name))
            put_node(writer, param->name, example_of(of, param->name));
    json_close(writer->out, '}');
}

static void put_text_body(const struct writer *writer, const struct node *of)
{
    const struct node *body = of ? node_find(of, "body") : NULL;
    const struct node *text = example_of(of, "text");

    for (const struct node *media = body ? body->first : NULL; media; media = media->next) {
        json_key_str(writer->out, media->key);
        json_open(writer->out, '{');
        json_key(writer->out, "schema");
        schema_print(media, writer->out);
        if (text && media == body->first)
            put_node(writer, "example", text);
        json_close(writer->out, '}');
    }
}

static void put_json_body(const struct writer *writer, const struct op *op, const struct node *of)
{
    open_member(writer, "application/json", '{');
    json_key(writer->out, "schema");
    schema_print_object(op, of, IN_BODY, writer->out);
    put_body_example(writer, op, of);
    json_close(writer->out, '}');
}

static void put_body(const struct writer *writer, const struct op *op, const struct node *of)
{
    bool has_any = false, is_required = op->flags & OP_TEXT_BODY;

    for (const struct op_param *param = op->params; param->name; param++) {
        has_any = has_any || param->place == IN_BODY;
        is_required = is_required || (param->place == IN_BODY && param->required);
    }
    if (!has_any)
        return;
    open_member(writer, "requestBody", '{');
    json_key(writer->out, "required");
    json_bool(writer->out, is_required);
    open_member(writer, "content", '{');
    if (op->flags & OP_TEXT_BODY)
        put_text_body(writer, of);
    else
        put_json_body(writer, op, of);
    json_close(writer->out, '}');
    json_close(writer->out, '}');
}

/* ---- Answers ---- */

static void put_media(const struct writer *writer, const struct node *of, str media, bool is_first)
{
    const struct node *gives = node_find(of, "gives");

    json_key_str(writer->out, media);
    json_open(writer->out, '{');
    json_key(writer->out, "schema");
    schema_print(node_find(of, "answer"), writer->out);
    if (gives && is_first)
        put_node(writer, "example", gives);
    json_close(writer->out, '}');
}

static void put_answer(const struct writer *writer, const struct op *op, const struct node *of,
                       int64_t http)
{
    const struct node *media = of ? node_find(of, "media") : NULL;

    json_open(writer->out, '{');
    put_text(writer, "description", op->summary);
    if (op->flags & OP_FIXED)
        buf_str(writer->out, STR(",\"headers\":{\"ETag\":{\"description\":\"of these very bytes; "
                                 "If-None-Match is answered with 304\",\"schema\":{\"type\":"
                                 "\"string\"}}}"));
    if (of && node_find(of, "answer") && http != 304) {
        open_member(writer, "content", '{');
        for (const struct node *one = media ? media->first : NULL; one; one = one->next)
            put_media(writer, of, one->text, one == media->first);
        if (!media)
            put_media(writer, of, STR("application/json"), true);
        json_close(writer->out, '}');
    }
    json_close(writer->out, '}');
}

static bool lists(const struct node *of, const char *member, str word)
{
    const struct node *list = of ? node_find(of, member) : NULL;

    for (const struct node *one = list ? list->first : NULL; one; one = one->next)
        if (str_eq(one->text, word))
            return true;
    return false;
}

/* What every operation of this shape may refuse; a store may be unknown, full or another's. */
static bool rejects(const struct op *op, const struct node *of, pawl_status status)
{
    bool has_store = op->path && str_starts(str_of(op->path), STR("/v1/"));

    if (lists(of, "rejects", str_of(pawl_status_name(status))))
        return true;
    if (status == PAWL_INVALID_REQUEST || status == PAWL_FORBIDDEN || status == PAWL_TOO_LARGE ||
        status == PAWL_OVERLOADED || status == PAWL_NO_MEMORY)
        return true;
    if (status == PAWL_INVALID_QUERY)
        return op->flags & OP_ANY_QUERY;
    if (status == PAWL_UNAUTHENTICATED)
        return !str_is(str_of(op->scope), "none");
    if (status == PAWL_OUTCOME_UNKNOWN)
        return op->flags & OP_WRITES;
    if (status == PAWL_CONFLICT)
        return takes_key(op);
    return has_store &&
           (status == PAWL_NOT_KNOWN || status == PAWL_STORAGE_FAILURE || status == PAWL_IN_USE);
}

static void put_problem_schema(const struct writer *writer, const struct op *op,
                               const struct node *of, int http)
{
    buf_str(writer->out, STR("\"schema\":{\"allOf\":[{\"$ref\":\"#/components/schemas/problem\"},"
                             "{\"properties\":{\"reason\":{\"enum\":["));
    for (size_t i = 0; i < STATUS_COUNT_ALL; i++)
        if (pawl_status_http(statuses[i]) == http && rejects(op, of, statuses[i]))
            json_text(writer->out, pawl_status_name(statuses[i]));
    buf_str(writer->out, STR("]}}}]},\"examples\":{"));
    for (size_t i = 0; i < STATUS_COUNT_ALL; i++)
        if (pawl_status_http(statuses[i]) == http && rejects(op, of, statuses[i])) {
            json_key(writer->out, pawl_status_name(statuses[i]));
            buf_fmt(writer->out, "{\"$ref\":\"#/components/examples/%s\"}",
                    pawl_status_name(statuses[i]));
        }
    json_close(writer->out, '}');
}

static void put_problem(const struct writer *writer, const struct op *op, const struct node *of,
                        int http)
{
    const char *separator = "";

    buf_fmt(writer->out, ",\"%d\":{\"description\":\"", http);
    for (size_t i = 0; i < STATUS_COUNT_ALL; i++)
        if (pawl_status_http(statuses[i]) == http && rejects(op, of, statuses[i])) {
            buf_fmt(writer->out, "%s%s: %s", separator, pawl_status_name(statuses[i]),
                    pawl_status_text(statuses[i]));
            separator = "; ";
        }
    buf_str(writer->out, STR("\",\"content\":{\"application/problem+json\":{"));
    put_problem_schema(writer, op, of, http);
    buf_str(writer->out, STR("}}}"));
}

/* By their HTTP status, each once. */
static void put_problems(const struct writer *writer, const struct op *op, const struct node *of)
{
    for (int http = 400; http < 600; http++)
        for (size_t i = 0; i < STATUS_COUNT_ALL; i++)
            if (pawl_status_http(statuses[i]) == http && rejects(op, of, statuses[i])) {
                put_problem(writer, op, of, http);
                break;
            }
}

static void put_responses(const struct writer *writer, const struct op *op, const struct node *of)
{
    const struct node *also = of ? node_find(of, "also") : NULL;

    open_member(writer, "responses", '{');
    buf_fmt(writer->out, "\"%d\":", op->http_status);
    put_answer(writer, op, of, op->http_status);
    for (const struct node *one = also ? also->first : NULL; one; one = one->next) {
        json_key_str(writer->out, one->text);
        put_answer(writer, op, of, 0);
    }
    if (op->flags & OP_FIXED)
        buf_str(writer->out, STR(",\"304\":{\"description\":\"what the client has is right\"}"));
    put_problems(writer, op, of);
    json_close(writer->out, '}');
}

/* ---- Operations ---- */

/* Loopback needs no token; any other address does. */
static void put_security(const struct writer *writer, const struct op *op)
{
    put_text(writer, "x-scope", op->scope);
    open_member(writer, "security", '[');
    if (!str_is(str_of(op->scope), "none")) {
        json_open(writer->out, '{');
        open_member(writer, "token", '[');
        json_text(writer->out, op->scope);
        json_close(writer->out, ']');
        json_close(writer->out, '}');
        json_open(writer->out, '{');
        json_close(writer->out, '}');
    }
    json_close(writer->out, ']');
}

static void put_tag(const struct writer *writer, const struct op *op)
{
    open_member(writer, "tags", '[');
    json_str(writer->out, (str){ op->name, strcspn(op->name, ".") });
    json_close(writer->out, ']');
}

static void put_operation(const struct writer *writer, const struct op *op)
{
    const struct node *of = describe_find(&writer->describe, "operations", str_of(op->name));
    const struct node *doc = of ? node_find(of, "doc") : NULL;
    const struct node *example = of ? node_find(of, "example") : NULL;

    json_open(writer->out, '{');
    put_text(writer, "operationId", op->name);
    put_text(writer, "summary", op->summary);
    if (doc)
        put_node(writer, "description", doc);
    put_tag(writer, op);
    put_security(writer, op);
    if (example)
        put_node(writer, "x-example", example);
    put_params(writer, op, of);
    put_body(writer, op, of);
    put_responses(writer, op, of);
    json_close(writer->out, '}');
}

static bool same_path(const struct op *a, const struct op *b)
{
    return a->path && b->path && strcmp(a->path, b->path) == 0;
}

static void put_method(const struct writer *writer, const struct op *op)
{
    char method[8] = { 0 };

    for (size_t i = 0; op->method[i] && i + 1 < sizeof method; i++)
        method[i] = (char)(op->method[i] | 0x20);
    json_key(writer->out, method);
    put_operation(writer, op);
}

static void put_paths(const struct writer *writer)
{
    open_member(writer, "paths", '{');
    for (const struct op *op = ops; op->name; op++) {
        const struct op *first = ops;

        while (op->path && !same_path(first, op))
            first++;
        if (!op->path || first != op)
            continue;
        json_key(writer->out, op->path);
        json_open(writer->out, '{');
        for (const struct op *one = op; one->name; one++)
            if (same_path(one, op))
                put_method(writer, one);
        json_close(writer->out, '}');
    }
    json_close(writer->out, '}');
}

/* What the library and the command line have, and HTTP has not. */
static void put_local(const struct writer *writer)
{
    open_member(writer, "x-local", '{');
    for (const struct op *op = ops; op->name; op++)
        if (!op->path) {
            json_key(writer->out, op->name);
            put_operation(writer, op);
        }
    json_close(writer->out, '}');
}

/* ---- The rest ---- */

#define HEAD                                                                                       \
    "\"openapi\":\"3.1.0\",\"info\":{\"title\":\"pawl\",\"version\":\"" PAWL_VERSION "\","         \
    "\"summary\":\"a durable workflow engine\",\"description\":\"Every operation of pawl. These "  \
    "are the default store's addresses; another store's begin with /v1/stores/{store} in place "   \
    "of /v1.\",\"license\":{\"name\":\"Apache-2.0\",\"identifier\":\"Apache-2.0\"}},"              \
    "\"servers\":[{\"url\":\"/\"}]"
#define PARAMETERS                                                                                 \
    "{\"idempotency_key\":{\"name\":\"Idempotency-Key\",\"in\":\"header\",\"required\":false,"     \
    "\"description\":\"repeated with the same key and body it is done once, and answered "         \
    "again\",\"schema\":{\"type\":\"string\",\"minLength\":1,\"maxLength\":128},"                  \
    "\"example\":\"pay-A-17\"},"                                                                   \
    "\"last_event_id\":{\"name\":\"Last-Event-ID\",\"in\":\"header\",\"required\":false,"          \
    "\"description\":\"the id of the last event that was seen; wins over after\","                 \
    "\"schema\":{\"type\":\"string\"},\"example\":\"42\"},"                                        \
    "\"labels\":{\"name\":\"labels\",\"in\":\"query\",\"required\":false,\"style\":\"form\","      \
    "\"explode\":true,\"description\":\"label.K=V: instances with this label; any number of "      \
    "them\",\"schema\":{\"type\":\"object\",\"propertyNames\":{\"pattern\":\"^label[.].\"},"       \
    "\"additionalProperties\":{\"type\":\"string\"}},\"example\":{\"label.region\":\"eu\"}}}"
#define PROBLEM                                                                                    \
    "{\"type\":\"object\",\"description\":\"RFC 9457\",\"properties\":{"                           \
    "\"type\":{\"const\":\"about:blank\"},"                                                        \
    "\"title\":{\"type\":\"string\",\"description\":\"what the reason means\"},"                   \
    "\"status\":{\"type\":\"integer\"},"                                                           \
    "\"detail\":{\"type\":\"string\",\"description\":\"what was expected, found, and where\"},"    \
    "\"reason\":{\"type\":\"string\",\"description\":\"the token\"}},"                             \
    "\"required\":[\"type\",\"title\",\"status\",\"detail\",\"reason\"]}"

static void put_examples(const struct writer *writer)
{
    open_member(writer, "examples", '{');
    for (size_t i = 1; i < STATUS_COUNT_ALL; i++) {
        const char *name = pawl_status_name(statuses[i]);
        const struct node *words = describe_find(&writer->describe, "problems", str_of(name));

        json_key(writer->out, name);
        json_open(writer->out, '{');
        json_key(writer->out, "value");
        op_problem(statuses[i], words ? words->text.data : NULL, writer->out);
        json_close(writer->out, '}');
    }
    json_close(writer->out, '}');
}

static void put_components(const struct writer *writer)
{
    open_member(writer, "components", '{');
    open_member(writer, "schemas", '{');
    buf_str(writer->out, STR("\"problem\":" PROBLEM));
    schema_print_named(&writer->describe, writer->out);
    json_close(writer->out, '}');
    json_key(writer->out, "parameters");
    buf_str(writer->out, STR(PARAMETERS));
    put_examples(writer);
    json_key(writer->out, "securitySchemes");
    buf_str(writer->out, STR("{\"token\":{\"type\":\"http\",\"scheme\":\"bearer\",\"description\":"
                             "\"pawl token create --scope ...\"}}"));
    json_close(writer->out, '}');
}

pawl_status openapi_print(struct scope *scope, struct buf *out)
{
    struct writer writer = { .out = out };
    pawl_status status = describe_open(scope, &writer.describe);

    if (status != PAWL_OK)
        return status;
    json_open(out, '{');
    buf_str(out, STR(HEAD));
    put_paths(&writer);
    put_local(&writer);
    put_components(&writer);
    json_close(out, '}');
    return PAWL_OK;
}
