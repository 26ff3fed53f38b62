/* http_mount.c - another surface serves addresses of its own beside the operations. */
#include "lib/test.h"
#include "surface/http/http_int.h"
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

/* ---- Two surfaces ---- */

static pawl_status answer_rpc(struct op_call *call, struct buf *out)
{
    buf_fmt(out, "{\"read\":%zu}", node_find(call->input, "text")->text.size);
    return PAWL_OK;
}

static pawl_status answer_page(struct op_call *call, struct buf *out)
{
    const struct node *name = node_find(call->input, "name");

    call->content_type = "text/html";
    buf_fmt(out, "<p>%.*s</p>", name ? (int)name->text.size : 5, name ? name->text.data : "start");
    return PAWL_OK;
}

static const struct op_param no_params[] = { { 0 } };
static const struct op_param page_params[] = {
    { "name", IN_PATH, OP_STRING, true, "the page" },
    { 0 },
};
static const struct op rpc_rows[] = {
    { "rpc", "POST", "/rpc", OP_TEXT_BODY | OP_RAW_ANSWER, 200, "a call", no_params, answer_rpc,
      "any" },
    { 0 },
};
static const struct op page_rows[] = {
    { "page.start", "GET", "/", OP_QUICK | OP_RAW_ANSWER, 200, "the first page", no_params,
      answer_page, "none" },
    { "page.get", "GET", "/{name}", OP_QUICK | OP_RAW_ANSWER, 200, "a page", page_params,
      answer_page, "none" },
    { 0 },
};
static const struct op *const mounts[] = { rpc_rows, page_rows, NULL };

/* ---- Routes ---- */

static pawl_status find(struct test *t, const char *method, const char *target, struct route *route,
                        char allow[ALLOW_SIZE])
{
    return route_find(&t->scope, mounts, str_of(method), str_of(target), route, allow);
}

TEST(http_mount, what_is_mounted_takes_what_no_operation_has)
{
    char allow[ALLOW_SIZE];
    struct route route;

    EXPECT_OK(find(t, "GET", "/", &route, allow));
    EXPECT(route.op == &page_rows[0] && route.is_mounted);
    EXPECT_OK(find(t, "GET", "/css/a%20b.css", &route, allow));
    EXPECT(route.op == &page_rows[1]);
    EXPECT_STR(route.pairs[0].value, "css/a b.css");
    EXPECT_OK(find(t, "POST", "/rpc", &route, allow));
    EXPECT(route.op == rpc_rows);
    EXPECT_OK(find(t, "GET", "/healthz", &route, allow));
    EXPECT(!route.is_mounted);
    EXPECT_TEXT(route.op->name, "health.get");
}

TEST(http_mount, the_first_table_that_knows_an_address_decides_about_its_methods)
{
    char allow[ALLOW_SIZE];
    struct route route;

    EXPECT_EQ(find(t, "GET", "/rpc", &route, allow), PAWL_NOT_ALLOWED);
    EXPECT_TEXT(allow, "POST, OPTIONS");
    EXPECT_EQ(find(t, "POST", "/healthz", &route, allow), PAWL_NOT_ALLOWED);
    EXPECT_EQ(find(t, "POST", "/", &route, allow), PAWL_NOT_ALLOWED);
    EXPECT_TEXT(allow, "GET, HEAD, OPTIONS");
}

TEST(http_mount, an_address_below_v1_is_an_operation_or_not_known)
{
    char allow[ALLOW_SIZE];
    struct route route;

    EXPECT_EQ(find(t, "GET", "/v1/nothing", &route, allow), PAWL_NOT_KNOWN);
    EXPECT_EQ(find(t, "GET", "/v1/stores/a/nothing", &route, allow), PAWL_NOT_KNOWN);
}

/* ---- A server ---- */

/* The whole answer to one request, which closes its connection. */
static const char *ask(uint16_t port, const char *method, const char *path, const char *body)
{
    static char answer[4096];
    struct sockaddr_in address = { .sin_family = AF_INET,
                                   .sin_port = htons(port),
                                   .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    char request[512];
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    ssize_t size, used = 0;

    EXPECT_EQ(connect(fd, (struct sockaddr *)&address, sizeof address), 0);
    size = snprintf(request, sizeof request,
                    "%s %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
                    "Content-Length: %zu\r\n\r\n%s",
                    method, path, strlen(body), body);
    EXPECT_EQ(write(fd, request, (size_t)size), size);
    while ((size = read(fd, answer + used, sizeof answer - 1 - (size_t)used)) > 0)
        used += size;
    answer[used] = 0;
    close(fd);
    return answer;
}

TEST(http_mount, a_server_serves_operations_and_what_is_mounted)
{
    struct http_options options = { .listen = "127.0.0.1:0", .mounts = mounts };
    struct http_server *server;
    pawl_error error;
    const char *answer;
    pawl *p;

    EXPECT_OK(pawl_open(&p, "memory:", NULL, &error));
    server = http_start(p, &options, &error);
    EXPECT(server);
    answer = ask(server->port, "GET", "/", "");
    EXPECT_HAS(answer, "200 OK");
    EXPECT_HAS(answer, "text/html");
    EXPECT_HAS(answer, "<p>start</p>");
    answer = ask(server->port, "GET", "/help/me", "");
    EXPECT_HAS(answer, "<p>help/me</p>");
    answer = ask(server->port, "POST", "/rpc", "{}");
    EXPECT_HAS(answer, "200 OK");
    EXPECT_HAS(answer, "{\"read\":2}");
    answer = ask(server->port, "GET", "/v1/instances", "");
    EXPECT_HAS(answer, "{\"instances\":[]");
    answer = ask(server->port, "GET", "/metrics", "");
    EXPECT_HAS(answer, "200 OK");
    http_stop(server);
    pawl_close(p);
}
