/* fuzz_request.c - a whole request as it comes from the wire, headers and body, through the adapter
 * to its answer: "POST /v1/instances/@1/fire", then "Name: value" lines, an empty line, the body.
 *
 * Whatever comes is answered, with a status of HTTP and JSON inside, or with a stream of whole
 * events; it has its line in the log; and the store stays valid. The adapter is the server's own,
 * from its start to its stop; wire.c stands in for the library that speaks HTTP and for workers, so
 * that what one input does is done by this thread, the engine's and the hub's. */
#include "api/api.h"
#include "fuzz.h"
#include "wire.h"
#include <sched.h>

#define IDS_MAX   3
#define CALLS_MAX 4     /* calls without an answer, at the head and at the end */
#define READS_MAX 65536 /* a stream of these few entries has come to rest long before */

static const char order[] =
    "name: order\nstates: [new, paid, gone]\ninitial_state: new\n"
    "terminal_states: [gone]\nterminal_kinds: {gone: cancel}\ntransitions:\n"
    "  - {from_state: new, action: pay, to_state: paid}\n"
    "  - {from_state: paid, action: back, to_state: new, requires_reason: true}\n"
    "  - {from_state: new, action: drop, to_state: gone, guard: sure}\n";
static const char nap[] = "name: nap\nsteps:\n"
                          "  start: {name: doze, tool: sleep, args: {for: 1m}, done: true}\n";

struct input {
    char ids[IDS_MAX][27];
    char *method;
    struct buf target, body;
};

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

        if (!*line || connection->count == WIRE_HEADERS_MAX) {
            free(line);
            return;
        }
        if (colon)
            *colon++ = '\0';
        connection->names[connection->count] = line;
        connection->values[connection->count++] = colon ? colon + (*colon == ' ') : NULL;
    }
}

/* "@1" stands for the first instance's id, in the target and in the body. */
static void replace_ids(str text, char ids[IDS_MAX][27], struct buf *out)
{
    buf_init(out, &heap_libc, 0);
    for (size_t i = 0; i < text.size; i++) {
        uint32_t which =
            text.data[i] == '@' && i + 1 < text.size ? (uint32_t)(text.data[i + 1] - '1') : IDS_MAX;

        if (which < IDS_MAX) {
            buf_str(out, str_of(ids[which]));
            i++;
        } else
            buf_byte(out, (unsigned char)text.data[i]);
    }
    REQUIRE(!out->failed);
}

/* ---- Its life ---- */

/* Was it rejected while its body came in? Then the server has written the answer to the socket, and
 * the library gets none. */
static bool is_discarding(const struct web_request *request)
{
    return request->is_discarding;
}

static void ask(struct MHD_Daemon *daemon, struct MHD_Connection *connection, const char *method,
                str piece, void **kept)
{
    size_t left = piece.size;
    enum MHD_Result result = daemon->on_request(daemon->context, connection, "", method, "HTTP/1.1",
                                                piece.data, &left, kept);

    REQUIRE(result == MHD_YES || is_discarding(*kept));
    REQUIRE(left == 0);
    wire_wait(connection);
}

static bool is_at_head(const struct web_request *request)
{
    return !request->has_begun || request->is_at_head;
}

/* As the library does: the head, again if it was suspended there; the body in pieces (here two);
 * its end, again until there is an answer. After the answer there is no more call. */
static void ask_until_answered(struct MHD_Daemon *daemon, struct MHD_Connection *connection,
                               const struct input *input, void **kept)
{
    str body = buf_view(&input->body);
    str pieces[] = { { body.data, body.size / 2 }, str_from(body, body.size / 2) };

    for (int i = 0; i < CALLS_MAX && connection->status == 0 && is_at_head(*kept); i++)
        ask(daemon, connection, input->method, STR(""), kept);
    for (size_t i = 0; i < sizeof pieces / sizeof *pieces && connection->status == 0; i++)
        if (pieces[i].size > 0 && !is_discarding(*kept))
            ask(daemon, connection, input->method, pieces[i], kept);
    for (int i = 0; i < CALLS_MAX && connection->status == 0 && !is_discarding(*kept); i++)
        ask(daemon, connection, input->method, STR(""), kept);
    REQUIRE(connection->status != 0 || is_discarding(*kept));
}

static void require_events(str text)
{
    static const char *const begins[] = { "id: ", "event: entry", "event: created", "data: ",
                                          ":" };

    /* Nothing, where the reader's buffers were too small for a comment. */
    REQUIRE(text.size == 0 ||
            (text.size >= 2 && memcmp(text.data + text.size - 2, "\n\n", 2) == 0));
    while (text.size > 0) {
        char *line = take_line(&text);
        bool is_known = !*line;

        for (size_t i = 0; i < sizeof begins / sizeof *begins; i++)
            is_known = is_known || strncmp(line, begins[i], strlen(begins[i])) == 0;
        REQUIRE(is_known && !strchr(line, '\r'));
        free(line);
    }
}

/* It sleeps until there is more, and there will be none: the hub has read on to the end. */
static bool is_at_rest(struct stream *stream)
{
    struct hub *hub = stream->hub;
    bool is_level = false, is_at_rest = false;
    struct shard_vector end;

    while (!is_level) {
        guard_lock(&hub->lock);
        events_end(hub->p, &end);
        is_level = vector_reaches(&hub->at, &end);
        is_at_rest = stream->is_suspended && !stream->is_behind &&
                     (stream->instance || stream->next_number == hub->end_number);
        guard_unlock(&hub->lock);
        sched_yield();
    }
    return is_at_rest;
}

static void read_events(struct MHD_Connection *connection, struct buf *text)
{
    struct stream *stream = connection->answer.stream;

    for (uint32_t i = 0; !is_at_rest(stream); i++) {
        char block[257];
        ssize_t size;

        wire_wait(connection);
        size = connection->answer.read(stream, text->size, block, 3 + i % 255);
        REQUIRE(i < READS_MAX && size >= 0);
        buf_add(text, block, (size_t)size);
    }
}

/* While it is open an order is paid, with the body for a payload; whom it concerns is told. */
static void follow(pawl *p, struct MHD_Connection *connection, struct input *input)
{
    const struct stream *stream = connection->answer.stream;
    pawl_fire_args args = { .action = "pay", .payload = buf_text(&input->body) };
    struct buf text;
    bool is_paid;

    buf_init(&text, &heap_libc, 0);
    if (input->body.size % 3 > 0)
        read_events(connection, &text);
    is_paid = pawl_fire(p, input->ids[1], &args, NULL, NULL) == PAWL_OK;
    read_events(connection, &text);
    require_events(buf_view(&text));
    if (is_paid && (!stream->id[0] || strcmp(stream->id, input->ids[1]) == 0))
        REQUIRE(strstr(buf_text(&text), "\"action\":\"pay\""));
    buf_fini(&text);
}

static void serve(struct http_server *server, struct MHD_Connection *connection,
                  struct input *input)
{
    struct MHD_Daemon *daemon = server->daemon;
    void *kept;

    connection->fd.connect_fd = -1;
    daemon->on_connection(server, connection, &connection->known.socket_context,
                     MHD_CONNECTION_NOTIFY_STARTED);
    kept = daemon->on_target(server, buf_text(&input->target), connection);
    REQUIRE(kept);
    ask_until_answered(daemon, connection, input, &kept);
    if (connection->answer.stream)
        follow(server->p, connection, input);
    REQUIRE(connection->logged == 1);
    daemon->on_completed(server, connection, &kept, MHD_REQUEST_TERMINATED_COMPLETED_OK);
    daemon->on_connection(server, connection, &connection->known.socket_context,
                     MHD_CONNECTION_NOTIFY_CLOSED);
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

/* One line, whatever was asked for. */
static void on_line(void *context, const char *line, size_t size)
{
    struct MHD_Connection *connection = context;

    REQUIRE(size > 0 && memchr(line, '\n', size) == line + size - 1);
    if (line[0] == '{')
        require_json((str){ line, size });
    connection->logged++;
}

static void serve_from_start_to_stop(pawl *p, struct MHD_Connection *connection,
                                     struct input *input)
{
    struct http_options options = { .socket = 1, .log = on_line, .log_context = connection };
    struct http_server *server;
    pawl_error error;

    options.log_format = input->body.size % 2 ? HTTP_LOG_JSON : HTTP_LOG_LOGFMT;
    server = http_start(p, &options, &error);
    REQUIRE(server);
    serve(server, connection, input);
    http_stop(server);
}

static void take_input(str rest, struct input *out, struct MHD_Connection *connection)
{
    char *space;

    out->method = take_line(&rest);
    space = strchr(out->method, ' ');
    replace_ids(str_of(space ? space + 1 : "/"), out->ids, &out->target);
    if (space)
        *space = '\0';
    take_headers(connection, &rest);
    replace_ids(rest, out->ids, &out->body);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct MHD_Connection connection = { 0 };
    struct input input;
    pawl *p;

    if (size == 0)
        return 0;
    make_store(&p, input.ids);
    take_input((str){ (const char *)data, size }, &input, &connection);
    serve_from_start_to_stop(p, &connection, &input);
    require_valid(p);
    buf_fini(&input.body);
    buf_fini(&input.target);
    for (uint32_t i = 0; i < connection.count; i++)
        free(connection.names[i]);
    free(input.method);
    pawl_close(p);
    return 0;
}
