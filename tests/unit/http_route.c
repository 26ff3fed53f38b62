/* http_route.c - from a method and a target to a row of the table, and the escapes of a URL. */
#include "lib/test.h"
#include "surface/http/http_int.h"

static struct route route;
static char allow[ALLOW_SIZE];

static pawl_status find(struct test *t, const char *method, const char *target)
{
    return route_find(&t->scope, NULL, str_of(method), str_of(target), &route, allow);
}

static void expect_route(struct test *t, const char *method, const char *target, const char *name)
{
    EXPECT_OK(find(t, method, target));
    EXPECT_TEXT(route.op->name, name);
}

TEST(http_route, an_address_leads_to_its_operation)
{
    expect_route(t, "GET", "/healthz", "health.get");
    expect_route(t, "POST", "/v1/instances", "instance.create");
    expect_route(t, "GET", "/v1/instances", "instance.list");
    expect_route(t, "GET", "/v1/instances/a1", "instance.get");
    EXPECT_STR(route.pairs[0].name, "instance_id");
    EXPECT_STR(route.pairs[0].value, "a1");
    expect_route(t, "POST", "/v1/instances/a1/fire", "instance.fire");
    expect_route(t, "POST", "/v1/test/instances/a1/timers/do.1/fire", "test.fire_timer");
    EXPECT_STR(route.pairs[1].value, "do.1");
    expect_route(t, "HEAD", "/v1/stores", "store.list");
}

TEST(http_route, a_blank_id_still_reaches_its_operation_which_refuses_it)
{
    expect_route(t, "GET", "/v1/instances//current", "instance.current");
    EXPECT_STR(route.pairs[0].value, "");
    expect_route(t, "GET", "/v1/instances/%20/history", "instance.history");
    EXPECT_STR(route.pairs[0].value, " ");
}

TEST(http_route, an_id_may_begin_as_a_template_does)
{
    expect_route(t, "GET", "/v1/instances/{instance_id}", "instance.get");
    EXPECT_STR(route.pairs[0].value, "{instance_id}");
    expect_route(t, "GET", "/v1/instances/{other}/why", "instance.why");
    EXPECT_STR(route.pairs[0].value, "{other}");
    EXPECT_EQ(find(t, "GET", "/v1/{instances}"), PAWL_NOT_KNOWN);
    EXPECT_EQ(find(t, "GET", "/v1"), PAWL_NOT_KNOWN);
}

TEST(http_route, a_definition_name_may_contain_slashes_raw_or_escaped)
{
    expect_route(t, "PUT", "/v1/definitions/sales/order", "definition.put");
    EXPECT_STR(route.pairs[0].value, "sales/order");
    expect_route(t, "GET", "/v1/definitions/sales%2Forder?version=2", "definition.get");
    EXPECT_STR(route.pairs[0].value, "sales/order");
    EXPECT_STR(route.pairs[1].name, "version");
    EXPECT_STR(route.pairs[1].value, "2");
}

TEST(http_route, a_definition_may_be_called_check)
{
    expect_route(t, "POST", "/v1/definitions/check", "definition.check");
    expect_route(t, "GET", "/v1/definitions/check", "definition.get");
    expect_route(t, "PUT", "/v1/definitions/check", "definition.put");
}

TEST(http_route, every_address_is_also_one_of_each_store)
{
    expect_route(t, "GET", "/v1/stores/default/instances/a1/why", "instance.why");
    EXPECT_STR(route.pairs[0].value, "a1");
    EXPECT_STR(route.store, "default");
    expect_route(t, "GET", "/v1/stores/oth%65r/instances", "instance.list");
    EXPECT_STR(route.store, "other");
    expect_route(t, "GET", "/v1/stores/other/metrics", "metrics.get");
    EXPECT_STR(route.store, "other");
    expect_route(t, "PUT", "/v1/stores/other", "store.put");
    EXPECT_STR(route.pairs[0].value, "other");
    EXPECT_STR(route.store, "default");
    EXPECT_EQ(route_body_limit(STR("/v1/stores/other/batch?x")), LIMIT_BATCH_TEXT);
    EXPECT_EQ(route_body_limit(STR("/v1/stores/batch")), LIMIT_TEXT);
    EXPECT_EQ(find(t, "GET", "/v1/stores/default"), PAWL_NOT_ALLOWED);
    EXPECT_EQ(find(t, "GET", "/v1/stores/%zz/instances"), PAWL_INVALID_REQUEST);
    EXPECT_EQ(find(t, "GET", "/v1/stores/default/stores/default/instances"), PAWL_NOT_KNOWN);
}

TEST(http_route, an_unknown_address_is_not_known)
{
    EXPECT_EQ(find(t, "GET", "/"), PAWL_NOT_KNOWN);
    EXPECT_EQ(find(t, "GET", ""), PAWL_NOT_KNOWN);
    EXPECT_EQ(find(t, "GET", "*"), PAWL_NOT_KNOWN);
    EXPECT_EQ(find(t, "GET", "v1/instances"), PAWL_NOT_KNOWN);
    EXPECT_EQ(find(t, "GET", "/v1/instances/a/b/c"), PAWL_NOT_KNOWN);
    EXPECT_EQ(find(t, "POST", "/v1/instances/a/frie"), PAWL_NOT_KNOWN);
    EXPECT_EQ(find(t, "GET", "/v1/Instances"), PAWL_NOT_KNOWN);
}

TEST(http_route, another_method_is_not_allowed_and_the_right_ones_are_named)
{
    EXPECT_EQ(find(t, "DELETE", "/v1/instances"), PAWL_NOT_ALLOWED);
    EXPECT_TEXT(allow, "POST, GET, HEAD, OPTIONS");
    EXPECT_EQ(find(t, "GET", "/v1/instances/a1/fire"), PAWL_NOT_ALLOWED);
    EXPECT_TEXT(allow, "POST, OPTIONS");
    EXPECT_EQ(find(t, "get", "/v1/stores"), PAWL_NOT_ALLOWED);
}

TEST(http_route, a_query_is_cut_and_decoded)
{
    expect_route(t, "GET", "/v1/instances?label.a%2Eb=x%26y+z&limit=5&&state", "instance.list");
    EXPECT_EQ(route.count, 3);
    EXPECT_STR(route.pairs[0].name, "label.a.b");
    EXPECT_STR(route.pairs[0].value, "x&y z");
    EXPECT_STR(route.pairs[2].name, "state");
    EXPECT_STR(route.pairs[2].value, "");
}

TEST(http_route, bad_escapes_are_refused)
{
    const char *const bad[] = { "%", "%2", "%zz", "a%0", "%00", "%ff", "%c0%80", "%ed%a0%80" };

    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        str out;

        EXPECT_EQ(url_decode(&t->scope, str_of(bad[i]), false, &out), PAWL_INVALID_REQUEST);
    }
    EXPECT_EQ(find(t, "GET", "/v1/instances/%zz"), PAWL_INVALID_REQUEST);
    EXPECT_EQ(find(t, "GET", "/v1/instances?state=%"), PAWL_INVALID_REQUEST);
}

TEST(http_route, more_parameters_than_anybody_needs_are_refused)
{
    char target[1024] = "/v1/instances?";

    for (size_t end = strlen(target), i = 0; i < 100; i++, end += 4)
        memcpy(target + end, "a=1&", 5);
    EXPECT_EQ(find(t, "GET", target), PAWL_INVALID_REQUEST);
}

TEST(http_route, only_names_of_this_machine_are_local)
{
    EXPECT(host_is_local(STR("localhost")));
    EXPECT(host_is_local(STR("LocalHost:7295")));
    EXPECT(host_is_local(STR("127.0.0.1:1")));
    EXPECT(host_is_local(STR("[::1]")));
    EXPECT(host_is_local(STR("[::1]:7295")));
    EXPECT(!host_is_local(STR("")));
    EXPECT(!host_is_local(STR("localhost.evil.example")));
    EXPECT(!host_is_local(STR("localhost:")));
    EXPECT(!host_is_local(STR("localhost:70000")));
    EXPECT(!host_is_local(STR("127.0.0.1.nip.io")));
    EXPECT(!host_is_local(STR("127.0.0.2")));
    EXPECT(!host_is_local(STR("evil.example")));
}

TEST(http_route, only_loopback_is_served_without_a_token)
{
    static const char *const addresses[] = { "0.0.0.0:0", "[::]:0" };
    struct http_server *server;
    pawl_error error;
    char *answer;
    pawl *p;

    EXPECT_OK(pawl_open(&p, "memory:", NULL, &error));
    for (size_t i = 0; i < 2; i++) {
        EXPECT(!http_start(p, &(struct http_options){ .listen = addresses[i] }, &error));
        EXPECT_EQ(error.status, PAWL_FORBIDDEN);
        EXPECT_HAS(error.message, "refuses to listen on more than loopback without a token");
    }
    EXPECT_OK(pawl_call(p, "token.create", "{\"scopes\":\"read\"}", &answer, &error));
    pawl_free(p, answer);
    server = http_start(p, &(struct http_options){ .listen = "0.0.0.0:0" }, &error);
    EXPECT(server);
    http_stop(server);
    pawl_close(p);
}

TEST(http_route, what_is_no_address_is_refused_in_words)
{
    pawl_error error;
    uint16_t port;

    EXPECT_EQ(http_bind("nonsense", &port, &error), -1);
    EXPECT_HAS(error.message, "expected an address like");
    EXPECT_EQ(http_bind("127.0.0.1:70000", &port, &error), -1);
    EXPECT_EQ(http_bind("[::1", &port, &error), -1);
    EXPECT_EQ(http_bind("", &port, &error), -1);
}
