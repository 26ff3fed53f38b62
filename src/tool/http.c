/* http.c - call a server as a tool: {method?, url, headers?, json? | body?, expect?}.
 *
 * Off unless rules name hosts. The address is looked at when the connection is made; redirects are
 * not followed, proxies not used. libcurl is loaded when first asked for. */
#include "base/limits.h"
#include "base/sha.h"
#include "model/words.h"
#include "tool/curl.h"
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

struct exchange {
    struct call *call;
    const struct curl_api *curl;
    const struct tool_rules *rules;
    const char *url, *method;
    const struct node *expect;
    str sent; /* data NULL: no body */
    struct curl_slist *headers;
    struct buf body;
    char type[128];                 /* of what came back */
    char refused[INET6_ADDRSTRLEN]; /* the address that may not be asked; "": none */
    bool is_too_large;
    long status;
};

/* ---- The request
 * --------------------------------------------------------------------------------- */

/* "api.example.com", "*.example.com": anything below it. Names are compared in lower case. */
static bool host_fits(str rule, str host)
{
    str tail = rule;

    if (str_starts(rule, STR("*."))) {
        tail = str_from(rule, 1);
        if (host.size <= tail.size)
            return false;
        host = str_from(host, host.size - tail.size);
    }
    return host.size == tail.size && strncasecmp(host.data, tail.data, host.size) == 0;
}

static bool host_is_listed(const struct exchange *exchange, str host)
{
    for (uint32_t i = 0; i < exchange->rules->hosts.count; i++)
        if (host_fits(exchange->rules->hosts.items[i], host))
            return true;
    return false;
}

static bool check_host(struct exchange *exchange, CURLU *url)
{
    char *host = NULL, *user = NULL;
    bool is_listed;

    if (exchange->curl->url_get(url, CURLUPART_USER, &user, 0) == CURLUE_OK) {
        exchange->curl->free(user);
        return call_refuse(exchange->call, "http: the url may not name a user; use a header");
    }
    if (exchange->curl->url_get(url, CURLUPART_HOST, &host, 0) != CURLUE_OK)
        return call_no_memory(exchange->call);
    is_listed = host_is_listed(exchange, str_of(host));
    if (!is_listed)
        call_refuse(exchange->call, "http: the host '%.*s' is not listed in tools.http.hosts",
                    STR_ARG(words_shown(str_of(host))));
    exchange->curl->free(host);
    return is_listed;
}

static bool check_url(struct exchange *exchange)
{
    CURLU *url = exchange->curl->url_new();
    bool is_fine = false;

    if (!url)
        return call_no_memory(exchange->call);
    if (exchange->curl->url_set(url, CURLUPART_URL, exchange->url, 0) != CURLUE_OK ||
        (strncmp(exchange->url, "http://", 7) != 0 && strncmp(exchange->url, "https://", 8) != 0))
        call_refuse(exchange->call, "http: 'url' must be one of http:// or https://, found '%.*s'",
                    STR_ARG(words_shown(str_of(exchange->url))));
    else
        is_fine = check_host(exchange, url);
    exchange->curl->url_free(url);
    return is_fine;
}

static bool add_header(struct exchange *exchange, str name, str value)
{
    struct buf line;
    struct curl_slist *longer;
    const char *text;

    buf_init(&line, exchange->call->scope->arena.heap, LIMIT_TEXT);
    buf_fmt(&line, "%.*s: %.*s", STR_ARG(name), STR_ARG(value));
    text = arena_text(&exchange->call->scope->arena, buf_view(&line));
    buf_fini(&line);
    longer = text ? exchange->curl->slist_append(exchange->headers, text) : NULL;
    if (!longer)
        return call_no_memory(exchange->call);
    exchange->headers = longer;
    return true;
}

static bool is_token(str name)
{
    for (size_t i = 0; i < name.size; i++)
        if (name.data[i] <= ' ' || name.data[i] == 0x7f ||
            memchr("()<>@,;:\\\"/[]?={}", name.data[i], 17))
            return false;
    return name.size > 0;
}

/* What belongs to the connection is not the flow's to say. */
static bool is_ours(str name)
{
    static const char *const words[] = { "host",       "content-length",  "transfer-encoding",
                                         "connection", "upgrade",         "idempotency-key",
                                         "expect",     "x-pawl-signature" };

    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (host_fits(str_of(words[i]), name))
            return true;
    return false;
}

/* The trace that the instance belongs to, unless the flow says another. */
static bool add_trace(struct exchange *exchange, const struct node *headers)
{
    str trace = str_of(exchange->call->given->traceparent), name = STR("traceparent");

    for (const struct node *item = headers ? headers->first : NULL; item; item = item->next)
        if (host_fits(name, item->key))
            return true;
    return !trace.data || add_header(exchange, name, trace);
}

static bool read_headers(struct exchange *exchange)
{
    const struct node *headers = node_find(exchange->call->args, "headers");

    for (const struct node *item = headers ? headers->first : NULL; item; item = item->next) {
        bool is_text = item->kind == NODE_STRING || item->kind == NODE_NUMBER;

        if (headers->kind != NODE_OBJECT || !is_text || !is_token(item->key) ||
            is_ours(item->key) || str_has(item->text, '\n') || str_has(item->text, '\r'))
            return call_refuse(exchange->call, "http: the header '%.*s' cannot be sent",
                               STR_ARG(words_shown(item->key)));
        if (!add_header(exchange, item->key, item->text))
            return false;
    }
    return add_trace(exchange, headers) &&
           add_header(exchange, STR("Idempotency-Key"),
                      str_of(exchange->call->given->idempotency_key));
}

static bool read_body(struct exchange *exchange)
{
    const struct node *json = node_find(exchange->call->args, "json");
    const struct node *body = node_find(exchange->call->args, "body");

    if (json && body)
        return call_refuse(exchange->call, "http: 'json' and 'body' are two bodies; it takes one");
    if (body && body->kind != NODE_STRING)
        return call_refuse(exchange->call, "http: 'body' must be a text; 'json' takes any value");
    if (body)
        exchange->sent = body->text;
    if (!json)
        return true;
    exchange->sent = node_keep(json, &exchange->call->scope->arena);
    return exchange->sent.data ? add_header(exchange, STR("Content-Type"), STR("application/json"))
                               : call_no_memory(exchange->call);
}

/* "t=1777628400,v1=HEX": of the time, a dot and the body, so that an old request is seen to be
 * one. */
static bool add_signature(struct exchange *exchange, str secret)
{
    struct call *call = exchange->call;
    struct sha *sha = sha_new(call->scope->arena.heap);
    struct env *env = call->toolbox->options.env;
    long long at_s = (long long)(env->now_ms(env) / 1000);
    char hex[2 * SHA_SIZE + 1];
    uint8_t mac[SHA_SIZE];
    struct buf text;
    bool is_added;

    if (!sha)
        return call_no_memory(call);
    buf_init(&text, call->scope->arena.heap, 2 * LIMIT_TEXT);
    buf_fmt(&text, "%lld.", at_s);
    buf_str(&text, exchange->sent.data ? exchange->sent : STR(""));
    sha_hmac(sha, secret, buf_view(&text), mac);
    sha_free(sha);
    sha_hex(mac, SHA_SIZE, hex);
    is_added = !text.failed;
    buf_clear(&text);
    buf_fmt(&text, "t=%lld,v1=%s", at_s, hex);
    is_added = is_added && !text.failed
                   ? add_header(exchange, STR("X-Pawl-Signature"), buf_view(&text))
                   : call_no_memory(call);
    buf_fini(&text);
    return is_added;
}

/* The definition names a secret; its value is in our environment, and only where the configuration
 * lists the name. */
static bool sign(struct exchange *exchange)
{
    const struct node *name = node_find(exchange->call->args, "sign");
    const char *variable, *secret;

    if (!name)
        return true;
    if (name->kind != NODE_STRING || !rule_names_have(&exchange->rules->secrets, name->text))
        return call_refuse(exchange->call,
                           "http: the secret '%.*s' is not listed in tools.http.secrets",
                           STR_ARG(words_shown(name->text)));
    variable = arena_text(&exchange->call->scope->arena, name->text);
    if (!variable)
        return call_no_memory(exchange->call);
    secret = getenv(variable);
    if (!secret || !secret[0])
        return call_refuse(exchange->call, "http: the environment of pawl has no secret '%s'",
                           variable);
    return add_signature(exchange, str_of(secret));
}

static bool read_method(struct exchange *exchange)
{
    static const char *const known[] = { "GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", NULL };
    const struct node *method = node_find(exchange->call->args, "method");

    if (method && (method->kind != NODE_STRING || !str_is_one_of(method->text, known)))
        return call_refuse(exchange->call,
                           "http: 'method' must be GET, POST, PUT, PATCH, DELETE or HEAD");
    exchange->method = method ? method->text.data : exchange->sent.data ? "POST" : "GET";
    return true;
}

/* Arguments: http. */
static const struct known_key http_arguments[] = {
    { "url", "URL", "http:// or https://", NULL, "required" },
    { "method", "METHOD", "GET, POST, PUT, PATCH, DELETE or HEAD", NULL,
      "GET without a body, POST with one" },
    { "headers", "{NAME: VALUE}", "headers of the request", NULL, "none" },
    { "json", "ANYTHING", "the body, sent as JSON", NULL, "none" },
    { "body", "TEXT", "the body, sent as it is", NULL, "none" },
    { "sign", "NAME", "the secret that signs the body, of `tools.http.secrets`", NULL, "none" },
    { "expect", "STATUS or [STATUS, ...]", "statuses that are a success", NULL, "200 to 299" },
    { 0 },
};

static bool check_args(struct exchange *exchange)
{
    const struct node *url = node_find(exchange->call->args, "url");

    if (!call_knows(exchange->call, http_arguments))
        return false;
    if (!url || url->kind != NODE_STRING)
        return call_refuse(exchange->call, "http: 'url' must be a text");
    exchange->url = arena_text(&exchange->call->scope->arena, url->text);
    exchange->expect = node_find(exchange->call->args, "expect");
    return exchange->url ? true : call_no_memory(exchange->call);
}

/* ---- The exchange
 * ---------------------------------------------------------------------------------- */

static size_t take_body(char *data, size_t size, size_t count, void *context)
{
    struct exchange *exchange = context;

    if (exchange->body.size + size * count > exchange->rules->size_max) {
        exchange->is_too_large = true;
        return 0;
    }
    buf_add(&exchange->body, data, size * count);
    return exchange->body.failed ? 0 : size * count;
}

/* The one place where an address is known and nothing has been sent yet. */
static curl_socket_t open_socket(void *context, curlsocktype purpose, struct curl_sockaddr *address)
{
    struct exchange *exchange = context;
    const void *bytes = (const char *)&address->addr + (address->family == AF_INET ? 4 : 8);
    char text[INET6_ADDRSTRLEN] = "";

    (void)purpose;
    (void)inet_ntop(address->family, bytes, text, sizeof text);
    if (address_is_private(&address->addr) &&
        !rule_names_have(&exchange->rules->private_addresses, str_of(text))) {
        (void)snprintf(exchange->refused, sizeof exchange->refused, "%s", text);
        return CURL_SOCKET_BAD;
    }
    return socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
}

static int is_stopping(void *context, curl_off_t a, curl_off_t b, curl_off_t c, curl_off_t d)
{
    const struct exchange *exchange = context;

    (void)a, (void)b, (void)c, (void)d;
    return call_is_stopping(exchange->call);
}

static long timeout_of(const struct exchange *exchange)
{
    int64_t ms = exchange->rules->timeout_ms;

    if (exchange->call->timeout_ms > 0 && exchange->call->timeout_ms < ms)
        ms = exchange->call->timeout_ms;
    return (long)ms;
}

static void set_limits(const struct exchange *exchange, CURL *easy)
{
    const struct curl_api *curl = exchange->curl;

    curl->setopt(easy, CURLOPT_NOSIGNAL, 1L);
    curl->setopt(easy, CURLOPT_PROXY, "");
    curl->setopt(easy, CURLOPT_NETRC, (long)CURL_NETRC_IGNORED);
    curl->setopt(easy, CURLOPT_FOLLOWLOCATION, 0L);
    curl->setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
    curl->setopt(easy, CURLOPT_TIMEOUT_MS, timeout_of(exchange));
    curl->setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, timeout_of(exchange));
    curl->setopt(easy, CURLOPT_OPENSOCKETFUNCTION, open_socket);
    curl->setopt(easy, CURLOPT_OPENSOCKETDATA, exchange);
    curl->setopt(easy, CURLOPT_MAXFILESIZE_LARGE, (curl_off_t)exchange->rules->size_max);
    curl->setopt(easy, CURLOPT_NOPROGRESS, 0L);
    curl->setopt(easy, CURLOPT_XFERINFOFUNCTION, is_stopping);
    curl->setopt(easy, CURLOPT_XFERINFODATA, exchange);
    curl->setopt(easy, CURLOPT_WRITEFUNCTION, take_body);
    curl->setopt(easy, CURLOPT_WRITEDATA, exchange);
}

static CURLcode perform(struct exchange *exchange, CURL *easy)
{
    const struct curl_api *curl = exchange->curl;
    char *type = NULL;
    CURLcode code;

    set_limits(exchange, easy);
    curl->setopt(easy, CURLOPT_URL, exchange->url);
    curl->setopt(easy, CURLOPT_HTTPHEADER, exchange->headers);
    if (exchange->sent.data) {
        curl->setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)exchange->sent.size);
        curl->setopt(easy, CURLOPT_POSTFIELDS, exchange->sent.data);
    }
    curl->setopt(easy, CURLOPT_NOBODY, strcmp(exchange->method, "HEAD") == 0 ? 1L : 0L);
    curl->setopt(easy, CURLOPT_CUSTOMREQUEST, exchange->method);
    code = curl->perform(easy);
    if (code == CURLE_OK) {
        curl->getinfo(easy, CURLINFO_RESPONSE_CODE, &exchange->status);
        curl->getinfo(easy, CURLINFO_CONTENT_TYPE, &type);
        (void)snprintf(exchange->type, sizeof exchange->type, "%s", type ? type : "");
    }
    return code;
}

/* ---- The answer
 * -------------------------------------------------------------------------------------- */

static bool is_expected(const struct exchange *exchange)
{
    const struct node *expect = exchange->expect;
    int64_t wanted;

    if (!expect)
        return exchange->status >= 200 && exchange->status < 300;
    if (expect->kind != NODE_ARRAY)
        return node_to_i64(expect, &wanted) && wanted == exchange->status;
    for (const struct node *item = expect->first; item; item = item->next)
        if (node_to_i64(item, &wanted) && wanted == exchange->status)
            return true;
    return false;
}

/* A result holds JSON or text: other bytes cannot be represented. */
static bool body_is_text(const struct exchange *exchange)
{
    return exchange->body.size == 0 || str_is_utf8(buf_view(&exchange->body), false);
}

/* JSON if the type says so and it parses; else a text; null if there is no body. */
static void print_body(struct exchange *exchange, struct buf *out)
{
    str body = buf_view(&exchange->body);
    struct scope check;
    struct node *node;
    bool is_json = false;

    scope_init(&check, exchange->call->scope->arena.heap, 2 * LIMIT_SCOPE);
    if (strstr(exchange->type, "json") && body.size > 0)
        is_json = node_read_json(&check, body, &node) == PAWL_OK;
    if (is_json)
        node_print(node, out);
    else if (body.size > 0 && body_is_text(exchange))
        json_str(out, body);
    else
        json_null(out);
    scope_fini(&check);
}

/* {"status":200,"body":...}: the result, or, where another status was expected, the error. */
static void answer(struct exchange *exchange)
{
    struct call *call = exchange->call;
    struct buf out;

    buf_init(&out, call->scope->arena.heap, 8 * (size_t)LIMIT_TEXT);
    json_open(&out, '{');
    json_put_i64(&out, "status", exchange->status);
    json_key(&out, "body");
    print_body(exchange, &out);
    json_close(&out, '}');
    if (out.failed)
        call_no_memory(call);
    else if (is_expected(exchange) && !body_is_text(exchange))
        call_fail(call,
                  "http: the body is not text: expected UTF-8 without NUL, found %zu other bytes; "
                  "fetch binary data with exec or a worker",
                  exchange->body.size);
    else if (out.size > LIMIT_TEXT)
        call_fail(call, "http: the answer is over %u bytes", LIMIT_TEXT);
    else
        call_result(call, buf_view(&out));
    if (call->status == PAWL_OK && !is_expected(exchange))
        call->result.failed = true;
    buf_fini(&out);
}

static void fail_exchange(struct exchange *exchange, CURLcode code)
{
    if (exchange->body.failed)
        call_no_memory(exchange->call);
    else if (exchange->is_too_large || code == CURLE_FILESIZE_EXCEEDED)
        call_fail(exchange->call, "http: the answer is over %zu bytes", exchange->rules->size_max);
    else if (exchange->refused[0])
        call_fail(exchange->call,
                  "http: %s is a private address or one for special use, and is not listed in "
                  "tools.http.private",
                  exchange->refused);
    else if (code == CURLE_PARTIAL_FILE)
        call_fail(exchange->call,
                  "http: the answer was cut short: the connection ended after %zu bytes, before "
                  "the end that its head announced",
                  exchange->body.size);
    else if (code == CURLE_OPERATION_TIMEDOUT)
        call_fail(exchange->call, "timeout: http took longer than %ld ms", timeout_of(exchange));
    else
        call_fail(exchange->call, "http: %s", exchange->curl->strerror(code));
    exchange->call->result.is_cut = code == CURLE_ABORTED_BY_CALLBACK;
}

static void run(struct exchange *exchange)
{
    CURL *easy;
    CURLcode code;

    if (!check_args(exchange) || !check_url(exchange) || !read_body(exchange) ||
        !read_method(exchange) || !read_headers(exchange) || !sign(exchange))
        return;
    easy = exchange->curl->init();
    code = easy ? perform(exchange, easy) : CURLE_OUT_OF_MEMORY;
    exchange->curl->cleanup(easy);
    if (!easy)
        call_no_memory(exchange->call);
    else if (code == CURLE_OK && !exchange->body.failed)
        answer(exchange);
    else
        fail_exchange(exchange, code);
}

void http_run(struct call *call)
{
    struct exchange exchange = { .call = call, .rules = &call->toolbox->rules };

    if (!exchange.rules->http) {
        call_refuse(call, "http is off; pawl.yaml turns it on with tools: {http: {hosts: [...]}}");
        return;
    }
    exchange.curl = curl_api_get(call->toolbox);
    if (!exchange.curl) {
        call_fail(call, "http: libcurl.so.4 cannot be loaded; install libcurl4");
        return;
    }
    buf_init(&exchange.body, call->scope->arena.heap, LIMIT_TEXT + 1);
    run(&exchange);
    exchange.curl->slist_free(exchange.headers);
    buf_fini(&exchange.body);
}
