/* fuzz_request.c - a whole request as it comes from the wire, headers and body, through the adapter
 * to its answer: "POST /v1/instances/@1/fire", then "Name: value" lines, an empty line, the body.
 *
 * Whatever comes is answered, with a status of HTTP and JSON inside, and the store stays valid. The
 * library that speaks HTTP is not asked: its few functions that the adapter calls are made here. */
#include "api/api.h"
#include "base/node.h"
#include "fuzz.h"
#include "surface/http/stream_int.h"

#define HEADERS_MAX 12
#define IDS_MAX     3

static const char order[] =
    "name: order\nstates: [new, paid, gone]\ninitial_state: new\n"
    "terminal_states: [gone]\nterminal_kinds: {gone: cancel}\ntransitions:\n"
    "  - {from_state: new, action: pay, to_state: paid}\n"
    "  - {from_state: paid, action: back, to_state: new, requires_reason: true}\n"
    "  - {from_state: new, action: drop, to_state: gone, guard: sure}\n";
static const char nap[] = "name: nap\nsteps:\n"
                          "  start: {name: doze, tool: sleep, args: {for: 1m}, done: true}\n";

struct MHD_Connection {
    char *names[HEADERS_MAX], *values[HEADERS_MAX];
    uint32_t count;
    unsigned status; /* of the answer; 0: none */
};

struct MHD_Response {
    size_t size;
    const char *body;
    bool is_raw; /* of a type that need not be JSON */
};

/* ---- What the adapter calls ---- */

const char *MHD_lookup_connection_value(struct MHD_Connection *connection, enum MHD_ValueKind kind,
                                        const char *key)
{
    (void)kind;
    for (uint32_t i = 0; i < connection->count; i++)
        if (strcasecmp(connection->names[i], key) == 0)
            return connection->values[i];
    return NULL;
}

int MHD_get_connection_values(struct MHD_Connection *connection, enum MHD_ValueKind kind,
                              MHD_KeyValueIterator iterator, void *context)
{
    for (uint32_t i = 0; i < connection->count; i++)
        if (iterator(context, kind, connection->names[i], connection->values[i]) == MHD_NO)
            break;
    return (int)connection->count;
}

struct MHD_Response *MHD_create_response_from_buffer(size_t size, void *buffer,
                                                     enum MHD_ResponseMemoryMode mode)
{
    struct MHD_Response *response = calloc(1, sizeof *response);

    REQUIRE(response);
    REQUIRE(mode == MHD_RESPMEM_PERSISTENT);
    response->size = size;
    response->body = buffer;
    return response;
}

enum MHD_Result MHD_add_response_header(struct MHD_Response *response, const char *header,
                                        const char *content)
{
    REQUIRE(header && content && !strpbrk(content, "\r\n"));
    if (strcasecmp(header, "Content-Type") == 0)
        response->is_raw = !strstr(content, "json");
    return MHD_YES;
}

static void require_json(str body)
{
    struct scope scope;
    struct node *node;

    scope_init(&scope, &heap_libc, 4 * LIMIT_SCOPE);
    REQUIRE(node_read_json(&scope, body, &node) == PAWL_OK);
    scope_fini(&scope);
}

enum MHD_Result MHD_queue_response(struct MHD_Connection *connection, unsigned status,
                                   struct MHD_Response *response)
{
    REQUIRE(connection->status == 0);
    REQUIRE(status >= 200 && status < 600 && status != 500);
    if (!response->is_raw && response->size > 0)
        require_json((str){ response->body, response->size });
    connection->status = status;
    return MHD_YES;
}

void MHD_destroy_response(struct MHD_Response *response)
{
    free(response);
}

void MHD_suspend_connection(struct MHD_Connection *connection)
{
    REQUIRE(connection->status == 0);
}

void MHD_resume_connection(struct MHD_Connection *connection)
{
    REQUIRE(connection->status == 0);
}

/* ---- The rest of the adapter: a worker that works at once, a stream without an end ---- */

bool work_has_room(struct work *work)
{
    (void)work;
    return true;
}

void work_add(struct work *work, struct request *request)
{
    (void)work;
    request_work(request);
}

void visit_allow(struct MHD_Connection *connection, int seconds)
{
    (void)connection;
    (void)seconds;
}

void count_refused(struct http_server *server, enum http_limit limit)
{
    (void)server;
    REQUIRE(limit < HTTP_LIMITS);
}

void count_answer(struct request *request)
{
    REQUIRE(request->result.http_status != 0);
}

void figures_print(struct http_server *server, struct buf *out)
{
    (void)server;
    (void)out;
}

static struct stream *const a_stream = (struct stream *)(uintptr_t)8;

struct stream *stream_begin(struct hub *hub, struct MHD_Connection *connection,
                            const struct op_stream *from)
{
    (void)hub;
    (void)connection;
    REQUIRE(memchr(from->instance, '\0', sizeof from->instance));
    return a_stream;
}

struct MHD_Response *stream_response(struct stream *stream)
{
    struct MHD_Response *response =
        MHD_create_response_from_buffer(0, NULL, MHD_RESPMEM_PERSISTENT);

    REQUIRE(stream == a_stream);
    return response;
}

/* ---- A request out of an input ---- */

/* A line off the front, with NUL behind it; texts of the wire hold none. */
static char *take_line(str *rest)
{
    const char *end = memchr(rest->data, '\n', rest->size);
    size_t size = end ? (size_t)(end - rest->data) : rest->size;
    char *line = malloc(size + 1);

    REQUIRE(line);
    memcpy(line, rest->data, size);
    line[size] = '\0';
    *rest = str_from(*rest, size + (end ? 1 : 0));
    return line;
}

static void take_headers(struct MHD_Connection *connection, str *rest)
{
    while (rest->size > 0) {
        char *line = take_line(rest), *colon = strchr(line, ':');

        if (!*line || connection->count == HEADERS_MAX) {
            free(line);
            return;
        }
        if (colon)
            *colon++ = '\0';
        connection->names[connection->count] = line;
        connection->values[connection->count++] = colon ? colon + (*colon == ' ') : NULL;
    }
}

static char *replace_ids(const char *target, char ids[IDS_MAX][27])
{
    struct buf out;
    char *text;

    buf_init(&out, &heap_libc, LIMIT_TEXT);
    for (; *target; target++) {
        uint32_t which = *target == '@' ? (uint32_t)(target[1] - '1') : IDS_MAX;

        if (which < IDS_MAX) {
            buf_str(&out, str_of(ids[which]));
            target++;
        } else
            buf_byte(&out, (unsigned char)*target);
    }
    buf_byte(&out, '\0');
    text = strdup(out.data);
    buf_fini(&out);
    return text;
}

/* As the server does it; the body comes in two pieces. */
static void serve(struct request *request, const char *method, str body)
{
    bool answer_now = false;

    request->method = str_of(method);
    request->status = request_check(request, &answer_now);
    if (!answer_now) {
        size_t half = body.size / 2;

        REQUIRE(request_take(request, body.data, half));
        REQUIRE(request_take(request, body.data + half, body.size - half));
    }
    REQUIRE(respond(request) == MHD_YES);
    if (request->connection->status == 0) { /* it was away */
        REQUIRE(request->stage == STAGE_BACK);
        REQUIRE(respond(request) == MHD_YES);
    }
    REQUIRE(request->connection->status != 0);
}

static void require_valid(pawl *p)
{
    pawl_error error;
    char *answer;

    REQUIRE(pawl_call(p, "store.verify", "{}", &answer, &error) == PAWL_OK);
    REQUIRE(strstr(answer, "\"valid\":true"));
    pawl_free(p, answer);
}

static void make_store(pawl **out, char ids[IDS_MAX][27])
{
    pawl_error error;
    pawl_id id;

    REQUIRE(!pawl_open_env(out, "memory:", &(pawl_options){ .test_clock = true },
                           env_sim_new(FUZZ_NOW_MS, 7), &error));
    REQUIRE(!pawl_define(*out, order, sizeof order - 1, NULL, &error));
    REQUIRE(!pawl_define(*out, nap, sizeof nap - 1, NULL, &error));
    for (int i = 0; i < IDS_MAX; i++) {
        REQUIRE(!pawl_create(*out, &(pawl_create_args){ .definition = i ? "order" : "nap" }, &id,
                             &error));
        memcpy(ids[i], id.text, sizeof id.text);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct MHD_Connection connection = { 0 };
    struct http_server server = { .port = 7295 };
    struct request request = { .server = &server, .connection = &connection };
    str rest = { (const char *)data, size };
    char ids[IDS_MAX][27], *line, *space;

    if (size == 0)
        return 0;
    make_store(&server.p, ids);
    line = take_line(&rest);
    space = strchr(line, ' ');
    request.target = replace_ids(space ? space + 1 : "/", ids);
    if (space)
        *space = '\0';
    take_headers(&connection, &rest);
    scope_init(&request.scope, &heap_libc, LIMIT_SCOPE);
    request.body_limit = route_body_limit(str_of(request.target));
    buf_init(&request.body, &heap_libc, request.body_limit);
    buf_init(&request.answer, &heap_libc, LIMIT_SCOPE);
    serve(&request, line, rest);
    require_valid(server.p);
    buf_fini(&request.answer);
    buf_fini(&request.body);
    scope_fini(&request.scope);
    for (uint32_t i = 0; i < connection.count; i++)
        free(connection.names[i]);
    free(request.target);
    free(line);
    pawl_close(server.p);
    return 0;
}
