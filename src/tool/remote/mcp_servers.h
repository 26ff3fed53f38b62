/* mcp_servers.h - private to tool: MCP servers whose tools steps call, over HTTP or as a
 * program's stdin and stdout, in both eras of the protocol (docs/internals/mcp.md).
 *
 * Nothing durable is here. What has to outlive this process - the id of a remote task, the state
 * that a server wants back, questions and their answers - is in the results of these tools,
 * which the flow `pawl.mcp` keeps as results of its steps. */
#ifndef PAWL_TOOL_REMOTE_MCP_SERVERS_H
#define PAWL_TOOL_REMOTE_MCP_SERVERS_H

#include "tool/rules.h"

struct call;
struct remote;
struct toolbox;

/* The part `mcp.servers` of the rules. INVALID_REQUEST with line and column, NO_MEMORY. */
pawl_status remote_rules_read(struct scope *scope, const struct node *servers,
                              struct tool_rules *out);

struct remote *remote_new(struct toolbox *toolbox); /* NULL: no memory */
void remote_stop(struct remote *remote); /* ends what is under way; the calls fail. May be NULL */
void remote_free(struct remote *remote); /* after all calls; may be NULL */

/* The tools `mcp.call`, `mcp.keep`, `mcp.look`, `mcp.answer` and `mcp.cancel`. */
void remote_call_run(struct call *call);
void remote_keep_run(struct call *call);
void remote_look_run(struct call *call);
void remote_answer_run(struct call *call);
void remote_cancel_run(struct call *call);

/* What each server offers now, as an array of {server, transport, era, tools | error}. Asks those
 * that `creator` may call; data NULL: all of them. */
void remote_print_servers(struct toolbox *toolbox, struct scope *scope, struct buf *out);

#endif
