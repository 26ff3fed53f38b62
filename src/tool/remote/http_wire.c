/* http_wire.c - one POST to a server, and its answer: one message, or a stream of events with
 * messages in it. A stream that ends too early is taken up again where the server offers that (the
 * older era: `id:` and `retry:` of events). */
#include "base/limits.h"
#include "tool/curl.h"
#include "tool/remote/remote_int.h"
#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

#define RETRY_MS     1000 /* before a stream is taken up again, unless the server says */
#define RETRY_MAX_MS 60000
#define EVENT_ID_MAX 256
#define RESUMES_MAX  20
#define SIDE_WAIT_MS 1000 /* for the other stream of a session to open */

struct wire {
    struct remote_talk *talk;
    const struct curl_api *curl;
    struct curl_slist *headers;
    str body; /* data NULL: GET */
    uint64_t id;
    struct node *message; /* the answer; NULL: none yet */
    long status;
    bool is_stream, is_done, is_refused;
    char type[80], session[132];
    struct buf text;  /* what came and is not read yet */
    struct buf event; /* the data of the event that comes */
    char last_event[EVENT_ID_MAX];
    long retry_ms;
    int64_t begun_ms, left_ms;
};

/* ---- Headers ---- */

static bool add(struct wire *wire, const char *name, str value)
{
    char line[8192];
    struct curl_slist *longer;
    /* As curl wants it: "NAME;" is a header without a value, "NAME:" is none. */
    int size = value.size == 0 ? snprintf(line, sizeof line, "%s;", name)
                               : snprintf(line, sizeof line, "%s: %.*s", name, STR_ARG(value));

    if (size < 0 || (size_t)size >= sizeof line)
        return talk_fails(wire->talk, FAULT_UNREACHABLE, "the header %s is too long", name);
    longer = wire->curl->slist_append(wire->headers, line);
    if (!longer)
        return talk_fails(wire->talk, FAULT_MEMORY, "no memory");
    wire->headers = longer;
    return true;
}

/* A header of curl's own is left out. */
static bool drop(struct wire *wire, const char *line)
{
    struct curl_slist *longer = wire->curl->slist_append(wire->headers, line);

    if (longer)
        wire->headers = longer;
    return longer || talk_fails(wire->talk, FAULT_MEMORY, "no memory");
}

static bool add_token(struct wire *wire)
{
    str variable = wire->talk->server->rule->token;
    const char *token = variable.data ? getenv(variable.data) : NULL;
    char value[4096];

    if (!variable.data)
        return true;
    if (!token || strlen(token) > sizeof value - 16 || strpbrk(token, "\r\n"))
        return talk_fails(wire->talk, FAULT_UNREACHABLE,
                          "the variable %s, which has the server's token, is not set",
                          variable.data);
    (void)snprintf(value, sizeof value, "Bearer %s", token);
    return add(wire, "Authorization", str_of(value));
}

/* Where a name is not plain ASCII, or looks like what is encoded, it is sent in base64. */
static str encoded(struct remote_talk *talk, str value)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    bool is_plain = !(str_starts(value, STR("=?base64?")) && value.size >= 11 &&
                      value.data[value.size - 1] == '=' && value.data[value.size - 2] == '?');
    struct buf out;

    for (size_t i = 0; i < value.size; i++)
        is_plain = is_plain && value.data[i] >= ' ' && value.data[i] < 0x7f &&
                   (value.data[i] != ' ' || (i > 0 && i + 1 < value.size));
    if (is_plain)
        return value;
    buf_init(&out, talk->scope->arena.heap, LIMIT_TEXT);
    buf_str(&out, STR("=?base64?"));
    for (size_t i = 0; i < value.size; i += 3) {
        size_t left = value.size - i;
        uint32_t three = (uint32_t)(uint8_t)value.data[i] << 16 |
                         (left > 1 ? (uint32_t)(uint8_t)value.data[i + 1] << 8 : 0) |
                         (left > 2 ? (uint32_t)(uint8_t)value.data[i + 2] : 0);

        buf_byte(&out, (unsigned char)digits[three >> 18]);
        buf_byte(&out, (unsigned char)digits[three >> 12 & 63]);
        buf_byte(&out, left > 1 ? (unsigned char)digits[three >> 6 & 63] : '=');
        buf_byte(&out, left > 2 ? (unsigned char)digits[three & 63] : '=');
    }
    buf_str(&out, STR("?="));
    return buf_take(&out, &talk->scope->arena);
}

static bool add_modern(struct wire *wire, const struct remote_request *request)
{
    if (!add(wire, "MCP-Protocol-Version", STR(MODERN_VERSION)))
        return false;
    if (request && !add(wire, "Mcp-Method", str_of(request->method)))
        return false;
    if (request && request->name.data && !add(wire, "Mcp-Name", encoded(wire->talk, request->name)))
        return false;
    for (const struct remote_pair *pair = request ? request->headers : NULL; pair;
         pair = pair->next) {
        char name[128];

        (void)snprintf(name, sizeof name, "Mcp-Param-%.*s", STR_ARG(pair->name));
        if (!add(wire, name, encoded(wire->talk, pair->value)))
            return false;
    }
    return true;
}

static bool add_headers(struct wire *wire, const struct remote_request *request)
{
    const struct remote_rule *rule = wire->talk->server->rule;
    const struct remote_peer *peer = &wire->talk->peer;

    for (uint32_t i = 0; i < rule->header_count; i++)
        if (!add(wire, rule->headers[i].name.data, rule->headers[i].value))
            return false;
    if (!add(wire, "Accept",
             wire->body.data ? STR("application/json, text/event-stream")
                             : STR("text/event-stream")) ||
        !drop(wire, "Expect:") || !add_token(wire))
        return false;
    if (wire->body.data && !add(wire, "Content-Type", STR("application/json")))
        return false;
    if (wire->last_event[0] != '\0' && !wire->body.data &&
        !add(wire, "Last-Event-ID", str_of(wire->last_event)))
        return false;
    if (peer->era == ERA_MODERN)
        return add_modern(wire, request);
    return (peer->version[0] == '\0' || add(wire, "MCP-Protocol-Version", str_of(peer->version))) &&
           (peer->session[0] == '\0' || add(wire, "Mcp-Session-Id", str_of(peer->session)));
}

/* ---- What comes ---- */

static void take_message(struct wire *wire, str text)
{
    struct node *message;

    if (text.size == 0 || wire->message || wire->talk->fault != FAULT_NONE)
        return;
    text = arena_str(&wire->talk->scope->arena, text);
    if (!text.data) {
        talk_fails(wire->talk, FAULT_MEMORY, "no memory");
    } else if (node_read_json(wire->talk->scope, text, &message) != PAWL_OK) {
        if (wire->status < 400)
            talk_fails(wire->talk, FAULT_INVALID, "its answer is no message of JSON-RPC");
    } else if (talk_take(wire->talk, wire->id, message)) {
        wire->message = message;
    } else if (wire->status >= 400 && node_find(message, "error")) {
        wire->message = message; /* an error that does not say of which request */
    }
}

/* One line of a stream of events. */
static void take_line(struct wire *wire, str line)
{
    str name = str_before(line, ':'), value = str_after(line, ':');

    if (line.size == 0) {
        take_message(wire, buf_view(&wire->event));
        buf_clear(&wire->event);
        return;
    }
    if (value.size > 0 && value.data[0] == ' ')
        value = str_from(value, 1);
    if (str_is(name, "data")) {
        if (wire->event.size > 0)
            buf_byte(&wire->event, '\n');
        buf_str(&wire->event, value);
    } else if (str_is(name, "id") && value.size < EVENT_ID_MAX && !str_has(value, '\0')) {
        (void)snprintf(wire->last_event, sizeof wire->last_event, "%.*s", STR_ARG(value));
    } else if (str_is(name, "retry") && value.size > 0 && value.size < 9) {
        wire->retry_ms = strtol(value.data, NULL, 10);
    }
}

static void take_lines(struct wire *wire)
{
    str rest = buf_view(&wire->text);

    while (rest.size > 0 && !wire->message && wire->talk->fault == FAULT_NONE) {
        const char *end = memchr(rest.data, '\n', rest.size);
        str line;

        if (!end)
            break;
        line = (str){ rest.data, (size_t)(end - rest.data) };
        rest = str_from(rest, line.size + 1);
        if (line.size > 0 && line.data[line.size - 1] == '\r')
            line.size--;
        take_line(wire, line);
    }
    if (rest.size > 0)
        memmove(wire->text.data, rest.data, rest.size);
    wire->text.size = rest.size;
}

static size_t take_data(char *data, size_t size, size_t count, void *context)
{
    struct wire *wire = context;

    buf_add(&wire->text, data, size * count);
    if (wire->is_stream)
        take_lines(wire);
    if (wire->text.failed || wire->event.failed)
        talk_fails(wire->talk, FAULT_INVALID, "a message of over %zu bytes", REMOTE_TEXT_MAX);
    wire->is_done = wire->message != NULL || wire->talk->fault != FAULT_NONE;
    return wire->is_done && wire->is_stream ? 0 : size * count;
}

static size_t take_header(char *data, size_t size, size_t count, void *context)
{
    struct wire *wire = context;
    str line = str_trim((str){ data, size * count }, " \t\r\n"), value = str_after(line, ':');

    value = value.data ? str_trim(value, " \t") : value;
    if (str_starts(line, STR("HTTP/"))) {
        str code = str_after(line, ' ');

        wire->status = code.size >= 3 ? strtol(code.data, NULL, 10) : 0;
    } else if (line.size > 12 && strncasecmp(line.data, "content-type", 12) == 0) {
        (void)snprintf(wire->type, sizeof wire->type, "%.*s", STR_ARG(value));
        wire->is_stream = strncasecmp(wire->type, "text/event-stream", 17) == 0;
    } else if (line.size > 14 && strncasecmp(line.data, "mcp-session-id", 14) == 0 &&
               value.size < sizeof wire->session) {
        (void)snprintf(wire->session, sizeof wire->session, "%.*s", STR_ARG(value));
    }
    return size * count;
}

/* ---- The connection ---- */

/* The operator wrote the url; but a name of the outside must not lead inside, and what goes outside
 * is encrypted. */
static bool may_open(const struct wire *wire, const struct sockaddr *address, const char *text)
{
    const struct remote_rule *rule = wire->talk->server->rule;
    bool is_safe = str_starts(rule->url, STR("https://"));
    str host = str_after(str_after(rule->url, '/'), '/');

    if (!address_is_private(address))
        return is_safe;
    host = str_starts(host, STR("[")) ? str_from(str_before(host, ']'), 1)
                                      : str_before(str_before(host, '/'), ':');
    return str_is(host, text) || str_is(host, "localhost") ||
           rule_names_have(&rule->private_addresses, str_of(text));
}

static curl_socket_t open_socket(void *context, curlsocktype purpose, struct curl_sockaddr *address)
{
    struct wire *wire = context;
    const void *bytes = (const char *)&address->addr + (address->family == AF_INET ? 4 : 8);
    char text[INET6_ADDRSTRLEN] = "";

    (void)purpose;
    (void)inet_ntop(address->family, bytes, text, sizeof text);
    if (may_open(wire, &address->addr, text))
        return socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
    wire->is_refused = true;
    (void)snprintf(wire->talk->words, sizeof wire->talk->words,
                   address_is_private(&address->addr)
                       ? "%s is a private address, and is not listed in 'private' of the server"
                       : "%s is no private address: https:// is needed",
                   text);
    return CURL_SOCKET_BAD;
}

static int look(void *context, curl_off_t a, curl_off_t b, curl_off_t c, curl_off_t d)
{
    struct wire *wire = context;
    struct env *env = wire->talk->remote->toolbox->options.env;

    (void)a, (void)b, (void)c, (void)d;
    if (talk_is_over(wire->talk))
        talk_fails(wire->talk, FAULT_STOPPED, "stopped before it answered");
    else if (env->tick_ms(env) - wire->begun_ms - wire->talk->paused_ms > wire->left_ms)
        talk_fails(wire->talk, FAULT_LATE, "no answer in time");
    return wire->talk->fault != FAULT_NONE;
}

static void set_up(struct wire *wire, CURL *easy)
{
    const struct curl_api *curl = wire->curl;

    curl->setopt(easy, CURLOPT_URL, wire->talk->server->rule->url.data);
    curl->setopt(easy, CURLOPT_NOSIGNAL, 1L);
    curl->setopt(easy, CURLOPT_PROXY, "");
    curl->setopt(easy, CURLOPT_NETRC, (long)CURL_NETRC_IGNORED);
    curl->setopt(easy, CURLOPT_FOLLOWLOCATION, 0L);
    curl->setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
    if (!wire->talk->held) /* that may wait for people */
        curl->setopt(easy, CURLOPT_TIMEOUT_MS, (long)wire->left_ms);
    curl->setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, (long)wire->left_ms);
    curl->setopt(easy, CURLOPT_OPENSOCKETFUNCTION, open_socket);
    curl->setopt(easy, CURLOPT_OPENSOCKETDATA, wire);
    curl->setopt(easy, CURLOPT_NOPROGRESS, 0L);
    curl->setopt(easy, CURLOPT_XFERINFOFUNCTION, look);
    curl->setopt(easy, CURLOPT_XFERINFODATA, wire);
    curl->setopt(easy, CURLOPT_WRITEFUNCTION, take_data);
    curl->setopt(easy, CURLOPT_WRITEDATA, wire);
    curl->setopt(easy, CURLOPT_HEADERFUNCTION, take_header);
    curl->setopt(easy, CURLOPT_HEADERDATA, wire);
    curl->setopt(easy, CURLOPT_HTTPHEADER, wire->headers);
    if (wire->body.data) {
        curl->setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)wire->body.size);
        curl->setopt(easy, CURLOPT_POSTFIELDS, wire->body.data);
    }
}

static void fail_transfer(struct wire *wire, CURLcode code)
{
    struct remote_talk *talk = wire->talk;

    if (wire->is_refused)
        talk->fault = FAULT_UNREACHABLE;
    else if (code == CURLE_OPERATION_TIMEDOUT)
        talk_fails(talk, FAULT_LATE, "no answer in time");
    else if (code == CURLE_COULDNT_CONNECT || code == CURLE_COULDNT_RESOLVE_HOST ||
             code == CURLE_SSL_CONNECT_ERROR || code == CURLE_PEER_FAILED_VERIFICATION)
        talk_fails(talk, FAULT_UNREACHABLE, "%s", wire->curl->strerror(code));
    else
        talk_fails(talk, FAULT_BROKEN, "%s", wire->curl->strerror(code));
}

/* ---- The other stream of a session ---- */

/* In the older era a server may ask on a stream that is of no request: GET. It is open before the
 * call is made and until that ends. A server without such a stream answers with an error. */
struct side_stream {
    struct wire wire;
    CURL *easy;
    CURLM *multi;
};

static void open_side(struct side_stream *side, const struct wire *main)
{
    side->wire = (struct wire){ .talk = main->talk, .curl = main->curl, .left_ms = INT64_MAX / 2 };
    side->wire.begun_ms = main->begun_ms;
    buf_init(&side->wire.text, main->talk->scope->arena.heap, REMOTE_TEXT_MAX);
    buf_init(&side->wire.event, main->talk->scope->arena.heap, REMOTE_TEXT_MAX);
    side->easy = add_headers(&side->wire, NULL) ? main->curl->init() : NULL;
    if (!side->easy)
        return;
    set_up(&side->wire, side->easy);
    main->curl->multi_add(side->multi, side->easy);
}

static void close_side(struct side_stream *side)
{
    const struct curl_api *curl = side->wire.curl;

    if (side->easy)
        curl->multi_remove(side->multi, side->easy);
    curl->cleanup(side->easy);
    curl->slist_free(side->wire.headers);
    buf_fini(&side->wire.text);
    buf_fini(&side->wire.event);
}

/* True: the transfer `easy` has ended. */
static bool step_both(struct side_stream *side, CURL *easy, CURLcode *code)
{
    const struct curl_api *curl = side->wire.curl;
    const CURLMsg *message;
    bool is_over = false;
    int running, left;

    if (curl->multi_perform(side->multi, &running) != CURLM_OK)
        return true;
    while ((message = curl->multi_read(side->multi, &left)))
        if (message->easy_handle == easy && message->msg == CURLMSG_DONE) {
            is_over = true;
            *code = message->data.result;
        }
    if (!is_over)
        curl->multi_poll(side->multi, NULL, 0, SLICE_WAIT_MS, &running);
    return is_over;
}

static CURLcode perform_both(struct wire *wire, CURL *easy)
{
    struct side_stream side = { .multi = wire->curl->multi_new() };
    CURLcode code = CURLE_OUT_OF_MEMORY;

    if (!side.multi)
        return code;
    open_side(&side, wire);
    for (int i = 0; side.easy && i < SIDE_WAIT_MS / SLICE_WAIT_MS && side.wire.status == 0; i++)
        if (step_both(&side, side.easy, &code))
            break;
    code = CURLE_ABORTED_BY_CALLBACK;
    wire->curl->multi_add(side.multi, easy);
    while (!step_both(&side, easy, &code))
        if (look(wire, 0, 0, 0, 0))
            break;
    wire->curl->multi_remove(side.multi, easy);
    close_side(&side);
    wire->curl->multi_free(side.multi);
    return code;
}

/* One POST or GET. False: it failed, or was cut short. */
static bool transfer(struct wire *wire, const struct remote_request *request)
{
    struct env *env = wire->talk->remote->toolbox->options.env;
    CURL *easy = NULL;
    CURLcode code = CURLE_OUT_OF_MEMORY;

    wire->begun_ms = env->tick_ms(env);
    wire->left_ms = wire->talk->left_ms > 0 ? wire->talk->left_ms : 1;
    wire->is_stream = wire->is_done = false;
    buf_clear(&wire->text);
    buf_clear(&wire->event);
    if (add_headers(wire, request) && (easy = wire->curl->init())) {
        set_up(wire, easy);
        code = wire->talk->held && wire->body.data && wire->talk->peer.session[0] != '\0'
                   ? perform_both(wire, easy)
                   : wire->curl->perform(easy);
        wire->curl->getinfo(easy, CURLINFO_RESPONSE_CODE, &wire->status);
    }
    wire->curl->cleanup(easy);
    wire->curl->slist_free(wire->headers);
    wire->headers = NULL;
    wire->talk->left_ms -= env->tick_ms(env) - wire->begun_ms - wire->talk->paused_ms;
    wire->talk->paused_ms = 0;
    if (wire->talk->fault != FAULT_NONE || wire->message)
        return wire->message != NULL && wire->talk->fault == FAULT_NONE;
    if (code != CURLE_OK && !(wire->is_stream && wire->last_event[0] != '\0')) {
        fail_transfer(wire, code);
        return false;
    }
    if (!wire->is_stream && wire->id)
        take_message(wire, buf_view(&wire->text));
    return wire->talk->fault == FAULT_NONE;
}

/* A stream that has ended without the answer goes on where the server says. */
static bool resume(struct wire *wire)
{
    for (int i = 0; i < RESUMES_MAX && !wire->message && wire->is_stream &&
                    wire->last_event[0] != '\0' && wire->talk->fault == FAULT_NONE;
         i++) {
        long wait = wire->retry_ms < RETRY_MAX_MS ? wire->retry_ms : RETRY_MAX_MS;

        for (; wait > 0 && !talk_is_over(wire->talk); wait -= SLICE_WAIT_MS) {
            (void)poll(NULL, 0, wait < SLICE_WAIT_MS ? (int)wait : SLICE_WAIT_MS);
            wire->talk->left_ms -= SLICE_WAIT_MS;
        }
        if (wire->talk->left_ms <= 0)
            return talk_fails(wire->talk, FAULT_LATE, "no answer in time");
        wire->body = STR_NONE;
        if (!transfer(wire, NULL))
            return false;
    }
    return true;
}

static bool finish(struct wire *wire)
{
    struct remote_talk *talk = wire->talk;

    talk->status = wire->status;
    if (wire->session[0] != '\0' && talk->peer.era == ERA_LEGACY)
        memcpy(talk->peer.session, wire->session, sizeof wire->session);
    if (talk->fault != FAULT_NONE)
        return false;
    if (wire->message)
        return true;
    if (wire->status >= 400)
        return talk_fails(talk, FAULT_HTTP, "the server answers with the status %ld", wire->status);
    if (wire->status >= 300)
        return talk_fails(talk, FAULT_HTTP,
                          "the server leads elsewhere (status %ld), which is not "
                          "followed",
                          wire->status);
    return !wire->id || talk_fails(talk, FAULT_BROKEN, "the answer ended without a result");
}

bool http_exchange(struct remote_talk *talk, const struct remote_request *request, str body,
                   uint64_t id, struct node **message)
{
    struct wire wire = { .talk = talk, .body = body, .id = id, .retry_ms = RETRY_MS };

    wire.curl = curl_api_get(talk->remote->toolbox);
    if (!wire.curl)
        return talk_fails(talk, FAULT_UNREACHABLE,
                          "libcurl.so.4 cannot be loaded; install libcurl4");
    if (talk_is_over(talk))
        return talk_fails(talk, FAULT_STOPPED, "stopped");
    buf_init(&wire.text, talk->scope->arena.heap, REMOTE_TEXT_MAX);
    buf_init(&wire.event, talk->scope->arena.heap, REMOTE_TEXT_MAX);
    (void)(transfer(&wire, request) && resume(&wire));
    buf_fini(&wire.text);
    buf_fini(&wire.event);
    *message = wire.message;
    return finish(&wire);
}

bool http_tell(struct remote_talk *talk, str body)
{
    struct node *message;

    return http_exchange(talk, NULL, body, 0, &message);
}
