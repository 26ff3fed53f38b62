/* tool_rules.c - which tools flows may call: rules are strict, addresses of our own house known. */
#include "lib/test.h"
#include "tool/tool_int.h"
#include <arpa/inet.h>
#include <netinet/in.h>

static pawl_status read_rules(struct test *t, const char *text, struct tool_rules *out)
{
    struct node *node = NULL;

    EXPECT_OK(node_read_yaml(&t->scope, str_of(text), &node));
    return tool_rules_read(&t->scope, node, out);
}

TEST(tool_rules, what_is_written_is_what_holds)
{
    struct tool_rules rules;

    EXPECT_OK(read_rules(t,
                         "exec: {programs: [/bin/true], for: [ann]}\n"
                         "http: {hosts: [a.example], private: [10.0.0.7], timeout: 5s, size: 99}\n"
                         "paint: {for: [bob]}\n",
                         &rules));
    EXPECT(rules.exec && rules.has_programs && rules.http);
    EXPECT(rule_names_have(&rules.programs, STR("/bin/true")));
    EXPECT(!rule_names_have(&rules.programs, STR("/bin/tru")));
    EXPECT_EQ(rules.timeout_ms, 5000);
    EXPECT_EQ(rules.size_max, 99);
    EXPECT(tool_rules_allow(&rules, STR("exec"), STR("ann")));
    EXPECT(!tool_rules_allow(&rules, STR("exec"), STR("bob")));
    EXPECT(!tool_rules_allow(&rules, STR("paint"), STR_NONE));
    EXPECT(tool_rules_allow(&rules, STR("http"), STR_NONE));
    EXPECT(tool_rules_allow(&rules, STR("anything"), STR("eve")));
    EXPECT_OK(read_rules(t, "exec: false", &rules));
    EXPECT(rules.has_exec && !rules.exec && !rules.http);
}

TEST(tool_rules, what_is_not_known_is_refused_with_its_place)
{
    static const char *const texts[][2] = {
        { "exec: {program: [x]}", "line 1, column 8: unknown key 'tools.exec.program'" },
        { "http: {hosts: a}", "line 1, column 15: 'hosts': expected a list" },
        { "http: {hosts: [1]}", "'hosts': expected a text" },
        { "http: true", "'http': expected an object" },
        { "http: {timeout: 5}", "'timeout': expected a duration" },
        { "http: {size: 0}", "'size': expected a number" },
        { "http: {size: 1048577}", "'size': expected a number" },
        { "exec: 1", "expected true, false or {programs, env, for}" },
        { "paint: {hosts: []}", "unknown key 'tools.paint.hosts'" },
        { "paint: {answers: []}", "'answers': expected a list" },
        { "paint: {answers: {result: 1}}", "'answers': expected a list" },
        { "paint: {answers: [1]}", "expected {result: ...} or {error: ...}" },
        { "paint: {answers: [{result: 1, error: 2}]}", "expected {result: ...} or {error: ...}" },
        { "paint: {answers: [{answer: 1}]}", "expected {result: ...} or {error: ...}" },
        { "sleep: {answers: [{result: 1}]}", "'sleep' is a timer" },
        { "[]", "'tools': expected an object" },
    };
    struct tool_rules rules;

    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        EXPECT_EQ(read_rules(t, texts[i][0], &rules), PAWL_INVALID_REQUEST);
        EXPECT_HAS(t->scope.error.message, texts[i][1]);
    }
}

TEST(tool_rules, answers_are_told_by_the_attempt_and_the_last_one_stays)
{
    struct tool_rules rules;

    EXPECT_OK(read_rules(t, "paint: {answers: [{error: dry}, {result: {a: 1.50}}]}", &rules));
    EXPECT(!tool_rules_reply(&rules, STR("exec"), 1));
    EXPECT(tool_rules_reply(&rules, STR("paint"), 1)->failed);
    EXPECT_STR(tool_rules_reply(&rules, STR("paint"), 1)->json, "\"dry\"");
    EXPECT_STR(tool_rules_reply(&rules, STR("paint"), 2)->json, "{\"a\":1.50}");
    EXPECT(!tool_rules_reply(&rules, STR("paint"), 99)->failed);
    EXPECT_OK(read_rules(t, "exec: {answers: [{result: null}], for: [ann]}", &rules));
    EXPECT_STR(tool_rules_reply(&rules, STR("exec"), 1)->json, "null");
    EXPECT(!tool_rules_allow(&rules, STR("exec"), STR("bob")));
}

static bool is_private(const char *text)
{
    struct sockaddr_in v4 = { .sin_family = AF_INET };
    struct sockaddr_in6 v6 = { .sin6_family = AF_INET6 };

    if (inet_pton(AF_INET, text, &v4.sin_addr) == 1)
        return address_is_private((const struct sockaddr *)&v4);
    EXPECT_EQ(inet_pton(AF_INET6, text, &v6.sin6_addr), 1);
    return address_is_private((const struct sockaddr *)&v6);
}

static void expect_private(const char *const *texts, size_t count, bool wanted)
{
    for (size_t i = 0; i < count; i++)
        if (is_private(texts[i]) != wanted)
            test_fail(__FILE__, __LINE__, "%s is %s", texts[i], wanted ? "allowed" : "private");
}

TEST(tool_rules, addresses_of_our_own_house_are_known_in_every_dress)
{
    static const char *const ours[] = {
        "127.0.0.1",
        "127.9.9.9",
        "10.0.0.1",
        "172.16.0.1",
        "172.31.255.255",
        "192.168.1.1",
        "169.254.169.254",
        "0.0.0.0",
        "100.64.0.1",
        "224.0.0.1",
        "255.255.255.255",
        "::1",
        "::",
        "fe80::1",
        "fc00::1",
        "fd12::1",
        "ff02::1",
        "::ffff:10.0.0.1",
        "::127.0.0.1",
        "64:ff9b::7f00:1",
        "2002:7f00:1::",
        "2002:a00:1::1",
        "::ffff:169.254.1.1",
        "fec0::1",
    };

    expect_private(ours, sizeof ours / sizeof ours[0], true);
}

TEST(tool_rules, addresses_that_iana_keeps_for_a_special_use_are_not_asked)
{
    static const char *const special[] = {
        "0.255.255.255",
        "100.127.255.255",
        "192.0.0.1",
        "192.0.0.171",
        "192.0.2.1",
        "192.0.2.255",
        "192.88.99.1",
        "198.18.0.1",
        "198.19.255.255",
        "198.51.100.7",
        "203.0.113.7",
        "240.0.0.1",
        "254.255.255.255",
        "239.255.255.255",
        "64:ff9b::c000:201",
        "64:ff9b:1::808:808",
        "::ffff:203.0.113.1",
        "::8.8.8.8",
        "100::1",
        "100:0:0:1::1",
        "2001::1",
        "2001:2::1",
        "2001:10::1",
        "2001:20::1",
        "2001:1ff:ffff::1",
        "2001:db8::1",
        "2001:db8:ffff::1",
        "2002:c000:201::1",
        "3fff::1",
        "3fff:fff:ffff::1",
        "5f00::1",
        "4000::1",
        "fbff::1",
    };

    expect_private(special, sizeof special / sizeof special[0], true);
}

TEST(tool_rules, addresses_beside_the_special_ones_are_asked)
{
    static const char *const others[] = { "8.8.8.8",     "172.32.0.1",     "172.15.0.1",
                                          "11.0.0.1",    "192.169.0.1",    "2001:4860:4860::8888",
                                          "2002:808::1", "::ffff:8.8.8.8", "100.128.0.1",
                                          "192.0.1.1",   "192.0.3.1",      "192.88.98.1",
                                          "198.17.0.1",  "198.20.0.1",     "198.51.99.1",
                                          "203.0.114.1", "223.255.255.1",  "64:ff9b::808:808",
                                          "2001:200::1", "2001:db9::1",    "3ffe::1",
                                          "3fff:1000::1" };

    expect_private(others, sizeof others / sizeof others[0], false);
}
