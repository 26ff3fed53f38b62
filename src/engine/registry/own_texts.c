/* own_texts.c - definitions of ours that others refer to: `pawl.mcp`, of which each step with the
 * tool `mcp` is an instance. It is put before the first text that refers to it.
 *
 * What it waits for is durable: the pauses of a remote task are timers, what a server asks is a
 * gate, and what has to be known after a crash is the result of a step, in `context.at`. A call
 * whose attempt was lost is repeated (`again`) only where that is safe; the tool knows. */
#include "engine/parts.h"

#define WHERE "server: \"{{input.server}}\", tool: \"{{input.tool}}\""
#define ARGS  "args: \"{{input.args}}\", idempotent: \"{{input.idempotent}}\""
#define OTHERS                                                                                     \
    "resource: \"{{input.resource}}\", prompt: \"{{input.prompt}}\", list: \"{{input.list}}\""
#define AT "at: \"{{context.at}}\""
#define ONCE                                                                                       \
    "    idempotent: false\n"                                                                      \
    "    augment: {at: identity}\n"                                                                \
    "    retry: {max: 5, backoff: {initial: 1s, factor: 3, max: 1m}, on: [unreachable, "           \
    "interrupted]}\n"
#define LOST(next)                                                                                 \
    "    on_error:\n"                                                                              \
    "      - {if: 'error == \"lost\"', then: " next "}\n"
#define THEN(working, input)                                                                       \
    "    branch:\n"                                                                                \
    "      - {if: 'result.state == \"working\"', then: " working "}\n"                             \
    "      - {if: 'result.state == \"input\"', then: " input "}\n"                                 \
    "      - {if: 'true', then: end}\n"
#define ANSWER(name, said, again)                                                                  \
    "  " name ":\n"                                                                                \
    "    tool: mcp.answer\n"                                                                       \
    "    args: {" WHERE ", " ARGS ", " AT ", " said "}\n" ONCE                                     \
    LOST(again) THEN("rest", "ask")
#define GIVEN    "answer: \"{{steps.ask.result}}\""
#define DECLINED "declined: true"
#define AGAIN    ", again: true"

static const char mcp_text[] =
    "name: " MCP_DEFINITION "\n"
    "description: one call of an MCP server, made by a step with the tool mcp\n"
    "input:\n"
    "  type: object\n"
    "  required: [server]\n"
    "  properties:\n"
    "    server: {type: string}\n"
    "    tool: {type: string}\n"
    "    resource: {type: string}\n"
    "    prompt: {type: string}\n"
    "    list: {type: string}\n"
    "    args: {type: object}\n"
    "    idempotent: {type: boolean}\n"
    "steps:\n"
    "  call:\n"
    "    tool: mcp.call\n"
    "    args: {" WHERE ", " ARGS ", " OTHERS "}\n" ONCE LOST("again") THEN(
        "keep",
        "keep") "  again:\n"
                "    tool: mcp.call\n"
                "    args: {" WHERE ", " ARGS ", " OTHERS AGAIN "}\n" ONCE LOST("again") THEN(
                    "keep",
                    "keep") "  keep:\n"
                            "    description: from here on a cancel is passed on to the server\n"
                            "    tool: mcp.keep\n"
                            "    args: {" AT "}\n"
                            "    compensate: {tool: mcp.cancel, args: {" WHERE ", " AT "}}\n" THEN(
                                "rest",
                                "ask") "  rest: {tool: sleep, args: {for: "
                                       "\"{{context.at.after}}\"}, next: look}\n"
                                       "  look:\n"
                                       "    tool: mcp.look\n"
                                       "    args: {" WHERE ", " AT "}\n"
                                       "    augment: {at: identity}\n"
                                       "    retry: {max: 1000, backoff: {initial: 1s, factor: 2, "
                                       "max: 5m}, on: [unreachable, "
                                       "interrupted, lost, stopped]}\n" THEN(
                                           "rest",
                                           "ask") "  ask: {approval: {ask: "
                                                  "\"{{context.at.ask}}\"}, next: accept, "
                                                  "on_error: decline}\n" ANSWER("accept", GIVEN,
                                                                                "accept-again")
                                                      ANSWER("accept-again", GIVEN AGAIN,
                                                             "accept-again") ANSWER("decline",
                                                                                    DECLINED,
                                                                                    "decline-again")
                                                          ANSWER(
                                                              "decline-again", DECLINED AGAIN,
                                                              "decline-again") "  end: {tool: set, "
                                                                               "done: true}\n"
                                                                               "output: "
                                                                               "\"{{context.at."
                                                                               "result}}\"\n";

pawl_status own_texts_put(struct engine *engine, struct scope *scope, str name,
                          const struct findings *findings)
{
    struct defined ignored;

    for (uint32_t i = 0; i < findings->reference_count; i++)
        if (str_is(findings->references[i].name, MCP_DEFINITION) && !str_is(name, MCP_DEFINITION))
            return engine_define(engine, scope, STR(MCP_DEFINITION), str_of(mcp_text), STR_NONE,
                                 NULL, &ignored);
    return PAWL_OK;
}

bool own_texts_have(str name)
{
    return str_is(name, MCP_DEFINITION);
}
