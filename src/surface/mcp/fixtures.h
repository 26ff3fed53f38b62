/* fixtures.h - private to mcp: what the conformance suite asks a server for (--mcp-fixtures). What
 * takes time is a definition (fixtures/); the rest is answered here. Without the option none of it
 * is there. */
#ifndef PAWL_SURFACE_MCP_FIXTURES_H
#define PAWL_SURFACE_MCP_FIXTURES_H

#include "surface/mcp/mcp_int.h"

void fixtures_put_tools(struct rpc_exchange *exchange, struct buf *out);
void fixtures_put_resources(struct rpc_exchange *exchange, struct buf *out);
void fixtures_put_templates(struct rpc_exchange *exchange, struct buf *out);
void fixtures_put_prompts(struct rpc_exchange *exchange, struct buf *out);
bool fixture_tool_has(const struct rpc_exchange *exchange, str name);
pawl_status fixture_tool_call(struct rpc_exchange *exchange, str name, struct buf *result);
bool fixture_resource_has(const struct rpc_exchange *exchange, str uri);
pawl_status fixture_resource_read(struct rpc_exchange *exchange, str uri, struct buf *result,
                                  bool *is_there);
pawl_status fixture_prompt_get(struct rpc_exchange *exchange, str name, struct buf *result,
                               bool *is_there);

/* ---- fixtures_ask.c: those that ask the client ---- */

pawl_status fixture_ask(struct rpc_exchange *exchange, str name, struct buf *result);
pawl_status fixture_prompt_ask(struct rpc_exchange *exchange, struct buf *result);

#endif
