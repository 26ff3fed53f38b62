/* rules.h - which tools flows may call, with what, and on whose behalf.
 *
 *   exec: true, false, or {programs: [/usr/bin/jq], env: [NAME], for: [ann]}
 *   http: {hosts: [api.example.com, "*.example.org"], private: [10.0.0.7], timeout: 30s,
 *          size: 1048576, for: [ann]}
 *   mcp: {servers: {NAME: {url | command, ...}}, for: [ann]}       remote/remote_rules.c
 *   NAME: {for: [ann, bob]}        any other tool, here or of a worker elsewhere
 *   NAME: {concurrency: {max: 5}, rate: {max: 100, per: 1m}}   how many calls of it at once, and in
 *                                  a time, here and by workers elsewhere
 *   NAME: {answers: [{error: "busy"}, {result: 7}]}   not called at all: told what it answers, the
 *                                  n-th time it is tried the n-th, the last one ever after
 *
 * A step runs with the rights of who created its instance (B27): `for` names them. */
#ifndef PAWL_TOOL_RULES_H
#define PAWL_TOOL_RULES_H

#include "base/node.h"
#include "base/scope.h"
#include "tool/tool.h"

struct rule_names {
    str *items;
    uint32_t count;
};

struct tool_reply {
    bool failed;
    str json; /* the result, or the error */
};

struct tool_rule {
    str tool;
    bool is_restricted; /* only for those named */
    struct rule_names creators;
    struct tool_reply *replies; /* instead of a call; none: it is called */
    uint32_t reply_count;
    struct tool_limits limits;
};

struct remote_header {
    str name, value;
};

struct remote_rule { /* an MCP server */
    str name;
    str url;        /* data NULL: it is a program */
    char **argv;    /* NULL: it is not */
    str cwd, token; /* token: the variable that has it; data NULL: none */
    struct remote_header *headers;
    uint32_t header_count;
    struct rule_names variables, private_addresses, creators;
    bool is_restricted; /* only for those creators */
    int64_t timeout_ms;
    int era; /* 0: what it speaks; 1, 2: enum remote_era */
};

struct tool_rules {
    bool has_limits;     /* of some tool */
    int64_t per_max_ms;  /* of all rates */
    struct remote_rule *servers;
    uint32_t server_count;
    bool has_exec, exec; /* has_exec: it says so, whatever the host's own option */
    bool has_programs;   /* only those named */
    struct rule_names programs;
    struct rule_names variables; /* of our environment, that programs get beside the usual ones */
    bool http;
    struct rule_names hosts, private_addresses;
    struct rule_names secrets; /* variables of our environment that may sign a body */
    int64_t timeout_ms;
    size_t size_max;
    struct tool_rule *rules;
    uint32_t rule_count;
};

/* Read them; all lives in the scope. INVALID_REQUEST with line and column, NO_MEMORY. */
pawl_status tool_rules_read(struct scope *scope, const struct node *tools, struct tool_rules *out);

/* May this tool be called for instances of `creator`? data NULL: the creator is unknown. */
bool tool_rules_allow(const struct tool_rules *rules, str tool, str creator);
/* What is answered in its place; NULL: nothing, it is called. Attempts count from 1. */
const struct tool_reply *tool_rules_reply(const struct tool_rules *rules, str tool,
                                          uint32_t attempt);
/* NULL: none. */
const struct tool_limits *tool_rules_limits(const struct tool_rules *rules, str tool);
bool rule_names_have(const struct rule_names *names, str name);

#endif
